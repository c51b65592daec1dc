/** An HTTP server that answers as a test says, and remembers what it was asked. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** Whatever JSON there is. */
export type Json = ReturnType<typeof JSON.parse>;

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Json;
}

/** Text is sent as it is, anything else as JSON. `hang`: no answer ever; `drop`: the connection ends. */
export type Said =
  | {
      readonly status?: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
      readonly delayMs?: number;
    }
  | 'hang'
  | 'drop';

export interface ScriptedServer {
  readonly url: string;
  readonly asked: Asked[];
  /** Those of one path. */
  readonly of: (path: string) => Asked[];
  /** Ends it; the same port can be served again. */
  readonly stop: () => Promise<void>;
  readonly port: number;
}

/** Serves until the test has finished. */
export async function serveScript(
  script: (asked: Asked) => Said | Promise<Said>,
  port = 0,
): Promise<ScriptedServer> {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method = '', url = '', headers } = request;
    const one = { method, path: url, headers, body: text === '' ? undefined : JSON.parse(text) };
    asked.push(one);
    const said = await script(one);
    if (said === 'hang') return;
    if (said === 'drop') {
      request.socket.destroy();
      return;
    }
    const { status = 200, body = {}, delayMs = 0, headers: own = {} } = said;
    await sleep(delayMs);
    response.writeHead(status, { 'content-type': 'application/json', ...own });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  const server = createServer((request, response) => void answer(request, response));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  onTestFinished(stop);
  const own = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${own}`,
    port: own,
    asked,
    of: (path) => asked.filter((each) => each.path === path),
    stop,
  };
}
