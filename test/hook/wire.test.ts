/** The client of the service: framing of HTTP, and answers that are none. */

import { createServer, type Server, type Socket } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type HookDecision, WireDesk } from '../../src/api/gate.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-wire-'));
const SOCKET = join(folder, 's.sock');
let server: Server | undefined;
const requests: string[] = [];

afterEach(async () => {
  await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  server = undefined;
  requests.length = 0;
  rmSync(SOCKET, { force: true });
});

/** A server that answers each request with these bytes. */
function answerWith(answer: string | ((socket: Socket) => void)): Promise<void> {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      requests.push(chunk.toString());
      if (typeof answer === 'string') socket.write(answer);
      else answer(socket);
    });
  });
  return new Promise((resolve) => (server as Server).listen(SOCKET, resolve));
}

const CALL = { ref: 't1', session: 's1', principal: 'agent:a1', tool: 'Bash', params: { command: 'ls' } };
const ALLOWED = JSON.stringify({
  effect: 'allow',
  code: 'ALLOW',
  ref: 't1',
  authorization: 'sha-256:abc',
  remaining: {},
  is_repeated: false,
});
const framed = (body: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

async function decide(token?: string, waitMs = 0): Promise<HookDecision> {
  const desk = await WireDesk.connect(SOCKET, token);
  if (desk === undefined) throw new Error('nobody listens');
  try {
    return await desk.decide(CALL, { waitMs });
  } finally {
    desk.close();
  }
}

it('finds nobody where nobody listens', async () => {
  expect(await WireDesk.connect(SOCKET, undefined)).toBeUndefined();
});

it('asks as the service expects it', async () => {
  await answerWith(framed(ALLOWED));
  expect(await decide('secret', 5_000)).toMatchObject({ effect: 'allow', code: 'ALLOW', ref: 't1' });
  const [head = '', body = ''] = requests.join('').split('\r\n\r\n');
  expect(head.split('\r\n')).toEqual([
    'POST /v1/decide HTTP/1.1',
    'Host: localhost',
    'Authorization: Bearer secret',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]);
  expect(JSON.parse(body)).toEqual({
    ref: 't1',
    session: 's1',
    principal: 'agent:a1',
    tool: 'Bash',
    params: { command: 'ls' },
    ttl_ms: 86_400_000,
    start: false,
    coverage: 'hook',
    wait_ms: 5_000,
  });
});

it('names a call by what was asked for where it has no id', async () => {
  await answerWith(framed('{"authorization":null,"recorded":null}'));
  const desk = (await WireDesk.connect(SOCKET, undefined)) as WireDesk;
  const outcome = {
    outcome: 'failure',
    outputDigest: 'sha-256:x',
    errorCode: 'EXIT_3',
    durationMs: 7,
  } as const;
  await desk.settle({ ...CALL, ref: undefined }, outcome);
  await desk.release(CALL);
  await desk.releaseSession('s1', false);
  await desk.releaseSession('s2', true);
  desk.close();
  expect(requests.map((text) => JSON.parse(text.split('\r\n\r\n')[1] ?? '') as unknown)).toEqual([
    {
      session: 's1',
      principal: 'agent:a1',
      tool: 'Bash',
      params: { command: 'ls' },
      outcome: 'failure',
      output_digest: 'sha-256:x',
      error_code: 'EXIT_3',
      duration_ms: 7,
    },
    { ref: 't1', session: 's1', principal: 'agent:a1' },
    { session: 's1' },
    { session: 's2', may_have_run: true },
  ]);
});

describe('an answer', () => {
  const chunked = (...chunks: string[]): string =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.map((each) => `${each.length.toString(16)};x=1\r\n${each}\r\n`).join('')}0\r\nTrailer: x\r\n\r\n`;

  it.each([
    ['with a length', framed(ALLOWED)],
    ['in chunks', chunked(ALLOWED.slice(0, 7), ALLOWED.slice(7))],
    ['with names of fields in other letters', framed(ALLOWED).replace('Content-Length', 'CONTENT-length')],
  ])('%s is read, also byte by byte', async (_, answer) => {
    await answerWith(answer);
    expect(await decide()).toMatchObject({ effect: 'allow' });
    server?.close();
    rmSync(SOCKET, { force: true });
    await answerWith((socket) => {
      const write = (at: number): void => {
        if (at < answer.length) socket.write(answer[at], () => setImmediate(write, at + 1));
      };
      write(0);
    });
    expect(await decide()).toMatchObject({ effect: 'allow' });
  });

  it.each([
    ['nothing', ''],
    ['no HTTP', 'hello\r\n\r\n'],
    ['HTTP of another version', framed(ALLOWED).replace('1.1', '2.0')],
    ['half of a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['half of a body', framed(ALLOWED).slice(0, -5)],
    ['no length', 'HTTP/1.1 200 OK\r\n\r\n{}'],
    ['a length that is none', framed(ALLOWED).replace(/Length: \d+/, 'Length: -1')],
    ['a length beyond the bound', framed(ALLOWED).replace(/Length: \d+/, 'Length: 2097153')],
    ['a head beyond the bound', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16 * 1024)}\r\n\r\n`],
    ['two framings', framed(ALLOWED).replace('\r\n', '\r\nTransfer-Encoding: chunked\r\n')],
    ['a chunk of no size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    [
      'a chunk that does not end',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n',
    ],
    ['chunks beyond the bound', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200001\r\n'],
    ['no JSON', framed('allow')],
    ['a list', framed('[]')],
    ['an unknown effect', framed(ALLOWED.replace('allow', 'permit'))],
    ['no effect', framed('{}')],
    ['a code that is none', framed(ALLOWED.replace('"ALLOW"', '"allow it"'))],
    ['no ref', framed(ALLOWED.replace('"ref"', '"other"'))],
    ['no authorization', framed(ALLOWED.replace('"authorization"', '"other"'))],
    ['status 500', framed('{}', '500 Internal Server Error')],
    ['status 503', framed('', '503 Service Unavailable')],
  ])('of %s is none', async (_, answer) => {
    await answerWith((socket) => socket.end(answer));
    await expect(decide()).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
  });

  it.each([
    [403, 'NOT_ALLOWED', 'NOT_ALLOWED'],
    [409, 'REQUEST_CONFLICT', 'REQUEST_CONFLICT'],
    [503, 'LEDGER_LOCKED', 'LEDGER_LOCKED'],
    [404, 'not a code', 'NOT_ALLOWED'],
  ])('%i with %s is the error %s', async (status, said, code) => {
    await answerWith(
      framed(JSON.stringify({ error: { code: said, message: 'why\u001b[2J' } }), `${status} X`),
    );
    await expect(decide()).rejects.toMatchObject({
      code,
      message: expect.not.stringContaining('\u001b') as string,
    });
  });
});

it('tells a connection that broke from an answer', async () => {
  await answerWith((socket) => socket.destroy());
  const desk = (await WireDesk.connect(SOCKET, undefined)) as WireDesk;
  await expect(desk.release(CALL)).rejects.toMatchObject({ code: 'SERVICE_FAILED' });
  expect(desk.isBroken).toBe(true);
});

it.each(['a b', 'a\r\nX: y', 'ä', ''])('takes no token %j', async (token) => {
  await expect(WireDesk.connect(SOCKET, token)).rejects.toMatchObject({ code: 'TOKEN_INVALID' });
});
