/** The index of ids does what a Map does, in time that no choice of ids can make long. */

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openScratchFile } from '../../src/log/fs/scratch-file.js';
import { IdIndex } from '../../src/rules/verify/id-index.js';

const idOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const hashed = (text: string): string => createHash('sha256').update(text).digest('base64url');

describe('ids', () => {
  test('are found by the ordinals in which they were added', () => {
    const id = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(idOf);
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 50 }), fc.array(id, { maxLength: 20 }), (ids, others) => {
        const index = new IdIndex();
        ids.forEach((each, ordinal) => {
          expect(index.find(each)).toBe(-1);
          expect(index.add(each)).toBe(ordinal);
        });
        expect(index.size).toBe(ids.length);
        for (const each of [...ids, ...others]) expect(index.find(each)).toBe(ids.indexOf(each));
      }),
    );
  });

  test('are not added twice', () => {
    const index = new IdIndex();
    index.add(hashed('a'));
    expect(() => index.add(hashed('a'))).toThrow(RangeError);
    expect(index.size).toBe(1);
  });

  test('that differ in their last bits only are different', () => {
    const index = new IdIndex();
    const ids = [0, 1, 2, 255].map((last) => idOf(Uint8Array.of(...new Uint8Array(31), last)));
    ids.forEach((id, ordinal) => expect(index.add(id)).toBe(ordinal));
    ids.forEach((id, ordinal) => expect(index.find(id)).toBe(ordinal));
  });

  test('are kept across growth, and when saved and taken up again', () => {
    const count = 5_000;
    const index = new IdIndex();
    for (let n = 0; n < count; n += 1) index.add(hashed(String(n)));
    const restored = new IdIndex(index.save());
    for (const each of [index, restored]) {
      for (let n = 0; n < count; n += 1) expect(each.find(hashed(String(n)))).toBe(n);
      expect(each.find(hashed('another'))).toBe(-1);
    }
    expect(restored.add(hashed('another'))).toBe(count);
    expect(index.find(hashed('another'))).toBe(-1);
  });

  test('are not changed where they were saved, whatever becomes of the index', () => {
    const [kept, count] = [9_000, 20_000];
    const index = new IdIndex();
    for (let n = 0; n < kept; n += 1) index.add(hashed(String(n)));
    const saved = Uint32Array.from(index.save().flatMap((part) => [...part]));
    const restored = new IdIndex([saved]);
    const before = saved.slice();
    restored.bound({ ids: () => 5_000, open: openScratchFile });
    for (let n = kept; n < count; n += 1) restored.add(hashed(String(n)));
    for (let n = 0; n < count; n += 1) expect(restored.find(hashed(String(n)))).toBe(n);
    expect(saved).toEqual(before);
    restored.close();
  });
});

/** 100,000 ids that an adversary has chosen to be alike. */
describe('ids that are alike', () => {
  const count = 100_000;
  const counter = (bytes: Uint8Array, at: number, n: number): string => {
    Buffer.from(bytes.buffer).writeUInt32BE(n, at);
    return idOf(bytes);
  };
  test.each([
    ['in their first four bytes', (n: number) => `AAAAAA${hashed(String(n)).slice(6)}`],
    ['in all but their last four', (n: number) => counter(new Uint8Array(32), 28, n)],
    ['in all but their first four', (n: number) => counter(new Uint8Array(32), 0, n)],
    [
      'in the sum of their words',
      (n: number) => {
        const bytes = new Uint8Array(32);
        counter(bytes, 4, n);
        return counter(bytes, 20, n);
      },
    ],
  ])('%s cost no more than others', (_, makeId) => {
    // Milliseconds of the processor: what else the machine does is not counted.
    const time = (make: (n: number) => string): number => {
      const ids = Array.from({ length: count }, (_each, n) => make(n));
      const index = new IdIndex();
      const start = process.cpuUsage();
      for (const id of ids) index.add(id);
      for (const id of ids) index.find(id);
      expect(index.size).toBe(count);
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1_000;
    };
    const usual = time((n) => hashed(String(n)));
    // If they met in one place each would pass by all before it: a thousand times as long and more.
    expect(time(makeId)).toBeLessThan(20 * usual + 200);
  });
});
