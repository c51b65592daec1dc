/** What is left of grants for a program that goes on spending: what runs and is not recorded counts as reserved. */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import {
  findGrant,
  isGrantUnder,
  listGrants,
  listOpenStarts,
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
  return listGrants(state).map((account) => toBudget(state, account));
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
  return toBudget(state, account);
}

function toBudget(state: VerifyState, account: GrantAccount): Budget {
  const started = listOpenStarts(state).filter(({ grantId }) =>
    isGrantUnder(state, grantId, account.eventId),
  );
  return { ...reserveStarted(state, account), started };
}
