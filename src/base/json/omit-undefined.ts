/** Values as frameworks hand them over: a member that is undefined is like one that is not there, as `JSON.stringify` has it. */

import { canonicalBytes } from './canonicalize.js';
import { MAX_DEPTH } from './scan.js';

/**
 * Canonical bytes of a plain JSON value, whose members may be undefined: those are left out. In a list, and by itself, undefined is no
 * JSON.
 *
 * @throws as {@link canonicalBytes}.
 */
export function canonicalBytesWithout(value: unknown): Uint8Array {
  try {
    return canonicalBytes(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return canonicalBytes(omitUndefined(value, []));
  }
}

/** What is not plain is given back as it is, for the canonical form to refuse; no code of the value's own is called. */
function omitUndefined(value: unknown, open: readonly object[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (open.length === MAX_DEPTH || open.includes(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (isList ? prototype !== Array.prototype : prototype !== Object.prototype && prototype !== null)
    return value;
  const within = [...open, value];
  const names = Reflect.ownKeys(value);
  // Its own `length` is the one member of a list that is no element.
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
  // An own member, also where its name is `__proto__`.
  return isList ? members.map(([, each]) => each) : Object.fromEntries(members);
}
