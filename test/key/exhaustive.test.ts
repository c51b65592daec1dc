/** Substrings and every changed byte of a key, in each of its forms: refused with its reason, or honestly another key. */

import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { parsePrivateKey, formatPrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs, parsePublicKey, type PublicKeyForm } from '../../src/format/key/public-key.js';
import { isSampledPart } from '../slow.js';
import { ed25519Key } from './key-samples.js';

const key = ed25519Key(Buffer.alloc(32, 7));
const NAME = 'example.com/log';
const FORMS: readonly PublicKeyForm[] = ['wire', 'pem', 'openssh', 'vkey', 'cosigner', 'did', 'jwk'];

const NAMED: readonly PublicKeyForm[] = ['vkey', 'cosigner'];

/** The keyid that a text is read as, or the code of why not; anything but a NorthrootError passes through. */
function read(parse: (text: Uint8Array) => string, text: Uint8Array): { keyid: string } | { code: string } {
  try {
    return { keyid: parse(text) };
  } catch (error) {
    if (error instanceof NorthrootError) return { code: error.code };
    throw error;
  }
}

function* substrings(text: Buffer): Generator<Buffer> {
  for (let start = 0; start < text.length; start += 1) {
    for (let end = start + 1; end <= text.length; end += 1) {
      if (end - start < text.length && isSampledPart(start, end, text.length))
        yield text.subarray(start, end);
    }
  }
}

/** Each byte with each bit turned, and raised by one. */
function* changes(text: Buffer): Generator<{ changed: Buffer; index: number }> {
  for (let index = 0; index < text.length; index += 1) {
    for (const value of [1, 2, 4, 8, 16, 32, 64, 128].map((bit) => text.readUInt8(index) ^ bit)) {
      const changed = Buffer.from(text);
      changed[index] = value;
      yield { changed, index };
    }
  }
}

describe.each(FORMS)('a public key as %s', (form) => {
  const text = Buffer.from(formatPublicKeyAs(key.publicKey, form, form === 'openssh' ? 'comment' : NAME));
  const parse = (bytes: Uint8Array): string => parsePublicKey(bytes).keyid;
  const { keyid } = key.publicKey;

  test('no substring of it is another key', () => {
    // Without its name a vkey may be 32 bytes in base64, and so a raw key that nobody meant.
    const hasName = (part: Buffer): boolean => !NAMED.includes(form) || part.includes('+');
    for (const part of substrings(text)) {
      const result = read(parse, part);
      // The key alone, without its label, is the same key in another form.
      if (hasName(part) && 'keyid' in result) expect(result.keyid).toBe(keyid);
      if ('code' in result) expect(result.code).toMatch(/^KEY_(?:MALFORMED|UNSUPPORTED|IS_PRIVATE)$/);
    }
  });

  test('no changed byte of what is signed with is overlooked', () => {
    // Base64 in PEM may be wrapped elsewhere; a comment is nobody's concern.
    const ends = form === 'openssh' ? text.lastIndexOf(' ') : text.length;
    for (const { changed, index } of changes(text)) {
      const result = read(parse, changed);
      const isSpace = form === 'pem' && /\s/.test(String.fromCharCode(changed.readUInt8(index)));
      if (index < ends && !isSpace && 'keyid' in result) expect(result.keyid).not.toBe(keyid);
    }
  });
});

describe.each(['pem', 'jwk'] as const)('a private key as %s', (form) => {
  const text = Buffer.from(formatPrivateKey(key, form));
  const parse = (bytes: Uint8Array): string => parsePrivateKey(bytes).publicKey.keyid;

  test('no substring of it is a key, but the secret by itself', () => {
    for (const part of substrings(text)) {
      const result = read(parse, part);
      if ('keyid' in result) expect(result.keyid).toBe(key.publicKey.keyid);
      else expect(result.code).toMatch(/^KEY_/);
    }
  });

  test('no changed byte gives anything but another key, or its reason', () => {
    for (const { changed } of changes(text)) {
      const result = read(parse, changed);
      if ('code' in result) expect(result.code).toMatch(/^KEY_/);
    }
  });
});
