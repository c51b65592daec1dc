/** Approvals (SPEC §3.6, §8 rule 15): who approved which call, and which action used that up. */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { compareRationals, ZERO } from '../../base/value/rational.js';
import type { ActionOutline } from '../../format/event/outline.js';
import type { WellFormedLine } from '../../format/record/examine-line.js';
import type { AuthorizationEvent } from '../../format/schema/generated/types.js';
import { type Approval, type ApprovedBy, isFor, leastLimits } from '../bounds/approval.js';
import {
  type Action,
  type Amounts,
  amountsOf,
  type Approved,
  digestKey,
  type EventPlace,
  grantChain,
} from '../bounds/grant.js';
import { judgingInstant } from '../trust/record-signing.js';
import {
  type AdvisedRule,
  callName,
  MAX_CALL_APPROVALS,
  type RequestedApproval,
  requestOfCall,
} from './approval-tables.js';
import { resolveGrant } from './grant-link.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** An approval or a reject whose record may still turn out to be invalid. */
export interface MadeApproval {
  readonly approval: Approval;
  readonly isReject: boolean;
}

/** Checks the links of an approval. @returns It, where its grant is one; {@link settleApproval} MUST be called with its verdict. */
export function checkApproval(
  state: VerifyState,
  line: WellFormedLine<'approval'>,
  place: EventPlace,
  findings: LineFindings,
): MadeApproval | undefined {
  const event = line.event();
  const { meter_limit: limit, request_event_id: request } = event;
  findings.warnDouble(limit, '/meter_limit');
  const grant = resolveGrant(state, event.grant_event_id.b64, true, findings, '/grant_event_id');
  findings.setGrant(grant);
  if (request !== undefined) checkRequestLink(state, request.b64, findings);
  if (grant === undefined) return undefined;
  const approval = {
    place,
    principalId: event.principal_id,
    occurredAt: event.occurred_at,
    grant: grant.index,
    toolName: event.tool_name,
    params: digestKey(event.tool_params_digest),
    limit: limit && amountsOf(limit),
    expiresAt: event.expires_at,
    signers: findings.signers,
    system: event.source?.system,
    usedBy: undefined,
  };
  return { approval, isReject: event.decision === 'reject' };
}

/** The request is an earlier authorization; nothing else is asked of it. */
function checkRequestLink(state: VerifyState, id: string, findings: LineFindings): void {
  const indexed = state.events.find(id);
  const named = toDigestText(id);
  const detail = {
    pointer: '/request_event_id',
    expected: 'the id of an earlier authorization',
    actual: named,
  };
  if (indexed === undefined) findings.addToEvent({ code: 'AUTH_NOT_FOUND', ...detail, cause: named });
  else if (!['grant', 'action', 'spent', 'released'].includes(indexed.kind))
    findings.addToEvent({
      code: 'AUTH_NOT_AN_AUTHORIZATION',
      ...detail,
      related: [{ ...indexed, eventId: named }],
      cause: named,
    });
}

/** Keeps an approval that is not invalid; a reject withdraws those before it. */
export function settleApproval(
  { links }: VerifyState,
  { approval, isReject }: MadeApproval,
  isInvalid: boolean,
): void {
  if (isInvalid) return;
  const { place, principalId } = approval;
  const id = fromDigestText(place.eventId);
  const call = nameOf(approval);
  const { approvals = [], rejected, usedAt } = links.calls.get(call) ?? {};
  if (isReject) {
    links.rejects.set(`${principalId} ${call}`, { seq: place.seq });
    links.calls.set(call, { approvals, rejected: { place, principalId }, usedAt });
  } else {
    links.approvals.set(id, approval);
    links.calls.set(call, { approvals: [...approvals, id].slice(-MAX_CALL_APPROVALS), rejected, usedAt });
  }
}

function nameOf({ grant, toolName, params }: Approval): string {
  return callName(grant, toolName, params);
}

/** Whether its principal rejected the same call after the approval. Of one that is used up it MUST NOT be asked. */
export function isWithdrawn({ links }: VerifyState, approval: Approval): boolean {
  const rejected = links.rejects.get(`${approval.principalId} ${nameOf(approval)}`);
  return rejected !== undefined && rejected.seq > approval.place.seq;
}

/** Finds the approvals that an action names, and reports what is none. Those of a denied action are looked at too. */
export function resolveApprovals(
  state: VerifyState,
  { approvalIds }: ActionOutline,
  findings: LineFindings,
): { readonly id: string; readonly index: number; readonly approval: Approval }[] {
  return approvalIds.flatMap((id, index) => {
    const indexed = state.events.find(id);
    const named = toDigestText(id);
    const pointer = `${NAMED}/${index}`;
    if (indexed === undefined) {
      const expected = 'the id of an earlier approval';
      findings.addToEvent({ code: 'APPROVAL_NOT_FOUND', pointer, expected, actual: named, cause: named });
      return [];
    }
    if (indexed.kind !== 'approval') {
      findings.addToEvent({
        code: 'APPROVAL_NOT_AN_APPROVAL',
        pointer,
        expected: 'an approval',
        actual: `${named}, another event`,
        related: [{ ...indexed, eventId: named }],
        cause: named,
      });
      return [];
    }
    const approval = state.links.approvals.get(id);
    return approval === undefined ? [] : [{ id, index, approval }];
  });
}

const NAMED = '/authorization/action/approval_event_ids';

/** The code of a denied action that asks for approval (SPEC §3.6). */
export const APPROVAL_REQUIRED = 'APPROVAL_REQUIRED';

/** Remembers a request for approval until the same call is allowed, or asked for anew. */
export function noteRequest(
  { links }: VerifyState,
  action: Action,
  { decision_code: decisionCode, checks = [] }: Pick<AuthorizationEvent, 'decision_code' | 'checks'>,
): void {
  const { grant, principalId, toolName, params, occurredAt, place } = action;
  if (grant === undefined) return;
  const name = requestOfCall(principalId, grant.index, toolName, params);
  if (action.decision === 'allow') {
    if (links.awaiting.has(name)) links.awaiting.delete(name);
    return;
  }
  if (decisionCode !== APPROVAL_REQUIRED || grant.principalId !== principalId) return;
  const advised = readAdvisedRule(checks);
  const earlier = links.awaiting.get(name);
  const known = earlier !== undefined && isStillAsked(links, earlier, action) ? earlier : undefined;
  if (known !== undefined && isSameRule(known.advised, advised)) return;
  const asked = { place, principalId, occurredAt, grant: grant.index, toolName, params };
  links.awaiting.set(name, { ...asked, reservation: new Map(action.reservation), ...known, advised });
}

/** Whether who answers the earlier request answers the later one: it was not answered in between, and asked for no less. */
function isStillAsked(
  { calls }: VerifyState['links'],
  earlier: RequestedApproval,
  { grant, toolName, params, reservation }: Action,
): boolean {
  const isAnswered = grantChain(grant).some(({ index }) => {
    const { rejected, usedAt } = calls.get(callName(index, toolName, params)) ?? {};
    return [rejected?.place.seq, usedAt].some((seq) => seq !== undefined && seq > earlier.place.seq);
  });
  return !isAnswered && isWithin(reservation, earlier.reservation);
}

function isWithin(amounts: Amounts, most: Amounts): boolean {
  return [...amounts].every(([unit, amount]) => compareRationals(amount, most.get(unit) ?? ZERO) <= 0);
}

/** Before a pattern of principals, and before how many must approve: checks of a denial that an adviser's rule asked for approval. */
const APPROVER = 'approver:';
const APPROVERS = 'approvers:';
const MAX_CHECK_LENGTH = 64;
const MAX_APPROVERS = 16;
const MAX_COUNT = 8;
/** Of those checks: an allow has none that failed, and a denial fails by the grants' own. */
const ASKED = { result: 'pass', code: 'APPROVAL_ASKED' } as const;

/** An adviser's rule as checks of the denial, so that every process knows it. Patterns that are too long for one are left out, all of them. */
export function checksOfRule({ approvers, count }: AdvisedRule): NonNullable<AuthorizationEvent['checks']> {
  const checks = approvers.map((pattern) => ({ check: `${APPROVER}${pattern}`, ...ASKED }));
  const isShort = checks.every(({ check }) => check.length <= MAX_CHECK_LENGTH);
  return [{ check: `${APPROVERS}${count}`, ...ASKED }, ...(isShort ? checks : [])];
}

/** The rule that {@link checksOfRule} recorded; undefined for none. */
export function readAdvisedRule(checks: NonNullable<AuthorizationEvent['checks']>): AdvisedRule | undefined {
  const counted = checks.find(({ check }) => check.startsWith(APPROVERS));
  const count = Number(counted?.check.slice(APPROVERS.length));
  if (!(Number.isInteger(count) && count >= 1 && count <= MAX_COUNT)) return undefined;
  const approvers = checks
    .filter(({ check }) => check.startsWith(APPROVER))
    .map(({ check }) => check.slice(APPROVER.length))
    .filter(isPrincipalPattern);
  return { approvers: approvers.slice(0, MAX_APPROVERS), count };
}

function isSameRule(a: AdvisedRule | undefined, b: AdvisedRule | undefined): boolean {
  return a?.count === b?.count && a?.approvers.join(' ') === b?.approvers.join(' ');
}

/** An allowed action uses up the approvals that it names and that are for it. @returns Those that count. */
export function useApprovals(
  state: VerifyState,
  actionId: string,
  action: Action,
  outline: ActionOutline,
  findings: LineFindings,
): ApprovedBy | undefined {
  if (outline.approvalIds.length === 0) return undefined;
  const named = resolveApprovals(state, outline, findings);
  if (action.decision === 'deny') return undefined;
  const chain = grantChain(action.grant);
  const used: Approval[] = [];
  const ids: string[] = [];
  for (const { id, index, approval } of named) {
    if (!isFor(approval, action, chain)) continue;
    if (approval.usedBy !== undefined) {
      reportReused(state, approval, `${NAMED}/${index}`, findings);
      continue;
    }
    used.push(approval);
    if (!isWithdrawn(state, approval)) ids.push(id);
    state.links.approvals.set(id, { ...approval, usedBy: action.place.eventId });
    const { approvals = [], rejected } = state.links.calls.get(nameOf(approval)) ?? {};
    state.links.calls.set(nameOf(approval), {
      approvals: approvals.filter((each) => each !== id),
      rejected,
      usedAt: action.place.seq,
    });
  }
  if (used.length === 0) return undefined;
  const approved = approve(state, action, ids, used);
  state.links.approved.set(actionId, approved);
  return approvedBy(state, approved);
}

/** The approvals of an action at its place. @param ids - Of those that were not withdrawn. @param used - All. */
function approve(
  { clock, keyring }: Pick<VerifyState, 'clock' | 'keyring'>,
  { occurredAt }: Pick<Action, 'occurredAt'>,
  ids: readonly string[],
  used: readonly Approval[],
): Approved {
  const instant = judgingInstant(clock, occurredAt);
  return { ids, limits: leastLimits(used), instant, hasAuthority: keyring.hasAuthority };
}

/** The approvals that an action would use if it came next. @param ids - Of approvals that are for it and not withdrawn, base64url. */
export function approvalsFor(state: VerifyState, action: Action, ids: readonly string[]): ApprovedBy {
  const used = ids.flatMap((id) => state.links.approvals.get(id) ?? []);
  return approvedBy(state, approve(state, action, ids, used));
}

function reportReused(state: VerifyState, approval: Approval, pointer: string, findings: LineFindings): void {
  const by = approval.usedBy as string;
  const indexed = state.events.find(fromDigestText(by));
  findings.addToEvent({
    code: 'APPROVAL_REUSED',
    pointer,
    expected: 'an approval that no earlier action used up',
    actual: `${approval.place.eventId}, used up by ${by}`,
    related: [...(indexed === undefined ? [] : [{ ...indexed, eventId: by }]), approval.place],
  });
}

/** The approvals of an open action for the rules of bounds; undefined for none. @param id - base64url */
export function approvalsOf(state: VerifyState, id: string): ApprovedBy | undefined {
  const approved = state.links.approved.get(id);
  return approved && approvedBy(state, approved);
}

/** The approvals of an action for the rules of bounds. */
function approvedBy(state: VerifyState, approved: Approved): ApprovedBy {
  return {
    ...approved,
    approvals: approved.ids.flatMap((id) => state.links.approvals.get(id) ?? []),
    signersOf: ({ signers }) =>
      signers.flatMap((keyid) => {
        const known = state.keyring.find(keyid);
        if (known === undefined) return [];
        const isAuthority = known.key.roles.includes('authority');
        return [{ keyid, isAuthority, principals: known.patterns.set }];
      }),
  };
}
