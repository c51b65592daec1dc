import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveProxy } from '../../../src/gate/proxy/serve-proxy.js';
import { ask, openProxy, sendRaw, serveUpstream } from './support.js';

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Cuts at random places. */
function cut(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(Math.random() * (Math.random() < 0.5 ? 8 : 40_000));
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

describe('what passes', () => {
  it.each(['chunked', 'framed'])('is the same both ways, %s', async (how) => {
    const answer = randomBytes(300_000);
    const upstream = await serveUpstream((_, response) => {
      if (how === 'framed') response.setHeader('Content-Length', answer.length);
      response.writeHead(200, { 'X-Own': 'a', 'Set-Cookie': ['a=1', 'b=2'] });
      const pieces = cut(answer);
      const next = (): void => {
        const piece = pieces.shift();
        if (piece === undefined) response.end();
        else response.write(piece, () => setImmediate(next));
      };
      next();
    });
    const proxy = await openProxy(upstream.url);
    const sent = randomBytes(100_000);
    const got = await ask(`${proxy.url}/a/b?c=%20d`, { method: 'POST', headers: { 'X-Any': 'x' } }, sent);
    expect(got.status).toBe(200);
    expect(sha(got.body)).toBe(sha(answer));
    expect(got.headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(got.headers['content-length']).toBe(how === 'framed' ? '300000' : undefined);
    const [seen] = upstream.seen;
    expect(seen?.request.method).toBe('POST');
    expect(seen?.request.url).toBe('/a/b?c=%20d');
    expect(seen?.request.headers['x-any']).toBe('x');
    expect(seen?.request.headers['accept-encoding']).toBe('identity');
    expect(seen?.request.headers.host).toBe(new URL(upstream.url).host);
    expect(sha(seen?.body ?? Buffer.of())).toBe(sha(sent));
    expect(sha(Buffer.concat(proxy.sights[0]?.chunks ?? []))).toBe(sha(answer));
    expect(proxy.sights[0]?.ends).toEqual([undefined]);
  });

  it('is the same for 64 streams at once', async () => {
    const upstream = await serveUpstream((_, response, body) => {
      const pieces = cut(body);
      const next = (): void => {
        const piece = pieces.shift();
        if (piece === undefined) response.end();
        else response.write(piece, () => setImmediate(next));
      };
      next();
    });
    const proxy = await openProxy(upstream.url);
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        const sent = randomBytes(50_000);
        const got = await ask(`${proxy.url}/`, { method: 'POST' }, sent);
        expect(sha(got.body)).toBe(sha(sent));
      }),
    );
    expect(proxy.sights).toHaveLength(64);
  });

  it('is under the path of the upstream', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(`${upstream.url}/api/`);
    await ask(`${proxy.url}/v1/x`);
    expect(upstream.seen[0]?.request.url).toBe('/api/v1/x');
  });

  it('has no headers of the connection, and those that the handler sets', async () => {
    const upstream = await serveUpstream((_, response) => {
      response.writeHead(200, {
        Connection: 'X-Hop',
        'X-Hop': '1',
        'X-Stays': '1',
        'Keep-Alive': 'timeout=9',
      });
      response.end('ok');
    });
    const proxy = await openProxy(
      upstream.url,
      {},
      {
        setHeaders: { Authorization: 'Bearer own' },
        removeHeaders: ['X-Token'],
        answerHeaders: { 'X-Id': '7' },
      },
    );
    const headers = {
      Connection: 'X-Mine',
      'X-Mine': '1',
      TE: 'trailers',
      'X-Token': 'secret',
      Authorization: 'Bearer theirs',
      'X-HTTP-Method-Override': 'DELETE',
      'Proxy-Authorization': 'x',
    };
    const got = await ask(`${proxy.url}/`, { headers });
    const seen = upstream.seen[0]?.request.headers ?? {};
    expect(Object.keys(seen).sort()).toEqual(['accept-encoding', 'authorization', 'connection', 'host']);
    expect(seen.authorization).toBe('Bearer own');
    expect(got.headers['x-hop']).toBeUndefined();
    expect(got.headers['x-stays']).toBe('1');
    expect(got.headers['x-id']).toBe('7');
  });

  it('passes piece by piece, before the answer ends', async () => {
    let more: () => void = () => undefined;
    const upstream = await serveUpstream((_, response) => {
      response.write('one');
      more = () => response.end('two');
    });
    const proxy = await openProxy(upstream.url);
    const request = httpRequest(`${proxy.url}/`, { agent: false }).end();
    const first = await new Promise<string>((resolve) =>
      request.on('response', (message) => message.on('data', (bytes: Buffer) => resolve(bytes.toString()))),
    );
    expect(first).toBe('one');
    more();
  });

  it('ends for the client when the observer has seen the end, and closing waits until it is done', async () => {
    const upstream = await serveUpstream((_, response) => response.end('whole'));
    let [hasSeen, isDone] = [false, false];
    let settle = (): void => undefined;
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const observer = {
      head: () => undefined,
      chunk: () => undefined,
      end: async () => {
        hasSeen = true;
        await settled;
        isDone = true;
      },
    };
    const proxy = await openProxy(upstream.url, {}, { observer });
    const got = await ask(`${proxy.url}/`);
    expect([hasSeen, isDone]).toEqual([true, false]);
    expect(got.body.toString()).toBe('whole');
    const closed = proxy.close();
    settle();
    await closed;
    expect(isDone).toBe(true);
  });

  it('is held back as a whole where it is an error: it is recorded before the client can ask again', async () => {
    for (const size of [0, 10, 200_000, 600_000]) {
      const body = randomBytes(size);
      const isLong = size > 300_000;
      let endAnswer = (): void => undefined;
      const upstream = await serveUpstream((_, response) => {
        response.writeHead(429);
        response.write(body.subarray(0, size / 2));
        endAnswer = () => void response.end(body.subarray(size / 2));
        if (!isLong) setTimeout(endAnswer, 20);
      });
      let isDone = false;
      const end = async (): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        isDone = true;
      };
      const observer = { head: () => undefined, chunk: () => undefined, end };
      const proxy = await openProxy(upstream.url, {}, { observer });
      const asked = ask(`${proxy.url}/`);
      await new Promise((resolve) => asked.request.once('response', resolve));
      expect(isDone).toBe(!isLong);
      if (isLong) endAnswer();
      const got = await asked;
      expect([got.status, sha(got.body), got.isWhole]).toEqual([429, sha(body), true]);
    }
  });

  it.each([
    ['200', 2],
    ['500', 2],
    // It is sent on before its end.
    ['500', 300_000],
  ])(
    'has a reason that can be sent, whatever the reason of the upstream is: %s, %i bytes',
    async (status, size) => {
      const body = 'x'.repeat(size);
      const server = createTcpServer((socket) => {
        socket.on('error', () => undefined);
        const head = `HTTP/1.1 ${status} no\u0001t\u007fhis\r\nContent-Length: ${size}\r\n\r\n`;
        socket.once('data', () => socket.end(head + body));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const proxy = await openProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const got = await ask(`${proxy.url}/`);
      expect([got.status, got.body.toString(), got.isWhole]).toEqual([Number(status), body, true]);
      expect(proxy.sights[0]?.ends).toEqual([undefined]);
    },
  );

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('%s with %i has no body', async (method, status) => {
    const upstream = await serveUpstream((_, response) => response.writeHead(status, { 'X-A': '1' }).end());
    const proxy = await openProxy(upstream.url);
    const got = await ask(`${proxy.url}/`, { method });
    expect([got.status, got.headers['x-a'], got.body.length]).toEqual([status, '1', 0]);
    expect(proxy.sights[0]?.ends).toEqual([undefined]);
  });

  it('waits for a slow reader: the upstream is not read ahead', async () => {
    let written = 0;
    const upstream = await serveUpstream((_, response) => {
      const chunk = Buffer.alloc(64 * 1024);
      const next = (): void => {
        if (response.destroyed) return;
        written += chunk.length;
        if (response.write(chunk)) setImmediate(next);
        else response.once('drain', next);
      };
      next();
    });
    const proxy = await openProxy(upstream.url);
    const socket = connect(proxy.port, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    );
    onTestFinished(() => void socket.destroy());
    socket.pause();
    let before = -1;
    while (before !== written) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    // What the buffers of three sockets hold.
    expect(written).toBeLessThan(32 * 1024 * 1024);
    socket.destroy();
    expect(await proxy.sights[0]?.ended).toEqual({ code: 'CLIENT_LEFT', wasSent: true });
  });
});

describe('what is refused', () => {
  const refused = async (
    text: string,
    options = {},
  ): Promise<{ status: string; seen: number; handled: number }> => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(upstream.url, options);
    const got = await sendRaw(proxy.port, text);
    return { status: got.slice(9, 12), seen: upstream.seen.length, handled: proxy.sights.length };
  };
  const nothing = (status: string) => ({ status, seen: 0, handled: 0 });
  const host = 'Host: localhost\r\n';

  it.each([
    ['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`],
    ['the same length twice', `POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`],
    [
      'length and chunks',
      `POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'chunks that are compressed',
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['space before the colon', `POST / HTTP/1.1\r\n${host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
    ['a folded header', `GET / HTTP/1.1\r\n${host}X-A: 1\r\n  Transfer-Encoding: chunked\r\n\r\n`],
    ['a bare line feed', `GET / HTTP/1.1\n${host}\n\n`],
    ['a carriage return in a value', `GET / HTTP/1.1\r\n${host}X-A: 1\rX-B: 2\r\n\r\n`],
    ['a zero in a value', `GET / HTTP/1.1\r\n${host}X-A: 1\0\r\n\r\n`],
    ['two hosts', `GET / HTTP/1.1\r\n${host}Host: other\r\n\r\n`],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    [
      'two content types',
      `POST / HTTP/1.1\r\n${host}Content-Type: a/b\r\nContent-Type: c/d\r\nContent-Length: 0\r\n\r\n`,
    ],
    ['two keys', `GET / HTTP/1.1\r\n${host}Authorization: a\r\nauthorization: b\r\n\r\n`],
    ['another server as target', `GET http://localhost/x HTTP/1.1\r\n${host}\r\n`],
    ['no path', `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
    ['a path that leads up', `GET /v1/../admin HTTP/1.1\r\n${host}\r\n`],
    ['one that is escaped', `GET /v1/%2e%2e/admin HTTP/1.1\r\n${host}\r\n`],
    ['an escaped slash', `GET /v1%2Fadmin HTTP/1.1\r\n${host}\r\n`],
    ['a backslash', `GET /v1\\admin HTTP/1.1\r\n${host}\r\n`],
    ['a chunk of no size', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
  ])('400 for %s', async (_, text) => {
    expect(await refused(text)).toEqual(nothing('400'));
  });

  it.each(['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', 'localhost@evil', '', '10.0.0.1'])(
    '403 for the host %j',
    async (name) => {
      expect(await refused(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)).toEqual(nothing('403'));
    },
  );

  it.each(['localhost:99', '127.0.0.1', '[::1]:8080', 'LOCALHOST'])('not for the host %j', async (name) => {
    expect((await refused(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)).status).toBe('200');
  });

  it('not for a host that is named', async () => {
    const text = 'GET / HTTP/1.1\r\nHost: proxy.example:80\r\n\r\n';
    expect((await refused(text, { hosts: ['proxy.example'] })).status).toBe('200');
  });

  it('403 for web pages, but for those let in', async () => {
    const text = (origin: string): string => `GET / HTTP/1.1\r\n${host}Origin: ${origin}\r\n\r\n`;
    const options = { origins: ['https://app.example'] };
    expect(await refused(text('null'))).toEqual(nothing('403'));
    expect(await refused(text('http://localhost'))).toEqual(nothing('403'));
    expect(await refused(text('https://app.example.evil'), options)).toEqual(nothing('403'));
    expect((await refused(text('https://app.example'), options)).status).toBe('200');
  });

  it('413 for a body that is too large, framed or not', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(upstream.url, { maxBodyBytes: 1_000 });
    const send = (size: number, headers = {}) =>
      ask(`${proxy.url}/`, { method: 'POST', headers }, Buffer.alloc(size));
    expect((await send(1_000)).status).toBe(200);
    expect((await send(1_001)).status).toBe(413);
    expect((await send(1_001, { 'Transfer-Encoding': 'chunked' })).status).toBe(413);
    expect(
      (await sendRaw(proxy.port, `POST / HTTP/1.1\r\n${host}Content-Length: 999999\r\n\r\n`)).slice(9, 12),
    ).toBe('413');
    expect(upstream.seen).toHaveLength(1);
  });

  it('503 beyond the most at once', async () => {
    const upstream = await serveUpstream(() => undefined);
    const proxy = await openProxy(upstream.url, { maxPending: 1 });
    const first = ask(`${proxy.url}/`);
    first.catch(() => undefined);
    while (upstream.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await ask(`${proxy.url}/`);
    expect([second.status, JSON.parse(second.body.toString()).error.code]).toEqual([503, 'BUSY']);
    first.request.destroy();
  });

  it('408 for a request that does not end', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(upstream.url, { requestTimeoutMs: 200 });
    const got = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(proxy.port, '127.0.0.1', () =>
        socket.write(`POST / HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nabc`),
      );
      socket.on('data', (bytes) => (text += bytes.toString()));
      socket.on('close', () => resolve(text));
      socket.on('error', () => undefined);
    });
    expect(got.slice(9, 12)).toBe('408');
    expect(upstream.seen).toHaveLength(0);
  });

  it('redirects: 502, and nobody follows', async () => {
    const other = await serveUpstream((_, response) => response.end('stolen'));
    const upstream = await serveUpstream((_, response) =>
      response.writeHead(307, { Location: other.url }).end(),
    );
    const proxy = await openProxy(upstream.url);
    const got = await ask(`${proxy.url}/`, { method: 'POST', headers: { Authorization: 'Bearer k' } }, 'x');
    expect([got.status, got.headers.location]).toEqual([502, undefined]);
    expect(other.seen).toHaveLength(0);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_REDIRECTED', wasSent: true }]);
  });

  it('headers of the handler that would be two', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(upstream.url, {}, { setHeaders: { 'X-A': 'a\r\nX-B: b' } });
    await ask(`${proxy.url}/`).catch(() => undefined);
    expect(upstream.seen).toHaveLength(0);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_UNREACHABLE', wasSent: false }]);
  });

  it.each(['ftp://a', 'nonsense', 'http://u:p@a/', 'http://a/?q', 'http://a/#f'])(
    'the upstream %j',
    async (url) => {
      const handle = () => Promise.reject(new Error('not asked'));
      await expect(serveProxy({ upstream: url, place: { port: 0 }, handle })).rejects.toThrow(TypeError);
    },
  );
});

describe('what breaks', () => {
  it('502 for an upstream that is not there, which has had nothing', async () => {
    const proxy = await openProxy('http://127.0.0.1:1');
    const got = await ask(`${proxy.url}/`);
    expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([502, 'UPSTREAM_UNREACHABLE']);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_UNREACHABLE', wasSent: false }]);
  });

  it('502 for one to which no connection could begin', async () => {
    // A refusal of connect(2) itself, as without a free descriptor or port.
    const proxy = await openProxy('http://255.255.255.255:80');
    expect((await ask(`${proxy.url}/`, { method: 'POST' }, 'x')).status).toBe(502);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_UNREACHABLE', wasSent: false }]);
  });

  it('502 for one that closes before its answer, or answers with no HTTP', async () => {
    for (const text of [
      undefined,
      'SSH-2.0-x\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello',
    ]) {
      const server = createTcpServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => (text === undefined ? socket.destroy() : socket.end(text)));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const proxy = await openProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const got = await ask(`${proxy.url}/`);
      expect(got.status).toBe(502);
      expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_BROKE', wasSent: true }]);
    }
  });

  it.each(['chunked', 'framed'])('the client sees an answer that breaks off, %s', async (how) => {
    const upstream = await serveUpstream((_, response) => {
      if (how === 'framed') response.setHeader('Content-Length', 100);
      response.write('half');
      setTimeout(() => response.destroy(), 30);
    });
    const proxy = await openProxy(upstream.url);
    const got = await ask(`${proxy.url}/`);
    expect([got.status, got.body.toString(), got.isWhole]).toEqual([200, 'half', false]);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_BROKE', wasSent: true }]);
  });

  it('the client has all small pieces that came at once before it broke', async () => {
    const pieces = Array.from({ length: 500 }, (_, n) => `data: ${n}\n\n`);
    const upstream = await serveUpstream((_, response) => {
      for (const piece of pieces) response.write(piece);
      response.socket?.destroySoon();
    });
    const proxy = await openProxy(upstream.url);
    const { body, isWhole } = await ask(`${proxy.url}/`);
    expect([body.toString(), isWhole]).toEqual([pieces.join(''), false]);
    const [sight] = proxy.sights;
    expect(await sight?.ended).toEqual({ code: 'UPSTREAM_BROKE', wasSent: true });
    expect(Buffer.concat(sight?.chunks ?? []).toString()).toBe(pieces.join(''));
  });

  it('504 for one that does not answer; one that stops within its answer is broken off', async () => {
    const upstream = await serveUpstream((request, response) => {
      if (request.url === '/half') response.write('half');
    });
    const proxy = await openProxy(upstream.url, { idleTimeoutMs: 150 });
    expect((await ask(`${proxy.url}/`)).status).toBe(504);
    const got = await ask(`${proxy.url}/half`);
    expect([got.body.toString(), got.isWhole]).toEqual(['half', false]);
    expect(proxy.sights.map(({ ends }) => ends)).toEqual([
      [{ code: 'UPSTREAM_TIMEOUT', wasSent: true }],
      [{ code: 'UPSTREAM_TIMEOUT', wasSent: true }],
    ]);
  });

  it('a client that leaves ends the request upstream, before and within the answer', async () => {
    for (const when of ['before', 'within']) {
      let gone: () => void = () => undefined;
      const left = new Promise<void>((resolve) => (gone = resolve));
      const upstream = await serveUpstream((_, response) => {
        response.on('close', gone);
        if (when === 'within') response.write('half');
      });
      const proxy = await openProxy(upstream.url);
      const asked = ask(`${proxy.url}/`);
      asked.catch(() => undefined);
      if (when === 'within') await new Promise((resolve) => asked.request.once('response', resolve));
      else while (upstream.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      asked.request.destroy();
      await left;
      expect(await proxy.sights[0]?.ended).toEqual({ code: 'CLIENT_LEFT', wasSent: true });
    }
  });

  it.each(['is being made', 'has come'])(
    'a client that leaves ends what it sent behind another request: its answer %s',
    async (how) => {
      const upstream = await serveUpstream((request, response) => {
        if (request.url === '/second' && how === 'has come') response.end('second');
      });
      const proxy = await openProxy(upstream.url);
      const client = connect(proxy.port, '127.0.0.1');
      const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
      client.write(ask('/first') + ask('/second'));
      await expect.poll(() => upstream.seen).toHaveLength(2);
      const [first, second] = proxy.sights;
      if (how === 'has come') await second?.ended;
      client.destroy();
      const left = { code: 'CLIENT_LEFT', wasSent: true };
      expect(await first?.ended).toEqual(left);
      expect(await second?.ended).toEqual(how === 'has come' ? undefined : left);
      // Whatever is not over would be waited for.
      await proxy.close();
    },
  );

  it('a client that has left while the handler thinks is not asked for', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    let begun: () => void = () => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    let end: (fault: unknown) => void = () => undefined;
    const ended = new Promise((resolve) => (end = resolve));
    const observer = { head: () => undefined, chunk: () => undefined, end: (fault: unknown) => end(fault) };
    const proxy = await openProxy(upstream.url, {
      handle: async ({ signal }) => {
        begun();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return { kind: 'forward', observer };
      },
    });
    const asked = ask(`${proxy.url}/`);
    asked.catch(() => undefined);
    await started;
    asked.request.destroy();
    expect(await ended).toEqual({ code: 'CLIENT_LEFT', wasSent: false });
    expect(upstream.seen).toHaveLength(0);
  });

  it('a client that does not read is broken off', async () => {
    const upstream = await serveUpstream((_, response) => response.end(Buffer.alloc(64 * 1024 * 1024)));
    const proxy = await openProxy(upstream.url, { readTimeoutMs: 200 });
    const socket = connect(proxy.port, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    );
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    socket.pause();
    while (proxy.sights.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await proxy.sights[0]?.ended).toEqual({ code: 'CLIENT_LEFT', wasSent: true });
  });

  it('closing waits for what passes, and breaks off what does not end', async () => {
    let release: () => void = () => undefined;
    const upstream = await serveUpstream((request, response) => {
      response.write('a');
      if (request.url === '/ends') release = () => response.end('b');
    });
    const proxy = await openProxy(upstream.url);
    const [ends, hangs] = [ask(`${proxy.url}/ends`), ask(`${proxy.url}/hangs`)];
    await Promise.all(
      [ends, hangs].map(({ request }) => new Promise((resolve) => request.once('response', resolve))),
    );
    const closed = proxy.close();
    release();
    expect((await ends).isWhole).toBe(true);
    await closed;
    expect((await hangs).isWhole).toBe(false);
    const faults = await Promise.all(proxy.sights.map(({ ended }) => ended));
    expect(faults).toContainEqual({ code: 'PROXY_CLOSED', wasSent: true });
    expect(faults).toContainEqual(undefined);
    await expect(ask(`${proxy.url}/`)).rejects.toThrow();
  });

  it('a rejected handler closes the connection', async () => {
    const upstream = await serveUpstream((_, response) => response.end('ok'));
    const proxy = await openProxy(upstream.url, { handle: () => Promise.reject(new Error('own')) });
    await expect(ask(`${proxy.url}/`)).rejects.toThrow();
    expect(upstream.seen).toHaveLength(0);
  });
});

describe('a compressed answer', () => {
  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('passes as it is, and is read: %s', async (encoding, compress) => {
    const plain = randomBytes(40_000).toString('hex');
    const bytes = compress(plain);
    const upstream = await serveUpstream((_, response) => {
      response.setHeader('Content-Encoding', encoding);
      response.end(bytes);
    });
    const proxy = await openProxy(upstream.url);
    const got = await ask(`${proxy.url}/`);
    expect(got.body.equals(bytes)).toBe(true);
    expect(got.headers['content-encoding']).toBe(encoding);
    expect(Buffer.concat(proxy.sights[0]?.chunks ?? []).toString()).toBe(plain);
    expect(proxy.sights[0]?.ends).toEqual([undefined]);
  });

  it.each([1_000_000, 1_000])('that breaks off is read as far as it came, in pieces of %i', async (size) => {
    const plain = randomBytes(40_000).toString('hex');
    const bytes = gzipSync(plain, { finishFlush: constants.Z_SYNC_FLUSH });
    const upstream = await serveUpstream((_, response) => {
      response.setHeader('Content-Encoding', 'gzip');
      for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
      response.socket?.destroySoon();
    });
    const proxy = await openProxy(upstream.url);
    const { body, isWhole } = await ask(`${proxy.url}/`);
    expect([body.equals(bytes), isWhole]).toEqual([true, false]);
    const [sight] = proxy.sights;
    expect(await sight?.ended).toEqual({ code: 'UPSTREAM_BROKE', wasSent: true });
    expect(Buffer.concat(sight?.chunks ?? []).toString()).toBe(plain);
  });

  it.each([
    ['gzip', Buffer.from('no gzip')],
    ['gzip', gzipSync('cut short').subarray(0, 15)],
    ['zstd', Buffer.from('unknown')],
    ['gzip, br', Buffer.from('two')],
    ['constructor', Buffer.from('x')],
  ])('that cannot be read passes all the same: %s', async (encoding, bytes) => {
    const upstream = await serveUpstream((_, response) => {
      response.setHeader('Content-Encoding', encoding);
      response.end(bytes);
    });
    const proxy = await openProxy(upstream.url);
    const got = await ask(`${proxy.url}/`);
    expect(got.body.equals(bytes)).toBe(true);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'ANSWER_UNREADABLE', wasSent: true }]);
  });

  it('is none where nothing came, as after HEAD', async () => {
    const upstream = await serveUpstream((_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end();
    });
    const proxy = await openProxy(upstream.url);
    for (const method of ['HEAD', 'GET']) await ask(`${proxy.url}/`, { method });
    expect(proxy.sights.map(({ ends }) => ends)).toEqual([[undefined], [undefined]]);
  });

  it('that is a bomb passes, and is not read to its end', async () => {
    const bomb = gzipSync(Buffer.alloc(300 * 1024 * 1024));
    const upstream = await serveUpstream((_, response) => {
      response.setHeader('Content-Encoding', 'gzip');
      response.end(bomb);
    });
    let size = 0;
    let end: (fault: unknown) => void = () => undefined;
    const ended = new Promise((resolve) => (end = resolve));
    const observer = {
      head: () => undefined,
      chunk: (bytes: Uint8Array) => void (size += bytes.length),
      end: (fault: unknown) => end(fault),
    };
    const proxy = await openProxy(upstream.url, {}, { observer });
    const got = await ask(`${proxy.url}/`);
    expect(sha(got.body)).toBe(sha(bomb));
    expect(await ended).toEqual({ code: 'ANSWER_UNREADABLE', wasSent: true });
    expect(size).toBeLessThanOrEqual(256 * 1024 * 1024);
  });
});

describe('TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-tls-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  execFileSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
    ],
    { stdio: 'ignore' },
  );
  const [keyText, certText] = [readFileSync(key), readFileSync(cert, 'utf8')];
  rmSync(folder, { recursive: true });

  const serveTls = async (): Promise<number> => {
    const server = createTlsServer({ key: keyText, cert: certText }, (_, response) => response.end('safe'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  };

  it('passes with a certificate that is trusted', async () => {
    const proxy = await openProxy(`https://localhost:${await serveTls()}`, { ca: certText });
    expect((await ask(`${proxy.url}/`)).body.toString()).toBe('safe');
  });

  it('502 for one that is not, whatever the environment says; nothing is sent', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    onTestFinished(() => {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    });
    const proxy = await openProxy(`https://localhost:${await serveTls()}`);
    expect((await ask(`${proxy.url}/`)).status).toBe(502);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_UNREACHABLE', wasSent: false }]);
  });

  it('502 for one of another name', async () => {
    const proxy = await openProxy(`https://127.0.0.1:${await serveTls()}`, { ca: certText });
    expect((await ask(`${proxy.url}/`)).status).toBe(502);
    expect(proxy.sights[0]?.ends).toEqual([{ code: 'UPSTREAM_UNREACHABLE', wasSent: false }]);
  });
});
