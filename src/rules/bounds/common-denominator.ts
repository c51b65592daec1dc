/** Common denominators of the amounts that begin in a window, up to the limit of SPEC §2, for {@link fitsWindows}. */

import { DENOMINATOR_LIMIT, greatestCommonDivisor } from '../../base/value/rational.js';

/** Any denominator beyond the limit. */
export const TOO_FINE = 0n;

/** From this size on a lookup is faster than computing. */
const LONG = 1n << 64n;
const MEMO_SIZE = 8_192;

interface Known {
  readonly a: bigint;
  readonly b: bigint;
  readonly common: bigint;
}

/**
 * A bounded cache: the grants of a chain, and the limits of a grant, ask for the same amounts.
 */
const memo: (Known | undefined)[] = [];

/** The least common multiple of two denominators, {@link TOO_FINE} where it or one of them is beyond the limit. */
export function commonOf(a: bigint, b: bigint): bigint {
  if (a === b || b === 1n || a === TOO_FINE) return a;
  if (a === 1n || b === TOO_FINE) return b;
  if (a < LONG && b < LONG) return computeCommon(a, b);
  const slot = Number(BigInt.asUintN(32, a ^ (b << 5n) ^ (a >> 64n))) % MEMO_SIZE;
  const known = memo[slot];
  if (known?.a === a && known.b === b) return known.common;
  const common = computeCommon(a, b);
  memo[slot] = { a, b, common };
  return common;
}

function computeCommon(a: bigint, b: bigint): bigint {
  if (a % b === 0n) return a;
  const common = b % a === 0n ? b : (a / greatestCommonDivisor(a, b)) * b;
  return common >= DENOMINATOR_LIMIT ? TOO_FINE : common;
}
