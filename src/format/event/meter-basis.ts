/** The basis of an execution's amounts, by unit (SPEC §3.2). */

import type { JsonObject } from '../../base/json/value.js';
import type { ExecutionEvent, MeterBasis } from '../schema/generated/types.js';

/** Whether every recorder measures the unit itself: its absence, and its uncapped use, are no findings (SPEC §8 rule 5). */
export function isMeasuredUnit(unit: string): boolean {
  return unit === 'calls' || unit === 'time.ms';
}

/** The basis of one unit: that in `meter_basis_by_unit`, else that of the whole execution. */
export function basisOf(
  event: Pick<ExecutionEvent, 'meter_basis' | 'meter_basis_by_unit'>,
  unit: string,
): MeterBasis | undefined {
  const own = event.meter_basis_by_unit;
  return own !== undefined && Object.hasOwn(own, unit) ? own[unit] : event.meter_basis;
}

/** The bases of an event in words, such as `reported` and `usd estimated`: of the whole, then by unit. */
export function listBases({ meter_basis: whole, meter_basis_by_unit: byUnit }: JsonObject): string[] {
  const isObject = typeof byUnit === 'object' && byUnit !== null && !Array.isArray(byUnit);
  const own = Object.entries(isObject ? byUnit : {});
  return [
    ...(typeof whole === 'string' ? [whole] : []),
    ...own.flatMap(([unit, basis]) => (typeof basis === 'string' ? `${unit} ${basis}` : [])),
  ];
}
