/**
 * The gate as a service: answers HTTP requests of thin clients, gateways and approvers. Bodies are JSON; errors are
 * `{"error":{"code","message","hint"?}}`. Parameters are in no log, no error and no answer but a rewrite.
 */

import { setTimeout } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { type JsonObject, membersOf } from '../../base/json/value.js';
import type { HttpRequest, HttpResponse } from '../../base/platform/serve-http.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import type { ApprovalOptions } from '../../log/policy/approve.js';
import { readRequest, type RequestSource } from '../../log/policy/explain-request.js';
import { pendingJson, requestJson } from '../../log/policy/request-json.js';
import type { Gate } from '../gate.js';
import { releaseSession } from '../release-session.js';
import { answerAuthZen, AUTHZEN_PATHS, writeAuthZenConfiguration } from './authzen.js';
import type { Face, FaceRequest, OpenGate, RequestFacts } from './face.js';
import { Metrics, type MetricsSource, writeMetrics } from './metrics.js';
import { Peers, type RoleChange, type Standing } from './peers.js';
import { FORWARDED } from './relay.js';
import { SliceSupply, type SliceSource, type SupplyEvent } from './slice-supply.js';
import { answerNextSlice, answerSettleSlices } from './slice-routes.js';
import { type Bearer, ownBearer, type Tokens, type TokenUse } from './tokens.js';
import {
  malformed,
  Members,
  readBody,
  readDecide,
  readName,
  readSettle,
  writeDecision,
  writeSettled,
} from './wire.js';
import { APPROVER_PAGE, PAGE_HEADERS } from './approver-page.js';

export interface GateServiceOptions extends OpenGate {
  /**
   * Opens all anew. It is called after a write failed (`LEDGER_FAILED`), for nothing more can be written by what is open: a disk that has
   * room again is then enough. What was open is closed. Default: the service goes on failing.
   */
  readonly reopen?: (() => Promise<OpenGate>) | undefined;
  /** APIs of other systems. Their paths come before the service's own. */
  readonly faces?: readonly Face[] | undefined;
  /** Without it, every client speaks for the ledger's own principal. */
  readonly tokens?: Tokens | undefined;
  /** The OpenAPI document, as text. */
  readonly openApi?: string | undefined;
  /** The URL under which gateways reach it, for AuthZEN's metadata. */
  readonly publicUrl?: string | undefined;
  /** The most decisions that wait for approvals at once. Default 256. */
  readonly maxWaiting?: number | undefined;
  /**
   * Other services of this ledger, by the URLs below which they answer; its own may be among them. One service leads, and the others forward
   * to it, or take over when it is gone. Requires `tokens`, the same for all.
   */
  readonly peers?: readonly URL[] | undefined;
  /** Where the next slices come from, if the ledger spends those of another one. */
  readonly slices?: SliceChoice | undefined;
  /** Called when it begins to lead, or to follow. */
  readonly onRole?: ((change: RoleChange) => void) | undefined;
  /** Called once a request is answered. */
  readonly onEvent?: ((event: ServiceEvent) => void) | undefined;
}

export interface SliceChoice {
  readonly source: SliceSource;
  /** Whether closing gives back what is left; requires that the ledger was opened with `checkpoints`. Default false. */
  readonly givesBack?: boolean | undefined;
  readonly onEvent?: ((event: SupplyEvent) => void) | undefined;
}

/** An answered request, without its parameters. */
export interface ServiceEvent {
  readonly route: string;
  readonly status: number;
  readonly bearer: string | undefined;
  readonly ms: number;
  /** Of a decision, or of an error. */
  readonly code?: string | undefined;
  readonly effect?: string | undefined;
  readonly tool?: string | undefined;
  readonly principal?: string | undefined;
  readonly authorization?: string | undefined;
  /** The ledger's name, where a service has several. */
  readonly ledger?: string | undefined;
  /** Whether the leader answered it. */
  readonly forwarded?: true | undefined;
}

interface Asked {
  readonly bearer: Bearer;
  readonly body: JsonObject;
  readonly query: URLSearchParams;
  /** What follows the route's path. */
  readonly rest: readonly string[];
  readonly signal: AbortSignal;
  readonly facts: RequestFacts;
}

/** `failed` after a write failed, until all is open anew; for good with `LEDGER_ROLLED_BACK`. */
export interface Health extends Partial<Standing> {
  readonly status: 'ok' | 'failed';
  readonly records: number;
  readonly code?: string | undefined;
}

interface Route {
  readonly use: TokenUse | undefined;
  readonly answer: (asked: Asked) => object | string | Promise<object | string>;
}

const HEALTH = 'GET /healthz';
const JSON_TYPE = 'application/json; charset=utf-8';
const DEFAULT_MAX_WAITING = 256;
/** Of one list of all requests. */
const MAX_REQUESTS = 1_000;
/** The pause after opening has failed. */
const REOPEN_MS = 1_000;
const STATUSES: Readonly<Record<string, number>> = {
  USAGE: 400,
  TOKEN_INVALID: 401,
  NOT_ALLOWED: 403,
  NOT_FOUND: 404,
  CALL_NOT_FOUND: 404,
  AUTH_NOT_FOUND: 404,
  RECORD_NOT_FOUND: 404,
  AUTH_NOT_AN_AUTHORIZATION: 404,
  SLICE_NOT_FOUND: 404,
  SLICE_DENIED: 403,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_ALLOWED: 409,
  REQUEST_CONFLICT: 409,
  LEDGER_LOCKED: 503,
  LEDGER_FAILED: 503,
  LEADER_GONE: 503,
  STORE_UNREACHABLE: 503,
  STORE_NOT_DURABLE: 503,
  BUSY: 503,
};

/** What logs and metrics have instead of a status for a client that did not wait. */
const CLIENT_GONE = 499;

/** Answers requests; see the head of this file. */
export class GateService {
  readonly metrics = new Metrics();
  readonly #options: GateServiceOptions;
  readonly #own: Bearer;
  #open: OpenGate;
  readonly #peers: Peers | undefined;
  readonly #supply: SliceSupply | undefined;
  /** After a write failed, until all is open anew: why. */
  #failure: 'LEDGER_FAILED' | 'LEDGER_ROLLED_BACK' | undefined;
  #isReopening = false;
  readonly #routes: ReadonlyMap<string, Route>;
  #waiting = 0;

  constructor(options: GateServiceOptions) {
    this.#options = options;
    this.#open = { gate: options.gate, approvers: options.approvers };
    this.#own = ownBearer(options.gate.ledger.principalId);
    this.#peers = options.peers && this.#join(options.peers);
    this.#supply = options.slices && this.#supplyFrom(options.slices);
    this.#routes = new Map<string, Route>([
      ['GET /openapi.json', { use: undefined, answer: () => options.openApi ?? '{}' }],
      [
        'GET /.well-known/authzen-configuration',
        { use: undefined, answer: () => writeAuthZenConfiguration(options.publicUrl) },
      ],
      ['POST /v1/decide', { use: 'call', answer: (asked) => this.#decide(asked) }],
      ['POST /v1/settle', { use: 'call', answer: (asked) => this.#settle(asked) }],
      ['POST /v1/release', { use: 'call', answer: (asked) => this.#release(asked) }],
      [
        'POST /v1/slice',
        {
          use: 'slice',
          answer: ({ body, bearer, signal }) => answerNextSlice(this.#gate.ledger, body, bearer, signal),
        },
      ],
      [
        'POST /v1/slice/settle',
        {
          use: 'slice',
          answer: ({ body, bearer, signal }) => answerSettleSlices(this.#gate.ledger, body, bearer, signal),
        },
      ],
      ['GET /v1/open', { use: 'read', answer: (asked) => this.#listOpen(asked) }],
      ['GET /v1/budget', { use: 'read', answer: () => this.#budget() }],
      ['GET /v1/approvals', { use: 'read', answer: (asked) => this.#approvals(asked) }],
      ['GET /v1/approvals/*', { use: 'read', answer: (asked) => this.#request(asked) }],
      ['POST /v1/approvals/*/approve', { use: 'approve', answer: (asked) => this.#answer(asked, 'approve') }],
      ['POST /v1/approvals/*/passkey', { use: 'approve', answer: (asked) => this.#askPasskey(asked) }],
      ['POST /v1/approvals/*/reject', { use: 'approve', answer: (asked) => this.#answer(asked, 'reject') }],
      ...AUTHZEN_PATHS.map((path): [string, Route] => [
        `POST ${path}`,
        {
          use: 'call',
          answer: ({ body, bearer, signal, facts }) =>
            answerAuthZen(this.#gate, path, body, bearer, signal, facts),
        },
      ]),
    ]);
  }

  /** Answers a request. Never rejects. */
  async handle(request: HttpRequest, isTrustedPeer = false): Promise<HttpResponse> {
    const began = performance.now();
    const facts: RequestFacts = {};
    let route = 'none';
    let bearer: Bearer | undefined;
    let isForwarded = false;
    let response: HttpResponse;
    try {
      const url = new URL(request.path, 'http://gate.invalid');
      const face = this.#faceOf(request.method, url.pathname);
      if (face !== undefined) {
        ({ route } = face);
        const bearerFor = (use: TokenUse): Bearer => (bearer = this.bearerOf(request, isTrustedPeer, use));
        response = await face.answer({ ...this.#open, request, path: url.pathname, bearerFor, facts });
      } else if (url.pathname === '/approvals' && request.method === 'GET') {
        route = 'GET /approvals';
        response = {
          status: 200,
          contentType: 'text/html; charset=utf-8',
          body: APPROVER_PAGE,
          headers: PAGE_HEADERS,
        };
      } else if (url.pathname === '/healthz' && request.method === 'GET') {
        route = HEALTH;
        const health = this.health();
        response = toHealth(health.status, health);
      } else if (url.pathname === '/metrics' && request.method === 'GET') {
        route = 'GET /metrics';
        bearer = this.bearerOf(request, isTrustedPeer, 'read');
        response = toMetrics([this.source({})]);
      } else {
        const found = this.#find(request.method, url.pathname);
        ({ route } = found);
        const { use, answer } = found.own;
        bearer = use === undefined ? this.#own : this.bearerOf(request, isTrustedPeer, use);
        const body = request.method === 'POST' ? readBody(assertJson(request)) : {};
        const asked = {
          bearer,
          body,
          query: url.searchParams,
          rest: found.rest,
          signal: request.signal,
          facts,
        };
        const forwarded = use === undefined ? undefined : await this.#forward(request, url, body);
        if (forwarded === undefined) {
          const answered = await answer(asked);
          response = {
            status: 200,
            contentType: JSON_TYPE,
            body: typeof answered === 'string' ? answered : JSON.stringify(answered),
            headers: requestIdOf(request),
          };
        } else {
          response = forwarded;
          isForwarded = true;
        }
      }
    } catch (error) {
      response = refuse(error);
      facts.code = codeOf(error);
      // Nobody hears the answer: it is no fault of the service.
      if (error === request.signal.reason) {
        response = { ...response, status: CLIENT_GONE };
        facts.code = 'CLIENT_GONE';
      }
      if (facts.code === 'LEDGER_FAILED' || facts.code === 'LEDGER_ROLLED_BACK')
        this.#noteFailure(facts.code);
    }
    const ms = Math.round((performance.now() - began) * 1_000) / 1_000;
    this.metrics.count('northroot_requests_total', { route, status: String(response.status) });
    const { status } = response;
    // Peers ask all the time.
    if (route === HEALTH && request.headers[FORWARDED] !== undefined) return response;
    const also = isForwarded ? { forwarded: true as const } : {};
    this.#options.onEvent?.({ route, status, bearer: bearer?.name, ms, ...facts, ...also });
    return response;
  }

  /** Leaves its peers, and gives slices back. The gate stays open. */
  async close(): Promise<void> {
    const leads = this.#leads;
    this.#peers?.close();
    await this.#supply?.close(leads && this.#options.slices?.givesBack === true);
  }

  get #leads(): boolean {
    return this.#failure === undefined && this.#peers?.leads !== false;
  }

  #supplyFrom({ source, onEvent }: SliceChoice): SliceSupply {
    const ledger = (): LiveLedger => this.#gate.ledger;
    const { clock } = ledger();
    return new SliceSupply({ ledger, source, onEvent, clock, decides: () => this.#leads });
  }

  #join(urls: readonly URL[]): Peers {
    return new Peers(urls, {
      ledgerId: () => this.#gate.ledger.genesisId,
      size: () => this.#gate.ledger.size,
      isUsable: () => this.#failure === undefined,
      catchUp: async () => {
        await this.#gate.ledger.use((ledger) => ledger.inspect(() => undefined));
      },
      readOn: () => this.#gate.ledger.readOn(),
      onRole: (change) => {
        if (change.role === 'leader') this.metrics.count('northroot_takeovers_total', {});
        this.#options.onRole?.(change);
      },
    });
  }

  /** The leader's answer; undefined where this service is to answer. */
  async #forward(request: HttpRequest, url: URL, body: JsonObject): Promise<HttpResponse | undefined> {
    // What was forwarded is answered: whoever decides is exact, and nothing goes in circles.
    if (this.#peers === undefined || request.headers[FORWARDED] !== undefined) return undefined;
    const asked = { ...request, path: `${url.pathname}${url.search}` };
    let outcome = 'lost';
    try {
      const answer = await this.#peers.forward(asked, isRepeatable(request, url, body));
      outcome = answer === undefined ? 'own' : 'answered';
      return answer;
    } finally {
      if (outcome !== 'own') this.metrics.count('northroot_forwarded_total', { outcome });
    }
  }

  #faceOf(
    method: string,
    path: string,
  ): { readonly route: string; readonly answer: (asked: FaceRequest) => Promise<HttpResponse> } | undefined {
    for (const face of this.#options.faces ?? []) {
      const route = face.routeOf(method, path);
      if (route !== undefined) return { route, answer: (asked) => face.answer(asked) };
    }
    return undefined;
  }

  #find(
    method: string,
    path: string,
  ): { readonly route: string; readonly own: Route; readonly rest: string[] } {
    const own = this.#routes.get(`${method} ${path}`);
    if (own !== undefined) return { route: `${method} ${path}`, own, rest: [] };
    const [, version, kind, id, verb, ...more] = path.split('/');
    const route = `${method} /${version}/${kind}/*${verb === undefined ? '' : `/${verb}`}`;
    const starred = more.length === 0 && id !== undefined ? this.#routes.get(route) : undefined;
    if (starred !== undefined && id !== undefined) return { route, own: starred, rest: [decodePart(id)] };
    if ([...this.#routes.keys()].some((each) => each.endsWith(` ${path}`)))
      throw new NorthrootError('METHOD_NOT_ALLOWED', `${printable(method, 20)} is not allowed here`);
    throw new NorthrootError('NOT_FOUND', `there is no ${printable(path, 80)}`);
  }

  /** Who asks. @throws NorthrootError `TOKEN_INVALID`, `NOT_ALLOWED` */
  bearerOf({ headers }: HttpRequest, isTrustedPeer: boolean, use: TokenUse): Bearer {
    const { tokens } = this.#options;
    const token = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i.exec(headers['authorization'] ?? '')?.[1];
    let bearer: Bearer | undefined;
    if (tokens === undefined) bearer = isTrustedPeer ? this.#own : undefined;
    else bearer = token === undefined ? undefined : tokens.find(token);
    if (bearer === undefined)
      throw new NorthrootError('TOKEN_INVALID', 'expected a token that this service knows', {
        hint: 'send Authorization: Bearer TOKEN',
      });
    if (!bearer.may(use)) throw new NorthrootError('NOT_ALLOWED', `this token may not ${use}`);
    return bearer;
  }

  async #decide({ body, bearer, signal, facts }: Asked): Promise<object> {
    const { call, waitMs } = readDecide(body);
    const principal = whoOf(bearer, call.principal);
    facts.tool = printable(call.tool, 128);
    facts.principal = principal;
    if (!bearer.mayCall(call.tool))
      throw new NorthrootError('NOT_ALLOWED', `this token may not call ${printable(call.tool, 128)}`);
    const began = performance.now();
    const waits = waitMs !== undefined && waitMs > 0;
    const { maxWaiting = DEFAULT_MAX_WAITING } = this.#options;
    if (waits && this.#waiting >= maxWaiting)
      throw new NorthrootError('BUSY', 'too many calls wait for approvals', { hint: 'ask again later' });
    this.#waiting += waits ? 1 : 0;
    try {
      const options = { signal, ...(waits ? { waitMs } : {}) };
      await this.#supply?.ready(signal);
      const decision = await this.#gate.decide({ ...call, principal }, options);
      facts.effect = decision.effect;
      facts.code = decision.code;
      facts.authorization = decision.authorization;
      this.metrics.count('northroot_decisions_total', { effect: decision.effect, code: decision.code });
      void this.#supply?.look();
      if (!waits) this.metrics.observe((performance.now() - began) / 1_000);
      return writeDecision(decision);
    } finally {
      this.#waiting -= waits ? 1 : 0;
    }
  }

  async #settle({ body, bearer, signal, facts }: Asked): Promise<object> {
    const { name, outcome } = readSettle(body);
    const principal = whoOf(bearer, name.principal);
    facts.principal = principal;
    const settled = await this.#gate.settle({ ...name, principal }, outcome, {
      signal,
      mayEnd: bearer.mayCall,
    });
    facts.authorization = settled.authorization;
    this.metrics.count('northroot_settled_total', { outcome: outcome.outcome });
    return writeSettled(settled);
  }

  async #release({ body, bearer, signal, facts }: Asked): Promise<object> {
    const members = new Members(body);
    const name = readName(members);
    const mayHaveRun = members.flag('may_have_run');
    members.end();
    const principal = whoOf(bearer, name.principal);
    facts.principal = principal;
    const gate = this.#gate;
    if (name.session === undefined || name.ref !== undefined || name.tool !== undefined)
      return writeSettled(await gate.release({ ...name, principal }, { signal, mayEnd: bearer.mayCall }));
    const mayRelease = (who: string): boolean => bearer.mayBe(who);
    const options = { signal, mayRelease, mayEnd: bearer.mayCall, mayHaveRun };
    const released = await releaseSession(gate, name.session, options);
    return { released };
  }

  #listOpen({ bearer, query }: Asked): object {
    const open = this.#gate.listOpen(query.get('session') ?? undefined);
    return { open: open.filter(({ principal }) => bearer.mayBe(principal)) };
  }

  async #budget(): Promise<object> {
    const budgets = await this.#gate.ledger.budget();
    return {
      grants: budgets.map(
        ({ eventId, seq, principalId, expiresAt, withdrawn, balances, started, unstarted }) => ({
          event_id: eventId,
          seq,
          principal_id: principalId,
          expires_at: expiresAt,
          withdrawn,
          meters: balances,
          started: started.length,
          unstarted: unstarted.length,
        }),
      ),
    };
  }

  async #approvals({ query }: Asked): Promise<object> {
    const [waiting, after] = [query.get('waiting'), query.get('after')];
    if (waiting !== null && !/^[1-9]\d{0,4}$/.test(waiting)) throw malformed('waiting: expected 1 to 99999');
    if (after !== null && !/^\d{1,15}$/.test(after)) throw malformed('after: expected a seq');
    const selection = {
      ...(after === null ? {} : { after: Number(after) }),
      ...(waiting === null ? { most: MAX_REQUESTS + 1 } : { waiting: Number(waiting) }),
    };
    const requests = await this.#gate.ledger.requests(selection);
    // Calls are decided between one part and the next.
    const shown = waiting === null ? requests.slice(0, MAX_REQUESTS) : requests;
    return {
      requests: shown.map(pendingJson),
      ...(shown.length < requests.length ? { next: shown.at(-1)?.seq } : {}),
    };
  }

  /** Parameters are shown to whoever may answer requests, or read. */
  async #request({ rest }: Asked): Promise<object> {
    const { ledger } = this.#gate;
    if (!ledger.isInFiles)
      throw new NorthrootError('NOT_FOUND', 'requests of a store cannot be read by themselves');
    const view = ledger.view();
    const source: RequestSource = {
      path: view.path,
      findRecord: (id) => view.findRecord(id),
      // By what decisions rest on, which is known here: nothing is verified once more.
      inspect: (look) => ledger.use((own) => own.inspect((_, deciding) => look(deciding))),
    };
    return requestJson(await readRequest(source, idOf(rest), { now: ledger.now() }));
  }

  /** What a passkey of the principal is asked for; `null` where it never had one. */
  async #askPasskey({ body, bearer, rest, facts }: Asked): Promise<object> {
    const members = new Members(body);
    const decision = members.text('decision');
    if (decision !== 'approve' && decision !== 'reject')
      throw malformed('/decision: expected approve or reject');
    const origin = members.text('origin') ?? '';
    const options = readAnswer(members, bearer, facts);
    members.end();
    const ledger = this.#ledgerOf(options);
    if (!(await ledger.hasHadPasskey(options.principalId))) return { event: null, publicKey: null };
    return ledger.askPasskey(idOf(rest), { ...options, decision, origin });
  }

  #ledgerOf({ principalId }: { readonly principalId: string }): LiveLedger {
    const { gate, approvers } = this.#open;
    return approvers?.get(principalId) ?? gate.ledger;
  }

  async #answer({ body, bearer, rest, facts }: Asked, decision: 'approve' | 'reject'): Promise<object> {
    const members = new Members(body);
    const passkey = members.object('passkey');
    // What a passkey signed has its own limit, expiry and code.
    const options =
      passkey === undefined
        ? readAnswer(members, bearer, facts)
        : { principalId: readPrincipal(members, bearer, facts) };
    const [event, credential] = [passkey?.any('event'), passkey?.any('credential')];
    passkey?.end();
    members.end();
    const request = idOf(rest);
    const { gate } = this.#open;
    const ledger = this.#ledgerOf(options);
    const { principalId } = options;
    if (passkey === undefined) await assertNoPasskey(ledger, principalId);
    const answer = { event: membersOf(event), credential: membersOf(credential) };
    const recorded = await (passkey !== undefined
      ? ledger.answerByPasskey(request, answer, { decision, principalId })
      : decision === 'approve'
        ? ledger.approve(request, options)
        : ledger.reject(request, options));
    const left = await gate.ledger.request(request);
    return {
      event_id: recorded.eventId,
      seq: recorded.seq,
      status: left?.status ?? (decision === 'approve' ? 'approved' : 'rejected'),
    };
  }

  health(): Health {
    const records = this.#gate.ledger.size;
    const standing = this.#peers?.standing;
    const code = this.#failure;
    return { status: code === undefined ? 'ok' : 'failed', records, ...defined({ code }), ...standing };
  }

  #noteFailure(code: 'LEDGER_FAILED' | 'LEDGER_ROLLED_BACK'): void {
    this.#peers?.stepDown();
    // What was acknowledged and is gone does not come back by opening anew.
    if (this.#failure === 'LEDGER_ROLLED_BACK') return;
    this.#failure = code;
    const { reopen } = this.#options;
    if (code === 'LEDGER_ROLLED_BACK' || reopen === undefined || this.#isReopening) return;
    this.#isReopening = true;
    void this.#reopen(reopen).finally(() => (this.#isReopening = false));
  }

  get #gate(): Gate {
    return this.#open.gate;
  }

  /** What has failed is replaced; where that fails too, the next request that fails tries again. */
  async #reopen(open: () => Promise<OpenGate>): Promise<void> {
    const before = this.#open;
    try {
      this.#open = await open();
    } catch {
      await setTimeout(REOPEN_MS, undefined, { ref: false });
      return;
    }
    if (this.#failure === 'LEDGER_FAILED') this.#failure = undefined;
    const ledgers = [before.gate, ...(before.approvers?.values() ?? [])];
    await Promise.allSettled(ledgers.map((ledger) => ledger.close()));
  }

  /** @param labels - Of each line */
  source(labels: MetricsSource['labels']): MetricsSource {
    const gate = this.#gate;
    const peers = this.#peers;
    const gauges = {
      ...(peers === undefined ? {} : { northroot_leading: peers.leads ? 1 : 0 }),
      northroot_open_calls: gate.openCalls,
      northroot_waiting_calls: this.#waiting,
      northroot_ledger_records: gate.ledger.size,
    };
    return { metrics: this.metrics, gauges, labels };
  }
}

/** A service that has failed is not to be sent anything. */
export function toHealth(status: Health['status'], body: object): HttpResponse {
  const isOk = status === 'ok';
  return { status: isOk ? 200 : 503, contentType: JSON_TYPE, body: JSON.stringify(body) };
}

export function toMetrics(sources: readonly MetricsSource[]): HttpResponse {
  return {
    status: 200,
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    body: writeMetrics(sources),
  };
}

function isMisuse(error: unknown): error is TypeError | RangeError {
  return error instanceof TypeError || error instanceof RangeError;
}

function codeOf(error: unknown): string {
  if (error instanceof NorthrootError) return error.code;
  return isMisuse(error) ? 'USAGE' : 'INTERNAL_ERROR';
}

/** The answer to a request that failed. */
export function refuse(error: unknown): HttpResponse {
  const known = error instanceof NorthrootError ? error : undefined;
  const code = codeOf(error);
  const status = STATUSES[code] ?? (isMisuse(error) ? 400 : known === undefined ? 500 : 422);
  const message =
    known !== undefined || isMisuse(error)
      ? printable((error as Error).message, 1_000)
      : 'something went wrong here';
  const hint = known?.hint === undefined ? undefined : printable(known.hint, 500);
  return {
    status,
    contentType: JSON_TYPE,
    body: JSON.stringify({ error: { code, message, hint } }),
    ...(status === 503 ? { headers: { 'Retry-After': '1' } } : {}),
  };
}

/** @throws NorthrootError `NOT_ALLOWED` for a principal that the bearer may not speak for */
export function whoOf(bearer: Bearer, asked: string | undefined): string {
  const principal = asked ?? bearer.principal;
  if (principal === undefined) throw malformed('/principal: expected whom the call is for');
  if (bearer.mayBe(principal)) return principal;
  throw new NorthrootError('NOT_ALLOWED', `this token may not speak for ${printable(principal)}`);
}

/** @throws NorthrootError `USAGE` */
function idOf([id = '']: readonly string[]): string {
  if (/^sha-256:[A-Za-z0-9_-]{43}$/.test(id)) return id;
  throw malformed('expected the whole id of a request, sha-256:…');
}

/** @throws NorthrootError `USAGE` */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw malformed('the path is not well-formed');
  }
}

function assertJson({ headers, body }: HttpRequest): Uint8Array {
  const type = headers['content-type'] ?? '';
  // A page of another origin can send forms without being asked, but no JSON.
  if (!/^application\/json\s*(?:;|$)/i.test(type)) throw malformed('expected Content-Type: application/json');
  return body;
}

/** Whether a request that may have been done can be asked again: the answer is the same, and nothing is recorded twice. */
function isRepeatable({ method }: HttpRequest, { pathname }: URL, body: JsonObject): boolean {
  if (method === 'GET') return true;
  // A call without an id is told by its order; an approval is an event of its own.
  if (NAMED.has(pathname)) return typeof body['ref'] === 'string';
  const isQuestion = AUTHZEN_PATHS.some((path) => path === pathname);
  return isQuestion && !JSON.stringify(body).includes('"northroot"');
}

const NAMED: ReadonlySet<string> = new Set(['/v1/decide', '/v1/settle', '/v1/release']);

function requestIdOf({ headers }: HttpRequest): Readonly<Record<string, string>> {
  const id = headers['x-request-id'];
  return id !== undefined && /^[\x21-\x7e]{1,128}$/.test(id) ? { 'X-Request-ID': id } : {};
}

function readAnswer(
  members: Members,
  bearer: Bearer,
  facts: RequestFacts,
): ApprovalOptions & { readonly principalId: string } {
  const [limit, expiresAt, code] = [
    members.amounts('limit'),
    members.text('expires_at'),
    members.text('code'),
  ];
  return { principalId: readPrincipal(members, bearer, facts), limit, expiresAt, code };
}

/** A token alone does not answer for who has a passkey, or had one. @throws NorthrootError `NOT_ALLOWED` */
export async function assertNoPasskey(ledger: LiveLedger, principal: string): Promise<void> {
  if (!(await ledger.hasHadPasskey(principal))) return;
  const [passkey] = await ledger.passkeysOf(principal);
  throw new NorthrootError('NOT_ALLOWED', `${printable(principal)} answers by a passkey`, {
    hint:
      passkey === undefined
        ? 'its passkey is not valid any more: an admin adds another one to the ledger'
        : `open the approvers' page at ${printable(passkey.origins[0] ?? '')}`,
  });
}

function readPrincipal(members: Members, bearer: Bearer, facts: RequestFacts): string {
  const principal = whoOf(bearer, members.text('principal'));
  facts.principal = principal;
  return principal;
}
