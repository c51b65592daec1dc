/** Files that are given for a ledger and are something else: told by their kind, and never quoted. */

import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { createSigner, formatPrivateKey, generatePrivateKey } from '../../src/api/index.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { isBundle } from '../../src/proof/bundle/bundle-start.js';
import { formatJournalHeader } from '../../src/out/export/journal/journal-file.js';
import { recogniseOtherFile, refuseOtherFiles } from '../../src/log/fs/other-file.js';
import { streamSource } from '../../src/log/fs/source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { inTime } from '../in-time.js';

const key = generatePrivateKey();
const SECRET = 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlYzA';
const NOTE = `example.com/log\n5\n${'A'.repeat(43)}=\n\n— example.com/log AAAAAAAA\n`;

const BUNDLE = Buffer.from(`\u00d9\u00d9\u00f7\u0086\u0070northroot-bundle${SECRET}`, 'latin1');

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield await Promise.resolve(bytes);
}

function sourceOf(bytes: string | Uint8Array): LedgerSource {
  return streamSource(refuseOtherFiles(chunksOf(Buffer.from(bytes)), 'file'), 'file');
}

async function readAll({ segments }: LedgerSource): Promise<number> {
  let size = 0;
  for await (const { chunks } of segments) for await (const chunk of chunks) size += chunk.length;
  return size;
}

it.each<readonly [string, string | Uint8Array]>([
  ['private key', formatPrivateKey(key, 'pem')],
  ['private key', formatPrivateKey(key, 'jwk')],
  ['private key', `-----BEGIN OPENSSH PRIVATE KEY-----\n${SECRET}\n`],
  ['public key', formatPublicKeyAs(createSigner(key).publicKey, 'pem')],
  ['key', SECRET],
  ['checkpoint', NOTE],
  ['proof', 'c2sp.org/tlog-proof@v1\nindex 3\n'],
  ['trust policy', `{\n  "trust_version": "1",\n  "origins": ["${SECRET}"], "keys": []\n}`],
  ['trust policy', `{"keys":[{"name":"${SECRET}"}],"trust_version":"1"}`],
  ['witness policy', `# ${SECRET}\nlog example.com/log+530d903a+AekyWA4\nwitness w AAAA\n`],
  ['Sigstore bundle', `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","x":"${SECRET}"}`],
  ['DSSE envelope', `{"payloadType":"application/json","payload":"${SECRET}","signatures":[]}`],
  ['report', `{\n  "report_version": "1"}`],
  ['JSON array', `[{"event_type":"${SECRET}"}]`],
  ['saved state', `northroot-state 0.1.0 sha-256:${SECRET}\n`],
  ['web page', `<!DOCTYPE html><p>${SECRET}`],
  ['northroot bundle', BUNDLE],
  ['Northroot journal', Buffer.concat([formatJournalHeader(), Buffer.from(SECRET)])],
  ['COSE message', Buffer.from(`\u00d2\u0084\u0043${SECRET}`, 'latin1')],
  ['Parquet file', `PAR1${SECRET}`],
  ['activity report', `{\n  "activity_version": "1", "x": "${SECRET}"}`],
  ['gzip', gzipSync(SECRET)],
  ['binary', Buffer.from(`\u007fELF\0${SECRET}`)],
])('%s', async (kind, bytes) => {
  const refusal: unknown = await readAll(sourceOf(bytes)).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: 'NOT_A_LEDGER' });
  expect((refusal as Error).message).toContain(kind);
  expect(JSON.stringify([refusal, (refusal as Error).message])).not.toContain(SECRET);
});

it.each<readonly [string, string]>([
  ['JSON of another kind', `{"name":"${SECRET}"}`],
  ['JSON of another kind', `{\n  "name": "${SECRET}",\n  "list": [{"a": 1}]\n}\n`],
  ['table in CSV', `seq,time,"what, and who"\n1,2026-01-01,"{${SECRET}}"\n`],
  ['table in CSV', `a;b\r\n1;2\r\n`],
  ['text', `Dear all,\n${SECRET}\n`],
  ['text', 'example.com/log\n5\nno root\n'],
])('%s is most likely no ledger, and verified as one where it is given for one', async (kind, text) => {
  expect(recogniseOtherFile(Buffer.from(text))).toContain(kind);
  expect(await readAll(sourceOf(text))).toBe(Buffer.byteLength(text));
});

it.each(['ledgers', 'broken'])('every fixture of %s is read, however broken', async (folder) => {
  for (const name of readdirSync(`fixtures/${folder}`).filter((each) => each.endsWith('.jsonl'))) {
    const bytes = readFileSync(`fixtures/${folder}/${name}`);
    expect([name, await readAll(sourceOf(bytes))]).toEqual([name, bytes.length]);
    expect([name, recogniseOtherFile(bytes)]).toEqual([name, undefined]);
  }
});

it('a ledger of which the beginning was changed or lost is read', async () => {
  const [line = ''] = readFileSync('fixtures/ledgers/agent-run.jsonl', 'utf8').split('\n');
  for (let at = 0; at < 12; at += 1) {
    const text = `${line.slice(at)}\n`;
    expect(await readAll(sourceOf(text))).toBe(text.length);
    const changed = `${line.slice(0, at)}x${line.slice(at + 1)}\n`;
    expect(await readAll(sourceOf(changed))).toBe(changed.length);
  }
});

it.each(['\n', ' \n', '\n#\n', '#\n \n'])('nothing but lines as %j is read', async (line) => {
  const text = line.repeat(2_000);
  expect(inTime(() => recogniseOtherFile(Buffer.from(text)))).toBeUndefined();
  expect(await readAll(sourceOf(text))).toBe(text.length);
});

it('a witness policy is one after blank lines and comments, too', async () => {
  const policy = `${'\n # a\n \n'.repeat(300)} \n log example.com/log+530d903a+AekyWA4\n`;
  await expect(readAll(sourceOf(policy))).rejects.toMatchObject({ code: 'NOT_A_LEDGER' });
});

it('a first line that is an event, torn or too long to be seen whole, is read', async () => {
  const line = readFileSync('fixtures/ledgers/agent-run.jsonl').subarray(0, 400);
  for (let size = 0; size < 20; size += 1) expect(await readAll(sourceOf(line.subarray(0, size)))).toBe(size);
  const long = `{"a":"${'x'.repeat(5_000)}","event_type":"x.y"}\n`;
  expect(await readAll(sourceOf(long))).toBe(long.length);
});

it('knows a bundle as whoever reads bundles does', () => {
  expect(isBundle(BUNDLE)).toBe(true);
});
