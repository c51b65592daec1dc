/** Selects records of a ledger. Checks, counts and the verdict do not depend on it. */

import { toDigestText } from '../base/value/digest.js';
import { matchesPrincipalPattern } from '../base/value/principal.js';
import { compareTimestamps, isTimestamp } from '../base/value/timestamp.js';
import { matchesToolPattern } from '../base/value/tool.js';
import { chainIds } from './bounds/grant.js';
import type { VerifiedRecord } from './verify/verified-record.js';

/** Conditions, all of which must hold. Empty: all records. */
export interface RecordSelection {
  /** Events that occurred at this timestamp or later. */
  readonly since?: string;
  /** Events that occurred before this timestamp. */
  readonly until?: string;
  /** Events of principals that this pattern matches. */
  readonly principal?: string;
  /** Events whose tool this pattern matches. */
  readonly tool?: string;
  /** This grant, and events under it or its descendants; `sha-256:…`. */
  readonly grantId?: string;
  /** These events, `sha-256:…`. */
  readonly eventIds?: ReadonlySet<string>;
}

/** The members of an event that a selection needs. */
export interface SelectableEvent {
  readonly occurredAt: string | undefined;
  readonly principalId: string | undefined;
  readonly toolName: string | undefined;
  /** base64url. */
  readonly eventId: string | undefined;
  /** The grants above it, `sha-256:…`. */
  readonly grantIds: readonly string[];
}

/** Whether a record is selected. One without the members that a condition needs, such as an unreadable line, is not. */
export function isSelected(record: VerifiedRecord, selection: RecordSelection): boolean {
  const { examined } = record;
  const { occurredAt, principalId, toolName, eventId } = examined ?? {};
  const grantIds = selection.grantId === undefined ? record.grantIds : grantsOf(record);
  return matchesSelection({ occurredAt, principalId, toolName, eventId, grantIds }, selection);
}

/** The grants above a record, nearest first; also those above a denied delegation. */
export function grantsOf({ examined, grantIds, state }: VerifiedRecord): readonly string[] {
  if (examined?.type !== 'authorization' || grantIds.length > 1) return grantIds;
  const { authorization, decision } = examined.event();
  const parent = authorization.grant_event_id;
  if (authorization.kind !== 'grant' || decision === 'allow' || parent === undefined) return grantIds;
  return [...grantIds, ...chainIds(state.links.grants.get(parent.b64))];
}

/** The same for the members of an event. */
export function matchesSelection(event: SelectableEvent, selection: RecordSelection): boolean {
  const { since, until, principal, tool, grantId, eventIds } = selection;
  const { occurredAt, principalId, toolName, eventId, grantIds } = event;
  if (since !== undefined || until !== undefined) {
    if (occurredAt === undefined || !isTimestamp(occurredAt)) return false;
    if (since !== undefined && compareTimestamps(occurredAt, since) < 0) return false;
    if (until !== undefined && compareTimestamps(occurredAt, until) >= 0) return false;
  }
  if (
    principal !== undefined &&
    !(principalId !== undefined && matchesPrincipalPattern(principal, principalId))
  )
    return false;
  if (tool !== undefined && !(toolName !== undefined && matchesToolPattern(tool, toolName))) return false;
  if (grantId === undefined && eventIds === undefined) return true;
  const id = eventId === undefined ? undefined : toDigestText(eventId);
  if (grantId !== undefined && !(id === grantId || grantIds.includes(grantId))) return false;
  return eventIds === undefined || (id !== undefined && eventIds.has(id));
}

/** Whether a selection takes every record. */
export function isWhole(selection: RecordSelection): boolean {
  return Object.values(selection).every((value) => value === undefined);
}
