/** What grants have left. Work that is started and not yet recorded counts as reserved. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText } from '../../base/value/digest.js';
import { chainIds } from '../../rules/bounds/grant.js';
import {
  findGrant,
  type GrantAccount,
  grantAccounts,
  listOpenStarts,
  reserveAllStarted,
  reserveStarted,
  type StartedAuthorization,
  type UnstartedAction,
  unstartedActions,
} from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';

/** A grant's account; work that is started and not yet recorded counts as reserved. */
export interface Budget extends GrantAccount {
  /** Started under this grant or one delegated from it, and not recorded; in ledger order. */
  readonly started: readonly StartedAuthorization[];
  /** Allowed likewise, neither started nor executed; the first 1,000. */
  readonly unstarted: readonly UnstartedAction[];
}

const MAX_UNSTARTED = 1_000;

/** The budget of every allowed grant, in ledger order. Over an index, load the actions first. */
export function listBudgets(state: VerifyState): Budget[] {
  const started = byGrant(state, listOpenStarts(state));
  const unstarted = byGrant(state, unstartedActions(state), MAX_UNSTARTED);
  return [...reserveAllStarted(state, grantAccounts(state))].map((account) => ({
    ...account,
    started: started.get(account.eventId) ?? [],
    unstarted: unstarted.get(account.eventId) ?? [],
  }));
}

/**
 * The budget of one grant (`sha-256:…`). Over an index, load the actions first.
 * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_DENIED`
 */
export function findBudget(state: VerifyState, grantId: string): Budget {
  const account = findGrant(state, grantId);
  if (account === undefined) throw new NorthrootError('GRANT_NOT_FOUND', `no grant ${printable(grantId)}`);
  if (state.links.grants.get(fromDigestText(grantId))?.decision !== 'allow')
    throw new NorthrootError('GRANT_DENIED', `${grantId} was denied: it has no accounts`);
  return {
    ...reserveStarted(state, account),
    started: byGrant(state, listOpenStarts(state)).get(grantId) ?? [],
    unstarted: byGrant(state, unstartedActions(state), MAX_UNSTARTED).get(grantId) ?? [],
  };
}

/** Lists each item under its grant and the grants above, at most `most` per grant. */
function byGrant<T extends { readonly grantId: string | undefined }>(
  state: VerifyState,
  all: Iterable<T>,
  most = Infinity,
): ReadonlyMap<string, readonly T[]> {
  const found = new Map<string, T[]>();
  for (const each of all) {
    const { grantId } = each;
    const grant = grantId === undefined ? undefined : state.links.grants.get(fromDigestText(grantId));
    for (const id of chainIds(grant)) {
      const under = found.get(id);
      if (under === undefined) found.set(id, [each]);
      else if (under.length < most) under.push(each);
    }
  }
  return found;
}
