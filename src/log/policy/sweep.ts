/**
 * Giving back what nobody will use any more: an action that has expired and was never started is released (SPEC §8 rule 8) by whoever
 * decides next, and what somebody names is settled. What was started is settled only by somebody who says so.
 */

import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import { isGrantUnder, listOpenStarts, unstartedActions } from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Entry, Ledger } from '../writer/ledger.js';
import { draftRelease, draftSettlement, findPermission } from './record.js';

/** So many are released before one decision. */
const MAX_SWEPT = 1_000;
/** So many that cannot be released are remembered of a ledger. */
const MAX_UNSWEPT = 10_000;

/** Those that the signer of a ledger may not release, by their ids: they are not tried again. */
const unswept = new WeakMap<Ledger, Set<string>>();

/**
 * Releases of the actions that have expired and were not started, as far as the ledger's signer may sign them: for the `before` of
 * `Ledger.decide`.
 *
 * @param except - An action that is not to be released, `sha-256:…`.
 */
export function sweepExpired(ledger: Ledger, state: VerifyState, now: string, except?: string): Entry[] {
  const entries: Entry[] = [];
  let refused = unswept.get(ledger);
  for (const [id, until] of state.links.expiring) {
    if (orderTimestamps(now, until) < 0 || refused?.has(id) === true) continue;
    if (except !== undefined && fromDigestText(except) === id) continue;
    try {
      const entry = { event: draftRelease(state, toDigestText(id), now) };
      ledger.assertAdmissible(entry);
      entries.push(entry);
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      if (refused === undefined || refused.size >= MAX_UNSWEPT) unswept.set(ledger, (refused = new Set()));
      refused.add(id);
    }
    if (entries.length === MAX_SWEPT) break;
  }
  return entries;
}

/** What is to be settled of all that is open. At least one of `expired` and `before` is needed. */
export interface AbandonableOptions {
  /** Now: a timestamp of SPEC §2. */
  readonly now: string;
  /** Actions that have expired and were not started. */
  readonly expired?: boolean | undefined;
  /** Actions that were allowed at this time or earlier and were not started, and what was started by then. */
  readonly before?: string | undefined;
  /** Only what is under this grant, or under one delegated from it: `sha-256:…`. */
  readonly grantId?: string | undefined;
}

/** Something that is open and that nobody will end. */
export interface Abandonable {
  /** `sha-256:…` */
  readonly authorizationId: string;
  /** Of what was started: its start. */
  readonly startId: string | undefined;
}

/** What {@link draftAbandoned} is to settle, in the order of the ledger. */
export function listAbandonable(
  state: VerifyState,
  { now, expired = false, before, grantId }: AbandonableOptions,
): Abandonable[] {
  const isMeant = (under: string | undefined): boolean =>
    grantId === undefined || isGrantUnder(state, under, grantId);
  const isBy = (time: string, end: string): boolean => orderTimestamps(time, end) <= 0;
  const found: (Abandonable & { readonly seq: number })[] = [];
  for (const { eventId, seq, occurredAt, expiresAt, grantId: under } of unstartedActions(state)) {
    const isLate = expired && expiresAt !== undefined && isBy(expiresAt, now);
    const isOld = before !== undefined && isBy(occurredAt, before);
    if ((isLate || isOld) && isMeant(under))
      found.push({ authorizationId: eventId, startId: undefined, seq });
  }
  for (const { eventId, seq, startedAt, authorizationId, grantId: under } of listOpenStarts(state)) {
    if (before !== undefined && isBy(startedAt, before) && isMeant(under))
      found.push({ authorizationId, startId: eventId, seq });
  }
  return found
    .sort((a, b) => a.seq - b.seq)
    .map(({ authorizationId, startId }) => ({ authorizationId, startId }));
}

/** The codes of what somebody else has begun, recorded or settled since it was listed. */
const OVERTAKEN = new Set(['AUTHORIZATION_STARTED', 'AUTHORIZATION_REUSED', 'START_NOT_FOUND']);

/** Whether what was listed is open no more, or has begun: there is nothing to settle. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof NorthrootError && OVERTAKEN.has(error.code);
}

/**
 * The execution event's draft that settles it: what was not started is released; of what was started it is unknown how it ended, and it
 * is charged as reserved.
 *
 * @throws NorthrootError as {@link findPermission}; see {@link isOvertaken}.
 */
export function draftAbandoned(
  state: VerifyState,
  { authorizationId, startId }: Abandonable,
  now: string,
): object {
  if (startId === undefined) return draftRelease(state, authorizationId, now);
  const request = { now, start: startId, done: { endedAt: now, isRelease: true } };
  return draftSettlement(findPermission(state, authorizationId, request), now);
}
