import { Point } from '@noble/ed25519';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';

import {
  checkEd25519PublicKey,
  isCanonicalPoint,
  isSmallOrderPoint,
} from '../../src/format/key/ed25519-point.js';

const { p: P, n: L } = Point.CURVE();
const TORSION = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a');
const SMALL = Array.from({ length: 8 }, (_, i) => TORSION.multiplyUnsafe(BigInt(i)));

/** 32 bytes of y, any number below 2^255, and a sign bit. */
function encode(y: bigint, sign: 0 | 1): Uint8Array {
  const bytes = Buffer.from(y.toString(16).padStart(64, '0'), 'hex').reverse();
  bytes[31] |= sign << 7;
  return new Uint8Array(bytes);
}

describe('checkEd25519PublicKey', () => {
  test('accepts points of the prime-order group', () => {
    for (const scalar of [1n, 2n, 8n, 12345n, L - 1n]) {
      expect(checkEd25519PublicKey(Point.BASE.multiplyUnsafe(scalar).toBytes())).toBe('ok');
    }
  });

  test('refuses all eight points of small order, however encoded', () => {
    expect(new Set(SMALL.map((point) => point.toHex())).size).toBe(8);
    for (const point of SMALL) {
      expect(checkEd25519PublicKey(point.toBytes())).toBe('small_order');
      expect(isSmallOrderPoint(point.toBytes())).toBe(true);
    }
    // y = 0 and 1 have a second encoding below 2^255, x = 0 (y = ±1) a second sign.
    for (const [y, sign] of [
      [P, 0],
      [P, 1],
      [P + 1n, 0],
      [P + 1n, 1],
      [1n, 1],
      [P - 1n, 1],
    ] as const) {
      const bytes = encode(y, sign);
      expect(Point.fromBytes(bytes, true).isSmallOrder()).toBe(true);
      expect(checkEd25519PublicKey(bytes)).toBe('not_canonical');
    }
  });

  test('refuses every y ≥ p', () => {
    for (let y = P; y < 2n ** 255n; y++) {
      for (const sign of [0, 1] as const)
        expect(checkEd25519PublicKey(encode(y, sign))).toBe('not_canonical');
    }
  });

  test('refuses points of mixed order', () => {
    for (const scalar of [1n, 7n, L - 1n]) {
      for (const torsion of SMALL.slice(1)) {
        const mixed = Point.BASE.multiplyUnsafe(scalar).add(torsion);
        expect(checkEd25519PublicKey(mixed.toBytes())).toBe('not_torsion_free');
        expect(isSmallOrderPoint(mixed.toBytes())).toBe(false);
      }
    }
  });

  test('says the same of many keys as the definition', () => {
    for (let i = 0n; i < 40n; i++) {
      const point = Point.BASE.multiplyUnsafe((i + 3n) ** 60n % L);
      const torsion = SMALL[Number(i % 8n)];
      const bytes = point.add(torsion).toBytes();
      expect(checkEd25519PublicKey(bytes)).toBe(i % 8n === 0n ? 'ok' : 'not_torsion_free');
    }
  });

  test.each([0, 1])('gives no verdict where two computations differ: the fast one says %i', async (says) => {
    vi.resetModules();
    const memory = { buffer: new ArrayBuffer(64) };
    const tryMakeKernel = (): object => ({ memory, input: { value: 0 }, isTorsionFree: () => says });
    vi.doMock('../../src/format/key/ed25519-kernel.js', () => ({ tryMakeKernel }));
    const sample = vi.spyOn(Math, 'random').mockReturnValue(0);
    const { checkEd25519PublicKey: check } = await import('../../src/format/key/ed25519-point.js');
    const key = (i: number): Uint8Array => {
      const point = Point.BASE.multiplyUnsafe(BigInt(i + 1));
      return (says === 1 ? point.add(TORSION) : point).toBytes();
    };
    const expected = says === 1 ? 'not_torsion_free' : 'ok';
    for (let i = 0; i < 8; i++) expect(check(key(i))).toBe(expected);
    expect(() => check(key(8))).toThrow(/differ/);
    sample.mockRestore();
    vi.doUnmock('../../src/format/key/ed25519-kernel.js');
  });

  test('refuses y without a point, and other lengths', () => {
    expect(checkEd25519PublicKey(encode(2n, 0))).toBe('not_on_curve');
    for (const length of [0, 1, 31, 33, 64, 65]) {
      expect(checkEd25519PublicKey(new Uint8Array(length).fill(0x58))).toBe('wrong_length');
    }
  });
});

describe('the byte comparisons', () => {
  const edges = [0n, 1n, P - 1n, P, 2n ** 255n - 1n, ...SMALL.map(({ y }) => y)];
  const nearEdge = fc
    .tuple(fc.constantFrom(...edges), fc.bigInt(-300n, 300n), fc.nat(31), fc.constantFrom(0n, 0n, 1n))
    .map(([y, delta, byte, flip]) => (y + delta) ^ (flip << BigInt(8 * byte)))
    .filter((y) => y >= 0n && y < 2n ** 255n);
  const anyY = fc.oneof(nearEdge, fc.bigInt(0n, 2n ** 255n - 1n));

  test('agree with the definition, near the edges and elsewhere', () => {
    fc.assert(
      fc.property(anyY, fc.constantFrom(0, 1), (y, sign) => {
        const bytes = encode(y, sign);
        const canonical = y < P && !(sign === 1 && (y === 1n || y === P - 1n));
        expect(isCanonicalPoint(bytes)).toBe(canonical);
        if (canonical) expect(isSmallOrderPoint(bytes)).toBe(SMALL.some((point) => point.y === y));
      }),
      { numRuns: 5_000 },
    );
  });

  test('agree with the strict decoding of @noble/ed25519', () => {
    fc.assert(
      fc.property(anyY, fc.constantFrom(0, 1), (y, sign) => {
        const bytes = encode(y, sign);
        let point: Point | undefined;
        try {
          point = Point.fromBytes(bytes);
        } catch {
          point = undefined;
        }
        expect(checkEd25519PublicKey(bytes) === 'ok').toBe(
          point !== undefined && !point.isSmallOrder() && point.isTorsionFree(),
        );
      }),
      { numRuns: 300 },
    );
  });
});
