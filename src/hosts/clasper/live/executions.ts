/**
 * Executions: a request becomes a grant, delegated from one of the tenant's, and a call under it that reserves what the execution may
 * cost. What nobody may decide alone waits for an approval in the ledger.
 */

import { createHmac, randomUUID } from 'node:crypto';
import { NorthrootError } from '../../../base/error.js';
import { canonicalBytesWithout } from '../../../base/json/omit-undefined.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { sha256Digest } from '../../../base/value/digest.js';
import { type AmountsByUnit, meters } from '../../../base/value/meter.js';
import { compareQuantities, formatQuantity, type Quantity } from '../../../base/value/quantity.js';
import { compareTimestamps } from '../../../base/value/timestamp.js';
import { isToolPattern } from '../../../base/value/tool.js';
import type { GateCall, GateDecision } from '../../../gate/gate.js';
import { keyOfCall } from '../../../gate/request-key.js';
import { assertNoPasskey } from '../../../gate/service/gate-service.js';
import type { LiveLedger } from '../../../log/agent/live-ledger.js';
import type { AuthorizationDecision } from '../../../log/policy/evaluator.js';
import { coversPattern, matchesTool, type ToolSet } from '../../../rules/bounds/tool-set.js';
import { APPROVAL_REQUIRED } from '../../../rules/verify/approvals.js';
import { stableHash } from '../../shared/forms/stable.js';
import { toolOf, wellFormed } from '../../shared/names.js';
import { amountOf, numberAt, textAt } from '../../shared/values.js';
import { adapterPrincipal } from '../desk.js';
import { EXECUTION_TOOL, textsAt } from '../scope.js';
import { tokenHash } from '../tokens.js';
import { type Adapter, assertOf } from './adapters.js';
import type { KnownDecision, KnownGrant } from './book.js';
import { signJwt, verifyJwt } from './jwt.js';
import {
  after,
  appendEvidence,
  type Asked,
  COST,
  costKeyOf,
  METRICS,
  noteDecision,
  recordDenial,
  secondsOf,
  ttlOf,
  workspaceCheckOf,
} from './office.js';
import { checkFields, invalidPayload, Refusal } from './refusal.js';

const ZERO: Quantity = { t: 'int', v: '0' };
const DEFAULT_STEPS: Quantity = { t: 'int', v: '100' };
const SCOPE_MS = 15 * 60_000;
const DECISION_MS = 60 * 60_000;
const DECISION_TOKEN_SECONDS = 600;
const MIN_JUSTIFICATION = 10;
const USD = 'usd';
const STEPS = 'clasper.steps';
/** Codes of the ledger that mean that too little is left. */
const BUDGET: ReadonlySet<string> = new Set([
  'METER_CAP_EXCEEDED',
  'RESERVATION_OVER_CAP',
  'ACTION_CAP_EXCEEDED',
]);

export interface Named {
  readonly executionId: string;
  readonly capabilities: readonly string[];
  /** Of the whole request, `sha256:…`. */
  readonly requestHash: string;
}

interface Request extends Named {
  /** The purpose, as stated. */
  readonly intent: string | undefined;
  readonly maxCost: Quantity | undefined;
  readonly estimatedCost: Quantity | undefined;
  readonly maxSteps: Quantity | undefined;
}

/** What an execution may use, as exact decimals. */
interface Limits {
  readonly maxCost: string;
  readonly maxSteps: string;
}

/** Answers `POST /api/execution/request`. */
export async function requestExecution(asked: Asked, body: SourceObject): Promise<object> {
  checkFields(body, {
    execution_id: 'id?',
    tenant_id: 'text',
    workspace_id: 'text',
    adapter_id: 'text',
    requested_capabilities: 'texts',
    tool_count: 'count',
    max_steps: 'count?',
    max_cost: 'amount?',
    estimated_cost: 'amount?',
    intent: 'text?',
    context: 'object?',
    provenance: 'object?',
  });
  const { adapter, book } = asked;
  const request = readRequest(body);
  try {
    assertOf(body, adapter);
  } catch (error) {
    const reason = 'the token is for another adapter';
    await recordDenial(asked, paramsOf(asked.adapter, request), 'ADAPTER_SCOPE_MISMATCH', reason);
    throw error;
  }
  const others = request.capabilities.filter((each) => !adapter.capabilities.includes(each));
  if (others.length > 0) {
    const reason = 'the token has not all of the capabilities';
    await recordDenial(asked, paramsOf(asked.adapter, request), 'CAPABILITY_NOT_ALLOWED', reason);
    throw new Refusal(403, 'Capability not allowed', undefined, { capabilities: others });
  }
  const known = book.execution(adapter.principal, costKeyOf(request.executionId));
  if (known !== undefined) return repeatAllowed(asked, request, known.grantId);
  const waiting = book.decisionOf(adapter.tenant, adapter.adapterId, request.executionId);
  if (waiting?.requestHash === request.requestHash) {
    const { status } = await stateOf(asked, waiting);
    if (status === 'pending' || status === 'approved') return toPending(asked, waiting);
  }
  return decideRequest(asked, request);
}

async function decideRequest(asked: Asked, request: Request): Promise<object> {
  const { adapter, gate, book } = asked;
  const now = gate.ledger.now();
  const parents = book
    .grantsOf(adapter.host)
    .filter(({ expiresAt }) => expiresAt === undefined || compareTimestamps(now, expiresAt) < 0);
  let denied: { readonly parent?: KnownGrant; readonly code: string; readonly reason: string } = {
    code: 'GRANT_NOT_FOUND',
    reason: 'the tenant holds no grant',
  };
  for (const parent of parents) {
    if (!request.capabilities.every((each) => coversPattern(parent.tools, toolOf(each)))) {
      if (denied.parent === undefined)
        denied = { parent, code: 'TOOL_NOT_ALLOWED', reason: 'the grant has not all of the capabilities' };
      continue;
    }
    const limits = await limitsUnder(asked, parent, request);
    const answer = await evaluateUnder(asked, parent, request, limits);
    if (answer.decision === 'deny' && answer.decisionCode !== APPROVAL_REQUIRED) {
      denied = { parent, code: answer.decisionCode, reason: answer.reason ?? answer.decisionCode };
      continue;
    }
    const asks = asksApproval(asked, request.capabilities);
    const grant = await delegateTo(asked, parent, request, limits, asks);
    const decision = await decideFirst(asked, grant, request, asks);
    const own = book.execution(adapter.principal, costKeyOf(request.executionId))?.grantId ?? grant.id;
    // Somebody else, asked at the same time, was first: what was delegated here is not needed.
    if (own !== grant.id) await withdraw(asked, grant);
    if (isAllow(decision)) return toAllowed(request, book.grant(own) ?? grant);
    if (isAsk(decision)) return waitFor(asked, request, grant, decision, asks);
    if (own === grant.id) await withdraw(asked, grant);
    return toDenied(request, decision.code, decision.reason ?? decision.code, parent);
  }
  const { parent, code, reason } = denied;
  await recordDenial(asked, paramsOf(asked.adapter, request), code, reason, { grantId: parent?.id });
  return toDenied(request, code, reason, parent);
}

function asksApproval({ settings: { approval } }: Asked, capabilities: readonly string[]): boolean {
  return approval !== undefined && capabilities.some((each) => takesIn(toolOf(each), approval.capabilities));
}

/** Whether a capability has one of those in it: itself, or one below it, whose tools it allows as well. */
function takesIn(capability: string, those: ToolSet): boolean {
  const below = `${capability}.`;
  return (
    matchesTool(those, capability) ||
    [...those.names, ...those.prefixes].some((each) => each.startsWith(below))
  );
}

/** Of the tenant's grant as much as is asked for, and no more than is left. */
async function limitsUnder({ gate }: Asked, parent: KnownGrant, request: Request): Promise<Limits> {
  const balances = await gate.ledger.balances(parent.id);
  const left = (unit: string): Quantity | undefined => balances.find((each) => each.unit === unit)?.left;
  const usd = left(USD);
  const wanted = request.maxCost ?? request.estimatedCost;
  const cost = wanted === undefined ? (usd ?? ZERO) : lesser(wanted, usd);
  // What is expected to cost more than is left is not begun.
  const expected = request.estimatedCost ?? ZERO;
  return {
    maxCost: formatQuantity(compareQuantities(expected, cost) > 0 ? expected : cost),
    maxSteps: formatQuantity(lesser(request.maxSteps ?? DEFAULT_STEPS, left(STEPS))),
  };
}

/** Whether the tenant's grant has room for it, and is not withdrawn. Nothing is recorded. */
async function evaluateUnder(
  asked: Asked,
  parent: KnownGrant,
  request: Request,
  { maxCost, maxSteps }: Limits,
): Promise<AuthorizationDecision> {
  const digest = sha256Digest(canonicalBytesWithout(paramsOf(asked.adapter, request)));
  const reserve = {
    calls: '1',
    ...(maxCost === '0' ? {} : { [USD]: maxCost }),
    ...(parent.caps.has(STEPS) ? { [STEPS]: maxSteps } : {}),
  };
  return asked.gate.ledger.evaluate({
    principalId: asked.adapter.host,
    grantId: parent.id,
    toolName: EXECUTION_TOOL,
    paramsDigest: digest,
    intentDigest: digest,
    meters: meters(reserve),
  });
}

/** Hands a part of the tenant's grant on: to this execution, until its end. */
async function delegateTo(
  { gate, adapter, book }: Asked,
  parent: KnownGrant,
  request: Request,
  { maxCost, maxSteps }: Limits,
  asks: boolean,
): Promise<KnownGrant> {
  const end = after(gate.ledger.now(), SCOPE_MS + (asks ? DECISION_MS : 0));
  const isShorter = parent.expiresAt !== undefined && compareTimestamps(parent.expiresAt, end) < 0;
  const expires = isShorter ? parent.expiresAt : end;
  const names = request.capabilities.map(toolOf);
  const below = names
    .map((name) => `${name}.*`)
    .filter((pattern) => isToolPattern(pattern) && coversPattern(parent.tools, pattern));
  const tools = [...new Set([EXECUTION_TOOL, ...names, ...below])];
  const caps = { [USD]: maxCost, [STEPS]: maxSteps };
  const { executionId, requestHash, intent } = request;
  const { eventId } = await gate.ledger.delegate({
    to: adapter.principal,
    parent: parent.id,
    caps,
    tools,
    expires,
    // Without its own name in it, it would be the same event as that of another execution of this moment.
    intent: {
      execution_id: executionId,
      request_hash: requestHash,
      ...(intent === undefined ? {} : { intent }),
    },
  });
  return book.noteGrant({
    id: eventId,
    principal: adapter.principal,
    tools,
    caps: meters(caps),
    expiresAt: expires,
    parentId: parent.id,
  });
}

/** Decides on an execution that nobody knew of before. */
async function decideFirst(
  asked: Asked,
  grant: KnownGrant,
  request: Named,
  asks: boolean,
): Promise<GateDecision> {
  try {
    const decision = await decideUnder(asked, grant, request, asks);
    if (decision.isRepeated) await asked.book.sync();
    return decision;
  } catch (error) {
    if (!(error instanceof NorthrootError) || error.code !== 'REQUEST_CONFLICT') throw error;
    await withdraw(asked, grant);
    throw otherScope();
  }
}

/** Reserves what the execution may cost, and begins it; of steps too where the tenant's grant bounds them. */
async function decideUnder(
  asked: Asked,
  grant: KnownGrant,
  request: Named,
  asks: boolean,
): Promise<GateDecision> {
  const { gate, adapter, book, facts, settings } = asked;
  const { approval } = settings;
  const decision = await gate.decide({
    ...callOf(asked, grant, request, COST),
    reserve: costOf(grant),
    found: {
      checks: [{ check: workspaceCheckOf(adapter), result: 'pass' }],
      ...(asks && approval !== undefined ? { approval: { approvers: approval.approvers } } : {}),
    },
  });
  noteDecision(facts, adapter, decision, EXECUTION_TOOL);
  if (!isAllow(decision)) return decision;
  const hasSteps = book.grant(grant.parentId ?? '')?.caps.has(STEPS) === true;
  // Those of an execution that goes on may have been reported before its cost.
  if (hasSteps && !(decision.isRepeated && (await hasReportedSteps(asked, request)))) {
    const steps = await decideSteps(asked, grant, request, grant.caps.get(STEPS) ?? ZERO);
    if (!isAllow(steps)) {
      // What somebody was told before may have begun.
      const outcome = decision.isRepeated ? 'unknown' : 'failure';
      const ended = { outcome, errorCode: 'EXECUTION_NOT_ALLOWED' } as const;
      await gate.settle({ ref: COST, session: request.executionId, principal: adapter.principal }, ended);
      return steps;
    }
  }
  if (decision.isRepeated) return decision;
  book.noteExecution(adapter.principal, costKeyOf(request.executionId), {
    grantId: grant.id,
    authorization: decision.authorization,
    at: gate.ledger.now(),
    workspaceCheck: workspaceCheckOf(adapter),
  });
  return decision;
}

async function hasReportedSteps({ gate, adapter }: Asked, { executionId }: Named): Promise<boolean> {
  const { spent } = await gate.ledger.findCall(adapter.principal, keyOfCall(executionId, METRICS));
  return spent !== undefined;
}

/** What the execution may cost. Nothing is reserved of nothing. */
function costOf({ caps }: KnownGrant): AmountsByUnit {
  const cost = caps.get(USD) ?? ZERO;
  return compareQuantities(cost, ZERO) === 0 ? {} : { [USD]: formatQuantity(cost) };
}

/** Reserves steps for the report of them. */
export function decideSteps(
  asked: Asked,
  grant: KnownGrant,
  request: Named,
  steps: Quantity,
): Promise<GateDecision> {
  return asked.gate.decide({
    ...callOf(asked, grant, request, METRICS),
    ...(compareQuantities(steps, ZERO) === 0 ? {} : { reserve: { [STEPS]: formatQuantity(steps) } }),
  });
}

/** A call of an execution that is about itself. */
function callOf(asked: Asked, grant: KnownGrant, request: Named, ref: string): GateCall {
  return {
    ref,
    session: request.executionId,
    principal: asked.adapter.principal,
    grantId: grant.id,
    tool: EXECUTION_TOOL,
    params: ref === COST ? paramsOf(asked.adapter, request) : { execution_id: request.executionId },
    ttlMs: ttlOf(asked, grant.expiresAt),
    coverage: 'hook',
  };
}

/** What an approval is for: the execution, what it may do, and the whole request by its digest. */
function paramsOf(
  { tenant, workspace, adapterId }: Pick<Adapter, 'tenant' | 'workspace' | 'adapterId'>,
  { executionId, capabilities, requestHash }: Named,
): JsonObject {
  return {
    tenant_id: tenant,
    workspace_id: workspace,
    adapter_id: adapterId,
    execution_id: executionId,
    capabilities: [...capabilities],
    request_hash: requestHash,
  };
}

/** The same request again: the same answer, while the execution has not ended. */
async function repeatAllowed(asked: Asked, request: Request, grantId: string): Promise<object> {
  const grant = asked.book.grant(grantId);
  if (grant === undefined) throw new Refusal(409, 'Execution already requested', 'execution_known');
  try {
    const decision = await decideUnder(asked, grant, request, asksApproval(asked, request.capabilities));
    if (isAllow(decision)) return toAllowed(request, grant);
    const parent = asked.book.grant(grant.parentId ?? '');
    return toDenied(request, decision.code, decision.reason ?? decision.code, parent);
  } catch (error) {
    if (error instanceof NorthrootError && error.code === 'REQUEST_CONFLICT') throw otherScope();
    throw error;
  }
}

function otherScope(): Refusal {
  return new Refusal(409, 'Execution already requested with another scope', 'execution_conflict');
}

/** What was delegated for an execution that may not run holds nothing; nobody is to act under it. */
async function withdraw({ gate, adapter }: Asked, grant: KnownGrant): Promise<void> {
  await gate.ledger.revoke(grant.id, {
    inFlight: 'finish',
    reason: 'NOT_ALLOWED',
    principalId: adapter.host,
  });
}

async function waitFor(
  asked: Asked,
  request: Request,
  grant: KnownGrant,
  { authorization: id }: GateDecision,
  asks: boolean,
): Promise<object> {
  const { adapter, gate, book } = asked;
  const { tenant, workspace, adapterId } = adapter;
  await appendEvidence(asked, 'execution_pending', adapter.host, {
    decision_id: id,
    grant_id: grant.id,
    tenant_id: tenant,
    workspace_id: workspace,
    adapter_id: adapterId,
    execution_id: request.executionId,
    capabilities: [...request.capabilities],
    request_hash: request.requestHash,
    asks,
    expires_at: after(gate.ledger.now(), DECISION_MS),
  });
  return toPending(asked, book.decision(id)!);
}

/** Answers `GET /api/decisions/ID`. */
export async function pollDecision(asked: Asked, id: string): Promise<object> {
  const decision = ownDecision(asked, id);
  const { adapter, settings, gate } = asked;
  const found = await stateOf(asked, decision);
  const now = gate.ledger.now();
  const isOpen = found.status === 'approved' && found.usedAt === null;
  return {
    decision_id: id,
    status: found.status,
    expires_at: decision.expiresAt,
    ...(isOpen ? { decision_token: decisionToken(asked, decision, settings.secrets.decision, now) } : {}),
    granted_scope: scopeOf(decision.capabilities, asked.book.grant(decision.grantId)),
    resolution: found.resolution,
    decision_token_used_at: found.usedAt,
    adapter_id: adapter.adapterId,
    execution_id: decision.executionId,
  };
}

/** Answers `POST /api/decisions/ID/consume`: the execution begins, once. */
export async function consumeDecision(asked: Asked, id: string, token: string | undefined): Promise<object> {
  if (token === undefined || token === '') throw new Refusal(400, 'Missing X-Decision-Token');
  const decision = ownDecision(asked, id);
  const { adapter, settings, gate, book } = asked;
  const now = gate.ledger.now();
  const claims = verifyJwt(token, settings.secrets.decision, { now: secondsOf(now) });
  if (claims === undefined || textAt(claims, 'typ') !== 'decision_token')
    throw new Refusal(400, 'Invalid decision token', 'invalid_token');
  const expected = { ...idsOf(asked, decision), decision_id: id };
  if (Object.entries(expected).some(([name, value]) => textAt(claims, name) !== value))
    throw new Refusal(403, 'Decision token claims mismatch');
  if (textAt(claims, 'jti') !== tokenIdOf(decision, settings.secrets.decision))
    throw new Refusal(403, 'Decision token invalid');
  const { status, usedAt } = await stateOf(asked, decision);
  if (usedAt !== null) throw alreadyUsed();
  if (status !== 'approved') throw new Refusal(403, 'Decision not approved', 'not_approved');
  const grant = book.grant(decision.grantId);
  if (grant === undefined) throw new Refusal(404, 'Decision not found');
  const begun = await decideUnder(asked, grant, decision, decision.asks);
  if (begun.isRepeated) throw alreadyUsed();
  if (!isAllow(begun)) throw new Refusal(403, reasonOf(begun.code), begun.code.toLowerCase());
  await appendEvidence(asked, 'decision_consumed', adapter.principal, {
    decision_id: id,
    execution_id: decision.executionId,
    token_id: textAt(claims, 'jti') ?? '',
    token_hash: tokenHash(token),
  });
  return { status: 'ok' };
}

function alreadyUsed(): Refusal {
  return new Refusal(409, 'Decision token already used');
}

/** Answers `POST /api/decisions/ID/resolve`: of an approver, who is known by the service's own tokens. */
export async function resolveDecision(
  {
    approvers,
    approver,
    ...own
  }: Pick<Asked, 'gate' | 'book' | 'settings'> & {
    readonly approvers: ReadonlyMap<string, LiveLedger> | undefined;
    readonly approver: string;
  },
  id: string,
  body: SourceObject,
): Promise<object> {
  checkFields(body, { action: 'text', justification: 'text', override_reason_code: 'text?' });
  const action = textAt(body, 'action') ?? '';
  if (!['approve', 'deny', 'approve_with_override'].includes(action))
    throw invalidPayload({ action: 'Expected approve, deny or approve_with_override' });
  if ([...(textAt(body, 'justification') ?? '')].length < MIN_JUSTIFICATION)
    throw invalidPayload({ justification: `String must contain at least ${MIN_JUSTIFICATION} character(s)` });
  const { gate, book } = own;
  const decision = book.decision(id);
  if (decision === undefined) throw new Refusal(404, 'Decision not found');
  const { status } = await stateOf(own, decision);
  if (status !== 'pending') throw new Refusal(409, 'Decision already resolved');
  const ledger = approvers?.get(approver) ?? gate.ledger;
  await assertNoPasskey(ledger, approver);
  if (action === 'deny') await ledger.reject(id, { principalId: approver });
  else {
    const code = action === 'approve' ? 'APPROVED' : 'APPROVED_WITH_OVERRIDE';
    await ledger.approve(id, { principalId: approver, code });
  }
  await book.sync();
  const now = await stateOf(own, decision);
  return {
    decision: {
      decision_id: id,
      tenant_id: decision.tenant,
      workspace_id: decision.workspace,
      adapter_id: decision.adapterId,
      execution_id: decision.executionId,
      status: now.status,
      expires_at: decision.expiresAt,
      granted_scope: scopeOf(decision.capabilities, book.grant(decision.grantId)),
      resolution: now.resolution ?? { action: action === 'deny' ? 'deny' : 'approve', actor: approver },
    },
  };
}

interface DecisionState {
  readonly status: 'pending' | 'approved' | 'denied' | 'expired';
  readonly resolution: object | null;
  readonly usedAt: string | null;
}

/** What has become of a request for approval, by the ledger. */
async function stateOf(
  own: Pick<Asked, 'gate' | 'book' | 'settings'>,
  decision: KnownDecision,
): Promise<DecisionState> {
  const { gate, book } = own;
  const principal = adapterPrincipal(decision.tenant, decision.adapterId);
  const begun = (): DecisionState | undefined => {
    const execution = book.execution(principal, costKeyOf(decision.executionId));
    if (execution?.grantId !== decision.grantId) return undefined;
    return { status: 'approved', resolution: { action: 'approve' }, usedAt: execution.at };
  };
  const before = begun();
  if (before !== undefined) return before;
  const request = await gate.ledger.request(decision.id);
  if (request === undefined) {
    // Another process may have begun it meanwhile.
    await book.sync();
    const meanwhile = begun();
    if (meanwhile !== undefined) return meanwhile;
  }
  if (request?.status === 'rejected')
    return { status: 'denied', resolution: { action: 'deny' }, usedAt: null };
  const isOver = compareTimestamps(gate.ledger.now(), decision.expiresAt) >= 0;
  if (request === undefined || request.status === 'ended' || isOver)
    return { status: 'expired', resolution: null, usedAt: null };
  if (request.status === 'waiting' && !(await isApproved(own, decision, principal)))
    return { status: 'pending', resolution: null, usedAt: null };
  const [actor = null] = request.approvals.map(({ principalId }) => principalId);
  return { status: 'approved', resolution: { action: 'approve', actor }, usedAt: null };
}

/** Whether the approvals are enough for the rule of the face, which the ledger does not know. */
async function isApproved(
  { gate, book, settings }: Pick<Asked, 'gate' | 'book' | 'settings'>,
  decision: KnownDecision,
  principal: string,
): Promise<boolean> {
  const grant = book.grant(decision.grantId);
  if (grant === undefined || !decision.asks || settings.approval === undefined) return false;
  const { approvers } = settings.approval;
  const digest = sha256Digest(canonicalBytesWithout(paramsOf(decision, decision)));
  const answer = await gate.ledger.evaluate({
    principalId: principal,
    grantId: grant.id,
    toolName: EXECUTION_TOOL,
    paramsDigest: digest,
    intentDigest: digest,
    meters: meters({ calls: '1', ...costOf(grant) }),
    advice: { checks: [], approval: { approvers } },
  });
  // What is denied for another reason was approved: consuming says why it is not allowed.
  return answer.decisionCode !== APPROVAL_REQUIRED;
}

/** @throws Refusal 404, 403 */
function ownDecision({ adapter, book }: Asked, id: string): KnownDecision {
  const decision = book.decision(id);
  if (decision === undefined) throw new Refusal(404, 'Decision not found');
  if (
    decision.tenant !== adapter.tenant ||
    decision.workspace !== adapter.workspace ||
    decision.adapterId !== adapter.adapterId
  )
    throw new Refusal(403, 'Decision scope mismatch');
  return decision;
}

function idsOf(
  { adapter: { tenant, workspace, adapterId } }: Asked,
  { executionId }: KnownDecision,
): JsonObject {
  return { tenant_id: tenant, workspace_id: workspace, adapter_id: adapterId, execution_id: executionId };
}

function decisionToken(asked: Asked, decision: KnownDecision, secret: string, now: string): string {
  const issued = secondsOf(now);
  const claims = {
    typ: 'decision_token',
    ...idsOf(asked, decision),
    decision_id: decision.id,
    granted_scope: scopeOf(decision.capabilities, asked.book.grant(decision.grantId)),
    iat: issued,
    exp: issued + DECISION_TOKEN_SECONDS,
    jti: tokenIdOf(decision, secret),
  };
  return signJwt(claims, secret);
}

/** The same for every token of a decision, so that any process can make one, and all of them count once. */
function tokenIdOf({ id }: KnownDecision, secret: string): string {
  return createHmac('sha256', secret).update(`jti ${id}`).digest('base64url').slice(0, 32);
}

function toAllowed(request: Named, grant: KnownGrant): object {
  return {
    allowed: true,
    execution_id: request.executionId,
    granted_scope: scopeOf(request.capabilities, grant),
    decision: 'allow',
    ...policyOf(grant.parentId, 'allow', 'within the grant'),
  };
}

function toDenied(request: Named, code: string, reason: string, parent: KnownGrant | undefined): object {
  return {
    allowed: false,
    execution_id: request.executionId,
    blocked_reason: reasonOf(code),
    decision: 'deny',
    ...policyOf(parent?.id, 'deny', `${code}: ${reason}`),
  };
}

function toPending({ book }: Asked, decision: KnownDecision): object {
  const grant = book.grant(decision.grantId);
  return {
    allowed: false,
    execution_id: decision.executionId,
    requires_approval: true,
    blocked_reason: 'policy_requires_approval',
    decision: 'pending',
    ...policyOf(grant?.parentId, 'require_approval', 'somebody must approve it'),
    granted_scope: scopeOf(decision.capabilities, grant),
    decision_id: decision.id,
    expires_at: decision.expiresAt,
  };
}

function reasonOf(code: string): string {
  return BUDGET.has(code) ? 'budget_exceeded' : 'policy_denied';
}

function policyOf(grantId: string | undefined, decision: string, explanation: string): object {
  const policies = grantId === undefined ? [] : [grantId];
  return {
    matched_policies: policies,
    decision_trace: policies.map((id) => ({ policy_id: id, result: 'matched', decision, explanation })),
    explanation,
  };
}

/** The scope as the contract writes it. Its amounts are doubles; what the ledger holds is exact. */
function scopeOf(capabilities: readonly string[], grant: KnownGrant | undefined): object {
  const amount = (unit: string): number => Number(formatQuantity(grant?.caps.get(unit) ?? ZERO));
  return {
    capabilities,
    max_steps: amount(STEPS),
    max_cost: amount(USD),
    expires_at: grant?.expiresAt,
  };
}

function readRequest(body: SourceObject): Request {
  const amount = (name: string): Quantity | undefined => {
    const text = numberAt(body, name);
    if (text === undefined) return undefined;
    const read = amountOf(text);
    if (read === undefined) throw invalidPayload({ [name]: 'Expected an amount that can be held exactly' });
    return read;
  };
  const intent = textAt(body, 'intent');
  return {
    executionId: textAt(body, 'execution_id') ?? randomUUID(),
    capabilities: [...new Set(textsAt(body, 'requested_capabilities'))],
    requestHash: stableHash(body),
    intent: intent === undefined ? undefined : wellFormed(intent),
    maxCost: amount('max_cost'),
    estimatedCost: amount('estimated_cost'),
    maxSteps: amount('max_steps'),
  };
}

/** Whether the ledger allows it. A gate in shadow would let everything through, and reserves nothing for what it denies. */
export function isAllow({ effect, shadow }: GateDecision): boolean {
  return shadow === undefined && (effect === 'allow' || effect === 'rewrite');
}

export function isAsk({ effect, shadow }: GateDecision): boolean {
  return (shadow ?? effect) === 'ask';
}

function lesser(one: Quantity, other: Quantity | undefined): Quantity {
  if (other === undefined || compareQuantities(one, other) <= 0) return one;
  return compareQuantities(other, ZERO) < 0 ? ZERO : other;
}
