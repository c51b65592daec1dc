/**
 * The server of CGF HostAdapter as a face of the service: its adapters register, ask and report, and the gate decides. Bodies and errors are
 * those of the host's own server; members of requests that no schema has are allowed.
 */

import { encodeUtf8 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';
import { decodeSourceJson } from '../../../base/json/source-json.js';
import { checkOptions, type OptionTypes } from '../../../base/options.js';
import type { HttpRequest, HttpResponse } from '../../../base/platform/serve-http.js';
import { formatDigest, sha256Digest } from '../../../base/value/digest.js';
import type { Face, FaceRequest } from '../../../gate/service/face.js';
import type { Gate } from '../../../gate/gate.js';
import type { TokenUse } from '../../../gate/service/tokens.js';
import { LineFile } from '../../../log/fs/line-file.js';
import { pythonSha256 } from '../../shared/forms/python.js';
import { objectAt, textAt } from '../../shared/values.js';
import type { PolicyBundle } from '../policy.js';
import { ACTION_TYPES, RISK_TIERS } from '../vocabulary.js';
import { blockedAnswer, GRANTS_VERSION, SCHEMA_VERSION, writeAnswer } from './answer.js';
import { type Asker, Blocked, Desk } from './desk.js';
import {
  type CgfEvent,
  decisionEvents,
  outcomeEvents,
  paramsHashOf,
  registeredEvent,
  secondsOf,
} from './events.js';
import { readFields, Refusal } from './fields.js';
import { readOutcome } from './outcome.js';
import { parsePolicy } from './policy-adviser.js';
import { readHostConfig, readProposal } from './proposal.js';
import { writeReplay } from './replay.js';

export interface CgfFaceOptions {
  /** A policy bundle of CGF, as its file has it, asked before the grants. Default: the grants alone decide. */
  readonly policy?: Uint8Array | undefined;
  /** The bearer token of all adapters. Default: the service's tokens. */
  readonly token?: string | undefined;
  /** Lets adapters in without a token, if they reach the service by a name of this machine's loopback. Default false. */
  readonly anonymous?: boolean | undefined;
  /**
   * Answers ALLOW and BLOCK alone, for adapters that act upon no other decision: what would be deferred, constrained or audited is blocked.
   * Default false.
   */
  readonly plain?: boolean | undefined;
  /** A file to append events to, in CGF's ratified vocabulary. Default: none. */
  readonly events?: string | undefined;
  /** Keeps proposals and reports of outcomes beside the ledger, in `LEDGER.contents`, for whole replays. Default false. */
  readonly attach?: boolean | undefined;
  /** How long a registration holds after its last use, in milliseconds. Default 3,600,000 (1 hour). */
  readonly expiresMs?: number | undefined;
  /** Called when the file of events cannot be written. What was decided stands: the ledger has it. */
  readonly onEventsFailed?: ((error: NorthrootError) => void) | undefined;
}

const OPTION_TYPES: OptionTypes<CgfFaceOptions> = {
  policy: 'bytes',
  token: 'string',
  anonymous: 'boolean',
  plain: 'boolean',
  events: 'string',
  attach: 'boolean',
  expiresMs: 'number',
  onEventsFailed: 'function',
};

const DEFAULT_EXPIRES_MS = 3_600_000;
const TIMEOUT_MS = 500;
const JSON_TYPE = 'application/json';
const REPLAY = /^\/v1\/proposals\/([^/]{1,1024})\/replay$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** A route's methods, and what it answers. */
type Answering = (asked: FaceRequest) => Promise<HttpResponse>;

/**
 * The API of CGF's server, for `serveGate`. Adapters keep their principal by the ledger's `principalId`, or their token's, else
 * `service:cgf/ADAPTER`.
 * @throws TypeError, RangeError naming the malformed option; NorthrootError `POLICY_INVALID`
 */
export function cgfFace(options: CgfFaceOptions = {}): Face {
  checkOptions('cgfFace', options, OPTION_TYPES);
  const { expiresMs = DEFAULT_EXPIRES_MS } = options;
  if (!(expiresMs >= 1)) throw new RangeError('expiresMs: expected milliseconds, at least 1');
  return new CgfFace(options, options.policy === undefined ? undefined : parsePolicy(options.policy));
}

class CgfFace implements Face {
  readonly name = 'cgf';
  readonly authenticates: boolean;
  readonly #options: CgfFaceOptions;
  readonly #policy: PolicyBundle | undefined;
  readonly #token: string | undefined;
  readonly #log: LineFile | undefined;
  readonly #routes: ReadonlyMap<string, Answering>;
  #desk: Desk | undefined;
  #hasFailed = false;

  constructor(options: CgfFaceOptions, policy: PolicyBundle | undefined) {
    this.#options = options;
    this.#policy = policy;
    this.authenticates = options.token !== undefined || options.anonymous === true;
    this.#token = options.token === undefined ? undefined : digestOf(options.token);
    this.#log = options.events === undefined ? undefined : new LineFile(options.events);
    const register: Answering = (asked) => this.#register(asked);
    this.#routes = new Map<string, Answering>([
      ['GET /', () => Promise.resolve(this.#root())],
      ['GET /v1/health', (asked) => this.#health(asked)],
      ['POST /v1/register', register],
      ['POST /v1/adapters/register', register],
      ['POST /v1/evaluate', (asked) => this.#evaluate(asked)],
      ['POST /v1/outcomes/report', (asked) => this.#report(asked)],
      ['POST /v1/capacity/signals', (asked) => this.#signals(asked)],
      ['GET /v1/proposals/*/replay', (asked) => this.#replay(asked)],
    ]);
  }

  routeOf(method: string, path: string): string | undefined {
    const place = REPLAY.test(path) ? '/v1/proposals/*/replay' : path;
    if (this.#routes.has(`${method} ${place}`)) return `${method} ${place}`;
    const isOwn = ['GET', 'POST'].some((other) => this.#routes.has(`${other} ${place}`));
    return isOwn ? `* ${place}` : undefined;
  }

  async answer(asked: FaceRequest): Promise<HttpResponse> {
    const route = this.routeOf(asked.request.method, asked.path) ?? '';
    const answering = this.#routes.get(route);
    try {
      if (answering === undefined) throw new Refusal(405, 'Method Not Allowed');
      return await answering(asked);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const code = error instanceof Blocked ? error.code : undefined;
      asked.facts.code = code ?? `HTTP_${error.status}`;
      return answerOf(error.status, {
        detail: error.detail,
        ...(code === undefined ? {} : { decision: blockedAnswer(proposalIdIn(asked.request), code) }),
      });
    }
  }

  async close(): Promise<void> {
    this.#desk?.book.close();
    await this.#log?.close();
  }

  #root(): HttpResponse {
    return answerOf(200, {
      service: 'northroot, as CGF server',
      version: SCHEMA_VERSION,
      schema_version: SCHEMA_VERSION,
      policy_version: this.#policy?.version ?? GRANTS_VERSION,
      endpoints: [...this.#routes.keys()].filter((route) => route !== 'GET /'),
      capabilities: { action_types: ACTION_TYPES },
    });
  }

  async #health({ gate }: FaceRequest): Promise<HttpResponse> {
    const { book } = this.#deskOf(gate);
    await book.ready;
    const { adapters, size: proposals } = book;
    return answerOf(200, {
      status: 'healthy',
      adapters: adapters.size,
      proposals,
      events: gate.ledger.size,
      schema_version: SCHEMA_VERSION,
    });
  }

  async #register(asked: FaceRequest): Promise<HttpResponse> {
    const asker = this.#askerOf(asked, 'call');
    const fields = readFields(asked.request);
    const adapterType = fields.text('adapter_type');
    const config = readHostConfig(fields.fields('host_config'));
    fields.optionalTexts('features');
    fields.optionalFields('risk_tiers');
    fields.optionalNumber('timestamp');
    fields.end();
    const about = { ...config, adapterType: adapterType ?? '' };
    const { id, at } = await this.#deskOf(asked.gate).register(asker, about);
    asked.facts.effect = 'registered';
    await this.#tell([registeredEvent(id, at, { ...about, version: about.version ?? '0.0.0' })]);
    const registeredAt = secondsOf(at);
    return answerOf(200, {
      schema_version: SCHEMA_VERSION,
      adapter_id: id,
      registered_at: registeredAt,
      expires_at: registeredAt + (this.#options.expiresMs ?? DEFAULT_EXPIRES_MS) / 1_000,
      endpoints: ['POST /v1/evaluate', 'POST /v1/outcomes/report', 'POST /v1/capacity/signals'],
      fail_mode_table: this.#failModes(),
    });
  }

  /** The bundle's; a gate that cannot be asked allows nothing else. */
  #failModes(): object[] {
    const stated = this.#policy?.failModes;
    return ACTION_TYPES.flatMap((action) =>
      RISK_TIERS.map((tier) => {
        const mode = stated?.get(`${action}:${tier}`);
        const rationale = mode === undefined ? 'what cannot be asked is blocked' : 'by the policy bundle';
        return {
          action_type: action,
          risk_tier: tier,
          fail_mode: mode ?? 'fail_closed',
          timeout_ms: TIMEOUT_MS,
          rationale,
        };
      }),
    );
  }

  async #evaluate(asked: FaceRequest): Promise<HttpResponse> {
    const { facts, gate, request } = asked;
    const asker = this.#askerOf(asked, 'call');
    const proposal = readProposal(readFields(request));
    facts.tool = proposal.tool;
    const desk = this.#deskOf(gate);
    const { answer, known, isNew } = await orConflict(() => desk.evaluate(asker, proposal, request.signal));
    facts.principal = known.principal;
    facts.effect = answer.decision;
    facts.code = answer.code;
    facts.authorization = known.authorization;
    if (isNew) {
      const { actionType, riskTier } = proposal;
      await this.#tell(decisionEvents(answer, { actionType, riskTier, paramsHash: paramsHashOf(proposal) }));
    }
    return answerOf(200, { schema_version: SCHEMA_VERSION, decision: writeAnswer(answer) });
  }

  async #report(asked: FaceRequest): Promise<HttpResponse> {
    const asker = this.#askerOf(asked, 'call');
    const outcome = readOutcome(readFields(asked.request));
    const reported = await this.#deskOf(asked.gate).report(asker, outcome, asked.request.signal);
    if (reported !== undefined) await this.#tell(outcomeEvents(reported.answer, outcome, reported.at));
    return answerOf(200, { received: true });
  }

  /** Signals are for the policy of the host's own server; nothing here rests on them. */
  #signals(asked: FaceRequest): Promise<HttpResponse> {
    this.#askerOf(asked, 'call');
    readFields(asked.request);
    return Promise.resolve(answerOf(200, { received: true }));
  }

  async #replay(asked: FaceRequest): Promise<HttpResponse> {
    const { gate, path } = asked;
    const asker = this.#askerOf(asked, 'read', 'call');
    const desk = this.#deskOf(gate);
    const id = decodePart(REPLAY.exec(path)?.[1] ?? '');
    const known = id === undefined ? undefined : await desk.find(asker, id);
    if (id === undefined || known === undefined) throw new Refusal(404, 'Proposal not found');
    const { ledger } = gate;
    const answer = await desk.answerOf(known, id);
    const body = await writeReplay(ledger.isInFiles ? ledger.path : undefined, known, answer, hashIn);
    return { status: 200, contentType: JSON_TYPE, body };
  }

  /** @throws Refusal 401, 403 */
  #askerOf({ request, bearerFor, gate }: FaceRequest, ...uses: readonly TokenUse[]): Asker {
    const { principalId } = gate.ledger;
    const own: Asker = { principal: principalId, mayBe: () => true, mayCall: () => true };
    const token = /^Bearer (.{1,512})$/.exec(request.headers['authorization'] ?? '')?.[1];
    // Equal digests mean equal tokens, so that comparing takes no longer for one that begins like another.
    if (this.#token !== undefined && token !== undefined && digestOf(token) === this.#token) return own;
    let isKnown = false;
    for (const use of uses) {
      try {
        const bearer = bearerFor(use);
        const { principal, mayCall } = bearer;
        return { principal, mayBe: (who) => bearer.mayBe(who), mayCall };
      } catch (error) {
        if (!(error instanceof NorthrootError)) throw error;
        isKnown = error.code === 'NOT_ALLOWED';
      }
    }
    if (isKnown) throw new Refusal(403, 'Forbidden');
    if (this.#options.anonymous === true && isOfThisMachine(request)) return own;
    throw new Refusal(401, 'Unauthorized');
  }

  #deskOf(gate: Gate): Desk {
    if (this.#desk?.isOf(gate) === true) return this.#desk;
    this.#desk?.book.close();
    const { plain = false, attach = false, expiresMs = DEFAULT_EXPIRES_MS } = this.#options;
    return (this.#desk = new Desk(gate, { policy: this.#policy, isPlain: plain, attach, expiresMs }));
  }

  async #tell(events: readonly CgfEvent[]): Promise<void> {
    if (this.#log === undefined) return;
    try {
      await this.#log.append(events.map((event) => JSON.stringify(event)));
      this.#hasFailed = false;
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      if (!this.#hasFailed) this.#options.onEventsFailed?.(error);
      this.#hasFailed = true;
    }
  }
}

/** An id that another call has is refused with a decision. */
async function orConflict<T>(decide: () => Promise<T>): Promise<T> {
  try {
    return await decide();
  } catch (error) {
    if (!(error instanceof NorthrootError) || error.code !== 'REQUEST_CONFLICT') throw error;
    throw new Blocked(409, 'The proposal_id is that of another proposal', error.code);
  }
}

/** A page of another origin that reaches this machine by a name of its own sends that name. */
function isOfThisMachine({ headers }: HttpRequest): boolean {
  return headers['origin'] === undefined && LOOPBACK.test(headers['host'] ?? '');
}

function answerOf(status: number, body: object): HttpResponse {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(body) };
}

function digestOf(token: string): string {
  return formatDigest(sha256Digest(encodeUtf8(token)));
}

function decodePart(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/** For an answer that refuses. */
function proposalIdIn({ body }: HttpRequest): string {
  const decoded = decodeSourceJson(body);
  const id = decoded.ok ? textAt(decoded.value, 'proposal', 'proposal_id') : undefined;
  return id ?? '';
}

function hashIn(proposal: string): string | undefined {
  const decoded = decodeSourceJson(encodeUtf8(proposal));
  const params = decoded.ok ? objectAt(decoded.value, 'action_params') : undefined;
  return params && pythonSha256(params, 'py-json-sorted-spaced-ascii').slice(0, 16);
}
