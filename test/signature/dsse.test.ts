import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { makePublicKey } from '../../src/format/key/public-key.js';
import {
  MAX_PAYLOAD_BYTES,
  MAX_SIGNATURES,
  PAYLOAD_TYPE,
  fromDsseEnvelope,
  preAuthEncoding,
  toDsseEnvelope,
} from '../../src/format/signature/dsse.js';
import { nobleBackend } from '../../src/format/signature/noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { codeOf } from '../key/key-samples.js';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const nobody = (): undefined => undefined;
const refused = (envelope: unknown) => codeOf(() => fromDsseEnvelope(envelope, nobody));

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
    expect(refused(vector.envelope)).toBe('ENVELOPE_UNSUPPORTED');
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

  test('carries an event there and back, by way of JSON', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), signatures, (eventBytes, list) => {
        const envelope = toDsseEnvelope(eventBytes, list, nobody);
        expect(Buffer.from(envelope.payload, 'base64')).toEqual(Buffer.from(eventBytes));
        expect(fromDsseEnvelope(JSON.parse(JSON.stringify(envelope)), nobody)).toEqual({
          eventBytes,
          signatures: list,
        });
      }),
    );
  });

  const payload = Buffer.from([0xfb, 0xff, 0xbf, 0x00]);
  const good = { payload: '+/+/AA==', payloadType: PAYLOAD_TYPE, signatures: [{ keyid: 'k', sig: '+/8=' }] };

  test('is written in standard base64, padded', () => {
    expect(toDsseEnvelope(payload, [{ keyid: 'k', sig: '-_8' }], nobody)).toEqual(good);
  });

  test('is read in either alphabet, padded or not, with unknown members and without a keyid', () => {
    for (const form of ['+/+/AA==', '-_-_AA==', '+/+/AA', '-_-_AA']) {
      const envelope = { ...good, payload: form, signatures: [{ sig: '+/8', x: 1 }], other: {} };
      const read = fromDsseEnvelope(envelope, nobody);
      expect(read).toEqual({ eventBytes: new Uint8Array(payload), signatures: [{ keyid: '', sig: '-_8' }] });
    }
  });

  test.each([
    ['no object', null],
    ['an array', [good]],
    ['no payload', { ...good, payload: undefined }],
    ['mixed alphabets', { ...good, payload: '+_+/AA==' }],
    ['half its padding', { ...good, payload: '+/+/AA=' }],
    ['too much padding', { ...good, payload: '+/+/AAA===' }],
    ['unused bits', { ...good, payload: '+/+/AB==' }],
    ['white space', { ...good, payload: '+/+/ AA==' }],
    ['no payload type', { ...good, payloadType: undefined }],
    ['no signatures', { ...good, signatures: undefined }],
    ['signatures of another type', { ...good, signatures: { 0: {} } }],
    ['a signature without sig', { ...good, signatures: [{ keyid: 'k' }] }],
    ['a signature that is none', { ...good, signatures: [null] }],
    ['a sig that is not base64', { ...good, signatures: [{ sig: '!' }] }],
    ['a keyid of another type', { ...good, signatures: [{ keyid: 7, sig: '' }] }],
  ])('is refused with %s', (_, envelope) => {
    expect(refused(envelope)).toBe('ENVELOPE_MALFORMED');
  });

  test('is refused for another payload type', () => {
    expect(refused({ ...good, payloadType: `${PAYLOAD_TYPE} ` })).toBe('ENVELOPE_UNSUPPORTED');
  });

  test('is refused beyond its bound', () => {
    const most = new Uint8Array(MAX_PAYLOAD_BYTES);
    expect(fromDsseEnvelope(toDsseEnvelope(most, [], nobody), nobody).eventBytes).toEqual(most);
    expect(() => toDsseEnvelope(new Uint8Array(MAX_PAYLOAD_BYTES + 1), [], nobody)).toThrow(RangeError);
    expect(refused({ ...good, payload: Buffer.alloc(MAX_PAYLOAD_BYTES + 1).toString('base64') })).toBe(
      'ENVELOPE_MALFORMED',
    );
    const many = (count: number) => Array.from({ length: count }, () => ({ keyid: 'k', sig: 'AA' }));
    expect(refused({ ...good, signatures: many(MAX_SIGNATURES) })).toBe('ok');
    expect(refused({ ...good, signatures: many(MAX_SIGNATURES + 1) })).toBe('ENVELOPE_MALFORMED');
    expect(() => toDsseEnvelope(payload, many(MAX_SIGNATURES + 1), nobody)).toThrow(RangeError);
    expect(() => toDsseEnvelope(payload, [{ keyid: 'k', sig: '+/8=' }], nobody)).toThrow(RangeError);
    expect(refused({ ...good, signatures: [{ sig: 'A'.repeat(8_196) }] })).toBe('ENVELOPE_MALFORMED');
    expect(refused({ ...good, signatures: [{ sig: '', keyid: 'k'.repeat(1_025) }] })).toBe(
      'ENVELOPE_MALFORMED',
    );
  });
});

describe('a signature of a P-256 key', () => {
  const curve = (keyid: string): 'p256' | 'ed25519' => (keyid === 'c' ? 'p256' : 'ed25519');
  const payload = Buffer.from('{}');
  const derOf = (sig: Uint8Array): Buffer => {
    const signature = { keyid: 'c', sig: Buffer.from(sig).toString('base64url') };
    return Buffer.from(toDsseEnvelope(payload, [signature], curve).signatures[0].sig, 'base64');
  };
  const read = (der: Uint8Array) =>
    fromDsseEnvelope(
      {
        payload: '',
        payloadType: PAYLOAD_TYPE,
        signatures: [{ keyid: 'c', sig: Buffer.from(der).toString('base64') }],
      },
      curve,
    ).signatures[0].sig;

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
    for (const hex of wrong)
      expect(
        codeOf(() => read(Buffer.from(hex, 'hex'))),
        hex,
      ).toBe('ENVELOPE_MALFORMED');
    expect(codeOf(() => read(Buffer.alloc(64, 1)))).toBe('ENVELOPE_MALFORMED');
  });

  test('stays as it is where its key is not known, and those of Ed25519 always', () => {
    const sig = Buffer.alloc(64, 7).toString('base64url');
    for (const algorithmOf of [nobody, () => 'ed25519' as const]) {
      const envelope = toDsseEnvelope(payload, [{ keyid: 'c', sig }], algorithmOf);
      expect(Buffer.from(envelope.signatures[0].sig, 'base64')).toHaveLength(64);
      expect(fromDsseEnvelope(envelope, algorithmOf).signatures).toEqual([{ keyid: 'c', sig }]);
    }
  });
});
