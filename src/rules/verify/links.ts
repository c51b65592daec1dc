/** What verification remembers of authorizations: the grants, the actions that are open or denied, and links not yet resolved. */

import type { Finding } from '../../format/finding/finding.js';
import type { Grant } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import { type Actions, ActionTable } from './action-table.js';
import { Grants, type GrantTable } from './grant-table.js';
import type { Table } from './table.js';

/** An execution's link to an event that has not come yet: a finding that waits to know which it is. */
export interface PendingLink {
  /** The id that is named, base64url. */
  readonly id: string;
  readonly finding: Finding;
  /** Further executions that name the same event. */
  others: number;
}

/** The action that has a request key. */
export interface RequestEntry {
  /** base64url */
  readonly id: string;
  /** What it is for: see {@link askedOf}. */
  readonly asked: string;
}

/** The state of linkage. */
export interface Links {
  readonly grants: GrantTable;
  /** Allowed actions not yet executed, and denied ones, by id. */
  readonly actions: Actions;
  /** Executions that were started and are not recorded, by the id of what authorizes them and then by their own. */
  readonly starts: Map<string, Map<string, OpenStart>>;
  /** Until when allowed actions may be begun that have an end, were not started and not executed; by their ids. */
  readonly expiring: Map<string, string>;
  /** By the id that executions name. */
  readonly pending: Table<string, PendingLink> & { readonly size: number };
  /** Of each request key its first allowed action that is not invalid, by {@link requestName}. */
  readonly requests: Table<string, RequestEntry>;
  /** The latest `occurred_at` so far. */
  latest: string | undefined;
}

/** One asker's own name for one request (SPEC §8 rule 18): of a principal, under one root grant or under none. */
export function requestName(principalId: string, grant: Grant | undefined, requestKey: string): string {
  return `${grant?.rootIndex ?? -1} ${principalId} ${requestKey}`;
}

/** What a request is for. @param params - The digest of the parameters, as text. */
export function askedOf(toolName: string, params: string): string {
  return `${toolName} ${params}`;
}

/** No authorizations yet. */
export function emptyLinks(): Links {
  const grants = new Grants();
  return {
    grants,
    actions: new ActionTable(grants),
    starts: new Map(),
    expiring: new Map(),
    pending: new Map(),
    requests: new Map(),
    latest: undefined,
  };
}
