/** Checkpoints and the keys of witnesses: what is read, and what is refused. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64, tryDecodeBase64 } from '../../src/base/bytes/encoding.js';
import { formatCheckpoint, decodeCheckpointText } from '../../src/format/note/checkpoint.js';
import { formatNoteKey, parseNoteKey } from '../../src/format/note/note-key.js';
import { codeOf } from '../key/key-samples.js';

const derived = new URL('../../../shared/vectors/derived/', import.meta.url);
const bodies = new URL('checkpoint-bodies.json', derived);
const vkeys = new URL('cosignature-vkeys.json', derived);

const ROOT = encodeBase64(Buffer.alloc(32, 5));

describe('the text of a checkpoint', () => {
  it('is read as it is written', () => {
    const line = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !text.includes('\n'));
    const checkpoint = fc.record({
      origin: line,
      size: fc.maxSafeNat(),
      root: fc
        .uint8Array({ minLength: 32, maxLength: 32 })
        .map((bytes) => Buffer.from(bytes).toString('latin1')),
      extensions: fc.array(line, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(checkpoint, (given) => {
        expect(decodeCheckpointText(formatCheckpoint(given))).toEqual({ ok: true, value: given });
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['a newline', '\n'],
    ['two lines', 'a\n1\n'],
    ['no origin', `\n1\n${ROOT}\n`],
    ['no final newline', `a\n1\n${ROOT}`],
    ['a leading zero', `a\n01\n${ROOT}\n`],
    ['a plus', `a\n+1\n${ROOT}\n`],
    ['a minus', `a\n-1\n${ROOT}\n`],
    ['a fraction', `a\n1.0\n${ROOT}\n`],
    ['an exponent', `a\n1e3\n${ROOT}\n`],
    ['hexadecimal', `a\n0x10\n${ROOT}\n`],
    ['a space before the size', `a\n 1\n${ROOT}\n`],
    ['no size', `a\n\n${ROOT}\n`],
    ['2^53', `a\n9007199254740992\n${ROOT}\n`],
    ['other digits', `a\n١\n${ROOT}\n`],
    ['a root of 31 bytes', `a\n1\n${encodeBase64(Buffer.alloc(31))}\n`],
    ['a root of 33 bytes', `a\n1\n${encodeBase64(Buffer.alloc(33))}\n`],
    ['a root in hexadecimal', `a\n1\n${'00'.repeat(32)}\n`],
    ['a root without padding', `a\n1\n${ROOT.slice(0, -1)}\n`],
    ['a root with bits left over', `a\n1\n${'A'.repeat(42)}B=\n`],
    ['a space after the root', `a\n1\n${ROOT} \n`],
    ['an empty extension', `a\n1\n${ROOT}\n\n`],
    ['an empty extension before another', `a\n1\n${ROOT}\n\nb\n`],
  ])('is none: %s', (_what, text) => {
    expect(decodeCheckpointText(text)).toHaveProperty('fault.code', 'NOTE_MALFORMED');
  });

  it('is quoted in part only where it is wrong', () => {
    const decoded = decodeCheckpointText(`a\n${'9'.repeat(100_000)}\n${ROOT}\n`);
    expect(decoded.ok ? '' : decoded.fault.actual).toMatch(/^.{1,99}$/);
  });

  it('takes the largest size', () => {
    expect(decodeCheckpointText(`a\n9007199254740991\n${ROOT}\n`)).toHaveProperty('value.size', 2 ** 53 - 1);
  });

  it.skipIf(!existsSync(bodies))('refuses what others refuse', () => {
    const { invalid } = JSON.parse(readFileSync(bodies, 'utf8')) as { invalid: [string, string][] };
    expect(invalid.length).toBeGreaterThan(5);
    for (const [text] of invalid)
      expect(decodeCheckpointText(text)).toHaveProperty('fault.code', 'NOTE_MALFORMED');
  });
});

interface VkeyVectors {
  readonly valid: readonly string[];
  readonly mldsa44_valid: readonly string[];
  readonly invalid: readonly (readonly [string, string])[];
  readonly timestamp: { readonly sig: string; readonly unix: number };
}

describe.skipIf(!existsSync(vkeys))("witnesses' keys of others", () => {
  const read = (): VkeyVectors => JSON.parse(readFileSync(vkeys, 'utf8')) as VkeyVectors;

  it('are read and written', () => {
    const keys = read().valid.map((vkey) => parseNoteKey(vkey));
    expect(keys.map(({ type }) => type)).toEqual(['ed25519', 'cosignature']);
    expect(keys.map(formatNoteKey)).toEqual(read().valid);
  });

  it('are refused when they are malformed or of another type', () => {
    for (const [vkey] of read().invalid) {
      expect(codeOf(() => parseNoteKey(vkey))).toMatch(/^KEY_(?:MALFORMED|UNSUPPORTED)$/);
    }
  });

  it('of ML-DSA-44 are read with the key ID that the name and the key give, and no other', () => {
    const [vkey = ''] = read().mldsa44_valid;
    const [name = '', , typed = ''] = vkey.split('+', 2).concat(vkey.split('+').slice(2).join('+'));
    const id = createHash('sha256')
      .update(`${name}\n`)
      .update(Buffer.from(typed, 'base64'))
      .digest('hex')
      .slice(0, 8);
    const right = `${name}+${id}+${typed}`;
    expect(parseNoteKey(right)).toMatchObject({ name, type: 'ml-dsa-44', keyId: id });
    expect(formatNoteKey(parseNoteKey(right))).toBe(right);
    // The published one has another, which its own reader does not look at.
    expect(codeOf(() => parseNoteKey(vkey))).toBe('KEY_MALFORMED');
  });

  it('have the time where we look for it', () => {
    const { sig, unix } = read().timestamp;
    const signature = tryDecodeBase64(sig)!;
    expect(signature).toHaveLength(4 + 8 + 64);
    expect(Buffer.from(signature).readBigUInt64BE(4)).toBe(BigInt(unix));
  });
});
