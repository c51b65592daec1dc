/** Batches of signatures: whatever is in them, each verdict is that of the key alone, and where two computations differ there is none. */

import { createHash } from 'node:crypto';

import { Point } from '@noble/ed25519';
import { afterEach, describe, expect, test, vi } from 'vitest';

import type { VerificationKey } from '../../src/format/signature/backend.js';
import { BatchVerifier } from '../../src/fast/signature/batch-verifier.js';
import {
  Ed25519Tables,
  KeyUse,
  LARGE,
  LARGEST,
  MEDIUM,
  SMALL,
} from '../../src/fast/signature/ed25519-tables.js';
import { eventMessage } from '../../src/format/signature/event-signature.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { ed25519Key, p256Key } from '../key/key-samples.js';
import { times } from '../slow.js';

const L = Point.CURVE().n;
const SLOT_BYTES = 128;
/** Of a small table. */
const SMALL_BYTES = 8 * 8 * 96;

interface Party extends Signer {
  readonly key: VerificationKey;
}

function makeParty(name: number | string): Party {
  const signer = createSigner(ed25519Key(createHash('sha256').update(`${name}`).digest()));
  return { ...signer, key: nodeBackend.importKey(signer.publicKey) };
}

const parties = Array.from({ length: 24 }, (_, i) => makeParty(i));
const [alice, bob] = parties as [Party, Party];
const event = (i: number): Uint8Array => Buffer.from(`{"n":${i}}`);
const signEvent = (signer: Signer, bytes: Uint8Array): Uint8Array => signer.sign(eventMessage(bytes));

function littleEndian(value: bigint): Uint8Array {
  return new Uint8Array(Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse());
}

function number(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  const flipped = new Uint8Array(bytes);
  flipped[bit >> 3] ^= 1 << (bit & 7);
  return flipped;
}

/** Adds signatures of events, each by its party; gives the verdicts. */
function verdictsOf(verifier: BatchVerifier, signed: readonly [Party, Uint8Array, Uint8Array][]): number[] {
  signed.forEach(([{ key }, bytes, signature], i) => expect(verifier.add(key, bytes, signature)).toBe(i));
  return [...verifier.flush()];
}

describe('a batch', () => {
  test.each([0, 1, 2, 3, 4, 5, 7, 255, 256, 257, 600])('of %i has a verdict for each, in order', (count) => {
    const verifier = new BatchVerifier({ uses: 0 });
    for (let round = 0; round < 2; round++) {
      const signed = Array.from({ length: count }, (_, i): [Party, Uint8Array, Uint8Array] => {
        const party = parties[i % 3];
        const signature = signEvent(party, event(i));
        return [party, event(i), i % 5 === 2 ? flip(signature, 256 + (i % 250)) : signature];
      });
      expect(verdictsOf(verifier, signed)).toEqual(signed.map((_, i) => Number(i % 5 !== 2)));
    }
    expect(verifier.flush()).toHaveLength(0);
    expect(verifier.decidedByTables).toBeGreaterThanOrEqual(count);
  });

  test('has one refused signature wherever it stands', () => {
    const verifier = new BatchVerifier({ uses: 0 });
    const signatures = Array.from({ length: 13 }, (_, i) => signEvent(alice, event(i)));
    for (let bad = 0; bad < signatures.length; bad++) {
      const signed = signatures.map((signature, i): [Party, Uint8Array, Uint8Array] => [
        alice,
        event(i === bad ? 99 : i),
        signature,
      ]);
      expect(verdictsOf(verifier, signed)).toEqual(signed.map((_, i) => Number(i !== bad)));
    }
  });

  test('refuses signatures of another key, of another domain and of other lengths', () => {
    const verifier = new BatchVerifier({ uses: 0 });
    const bytes = event(1);
    const signature = signEvent(alice, bytes);
    const cases: [Party, Uint8Array, number][] = [
      [alice, signature, 1],
      [bob, signature, 0],
      [alice, signEvent(bob, bytes), 0],
      [alice, alice.sign(bytes), 0],
      [alice, signature.subarray(0, 63), 0],
      [alice, Buffer.concat([signature, Buffer.alloc(1)]), 0],
      [alice, new Uint8Array(0), 0],
    ];
    const signed = cases.map(([party, sig]): [Party, Uint8Array, Uint8Array] => [party, bytes, sig]);
    expect(verdictsOf(verifier, signed)).toEqual(cases.map(([, , expected]) => expected));
  });

  test('may mix algorithms, unusable keys, events and messages', () => {
    const signer = createSigner(p256Key(Buffer.alloc(32, 7)));
    const p256 = { ...signer, key: nodeBackend.importKey(signer.publicKey) };
    const unusable = nodeBackend.importKey({ ...alice.publicKey, bytes: Buffer.alloc(32) });
    const verifier = new BatchVerifier({ uses: 0 });
    for (let round = 0; round < 3; round++) {
      verifier.add(alice.key, event(1), signEvent(alice, event(1)));
      verifier.add(p256.key, event(1), signEvent(p256, event(1)));
      verifier.add(p256.key, event(2), signEvent(p256, event(1)));
      verifier.addMessage(alice.key, event(1), alice.sign(event(1)));
      verifier.add(unusable, event(1), signEvent(alice, event(1)));
      verifier.addMessage(alice.key, event(1), signEvent(alice, event(1)));
      verifier.add(bob.key, event(1), signEvent(bob, event(1)));
      expect([...verifier.flush()]).toEqual([1, 1, 0, 1, 0, 0, 1]);
    }
  });

  test('takes messages of every length about the blocks of SHA-512, and events as large as a line', () => {
    const verifier = new BatchVerifier({ uses: 0, sample: Infinity });
    const all = Buffer.alloc(70_000, 'abc');
    const lengths = [...Array(400).keys(), 9_999, 10_000, 65_534, 65_535, 65_536, 65_537, 70_000];
    for (const length of lengths) {
      const bytes = all.subarray(0, length);
      verifier.add(alice.key, bytes, signEvent(alice, bytes));
      verifier.addMessage(alice.key, bytes, alice.sign(bytes));
    }
    expect([...verifier.flush()]).toEqual(lengths.flatMap(() => [1, 1]));
    // The two that are longer are not by tables, and neither is the first batch of large windows.
    expect(verifier.decidedByTables).toBe(2 * lengths.length - 4);
  });

  test('needs no tables for keys that are seldom used', () => {
    const verifier = new BatchVerifier();
    for (const party of parties.slice(0, 10)) {
      for (let i = 0; i < 6; i++) verifier.add(party.key, event(i), signEvent(party, event(i)));
    }
    expect(verifier.flush()).not.toContain(0);
    for (let i = 0; i < 70; i++) verifier.add(alice.key, event(i), signEvent(alice, event(i)));
    verifier.add(parties[20].key, event(0), signEvent(parties[20], event(0)));
    expect(verifier.flush()).not.toContain(0);
    expect(verifier.decidedByTables).toBe(70);
  });
});

describe('the memory of tables', () => {
  test.each([2 ** 21, 3 * 2 ** 20, 2 ** 23])(
    'stays within %i bytes, whatever keys come and go',
    (tableBytes) => {
      const tables = Ed25519Tables.tryCreate(tableBytes, 1)!;
      const keys = Array.from({ length: 200 }, (_, i) => new KeyUse(parties[i % 24].publicKey.bytes));
      for (let round = 1; round <= 6; round++) {
        for (const key of keys) {
          tables.use(key, 1 + ((keys.indexOf(key) * 31) % (40 * round)));
          expect(tables.memory.length).toBeLessThanOrEqual(tableBytes);
        }
      }
      const held = new Set<number>();
      for (const { table } of keys) {
        if (table === undefined) continue;
        const units = table.windows === LARGE ? 64 : table.windows === MEDIUM ? 22 : 1;
        for (let unit = 0; unit < units; unit++) {
          const address = table.address + unit * SMALL_BYTES;
          expect(held.has(address)).toBe(false);
          held.add(address);
          expect(address + SMALL_BYTES).toBeLessThanOrEqual(tables.memory.length);
        }
      }
      expect(held.size).toBeGreaterThan(0);
    },
  );

  test('goes to the keys that are used most', () => {
    // Two slabs of keys, of 64 small tables each.
    const tables = Ed25519Tables.tryCreate(2 ** 21, 8)!;
    const keys = Array.from({ length: 129 }, (_, i) => new KeyUse(parties[i % 24].publicKey.bytes));
    const late = keys.pop()!;
    const held = (): number => keys.filter(({ table }) => table !== undefined).length;
    for (const key of keys) tables.use(key, 20);
    expect(held()).toBe(128);
    tables.use(late, 15);
    tables.use(late, 15);
    expect([held(), late.table]).toEqual([128, undefined]);
    tables.use(late, 30);
    expect([held(), late.table?.windows]).toEqual([127, SMALL]);
    tables.use(late, 500);
    expect([held(), late.table?.windows]).toEqual([127, SMALL]);
    // Twice as much as all that share the slab that it takes.
    tables.use(late, 2_000);
    expect([held(), late.table?.windows]).toEqual([63, LARGE]);
    // What it left is free.
    const lost = keys.find(({ table }) => table === undefined)!;
    tables.use(lost, 1);
    expect(lost.table?.windows).toBe(SMALL);
    // What was used long ago counts less.
    for (let i = 0; i < 12; i++) for (const key of keys) tables.use(key, 65_536 / 16);
    expect(late.table).toBeUndefined();
  });

  test('gives right verdicts while tables are dropped and made again', () => {
    const verifier = new BatchVerifier({ tableBytes: 2 ** 21, uses: 1, sample: Infinity });
    for (let round = 0; round < 24; round++) {
      const [party, other] = [parties[round], parties[(7 * round) % 24]];
      const signed = Array.from({ length: 120 }, (_, i): [Party, Uint8Array, Uint8Array] => {
        const by = i % 4 === 0 ? other : party;
        const signature = signEvent(by, event(i));
        return [by, event(i), i % 9 === 4 ? flip(signature, 300) : signature];
      });
      expect(verdictsOf(verifier, signed)).toEqual(signed.map((_, i) => Number(i % 9 !== 4)));
    }
    expect(verifier.decidedByTables).toBeGreaterThan(24 * 60);
  });

  test.each([0, 2 ** 20])('of %i bytes leaves all to the backend', (tableBytes) => {
    const verifier = new BatchVerifier({ tableBytes, uses: 0 });
    verifier.add(alice.key, event(1), signEvent(alice, event(1)));
    verifier.add(alice.key, event(2), signEvent(alice, event(1)));
    expect([...verifier.flush()]).toEqual([1, 0]);
    expect(verifier.decidedByTables).toBe(0);
  });
});

describe('the sum', () => {
  /** Whether tables say that [s]B − [h]A is the point, for the widest and the narrowest windows. */
  function holds(tables: Ed25519Tables, use: KeyUse, s: bigint, h: bigint, r: Uint8Array): boolean {
    const { value: slots } = tables.exports.slots;
    const { windows, address } = use.table!;
    // In the second lane, behind one of a signature.
    for (const slot of [slots, slots + SLOT_BYTES]) {
      tables.memory.set(r, slot);
      tables.memory.set(littleEndian(s), slot + 32);
      tables.memory.set(littleEndian(h), slot + 64);
      new DataView(tables.memory.buffer).setUint32(slot + 96, address, true);
    }
    const [first, second] = tables.verify(2, windows);
    expect(first).toBe(second);
    return first === 1;
  }

  test.each([
    { name: 'small', uses: 1, windows: SMALL, base: 8 },
    { name: 'medium', uses: 100, windows: MEDIUM, base: 8 },
    { name: 'large', uses: 1_100, windows: LARGE, base: 8 },
    { name: 'large with the largest of the base point', uses: 5_000, windows: LARGE, base: 11 },
    { name: 'largest', uses: 20_000, windows: LARGEST, base: 11 },
  ])('is right at the edges of its digits: $name', ({ uses, windows, base }) => {
    const tables = Ed25519Tables.tryCreate(2 ** 26, 1)!;
    const use = new KeyUse(alice.publicKey.bytes);
    tables.use(use, uses);
    for (let i = 0; i < 2; i++) tables.use(use, 0);
    expect(use.table?.windows).toBe(windows);
    expect(tables.base.windows.width).toBe(base);
    const A = Point.fromBytes(alice.publicKey.bytes);
    const edges = [0n, 1n, 2n, L - 1n, L - 2n, 2n ** 252n, 2n ** 252n - 1n, 2n ** 252n + 1n];
    for (const width of [4, 8, 11]) {
      // Every window at its half, one above it and one below, and full.
      for (const digit of [2 ** (width - 1), 2 ** (width - 1) + 1, 2 ** (width - 1) - 1, 2 ** width - 1]) {
        let value = 0n;
        for (let bit = 0; bit < 252; bit += width) value |= BigInt(digit) << BigInt(bit);
        edges.push(value % 2n ** 252n);
      }
    }
    for (const s of edges) {
      for (const h of edges.slice(0, 12)) {
        const r = Point.BASE.multiplyUnsafe(s).subtract(A.multiplyUnsafe(h)).toBytes();
        expect(holds(tables, use, s, h, r)).toBe(true);
        expect(holds(tables, use, s, h, flip(r, Number((s + h) % 256n)))).toBe(false);
      }
    }
  });

  test('is of the challenge that SHA-512 gives, of messages of any length', () => {
    const { exports, memory } = Ed25519Tables.tryCreate(2 ** 22, 1)!;
    const [input, slot] = [exports.input.value, exports.slots.value];
    for (const length of [...Array(300).keys(), 1_500, 65_535, 65_700]) {
      // What is hashed begins with R, which is taken from the slot.
      const bytes = createHash('shake256', { outputLength: length + 32 })
        .update(`${length}`)
        .digest();
      memory.set(bytes.subarray(0, 32), slot);
      memory.set(bytes.subarray(32), input + 32);
      exports.challenge(0, bytes.length, 0);
      const hash = number(createHash('sha512').update(bytes).digest());
      expect(number(memory.subarray(slot + 64, slot + 96))).toBe(hash % L);
    }
  });

  test('is right where it is the neutral element, or a point is added to itself', () => {
    const tables = Ed25519Tables.tryCreate(2 ** 22, 1)!;
    // The base point as the key: [s]B − [h]B.
    const use = new KeyUse(Point.BASE.toBytes());
    tables.use(use, 1);
    const neutral = Point.ZERO.toBytes();
    for (const s of [0n, 1n, 5n, 2n ** 200n + 77n, L - 1n]) {
      expect(holds(tables, use, s, s, neutral)).toBe(true);
      expect(holds(tables, use, s, (L - s) % L, Point.BASE.multiplyUnsafe((2n * s) % L).toBytes())).toBe(
        true,
      );
      expect(holds(tables, use, s, (s + 1n) % L, neutral)).toBe(false);
    }
  });
});

describe('what verifies one ledger after the other', () => {
  const options = { uses: 3, sample: Infinity, tableBytes: 2 ** 23 };
  const sign = (verifier: BatchVerifier, count: number): Uint8Array => {
    for (let n = 0; n < count; n += 1) verifier.add(alice.key, event(n), signEvent(alice, event(n)));
    return verifier.flush();
  };

  test('gives few keys the table of what is to come at once, and what comes back that of all its uses', () => {
    const tables = Ed25519Tables.tryCreate(2 ** 23, 2)!;
    const [first, second] = [parties[0], parties[1]].map(({ publicKey }) => tables.keyOf(publicKey.bytes));
    tables.use(first, 1, 1_000);
    expect(first.table).toBeUndefined();
    tables.use(first, 1, 1_000);
    tables.use(second, 2);
    expect([first.table?.windows, second.table?.windows]).toEqual([MEDIUM, SMALL]);
    tables.use(second, 600);
    expect(second.table?.windows).toBe(MEDIUM);
    expect(Ed25519Tables.tryShare(2 ** 23, 2)).toBe(tables);
    tables.use(second, 600);
    expect(second.table?.windows).toBe(LARGE);
  });

  test('gives keys of many ledgers tables in the same memory', () => {
    const tables = Ed25519Tables.tryCreate(2 ** 26, 2)!;
    const sizes = Array.from({ length: 64 }, (_, i) => {
      expect(Ed25519Tables.tryShare(2 ** 26, 2)).toBe(tables);
      const key = tables.keyOf(makeParty(`ledger ${i}`).publicKey.bytes);
      tables.use(key, 256, 1_000);
      expect(key.table?.windows).toBe(MEDIUM);
      return tables.memory.length;
    });
    expect(new Set(sizes.slice(32)).size).toBe(1);
  });

  test('has the tables of the one before', () => {
    const first = new BatchVerifier(options);
    expect(sign(first, 100)).not.toContain(0);
    const second = new BatchVerifier(options);
    // The key's uses are counted anew, the table is there.
    expect(sign(second, 1)).toEqual(Uint8Array.of(1));
    expect(second.decidedByTables).toBe(1);
    expect(sign(first, 1)).toEqual(Uint8Array.of(1));
    // With other limits it has its own.
    const other = new BatchVerifier({ ...options, tableBytes: 2 ** 22 });
    sign(other, 1);
    expect(other.decidedByTables).toBe(0);
  });

  test('has none of one that was wrong', () => {
    const first = new BatchVerifier(options);
    sign(first, 100);
    const wrong = new BatchVerifier(options);
    wrong.add({ ...alice.key, verify: () => true }, event(2), signEvent(alice, event(1)));
    expect(() => wrong.flush()).toThrow(/differ/);
    for (const verifier of [first, new BatchVerifier(options)]) {
      const before = verifier.decidedByTables;
      expect(sign(verifier, 2)).toEqual(Uint8Array.of(1, 1));
      expect(verifier.decidedByTables).toBe(before);
    }
  });
});

describe('the guard', () => {
  const lying = (says: boolean): VerificationKey => ({ ...alice.key, verify: () => says });

  test('gives no verdict on what tables accept and the key refuses', () => {
    const verifier = new BatchVerifier({ uses: 0, sample: 1 });
    verifier.add(lying(false), event(1), signEvent(alice, event(1)));
    expect(() => verifier.flush()).toThrow(/differ/);
    // Nor on anything later.
    expect(() => verifier.flush()).toThrow(/differ/);
    verifier.add(alice.key, event(1), signEvent(alice, event(1)));
    expect(() => verifier.flush()).toThrow(/differ/);
  });

  test('gives no verdict on what tables refuse and the key accepts', () => {
    const verifier = new BatchVerifier({ uses: 0, sample: Infinity });
    verifier.add(alice.key, event(1), signEvent(alice, event(1)));
    verifier.add(lying(true), event(2), signEvent(alice, event(1)));
    expect(() => verifier.flush()).toThrow(/differ/);
  });

  test('asks for the first that a table accepts, and for about one of `sample` later', () => {
    let asked = 0;
    const key: VerificationKey = {
      ...alice.key,
      verify: (message, signature) => {
        asked += 1;
        return alice.key.verify(message, signature);
      },
    };
    const signature = signEvent(alice, event(1));
    const count = (sample: number, signatures: number): number => {
      const verifier = new BatchVerifier({ uses: 0, sample });
      asked = 0;
      for (let i = 0; i < signatures; i++) verifier.add(key, event(1), signature);
      expect(verifier.flush()).not.toContain(0);
      return asked;
    };
    expect(count(Infinity, 200)).toBe(1);
    expect(count(1, 200)).toBe(200);
    // 400 expected; at a chance of less than 10^-9 outside of these.
    const some = count(10, 4_000);
    expect(some).toBeGreaterThan(280);
    expect(some).toBeLessThan(520);
  });

  test('finds a table that is damaged', () => {
    const tables = Ed25519Tables.tryCreate(2 ** 22, 1)!;
    const use = new KeyUse(alice.publicKey.bytes);
    tables.use(use, 1);
    const signature = signEvent(alice, event(1));
    tables.load(0, use.table!, signature, event(1), true);
    expect([...tables.verify(1, SMALL)]).toEqual([1]);
    tables.memory.fill(1, use.table!.address, use.table!.address + SMALL_BYTES);
    tables.load(0, use.table!, signature, event(1), true);
    expect([...tables.verify(1, SMALL)]).toEqual([0]);
  });
});

describe('without WebAssembly', () => {
  const { WebAssembly: engine } = globalThis as unknown as { WebAssembly: unknown };
  afterEach(() => {
    Object.assign(globalThis, { WebAssembly: engine });
  });

  class Refused {
    constructor() {
      throw new Error('refused by the content security policy');
    }
  }

  test.each([
    { name: 'which the host lacks', WebAssembly: undefined },
    { name: 'which a policy refuses', WebAssembly: { Module: Refused, Instance: Refused } },
  ])('$name, verdicts are the same', ({ WebAssembly }) => {
    Object.assign(globalThis, { WebAssembly });
    const verifier = new BatchVerifier({ uses: 0 });
    for (let i = 0; i < 20; i++) verifier.add(alice.key, event(i), signEvent(alice, event(i - (i % 2))));
    expect([...verifier.flush()]).toEqual(Array.from({ length: 20 }, (_, i) => 1 - (i % 2)));
    expect(verifier.decidedByTables).toBe(0);
  });
});

test('options outside their bounds are refused', () => {
  for (const options of [
    { tableBytes: -1 },
    { tableBytes: 2 ** 31 + 1 },
    { tableBytes: NaN },
    { sample: 0 },
    { sample: NaN },
    { uses: -1 },
    { uses: NaN },
  ]) {
    expect(() => new BatchVerifier(options)).toThrow(RangeError);
  }
});

/** Mulberry32: the same numbers in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

test('random and altered signatures have the verdict of node:crypto', () => {
  const count = times(2_000, 1_000_000);
  const next = random(0x1207);
  const byWidth = new Map<number, number>();
  const verify = vi.spyOn(Ed25519Tables.prototype, 'verify');
  // Too little for all keys, so that tables come and go; and enough for the largest.
  const verifiers = [2 ** 22, 2 ** 26].map(
    (tableBytes) => new BatchVerifier({ tableBytes, uses: 2, sample: 1 }),
  );
  // The guard asks of each signature, once: what it was told is what is expected.
  let answers: boolean[] = [];
  const keys = parties.map(({ key }): VerificationKey => {
    const verify: VerificationKey['verify'] = (message, signature) => {
      const answer = key.verify(message, signature);
      answers.push(answer);
      return answer;
    };
    return { ...key, verify };
  });
  const randomBytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => next(256));
  let previous: Uint8Array = new Uint8Array(64);
  let [accepted, asked] = [0, 0];
  for (let done = 0; done < count;) {
    // Some keys are used more than others.
    const index = next(1 + next(parties.length));
    const party = parties[index];
    const bytes = randomBytes(next(next(8) === 0 ? 1_500 : 300));
    const verifier = verifiers[next(2)];
    const valid = signEvent(party, bytes);
    const [r, s] = [valid.slice(0, 32), valid.slice(32)];
    const with32 = (first: Uint8Array, second: Uint8Array): Uint8Array =>
      new Uint8Array(Buffer.concat([first, second]));
    const altered: [VerificationKey, Uint8Array, Uint8Array][] = [
      [keys[index], bytes, valid],
      [keys[index], bytes, valid],
      [keys[index], bytes, flip(valid, next(512))],
      [keys[index], bytes.length === 0 ? event(0) : flip(bytes, next(8 * bytes.length)), valid],
      [keys[next(parties.length)], bytes, valid],
      [keys[index], bytes, with32(r, littleEndian(number(s) + L))],
      [keys[index], bytes, with32(r, littleEndian((L - number(s)) % L))],
      [keys[index], bytes, with32(previous.slice(0, 32), s)],
      [keys[index], bytes, with32(r, littleEndian(number(randomBytes(32)) % L))],
      [keys[index], bytes, with32(flip(r, 255), s)],
    ];
    for (const [key, message, signature] of altered) verifier.add(key, message, signature);
    done += altered.length;
    previous = valid;
    const verdicts = [...verifier.flush()];
    for (const [some, { width }] of verify.mock.calls) byWidth.set(width, (byWidth.get(width) ?? 0) + some);
    verify.mockClear();
    expect(verdicts.filter((verdict) => verdict === 1)).toHaveLength(
      answers.filter((answer) => answer).length,
    );
    expect(verdicts.slice(0, 2)).toEqual([1, 1]);
    accepted += verdicts.filter((verdict) => verdict === 1).length;
    asked += answers.length;
    answers = [];
  }
  expect(accepted).toBeGreaterThan(count / 5);
  expect(asked).toBeGreaterThan(0.85 * count);
  for (const { decidedByTables } of verifiers) expect(decidedByTables).toBeGreaterThan(count / 8);
  verify.mockRestore();
  // Keys are used often enough for the largest windows in the long run alone.
  const widths = [SMALL, MEDIUM, LARGE, LARGEST].map(({ width }) => width).slice(0, times(2, 4));
  for (const width of widths) expect(byWidth.get(width)).toBeGreaterThan(count / 100);
  if (widths.length > 2) console.log('signatures by the width of windows:', Object.fromEntries(byWidth));
});
