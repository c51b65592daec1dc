/** Collects all problems of a draft's options, so that they can be fixed at once. */

import { printable } from '../../base/bytes/printable.js';
import { type Digest, isDigest, tryParseDigest } from '../../base/value/digest.js';
import { type AmountsByUnit, isUnit, type Meter, readAmounts } from '../../base/value/meter.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { Source } from '../../format/schema/generated/types.js';

export interface OptionProblem {
  /** Such as `meterCaps`. */
  readonly option: string;
  readonly message: string;
}

/** `problems` lists all malformed options. */
export class OptionsError extends RangeError {
  readonly problems: readonly OptionProblem[];

  constructor(problems: readonly OptionProblem[]) {
    super(problems.map(({ option, message }) => `${option}: ${message}`).join('; '));
    this.name = 'OptionsError';
    this.problems = problems;
  }
}

/** Which names are units in an option. */
export interface UnitRule {
  readonly isKnown: (name: string) => boolean;
  readonly example: string;
}

const UNITS: UnitRule = { isKnown: isUnit, example: 'usd or time.ms' };

/** Reads untrusted options; {@link OptionReader.end} throws all problems. */
export class OptionReader {
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #problems: OptionProblem[] = [];
  /** The options read so far: others are unknown. */
  readonly #known = new Set<string>();

  /** @throws TypeError unless `options` is an object */
  constructor(options: object) {
    if (typeof options !== 'object' || (options as unknown) === null)
      throw new TypeError('expected an object of options');
    this.#options = options as Readonly<Record<string, unknown>>;
  }

  refuse(option: string, message: string): void {
    this.#problems.push({ option, message });
  }

  has(option: string): boolean {
    return this.#get(option) !== undefined;
  }

  /** The option if `isValid`; else undefined, recording a problem if it is present or `isRequired`. */
  read<T>(
    option: string,
    expected: string,
    isValid: (value: unknown) => value is T,
    isRequired = false,
  ): T | undefined {
    const value = this.#get(option);
    if (value === undefined && !isRequired) return undefined;
    if (isValid(value)) return value;
    this.refuse(option, `expected ${expected}, found ${describe(value)}`);
    return undefined;
  }

  text(
    option: string,
    expected: string,
    isValid: (text: string) => boolean,
    isRequired = false,
  ): string | undefined {
    const isText = (value: unknown): value is string => typeof value === 'string' && isValid(value);
    return this.read(option, expected, isText, isRequired);
  }

  principal(option: string, isRequired = false): string | undefined {
    return this.text(
      option,
      'human:, service:, agent: or org: and a name, such as agent:a1',
      isPrincipalId,
      isRequired,
    );
  }

  timestamp(option: string): string | undefined {
    return this.text(option, 'a timestamp such as 2026-03-01T12:00:00Z', isTimestamp);
  }

  texts(option: string, expected: string, max: number, isValid: (text: string) => boolean): string[] {
    const values = this.read(option, `a list of ${expected}`, Array.isArray) as unknown[] | undefined;
    if (values === undefined) return [];
    if (values.length === 0) this.refuse(option, `expected ${expected}, found none`);
    if (values.length > max) this.refuse(option, `expected at most ${max}, found ${values.length}`);
    const isText = (value: unknown): value is string => typeof value === 'string' && isValid(value);
    const right = values.filter(isText);
    if (right.length < values.length) {
      const wrong = values.filter((value) => !isText(value)).map(describe);
      this.refuse(option, `expected ${expected}, found ${wrong.slice(0, 8).join(', ')}`);
    }
    return [...new Set(right)];
  }

  amounts(option: string, { isKnown, example }: UnitRule = UNITS): Meter[] {
    const isRecord = (value: unknown): value is AmountsByUnit =>
      typeof value === 'object' && value !== null && !Array.isArray(value);
    const amounts = this.read(option, 'amounts by unit', isRecord);
    if (amounts === undefined) return [];
    const { vector, problems } = readAmounts(amounts, isKnown, example);
    for (const { message } of problems) this.refuse(option, message);
    return vector;
  }

  /** As text in any accepted spelling, or as events have it. */
  digest(option: string): Digest | undefined {
    const value = this.#get(option);
    if (value === undefined) return undefined;
    const digest = typeof value === 'string' ? tryParseDigest(value) : undefined;
    if (digest !== undefined) return digest;
    if (isDigest(value)) return { alg: value.alg, b64: value.b64 };
    this.refuse(option, `expected a digest such as sha-256:…, found ${describe(value)}`);
    return undefined;
  }

  source(option: string): Source | undefined {
    const isSource = (value: unknown): value is Source => {
      if (typeof value !== 'object' || value === null) return false;
      const { system, id } = value as Partial<Record<keyof Source, unknown>>;
      return hasLength(system, 64) && hasLength(id, 512);
    };
    return this.read(option, 'a system of 1 to 64 characters and an id of 1 to 512', isSource);
  }

  /** @throws OptionsError for any problem */
  end(): void {
    const unknown = Object.keys(this.#options).filter((option) => !this.#known.has(option));
    const problems = [
      ...unknown.map((option) => ({ option: printable(option, 80), message: 'there is no such option' })),
      ...this.#problems,
    ];
    if (problems.length > 0) throw new OptionsError(problems);
  }

  #get(option: string): unknown {
    this.#known.add(option);
    return this.#options[option];
  }
}

function hasLength(value: unknown, max: number): boolean {
  return typeof value === 'string' && value.length > 0 && Array.from(value).length <= max;
}

function describe(value: unknown): string {
  if (value === undefined || value === '') return 'nothing';
  if (typeof value === 'string') return printable(value, 80);
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return `${value}`;
  if (Array.isArray(value)) return 'a list';
  return value === null ? 'null' : `a value of type ${typeof value}`;
}
