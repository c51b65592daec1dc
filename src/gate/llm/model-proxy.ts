/**
 * A proxy for the APIs of models: it decides on each call before it is forwarded, and settles it by the usage that its answer states.
 * Whatever cannot be decided is not forwarded. Prompts, answers, keys and tokens are in no log and no error; the ledger has their digests.
 */

import { createHash, randomUUID } from 'node:crypto';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { digestFromBase64url, sha256Digest } from '../../base/value/digest.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import { describeLeft } from '../../log/policy/deciding-bound.js';
import type { CallName, CallOutcome, Gate, GateCall, GateDecision } from '../gate.js';
import type { Prices } from '../price/price-file.js';
import type { AnswerObserver, ProxyFault } from '../proxy/observer.js';
import type { ProxyForward, ProxyRefusal, ProxyReply, ProxyRequest } from '../proxy/serve-proxy.js';
import { type Bearer, ownBearer, type Tokens } from '../service/tokens.js';
import { KnownAnswers, type NamedAnswers } from './known-answers.js';
import type { ModelApiFamily, ModelRequest } from './model-api.js';
import { withMaxOutput, withStreamUsage } from './output-limit.js';
import { AnswerReader, type NamedAnswer } from './read-answer.js';
import { familyOf, readModelRequest } from './read-request.js';
import { type Refusal, refusalOf } from './refusal.js';
import { planReservation, type Reservation, type Unbounded } from './reserve-call.js';
import { type EndedCall, outcomeOf } from './settle-call.js';

export interface ModelProxyOptions {
  /** Its decisions are recorded with the coverage `proxy`. Requests wait until it is open. */
  readonly gate: Gate | Promise<Gate>;
  /** Opens the ledger again after its gate has failed, such as on a full disk; at most once a second. Default: it stays failed. */
  readonly reopen?: (() => Promise<Gate>) | undefined;
  /** Without it, calls are allowed under grants that do not bound money alone. */
  readonly prices?: Prices | undefined;
  /** Whose models they are, in price files and names of tools. Default: `openai` or `anthropic`, by the API. */
  readonly provider?: string | undefined;
  /** The most output tokens of an answer whose request leaves them open. Default 4,096. */
  readonly maxOutput?: number | undefined;
  /** The least to reserve for calls that cannot be bounded from their request, such as ones with files by id. Default: they are denied. */
  readonly reserve?: AmountsByUnit | undefined;
  /** Forwards all, whatever is decided. For a gate in shadow. Default false. */
  readonly dryRun?: boolean | undefined;
  /** What happens to calls when the ledger cannot be asked: `open` forwards them unrecorded. Default `closed`. */
  readonly fail?: 'open' | 'closed' | undefined;
  /** Whom clients speak for, by the header `X-Northroot-Token`, or in place of the provider's key. Default: the ledger's principal. */
  readonly tokens?: Tokens | undefined;
  /** The provider's key, instead of those that clients send. */
  readonly upstreamKey?: string | undefined;
  /** Has streams state their usage where the request does not ask for it: they then have a chunk without choices more. Default false. */
  readonly streamUsage?: boolean | undefined;
  /** How long a call waits for approvals, in milliseconds. Default 0. */
  readonly waitMs?: number | undefined;
  /** Called once a request is over. */
  readonly onEvent?: ((event: ModelProxyEvent) => void) | undefined;
}

/** A request that is over, without anything of its contents. */
export interface ModelProxyEvent {
  /** The API; `free` for what costs nothing, `own` for the proxy's own paths, `none` for what was not known. */
  readonly api: string;
  readonly status: number;
  readonly ms: number;
  readonly principal?: string | undefined;
  readonly tool?: string | undefined;
  readonly effect?: string | undefined;
  /** Of the decision, or of what went wrong. */
  readonly code?: string | undefined;
  readonly authorization?: string | undefined;
  readonly outcome?: string | undefined;
  /** What was odd about the answer. */
  readonly problems?: readonly string[] | undefined;
  /** Whether it was forwarded without a record. */
  readonly unrecorded?: true | undefined;
  /** Why the call could not be settled: it stays charged as reserved. */
  readonly unsettled?: string | undefined;
}

type Facts = { -readonly [K in keyof ModelProxyEvent]?: ModelProxyEvent[K] };

interface Passing {
  readonly request: ModelRequest;
  readonly family: ModelApiFamily;
  readonly facts: Facts;
  /** Tells that the request is over. */
  readonly finish: (status: number) => void;
}

const DEFAULT_MAX_OUTPUT = 4_096;
const TOKEN_HEADER = 'x-northroot-token';
const PRINCIPAL_HEADER = 'x-northroot-principal';
/** Never handed on. */
const OWN_HEADERS = [TOKEN_HEADER, PRINCIPAL_HEADER];
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key'];
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,256}$/;
const SESSION = 'idempotency';
/** The most keys of which it is known how their call ended. */
const MAX_KEYS = 10_000;
/** The most calls of one key: each but the last had an error of the upstream. */
const MAX_TRIES = 16;
const REOPEN_MS = 1_000;
/** Errors that pass by themselves. */
const PASSING: ReadonlySet<string> = new Set(['LEDGER_LOCKED', 'GATE_CLOSED']);
/** Errors of the caller, for which nothing is wrong with the ledger. */
const CALLERS: ReadonlySet<string> = new Set(['REQUEST_CONFLICT', 'CALL_LIMIT']);

/**
 * Answers requests, or has them forwarded.
 *
 * A request with an `Idempotency-Key` is one call, however often it is sent, by its principal's key: while it is open, here or in another
 * process, it is refused (409, `REQUEST_IN_PROGRESS`), as two answers would cost twice; when it was answered, likewise
 * (`REQUEST_REPEATED`), as no answer is kept. After an error of the upstream the proxy that had it makes a new call of it. A denial is
 * repeated without a record. Without the header, every request is a call of its own.
 */
export class ModelProxy {
  readonly #options: ModelProxyOptions;
  /** Calls of keys that pass here. */
  readonly #passing = new Map<string, PassingKey>();
  /** How many calls of a key had errors of the upstream, oldest first. */
  readonly #failed = new Map<string, number>();
  /** Answers that passed here, for requests that name them. */
  readonly #known = new KnownAnswers();

  #gate: Promise<Gate>;
  #reopenedAt = -Infinity;
  /** Calls whose answers have passed. */
  readonly #settling = new Set<Promise<void>>();

  constructor(options: ModelProxyOptions) {
    this.#options = options;
    this.#gate = Promise.resolve(options.gate);
    // Who asks is told.
    this.#gate.catch(() => undefined);
  }

  /** Never rejects. */
  async handle(request: ProxyRequest): Promise<ProxyReply | ProxyForward> {
    const began = performance.now();
    const facts: Facts = { api: 'none' };
    const finish = (status: number): void => {
      const ms = Math.round((performance.now() - began) * 1_000) / 1_000;
      this.#options.onEvent?.({ ...facts, api: facts.api ?? 'none', status, ms });
    };
    let family: ModelApiFamily = 'openai';
    let answer: ProxyReply | ProxyForward;
    try {
      const own = await this.#answerOwn(request, facts);
      if (own === undefined) {
        const { provider } = this.#options;
        family = familyOf(request);
        const bearer = await this.#bearerOf(request);
        const known: NamedAnswers = {
          response: (...named) => this.#known.of(this.#principalOf(bearer, request)).response(...named),
          item: (...named) => this.#known.of(this.#principalOf(bearer, request)).item(...named),
        };
        const read = readModelRequest(request, { provider, known });
        if (read.kind === 'refuse') throw new Refused(read);
        if (read.kind === 'free') {
          facts.api = 'free';
          answer = { ...this.#forwardOf(family, request), observer: statusOnly(finish) };
        } else {
          facts.api = read.request.api;
          answer = await this.#call(request, bearer, { request: read.request, family, facts, finish });
        }
      } else answer = own;
    } catch (error) {
      answer = refuse(family, this.#refusalOf(error, facts));
    }
    if (answer.kind === 'reply') finish(answer.status);
    return answer;
  }

  refuse({ status, code, message }: ProxyRefusal): ProxyReply {
    return refuse('openai', { status, code, message, ...(status === 503 ? { retryAfterS: 1 } : {}) });
  }

  async #answerOwn(request: ProxyRequest, facts: Facts): Promise<ProxyReply | undefined> {
    const [path] = request.path.split('?');
    if (path !== '/healthz' && path?.startsWith('/northroot') !== true) return undefined;
    facts.api = 'own';
    const json = (status: number, body: object): ProxyReply => ({
      kind: 'reply',
      status,
      body: JSON.stringify(body),
    });
    if (request.method !== 'GET')
      throw new Refused({ status: 405, code: 'METHOD_NOT_ALLOWED', message: 'expected GET' });
    const gate = await this.#currentGate();
    if (path === '/healthz') return json(200, { status: 'ok', records: gate.ledger.size });
    if (path !== '/northroot/budget')
      throw new Refused({ status: 404, code: 'PATH_UNKNOWN', message: 'there is no such path' });
    const principal = this.#principalOf(await this.#bearerOf(request), request);
    facts.principal = principal;
    await Promise.all(this.#settling);
    const budgets = await gate.ledger.budget();
    const grants = budgets.filter(({ principalId }) => principalId === principal);
    return json(200, {
      principal_id: principal,
      grants: grants.map(({ eventId, seq, expiresAt, withdrawn, balances }) => ({
        event_id: eventId,
        seq,
        expires_at: expiresAt,
        withdrawn,
        meters: balances,
      })),
    });
  }

  async #call(request: ProxyRequest, bearer: Bearer, passing: Passing): Promise<ProxyReply | ProxyForward> {
    const { request: call, facts } = passing;
    const principal = this.#principalOf(bearer, request);
    facts.principal = principal;
    facts.tool = printable(call.toolName, 128);
    if (!bearer.mayCall(call.toolName))
      throw new Refused({ status: 403, code: 'NOT_ALLOWED', message: 'this token may not call this model' });
    const key = keyOf(request, principal);
    const entered = key === undefined ? undefined : await this.#enter(key.name, request.signal);
    const release = (): void => entered?.leave();
    try {
      const decided = await this.#decide(request, principal, key, passing);
      if (decided === undefined) {
        release();
        return {
          ...this.#forwardOf(passing.family, request),
          observer: statusOnly(passing.finish),
        };
      }
      const { gate, ref, decision, plan } = decided;
      // In shadow, what was denied has nothing to settle.
      const isRecorded = decision?.start !== undefined;
      const remember = (named: NamedAnswer): void => this.#remember(principal, call, named);
      const maxOutput = call.maxOutput ?? plan.limit;
      let endWatch = (): void => undefined;
      const settle = async (ended: Omit<EndedCall, 'reserve' | 'prices'>): Promise<void> => {
        const done = outcomeOf({ ...ended, reserve: plan.reserve, prices: this.#options.prices });
        facts.outcome = done.outcome;
        entered?.noteAnswered();
        endWatch();
        const isUnserved = done.outcome === 'failure' && (ended.status === 0 || ended.status >= 400);
        if (isUnserved && key !== undefined) this.#noteFailure(key.name);
        try {
          const session = key === undefined ? undefined : SESSION;
          if (isRecorded) await this.#settle(gate, { ref, session, principal }, done);
        } catch (error) {
          facts.unsettled = codeOf(error);
        } finally {
          release();
        }
      };
      const observer = new CallObserver(passing, { maxOutput, remember }, (ended) => {
        const settling = settle(ended).finally(() => this.#settling.delete(settling));
        this.#settling.add(settling);
        return settling;
      });
      const limited = plan.limit === undefined ? request.body : withMaxOutput(call, request.body, plan.limit);
      const body = this.#options.streamUsage === true ? withStreamUsage(call, limited) : limited;
      const authorization = decision?.authorization;
      const stop = new AbortController();
      if (isRecorded && this.#options.dryRun !== true)
        endWatch = gate.ledger.watchStop(decision.authorization, (reason) => stop.abort(reason));
      return {
        ...this.#forwardOf(passing.family, request),
        body,
        observer,
        stop: stop.signal,
        ...(authorization === undefined
          ? {}
          : { answerHeaders: { 'X-Northroot-Authorization': authorization } }),
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  #remember(principal: string, { model, unbounded, inputBytes }: ModelRequest, named: NamedAnswer): void {
    const isBounded = unbounded.length === 0;
    this.#known.add(principal, {
      ...named,
      model,
      inputTokens: isBounded ? Math.max(inputBytes, named.inputTokens) : undefined,
    });
  }

  async #settle(gate: Gate, name: CallName, done: CallOutcome): Promise<void> {
    try {
      // A client that calls again at once has both in one write; it waits for an error to be recorded.
      await gate.settle(name, done, { mayWait: done.outcome === 'success' });
    } catch (error) {
      this.#recover(error);
      const other = await this.#gate;
      if (other === gate) throw error;
      // The call is in the ledger.
      await other.settle(name, done);
    }
  }

  async #currentGate(): Promise<Gate> {
    try {
      return await this.#gate;
    } catch (error) {
      this.#recover(error);
      throw error;
    }
  }

  /** After a failure for good, opens the ledger for later calls. */
  #recover(error: unknown): void {
    const { reopen } = this.#options;
    const now = performance.now();
    if (reopen === undefined || isCallers(error) || now - this.#reopenedAt < REOPEN_MS) return;
    if (error instanceof NorthrootError && PASSING.has(error.code)) return;
    this.#reopenedAt = now;
    const failed = this.#gate;
    this.#gate = reopen();
    this.#gate.catch(() => undefined);
    failed.then((gate) => gate.close()).catch(() => undefined);
  }

  /** Returns what to call when the call of the key was answered, and when it is over. @throws Refused */
  async #enter(
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly noteAnswered: () => void; readonly leave: () => void }> {
    for (;;) {
      const before = this.#passing.get(name);
      if (before === undefined) break;
      // Of a client that has left, or has its answer, the end is being recorded.
      if (!before.signal.aborted && !before.isAnswered) throw IN_PROGRESS;
      await before.over;
    }
    let end: () => void = () => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const passing = { signal, over, isAnswered: false };
    this.#passing.set(name, passing);
    return {
      noteAnswered: () => void (passing.isAnswered = true),
      leave: () => {
        this.#passing.delete(name);
        end();
      },
    };
  }

  /** Undefined where the ledger cannot be asked, and the call passes all the same. @throws Refused */
  async #decide(
    request: ProxyRequest,
    principal: string,
    key: Key | undefined,
    { request: call, facts }: Passing,
  ): Promise<
    | {
        readonly gate: Gate;
        readonly ref: string;
        /** Undefined for a denial that passes. */
        readonly decision: GateDecision | undefined;
        readonly plan: Reservation;
      }
    | undefined
  > {
    const { signal } = request;
    const { maxOutput = DEFAULT_MAX_OUTPUT, dryRun = false, prices, reserve, waitMs } = this.#options;
    try {
      const gate = await this.#currentGate();
      const options = { prices, maxOutput, reserve };
      const plan = await planReservation(gate.ledger, principal, call, options, { signal });
      if ('code' in plan) {
        await this.#recordDenial(gate, principal, call, plan, facts);
        if (!dryRun) throw new Refused({ ...plan, status: 429, requestId: facts.authorization });
        return { gate, ref: '', decision: undefined, plan: { reserve: {}, limit: undefined } };
      }
      const ref = refOf(key, this.#failed.get(key?.name ?? '') ?? 0);
      const asked: GateCall = {
        ref,
        session: key === undefined ? undefined : SESSION,
        principal,
        tool: call.toolName,
        params: call.params,
        reserve: plan.reserve,
        grantId: plan.grantId,
        coverage: 'proxy',
      };
      const decision = await gate.decide(asked, { signal, waitMs });
      facts.effect = decision.shadow ?? decision.effect;
      facts.code = decision.code;
      facts.authorization = decision.authorization;
      if (dryRun) return { gate, ref, decision, plan };
      if (decision.effect === 'deny' || decision.effect === 'ask') throw new Refused(denialOf(decision));
      // Of a rewritten call other parameters are allowed than those that would be sent.
      if (decision.effect === 'rewrite') {
        await gate.settle(asked, { outcome: 'failure', errorCode: 'REWRITTEN' });
        throw new Refused({ status: 429, code: 'REWRITTEN', message: 'a policy asks for other parameters' });
      }
      if (decision.isRepeated) throw IN_PROGRESS;
      return { gate, ref, decision, plan };
    } catch (error) {
      if (error instanceof Refused || signal.aborted || isCallers(error)) throw error;
      this.#recover(error);
      if (!dryRun && this.#options.fail !== 'open') throw error;
      facts.code = codeOf(error);
      facts.unrecorded = true;
      return undefined;
    }
  }

  async #recordDenial(
    gate: Gate,
    principalId: string,
    { toolName, params }: ModelRequest,
    { code, message: reason }: Unbounded,
    facts: Facts,
  ): Promise<void> {
    const paramsDigest = sha256Digest(canonicalBytesWithout(params));
    const coverage = { check: 'coverage', result: 'pass', code: 'PROXY' } as const;
    const decision = await gate.ledger.authorize({
      principalId,
      toolName,
      paramsDigest,
      intentDigest: paramsDigest,
      advice: { checks: [coverage, { check: 'price', result: 'fail', code }], denial: { code, reason } },
    });
    facts.effect = 'deny';
    facts.code = code;
    facts.authorization = decision.recorded.eventId;
  }

  #noteFailure(name: string): void {
    const count = (this.#failed.get(name) ?? 0) + 1;
    this.#failed.delete(name);
    this.#failed.set(name, count);
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > MAX_KEYS && oldest !== undefined) this.#failed.delete(oldest);
  }

  #forwardOf(family: ModelApiFamily, request: ProxyRequest): ProxyForward {
    const { upstreamKey } = this.#options;
    const theirs = upstreamKey === undefined ? keyHeadersWithToken(request) : KEY_HEADERS;
    const own: Record<string, string> = {};
    if (upstreamKey !== undefined && family === 'anthropic') own['X-Api-Key'] = upstreamKey;
    else if (upstreamKey !== undefined) own['Authorization'] = `Bearer ${upstreamKey}`;
    return {
      kind: 'forward',
      setHeaders: own,
      removeHeaders: [...OWN_HEADERS, ...theirs],
      refuse: ({ status, code, message }) =>
        refuse(family, {
          status,
          code,
          message,
          // Nothing was charged for it.
          ...(code === 'UPSTREAM_UNREACHABLE' ? { retryAfterS: 1 } : {}),
        }),
    };
  }

  /** @throws Refused */
  async #bearerOf(request: ProxyRequest): Promise<Bearer> {
    const { tokens } = this.#options;
    if (tokens === undefined) return ownBearer((await this.#currentGate()).ledger.principalId);
    const token = request.headers[TOKEN_HEADER] ?? tokenInKey(request);
    const bearer = token === undefined ? undefined : tokens.find(token);
    if (bearer === undefined)
      throw new Refused({
        status: 401,
        code: 'TOKEN_INVALID',
        message: 'expected a token that this proxy knows, as X-Northroot-Token or in place of the key',
      });
    if (!bearer.may('call'))
      throw new Refused({ status: 403, code: 'NOT_ALLOWED', message: 'this token may not call' });
    return bearer;
  }

  /** @throws Refused */
  #principalOf(bearer: Bearer, { headers }: ProxyRequest): string {
    const principal = (this.#options.tokens && headers[PRINCIPAL_HEADER]) ?? bearer.principal;
    if (principal === undefined)
      throw new Refused({
        status: 400,
        code: 'PRINCIPAL_MISSING',
        message: 'expected X-Northroot-Principal',
      });
    if (bearer.mayBe(principal)) return principal;
    throw new Refused({
      status: 403,
      code: 'NOT_ALLOWED',
      message: 'this token may not speak for this principal',
    });
  }

  #refusalOf(error: unknown, facts: Facts): Refusal {
    if (error instanceof Refused) {
      facts.code = error.refusal.code;
      return error.refusal;
    }
    const code = codeOf(error);
    facts.code = code;
    if (code === 'REQUEST_CONFLICT')
      return { status: 409, code, message: 'this Idempotency-Key is that of another request' };
    if (isCallers(error)) return { status: 400, code, message: 'the request cannot be decided on' };
    return {
      status: 503,
      code,
      message: 'the ledger cannot be asked: nothing is forwarded',
      ...(code === 'LEDGER_LOCKED' || this.#options.reopen !== undefined ? { retryAfterS: 1 } : {}),
    };
  }
}

interface PassingKey {
  readonly signal: AbortSignal;
  readonly isAnswered: boolean;
  readonly over: Promise<void>;
}

/** Thrown where a request is not forwarded. */
class Refused extends Error {
  readonly refusal: Refusal;

  constructor({ status, code, message, retryAfterS, requestId }: Refusal) {
    super(code);
    this.refusal = { status, code, message, retryAfterS, requestId };
  }
}

const IN_PROGRESS = new Refused({
  status: 409,
  code: 'REQUEST_IN_PROGRESS',
  message: 'a request with this Idempotency-Key is being answered, or its end was never recorded',
});

/** What becomes of the ids in an answer. */
interface Naming {
  readonly maxOutput: number | undefined;
  readonly remember: (named: NamedAnswer) => void;
}

/** Sees the answer to a call. */
class CallObserver implements AnswerObserver {
  readonly #passing: Passing;
  readonly #settle: (ended: Omit<EndedCall, 'reserve' | 'prices'>) => Promise<void>;
  readonly #hash = createHash('sha256');
  #reader: AnswerReader | undefined;
  #status = 0;
  readonly #naming: Naming;
  #isNamed = false;

  constructor(
    passing: Passing,
    naming: Naming,
    settle: (ended: Omit<EndedCall, 'reserve' | 'prices'>) => Promise<void>,
  ) {
    this.#passing = passing;
    this.#naming = naming;
    this.#settle = settle;
  }

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.#status = status;
    this.#reader = new AnswerReader(this.#passing.request, status, String(headers['content-type'] ?? ''));
  }

  chunk(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#reader?.push(bytes);
    if (this.#isNamed) return;
    // Before the client has the end: its next request may come at once.
    const named = this.#reader?.named(this.#naming.maxOutput);
    if (named === undefined) return;
    this.#isNamed = true;
    this.#naming.remember(named);
  }

  async end(fault: ProxyFault | undefined): Promise<void> {
    const { request, facts, finish } = this.#passing;
    const answer = this.#reader?.end(fault !== undefined);
    const problems = answer?.problems ?? [];
    if (problems.length > 0) facts.problems = problems;
    // What stops a call is that its grant is withdrawn.
    if (fault !== undefined) facts.code = fault.code === 'STOPPED' ? 'GRANT_REVOKED' : fault.code;
    const outputDigest = digestFromBase64url(this.#hash.digest('base64url'));
    await this.#settle({ request, status: this.#status, answer, fault, outputDigest });
    finish(this.#status === 0 ? 502 : this.#status);
  }
}

/** Of what is forwarded without a record. */
function statusOnly(finish: (status: number) => void): AnswerObserver {
  let seen = 502;
  return {
    head: (status) => void (seen = status),
    chunk: () => undefined,
    end: () => finish(seen),
  };
}

function refuse(family: ModelApiFamily, refusal: Refusal): ProxyReply {
  return { kind: 'reply', ...refusalOf(family, refusal) };
}

function denialOf({ effect, code, reason, authorization, need, bound }: GateDecision): Refusal {
  const requestId = authorization;
  if (effect === 'ask') {
    const who = need === undefined ? 'somebody' : `${need.count} of ${need.approvers.join(', ')}`;
    return {
      status: 429,
      code,
      requestId,
      message: `${who} must approve ${authorization}, then it may be sent again`,
    };
  }
  if (code === 'AUTHORIZATION_REUSED')
    return {
      status: 409,
      code: 'REQUEST_REPEATED',
      requestId,
      message: 'the request with this Idempotency-Key was answered: send another key for another answer',
    };
  const left = bound && describeLeft(bound);
  const message = [`${code}: ${reason ?? 'denied'}`, ...(left === undefined ? [] : [left])].join('; ');
  // What runs ends by itself; a budget does not grow.
  return {
    status: 429,
    code,
    requestId,
    message,
    retryAfterS: code === 'CONCURRENCY_EXCEEDED' ? 1 : undefined,
  };
}

interface Key {
  readonly text: string;
  /** With the principal, whose keys are its own. */
  readonly name: string;
}

/** @throws Refused */
function keyOf({ headers }: ProxyRequest, principal: string): Key | undefined {
  const text = headers['idempotency-key'];
  if (text === undefined) return undefined;
  if (!IDEMPOTENCY_KEY.test(text))
    throw new Refused({
      status: 400,
      code: 'REQUEST_INVALID',
      message: 'Idempotency-Key: expected 1 to 256 printable characters of ASCII',
    });
  return { text, name: `${principal} ${text}` };
}

/** @throws Refused */
function refOf(key: Key | undefined, failed: number): string {
  if (key === undefined) return randomUUID();
  if (failed >= MAX_TRIES)
    throw new Refused({
      status: 409,
      code: 'CALL_LIMIT',
      message: 'too many calls have this Idempotency-Key',
    });
  return failed === 0 ? key.text : `${key.text} ${failed + 1}`;
}

/** A token that is sent as the provider's key. */
function tokenInKey({ headers }: ProxyRequest): string | undefined {
  const keys = [
    headers['authorization']?.replace(/^Bearer +/i, ''),
    headers['x-api-key'],
    headers['api-key'],
  ];
  return keys.find(isToken);
}

/** Those that have a token of this proxy, in whatever form: no provider may see it. */
function keyHeadersWithToken({ headers }: ProxyRequest): string[] {
  return KEY_HEADERS.filter((name) => /(?<![A-Za-z0-9_-])nr_[A-Za-z0-9_-]{20}/.test(headers[name] ?? ''));
}

function isToken(key: string | undefined): key is string {
  return key !== undefined && /^nr_[A-Za-z0-9_-]{20,128}$/.test(key);
}

function isCallers(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true;
  return error instanceof NorthrootError && CALLERS.has(error.code);
}

function codeOf(error: unknown): string {
  if (error instanceof NorthrootError) return error.code;
  return error instanceof TypeError || error instanceof RangeError ? 'REQUEST_INVALID' : 'INTERNAL_ERROR';
}
