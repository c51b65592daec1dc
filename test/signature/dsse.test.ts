import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { makePublicKey } from '../../src/format/key/public-key.js';
import {
  MAX_PAYLOAD_BYTES,
  MAX_SIGNATURES,
  PAYLOAD_TYPE,
  preAuthEncoding,
  toDsseEnvelope,
} from '../../src/format/signature/dsse.js';
import { nobleBackend } from './noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { tryDecodeEcdsaDer } from '../../src/format/signature/ecdsa-der.js';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const nobody = (): undefined => undefined;

describe('preAuthEncoding', () => {
  test('counts bytes, not characters', () => {
    expect(text(preAuthEncoding('', new Uint8Array()))).toBe('DSSEv1 0  0 ');
    expect(text(preAuthEncoding('a/ü', Buffer.from('é €')))).toBe('DSSEv1 4 a/ü 6 é €');
    expect(text(preAuthEncoding(PAYLOAD_TYPE, Buffer.from('{}')))).toBe(
      'DSSEv1 36 application/vnd.northroot.event+json 2 {}',
    );
  });

  const file = new URL('../../../shared/vectors/derived/dsse-vector.json', import.meta.url);
  test.skipIf(!existsSync(file))("is what DSSE's own vector says, and its signature is valid", () => {
    const vector = JSON.parse(readFileSync(file, 'utf8')) as {
      serialized_body: string;
      payloadType: string;
      pae: string;
      x: string;
      y: string;
      envelope: { payload: string; signatures: [{ sig: string }] };
    };
    const pae = preAuthEncoding(vector.payloadType, Buffer.from(vector.envelope.payload, 'base64'));
    expect(text(pae)).toBe(vector.pae);
    const coordinate = (decimal: string) =>
      Buffer.from(BigInt(decimal).toString(16).padStart(64, '0'), 'hex');
    const key = makePublicKey(
      'p256',
      Buffer.concat([Buffer.of(4), coordinate(vector.x), coordinate(vector.y)]),
    );
    const signature = Buffer.from(vector.envelope.signatures[0].sig, 'base64');
    for (const backend of [nodeBackend, nobleBackend]) {
      expect(backend.importKey(key).verify(pae, signature)).toBe(true);
      expect(backend.importKey(key).verify(Buffer.from(vector.serialized_body), signature)).toBe(false);
    }
  });
});

describe('a DSSE envelope', () => {
  const signatures = fc.array(
    fc.record({
      keyid: fc.string({ maxLength: 43 }),
      sig: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
    }),
    { maxLength: MAX_SIGNATURES },
  );

  test('carries the event and its signatures in base64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), signatures, (eventBytes, list) => {
        const envelope = toDsseEnvelope(eventBytes, list, nobody);
        expect(Buffer.from(envelope.payload, 'base64')).toEqual(Buffer.from(eventBytes));
        const sigs = envelope.signatures.map(({ sig }) => Buffer.from(sig, 'base64').toString('base64url'));
        expect(sigs).toEqual(list.map(({ sig }) => sig));
      }),
    );
  });

  const payload = Buffer.from([0xfb, 0xff, 0xbf, 0x00]);
  const good = { payload: '+/+/AA==', payloadType: PAYLOAD_TYPE, signatures: [{ keyid: 'k', sig: '+/8=' }] };

  test('is written in standard base64, padded', () => {
    expect(toDsseEnvelope(payload, [{ keyid: 'k', sig: '-_8' }], nobody)).toEqual(good);
  });

  test('is refused beyond its bounds', () => {
    const most = new Uint8Array(MAX_PAYLOAD_BYTES);
    expect(Buffer.from(toDsseEnvelope(most, [], nobody).payload, 'base64')).toHaveLength(MAX_PAYLOAD_BYTES);
    expect(() => toDsseEnvelope(new Uint8Array(MAX_PAYLOAD_BYTES + 1), [], nobody)).toThrow(RangeError);
    const many = (count: number) => Array.from({ length: count }, () => ({ keyid: 'k', sig: 'AA' }));
    expect(toDsseEnvelope(payload, many(MAX_SIGNATURES), nobody).signatures).toHaveLength(MAX_SIGNATURES);
    expect(() => toDsseEnvelope(payload, many(MAX_SIGNATURES + 1), nobody)).toThrow(RangeError);
    expect(() => toDsseEnvelope(payload, [{ keyid: 'k', sig: '+/8=' }], nobody)).toThrow(RangeError);
  });
});

describe('a signature of a P-256 key', () => {
  const curve = (keyid: string): 'p256' | 'ed25519' => (keyid === 'c' ? 'p256' : 'ed25519');
  const payload = Buffer.from('{}');
  const derOf = (sig: Uint8Array): Buffer => {
    const signature = { keyid: 'c', sig: Buffer.from(sig).toString('base64url') };
    return Buffer.from(toDsseEnvelope(payload, [signature], curve).signatures[0].sig, 'base64');
  };
  const read = (der: Uint8Array) => {
    const pair = tryDecodeEcdsaDer(der);
    return pair && Buffer.from(pair).toString('base64url');
  };

  test('is DER in the envelope, as OpenSSL verifies it, and r‖s in the record', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    for (let n = 0; n < 20; n += 1) {
      const message = preAuthEncoding(PAYLOAD_TYPE, Buffer.from(`${n}`));
      const pair = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' });
      const der = derOf(pair);
      expect(verify('sha256', message, { key: publicKey, dsaEncoding: 'der' }, der)).toBe(true);
      expect(read(der)).toBe(pair.toString('base64url'));
    }
  });

  test('goes there and back for all numbers', () => {
    const number = fc
      .tuple(fc.nat(32), fc.uint8Array({ minLength: 32, maxLength: 32 }))
      .map(([zeroes, bytes]) => bytes.fill(0, 0, zeroes));
    fc.assert(
      fc.property(number, number, (r, s) => {
        const pair = Buffer.concat([r, s]);
        expect(read(derOf(pair))).toBe(pair.toString('base64url'));
      }),
    );
  });

  test('is read as DER only in the one way to write it', () => {
    const good = Buffer.from('300702020100020105', 'hex');
    expect(read(good)).toBe(Buffer.alloc(64).fill(1, 30, 31).fill(5, 63, 64).toString('base64url'));
    const wrong = [
      '',
      '30',
      '3000',
      '30070202010002010500',
      '30810702020100020105',
      '30080203000100020105',
      '300702020100020185',
      '30060200020405050505',
      '310702020100020105',
      '300703020100020105',
      '30080202010002810105',
      `3026022101${'00'.repeat(32)}020105`,
    ];
    for (const hex of wrong) expect(read(Buffer.from(hex, 'hex')), hex).toBeUndefined();
    expect(read(Buffer.alloc(64, 1))).toBeUndefined();
  });

  test('stays as it is where its key is not known, and those of Ed25519 always', () => {
    const sig = Buffer.alloc(64, 7).toString('base64url');
    for (const algorithmOf of [nobody, () => 'ed25519' as const]) {
      const envelope = toDsseEnvelope(payload, [{ keyid: 'c', sig }], algorithmOf);
      expect(Buffer.from(envelope.signatures[0].sig, 'base64')).toHaveLength(64);
    }
  });
});
