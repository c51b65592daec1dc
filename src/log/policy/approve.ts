/** Answers to requests for approval (SPEC §3.6): who waits for what, and somebody's word on it. */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { printable } from '../../base/bytes/printable.js';
import { digestFromBase64url, fromDigestText, parseDigest } from '../../base/value/digest.js';
import type { AmountsByUnit, MeterVector } from '../../base/value/meter.js';
import { parseRecordName } from '../../base/value/record-name.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import type { Draft } from '../../format/event/build.js';
import type { ApprovalEvent } from '../../format/schema/generated/types.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { type Approval, asksToAct, findApprovalsOf } from '../../rules/bounds/approval.js';
import {
  type Action,
  type Amounts,
  type Grant,
  grantChain,
  makeApprovalRule,
} from '../../rules/bounds/grant.js';
import { approvalsFor } from '../../rules/verify/approvals.js';
import {
  type AdvisedRule,
  callName,
  type RequestedApproval,
  requestOfCall,
} from '../../rules/verify/approval-tables.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { type ApprovalNeed, chooseApprovals, findNeed, findReject, isUsable } from './choose-approvals.js';
import { withAdvisedRule } from './evaluator.js';
import { OptionReader } from './option-problems.js';
import { isUsedUp } from '../../rules/verify/event-index.js';

export interface ApprovalOptions {
  /** Default: `approve`. */
  readonly decision?: ApprovalEvent['decision'] | undefined;
  /** Who approves. Default: the ledger's `principalId`. */
  readonly principalId?: string | undefined;
  /** The most that the action may reserve and use: `{ usd: '5' }`. Default: what the request reserves. */
  readonly limit?: AmountsByUnit | undefined;
  /** A timestamp of SPEC §2. Default: no end, but that of the rule. */
  readonly expiresAt?: string | undefined;
  /** 1 to 64 of `A-Z 0-9 _`. Default: `APPROVED` or `REJECTED`. */
  readonly code?: string | undefined;
  /** SPEC §2. Default: when it is appended. */
  readonly occurredAt?: string | undefined;
}

/** A request for approval that nothing has allowed yet. */
export interface PendingApproval {
  /** The denied action: what an approver is given, `sha-256:…`. */
  readonly eventId: string;
  readonly seq: number;
  readonly principalId: string;
  readonly occurredAt: string;
  readonly toolName: string;
  /** As text, `sha-256:…`. */
  readonly paramsDigest: string;
  readonly reservation: MeterVector;
  /** The grant under which the call was asked for, `sha-256:…`. */
  readonly grantId: string;
  /** `waiting` for approvals; `approved`, and not asked for again; `rejected` since; `ended`, as its grant has expired or is withdrawn. */
  readonly status: 'waiting' | 'approved' | 'rejected' | 'ended';
  /** Who may approve; undefined where nothing is missing. */
  readonly need: ApprovalNeed | undefined;
  /** The approvals that count so far. */
  readonly approvals: readonly { readonly eventId: string; readonly principalId: string }[];
}

/** A call that was asked for. */
export type RequestedCall = Pick<PendingApproval, 'principalId' | 'toolName' | 'paramsDigest'>;

/** Which requests are listed. Default: all. */
export interface RequestSelection {
  /** Only the first so many that wait: none is looked at after those. */
  readonly waiting?: number | undefined;
  /** At most so many. */
  readonly most?: number | undefined;
  /** Only those after this seq. */
  readonly after?: number | undefined;
}

/** The requests for approval, in ledger order. Over an index, load `links.awaiting` first. */
export function listPendingApprovals(
  state: VerifyState,
  now: string,
  { waiting, most = Infinity, after = -1 }: RequestSelection = {},
): PendingApproval[] {
  const { awaiting, grants } = state.links;
  // What nobody can approve any more stays in the table: of many, only a few are described.
  const over = new Map<number, boolean>();
  const isLeftOut = (index: number): boolean => {
    let known = over.get(index);
    if (known === undefined) {
      const grant = grants.at(index);
      known = grant === undefined || (waiting !== undefined && isOver(grant, now));
      over.set(index, known);
    }
    return known;
  };
  const asked: RequestedApproval[] = [];
  for (const request of awaiting.values())
    if (request.place.seq > after && !isLeftOut(request.grant)) asked.push(request);
  const listed: PendingApproval[] = [];
  for (const request of asked.sort((a, b) => a.place.seq - b.place.seq)) {
    if (listed.length >= Math.min(waiting ?? Infinity, most)) break;
    const described = describe(state, request, grants.at(request.grant) as Grant, now);
    if (waiting === undefined || described.status === 'waiting') listed.push(described);
  }
  return listed;
}

/** What a principal asked for and waits for, by any of its grants; undefined for none. */
export function findWaitingRequest(
  state: VerifyState,
  { principalId, toolName, paramsDigest }: RequestedCall,
  now: string,
): PendingApproval | undefined {
  const { awaiting, grants } = state.links;
  for (const grant of grants.allowedTo(principalId)) {
    const request = awaiting.get(requestOfCall(principalId, grant.index, toolName, paramsDigest));
    const described = request && describe(state, request, grant, now);
    if (described?.status === 'waiting') return described;
  }
  return undefined;
}

/**
 * One request, whose call may have been asked for again; undefined where the call was allowed since, or no approval was asked for.
 * @param wanted - As of {@link draftApproval}
 * @throws NorthrootError as {@link draftApproval}
 */
export function findPendingApproval(
  state: VerifyState,
  wanted: string,
  now: string,
): PendingApproval | undefined {
  const request = findRequest(state, wanted);
  const { grant, place, principalId, occurredAt, toolName, params, reservation } = request;
  const name = requestOfCall(principalId, grant.index, toolName, params);
  const known = state.links.awaiting.get(name);
  if (known === undefined || usedSince(state, { ...request, seq: place.seq }) !== undefined) return undefined;
  return describe(state, { ...known, place, occurredAt, reservation }, grant, now);
}

function describe(state: VerifyState, request: RequestedApproval, own: Grant, now: string): PendingApproval {
  const { place, principalId, occurredAt, toolName, params, reservation, advised } = request;
  const grant = withAdvisedRule(own, toolName, advised);
  const action = toAction({ ...request, grant }, now);
  const { ids, approved } = chooseApprovals(state, action, undefined, []);
  const chosen = ids.flatMap((id) => state.links.approvals.get(fromDigestText(id)) ?? []);
  const given = chosen.length > 0 ? chosen : listPossible(state, action);
  const need = findNeed(action, approved) ?? needOfAdviser(action, advised);
  return {
    eventId: place.eventId,
    seq: place.seq,
    principalId,
    occurredAt,
    toolName,
    paramsDigest: params,
    reservation: toMeters(reservation),
    grantId: grant.place.eventId,
    status: statusOf(state, action, grant, need, place.seq, now),
    need,
    approvals: given.map(({ place: { eventId }, principalId: by }) => ({ eventId, principalId: by })),
  };
}

/**
 * What a request needs that no known rule asks for: the adviser that asked knows which approvals it accepts.
 * @param advised - Its rule, as recorded
 */
export function needOfAdviser(action: Action, advised: AdvisedRule | undefined): ApprovalNeed | undefined {
  const chain = grantChain(action.grant);
  const [grant] = chain;
  const isByRule = chain.some(({ approvals }) => approvals.some((rule) => asksToAct(rule, action)));
  const isKnown = advised === undefined ? isByRule : advised.approvers.length > 0;
  if (isKnown || grant === undefined) return undefined;
  const { eventId: grantId } = grant.place;
  return {
    grantId,
    approvers: [],
    count: advised?.count ?? 1,
    grantIds: chain.map(({ place }) => place.eventId),
  };
}

/** What has become of a request that nothing has allowed. @param since - Its place */
export function statusOf(
  state: VerifyState,
  action: Action,
  grant: Grant,
  need: ApprovalNeed | undefined,
  since: number,
  now: string,
): PendingApproval['status'] {
  if (isOver(grant, now)) return 'ended';
  if (need === undefined) return 'approved';
  return findReject(state, action, need, since) === undefined ? 'waiting' : 'rejected';
}

/** Whether a grant, or one above it, allows nothing any more. */
function isOver(grant: Grant, now: string): boolean {
  return grantChain(grant).some(
    ({ withdrawal, expiresAt }) =>
      withdrawal !== undefined || (expiresAt !== undefined && orderTimestamps(now, expiresAt) >= 0),
  );
}

/** The approvals of a call that are not used up. */
export function listGiven(
  { links }: VerifyState,
  { grant, toolName, params }: Pick<Action, 'grant' | 'toolName' | 'params'>,
): Approval[] {
  return grantChain(grant).flatMap(({ index }) =>
    (links.calls.get(callName(index, toolName, params))?.approvals ?? []).flatMap(
      (id) => links.approvals.get(id) ?? [],
    ),
  );
}

/** Those of a call that some approver's rule could count now: none has expired, is withdrawn, is by who acts, or allows less. */
export function listPossible(
  state: VerifyState,
  action: Action,
  honoured: readonly string[] = [],
): Approval[] {
  const usable = listGiven(state, action).filter((each) => isUsable(state, action, each, honoured));
  const ids = usable.map(({ place }) => fromDigestText(place.eventId));
  const anybody = makeApprovalRule({ tools: [action.toolName], approvers: ['*'], count: 1 });
  return findApprovalsOf(grantChain(action.grant), 0, anybody, approvalsFor(state, action, ids));
}

/** The denied action as it would be asked for now. */
export function toAction(
  request: Pick<Action, 'place' | 'principalId' | 'toolName' | 'params'> & {
    readonly grant: Grant;
    readonly reservation: Amounts;
  },
  now: string,
): Action & { readonly grant: Grant } {
  const { place, principalId, toolName, params, grant, reservation } = request;
  return {
    place,
    decision: 'deny',
    principalId,
    occurredAt: now,
    intent: '',
    userIntent: undefined,
    grant,
    toolName,
    params,
    reservation: new Map(reservation),
    expiresAt: undefined,
    system: undefined,
  };
}

export function toMeters(amounts: Amounts): MeterVector {
  return [...amounts].map(([unit, amount]) => ({ unit, amount: sumQuantity(amount) }));
}

/**
 * Drafts an approval of a denied action, for `Ledger.append`.
 * @param wanted - The request's seq, id (`sha-256:…`, base64url or hex), or an unambiguous prefix; over an index the whole id
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `REQUEST_AMBIGUOUS`; `REQUEST_ALLOWED`, also where others have
 *   approved it: one more approval would allow the call once more; OptionsError (a RangeError)
 */
export function draftApproval(
  state: VerifyState,
  wanted: string,
  options: ApprovalOptions,
): Draft<ApprovalEvent> {
  const reader = new OptionReader(options);
  const decision =
    reader.read('decision', 'approve or reject', (value): value is ApprovalEvent['decision'] =>
      ['approve', 'reject'].includes(value as string),
    ) ?? 'approve';
  const limit = reader.has('limit') ? reader.amounts('limit') : undefined;
  const expiresAt = reader.timestamp('expiresAt');
  const isCode = (text: string): boolean => /^[A-Z0-9_]{1,64}$/.test(text);
  const code = reader.text('code', 'up to 64 of A-Z, 0-9 and _, such as REVIEWED', isCode);
  const principalId = reader.principal('principalId');
  const occurredAt = reader.timestamp('occurredAt');
  reader.end();
  const { grant, place, toolName, params, reservation } =
    decision === 'approve' ? findUnanswered(state, wanted, occurredAt) : findRequest(state, wanted);
  const most = limit ?? toMeters(reservation);
  return {
    event_type: 'approval',
    ...defined({ principal_id: principalId, occurred_at: occurredAt }),
    grant_event_id: digestFromBase64url(fromDigestText(grant.place.eventId)),
    decision,
    decision_code: code ?? (decision === 'approve' ? 'APPROVED' : 'REJECTED'),
    tool_name: toolName,
    tool_params_digest: parseDigest(params),
    ...(decision === 'reject' || most.length === 0 ? {} : { meter_limit: [...most] }),
    ...(decision === 'reject' ? {} : defined({ expires_at: expiresAt })),
    request_event_id: digestFromBase64url(fromDigestText(place.eventId)),
  };
}

/** A request that still needs approvals, as far as is known. @throws NorthrootError as {@link draftApproval} */
function findUnanswered(
  state: VerifyState,
  wanted: string,
  now: string | undefined,
): ReturnType<typeof findRequest> {
  const request = findRequest(state, wanted);
  const { eventId, seq } = request.place;
  const since = usedSince(state, { ...request, seq });
  const again = 'who asks for the call again is to be approved anew';
  if (since !== undefined)
    throw refuse(
      'REQUEST_ALLOWED',
      `${eventId} was approved, and the call was allowed by seq ${since}`,
      again,
    );
  const { grant: own, principalId, toolName, params } = request;
  const asked = state.links.awaiting.get(requestOfCall(principalId, own.index, toolName, params));
  // Of a denial for something else it is not known what it will need.
  if (asked === undefined || now === undefined) return request;
  const action = toAction({ ...request, grant: withAdvisedRule(own, toolName, asked.advised) }, now);
  const { approved } = chooseApprovals(state, action, undefined, []);
  const isEnough = findNeed(action, undefined) !== undefined && findNeed(action, approved) === undefined;
  if (isEnough) throw refuse('REQUEST_ALLOWED', `${eventId} (seq ${seq}) was approved already`, again);
  return request;
}

/** The place of an action that has used up an approval of the same call since; undefined for none. */
export function usedSince(
  { links }: VerifyState,
  call: Pick<Action, 'toolName' | 'params'> & { readonly grant: Grant; readonly seq: number },
): number | undefined {
  const { grant, toolName, params, seq } = call;
  const usedAt = links.calls.get(callName(grant.index, toolName, params))?.usedAt;
  return usedAt !== undefined && usedAt > seq ? usedAt : undefined;
}

/** A denied action under a grant. @throws NorthrootError as {@link draftApproval} */
export function findRequest(state: VerifyState, wanted: string): Action & { readonly grant: Grant } {
  const { actions, grants } = state.links;
  const named = state.events.matchNow(parseRecordName(wanted)) ?? [];
  const shown = printable(wanted, 80);
  const [event, other] = named;
  if (event === undefined) throw refuse('AUTH_NOT_FOUND', `no request ${shown}`);
  if (other !== undefined)
    throw refuse('REQUEST_AMBIGUOUS', `${shown} names ${named.length} events`, 'give more of the id');
  const id = fromDigestText(event.eventId);
  const action = actions.get(id);
  if (isUsedUp(event.kind) || action?.decision === 'allow')
    throw refuse('REQUEST_ALLOWED', `${event.eventId} was allowed already`);
  if (action?.grant === undefined || grants.get(id) !== undefined)
    throw refuse('AUTH_NOT_AN_AUTHORIZATION', `${event.eventId} is not an action under a grant`);
  return action as Action & { readonly grant: Grant };
}

function refuse(
  code: string,
  message: string,
  hint = 'name a denied action that asks for approval',
): NorthrootError {
  return new NorthrootError(code, message, { hint });
}
