/**
 * Step 11 of SPEC §8, linkage, and the rules of bounds applied in ledger order: grant → delegated grants → action → execution →
 * adjustment. Each link must name an earlier event; what it allows is judged by `bounds/`.
 */

import { judgeAdjustment } from '../bounds/adjustment.js';
import { judgeDelegation } from '../bounds/delegation.js';
import { judgeAction, judgeExecution, type ExecutionFacts } from '../bounds/judge.js';
import type { Judgement } from '../bounds/judgement.js';
import {
  chainIds,
  digestKey,
  grantChain,
  makeAction,
  makeGrant,
  type Action,
  type EventPlace,
  type Grant,
} from '../bounds/grant.js';
import type { Finding } from '../finding/finding.js';
import type { ExaminedLine } from '../ledger/examine-line.js';
import type { AdjustmentEvent, AuthorizationEvent, ExecutionEvent } from '../schema/generated/types.js';
import { fromDigestText, toDigestText } from '../value/digest.js';
import { toRational } from '../value/quantity.js';
import { compareTimestamps } from '../value/timestamp.js';
import type { EventKind, IndexedEvent } from './event-index.js';
import type { LineFindings } from './line-findings.js';
import { START_TYPE, closeStart, noteStart } from './starts.js';
import type { EventVerdict, VerifyState } from './state.js';

/** The kind under which an event is entered into the index. */
export function eventKindOf(line: ExaminedLine): EventKind {
  if (line.type === 'execution') return 'execution';
  if (line.type === 'authorization') return line.event().authorization.kind;
  return line.eventType === 'authorization' ? 'malformed' : 'other';
}

/** What an event counts for. */
export interface Linked {
  /** Of an execution: the number of the grant that it counts under; -1 for none. */
  readonly grant: number;
  /** Whether it is an attempt that a deny blocked, whose verdict is then `denied`. */
  readonly isBlocked: boolean;
}

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
      checkAuthorization(state, line.event(), place, findings);
      return UNLINKED;
    case 'execution':
      return checkExecution(state, line.event(), findings);
    case 'adjustment':
      checkAdjustment(state, line.event(), findings);
      return UNLINKED;
    case 'other':
      if (line.eventType === START_TYPE) noteStart(state, line.event(), place, findings);
      return UNLINKED;
    default:
      return UNLINKED;
  }
}

/**
 * Keeps of a grant what became of its own record (SPEC §8 rule 12): to be called once the line's verdict is known.
 *
 * @param place - The line's; another one that claims the same id changes nothing.
 */
export function settleGrant(
  state: VerifyState,
  { file, line, eventId }: Pick<EventPlace, 'file' | 'line' | 'eventId'>,
  verdict: EventVerdict,
): void {
  const grant = state.links.grants.get(fromDigestText(eventId));
  if (grant?.place.line !== line || grant.place.file !== file) return;
  grant.isSound = verdict === 'ok' || verdict === 'denied';
  state.links.grants.touch(grant);
}

/** Tells the executions that named this event before it came that it came too late. */
export function resolvePending(
  state: VerifyState,
  eventId: string,
  kind: EventKind,
  place: EventPlace,
): Finding[] {
  const pending = state.links.pending.get(eventId);
  if (pending === undefined) return [];
  state.links.pending.delete(eventId);
  const { finding, others } = pending;
  return [{ ...resolveWaiting(finding, kind, place), ...(others > 0 ? { folded: others } : {}) }];
}

/** What a finding that waited for an event says once that has come. */
export function resolveWaiting(finding: Finding, kind: EventKind, place: EventPlace): Finding {
  const isElse = kind === 'other' || kind === 'execution';
  const code = isElse ? 'AUTH_NOT_AN_AUTHORIZATION' : 'AUTH_AFTER_EXECUTION';
  return { ...finding, code, related: [place] };
}

/** What is known only at the end: links to events that never came, in the order of the executions. */
export function settlePending(state: VerifyState): Finding[] {
  return [...state.links.pending.values()]
    .map(({ finding, others }) => (others > 0 ? { ...finding, folded: others } : finding))
    .sort(({ at: a }, { at: b }) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
}

function checkTime(state: VerifyState, occurredAt: string, findings: LineFindings): void {
  const { links } = state;
  if (links.latest === undefined || compareTimestamps(occurredAt, links.latest) >= 0) {
    links.latest = occurredAt;
    return;
  }
  findings.addToEvent({
    code: 'TIME_REGRESSION',
    pointer: '/occurred_at',
    expected: `${links.latest} or later, as an event before it`,
    actual: occurredAt,
    cause: 'time',
  });
}

function checkAuthorization(
  state: VerifyState,
  event: AuthorizationEvent,
  place: EventPlace,
  findings: LineFindings,
): void {
  const { authorization } = event;
  const isAllow = event.decision === 'allow';
  checkDecision(event, findings);
  const parent = resolveGrant(state, authorization.grant_event_id, event.decision === 'allow', findings, {
    pointer: '/authorization/grant_event_id',
  });
  const id = event.event_id.b64;
  if (authorization.kind === 'grant') {
    const grant = makeGrant(
      event,
      place,
      isAllow ? parent : undefined,
      state.links.grants.size,
      findings.signers,
    );
    for (const name of ['meter_caps', 'action_caps', 'rate_limits'] as const) {
      warnF64(authorization.bounds?.[name], `/authorization/bounds/${name}`, findings);
    }
    if (isAllow && parent !== undefined) {
      const patterns = authorization.bounds?.allowed_tools ?? [];
      for (const finding of judgeDelegation(grant, patterns, parent)) findings.addToEvent(finding);
    }
    state.links.grants.add(id, grant);
    findings.context.grantIds = chainIds(grant);
    return;
  }
  const action = makeAction(event, place, parent);
  findings.context.grantIds = chainIds(parent);
  warnF64(authorization.action.meter_reservation, '/authorization/action/meter_reservation', findings);
  if (isAllow) {
    if (parent !== undefined) checkPrincipal(event.principal_id, parent, findings);
    applyJudgement(state, judgeAction(action), parent, findings);
  }
  state.links.actions.set(id, action);
}

/** What an authorization says of itself: an allow needs checks that passed and hygiene that is not Invalid. */
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
  if (status === 'Invalid' && event.decision === 'allow') {
    findings.addToEvent({
      code: 'HYGIENE_NOT_OK',
      pointer: '/hygiene/status',
      expected: 'Ok',
      actual: status,
    });
  } else if (status === 'Lossy' || status === 'Ambiguous') {
    findings.addToEvent({
      code: 'HYGIENE_LOSSY',
      pointer: '/hygiene/status',
      expected: 'Ok',
      actual: status,
    });
  }
}

/** The grant that an event names, where it can be relied on; findings where it cannot. */
function resolveGrant(
  state: VerifyState,
  reference: AuthorizationEvent['authorization']['grant_event_id'],
  mustBeAllowed: boolean,
  findings: LineFindings,
  { pointer }: { readonly pointer: string },
): Grant | undefined {
  if (reference === undefined) return undefined;
  const named = toDigestText(reference.b64);
  const indexed = state.events.find(reference.b64);
  if (indexed === undefined) {
    const expected = 'the id of an earlier grant';
    findings.addToEvent({ code: 'GRANT_NOT_FOUND', pointer, expected, actual: named, cause: named });
    return undefined;
  }
  const grant = state.links.grants.get(reference.b64);
  if (grant === undefined) {
    const what = indexed.kind === 'malformed' ? 'an authorization that is not well-formed' : 'another event';
    const related = [placeOf(indexed, named)];
    findings.addToEvent({
      code: 'GRANT_NOT_A_GRANT',
      pointer,
      expected: 'a grant',
      actual: `${named}, ${what}`,
      related,
      cause: named,
    });
    return undefined;
  }
  if (grant.decision === 'allow') return grant;
  if (mustBeAllowed) {
    const related = [grant.place];
    findings.addToEvent({
      code: 'GRANT_DENIED',
      pointer,
      expected: 'a grant that was allowed',
      actual: `${named}, denied`,
      related,
    });
  }
  return undefined;
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

function checkExecution(state: VerifyState, event: ExecutionEvent, findings: LineFindings): Linked {
  warnF64(event.meter_used, '/meter_used', findings);
  checkTimes(event, findings);
  const id = event.auth_event_id.b64;
  const named = toDigestText(id);
  const indexed = state.events.find(id);
  if (indexed === undefined) {
    addPending(state, id, findings);
    return UNLINKED;
  }
  const { links } = state;
  if (indexed.kind === 'spent') {
    const expected = 'an action that was not executed before';
    const related = [placeOf(indexed, named)];
    findings.addToEvent({
      code: 'AUTHORIZATION_REUSED',
      pointer: '/auth_event_id',
      expected,
      actual: named,
      related,
      cause: named,
    });
    judgeAndApply(state, event, undefined, links.grants.at(indexed.grant), findings);
    return { grant: indexed.grant, isBlocked: false };
  }
  const grant = links.grants.get(id);
  const action = links.actions.get(id);
  const authorization = grant ?? action;
  if (authorization === undefined) {
    const what = indexed.kind === 'malformed' ? 'an authorization that is not well-formed' : 'another event';
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
  checkPrincipal(event.principal_id, authorization, findings);
  checkMatch(event, authorization, action, findings);
  if (authorization.decision === 'deny') {
    findings.context.grantIds = chainIds(grant ?? action?.grant);
    return { grant: -1, isBlocked: checkUnderDeny(event, authorization, findings) };
  }
  const under = grant ?? action?.grant;
  judgeAndApply(state, event, action, under, findings);
  closeStart(state, event, action !== undefined);
  if (action !== undefined) {
    links.actions.delete(id);
    state.events.spend(id, under?.index ?? -1);
  }
  return { grant: under?.index ?? -1, isBlocked: false };
}

/** What an execution says of its own times. */
function checkTimes(event: ExecutionEvent, findings: LineFindings): void {
  const { started_at: startedAt, ended_at: endedAt, occurred_at: occurredAt } = event;
  if (startedAt === undefined) return;
  if (endedAt !== undefined && compareTimestamps(endedAt, startedAt) < 0) {
    const expected = `${startedAt} or later, when it started`;
    findings.addToEvent({ code: 'TIMESTAMP_INVALID', pointer: '/ended_at', expected, actual: endedAt });
  }
  if (compareTimestamps(startedAt, occurredAt) > 0) {
    const expected = `${occurredAt} or earlier, when it was recorded`;
    findings.addToEvent({ code: 'TIME_INCONSISTENT', pointer: '/started_at', expected, actual: startedAt });
  }
}

/** Rule 11. A credit counts only where nothing of the line is invalid: nobody gets anything back by a forged record. */
function checkAdjustment(state: VerifyState, event: AdjustmentEvent, findings: LineFindings): void {
  warnF64(event.meters, '/meters', findings);
  const grant = resolveGrant(state, event.grant_event_id, true, findings, { pointer: '/grant_event_id' });
  findings.context.grantIds = chainIds(grant);
  checkAdjustedExecution(state, event, grant, findings);
  if (grant === undefined) return;
  const { findings: broken, apply } = judgeAdjustment(
    {
      direction: event.direction,
      principalId: event.principal_id,
      meters: event.meters,
      isEstimated: event.meter_basis === 'estimated',
    },
    grant,
  );
  for (const finding of broken) findings.addToEvent(finding);
  if (event.direction === 'credit' && findings.invalid) return;
  apply();
  touchChain(state, grant);
}

/** The execution that an adjustment corrects: an earlier one, that counts under the named grant. */
function checkAdjustedExecution(
  state: VerifyState,
  event: AdjustmentEvent,
  grant: Grant | undefined,
  findings: LineFindings,
): void {
  const id = event.execution_event_id?.b64;
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

/** What must be the same in an execution and in what authorized it. */
function checkMatch(
  event: ExecutionEvent,
  authorization: Grant | Action,
  action: Action | undefined,
  findings: LineFindings,
): void {
  const related = [authorization.place];
  const intent = digestKey(event.intents.intent_digest);
  if (intent !== authorization.intent) {
    const pointer = '/intents/intent_digest';
    findings.addToEvent({
      code: 'INTENT_MISMATCH',
      pointer,
      expected: authorization.intent,
      actual: intent,
      related,
    });
  }
  if (action === undefined) return;
  if (event.tool_name !== action.toolName) {
    const actual = event.tool_name;
    findings.addToEvent({
      code: 'TOOL_MISMATCH',
      pointer: '/tool_name',
      expected: action.toolName,
      actual,
      related,
    });
  }
  const pointer = '/tool_params_digest';
  const params = event.tool_params_digest && digestKey(event.tool_params_digest);
  if (params === undefined) {
    const ranNothing = action.decision === 'deny' ? isBlocked(event) : isRelease(event, action);
    if (ranNothing) return;
    const expected = 'present, as the action fixes the parameters';
    findings.addToEvent({ code: 'EVIDENCE_MISSING', pointer, expected, actual: 'absent', related });
  } else if (params !== action.params) {
    findings.addToEvent({
      code: 'TOOL_PARAMS_MISMATCH',
      pointer,
      expected: action.params,
      actual: params,
      related,
    });
  }
}

/** Rule 1: it failed, used nothing and left nothing. */
function isBlocked(event: ExecutionEvent): boolean {
  const usedNothing = event.meter_used.every(({ amount }) => toRational(amount).n === 0n);
  return event.outcome === 'failure' && usedNothing && leftNothing(event);
}

/** Rule 8, of the first execution of an allowed action: it took no time, used nothing and left nothing. */
function isRelease(event: ExecutionEvent, action: Action | undefined): boolean {
  return action !== undefined && hasFormOfRelease(event);
}

/** Whether an execution is a release if it is the first of an allowed action. */
export function hasFormOfRelease(event: ExecutionEvent): boolean {
  const { started_at: startedAt, ended_at: endedAt } = event;
  const tookNoTime =
    endedAt === undefined || (startedAt !== undefined && compareTimestamps(startedAt, endedAt) === 0);
  return (
    event.outcome === 'failure' &&
    event.error_code === 'ABANDONED' &&
    event.meter_used.length === 0 &&
    tookNoTime &&
    leftNothing(event)
  );
}

function leftNothing({
  output_digest: digest,
  output_ref: ref,
  resources_touched: touched,
}: ExecutionEvent): boolean {
  return digest === undefined && ref === undefined && (touched === undefined || touched.length === 0);
}

/** Rule 1: what was not blocked was executed under a deny. */
function checkUnderDeny(
  event: ExecutionEvent,
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
  event: ExecutionEvent,
  action: Action | undefined,
  grant: Grant | undefined,
  findings: LineFindings,
): void {
  findings.context.grantIds = chainIds(grant);
  applyJudgement(state, judgeExecution(factsOf(event, action), action, grant), grant, findings);
}

function applyJudgement(
  state: VerifyState,
  { findings: broken, apply }: Judgement,
  grant: Grant | undefined,
  findings: LineFindings,
): void {
  for (const finding of broken) findings.addToEvent(finding);
  apply();
  touchChain(state, grant);
}

function touchChain({ links: { grants } }: VerifyState, grant: Grant | undefined): void {
  for (const each of grantChain(grant)) grants.touch(each);
}

/** An execution as `bounds/` sees it. */
function factsOf(event: ExecutionEvent, action: Action | undefined): ExecutionFacts {
  return {
    toolName: event.tool_name,
    occurredAt: event.occurred_at,
    startedAt: event.started_at,
    endedAt: event.ended_at,
    meterUsed: event.meter_used,
    isEstimated: event.meter_basis === 'estimated',
    hasOutputRef: event.output_ref !== undefined,
    resources: event.resources_touched ?? [],
    isRelease: isRelease(event, action),
  };
}

/** Whether the event comes later or never shows only later; that the execution's evidence is broken shows now. */
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
  findings.folded.push({ finding, root: pending.finding, waits: true });
}

function warnF64(
  vector: readonly { readonly amount: { readonly t: string } }[] | undefined,
  pointer: string,
  findings: LineFindings,
): void {
  const index = vector?.findIndex(({ amount }) => amount.t === 'f64') ?? -1;
  if (index === -1) return;
  const at = `${pointer}/${index}/amount`;
  findings.addToEvent({ code: 'QUANTITY_LOSSY', pointer: at, expected: 'int, dec or rat', actual: 'f64' });
}

function placeOf(indexed: IndexedEvent, eventId: string): EventPlace {
  return { file: indexed.file, line: indexed.line, seq: indexed.seq, eventId };
}
