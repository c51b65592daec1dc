/**
 * The worked bytes of docs/spec/format.md, recomputed block by block with node:crypto alone, as a second implementation would; and
 * then verified by this one.
 */

import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { verifyLedger } from '../../src/api/index.js';
import { namedBlocks, readText } from './markdown.js';

const blocks = namedBlocks(readText('docs/spec/format.md'));
const used = new Set<string>();

function block(name: string): string {
  const text = blocks.get(name);
  if (text === undefined) throw new Error(`docs/spec/format.md has no block ${name}`);
  used.add(name);
  return text;
}

function sha256(...parts: (string | Uint8Array)[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** What a block in hexadecimal and the same block in base64url must say. */
function expectBoth(name: string, hexName: string, bytes: Buffer): void {
  expect(block(hexName)).toBe(bytes.toString('hex'));
  expect(block(name)).toBe(bytes.toString('base64url'));
}

function members(text: string): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

const digest = (bytes: Buffer) => ({ alg: 'sha-256', b64: bytes.toString('base64url') });

const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const privateKey = createPrivateKey({
  key: Buffer.concat([PKCS8_PREFIX, Buffer.from(block('seed'), 'hex')]),
  format: 'der',
  type: 'pkcs8',
});
const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);

describe('the worked bytes of docs/spec/format.md', () => {
  it('the key has the keyid and the forms that are shown', () => {
    expect(block('public-key-hex')).toBe(publicKey.toString('hex'));
    expect(block('public-key')).toBe(`ed25519:${publicKey.toString('base64url')}`);
    expect(block('jwk')).toBe(
      JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: publicKey.toString('base64url') }),
    );
    expect(block('keyid')).toBe(sha256(block('jwk')).toString('base64url'));
    expect(members(block('payload 0'))['keys']).toEqual([
      {
        keyid: block('keyid'),
        principals: ['*'],
        public_key: block('public-key'),
        roles: ['event', 'authority', 'checkpoint', 'admin'],
      },
    ]);
  });

  it.each([0, 1])('record %i', (seq) => {
    const payload = block(`payload ${seq}`);
    const prefix = Buffer.from(block('event-id-prefix'), 'hex');
    expect(prefix).toHaveLength(19);
    expect(block(`payload-length ${seq}`)).toBe(String(Buffer.byteLength(payload)));
    const payloadDigest = sha256(payload);
    const eventId = sha256(prefix, payload);
    expectBoth(`payload-digest ${seq}`, `payload-digest-hex ${seq}`, payloadDigest);
    expectBoth(`event-id ${seq}`, `event-id-hex ${seq}`, eventId);

    const event = block(`event ${seq}`);
    expect(members(event)).toEqual({
      ...members(payload),
      event_id: digest(eventId),
      payload_digest: digest(payloadDigest),
    });
    const type = 'application/vnd.northroot.event+json';
    const pae = `DSSEv1 ${type.length} ${type} ${Buffer.byteLength(event)} ${event}`;
    expect(block(`pae ${seq}`)).toBe(pae);
    const signature = sign(null, Buffer.from(pae), privateKey);
    expectBoth(`signature ${seq}`, `signature-hex ${seq}`, signature);

    const prev = seq === 0 ? sha256('') : Buffer.from(block('leaf-hex 0'), 'hex');
    expect(block(`prev ${seq}`)).toBe(prev.toString('base64url'));
    const line = block(`line ${seq}`);
    expect(line.startsWith(`{"event":${event},`)).toBe(true);
    expect(members(line)).toEqual({
      event: members(event),
      ...(seq === 1 ? { meta: { trace: 't-1' } } : {}),
      prev: digest(prev),
      seq,
      signatures: [{ keyid: block('keyid'), sig: signature.toString('base64url') }],
    });
    expectBoth(`leaf ${seq}`, `leaf-hex ${seq}`, sha256(Uint8Array.of(0), line));
  });

  it('the ledger verifies and has the root that is shown', async () => {
    expect(block('next-prev')).toBe(block('leaf 1'));
    const leaves = [0, 1].map((seq) => Buffer.from(block(`leaf-hex ${seq}`), 'hex'));
    expectBoth('root', 'root-hex', sha256(Uint8Array.of(1), ...leaves));
    const file = Buffer.from(`${block('line 0')}\n${block('line 1')}\n`);
    expect(block('file-bytes')).toBe(String(file.length));
    expect(block('file-sha256')).toBe(sha256(file).toString('hex'));

    const report = await verifyLedger(file);
    expect(report.verdict).toBe('ok');
    expect(report.findings).toEqual([]);
    expect(report.ledger.root).toBe(`sha-256:${block('root')}`);
    expect(report.ledger.tip_event_id).toBe(`sha-256:${block('event-id 1')}`);
    expect(report.trust.signatures.valid).toBe(2);
  });

  it('is bound to its genesis', () => {
    expect(members(block('payload 0'))['signing']).toMatchObject({ binding: 'required' });
    expect(members(block('payload 0'))).not.toHaveProperty('ledger_id');
    expect(members(block('payload 1'))['ledger_id']).toEqual({ alg: 'sha-256', b64: block('event-id 0') });
  });

  it('the note of a checkpoint', async () => {
    const origin = 'example.com/demo';
    const text = `${block('note-text')}\n`;
    const root = Buffer.from(block('root-hex'), 'hex');
    expect(text).toBe(`${origin}\n2\n${root.toString('base64')}\n`);
    const keyId = sha256(origin, '\n', Uint8Array.of(1), publicKey).subarray(0, 4);
    expect(block('note-key-id')).toBe(keyId.toString('hex'));
    const signature = sign(null, Buffer.from(text), privateKey);
    expect(block('note-signature-hex')).toBe(signature.toString('hex'));
    const note = `${text}\n— ${origin} ${Buffer.concat([keyId, signature]).toString('base64')}\n`;
    expect(`${block('note')}\n`).toBe(note);

    const file = Buffer.from(`${block('line 0')}\n${block('line 1')}\n`);
    const held = { name: 'kept', note: Buffer.from(note) };
    const report = await verifyLedger(file, { checkpoints: [held] });
    expect(report.findings).toEqual([]);
    expect(report.checkpoints).toMatchObject({
      last_tree_size: null,
      unsealed: 2,
      anchors: [{ relation: 'extends', signed_by: [block('keyid')] }],
    });
  });

  it('every block was recomputed', () => {
    expect([...blocks.keys()].filter((name) => !used.has(name))).toEqual([]);
  });
});
