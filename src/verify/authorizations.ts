/**
 * The linkage rows of SPEC §8, and the rules of bounds applied in ledger order: grant → delegated grants → action → execution.
 * Each link must name an earlier event; what it allows is judged by `bounds/`.
 */

import { judgeAction, judgeDelegation, judgeExecution, type ExecutionFacts } from '../bounds/judge.js';
import {
  chainIds,
  digestKey,
  makeAction,
  makeGrant,
  type Action,
  type EventPlace,
  type Grant,
} from '../bounds/grant.js';
import type { Finding } from '../finding/finding.js';
import type { ExaminedLine } from '../ledger/examine-line.js';
import type { AuthorizationEvent, ExecutionEvent } from '../schema/generated/types.js';
import { toRational } from '../value/quantity.js';
import { compareTimestamps } from '../value/timestamp.js';
import type { EventKind, IndexedEvent } from './event-index.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** The kind under which an event is entered into the index. */
export function eventKindOf(line: ExaminedLine): EventKind {
  if (line.event?.['event_type'] !== 'authorization') return 'other';
  if (!line.wellFormed) return 'malformed';
  return (line.event as unknown as AuthorizationEvent).authorization.kind;
}

/**
 * Judges and applies a well-formed authorization or execution.
 *
 * @returns Whether the event is an attempt that a deny blocked, whose verdict is then `denied`.
 */
export function checkAuthorizations(
  state: VerifyState,
  line: ExaminedLine,
  place: EventPlace,
  findings: LineFindings,
): boolean {
  if (!line.wellFormed || line.event === undefined) return false;
  checkTime(state, line.event['occurred_at'] as string, findings);
  switch (line.event['event_type']) {
    case 'authorization':
      checkAuthorization(state, line.event as unknown as AuthorizationEvent, place, findings);
      return false;
    case 'execution':
      return checkExecution(state, line.event as unknown as ExecutionEvent, findings);
    default:
      return false;
  }
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
  const code = kind === 'other' ? 'AUTH_NOT_AN_AUTHORIZATION' : 'AUTH_AFTER_EXECUTION';
  return [{ ...finding, code, related: [place], ...(others > 0 ? { folded: others } : {}) }];
}

/** What is known only at the end: links to events that never came, in the order of the executions. */
export function settlePending(state: VerifyState): Finding[] {
  return [...state.links.pending.values()].map(({ finding, others }) =>
    others > 0 ? { ...finding, folded: others } : finding,
  );
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
  const parent = resolveGrant(state, event, findings);
  const id = event.event_id.b64;
  if (authorization.kind === 'grant') {
    const grant = makeGrant(
      event,
      place,
      isAllow ? parent : undefined,
      state.links.grantList.length,
      findings.signers,
    );
    warnOfDoubles(authorization.bounds?.meter_caps, '/authorization/bounds/meter_caps', findings);
    warnOfDoubles(authorization.bounds?.rate_limits, '/authorization/bounds/rate_limits', findings);
    if (isAllow && parent !== undefined) {
      const patterns = authorization.bounds?.allowed_tools ?? [];
      for (const finding of judgeDelegation(grant, patterns, parent)) findings.addToEvent(finding);
    }
    state.links.grants.set(id, grant);
    state.links.grantList.push(grant);
    findings.context.grantIds = chainIds(grant);
    return;
  }
  const action = makeAction(event, place, parent);
  findings.context.grantIds = chainIds(parent);
  warnOfDoubles(authorization.action.meter_reservation, '/authorization/action/meter_reservation', findings);
  if (isAllow) {
    if (parent !== undefined) checkPrincipal(event.principal_id, parent, findings);
    const { findings: broken, apply } = judgeAction(action);
    for (const finding of broken) findings.addToEvent(finding);
    apply();
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

/** The grant that an authorization names, where it can be relied on; findings where it cannot. */
function resolveGrant(
  state: VerifyState,
  event: AuthorizationEvent,
  findings: LineFindings,
): Grant | undefined {
  const reference = event.authorization.grant_event_id;
  if (reference === undefined) return undefined;
  const pointer = '/authorization/grant_event_id';
  const named = `sha-256:${reference.b64}`;
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
  if (event.decision === 'allow') {
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

function checkExecution(state: VerifyState, event: ExecutionEvent, findings: LineFindings): boolean {
  warnOfDoubles(event.meter_used, '/meter_used', findings);
  if (event.started_at !== undefined && event.ended_at !== undefined) {
    if (compareTimestamps(event.ended_at, event.started_at) < 0) {
      const expected = `${event.started_at} or later, when it started`;
      findings.addToEvent({
        code: 'TIMESTAMP_INVALID',
        pointer: '/ended_at',
        expected,
        actual: event.ended_at,
      });
    }
  }
  const id = event.auth_event_id.b64;
  const named = `sha-256:${id}`;
  const indexed = state.events.find(id);
  if (indexed === undefined) {
    addPending(state, id, findings);
    return false;
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
    judgeAndApply(event, undefined, links.grantList[indexed.grant], undefined, findings);
    return false;
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
    return false;
  }
  checkPrincipal(event.principal_id, authorization, findings);
  checkMatch(event, authorization, action, findings);
  if (authorization.decision === 'deny') {
    findings.context.grantIds = chainIds(grant ?? action?.grant);
    return checkUnderDeny(event, authorization, findings);
  }
  judgeAndApply(event, action, grant ?? action?.grant, authorization.occurredAt, findings);
  if (action !== undefined) {
    links.actions.delete(id);
    state.events.spend(indexed.ordinal, action.grant?.index ?? -1);
  }
  return false;
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
  const params = event.tool_params_digest && digestKey(event.tool_params_digest);
  if (params !== undefined && params !== action.params) {
    const pointer = '/tool_params_digest';
    findings.addToEvent({
      code: 'TOOL_PARAMS_MISMATCH',
      pointer,
      expected: action.params,
      actual: params,
      related,
    });
  }
}

/** Rule 1: an attempt that was blocked used nothing and failed; anything else was executed under a deny. */
function checkUnderDeny(
  event: ExecutionEvent,
  authorization: Grant | Action,
  findings: LineFindings,
): boolean {
  const usedNothing = event.meter_used.every(({ amount }) => toRational(amount).n === 0n);
  if (event.outcome === 'failure' && usedNothing) return true;
  findings.addToEvent({
    code: 'EXECUTION_UNDER_DENY',
    pointer: '/auth_event_id',
    expected: 'an authorization that was allowed, or a failed attempt that used nothing',
    actual: `${authorization.place.eventId}, denied`,
    related: [authorization.place],
  });
  return false;
}

function judgeAndApply(
  event: ExecutionEvent,
  action: Action | undefined,
  grant: Grant | undefined,
  authorizedAt: string | undefined,
  findings: LineFindings,
): void {
  findings.context.grantIds = chainIds(grant);
  const { findings: broken, apply } = judgeExecution(factsOf(event), action, grant, authorizedAt);
  for (const finding of broken) findings.addToEvent(finding);
  apply();
}

/** An execution as `bounds/` sees it. */
function factsOf(event: ExecutionEvent): ExecutionFacts {
  return {
    toolName: event.tool_name,
    occurredAt: event.occurred_at,
    startedAt: event.started_at,
    endedAt: event.ended_at,
    meterUsed: event.meter_used,
    hasOutputRef: event.output_ref !== undefined,
    resources: event.resources_touched ?? [],
    isRelease:
      event.outcome === 'failure' && event.error_code === 'ABANDONED' && event.meter_used.length === 0,
  };
}

/** Whether the event comes later or never shows only later; that the execution's evidence is broken shows now. */
function addPending(state: VerifyState, id: string, findings: LineFindings): void {
  findings.invalid = true;
  const pending = state.links.pending.get(id);
  if (pending !== undefined) {
    pending.others += 1;
    return;
  }
  const pointer = `${findings.eventRoot}/auth_event_id`;
  const detail = { pointer, expected: 'the id of an earlier authorization', actual: `sha-256:${id}` };
  state.links.pending.set(id, { finding: findings.make('AUTH_NOT_FOUND', detail), others: 0 });
}

function warnOfDoubles(
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
