/**
 * Releases what will not be used: an expired action that was not started is released (SPEC §8 rule 8) at the next decision. Starts are
 * settled only on request.
 */

import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import { isGrantUnder, listOpenStarts, unstartedActions } from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Entry, Ledger } from '../writer/ledger.js';
import { listExpired } from './expiry-queue.js';
import { draftRelease, draftSettlement, findPermission } from './record.js';

/** Releases per decision. */
const MAX_SWEPT = 1_000;
/** The most failures remembered per ledger. */
const MAX_UNSWEPT = 10_000;

/** Actions that the ledger's signer may not release; they are not tried again. */
const unswept = new WeakMap<Ledger, Set<string>>();

/**
 * Releases of expired actions that were not started, as far as the ledger's signer may sign them, for `before` of `Ledger.decide`.
 * @param except - An action to keep, `sha-256:…`
 */
export function sweepExpired(ledger: Ledger, state: VerifyState, now: string, except?: string): Entry[] {
  const entries: Entry[] = [];
  let refused = unswept.get(ledger);
  for (const id of listExpired(state.links.expiring, now)) {
    if (refused?.has(id) === true) continue;
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

/** At least one of `expired` and `before` is required. */
interface AbandonableOptions {
  /** A timestamp of SPEC §2. */
  readonly now: string;
  readonly expired?: boolean | undefined;
  /** Actions and starts of this time or earlier. */
  readonly before?: string | undefined;
  /** Only under this grant, or one delegated from it: `sha-256:…`. */
  readonly grantId?: string | undefined;
}

export interface Abandonable {
  /** `sha-256:…` */
  readonly authorizationId: string;
  readonly startId: string | undefined;
}

/** What {@link draftAbandoned} can settle, in ledger order. */
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
  for (const start of listOpenStarts(state)) {
    const { eventId, seq, startedAt, authorizationId, grantId: under, toolName } = start;
    // Another ledger may be spending it.
    if (toolName === SLICE_TOOL) continue;
    if (before !== undefined && isBy(startedAt, before) && isMeant(under))
      found.push({ authorizationId, startId: eventId, seq });
  }
  return found
    .sort((a, b) => a.seq - b.seq)
    .map(({ authorizationId, startId }) => ({ authorizationId, startId }));
}

/** Codes for what has begun, ended or been settled since it was listed. */
const OVERTAKEN = new Set(['AUTHORIZATION_STARTED', 'AUTHORIZATION_REUSED', 'START_NOT_FOUND']);

/** Whether a listed item is no longer open. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof NorthrootError && OVERTAKEN.has(error.code);
}

/**
 * Drafts the execution event that settles an item: releases it if it was not started, else records `unknown`, charged as reserved.
 * @throws NorthrootError as {@link findPermission}; see {@link isOvertaken}
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
