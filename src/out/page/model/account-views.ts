/** The accounts of grants as texts, and as shares for drawing. */

import { printable } from '../../../base/bytes/printable.js';
import { formatRational } from '../../../base/value/format-rational.js';
import { compareRationals, type Rational, subtractRationals, ZERO } from '../../../base/value/rational.js';
import { groupDigits } from '../../text/words.js';
import type { GrantHistory, Held } from './account-history.js';
import type { GrantMeter, MeterStep } from './protocol.js';

const MAX_CURVE_POINTS = 120;

/** The capped units of a grant before and after a record. */
export function viewSteps(
  { units, caps }: GrantHistory,
  before: readonly Held[],
  after: readonly Held[],
): MeterStep[] {
  return units.map((unit, index) => {
    const cap = caps[index] ?? ZERO;
    const amountsOf = (held: readonly Held[]): MeterStep['before'] => {
      const { used, reserved } = held[index] ?? { used: ZERO, reserved: ZERO };
      return { used: amount(used), reserved: amount(reserved), left: amount(leftOf(cap, used, reserved)) };
    };
    return { unit, cap: amount(cap), before: amountsOf(before), after: amountsOf(after) };
  });
}

/** The capped units of a grant at the end, with what was left over time. @param positionOf - Where a record is in time, from 0 to 1. */
export function viewMeters(
  { grant, units, steps }: GrantHistory,
  positionOf: (index: number) => number,
): GrantMeter[] {
  return [...grant.accounts].map(([unit, { cap, used, estimated, reserved }]) => {
    const index = units.indexOf(unit);
    const left = leftOf(cap, used, reserved);
    const guessed = compareRationals(estimated, used) > 0 ? used : estimated;
    const points = steps.map(({ ordinal, held }): readonly [number, number] => {
      const { used: then, reserved: set } = held[index] ?? { used: ZERO, reserved: ZERO };
      return [positionOf(ordinal), shareOf(leftOf(cap, then, set), cap)];
    });
    return {
      unit: printable(unit),
      cap: amount(cap),
      perAction: amountOf(grant.actionCaps.get(unit)),
      used: amount(used),
      estimated: guessed.n === 0n ? undefined : amount(guessed),
      reserved: amount(reserved),
      left: amount(left),
      isOver: left.n < 0n,
      usedShare: shareOf(used, cap),
      reservedShare: shareOf(reserved, cap),
      burnDown: thinOut(points),
    };
  });
}

function leftOf(cap: Rational, used: Rational, reserved: Rational): Rational {
  return subtractRationals(subtractRationals(cap, used), reserved);
}

/** An exact amount, with thousands separators. */
export function amount(value: Rational): string {
  return groupDigits(formatRational(value));
}

function amountOf(value: Rational | undefined): string | undefined {
  return value && amount(value);
}

/** For drawing alone. */
function shareOf(part: Rational, whole: Rational): number {
  if (whole.n <= 0n) return part.n > 0n ? 1 : 0;
  const thousandths = (part.n * whole.d * 1_000n) / (part.d * whole.n);
  const bound = 10_000n;
  return Number(thousandths > bound ? bound : thousandths < -bound ? -bound : thousandths) / 1_000;
}

/** At most {@link MAX_CURVE_POINTS} points; the first and the last are kept. */
function thinOut(points: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  if (points.length <= MAX_CURVE_POINTS) return [...points];
  const step = (points.length - 1) / (MAX_CURVE_POINTS - 1);
  return Array.from(
    { length: MAX_CURVE_POINTS },
    (_, i) => points[Math.round(i * step)] as readonly [number, number],
  );
}
