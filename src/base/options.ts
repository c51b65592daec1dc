/**
 * Checks of API options. TypeScript refuses an unknown option or a wrong type; plain JavaScript would silently ignore it, and for a
 * verifier that is the difference between checked and not.
 */

import { didYouMean } from './bytes/did-you-mean.js';
import { printable } from './bytes/printable.js';

/** The types of options. `any` is checked by the function itself. */
type OptionType =
  | 'string'
  | 'boolean'
  | 'number'
  | 'function'
  | 'object'
  | 'array'
  | 'bytes'
  | 'signal'
  | 'any';

export type OptionTypes<T> = {
  readonly [K in keyof Required<T>]: OptionType | readonly OptionType[];
};

const PHRASES: Readonly<Record<Exclude<OptionType, 'any'>, string>> = {
  string: 'a string',
  boolean: 'true or false',
  number: 'a number',
  function: 'a function',
  object: 'an object',
  array: 'an array',
  bytes: 'a Uint8Array',
  signal: 'an AbortSignal',
};

/**
 * Refuses unknown options and options of the wrong type. `undefined` means absent.
 *
 * @param where - The function's name, for the message.
 * @param types - All options of the function.
 * @throws TypeError naming the function and the option.
 */
export function checkOptions<T extends object>(where: string, options: T, types: OptionTypes<T>): void {
  const given: unknown = options;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new TypeError(`${where}: expected an object of options, found ${describeValue(given)}`);
  // Without an array for each option: requests are checked several times on their way.
  for (const name of Object.keys(given)) {
    const value = (given as Record<string, unknown>)[name];
    if (!Object.hasOwn(types, name)) {
      const hint = didYouMean(name, Object.keys(types));
      throw new TypeError(
        `${where}: there is no option ${printable(name, 80)}${hint === undefined ? '' : `; ${hint}`}`,
      );
    }
    if (value === undefined) continue;
    const type: OptionType | readonly OptionType[] = types[name as keyof T];
    if (typeof type === 'string' ? isOfType(value, type) : type.some((each) => isOfType(value, each)))
      continue;
    const allowed = typeof type === 'string' ? [type] : type;
    const expected = allowed.filter((each) => each !== 'any').map((each) => PHRASES[each]);
    throw new TypeError(
      `${where}: option ${name}: expected ${expected.join(' or ')}, found ${describeValue(value)}`,
    );
  }
}

/** @throws TypeError if the argument is no string. */
export function checkString(where: string, name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string')
    throw new TypeError(`${where}: expected ${name} to be a string, found ${describeValue(value)}`);
}

/** The kind of a value in words. Nothing of its content, which may be a secret. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Uint8Array) return 'a Uint8Array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const { constructor: maker } = value as { constructor?: { name?: unknown } };
  const name = typeof maker === 'function' ? maker.name : undefined;
  return typeof name === 'string' && name !== 'Object' && name !== ''
    ? `a value of class ${printable(name, 40)}`
    : 'an object';
}

function isOfType(value: unknown, type: OptionType): boolean {
  switch (type) {
    case 'any':
      return true;
    case 'array':
      return Array.isArray(value);
    case 'bytes':
      return value instanceof Uint8Array;
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'signal':
      return value instanceof AbortSignal;
    default:
      return typeof value === type;
  }
}
