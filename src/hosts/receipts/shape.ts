/** Members of a receipt, looked at strictly: what is wrong with them is found with its place, what is expected, and what is there. */

import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { HostFinding, HostPlace, SourceItem } from '../shared/host.js';
import { amountOf, timeOfText, valueAt } from '../shared/values.js';
import { finding } from './rules.js';
import { escapePointer } from '../../base/json/pointer.js';
import type { ValueFault } from '../../base/fault.js';

/** The longest text of an id, a name or a key, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 4_096;

export interface TextShape {
  readonly pattern?: RegExp | undefined;
  /** For people: what the pattern stands for. */
  readonly expected?: string | undefined;
  /** Another form is unusual, and no reason to refuse it. */
  readonly isLoose?: boolean | undefined;
}

/** Looks at the members of one receipt. */
export class Shape {
  readonly at: HostPlace;
  readonly #value: SourceValue;
  readonly #find: (finding: HostFinding) => void;
  #isBroken = false;

  constructor({ at, value }: Pick<SourceItem, 'at' | 'value'>, find: (finding: HostFinding) => void) {
    this.at = at;
    this.#value = value;
    this.#find = find;
  }

  /** Whether something that was found makes the receipt unusable. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Reports a finding about the receipt. What is invalid breaks it; a violation is intact evidence. */
  find(found: HostFinding): void {
    if (found.severity === 'error' && found.class === 'invalid') this.#isBroken = true;
    this.#find(found);
  }

  /** Says that a member is not as it must be. */
  malformed(path: readonly string[], expected: string, actual = shown(valueAt(this.#value, ...path))): void {
    this.find(finding('MALFORMED', this.place(path), { expected, actual }));
  }

  /** Says that a member is not as the format has it, which changes nothing. */
  unusual(path: readonly string[], expected: string, actual = shown(valueAt(this.#value, ...path))): void {
    this.find(finding('SHAPE_UNUSUAL', this.place(path), { expected, actual }));
  }

  place(path: readonly string[]): HostPlace {
    return placeIn(this.at, pointerOf(path));
  }

  value(...path: readonly string[]): SourceValue | undefined {
    return valueAt(this.#value, ...path);
  }

  /** A text that must be there and not empty. */
  text(path: readonly string[], shape: TextShape = {}): string | undefined {
    const text = this.optionalText(path, shape);
    if (text === undefined && this.value(...path) === undefined)
      this.malformed(path, shape.expected ?? 'a text');
    return text;
  }

  /** A text that may be missing; `null` is none. */
  optionalText(
    path: readonly string[],
    { pattern, expected = 'a text', isLoose = false }: TextShape = {},
  ): string | undefined {
    const found = this.value(...path);
    if (found === undefined) return undefined;
    if (typeof found !== 'string' || found === '' || found.length > MAX_TEXT_LENGTH) {
      this.malformed(path, expected);
      return undefined;
    }
    if (pattern?.test(found) === false) {
      if (!isLoose) {
        this.malformed(path, expected);
        return undefined;
      }
      this.unusual(path, expected);
    }
    return found;
  }

  /** One of several texts, which must be there. */
  oneOf<T extends string>(path: readonly string[], values: readonly T[]): T | undefined {
    const found = this.value(...path);
    const value = values.find((each) => each === found);
    if (value === undefined) this.malformed(path, values.join(', '));
    return value;
  }

  /** A date and time with an offset, as a Timestamp. */
  time(path: readonly string[]): string | undefined {
    const found = this.value(...path);
    const time = typeof found === 'string' && hasOffset(found) ? timeOfText(found) : undefined;
    if (time === undefined) this.malformed(path, 'a date and time with an offset');
    return time;
  }

  /** The same, which may be missing. */
  optionalTime(path: readonly string[]): string | undefined {
    return this.value(...path) === undefined ? undefined : this.time(path);
  }

  /** A whole number that is not negative and that a double holds. */
  whole(path: readonly string[]): bigint | undefined {
    const found = this.value(...path);
    const amount = found instanceof SourceNumber ? amountOf(found.text) : undefined;
    const whole = amount?.t === 'int' ? BigInt(amount.v) : undefined;
    if (whole !== undefined && whole <= BigInt(Number.MAX_SAFE_INTEGER)) return whole;
    this.malformed(path, 'a whole number from 0 to 9007199254740991');
    return undefined;
  }

  object(path: readonly string[]): SourceObject | undefined {
    const found = this.value(...path);
    if (found instanceof SourceObject) return found;
    this.malformed(path, 'an object');
    return undefined;
  }
}

/** A local time is nobody's to place where it is signed. */
function hasOffset(text: string): boolean {
  return /(?:[Zz]|[+-]\d\d:?\d\d)$/.test(text);
}

/** RFC 6901. */
export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((name) => `/${escapePointer(String(name))}`).join('');
}

/** What a value is, in a few words. */
export function shown(value: SourceValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return value === '' ? 'an empty text' : value;
  if (value instanceof SourceNumber) return value.text;
  return value instanceof SourceObject ? 'an object' : 'an array';
}

export function fault<Code extends string>(
  code: Code,
  pointer: string,
  expected: string,
  actual: string,
): ValueFault<Code> {
  return { code, pointer, expected, actual };
}

/** Where a pointer leads that begins at a receipt. */
export function placeIn(at: HostPlace, pointer: string): HostPlace {
  return { ...at, pointer: `${at.pointer ?? ''}${pointer}` };
}
