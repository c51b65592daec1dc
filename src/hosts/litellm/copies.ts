/**
 * Rows that are of one request, and rows that only have an id in common. A proxy logs what it passes on to another route of its own twice,
 * under one call id; a router tries again, and falls back, under one call id too; some servers answer all requests with one id.
 */

import type { MeterVector } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { HostPlace } from '../shared/host.js';
import { meterText } from '../shared/usage.js';

export interface Request {
  readonly at: HostPlace;
  /** What its answer is called. */
  readonly id: string;
  readonly callId: string | undefined;
  readonly content: string;
  readonly started: string | undefined;
  readonly ended: string | undefined;
  readonly status: string | undefined;
  readonly isCached: boolean;
}

/** A row of which another has an id. */
export interface Copy<T = Request> {
  readonly of: T;
  readonly code: 'DUPLICATE_REQUEST' | 'CALL_LOGGED_TWICE' | 'CALL_LOGGED_AGAIN';
  /** Whether it is a request of its own. */
  readonly counts: boolean;
}

/** The rows of which another, earlier one has the request id or the call id. */
export function findCopies<T extends Request>(
  rows: readonly T[],
  metersOf: (row: T) => MeterVector,
): ReadonlyMap<T, Copy<T>> {
  const copies = new Map<T, Copy<T>>();
  // Whatever the order of the files, the first is the one that began first, and of these the one that went on for longest.
  const order = new Map(rows.map((row, index) => [row, index]));
  const sorted = [...rows].sort(
    (a, b) =>
      compare(a.started, b.started) || compare(b.ended, a.ended) || (order.get(a) ?? 0) - (order.get(b) ?? 0),
  );
  const byId = new Map<string, T[]>();
  const byCall = new Map<string, T[]>();
  for (const row of sorted) {
    const sameId = byId.get(row.id) ?? [];
    const sameCall = row.callId === undefined ? [] : (byCall.get(row.callId) ?? []);
    const copy = copyOfId(row, sameId) ?? copyOfCall(row, sameCall, metersOf);
    if (copy !== undefined) copies.set(row, copy);
    if (copy?.counts === false) continue;
    keep(byId, row.id, sameId, row);
    if (row.callId !== undefined) keep(byCall, row.callId, sameCall, row);
  }
  return copies;
}

/** At most this many rows of one id are read. */
const MAX_ALIKE = 64;

function keep<T>(index: Map<string, T[]>, id: string, list: T[], row: T): void {
  if (list.length < MAX_ALIKE) list.push(row);
  index.set(id, list);
}

/** Under one request id a request of another call, or of another time where calls have no id, is another request. */
function copyOfId<T extends Request>(row: T, same: readonly T[]): Copy<T> | undefined {
  const [first] = same;
  if (first === undefined) return undefined;
  const own = same.find((each) => isSameCall(each, row));
  return { of: own ?? first, code: 'DUPLICATE_REQUEST', counts: own === undefined };
}

function isSameCall(one: Request, other: Request): boolean {
  return one.callId !== undefined && other.callId !== undefined
    ? one.callId === other.callId
    : one.started === undefined || other.started === undefined || one.started === other.started;
}

/** Under one call id a row that says the same at the same time is the same call; every other one is a try of its own. */
function copyOfCall<T extends Request>(
  row: T,
  same: readonly T[],
  metersOf: (row: T) => MeterVector,
): Copy<T> | undefined {
  if (same.length === 0) return undefined;
  const own = usageOf(row, metersOf);
  const twin = same.find(
    (each) =>
      each.status === row.status &&
      each.isCached === row.isCached &&
      usageOf(each, metersOf) === own &&
      overlap(each, row),
  );
  if (twin !== undefined) return { of: twin, code: 'CALL_LOGGED_TWICE', counts: false };
  if (row.isCached || row.status === 'failure') return undefined;
  // A try after one that failed is what a router is for; two that were both answered are not.
  const answered = same.find((each) => !each.isCached && each.status !== 'failure');
  return answered === undefined ? undefined : { of: answered, code: 'CALL_LOGGED_AGAIN', counts: true };
}

function usageOf<T extends Request>(row: T, metersOf: (row: T) => MeterVector): string {
  return meterText(metersOf(row));
}

/** Whether there is a moment at which both went on; what states no time may have. */
function overlap(one: Request, other: Request): boolean {
  const isBy = (a: Request, b: Request): boolean => {
    const end = b.ended ?? b.started;
    return a.started === undefined || end === undefined || compareTimestamps(a.started, end) <= 0;
  };
  return isBy(one, other) && isBy(other, one);
}

function compare(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  return compareTimestamps(a, b);
}
