import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MAX_REQUEST_BYTES, originHash, type Witness } from '../../src/proof/witness/witness-service.js';
import {
  serveWitness,
  type ServeOptions,
  type WitnessServer,
} from '../../src/proof/witness/serve-witness.js';
import { openWitness, temporaryFolder, TestLog } from './support.js';

const log = new TestLog('log.example/a');

async function serve(
  options: Partial<ServeOptions> = {},
  prefix = '',
): Promise<WitnessServer & { witness: Witness }> {
  const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder(), prefix });
  const server = await serveWitness(witness, { port: 0, ...options });
  onTestFinished(() => server.close());
  return { ...server, witness };
}

/** Sends bytes over a connection of its own; gives what comes back until the other side ends it. */
function talk(url: string, bytes: Uint8Array | string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let answer = '';
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    socket.on('close', () => resolve(answer));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

const post = (url: string, body: Uint8Array | string) =>
  fetch(`${url}/add-checkpoint`, { method: 'POST', body });

describe('serveWitness', () => {
  test('cosigns and serves over HTTP, under a prefix', async () => {
    const { url } = await serve({}, '/w1');
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/w1$/);
    const first = await post(url, log.request(0, 3));
    expect(first.status).toBe(200);
    expect(first.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const cosignature = await first.text();
    expect(cosignature).toMatch(/^— witness\.example\/w1 [A-Za-z0-9+/=]+\n$/);
    const conflict = await post(url, log.request(0, 3));
    expect([conflict.status, conflict.headers.get('content-type'), await conflict.text()]).toEqual([
      409,
      'text/x.tlog.size',
      '3\n',
    ]);
    const served = await fetch(`${url}/${originHash(log.origin)}/checkpoint`);
    expect([served.status, await served.text()]).toEqual([200, log.note(3) + cosignature]);
    expect((await fetch(`${url}/${originHash('another')}/checkpoint`)).status).toBe(404);
    expect((await post(url, 'garbage')).status).toBe(400);
    expect((await post(url, new TestLog(log.origin).request(3, 4))).status).toBe(403);
    expect((await post(url, new TestLog('another').request(0, 4))).status).toBe(404);
    expect((await post(url, log.fork('b').request(3, 4))).status).toBe(422);
    expect((await fetch(`${url}/sign-subtree`, { method: 'POST', body: 'x' })).status).toBe(404);
  });

  test('answers other methods with those that there are', async () => {
    const { url } = await serve();
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await fetch(`${url}/add-checkpoint`, { method });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'POST']);
      if (method === 'HEAD') expect(await response.text()).toBe('');
    }
    for (const method of ['HEAD', 'POST', 'PUT']) {
      const response = await fetch(`${url}/${originHash(log.origin)}/checkpoint`, { method });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'GET']);
    }
  });

  test('keeps a connection', async () => {
    const { url } = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const ports = new Set<number | undefined>();
    for (let size = 1; size <= 5; size += 1) {
      const status = await new Promise((resolve, reject) => {
        const request = httpRequest(`${url}/add-checkpoint`, { agent, method: 'POST' }, (response) => {
          ports.add(request.socket?.localPort);
          response.resume().on('end', () => resolve(response.statusCode));
        });
        request.on('error', reject).end(log.request(size - 1, size));
      });
      expect(status).toBe(200);
    }
    expect(ports.size).toBe(1);
  });

  test('refuses a body that is too large, declared or not, and goes on', async () => {
    const { url } = await serve();
    expect((await post(url, Buffer.alloc(MAX_REQUEST_BYTES + 1, 'a'))).status).toBe(413);
    const head = 'POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n';
    expect(await talk(url, `${head}Content-Length: 99999999999\r\n\r\nold 0\n`)).toMatch(/^HTTP\/1\.1 413 /);
    const chunk = `10000\r\n${'a'.repeat(65_536)}\r\n`;
    const some = `${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(10)}0\r\n\r\n`;
    expect(await talk(url, some)).toMatch(/^HTTP\/1\.1 413 /);
    // A body without end is not even answered.
    expect(await talk(url, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(200)}`)).toBe('');
    expect((await post(url, log.request(0, 1))).status).toBe(200);
  });

  test('waits neither for slow headers nor for slow bodies', async () => {
    const { url } = await serve({ requestTimeoutMs: 200 });
    const head = 'POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n';
    const answers = await Promise.all([
      talk(url, head),
      talk(url, `${head}Content-Length: 1000\r\n\r\nold 0\n`),
      talk(url, `${head}Transfer-Encoding: chunked\r\n\r\n6\r\nold 0\n\r\n`),
      talk(url, ''),
    ]);
    for (const answer of answers) expect(answer).toMatch(/^(?:HTTP\/1\.1 408 |$)/);
    expect(answers[1]).toMatch(/^HTTP\/1\.1 408 /);
    expect((await post(url, log.request(0, 1))).status).toBe(200);
  });

  test.each([
    ['no HTTP', 'hello <script>\r\n\r\n'],
    ['a binary start', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x01])],
    ['a header that is too long', `GET / HTTP/1.1\r\nHost: w\r\nX: ${'<script>'.repeat(2_000)}\r\n\r\n`],
    [
      'two lengths',
      'POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    ],
    [
      'two ways to say a length',
      'POST / HTTP/1.1\r\nHost: w\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a strange path', 'GET /<script>/%00/../x HTTP/1.1\r\nHost: <script>\r\nConnection: close\r\n\r\n'],
    ['a whole URL', 'GET http://169.254.169.254/ HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: w\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['an expectation', 'GET / HTTP/1.1\r\nHost: w\r\nExpect: <script>\r\nConnection: close\r\n\r\n'],
  ])('refuses %s and goes on', async (_what, bytes) => {
    const { url } = await serve({ requestTimeoutMs: 500 });
    const answer = await talk(url, bytes);
    expect(answer).toMatch(/^(?:HTTP\/1\.1 4\d\d |$)/);
    expect(answer).not.toContain('script');
    expect((await post(url, log.request(0, 1))).status).toBe(200);
  });

  test('outlives clients that go away', async () => {
    const { url } = await serve();
    const { hostname, port } = new URL(url);
    const head = 'POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 1000\r\n\r\n';
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        await new Promise<void>((resolve, reject) => {
          const socket = connect(Number(port), hostname, () => {
            socket.write(head.slice(0, 2 * n), () => socket.resetAndDestroy());
          });
          socket.on('close', () => resolve()).on('error', reject);
        });
      }),
    );
    expect((await post(url, log.request(0, 1))).status).toBe(200);
  });

  test('answers a hundred clients at once with one cosignature', async () => {
    const { url } = await serve();
    const views = Array.from({ length: 100 }, (_, n) => log.fork(`view ${n}`));
    const statuses = await Promise.all(
      views.map(async (view) => (await post(url, view.request(0, 5))).status),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(99);
  });

  test('gives an answer that is under way when it is closed', async () => {
    const server = await serve();
    const { url, witness } = server;
    const body = log.request(0, 1);
    const { hostname, port } = new URL(url);
    const head = `POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
    const answered = new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(Number(port), hostname, () => socket.write(head));
      socket
        .once('data', (data) => {
          expect(data.toString()).toMatch(/^HTTP\/1\.1 100 /);
          closed = server.close();
          socket.on('data', (answer) => (text += answer.toString()));
          socket.write(body);
        })
        .on('close', () => resolve(text))
        .on('error', reject);
    });
    let closed: Promise<void> | undefined;
    expect(await answered).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*— witness/);
    await closed;
    await expect(fetch(url)).rejects.toThrow();
    expect(witness.lastCheckpoint(log.origin)).toMatchObject({ size: 1 });
  });

  test('says why it cannot listen', async () => {
    const { url, witness } = await serve();
    const port = Number(new URL(url).port);
    await expect(serveWitness(witness, { port })).rejects.toMatchObject({ code: 'LISTEN_FAILED' });
    await expect(serveWitness(witness, { port: 0, host: '192.0.2.1' })).rejects.toMatchObject({
      code: 'LISTEN_FAILED',
    });
  });
});
