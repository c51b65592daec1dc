import { expect, it } from 'vitest';
import { withoutTrailing } from '../../src/base/bytes/trim.js';
import { inTime } from '../in-time.js';

it.each([
  ['', ''],
  ['/', ''],
  ['a', 'a'],
  ['/a//', '/a'],
  ['//a/b', '//a/b'],
])('%j without trailing slashes is %j', (text, expected) => {
  expect(withoutTrailing(text, '/')).toBe(expected);
});

it('costs no more than the length of the text', () => {
  const text = `${'/'.repeat(4_000_000)}x`;
  expect(inTime(() => withoutTrailing(text, '/'))).toBe(text);
});
