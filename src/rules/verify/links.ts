/** The state of authorizations: grants, open and denied actions, and unresolved links. */

import type { Finding } from '../../format/finding/finding.js';
import type { Approval } from '../bounds/approval.js';
import type { Approved, EventPlace, Grant } from '../bounds/grant.js';
import type { Revocation } from '../bounds/withdrawal.js';
import { type Actions, ActionTable } from './action-table.js';
import {
  approvalTables,
  type CallEntry,
  type RejectEntry,
  type RequestedApproval,
} from './approval-tables.js';
import { Grants, type GrantTable } from './grant-table.js';
import { type LostCall, lostCalls } from './lost-calls.js';
import { StartTable } from './start-table.js';
import type { Table } from './table.js';
import { WatchedMap } from './watched-map.js';

/** An execution's link to an event that has not come yet, with its pending finding. */
export interface PendingLink {
  /** The id that is named, base64url. */
  readonly id: string;
  readonly finding: Finding;
  /** How many further executions name the same event. */
  others: number;
}

/** The action that has a request key. */
export interface RequestEntry {
  /** base64url */
  readonly id: string;
  /** See {@link askedOf}. */
  readonly asked: string;
}

export interface ApprovalTable extends Table<string, Approval> {
  /** In ledger order. */
  values(): Iterable<Approval>;
}

/** The revocations that are not invalid, in ledger order. */
export interface RevocationList extends Iterable<Revocation> {
  push(revocation: Revocation): void;
  /** Over an index the list can be read only after it. */
  load?(): Promise<void>;
}

/** The state of linkage. */
export interface Links {
  readonly grants: GrantTable;
  /** Allowed actions not yet executed, and denied ones, by id. */
  readonly actions: Actions;
  /** Started executions that are not recorded, by the id of their authorization, then by their own. */
  readonly starts: StartTable;
  /** The expiry of allowed actions that were neither started nor executed, by id. */
  readonly expiring: WatchedMap<string>;
  /** By the id that executions name. */
  readonly pending: Table<string, PendingLink> & { readonly size: number };
  /** The first allowed action, not invalid, of each request key, by {@link requestName}. */
  readonly requests: Table<string, RequestEntry>;
  /** The first allowed grant that names each slice, by `sliceKey`. */
  readonly slices: Table<string, EventPlace>;
  /** The approvals that are not invalid, used up or not, by id. */
  readonly approvals: ApprovalTable;
  /** What open actions use of them, by the action's id. */
  readonly approved: Table<string, Approved>;
  /** The last reject of a call by a principal. */
  readonly rejects: Table<string, RejectEntry>;
  readonly revocations: RevocationList;
  /** By {@link callName}. No rule of verification reads it. */
  readonly calls: Table<string, CallEntry>;
  /** By {@link requestOfCall}. No rule of verification reads it. */
  readonly awaiting: Table<string, RequestedApproval>;
  /** By the id of the action. No rule of verification reads it. */
  readonly lost: Table<string, LostCall>;
  /** The latest `occurred_at` so far. */
  latest: string | undefined;
}

/** The key of a request (SPEC §8 rule 18): unique to a principal under one root grant or none. */
export function requestName(principalId: string, grant: Grant | undefined, requestKey: string): string {
  return `${grant?.rootIndex ?? -1} ${principalId} ${requestKey}`;
}

/** The content of a request. @param params - The digest of the parameters, as text. */
export function askedOf(toolName: string, params: string): string {
  return `${toolName} ${params}`;
}

/** The state before the first line. */
export function emptyLinks(): Links {
  const grants = new Grants();
  return {
    grants,
    actions: new ActionTable(grants),
    starts: new StartTable(),
    expiring: new WatchedMap(),
    pending: new Map(),
    requests: new Map(),
    slices: new Map(),
    ...approvalTables(),
    revocations: [],
    lost: lostCalls(),
    latest: undefined,
  };
}
