/** What verification remembers of authorizations: the grants, the actions that are open or denied, and links not yet resolved. */

import type { Action, Grant } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import type { Finding } from '../finding/finding.js';

/** An execution's link to an event that has not come yet: a finding that waits to know which it is. */
export interface PendingLink {
  readonly finding: Finding;
  /** Further executions that name the same event. */
  others: number;
}

/** The state of linkage. Plain data. */
export interface Links {
  /** Every grant by id, in the order of the ledger. */
  readonly grants: Map<string, Grant>;
  /** The same, by number: what the index of events keeps of a spent action. */
  readonly grantList: Grant[];
  /** Allowed actions not yet executed, and denied ones, by id. */
  readonly actions: Map<string, Action>;
  /** Executions that were started and are not recorded, by the id of what authorizes them and then by their own. */
  readonly starts: Map<string, Map<string, OpenStart>>;
  /** By the id that executions name. */
  readonly pending: Map<string, PendingLink>;
  /** The latest `occurred_at` so far. */
  latest: string | undefined;
}

/** No authorizations yet. */
export function emptyLinks(): Links {
  return {
    grants: new Map(),
    grantList: [],
    actions: new Map(),
    starts: new Map(),
    pending: new Map(),
    latest: undefined,
  };
}
