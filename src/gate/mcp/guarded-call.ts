/** Which messages of MCP are calls that a gate decides on, as what, and what came of them. Both eras: up to 2025-11-25, and 2026-07-28. */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { type Digest, sha256Digest } from '../../base/value/digest.js';
import { escapeToolName } from '../../base/value/tool.js';
import type { CallOutcome } from '../gate.js';
import { mcpFault } from '../sdk/shared.js';
import { hasTwins, memberOf, type RpcFrame } from './json-rpc.js';

/** What is guarded besides calls of tools. */
export type McpSubject = 'resources' | 'prompts' | 'sampling';

export interface GuardedCall {
  readonly kind: 'call';
  /** `mcp.SERVER.TOOL`; for the others `mcp.SERVER.resources.read` and `mcp.SERVER.prompts.get`. */
  readonly tool: string;
  /** As the protocol names the tool; undefined for what is none. */
  readonly name: string | undefined;
  /** What the digest of the parameters is of. */
  readonly params: JsonObject;
  readonly digest: Digest;
  readonly isModern: boolean;
  /** Asked for by the legacy era's `task`. */
  readonly asksForTask: boolean;
  /** A repetition after `input_required`, with what it brings. */
  readonly retry: { readonly state: string | undefined } | undefined;
}

export type ReadCall =
  | GuardedCall
  | { readonly kind: 'free' }
  | { readonly kind: 'malformed'; readonly problem: string };

export type ReadAnswer =
  | { readonly kind: 'done'; readonly outcome: CallOutcome }
  /** The client is asked, and asks again. */
  | { readonly kind: 'input'; readonly state: string | undefined }
  | { readonly kind: 'task'; readonly id: string; readonly ttlMs: number | undefined };

/** Of a result that is longer no digest is made; in bytes. */
export const MAX_DIGESTED_BYTES = 4 * 1024 * 1024;
const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';

const GUARDED: Readonly<Record<string, McpSubject | 'tools'>> = {
  'tools/call': 'tools',
  'resources/read': 'resources',
  'prompts/get': 'prompts',
};
/** Members of parameters that are looked at; another spelling of one is refused. */
const NAMES: ReadonlySet<string> = new Set([
  'name',
  'arguments',
  'uri',
  'task',
  '_meta',
  'requestState',
  'inputResponses',
]);

/** Whether a method's requests may be calls to decide on. */
export function isGuarded(method: string, subjects: ReadonlySet<McpSubject>): boolean {
  const subject = Object.hasOwn(GUARDED, method) ? GUARDED[method] : undefined;
  return subject === 'tools' || (subject !== undefined && subjects.has(subject));
}

/**
 * Reads a request of a client.
 * @param server - The label in the names of tools
 */
export function readCall(
  server: string,
  { method, value, inexact }: Pick<Extract<RpcFrame, { kind: 'request' }>, 'method' | 'value' | 'inexact'>,
  subjects: ReadonlySet<McpSubject>,
): ReadCall {
  if (!isGuarded(method, subjects)) return { kind: 'free' };
  const params = memberOf(value, 'params') ?? {};
  if (!isJsonObject(params)) return malformed('params: expected an object');
  if (hasTwins(params, NAMES)) return malformed('params: members that differ in case only');
  if (inexact !== undefined) return malformed(`params have no canonical form: ${inexact}`);
  const subject = readSubject(server, method, params, subjects);
  if ('problem' in subject) return subject;
  const state = memberOf(params, 'requestState');
  const isRetry = state !== undefined || Object.hasOwn(params, 'inputResponses');
  if (state !== undefined && typeof state !== 'string') return malformed('requestState: expected a text');
  try {
    return {
      kind: 'call',
      ...subject,
      digest: sha256Digest(canonicalBytes(subject.params)),
      isModern: isModern(params),
      asksForTask: isJsonObject(memberOf(params, 'task')),
      retry: isRetry ? { state } : undefined,
    };
  } catch {
    return malformed('params have no canonical form');
  }
}

/** Whether a request is of 2026-07-28 or later, where each says its version. */
export function isModern(params: JsonValue | undefined): boolean {
  return typeof memberOf(memberOf(params, '_meta'), PROTOCOL_VERSION) === 'string';
}

/** The request with other parameters, as an adviser rewrote them. */
export function rewriteCall(value: JsonObject, name: string | undefined, params: JsonObject): JsonObject {
  const before = memberOf(value, 'params') as JsonObject;
  const after = name === undefined ? { ...before, ...params } : { ...before, arguments: params };
  return { ...value, params: after };
}

/** Reads the answer to a call. @param length - Of the whole message, in bytes */
export function readAnswer(
  value: JsonObject,
  { isModern, asksForTask }: Pick<GuardedCall, 'isModern' | 'asksForTask'>,
  length: number,
  isAmbiguous: boolean,
): ReadAnswer {
  const result = memberOf(value, 'result');
  if (result === undefined) return { kind: 'done', outcome: failureOf(memberOf(value, 'error')) };
  if (isModern) {
    const type = memberOf(result, 'resultType');
    if (type === 'input_required') {
      const state = memberOf(result, 'requestState');
      return { kind: 'input', state: typeof state === 'string' ? state : undefined };
    }
    const task = type === 'task' ? readTask(memberOf(result, 'task') ?? result) : undefined;
    if (task !== undefined) return { kind: 'task', id: task.id, ttlMs: task.ttlMs };
  } else if (asksForTask) {
    const task = readTask(memberOf(result, 'task'));
    if (task !== undefined) return { kind: 'task', id: task.id, ttlMs: task.ttlMs };
  }
  const isDigested = length <= MAX_DIGESTED_BYTES && !isAmbiguous;
  return { kind: 'done', outcome: outcomeOf(result, isDigested) };
}

export interface ReadTask {
  readonly id: string;
  readonly status: string;
  readonly ttlMs: number | undefined;
}

export function readTask(task: JsonValue | undefined): ReadTask | undefined {
  const [id, status] = [memberOf(task, 'taskId'), memberOf(task, 'status')];
  if (typeof id !== 'string' || typeof status !== 'string') return undefined;
  const ttl = memberOf(task, 'ttlMs') ?? memberOf(task, 'ttl');
  return { id, status, ttlMs: typeof ttl === 'number' && ttl > 0 ? ttl : undefined };
}

/**
 * The end that the state of a task tells of; undefined while it goes on. A task of the legacy era that is complete has its result
 * elsewhere: then its outcome is `later`.
 */
export function taskOutcome(
  state: JsonValue | undefined,
  isDigested: boolean,
): CallOutcome | 'later' | undefined {
  const { status } = readTask(state) ?? {};
  if (status === 'completed') {
    const result = memberOf(state, 'result');
    return result === undefined ? 'later' : outcomeOf(result, isDigested);
  }
  if (status === 'failed') {
    const error = memberOf(state, 'error');
    return error === undefined ? { outcome: 'failure', errorCode: 'MCP_TASK_FAILED' } : failureOf(error);
  }
  return status === 'cancelled' ? { outcome: 'unknown', errorCode: 'MCP_TASK_CANCELLED' } : undefined;
}

/** The outcome that a whole result tells of. */
export function outcomeOf(result: JsonValue, isDigested: boolean): CallOutcome {
  const errorCode = mcpFault(result);
  const outputDigest = isDigested ? digestOf(result) : undefined;
  return {
    outcome: errorCode === undefined ? 'success' : 'failure',
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(outputDigest === undefined ? {} : { outputDigest }),
  };
}

export function failureOf(error: JsonValue | undefined): CallOutcome {
  const code = memberOf(error, 'code');
  const isCode = typeof code === 'number' && Number.isSafeInteger(code);
  return { outcome: 'failure', errorCode: isCode ? `MCP_${Math.abs(code)}` : 'MCP_ERROR' };
}

function digestOf(result: JsonValue): Digest | undefined {
  try {
    if (!isJsonObject(result)) return sha256Digest(canonicalBytes(result));
    const { _meta, ...rest } = result;
    void _meta;
    return sha256Digest(canonicalBytes(rest));
  } catch {
    return undefined;
  }
}

function readSubject(
  server: string,
  method: string,
  params: JsonObject,
  subjects: ReadonlySet<McpSubject>,
): Pick<GuardedCall, 'tool' | 'name' | 'params'> | { readonly kind: 'malformed'; readonly problem: string } {
  const name = memberOf(params, 'name');
  const given = memberOf(params, 'arguments') ?? {};
  if (method === 'resources/read') {
    const uri = memberOf(params, 'uri');
    if (typeof uri !== 'string') return malformed('uri: expected a text');
    return { tool: `mcp.${server}.resources.read`, name: undefined, params: { uri } };
  }
  if (typeof name !== 'string' || name === '') return malformed('name: expected a text');
  if (!isJsonObject(given)) return malformed('arguments: expected an object');
  if (method === 'prompts/get')
    return { tool: `mcp.${server}.prompts.get`, name: undefined, params: { name, arguments: given } };
  const isTaken =
    (subjects.has('resources') && name === 'resources.read') ||
    (subjects.has('prompts') && name === 'prompts.get');
  if (isTaken) return malformed('a tool of this name cannot be told from what is guarded besides tools');
  try {
    return { tool: escapeToolName(`mcp.${server}.${name}`), name, params: given };
  } catch {
    return malformed('name: expected a text without lone surrogates');
  }
}

function malformed(problem: string): { readonly kind: 'malformed'; readonly problem: string } {
  return { kind: 'malformed', problem };
}
