/** Approvals, live (SPEC §8 rule 15): which of a ledger's approvals a call can use, and who could give those that are missing. */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { matchesPrincipalPattern } from '../../base/value/principal.js';
import { compareRationals } from '../../base/value/rational.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import {
  type Approval,
  type ApprovedBy,
  asksToAct,
  checkApprovals,
  isFor,
} from '../../rules/bounds/approval.js';
import { type Action, type ApprovalRule, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { APPROVAL_REQUIRED, approvalsFor, isWithdrawn } from '../../rules/verify/approvals.js';
import { callName } from '../../rules/verify/approval-tables.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Denial } from './deciding-bound.js';

/** The most ids that one action names (SPEC §3.1). */
const MAX_NAMED = 32;

export interface ChosenApprovals {
  /** `sha-256:…` */
  readonly ids: readonly string[];
  readonly approved: ApprovedBy | undefined;
  /** Why named approvals cannot be used. */
  readonly denials: readonly Denial[];
}

/** What a call needs before it is allowed. */
export interface ApprovalNeed {
  /** The grant that has the rule, `sha-256:…`. */
  readonly grantId: string;
  /** The rule's patterns of principals. Empty where an adviser asked and whom it accepts is not recorded. */
  readonly approvers: readonly string[];
  /** How many of them must approve. */
  readonly count: number;
  /** The grants of which an approval names one, nearest first: `sha-256:…`. */
  readonly grantIds: readonly string[];
}

/**
 * Chooses approvals for an action: by as few principals as its grants ask for, and of these all, since who says it twice means one call.
 * @param named - Those to use, `sha-256:…`. Default: sound ones for exactly this call, the oldest first.
 * @param honoured - Systems whose imported approvals count.
 */
export function chooseApprovals(
  state: VerifyState,
  action: Action,
  named: readonly string[] | undefined,
  honoured: readonly string[],
): ChosenApprovals {
  const chain = grantChain(action.grant);
  const choice = (ids: readonly string[]): ApprovedBy | undefined =>
    ids.length === 0 ? undefined : approvalsFor(state, action, ids);
  const isEnough = (ids: readonly string[]): boolean => findMissing(chain, action, choice(ids)) === undefined;
  if (named !== undefined) {
    const { ids, denials } = checkNamed(state, action, chain, named, honoured);
    return { ids: ids.map(toDigestText), approved: choice(ids), denials };
  }
  if (isEnough([])) return NONE;
  const found = findUsable(state, action, chain, honoured);
  if (!isEnough(found)) return NONE;
  let ids = found;
  for (const id of [...found].reverse()) {
    const fewer = ids.filter((each) => each !== id);
    if (isEnough(fewer)) ids = fewer;
  }
  const byOf = (id: string): string | undefined => state.links.approvals.get(id)?.principalId;
  const by = new Set(ids.map(byOf));
  const all = found.filter((id) => by.has(byOf(id)));
  return { ids: all.map(toDigestText), approved: choice(all), denials: [] };
}

const NONE: ChosenApprovals = { ids: [], approved: undefined, denials: [] };

function findMissing(
  chain: readonly Grant[],
  action: Action,
  approved: ApprovedBy | undefined,
): RuleFinding | undefined {
  const findings: RuleFinding[] = [];
  checkApprovals(chain, (rule) => asksToAct(rule, action), approved, '', findings);
  return findings[0];
}

/** The approvals that a caller names. Those in vain are left out: naming them would use them up. */
function checkNamed(
  state: VerifyState,
  action: Action,
  chain: readonly Grant[],
  named: readonly string[],
  honoured: readonly string[],
): { readonly ids: string[]; readonly denials: Denial[] } {
  const ids: string[] = [];
  const denials: Denial[] = [];
  for (const each of named) {
    const id = fromDigestText(each);
    const approval = state.links.approvals.get(id);
    const kind = state.events.find(id)?.kind;
    if (kind === undefined)
      denials.push({ code: 'APPROVAL_NOT_FOUND', expected: 'the id of an approval', actual: each });
    else if (kind !== 'approval')
      denials.push({
        code: 'APPROVAL_NOT_AN_APPROVAL',
        expected: 'an approval',
        actual: `${each}, another event`,
      });
    else if (approval?.usedBy !== undefined && isFor(approval, action, chain))
      denials.push({
        code: 'APPROVAL_REUSED',
        expected: 'an approval that is not used up',
        actual: `${each}, used up by ${approval.usedBy}`,
      });
    else if (
      approval !== undefined &&
      isFor(approval, action, chain) &&
      !isWithdrawn(state, approval) &&
      isHonoured(approval, honoured)
    )
      ids.push(id);
  }
  return { ids, denials };
}

function findUsable(
  state: VerifyState,
  action: Action,
  chain: readonly Grant[],
  honoured: readonly string[],
): string[] {
  const { approvals, calls } = state.links;
  const ids = chain.flatMap(({ index }) => {
    return calls.get(callName(index, action.toolName, action.params))?.approvals ?? [];
  });
  const usable = ids.flatMap((id) => {
    const approval = approvals.get(id);
    return approval !== undefined && isUsable(state, action, approval, honoured) ? [{ id, approval }] : [];
  });
  usable.sort((a, b) => a.approval.place.seq - b.approval.place.seq);
  return usable.slice(0, MAX_NAMED).map(({ id }) => id);
}

/** Whether an action may use up an approval that is for it; whether a rule counts it is another matter. */
export function isUsable(
  state: VerifyState,
  { reservation }: Action,
  approval: Approval,
  honoured: readonly string[],
): boolean {
  if (approval.usedBy !== undefined || isWithdrawn(state, approval) || !isHonoured(approval, honoured))
    return false;
  return [...reservation].every(([unit, amount]) => {
    const limit = approval.limit?.get(unit);
    return limit === undefined || compareRationals(amount, limit) <= 0;
  });
}

/** SPEC §8, "Imported authority". */
function isHonoured({ system }: Approval, honoured: readonly string[]): boolean {
  return system === undefined || honoured.includes(system);
}

/** The first rule of a chain that asks for approvals that the action lacks. */
export function findNeed(action: Action, approved: ApprovedBy | undefined): ApprovalNeed | undefined {
  const chain = grantChain(action.grant);
  for (const [depth, grant] of chain.entries()) {
    for (const rule of grant.approvals) {
      const only = (each: ApprovalRule): boolean => each === rule && asksToAct(rule, action);
      const missing: RuleFinding[] = [];
      checkApprovals(chain, only, approved, '', missing);
      if (missing.length === 0) continue;
      return {
        grantId: grant.place.eventId,
        approvers: rule.words.split(' or '),
        count: rule.count,
        grantIds: chain.slice(0, depth + 1).map(({ place }) => place.eventId),
      };
    }
  }
  return undefined;
}

/** Whether an approver of the need rejected the call after its request. @returns The reject, `sha-256:…`. */
export function findReject(
  state: VerifyState,
  action: Pick<Action, 'grant' | 'toolName' | 'params'>,
  { approvers }: Pick<ApprovalNeed, 'approvers'>,
  since: number,
): { readonly eventId: string; readonly principalId: string } | undefined {
  for (const { index } of grantChain(action.grant)) {
    const rejected = state.links.calls.get(callName(index, action.toolName, action.params))?.rejected;
    const isAsked =
      approvers.length === 0 ||
      approvers.some((each) => matchesPrincipalPattern(each, rejected?.principalId ?? ''));
    if (rejected !== undefined && isAsked && rejected.place.seq > since)
      return { eventId: rejected.place.eventId, principalId: rejected.principalId };
  }
  return undefined;
}

/** The decision code of a finding: what verification calls missing, a decision calls required. */
export function toDenial(finding: RuleFinding): Denial {
  return finding.code === 'APPROVAL_MISSING' ? { ...finding, code: APPROVAL_REQUIRED } : finding;
}
