/**
 * An adapter of Clasper: it asks for an execution, and for each tool of it, before anything runs, and reports afterwards. What Clasper
 * allows becomes a grant of the ledger, so that both must allow: Clasper first, the ledger second.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../../base/bytes/printable.js';
import { defined } from '../../../base/defined.js';
import { NorthrootError } from '../../../base/error.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import { isJsonObject, type JsonObject } from '../../../base/json/value.js';
import { checkOptions, checkString, type OptionTypes } from '../../../base/options.js';
import { digestFromBase64url, fromDigestText } from '../../../base/value/digest.js';
import { parseTimestamp } from '../../../base/value/timestamp.js';
import { Gate } from '../../../gate/gate.js';
import { endpointOf } from '../../../gate/json-client.js';
import type { LiveLedger } from '../../../log/agent/live-ledger.js';
import type { Signer } from '../../../format/signature/signer.js';
import type { CircuitOptions } from '../../shared/live/circuit-breaker.js';
import { type Delivery, Outbox } from '../../shared/live/outbox.js';
import { codeOf } from '../../shared/names.js';
import { objectAt, textAt } from '../../shared/values.js';
import { adapterPrincipal } from '../desk.js';
import { claimId } from '../state.js';
import { readToken, tokenHash } from '../tokens.js';
import { ClasperExecution } from './client-execution.js';
import { ClasperDeniedError } from './denied.js';
import { type Answer, ClasperExchange, type TokenSource } from './exchange.js';
import {
  type Asked,
  draftClasperGrant,
  type GrantedScope,
  INVALID,
  intentOf,
  readGranted,
  readRequestAnswer,
} from './grant-answer.js';
import { keyMembers, type PayloadType, signEnvelope } from './sign.js';

export interface ClasperClientOptions {
  /** The server, `http://127.0.0.1:8081`. */
  readonly endpoint: string;
  /** The adapter's token, or what gives it whenever it is needed. It goes to no log, no error and no record. */
  readonly adapterToken: TokenSource;
  readonly adapterId: string;
  readonly tenantId: string;
  readonly workspaceId: string;
  /** Of the adapter, as it is registered. */
  readonly version: string;
  /** What decides second and records; its ledger honours imports of `clasper`. Either this or `ledger`. */
  readonly gate?: Gate | undefined;
  /** A ledger of which a gate is made. */
  readonly ledger?: LiveLedger | undefined;
  /** As whom executions are recorded. Default: as an import names the adapter, `agent:clasper/TENANT/ADAPTER`. */
  readonly principal?: string | undefined;
  /** A grant of the ledger, `sha-256:…`, that grants are delegated from: what goes beyond it is refused. Default: none. */
  readonly parent?: string | undefined;
  /** Signs reports: with an ed25519 or a p256 key. Without it they are not signed, which Clasper may refuse. */
  readonly telemetrySigner?: Signer | undefined;
  /** What a cost of 0 in an answer means, which Clasper writes where no budget is set: nothing may run, or no cap. Default `refuse`. */
  readonly zeroCost?: 'refuse' | 'unlimited' | undefined;
  /** How long an answer may take, in milliseconds, 100 to 60,000. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  readonly circuit?: CircuitOptions | undefined;
  /** Where the outbox is kept. Default: beside the ledger, `LEDGER.clasper`. */
  readonly folder?: string | undefined;
  /** Called with what goes wrong beside the calls: reports that are refused or lost. Default: a process warning. */
  readonly onProblem?: ((error: unknown) => void) | undefined;
}

export interface ExecutionRequest {
  readonly capabilities: readonly string[];
  /** How many tools it may call. */
  readonly toolCount: number;
  /** Default: a new one. */
  readonly executionId?: string | undefined;
  /** Tools by other names than the capabilities and what lies below them. */
  readonly tools?: readonly string[] | undefined;
  readonly intent?: string | undefined;
  readonly context?: JsonObject | undefined;
  readonly provenance?: JsonObject | undefined;
  readonly estimatedCost?: number | undefined;
  readonly maxSteps?: number | undefined;
  readonly maxCost?: number | undefined;
  readonly riskClass?: 'low' | 'medium' | 'high' | 'critical' | undefined;
  readonly agentId?: string | undefined;
  readonly agentRole?: string | undefined;
}

export interface BeginOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with Clasper's id of a decision that somebody has to make, before waiting begins. */
  readonly onPending?: ((decisionId: string) => void) | undefined;
  /** How long to wait for it, in milliseconds. Default: until it expires at Clasper. 0: not at all. */
  readonly waitMs?: number | undefined;
}

export interface AdapterRegistration {
  readonly displayName: string;
  readonly riskClass: 'low' | 'medium' | 'high' | 'critical';
  readonly capabilities: readonly string[];
}

const DEFAULT_TIMEOUT_MS = 5_000;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 60_000;
/** Ids of executions that a client remembers. */
const MAX_EXECUTIONS = 100_000;
const FIRST_POLL_MS = 1_000;
const MAX_POLL_MS = 30_000;
/** How much later than a decision expires an answer may still come. */
const LATE_MS = 60_000;
/** Where the answer does not say when it expires. */
const DEFAULT_PENDING_MS = 3_600_000;
const NANOSECONDS_PER_MS = 1_000_000n;
const ID = /^[A-Za-z0-9._:-]{1,128}$/;
const PAYLOADS: readonly string[] = ['trace', 'audit', 'cost', 'metrics', 'violations'];

const OPTION_TYPES: OptionTypes<ClasperClientOptions> = {
  endpoint: 'string',
  adapterToken: ['string', 'function'],
  adapterId: 'string',
  tenantId: 'string',
  workspaceId: 'string',
  version: 'string',
  gate: 'object',
  ledger: 'object',
  principal: 'string',
  parent: 'string',
  telemetrySigner: 'object',
  zeroCost: 'string',
  timeoutMs: 'number',
  circuit: 'object',
  folder: 'string',
  onProblem: 'function',
};

const REQUEST_TYPES: OptionTypes<ExecutionRequest> = {
  capabilities: 'array',
  toolCount: 'number',
  executionId: 'string',
  tools: 'array',
  intent: 'string',
  context: 'object',
  provenance: 'object',
  estimatedCost: 'number',
  maxSteps: 'number',
  maxCost: 'number',
  riskClass: 'string',
  agentId: 'string',
  agentRole: 'string',
};

/** An adapter of Clasper; see the head of this file. */
export class ClasperClient {
  readonly gate: Gate;
  readonly #options: ClasperClientOptions;
  readonly #exchange: ClasperExchange;
  readonly #principal: string;
  readonly #folder: string | undefined;
  /** Executions of this client: an id is asked for once. */
  readonly #executions = new Set<string>();
  readonly #tokens = new Set<string>();
  #outbox: Promise<Outbox> | undefined;
  #aheadMs = 0;

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(options: ClasperClientOptions) {
    checkOptions('ClasperClient', options, OPTION_TYPES);
    const { gate, ledger, timeoutMs = DEFAULT_TIMEOUT_MS, telemetrySigner, zeroCost } = options;
    for (const name of ['adapterId', 'tenantId', 'workspaceId', 'version'] as const)
      checkString('ClasperClient', name, options[name]);
    if (options.adapterToken === undefined) throw new TypeError('ClasperClient: expected an adapterToken');
    if ((gate === undefined) === (ledger === undefined))
      throw new TypeError('ClasperClient: expected either gate or ledger');
    if (!(timeoutMs >= MIN_TIMEOUT_MS && timeoutMs <= MAX_TIMEOUT_MS))
      throw new RangeError(`ClasperClient: timeoutMs: expected ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
    if (zeroCost !== undefined && zeroCost !== 'refuse' && zeroCost !== 'unlimited')
      throw new RangeError("ClasperClient: zeroCost: expected 'refuse' or 'unlimited'");
    if (telemetrySigner !== undefined && !['ed25519', 'p256'].includes(telemetrySigner.publicKey.alg))
      throw new TypeError('ClasperClient: telemetrySigner: expected an ed25519 or p256 key');
    const endpoint = endpointOf('ClasperClient: endpoint', options.endpoint);
    this.gate = gate ?? new Gate(ledger as LiveLedger);
    this.#options = options;
    this.#exchange = new ClasperExchange({
      ...{ endpoint, token: options.adapterToken, timeoutMs, circuit: options.circuit },
    });
    const live = this.gate.ledger;
    this.#folder = options.folder ?? (live.isInFiles ? `${live.path}.clasper` : undefined);
    this.#principal = options.principal ?? adapterPrincipal(options.tenantId, options.adapterId);
  }

  /** `open`: Clasper did not answer, and is not asked for a while. */
  get circuit(): 'closed' | 'open' | 'half_open' {
    return this.#exchange.circuit;
  }

  /** Registers the adapter. @throws NorthrootError `CLASPER_REFUSED`, `CLASPER_UNREACHABLE` */
  async register({ displayName, riskClass, capabilities }: AdapterRegistration): Promise<void> {
    const { adapterId, version } = this.#options;
    const body = {
      ...{ adapter_id: adapterId, display_name: displayName, risk_class: riskClass },
      ...{ capabilities: [...capabilities], version, enabled: true },
    };
    assertTaken('the registration', await this.#exchange.ask('POST', 'adapters/register', body));
  }

  /**
   * Registers the key by which reports are signed. At Clasper an operator may do this.
   * @param operatorToken - The operator's bearer token; undefined where Clasper asks for none
   * @throws NorthrootError `CLASPER_REFUSED`, `CLASPER_UNREACHABLE`; TypeError without a signer
   */
  async setTelemetryKey(operatorToken?: string): Promise<void> {
    const { adapterId, version, telemetrySigner } = this.#options;
    if (telemetrySigner === undefined) throw new TypeError('setTelemetryKey: expected a telemetrySigner');
    const { keyid } = telemetrySigner.publicKey;
    const body = { adapter_id: adapterId, version, ...keyMembers(telemetrySigner), key_id: keyid };
    const headers: Record<string, string> =
      operatorToken === undefined ? {} : { Authorization: `Bearer ${operatorToken}` };
    const path = 'ops/api/adapters/telemetry-key';
    assertTaken('the key', await this.#exchange.ask('POST', path, body, headers));
  }

  /**
   * Asks for an execution. What is answered is in the ledger on return: a grant, under which its tools run; or a denied one.
   * @throws ClasperDeniedError: it is denied, nobody answered, or what waited was not approved, or not in time
   * @throws NorthrootError as `LiveLedger.append`; TypeError, RangeError for a malformed request; the signal's reason
   */
  async begin(request: ExecutionRequest, options: BeginOptions = {}): Promise<ClasperExecution> {
    checkOptions('begin', request, REQUEST_TYPES);
    const { executionId = `exec_${randomUUID()}`, capabilities, tools = [], intent } = request;
    const { signal } = options;
    signal?.throwIfAborted();
    if (!ID.test(executionId))
      throw new RangeError('begin: executionId: expected 1 to 128 of A-Z a-z 0-9 . _ : -');
    if (this.#executions.has(executionId))
      throw new RangeError('begin: executionId: it was asked for before');
    if (!(Number.isSafeInteger(request.toolCount) && request.toolCount >= 0))
      throw new RangeError('begin: toolCount: expected a whole number');
    this.#executions.add(executionId);
    const [oldest] = this.#executions;
    if (this.#executions.size > MAX_EXECUTIONS && oldest !== undefined) this.#executions.delete(oldest);
    this.#outbox ??= this.#openOutbox();
    // Without a place for what must be reported, nothing begins.
    await this.#outbox;
    const { zeroCost = 'refuse' } = this.#options;
    const asked: Asked = { executionId, capabilities, tools, zeroCost };
    const answer = await this.#exchange.ask(
      'POST',
      'api/execution/request',
      this.#bodyOf(request, executionId),
      {},
      signal,
    );
    const read = readRequestAnswer(answer, asked);
    const about = { executionId, intent, answer };
    if (read.kind === 'deny') return this.#deny({ ...about, code: read.code, sourceId: executionId });
    if (read.kind === 'allow')
      return this.#grant({ ...about, code: 'ALLOWED', sourceId: executionId, granted: read.granted });
    const { decisionId } = read;
    const pending = await this.#recordDenial({
      ...{ ...about, code: 'PENDING_APPROVAL', sourceId: claimId('decision', decisionId, 'pending') },
      checks: [{ check: 'approval', result: 'fail', code: 'PENDING' }],
    });
    options.onPending?.(decisionId);
    const resolved = await this.#awaitDecision(read, asked, options);
    const after = {
      executionId,
      intent,
      answer: resolved.answer,
      sourceId: claimId('decision', decisionId, 'resolved'),
    };
    if (resolved.kind === 'open')
      throw new ClasperDeniedError(
        'PENDING_APPROVAL',
        'the execution',
        executionId,
        pending,
        'nobody has decided yet',
      );
    if (resolved.kind === 'deny') return this.#deny({ ...after, code: resolved.code });
    const consumed = await this.#consume(decisionId, executionId, resolved.token);
    if (consumed !== undefined) return this.#deny({ ...after, code: consumed });
    const role = textAt(resolved.body, 'resolution', 'role');
    const checks = [
      { check: 'approval', result: 'pass', code: role === undefined ? 'ROLE_NOT_STATED' : codeOf(role) },
    ] as const;
    return this.#grant({ ...after, code: resolved.code, granted: resolved.granted, checks });
  }

  /** Sends reports that wait. @returns how many could not be sent yet */
  async flush(): Promise<number> {
    this.#outbox ??= this.#openOutbox();
    return (await this.#outbox).flush();
  }

  /** Ends what it does in the background. Reports that wait are kept; the gate stays open. */
  async close(): Promise<void> {
    const outbox = await this.#outbox?.catch(() => undefined);
    await outbox?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #bodyOf(request: ExecutionRequest, executionId: string): JsonObject {
    const { adapterId, tenantId, workspaceId } = this.#options;
    const { capabilities, toolCount, intent, context, provenance, riskClass, agentId, agentRole } = request;
    const { estimatedCost, maxSteps, maxCost } = request;
    return {
      ...{ execution_id: executionId, adapter_id: adapterId, tenant_id: tenantId, workspace_id: workspaceId },
      ...{ requested_capabilities: [...capabilities], tool_count: toolCount },
      ...(defined({
        ...{ intent, context, provenance, adapter_risk_class: riskClass, agent_id: agentId },
        ...{ agent_role: agentRole, estimated_cost: estimatedCost, max_steps: maxSteps, max_cost: maxCost },
      }) as JsonObject),
    };
  }

  async #deny(denied: Omit<Recorded, 'bounds'>): Promise<never> {
    const id = await this.#recordDenial(denied);
    throw new ClasperDeniedError(denied.code, 'the execution', denied.executionId, id, denied.code);
  }

  async #recordDenial({ executionId, ...denied }: Omit<Recorded, 'bounds'>): Promise<string> {
    void executionId;
    const draft = { ...denied, principalId: this.#principal, decision: 'deny' } as const;
    return (await this.gate.ledger.append({ event: draftClasperGrant(draft) })).eventId;
  }

  async #grant({
    granted,
    ...allowed
  }: Recorded & { readonly granted: GrantedScope }): Promise<ClasperExecution> {
    const { executionId, ...rest } = allowed;
    const { parent } = this.#options;
    const draft = {
      ...{ ...rest, principalId: this.#principal, bounds: granted.bounds },
      decision: 'allow',
      parent: parent === undefined ? undefined : digestFromBase64url(fromDigestText(parent)),
    } as const;
    let grantId: string;
    try {
      grantId = (await this.gate.ledger.append({ event: draftClasperGrant(draft) })).eventId;
    } catch (error) {
      // Clasper allows more than the grant that it is to be delegated from.
      if (!(error instanceof NorthrootError) || !BEYOND.includes(error.code)) throw error;
      return this.#deny({ ...allowed, code: error.code });
    }
    return new ClasperExecution({
      ...{
        gate: this.gate,
        exchange: this.#exchange,
        principal: this.#principal,
        executionId,
        grantId,
        granted,
      },
      ids: this.#options,
      intent: intentOf(rest.intent),
      tokens: this.#tokens,
      report: (type, body) => this.#report(type, executionId, body),
    });
  }

  /** Waits until somebody has decided, asking less and less often. */
  async #awaitDecision(
    { decisionId, expiresAt }: { readonly decisionId: string; readonly expiresAt: string | undefined },
    asked: Asked,
    { signal, waitMs = Infinity }: BeginOptions,
  ): Promise<Resolved> {
    const left =
      expiresAt === undefined
        ? DEFAULT_PENDING_MS
        : Number((parseTimestamp(expiresAt) - parseTimestamp(new Date().toISOString())) / NANOSECONDS_PER_MS);
    const until = performance.now() + Math.min(waitMs, left + LATE_MS);
    let answer: Answer = { kind: 'none', why: 'NOT_ASKED' };
    for (let pauseMs = 0; ; pauseMs = Math.min(Math.max(pauseMs * 2, FIRST_POLL_MS), MAX_POLL_MS)) {
      const rest = until - performance.now();
      if (rest <= 0) return { kind: 'open', answer };
      await sleep(Math.min(pauseMs, rest), undefined, { ...(signal && { signal }) }).catch(() => undefined);
      signal?.throwIfAborted();
      answer = await this.#exchange.ask('GET', `api/decisions/${decisionId}`, undefined, {}, signal);
      const read = readPoll(answer, decisionId, asked);
      if (read !== undefined) return read;
    }
  }

  /** Uses the approval up, once, before anything runs. @returns why it could not be, as a Code */
  async #consume(decisionId: string, executionId: string, token: string): Promise<string | undefined> {
    const { adapterId, tenantId, workspaceId } = this.#options;
    const claims = readToken(token)?.claims;
    const expected = {
      ...{ tenant_id: tenantId, workspace_id: workspaceId, adapter_id: adapterId },
      ...{ execution_id: executionId, decision_id: decisionId },
    };
    if (Object.entries(expected).some(([name, value]) => textAt(claims, name) !== value))
      return 'DECISION_TOKEN_MISMATCH';
    const path = `api/decisions/${decisionId}/consume`;
    const answer = await this.#exchange.ask('POST', path, {}, { 'X-Decision-Token': token });
    // Whether it was used up is not known: what cannot be known to be ours is not.
    if (answer.kind === 'none') return 'CLASPER_UNREACHABLE';
    if (answer.status === 409) return 'DECISION_TOKEN_REUSED';
    if (answer.status !== 200) return 'DECISION_TOKEN_REFUSED';
    await this.gate.ledger.append({
      event: {
        event_type: 'x.clasper.decision_consumed',
        principal_id: this.#principal,
        ...{ decision_id: decisionId, execution_id: executionId, token_hash: tokenHash(token) },
      },
    });
    return undefined;
  }

  async #openOutbox(): Promise<Outbox> {
    if (this.#folder === undefined)
      throw new TypeError('ClasperClient: folder: expected one for a ledger in a store');
    return Outbox.open(join(this.#folder, 'outbox'), {
      send: (type, body) => this.#send(type, body),
      onRefused: (type) =>
        this.#tellProblem(
          new NorthrootError(
            'TELEMETRY_REFUSED',
            `Clasper refused a report${type === undefined ? '' : ` of type ${type}`}`,
          ),
        ),
    });
  }

  async #report(
    type: PayloadType,
    executionId: string,
    body: { traceId: string; payload: JsonObject },
  ): Promise<void> {
    const outbox = await (this.#outbox ??= this.#openOutbox());
    await outbox.put(type, { execution_id: executionId, trace_id: body.traceId, payload: body.payload });
  }

  /** Signed when it is sent, for Clasper takes only what was signed lately. */
  async #send(type: string, { execution_id, trace_id, payload }: JsonObject): Promise<Delivery> {
    const isKnown =
      PAYLOADS.includes(type) && typeof execution_id === 'string' && typeof trace_id === 'string';
    if (!isKnown || !isJsonObject(payload)) return 'refused';
    const { telemetrySigner, adapterId, version } = this.#options;
    const ids = { adapterId, adapterVersion: version, executionId: execution_id, traceId: trace_id };
    const post = (): Promise<Answer> => {
      const issuedAt = new Date(Date.now() + this.#aheadMs).toISOString();
      const body =
        telemetrySigner === undefined
          ? payload
          : signEnvelope(telemetrySigner, ids, type as PayloadType, payload, issuedAt);
      return this.#exchange.ask('POST', `api/ingest/${type}`, body);
    };
    let answer = await post();
    if (isSkewed(answer)) {
      // By its clock, which may differ.
      this.#aheadMs = (answer.kind === 'answered' ? answer.aheadMs : undefined) ?? 0;
      answer = await post();
    }
    if (answer.kind === 'none') return 'later';
    const { status, body } = answer;
    if (status >= 200 && status < 300) return 'taken';
    const code = textAt(body, 'code');
    if (PASSING.includes(status) || PASSING_CODES.includes(code ?? '')) return 'later';
    return status >= 500 && status !== NOT_IMPLEMENTED ? 'failed' : 'refused';
  }

  #tellProblem(error: unknown): void {
    const { onProblem } = this.#options;
    if (onProblem !== undefined) queueMicrotask(() => onProblem(error));
    else
      process.emitWarning(error instanceof Error ? error.message : String(error), {
        code: 'NORTHROOT_CLASPER',
      });
  }
}

/** How the ledger says that a grant goes beyond the one that it is delegated from. */
const BEYOND: readonly string[] = ['DELEGATION_EXCEEDED', 'GRANT_REVOKED', 'GRANT_EXPIRED'];
const PASSING: readonly number[] = [401, 408, 425, 429];
/** Of the clock, of a key that is to be registered, of a token that is over. */
const PASSING_CODES: readonly string[] = ['timestamp_skew', 'missing_key', 'invalid_token', 'missing_claim'];
const NOT_IMPLEMENTED = 501;

interface Recorded {
  readonly executionId: string;
  readonly intent: string | undefined;
  readonly answer: Answer;
  readonly code: string;
  readonly sourceId: string;
  readonly checks?: readonly {
    readonly check: string;
    readonly result: 'pass' | 'fail';
    readonly code: string;
  }[];
}

type Resolved =
  | { readonly kind: 'open'; readonly answer: Answer }
  | { readonly kind: 'deny'; readonly answer: Answer; readonly code: string }
  | {
      readonly kind: 'allow';
      readonly answer: Answer;
      readonly code: string;
      readonly token: string;
      readonly granted: GrantedScope;
      readonly body: SourceObject;
    };

/** What a poll says; undefined while nobody has decided. */
function readPoll(answer: Answer, decisionId: string, asked: Asked): Resolved | undefined {
  // Who does not answer now may answer next time.
  if (answer.kind === 'none' || answer.status >= 500 || answer.status === 429) return undefined;
  const { status, body } = answer;
  const invalid = { kind: 'deny', answer, code: INVALID } as const;
  if (status !== 200 || body === undefined || textAt(body, 'decision_id') !== decisionId) return invalid;
  const word = textAt(body, 'status');
  if (word === 'pending') return undefined;
  if (word === 'denied') return { kind: 'deny', answer, code: 'APPROVAL_DENIED' };
  if (word === 'expired') return { kind: 'deny', answer, code: 'APPROVAL_EXPIRED' };
  const token = textAt(body, 'decision_token');
  if (word !== 'approved' || token === undefined) return invalid;
  if (!/^[\w.-]{1,8192}$/.test(token)) return invalid;
  const granted = readGranted(objectAt(body, 'granted_scope'), asked);
  if (typeof granted === 'string') return { kind: 'deny', answer, code: granted };
  const isOverride = textAt(body, 'resolution', 'action') === 'approve_with_override';
  return {
    kind: 'allow',
    answer,
    code: isOverride ? 'APPROVED_WITH_OVERRIDE' : 'APPROVED',
    token,
    granted,
    body,
  };
}

function isSkewed(answer: Answer): boolean {
  return (
    answer.kind === 'answered' && answer.status === 400 && textAt(answer.body, 'code') === 'timestamp_skew'
  );
}

function assertTaken(what: string, answer: Answer): void {
  if (answer.kind === 'none')
    throw new NorthrootError('CLASPER_UNREACHABLE', `Clasper does not answer: ${answer.why}`);
  if (answer.status >= 200 && answer.status < 300) return;
  const reason = printable(textAt(answer.body, 'error') ?? '', 128);
  throw new NorthrootError('CLASPER_REFUSED', `Clasper refuses ${what}, status ${answer.status}: ${reason}`);
}
