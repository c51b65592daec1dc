/** `net.fetch`: hosts of the list alone, by name and by address, however one is led elsewhere; bounded in all that comes back. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openKernelTools, type KernelToolsOptions } from '../../src/api/gate.js';
import type { Called } from './support.js';

/** What names resolve to, one answer after the other. */
const names = new Map<string, { address: string; family: number }[][]>();
let asked = 0;
vi.mock('node:dns/promises', () => ({
  lookup: (host: string) => {
    asked += 1;
    const answers = names.get(host);
    const answer = answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0];
    if (answer === undefined) return Promise.reject(new Error('ENOTFOUND'));
    return host === 'slow.test' ? new Promise(() => undefined) : Promise.resolve(answer);
  },
}));
beforeEach(() => {
  names.clear();
  asked = 0;
});

const resolveTo = (name: string, ...addresses: string[]): void =>
  void names.set(name, [addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))]);

interface Served {
  readonly port: number;
  readonly seen: IncomingMessage[];
}

async function serve(answer: RequestListener): Promise<Served> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

async function fetchWith(options: KernelToolsOptions, args: unknown, signal?: AbortSignal): Promise<Called> {
  const tools = await openKernelTools(options);
  onTestFinished(() => tools.close());
  const plan = tools.plan('net.fetch', args);
  if ('denied' in plan) return { code: `denied ${plan.denied}`, text: '', json: {}, used: {} };
  const { errorCode = 'ok', output, used } = await plan.run(signal);
  const text = Buffer.from(output).toString();
  return { code: errorCode, text, json: JSON.parse(text) as Record<string, unknown>, used };
}

const local = ({ port }: Served, path = '/'): string => `http://127.0.0.1:${port}${path}`;

describe('what is not listed', () => {
  const hosts = ['example.com', '*.example.org', 'http://plain.test:8080', 'https://[2600::1]'];

  it.each([
    ['http://example.com/', 'denied HOST_NOT_ALLOWED'],
    ['https://example.com:444/', 'denied HOST_NOT_ALLOWED'],
    ['https://example.com./', 'denied HOST_NOT_ALLOWED'],
    ['https://sub.example.com/', 'denied HOST_NOT_ALLOWED'],
    ['https://example.org/', 'denied HOST_NOT_ALLOWED'],
    ['https://xexample.org/', 'denied HOST_NOT_ALLOWED'],
    ['https://a.example.org.evil.test/', 'denied HOST_NOT_ALLOWED'],
    ['https://user:pass@example.com/', 'denied HOST_NOT_ALLOWED'],
    ['https://example.com@evil.test/', 'denied HOST_NOT_ALLOWED'],
    ['https://evil.test/#@example.com', 'denied HOST_NOT_ALLOWED'],
    ['https://evil.test\\@example.com/', 'denied HOST_NOT_ALLOWED'],
    ['https://plain.test:8080/', 'denied HOST_NOT_ALLOWED'],
    ['file:///etc/passwd', 'denied HOST_NOT_ALLOWED'],
    ['data:text/plain,x', 'denied HOST_NOT_ALLOWED'],
    ['https://0x7f.1/', 'denied HOST_NOT_ALLOWED'],
    ['https://[::ffff:127.0.0.1]/', 'denied HOST_NOT_ALLOWED'],
    ['/relative', 'denied INVALID_ARGUMENTS'],
    [`https://example.com/${'x'.repeat(4_096)}`, 'denied INVALID_ARGUMENTS'],
    // Listed, and not found.
    ['https://example.com/', 'HOST_NOT_FOUND'],
    ['HTTPS://EXAMPLE.COM:443/', 'HOST_NOT_FOUND'],
    ['https://a.b.example.org/', 'HOST_NOT_FOUND'],
    ['http://plain.test:8080/', 'HOST_NOT_FOUND'],
  ])('%s: %s', async (url, code) => {
    expect((await fetchWith({ hosts }, { url })).code).toBe(code);
  });

  it.each([
    [{ method: 'POST' }, 'denied METHOD_NOT_ALLOWED'],
    [{ method: 'get' }, 'denied METHOD_NOT_ALLOWED'],
    [{ body: 'x' }, 'denied INVALID_ARGUMENTS'],
    [{ accept: 'a/b\r\nx: y' }, 'denied INVALID_ARGUMENTS'],
    [{ headers: {} }, 'denied INVALID_ARGUMENTS'],
  ])('with %j: %s', async (more, code) => {
    expect((await fetchWith({ hosts }, { url: 'https://example.com/', ...more })).code).toBe(code);
  });
});

describe('a name that leads inside', () => {
  it.each([
    ...['127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'],
    ...['224.0.0.1', '255.255.255.255', '198.18.0.1', '192.0.0.1'],
    ...[
      '::1',
      '::',
      'fe80::1',
      'fe80::1%lo',
      'fc00::1',
      'fd00::1',
      'ff02::1',
      '::ffff:127.0.0.1',
      '::ffff:8.8.8.8',
    ],
    ...['64:ff9b::7f00:1', '2002:7f00:1::', '2001::1', '2001:db8::1', '::127.0.0.1'],
  ])('to %s is not followed', async (address) => {
    resolveTo('evil.test', address);
    expect((await fetchWith({ hosts: ['evil.test'] }, { url: 'https://evil.test/' })).code).toBe(
      'ADDRESS_NOT_ALLOWED',
    );
    resolveTo('evil.test', '93.184.216.34', address);
    expect((await fetchWith({ hosts: ['evil.test'] }, { url: 'https://evil.test/' })).code).toBe(
      'ADDRESS_NOT_ALLOWED',
    );
  });

  it('is followed where the address is listed too, and asked for once', async () => {
    const served = await serve((_, response) => response.end('x'));
    const { port } = served;
    names.set('rebind.test', [[{ address: '127.0.0.1', family: 4 }], [{ address: '10.0.0.1', family: 4 }]]);
    const hosts = [`http://rebind.test:${port}`, `http://127.0.0.1:${port}`];
    const { code, json } = await fetchWith({ hosts }, { url: `http://rebind.test:${port}/a?b=c` });
    expect([code, json['body'], asked]).toEqual(['ok', 'x', 1]);
    expect([served.seen[0]?.headers.host, served.seen[0]?.url]).toEqual([`rebind.test:${port}`, '/a?b=c']);
    // At another port it is not.
    resolveTo('rebind.test', '127.0.0.1');
    const other = [`http://rebind.test:${port}`, 'http://127.0.0.1:1'];
    expect((await fetchWith({ hosts: other }, { url: `http://rebind.test:${port}/` })).code).toBe(
      'ADDRESS_NOT_ALLOWED',
    );
  });
});

describe('a request', () => {
  it('has nothing of this process, and a body where one may be sent', async () => {
    process.env['http_proxy'] = 'http://127.0.0.1:9';
    onTestFinished(() => void delete process.env['http_proxy']);
    let body = '';
    const served = await serve((request, response) => {
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => response.end('ok'));
    });
    const options = { hosts: [`http://127.0.0.1:${served.port}`], methods: ['GET', 'POST'] };
    const { code } = await fetchWith(options, {
      url: local(served),
      method: 'POST',
      body: '{"é":1}',
      accept: 'text/html, */*;q=0.1',
    });
    expect([code, body]).toEqual(['ok', '{"é":1}']);
    expect(served.seen[0]?.headers).toEqual({
      host: `127.0.0.1:${served.port}`,
      accept: 'text/html, */*;q=0.1',
      'accept-encoding': 'identity',
      'user-agent': 'northroot',
      'content-type': 'application/json',
      'content-length': '8',
      connection: 'close',
    });
  });

  it('to a certificate that is not trusted is refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kernel-tls-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const subject = ['-subj', '/CN=tls.test', '-addext', 'subjectAltName=DNS:tls.test'];
    execFileSync('openssl', ['req', '-x509', ...ec, '-keyout', key, '-out', cert, ...subject], {
      stdio: 'ignore',
    });
    const ca = readFileSync(cert, 'utf8');
    const server = createSecureServer({ key: readFileSync(key), cert: ca }, (_, response) =>
      response.end('x'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const hosts = [`tls.test:${port}`, `other.test:${port}`, `127.0.0.1:${port}`];
    resolveTo('tls.test', '127.0.0.1');
    resolveTo('other.test', '127.0.0.1');
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    onTestFinished(() => void delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']);
    expect((await fetchWith({ hosts }, { url: `https://tls.test:${port}/` })).code).toBe(
      'CERTIFICATE_REFUSED',
    );
    expect((await fetchWith({ hosts, ca }, { url: `https://tls.test:${port}/` })).code).toBe('ok');
    expect((await fetchWith({ hosts, ca }, { url: `https://other.test:${port}/` })).code).toBe(
      'CERTIFICATE_REFUSED',
    );
  });
});

describe('a redirect', () => {
  it('is followed within its host, five times', async () => {
    const served = await serve((request, response) => {
      const [, count = '0'] = /(\d+)$/.exec(request.url ?? '') ?? [];
      if (count === '0') return response.end('there');
      return response.writeHead(302, { location: `/${Number(count) - 1}` }).end();
    });
    const options = { hosts: [`http://127.0.0.1:${served.port}`] };
    expect((await fetchWith(options, { url: local(served, '/5') })).json).toMatchObject({
      status: 200,
      body: 'there',
      url: local(served, '/0'),
    });
    expect((await fetchWith(options, { url: local(served, '/6') })).code).toBe('TOO_MANY_REDIRECTS');
  });

  it.each([
    'http://127.0.0.1:1/',
    'https://evil.test/',
    'http://localhost/',
    'file:///etc/passwd',
    '//evil.test/',
    'http://user:pass@127.0.0.1:PORT/',
    'http://[',
  ])('to %s is not', async (location) => {
    const served = await serve((_, response) =>
      response.writeHead(307, { location: location.replace('PORT', String(served.port)) }).end(),
    );
    expect(
      (await fetchWith({ hosts: [`http://127.0.0.1:${served.port}`] }, { url: local(served) })).code,
    ).toBe('HOST_NOT_ALLOWED');
    expect(served.seen).toHaveLength(1);
  });

  it('to another host that is listed is told, for another call to ask for', async () => {
    const there = await serve((_, response) => response.end('there'));
    const to = local(there, '/x');
    const served = await serve((_, response) => response.writeHead(302, { location: to }).end());
    const hosts = [served, there].map(({ port }) => `http://127.0.0.1:${port}`);
    const { code, json } = await fetchWith({ hosts }, { url: local(served) });
    expect([code, json]).toEqual(['REDIRECTED', { error: 'REDIRECTED', status: 302, location: to }]);
    expect(there.seen).toEqual([]);
  });

  it('of what changes something is not', async () => {
    const served = await serve((_, response) => response.writeHead(307, { location: '/x' }).end());
    const options = { hosts: [`http://127.0.0.1:${served.port}`], methods: ['DELETE'] };
    expect((await fetchWith(options, { url: local(served), method: 'DELETE' })).json).toMatchObject({
      status: 307,
      location: '/x',
    });
    expect(served.seen).toHaveLength(1);
  });
});

describe('an answer', () => {
  const once = async (answer: RequestListener, more: KernelToolsOptions = {}): Promise<Called> => {
    const served = await serve(answer);
    return fetchWith({ hosts: [`http://127.0.0.1:${served.port}`], ...more }, { url: local(served) });
  };

  it('is given with its status', async () => {
    expect(await once((_, response) => response.writeHead(404, { etag: '"a"' }).end('gone'))).toMatchObject({
      code: 'HTTP_STATUS',
      json: { error: 'HTTP_STATUS', status: 404, etag: '"a"', body: 'gone' },
    });
  });

  it('is cut where it is too long', async () => {
    const { code, json, text } = await once(
      (_, response) => {
        const fill = (): void => {
          while (response.write('\x01'.repeat(4_096)));
          response.once('drain', fill);
        };
        response.on('error', () => undefined);
        fill();
      },
      { maxOutputBytes: 16_384 },
    );
    expect([code, json['truncated']]).toEqual(['OUTPUT_TOO_LARGE', true]);
    expect(text.length).toBeLessThanOrEqual(16_384);
  });

  it('that is compressed stays so', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const { code, json } = await once((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    expect([code, json['content_encoding'], typeof json['body_base64']]).toEqual(['ok', 'gzip', 'string']);
  });

  it('that does not come in time is not waited for', async () => {
    const slow = { timeoutMs: 200 };
    expect((await once(() => undefined, slow)).code).toBe('TIMEOUT');
    expect((await once((_, response) => void response.write('x'), slow)).code).toBe('TIMEOUT');
    resolveTo('slow.test', '127.0.0.1');
    expect((await fetchWith({ hosts: ['slow.test'], ...slow }, { url: 'https://slow.test/' })).code).toBe(
      'TIMEOUT',
    );
  });

  it('that breaks off, or is none, is a failure', async () => {
    expect(
      (
        await once((_, response) => {
          response.writeHead(200, { 'content-length': '10' }).write('x', () => response.destroy());
        })
      ).code,
    ).toBe('CONNECTION_FAILED');
    expect((await once((request) => request.socket.end('nonsense\r\n\r\n'))).code).toBe('CONNECTION_FAILED');
    expect((await once((request) => request.socket.destroy())).code).toBe('CONNECTION_FAILED');
    const other = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';
    expect((await once(({ socket }) => void socket.write(other))).code).toBe('CONNECTION_FAILED');
  });

  it('ends where the call is cancelled', async () => {
    const stop = new AbortController();
    const served = await serve(() => stop.abort());
    const options = { hosts: [`http://127.0.0.1:${served.port}`] };
    expect((await fetchWith(options, { url: local(served) }, stop.signal)).code).toBe('CANCELLED');
  });
});
