/** A slice as JSON, as it goes from who has the parent to who has the child. */

import { isPrincipalId } from '../../base/value/principal.js';
import { type Meter, readAmounts } from '../../base/value/meter.js';
import type { Quantity } from '../../base/value/quantity.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import { readLedgerId, type GivenSlice } from './slice.js';

export interface SliceJson {
  readonly ledger_id: string;
  readonly event_id: string;
  readonly child_ledger_id: string;
  readonly principal_id: string;
  readonly meter_caps: readonly Meter[];
  readonly expires_at?: string;
}

/** The JSON of a slice, which {@link parseSlice} reads. */
export function formatSlice({
  ledgerId,
  eventId,
  childId,
  principalId,
  caps,
  expiresAt,
}: GivenSlice): SliceJson {
  return {
    ledger_id: ledgerId,
    event_id: eventId,
    child_ledger_id: childId,
    principal_id: principalId,
    meter_caps: caps,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
  };
}

/** Reads what {@link formatSlice} made. Further members, such as those that commands add, count for nothing. @throws RangeError naming the member */
export function parseSlice(value: unknown): GivenSlice {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const json = (isObject ? value : refuse('the slice', 'an object')) as Partial<
    Record<keyof SliceJson, unknown>
  >;
  const id = (name: 'ledger_id' | 'event_id' | 'child_ledger_id'): string => {
    const text = json[name];
    return typeof text === 'string' ? readLedgerId(name, text) : refuse(name, 'an id, sha-256:…');
  };
  const { principal_id: principalId, meter_caps: caps, expires_at: expiresAt } = json;
  if (typeof principalId !== 'string' || !isPrincipalId(principalId))
    return refuse('principal_id', 'a principal');
  if (expiresAt !== undefined && !(typeof expiresAt === 'string' && isTimestamp(expiresAt)))
    return refuse('expires_at', 'a timestamp');
  return {
    ledgerId: id('ledger_id'),
    eventId: id('event_id'),
    childId: id('child_ledger_id'),
    principalId,
    caps: readMeters('meter_caps', caps, 1),
    expiresAt,
  };
}

/** A meter vector. @param least - How many meters it must have. @throws RangeError naming `where` */
export function readMeters(where: string, value: unknown, least: number): readonly Meter[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : refuse(where, 'a list of meters');
  const amounts = new Map<string, Quantity>();
  for (const each of list) {
    const { unit, amount } = (each ?? {}) as Partial<Record<keyof Meter, unknown>>;
    if (typeof unit !== 'string' || amounts.has(unit) || typeof amount !== 'object' || amount === null)
      return refuse(where, 'a list of meters, each unit once');
    amounts.set(unit, amount as Quantity);
  }
  const { vector, problems } = readAmounts(Object.fromEntries(amounts));
  const [problem] = problems;
  if (problem !== undefined) throw new RangeError(`${where}: ${problem.message}`);
  return vector.length >= least ? vector : refuse(where, `at least ${least} meter`);
}

function refuse(name: string, expected: string): never {
  throw new RangeError(`${name}: expected ${expected}`);
}
