/** What grants have left. Work that is started and not yet recorded counts as reserved. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText } from '../../base/value/digest.js';
import { type Balance, balancesOf } from '../../rules/bounds/balance.js';
import { chainIds, type Grant } from '../../rules/bounds/grant.js';
import {
  type GrantAccount,
  grantAccounts,
  listOpenStarts,
  reserveAllStarted,
  reserveStarted,
  toAccount,
  type StartedAuthorization,
  type UnstartedAction,
  unstartedActions,
} from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { heldGrants } from '../policy/running-starts.js';

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
  const account = toAccount(findAllowed(state, grantId));
  return {
    ...reserveStarted(state, account),
    started: byGrant(state, listOpenStarts(state)).get(grantId) ?? [],
    unstarted: byGrant(state, unstartedActions(state), MAX_UNSTARTED).get(grantId) ?? [],
  };
}

/** What one grant has left, as its budget says it. @throws as {@link findBudget} */
export function findBalances(state: VerifyState, grantId: string): readonly Balance[] {
  return balancesOf(heldGrants(state)(findAllowed(state, grantId)));
}

function findAllowed(state: VerifyState, grantId: string): Grant {
  const grant = state.links.grants.get(fromDigestText(grantId));
  if (grant === undefined) throw new NorthrootError('GRANT_NOT_FOUND', `no grant ${printable(grantId)}`);
  if (grant.decision !== 'allow')
    throw new NorthrootError('GRANT_DENIED', `${grantId} was denied: it has no accounts`);
  return grant;
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
