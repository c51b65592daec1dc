/** What is left of grants for a program that goes on spending: what runs and is not recorded counts as reserved. */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { chainIds } from '../bounds/grant.js';
import {
  findGrant,
  grantAccounts,
  listOpenStarts,
  reserveAllStarted,
  reserveStarted,
  type GrantAccount,
  type StartedAuthorization,
} from '../report/accounts.js';
import { fromDigestText } from '../value/digest.js';
import type { VerifyState } from '../verify/state.js';

/** A grant's account, in whose balances what was started and is not recorded counts as reserved. */
export interface Budget extends GrantAccount {
  /** What was started under it, or under a grant delegated from it, and is not recorded: in ledger order. */
  readonly started: readonly StartedAuthorization[];
}

/** The budget of every grant that was allowed, in ledger order. */
export function listBudgets(state: VerifyState): Budget[] {
  const started = startedByGrant(state);
  return [...reserveAllStarted(state, grantAccounts(state))].map((account) => ({
    ...account,
    started: started.get(account.eventId) ?? [],
  }));
}

/**
 * The budget of one grant.
 *
 * @param grantId - `sha-256:…`
 * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_DENIED`
 */
export function findBudget(state: VerifyState, grantId: string): Budget {
  const account = findGrant(state, grantId);
  if (account === undefined) {
    throw new NorthrootError('GRANT_NOT_FOUND', `no grant ${printable(grantId)}`);
  }
  if (state.links.grants.get(fromDigestText(grantId))?.decision !== 'allow') {
    throw new NorthrootError('GRANT_DENIED', `${grantId} was denied: it has no accounts`);
  }
  return { ...reserveStarted(state, account), started: startedByGrant(state).get(grantId) ?? [] };
}

/** Each start is with its grant and those above it. */
function startedByGrant(state: VerifyState): ReadonlyMap<string, readonly StartedAuthorization[]> {
  const byGrant = new Map<string, StartedAuthorization[]>();
  for (const start of listOpenStarts(state)) {
    const { grantId } = start;
    const grant = grantId === undefined ? undefined : state.links.grants.get(fromDigestText(grantId));
    for (const id of chainIds(grant)) {
      const under = byGrant.get(id);
      if (under === undefined) byGrant.set(id, [start]);
      else under.push(start);
    }
  }
  return byGrant;
}
