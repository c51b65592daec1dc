/** Calls that gates have begun, that are not settled, and whose end has passed long ago. */

import { isJsonObject, type JsonObject } from '../base/json/value.js';
import { compareTimestamps, formatInstant, parseTimestamp } from '../base/value/timestamp.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';
import { LedgerView } from '../log/read/ledger-view.js';
import type { AskOptions } from '../log/writer/withdrawal.js';

/** The most calls that are looked at at once: each record is read again. */
const MAX_LOOKED_AT = 256;
/** The most calls that are remembered as others' to settle. */
const MAX_LEFT_ALONE = 10_000;
const NANOSECONDS_PER_MS = 1_000_000n;

/** A call to settle, as the gate knows it. */
export interface Overdue {
  readonly principal: string;
  readonly requestKey: string;
  /** `sha-256:…` */
  readonly authorization: string;
}

/**
 * Only a gate's `expires_at` says until when a call may take; a guard's, until when it may be begun: it may run for days.
 * @param ledger - In files
 * @param settleAfterMs - How long ago the end must be
 * @param leftAlone - Authorizations that are not a gate's, which are not read again; added to
 */
export async function findOverdue(
  ledger: LiveLedger,
  settleAfterMs: number,
  leftAlone: Set<string>,
  { signal }: AskOptions,
): Promise<Overdue[]> {
  const before = earlier(ledger.now(), settleAfterMs);
  const started = (await ledger.budget()).flatMap((budget) => budget.started);
  const late = new Map(
    started
      .filter(({ expiresAt }) => expiresAt !== undefined && compareTimestamps(expiresAt, before) <= 0)
      .map(({ authorizationId, principalId }) => [authorizationId, principalId]),
  );
  const view = new LedgerView(ledger.path, { ...(signal && { signal }) });
  const found: Overdue[] = [];
  let lookedAt = 0;
  for (const [authorization, principal] of late) {
    if (leftAlone.has(authorization)) continue;
    if (lookedAt >= MAX_LOOKED_AT) break;
    lookedAt += 1;
    signal?.throwIfAborted();
    const requestKey = keyOfGate((await view.findRecord(authorization)).event);
    if (requestKey !== undefined) found.push({ principal, requestKey, authorization });
    else if (leftAlone.size < MAX_LEFT_ALONE) leftAlone.add(authorization);
  }
  return found;
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
