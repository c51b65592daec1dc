/** What is decoded where it lies is what a strict decoder of the text gives. */

import { expect, test } from 'vitest';
import { decodeDigestAt, decodeSignatureAt, isDigestAt } from '../../src/base/bytes/base64url-at.js';
import { tryDecodeBase64url } from '../../src/base/bytes/encoding.js';
import { makeRandom } from '../ledger/scan-kit.js';

const random = makeRandom(64);
const randomBytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, () => Math.floor(random() * 256));

test('digests of any bytes, and no other text is one', () => {
  for (let n = 0; n < 500; n += 1) {
    const hash = randomBytes(32);
    const text = Buffer.from(`..${Buffer.from(hash).toString('base64url')}"`);
    const target = new Uint8Array(40);
    decodeDigestAt(text, 2, target, 5);
    expect(target.subarray(5, 37)).toEqual(hash);
    expect(isDigestAt(text, 2, target, 5)).toBe(true);
    const at = 2 + Math.floor(random() * 43);
    text[at] = text[at] ^ (1 + Math.floor(random() * 255));
    expect(isDigestAt(text, 2, target, 5)).toBe(false);
  }
});

test('signatures, and every other spelling and every other character is refused', () => {
  const target = new Uint8Array(64);
  for (let n = 0; n < 100; n += 1) {
    const text = Buffer.from(`:${Buffer.from(randomBytes(64)).toString('base64url')}`);
    for (const at of [1, 1 + Math.floor(random() * 86), 85, 86]) {
      const before = text[at];
      for (let byte = 0; byte < 256; byte += 1) {
        text[at] = byte;
        const expected = tryDecodeBase64url(text.subarray(1).toString('latin1'));
        const isDecoded = decodeSignatureAt(text, 1, target);
        // Asserting takes longer than decoding.
        if (isDecoded !== (expected !== undefined) || (expected && Buffer.compare(target, expected) !== 0))
          expect.fail(`${at} ${byte} of ${text.toString('latin1')}`);
      }
      text[at] = before;
    }
  }
});
