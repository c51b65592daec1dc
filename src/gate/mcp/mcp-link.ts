/**
 * One connection between a client and a server of MCP, as `mcp-guard.ts` rules. Ids are unique in it, and those of the two directions are
 * two spaces. Only what was forwarded can be answered: a server cannot answer a call that was denied, or one that is being decided.
 */

import { printable } from '../../base/bytes/printable.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { CallOutcome, GateDecision } from '../gate.js';
import { isRefusal } from '../hook/desk.js';
import { refusalText } from '../sdk/shared.js';
import { makeSharedAbort } from '../shared-abort.js';
import {
  failureOf,
  type GuardedCall,
  isGuarded,
  MAX_DIGESTED_BYTES,
  outcomeOf,
  readAnswer,
  readCall,
  readTask,
  rewriteCall,
  taskOutcome,
} from './guarded-call.js';
import {
  errorMessage,
  isRpcId,
  isTwofold,
  keyOfId,
  keyOfText,
  memberOf,
  readFrame,
  RPC_DENIED,
  RPC_INTERNAL_ERROR,
  RPC_INVALID_PARAMS,
  RPC_INVALID_REQUEST,
  RPC_PARSE_ERROR,
  type RpcFrame,
  type RpcId,
  writeMessage,
} from './json-rpc.js';
import type { LongLine } from './line-frames.js';
import { codeOf, MAX_OPEN_CALLS, type McpCalls, type McpLoss, type OpenMcpCall } from './mcp-calls.js';

/** What to do with a message. `answer` goes back to who sent it. */
export type McpStep =
  | { readonly kind: 'forward'; readonly message: Uint8Array }
  | { readonly kind: 'answer'; readonly message: Uint8Array }
  | { readonly kind: 'drop' };

export interface McpHandling {
  /** A promise where something is decided or settled first. It never rejects. */
  readonly step: McpStep | Promise<McpStep>;
  /** Of a decision: resolves when it begins to wait for approvals, so that later requests may overtake it. */
  readonly waits?: Promise<void>;
  /** Whether it may overtake requests that are being decided: answers, notifications and pings may. */
  readonly overtakes: boolean;
}

/** A request of the client that the server has, or will have. */
type Sent =
  | { readonly kind: 'plain' }
  | { readonly kind: 'deciding'; readonly abort: AbortController }
  | { readonly kind: 'call'; readonly call: OpenMcpCall }
  /** Of the tools, whose answer is looked at. */
  | { readonly kind: 'list' }
  /** About a task: its state, or, in the legacy era, its result. */
  | { readonly kind: 'task'; readonly key: string; readonly isResult: boolean };

type Request = Extract<RpcFrame, { kind: 'request' }>;
type Response = Extract<RpcFrame, { kind: 'response' }>;

/** A call of a model that the client makes for a server, until it is settled. */
type Sampling = Pick<OpenMcpCall, 'ref' | 'tool'>;

/** The most requests whose answer is awaited, each way; of more the oldest that are no open calls are forgotten. */
const MAX_REQUESTS = 10_000;
/** The most calls of models that one result asks for. */
const MAX_SAMPLINGS = 16;
/** How long after it was cancelled a call may still be answered, in milliseconds. */
const CANCEL_GRACE_MS = 5_000;
/** How long an answer that waits to be recorded is held back, in milliseconds. */
const SETTLE_MS = 5_000;
/** Of the specification: the user rejected a request for sampling. */
const RPC_REJECTED = -1;

const DROP: McpStep = { kind: 'drop' };

/** See the head of this file. Messages are given whole, without what ends their line; steps come in any order. */
export class McpLink {
  readonly #calls: McpCalls;
  readonly #onClose: () => void;
  /** Of the client. */
  readonly #requests = new Map<string, Sent>();
  /** Of the server: guarded calls of models. */
  readonly #samplings = new Map<string, Sampling>();
  readonly #pending = new Set<Promise<McpStep>>();
  readonly #closing = makeSharedAbort();

  constructor(calls: McpCalls, onClose: () => void) {
    this.#calls = calls;
    this.#onClose = onClose;
  }

  fromClient(message: Uint8Array): McpHandling {
    if (this.#closing.signal.aborted) return { step: DROP, overtakes: true };
    const frame = readFrame(message);
    const pass = (): McpHandling => ({ step: { kind: 'forward', message }, overtakes: true });
    if (frame.kind === 'noise') return this.#pass('client', 'MCP_NOT_A_MESSAGE', pass());
    const refused = this.#refuseFrame(frame);
    if (refused !== undefined) return refused;
    switch (frame.kind) {
      case 'response':
        return this.#answered(frame, message);
      case 'notification':
        if (isGuarded(frame.method, this.#calls.subjects)) return this.#drop('client', 'MCP_NO_ID');
        return frame.method === 'notifications/cancelled' ? this.#cancelled(frame.value, message) : pass();
      case 'request':
        return this.#request(frame, message);
      default:
        return this.#drop('client', 'MCP_NOT_A_MESSAGE');
    }
  }

  fromServer(message: Uint8Array): McpHandling {
    if (this.#closing.signal.aborted) return { step: DROP, overtakes: true };
    const { hide = false, pin = false } = this.#calls.options;
    const isLookedAt = hide || pin || this.#calls.subjects.has('sampling');
    const frame = readFrame(message, !isLookedAt);
    const pass: McpHandling = { step: { kind: 'forward', message }, overtakes: true };
    if (frame.kind === 'noise') return this.#pass('server', 'MCP_NOT_A_MESSAGE', pass);
    if (frame.kind === 'batch') return this.#drop('server', 'MCP_BATCH');
    if (frame.kind === 'broken')
      return isLookedAt
        ? this.#drop('server', 'MCP_UNREADABLE')
        : this.#pass('server', 'MCP_UNREADABLE', pass);
    if (frame.kind === 'response') return this.#settled(frame, message);
    // What has two readings may be a request that is to be decided.
    if (frame.ambiguity !== undefined && isLookedAt) return this.#drop('server', 'MCP_AMBIGUOUS');
    if (frame.kind === 'other') return this.#pass('server', 'MCP_NOT_A_MESSAGE', pass);
    if (frame.kind === 'request') {
      const isSampling = frame.method === 'sampling/createMessage';
      return isSampling && this.#calls.subjects.has('sampling') ? this.#sample(frame, message) : pass;
    }
    const isTaskState =
      frame.method === 'notifications/tasks' || frame.method === 'notifications/tasks/status';
    if (!isTaskState) return pass;
    const state = memberOf(frame.value, 'params');
    if (this.#calls.subjects.has('sampling') && samplingsOf(state).length > 0)
      return this.#drop('server', 'MCP_SAMPLING_DENIED');
    return this.#taskTold(state, message);
  }

  /**
   * What to do with a message of the client that is too long to be read: it is never forwarded. A request of the server that it answers is
   * answered by an error; what came of a guarded call of a model is not known.
   */
  tooLongFromClient({ id, hasMethod }: LongLine): McpHandling {
    if (hasMethod || id === undefined)
      return this.#refuse(id ?? null, RPC_INVALID_REQUEST, 'MCP_TOO_LONG', 'the message is too long');
    const { step, overtakes } = this.#drop('client', 'MCP_TOO_LONG');
    if (this.#closing.signal.aborted) return { step, overtakes };
    const key = keyOfId(id);
    const sampling = this.#samplings.get(key);
    this.#samplings.delete(key);
    if (sampling === undefined) return { step: { kind: 'forward', message: answerTooLong(id) }, overtakes };
    return { ...this.#after(this.#calls.record(sampling, TOO_LONG), answerTooLong(id)), overtakes };
  }

  /**
   * Likewise of the server: what came of the call that it answers is not known. A request of its own has an id of its own, and is refused.
   */
  tooLongFromServer({ id, hasMethod }: LongLine): McpHandling {
    const dropped = this.#drop('server', 'MCP_TOO_LONG');
    if (id === undefined) return dropped;
    if (hasMethod) {
      const told = errorMessage(id, RPC_INVALID_REQUEST, 'MCP_TOO_LONG: the message is too long');
      return { step: { kind: 'answer', message: told }, overtakes: true };
    }
    const key = keyOfId(id);
    const sent = this.#requests.get(key);
    if (sent === undefined || sent.kind === 'deciding') return dropped;
    this.#requests.delete(key);
    const told = answerTooLong(id);
    if (sent.kind !== 'call') return { step: { kind: 'forward', message: told }, overtakes: true };
    return this.#after(this.#calls.settle(sent.call, TOO_LONG), told);
  }

  /** The connection has ended: what was forwarded and not answered is settled as unknown. Resolves when that is on disk. */
  async close(loss: McpLoss = 'MCP_CLOSED'): Promise<void> {
    this.#closing.abort(CLOSED);
    this.#onClose();
    const open: OpenMcpCall[] = [];
    for (const sent of this.#requests.values()) {
      if (sent.kind === 'deciding') sent.abort.abort(CLOSED);
      if (sent.kind === 'call') open.push(sent.call);
    }
    this.#requests.clear();
    const samplings = [...this.#samplings.values()];
    this.#samplings.clear();
    await Promise.all([
      ...this.#pending,
      ...open.map((call) => this.#calls.lose(call, loss)),
      ...samplings.map((each) => this.#calls.record(each, { outcome: 'unknown', errorCode: loss })),
    ]);
  }

  /** Whether the server may still answer a request of the client. */
  awaits(id: RpcId): boolean {
    return this.#requests.has(keyOfId(id));
  }

  /**
   * A request of the client gets no answer on this connection any more: a call is settled so, or is not made if it is being decided.
   * Nothing happens for one that is answered. Resolves when that is on disk.
   */
  async endRequest(id: RpcId, outcome: CallOutcome): Promise<void> {
    const key = keyOfId(id);
    const sent = this.#requests.get(key);
    if (sent?.kind === 'deciding') sent.abort.abort(CANCELLED);
    else this.#requests.delete(key);
    if (sent?.kind === 'call') await this.#calls.settle(sent.call, outcome);
  }

  /** What has more than one reading is not forwarded. */
  #refuseFrame(frame: RpcFrame): McpHandling | undefined {
    if (frame.kind === 'batch')
      return this.#refuse(
        null,
        RPC_INVALID_REQUEST,
        'MCP_BATCH',
        'batches are not forwarded: send each message alone',
      );
    if (frame.kind === 'broken')
      return this.#refuse(null, RPC_PARSE_ERROR, 'MCP_UNREADABLE', 'the message is not JSON');
    if (frame.kind === 'noise') return undefined;
    const isAmbiguous = frame.ambiguity !== undefined;
    if (!isAmbiguous && frame.kind !== 'other') return undefined;
    const problem = frame.ambiguity ?? 'it is neither a request, a notification nor a response';
    const code = isAmbiguous ? 'MCP_AMBIGUOUS' : 'MCP_NOT_A_MESSAGE';
    // Nobody awaits an answer to these.
    if (frame.kind === 'notification' || frame.kind === 'response') return this.#drop('client', code);
    return this.#refuse(frame.id, RPC_INVALID_REQUEST, code, `the message is not forwarded: ${problem}`);
  }

  #request(frame: Request, message: Uint8Array): McpHandling {
    const { id, method, value } = frame;
    const key = keyOfId(id);
    if (this.#requests.has(key))
      return this.#refuse(
        id,
        RPC_INVALID_REQUEST,
        'MCP_DUPLICATE_ID',
        'a request with this id is not answered yet',
      );
    const asked = readCall(this.#calls.options.server, frame, this.#calls.subjects);
    if (asked.kind === 'malformed')
      return this.#refuse(id, RPC_INVALID_PARAMS, 'MCP_MALFORMED_CALL', asked.problem);
    if (asked.kind === 'call') return this.#call(id, key, value, asked, message);
    this.#track(key, sentOf(method, memberOf(value, 'params')));
    return { step: { kind: 'forward', message }, overtakes: method === 'ping' };
  }

  #call(id: RpcId, key: string, value: JsonObject, asked: GuardedCall, message: Uint8Array): McpHandling {
    const resumed = this.#calls.resume(asked);
    if (resumed !== undefined) {
      this.#track(key, { kind: 'call', call: resumed });
      const step = this.#forward(value, asked, resumed.rewritten, message);
      const answered = this.#settleSamplings(resumed, memberOf(memberOf(value, 'params'), 'inputResponses'));
      return { step: answered === undefined ? step : answered.then(() => step), overtakes: false };
    }
    if (this.#calls.openCalls >= MAX_OPEN_CALLS) {
      const text = refusalText('MCP_TOO_MANY_CALLS', `${MAX_OPEN_CALLS} calls are open`);
      return { step: this.#deny(id, asked, text, undefined), overtakes: true };
    }
    const abort = new AbortController();
    this.#requests.set(key, { kind: 'deciding', abort });
    let onWait = (): void => undefined;
    const waits = new Promise<void>((resolve) => {
      onWait = resolve;
    });
    const step = this.#keep(this.#decide(id, key, value, asked, message, abort.signal, onWait));
    return { step, waits, overtakes: false };
  }

  async #decide(
    id: RpcId,
    key: string,
    value: JsonObject,
    asked: GuardedCall,
    message: Uint8Array,
    signal: AbortSignal,
    onWait: () => void,
  ): Promise<McpStep> {
    const { tool } = asked;
    let decision: GateDecision | undefined;
    let error: unknown;
    try {
      decision = await this.#calls.decide(asked, signal, onWait);
    } catch (thrown) {
      error = thrown;
    }
    this.#requests.delete(key);
    if (decision === undefined && !signal.aborted) {
      const code = codeOf(error);
      if (this.#calls.options.fail === 'open' && !isRefusal(error)) {
        this.#calls.tell({ event: 'unrecorded', tool, code });
        return this.#begin(key, value, asked, message, undefined);
      }
      this.#calls.tell({ event: 'decided', tool, effect: 'deny', code, authorization: undefined });
      return this.#deny(id, asked, refusalText(code, 'nobody could decide on the call'), undefined);
    }
    if (decision === undefined) return DROP;
    const { effect, code, authorization } = decision;
    this.#calls.tell({ event: 'decided', tool, effect, code, authorization });
    if (effect === 'deny' || effect === 'ask')
      return signal.aborted ? DROP : this.#deny(id, asked, this.#denialText(decision), authorization);
    if (signal.aborted) {
      await this.#unsent(decision.ref, tool);
      return DROP;
    }
    if (decision.effect === 'rewrite' && !isJsonObject(decision.params)) {
      await this.#unsent(decision.ref, tool);
      const text = refusalText(
        'MCP_REWRITE_INVALID',
        'the call was allowed with parameters that it cannot be given',
      );
      return this.#deny(id, asked, text, authorization);
    }
    return this.#begin(key, value, asked, message, decision);
  }

  #begin(
    key: string,
    value: JsonObject,
    asked: GuardedCall,
    message: Uint8Array,
    decision: GateDecision | undefined,
  ): McpStep {
    const { tool, digest, isModern, asksForTask } = asked;
    const rewritten = decision?.effect === 'rewrite' ? decision.params : undefined;
    const ref = decision?.ref ?? '';
    const isRecorded = decision !== undefined;
    const call = { ref, tool, isModern, asksForTask, asked: digest.b64, rewritten, isRecorded };
    this.#calls.keep(call);
    this.#track(key, { kind: 'call', call });
    return this.#forward(value, asked, rewritten, message);
  }

  #forward(value: JsonObject, { name }: GuardedCall, rewritten: unknown, message: Uint8Array): McpStep {
    if (!isJsonObject(rewritten)) return { kind: 'forward', message };
    return { kind: 'forward', message: writeMessage(rewriteCall(value, name, rewritten)) };
  }

  /** Allowed and begun, and yet never sent. */
  #unsent(ref: string, tool: string): Promise<void> {
    return this.#calls.record({ ref, tool }, { outcome: 'failure', errorCode: 'MCP_NOT_SENT' });
  }

  #denialText({ effect, code, reason, authorization, need }: GateDecision): string {
    const text = refusalText(code, reason);
    if (effect !== 'ask') return text;
    const who = need === undefined || need.approvers.length === 0 ? 'somebody' : need.approvers.join(', ');
    const how = this.#calls.options.howToApprove?.(authorization);
    const told = `${who} can approve ${authorization}${how === undefined ? '' : `: ${how}`}`;
    return `${text} ${printable(told, 600)}; then make the same call again.`;
  }

  #deny(id: RpcId, asked: GuardedCall, text: string, authorization: string | undefined): McpStep {
    // Only the result of a tool can say that it is an error.
    if (this.#calls.options.denyAs === 'error' || asked.name === undefined) {
      const data = authorization === undefined ? undefined : { authorization };
      return { kind: 'answer', message: errorMessage(id, RPC_DENIED, text, data) };
    }
    const result = { content: [{ type: 'text', text }], isError: true };
    const whole = asked.isModern ? { resultType: 'complete', ...result } : result;
    return { kind: 'answer', message: writeMessage({ id, result: whole }) };
  }

  #cancelled(value: JsonObject, message: Uint8Array): McpHandling {
    const id = memberOf(memberOf(value, 'params'), 'requestId');
    const sent = isRpcId(id) ? this.#requests.get(keyOfId(id)) : undefined;
    // Denied, answered, or never sent: the server knows nothing of it.
    if (!isRpcId(id) || sent === undefined) return { step: DROP, overtakes: true };
    if (sent.kind === 'deciding') {
      sent.abort.abort(CANCELLED);
      return { step: DROP, overtakes: true };
    }
    // It may have been done, and may still be answered.
    if (sent.kind === 'call') this.#calls.expireIn(sent.call, CANCEL_GRACE_MS, 'MCP_CANCELLED');
    return { step: { kind: 'forward', message }, overtakes: true };
  }

  /** The server answers a request of the client. */
  #settled(frame: Response, message: Uint8Array): McpHandling {
    const forward: McpStep = { kind: 'forward', message };
    const { id, value, ambiguity } = frame;
    // Of a message that could not be read.
    if (id === null) return { step: forward, overtakes: true };
    const key = keyOfId(id);
    const sent = this.#requests.get(key);
    if (sent === undefined || sent.kind === 'deciding') return this.#drop('server', 'MCP_UNKNOWN_ID');
    this.#requests.delete(key);
    const isAmbiguous = ambiguity !== undefined || frame.inexact !== undefined;
    const withheld = this.#withhold(id, sent, frame);
    if (withheld !== undefined) return withheld;
    if (sent.kind === 'call' && isTwofold(frame)) {
      const unknown = { outcome: 'unknown', errorCode: 'MCP_AMBIGUOUS' } as const;
      return this.#after(this.#calls.settle(sent.call, unknown), message);
    }
    switch (sent.kind) {
      case 'plain':
        return { step: forward, overtakes: true };
      case 'list':
        return { step: this.#listed(id, frame, message), overtakes: false };
      case 'task':
        return this.#taskAnswered(sent, value, message, isAmbiguous);
      case 'call':
        return this.#callAnswered(id, sent.call, value, message, isAmbiguous);
    }
  }

  /**
   * Where sampling is guarded, an answer that may ask for it is not forwarded unless it can be decided on: calls of models within a call are;
   * those that other answers of 2026-07-28 ask for cannot be told from each other.
   */
  #withhold(id: RpcId, sent: Sent, { value, ambiguity }: Response): McpHandling | undefined {
    if (!this.#calls.subjects.has('sampling')) return undefined;
    const isHidden = ambiguity !== undefined;
    const asks = sent.kind !== 'call' && samplingsOf(memberOf(value, 'result')).length > 0;
    if (!isHidden && !asks) return undefined;
    const code = isHidden ? 'MCP_AMBIGUOUS' : 'MCP_SAMPLING_DENIED';
    this.#calls.tell({ event: 'dropped', from: 'server', code });
    const text = isHidden
      ? `the answer has two readings: ${ambiguity}`
      : 'it asks for sampling, which is guarded';
    const told = errorMessage(id, RPC_INTERNAL_ERROR, `${code}: ${text}`);
    const settled =
      sent.kind === 'call'
        ? this.#calls.settle(sent.call, { outcome: 'unknown', errorCode: code })
        : Promise.resolve();
    return this.#after(settled, told);
  }

  #callAnswered(
    id: RpcId,
    call: OpenMcpCall,
    value: JsonObject,
    message: Uint8Array,
    isAmbiguous: boolean,
  ): McpHandling {
    const forward: McpStep = { kind: 'forward', message };
    const answer = readAnswer(value, call, message.length, isAmbiguous);
    switch (answer.kind) {
      case 'input': {
        const asked = this.#calls.subjects.has('sampling') ? samplingsOf(memberOf(value, 'result')) : [];
        if (asked.length > 0)
          return {
            step: this.#keep(this.#decideSamplings(id, call, answer.state, asked, message)),
            overtakes: false,
          };
        this.#calls.awaitInput(call, answer.state);
        return { step: forward, overtakes: false };
      }
      case 'task':
        this.#calls.awaitTask(call, answer.id, answer.ttlMs);
        return { step: forward, overtakes: false };
      case 'done':
        return this.#after(this.#calls.settle(call, answer.outcome), message);
    }
  }

  /**
   * Forwards while it is being recorded: until then its reservation holds, and what is decided next waits for it. Where much is being
   * recorded, when it is; one that cannot be recorded in time is not held back for ever.
   */
  #after(recorded: Promise<void>, message: Uint8Array): McpHandling {
    if (!this.#calls.isBehind) return { step: { kind: 'forward', message }, overtakes: false };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLE_MS);
    });
    const step = Promise.race([recorded, late]).then((): McpStep => {
      clearTimeout(timer);
      return { kind: 'forward', message };
    });
    return { step, overtakes: false };
  }

  #taskAnswered(
    { key, isResult }: Extract<Sent, { kind: 'task' }>,
    value: JsonObject,
    message: Uint8Array,
    isAmbiguous: boolean,
  ): McpHandling {
    const result = memberOf(value, 'result');
    const call = this.#calls.taskOf(key);
    const isDigested = message.length <= MAX_DIGESTED_BYTES && !isAmbiguous;
    if (call !== undefined && isResult) {
      const outcome =
        result === undefined ? failureOf(memberOf(value, 'error')) : outcomeOf(result, isDigested);
      return this.#after(this.#calls.settle(call, outcome), message);
    }
    // That a task is not known now says nothing of what it did.
    return result === undefined
      ? { step: { kind: 'forward', message }, overtakes: true }
      : this.#taskTold(result, message, isDigested);
  }

  /** The state of a task, as an answer or a notification tells it. */
  #taskTold(state: JsonValue | undefined, message: Uint8Array, isDigested = true): McpHandling {
    const id = readTask(state)?.id;
    const call = this.#calls.taskOf(id === undefined ? undefined : keyOfText(id));
    const outcome = call === undefined ? undefined : taskOutcome(state, isDigested);
    if (call === undefined || outcome === undefined)
      return { step: { kind: 'forward', message }, overtakes: true };
    if (outcome !== 'later') return this.#after(this.#calls.settle(call, outcome), message);
    call.isComplete = true;
    return { step: { kind: 'forward', message }, overtakes: true };
  }

  async #listed(id: RpcId, { value, ambiguity }: Response, message: Uint8Array): Promise<McpStep> {
    const { hide = false, pin = false } = this.#calls.options;
    const forward: McpStep = { kind: 'forward', message };
    const result = memberOf(value, 'result');
    const tools = memberOf(result, 'tools');
    if (!isJsonObject(result) || !Array.isArray(tools)) return forward;
    if (ambiguity !== undefined && (hide || pin)) {
      this.#calls.tell({ event: 'dropped', from: 'server', code: 'MCP_AMBIGUOUS' });
      const text = `the server's list of tools is not forwarded: ${ambiguity}`;
      return { kind: 'forward', message: errorMessage(id, RPC_INTERNAL_ERROR, text) };
    }
    for (const tool of this.#calls.definitions.list(tools)) this.#calls.tell({ event: 'changed', tool });
    if (!hide) return forward;
    const granted = await this.#calls.findGranted(tools);
    if (granted === undefined || granted.length === tools.length) return forward;
    return { kind: 'forward', message: writeMessage({ ...value, result: { ...result, tools: granted } }) };
  }

  /** The server asks the client for a call of its model. */
  #sample(frame: Request, message: Uint8Array): McpHandling {
    const { id, value, inexact } = frame;
    const key = keyOfId(id);
    if (this.#samplings.has(key)) return this.#drop('server', 'MCP_DUPLICATE_ID');
    const params = memberOf(value, 'params');
    if (inexact !== undefined || !isJsonObject(params))
      return this.#reject(id, refusalText('MCP_MALFORMED_CALL', 'the parameters have no canonical form'));
    return { step: this.#keep(this.#decideSampling(id, key, params, message)), overtakes: true };
  }

  async #decideSampling(id: RpcId, key: string, params: JsonObject, message: Uint8Array): Promise<McpStep> {
    const asked = await this.#askSampling(params);
    if (typeof asked === 'string') return { kind: 'answer', message: errorMessage(id, RPC_REJECTED, asked) };
    if (asked !== undefined) this.#samplings.set(key, asked);
    return { kind: 'forward', message };
  }

  /** Those of one result: all of them may be made, or none. */
  async #decideSamplings(
    id: RpcId,
    call: OpenMcpCall,
    state: string | undefined,
    asked: readonly (readonly [key: string, params: JsonValue | undefined])[],
    message: Uint8Array,
  ): Promise<McpStep> {
    const allowed = new Map<string, Sampling>();
    let refusal =
      asked.length > MAX_SAMPLINGS
        ? refusalText('MCP_TOO_MANY_CALLS', `more than ${MAX_SAMPLINGS} calls of models are asked for`)
        : undefined;
    for (const [key, params] of asked) {
      if (refusal !== undefined) break;
      const answer = isJsonObject(params)
        ? await this.#askSampling(params)
        : refusalText('MCP_MALFORMED_CALL', 'expected parameters');
      if (typeof answer === 'string') refusal = answer;
      else if (answer !== undefined) allowed.set(key, answer);
    }
    if (refusal === undefined && !this.#closing.signal.aborted) {
      call.samplings = allowed;
      this.#calls.awaitInput(call, state);
      return { kind: 'forward', message };
    }
    await Promise.all([...allowed.values()].map(({ ref, tool }) => this.#unsent(ref, tool)));
    await this.#calls.settle(call, { outcome: 'unknown', errorCode: 'MCP_SAMPLING_DENIED' });
    const text = `${refusal ?? ''} The tool had begun, and asked for a call of a model.`;
    const result = { resultType: 'complete', content: [{ type: 'text', text }], isError: true };
    return { kind: 'forward', message: writeMessage({ id, result }) };
  }

  /** @returns Undefined where it may be made without a record; a refusal in words */
  async #askSampling({ _meta, ...params }: JsonObject): Promise<Sampling | string | undefined> {
    void _meta;
    const tool = `llm.mcp/${this.#calls.options.server}`;
    try {
      canonicalBytes(params);
      const asked = { tool, name: undefined, params };
      const decision = await this.#calls.decide(asked, this.#closing.signal, () => undefined);
      const { effect, code, authorization, ref } = decision;
      this.#calls.tell({ event: 'decided', tool, effect, code, authorization });
      if (effect === 'deny' || effect === 'ask') return this.#denialText(decision);
      if (!this.#closing.signal.aborted && effect === 'allow') return { ref, tool };
      await this.#unsent(ref, tool);
      return refusalText('MCP_REWRITE_INVALID', 'other parameters than those asked for were allowed');
    } catch (error) {
      const code = codeOf(error);
      if (this.#calls.options.fail === 'open' && !isRefusal(error) && !this.#closing.signal.aborted) {
        this.#calls.tell({ event: 'unrecorded', tool, code });
        return undefined;
      }
      this.#calls.tell({ event: 'decided', tool, effect: 'deny', code, authorization: undefined });
      return refusalText(code, 'nobody could decide on the call');
    }
  }

  #answered({ id, value, ambiguity, inexact }: Response, message: Uint8Array): McpHandling {
    const key = id === null ? undefined : keyOfId(id);
    const sampling = key === undefined ? undefined : this.#samplings.get(key);
    if (key === undefined || sampling === undefined)
      return { step: { kind: 'forward', message }, overtakes: true };
    this.#samplings.delete(key);
    const isDigested =
      message.length <= MAX_DIGESTED_BYTES && ambiguity === undefined && inexact === undefined;
    const result = memberOf(value, 'result');
    const outcome =
      result === undefined ? failureOf(memberOf(value, 'error')) : modelOutcome(result, isDigested);
    const handling = this.#after(this.#calls.record(sampling, outcome), message);
    return { ...handling, overtakes: true };
  }

  /** The answers of the client to calls of models within a call. */
  #settleSamplings(call: OpenMcpCall, responses: JsonValue | undefined): Promise<unknown> | undefined {
    const { samplings } = call;
    if (samplings === undefined) return undefined;
    call.samplings = undefined;
    return Promise.all(
      [...samplings].map(([key, sampling]) => {
        const result = memberOf(responses, key);
        const outcome: CallOutcome =
          result === undefined
            ? { outcome: 'unknown', errorCode: 'MCP_NOT_ANSWERED' }
            : modelOutcome(result, true);
        return this.#calls.record(sampling, outcome);
      }),
    );
  }

  #keep(step: Promise<McpStep>): Promise<McpStep> {
    this.#pending.add(step);
    void step.finally(() => this.#pending.delete(step));
    return step;
  }

  #track(key: string, sent: Sent): void {
    this.#requests.set(key, sent);
    if (this.#requests.size <= MAX_REQUESTS) return;
    for (const [each, other] of this.#requests) {
      const isOpen = other.kind === 'call' && this.#calls.isOpen(other.call);
      if (isOpen || other.kind === 'deciding' || each === key) continue;
      this.#requests.delete(each);
      return;
    }
  }

  #refuse(id: RpcId | null, rpcCode: number, code: string, text: string): McpHandling {
    this.#calls.tell({ event: 'dropped', from: 'client', code });
    return {
      step: { kind: 'answer', message: errorMessage(id, rpcCode, `${code}: ${text}`) },
      overtakes: true,
    };
  }

  #reject(id: RpcId, text: string): McpHandling {
    return { step: { kind: 'answer', message: errorMessage(id, RPC_REJECTED, text) }, overtakes: true };
  }

  #drop(from: 'client' | 'server', code: string): McpHandling {
    this.#calls.tell({ event: 'dropped', from, code });
    return { step: DROP, overtakes: true };
  }

  #pass(from: 'client' | 'server', code: string, handling: McpHandling): McpHandling {
    this.#calls.tell({ event: 'unread', from, code });
    return handling;
  }
}

const TOO_LONG = { outcome: 'unknown', errorCode: 'MCP_TOO_LONG' } as const;

function answerTooLong(id: RpcId): Uint8Array {
  return errorMessage(id, RPC_INTERNAL_ERROR, 'MCP_TOO_LONG: the answer is too long to be forwarded');
}

const CANCELLED = new Error('the call was cancelled');
const CLOSED = new Error('the connection was closed');

function sentOf(method: string, params: JsonValue | undefined): Sent {
  if (method === 'tools/list') return { kind: 'list' };
  const id = memberOf(params, 'taskId');
  const isOfTask = method === 'tasks/get' || method === 'tasks/result' || method === 'tasks/cancel';
  if (!isOfTask || typeof id !== 'string') return { kind: 'plain' };
  return { kind: 'task', key: keyOfText(id), isResult: method === 'tasks/result' };
}

/** The calls of models that a result, or the state of a task, asks for. */
function samplingsOf(asking: JsonValue | undefined): [key: string, params: JsonValue | undefined][] {
  const requests = memberOf(asking, 'inputRequests');
  if (!isJsonObject(requests)) return [];
  return Object.entries(requests).flatMap(([key, request]): [string, JsonValue | undefined][] =>
    memberOf(request, 'method') === 'sampling/createMessage' ? [[key, memberOf(request, 'params')]] : [],
  );
}

function modelOutcome(result: JsonValue, isDigested: boolean): CallOutcome {
  const model = memberOf(result, 'model');
  return { ...outcomeOf(result, isDigested), ...(isModelName(model) ? { modelId: model } : {}) };
}

function isModelName(model: JsonValue | undefined): model is string {
  return typeof model === 'string' && model.length > 0 && model.length <= 128 && printable(model) === model;
}
