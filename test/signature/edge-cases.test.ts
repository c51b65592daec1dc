/**
 * The edges of SPEC §5, made here with curve arithmetic: each case says whether the cofactored and the cofactorless equation
 * hold for it, so that what refuses it is the rule meant, and all backends, and tables, must refuse it alike.
 */

import { createHash } from 'node:crypto';

import { Point } from '@noble/ed25519';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makePublicKey, type PublicKey } from '../../src/format/key/public-key.js';
import { checkEd25519PublicKey, checkEd25519Signature } from '../../src/format/signature/ed25519.js';
import { nobleBackend } from './noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { ed25519Key, p256Key } from '../key/key-samples.js';
import { tablesBackend } from './tables-backend.js';
import { times } from '../slow.js';

const { p: P, n: L } = Point.CURVE();
const BACKENDS = [nodeBackend, nobleBackend, tablesBackend];
const MESSAGE = Buffer.from('a message');

const TORSION = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a');
const small = (order: number) => TORSION.multiplyUnsafe(BigInt(order));

function littleEndian(value: bigint): Uint8Array {
  return new Uint8Array(Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse());
}

function number(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex') || '0'}`);
}

/** All encodings of a point that a lenient decoder takes: the canonical first. */
function encodings(point: Point): Uint8Array[] {
  const { x, y } = point.toAffine();
  const ys = y + P < 2n ** 255n ? [y, y + P] : [y];
  const signs = x === 0n ? [0n, 1n] : [x & 1n];
  return ys.flatMap((value) => signs.map((sign) => littleEndian(value | (sign << 255n))));
}

const challenge = (r: Uint8Array, a: Uint8Array, message: Uint8Array) =>
  number(createHash('sha512').update(r).update(a).update(message).digest()) % L;

/** Which equations hold for a signature, whatever its encodings: [S]B = R + [k]A, and the same times 8. */
function equations(
  a: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): { cofactorless: boolean; cofactored: boolean } {
  const r = signature.subarray(0, 32);
  const k = challenge(r, a, message);
  const left = Point.BASE.multiplyUnsafe(number(signature.subarray(32)) % L);
  const right = Point.fromBytes(r, true).add(Point.fromBytes(a, true).multiplyUnsafe(k));
  const difference = left.subtract(right);
  return { cofactorless: difference.is0(), cofactored: difference.isSmallOrder() };
}

/** Signs with [secret]B + T as key, [nonce]B + T' as R, in the given encodings of them. */
function forge(
  secret: bigint,
  a: Uint8Array,
  nonce: bigint,
  r: Uint8Array,
  message: Uint8Array = MESSAGE,
): Uint8Array {
  const s = (nonce + challenge(r, a, message) * secret) % L;
  return new Uint8Array(Buffer.concat([r, littleEndian(s)]));
}

/** The verdict of all backends, which must be one. */
function verdict(key: PublicKey | Uint8Array, signature: Uint8Array, message: Uint8Array = MESSAGE): boolean {
  const publicKey = key instanceof Uint8Array ? makePublicKey('ed25519', key) : key;
  const verdicts = BACKENDS.map((backend) => backend.importKey(publicKey).verify(message, signature));
  expect(new Set(verdicts).size).toBe(1);
  return verdicts[0];
}

const SECRET = 0x1234567890abcdefn;
const NONCE = 0xfedcba0987654321n;
const A = Point.BASE.multiplyUnsafe(SECRET);
const R = Point.BASE.multiplyUnsafe(NONCE);
const VALID = forge(SECRET, A.toBytes(), NONCE, R.toBytes());

test('a forged but sound signature is valid', () => {
  expect(verdict(A.toBytes(), VALID)).toBe(true);
});

describe('the public key A', () => {
  test('of small order, each of the eight and however encoded, is refused', () => {
    let count = 0;
    for (let order = 0; order < 8; order++) {
      for (const a of encodings(small(order))) {
        count++;
        expect(nodeBackend.importKey(makePublicKey('ed25519', a)).usable).toBe(false);
        // Of small-order keys anyone can make signatures that hold: R = [r]B − [k]A is found by trying messages.
        for (let i = 0; ; i++) {
          const message = Buffer.from(`${i}`);
          const signature = forge(0n, a, NONCE, R.toBytes(), message);
          if (!equations(a, message, signature).cofactorless) continue;
          expect(verdict(a, signature, message)).toBe(false);
          break;
        }
      }
    }
    expect(count).toBe(14);
  });

  test('of mixed order is refused, also where the cofactorless equation holds', () => {
    for (let order = 1; order < 8; order++) {
      const a = A.add(small(order)).toBytes();
      for (let i = 0; ; i++) {
        const message = Buffer.from(`${i}`);
        const signature = forge(SECRET, a, NONCE, R.toBytes(), message);
        if (!equations(a, message, signature).cofactorless) continue;
        expect(verdict(a, signature, message)).toBe(false);
        expect(checkEd25519PublicKey(a)).toBe('not_torsion_free');
        break;
      }
    }
  });

  test('not canonically encoded or not on the curve is refused', () => {
    for (let y = P; y < 2n ** 255n; y++) {
      for (const sign of [0n, 1n]) expect(verdict(littleEndian(y | (sign << 255n)), VALID)).toBe(false);
    }
    expect(verdict(littleEndian(2n), VALID)).toBe(false);
  });
});

describe('the R of a signature', () => {
  test('of small order, each of the eight and however encoded, is refused', () => {
    for (let order = 0; order < 8; order++) {
      encodings(small(order)).forEach((r, i) => {
        const signature = forge(SECRET, A.toBytes(), 0n, r);
        expect(equations(A.toBytes(), MESSAGE, signature)).toEqual({
          cofactorless: order === 0,
          cofactored: true,
        });
        expect(checkEd25519Signature(signature)).toBe(i === 0 ? 'r_small_order' : 'r_not_canonical');
        expect(verdict(A.toBytes(), signature)).toBe(false);
      });
    }
  });

  test('of mixed order, valid only in the cofactored equation, is refused', () => {
    for (let order = 1; order < 8; order++) {
      const signature = forge(SECRET, A.toBytes(), NONCE, R.add(small(order)).toBytes());
      expect(equations(A.toBytes(), MESSAGE, signature)).toEqual({ cofactorless: false, cofactored: true });
      expect(checkEd25519Signature(signature)).toBe('ok');
      expect(verdict(A.toBytes(), signature)).toBe(false);
    }
  });

  test('not canonically encoded or not on the curve is refused', () => {
    for (let y = P; y < 2n ** 255n; y++) {
      for (const sign of [0n, 1n]) {
        const r = littleEndian(y | (sign << 255n));
        expect(checkEd25519Signature(forge(SECRET, A.toBytes(), NONCE, r))).toBe('r_not_canonical');
        expect(verdict(A.toBytes(), forge(SECRET, A.toBytes(), NONCE, r))).toBe(false);
      }
    }
    expect(verdict(A.toBytes(), forge(SECRET, A.toBytes(), NONCE, littleEndian(2n)))).toBe(false);
  });
});

describe('the S of a signature', () => {
  const withS = (s: bigint) => new Uint8Array(Buffer.concat([VALID.subarray(0, 32), littleEndian(s)]));
  const s = number(VALID.subarray(32));

  test('plus any multiple of L is refused, though the equation holds', () => {
    let count = 0;
    for (let value = s + L; value < 2n ** 256n; value += L, count++) {
      expect(equations(A.toBytes(), MESSAGE, withS(value)).cofactorless).toBe(true);
      expect(checkEd25519Signature(withS(value))).toBe('s_not_reduced');
      expect(verdict(A.toBytes(), withS(value))).toBe(false);
    }
    expect(count).toBe(15);
  });

  test('is less than L, to the bit', () => {
    for (const value of [0n, 1n, L - 1n]) expect(checkEd25519Signature(withS(value))).toBe('ok');
    for (const value of [
      L,
      L + 1n,
      2n ** 252n + 2n ** 251n,
      2n ** 253n,
      2n ** 254n,
      2n ** 255n,
      2n ** 256n - 1n,
    ]) {
      expect(checkEd25519Signature(withS(value))).toBe('s_not_reduced');
      expect(verdict(A.toBytes(), withS(value))).toBe(false);
    }
    const any = fc.oneof(
      fc.bigInt(0n, 2n ** 256n - 1n),
      fc.tuple(fc.bigInt(-300n, 300n), fc.nat(31)).map(([delta, byte]) => L + (delta << BigInt(8 * byte))),
    );
    fc.assert(
      fc.property(
        any.filter((value) => value >= 0n && value < 2n ** 256n),
        (value) => {
          expect(checkEd25519Signature(withS(value)) === 'ok').toBe(value < L);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('may be 0, 1 or L − 1, which the equation then decides', () => {
    for (const value of [0n, 1n, L - 1n]) expect(verdict(A.toBytes(), withS(value))).toBe(false);
  });
});

describe('the length of a signature', () => {
  test('is 64 bytes', () => {
    const padded = new Uint8Array(128);
    padded.set(VALID);
    const keys = BACKENDS.map((backend) => backend.importKey(makePublicKey('ed25519', A.toBytes())));
    for (let length = 0; length <= 128; length++) {
      for (const key of keys) expect(key.verify(MESSAGE, padded.slice(0, length))).toBe(length === 64);
      expect(checkEd25519Signature(padded.slice(0, length)) === 'wrong_length').toBe(length !== 64);
    }
  });

  test('is not enough: all zeros and all ones are refused', () => {
    for (const byte of [0x00, 0xff]) {
      for (const a of [A.toBytes(), new Uint8Array(32).fill(byte)]) {
        expect(verdict(a, new Uint8Array(64).fill(byte))).toBe(false);
      }
    }
  });
});

test('every composition of a key, an R and an S has the verdict of the definition', () => {
  const part = fc.record({
    scalar: fc.oneof(fc.constantFrom(0n, 1n, L - 1n), fc.bigInt(1n, L - 1n)),
    order: fc.oneof(fc.constant(0), fc.nat(7)),
    encoding: fc.nat(3),
  });
  const excess = fc.oneof(fc.constant(0n), fc.bigInt(0n, 15n));
  let accepted = 0;
  fc.assert(
    fc.property(part, part, excess, fc.uint8Array({ maxLength: 40 }), (key, nonce, times, message) => {
      const [pointA, pointR] = [key, nonce].map(({ scalar, order }) =>
        Point.BASE.multiplyUnsafe(scalar).add(small(order)),
      );
      const [a, r] = [[pointA, key.encoding] as const, [pointR, nonce.encoding] as const].map(
        ([point, i]) => encodings(point)[i % encodings(point).length],
      );
      const signature = forge(key.scalar, a, nonce.scalar, r, message);
      const s = number(signature.subarray(32)) + times * L;
      if (s >= 2n ** 256n) return;
      signature.set(littleEndian(s), 32);
      const isCanonical = (bytes: Uint8Array, point: Point) => Buffer.from(point.toBytes()).equals(bytes);
      const expected =
        s < L &&
        isCanonical(a, pointA) &&
        isCanonical(r, pointR) &&
        !pointA.isSmallOrder() &&
        !pointR.isSmallOrder() &&
        pointA.isTorsionFree() &&
        equations(a, message, signature).cofactorless;
      expect(verdict(a, signature, message)).toBe(expected);
      if (expected) accepted++;
    }),
    { numRuns: times(120, 2_500) },
  );
  // Some one in eight is accepted.
  expect(accepted).toBeGreaterThan(1);
});

describe.each(['ed25519', 'p256'] as const)('%s', (alg) => {
  const signer = createSigner(
    alg === 'ed25519' ? ed25519Key(Buffer.alloc(32, 7)) : p256Key(Buffer.alloc(32, 7)),
  );
  const { publicKey } = signer;
  const signature = signer.sign(MESSAGE);
  const imported = BACKENDS.map((backend) => backend.importKey(publicKey));
  const flipped = (bytes: Uint8Array, bit: number) => {
    const copy = new Uint8Array(bytes);
    copy[bit >> 3] ^= 1 << (bit & 7);
    return copy;
  };

  test('its signatures are valid for every backend', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (message) => {
        const signed = createSigner(generatePrivateKey(alg));
        expect(verdict(signed.publicKey, signed.sign(message), message)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  test('any flipped bit of the signature is refused by every backend', () => {
    for (let bit = 0; bit < 512; bit++) {
      for (const key of imported) expect(key.verify(MESSAGE, flipped(signature, bit))).toBe(false);
    }
  });

  test('any flipped bit of the message is refused by every backend', () => {
    for (let bit = 0; bit < 8 * MESSAGE.length; bit++) {
      for (const key of imported) expect(key.verify(flipped(MESSAGE, bit), signature)).toBe(false);
    }
  });

  test('any flipped bit of the key is refused by every backend', () => {
    for (let bit = 0; bit < 8 * publicKey.bytes.length; bit++) {
      expect(verdict(makePublicKey(alg, flipped(publicKey.bytes, bit)), signature)).toBe(false);
    }
  });

  test('a cut or extended message or signature is refused by every backend', () => {
    for (const key of imported) {
      expect(key.verify(MESSAGE.subarray(1), signature)).toBe(false);
      expect(key.verify(Buffer.concat([MESSAGE, Buffer.of(0)]), signature)).toBe(false);
      for (let length = 0; length <= 128; length++) {
        if (length === 64) continue;
        const other = new Uint8Array(length);
        other.set(signature.subarray(0, length));
        expect(key.verify(MESSAGE, other)).toBe(false);
      }
    }
  });
});

describe('p256', () => {
  const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const signer = createSigner(p256Key(Buffer.alloc(32, 7)));
  const signature = signer.sign(MESSAGE);
  const bigEndian = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)].map((half) =>
    BigInt(`0x${Buffer.from(half).toString('hex')}`),
  ) as [bigint, bigint];
  const accepts = (a: bigint, b: bigint) =>
    verdict(signer.publicKey, new Uint8Array(Buffer.concat([bigEndian(a), bigEndian(b)])));

  test('low s is not required', () => {
    expect(accepts(r, s)).toBe(true);
    expect(accepts(r, ORDER - s)).toBe(true);
  });

  test('r and s are in 1 … n − 1', () => {
    for (const bad of [0n, ORDER, ORDER + 1n, 2n ** 256n - 1n]) {
      expect(accepts(bad, s)).toBe(false);
      expect(accepts(r, bad)).toBe(false);
    }
    expect(accepts(0n, 0n)).toBe(false);
  });

  test('keys off the curve, of infinity, compressed or hybrid are not usable', () => {
    const { bytes } = signer.publicKey;
    const off = Uint8Array.of(4, ...bytes.subarray(1, 33), ...bytes.subarray(1, 33));
    const hybrid = Uint8Array.of(6 + (bytes[64] & 1), ...bytes.subarray(1));
    for (const bad of [off, hybrid, new Uint8Array(65), Uint8Array.of(2, ...bytes.subarray(1))]) {
      for (const backend of BACKENDS) {
        const key = backend.importKey(makePublicKey('p256', bad));
        expect([key.usable, key.verify(MESSAGE, signature)]).toEqual([false, false]);
      }
    }
  });
});
