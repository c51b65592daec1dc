/**
 * The governance server of Clasper's adapter contract v2, answered by a gate: what it allows is reserved in the ledger, and what is
 * reported ends it. What the ledger holds is all that there is: any process that opens it goes on with it.
 */

import { createHmac } from 'node:crypto';
import type { SourceObject } from '../../../base/json/source-json.js';
import { checkOptions, type OptionTypes } from '../../../base/options.js';
import type { HttpRequest, HttpResponse } from '../../../base/platform/serve-http.js';
import { isPrincipalPattern } from '../../../base/value/principal.js';
import { isToolPattern } from '../../../base/value/tool.js';
import type { Face, FaceRequest } from '../../../gate/service/face.js';
import { whoOf } from '../../../gate/service/gate-service.js';
import type { Gate } from '../../../gate/gate.js';
import { makeToolSet } from '../../../rules/bounds/tool-set.js';
import { textAt } from '../../shared/values.js';
import { readAdapter } from './adapters.js';
import { Book } from './book.js';
import { consumeDecision, pollDecision, requestExecution, resolveDecision } from './executions.js';
import { ingest } from './ingest.js';
import { type Asked, secondsOf, type Settings } from './office.js';
import { type Exchange, toExchange } from './recording.js';
import { readObject, Refusal } from './refusal.js';
import { registerAdapter, setTelemetryKey } from './registry.js';
import type { ReportType } from './report.js';
import { authorizeTool } from './tools.js';

export interface ClasperFaceOptions {
  /** By which adapters' tokens are signed (HS256), and the tokens of the face; those that are left out are derived from the first. */
  readonly secrets: {
    readonly adapter: string;
    readonly tool?: string | undefined;
    readonly decision?: string | undefined;
  };
  /** What `aud` of adapters' tokens must name. Default: a token that names any is refused. */
  readonly audience?: string | undefined;
  /** Whether telemetry without a signature is refused. Default `enforce`. */
  readonly signatures?: 'enforce' | 'warn' | undefined;
  /** Answers another report of what was reported with `duplicate`, as the host does, instead of 409. Default false. */
  readonly compatible?: boolean | undefined;
  /** How far `issued_at` of telemetry may be off, in seconds. Default 300. */
  readonly maxSkewSeconds?: number | undefined;
  /** Patterns of capabilities for which an execution waits for an approval, besides what grants ask. */
  readonly approveCapabilities?: readonly string[] | undefined;
  /** Who may approve: patterns of principals. Default `human:*`. */
  readonly approvers?: readonly string[] | undefined;
  /** Called with each answered request, as recordings have them. The signatures of tokens are left out, and the bodies of requests without a valid one; other contents are not. */
  readonly onExchange?: ((exchange: Exchange) => Promise<void>) | undefined;
}

const OPTION_TYPES: OptionTypes<ClasperFaceOptions> = {
  secrets: 'object',
  audience: 'string',
  signatures: 'string',
  compatible: 'boolean',
  maxSkewSeconds: 'number',
  approveCapabilities: 'array',
  approvers: 'array',
  onExchange: 'function',
};

const DEFAULT_SKEW_SECONDS = 300;
const NO_BODY = new Uint8Array();
const JSON_TYPE = 'application/json; charset=utf-8';
const INGEST = /^\/api\/ingest\/(trace|audit|cost|metrics|violations)$/;
const DECISION = /^\/api\/decisions\/([^/]+)(?:\/(consume|resolve))?$/;
const ROUTES: ReadonlySet<string> = new Set([
  'POST /adapters/register',
  'POST /ops/api/adapters/telemetry-key',
  'POST /ops/api/adapters/telemetry-key/revoke',
  'POST /api/execution/request',
  'POST /api/governance/tool/authorize',
  'GET /api/decisions/*',
  'POST /api/decisions/*/consume',
  'POST /api/decisions/*/resolve',
  ...['trace', 'audit', 'cost', 'metrics', 'violations'].map((type) => `POST /api/ingest/${type}`),
]);

/**
 * Makes the face for `serveGate`. Executions are delegated from the grants of `service:clasper/TENANT`, in the name of
 * `agent:clasper/TENANT/ADAPTER`. The gate's ledger must be in files, and its key entitled to both.
 * @throws TypeError, RangeError naming a malformed option
 * @example
 * const face = clasperFace({ secrets: { adapter: process.env.ADAPTER_JWT_SECRET } });
 * await serveGate({ gate, faces: [face], socket: 'ledger.sock' });
 */
export function clasperFace(options: ClasperFaceOptions): Face {
  checkOptions('clasperFace', options, OPTION_TYPES);
  const settings = toSettings(options);
  const books = new WeakMap<Gate, Promise<Book>>();
  const bookOf = async (gate: Gate): Promise<Book> => {
    const known = books.get(gate);
    const opened = known ?? Book.open(gate);
    if (known === undefined) {
      books.set(gate, opened);
      // What could not be read is read again when it is asked for again.
      opened.catch(() => books.delete(gate));
    }
    const book = await opened;
    await book.sync();
    return book;
  };
  const answer = async (asked: FaceRequest): Promise<HttpResponse> => {
    try {
      return respond(200, await route(asked, settings, bookOf));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      asked.facts.code ??= error.code ?? 'REFUSED';
      return respond(error.status, error.body);
    }
  };
  return {
    name: 'clasper',
    authenticates: true,
    routeOf,
    answer: async (asked) => {
      const response = await answer(asked);
      const isKnown = asked.facts.principal !== undefined || ![401, 403].includes(response.status);
      // Who is nobody's adapter is to fill no disk.
      const request = isKnown ? asked.request : { ...asked.request, body: NO_BODY };
      await options.onExchange?.(toExchange(request, response, asked.gate.ledger.now()));
      return response;
    },
  };
}

/** @throws TypeError, RangeError */
function toSettings({
  secrets,
  audience,
  signatures = 'enforce',
  compatible = false,
  maxSkewSeconds = DEFAULT_SKEW_SECONDS,
  approveCapabilities,
  approvers = ['human:*'],
}: ClasperFaceOptions): Settings {
  const { adapter, tool, decision } = secrets;
  for (const [name, secret] of Object.entries({ adapter, tool, decision }))
    if (name === 'adapter' ? typeof secret !== 'string' || secret === '' : secret === '')
      throw new TypeError(`clasperFace: secrets.${name}: expected a text that is not empty`);
  if (signatures !== 'enforce' && signatures !== 'warn')
    throw new RangeError("clasperFace: signatures: expected 'enforce' or 'warn'");
  if (!(maxSkewSeconds >= 0 && maxSkewSeconds <= MAX_SKEW_SECONDS))
    throw new RangeError(`clasperFace: maxSkewSeconds: expected 0 to ${MAX_SKEW_SECONDS}`);
  if (approveCapabilities?.every(isToolPattern) === false)
    throw new RangeError('clasperFace: approveCapabilities: expected patterns such as shell.*');
  if (approvers.length === 0 || !approvers.every(isPrincipalPattern))
    throw new RangeError('clasperFace: approvers: expected patterns such as human:*');
  return {
    secrets: {
      adapter,
      tool: tool ?? derive(adapter, 'tool'),
      decision: decision ?? derive(adapter, 'decision'),
    },
    audience,
    signatures,
    isCompatible: compatible,
    maxSkewSeconds,
    approval:
      approveCapabilities === undefined || approveCapabilities.length === 0
        ? undefined
        : { capabilities: makeToolSet(approveCapabilities), approvers },
  };
}

const MAX_SKEW_SECONDS = 86_400;

function derive(secret: string, purpose: string): string {
  return createHmac('sha256', secret).update(`northroot clasper ${purpose}`).digest('base64url');
}

function routeOf(method: string, path: string): string | undefined {
  const [, , verb] = DECISION.exec(path) ?? [];
  const starred = DECISION.test(path)
    ? `${method} /api/decisions/*${verb === undefined ? '' : `/${verb}`}`
    : undefined;
  const name = starred ?? `${method} ${path}`;
  return ROUTES.has(name) ? name : undefined;
}

/** Answers a request; who asks is known first. @throws Refusal */
async function route(
  asked: FaceRequest,
  settings: Settings,
  bookOf: (gate: Gate) => Promise<Book>,
): Promise<object> {
  const { request, path, gate, approvers, bearerFor, facts } = asked;
  const { method, headers, body: bytes, signal } = request;
  const [, part = '', verb] = DECISION.exec(path) ?? [];
  if (path.startsWith('/ops/') || verb === 'resolve') {
    const bearer = bearerFor('approve');
    const body = readObject(assertJson(request));
    const own = { gate, book: await bookOf(gate), settings };
    if (verb === undefined) return setTelemetryKey(own, body, path.endsWith('/revoke'));
    const approver = whoOf(bearer, textAt(body, 'principal'));
    facts.principal = approver;
    return resolveDecision({ ...own, approvers, approver }, decodePart(part), body);
  }
  const now = secondsOf(gate.ledger.now());
  const adapter = readAdapter(request, settings.secrets.adapter, { now, audience: settings.audience });
  facts.principal = adapter.principal;
  const body: SourceObject | undefined =
    method === 'POST' && part === '' ? readObject(assertJson(request)) : undefined;
  const known: Asked = { gate, book: await bookOf(gate), settings, adapter, facts, signal };
  if (body === undefined) {
    const id = decodePart(part);
    return verb === undefined
      ? pollDecision(known, id)
      : consumeDecision(known, id, headers['x-decision-token']);
  }
  if (path === '/adapters/register') return registerAdapter(known, body);
  if (path === '/api/execution/request') return requestExecution(known, body);
  if (path === '/api/governance/tool/authorize') return authorizeTool(known, body);
  const type = INGEST.exec(path)?.[1] as ReportType;
  return ingest(known, type, body, bytes);
}

function assertJson({ headers, body }: HttpRequest): Uint8Array {
  if (/^application\/json\s*(?:;|$)/i.test(headers['content-type'] ?? '')) return body;
  throw new Refusal(415, 'Expected Content-Type: application/json', 'unsupported_media_type');
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal(404, 'Decision not found');
  }
}

function respond(status: number, body: object): HttpResponse {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(body) };
}
