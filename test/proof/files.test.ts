/** The files of proofs: read strictly, written as they are read. */

import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64 } from '../../src/base/bytes/encoding.js';
import { formatConsistencyProof, decodeConsistencyProof } from '../../src/proof/consistency-proof.js';
import { MAX_PROOF_BYTES } from '../../src/proof/proof-text.js';
import { decodeTlogProof, formatTlogProof } from '../../src/proof/tlog-proof.js';
import type { Result } from '../../src/base/fault.js';
import { valueOf } from '../value-of.js';

const vectors = new URL('../../../shared/vectors/derived/tlog-proof-parse.json', import.meta.url);

const faultOf = (result: Result<unknown>) => (result.ok ? undefined : result.fault.code);

const HASH = encodeBase64(Buffer.alloc(32, 9));
const NOTE = 'checkpoint\n';

const hashes = fc.array(
  fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  { maxLength: 63 },
);
const note = fc.uint8Array({ maxLength: 100 });

describe('a tlog-proof', () => {
  it('is read as it is written', () => {
    const extra = fc.option(fc.uint8Array({ minLength: 1 }), { nil: undefined });
    fc.assert(
      fc.property(fc.record({ extra, index: fc.maxSafeNat(), hashes, note }), (proof) => {
        const bytes = formatTlogProof(proof);
        expect(valueOf(decodeTlogProof(bytes))).toEqual(proof);
        expect(formatTlogProof(valueOf(decodeTlogProof(bytes)))).toEqual(bytes);
      }),
    );
  });

  const HEAD = 'c2sp.org/tlog-proof@v1\n';

  it.each([
    ['nothing', ''],
    ['a newline', '\n'],
    ['no empty line', `${HEAD}index 0\n`],
    ['no header', `index 0\n\n${NOTE}`],
    ['another version', `c2sp.org/tlog-proof@v2\nindex 0\n\n${NOTE}`],
    ['a space after the header', `c2sp.org/tlog-proof@v1 \nindex 0\n\n${NOTE}`],
    ['a byte order mark', `\ufeff${HEAD}index 0\n\n${NOTE}`],
    ['CRLF', `${HEAD}index 0\n\n${NOTE}`.replaceAll('\n', '\r\n')],
    ['an empty line first', `\n${HEAD}index 0\n\n${NOTE}`],
    ['no index', `${HEAD}\n${NOTE}`],
    ['an index after hashes', `${HEAD}${HASH}\nindex 0\n\n${NOTE}`],
    ['two indices', `${HEAD}index 0\nindex 0\n\n${NOTE}`],
    ['an index of nothing', `${HEAD}index \n\n${NOTE}`],
    ['an index without a space', `${HEAD}index0\n\n${NOTE}`],
    ['two spaces', `${HEAD}index  0\n\n${NOTE}`],
    ['a leading zero', `${HEAD}index 00\n\n${NOTE}`],
    ['a plus', `${HEAD}index +1\n\n${NOTE}`],
    ['a fraction', `${HEAD}index 1.0\n\n${NOTE}`],
    ['2^53', `${HEAD}index 9007199254740992\n\n${NOTE}`],
    ['an index of many digits', `${HEAD}index ${'9'.repeat(100_000)}\n\n${NOTE}`],
    ['extra after the index', `${HEAD}index 0\nextra QQ==\n\n${NOTE}`],
    ['extra twice', `${HEAD}extra QQ==\nextra QQ==\nindex 0\n\n${NOTE}`],
    ['extra of nothing', `${HEAD}extra \nindex 0\n\n${NOTE}`],
    ['extra without a space', `${HEAD}extraQQ==\nindex 0\n\n${NOTE}`],
    ['extra without padding', `${HEAD}extra QQ\nindex 0\n\n${NOTE}`],
    ['extra in base64url', `${HEAD}extra _-__\nindex 0\n\n${NOTE}`],
    ['a hash without padding', `${HEAD}index 0\n${HASH.slice(0, -1)}\n\n${NOTE}`],
    ['a hash with a space', `${HEAD}index 0\n${HASH} \n\n${NOTE}`],
    ['a hash of 31 bytes', `${HEAD}index 0\n${encodeBase64(Buffer.alloc(31))}\n\n${NOTE}`],
    ['too many hashes', `${HEAD}index 0\n${`${HASH}\n`.repeat(64)}\n${NOTE}`],
    ['very many hashes', `${HEAD}index 0\n${`${HASH}\n`.repeat(20_000)}\n${NOTE}`],
  ])('is none: %s', (_what, text) => {
    expect(decodeTlogProof(Buffer.from(text))).toHaveProperty('fault.code', 'PROOF_MALFORMED');
    expect(faultOf(decodeTlogProof(Buffer.from(text)))).toBe('PROOF_MALFORMED');
  });

  it('is refused beyond its bound', () => {
    const head = `${HEAD}index 0\n\n`;
    const whole = Buffer.concat([Buffer.from(head), Buffer.alloc(MAX_PROOF_BYTES - head.length)]);
    expect(decodeTlogProof(whole)).toHaveProperty('value.index', 0);
    expect(decodeTlogProof(Buffer.concat([whole, Buffer.of(0)]))).toHaveProperty(
      'fault.code',
      'PROOF_MALFORMED',
    );
  });

  it.skipIf(!existsSync(vectors))('is what others take for one', () => {
    const { invalid, valid } = JSON.parse(readFileSync(vectors, 'utf8')) as {
      invalid: [string, string][];
      valid: { index: number; hashes: string[]; text: string }[];
    };
    expect(invalid.length).toBeGreaterThan(5);
    for (const [text, why] of invalid) {
      expect(decodeTlogProof(Buffer.from(text)), why).toHaveProperty('fault.code', 'PROOF_MALFORMED');
    }
    expect(valid.length).toBeGreaterThan(0);
    for (const { text, index } of valid) {
      const proof = valueOf(decodeTlogProof(Buffer.from(text)));
      expect(proof).toMatchObject({ index, hashes: [], extra: undefined });
      expect(Buffer.from(proof.note).toString()).toBe(NOTE);
      expect(Buffer.from(formatTlogProof(proof)).toString()).toBe(text);
    }
  });
});

describe("a consistency proof's file", () => {
  it('is read as it is written', () => {
    fc.assert(
      fc.property(fc.record({ oldSize: fc.maxSafeNat(), hashes, note }), (proof) => {
        const bytes = formatConsistencyProof(proof);
        expect(valueOf(decodeConsistencyProof(bytes))).toEqual(proof);
        expect(formatConsistencyProof(valueOf(decodeConsistencyProof(bytes)))).toEqual(bytes);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['no empty line', 'old 1\n'],
    ['no size', `\n\n${NOTE}`],
    ['another word', `new 1\n\n${NOTE}`],
    ['a leading zero', `old 01\n\n${NOTE}`],
    ['a minus', `old -1\n\n${NOTE}`],
    ['2^53', `old 9007199254740992\n\n${NOTE}`],
    ['CRLF', `old 1\r\n\r\n${NOTE}`],
    ['text for a hash', `old 1\nhash\n\n${NOTE}`],
    ['too many hashes', `old 1\n${`${HASH}\n`.repeat(64)}\n${NOTE}`],
    ['a tlog-proof', `c2sp.org/tlog-proof@v1\nindex 0\n\n${NOTE}`],
  ])('is none: %s', (_what, text) => {
    expect(decodeConsistencyProof(Buffer.from(text))).toHaveProperty('fault.code', 'PROOF_MALFORMED');
    expect(faultOf(decodeConsistencyProof(Buffer.from(text)))).toBe('PROOF_MALFORMED');
  });
});
