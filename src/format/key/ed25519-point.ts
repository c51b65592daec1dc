/**
 * The 32 bytes that SPEC §5 accepts as an Ed25519 point: the whole rule for the public key A, and the part that needs no arithmetic for
 * the R of a signature.
 *
 * A point is encoded (RFC 8032 §5.1.2) as y, little-endian in 255 bits, and the sign of x in the highest bit. An encoding is
 * canonical if y < p = 2^255 − 19 and the sign is not set where x is 0. The curve's group is Z_L × Z_8: the eight points of order
 * 1, 2, 4 and 8 ("small order") are recognised by their y; other torsion ("mixed order") only by multiplying with L, once per key.
 */

import { Point } from '@noble/ed25519';

import { tryDecodeHex } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { tryMakeKernel, type Kernel } from './ed25519-kernel.js';
import { ED25519_LENGTH } from './key-form.js';

export type Ed25519KeyFault =
  | 'wrong_length'
  | 'not_canonical'
  | 'small_order'
  | 'not_on_curve'
  | 'not_torsion_free';

/**
 * Whether `bytes` are an Ed25519 public key that SPEC §5 accepts: 32 bytes, canonically encoded, on the curve, not of
 * small order, torsion-free. About 1.5 ms per new key, a tenth of it after the first few.
 *
 * @throws Error if two computations of whether a key is torsion-free differ
 */
export function checkEd25519PublicKey(bytes: Uint8Array): 'ok' | Ed25519KeyFault {
  if (bytes.length !== ED25519_LENGTH) return 'wrong_length';
  if (!isCanonicalPoint(bytes)) return 'not_canonical';
  if (isSmallOrderPoint(bytes)) return 'small_order';
  const text = decodeLatin1(bytes);
  if (found.has(text)) return 'ok';
  const isRight = isRightByKernel(bytes);
  if (isRight !== true || Math.random() * SAMPLE < 1) {
    const fault = checkPoint(bytes);
    if (isRight !== undefined && isRight !== (fault === 'ok'))
      throw new Error('two computations of whether an Ed25519 key is torsion-free differ');
    if (fault !== 'ok') return fault;
  }
  if (found.size >= MAX_FOUND) found.clear();
  found.add(text);
  return 'ok';
}

/** Recently accepted keys: each is checked where it is declared, and again where it first verifies. */
const found = new Set<string>();
const MAX_FOUND = 4_096;

function checkPoint(bytes: Uint8Array): 'ok' | Ed25519KeyFault {
  let point: Point;
  try {
    point = Point.fromBytes(bytes);
  } catch {
    return 'not_on_curve';
  }
  return point.isTorsionFree() ? 'ok' : 'not_torsion_free';
}

/** Compiling WebAssembly takes as long as checking this many keys. */
const KERNEL_AFTER = 8;
/** One in this many keys that WebAssembly accepts is also checked without it; so is each that it refuses. */
const SAMPLE = 32;

let asked = 0;
/** Undefined until it pays; `null` if the host has none. */
let kernel: Kernel | undefined | null;

/** Whether a key is on the curve and torsion-free; undefined without a kernel. */
function isRightByKernel(bytes: Uint8Array): boolean | undefined {
  asked += 1;
  if (asked <= KERNEL_AFTER) return undefined;
  if (kernel === undefined) kernel = tryMakeKernel() ?? null;
  if (kernel === null) return undefined;
  const { value } = kernel.input;
  new Uint8Array(kernel.memory.buffer, value, ED25519_LENGTH).set(bytes);
  return kernel.isTorsionFree(value) === 1;
}

/** Whether the first 32 of `bytes` are a canonical encoding: y < p, and no sign bit for x = 0 (y = ±1). May be off the curve. */
export function isCanonicalPoint(bytes: Uint8Array): boolean {
  const low = bytes[0]!;
  const sign = bytes[31]! & 0x80;
  const high = bytes[31]! & 0x7f;
  // Only y with bytes 1 to 30 all ff (y ≥ p, y = p − 1) or all 00 (y = 1) can be non-canonical.
  if (high === 0x7f && low >= 0xec && allEqual(bytes, 0xff)) return low === 0xec && sign === 0;
  return !(sign !== 0 && high === 0 && low === 1 && allEqual(bytes, 0));
}

/** Whether the first 32 of `bytes`, a canonical encoding, are one of the eight points of order 1, 2, 4 or 8. */
export function isSmallOrderPoint(bytes: Uint8Array): boolean {
  switch (bytes[0]) {
    case 0x00:
    case 0x01:
      return (bytes[31]! & 0x7f) === 0 && allEqual(bytes, 0);
    case 0xec:
      return (bytes[31]! & 0x7f) === 0x7f && allEqual(bytes, 0xff);
    case 0x26:
      return hasOrdinate(bytes, ORDER_8_LOW);
    case 0xc7:
      return hasOrdinate(bytes, ORDER_8_HIGH);
    default:
      return false;
  }
}

/** The two y of the four points of order 8; they add up to p. */
const ORDER_8_LOW = tryDecodeHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')!;
const ORDER_8_HIGH = tryDecodeHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a')!;

function hasOrdinate(bytes: Uint8Array, y: Uint8Array): boolean {
  for (let i = 0; i < 31; i++) if (bytes[i] !== y[i]) return false;
  return (bytes[31]! & 0x7f) === y[31];
}

function allEqual(bytes: Uint8Array, value: number): boolean {
  for (let i = 1; i < 31; i++) if (bytes[i] !== value) return false;
  return true;
}
