/** Lent memory has one borrower at a time, and is lent again. */

import { expect, test } from 'vitest';

import { borrowScratch, giveBackScratch, LentNumbers } from '../../src/base/bytes/lent-scratch.js';

const MIB = 1024 * 1024;

test('what was given back is lent again, to one borrower', () => {
  const bytes = borrowScratch(100_000);
  expect(bytes.length).toBeGreaterThanOrEqual(100_000);
  expect(borrowScratch(100_000)).not.toBe(bytes);
  giveBackScratch(bytes);
  giveBackScratch(bytes);
  expect(borrowScratch(100_000)).toBe(bytes);
  expect(borrowScratch(100_000)).not.toBe(bytes);
});

test('what is larger than a chunk is not kept', () => {
  const bytes = borrowScratch(MIB + 1);
  giveBackScratch(bytes);
  expect(borrowScratch(MIB + 1)).not.toBe(bytes);
});

test('numbers are copied, and are others once more fit', () => {
  const lent = new LentNumbers();
  const first = lent.copy(Int32Array.of(1, -2, 3));
  expect([...first]).toEqual([1, -2, 3]);
  const many = Int32Array.from({ length: 100_000 }, (_, i) => i);
  const second = lent.copy(many);
  expect(second).toEqual(many);
  const other = new LentNumbers();
  other.copy(Int32Array.of(7));
  expect(second[0]).toBe(0);
  lent.giveBack();
  lent.giveBack();
  other.giveBack();
  expect(borrowScratch(4)).not.toBe(borrowScratch(4));
});
