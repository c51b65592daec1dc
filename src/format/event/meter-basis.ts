/** Where the amounts of an execution come from, unit by unit (SPEC §3.2). */

import type { JsonObject } from '../../base/json/value.js';
import type { ExecutionEvent, MeterBasis } from '../schema/generated/types.js';

/** Units that every recorder measures by itself: silence about them, and use of them that nothing caps, is no finding (SPEC §8 rule 5). */
const MEASURED_UNITS: ReadonlySet<string> = new Set(['calls', 'time.ms']);

/** Whether every recorder measures the unit by itself. */
export function isMeasuredUnit(unit: string): boolean {
  return MEASURED_UNITS.has(unit);
}

/** The basis of one unit: its own where `meter_basis_by_unit` names it, else that of the whole execution. */
export function basisOf(
  event: Pick<ExecutionEvent, 'meter_basis' | 'meter_basis_by_unit'>,
  unit: string,
): MeterBasis | undefined {
  const own = event.meter_basis_by_unit;
  return own !== undefined && Object.hasOwn(own, unit) ? own[unit] : event.meter_basis;
}

/** What an event says of it in words, `reported` and `usd estimated`: of the whole, then of each unit that has its own. */
export function listBases({ meter_basis: whole, meter_basis_by_unit: byUnit }: JsonObject): string[] {
  const isObject = typeof byUnit === 'object' && byUnit !== null && !Array.isArray(byUnit);
  const own = Object.entries(isObject ? byUnit : {});
  return [
    ...(typeof whole === 'string' ? [whole] : []),
    ...own.flatMap(([unit, basis]) => (typeof basis === 'string' ? `${unit} ${basis}` : [])),
  ];
}
