/**
 * What a ledger will probably decide: what it decided last of the same principal, tool and grant. A decision that turns out so was made and
 * signed shortly before its turn, together with those next to it, which costs half as much. Any other is made in its turn.
 */

import type { Digest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { Entry, Ledger } from '../writer/ledger.js';
import {
  type AuthorizationDecision,
  type AuthorizationRequest,
  draftDecision,
  GRANTS_POLICY,
} from './evaluator.js';

export interface ExpectedDecision {
  readonly request: AuthorizationRequest;
  readonly decision: AuthorizationDecision;
  readonly entry: Entry;
}

/** Of each ledger, by who asked for what. */
const remembered = new WeakMap<Ledger, Map<string, AuthorizationDecision>>();
/** So many are remembered of a ledger, and then none. */
const MAX_REMEMBERED = 1_000;

/** Undefined where nothing is expected: at first, and after a denial. */
export function expectDecision(ledger: Ledger, request: AuthorizationRequest): ExpectedDecision | undefined {
  const { advice, approvalIds, grantId, userIntentDigest, meters = [] } = request;
  const last = remembered.get(ledger)?.get(nameOf(request));
  if (last === undefined || approvalIds !== undefined || advice?.denial !== undefined) return undefined;
  // The entry has to show whatever of the request is malformed.
  if (grantId !== undefined && grantId !== last.grantId) return undefined;
  const decision: AuthorizationDecision = {
    ...last,
    decisionCode: advice?.code ?? 'ALLOW',
    ...(userIntentDigest === undefined ? {} : { userIntentDigest }),
    reservation: meters,
  };
  return {
    request,
    decision,
    entry: { event: draftDecision(request, decision, GRANTS_POLICY), isAnew: true },
  };
}

/** Remembers what was decided by the grants alone. */
export function rememberDecision(
  ledger: Ledger,
  request: AuthorizationRequest,
  decision: AuthorizationDecision,
): void {
  let all = remembered.get(ledger);
  if (all === undefined) remembered.set(ledger, (all = new Map<string, AuthorizationDecision>()));
  const name = nameOf(request);
  // An approval serves once.
  if (decision.decision === 'deny' || decision.approvalIds !== undefined) all.delete(name);
  else {
    if (all.size >= MAX_REMEMBERED) all.clear();
    all.set(name, decision);
  }
}

/** Whether the event of a decision is the one that was made for what was expected: `draftDecision` takes nothing else of it. */
export function isAsExpected(decided: AuthorizationDecision, { decision }: ExpectedDecision): boolean {
  return (
    decided.decision === decision.decision &&
    decided.decisionCode === decision.decisionCode &&
    decided.grantId === decision.grantId &&
    decided.approvalIds === undefined &&
    isSameDigest(decided.userIntentDigest, decision.userIntentDigest) &&
    isSameReservation(decided.reservation, decision.reservation) &&
    decided.checks.length === decision.checks.length &&
    decided.checks.every(({ check, result, code }, index) => {
      const other = decision.checks[index];
      return check === other?.check && result === other.result && code === other.code;
    })
  );
}

/** Both are the request's own, or empty. */
function isSameReservation(one: MeterVector, other: MeterVector): boolean {
  return one === other || (one.length === 0 && other.length === 0);
}

function isSameDigest(one: Digest | undefined, other: Digest | undefined): boolean {
  return one?.alg === other?.alg && one?.b64 === other?.b64;
}

function nameOf({ principalId, toolName, grantId = '' }: AuthorizationRequest): string {
  return `${principalId}\n${toolName}\n${grantId}`;
}
