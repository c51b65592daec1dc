/**
 * Step 11 of SPEC §8, linkage: grant → delegated grants → action → execution → adjustment, with approvals and revocations. Each link must name an earlier event. `bounds/`
 * judges what it allows.
 */

import { defined } from '../../base/defined.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import {
  type ActionOutline,
  type AdjustmentOutline,
  type ExecutionOutline,
  outlineExecution,
} from '../../format/event/outline.js';
import type { Finding } from '../../format/finding/finding.js';
import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import type {
  AuthorizationEvent,
  EventEnvelope,
  ExecutionEvent,
} from '../../format/schema/generated/types.js';
import { judgeAdjustment } from '../bounds/adjustment.js';
import { judgeDelegation } from '../bounds/delegation.js';
import {
  type Action,
  addSystem,
  type EventPlace,
  type Grant,
  grantChain,
  makeAction,
  makeGrant,
  MAX_GRANT_DEPTH,
  systemsOf,
} from '../bounds/grant.js';
import { judgeAction, judgeExecution } from '../bounds/judge.js';
import type { Judgement } from '../bounds/judgement.js';
import { judgeTakeover, type OpenStart } from '../bounds/started.js';
import { SLICE_TOOL } from '../bounds/tool-set.js';
import {
  approvalsOf,
  checkApproval,
  type MadeApproval,
  noteRequest,
  settleApproval,
  useApprovals,
} from './approvals.js';
import type { EventKind } from './event-index.js';
import { placeOf, resolveGrant } from './grant-link.js';
import type { LineFindings } from './line-findings.js';
import type { EventVerdict } from './line-result.js';
import { askedOf, type RequestEntry, requestName } from './links.js';
import { LATE_REPORT_TYPE, noteLateDebit, noteLateReport, noteLost } from './late-reports.js';
import { checkRevocation, type MadeRevocation, settleRevocation } from './revocations.js';
import { closeStart, findNamedStart, findOpenStart, noteStart, START_TYPE } from './starts.js';
import { checkSlice } from './slices.js';
import type { VerifyState } from './state.js';
import { isUsedUp } from './event-index.js';

/** The kind of an event in the index. */
export function eventKindOf(line: ExaminedLine): EventKind {
  if (line.type === 'execution') return 'execution';
  if (line.type === 'authorization') return line.outline().kind;
  if (line.type === 'approval') return 'approval';
  return line.eventType === 'authorization' ? 'malformed' : 'other';
}

/** The effects of an event's links. */
export interface Linked {
  /** For an execution the number of the grant that it counts under; -1 for none. */
  readonly grant: number;
  /** Whether it is an attempt blocked by a deny, with the verdict `denied`. */
  readonly isBlocked: boolean;
  /** What its verdict decides: {@link settleLinked} MUST be called with it. */
  readonly made?: Grant;
  readonly request?: MadeRequest;
  readonly asking?: { readonly action: Action; readonly event: AuthorizationEvent };
  /** An allowed slice, where slices are noted, and the ordinal of its record. */
  readonly slice?: { readonly action: Action; readonly ordinal: number };
  readonly approval?: MadeApproval | undefined;
  readonly revocation?: MadeRevocation | undefined;
}

/** A request key by its {@link requestName}, and its content. */
type MadeRequest = { readonly name: string } & Pick<RequestEntry, 'asked'>;

const UNLINKED: Linked = { grant: -1, isBlocked: false };

/** Judges and applies a well-formed authorization, execution or adjustment. */
export function checkAuthorizations(
  state: VerifyState,
  line: ExaminedLine,
  place: EventPlace,
  findings: LineFindings,
): Linked {
  if (!line.wellFormed) return UNLINKED;
  checkTime(state, line.occurredAt, findings);
  switch (line.type) {
    case 'authorization':
      return checkAuthorization(state, line, place, findings);
    case 'execution':
      return checkExecution(state, line, findings);
    case 'adjustment':
      checkAdjustment(state, line.outline(), findings);
      noteLateDebit(state, line, findings);
      return UNLINKED;
    case 'approval':
      return { ...UNLINKED, approval: checkApproval(state, line, place, findings) };
    case 'revocation':
      return { ...UNLINKED, revocation: checkRevocation(state, line, place, findings) };
    case 'other':
      if (line.eventType === START_TYPE) checkStart(state, line.event(), place, findings);
      if (line.eventType === LATE_REPORT_TYPE) noteLateReport(state, line.event(), findings);
      return UNLINKED;
    default:
      return UNLINKED;
  }
}

/** A start that takes an earlier one over may be a second try: the first one's possible use counts as well (SPEC §3.8). */
function checkStart(
  state: VerifyState,
  event: EventEnvelope,
  place: EventPlace,
  findings: LineFindings,
): void {
  const taken = noteStart(state, event, place, findings);
  if (taken === undefined) return;
  const { start, action, grant } = taken;
  findings.setGrant(grant);
  applyJudgement(state, judgeTakeover(start, action, grant), grant, findings, fromDigestText(place.eventId));
}

/**
 * Applies what waits for the verdict of a record, once that is known.
 * @param id - Of its event, base64url.
 * @param own - Its verdict but for an overdue checkpoint, which takes nothing back of what it says (SPEC §8 rule 15).
 */
export function settleLinked(
  state: VerifyState,
  linked: Linked,
  id: string,
  verdict: EventVerdict,
  own = verdict,
): void {
  const { made, request, asking, slice, approval, revocation } = linked;
  if (made !== undefined) settleGrant(state, made, verdict);
  if (request !== undefined) settleRequest(state, request, id, own);
  if (asking !== undefined && own !== 'invalid') noteRequest(state, asking.action, asking.event);
  if (slice !== undefined) state.sliceWatch?.allow(slice.action, verdict, slice.ordinal);
  if (approval !== undefined) settleApproval(state, approval, own === 'invalid');
  if (revocation !== undefined) settleRevocation(state, revocation, own === 'invalid');
}

/** Keeps the verdict of a grant's record (SPEC §8 rule 12). */
function settleGrant(state: VerifyState, grant: Grant, verdict: EventVerdict): void {
  grant.isSound = verdict === 'ok' || verdict === 'denied';
  state.links.grants.touch(grant);
}

/** Reports that this event came after executions that name it. */
export function resolvePending(
  state: VerifyState,
  eventId: string,
  kind: EventKind,
  { file, line, seq, eventId: text }: EventPlace,
): Finding[] {
  const pending = state.links.pending.get(eventId);
  if (pending === undefined) return [];
  state.links.pending.delete(eventId);
  const { finding, others } = pending;
  const place = { file, line, seq, eventId: text };
  return [{ ...resolveWaiting(finding, kind, place), ...(others > 0 ? { folded: others } : {}) }];
}

/** Completes a finding that waited for an event. */
export function resolveWaiting(finding: Finding, kind: EventKind, place: EventPlace): Finding {
  const isElse = kind === 'other' || kind === 'execution' || kind === 'approval';
  const code = isElse ? 'AUTH_NOT_AN_AUTHORIZATION' : 'AUTH_AFTER_EXECUTION';
  return { ...finding, code, related: [place] };
}

/** Links to events that never came, in the order of the executions. MUST be called at the end. */
export function settlePending(state: VerifyState): Finding[] {
  return [...state.links.pending.values()]
    .map(({ finding, others }) => (others > 0 ? { ...finding, folded: others } : finding))
    .sort(({ at: a }, { at: b }) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
}

/** Late events share one cause: differing clocks affect many. */
export const TIME_CAUSE = 'time';

function checkTime(state: VerifyState, occurredAt: string, findings: LineFindings): void {
  const { links } = state;
  if (links.latest === undefined || orderTimestamps(occurredAt, links.latest) >= 0) {
    links.latest = occurredAt;
    return;
  }
  findings.addToEvent({
    code: 'TIME_REGRESSION',
    pointer: '/occurred_at',
    expected: `${links.latest} or later, as an event before it`,
    actual: occurredAt,
    cause: TIME_CAUSE,
  });
}

function checkAuthorization(
  state: VerifyState,
  line: WellFormedLine<'authorization'>,
  place: EventPlace,
  findings: LineFindings,
): Linked {
  const outline = line.outline();
  const isAllow = outline.decision === 'allow';
  if (outline.hasDoubts) checkDecision(line.event(), findings);
  const parent = resolveGrant(state, outline.grantId, isAllow, findings, GRANT_OF_AUTHORIZATION);
  if (outline.kind === 'action') {
    const { action, request } = checkAction(state, line.eventId, outline, place, parent, findings);
    // Only these can be a request for approval, or the answer to one. Without a rule of the grant, an adviser may have asked.
    const mayAsk = hasApprovalRules(parent) || !isAllow || outline.approvalIds.length > 0;
    const event = mayAsk ? line.event() : undefined;
    const isNoted = isAllow && outline.toolName === SLICE_TOOL && state.sliceWatch !== undefined;
    if (request === undefined && event === undefined && !isNoted) return UNLINKED;
    return {
      ...UNLINKED,
      ...defined({ request }),
      ...(isNoted ? { slice: { action, ordinal: state.records } } : {}),
      ...(event === undefined ? {} : { asking: { action, event } }),
    };
  }
  const event = line.event();
  const grant = makeGrant(
    event,
    place,
    isAllow ? parent : undefined,
    state.links.grants.size,
    findings.signers,
  );
  const bounds = event.authorization.kind === 'grant' ? event.authorization.bounds : undefined;
  for (const name of ['meter_caps', 'action_caps', 'rate_limits'] as const)
    findings.warnDouble(bounds?.[name], `/authorization/bounds/${name}`);
  for (const [index, { above }] of (bounds?.approvals ?? []).entries())
    findings.warnDouble(above, `/authorization/bounds/approvals/${index}/above`);
  if (isAllow && parent !== undefined) {
    const patterns = bounds?.allowed_tools ?? [];
    for (const finding of judgeDelegation(grant, patterns, parent)) findings.addToEvent(finding);
    noteSystems(state, systemsOf(parent));
  }
  if (isAllow) checkSlice(state, grant, findings);
  state.links.grants.add(line.eventId, grant);
  findings.setGrant(grant);
  return { ...UNLINKED, made: grant };
}

const GRANT_OF_AUTHORIZATION = '/authorization/grant_event_id';

function checkAction(
  state: VerifyState,
  id: string,
  outline: ActionOutline,
  place: EventPlace,
  parent: Grant | undefined,
  findings: LineFindings,
): { readonly action: Action; readonly request?: MadeRequest } {
  const action = makeAction(outline, place, parent);
  findings.setGrant(parent);
  findings.warnDoubleAt(outline.firstDouble, '/authorization/action/meter_reservation');
  const approved = useApprovals(state, id, action, outline, findings);
  if (outline.decision === 'allow') {
    if (parent !== undefined) checkPrincipal(outline.principalId, parent, findings);
    applyJudgement(state, judgeAction(action, approved), parent, findings);
    noteSystems(state, systemsOf(parent));
    for (const { system } of approved?.approvals ?? [])
      if (system !== undefined) noteSystems(state, [system]);
  }
  state.links.actions.set(id, action);
  if (outline.decision === 'deny') return { action };
  if (outline.expiresAt !== undefined) state.links.expiring.set(id, outline.expiresAt);
  if (outline.requestKey === undefined) return { action };
  const name = requestName(outline.principalId, parent, outline.requestKey);
  checkRequest(state, name, outline.requestKey, findings);
  return { action, request: { name, asked: askedOf(outline.toolName, outline.params) } };
}

function hasApprovalRules(grant: Grant | undefined): boolean {
  return grantChain(grant).some(({ approvals }) => approvals.length > 0);
}

/** Rule 18: a request key is used once. */
function checkRequest(
  { links, events }: VerifyState,
  name: string,
  requestKey: string,
  findings: LineFindings,
): void {
  const earlier = links.requests.get(name);
  if (earlier === undefined) return;
  const indexed = events.find(earlier.id);
  findings.addToEvent({
    code: 'REQUEST_REPEATED',
    pointer: '/authorization/action/request_key',
    expected: 'a key that no earlier action of this principal has under this root grant',
    actual: requestKey,
    ...(indexed === undefined ? {} : { related: [placeOf(indexed, toDigestText(earlier.id))] }),
  });
}

/** Keeps the request key of an action that is not invalid. */
function settleRequest(
  { links }: VerifyState,
  { name, asked }: MadeRequest,
  id: string,
  verdict: EventVerdict,
): void {
  if (verdict !== 'invalid' && !links.requests.has(name)) links.requests.set(name, { id, asked });
}

/** The foreign systems of an event (SPEC §8, "Imported authority"). */
function noteSystems({ importedSystems }: VerifyState, systems: readonly string[]): void {
  for (const system of systems) addSystem(importedSystems, system);
}

/** An allow needs passed checks, and hygiene other than Invalid. */
function checkDecision(event: AuthorizationEvent, findings: LineFindings): void {
  const failed = event.checks?.findIndex(({ result }) => result === 'fail') ?? -1;
  if (event.decision === 'allow' && failed !== -1) {
    const { check, code } = event.checks?.[failed] ?? { check: '' };
    const actual = `${check} failed${code === undefined ? '' : ` with ${code}`}`;
    findings.addToEvent({
      code: 'ALLOW_WITH_FAILED_CHECK',
      pointer: `/checks/${failed}/result`,
      expected: 'pass',
      actual,
    });
  }
  const status = event.hygiene?.status;
  if (status === 'Invalid' && event.decision === 'allow')
    findings.addToEvent({
      code: 'HYGIENE_NOT_OK',
      pointer: '/hygiene/status',
      expected: 'Ok',
      actual: status,
    });
  else if (status === 'Lossy' || status === 'Ambiguous')
    findings.addToEvent({
      code: 'HYGIENE_LOSSY',
      pointer: '/hygiene/status',
      expected: 'Ok',
      actual: status,
    });
}

function checkPrincipal(actual: string, authorization: Grant | Action, findings: LineFindings): void {
  const { principalId: expected, place } = authorization;
  if (actual === expected) return;
  findings.addToEvent({
    code: 'PRINCIPAL_MISMATCH',
    pointer: '/principal_id',
    expected,
    actual,
    related: [place],
  });
}

function checkExecution(
  state: VerifyState,
  line: WellFormedLine<'execution'>,
  findings: LineFindings,
): Linked {
  const { eventId: own } = line;
  const event = line.outline();
  findings.warnDoubleAt(event.firstDouble, '/meter_used');
  checkTimes(event, findings);
  const id = event.authorizationId;
  const indexed = state.events.find(id);
  if (indexed === undefined) {
    addPending(state, id, findings);
    return UNLINKED;
  }
  const { links } = state;
  if (isUsedUp(indexed.kind)) {
    const expected = 'an action that was not executed before';
    const named = toDigestText(id);
    const related = [placeOf(indexed, named)];
    findings.addToEvent({
      code: 'AUTHORIZATION_REUSED',
      pointer: '/auth_event_id',
      expected,
      actual: named,
      related,
      cause: named,
    });
    judgeAndApply(state, own, event, undefined, links.grants.at(indexed.grant), findings, indexed.seq);
    if (!releases(event)) state.sliceWatch?.settle(line.event());
    return { grant: indexed.grant, isBlocked: false };
  }
  const grant = links.grants.get(id);
  const action = links.actions.get(id);
  const authorization = grant ?? action;
  if (authorization === undefined) {
    const what = indexed.kind === 'malformed' ? 'an authorization that is not well-formed' : 'another event';
    const named = toDigestText(id);
    findings.addToEvent({
      code: 'AUTH_NOT_AN_AUTHORIZATION',
      pointer: '/auth_event_id',
      expected: 'an authorization',
      actual: `${named}, ${what}`,
      related: [placeOf(indexed, named)],
      cause: named,
    });
    return UNLINKED;
  }
  checkPrincipal(event.principalId, authorization, findings);
  checkMatch(event, authorization, action, findings);
  if (authorization.decision === 'deny') {
    findings.setGrant(grant ?? action?.grant);
    return { grant: -1, isBlocked: checkUnderDeny(event, authorization, findings) };
  }
  const under = grant ?? action?.grant;
  const start = action && findOpenStart(state, id);
  const isGivenBack = isRelease(event, action) && start === undefined;
  judgeAndApply(state, own, event, action, under, findings, action?.place.seq);
  noteSystems(state, systemsOf(under, action));
  closeStart(state, event, action !== undefined);
  if (action !== undefined) {
    if (action.toolName === SLICE_TOOL) {
      state.slicesEnded += 1;
      if (!releases(event)) state.sliceWatch?.settle(line.event());
    }
    if (start !== undefined && event.isUnknown) noteLost(state, id, action, start, line);
    links.actions.delete(id);
    links.approved.delete(id);
    if (links.expiring.has(id)) links.expiring.delete(id);
    state.events.spend(id, under?.index ?? -1, isGivenBack ? 'released' : 'spent');
  }
  return { grant: under?.index ?? -1, isBlocked: false };
}

/** The order of an execution's own times. */
function checkTimes({ startedAt, endedAt, occurredAt }: ExecutionOutline, findings: LineFindings): void {
  if (startedAt === undefined) return;
  if (endedAt !== undefined && orderTimestamps(endedAt, startedAt) < 0) {
    const expected = `${startedAt} or later, when it started`;
    findings.addToEvent({ code: 'TIMESTAMP_INVALID', pointer: '/ended_at', expected, actual: endedAt });
  }
  if (orderTimestamps(startedAt, occurredAt) > 0) {
    const expected = `${occurredAt} or earlier, when it was recorded`;
    findings.addToEvent({ code: 'TIME_INCONSISTENT', pointer: '/started_at', expected, actual: startedAt });
  }
}

/** Rule 11. A credit counts only on a valid line: a forged record must not return anything. */
function checkAdjustment(state: VerifyState, event: AdjustmentOutline, findings: LineFindings): void {
  findings.warnDoubleAt(event.firstDouble, '/meters');
  const grant = resolveGrant(state, event.grantId, true, findings, '/grant_event_id');
  findings.setGrant(grant);
  checkAdjustedExecution(state, event, grant, findings);
  if (grant === undefined) return;
  const { findings: broken, apply } = judgeAdjustment(event, grant);
  for (const finding of broken) findings.addToEvent(finding);
  if (event.direction === 'credit' && findings.invalid) return;
  apply();
  touchChain(state, grant);
}

/** The execution that an adjustment corrects: an earlier one under the named grant. */
function checkAdjustedExecution(
  state: VerifyState,
  event: AdjustmentOutline,
  grant: Grant | undefined,
  findings: LineFindings,
): void {
  const id = event.executionId;
  if (id === undefined) return;
  const pointer = '/execution_event_id';
  const indexed = state.events.find(id);
  const actual = toDigestText(id);
  if (indexed?.kind !== 'execution') {
    const expected = 'the id of an earlier execution';
    const related = indexed && { related: [placeOf(indexed, actual)] };
    findings.addToEvent({ code: 'EXECUTION_NOT_FOUND', pointer, expected, actual, ...related });
    return;
  }
  if (grant === undefined) return;
  for (const each of grantChain(state.links.grants.at(indexed.grant))) if (each === grant) return;
  findings.addToEvent({
    code: 'EXECUTION_NOT_UNDER_GRANT',
    pointer,
    expected: `an execution under ${grant.place.eventId}`,
    actual,
    related: [placeOf(indexed, actual), grant.place],
  });
}

/** The members that an execution shares with its authorization. */
function checkMatch(
  event: ExecutionOutline,
  authorization: Grant | Action,
  action: Action | undefined,
  findings: LineFindings,
): void {
  const { place } = authorization;
  const { intent, toolName, params } = event;
  if (intent !== authorization.intent) {
    const pointer = '/intents/intent_digest';
    findings.addToEvent({
      code: 'INTENT_MISMATCH',
      pointer,
      expected: authorization.intent,
      actual: intent,
      related: [place],
    });
  }
  if (action === undefined) return;
  if (toolName !== action.toolName) {
    const actual = toolName;
    findings.addToEvent({
      code: 'TOOL_MISMATCH',
      pointer: '/tool_name',
      expected: action.toolName,
      actual,
      related: [place],
    });
  }
  const pointer = '/tool_params_digest';
  if (params === undefined) {
    const ranNothing = action.decision === 'deny' ? isBlocked(event) : isRelease(event, action);
    if (ranNothing) return;
    const expected = 'present, as the action fixes the parameters';
    findings.addToEvent({ code: 'EVIDENCE_MISSING', pointer, expected, actual: 'absent', related: [place] });
  } else if (params !== action.params) {
    findings.addToEvent({
      code: 'TOOL_PARAMS_MISMATCH',
      pointer,
      expected: action.params,
      actual: params,
      related: [place],
    });
  }
}

/** Rule 1: it failed, used nothing and left nothing. */
function isBlocked(event: ExecutionOutline): boolean {
  return event.isFailure && event.used.every(({ amount }) => amount.n === 0n) && leftNothing(event);
}

/** Rule 8, of the first execution of an allowed action: it took no time, used nothing and left nothing. */
function isRelease(event: ExecutionOutline, action: Action | undefined): boolean {
  return action !== undefined && releases(event);
}

/** Whether an execution is a release if it is the first of an allowed action. */
export function hasFormOfRelease(event: ExecutionEvent): boolean {
  return releases(outlineExecution(event));
}

/** Whether an execution is an attempt that was blocked if it names what was denied. */
export function hasFormOfBlocked(event: ExecutionEvent): boolean {
  return isBlocked(outlineExecution(event));
}

function releases(event: ExecutionOutline): boolean {
  const { startedAt, endedAt } = event;
  if (!event.isFailure || !event.isAbandoned || event.used.length > 0 || !leftNothing(event)) return false;
  return endedAt === undefined || (startedAt !== undefined && orderTimestamps(startedAt, endedAt) === 0);
}

function leftNothing({ hasOutputDigest, hasOutputRef, resources }: ExecutionOutline): boolean {
  return !hasOutputDigest && !hasOutputRef && resources.length === 0;
}

/** Rule 1: an attempt that was not blocked was executed under a deny. */
function checkUnderDeny(
  event: ExecutionOutline,
  authorization: Grant | Action,
  findings: LineFindings,
): boolean {
  if (isBlocked(event)) return true;
  findings.addToEvent({
    code: 'EXECUTION_UNDER_DENY',
    pointer: '/auth_event_id',
    expected: 'an authorization that was allowed, or a failed attempt that used and left nothing',
    actual: `${authorization.place.eventId}, denied`,
    related: [authorization.place],
  });
  return false;
}

function judgeAndApply(
  state: VerifyState,
  own: string,
  event: ExecutionOutline,
  action: Action | undefined,
  grant: Grant | undefined,
  findings: LineFindings,
  actionSeq: number | undefined,
): void {
  findings.setGrant(grant);
  const { toolName, occurredAt, startedAt, endedAt, used, isEstimated, isUnitEstimated } = event;
  const { hasOutputRef, resources } = event;
  const release = isRelease(event, action);
  const begun = release ? findOpenStart(state, event.authorizationId) : undefined;
  if (begun !== undefined) reportReleaseOfStarted(begun, findings);
  const facts = {
    toolName,
    occurredAt,
    startedAt,
    endedAt,
    used,
    isEstimated,
    isUnitEstimated,
    hasOutputRef,
    resources,
    isRelease: release,
    actionSeq,
    start: findNamedStart(state, event),
    countsSilence: release ? begun !== undefined : !(event.isFailure && leftNothing(event)),
  };
  const approved = action === undefined ? undefined : approvalsOf(state, event.authorizationId);
  applyJudgement(state, judgeExecution(facts, action, grant, approved), grant, findings, own);
}

/** Rule 8: a release claims that nothing was begun. */
function reportReleaseOfStarted({ place }: OpenStart, findings: LineFindings): void {
  findings.addToEvent({
    code: 'RELEASE_OF_STARTED',
    pointer: '/error_code',
    expected: 'what was used, or outcome unknown, as the action was started',
    actual: 'ABANDONED',
    related: [place],
  });
}

function applyJudgement(
  state: VerifyState,
  { findings: broken, apply, unstated = [] }: Judgement,
  grant: Grant | undefined,
  findings: LineFindings,
  id?: string,
): void {
  if (id !== undefined && unstated.length > 0) state.unstated = { id, amounts: unstated };
  for (const finding of broken) findings.addToEvent(finding);
  apply();
  touchChain(state, grant);
}

function touchChain({ links: { grants } }: VerifyState, grant: Grant | undefined): void {
  let count = 0;
  for (let each = grant; each !== undefined && count < MAX_GRANT_DEPTH; each = each.parent) {
    grants.touch(each);
    count += 1;
  }
}

/** Whether the named event comes later is not known yet; that the execution's own evidence is broken is. */
function addPending(state: VerifyState, id: string, findings: LineFindings): void {
  findings.invalid = true;
  const pointer = `${findings.eventRoot}/auth_event_id`;
  const detail = { pointer, expected: 'the id of an earlier authorization', actual: toDigestText(id) };
  const finding = findings.make('AUTH_NOT_FOUND', detail);
  findings.waiting = finding;
  const pending = state.links.pending.get(id);
  if (pending === undefined) {
    state.links.pending.set(id, { id, finding, others: 0 });
    return;
  }
  pending.others += 1;
  state.links.pending.set(id, pending);
  findings.addFolded({ finding, root: pending.finding, waits: true });
}
