/** Both platforms give the same for every input. */

import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { concatBytes } from '../../src/base/bytes/concat.js';
import * as node from '../../src/base/platform/node.js';
import type { Platform } from '../../src/base/platform/platform.js';
import * as web from '../../src/base/platform/web.js';

const PLATFORMS: readonly Platform[] = [node, web];

/** What the two give, as plain values; a text for what they throw. */
function both(ask: (platform: Platform) => unknown): [unknown, unknown] {
  const [a, b] = PLATFORMS.map((platform) => {
    const answer = ask(platform);
    return answer instanceof Uint8Array ? [...answer] : answer;
  });
  return [a, b];
}

function expectSame(ask: (platform: Platform) => unknown): void {
  const [a, b] = both(ask);
  expect(b).toEqual(a);
}

const bytes = fc.uint8Array({ maxLength: 200 });
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
});
const latin1 = fc.string({
  unit: fc.integer({ min: 0, max: 0xff }).map((unit) => String.fromCharCode(unit)),
});

describe('bytes and texts', () => {
  it('are the same on both', () => {
    fc.assert(
      fc.property(bytes, bytes, anyText, latin1, (a, b, text, octets) => {
        expectSame((p) => [
          p.equalBytes(a, b),
          p.equalBytes(a, a.slice()),
          p.equalBytes(a, concatBytes([a, b])),
        ]);
        expectSame((p) => p.encodeUtf8(text));
        expectSame((p) => [p.decodeUtf8(a), p.decodeUtf8(a, 1, 7), p.decodeUtf8(p.encodeUtf8(text))]);
        expectSame((p) => p.encodeLatin1(text));
        expectSame((p) => [
          p.decodeLatin1(a),
          p.decodeLatin1(a, 1, 7),
          p.decodeLatin1(p.encodeLatin1(octets)),
        ]);
        expectSame((p) => {
          const target = p.allocateBytes(20);
          p.writeLatin1(target, octets, 3);
          return target;
        });
        expectSame((p) => [p.encodeBase64(a), p.encodeBase64url(a), p.encodeHex(a)]);
      }),
    );
  });

  it.each(['tryDecodeBase64', 'tryDecodeBase64url', 'tryDecodeHex'] as const)(
    '%s reads what was written, and refuses the same',
    (decode) => {
      const alphabet = fc.constantFrom(...'ABCQRYZabcdefghiwxyz01234567+/-_= \n.\u0141');
      fc.assert(
        fc.property(bytes, fc.string({ unit: alphabet, maxLength: 9 }), (a, text) => {
          for (const each of [text, node.encodeBase64(a), node.encodeBase64url(a), node.encodeHex(a)]) {
            expectSame((p) => p[decode](each));
            // Another spelling: unused bits, padding, case.
            expectSame((p) => p[decode](`${each}=`));
            expectSame((p) => p[decode](each.slice(0, -1)));
            expectSame((p) => p[decode](`${each.slice(0, -1)}B`));
            expectSame((p) => p[decode](each.toUpperCase()));
          }
        }),
      );
    },
  );

  it('a digest in base64url has one spelling', () => {
    for (const platform of PLATFORMS) {
      const text = platform.sha256Base64url(Uint8Array.of(1));
      const others = [
        `${text}=`,
        ` ${text}`,
        `${text}\n`,
        text.replace(/.$/, (last) => (last === 'B' ? 'C' : 'B')),
      ];
      expect(platform.tryDecodeBase64url(text)).toHaveLength(32);
      for (const other of others) expect(platform.tryDecodeBase64url(other)).toBeUndefined();
    }
  });

  it('a byte order mark is kept', () => {
    expectSame((p) => p.decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41)));
  });

  it('long Latin-1 is read whole', () => {
    const long = Uint8Array.from({ length: 100_000 }, (_, i) => i % 256);
    expect(web.decodeLatin1(long) === node.decodeLatin1(long)).toBe(true);
  });
});

describe('SHA-256', () => {
  it('is the same on both, whole and in parts', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expectSame((p) => p.sha256(a));
        expectSame((p) => [p.sha256Base64url(a), p.sha256Latin1(a)]);
        expectSame((p) => p.createSha256().update(a).update(b).digestLatin1());
        expect(web.createSha256().update(a).update(b).digestLatin1()).toBe(
          node.sha256Latin1(concatBytes([a, b])),
        );
      }),
    );
  });

  it('goes on in a copy, and in what was copied', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expectSame((p) => {
          const hasher = p.createSha256().update(a);
          const copy = hasher.copy();
          const whole = p.sha256Latin1(concatBytes([a, b]));
          return [
            copy.digestLatin1() === p.sha256Latin1(a),
            hasher.update(b).digestLatin1() === whole,
          ].join();
        });
        expect(node.createSha256().update(a).copy().digestLatin1()).toBe(node.sha256Latin1(a));
      }),
    );
  });

  it('ids are written where they are looked for', () => {
    const id = node.sha256Base64url(Uint8Array.of(7));
    expectSame((p) => {
      const target = p.allocateBytes(32);
      p.writeBase64url(target, id);
      return target;
    });
  });
});

const spki = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' });
const message = Buffer.from('a message');

describe('P-256', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const point = spki(publicKey).subarray(-65);
  const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

  const scalar = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
  const valueOf = (part: Buffer): bigint => BigInt(`0x${part.toString('hex')}`);

  it('gives one verdict on signatures, whether s is low or high', () => {
    const signature = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
    const other = Buffer.concat([r, scalar(ORDER - valueOf(s))]);
    const wrong = [
      ...[0n, ORDER, ORDER + 1n, 2n ** 256n - 1n].flatMap((edge) => [
        Buffer.concat([r, scalar(edge)]),
        Buffer.concat([scalar(edge), s]),
      ]),
      Buffer.concat([s, r]),
      Buffer.alloc(64),
    ];
    for (const platform of PLATFORMS) {
      const holds = platform.importP256(point);
      expect([signature, other].map((each) => holds(message, each))).toEqual([true, true]);
      expect(wrong.filter((each) => holds(message, each))).toEqual([]);
      expect(holds(Buffer.from('another'), signature)).toBe(false);
    }
  });

  it('takes the same points', () => {
    const changed = Buffer.from(point);
    changed[64] ^= 1;
    const compressed = node.convertP256Point(point, 'compressed') as Uint8Array;
    const field = Buffer.from('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff', 'hex');
    const candidates = [
      point,
      changed,
      compressed,
      Uint8Array.of(compressed[0] ^ 1, ...compressed.subarray(1)),
      Uint8Array.of(2, ...field),
      Uint8Array.of(4, ...field, ...field),
      Uint8Array.of(4, ...new Uint8Array(64)),
      Uint8Array.of(2, ...new Uint8Array(32)),
      new Uint8Array(33).fill(2),
      new Uint8Array(33).fill(3),
      Uint8Array.of(0),
      new Uint8Array(65).fill(4),
      Uint8Array.of(6 + (point[64] & 1), ...point.subarray(1)),
    ];
    for (const candidate of candidates) {
      for (const form of ['compressed', 'uncompressed'] as const) {
        expectSame((p) => p.convertP256Point(candidate, form));
      }
    }
    expect(web.convertP256Point(compressed, 'uncompressed')).toEqual(new Uint8Array(point));
  });
});

describe('SPKI', () => {
  const ed25519 = generateKeyPairSync('ed25519').publicKey;
  const p256 = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey;
  const compressed = Buffer.concat([
    Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex'),
    node.convertP256Point(spki(p256).subarray(-65), 'compressed') as Uint8Array,
  ]);

  it.each([
    ['Ed25519', spki(ed25519)],
    ['P-256', spki(p256)],
    ['P-256, compressed', compressed],
  ])('of %s is read the same', (_, der) => {
    expect(node.readSpki(der)).toMatchObject({ bytes: expect.any(Uint8Array) as Uint8Array });
    expectSame((p) => p.readSpki(der));
  });

  it.each([
    ['RSA', spki(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)],
    ['X25519', spki(generateKeyPairSync('x25519').publicKey)],
    ['Ed448', spki(generateKeyPairSync('ed448').publicKey)],
    ['P-384', spki(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).publicKey)],
    ['secp256k1', spki(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey)],
  ])('of %s is of another algorithm', (_, der) => {
    for (const platform of PLATFORMS) expect(platform.readSpki(der)).toHaveProperty('other');
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a byte after it', Buffer.concat([spki(ed25519), Buffer.of(0)])],
    ['a byte missing', spki(ed25519).subarray(0, -1)],
    ['a byte after P-256', Buffer.concat([spki(p256), Buffer.of(0)])],
    ['a point off the curve', Buffer.concat([spki(p256).subarray(0, -1), Buffer.of(spki(p256).at(-1)! ^ 1)])],
    ['a long form of a length', Buffer.concat([Buffer.of(0x30, 0x81, 0x2a), spki(ed25519).subarray(2)])],
    ['other bytes', Buffer.from('not a key at all')],
  ])('with %s is none', (_, der) => {
    for (const platform of PLATFORMS) expect(platform.readSpki(der)).toBeUndefined();
  });
});
