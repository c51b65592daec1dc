/** Exact rationals as text that people read: decimal where that is exact, n/d otherwise. */

import type { Rational } from './rational.js';

/** Digits of a fraction that are still pleasant to read; beyond it n/d is shorter. */
const MAX_PLACES = 40;
const MAX_DIGITS = 60;

/** `r` as decimal text where it has at most 40 decimal places, else as `n/d`; very long texts are cut and marked with `…`. */
export function formatRational(r: Rational): string {
  for (let places = 0, scaled = 1n; places <= MAX_PLACES; places += 1, scaled *= 10n) {
    if (scaled % r.d === 0n) return decimal((r.n * scaled) / r.d, places);
  }
  return `${cut(r.n)}/${cut(r.d)}`;
}

/** `r` exactly: as a decimal of as many places as it needs, or as `n/d` where it has no end. Nothing is cut. */
export function formatExactly({ n, d }: Rational): string {
  if (d === 1n) return n.toString();
  let rest = d;
  let twos = 0;
  let fives = 0;
  for (; rest % 2n === 0n; rest /= 2n) twos += 1;
  for (; rest % 5n === 0n; rest /= 5n) fives += 1;
  if (rest !== 1n) return `${n}/${d}`;
  const places = Math.max(twos, fives);
  const scaled = n * 2n ** BigInt(places - twos) * 5n ** BigInt(places - fives);
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(places + 1, '0');
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

function decimal(scaled: bigint, places: number): string {
  const sign = scaled < 0n ? '-' : '';
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(places + 1, '0');
  const whole = cutText(digits.slice(0, digits.length - places));
  return places === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-places)}`;
}

function cut(value: bigint): string {
  return cutText(value.toString());
}

function cutText(digits: string): string {
  return digits.length > MAX_DIGITS ? `${digits.slice(0, MAX_DIGITS)}…` : digits;
}
