/** An execution that Clasper has allowed: its tools are asked for one by one, and at its end it is reported. */

import { randomUUID } from 'node:crypto';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';
import type { JsonObject } from '../../../base/json/value.js';
import { canonicalBytesWithout } from '../../../base/json/omit-undefined.js';
import { checkOptions, checkString, type OptionTypes } from '../../../base/options.js';
import {
  type Digest,
  digestFromBase64url,
  fromDigestText,
  sha256Digest,
} from '../../../base/value/digest.js';
import { type AmountsByUnit, type Meter, meters } from '../../../base/value/meter.js';
import { toRational } from '../../../base/value/quantity.js';
import { addRationals, type Rational, ZERO } from '../../../base/value/rational.js';
import { formatExactly } from '../../../base/value/format-rational.js';
import { parseTimestamp } from '../../../base/value/timestamp.js';
import type { Gate, GateDecision } from '../../../gate/gate.js';
import type { WaitOptions } from '../../../log/agent/live-ledger.js';
import type { PolicyCheck } from '../../../log/policy/evaluator.js';
import { notStated } from '../../shared/claims.js';
import { stableHash } from '../../shared/forms/stable.js';
import { foreignCode } from '../../shared/live/foreign-code.js';
import { type CallReport, type RanCall, runDecided } from '../../shared/live/run-decided.js';
import { factText, sourceIdOf, toolOf } from '../../shared/names.js';
import { jcsDigest, textAt, valueAt } from '../../shared/values.js';
import { EXECUTION_TOOL, textsAt } from '../scope.js';
import { claimId } from '../state.js';
import { checkSteps } from '../steps.js';
import { readToken, tokenMark } from '../tokens.js';
import { ClasperDeniedError } from './denied.js';
import type { ClasperExchange } from './exchange.js';
import { type GrantedScope, INVALID } from './grant-answer.js';
import { chainSteps, type PayloadType, toSource } from './sign.js';

export interface ExecutionParts {
  readonly gate: Gate;
  readonly exchange: ClasperExchange;
  readonly principal: string;
  readonly executionId: string;
  readonly grantId: string;
  readonly granted: GrantedScope;
  /** The grant's. */
  readonly intent: Digest;
  readonly ids: { readonly adapterId: string; readonly tenantId: string; readonly workspaceId: string };
  /** Ids of tokens that were used: each is for one call. */
  readonly tokens: Set<string>;
  readonly report: (
    type: PayloadType,
    body: { readonly traceId: string; readonly payload: JsonObject },
  ) => Promise<void>;
}

export interface ClasperGuardOptions extends WaitOptions {
  /** The most that the call may use, by unit; reserved. Two steps are reserved, for the call and its result. */
  readonly reserve?: AmountsByUnit | undefined;
  /** What of the parameters Clasper is shown as the scope. Default: the parameters. */
  readonly scope?: JsonObject | undefined;
}

export interface AllowedCall {
  readonly signal: AbortSignal | undefined;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;
  /** States what it used, `{ usd: '0.02' }`, and its output, whose digest is recorded; the last of each counts. */
  readonly report: (report: CallReport) => void;
}

export interface ModelUse {
  readonly model: string;
  readonly provider: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** In USD, as an exact decimal. */
  readonly cost: string;
  readonly durationMs: number;
  /** Default false. */
  readonly hasToolCalls?: boolean | undefined;
}

/** What is reported at the end besides the trace. */
export interface ExecutionEnd {
  /** At most one of a type counts at Clasper. Messages are sent as they are. */
  readonly audits?: readonly { readonly type: string; readonly message?: string | undefined }[] | undefined;
  readonly violations?: readonly { readonly type: string; readonly message: string }[] | undefined;
}

const SYSTEM = 'clasper';
const STEPS = 'clasper.steps';
const STEPS_OF_CALL = 2;
/** Ids of tokens that a client remembers. */
const MAX_TOKENS = 100_000;
const GUARD_TYPES: OptionTypes<ClasperGuardOptions> = {
  reserve: 'object',
  scope: 'object',
  signal: 'signal',
  waitMs: 'number',
  onApprovalNeeded: 'function',
};

/** What Clasper said of a call of a tool. */
interface ToolAnswer {
  /** Undefined where it is allowed. */
  readonly denied: string | undefined;
  readonly jti: string | undefined;
  readonly expiresAt: string | undefined;
  readonly policyId: string;
  readonly policyDigest: Digest;
}

/** See the head of this file. */
export class ClasperExecution {
  readonly id: string;
  /** The recorded grant, `sha-256:…`. */
  readonly grantId: string;
  readonly traceId = `trace_${randomUUID()}`;
  readonly #parts: ExecutionParts;
  readonly #startedAt = new Date().toISOString();
  readonly #since = performance.now();
  readonly #steps: JsonObject[] = [];
  readonly #running = new Set<Promise<unknown>>();
  #cost: Rational = ZERO;
  #inputTokens = 0;
  #outputTokens = 0;
  #ended: Promise<void> | undefined;

  /** @param parts - As {@link ClasperClient.begin} gives them */
  constructor(parts: ExecutionParts) {
    this.#parts = parts;
    this.id = parts.executionId;
    this.grantId = parts.grantId;
  }

  get scope(): GrantedScope['stated'] & { readonly expiresAt: string | undefined } {
    const { stated, scope } = this.#parts.granted;
    return { ...stated, expiresAt: scope.expiresAt };
  }

  /**
   * Guards a call of a tool: Clasper is asked first, then the gate, and only then the function runs, at once.
   * @param tool - As Clasper knows it
   * @param params - Any JSON; its digest is recorded
   * @throws ClasperDeniedError: Clasper or the ledger denies it, or Clasper does not answer; it did not run
   * @throws what the function threw; UnsettledCallError with its result; NorthrootError as `Gate.decide`; TypeError, RangeError
   */
  async guard<T>(
    tool: string,
    params: JsonObject,
    run: (allowed: AllowedCall) => T | PromiseLike<T>,
    options: ClasperGuardOptions = {},
  ): Promise<T> {
    if (this.#ended !== undefined) throw new TypeError('the execution has ended');
    checkString('guard', 'tool', tool);
    checkOptions('guard', options, GUARD_TYPES);
    if (typeof run !== 'function') throw new TypeError('guard: expected a function to run');
    const guarded = this.#guard(tool, params, run, options);
    this.#running.add(guarded);
    try {
      return await guarded;
    } finally {
      this.#running.delete(guarded);
    }
  }

  /** Records what a call of a model used, under the grant; it is among what is reported. @throws as `LiveLedger.record` */
  async noteModel(use: ModelUse): Promise<void> {
    if (this.#ended !== undefined) throw new TypeError('the execution has ended');
    const { model, provider, inputTokens, outputTokens, cost, durationMs, hasToolCalls = false } = use;
    const meterUsed = meters({
      usd: cost,
      'tokens.input': inputTokens,
      'tokens.output': outputTokens,
      [STEPS]: 1,
    });
    const endedAt = new Date();
    const startedAt = new Date(endedAt.getTime() - durationMs).toISOString();
    await this.#parts.gate.ledger.record(this.grantId, {
      ...{
        toolName: EXECUTION_TOOL,
        startedAt,
        endedAt: endedAt.toISOString(),
        meterUsed,
        outcome: 'success',
      },
      ...{ modelId: model, provider, meterBasis: 'reported', isDatedNow: true },
    });
    this.#add(meterUsed);
    this.#inputTokens += inputTokens;
    this.#outputTokens += outputTokens;
    this.#steps.push({
      ...{ type: 'llm_call', timestamp: startedAt, durationMs },
      data: { model, provider, inputTokens, outputTokens, cost: Number(cost), hasToolCalls },
    });
  }

  /**
   * Ends it: waits for its calls, and queues its reports: one trace, one of the cost, one of metrics, and what else is given. Clasper takes
   * each once, so that nothing can be added later. To repeat it does nothing.
   * @throws NorthrootError `OUTBOX_FULL`, and as files give it: nothing of the rest is reported
   */
  end(end: ExecutionEnd = {}): Promise<void> {
    this.#ended ??= this.#end(end);
    return this.#ended;
  }

  async #guard<T>(
    tool: string,
    params: JsonObject,
    run: (allowed: AllowedCall) => T | PromiseLike<T>,
    { reserve = {}, scope, ...wait }: ClasperGuardOptions,
  ): Promise<T> {
    const { gate, principal, executionId } = this.#parts;
    const { signal } = wait;
    signal?.throwIfAborted();
    const plain = plainObject(params);
    const shown = scope === undefined ? plain : plainObject(scope);
    const answer = await this.#ask(tool, shown, signal);
    signal?.throwIfAborted();
    const { denied, jti, policyId, policyDigest } = answer;
    const callId = jti === undefined || denied !== undefined ? `call_${randomUUID()}` : tokenMark(jti);
    const name = { ref: callId, principal };
    const decision = await gate.decide(
      {
        ...{ ...name, tool: toolOf(tool), params: plain, grantId: this.grantId },
        reserve: { ...reserve, [STEPS]: STEPS_OF_CALL },
        found: {
          ...{ checks: checksOf(answer), code: 'ALLOWED', policyId, policyDigest },
          ...(denied === undefined ? {} : { denial: { code: denied, reason: 'as Clasper says' } }),
        },
      },
      wait,
    );
    const { effect, code, reason, authorization } = decision;
    if (effect === 'deny' || effect === 'ask' || jti === undefined)
      throw new ClasperDeniedError(code, tool, executionId, authorization, reason);
    if (isOver(answer.expiresAt)) {
      await gate.settle(name, {
        outcome: 'failure',
        errorCode: 'TOOL_TOKEN_EXPIRED',
        used: {},
        unmetered: 'release',
      });
      throw new ClasperDeniedError('TOOL_TOKEN_EXPIRED', tool, executionId, authorization);
    }
    return this.#run(callId, tool, jti, shown, decision, run, signal);
  }

  async #run<T>(
    callId: string,
    tool: string,
    jti: string,
    shown: JsonObject,
    { authorization }: GateDecision,
    run: (allowed: AllowedCall) => T | PromiseLike<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const { gate, principal } = this.#parts;
    let said: CallReport = {};
    const allowed: AllowedCall = {
      ...{ signal, authorization },
      report: (report) => {
        // What is malformed is the function's fault, and not the record's.
        meters(report.used ?? {});
        said = { ...said, ...report };
      },
    };
    const timestamp = new Date().toISOString();
    const used = (): AmountsByUnit => ({ ...said.used, [STEPS]: STEPS_OF_CALL });
    const ran = await runDecided(
      gate,
      { ref: callId, principal },
      () => run(allowed),
      () => ({ output: said.output, used: used() }),
      signal,
    );
    this.#add(meters(said.used ?? {}));
    this.#note(callId, tool, jti, stableHash(toSource(shown)), timestamp, ran);
    if (ran.result.kind === 'threw') throw ran.result.error;
    return ran.result.value as T;
  }

  /** Asks Clasper for a call. Whatever is not right denies. */
  async #ask(tool: string, scope: JsonObject, signal: AbortSignal | undefined): Promise<ToolAnswer> {
    const { exchange, executionId, ids, tokens } = this.#parts;
    const unknown = {
      ...{ jti: undefined, expiresAt: undefined, policyId: 'clasper:not-stated' },
      policyDigest: notStated(SYSTEM, 'policy'),
    };
    const answer = await exchange.ask(
      'POST',
      'api/governance/tool/authorize',
      {
        ...{ execution_id: executionId, adapter_id: ids.adapterId, tenant_id: ids.tenantId },
        ...{ workspace_id: ids.workspaceId, tool, requested_scope: scope },
      },
      {},
      signal,
    );
    if (answer.kind === 'none')
      return { ...unknown, denied: answer.why === 'PEER_ANSWER_INVALID' ? INVALID : 'CLASPER_UNREACHABLE' };
    const { status, body } = answer;
    if (status === 401 || status === 403) return { ...unknown, denied: 'FORBIDDEN' };
    if (status !== 200 || body === undefined) return { ...unknown, denied: INVALID };
    const [policy] = [...textsAt(body, 'policy', 'matched_policies'), textAt(body, 'policy_id') ?? ''];
    const named = {
      policyId: policy === undefined || policy === '' ? 'clasper:no-match' : factText(policy),
      policyDigest: jcsDigest(valueAt(body, 'policy', 'decision_trace')) ?? unknown.policyDigest,
    };
    const word = textAt(body, 'decision');
    if (word === 'deny') {
      const reason = textAt(body, 'reason') ?? '';
      return { ...unknown, ...named, denied: reason === '' ? 'DENIED' : foreignCode('CLASPER', reason) };
    }
    const token = readToken(textAt(body, 'tool_token') ?? textAt(body, 'token'));
    if (word !== 'allow' || token?.id === undefined || token.id === '')
      return { ...unknown, ...named, denied: INVALID };
    const { id: jti, claims, expiresAt } = token;
    const expected = {
      ...{ tenant_id: ids.tenantId, workspace_id: ids.workspaceId, adapter_id: ids.adapterId },
      ...{ execution_id: executionId, tool, scope_hash: stableHash(toSource(scope)) },
    };
    const isOther = Object.entries(expected).some(([name, value]) => textAt(claims, name) !== value);
    const found = { ...unknown, ...named, jti, expiresAt };
    if (isOther) return { ...found, denied: 'TOOL_TOKEN_MISMATCH' };
    if (tokens.has(jti)) return { ...found, denied: 'TOOL_TOKEN_REUSED' };
    tokens.add(jti);
    // Those that are forgotten are over by then.
    const [oldest] = tokens;
    if (tokens.size > MAX_TOKENS && oldest !== undefined) tokens.delete(oldest);
    if (expiresAt === undefined || isOver(expiresAt)) return { ...found, denied: 'TOOL_TOKEN_EXPIRED' };
    return { ...found, denied: undefined };
  }

  /** The two steps of a call; nothing of its parameters and its result is in them. */
  #note(callId: string, tool: string, jti: string, scopeHash: string, timestamp: string, ran: RanCall): void {
    const of = { toolCallId: callId, toolName: tool };
    this.#steps.push(
      {
        ...{ type: 'tool_call', timestamp, durationMs: ran.durationMs },
        data: { ...of, permitted: true, tool_token_jti: jti, tool_token_scope_hash: scopeHash },
      },
      {
        ...{ type: 'tool_result', timestamp: new Date().toISOString(), durationMs: 0 },
        data: {
          ...{ ...of, success: ran.outcome === 'success' },
          ...(ran.outcome === 'success' ? {} : { error: ran.errorCode ?? 'UNKNOWN' }),
        },
      },
    );
  }

  async #end({ audits = [], violations = [] }: ExecutionEnd): Promise<void> {
    await Promise.allSettled(this.#running);
    const { executionId, ids, granted, report } = this.#parts;
    const { adapterId, tenantId, workspaceId } = ids;
    const now = new Date().toISOString();
    const durationMs = Math.ceil(performance.now() - this.#since);
    const steps = chainSteps(this.#steps);
    // A trace that Clasper finds broken cannot be sent again.
    const [fault] = checkSteps(toSource({ steps }));
    if (fault !== undefined && steps.length > 0)
      throw new NorthrootError('INTERNAL_ERROR', `the steps: ${fault.kind}`);
    const cost = Number(formatExactly(this.#cost));
    const tokens = { inputTokens: this.#inputTokens, outputTokens: this.#outputTokens };
    const used = { capabilities: granted.stated.capabilities, step_count: steps.length, actual_cost: cost };
    const of = {
      ...{ tenant_id: tenantId, workspace_id: workspaceId, execution_id: executionId },
      ...{ trace_id: this.traceId, adapter_id: adapterId },
    };
    const trace: JsonObject = {
      ...{
        id: this.traceId,
        tenantId,
        workspaceId,
        startedAt: this.#startedAt,
        completedAt: now,
        durationMs,
      },
      ...{
        skillVersions: {},
        model: 'none',
        provider: 'none',
        input: { message: '', messageHistory: 0 },
        steps,
      },
      usage: { ...tokens, totalCost: cost },
      ...{ adapter_id: adapterId, granted_scope: granted.stated, used_scope: used },
    };
    const sent: [PayloadType, JsonObject][] = [];
    const send = async (type: PayloadType, payload: JsonObject): Promise<void> => {
      const whole = { ...of, ...payload };
      sent.push([type, whole]);
      await report(type, { traceId: this.traceId, payload: whole });
    };
    await send('trace', { trace });
    const spent = { input_tokens: this.#inputTokens, output_tokens: this.#outputTokens };
    await send('cost', { cost_usd: cost, ...spent, recorded_at: now });
    await send('metrics', { step_count: steps.length, duration_ms: durationMs, recorded_at: now });
    for (const { type, message } of firstOfEach(audits))
      await send('audit', {
        ...{ event_type: type, occurred_at: now },
        ...(message === undefined ? {} : { message }),
      });
    for (const { type, message } of firstOfEach(violations))
      await send('violations', { violation_type: type, message, occurred_at: now });
    // What calls used is recorded with them: of reports the ledger has that they were made, and their digests.
    for (const [type, payload] of sent)
      if (type === 'cost' || type === 'metrics') await this.#recordReport(type, payload);
  }

  /** A report on the whole, under the id that an import of it has. */
  async #recordReport(type: PayloadType, payload: JsonObject): Promise<void> {
    const { gate, ids, executionId, principal, intent } = this.#parts;
    await gate.ledger.append({
      event: {
        ...{ event_type: 'execution', principal_id: principal, intents: { intent_digest: { ...intent } } },
        auth_event_id: digestFromBase64url(fromDigestText(this.grantId)),
        ...{ tool_name: EXECUTION_TOOL, meter_used: [], outcome: 'success' },
        ...{ started_at: this.#startedAt, ended_at: new Date().toISOString() },
        output_digest: { ...sha256Digest(canonicalBytesWithout(payload)) },
        source: { system: SYSTEM, id: sourceIdOf(claimId(type, ids.tenantId, executionId)) },
      },
    });
  }

  #add(used: readonly Meter[]): void {
    for (const { unit, amount } of used)
      if (unit === 'usd') this.#cost = addRationals(this.#cost, toRational(amount));
  }
}

function checksOf({ denied, jti }: ToolAnswer): PolicyCheck[] {
  const result = denied === undefined ? 'pass' : 'fail';
  const checks: PolicyCheck[] = [{ check: 'clasper.tool', result, code: denied ?? 'ALLOWED' }];
  if (jti === undefined) return checks;
  // All that is kept of the token.
  return [...checks, { check: `clasper.token:${tokenMark(jti)}`, result }];
}

function isOver(expiresAt: string | undefined): boolean {
  return expiresAt !== undefined && parseTimestamp(expiresAt) <= parseTimestamp(new Date().toISOString());
}

function plainObject(value: JsonObject): JsonObject {
  const plain: unknown = JSON.parse(decodeUtf8(canonicalBytesWithout(value)));
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain))
    throw new TypeError('guard: params: expected an object');
  return plain as JsonObject;
}

/** A second one of a type would be lost at Clasper. */
function firstOfEach<T extends { readonly type: string }>(list: readonly T[]): T[] {
  return [...new Map([...list].reverse().map((each) => [each.type, each])).values()].reverse();
}
