/** What a proposal estimates and what an outcome reports, as meters. */

import type { SourceObject } from '../../base/json/source-json.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { unitOf } from '../shared/names.js';
import { amountOf, numberAt, objectAt } from '../shared/values.js';
import type { Done } from './cases.js';
import { ONE_CALL } from '../shared/usage.js';

/** The most kinds of cost that are taken over of one proposal or outcome. */
const MAX_COSTS = 60;

const UNITS: ReadonlyMap<string, string> = new Map([
  ['tokens', 'tokens'],
  ['latency_ms', 'time.ms'],
  ['bytes', 'bytes'],
]);

function costs(body: SourceObject | undefined, name: string): Map<string, Meter> {
  const meters = new Map<string, Meter>();
  for (const [key] of (objectAt(body, name)?.entries() ?? []).slice(0, MAX_COSTS)) {
    const amount = amountOf(numberAt(body, name, key));
    const unit = UNITS.get(key) ?? unitOf(`cgf.${key}`);
    // Two names of one unit: the first stands.
    if (amount !== undefined && !meters.has(unit)) meters.set(unit, { unit, amount });
  }
  return meters;
}

/** `estimated_cost` of a proposal. */
export function estimateOf(proposal: SourceObject | undefined): MeterVector {
  return [...costs(proposal, 'estimated_cost').values()];
}

/** `actual_cost` of an outcome. */
export function costOf(outcome: SourceObject | undefined): MeterVector {
  return [...costs(outcome, 'actual_cost').values()];
}

/** What is reported of what was done: `duration_ms`, `actual_cost`; one call. */
export function useOf({ outcome, action }: Pick<Done, 'outcome' | 'action'>): MeterVector {
  const meters = costs(outcome?.body, 'actual_cost');
  const duration = amountOf(
    numberAt(outcome?.body, 'duration_ms') ?? numberAt(action?.body, 'execution_time_ms'),
  );
  // Where both are stated, the measured duration is the time; they are never added.
  if (duration !== undefined) meters.set('time.ms', { unit: 'time.ms', amount: duration });
  meters.set('calls', ONE_CALL);
  return [...meters.values()];
}
