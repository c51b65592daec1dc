/** `packed-table.ts` against a Map, which it is but for what is set again: that comes last. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sha256Digest } from '../../src/value/digest.js';
import { PackedTable } from '../../src/verify/packed-table.js';

const IDS = Array.from({ length: 7_000 }, (_, n) => sha256Digest(Buffer.from(String(n))).b64);
const idOf = (n: number): string => IDS[n] ?? '';
const bytesOf = (n: number, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (n * 31 + index) % 256);
const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('latin1');

class Model {
  readonly table = new PackedTable();
  readonly map = new Map<string, string>();

  set(n: number, bytes: Uint8Array): void {
    this.map.delete(idOf(n));
    this.map.set(idOf(n), text(bytes) ?? '');
    this.table.set(idOf(n), bytes);
  }

  delete(n: number): void {
    expect(this.table.delete(idOf(n))).toBe(this.map.delete(idOf(n)));
  }

  check(ids: number): void {
    expect(this.table.size).toBe(this.map.size);
    const entries = Array.from(this.table.entries(), ([id, bytes]) => [
      Buffer.from(id).toString('base64url'),
      text(bytes),
    ]);
    expect(entries).toEqual([...this.map]);
    for (let n = 0; n < ids; n += 1) {
      if (text(this.table.get(idOf(n))) !== this.map.get(idOf(n))) expect.fail(`another value of ${n}`);
    }
  }
}

test('gives what was put in, in that order', () => {
  const step = fc.record({
    n: fc.nat(60),
    length: fc.oneof(fc.nat(9), fc.nat(400), fc.constantFrom(262_000, 300_000)),
    isSet: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const model = new Model();
      for (const { n, length, isSet } of steps) {
        if (isSet) model.set(n, bytesOf(n, length));
        else model.delete(n);
      }
      model.check(61);
    }),
    { numRuns: 60 },
  );
});

test('gives room back, whatever stays', () => {
  const held = (): number => process.memoryUsage().arrayBuffers;
  for (const stays of [(n: number) => n % 500 === 0, (n: number) => n < 3, () => false]) {
    const model = new Model();
    const before = held();
    for (let round = 0; round < 5; round += 1) {
      for (let n = 0; n < IDS.length; n += 1) {
        if (round > 0 && !stays(n)) model.delete(n);
        if (round < 4 && !(round > 0 && stays(n))) model.set(n, bytesOf(n + round, 180));
      }
    }
    model.check(IDS.length);
    // A round is 1.5 MB: four of them were put in.
    expect(held() - before).toBeLessThan(4.5e6);
  }
});
