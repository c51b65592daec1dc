/**
 * Generates `unrolled.ts` for `ed25519.ts`: code too long to write by hand and too hot for a loop.
 *
 * A field element is Σ aᵢ·2^(13i) mod p, i < 20, with signed aᵢ of about 13 bits; four of them, one in each lane of 32 bits, lie in ten
 * vectors, vector m with a₂ₘ in the lower and a₂ₘ₊₁ in the upper half of each lane. `i32x4.dot_i16x8_s` of a vector whose halves are
 * swapped and another is then two terms of one column of the product, in four lanes.
 */

const LIMBS = 20;
const PAIRS = LIMBS / 2;
const VECTOR = 16;
const BITS = 13;

/** The offsets of the constants, a vector each, in the order of `constants.ts`. */
const constant = (name) =>
  `v128.load(CONSTANTS, ${VECTOR * ['MASK', 'FOLD', 'HALF', 'HALVES', 'LOWER', 'UPPER_MASK'].indexOf(name)})`;

/** The left factor has the halves of its lanes swapped. */
function left(name, parameters, value) {
  const lines = [`export function ${name}(to: usize, ${parameters}): void {`, '  let v: v128;'];
  for (let m = 0; m < PAIRS; m++) {
    lines.push(`  v = ${value(m * VECTOR)};`);
    lines.push(`  v128.store(to, v128.or(i32x4.shl(v, 16), i32x4.shr_u(v, 16)), ${m * VECTOR});`);
  }
  return [...lines, '}'];
}

/** The right factor is kept from every even limb on (ten vectors) and from every odd one, from limb −1 (eleven). */
function right(name, parameters, value) {
  const lines = [`export function ${name}(to: usize, ${parameters}): void {`];
  for (let m = 0; m < PAIRS; m++) {
    lines.push(`  const v${m} = ${value(m * VECTOR)};`);
    lines.push(`  v128.store(to, v${m}, ${m * VECTOR});`);
    const low = m === 0 ? '' : `i32x4.shr_u(v${m - 1}, 16)`;
    const high = `i32x4.shl(v${m}, 16)`;
    lines.push(`  v128.store(to, ${m === 0 ? high : `v128.or(${low}, ${high})`}, ${(PAIRS + m) * VECTOR});`);
  }
  lines.push(`  v128.store(to, i32x4.shr_u(v${PAIRS - 1}, 16), ${2 * PAIRS * VECTOR});`);
  return [...lines, '}'];
}

/** Terms of a column: pairs [vector of the left factor, offset of the right one's]. */
function column(k) {
  const terms = [];
  for (let i = 0; i < PAIRS; i++) {
    const j = k - 1 - 2 * i;
    if (j < -1 || j > LIMBS - 1) continue;
    terms.push([i, j % 2 === 0 ? (j / 2) * VECTOR : (PAIRS + (j + 1) / 2) * VECTOR]);
  }
  return terms;
}

/**
 * The columns of one parity that are summed at once: neighbours share all but one vector of the right factor, and with the left factor
 * they fit in the registers.
 */
const TILE = 2;
const COLUMNS = 2 * LIMBS - 1;

/** A tile's sums are stored: otherwise the engine computes them late, all at once, and spills registers. */
function tile(columns) {
  const lines = [];
  const seen = new Set();
  const terms = columns.flatMap((k) => column(k).map(([i, offset]) => ({ k, i, offset })));
  for (const offset of new Set(terms.map((term) => term.offset).sort((x, y) => x - y))) {
    const factor = `r${columns[0]}_${offset}`;
    lines.push(`  const ${factor} = v128.load(right, ${offset});`);
    for (const { k, i } of terms.filter((term) => term.offset === offset)) {
      const dot = `i32x4.dot_i16x8_s(a${i}, ${factor})`;
      lines.push(seen.has(k) ? `  c${k} = i32x4.add(c${k}, ${dot});` : `  let c${k} = ${dot};`);
      seen.add(k);
    }
  }
  return [...lines, ...columns.map((k) => `  v128.store(COLUMN, c${k}, ${k * VECTOR});`)];
}

/** Each limb is at most 4,098 away from 0 when those of both factors are at most 8,196: then no sum reaches 2^31. */
function product() {
  const lines = [
    `const COLUMN = memory.data(${COLUMNS * VECTOR}, 16);`,
    'export function product(to: usize, left: usize, right: usize): void {',
  ];
  for (let i = 0; i < PAIRS; i++) lines.push(`  const a${i} = v128.load(left, ${i * VECTOR});`);
  const sum = (k) => `v128.load(COLUMN, ${k * VECTOR})`;
  lines.push(`  const mask = ${constant('MASK')};`, '  let high: v128, u: v128, carry: v128, over: v128;');
  for (let k = 0; k < LIMBS; k++) {
    if (k % (2 * TILE) === 0) {
      for (const first of [k + LIMBS, k + LIMBS + 1, k, k + 1]) {
        const end = first < LIMBS ? LIMBS : COLUMNS;
        const columns = Array.from({ length: TILE }, (_, n) => first + 2 * n).filter((each) => each < end);
        if (columns.length > 0) lines.push(...tile(columns));
      }
    }
    // Of column 20 + k the lower bits fold into column k, what is above them into column k + 1.
    const hasUpper = k < LIMBS - 1;
    if (hasUpper) lines.push(`  high = ${sum(k + LIMBS)};`);
    const folded = !hasUpper
      ? 'over'
      : k === 0
        ? 'v128.and(high, mask)'
        : 'i32x4.add(v128.and(high, mask), over)';
    lines.push(`  u = i32x4.mul(${folded}, ${constant('FOLD')});`);
    if (hasUpper) lines.push(`  over = i32x4.shr_s(high, ${BITS});`);
    // Half a limb is added to each and subtracted again by `store`, which makes the limbs signed.
    lines.push(
      `  u = i32x4.add(u, ${sum(k)});`,
      `  u = i32x4.add(u, ${k === 0 ? constant('HALF') : 'carry'});`,
      `  carry = ${k === LIMBS - 1 ? `i32x4.shr_s(u, ${BITS})` : `i32x4.add(i32x4.shr_s(u, ${BITS}), ${constant('HALF')})`};`,
      '  u = v128.and(u, mask);',
      k < 4 || k % 2 === 0 ? `  const l${k} = u;` : store((k - 1) / 2, `l${k - 1}`, 'u'),
    );
  }
  lines.push(
    `  u = i32x4.add(l0, i32x4.mul(carry, ${constant('FOLD')}));`,
    '  const m0 = v128.and(u, mask);',
    `  u = i32x4.add(l1, i32x4.shr_s(u, ${BITS}));`,
    store(0, 'm0', 'v128.and(u, mask)'),
    // May exceed 13 bits by one or two, or be negative.
    `  u = i32x4.add(l2, i32x4.shr_s(u, ${BITS}));`,
    store(1, `v128.and(u, ${constant('LOWER')})`, 'l3'),
  );
  return [...lines, '}'];
}

function store(m, low, high) {
  const limbs = `v128.or(${low}, i32x4.shl(${high}, 16))`;
  return `  v128.store(to, i16x8.sub(${limbs}, ${constant('HALVES')}), ${m * VECTOR});`;
}

/** Eight words of 32 bits, a number in each lane, to limbs that are not negative, swapped for a left factor or in order. */
function unpack(name, swapped) {
  const words = Array.from({ length: 8 }, (_, i) => `w${i}: v128`).join(', ');
  const lines = [
    '@inline',
    `export function ${name}(to: usize, ${words}): void {`,
    `  const lower = ${constant('MASK')};`,
    `  const upper = ${constant('UPPER_MASK')};`,
    '  let c: v128;',
  ];
  for (let m = 0; m < PAIRS; m++) {
    const bit = 2 * BITS * m;
    const [word, shift] = [bit >>> 5, bit & 31];
    const low = shift === 0 ? `w${word}` : `i32x4.shr_u(w${word}, ${shift})`;
    const spills = shift > 32 - 2 * BITS && word < 7;
    lines.push(`  c = ${spills ? `v128.or(${low}, i32x4.shl(w${word + 1}, ${32 - shift}))` : low};`);
    const halves = swapped
      ? 'v128.or(v128.and(i32x4.shl(c, 16), upper), v128.and(i32x4.shr_u(c, 13), lower))'
      : 'v128.or(v128.and(c, lower), v128.and(i32x4.shl(c, 3), upper))';
    lines.push(`  v128.store(to, ${halves}, ${m * VECTOR});`);
  }
  return [...lines, '}'];
}

const rotate = (x, n) => `rotr<u64>(${x}, ${n})`;

/** Sixteen rounds of SHA-512 (FIPS 180-4 §6.4) on the words at `w`, which become those of the next sixteen. */
function rounds() {
  const names = [...'abcdefgh'];
  const lines = [
    'export function sixteenRounds(state: usize, w: usize, k: usize): void {',
    ...names.map((name, i) => `  let ${name} = load<u64>(state, ${8 * i});`),
    '  let t: u64, s: u64, v: u64, x: u64;',
  ];
  for (let i = 0; i < 16; i++) {
    const [a, b, c, d, e, f, g, h] = names.map((_, n) => names[(n + 16 - i) % 8]);
    const word = (n) => `load<u64>(w, ${8 * ((i + n) % 16)})`;
    lines.push(
      `  v = ${word(0)};`,
      `  t = ${h} + (${rotate(e, 14)} ^ ${rotate(e, 18)} ^ ${rotate(e, 41)}) + (${g} ^ (${e} & (${f} ^ ${g}))) + load<u64>(k, ${8 * i}) + v;`,
      `  ${d} += t;`,
      `  ${h} = t + (${rotate(a, 28)} ^ ${rotate(a, 34)} ^ ${rotate(a, 39)}) + ((${a} & ${b}) | (${c} & (${a} | ${b})));`,
      `  s = ${word(1)};`,
      `  x = ${word(14)};`,
      `  store<u64>(w, v + ${word(9)} + (${rotate('s', 1)} ^ ${rotate('s', 8)} ^ (s >> 7)) + (${rotate('x', 19)} ^ ${rotate('x', 61)} ^ (x >> 6)), ${8 * i});`,
    );
  }
  return [...lines, ...names.map((name, i) => `  store<u64>(state, ${name}, ${8 * i});`), '}'];
}

export function unrolled() {
  const load = (name) => (offset) => `v128.load(${name}, ${offset})`;
  const both = (operation) => (offset) =>
    `i16x8.${operation}(v128.load(a, ${offset}), v128.load(b, ${offset}))`;
  const two = 'a: usize, b: usize';
  return [
    "import { CONSTANTS } from './constants';",
    ...left('toLeft', 'a: usize', load('a')),
    ...left('toLeftSum', two, both('add')),
    ...left('toLeftDifference', two, both('sub')),
    ...right('toRight', 'a: usize', load('a')),
    ...right('toRightSum', two, both('add')),
    ...right('toRightDifference', two, both('sub')),
    ...product(),
    ...unpack('unpackLeft', true),
    ...unpack('unpack', false),
    ...rounds(),
  ].join('\n');
}
