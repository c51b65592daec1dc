/** Decides and reports for the host's hooks. What is said never has parameters, results or errors of tools in it. */

import { setTimeout as sleep } from 'node:timers/promises';
import { addCall, findCall, removeCall, tableOfCalls } from './calls.js';
import { GateClient, GateError, unknownAnswer } from './gate-client.js';
import { outcomeOf } from './outcome.js';
import { agentOf, asJson, digestOf, printable, toolOf } from './values.js';

/** @typedef {import('./calls.js').Call} Call */
/** @typedef {{ info(text: string): void, warn(text: string): void, error(text: string): void }} Logger */
/** @typedef {{ params?: object, block?: true, blockReason?: string } | undefined} Verdict */

/** The least of what a hook is told that is used; all of it may be missing. */
/** @typedef {Readonly<Record<string, unknown>>} Told */

const DIGEST = /^sha-256:[A-Za-z0-9_-]{43}$/;
const CODE = /^[A-Z0-9_]{1,64}$/;
const SUBAGENT = /^agent:[^:]*:subagent:/;
/** A command may take long; what was begun is charged as unknown after that. */
const TTL_MS = 24 * 3_600_000;
/** How often an id may be used again. */
const MAX_SAME_ID = 8;
/** A report is repeated after these times, in milliseconds: the service may just start anew. */
const REPORT_PAUSES_MS = [0, 1_000, 5_000, 30_000, 120_000];
const REPORT_TIMEOUT_MS = 10_000;
/** How long the end of the host is held up. */
const DRAIN_MS = 3_000;
/** The most reports that wait; further ones are left to the service, which settles what was begun as unknown. */
const MAX_REPORTS = 1_000;

export class HostGate {
  #config;
  #log;
  #client;
  #table = tableOfCalls();

  /**
   * @param {import('./config.js').Config} config
   * @param {Logger} log
   */
  constructor(config, log) {
    this.#config = config;
    this.#log = log;
    this.#client = new GateClient(config);
  }

  /**
   * Answers before_tool_call.
   * @param {Told} event
   * @param {Told} [ctx]
   * @returns {Promise<Verdict>} Never rejects
   */
  async before(event, ctx) {
    try {
      const { fault } = this.#config;
      if (fault !== undefined) return block(`CONFIG_INVALID: ${fault}`);
      const call = this.#read(event, ctx ?? {});
      const known = call.key === undefined ? undefined : this.#table.named.get(call.key);
      // The host asks twice about one call: it is decided once.
      if (known?.answer !== undefined)
        return known.tool === call.tool && known.asked === call.asked
          ? await known.answer
          : block('REQUEST_CONFLICT: this id is that of another call, which has not ended');
      addCall(this.#table, call);
      const abort = ctx?.['abortSignal'];
      const signal = abort instanceof AbortSignal ? abort : undefined;
      const answer = this.#answer(call, signal);
      call.answer = answer;
      return await answer;
    } catch {
      // Messages of other errors may quote what was given.
      return block('INTERNAL_ERROR: the plugin failed');
    }
  }

  /**
   * Answers after_tool_call.
   * @param {Told} event
   * @param {Told} [ctx]
   * @returns {Promise<void>} Once the service knows, or at the first failure: it is told again. Never rejects
   */
  async after(event, ctx) {
    try {
      if (this.#config.fault !== undefined) return;
      const told = this.#read(event, ctx ?? {});
      const ran = told.asked;
      const call = findCall(this.#table, told, ran);
      const done = outcomeOf(event);
      if (call === undefined) {
        if (told.key !== undefined && this.#table.ended.has(told.key)) return;
        // No hook is asked about arguments that do not fit the tool.
        if (done.ran && !done.isError) await this.#endUnknown(told, done);
        return;
      }
      if (call.state === 'deciding') {
        // The host did not wait for the answer, and blocked it.
        call.hasEnded = true;
        await call.answer;
        return;
      }
      removeCall(this.#table, call);
      if (call.state === 'blocked') {
        if (done.ran && !done.isError) this.#log.error(`${nameOf(call)} ran although it was blocked`);
        return;
      }
      if (call.ref === undefined) return;
      const isSure = call.state === 'open';
      await this.#report(call, { ...bodyOf(done), ...this.#mismatchOf(call, done, ran) }, isSure);
    } catch {
      this.#log.error('northroot: INTERNAL_ERROR: the end of a call was not recorded');
    }
  }

  /** Waits a while for what is being told. */
  async drain() {
    await Promise.race([Promise.allSettled(this.#table.reports), sleep(DRAIN_MS, undefined, { ref: false })]);
  }

  /**
   * @param {Told} event
   * @param {Told} ctx
   * @returns {Call}
   */
  #read(event, ctx) {
    /** @param {string} name */
    const text = (name) =>
      [event[name], ctx[name]].find(
        (value) => typeof value === 'string' && value !== '' && value.length <= 2_048,
      );
    const [id, runId, session, key, agent] = [
      'toolCallId',
      'runId',
      'sessionId',
      'sessionKey',
      'agentId',
    ].map((name) => /** @type {string | undefined} */ (text(name)));
    const params = asJson(event['params'] ?? {});
    if (typeof params !== 'object' || params === null || Array.isArray(params))
      throw new TypeError('expected parameters');
    return {
      key: id === undefined ? undefined : JSON.stringify([runId ?? null, id]),
      id,
      runId,
      session: session ?? key ?? runId,
      principal: this.#principalOf(agent, key),
      tool: toolOf(typeof event['toolName'] === 'string' ? event['toolName'] : ''),
      params: /** @type {Record<string, unknown>} */ (params),
      asked: digestOf(params),
      authorized: undefined,
      ref: undefined,
      state: 'deciding',
      hasEnded: false,
      answer: undefined,
    };
  }

  /**
   * @param {string | undefined} agent
   * @param {string | undefined} sessionKey
   */
  #principalOf(agent, sessionKey) {
    const { principal, agents, subagents } = this.#config;
    const isSubagent = sessionKey !== undefined && SUBAGENT.test(sessionKey);
    const prefix = isSubagent ? (subagents ?? agents) : agents;
    const id = agent ?? /^agent:([^:]+):/.exec(sessionKey ?? '')?.[1];
    return prefix === undefined || id === undefined ? principal : `${prefix}${agentOf(id)}`;
  }

  /**
   * @param {Call} call
   * @param {AbortSignal | undefined} abort
   * @returns {Promise<Verdict>} Never rejects
   */
  async #answer(call, abort) {
    const { timeoutMs, waitMs, failsOpen, pin } = this.#config;
    const late = AbortSignal.timeout(timeoutMs + waitMs);
    const signal = abort === undefined ? late : AbortSignal.any([late, abort]);
    try {
      if (call.asked === undefined) throw new GateError('USAGE', 'the parameters have no canonical form');
      const decision = await this.#decide(call, signal);
      const { effect, ref } = decision;
      if (effect === 'deny' || effect === 'ask') return this.#block(call, reasonOf(decision));
      call.ref = ref;
      call.authorized = effect === 'rewrite' ? digestOf(decision.params) : call.asked;
      call.state = 'open';
      if (call.authorized === undefined || abort?.aborted === true || call.hasEnded) {
        this.#giveUp(call);
        return this.#block(call, 'ABORTED: the call was given up before it was allowed');
      }
      if (effect === 'rewrite') return { params: { ...without(call.params), ...decision.params } };
      return pin ? { params: call.params } : undefined;
    } catch (error) {
      const known = error instanceof GateError ? error : new GateError('INTERNAL_ERROR', 'the plugin failed');
      if (!known.mayHaveDecided) call.ref = undefined;
      if (failsOpen && !known.isRefusal && abort?.aborted !== true && !call.hasEnded) {
        call.state = 'unrecorded';
        this.#log.warn(
          `${nameOf(call)} runs without a record, as the plugin is to fail open: ${known.message}`,
        );
        return undefined;
      }
      this.#log.warn(`${nameOf(call)} is blocked: ${known.message}`);
      this.#giveUp(call);
      return this.#block(call, known.message);
    }
  }

  /**
   * Asks for a decision on this very call. An id that the ledger already has is that of an earlier call: models use ids again.
   * @param {Call} call
   * @param {AbortSignal} signal
   */
  async #decide(call, signal) {
    const { waitMs } = this.#config;
    const again = call.id === undefined || call.runId === undefined ? call.id : `${call.id}@${call.runId}`;
    for (let count = 0; ; count += 1) {
      const name = count === 0 ? call.id : count === 1 && again !== call.id ? again : `${again}+${count}`;
      const isLast = count === MAX_SAME_ID || call.id === undefined;
      call.ref = name;
      const body = {
        ...callOf(call),
        tool: call.tool,
        params: call.params,
        start: true,
        ttl_ms: TTL_MS,
        coverage: 'hook',
        ...(waitMs === 0 ? {} : { wait_ms: waitMs }),
      };
      try {
        const decision = readDecision(await this.#client.post('/v1/decide', body, signal));
        if (!decision.isRepeated) return decision;
        if (isLast) throw new GateError('REQUEST_CONFLICT', 'this call was decided before');
      } catch (error) {
        if (isLast || !(error instanceof GateError) || error.code !== 'REQUEST_CONFLICT') throw error;
      }
    }
  }

  /**
   * @param {Call} call
   * @param {string} why
   * @returns {Verdict}
   */
  #block(call, why) {
    call.state = 'blocked';
    if (call.hasEnded) removeCall(this.#table, call);
    return block(why);
  }

  /**
   * The digest of what ran, where that is not what was authorized.
   * @param {Call} call
   * @param {import('./outcome.js').Outcome} done
   * @param {string | undefined} ran
   * @returns {{ params_digest?: string }}
   */
  #mismatchOf(call, done, ran) {
    if (!done.ran || ran === undefined || call.state !== 'open' || ran === call.authorized) return {};
    // Of a call that never began, the host tells what the model asked for.
    if (done.isError && ran === call.asked) return {};
    this.#log.error(`${nameOf(call)} ran with other parameters than authorized: TOOL_PARAMS_MISMATCH`);
    return { params_digest: ran };
  }

  /**
   * A call that this process knows nothing of: the plugin was loaded, or the service was asked, before.
   * @param {Call} told
   * @param {import('./outcome.js').Outcome} done
   */
  async #endUnknown(told, done) {
    if (told.id === undefined) {
      this.#log.error(`${nameOf(told)} has ended, and which call it was is not known`);
      return;
    }
    await this.#report({ ...told, ref: told.id }, bodyOf(done), true, [0]);
  }

  /**
   * A call that does not run although it may have been allowed.
   * @param {Call} call
   */
  #giveUp(call) {
    if (call.ref === undefined) return;
    // It is told in the background: the host waits for no more than the answer.
    void this.#report({ ...call }, { outcome: 'failure', error_code: 'NOT_RUN' }, false);
  }

  /**
   * @param {Call} call
   * @param {object} body
   * @param {boolean} isSure - Whether the service has decided on it; else it is no fault that it does not know the call
   * @param {readonly number[]} [pauses]
   */
  async #report(call, body, isSure, pauses = REPORT_PAUSES_MS) {
    const { reports } = this.#table;
    if (reports.size >= MAX_REPORTS) {
      this.#log.error(`${nameOf(call)} is not recorded: too many reports wait`);
      return;
    }
    const target = { ...callOf(call), ...body };
    /** @type {() => void} */
    let tellOnce = () => {};
    const once = new Promise((/** @type {(value: void) => void} */ resolve) => (tellOnce = resolve));
    const report = this.#repeat(call, target, isSure, pauses, tellOnce).finally(() => {
      reports.delete(report);
      tellOnce();
    });
    reports.add(report);
    await once;
  }

  /**
   * @param {Call} call
   * @param {object} body
   * @param {boolean} isSure
   * @param {readonly number[]} pauses
   * @param {() => void} onTried - Called after each try
   */
  async #repeat(call, body, isSure, pauses, onTried) {
    let last = '';
    for (const pause of pauses) {
      if (pause > 0) await sleep(pause, undefined, { ref: false });
      try {
        await this.#client.post('/v1/settle', body, AbortSignal.timeout(REPORT_TIMEOUT_MS));
        return;
      } catch (error) {
        const known =
          error instanceof GateError ? error : new GateError('INTERNAL_ERROR', 'the plugin failed');
        last = known.message;
        // A decision that was on its way may come late.
        if (known.isRefusal && (isSure || known.code !== 'CALL_NOT_FOUND')) break;
      }
      onTried();
    }
    if (isSure) this.#log.error(`${nameOf(call)} has ended, which is not recorded: ${last}`);
  }
}

/**
 * @param {string} why
 * @returns {{ block: true, blockReason: string }}
 */
function block(why) {
  return { block: true, blockReason: `northroot: ${printable(why)}` };
}

/** @param {Call} call */
function callOf({ ref, session, principal }) {
  return {
    ...(ref === undefined ? {} : { ref }),
    ...(session === undefined ? {} : { session }),
    ...(principal === undefined ? {} : { principal }),
  };
}

/** @param {import('./outcome.js').Outcome} done */
function bodyOf({ outcome, errorCode, durationMs, outputDigest }) {
  return {
    outcome,
    ...(errorCode === undefined ? {} : { error_code: errorCode }),
    ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    ...(outputDigest === undefined ? {} : { output_digest: outputDigest }),
  };
}

/**
 * The host keeps members that a rewrite leaves out, unless they are undefined.
 * @param {Record<string, unknown>} params
 */
function without(params) {
  return Object.fromEntries(Object.keys(params).map((name) => [name, undefined]));
}

/** @param {Pick<Call, 'tool' | 'id'>} call */
function nameOf({ tool, id }) {
  return `northroot: ${tool}${id === undefined ? '' : ` ${printable(id, 80)}`}`;
}

/**
 * @typedef {object} Decision
 * @property {'allow' | 'deny' | 'ask' | 'rewrite'} effect
 * @property {string} code
 * @property {string | undefined} reason
 * @property {string} ref
 * @property {string} authorization
 * @property {boolean} isRepeated
 * @property {Record<string, unknown> | undefined} params
 * @property {string[]} approvers
 */

/**
 * Anything but a decision that is known counts as none.
 * @param {Record<string, any>} answer
 * @returns {Decision}
 * @throws {GateError} `SERVICE_FAILED`
 */
function readDecision(answer) {
  const { effect, code, reason, ref, authorization, is_repeated: isRepeated, params, need } = answer;
  const isSound =
    ['allow', 'deny', 'ask', 'rewrite'].includes(effect) &&
    typeof code === 'string' &&
    CODE.test(code) &&
    typeof ref === 'string' &&
    ref !== '' &&
    typeof authorization === 'string' &&
    DIGEST.test(authorization) &&
    typeof isRepeated === 'boolean' &&
    (effect !== 'rewrite' || (typeof params === 'object' && params !== null && !Array.isArray(params)));
  if (!isSound) throw unknownAnswer();
  const approvers = Array.isArray(need?.approvers) ? need.approvers : [];
  return {
    effect,
    code,
    reason: typeof reason === 'string' ? reason : undefined,
    ref,
    authorization,
    isRepeated,
    params: effect === 'rewrite' ? params : undefined,
    approvers: approvers.filter((/** @type {unknown} */ each) => typeof each === 'string').slice(0, 8),
  };
}

/**
 * What the agent is told.
 * @param {Decision} decision
 */
function reasonOf({ effect, code, reason, authorization, approvers }) {
  const why = printable(`${code}${reason === undefined ? '' : `: ${reason}`}`, 300);
  if (effect === 'deny') return why;
  const who = approvers.length === 0 ? 'somebody' : printable(approvers.join(', '), 120);
  return `${why}; ${who} can approve it: northroot approve LEDGER ${authorization}; then make the same call again`;
}
