/** Values of frameworks, in which an undefined member means an absent one, as in `JSON.stringify`. */

import { canonicalBytes } from './canonicalize.js';
import { MAX_DEPTH } from './scan.js';

/** {@link canonicalBytes} without undefined members, with the same errors. Undefined in a list or alone is no JSON. */
export function canonicalBytesWithout(value: unknown): Uint8Array {
  try {
    return canonicalBytes(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return canonicalBytes(omitUndefined(value, []));
  }
}

/** Returns what is not plain unchanged, for `canonicalBytes` to refuse. Calls no code of the value. */
function omitUndefined(value: unknown, open: readonly object[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (open.length === MAX_DEPTH || open.includes(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (isList ? prototype !== Array.prototype : prototype !== Object.prototype && prototype !== null)
    return value;
  const within = [...open, value];
  const names = Reflect.ownKeys(value);
  // A list's `length` is its one own member that is no element.
  const expected = isList ? value.length + 1 : names.length;
  const members: [string, unknown][] = [];
  for (const name of names) {
    const member = Object.getOwnPropertyDescriptor(value, name);
    if (isList && name === 'length') continue;
    if (typeof name !== 'string' || member === undefined || !('value' in member) || !member.enumerable)
      return value;
    if (!isList && member.value === undefined) continue;
    members.push([name, omitUndefined(member.value, within)]);
  }
  if (names.length !== expected) return value;
  // `fromEntries` also makes `__proto__` an own member.
  return isList ? members.map(([, each]) => each) : Object.fromEntries(members);
}
