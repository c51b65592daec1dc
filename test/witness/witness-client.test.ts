import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { cosignNote, makeNoteKey } from '../../src/format/note/note-key.js';
import { formatSignatureLine } from '../../src/format/note/signed-note.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { decodeAddCheckpoint } from '../../src/proof/witness/add-checkpoint.js';
import { serveWitness } from '../../src/proof/witness/serve-witness.js';
import {
  collectCosignatures,
  verifyCosignatures,
  type Collected,
} from '../../src/proof/witness/witness-client.js';
import { collectingGarbage } from '../collect-garbage.js';
import { valueOf } from '../value-of.js';
import {
  NOW,
  openWitness,
  submit,
  temporaryFolder,
  TestLog,
  WITNESS_NAME,
  witnessKey,
  witnessSigner,
} from './support.js';

const log = new TestLog('log.example/a');
const SIZE = 9;

async function collect(
  urls: readonly string[],
  options: Partial<Parameters<typeof collectCosignatures>[0]> = {},
): Promise<Collected[]> {
  return collectCosignatures({
    note: log.note(SIZE),
    urls,
    proofFor: (oldSize) => Promise.resolve(log.proof(oldSize, SIZE)),
    timeoutMs: 10_000,
    ...options,
  });
}

async function collectOne(url: string, options: Parameters<typeof collect>[1] = {}): Promise<Collected> {
  const [result] = await collect([url], options);
  return result;
}

/** A witness that has cosigned the log at a size, or never. */
async function honest(size?: number): Promise<string> {
  const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder() });
  if (size !== undefined) expect(await submit(witness, log.request(0, size))).toMatchObject({ status: 200 });
  const server = await serveWitness(witness, { port: 0 });
  onTestFinished(() => server.close());
  return server.url;
}

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer, nth: number) => void;

/** A witness that answers as it likes; counts how often it was asked. */
async function hostile(handler: Handler): Promise<{ url: string; asked: () => number }> {
  let nth = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => handler(request, response, Buffer.concat(chunks), (nth += 1)));
    response.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => nth };
}

const answering =
  (status: number, body: string | Uint8Array, type = 'text/plain'): Handler =>
  (_request, response) =>
    response.writeHead(status, { 'Content-Type': type }).end(body);
const cosignature = formatSignatureLine(cosignNote(log.text(SIZE), WITNESS_NAME, witnessSigner, NOW));

describe('collectCosignatures', () => {
  test.each([
    ['never', undefined],
    ['an empty tree', 0],
    ['at an earlier size', 4],
    ['at the same size', SIZE],
  ])('of a witness that has cosigned %s', async (_what, size) => {
    const url = await honest(size);
    const result = await collectOne(url);
    expect(result).toMatchObject({ url, lines: [{ name: WITNESS_NAME }] });
    expect(result.error).toBe(undefined);
    const { valid } = verifyCosignatures(log.text(SIZE), result.lines, [witnessKey]);
    expect(valid).toMatchObject([{ key: witnessKey, timestamp: NOW }]);
  });

  test('of a witness whose size is remembered, at once', async () => {
    const sizes: number[] = [];
    const { url } = await hostile((_request, response, body) => {
      const request = valueOf(decodeAddCheckpoint(body));
      sizes.push(request.oldSize);
      expect(request.proof).toEqual(log.proof(4, SIZE));
      response.end(`${cosignature}\n`);
    });
    expect(await collectOne(`${url}//`, { oldSizes: new Map([[`${url}//`, 4]]) })).not.toHaveProperty(
      'error',
    );
    expect(sizes).toEqual([4]);
  });

  test('of many at once, in their order, whoever fails', async () => {
    const done: string[] = [];
    const { url: refusing } = await hostile(answering(404, 'who?\n'));
    const urls = [await honest(3), refusing, 'ftp://example.com/', await honest(), await honest(12)];
    const results = await collect(urls, { onProgress: ({ url }) => done.push(url) });
    expect(results.map(({ url }) => url)).toEqual(urls);
    expect(results.map(({ error }) => error?.code)).toEqual([
      undefined,
      'WITNESS_REFUSED',
      'WITNESS_URL_INVALID',
      undefined,
      'WITNESS_AHEAD',
    ]);
    expect(done.sort()).toEqual([...urls].sort());
  });

  test('refuses to ask with what is no checkpoint', async () => {
    await expect(collect([], { note: 'hello' })).rejects.toMatchObject({ code: 'NOTE_MALFORMED' });
  });

  test('has nothing for a witness that was shown another log', async () => {
    const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder() });
    await submit(witness, log.fork('b').request(0, 4));
    const server = await serveWitness(witness, { port: 0 });
    onTestFinished(() => server.close());
    const { lines, error } = await collectOne(server.url);
    expect([lines, error?.code]).toEqual([[], 'WITNESS_REFUSED']);
    expect(error?.message).toContain('422');
  });

  test('gives the reason when there is no proof', async () => {
    const url = await honest(4);
    const reason = new NorthrootError('FILE_CHANGED', 'the ledger was changed');
    expect(await collectOne(url, { proofFor: () => Promise.reject(reason) })).toEqual({
      url,
      lines: [],
      error: reason,
    });
    const misuse = new TypeError('a fault of the caller');
    await expect(collectOne(url, { proofFor: () => Promise.reject(misuse) })).rejects.toBe(misuse);
  });

  test.each([
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:text/plain,x',
    'witness.example',
    '',
    'http://',
    'http://user:password@127.0.0.1:1/',
    'http://127.0.0.1:1/?a=b',
    'http://127.0.0.1:1/#a',
  ])('asks nobody at %j', async (url) => {
    const never = () => Promise.reject(new Error('asked'));
    expect((await collectOne(url, { fetch: never })).error?.code).toBe('WITNESS_URL_INVALID');
  });

  test('says when nobody is there, or the connection breaks', async () => {
    const { url } = await hostile((request) => request.socket.destroy());
    expect((await collectOne(url)).error?.code).toBe('WITNESS_UNREACHABLE');
    expect((await collectOne('http://127.0.0.1:1')).error?.code).toBe('WITNESS_UNREACHABLE');
  });

  test.each<[string, Handler]>([
    ['says nothing', () => undefined],
    ['says its header only', (_request, response) => response.writeHead(200).flushHeaders()],
    [
      'says its lines slowly',
      (_request, response) => {
        const timer = setInterval(() => response.write('—'), 20);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('does not wait for one that %s', async (_what, handler) => {
    const { url } = await hostile(handler);
    const stop = new AbortController();
    const { error } = await collectingGarbage(collectOne(url, { timeoutMs: 300, signal: stop.signal }));
    expect([error?.code, error?.message]).toEqual([
      'WITNESS_UNREACHABLE',
      expect.stringContaining('in time'),
    ]);
  });

  test('stops when it is told to', async () => {
    const stop = new AbortController();
    const { url } = await hostile(() => stop.abort(new Error('stopped')));
    await expect(collectOne(url, { signal: stop.signal })).rejects.toThrow('stopped');
  });

  test('follows no redirect', async () => {
    const { url: other, asked } = await hostile(answering(200, `${cosignature}\n`));
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await hostile((_request, response) =>
        response.writeHead(status, { Location: `${other}/add-checkpoint` }).end(),
      );
      const { error } = await collectOne(url);
      expect([error?.code, error?.message]).toEqual([
        'WITNESS_REFUSED',
        expect.stringContaining(`${status}`),
      ]);
    }
    expect(asked()).toBe(0);
  });

  test('ends a conversation that goes round and round', async () => {
    const { url, asked } = await hostile((_request, response, _body, nth) =>
      response.writeHead(409, { 'Content-Type': 'text/x.tlog.size' }).end(`${nth % 5}\n`),
    );
    expect((await collectOne(url)).error?.code).toBe('WITNESS_REFUSED');
    expect(asked()).toBe(3);
    const same = await hostile(answering(409, '4\n', 'text/x.tlog.size'));
    expect((await collectOne(same.url)).error?.code).toBe('WITNESS_REFUSED');
    expect(same.asked()).toBe(2);
    const zero = await hostile(answering(409, '0\n', 'text/x.tlog.size'));
    expect((await collectOne(zero.url)).error?.code).toBe('WITNESS_REFUSED');
    expect(zero.asked()).toBe(1);
  });

  test('is refused by a conflict about another tree', async () => {
    const { url, asked } = await hostile(answering(409, 'another root\n', 'text/plain'));
    expect((await collectOne(url)).error).toMatchObject({ code: 'WITNESS_REFUSED' });
    expect(asked()).toBe(1);
  });

  test.each([
    ['no newline', '4', 'text/x.tlog.size'],
    ['a leading zero', '04\n', 'text/x.tlog.size'],
    ['a sign', '-4\n', 'text/x.tlog.size'],
    ['nothing', '', 'text/x.tlog.size'],
    ['another line', '4\n4\n', 'text/x.tlog.size'],
    ['more than 2^53 - 1', '9007199254740992\n', 'text/x.tlog.size'],
    ['very many digits', `${'9'.repeat(10_000)}\n`, 'text/x.tlog.size'],
    ['text', '<script>\n', 'text/x.tlog.size'],
  ])('refuses a conflict with %s', async (_what, body, type) => {
    const { url, asked } = await hostile(answering(409, body, type));
    expect((await collectOne(url)).error?.code).toBe('WITNESS_ANSWER_INVALID');
    expect(asked()).toBe(1);
  });

  test.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['a newline', '\n'],
    ['no newline at the end', cosignature],
    ['a page', '<!doctype html>\n<h1>It works!</h1>\n'],
    ['junk after a right line', `${cosignature}\njunk\n`],
    ['junk before a right line', `junk\n${cosignature}\n`],
    ['an empty line', `${cosignature}\n\n`],
    ['a carriage return', `${cosignature}\r\n`],
    ['a hyphen for the dash', `${cosignature.replace('—', '-')}\n`],
    ['a byte order mark', `\ufeff${cosignature}\n`],
    ['bytes that are not UTF-8', Buffer.concat([Buffer.from(`${cosignature}\n`), Buffer.from([0xff, 0x0a])])],
    ['one line twice', `${cosignature}\n${cosignature}\n`],
    [
      '101 lines',
      Array.from({ length: 101 }, (_, n) => `— w${n} ${Buffer.alloc(76).toString('base64')}\n`).join(''),
    ],
    ['10,000 lines', `${cosignature}\n`.repeat(10_000)],
  ])('refuses an answer with %s', async (_what, body) => {
    const { url } = await hostile(answering(200, body));
    const { lines, error } = await collectOne(url);
    expect([lines, error?.code]).toEqual([[], 'WITNESS_ANSWER_INVALID']);
  });

  test('reads no more of an answer than there can be', async () => {
    let sent = 0;
    let isClosed = false;
    const { url } = await hostile((_request, response) => {
      response.writeHead(200);
      response.on('close', () => (isClosed = true));
      const more = (): void => {
        if (isClosed) return;
        sent += 65_536;
        response.write(Buffer.alloc(65_536, 'a'), () => setImmediate(more));
      };
      more();
    });
    expect((await collectOne(url)).error?.code).toBe('WITNESS_ANSWER_INVALID');
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('shows of a refusal what is printable, and not much of it', async () => {
    const { url } = await hostile(answering(500, `\u001b[2J\u202e${'x'.repeat(100_000)}`));
    const { error } = await collectOne(url);
    expect(error?.code).toBe('WITNESS_REFUSED');
    expect(error?.message).toMatch(/^[\x20-\x7e…]{1,500}$/);
  });
});

test('verifyCosignatures keeps valid, invalid and unknown apart', () => {
  const text = log.text(SIZE);
  const stranger = createSigner(generatePrivateKey());
  const right = cosignNote(text, WITNESS_NAME, witnessSigner, NOW);
  const other = cosignNote(log.text(SIZE - 1), WITNESS_NAME, witnessSigner, NOW);
  const timeless = cosignNote(text, WITNESS_NAME, witnessSigner, 0);
  const unknown = cosignNote(text, WITNESS_NAME, stranger, NOW);
  const short = { ...right, signature: right.signature.subarray(0, 71) };
  const logKey = makeNoteKey(WITNESS_NAME, witnessSigner.publicKey, 'ed25519');
  const { keyId } = logKey;
  const ofLog = { name: WITNESS_NAME, keyId, signature: witnessSigner.sign(Buffer.from(text)) };
  expect(
    verifyCosignatures(text, [unknown, right, other, timeless, short, ofLog], [logKey, witnessKey]),
  ).toEqual({
    valid: [{ signature: right, key: witnessKey, timestamp: NOW }],
    invalid: [other, timeless, short],
    unknown: [unknown, ofLog],
  });
  expect(verifyCosignatures(text, [right], [])).toMatchObject({ valid: [], unknown: [right] });
});
