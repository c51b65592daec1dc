/** Which API a request is of, and what it may cost. */

import type { JsonValue } from '../../base/json/value.js';
import { formatDigest, sha256Digest } from '../../base/value/digest.js';
import { escapeToolName } from '../../base/value/tool.js';
import { MAX_COUNT } from '../price/usage.js';
import { modelToolName } from '../sdk/usage.js';
import { readMessages } from './anthropic-messages.js';
import type { CallBounds } from './bounds.js';
import type { NamedAnswers } from './known-answers.js';
import type { ModelApi, ModelApiFamily, ModelRequest, ReadRequest } from './model-api.js';
import { modelOfForm } from './multipart.js';
import { readChat } from './openai-chat.js';
import { openCall, readCompletions, readEmbeddings, readImages, readSpeech } from './openai-other.js';
import { readResponses } from './openai-responses.js';
import { invalid, parseBody, RequestFault, RequestMembers, textBound } from './request-body.js';

export interface IncomingRequest {
  readonly method: string;
  /** With its query, if it has one; below `/v1` or beside it. */
  readonly path: string;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
}

export interface ReadRequestOptions {
  /** Whose models they are, for the names of tools. Default: `openai` or `anthropic`, by the API. */
  readonly provider?: string | undefined;
  /** The earlier turns that the request may name, which the provider keeps. Default: none; naming them has no bound. */
  readonly known?: NamedAnswers | undefined;
}

/**
 * Reads a request. Paths are compared as they are, never resolved or decoded: what is not known is refused. The body of a call MUST be one
 * object of sound JSON, without duplicate keys and not compressed.
 */
export function readModelRequest(incoming: IncomingRequest, options: ReadRequestOptions = {}): ReadRequest {
  const family = familyOf(incoming);
  try {
    const { route, isGet } = findRoute(incoming);
    if (isGet || route.api === undefined) return { kind: 'free', family };
    return { kind: 'call', request: readCall(route.api, route, incoming, options) };
  } catch (error) {
    if (!(error instanceof RequestFault)) throw error;
    const { status, code, message } = error;
    return { kind: 'refuse', family, status, code, message };
  }
}

/** Whose errors whoever asks expects. */
export function familyOf({ path, headers }: Pick<IncomingRequest, 'path' | 'headers'>): ModelApiFamily {
  const isAnthropic =
    headers['anthropic-version'] !== undefined || /^(?:\/v1)?\/messages(?:[/?]|$)/.test(path);
  return isAnthropic ? 'anthropic' : 'openai';
}

interface Route {
  readonly path: RegExp;
  /** Of POST; undefined where it costs nothing. */
  readonly api?: ModelApi;
  readonly read?: (members: RequestMembers, known?: NamedAnswers) => CallBounds;
  /** Of what is no JSON, or cannot be bounded: why, and what stands for the model where none is named. */
  readonly open?: { readonly reason: string; readonly model?: string };
  readonly methods: readonly string[];
}

/** Ids as providers make them; never `.` or `..`. */
const ID = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9_.:@+-]{1,256}';
/** Names of models have slashes with some providers. */
const MODEL = `${ID}(?:/${ID}){0,3}`;

function route(path: string, rest: Omit<Route, 'path'>): Route {
  return { path: new RegExp(`^(?:/v1)?/${path}$`), ...rest };
}

const POST = ['POST'];
const GET = ['GET', 'HEAD'];
const STORED = [...GET, 'DELETE'];

const ROUTES: readonly Route[] = [
  route('chat/completions', { methods: ['POST', ...GET], api: 'openai-chat', read: readChat }),
  route('responses', { methods: POST, api: 'openai-responses', read: readResponses }),
  route('messages', { methods: POST, api: 'anthropic-messages', read: readMessages }),
  route('completions', { methods: POST, api: 'openai-completions', read: readCompletions }),
  route('embeddings', { methods: POST, api: 'openai-embeddings', read: readEmbeddings }),
  route('images/generations', { methods: POST, api: 'openai-images', read: readImages }),
  route('images/(?:edits|variations)', { methods: POST, api: 'openai-images', open: { reason: 'image' } }),
  route('audio/speech', { methods: POST, api: 'openai-audio', read: readSpeech }),
  route('audio/(?:transcriptions|translations)', {
    methods: POST,
    api: 'openai-audio',
    open: { reason: 'audio' },
  }),
  route('batches', {
    methods: ['POST', ...GET],
    api: 'openai-batches',
    open: { reason: 'batch', model: 'batches' },
  }),
  route('files', {
    methods: ['POST', ...GET],
    api: 'openai-files',
    open: { reason: 'file', model: 'files' },
  }),
  route('messages/batches', {
    methods: ['POST', ...GET],
    api: 'anthropic-batches',
    open: { reason: 'batch', model: 'batches' },
  }),
  route('models', { methods: GET }),
  route(`models/${MODEL}`, { methods: GET }),
  route('moderations', { methods: POST }),
  route('messages/count_tokens', { methods: POST }),
  route('responses/input_tokens', { methods: POST }),
  route(`responses/${ID}`, { methods: STORED }),
  route(`responses/${ID}/input_items`, { methods: GET }),
  route(`chat/completions/${ID}`, { methods: STORED }),
  route(`chat/completions/${ID}/messages`, { methods: GET }),
  route(`batches/${ID}`, { methods: GET }),
  route(`messages/batches/${ID}`, { methods: STORED }),
  route(`messages/batches/${ID}/results`, { methods: GET }),
  route(`(?:responses|batches|messages/batches)/${ID}/cancel`, { methods: POST }),
  route(`files/${ID}`, { methods: STORED }),
  route(`files/${ID}/content`, { methods: GET }),
];

function findRoute({ method, path, headers }: IncomingRequest): {
  readonly route: Route;
  readonly isGet: boolean;
} {
  const [plain = ''] = path.split('?', 1);
  const found = ROUTES.filter((each) => each.path.test(plain));
  const [first] = found;
  if (first === undefined)
    throw new RequestFault(
      404,
      'PATH_UNKNOWN',
      'what this path costs is not known here: it is not forwarded',
    );
  const fitting = found.find(({ methods }) => methods.includes(method));
  // Clients that prefer a WebSocket, such as Codex CLI, go on without one at once for this status alone.
  if (fitting === undefined && textOf(headers['upgrade']).toLowerCase() === 'websocket')
    throw new RequestFault(426, 'PROTOCOL_UNSUPPORTED', 'calls over a WebSocket are not read here: use HTTP');
  if (fitting === undefined)
    throw new RequestFault(405, 'METHOD_NOT_ALLOWED', `expected ${first.methods.join(' or ')}`);
  return { route: fitting, isGet: method !== 'POST' };
}

/** In another character set, a body may be another request. */
const JSON_TYPE = /^application\/json\s*(?:;\s*charset=(?:utf-8|"utf-8")\s*)?$/i;

function readCall(
  api: ModelApi,
  { read, open }: Route,
  { headers, body }: IncomingRequest,
  { provider = api.startsWith('anthropic') ? 'anthropic' : 'openai', known }: ReadRequestOptions,
): ModelRequest {
  const contentType = textOf(headers['content-type']);
  const encoding = textOf(headers['content-encoding']).trim().toLowerCase();
  if (encoding !== '' && encoding !== 'identity')
    throw new RequestFault(
      415,
      'CONTENT_ENCODING_UNSUPPORTED',
      'expected a body that is not compressed: what it costs is read from it',
    );
  const isJson = JSON_TYPE.test(contentType);
  if (!isJson && (read !== undefined || !/^multipart\/form-data\s*;/i.test(contentType)))
    throw new RequestFault(
      415,
      'CONTENT_TYPE_UNSUPPORTED',
      `expected a body of application/json${read === undefined ? ' or multipart/form-data' : ''}`,
    );
  const parsed = isJson ? parseBody(body) : undefined;
  const members = parsed && new RequestMembers(parsed.object);
  const { addedInput, ...bounds } =
    read !== undefined && members !== undefined
      ? read(members, known)
      : openCall(open?.model ?? modelOf(members, contentType, body), open?.reason ?? 'request');
  const textBytes = parsed === undefined ? body.length : textBound(body, parsed.object);
  return {
    api,
    provider,
    toolName: escapeToolName(modelToolName(bounds.model, provider)),
    params: parsed?.isCanonical === true ? parsed.object : digestOf(body),
    inputBytes: Math.min(MAX_COUNT, textBytes + addedInput),
    ...bounds,
  };
}

/** What stands for a body that has no canonical form. */
function digestOf(body: Uint8Array): JsonValue {
  return { body_digest: formatDigest(sha256Digest(body)), bytes: body.length };
}

function modelOf(members: RequestMembers | undefined, contentType: string, body: Uint8Array): string {
  if (members !== undefined) return members.model();
  const model = modelOfForm(contentType, body);
  if (model === undefined) throw invalid('model: expected the name of a model, found none');
  return model;
}

/** Of a header that came more often, all: it then fits nothing. */
function textOf(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header ?? []).join(', ');
}
