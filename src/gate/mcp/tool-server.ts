/** A server of MCP that has nothing but tools, over stdio. Both eras are spoken. */

import type { Readable, Writable } from 'node:stream';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonValue } from '../../base/json/value.js';
import { VERSION } from '../../base/version.js';
import { isModern } from './guarded-call.js';
import {
  errorMessage,
  memberOf,
  readFrame,
  RPC_INTERNAL_ERROR,
  RPC_INVALID_PARAMS,
  RPC_INVALID_REQUEST,
  RPC_PARSE_ERROR,
  type RpcId,
  writeMessage,
} from './json-rpc.js';
import { DEFAULT_MAX_MESSAGE_BYTES, LineFrames } from './line-frames.js';

/** A tool's answer to the model: JSON or text, and as an error where `isError`. */
export type Told = ({ readonly value: object } | { readonly text: string }) & { readonly isError?: boolean };

export interface ServedTools {
  readonly tools: readonly { readonly name: string; readonly inputSchema: object }[];
  /** To the model. */
  readonly instructions: string;
  /** @returns Undefined where there is no such tool */
  readonly call: (name: JsonValue | undefined, given: JsonValue) => Promise<Told | undefined>;
}

export interface ServeToolsOptions {
  /** Default: standard input and output. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
  /** The most bytes of one message. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The versions of the legacy era, newest first. */
const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const MODERN_VERSIONS: readonly string[] = ['2026-07-28'];
const RPC_METHOD_NOT_FOUND = -32601;
const RPC_UNSUPPORTED_VERSION = -32022;
const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
const SERVER_INFO = { name: 'northroot', version: VERSION };
/** How long lists may be kept, in milliseconds: they never change. */
const LIST_TTL_MS = 3_600_000;

/** Serves until the input ends or the signal is aborted: messages are lines, answered in order. */
export async function serveTools(
  server: Pick<ToolServer, 'answer'>,
  {
    input = process.stdin,
    output = process.stdout,
    maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES,
    signal,
  }: ServeToolsOptions,
): Promise<void> {
  const lines = new LineFrames(maxMessageBytes);
  const stop = (): void => void input.destroy();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    for await (const chunk of input as AsyncIterable<Uint8Array>) {
      for (const line of lines.push(chunk)) {
        const answer =
          line instanceof Uint8Array
            ? await server.answer(line)
            : errorMessage(
                line.id ?? null,
                RPC_INVALID_REQUEST,
                `expected at most ${maxMessageBytes} bytes a message`,
              );
        if (answer !== undefined) await write(output, answer);
      }
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** Waits for its reader, or that it goes. */
function write(output: Writable, message: Uint8Array): Promise<void> {
  return new Promise((resolve) => output.write(Buffer.concat([message, LINE_END]), () => resolve()));
}

const LINE_END = Buffer.from('\n');

/** Answers messages. */
export class ToolServer {
  readonly #served: ServedTools;

  constructor(served: ServedTools) {
    this.#served = served;
  }

  /** Answers one message. @returns Undefined where none is due. Never rejects. */
  async answer(message: Uint8Array): Promise<Uint8Array | undefined> {
    const frame = readFrame(message);
    switch (frame.kind) {
      case 'noise':
      case 'notification':
      case 'response':
        return undefined;
      case 'broken':
        return errorMessage(null, RPC_PARSE_ERROR, 'expected a message of JSON-RPC');
      case 'batch':
        return errorMessage(null, RPC_INVALID_REQUEST, 'expected one message, not a batch');
      case 'other':
        return errorMessage(frame.id, RPC_INVALID_REQUEST, 'expected a request of JSON-RPC');
      case 'request': {
        const { id, ambiguity } = frame;
        if (ambiguity !== undefined)
          return errorMessage(id, RPC_INVALID_REQUEST, `expected strict JSON: ${ambiguity}`);
        try {
          return await this.#request(id, frame.method, memberOf(frame.value, 'params'));
        } catch (error) {
          const code = error instanceof NorthrootError ? error.code : 'INTERNAL_ERROR';
          return errorMessage(id, RPC_INTERNAL_ERROR, printable(code, 64));
        }
      }
    }
  }

  async #request(id: RpcId, method: string, params: JsonValue | undefined): Promise<Uint8Array> {
    const { tools, instructions } = this.#served;
    const version = memberOf(memberOf(params, '_meta'), PROTOCOL_VERSION);
    const isNew = isModern(params);
    if (isNew && !MODERN_VERSIONS.includes(version as string))
      return errorMessage(id, RPC_UNSUPPORTED_VERSION, 'this version of the protocol is not spoken', {
        supported: [...MODERN_VERSIONS, ...LEGACY_VERSIONS],
        requested: printable(version as string, 64),
      });
    const result = (value: object): Uint8Array =>
      writeMessage({ id, result: isNew ? { resultType: 'complete', ...value } : value });
    const kept = isNew ? { ttlMs: LIST_TTL_MS, cacheScope: 'public' } : {};
    switch (method) {
      case 'initialize': {
        const asked = memberOf(params, 'protocolVersion');
        return result({
          protocolVersion: LEGACY_VERSIONS.find((each) => each === asked) ?? LEGACY_VERSIONS[0],
          capabilities: { tools: {} },
          serverInfo: SERVER_INFO,
          instructions,
        });
      }
      case 'server/discover':
        return result({
          supportedVersions: [...MODERN_VERSIONS, ...LEGACY_VERSIONS],
          capabilities: { tools: {} },
          serverInfo: SERVER_INFO,
          instructions,
          ...kept,
        });
      case 'ping':
        return result({});
      case 'tools/list':
        return result({ tools, ...kept });
      case 'tools/call': {
        const told = await this.#served.call(memberOf(params, 'name'), memberOf(params, 'arguments') ?? {});
        if (told === undefined) return errorMessage(id, RPC_INVALID_PARAMS, 'there is no such tool');
        const text = 'text' in told ? told.text : JSON.stringify(told.value, undefined, 2);
        const content = [{ type: 'text', text }];
        return result({
          content,
          ...('value' in told ? { structuredContent: told.value } : {}),
          ...(told.isError === true ? { isError: true } : {}),
        });
      }
      default:
        return errorMessage(id, RPC_METHOD_NOT_FOUND, 'there is no such method');
    }
  }
}

export function refused(code: string, reason: string): Told {
  return { value: { code, reason: printable(reason, 1_000) }, isError: true };
}
