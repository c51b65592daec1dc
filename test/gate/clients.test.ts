/** Clients that mean harm: whatever they send, and however many they are, others are answered. */

import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveHttp } from '../../src/base/platform/serve-http.js';
import type { Adviser } from '../../src/gate/advisers/adviser.js';
import type { Gate } from '../../src/gate/gate.js';
import { serveGate, type ServeGateOptions } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { filePlace, memoryPlace } from '../agent/support.js';
import { temporaryFolder } from '../writer/support.js';
import { send } from './service-process.js';
import { openGate, reopen } from './support.js';

const READ = { ref: 'c1', session: 's', tool: 'fs.read', params: { path: '/x' } };
/** As src/base/platform/serve-http.ts has it. */
const MAX_CONNECTIONS = 1_024;

async function serve(options: Partial<ServeGateOptions> = {}): Promise<{ gate: Gate; socket: string }> {
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 100_000 } });
  const socket = join(temporaryFolder(), 's.sock');
  const server = await serveGate({ gate, socket, ...options });
  onTestFinished(() => server.close());
  return { gate, socket };
}

/** A connection that has sent a text; what it was answered comes with its end. */
function dial(socket: string, text = ''): Promise<{ connection: Socket; answered: Promise<string> }> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    let answer = '';
    connection.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
    connection.on('error', () => undefined);
    onTestFinished(() => void connection.destroy());
    const answered = new Promise<string>((done) => connection.once('close', () => done(answer)));
    const ready = (): void => {
      connection.write(text);
      resolve({ connection, answered });
    };
    connection.once('connect', ready).once('close', ready);
  });
}

function dialMany(socket: string, count: number, text: string): Promise<Awaited<ReturnType<typeof dial>>[]> {
  return Promise.all(Array.from({ length: count }, () => dial(socket, text)));
}

const bodyOf = (call: object): string => JSON.stringify(call);
const requestOf = (path: string, body: string, length = body.length): string =>
  `POST ${path} HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;

async function expectServed(socket: string): Promise<void> {
  expect(await send(socket, '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect((await send(socket, '/v1/decide', { ...READ, ref: 'mine' })).body['effect']).toBe('allow');
}

describe('a service is there for others', () => {
  it.each([
    ['say nothing', ''],
    ['send half of a header', 'POST /v1/decide HTTP/1.1\r\nHost: ga'],
    ['send half of a body', requestOf('/v1/decide', '{"tool":', 100)],
  ])('while so many as it has connections %s', async (_, text) => {
    const { socket } = await serve();
    await dialMany(socket, MAX_CONNECTIONS + 200, text);
    await expectServed(socket);
  });

  it('while as many calls as may wait for an approval', async () => {
    const rule = { tools: ['fs.write'], approvers: ['human:*'] };
    const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 10_000 }, approvals: [rule] });
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({ gate, socket, maxWaiting: 4 });
    onTestFinished(() => server.close());
    let refused = 0;
    const wait = async (n: number): Promise<void> => {
      const call = { tool: 'fs.write', ref: `w${n}`, params: { n }, wait_ms: 600_000 };
      const { status, headers } = await send(socket, '/v1/decide', call);
      if (status === 503 && headers['retry-after'] === '1') refused += 1;
    };
    const waiting = Array.from({ length: 20 }, (_, n) => wait(n));
    // What would wait in vain is told so at once.
    while (refused < 16) await pause();
    await expectServed(socket);
    expect(refused).toBe(16);
    await gate.close();
    await Promise.all(waiting);
  });

  it('while thousands ask at once: each is answered, or told to come again', async () => {
    const { socket, gate } = await serve();
    const text = Array.from({ length: 300 }, (_, n) =>
      requestOf('/v1/decide', bodyOf({ ...READ, ref: `p${n}` })),
    ).join('');
    // Each sends all of its requests before it reads an answer.
    const flood = await dialMany(socket, 4, text);
    // So is who asks beside them, who comes again as told.
    let mine = await send(socket, '/v1/decide', { ...READ, ref: 'mine' });
    for (; mine.status === 503; mine = await send(socket, '/v1/decide', { ...READ, ref: 'mine' })) {
      expect(mine.headers['retry-after']).toBeDefined();
      await pause();
    }
    expect(mine.body['effect']).toBe('allow');
    for (const { connection } of flood) connection.end();
    const answers = (await Promise.all(flood.map(({ answered }) => answered))).join('');
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status);
    expect(statuses.filter((status) => status !== '200' && status !== '503')).toEqual([]);
    expect(statuses).toContain('200');
    expect(gate.openCalls).toBeLessThanOrEqual(301);
  });

  it('while bodies are larger than all of them together may be', async () => {
    const { socket } = await serve();
    const large = `{"tool":"${'x'.repeat(900_000)}`;
    const flood = await dialMany(socket, 100, requestOf('/v1/decide', large, 1_000_000));
    await expectServed(socket);
    for (const { connection } of flood) connection.end('x'.repeat(1_000_000 - large.length));
    const answers = await Promise.all(flood.map(({ answered }) => answered));
    const statuses = new Set(answers.map((answer) => answer.slice('HTTP/1.1 '.length, 12)));
    expect([...statuses].sort()).toEqual(['400', '503']);
    await expectServed(socket);
  });
});

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

describe('a request that is not sound', () => {
  it.each([
    ['ten thousand headers', `GET /healthz HTTP/1.1\r\n${'a: b\r\n'.repeat(10_000)}\r\n`, /^HTTP\/1\.1 431 /],
    ['a long path', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, /^HTTP\/1\.1 431 /],
    [
      'two lengths',
      requestOf('/v1/decide', '{}').replace('Host', 'Content-Length: 7\r\nHost'),
      /^HTTP\/1\.1 400 /,
    ],
    [
      'a length and chunks',
      requestOf('/v1/decide', '{}').replace('Host', 'Transfer-Encoding: chunked\r\nHost'),
      /^HTTP\/1\.1 400 /,
    ],
    ['another protocol', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', /^HTTP\/1\.1 400 /],
  ])('%s: is refused, and decides nothing', async (_, text, answer) => {
    const { socket, gate } = await serve();
    const { size } = gate.ledger;
    const { answered, connection } = await dial(socket, text);
    connection.end();
    expect(await answered).toMatch(answer);
    expect(gate.ledger.size).toBe(size);
    await expectServed(socket);
  });

  it('a body that comes too slowly ends its connection', async () => {
    const path = join(temporaryFolder(), 's.sock');
    let handled = 0;
    const server = await serveHttp(
      () => {
        handled += 1;
        return Promise.resolve({ status: 200, contentType: 'text/plain', body: '' });
      },
      { socket: path },
      {
        maxBodyBytes: 1_000,
        requestTimeoutMs: 200,
        refuse: (status) => ({ status, contentType: 'text/plain', body: '' }),
      },
    );
    onTestFinished(() => server.close());
    const { connection, answered } = await dial(path, requestOf('/', 'a', 1_000));
    const drip = setInterval(() => connection.write('a'), 20);
    onTestFinished(() => clearInterval(drip));
    expect(await answered).toMatch(/^(?:HTTP\/1\.1 408 |$)/);
    expect(handled).toBe(0);
  });
});

describe('a client with a token', () => {
  const [ci, other] = ['ci', 'other'].map((name) =>
    makeToken({ name, principals: [name === 'ci' ? 'agent:a1' : 'agent:b'], tools: ['fs.*'] }),
  );
  const tokens = Tokens.parse(Buffer.from(JSON.stringify({ tokens: [ci?.entry, other?.entry] })));

  it("cannot settle, release or see another's calls", async () => {
    const { socket, gate } = await serve({ tokens });
    const decided = await send(socket, '/v1/decide', READ, ci?.token);
    expect(decided.body['effect']).toBe('allow');
    const named = { ref: READ.ref, session: READ.session };
    const done = { ...named, outcome: 'success' };
    const codeOf = async (path: string, body: object): Promise<unknown> =>
      (await send(socket, path, body, other?.token)).body.error?.code;
    expect(await codeOf('/v1/settle', done)).toBe('CALL_NOT_FOUND');
    expect(await codeOf('/v1/settle', { ...done, principal: 'agent:a1' })).toBe('NOT_ALLOWED');
    expect(await codeOf('/v1/release', { ...named, principal: 'agent:a1' })).toBe('NOT_ALLOWED');
    expect((await send(socket, '/v1/release', { session: 's' }, other?.token)).body).toEqual({ released: 0 });
    expect(
      await codeOf('/access/v1/evaluation', {
        subject: { type: 'agent', id: 'a1' },
        action: { name: 'call' },
        resource: { type: 'tool', id: 'fs.read' },
      }),
    ).toBe('NOT_ALLOWED');
    expect(gate.openCalls).toBe(1);
  });

  it('cannot end a call of a tool that it may not call', async () => {
    const reader = makeToken({ name: 'reader', principals: ['agent:a1'], tools: ['fs.stat'] });
    const both = Tokens.parse(Buffer.from(JSON.stringify({ tokens: [ci?.entry, reader.entry] })));
    const { socket, gate } = await serve({ tokens: both });
    await send(socket, '/v1/decide', READ, ci?.token);
    const named = { ref: READ.ref, session: READ.session };
    const codeOf = async (path: string, body: object): Promise<unknown> =>
      (await send(socket, path, body, reader.token)).body.error?.code;
    expect(await codeOf('/v1/settle', { ...named, outcome: 'success' })).toBe('NOT_ALLOWED');
    expect(await codeOf('/v1/release', named)).toBe('NOT_ALLOWED');
    expect(gate.openCalls).toBe(1);
    await gate.release(named);
    expect(await codeOf('/v1/settle', { ...named, outcome: 'success' })).toBe('NOT_ALLOWED');
  });

  it.each([
    ['this service has', false],
    ['another process has', true],
  ])('ends a session only for the tools that it may call: calls that %s allowed', async (_, isOthers) => {
    const place = filePlace();
    const { gate: first } = await openGate(place);
    for (const tool of ['fs.read', 'fs.stat']) await first.decide({ ...READ, ref: tool, tool, start: false });
    await first.decide({ tool: 'fs.read', params: {}, session: 's', start: false });
    if (isOthers) await first.close();
    const gate = isOthers ? await reopen(place) : first;
    const stat = makeToken({ name: 'stat', principals: ['agent:a1'], tools: ['fs.stat'] });
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({
      gate,
      socket,
      tokens: Tokens.parse(Buffer.from(JSON.stringify({ tokens: [stat.entry] }))),
    });
    onTestFinished(() => server.close());
    const { body } = await send(socket, '/v1/release', { session: 's' }, stat.token);
    expect(body).toEqual({ released: 1 });
    const [{ unstarted } = { unstarted: [] }] = await gate.ledger.budget();
    expect(unstarted).toHaveLength(2);
    await gate.release({ ref: 'fs.read', session: 's' });
    const [left] = await gate.ledger.budget();
    expect(left?.unstarted).toHaveLength(1);
  });

  it.each([
    ['in the query', '/v1/decide?access_token=TOKEN', undefined],
    ['cut short', '/v1/decide', 'CUT'],
    ['twice', '/v1/decide', 'TOKEN TOKEN'],
    ['that is the digest in the file', '/v1/decide', 'DIGEST'],
  ])('is refused when it gives it %s', async (_, path, given) => {
    const { socket } = await serve({ tokens });
    const token = ci?.token ?? '';
    const put = (text: string): string =>
      text
        .replaceAll('TOKEN', token)
        .replace('CUT', token.slice(0, -1))
        .replace('DIGEST', ci?.entry.token ?? '');
    const answer = await send(socket, put(path), READ, given === undefined ? undefined : put(given));
    expect([answer.status, answer.body.error?.code]).toEqual([401, 'TOKEN_INVALID']);
    expect(JSON.stringify(answer.body)).not.toContain(token);
  });

  it('gets by repeating a request only the answer that it had', async () => {
    const { socket, gate } = await serve({ tokens });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => send(socket, '/v1/decide', READ, ci?.token)),
    );
    expect(new Set(answers.map(({ body }) => body['authorization'])).size).toBe(1);
    const done = { ref: 'c1', session: 's', outcome: 'success' };
    const settled = await Promise.all(
      Array.from({ length: 20 }, () => send(socket, '/v1/settle', done, ci?.token)),
    );
    expect(settled.filter(({ body }) => body['recorded'] !== null)).toHaveLength(1);
    expect(gate.openCalls).toBe(0);
  });
});

it('one that does not wait for its answer is no fault of the service', async () => {
  let tell: (() => void) | undefined;
  const asked = new Promise<void>((resolve) => (tell = resolve));
  const slow: Adviser = {
    name: 'slow',
    timeoutMs: 60_000,
    advise: () => {
      tell?.();
      return new Promise(() => undefined);
    },
  };
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 10 } }, { advisers: [slow] });
  const socket = join(temporaryFolder(), 's.sock');
  const events: object[] = [];
  const server = await serveGate({ gate, socket, onEvent: (event) => events.push(event) });
  onTestFinished(() => server.close());
  const { connection } = await dial(socket, requestOf('/v1/decide', bodyOf(READ)));
  await asked;
  connection.destroy();
  await expect
    .poll(() => events)
    .toMatchObject([{ route: 'POST /v1/decide', status: 499, code: 'CLIENT_GONE' }]);
});

it('one that leaves is gone with all that it asked for at once', async () => {
  const signals: AbortSignal[] = [];
  const path = join(temporaryFolder(), 's.sock');
  const server = await serveHttp(
    ({ signal }) => {
      signals.push(signal);
      return new Promise(() => undefined);
    },
    { socket: path },
    {
      maxBodyBytes: 1_000,
      graceMs: 1,
      refuse: (status) => ({ status, contentType: 'text/plain', body: '' }),
    },
  );
  onTestFinished(() => server.close());
  const { connection } = await dial(path, requestOf('/', '{}').repeat(3));
  await expect.poll(() => signals).toHaveLength(3);
  connection.destroy();
  await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
});

it('one that leaves takes no answer from another that asks the same', async () => {
  const asked: (() => void)[] = [];
  const slow: Adviser = {
    name: 'slow',
    timeoutMs: 60_000,
    advise: () => new Promise((resolve) => asked.push(() => resolve({ effect: 'permit' }))),
  };
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 10 } }, { advisers: [slow] });
  const socket = join(temporaryFolder(), 's.sock');
  const server = await serveGate({ gate, socket });
  onTestFinished(() => server.close());
  const { connection } = await dial(socket, requestOf('/v1/decide', bodyOf(READ)));
  await expect.poll(() => asked).toHaveLength(1);
  const again = send(socket, '/v1/decide', READ);
  // Any later request is answered after both are known.
  await send(socket, '/healthz');
  connection.destroy();
  await expect.poll(() => asked).toHaveLength(2);
  asked[1]?.();
  expect(await again).toMatchObject({ status: 200, body: { effect: 'allow', is_repeated: false } });
  expect(gate.openCalls).toBe(1);
});
