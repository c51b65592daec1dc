/**
 * The nodes of an RFC 6962 Merkle tree over contiguous hashes: SHA-256 (FIPS 180-4) of four nodes at a time, one in each lane of a vector.
 * Every node has 65 bytes, two blocks.
 */

const HASH_BYTES = 32;
const ROUNDS = 64;
const BLOCK_WORDS = 16;

/** Vectors of a block's schedule, one for each round. */
const SCHEDULE = memory.data(ROUNDS * 16, 16);

/** FIPS 180-4 §4.2.2. */
const ROUND_CONSTANTS = memory.data<u32>(
  [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ],
  16,
);

/** FIPS 180-4 §5.3.3. */
const INITIAL = memory.data<u32>(
  [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19],
  16,
);

/** The chaining value of four hashes. */
const STATE = memory.data(8 * 16, 16);
/** For four nodes: the addresses of their children, and of the results. */
const LEFT = memory.data(4 * 4, 16);
const RIGHT = memory.data(4 * 4, 16);
const TARGET = memory.data(4 * 4, 16);

/** The bits of a node: its prefix and two hashes. */
const NODE_BITS = (1 + 2 * HASH_BYTES) * 8;

/**
 * Computes all perfect subtrees within `count` leaves, the first of which is leaf `ordinal` of the tree (only its lowest bits matter). The
 * node over the leaves [i, i + 2^k), k > 0, goes to place i + 2^(k-1) of `nodes`, a place of its own.
 *
 * @param leaves - The address of the hashes, 32 bytes each.
 * @param nodes - As much room as the leaves take; unused places are unchanged.
 */
export function hashNodes(leaves: usize, count: i32, ordinal: i32, nodes: usize): void {
  for (let half = 1; half < count; half <<= 1) {
    const whole = half << 1;
    const children = half === 1 ? leaves : nodes;
    // The place of an inner node is its middle.
    const middle = half >> 1;
    let first = (whole - (ordinal & (whole - 1))) & (whole - 1);
    let filled = 0;
    for (; first + whole <= count; first += whole) {
      const lane = filled << 2;
      store<u32>(LEFT + lane, children + (first + middle) * HASH_BYTES);
      store<u32>(RIGHT + lane, children + (first + half + middle) * HASH_BYTES);
      store<u32>(TARGET + lane, nodes + (first + half) * HASH_BYTES);
      filled += 1;
      if (filled === 4) {
        hashFour();
        filled = 0;
      }
    }
    if (filled === 0) continue;
    // Unused lanes repeat the last node.
    for (let lane = filled; lane < 4; lane += 1) {
      store<u32>(LEFT + (lane << 2), load<u32>(LEFT + ((filled - 1) << 2)));
      store<u32>(RIGHT + (lane << 2), load<u32>(RIGHT + ((filled - 1) << 2)));
      store<u32>(TARGET + (lane << 2), load<u32>(TARGET + ((filled - 1) << 2)));
    }
    hashFour();
  }
}

/** Hashes 0x01 ‖ left ‖ right of the four nodes in LEFT, RIGHT and TARGET. */
function hashFour(): void {
  for (let i = 0; i < 8; i += 1) {
    v128.store(STATE + (i << 4), v128.load32_splat(INITIAL + (i << 2)));
  }
  const last = i32x4.splat(0xff);
  // The prefix and 31 bytes of the left child: the prefix shifts each word by a byte.
  setWord(0, v128.or(i32x4.shr_u(wordsAt(LEFT, 0), 8), i32x4.splat(0x01000000)));
  for (let i = 1; i < 8; i += 1) setWord(i, wordsAt(LEFT, 4 * i - 1));
  // Its last byte, and the right child.
  const lastOfLeft = v128.and(wordsAt(LEFT, HASH_BYTES - 4), last);
  setWord(8, v128.or(i32x4.shl(lastOfLeft, 24), i32x4.shr_u(wordsAt(RIGHT, 0), 8)));
  for (let i = 1; i < 8; i += 1) setWord(8 + i, wordsAt(RIGHT, 4 * i - 1));
  const lastOfRight = v128.and(wordsAt(RIGHT, HASH_BYTES - 4), last);
  compress();
  // FIPS 180-4 §5.1.1: a bit, zeros, and the length.
  setWord(0, v128.or(i32x4.shl(lastOfRight, 24), i32x4.splat(0x00800000)));
  for (let i = 1; i < BLOCK_WORDS - 1; i += 1) setWord(i, i32x4.splat(0));
  setWord(BLOCK_WORDS - 1, i32x4.splat(NODE_BITS));
  compress();
  for (let i = 0; i < 8; i += 1) {
    const words = swapped(v128.load(STATE + (i << 4)));
    const at = i << 2;
    store<u32>(<usize>load<u32>(TARGET) + at, i32x4.extract_lane(words, 0));
    store<u32>(<usize>load<u32>(TARGET + 4) + at, i32x4.extract_lane(words, 1));
    store<u32>(<usize>load<u32>(TARGET + 8) + at, i32x4.extract_lane(words, 2));
    store<u32>(<usize>load<u32>(TARGET + 12) + at, i32x4.extract_lane(words, 3));
  }
}

function setWord(i: i32, words: v128): void {
  v128.store(SCHEDULE + (i << 4), words);
}

/** The big-endian words at an offset from four addresses. */
function wordsAt(addresses: usize, offset: i32): v128 {
  let words = i32x4.splat(0);
  words = v128.load_lane<u32>(<usize>load<u32>(addresses) + offset, words, 0);
  words = v128.load_lane<u32>(<usize>load<u32>(addresses + 4) + offset, words, 1);
  words = v128.load_lane<u32>(<usize>load<u32>(addresses + 8) + offset, words, 2);
  words = v128.load_lane<u32>(<usize>load<u32>(addresses + 12) + offset, words, 3);
  return swapped(words);
}

function swapped(words: v128): v128 {
  return i8x16.shuffle(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

function rotated(x: v128, by: i32): v128 {
  return v128.or(i32x4.shr_u(x, by), i32x4.shl(x, 32 - by));
}

/** FIPS 180-4 §6.2.2, the first of the two sums of round `i`, without its working variable `h`. */
function sum1(e: v128, f: v128, g: v128, i: i32): v128 {
  const sigma = v128.xor(v128.xor(rotated(e, 6), rotated(e, 11)), rotated(e, 25));
  const choice = v128.bitselect(f, g, e);
  const constant = v128.load32_splat(ROUND_CONSTANTS + (i << 2));
  return i32x4.add(i32x4.add(sigma, choice), i32x4.add(constant, v128.load(SCHEDULE + (i << 4))));
}

function sum2(a: v128, b: v128, c: v128): v128 {
  const sigma = v128.xor(v128.xor(rotated(a, 2), rotated(a, 13)), rotated(a, 22));
  const majority = v128.bitselect(c, b, v128.xor(a, b));
  return i32x4.add(sigma, majority);
}

/** The compression function, of the 16 words of SCHEDULE into STATE. */
function compress(): void {
  for (let i = BLOCK_WORDS; i < ROUNDS; i += 1) {
    const at = SCHEDULE + (i << 4);
    const x = v128.load(at - 15 * 16);
    const y = v128.load(at - 2 * 16);
    const sigma0 = v128.xor(v128.xor(rotated(x, 7), rotated(x, 18)), i32x4.shr_u(x, 3));
    const sigma1 = v128.xor(v128.xor(rotated(y, 17), rotated(y, 19)), i32x4.shr_u(y, 10));
    const sum = i32x4.add(v128.load(at - 16 * 16), v128.load(at - 7 * 16));
    v128.store(at, i32x4.add(sum, i32x4.add(sigma0, sigma1)));
  }
  let a = v128.load(STATE);
  let b = v128.load(STATE + 16);
  let c = v128.load(STATE + 32);
  let d = v128.load(STATE + 48);
  let e = v128.load(STATE + 64);
  let f = v128.load(STATE + 80);
  let g = v128.load(STATE + 96);
  let h = v128.load(STATE + 112);
  // The variables rotate by one place per round.
  for (let i = 0; i < ROUNDS; i += 8) {
    h = i32x4.add(h, sum1(e, f, g, i));
    d = i32x4.add(d, h);
    h = i32x4.add(h, sum2(a, b, c));
    g = i32x4.add(g, sum1(d, e, f, i + 1));
    c = i32x4.add(c, g);
    g = i32x4.add(g, sum2(h, a, b));
    f = i32x4.add(f, sum1(c, d, e, i + 2));
    b = i32x4.add(b, f);
    f = i32x4.add(f, sum2(g, h, a));
    e = i32x4.add(e, sum1(b, c, d, i + 3));
    a = i32x4.add(a, e);
    e = i32x4.add(e, sum2(f, g, h));
    d = i32x4.add(d, sum1(a, b, c, i + 4));
    h = i32x4.add(h, d);
    d = i32x4.add(d, sum2(e, f, g));
    c = i32x4.add(c, sum1(h, a, b, i + 5));
    g = i32x4.add(g, c);
    c = i32x4.add(c, sum2(d, e, f));
    b = i32x4.add(b, sum1(g, h, a, i + 6));
    f = i32x4.add(f, b);
    b = i32x4.add(b, sum2(c, d, e));
    a = i32x4.add(a, sum1(f, g, h, i + 7));
    e = i32x4.add(e, a);
    a = i32x4.add(a, sum2(b, c, d));
  }
  add(0, a);
  add(1, b);
  add(2, c);
  add(3, d);
  add(4, e);
  add(5, f);
  add(6, g);
  add(7, h);
}

function add(i: i32, value: v128): void {
  v128.store(STATE + (i << 4), i32x4.add(v128.load(STATE + (i << 4)), value));
}
