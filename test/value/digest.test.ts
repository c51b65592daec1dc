import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64url, encodeHex } from '../../src/base/bytes/encoding.js';
import {
  digestFromBase64url,
  formatDigest,
  isDigest,
  parseDigest,
  sha256Digest,
  tryParseDigest,
} from '../../src/base/value/digest.js';

const EMPTY = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU';
const EMPTY_HEX = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

describe('digests', () => {
  it('are SHA-256 in base64url', () => {
    expect(sha256Digest(new Uint8Array())).toEqual({ alg: 'sha-256', b64: EMPTY });
    expect(digestFromBase64url(EMPTY)).toEqual(sha256Digest(new Uint8Array()));
  });

  it.each([`sha-256:${EMPTY}`, `sha-256:${EMPTY_HEX}`, EMPTY_HEX, EMPTY_HEX.toUpperCase()])(
    'are read from %s',
    (text) => {
      expect(parseDigest(text)).toEqual({ alg: 'sha-256', b64: EMPTY });
    },
  );

  it.each([
    '',
    ':',
    'sha-256',
    'sha-256:',
    `:${EMPTY}`,
    EMPTY,
    `sha256:`,
    `sha-256:${EMPTY}=`,
    `sha-256:${EMPTY}A`,
    `sha-256:${EMPTY.slice(0, -1)}`,
    // The last character carries two unused bits, here set.
    `sha-256:${EMPTY.slice(0, -1)}V`,
    `sha-256:${EMPTY.replace('-', '+')}`,
    `SHA-256:${EMPTY}`,
    `sha-256: ${EMPTY}`,
    `sha-256:${EMPTY}\n`,
    EMPTY_HEX.slice(1),
    `${EMPTY_HEX}00`,
    EMPTY_HEX.replace('e', 'g'),
    `blake3:`,
    `blake3:A`,
    `blake3:AB`,
    `blake3:${'A'.repeat(129)}`,
    `${'a'.repeat(33)}:AA`,
    `-a:AA`,
    EMPTY_HEX.replace('e', ':'),
  ])('are not read from %j', (text) => {
    expect(tryParseDigest(text)).toBeUndefined();
    expect(() => parseDigest(text)).toThrow(RangeError);
  });

  it('of other algorithms are opaque', () => {
    for (const text of [
      'blake3:AA',
      'sha-512:AAA',
      'x:AAAA',
      `sha-512:${'A'.repeat(128)}`,
      `blake3:${EMPTY}`,
    ]) {
      expect(formatDigest(parseDigest(text))).toBe(text);
      expect(isDigest(parseDigest(text))).toBe(true);
    }
  });

  it('have two members and nothing else', () => {
    expect(isDigest({ alg: 'sha-256', b64: EMPTY })).toBe(true);
    const odd: unknown[] = [
      null,
      undefined,
      EMPTY,
      [],
      ['sha-256', EMPTY],
      {},
      { alg: 'sha-256' },
      { alg: 'sha-256', b64: EMPTY, x: 1 },
      { alg: 'sha-256', b64: 43 },
      { alg: 1, b64: EMPTY },
      { alg: 'sha-256', b64: 'AA' },
      { alg: 'SHA-256', b64: EMPTY },
      Object.assign(Object.create({ alg: 'sha-256', b64: EMPTY }) as object, { x: 1, y: 2 }),
    ];
    for (const value of odd) expect(isDigest(value)).toBe(false);
    expect(() => digestFromBase64url(EMPTY_HEX)).toThrow(RangeError);
  });

  it('survive their texts', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const digest = digestFromBase64url(encodeBase64url(bytes));
        expect(parseDigest(formatDigest(digest))).toEqual(digest);
        expect(parseDigest(encodeHex(bytes))).toEqual(digest);
      }),
    );
  });

  it('of another algorithm are canonical base64url exactly', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 96 }),
        fc.nat(),
        fc.constantFrom(...'AQgwBZ_-9'),
        (bytes, at, char) => {
          const b64 = encodeBase64url(bytes);
          const mangled = b64.slice(0, at % b64.length) + char + b64.slice((at % b64.length) + 1);
          const canonical = Buffer.from(mangled, 'base64url').toString('base64url') === mangled;
          expect(isDigest({ alg: 'x', b64 })).toBe(true);
          expect(isDigest({ alg: 'x', b64: mangled })).toBe(canonical);
        },
      ),
    );
  });
});
