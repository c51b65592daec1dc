/**
 * A HostAdapter: it stands between a host and its actions, and asks a CGF server about each: observe, evaluate, enforce, report. What is
 * decided is in the ledger before anything runs, and the ledger's grants have the last word.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { encodeHex } from '../../../base/bytes/encoding.js';
import { printable } from '../../../base/bytes/printable.js';
import { decodeUtf8, encodeUtf8 } from '../../../base/bytes/text.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { NorthrootError } from '../../../base/error.js';
import { canonicalBytesWithout } from '../../../base/json/omit-undefined.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json/value.js';
import { checkOptions, type OptionTypes } from '../../../base/options.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import { Gate, type GateDecision } from '../../../gate/gate.js';
import { endpointOf } from '../../../gate/json-client.js';
import type { LiveLedger, WaitOptions } from '../../../log/agent/live-ledger.js';
import { nodeFileSystem, readSmallFile, replaceFile } from '../../../log/fs/file-system.js';
import {
  type HonourOptions,
  OptionalGrantEvaluator,
  type PolicyCheck,
  type PolicyEvaluator,
} from '../../../log/policy/evaluator.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import { notStated } from '../../shared/claims.js';
import type { CircuitOptions } from '../../shared/live/circuit-breaker.js';
import { foreignCode } from '../../shared/live/foreign-code.js';
import { Outbox } from '../../shared/live/outbox.js';
import { type RanCall, runDecided } from '../../shared/live/run-decided.js';
import { codeOf, factText, principalOf, toolOf } from '../../shared/names.js';
import { numberAt, plainJson, textAt, valueAt } from '../../shared/values.js';
import { pythonSha256 } from '../../shared/forms/python.js';
import { costOf, estimateOf } from '../amounts.js';
import { ACTION_TYPES, RISK_TIERS } from '../vocabulary.js';
import { type LiveDecision, readDecision } from './decision.js';
import { EventLog, type EventSink, type LiveVocabulary } from './event-log.js';
import { CgfExchange, type NoAnswer } from './exchange.js';
import { type FailModeRow, FailModes } from './fail-modes.js';
import { draftTeller, ratifiedTeller, type Teller } from './tell.js';
import { type Act, ACTS, madeUpId, type Proposal, type Verdict } from './verdict.js';

export interface CgfHostConfig {
  /** `openclaw`, `langgraph`, `custom`. */
  readonly hostType: string;
  /** Default `default`. */
  readonly namespace?: string | undefined;
  readonly capabilities?: readonly string[] | undefined;
  /** Default `0.0.0`. */
  readonly version?: string | undefined;
}

/** Applies a constraint to an action's parameters. @returns those that may run; undefined, or an error, where it cannot be applied */
export type ConstraintHandler = (params: JsonObject, constraint: JsonObject) => JsonObject | undefined;

/** What an audit is held of, before the action runs. */
export interface CgfAudit {
  readonly proposalId: string;
  readonly decisionId: string;
  readonly actionType: string;
  readonly riskTier: string;
  readonly params: JsonObject;
  /** Default `basic`. */
  readonly level: string;
  /** Those that the server names. */
  readonly hooks: readonly string[];
}

export interface CgfAdapterOptions {
  /** The server, `http://127.0.0.1:8080`. */
  readonly endpoint: string;
  /** Its bearer token. It goes to no log, no error and no record. */
  readonly token?: string | undefined;
  /** What decides last and records. Either this or `ledger`. */
  readonly gate?: Gate | undefined;
  /** A ledger of which a gate is made. */
  readonly ledger?: LiveLedger | undefined;
  readonly hostConfig: CgfHostConfig;
  /** Default: the host's type. */
  readonly adapterType?: string | undefined;
  /** As whom actions are recorded. Default: the ledger's `principalId`, else `service:cgf/` and the host's type. */
  readonly principal?: string | undefined;
  /** How long the server may take to answer, in milliseconds, 100 to 5,000. Default 500. */
  readonly timeoutMs?: number | undefined;
  /** What to do while the server does not answer, before what its own table says and the defaults say. */
  readonly failModes?: readonly FailModeRow[] | undefined;
  readonly circuit?: CircuitOptions | undefined;
  /** By the type of a constraint. What no function is there for blocks; `modified_params` of the draft needs none. */
  readonly constraints?: Readonly<Record<string, ConstraintHandler>> | undefined;
  /**
   * Holds an audit before the action runs. An error defers the action, or blocks it at high risk. Without it, only the audit level `basic`
   * without hooks is held: by the ledger.
   */
  readonly audit?: ((audit: CgfAudit) => void | Promise<void>) | undefined;
  /** How long an audit may take, in milliseconds. Default 5,000. */
  readonly auditTimeoutMs?: number | undefined;
  /** Where the outbox and the server's table of fail modes are kept. Default: beside the ledger, `LEDGER.cgf`. */
  readonly folder?: string | undefined;
  /** Where events are told. Default: nowhere. */
  readonly events?: EventSink | undefined;
  /** Default `ratified`. */
  readonly vocabulary?: LiveVocabulary | undefined;
  /** Called with what goes wrong beside the calls: outcomes and events that are lost. Default: a process warning. */
  readonly onProblem?: ((error: unknown) => void) | undefined;
}

/** An action that a host wants to take. */
export interface CgfAction {
  readonly actionType: 'tool_call' | 'message_send' | 'memory_write' | 'workflow_step';
  /** `action_params`, any JSON object: sent as it is; only its digest is recorded. */
  readonly params: JsonObject;
  /** Default `medium`. An unknown one is treated as `high`. */
  readonly riskTier?: string | undefined;
  /** The most that it may cost, by CGF's names: `tokens`, `latency_ms`, `bytes`, others. It is reserved. */
  readonly estimatedCost?: Readonly<Record<string, number>> | undefined;
  readonly contextRefs?: readonly string[] | undefined;
  /** 0 to 100. */
  readonly priority?: number | undefined;
  /** The host's own id, 1 to 128 characters without spaces. One that was decided on before does not run again. Default: a new one. */
  readonly proposalId?: string | undefined;
  readonly context?: JsonObject | undefined;
  readonly capacitySignals?: JsonObject | undefined;
}

export interface AllowedAction {
  /** The parameters that may run: those proposed, or as constrained. */
  readonly params: JsonObject;
  readonly proposalId: string;
  /** Undefined in a fail mode. */
  readonly decision: LiveDecision | undefined;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;
  readonly signal: AbortSignal | undefined;
  /** States more of the outcome; the last of each counts. */
  readonly report: (outcome: ActionOutcome) => void;
}

/** What a function may state of its outcome. */
export interface ActionOutcome {
  /** By CGF's names, as `estimatedCost`. */
  readonly actualCost?: Readonly<Record<string, number>> | undefined;
  readonly sideEffects?: readonly string[] | undefined;
  /** Sent to the server, at most 200 characters. */
  readonly summary?: string | undefined;
  /** Any JSON, or bytes; its digest is recorded. */
  readonly output?: unknown;
  /** Of a memory write. Default false. */
  readonly committed?: boolean | undefined;
  readonly quarantined?: boolean | undefined;
}

export interface CgfGuardOptions extends WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The action does not run: it is blocked, or deferred. `code` is that of the recorded decision. */
export class CgfDeniedError extends NorthrootError {
  readonly act: 'block' | 'defer';
  readonly proposalId: string;
  /** The server's; undefined where it made none. */
  readonly decisionId: string | undefined;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;

  constructor(
    verdict: Pick<Verdict, 'act' | 'code' | 'justification'>,
    of: {
      readonly proposalId: string;
      readonly decisionId: string | undefined;
      readonly authorization: string;
    },
  ) {
    const act = verdict.act === 'defer' ? 'defer' : 'block';
    const word = act === 'defer' ? 'deferred' : 'blocked';
    const why = printable(verdict.justification, MAX_JUSTIFICATION);
    super(verdict.code, `the action was ${word}${why === '' ? '' : `: ${why}`}`, {
      hint: 'the recorded decision says why',
    });
    this.name = 'CgfDeniedError';
    this.act = act;
    this.proposalId = of.proposalId;
    this.decisionId = of.decisionId;
    this.authorization = of.authorization;
  }
}

/**
 * The policy of a ledger that an adapter may use without grants: where it has none, CGF's decisions are only recorded; where it has one,
 * its grants decide last. For `policy` of a ledger's options.
 */
export function grantsWhereAny(options: HonourOptions = {}): (state: VerifyState) => PolicyEvaluator {
  return (state) => new OptionalGrantEvaluator(state, options);
}

const SYSTEM = 'cgf';
const SCHEMA_VERSION = '0.3.0';
const DEFAULT_TIMEOUT_MS = 500;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 5_000;
const DEFAULT_AUDIT_TIMEOUT_MS = 5_000;
const MAX_TABLE_BYTES = 64 * 1024;
const MAX_JUSTIFICATION = 200;
const MAX_SUMMARY = 200;
/** Ids of decisions that are remembered, to see one that is given out twice. */
const MAX_DECISION_IDS = 10_000;
/** Rules that are recorded as checks: a gate takes 8 checks in all. */
const MAX_RULE_CHECKS = 4;
const MILLISECONDS = 1_000;
const PROPOSAL_ID = /^[\x21-\x7e]{1,128}$/;
const TABLE_FILE = 'fail-modes.json';
const RETRY_REGISTRATION_MS = 5_000;
const DEFAULT_REGISTRATION_SECONDS = 3_600;
const MAX_REGISTRATION_SECONDS = 86_400;

const OPTION_TYPES: OptionTypes<CgfAdapterOptions> = {
  endpoint: 'string',
  token: 'string',
  gate: 'object',
  ledger: 'object',
  hostConfig: 'object',
  adapterType: 'string',
  principal: 'string',
  timeoutMs: 'number',
  failModes: 'array',
  circuit: 'object',
  constraints: 'object',
  audit: 'function',
  auditTimeoutMs: 'number',
  folder: 'string',
  events: ['string', 'function'],
  vocabulary: 'string',
  onProblem: 'function',
};

const ACTION_OPTIONS: OptionTypes<CgfAction> = {
  actionType: 'string',
  params: 'object',
  riskTier: 'string',
  estimatedCost: 'object',
  contextRefs: 'array',
  priority: 'number',
  proposalId: 'string',
  context: 'object',
  capacitySignals: 'object',
};

interface Registration {
  readonly adapterId: string;
  /** By a monotonic clock, in milliseconds. */
  readonly until: number;
}

/** A proposal that is being decided. */
interface Observed extends Proposal {
  readonly action: CgfAction;
  readonly params: JsonObject;
  readonly body: JsonObject;
  readonly context: JsonObject;
  readonly signals: JsonObject;
  readonly source: SourceObject;
  readonly tool: string;
}

interface Enforced {
  readonly verdict: Verdict;
  readonly params: JsonObject;
  /** What the recorded digest of the parameters is of. */
  readonly recorded: JsonValue;
}

interface Decided {
  readonly verdict: Verdict;
  readonly decision: GateDecision;
  readonly params: JsonObject;
}

/** A HostAdapter; see the head of this file. */
export class CgfAdapter {
  readonly gate: Gate;
  readonly #options: CgfAdapterOptions;
  readonly #exchange: CgfExchange;
  readonly #events: EventLog;
  readonly #teller: Teller;
  readonly #own: FailModes | undefined;
  readonly #folder: string | undefined;
  readonly #principal: string;
  readonly #decisionIds = new Map<string, string>();
  readonly #localId = `adp-${encodeHex(randomBytes(6))}`;
  #modes: FailModes | undefined;
  #registration: Registration | undefined;
  #registering: Promise<void> | undefined;
  #kept: Promise<void> | undefined;
  #outbox: Promise<Outbox | undefined> | undefined;
  readonly #queued = new Set<Promise<void>>();
  /** When to try to register again, by a monotonic clock. */
  #nextTry = 0;

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(options: CgfAdapterOptions) {
    checkOptions('CgfAdapter', options, OPTION_TYPES);
    const { gate, ledger, timeoutMs = DEFAULT_TIMEOUT_MS, failModes, vocabulary = 'ratified' } = options;
    if ((gate === undefined) === (ledger === undefined))
      throw new TypeError('CgfAdapter: expected either gate or ledger');
    if (!(timeoutMs >= MIN_TIMEOUT_MS && timeoutMs <= MAX_TIMEOUT_MS))
      throw new RangeError(`CgfAdapter: timeoutMs: expected ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`);
    if (vocabulary !== 'ratified' && vocabulary !== 'draft')
      throw new RangeError("CgfAdapter: vocabulary: expected 'ratified' or 'draft'");
    if (typeof (options.hostConfig as Partial<CgfHostConfig>).hostType !== 'string')
      throw new TypeError('CgfAdapter: hostConfig: expected a hostType');
    const endpoint = endpointOf('CgfAdapter: endpoint', options.endpoint);
    this.gate = gate ?? new Gate(ledger as LiveLedger);
    this.#options = options;
    this.#own = failModes === undefined ? undefined : FailModes.of(failModes);
    this.#exchange = new CgfExchange({ endpoint, token: options.token, timeoutMs, circuit: options.circuit });
    const context = { endpoint: endpoint.href, timeoutMs };
    this.#teller = vocabulary === 'draft' ? draftTeller(context) : ratifiedTeller(context);
    this.#events = new EventLog(options.events, vocabulary, (error) => this.#tellProblem(error));
    const live = this.gate.ledger;
    this.#folder = options.folder ?? (live.isInFiles ? `${live.path}.cgf` : undefined);
    this.#principal =
      options.principal ?? live.principalId ?? principalOf('service', SYSTEM, options.hostConfig.hostType);
  }

  /** The id that the server gave; before it did, one that is made up. */
  get adapterId(): string {
    return this.#registration?.adapterId ?? this.#localId;
  }

  /** `open`: the server did not answer, and is not asked for a while. */
  get circuit(): 'closed' | 'open' | 'half_open' {
    return this.#exchange.circuit;
  }

  /**
   * Registers with the server and goes on with outcomes that were left unreported. Done before the first action by itself.
   * @returns whether the server has registered it
   */
  async connect(): Promise<boolean> {
    this.#outbox ??= this.#openOutbox();
    await this.#keepRegistered();
    await this.#outbox;
    return this.#registration !== undefined;
  }

  /**
   * Guards an action: the server is asked, the gate records and decides, and only then the function runs. What it did is recorded, and
   * reported in the background.
   * @param run - Receives the parameters that may run
   * @throws CgfDeniedError: it is blocked or deferred, and did not run
   * @throws what the function threw; UnsettledCallError with its result
   * @throws NorthrootError `REQUEST_CONFLICT`, `LEDGER_INVALID` and as `Gate.decide`; TypeError, RangeError. Nothing ran then.
   */
  async guard<T>(
    action: CgfAction,
    run: (allowed: AllowedAction) => T | PromiseLike<T>,
    options: CgfGuardOptions = {},
  ): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (typeof run !== 'function') throw new TypeError('guard: expected a function to run');
    checkOptions('guard', action, ACTION_OPTIONS);
    this.#outbox ??= this.#openOutbox();
    await this.#keepRegistered();
    const observed = this.#observe(action);
    this.#tell(observed, this.#teller.proposed(observed));
    let decided: Decided;
    try {
      const enforced = await this.#enforce(observed, signal);
      signal?.throwIfAborted();
      decided = await this.#decide(observed, enforced, options);
    } catch (error) {
      this.#tell(observed, this.#teller.withdrawn(observed));
      throw error;
    }
    const { verdict, decision } = decided;
    this.#tell(observed, this.#teller.settled(observed, verdict), verdict.decisionId);
    if (verdict.act !== 'run')
      throw new CgfDeniedError(verdict, {
        proposalId: observed.id,
        decisionId: 'decision' in verdict ? verdict.decision?.id : undefined,
        authorization: decision.authorization,
      });
    return this.#run(observed, decided, run, signal);
  }

  /** Tells an event of the vocabulary that the adapter does not see by itself, such as `capacity_exceeded`. */
  emit(type: string, payload: JsonObject, proposalId?: string): void {
    this.#events.add(this.adapterId, [[type, payload]], proposalId);
  }

  /** Reports outcomes and writes events that wait. @returns how many outcomes could not be reported yet */
  async flush(): Promise<number> {
    await Promise.all(this.#queued);
    await this.#events.flush();
    const outbox = await this.#outbox;
    return (await outbox?.flush()) ?? 0;
  }

  /** Says that it leaves, and ends what it does in the background. Outcomes that wait are kept; the gate stays open. */
  async close(reason = 'closed'): Promise<void> {
    await this.#registering;
    await Promise.all(this.#queued);
    if (this.#registration !== undefined)
      this.emit('adapter_disconnected', { adapter_id: this.adapterId, reason });
    await this.#events.close();
    const outbox = await this.#outbox;
    await outbox?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #tell(proposal: Proposal, told: Parameters<EventLog['add']>[1], decisionId?: string): void {
    this.#events.add(proposal.adapterId, told, proposal.id, decisionId);
  }

  #tellProblem(error: unknown): void {
    const { onProblem } = this.#options;
    if (onProblem !== undefined) queueMicrotask(() => onProblem(error));
    else
      process.emitWarning(error instanceof Error ? error.message : String(error), { code: 'NORTHROOT_CGF' });
  }

  /** The proposal as it is sent. */
  #observe(action: CgfAction): Observed {
    const { actionType, riskTier = 'medium', contextRefs = [], priority, proposalId } = action;
    const context = plainObject('context', action.context ?? {});
    const signals = plainObject('capacitySignals', action.capacitySignals ?? {});
    if (!ACTION_TYPES.includes(actionType))
      throw new RangeError(`guard: actionType: expected ${ACTION_TYPES.join(', ')}`);
    if (proposalId !== undefined && !PROPOSAL_ID.test(proposalId))
      throw new RangeError('guard: proposalId: expected 1 to 128 characters of visible ASCII');
    if (priority !== undefined && !(priority >= 0 && priority <= 100))
      throw new RangeError('guard: priority: expected 0 to 100');
    const costs = amountsOf('estimatedCost', action.estimatedCost ?? {});
    // What is sent is what the digest is of.
    const params = plainObject('params', action.params);
    const id = proposalId ?? `prop-${randomUUID()}`;
    const body: JsonObject = {
      schema_version: SCHEMA_VERSION,
      proposal_id: id,
      timestamp: Date.now() / MILLISECONDS,
      action_type: actionType,
      action_params: params,
      context_refs: [...contextRefs],
      estimated_cost: costs,
      risk_tier: RISK_TIERS.includes(riskTier) ? riskTier : 'high',
      ...(priority === undefined ? {} : { priority }),
    };
    const source = sourceOf(body);
    const named = params['tool_name'] ?? params['tool'];
    const toolName = typeof named === 'string' && named !== '' ? named : undefined;
    const hash = pythonSha256(sourceOf(params), 'py-json-sorted-spaced-ascii').slice(0, 16);
    return {
      ...{ id, adapterId: this.adapterId, actionType, riskTier: body['risk_tier'] as string, toolName },
      ...{
        paramsHash: hash,
        action,
        params,
        body,
        context,
        signals,
        source,
        tool: toolOf(toolName ?? `cgf.${actionType}`),
      },
    };
  }

  /** Asks the server, and applies what it says. */
  async #enforce(observed: Observed, signal: AbortSignal | undefined): Promise<Enforced> {
    const { adapterId, body, params, context, signals } = observed;
    const answer = await this.#exchange.evaluate(
      {
        schema_version: SCHEMA_VERSION,
        ...(this.#registration === undefined ? {} : { adapter_id: adapterId }),
        host_config: this.#hostConfig(),
        proposal: body,
        ...{ context, capacity_signals: signals },
      },
      signal,
    );
    if (answer.kind === 'none')
      return { verdict: this.#failMode(observed, answer.why), params, recorded: params };
    // It may have expired there.
    if (answer.kind === 'refused' && answer.status === 401) this.#registration = undefined;
    const read = answer.kind === 'refused' ? answer.code : this.#readDecision(answer.body, observed.id);
    if (typeof read === 'string') {
      const verdict: Verdict = {
        ...{ by: 'answer', fault: read, act: 'block', code: 'CGF_INVALID_RESPONSE' },
        decisionId: madeUpId('fallback'),
        justification: `the server's answer is no decision: ${read}`,
      };
      return { verdict, params, recorded: params };
    }
    return this.#apply(observed, read);
  }

  /** A decision that was not given out before, about another proposal. */
  #readDecision(body: SourceObject, proposalId: string): LiveDecision | string {
    const read = readDecision(body, proposalId);
    if (typeof read === 'string') return read;
    const known = this.#decisionIds.get(read.id);
    if (known !== undefined && known !== proposalId) return 'DECISION_REUSED';
    this.#decisionIds.set(read.id, proposalId);
    const [oldest] = this.#decisionIds.keys();
    if (this.#decisionIds.size > MAX_DECISION_IDS && oldest !== undefined) this.#decisionIds.delete(oldest);
    return read;
  }

  async #apply(observed: Observed, decision: LiveDecision): Promise<Enforced> {
    const { params, riskTier } = observed;
    const of = { decision, decisionId: decision.id, justification: decision.justification } as const;
    const code =
      decision.reasonCode === undefined
        ? `CGF_${decision.decision}`
        : foreignCode('CGF', decision.reasonCode);
    const by = (act: Act): Enforced => ({
      verdict: { by: 'decision', act, code, ...of },
      params,
      recorded: params,
    });
    switch (decision.decision) {
      case 'ALLOW':
        return by('run');
      case 'BLOCK':
        return by('block');
      case 'DEFER':
        return by('defer');
      case 'CONSTRAIN': {
        const constrained = this.#constrain(observed, decision);
        if (constrained !== undefined) return { ...by('run'), ...constrained };
        const justification = 'the constraint cannot be applied';
        const verdict: Verdict = {
          by: 'constraint',
          act: 'block',
          code: 'CONSTRAINT_FAILED',
          ...of,
          justification,
        };
        return { verdict, params, recorded: params };
      }
      case 'AUDIT': {
        if (await this.#audit(observed, decision)) return by('run');
        const act = riskTier === 'high' ? 'block' : 'defer';
        const justification = 'the audit could not be held';
        const verdict: Verdict = { by: 'audit', act, code: 'CGF_AUDIT_FAILED', ...of, justification };
        return { verdict, params, recorded: params };
      }
    }
  }

  /** The parameters that may run under a constraint; undefined where it cannot be applied, whole. */
  #constrain(
    { params, toolName }: Observed,
    { constraint }: LiveDecision,
  ): Pick<Enforced, 'params' | 'recorded'> | undefined {
    if (constraint === undefined) return undefined;
    const { type, modified, disallowed, allowedTools } = constraint;
    if (allowedTools !== undefined && (toolName === undefined || !allowedTools.includes(toolName)))
      return undefined;
    try {
      if (modified !== undefined) {
        const plain = plainJson(modified.without(...disallowed));
        // A constraint changes how a tool is called, never which.
        const isSame =
          isJsonObject(plain) && ['tool_name', 'tool'].every((name) => plain[name] === params[name]);
        return isSame ? { params: plain, recorded: plain } : undefined;
      }
      const { constraints = {} } = this.#options;
      const handler = type !== undefined && Object.hasOwn(constraints, type) ? constraints[type] : undefined;
      const given = constraint.params === undefined ? {} : plainJson(constraint.params);
      if (handler === undefined || type === undefined || !isJsonObject(given)) return undefined;
      const made = handler(structuredClone(params), structuredClone(given));
      if (made === undefined) return undefined;
      // As CGF's records name it: what was proposed, and what it is bound by.
      const bound = { type, params: constraint.params === undefined ? null : given };
      return {
        params: plainObject('constraint', made),
        recorded: { action_params: params, constraint: bound },
      };
    } catch (error) {
      this.#tellProblem(error);
      return undefined;
    }
  }

  async #audit(observed: Observed, { id, auditLevel = 'basic', auditHooks }: LiveDecision): Promise<boolean> {
    const { audit, auditTimeoutMs = DEFAULT_AUDIT_TIMEOUT_MS } = this.#options;
    if (audit === undefined) return auditLevel === 'basic' && auditHooks.length === 0;
    const { actionType, riskTier, params } = observed;
    let timer: NodeJS.Timeout | undefined;
    try {
      const held = audit({
        ...{
          proposalId: observed.id,
          decisionId: id,
          actionType,
          riskTier,
          level: auditLevel,
          hooks: auditHooks,
        },
        params: structuredClone(params),
      });
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('the audit is late')), auditTimeoutMs);
      });
      await Promise.race([held, late]);
      return true;
    } catch (error) {
      this.#tellProblem(error);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  #failMode({ actionType, action, riskTier }: Observed, why: NoAnswer): Verdict {
    const isKnown = action.riskTier === undefined || RISK_TIERS.includes(action.riskTier);
    const mode = isKnown ? this.#table(actionType, riskTier).modeOf(actionType, riskTier) : 'fail_closed';
    const code = { fail_open: 'CGF_FAIL_OPEN', fail_closed: 'CGF_FAIL_CLOSED', defer: 'CGF_FAIL_DEFER' }[
      mode
    ];
    const justification = `the server gave no decision: ${why}`;
    return {
      by: 'fail_mode',
      act: ACTS[mode],
      mode,
      why,
      code,
      decisionId: madeUpId('failmode'),
      justification,
    };
  }

  /** The table that speaks of a pair: the operator's, the server's last, the defaults. */
  #table(actionType: string, riskTier: string): FailModes {
    const own = this.#own;
    if (own?.has(actionType, riskTier) === true) return own;
    return this.#modes ?? FailModes.defaults;
  }

  /** The gate records it, and has the last word. */
  async #decide(
    observed: Observed,
    { verdict, params, recorded }: Enforced,
    options: CgfGuardOptions,
  ): Promise<Decided> {
    const { actionType, body, source, tool, riskTier } = observed;
    const isAllowed = verdict.act === 'run';
    const decision = await this.gate.decide(
      {
        ...{ ref: observed.id, principal: this.#principal, tool, params: recorded },
        reserve: Object.fromEntries(estimateOf(source).map(({ unit, amount }) => [unit, amount])),
        intent: {
          ...{ action_type: actionType, action_params: observed.params, context_refs: body['context_refs'] },
          risk_tier: riskTier,
        },
        found: {
          checks: checksOf(verdict),
          code: verdict.code,
          ...this.#policyOf(verdict, observed),
          ...(isAllowed ? {} : { denial: { code: verdict.code, reason: verdict.justification } }),
        },
      },
      options,
    );
    const decided = {
      decision,
      params: decision.effect === 'rewrite' ? plainObject('params', decision.params) : params,
    };
    if (!isAllowed) return { ...decided, verdict };
    const byLedger = (act: Act, code: string, justification: string): Verdict => ({
      ...{ by: 'ledger', act, code, justification, decisionId: verdict.decisionId },
      ...('decision' in verdict ? { decision: verdict.decision } : {}),
      ...('why' in verdict ? { why: verdict.why } : {}),
    });
    const { effect, code, reason, isRepeated } = decision;
    if (effect === 'deny' || effect === 'ask')
      return { ...decided, verdict: byLedger(effect === 'ask' ? 'defer' : 'block', code, reason ?? code) };
    // It runs, or has run: who asks again does not know, and must not run it twice.
    if (isRepeated)
      return {
        ...decided,
        verdict: byLedger('block', 'AUTHORIZATION_REUSED', 'the proposal was decided before'),
      };
    if (effect === 'rewrite' && recorded !== observed.params) {
      await this.gate.release({ ref: observed.id, principal: this.#principal });
      return {
        ...decided,
        verdict: byLedger('block', 'CONSTRAINT_FAILED', 'a policy rewrites what is constrained'),
      };
    }
    return { ...decided, verdict };
  }

  #policyOf(verdict: Verdict, { actionType, riskTier }: Observed) {
    if (verdict.by === 'fail_mode')
      return { policyId: 'cgf:fail_mode_table', policyDigest: this.#table(actionType, riskTier).digest };
    const version = 'decision' in verdict ? verdict.decision?.policyVersion : undefined;
    const policyId = version === undefined ? 'cgf:not-stated' : factText(`cgf:${version}`);
    return { policyId, policyDigest: notStated(SYSTEM, 'policy') };
  }

  async #run<T>(
    observed: Observed,
    { verdict, decision, params }: Decided,
    run: (allowed: AllowedAction) => T | PromiseLike<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    let said: ActionOutcome = {};
    const executedAt = Date.now() / MILLISECONDS;
    const allowed: AllowedAction = {
      ...{ params, proposalId: observed.id, authorization: decision.authorization, signal },
      decision: 'decision' in verdict ? verdict.decision : undefined,
      report: (outcome) => {
        said = { ...said, ...outcome };
      },
    };
    const ran = await runDecided(
      this.gate,
      { ref: observed.id, principal: this.#principal },
      () => run(allowed),
      () => {
        const { output, actualCost } = said;
        return { output, used: usedOf(actualCost) };
      },
      signal,
    );
    this.#report(observed, verdict, ran, said, executedAt);
    if (ran.result.kind === 'threw') throw ran.result.error;
    return ran.result.value as T;
  }

  /** Told in events, and queued for the server. Nobody waits for it. */
  #report(observed: Observed, verdict: Verdict, ran: RanCall, said: ActionOutcome, executedAt: number): void {
    const { summary, committed = false, quarantined = false, sideEffects = [] } = said;
    const actualCost = costsOf(said.actualCost);
    const body: JsonObject = {
      ...{ schema_version: SCHEMA_VERSION, adapter_id: observed.adapterId, proposal_id: observed.id },
      ...{ decision_id: verdict.decisionId, executed: true, executed_at: executedAt },
      ...{ duration_ms: ran.durationMs, success: ran.outcome === 'success', committed, quarantined },
      errors: ran.errorCode === undefined ? [] : [ran.errorCode],
      ...(summary === undefined ? {} : { result_summary: factText(summary, MAX_SUMMARY) }),
      ...(actualCost === undefined ? {} : { actual_cost: actualCost }),
      ...(sideEffects.length === 0 ? {} : { side_effects: [...sideEffects] }),
    };
    const outcomeHash = encodeHex(sha256(canonicalBytesWithout(body)));
    const ended = { ran, actualCost, sideEffects, outcomeHash };
    // What the server did not decide it cannot relate an outcome to.
    const queued = verdict.by === 'fail_mode' ? Promise.resolve() : this.#queue(body);
    this.#tell(observed, this.#teller.done(observed, verdict, ended), verdict.decisionId);
    this.#queued.add(queued);
    void queued.finally(() => this.#queued.delete(queued));
  }

  async #queue(body: JsonObject): Promise<void> {
    try {
      const outbox = await this.#outbox;
      if (outbox === undefined) throw new NorthrootError('OUTBOX_FULL', 'there is no outbox');
      await outbox.put('outcome', body);
    } catch (error) {
      this.#tellProblem(error);
      this.#tellLoss(body);
    }
  }

  #tellLoss({ proposal_id: id, adapter_id: adapterId }: JsonObject): void {
    const proposal_id = typeof id === 'string' ? id : '';
    const told = { proposal_id, error_type: 'OUTCOME_LOSS', message: 'the outcome was not reported' };
    this.#events.add(
      typeof adapterId === 'string' ? adapterId : this.adapterId,
      [['errors', told]],
      proposal_id,
    );
  }

  /** Undefined where there can be none: outcomes are then lost, and calls go on. */
  async #openOutbox(): Promise<Outbox | undefined> {
    try {
      if (this.#folder === undefined)
        throw new TypeError('CgfAdapter: folder: expected one for a ledger in a store');
      return await Outbox.open(join(this.#folder, 'outbox'), {
        send: (_, body) => this.#exchange.report(body),
        onRefused: (_, body) => {
          this.#tellProblem(
            new NorthrootError('OUTCOME_REFUSED', 'the server refused a report of an outcome'),
          );
          if (body !== undefined) this.#tellLoss(body);
        },
      });
    } catch (error) {
      this.#tellProblem(error);
      return undefined;
    }
  }

  async #keepRegistered(): Promise<void> {
    this.#kept ??= this.#readTable();
    await this.#kept;
    const now = performance.now();
    if (now < (this.#registration?.until ?? this.#nextTry)) return;
    this.#registering ??= this.#register().finally(() => {
      this.#registering = undefined;
      this.#nextTry = performance.now() + RETRY_REGISTRATION_MS;
    });
    await this.#registering;
  }

  async #register(): Promise<void> {
    const { adapterType, hostConfig } = this.#options;
    const config = this.#hostConfig();
    const tiers = RISK_TIERS.map((tier) => [tier, this.#table('tool_call', tier).modeOf('tool_call', tier)]);
    const answer = await this.#exchange.register({
      ...{ schema_version: SCHEMA_VERSION, adapter_type: adapterType ?? hostConfig.hostType },
      ...{ host_config: config, features: [], risk_tiers: Object.fromEntries(tiers) as JsonObject },
      timestamp: Date.now() / MILLISECONDS,
    });
    if (answer.kind !== 'answered') {
      if (answer.kind === 'refused')
        this.#tellProblem(
          new NorthrootError('CGF_REFUSED', `the server does not register it: ${answer.code}`),
        );
      this.#registration = undefined;
      return;
    }
    const { body } = answer;
    const adapterId = textAt(body, 'adapter_id');
    if (adapterId === undefined || !PROPOSAL_ID.test(adapterId)) {
      this.#tellProblem(
        new NorthrootError('CGF_REFUSED', 'the answer to the registration has no adapter_id'),
      );
      return;
    }
    const lasts = Number(numberAt(body, 'expires_at')) - Number(numberAt(body, 'registered_at'));
    const seconds = lasts > 0 ? Math.min(lasts, MAX_REGISTRATION_SECONDS) : DEFAULT_REGISTRATION_SECONDS;
    // Renewed before it expires there.
    this.#registration = { adapterId, until: performance.now() + seconds * 900 };
    const { hostType, version = '0.0.0' } = hostConfig;
    this.emit('adapter_registered', { adapter_id: adapterId, host_type: hostType, version });
    const table = valueAt(body, 'fail_mode_table');
    if (table === undefined || table === null) return;
    const modes = FailModes.read(table);
    if (modes === undefined)
      this.#tellProblem(new NorthrootError('CGF_REFUSED', "the server's table of fail modes is malformed"));
    else await this.#keepTable(modes);
  }

  /** A program that starts while the server is away goes by the last table. */
  async #keepTable(modes: FailModes): Promise<void> {
    const isNew = this.#modes?.digest.b64 !== modes.digest.b64;
    this.#modes = modes;
    if (!isNew || this.#folder === undefined) return;
    try {
      await nodeFileSystem.makeFolder(this.#folder, 0o700);
      const bytes = encodeUtf8(`${JSON.stringify(modes.rows)}\n`);
      await replaceFile(join(this.#folder, TABLE_FILE), bytes, { permissions: 0o600 });
    } catch (error) {
      this.#tellProblem(error);
    }
  }

  async #readTable(): Promise<void> {
    if (this.#folder === undefined) return;
    const path = join(this.#folder, TABLE_FILE);
    try {
      if ((await nodeFileSystem.kindOf(path)) === 'missing') return;
      const decoded = decodeSourceJson(await readSmallFile(path, MAX_TABLE_BYTES));
      this.#modes = decoded.ok ? FailModes.read(decoded.value) : undefined;
      if (this.#modes === undefined)
        throw new NorthrootError('CGF_REFUSED', 'the kept table of fail modes is broken');
    } catch (error) {
      this.#tellProblem(error);
    }
  }

  #hostConfig(): JsonObject {
    const {
      hostType,
      namespace = 'default',
      capabilities = [],
      version = '0.0.0',
    } = this.#options.hostConfig;
    return { host_type: hostType, namespace, capabilities: [...capabilities], version };
  }
}

/** What is recorded of it, as an import of CGF's files names it. */
function checksOf(verdict: Verdict): PolicyCheck[] {
  const result = verdict.act === 'run' ? 'pass' : 'fail';
  switch (verdict.by) {
    case 'fail_mode':
      return [{ check: 'cgf.fail_mode', result, code: codeOf(verdict.mode) }];
    case 'answer':
      return [{ check: 'cgf.answer', result, code: codeOf(verdict.fault) }];
    case 'ledger':
      return [];
    case 'decision':
    case 'constraint':
    case 'audit': {
      const { decision, rules, auditLevel, constraint } = verdict.decision;
      // What the server said, and then what could not be done of it.
      const said = verdict.by === 'decision' ? result : 'pass';
      const checks: PolicyCheck[] = [{ check: 'cgf.decision', result: said, code: decision }];
      for (const rule of rules.slice(0, MAX_RULE_CHECKS))
        checks.push({ check: 'cgf.rule', result: said, code: codeOf(rule) });
      if (decision === 'AUDIT') checks.push({ check: 'cgf.audit', result, ...codeIn(auditLevel) });
      if (decision === 'CONSTRAIN')
        checks.push({ check: 'cgf.constraint', result, ...codeIn(constraint?.type) });
      return checks;
    }
  }
}

function codeIn(name: string | undefined): { readonly code?: string } {
  return name === undefined ? {} : { code: codeOf(name) };
}

/** @throws RangeError for what is no amount */
function amountsOf(name: string, amounts: Readonly<Record<string, number>>): JsonObject {
  for (const [unit, amount] of Object.entries(amounts))
    if (!(Number.isFinite(amount) && amount >= 0))
      throw new RangeError(`${name}: ${printable(unit, 64)}: expected a number, at least 0`);
  return { ...amounts };
}

/** What a function states of its costs; nothing where it is none, for what it did must be recorded all the same. */
function costsOf(stated: ActionOutcome['actualCost']): JsonObject | undefined {
  if (stated === undefined) return undefined;
  const costs = Object.entries(stated).filter(([, amount]) => Number.isFinite(amount) && amount >= 0);
  return Object.fromEntries(costs);
}

function usedOf(stated: ActionOutcome['actualCost']): AmountsByUnit | undefined {
  const costs = costsOf(stated);
  if (costs === undefined) return undefined;
  const used = costOf(sourceOf({ actual_cost: costs }));
  // How long it took is measured.
  return Object.fromEntries(used.flatMap(({ unit, amount }) => (unit === 'time.ms' ? [] : [[unit, amount]])));
}

/** A copy that is plain JSON, without undefined members. @throws TypeError for anything else */
function plainObject(name: string, value: unknown): JsonObject {
  if (!isJsonObject(value)) throw new TypeError(`${name}: expected an object`);
  return JSON.parse(decodeUtf8(canonicalBytesWithout(value))) as JsonObject;
}

function sourceOf(value: JsonObject): SourceObject {
  const decoded = decodeSourceJson(encodeUtf8(JSON.stringify(value)));
  if (!decoded.ok || !(decoded.value instanceof SourceObject)) throw new TypeError('expected plain JSON');
  return decoded.value;
}
