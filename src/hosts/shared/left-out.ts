/** Usage that files state and that no sum has: told by reason, with its amounts. */

import { formatExactly } from '../../base/value/format-rational.js';
import type { MeterVector } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import { addRationals, exceedsDenominatorLimit, type Rational, ZERO } from '../../base/value/rational.js';
import type { LeftOutUsage as LeftOutSum } from '../../format/schema/generated/types.js';
import type { LeftOut } from './host.js';

/** Units of one reason that are summed. */
const MAX_UNITS = 200;

/** How much is left out, by reason and unit. */
export function sumLeftOut(all: readonly LeftOut[] = []): LeftOutSum[] {
  const byReason = new Map<string, { items: number; readonly sums: Map<string, Rational> }>();
  for (const { reason, meters } of all) {
    const known = byReason.get(reason) ?? { items: 0, sums: new Map<string, Rational>() };
    byReason.set(reason, known);
    known.items += 1;
    for (const { unit, amount } of meters) {
      const next = addRationals(known.sums.get(unit) ?? ZERO, toRational(amount));
      const isNew = !known.sums.has(unit);
      if (!exceedsDenominatorLimit(next) && (!isNew || known.sums.size < MAX_UNITS))
        known.sums.set(unit, next);
    }
  }
  return [...byReason]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, { items, sums }]) => ({
      reason,
      items,
      amounts: [...sums]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([unit, sum]) => ({ unit, amount: formatExactly(sum) })),
    }));
}

/** Amounts in a few words: `28 tokens.input, 3 tokens.output`. */
export function meterText(meters: MeterVector): string {
  return meters.map(({ unit, amount }) => `${formatExactly(toRational(amount))} ${unit}`).join(', ');
}
