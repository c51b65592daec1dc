/** A scripted MCP server over HTTP of both eras. What it does with a call is said by the tool's name. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { JsonObject } from '../../../src/base/json/value.js';

export const MODERN = '2026-07-28';

export function modernMeta(version = MODERN): JsonObject {
  return {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
}

/** As a client of version 2 encodes it. */
export function encodeHeaderValue(value: string): string {
  const isPlain =
    /^[\t\x20-\x7e]+$/.test(value) && value.trim() === value && !/^=\?base64\?.*\?=$/.test(value);
  return isPlain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/** The headers that a modern message must have. */
export function modernHeaders(message: JsonObject): Record<string, string> {
  const { name } = (message['params'] ?? {}) as { readonly name?: string };
  return {
    'MCP-Protocol-Version': MODERN,
    'Mcp-Method': String(message['method']),
    ...(name === undefined ? {} : { 'Mcp-Name': encodeHeaderValue(name) }),
  };
}

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** Resolves when the answer has ended or its reader has gone; whether it ended. */
  readonly over: Promise<boolean>;
}

export interface Upstream {
  readonly url: string;
  readonly seen: Seen[];
  /** The calls of tools that came, by tool. */
  calls(tool?: string): number;
  close(): Promise<void>;
}

interface Asked {
  readonly id: unknown;
  readonly method: string;
  readonly params: JsonObject & {
    readonly name?: string;
    readonly arguments?: JsonObject;
    readonly inputResponses?: unknown;
    readonly requestState?: string;
    readonly taskId?: string;
  };
}

export async function startUpstream(port = 0): Promise<Upstream> {
  const seen: Seen[] = [];
  const replays = new Map<string, string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    const over = new Promise<boolean>((resolve) =>
      response.on('close', () => resolve(response.writableFinished)),
    );
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const { method = '', url = '', headers, rawHeaders } = request;
      seen.push({ method, path: url, headers, rawHeaders, body, over });
      answer(request, response, body, replays);
    });
  });
  server.on('clientError', (_, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    seen,
    calls: (tool) => {
      const called = seen.filter(({ body }) => body.includes('"tools/call"'));
      return tool === undefined
        ? called.length
        : called.filter(({ body }) => (JSON.parse(body) as Asked).params.name === tool).length;
    },
    close,
  };
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
  replays: Map<string, string>,
): void {
  const { method, url, headers } = request;
  const session = headers['mcp-session-id'];
  if (url?.startsWith('/.well-known/oauth-protected-resource') === true) {
    json(response, { resource: 'https://upstream.example/mcp' });
    return;
  }
  if (url !== '/mcp' && url !== '/mcp?key=1') return void response.writeHead(404).end('nothing here');
  if (session === 'gone') return void response.writeHead(404).end();
  if (method === 'DELETE') return void response.writeHead(204).end();
  if (method === 'GET') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    const replay = replays.get(String(headers['last-event-id']));
    response.write(`: hello\n\n`);
    if (replay === undefined) event(response, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    else response.end(replay);
    return;
  }
  const message = JSON.parse(body) as Asked;
  if (message.id === undefined || message.method === undefined) {
    response.writeHead(202).end();
    return;
  }
  const respond = (result: unknown, more: Record<string, string> = {}): void =>
    json(response, { jsonrpc: '2.0', id: message.id, result }, more);
  switch (message.method) {
    case 'initialize':
      return respond(
        {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'scripted', version: '1' },
        },
        { 'Mcp-Session-Id': 'session-1' },
      );
    case 'server/discover':
      return respond({ resultType: 'complete', supportedVersions: [MODERN], capabilities: { tools: {} } });
    case 'tools/list':
      return respond({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
    case 'tasks/get':
      return respond({
        resultType: 'complete',
        taskId: message.params.taskId,
        status: 'completed',
        result: TEXT,
      });
    case 'tools/call':
      return call(message, respond, response, replays);
    default:
      return json(response, {
        jsonrpc: '2.0',
        id: message.id,
        error: { code: -32601, message: 'no such method' },
      });
  }
}

const TEXT = { content: [{ type: 'text', text: 'ok' }] };

function call(
  { id, params }: Asked,
  respond: (result: unknown, more?: Record<string, string>) => void,
  response: ServerResponse,
  replays: Map<string, string>,
): void {
  const done = { jsonrpc: '2.0', id, result: TEXT };
  const progress = {
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: 1, progress: 1 },
  };
  const stream = (headers: Record<string, string> = {}): void =>
    void response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'X-Accel-Buffering': 'no',
      ...headers,
    });
  switch (params.name) {
    case 'fail':
      return respond({ ...TEXT, isError: true });
    case 'error':
      return json(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'bad arguments' } });
    case 'progress':
      stream();
      response.write(': keep-alive\r\n\r\n');
      for (let count = 0; count < 3; count += 1) event(response, progress);
      event(response, done);
      return void response.end();
    case 'break':
      stream();
      event(response, progress);
      setTimeout(() => response.destroy(), 20);
      return;
    case 'silent':
      stream();
      event(response, progress);
      return void response.end();
    case 'hang':
      stream();
      event(response, progress);
      return;
    case 'mute':
      return;
    case 'drop':
      response.destroy();
      return;
    case 'cut':
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1_000 });
      response.write('{"jsonrpc":"2.0"');
      setTimeout(() => response.destroy(), 20);
      return;
    case 'unauthorized':
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer resource_metadata="https://a.example/x"' });
      return void response.end('{}');
    case 'broken':
      return void response.writeHead(500).end('oops');
    case 'redirect':
      return void response.writeHead(307, { Location: 'http://127.0.0.1:1/mcp' }).end();
    case 'gzip':
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
      return void response.end(gzipSync(JSON.stringify(done)));
    case 'bomb':
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
      return void response.end(gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')));
    case 'ask':
      return params.requestState === undefined
        ? respond({ resultType: 'input_required', inputRequests: {}, requestState: 'state-1' })
        : respond({ ...TEXT, resultType: 'complete' });
    case 'task':
      return respond({
        resultType: 'task',
        taskId: 'task-1',
        status: 'working',
        ttlMs: 60_000,
        pollIntervalMs: 10,
      });
    case 'twice':
      stream();
      event(response, done);
      event(response, { ...done, result: { ...TEXT, isError: true } });
      return void response.end();
    case 'stranger':
      stream();
      event(response, { ...done, id: 'other' });
      event(response, { ...done, id: String(id) });
      return void response.end();
    case 'big':
      stream();
      response.write(`data: ${'x'.repeat(20 * 1024 * 1024)}\n\n`);
      event(response, done);
      return void response.end();
    case 'resume':
      replays.set('e1', `id: e2\ndata: ${JSON.stringify(done)}\n\n`);
      stream();
      return void response.end('id: e1\nretry: 10\ndata:\n\n');
    case 'junk':
      response.writeHead(200, { 'Content-Type': 'application/json' });
      return void response.end('{"jsonrpc":"2.0","id":1,"result":{},"result":{"isError":true}}');
    case 'html':
      response.writeHead(200, { 'Content-Type': 'text/html' });
      return void response.end('<p>hello</p>');
    case 'empty':
      return void response.writeHead(202).end();
    default:
      return respond(TEXT);
  }
}

function json(response: ServerResponse, message: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(message));
}

function event(response: ServerResponse, message: unknown): void {
  response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}
