/** Values of apm2's artifacts, read strictly: what is missing, unknown, of another type or beyond a limit is a fault. */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { ValueFault } from '../../base/fault.js';
import { jsonPointer } from '../../base/json/pointer.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';

/** What may be wrong with an artifact, with the rule that says so of profiles. */
export const RULE_OF = {
  NOT_AN_OBJECT: 'PR-1',
  MEMBER_MISSING: 'PR-1',
  MEMBER_UNKNOWN: 'PR-1',
  TYPE_MISMATCH: 'PR-1',
  VALUE_UNKNOWN: 'PR-1',
  EMPTY: 'PR-1',
  ENV_NAME_INVALID: 'PR-1',
  SPELLING: 'PR-1',
  TOO_LONG: 'PR-2',
  TOO_MANY: 'PR-2',
  OUT_OF_RANGE: 'PR-2',
  TIMEOUT_ZERO: 'PR-2',
  PATH_TRAVERSAL: 'PR-3',
  REGEX_INVALID: 'PR-4',
  NO_CANONICAL_FORM: 'PR-5',
  NOT_CANONICAL: 'PR-5',
} as const;

export type ProfileCode = keyof typeof RULE_OF;

/** A value at a place of an artifact. A member that is missing is a value that is undefined, and no further fault. */
export class Checked {
  readonly value: SourceValue | undefined;
  /** Of the whole artifact, in the order in which they were found. */
  readonly faults: ValueFault<ProfileCode>[];
  readonly #path: readonly (string | number)[];

  constructor(
    value: SourceValue | undefined,
    path: readonly (string | number)[] = [],
    faults: ValueFault<ProfileCode>[] = [],
  ) {
    this.value = value;
    this.#path = path;
    this.faults = faults;
  }

  fault(code: ProfileCode, expected: string, actual = describe(this.value)): undefined {
    this.faults.push({ code, pointer: jsonPointer([...this.#path]), expected, actual });
  }
  get(name: string): Checked {
    const member = this.value instanceof SourceObject ? this.value.get(name) : undefined;
    return this.#at(name, member);
  }

  #at(part: string | number, value: SourceValue | undefined): Checked {
    return new Checked(value, [...this.#path, part], this.faults);
  }

  /** Itself where it is an object with these members and no others. */
  object(required: readonly string[], optional: readonly string[] = []): Checked | undefined {
    const { value } = this;
    if (value === undefined) return undefined;
    if (!(value instanceof SourceObject)) return this.fault('TYPE_MISMATCH', 'an object');
    for (const name of required)
      if (!value.has(name)) this.get(name).fault('MEMBER_MISSING', 'a value', 'absent');
    for (const name of value.keys())
      if (!required.includes(name) && !optional.includes(name))
        this.get(name).fault('MEMBER_UNKNOWN', 'no such member');
    return this;
  }

  /** The members of an object of any names, at most so many. */
  members(most: number): readonly (readonly [name: string, member: Checked])[] {
    const { value } = this;
    if (value === undefined) return [];
    if (!(value instanceof SourceObject)) return this.fault('TYPE_MISMATCH', 'an object') ?? [];
    const names = value.keys();
    if (names.length > most) this.fault('TOO_MANY', `at most ${most}`, String(names.length));
    return names.slice(0, most).map((name) => [name, this.get(name)]);
  }

  /** The elements of an array, at most so many. */
  list(most: number): readonly Checked[] {
    const { value } = this;
    if (value === undefined) return [];
    if (!Array.isArray(value)) return this.fault('TYPE_MISMATCH', 'an array') ?? [];
    const list = value as readonly SourceValue[];
    if (list.length > most) this.fault('TOO_MANY', `at most ${most}`, String(list.length));
    return list.slice(0, most).map((element, i) => this.#at(i, element));
  }

  /** A text of at most so many bytes of UTF-8. */
  text(most: number, isRequired = false): string | undefined {
    const { value } = this;
    if (value === undefined) return undefined;
    if (typeof value !== 'string') return this.fault('TYPE_MISMATCH', 'a text');
    const size = encodeUtf8(value).length;
    if (size > most) this.fault('TOO_LONG', `at most ${most} bytes`, `${size} bytes`);
    if (isRequired && value === '') this.fault('EMPTY', 'at least one character', 'none');
    return value;
  }

  named(name: string, most: number): void {
    new Checked(name, this.#path, this.faults).text(most);
  }

  bool(): boolean | undefined {
    const { value } = this;
    if (value === undefined || typeof value === 'boolean') return value;
    return this.fault('TYPE_MISMATCH', 'true or false');
  }

  /** A whole number without sign. */
  count(bits: 32 | 64 = 64): bigint | undefined {
    const { value } = this;
    if (value === undefined) return undefined;
    const expected = `a whole number of ${bits} bits`;
    if (!(value instanceof SourceNumber) || !/^\d{1,20}$/.test(value.text))
      return this.fault('TYPE_MISMATCH', expected);
    const count = BigInt(value.text);
    if (count >= 2n ** BigInt(bits)) this.fault('OUT_OF_RANGE', expected);
    return count;
  }
}

function describe(value: SourceValue | undefined): string {
  if (value instanceof SourceNumber) return printable(value.text, 40);
  if (value instanceof SourceObject) return 'an object';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return printable(value, 40);
  return value === undefined ? 'none' : value === null ? 'null' : String(value === true);
}
