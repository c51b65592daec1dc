/** DER of ECDSA signatures, as authenticators give it: one encoding of two numbers, or nothing. */

import { expect, it } from 'vitest';
import { makePublicKey } from '../../src/format/key/public-key.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { tryDecodeEcdsaDer, tryEncodeEcdsaDer } from '../../src/format/signature/ecdsa-der.js';
import { generateKeyPairSync, sign } from 'node:crypto';

const R = '11'.repeat(32);
const S = '22'.repeat(32);
const SOUND = `3044${`0220${R}`}${`0220${S}`}`;
const decode = (hex: string) => {
  const raw = tryDecodeEcdsaDer(Buffer.from(hex, 'hex'));
  return raw && Buffer.from(raw).toString('hex');
};

it.each([
  ['two numbers of 32 bytes', SOUND, R + S],
  ['a number whose first bit is set', `3045022100${'f1'.repeat(32)}0220${S}`, 'f1'.repeat(32) + S],
  ['short numbers', '3006020101020102', `${'00'.repeat(31)}01${'00'.repeat(31)}02`],
  ['zeros, which no key verifies', '3006020100020100', '00'.repeat(64)],
])('%s', (_name, der, raw) => {
  expect(decode(der)).toBe(raw);
  expect(Buffer.from(tryEncodeEcdsaDer(Buffer.from(raw, 'hex'))!).toString('hex')).toBe(der);
});

it.each([
  ['nothing', ''],
  ['one byte', '30'],
  ['a byte after it', `${SOUND}00`],
  ['a byte within it', `3045${SOUND.slice(4)}00`],
  ['a length in the long form', `308144${SOUND.slice(4)}`],
  ['a leading zero', `3045022100${R}0220${S}`],
  ['two leading zeros', `304602220000${'f1'.repeat(32)}0220${S}`],
  ['a negative number', `30440220${'f1'.repeat(32)}0220${S}`],
  ['a number of no bytes', `3024020002${`20${S}`}`],
  ['a number of 33 bytes', `3045022101${R}0220${S}`],
  ['one number', `30220220${R}`],
  ['three numbers', `3047${SOUND.slice(4)}020101`],
  ['another tag', `3144${SOUND.slice(4)}`],
  ['bit strings', SOUND.replaceAll('0220', '0320')],
  ['a length beyond its end', `3044${`0240${R}`}${`0220${S}`}`],
  ['r and s without DER', R + S],
])('refuses %s', (_name, der) => {
  expect(decode(der)).toBeUndefined();
});

it('a key verifies neither r nor s of zero, nor numbers beyond the order, and either value of s', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  const key = defaultBackend.importKey(makePublicKey('p256', point));
  const message = Buffer.from('message');
  const raw = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
  const number = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
  const [r, s] = [raw.subarray(0, 32), raw.subarray(32)];
  const sOf = BigInt(`0x${s.toString('hex')}`);
  const verifies = (a: Buffer, b: Buffer) => key.verify(message, Buffer.concat([a, b]));
  const zero = Buffer.alloc(32);
  expect([verifies(r, s), verifies(r, number(order - sOf))]).toEqual([true, true]);
  expect([verifies(zero, s), verifies(r, zero), verifies(zero, zero)]).toEqual([false, false, false]);
  expect([verifies(r, number(order)), verifies(number(order), s)]).toEqual([false, false]);
});
