/** Arguments of a tool, from an agent: a strict object, or a denial. */

import { isJsonObject, type JsonValue } from '../../base/json/value.js';
import type { KernelDenial } from './kernel-tool.js';

/** What is wrong with arguments, to be thrown while they are read. */
export class ArgumentFault extends Error {
  readonly denial: KernelDenial;

  constructor(denied: string, reason: string) {
    super(reason);
    this.denial = { denied, reason };
  }
}

/** The types of arguments; those with a `?` may be left out. */
type ArgumentType = 'string' | 'string?' | 'number?' | 'boolean?' | 'strings';

/** Text of Unicode: no half of a surrogate pair, which has no bytes. */
const isText = (value: JsonValue): boolean => typeof value === 'string' && !/\p{Cs}/u.test(value);

const OF_TYPE: Readonly<Record<ArgumentType, (value: JsonValue) => boolean>> = {
  string: isText,
  'string?': isText,
  'number?': (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  'boolean?': (value) => typeof value === 'boolean',
  strings: (value) => Array.isArray(value) && value.every(isText),
};

interface Read {
  string: string;
  'string?': string | undefined;
  'number?': number | undefined;
  'boolean?': boolean | undefined;
  strings: readonly string[];
}

/** @throws ArgumentFault `INVALID_ARGUMENTS` for another member, one that is missing, or of another type */
export function readArguments<T extends Readonly<Record<string, ArgumentType>>>(
  args: unknown,
  types: T,
): { readonly [K in keyof T]: Read[T[K]] } {
  const given: unknown = args;
  if (!isJsonObject(given)) throw new ArgumentFault('INVALID_ARGUMENTS', 'expected an object');
  const known = Object.keys(types);
  if (!Object.keys(given).every((name) => known.includes(name)))
    throw new ArgumentFault('INVALID_ARGUMENTS', `expected only ${known.join(', ')}`);
  const read = Object.entries(types).map(([name, type]) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined ? !type.endsWith('?') : !OF_TYPE[type](value))
      throw new ArgumentFault('INVALID_ARGUMENTS', `${name}: expected ${PHRASES[type]}`);
    return [name, value];
  });
  return Object.fromEntries(read) as { readonly [K in keyof T]: Read[T[K]] };
}

const PHRASES: Readonly<Record<ArgumentType, string>> = {
  string: 'a text',
  'string?': 'a text',
  'number?': 'a whole number of at least 0',
  'boolean?': 'true or false',
  strings: 'an array of texts',
};
