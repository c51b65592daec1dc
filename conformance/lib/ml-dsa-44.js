/**
 * Signatures of pure ML-DSA-44 with an empty context (FIPS 204, algorithms 3 and 8): Node's own crypto has them from 24 on only.
 * Products of two residues stay below 2^46, so numbers hold them exactly.
 */

import { createHash } from 'node:crypto';

const Q = 8_380_417;
const N = 256;
const ROWS = 4;
const GAMMA1 = 2 ** 17;
const GAMMA2 = (Q - 1) / 88;
const BOUND = GAMMA1 - 78;
const TAU = 39;
const HINTS = 80;
const CHALLENGE_BYTES = 32;
const Z_BYTES = 576;
const T_BYTES = 320;
const T_SHIFT = 2 ** 13;
const KEY_BYTES = 1_312;
const SIGNATURE_BYTES = 2_420;
/** 256^-1 mod Q. */
const INVERSE_N = 8_347_681;

const ZETAS = Array.from({ length: N }, (_, index) => {
  let [exponent, result, base] = [0, 1, 1_753];
  for (let bit = 0; bit < 8; bit += 1) exponent |= ((index >> bit) & 1) << (7 - bit);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = (result * base) % Q;
    base = (base * base) % Q;
  }
  return result;
});

/** Whether a signature of 2,420 bytes is right by a public key of 1,312 bytes. */
export function isRightMlDsa44(key, message, signature) {
  if (key.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  const challenge = signature.subarray(0, CHALLENGE_BYTES);
  const z = [];
  for (let row = 0; row < ROWS; row += 1) {
    const from = CHALLENGE_BYTES + row * Z_BYTES;
    z.push(unpack(signature.subarray(from, from + Z_BYTES), 18).map((value) => GAMMA1 - value));
  }
  if (z.flat().some((value) => Math.abs(value) >= BOUND)) return false;
  const hints = readHints(signature.subarray(CHALLENGE_BYTES + ROWS * Z_BYTES));
  if (hints === undefined) return false;
  const mu = shake('shake256', 64, shake('shake256', 64, key), Buffer.of(0, 0), message);
  const c = transform(toBall(challenge));
  const transformed = z.map((row) => transform(row.map((value) => (value + Q) % Q)));
  const packed = [];
  for (let row = 0; row < ROWS; row += 1) {
    const from = 32 + row * T_BYTES;
    const t = transform(unpack(key.subarray(from, from + T_BYTES), 10).map((value) => value * T_SHIFT));
    const sum = t.map((value, index) => Q - ((c[index] * value) % Q));
    for (let column = 0; column < ROWS; column += 1) {
      const a = uniform(key.subarray(0, 32), column, row);
      for (let index = 0; index < N; index += 1)
        sum[index] = (sum[index] + a[index] * transformed[column][index]) % Q;
    }
    packed.push(pack(inverse(sum).map((value, index) => highBits(value, hints[row].has(index)))));
  }
  return shake('shake256', CHALLENGE_BYTES, mu, ...packed).equals(challenge);
}

function shake(name, outputLength, ...parts) {
  const hash = createHash(name, { outputLength });
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Numbers of so many bits each, the lowest bit first. */
function unpack(bytes, width) {
  return Array.from({ length: N }, (_, index) => {
    let value = 0;
    for (let bit = 0; bit < width; bit += 1) {
      const at = index * width + bit;
      value |= ((bytes[at >> 3] >> (at & 7)) & 1) << bit;
    }
    return value;
  });
}

/** Numbers of six bits each. */
function pack(values) {
  const bytes = Buffer.alloc((N * 6) / 8);
  for (const [index, value] of values.entries())
    for (let bit = 0; bit < 6; bit += 1) {
      const at = index * 6 + bit;
      bytes[at >> 3] |= ((value >> bit) & 1) << (at & 7);
    }
  return bytes;
}

/** The places of each row's hints; undefined for another form than the one that there is of them. */
function readHints(bytes) {
  const rows = [];
  let from = 0;
  for (let row = 0; row < ROWS; row += 1) {
    const end = bytes[HINTS + row];
    if (end < from || end > HINTS) return undefined;
    const places = [...bytes.subarray(from, end)];
    if (places.some((place, index) => index > 0 && place <= places[index - 1])) return undefined;
    rows.push(new Set(places));
    from = end;
  }
  return bytes.subarray(from, HINTS).some((byte) => byte !== 0) ? undefined : rows;
}

/** A polynomial of the matrix. */
function uniform(seed, column, row) {
  // 256 of 512 draws, of which one in a thousand is not used.
  const drawn = shake('shake128', 3 * 512, seed, Buffer.of(column, row));
  const values = [];
  for (let at = 0; values.length < N; at += 3) {
    const value = drawn[at] | (drawn[at + 1] << 8) | ((drawn[at + 2] & 0x7f) << 16);
    if (value < Q) values.push(value);
  }
  return values;
}

/** The challenge: 39 coefficients of 1 or -1. */
function toBall(seed) {
  const drawn = shake('shake256', 1_024, seed);
  const values = new Array(N).fill(0);
  let at = 8;
  for (let index = N - TAU; index < N; index += 1) {
    while (drawn[at] > index) at += 1;
    const place = drawn[at];
    at += 1;
    const sign = index - (N - TAU);
    values[index] = values[place];
    values[place] = (drawn[sign >> 3] >> (sign & 7)) & 1 ? Q - 1 : 1;
  }
  return values;
}

function highBits(value, isHinted) {
  let low = value % (2 * GAMMA2);
  if (low > GAMMA2) low -= 2 * GAMMA2;
  const isTop = value - low === Q - 1;
  const high = isTop ? 0 : (value - low) / (2 * GAMMA2);
  if (!isHinted) return high;
  return (high + (low - (isTop ? 1 : 0) > 0 ? 1 : 43)) % 44;
}

function transform(values) {
  const w = [...values];
  let zeta = 0;
  for (let size = N / 2; size >= 1; size /= 2) {
    for (let from = 0; from < N; from += 2 * size) {
      zeta += 1;
      for (let index = from; index < from + size; index += 1) {
        const term = (ZETAS[zeta] * w[index + size]) % Q;
        w[index + size] = (w[index] - term + Q) % Q;
        w[index] = (w[index] + term) % Q;
      }
    }
  }
  return w;
}

function inverse(values) {
  const w = [...values];
  let zeta = N;
  for (let size = 1; size < N; size *= 2) {
    for (let from = 0; from < N; from += 2 * size) {
      zeta -= 1;
      for (let index = from; index < from + size; index += 1) {
        const [a, b] = [w[index], w[index + size]];
        w[index] = (a + b) % Q;
        w[index + size] = (ZETAS[zeta] * ((b - a + Q) % Q)) % Q;
      }
    }
  }
  return w.map((value) => (value * INVERSE_N) % Q);
}
