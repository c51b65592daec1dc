/**
 * A proxy before one MCP server over streamable HTTP, of both eras: 2026-07-28, where each POST stands alone, and those before it, with
 * sessions, streams by GET, and answers that come on another stream than their request's. What may pass is for `mcp-guard.ts`, what headers
 * must say for `http-rules.ts`. Event streams pass event by event, each when it is complete; all else of them passes at once. Keys and tokens pass, and are never kept.
 */

import { checkOptions, type OptionTypes } from '../../base/options.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import type { HttpServer } from '../../base/platform/serve-http.js';
import type { CallOutcome } from '../gate.js';
import { requestHeaders } from '../proxy/headers.js';
import type { ProxyFault } from '../proxy/observer.js';
import {
  type ProxyForward,
  type ProxyRefusal,
  type ProxyReply,
  type ProxyRequest,
  type ProxyStream,
  serveProxy,
} from '../proxy/serve-proxy.js';
import { parseUpstream, Upstream, type UpstreamAnswer, UpstreamError } from '../proxy/upstream.js';
import { EventCutter, type StreamPiece, writeEvent } from './event-cutter.js';
import { AnswerBody, AnswerTooLong, HeldBytes } from './http-answer.js';
import { isPlainJson, judgeHeaders, mirrorAgain, readHeaders } from './http-rules.js';
import {
  errorMessage,
  keyOfId,
  readFrame,
  RPC_INTERNAL_ERROR,
  RPC_INVALID_REQUEST,
  RPC_PARSE_ERROR,
  type RpcFrame,
  type RpcId,
} from './json-rpc.js';
import type { McpGuard } from './mcp-guard.js';
import type { McpLink } from './mcp-link.js';

export interface McpProxyOptions {
  /** It is closed with the proxy; its gate stays open. */
  readonly guard: McpGuard;
  /** The server's endpoint, such as `https://mcp.example/mcp`; the proxy's has the same path. A query is sent with every request. */
  readonly upstream: string | URL;
  /** Default: 127.0.0.1, and any port that is free. */
  readonly listen?: { readonly host?: string | undefined; readonly port: number } | undefined;
  /** Lets in versions before 2026-07-28, whose requests need not say their version. Default false. */
  readonly legacy?: boolean | undefined;
  /** Values of `Origin` that are let in, such as `https://app.example`. Default: none, so that no web page is. */
  readonly origins?: readonly string[] | undefined;
  /** Names besides this machine's loopback that `Host` may have. */
  readonly hosts?: readonly string[] | undefined;
  /** The longest message, each way, in bytes. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** How long the server may send nothing in answer to a request, in milliseconds. Default 900,000 (15 minutes). */
  readonly idleTimeoutMs?: number | undefined;
  /** Certificates that may issue the server's, PEM. Default: Node's. */
  readonly ca?: string | undefined;
}

export interface McpProxyServer {
  readonly url: string;
  /** Stops accepting requests, gives calls that run 10 seconds, and settles what is left as unknown. The gate stays open. */
  close(): Promise<void>;
}

/** The longest message unless options say otherwise. */
export const MAX_MCP_MESSAGE_BYTES = 16 * 1024 * 1024;
/** The most sessions that are known; of more, those that were longest unused are forgotten. */
const MAX_SESSIONS = 10_000;
/** The last requests of a session, whose answers may be sent again. */
const MAX_RECENT = 1_000;
/** A stream for what may come any time may be silent so long. */
const STREAM_IDLE_MS = 24 * 3_600_000;
const DEFAULT_IDLE_MS = 15 * 60_000;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** What all answers that are not complete may hold at once, in bytes. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;
const MIN_MESSAGE_BYTES = 1_024;
const MAX_MESSAGE_LIMIT = 2 ** 29;
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;
const METADATA = /^\/\.well-known\/oauth-(?:protected-resource|authorization-server)(?:\/[^?]*)?(?:\?.*)?$/;

type Answer = ProxyReply | ProxyForward | ProxyStream;

const OPTION_TYPES: OptionTypes<McpProxyOptions> = {
  guard: 'object',
  upstream: ['string', 'object'],
  listen: 'object',
  legacy: 'boolean',
  origins: 'array',
  hosts: 'array',
  maxMessageBytes: 'number',
  idleTimeoutMs: 'number',
  ca: 'string',
};

/**
 * Serves a guarded MCP server over HTTP until it is closed.
 * @throws NorthrootError `LISTEN_FAILED`; TypeError, RangeError naming the malformed option
 * @example
 * const guard = new McpGuard({ server: 'files', open: () => Gate.open('ledger.jsonl', options) });
 * const proxy = await serveMcpProxy({ guard, upstream: 'https://mcp.example/mcp' });
 */
export async function serveMcpProxy(options: McpProxyOptions): Promise<McpProxyServer> {
  checkOptions('serveMcpProxy', options, OPTION_TYPES);
  const { maxMessageBytes: limit = MAX_MCP_MESSAGE_BYTES, idleTimeoutMs = DEFAULT_IDLE_MS } = options;
  if (!Number.isInteger(limit) || limit < MIN_MESSAGE_BYTES || limit > MAX_MESSAGE_LIMIT)
    throw new RangeError('serveMcpProxy: maxMessageBytes: expected a whole number from 1,024 to 2^29');
  if (!(idleTimeoutMs >= 1)) throw new RangeError('serveMcpProxy: idleTimeoutMs: expected milliseconds');
  const proxy = new McpProxy(options, limit, Math.min(idleTimeoutMs, MAX_TIMER_MS));
  const server = await proxy.serve();
  return {
    url: `${server.url}${proxy.path}`,
    close: async () => {
      proxy.endStreams();
      await server.close();
      await proxy.end();
    },
  };
}

/** Of a client of the legacy era. */
interface Session {
  readonly link: McpLink;
  /** The ids of the last requests that were forwarded. */
  readonly recent: Set<string>;
  /** How many streams by GET are open. */
  streams: number;
}

interface Exchange {
  readonly request: ProxyRequest;
  readonly link: McpLink;
  readonly id: RpcId | undefined;
  readonly method: string | undefined;
  readonly sessionId: string | undefined;
  /** Whether it asks for events that it missed. */
  readonly isReplay: boolean;
  readonly signal: AbortSignal;
  /** Without one, the link ends with the exchange. */
  session: Session | undefined;
  /** Whether the rest of its answer can be asked for. */
  isResumable: boolean;
  isOver: boolean;
}

class McpProxy {
  readonly path: string;
  readonly #options: McpProxyOptions;
  readonly #maxMessageBytes: number;
  readonly #idleMs: number;
  readonly #origin: URL;
  readonly #query: string;
  readonly #upstream: Upstream;
  /** By id, the longest unused first. */
  readonly #sessions = new Map<string, Session>();
  readonly #held = new HeldBytes(MAX_HELD_BYTES);
  readonly #closing = new AbortController();

  /** @throws TypeError for a malformed URL */
  constructor(options: McpProxyOptions, maxMessageBytes: number, idleMs: number) {
    const endpoint = parseEndpoint(options.upstream);
    this.path = endpoint.pathname;
    this.#query = endpoint.search;
    this.#origin = new URL('/', endpoint);
    this.#options = options;
    this.#maxMessageBytes = maxMessageBytes;
    this.#idleMs = idleMs;
    this.#upstream = new Upstream(this.#origin, { ca: options.ca });
  }

  serve(): Promise<HttpServer> {
    const { hosts, origins, ca, listen = { port: 0 } } = this.#options;
    const place = { port: listen.port, host: listen.host ?? '127.0.0.1' };
    const handle = (request: ProxyRequest): Promise<Answer> => this.#handle(request);
    const own = {
      place,
      handle,
      refuse,
      maxBodyBytes: this.#maxMessageBytes,
      hosts,
      origins,
      ownOrigin: true,
    };
    return serveProxy({ ...own, upstream: this.#origin, ca });
  }

  /** Streams that no call is on. */
  endStreams(): void {
    this.#closing.abort();
  }

  async end(): Promise<void> {
    await this.#options.guard.close();
    this.#upstream.close();
  }

  #handle(request: ProxyRequest): Promise<Answer> {
    const { method, path } = request;
    // Who may give tokens for the server: nothing of it is decided.
    if (METADATA.test(path) && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS'))
      return Promise.resolve({ kind: 'forward' });
    if (path.split('?')[0] !== this.path)
      return Promise.resolve(refuse({ status: 404, code: 'NOT_FOUND', message: `expected ${this.path}` }));
    if (method === 'POST') return this.#post(request);
    const { legacy = false, origins = [] } = this.#options;
    if (legacy && (method === 'GET' || method === 'DELETE')) return this.#stream(request);
    // What a browser asks before a page of an allowed origin may.
    if (method === 'OPTIONS' && origins.length > 0)
      return Promise.resolve({ kind: 'forward', path: this.#pathOf(request) });
    const allow = legacy ? 'POST, GET, DELETE' : 'POST';
    const refusal = { status: 405, code: 'METHOD_NOT_ALLOWED', message: `expected ${allow}` };
    return Promise.resolve({ ...refuse(refusal), headers: { Allow: allow } });
  }

  async #post(request: ProxyRequest): Promise<Answer> {
    const { body, rawHeaders, signal } = request;
    const read = readHeaders(rawHeaders);
    const frame = readFrame(body);
    const id = 'id' in frame ? frame.id : null;
    if ('fault' in read) return rpcError(400, id, read.fault.code, read.fault.message);
    if (!isPlainJson(read.headers))
      return rpcError(
        415,
        id,
        RPC_INVALID_REQUEST,
        'expected application/json in UTF-8, not encoded further',
      );
    if (frame.kind === 'noise') return rpcError(400, null, RPC_PARSE_ERROR, 'the message is not JSON');
    const { legacy = false } = this.#options;
    const verdict = 'value' in frame ? judgeHeaders(read.headers, frame.value, legacy) : undefined;
    if (verdict !== undefined && 'fault' in verdict) {
      const { code, message, data } = verdict.fault;
      return rpcError(400, id, code, message, data);
    }
    const isLegacy = verdict?.era === 'legacy';
    const sessionId = isLegacy ? read.headers.get('mcp-session-id') : undefined;
    const session = this.#sessionOf(sessionId);
    const link = session?.link ?? this.#options.guard.connect();
    const exchange: Exchange = {
      request,
      link,
      id: frame.kind === 'request' ? frame.id : undefined,
      method: 'method' in frame ? frame.method : undefined,
      session,
      sessionId,
      isReplay: false,
      signal: this.#signalOf(signal, 'method' in frame && frame.method === 'subscriptions/listen'),
      isResumable: false,
      isOver: false,
    };
    const { step: deciding } = link.fromClient(body);
    const step = deciding instanceof Promise ? await this.#untilLeft(exchange, deciding) : deciding;
    if (step.kind === 'forward') {
      if (exchange.id !== undefined && session !== undefined) remember(session, exchange.id);
      return this.#forward(exchange, step.message, isLegacy);
    }
    if (session === undefined) await link.close();
    return step.kind === 'answer' ? replyOf(step.message) : dropped(frame);
  }

  /** A client that leaves before the decision never sent its call. */
  async #untilLeft<T>({ link, id, signal }: Exchange, deciding: Promise<T>): Promise<T> {
    const leave = (): void => {
      if (id !== undefined) void link.endRequest(id, CANCELLED);
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    try {
      return await deciding;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** GET and DELETE of the legacy era. */
  async #stream(request: ProxyRequest): Promise<Answer> {
    const read = readHeaders(request.rawHeaders);
    if ('fault' in read) return rpcError(400, null, read.fault.code, read.fault.message);
    const sessionId = read.headers.get('mcp-session-id');
    const session = this.#sessionOf(sessionId);
    const exchange: Exchange = {
      request,
      link: session?.link ?? this.#options.guard.connect(),
      id: undefined,
      method: undefined,
      session,
      sessionId,
      isReplay: read.headers.has('last-event-id'),
      signal: this.#signalOf(request.signal, request.method === 'GET'),
      isResumable: false,
      isOver: false,
    };
    if (session !== undefined && request.method === 'GET') session.streams += 1;
    return this.#forward(exchange, request.body, true);
  }

  async #forward(exchange: Exchange, body: Uint8Array, isLegacy: boolean): Promise<Answer> {
    const { request, link, id, signal } = exchange;
    const { method, rawHeaders } = request;
    const isStream = method === 'GET' || exchange.method === 'subscriptions/listen';
    let answer: UpstreamAnswer;
    try {
      const { set, remove } = body === request.body ? UNCHANGED : mirrorAgain(rawHeaders, request.body, body);
      const headers = requestHeaders(rawHeaders, set, remove);
      const path = this.#pathOf(request);
      const idleTimeoutMs = isStream ? STREAM_IDLE_MS : this.#idleMs;
      answer = await this.#upstream.send({ method, path, headers, body, idleTimeoutMs }, signal);
    } catch (error) {
      const fault: ProxyFault =
        error instanceof UpstreamError ? error.fault : { code: 'UPSTREAM_UNREACHABLE', wasSent: false };
      await this.#finish(exchange, fault.wasSent && signal.aborted ? CANCELLED : outcomeOf(fault));
      const isLate = fault.code === 'UPSTREAM_TIMEOUT';
      return rpcError(isLate ? 504 : 502, id ?? null, RPC_INTERNAL_ERROR, FAULTS[fault.code]);
    }
    const { message } = answer;
    const status = message.statusCode ?? 502;
    if (status >= 300 && status < 400) {
      answer.abort('UPSTREAM_REDIRECTED');
      await this.#finish(exchange, ofStatus(status));
      return rpcError(502, id ?? null, RPC_INTERNAL_ERROR, FAULTS.UPSTREAM_REDIRECTED);
    }
    if (isLegacy) await this.#learnSession(exchange, status, message.headers['mcp-session-id']);
    const content = new AnswerBody(answer, this.#maxMessageBytes);
    const type = (message.headers['content-type'] ?? '').toLowerCase();
    const isEvents = type.includes('event-stream');
    if (isEvents || !type.includes('json') || status === 204) {
      const pieces = isEvents
        ? this.#passEvents(exchange, content, status)
        : this.#pass(exchange, content, status);
      return {
        kind: 'stream',
        status,
        headers: content.headers(),
        pieces,
        end: () => this.#finish(exchange, CANCELLED),
      };
    }
    let received: Uint8Array;
    try {
      received = await content.read(this.#held);
    } catch (error) {
      await this.#finish(exchange, signal.aborted ? CANCELLED : NOT_ANSWERED);
      const isLong = error instanceof AnswerTooLong;
      return rpcError(502, id ?? null, RPC_INTERNAL_ERROR, isLong ? TOO_LONG : FAULTS.UPSTREAM_BROKE);
    }
    const step = received.length === 0 ? FORWARD_NOTHING : await link.fromServer(received).step;
    await this.#finish(exchange, ofStatus(status));
    const end = (): Promise<void> => {
      this.#held.release(received.length);
      return Promise.resolve();
    };
    const isPassed = step.kind === 'forward';
    const whole = isPassed ? step.message : errorMessage(id ?? null, RPC_INTERNAL_ERROR, WITHHELD);
    // What it says of the request holds also without its words.
    const told = isPassed || status >= 400 ? status : 502;
    return { kind: 'stream', status: told, headers: content.headers(whole.length), pieces: [whole], end };
  }

  /** Events, each when it is complete, and what is between them at once. */
  async *#passEvents(exchange: Exchange, content: AnswerBody, status: number): AsyncGenerator<Uint8Array> {
    const cutter = new EventCutter(this.#maxMessageBytes, this.#held);
    let outcome = CANCELLED;
    try {
      for await (const chunk of content) {
        for (const piece of cutter.push(chunk)) {
          const passing = await this.#judgePiece(exchange, piece);
          if (passing.length > 0) yield passing;
        }
      }
      outcome = ofStatus(status);
    } catch (error) {
      outcome = exchange.signal.aborted ? CANCELLED : NOT_ANSWERED;
      throw error;
    } finally {
      cutter.clear();
      content.abort();
      await this.#finish(exchange, outcome);
    }
  }

  /** What is no message passes as it comes. */
  async *#pass(exchange: Exchange, content: AnswerBody, status: number): AsyncGenerator<Uint8Array> {
    let outcome = CANCELLED;
    try {
      for await (const chunk of content) yield chunk;
      outcome = ofStatus(status);
    } catch (error) {
      outcome = exchange.signal.aborted ? CANCELLED : NOT_ANSWERED;
      throw error;
    } finally {
      content.abort();
      await this.#finish(exchange, outcome);
    }
  }

  async #judgePiece(exchange: Exchange, { raw, events }: StreamPiece): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let isSame = true;
    for (const event of events) {
      if (event.id !== undefined) exchange.isResumable = true;
      const { data } = event;
      const passing = data.length === 0 ? data : await this.#judgeMessage(exchange, data);
      isSame &&= passing === data;
      parts.push(writeEvent(event, passing));
    }
    return isSame ? raw : concatBytes(parts);
  }

  async #judgeMessage(exchange: Exchange, data: Uint8Array): Promise<Uint8Array | undefined> {
    const { link, session, isReplay } = exchange;
    if (isReplay && session !== undefined) {
      const frame = readFrame(data, true);
      const isAgain = frame.kind === 'response' && frame.id !== null && session.recent.has(keyOfId(frame.id));
      // The client asks for it, as it may not have got it; the call is settled.
      if (isAgain && frame.id !== null && !link.awaits(frame.id)) return data;
    }
    const step = await link.fromServer(data).step;
    if (step.kind === 'forward') return step.message;
    if (step.kind === 'answer') void this.#tellServer(exchange, step.message);
    return undefined;
  }

  /** Answers a request of the server that its client is not asked. */
  async #tellServer({ request, signal }: Exchange, message: Uint8Array): Promise<void> {
    const set = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const headers = requestHeaders(request.rawHeaders, set, ['last-event-id', 'mcp-method', 'mcp-name']);
    try {
      const path = this.#pathOf(request);
      const answer = await this.#upstream.send({ method: 'POST', path, headers, body: message }, signal);
      answer.abort('CLIENT_LEFT');
    } catch {
      // The server waits for it no longer than it wants to.
    }
  }

  /** The answer is over: a request that it does not answer gets none, unless it may come on another stream of the session. */
  async #finish(exchange: Exchange, outcome: CallOutcome): Promise<void> {
    if (exchange.isOver) return;
    exchange.isOver = true;
    const { link, id, session, isResumable, request } = exchange;
    if (session !== undefined && request.method === 'GET') session.streams -= 1;
    const mayCome = outcome === NOT_ANSWERED || outcome === CANCELLED;
    const isAwaited = mayCome && session !== undefined && (isResumable || session.streams > 0);
    if (id !== undefined && !isAwaited) await link.endRequest(id, outcome);
    if (session === undefined) await link.close();
  }

  #sessionOf(id: string | undefined): Session | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (id === undefined || session === undefined) return undefined;
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    return session;
  }

  /** A session begins with the answer to `initialize`, or is one of before this proxy; it ends when the server says so. */
  async #learnSession(
    exchange: Exchange,
    status: number,
    given: string | string[] | undefined,
  ): Promise<void> {
    const { sessionId, request, method, id, link } = exchange;
    const isGood = status >= 200 && status < 300;
    const isEnd = status === 404 || (isGood && request.method === 'DELETE');
    if (sessionId !== undefined && isEnd) {
      const session = this.#sessions.get(sessionId);
      this.#sessions.delete(sessionId);
      if (id !== undefined) await link.endRequest(id, ofStatus(status));
      await session?.link.close();
      return;
    }
    const name = method === 'initialize' ? given : sessionId;
    if (!isGood || typeof name !== 'string' || !SESSION_ID.test(name) || this.#sessions.has(name)) return;
    const session: Session = { link, recent: new Set(), streams: request.method === 'GET' ? 1 : 0 };
    if (id !== undefined) remember(session, id);
    exchange.session = session;
    this.#sessions.set(name, session);
    const [oldest] = this.#sessions;
    if (this.#sessions.size <= MAX_SESSIONS || oldest === undefined) return;
    this.#sessions.delete(oldest[0]);
    void oldest[1].link.close();
  }

  #pathOf({ path }: ProxyRequest): string {
    return this.#query === '' ? path : `${this.path}${this.#query}`;
  }

  /** Streams that no call is on need not be waited for. */
  #signalOf(signal: AbortSignal, isIdle: boolean): AbortSignal {
    return isIdle ? AbortSignal.any([signal, this.#closing.signal]) : signal;
  }
}

const UNCHANGED = { set: {}, remove: [] } as const;
const CANCELLED: CallOutcome = { outcome: 'unknown', errorCode: 'MCP_CANCELLED' };
const NOT_ANSWERED: CallOutcome = { outcome: 'unknown', errorCode: 'MCP_NOT_ANSWERED' };
const FORWARD_NOTHING = { kind: 'forward', message: new Uint8Array(0) } as const;
const WITHHELD = 'the answer of the server is not forwarded';
const TOO_LONG = 'the answer of the server is longer than it may be';

const FAULTS: Readonly<Record<ProxyFault['code'], string>> = {
  UPSTREAM_UNREACHABLE: 'the server cannot be reached',
  UPSTREAM_BROKE: 'the server broke off',
  UPSTREAM_TIMEOUT: 'the server did not answer in time',
  UPSTREAM_REDIRECTED: 'the server redirects, which is not followed',
  CLIENT_LEFT: 'the client has gone',
  PROXY_CLOSED: 'the proxy was closed',
  STOPPED: 'the call was stopped',
  ANSWER_UNREADABLE: 'the answer could not be read',
};

/** What an answer without an answer says: the server refused the request, or may have begun. */
function ofStatus(status: number): CallOutcome {
  if (status < 300) return NOT_ANSWERED;
  return { outcome: status < 500 ? 'failure' : 'unknown', errorCode: `MCP_HTTP_${status}` };
}

function outcomeOf({ wasSent }: ProxyFault): CallOutcome {
  return wasSent ? NOT_ANSWERED : { outcome: 'failure', errorCode: 'MCP_NOT_SENT' };
}

function remember({ recent }: Session, id: RpcId): void {
  recent.add(keyOfId(id));
  const [oldest] = recent;
  if (recent.size > MAX_RECENT && oldest !== undefined) recent.delete(oldest);
}

/** What is not forwarded, and nobody awaits an answer to. */
function dropped(frame: RpcFrame): Answer {
  // The request that it cancels never got to the server.
  const isDone = frame.kind === 'notification' && frame.method === 'notifications/cancelled';
  if (isDone) return { kind: 'reply', status: 202, body: '' };
  return rpcError(400, null, RPC_INVALID_REQUEST, 'the message is not forwarded');
}

/** A message of the guard's own. */
function replyOf(message: Uint8Array): ProxyReply {
  const { error } = JSON.parse(decodeUtf8(message)) as { readonly error?: { readonly code?: number } };
  const isMalformed = error?.code === RPC_PARSE_ERROR || error?.code === RPC_INVALID_REQUEST;
  return { kind: 'reply', status: isMalformed ? 400 : 200, body: message };
}

function rpcError(
  status: number,
  id: RpcId | null,
  code: number,
  message: string,
  data?: Readonly<Record<string, unknown>>,
): ProxyReply {
  return { kind: 'reply', status, body: errorMessage(id, code, message, data) };
}

/** How requests that are no messages are refused. */
function refuse({ status, code, message }: ProxyRefusal): ProxyReply {
  return rpcError(status, null, RPC_INVALID_REQUEST, `${code}: ${message}`);
}

/** @throws TypeError unless it is an http or https URL without user and fragment */
function parseEndpoint(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined;
  const search = url?.search ?? '';
  if (url !== undefined) url.search = '';
  const endpoint = parseUpstream(url ?? given);
  endpoint.search = search;
  return endpoint;
}
