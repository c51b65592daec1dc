/** Exact rationals as text: decimal where that is exact, n/d otherwise. */

import type { Rational } from './rational.js';

/** With more decimal places n/d is easier to read. */
const MAX_PLACES = 40;
const MAX_DIGITS = 60;

/** `r` as a decimal of at most 40 places, else as `n/d`; very long numbers are cut and end in `…`. */
export function formatRational(r: Rational): string {
  for (let places = 0, scaled = 1n; places <= MAX_PLACES; places += 1, scaled *= 10n)
    if (scaled % r.d === 0n) return decimal((r.n * scaled) / r.d, places);
  return `${cut(r.n)}/${cut(r.d)}`;
}

/** `r` as an exact decimal, or as `n/d` if that does not terminate. Nothing is cut. */
export function formatExactly({ n, d }: Rational): string {
  if (d === 1n) return n.toString();
  const { rest: odd, times: twos } = withoutFactor(d, 2n);
  const { rest, times: fives } = withoutFactor(odd, 5n);
  if (rest !== 1n) return `${n}/${d}`;
  const places = Math.max(twos, fives);
  const scaled = n * 2n ** BigInt(places - twos) * 5n ** BigInt(places - fives);
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(places + 1, '0');
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** By repeated squaring: the denominator of a double may have more than a thousand twos. */
function withoutFactor(d: bigint, factor: bigint): { readonly rest: bigint; readonly times: number } {
  if (d % factor !== 0n) return { rest: d, times: 0 };
  const { rest, times } = withoutFactor(d, factor * factor);
  return rest % factor === 0n ? { rest: rest / factor, times: 2 * times + 1 } : { rest, times: 2 * times };
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
