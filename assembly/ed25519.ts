/**
 * Ed25519 verification by sums of table entries, four signatures at a time: R' = [S]B − [h]A with few doublings or none. Compiled to
 * WebAssembly with SIMD by `build.js`; `batch-verifier.ts` is the only caller. Not constant-time: a verifier has no secrets.
 *
 * A *lane* is one of the four. A field element in four lanes has 160 bytes (see `unrolled.js`), a point 640: X, Y, Z, T with x = X/Z,
 * y = Y/Z, xy = T/Z (Hisil et al. 2008). An *entry* is a point to add, (y − x)/2, (y + x)/2 and d·x·y, 32 bytes each; the table of a
 * key has, for each window of w bits, the first 2^(w−1) multiples of [2^(w·i)]A. A table of *n levels* has only every nth window;
 * the sums of the others use the same entries and are doubled. The additions are complete: they hold for all points of the curve.
 */

import { CONSTANTS, INITIAL_HASH, ROUND_CONSTANTS } from './constants';
import {
  product,
  sixteenRounds,
  toLeft,
  toLeftDifference,
  toLeftSum,
  toRight,
  toRightDifference,
  toRightSum,
  unpack,
  unpackLeft,
} from './unrolled';

const ELEMENT: usize = 160;
const POINT: usize = 4 * ELEMENT;
const ENTRY: usize = 96;
const LANES: i32 = 4;
const LIMBS: usize = 20;
const VECTOR: usize = 16;

// Elements and factors for the functions below; `left` and `right` as `product` takes them.
const A = memory.data(160, 16);
const B = memory.data(160, 16);
const C = memory.data(160, 16);
const D = memory.data(160, 16);
const LEFT_E = memory.data(160, 16);
const LEFT_G = memory.data(160, 16);
const RIGHT_F = memory.data(336, 16);
const RIGHT_H = memory.data(336, 16);
const LEFT = memory.data(160, 16);
const RIGHT = memory.data(336, 16);
const ENTRY_0 = memory.data(160, 16);
const ENTRY_1 = memory.data(160, 16);
const ENTRY_2 = memory.data(160, 16);
const LIMB = memory.data(320, 16);
const WORD = memory.data(128, 16);
const ROW = memory.data(32, 16);

const ONE = memory.data(160, 16);
const HALF = memory.data(160, 16);
const D1 = memory.data(160, 16);
const D2 = memory.data(160, 16);
const D4 = memory.data(160, 16);
const ROOT = memory.data(160, 16);
const NEUTRAL = memory.data(96, 32);

const NUMBERS = memory.data<u64>(
  [
    // 1, 1/2, d, 2d, 4d, the square root of −1; then the base point as RFC 8032 encodes it.
    1, 0, 0, 0, 0xfffffffffffffff7, 0xffffffffffffffff, 0xffffffffffffffff, 0x3fffffffffffffff,
    0x75eb4dca135978a3, 0x00700a4d4141d8ab, 0x8cc740797779e898, 0x52036cee2b6ffe73, 0xebd69b9426b2f159,
    0x00e0149a8283b156, 0x198e80f2eef3d130, 0x2406d9dc56dffce7, 0xd7ad37284d65e2b2, 0x01c02935050762ad,
    0x331d01e5dde7a260, 0x480db3b8adbff9ce, 0xc4ee1b274a0ea0b0, 0x2f431806ad2fe478, 0x2b4d00993dfbd7a7,
    0x2b8324804fc1df0b, 0x6666666666666658, 0x6666666666666666, 0x6666666666666666, 0x6666666666666666,
  ],
  16,
);

/** MUST be called once, before anything else. */
export function initialize(): void {
  splat(ONE, NUMBERS);
  splat(HALF, NUMBERS + 32);
  splat(D1, NUMBERS + 64);
  splat(D2, NUMBERS + 96);
  splat(D4, NUMBERS + 128);
  splat(ROOT, NUMBERS + 160);
  memory.copy(NEUTRAL, NUMBERS + 32, 32);
  memory.copy(NEUTRAL + 32, NUMBERS + 32, 32);
}

// ---- the field

/** A number of 255 bits in all four lanes. */
function splat(to: usize, bytes: usize): void {
  unpack(
    to,
    v128.load32_splat(bytes, 0),
    v128.load32_splat(bytes, 4),
    v128.load32_splat(bytes, 8),
    v128.load32_splat(bytes, 12),
    v128.load32_splat(bytes, 16),
    v128.load32_splat(bytes, 20),
    v128.load32_splat(bytes, 24),
    v128.and(v128.load32_splat(bytes, 28), i32x4.splat(0x7fffffff)),
  );
}

function copy(to: usize, a: usize): void {
  memory.copy(to, a, ELEMENT);
}

function add(to: usize, a: usize, b: usize): void {
  for (let i: usize = 0; i < ELEMENT; i += VECTOR) {
    v128.store(to + i, i16x8.add(v128.load(a + i), v128.load(b + i)));
  }
}

function subtract(to: usize, a: usize, b: usize): void {
  for (let i: usize = 0; i < ELEMENT; i += VECTOR) {
    v128.store(to + i, i16x8.sub(v128.load(a + i), v128.load(b + i)));
  }
}

function multiply(to: usize, a: usize, b: usize): void {
  toLeft(LEFT, a);
  toRight(RIGHT, b);
  product(to, LEFT, RIGHT);
}

function square(to: usize, a: usize, times: i32): void {
  multiply(to, a, a);
  for (let i = 1; i < times; i++) multiply(to, to, to);
}

/** The limbs of an element, each in 32 bits. */
function spread(a: usize): void {
  for (let i: usize = 0; i < LIMBS / 2; i++) {
    const v = v128.load(a + i * VECTOR);
    v128.store(LIMB + 2 * i * VECTOR, i32x4.shr_s(i32x4.shl(v, 16), 16));
    v128.store(LIMB + (2 * i + 1) * VECTOR, i32x4.shr_s(v, 16));
  }
}

/** Reduces limbs of at most 32,767 to the size of a product's. */
function reduce(to: usize): void {
  const mask = v128.load(CONSTANTS);
  const fold = v128.load(CONSTANTS, 16);
  const half = v128.load(CONSTANTS, 32);
  spread(to);
  let carry = half;
  for (let i: usize = 0; i < LIMBS; i++) {
    const u = i32x4.add(v128.load(LIMB + i * VECTOR), carry);
    carry = i32x4.add(i32x4.shr_s(u, 13), half);
    v128.store(LIMB + i * VECTOR, i32x4.sub(v128.and(u, mask), half));
  }
  const u = i32x4.add(v128.load(LIMB), i32x4.add(half, i32x4.mul(i32x4.sub(carry, half), fold)));
  v128.store(LIMB, i32x4.sub(v128.and(u, mask), half));
  v128.store(LIMB + VECTOR, i32x4.add(v128.load(LIMB + VECTOR), i32x4.shr_s(u, 13)));
  for (let i: usize = 0; i < LIMBS / 2; i++) {
    const low = v128.and(v128.load(LIMB + 2 * i * VECTOR), i32x4.splat(0xffff));
    v128.store(to + i * VECTOR, v128.or(low, i32x4.shl(v128.load(LIMB + (2 * i + 1) * VECTOR), 16)));
  }
}

/** Adds to the limbs and carries; returns the bits above 255. */
function carryLimbs(addend: v128): v128 {
  const mask = v128.load(CONSTANTS);
  let carry = addend;
  for (let i: usize = 0; i < LIMBS - 1; i++) {
    const u = i32x4.add(v128.load(LIMB + i * VECTOR), carry);
    v128.store(LIMB + i * VECTOR, v128.and(u, mask));
    carry = i32x4.shr_s(u, 13);
  }
  const u = i32x4.add(v128.load(LIMB + (LIMBS - 1) * VECTOR), carry);
  v128.store(LIMB + (LIMBS - 1) * VECTOR, v128.and(u, i32x4.splat(0xff)));
  return i32x4.shr_s(u, 8);
}

/** The element's canonical number below p, in `WORD`: eight words, each in four lanes. */
function freeze(a: usize): void {
  const nineteen = i32x4.splat(19);
  spread(a);
  let over = carryLimbs(i32x4.splat(0));
  over = carryLimbs(i32x4.mul(over, nineteen));
  carryLimbs(i32x4.mul(over, nineteen));
  // Whether it is p or more: whether 19 more would reach 2^255.
  let carry = nineteen;
  for (let i: usize = 0; i < LIMBS - 1; i++) {
    carry = i32x4.shr_s(i32x4.add(v128.load(LIMB + i * VECTOR), carry), 13);
  }
  over = i32x4.shr_s(i32x4.add(v128.load(LIMB + (LIMBS - 1) * VECTOR), carry), 8);
  carryLimbs(i32x4.mul(over, nineteen));
  memory.fill(WORD, 0, 128);
  for (let i: usize = 0; i < LIMBS; i++) {
    const limb = v128.load(LIMB + i * VECTOR);
    const word = WORD + ((13 * i) >> 5) * VECTOR;
    const shift = (13 * (i as i32)) & 31;
    v128.store(word, v128.or(v128.load(word), i32x4.shl(limb, shift)));
    if (shift > 19 && i < LIMBS - 1) v128.store(word + VECTOR, i32x4.shr_u(limb, 32 - shift));
  }
}

/** The lane's 32 bytes of `WORD`. */
function storeLane(to: usize, lane: i32): void {
  for (let i: usize = 0; i < 8; i++) store<u32>(to + 4 * i, load<u32>(WORD + i * VECTOR + 4 * lane));
}

/** Whether lane 0 is 0. */
function isZero(a: usize): bool {
  freeze(a);
  storeLane(ROW, 0);
  return (load<u64>(ROW) | load<u64>(ROW + 8) | load<u64>(ROW + 16) | load<u64>(ROW + 24)) === 0;
}

const Z = memory.data(160, 16);
const T0 = memory.data(160, 16);
const T1 = memory.data(160, 16);
const T2 = memory.data(160, 16);
const T3 = memory.data(160, 16);

/** a^(2^250 − 1) in T1, a^11 in T0. `a` is not one of them. */
function power250(a: usize): void {
  square(T0, a, 1);
  square(T1, T0, 2);
  multiply(T1, T1, a);
  multiply(T0, T0, T1);
  square(T2, T0, 1);
  multiply(T1, T1, T2);
  square(T2, T1, 5);
  multiply(T1, T2, T1);
  square(T2, T1, 10);
  multiply(T2, T2, T1);
  square(T3, T2, 20);
  multiply(T2, T3, T2);
  square(T2, T2, 10);
  multiply(T1, T2, T1);
  square(T2, T1, 50);
  multiply(T2, T2, T1);
  square(T3, T2, 100);
  multiply(T2, T3, T2);
  square(T2, T2, 50);
  multiply(T1, T2, T1);
}

/** a^(p−2): 1/a, or 0. */
function invert(to: usize, a: usize): void {
  power250(a);
  square(T1, T1, 5);
  multiply(to, T1, T0);
}

/** a^((p−5)/8) */
function powerForRoot(to: usize, a: usize): void {
  power250(a);
  square(T1, T1, 2);
  multiply(to, T1, a);
}

// ---- points

/** Ends an addition: E = B − A, F = D − C, G = D + C, H = B + A; X = EF, Y = GH, Z = FG, T = EH. */
function finishSum(p: usize, d: usize): void {
  toLeftDifference(LEFT_E, B, A);
  toRightSum(RIGHT_H, B, A);
  toRightDifference(RIGHT_F, d, C);
  toLeftSum(LEFT_G, d, C);
  product(p, LEFT_E, RIGHT_F);
  product(p + ELEMENT, LEFT_G, RIGHT_H);
  product(p + 2 * ELEMENT, LEFT_G, RIGHT_F);
  product(p + 3 * ELEMENT, LEFT_E, RIGHT_H);
}

function gather(to: usize, p0: usize, p1: usize, p2: usize, p3: usize): void {
  let r0 = v128.load(p0);
  let r1 = v128.load(p1);
  let r2 = v128.load(p2);
  let r3 = v128.load(p3);
  let s0 = v128.shuffle<i32>(r0, r1, 0, 4, 1, 5);
  let s1 = v128.shuffle<i32>(r0, r1, 2, 6, 3, 7);
  let s2 = v128.shuffle<i32>(r2, r3, 0, 4, 1, 5);
  let s3 = v128.shuffle<i32>(r2, r3, 2, 6, 3, 7);
  const w0 = v128.shuffle<i64>(s0, s2, 0, 2);
  const w1 = v128.shuffle<i64>(s0, s2, 1, 3);
  const w2 = v128.shuffle<i64>(s1, s3, 0, 2);
  const w3 = v128.shuffle<i64>(s1, s3, 1, 3);
  r0 = v128.load(p0, 16);
  r1 = v128.load(p1, 16);
  r2 = v128.load(p2, 16);
  r3 = v128.load(p3, 16);
  s0 = v128.shuffle<i32>(r0, r1, 0, 4, 1, 5);
  s1 = v128.shuffle<i32>(r0, r1, 2, 6, 3, 7);
  s2 = v128.shuffle<i32>(r2, r3, 0, 4, 1, 5);
  s3 = v128.shuffle<i32>(r2, r3, 2, 6, 3, 7);
  const w4 = v128.shuffle<i64>(s0, s2, 0, 2);
  const w5 = v128.shuffle<i64>(s0, s2, 1, 3);
  const w6 = v128.shuffle<i64>(s1, s3, 0, 2);
  const w7 = v128.shuffle<i64>(s1, s3, 1, 3);
  unpackLeft(to, w0, w1, w2, w3, w4, w5, w6, w7);
}

const TOUCHED = memory.data(16, 16);

/** Prefetches the entries of the next addition: tables exceed the fast caches. */
function touchEntries(list: usize): void {
  const p0: usize = load<u32>(list);
  const p1: usize = load<u32>(list, 4);
  const p2: usize = load<u32>(list, 8);
  const p3: usize = load<u32>(list, 12);
  const first = load<u32>(p0) ^ load<u32>(p1) ^ load<u32>(p2) ^ load<u32>(p3);
  const second = load<u32>(p0, 64) ^ load<u32>(p1, 64) ^ load<u32>(p2, 64) ^ load<u32>(p3, 64);
  store<u32>(TOUCHED, first ^ second);
}

/**
 * Adds an entry to the point in each lane. `list` has four addresses, multiples of 32, plus 1 to subtract the entry: −(x, y) = (−x, y),
 * so its first two numbers are swapped and the third is negated.
 */
function addEntries(p: usize, list: usize): void {
  const e0: usize = load<u32>(list);
  const e1: usize = load<u32>(list, 4);
  const e2: usize = load<u32>(list, 8);
  const e3: usize = load<u32>(list, 12);
  const n0: usize = (e0 & 1) << 5;
  const n1: usize = (e1 & 1) << 5;
  const n2: usize = (e2 & 1) << 5;
  const n3: usize = (e3 & 1) << 5;
  const p0: usize = e0 & ~31;
  const p1: usize = e1 & ~31;
  const p2: usize = e2 & ~31;
  const p3: usize = e3 & ~31;
  gather(ENTRY_0, p0 + n0, p1 + n1, p2 + n2, p3 + n3);
  gather(ENTRY_1, p0 + 32 - n0, p1 + 32 - n1, p2 + 32 - n2, p3 + 32 - n3);
  gather(ENTRY_2, p0 + 64, p1 + 64, p2 + 64, p3 + 64);
  toRightDifference(RIGHT, p + ELEMENT, p);
  product(A, ENTRY_0, RIGHT);
  toRightSum(RIGHT, p + ELEMENT, p);
  product(B, ENTRY_1, RIGHT);
  toRight(RIGHT, p + 3 * ELEMENT);
  product(C, ENTRY_2, RIGHT);
  // All ones to subtract the entry.
  const sign = i32x4.neg(v128.and(v128.load(list), i32x4.splat(1)));
  for (let i: usize = 0; i < ELEMENT; i += VECTOR) {
    v128.store(C + i, i16x8.sub(v128.xor(v128.load(C + i), sign), sign));
  }
  // The entry is halved, and so are E, F, G and H: D is Z instead of 2Z.
  finishSum(p, p + 2 * ELEMENT);
}

const ADDEND_0 = memory.data(160, 16);
const ADDEND_1 = memory.data(160, 16);
const ADDEND_2 = memory.data(160, 16);
const ADDEND_3 = memory.data(160, 16);

/** Prepares a point for {@link addAddend}. */
function setAddend(q: usize): void {
  toLeftDifference(ADDEND_0, q + ELEMENT, q);
  toLeftSum(ADDEND_1, q + ELEMENT, q);
  multiply(A, q + 3 * ELEMENT, D2);
  toLeft(ADDEND_2, A);
  toLeftSum(ADDEND_3, q + 2 * ELEMENT, q + 2 * ELEMENT);
}

function addAddend(p: usize): void {
  toRightDifference(RIGHT, p + ELEMENT, p);
  product(A, ADDEND_0, RIGHT);
  toRightSum(RIGHT, p + ELEMENT, p);
  product(B, ADDEND_1, RIGHT);
  toRight(RIGHT, p + 3 * ELEMENT);
  product(C, ADDEND_2, RIGHT);
  toRight(RIGHT, p + 2 * ELEMENT);
  product(D, ADDEND_3, RIGHT);
  finishSum(p, D);
}

/** E = 2XY, G = Y² − X², F = G − 2Z², H = −X² − Y². */
function double(p: usize): void {
  const y = p + ELEMENT;
  const z = p + 2 * ELEMENT;
  square(A, p, 1);
  square(B, y, 1);
  square(C, z, 1);
  multiply(D, p, y);
  toLeftSum(LEFT_E, D, D);
  subtract(D, B, A);
  toLeft(LEFT_G, D);
  subtract(D, D, C);
  subtract(D, D, C);
  reduce(D);
  toRight(RIGHT_F, D);
  subtract(D, T_ZERO, A);
  toRightDifference(RIGHT_H, D, B);
  product(p, LEFT_E, RIGHT_F);
  product(y, LEFT_G, RIGHT_H);
  product(z, LEFT_G, RIGHT_F);
  product(p + 3 * ELEMENT, LEFT_E, RIGHT_H);
}

const T_ZERO = memory.data(160, 16);
const U = memory.data(160, 16);
const V = memory.data(160, 16);
const X = memory.data(160, 16);

/** Decodes a point (RFC 8032 §5.1.3) into all lanes; false if it is off the curve. The bytes MUST be canonical. */
function decompress(p: usize, bytes: usize): bool {
  const y = p + ELEMENT;
  splat(y, bytes);
  reduce(y);
  square(V, y, 1);
  subtract(U, V, ONE);
  reduce(U);
  multiply(V, V, D1);
  add(V, V, ONE);
  reduce(V);
  // x = u·v³·(u·v⁷)^((p−5)/8)
  square(X, V, 1);
  multiply(X, X, V);
  square(Z, X, 1);
  multiply(Z, Z, V);
  multiply(Z, Z, U);
  multiply(X, X, U);
  powerForRoot(Z, Z);
  multiply(X, X, Z);
  square(Z, X, 1);
  multiply(Z, Z, V);
  subtract(A, Z, U);
  if (!isZero(A)) {
    add(A, Z, U);
    if (!isZero(A)) return false;
    multiply(X, X, ROOT);
  }
  freeze(X);
  storeLane(ROW, 0);
  if ((load<u8>(ROW) & 1) !== load<u8>(bytes, 31) >> 7) subtract(p, T_ZERO, X);
  else copy(p, X);
  copy(p + 2 * ELEMENT, ONE);
  multiply(p + 3 * ELEMENT, p, y);
  return true;
}

const MULTIPLE = memory.data(640, 16);
/** L, the order of the base point. */
const ORDER = memory.data<u64>([0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000], 16);

/** Whether 32 bytes, which MUST be a canonical encoding, are a point of which L times is the neutral element. */
export function isTorsionFree(bytes: usize): bool {
  if (!decompress(MULTIPLE, bytes)) return false;
  setAddend(MULTIPLE);
  for (let bit = 251; bit >= 0; bit--) {
    double(MULTIPLE);
    if ((load<u8>(ORDER + (bit >> 3)) >> (bit & 7)) & 1) addAddend(MULTIPLE);
  }
  subtract(U, MULTIPLE + ELEMENT, MULTIPLE + 2 * ELEMENT);
  return isZero(MULTIPLE) && isZero(U);
}

// ---- tables

/** The first multiple of each window; then a point of each of the four windows at work. */
const WINDOWS = memory.data(64 * 640, 16);
const AT_WORK = memory.data(640, 16);
const INVERSE = memory.data(160, 16);

/** Four points, a lane of each. */
function takeLanes(to: usize, from: usize, first: i32, last: i32): void {
  for (let lane = 0; lane < LANES; lane++) {
    const source = from + min(first + lane, last) * POINT;
    for (let i: usize = 0; i < POINT; i += VECTOR) store<u32>(to + i + 4 * lane, load<u32>(source + i));
  }
}

/**
 * Writes the table of an encoded point, or of its negative.
 *
 * @param windows - The number of windows, of `width` bits.
 * @param distance - The bits between the starts of two windows.
 * @param work - 640 bytes for each of 2^(width−1) · ⌈windows/4⌉ points, or fewer: at least for 2^(width−1).
 * @returns Whether the point is on the curve.
 */
export function buildTable(
  table: usize,
  bytes: usize,
  isNegative: bool,
  width: i32,
  windows: i32,
  distance: i32,
  work: usize,
  workSize: usize,
): bool {
  if (!decompress(WINDOWS, bytes)) return false;
  if (isNegative) {
    subtract(WINDOWS, T_ZERO, WINDOWS);
    subtract(WINDOWS + 3 * ELEMENT, T_ZERO, WINDOWS + 3 * ELEMENT);
  }
  for (let i = 1; i < windows; i++) {
    const p = WINDOWS + i * POINT;
    memory.copy(p, p - POINT, POINT);
    for (let j = 0; j < distance; j++) double(p);
  }
  const multiples = 1 << (width - 1);
  let firstWindow = 0;
  let points: usize = 0;
  for (let window = 0; window < windows; window += LANES) {
    takeLanes(AT_WORK, WINDOWS, window, windows - 1);
    setAddend(AT_WORK);
    for (let j = 0; j < multiples; j++) {
      if (j > 0) addAddend(AT_WORK);
      memory.copy(work + points * POINT, AT_WORK, POINT);
      points++;
    }
    if (window + LANES >= windows || (points + multiples) * POINT > workSize) {
      writeEntries(table, work, points, firstWindow, windows, multiples);
      firstWindow = window + LANES;
      points = 0;
    }
  }
  return true;
}

/** Makes entries of points: one inversion for all of them (Montgomery 1987). */
function writeEntries(
  table: usize,
  work: usize,
  points: usize,
  firstWindow: i32,
  windows: i32,
  multiples: i32,
): void {
  multiplyAll(work, points);
  for (let i = (points as i32) - 1; i >= 0; i--) {
    const p = work + i * POINT;
    divideNext(p);
    // Half of x and y.
    multiply(Z, Z, HALF);
    multiply(U, p, Z);
    multiply(V, p + ELEMENT, Z);
    const window = firstWindow + (i / multiples) * LANES;
    const entry = table + (window * multiples + (i % multiples)) * ENTRY;
    const last = min(LANES, windows - window);
    subtract(A, V, U);
    writeNumbers(entry, A, last, multiples);
    add(A, V, U);
    writeNumbers(entry + 32, A, last, multiples);
    multiply(A, U, V);
    multiply(A, A, D4);
    writeNumbers(entry + 64, A, last, multiples);
  }
}

function writeNumbers(to: usize, a: usize, lanes: i32, multiples: i32): void {
  freeze(a);
  for (let lane = 0; lane < lanes; lane++) storeLane(to + lane * multiples * ENTRY, lane);
}

/** Replaces each T by the product of the Z before it; `INVERSE` is the inverse of the whole product. */
function multiplyAll(points: usize, count: usize): void {
  copy(A, ONE);
  for (let i: usize = 0; i < count; i++) {
    const p = points + i * POINT;
    copy(p + 3 * ELEMENT, A);
    multiply(A, A, p + 2 * ELEMENT);
  }
  invert(INVERSE, A);
}

/** 1/Z of the point in `Z`, from the last to the first. */
function divideNext(p: usize): void {
  multiply(Z, INVERSE, p + 3 * ELEMENT);
  multiply(INVERSE, INVERSE, p + 2 * ELEMENT);
}

// ---- signatures

/** R, S, h and the address of the key's table. */
const SLOT: usize = 128;
const S_OFFSET: usize = 32;
const H_OFFSET: usize = 64;
const TABLE_OFFSET: usize = 96;

/** The capacity of {@link verify}. */
const CAPACITY: usize = 256;
export const slots = memory.data(256 * 128, 16);
export const verdicts = memory.data(256, 16);
/** One vector for each addition. */
const LIST = memory.data(256 * 16, 16);
const SCALAR = memory.data(48, 16);
const SUMS = memory.data(64 * 640, 16);

/**
 * Verifies the first `count` slots, whose tables have the same shape: [S]B − [h]A = R.
 *
 * @param windows - The windows of a table. With all levels they MUST cover at least 253 bits, so that no carry remains.
 */
export function verify(
  count: i32,
  width: i32,
  windows: i32,
  levels: i32,
  baseTable: usize,
  baseWidth: i32,
  baseWindows: i32,
): void {
  const groups = (count + LANES - 1) / LANES;
  const ofKey = windows * levels;
  const steps = ofKey + baseWindows;
  for (let group = 0; group < groups; group++) {
    const sum = SUMS + group * POINT;
    for (let lane = 0; lane < LANES; lane++) {
      const index = group * LANES + lane;
      const slot = slots + index * SLOT;
      const list = LIST + 4 * lane;
      if (index >= count) {
        for (let i = 0; i < steps; i++) store<u32>(list + i * VECTOR, NEUTRAL as u32);
        continue;
      }
      listEntries(list, slot + H_OFFSET, load<u32>(slot, TABLE_OFFSET), width, windows, levels);
      listEntries(list + ofKey * VECTOR, slot + S_OFFSET, baseTable, baseWidth, baseWindows, 1);
    }
    memory.fill(sum, 0, ELEMENT);
    copy(sum + ELEMENT, ONE);
    copy(sum + 2 * ELEMENT, ONE);
    memory.fill(sum + 3 * ELEMENT, 0, ELEMENT);
    for (let i = 0; i < steps; i++) {
      // Between two levels of the key's windows.
      if (i > 0 && i < ofKey && i % windows === 0) {
        for (let j = 0; j < width; j++) double(sum);
      }
      touchEntries(LIST + (i + 1) * VECTOR);
      addEntries(sum, LIST + i * VECTOR);
    }
  }
  multiplyAll(SUMS, groups);
  for (let group = groups - 1; group >= 0; group--) {
    const sum = SUMS + group * POINT;
    divideNext(sum);
    multiply(U, sum, Z);
    multiply(V, sum + ELEMENT, Z);
    freeze(U);
    const signs = i32x4.shl(v128.load(WORD), 31);
    freeze(V);
    v128.store(WORD + 7 * VECTOR, v128.or(v128.load(WORD + 7 * VECTOR), signs));
    for (let lane = 0; lane < min(LANES, count - group * LANES); lane++) {
      const index = group * LANES + lane;
      const r = slots + index * SLOT;
      storeLane(ROW, lane);
      store<u8>(
        verdicts + index,
        (load<u64>(ROW) === load<u64>(r) &&
          load<u64>(ROW + 8) === load<u64>(r, 8) &&
          load<u64>(ROW + 16) === load<u64>(r, 16) &&
          load<u64>(ROW + 24) === load<u64>(r, 24)) as u8,
      );
    }
  }
}

/**
 * The entries whose sum is the scalar (below 2^253) times the table's point: signed digits of −2^(w−1) + 1 to 2^(w−1). Those of the
 * highest level come first.
 */
function listEntries(list: usize, scalar: usize, table: usize, width: i32, windows: i32, levels: i32): void {
  memory.copy(SCALAR, scalar, 32);
  const half = 1 << (width - 1);
  const mask = (1 << width) - 1;
  let carry = 0;
  let bit = 0;
  for (let i = 0; i < windows; i++) {
    const first = table + (i * half - 1) * ENTRY;
    for (let level = levels - 1; level >= 0; level--) {
      let digit = ((load<i32>(SCALAR + (bit >> 3)) >> (bit & 7)) & mask) + carry;
      bit += width;
      carry = (digit > half) as i32;
      digit -= carry << width;
      const entry = ((first + abs(digit) * ENTRY) | ((digit < 0) as usize)) as u32;
      store<u32>(list + (level * windows + i) * VECTOR, digit === 0 ? (NEUTRAL as u32) : entry);
    }
  }
}

// ---- the challenge

/** The hash input, with room for padding: a line has at most 65,535 bytes. */
export const input = memory.data(66048 + 256, 16);
export const hash = memory.data(64, 16);
const STATE = memory.data(64, 16);
const SCHEDULE = memory.data(128, 16);
/** 21 bits in each of 64: 2^252 is the twelfth's 1. */
const DIGIT = memory.data(25 * 8, 16);

/** h = SHA-512(R ‖ A ‖ message) mod L into a slot with its R. All of the input, `length` bytes, but R MUST be in place. */
export function challenge(index: i32, length: i32, table: u32): void {
  memory.copy(input, slots + index * SLOT, 32);
  const end = (length + 17 + 127) & ~127;
  memory.fill(input + length, 0, end - length);
  store<u8>(input + length, 0x80);
  store<u64>(input + end - 8, bswap<u64>((length as u64) << 3));
  memory.copy(STATE, INITIAL_HASH, 64);
  for (let at: usize = 0; at < (end as usize); at += 128) addBlock(input + at);
  for (let i: usize = 0; i < 64; i += 8) store<u64>(hash + i, bswap<u64>(load<u64>(STATE + i)));
  takeHash(index, table);
}

/** {@link challenge} from a hash made by the host. */
export function takeHash(index: i32, table: u32): void {
  const slot = slots + index * SLOT;
  store<u32>(slot, table, TABLE_OFFSET);
  reduceScalar(slot + H_OFFSET, hash);
}

const RUNNING = memory.data(64, 16);

function addBlock(block: usize): void {
  for (let i: usize = 0; i < 128; i += 8) store<u64>(SCHEDULE + i, bswap<u64>(load<u64>(block + i)));
  memory.copy(RUNNING, STATE, 64);
  for (let i: usize = 0; i < 640; i += 128) sixteenRounds(RUNNING, SCHEDULE, ROUND_CONSTANTS + i);
  for (let i: usize = 0; i < 64; i += 8) store<u64>(STATE + i, load<u64>(STATE + i) + load<u64>(RUNNING + i));
}

function digit(i: i32): i64 {
  return load<i64>(DIGIT + 8 * i);
}

function addToDigit(i: i32, value: i64): void {
  store<i64>(DIGIT + 8 * i, digit(i) + value);
}

/** 2^252 = L − 27742317777372353535851937790883648493 */
function foldDigit(i: i32): void {
  const value = digit(i);
  store<i64>(DIGIT + 8 * i, 0);
  addToDigit(i - 12, value * 666643);
  addToDigit(i - 11, value * 470296);
  addToDigit(i - 10, value * 654183);
  addToDigit(i - 9, value * -997805);
  addToDigit(i - 8, value * 136657);
  addToDigit(i - 7, value * -683901);
}

function carryDigits(last: i32, rounding: i64): void {
  for (let i = 0; i <= last; i++) {
    const carry = (digit(i) + rounding) >> 21;
    addToDigit(i + 1, carry);
    addToDigit(i, -(carry << 21));
  }
}

/** Reduces 64 bytes, little-endian, modulo L to 32 bytes, below 2^253. */
function reduceScalar(to: usize, bytes: usize): void {
  for (let i = 0; i < 24; i++) {
    const bit = 21 * i;
    // The last takes the 29 bits that are left.
    const word = i < 22 ? load<u64>(bytes + (bit >> 3)) : load<u64>(bytes + 56) >> (8 * ((bit >> 3) - 56));
    store<i64>(DIGIT + 8 * i, ((word >> (bit & 7)) & (i < 23 ? 0x1fffff : 0x1fffffff)) as i64);
  }
  store<i64>(DIGIT + 8 * 24, 0);
  for (let i = 23; i >= 18; i--) foldDigit(i);
  carryDigits(16, 1 << 20);
  for (let i = 17; i >= 12; i--) foldDigit(i);
  carryDigits(11, 1 << 20);
  foldDigit(12);
  carryDigits(11, 0);
  foldDigit(12);
  carryDigits(10, 0);
  if (digit(11) < 0) {
    // Plus L.
    store<i64>(DIGIT + 8 * 12, -1);
    foldDigit(12);
    addToDigit(11, 1 << 21);
    carryDigits(10, 0);
  }
  memory.fill(to, 0, 32);
  for (let i = 0; i < 12; i++) {
    const bit = 21 * i;
    const at = to + min(bit >> 3, 24);
    const shift = bit - 8 * min(bit >> 3, 24);
    store<u64>(at, load<u64>(at) | ((digit(i) as u64) << shift));
  }
}

/** The base point, as RFC 8032 encodes it. */
export const basePoint: usize = NUMBERS + 192;

/** The first address for tables. */
export function heapBase(): usize {
  return (__heap_base + 63) & ~63;
}
