/** Calls that gates have begun, that are not settled, and whose end has passed long ago. */

import { isJsonObject, type JsonObject } from '../base/json/value.js';
import { compareTimestamps, formatInstant, parseTimestamp } from '../base/value/timestamp.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';
import type { AskOptions } from '../log/writer/withdrawal.js';

/** The most calls that are looked at at once: their records are read again. */
const MAX_LOOKED_AT = 256;
const NANOSECONDS_PER_MS = 1_000_000n;

/** A call to settle, as the gate knows it. */
export interface Overdue {
  readonly principal: string;
  readonly requestKey: string;
  /** `sha-256:…` */
  readonly authorization: string;
}

/** What earlier looks have found, of calls that are still open and late: authorizations, `sha-256:…`. */
export interface LookedAt {
  /** Others' to settle, which are not read again. */
  readonly notGates: Set<string>;
  /** Those that could not be settled, the earliest first. */
  readonly refused: Map<string, Overdue>;
}

/**
 * Only a gate's `expires_at` says until when a call may take; a guard's, until when it may be begun: it may run for days.
 * @param ledger - In files
 * @param settleAfterMs - How long ago the end must be
 * @param lookedAt - Changed. What was refused before comes after all others, which it would keep from being looked at.
 */
export async function findOverdue(
  ledger: LiveLedger,
  settleAfterMs: number,
  { notGates, refused }: LookedAt,
  { signal }: AskOptions,
): Promise<Overdue[]> {
  const before = earlier(ledger.now(), settleAfterMs);
  const started = (await ledger.budget()).flatMap((budget) => budget.started);
  const late = new Map(
    started
      .filter(({ expiresAt }) => expiresAt !== undefined && compareTimestamps(expiresAt, before) <= 0)
      .map(({ authorizationId, principalId }) => [authorizationId, principalId]),
  );
  keepOnly(notGates, late);
  keepOnly(refused, late);
  const fresh = [...late.keys()].filter((id) => !notGates.has(id) && !refused.has(id));
  const looked = fresh.slice(0, MAX_LOOKED_AT);
  const records = await ledger.view({ signal }).findEvents(looked);
  const found: Overdue[] = [];
  for (const [authorization, { event }] of records) {
    const requestKey = keyOfGate(event);
    const principal = late.get(authorization) ?? '';
    if (requestKey === undefined) notGates.add(authorization);
    else found.push({ principal, requestKey, authorization });
  }
  return [...found, ...[...refused.values()].slice(0, MAX_LOOKED_AT - found.length)];
}

/** Forgets what is not among others. */
export function keepOnly(
  known: Set<string> | Map<string, unknown>,
  others: { has: (id: string) => boolean },
): void {
  for (const id of known.keys()) if (!others.has(id)) known.delete(id);
}

/** The request key of a call that a gate has decided. */
function keyOfGate({ checks, authorization }: JsonObject): string | undefined {
  const action = isJsonObject(authorization) ? authorization['action'] : undefined;
  const key = isJsonObject(action) ? action['request_key'] : undefined;
  const isGates =
    Array.isArray(checks) && checks.some((each) => isJsonObject(each) && each['check'] === 'coverage');
  return isGates && typeof key === 'string' ? key : undefined;
}

function earlier(now: string, ms: number): string {
  const instant = parseTimestamp(now) - BigInt(Math.floor(ms)) * NANOSECONDS_PER_MS;
  return formatInstant(instant < 0n ? 0n : instant);
}
