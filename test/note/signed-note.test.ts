/** Signed notes: the format, who signed, and every way to spoil one. */

import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePrivateKey } from '../../src/format/key/private-key.js';
import { parseCheckpoint, decodeCheckpoint } from '../../src/format/note/checkpoint.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import {
  cosignNote,
  formatNoteKey,
  makeNoteKey,
  parseNoteKey,
  signNote,
  type NoteKey,
} from '../../src/format/note/note-key.js';
import {
  MAX_NOTE_BYTES,
  MAX_NOTE_SIGNATURES,
  formatNote,
  formatSignatureLine,
  parseNote,
  decodeNote,
  readSignatureLine,
} from '../../src/format/note/signed-note.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { codeOf, p256Key } from '../key/key-samples.js';
import {
  COSIGNED,
  ORIGIN,
  TEXT,
  TIME,
  changedBytes,
  logKey,
  logLine,
  logSigner,
  strangerLine,
  strangerSigner,
  substrings,
  witnessKey,
  witnessLine,
  witnessSigner,
} from './support.js';

const vectors = new URL('../../../shared/vectors/derived/signed-notes.json', import.meta.url);

const SIGNED = Buffer.from(formatNote({ text: TEXT, signatures: [logLine] }));

function note(text: string): Buffer {
  return Buffer.from(text);
}

/** Whether a note can be read and is signed by each of these keys, and wrongly by none. */
function verifies(bytes: Uint8Array, keys: readonly NoteKey[]): boolean {
  const decoded = decodeNote(bytes);
  if (!decoded.ok) return false;
  const { valid, invalid } = verifyNoteSignatures(decoded.value, keys);
  return invalid.length === 0 && keys.every((key) => valid.some((signer) => signer.key === key));
}

describe('a signed note', () => {
  it('is read as it is written', () => {
    const read = parseNote(COSIGNED);
    expect(read).toEqual({ text: TEXT, signatures: [logLine, witnessLine, strangerLine] });
    expect(formatNote(read)).toBe(COSIGNED.toString());
    expect(verifies(COSIGNED, [logKey, witnessKey])).toBe(true);
  });

  it('keeps valid, invalid and unknown signatures apart', () => {
    const { signatures } = parseNote(COSIGNED);
    const other = parseNote(note(formatNote({ text: `${TEXT}more\n`, signatures })));
    const known = [logKey, witnessKey];
    expect(verifyNoteSignatures(parseNote(COSIGNED), known)).toEqual({
      valid: [
        { key: logKey, timestamp: null },
        { key: witnessKey, timestamp: TIME },
      ],
      invalid: [],
      unknown: [strangerLine],
    });
    expect(verifyNoteSignatures(other, known)).toEqual({
      valid: [],
      invalid: [
        { key: logKey, signature: logLine },
        { key: witnessKey, signature: witnessLine },
      ],
      unknown: [strangerLine],
    });
    expect(verifyNoteSignatures(parseNote(COSIGNED), []).unknown).toHaveLength(3);
  });

  it('takes a key for another when only its name or only its id is the same', () => {
    const sameName = makeNoteKey(ORIGIN, strangerSigner.publicKey, 'ed25519');
    const sameKey = makeNoteKey('example.com/other', logSigner.publicKey, 'ed25519');
    const sameId = { ...sameKey, keyId: logKey.keyId };
    const otherType = makeNoteKey(ORIGIN, logSigner.publicKey, 'cosignature');
    for (const key of [sameName, sameKey, sameId, otherType]) {
      expect(verifyNoteSignatures(parseNote(SIGNED), [key])).toEqual({
        valid: [],
        invalid: [],
        unknown: [logLine],
      });
    }
  });

  it('has an invalid signature when the key of that name and id did not make it', () => {
    const impostor = { ...makeNoteKey(ORIGIN, strangerSigner.publicKey, 'ed25519'), keyId: logKey.keyId };
    expect(verifyNoteSignatures(parseNote(SIGNED), [impostor]).invalid).toHaveLength(1);
  });

  it('is judged by all signatures of one key', () => {
    const broken = { ...logLine, signature: Uint8Array.from(logLine.signature, (byte) => byte ^ 1) };
    const judged = verifyNoteSignatures({ text: TEXT, signatures: [logLine, broken] }, [logKey]);
    expect([judged.valid.length, judged.invalid.length]).toEqual([1, 1]);
  });

  it('verifies no more after any change of a byte', () => {
    let refused = 0;
    for (const { changed } of changedBytes(SIGNED)) {
      expect(verifies(changed, [logKey])).toBe(false);
      refused += 1;
    }
    expect(refused).toBeGreaterThan(3 * SIGNED.length);
  });

  it('is nothing when cut anywhere', () => {
    for (const part of substrings(SIGNED)) expect(verifies(part, [logKey])).toBe(false);
  });
});

describe('a cosigned checkpoint', () => {
  const strangersText = COSIGNED.indexOf('— stranger');

  it('says the same, or verifies no more, after any change of a byte', () => {
    for (const { at, changed } of changedBytes(COSIGNED)) {
      const still = verifies(changed, [logKey, witnessKey]);
      // Nothing vouches for the line of a key that nobody knows, or for its being there.
      if (still) {
        expect(at).toBeGreaterThanOrEqual(strangersText);
        expect(parseCheckpoint(changed).text).toBe(TEXT);
      }
    }
  });

  it('says the same, or verifies no more, when cut at either end', () => {
    for (let at = 1; at <= COSIGNED.length; at += 1) {
      expect(verifies(COSIGNED.subarray(at), [logKey, witnessKey])).toBe(false);
      const head = COSIGNED.subarray(0, COSIGNED.length - at);
      expect(verifies(head, [logKey, witnessKey])).toBe(head.length === strangersText);
    }
  });

  it('has an invalid cosignature when its time is changed', () => {
    for (let i = 0; i < 8; i += 1) {
      const signature = Uint8Array.from(witnessLine.signature);
      signature[i] = signature[i] ^ 1;
      const judged = verifyNoteSignatures({ text: TEXT, signatures: [{ ...witnessLine, signature }] }, [
        witnessKey,
      ]);
      expect(judged.invalid).toHaveLength(1);
    }
  });

  it('has an invalid cosignature when the note itself was signed, or the other way round', () => {
    const asNote = signNote(TEXT, witnessKey.name, witnessSigner);
    const disguised = { ...asNote, keyId: witnessKey.keyId };
    expect(verifyNoteSignatures({ text: TEXT, signatures: [disguised] }, [witnessKey]).invalid).toHaveLength(
      1,
    );
    const cosigned = cosignNote(TEXT, ORIGIN, logSigner, TIME);
    const other = { ...cosigned, keyId: logKey.keyId, signature: cosigned.signature.subarray(8) };
    expect(verifyNoteSignatures({ text: TEXT, signatures: [other] }, [logKey]).invalid).toHaveLength(1);
  });
});

describe('what is no note', () => {
  const line = formatSignatureLine(logLine);
  const text = TEXT;

  it.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['a text alone', text],
    ['a text and a blank line', `${text}\n`],
    ['no blank line', `${text}${line}\n`],
    ['no final newline', `${text}\n${line}`],
    ['a blank line at the end', `${text}\n${line}\n\n`],
    ['CRLF', `${text}\n${line}\n`.replaceAll('\n', '\r\n')],
    ['CRLF in one line', `${text}\n${line}\r\n`],
    ['a control character in the text', `a\u0007b\n\n${line}\n`],
    ['a tab in the text', `a\tb\n\n${line}\n`],
    ['a NUL in the text', `a\0b\n\n${line}\n`],
    ['a hyphen for the dash', `${text}\n${line.replace('—', '-')}\n`],
    ['two spaces after the dash', `${text}\n${line.replace('— ', '—  ')}\n`],
    ['two spaces after the name', `${text}\n${line.replace(ORIGIN, `${ORIGIN} `)}\n`],
    ['a space at the end of the line', `${text}\n${line} \n`],
    ['no name', `${text}\n${line.replace(ORIGIN, '')}\n`],
    ['a plus in the name', `${text}\n${line.replace(ORIGIN, 'a+b')}\n`],
    ['a no-break space in the name', `${text}\n${line.replace(ORIGIN, 'a\u00a0b')}\n`],
    ['a line separator in the name', `${text}\n${line.replace(ORIGIN, 'a\u2028b')}\n`],
    ['no signature', `${text}\n— ${ORIGIN}\n`],
    ['an empty signature', `${text}\n— ${ORIGIN} \n`],
    ['a signature of a key id alone', `${text}\n— ${ORIGIN} AAAAAA==\n`],
    ['base64 without its padding', `${text}\n— ${ORIGIN} AAAAAAA\n`],
    ['base64 with bits left over', `${text}\n— ${ORIGIN} AAAAAAB=\n`],
    ['base64url', `${text}\n— ${ORIGIN} AAAAA-_=\n`],
    ['other text between signatures', `${text}\n${line}\nother\n${line}\n`],
    ['bytes that are not UTF-8', Buffer.concat([Buffer.of(0xff), note(`${text}\n${line}\n`)])],
    ['a surrogate in UTF-8', Buffer.concat([Buffer.from('eda080', 'hex'), note(`${text}\n${line}\n`)])],
    ['overlong UTF-8', Buffer.concat([Buffer.from('c0af', 'hex'), note(`${text}\n${line}\n`)])],
  ])('a note with %s is refused', (_what, bytes) => {
    const given = typeof bytes === 'string' ? note(bytes) : bytes;
    expect(decodeNote(given)).toHaveProperty('fault.code', 'NOTE_MALFORMED');
    expect(codeOf(() => parseNote(given))).toBe('NOTE_MALFORMED');
    expect(codeOf(() => parseCheckpoint(given))).toBe('NOTE_MALFORMED');
  });

  it('a line that stands twice counts once', () => {
    const twice = note(`${text}\n${line}\n${line}\n`);
    expect(parseNote(twice)).toEqual(parseNote(note(`${text}\n${line}\n`)));
    expect(decodeNote(twice, { mayRepeat: false })).toHaveProperty('fault.code', 'NOTE_MALFORMED');
  });

  it('a note that is too large', () => {
    const filler = (length: number): Buffer => note(`${'x'.repeat(length)}\n\n${line}\n`);
    const rest = filler(0).length;
    expect(decodeNote(filler(MAX_NOTE_BYTES - rest))).toHaveProperty('value.signatures');
    expect(decodeNote(filler(MAX_NOTE_BYTES - rest + 1))).toHaveProperty('fault.code', 'NOTE_MALFORMED');
  });

  it('a note with too many signature lines', () => {
    const lines = (count: number): string[] =>
      Array.from(
        { length: count },
        (_, i) => `— k${i}.example ${Buffer.alloc(5, i % 256).toString('base64')}\n`,
      );
    const many = (count: number): Buffer => note(`${text}\n${lines(count).join('')}`);
    expect(decodeNote(many(MAX_NOTE_SIGNATURES))).toHaveProperty(
      'value.signatures.length',
      MAX_NOTE_SIGNATURES,
    );
    expect(decodeNote(many(MAX_NOTE_SIGNATURES + 1))).toHaveProperty('fault.code', 'NOTE_MALFORMED');
    expect(decodeNote(many(10_000))).toHaveProperty('fault.code', 'NOTE_MALFORMED');
    expect(decodeNote(note(`${text}\n${`${line}\n`.repeat(2_000)}`))).toHaveProperty(
      'fault.code',
      'NOTE_MALFORMED',
    );
  });
});

describe('unusual notes', () => {
  it('may have blank lines in the text, which ends at the last of them', () => {
    for (const text of ['a\n\nb\n', 'a\n\n', '\n\n\n', '\n', 'a\n\n— b c\n\n']) {
      const signature = signNote(text, ORIGIN, logSigner);
      const bytes = note(formatNote({ text, signatures: [signature] }));
      expect(decodeNote(bytes)).toEqual({ ok: true, value: { text, signatures: [signature] } });
      expect(verifies(bytes, [logKey])).toBe(true);
    }
  });

  it('may begin with a byte order mark, which is signed like any other character', () => {
    const text = '\ufeffa\n';
    const bytes = note(formatNote({ text, signatures: [signNote(text, ORIGIN, logSigner)] }));
    expect(verifies(bytes, [logKey])).toBe(true);
    expect(verifies(bytes.subarray(3), [logKey])).toBe(false);
  });

  it('may have signatures of any length by keys that are not known', () => {
    const bytes = note(
      `${TEXT}\n${formatSignatureLine(logLine)}\n— pq.example ${Buffer.alloc(5_000).toString('base64')}\n`,
    );
    expect(verifies(bytes, [logKey])).toBe(true);
    expect(verifyNoteSignatures(parseNote(bytes), [logKey]).unknown).toHaveLength(1);
  });

  it('have an invalid signature when that of a known key has another length', () => {
    for (const length of [1, 63, 65, 71, 73]) {
      for (const key of [logKey, witnessKey]) {
        const signature = { name: key.name, keyId: key.keyId, signature: new Uint8Array(length) };
        expect(verifyNoteSignatures({ text: TEXT, signatures: [signature] }, [key]).invalid).toHaveLength(1);
      }
    }
  });
});

describe('signing', () => {
  it('refuses names that no signature line can have, and keys that cannot sign notes', () => {
    const p256 = createSigner(p256Key(Buffer.alloc(32, 7)));
    for (const name of ['', 'a b', 'a+b', 'a\nb', 'a\u2003b', '\ud800']) {
      expect(() => signNote(TEXT, name, logSigner)).toThrow(RangeError);
      expect(() => cosignNote(TEXT, name, logSigner, 1)).toThrow(RangeError);
      expect(() => makeNoteKey(name, logSigner.publicKey, 'ed25519')).toThrow(RangeError);
    }
    expect(codeOf(() => signNote(TEXT, ORIGIN, p256))).toBe('KEY_UNSUPPORTED');
    expect(codeOf(() => cosignNote(TEXT, ORIGIN, p256, 1))).toBe('KEY_UNSUPPORTED');
    for (const time of [-1, 0.5, NaN, 2 ** 53]) {
      expect(() => cosignNote(TEXT, ORIGIN, logSigner, time)).toThrow(RangeError);
    }
  });

  it('writes no note without a signature, or a text without its newline', () => {
    expect(() => formatNote({ text: TEXT, signatures: [] })).toThrow(RangeError);
    expect(() => formatNote({ text: 'a', signatures: [logLine] })).toThrow(RangeError);
  });

  it('reads single lines as notes have them', () => {
    expect(readSignatureLine(formatSignatureLine(witnessLine))).toEqual(witnessLine);
    expect(readSignatureLine(`${formatSignatureLine(witnessLine)}\n`)).toBeUndefined();
    expect(readSignatureLine('')).toBeUndefined();
  });
});

interface NoteVectors {
  readonly notes: readonly { name: string; vkey: string; skey?: string; note: string }[];
  readonly bad_vkeys: readonly string[];
}

describe.skipIf(!existsSync(vectors))('signed notes of others', () => {
  const { notes, bad_vkeys: badKeys } = existsSync(vectors)
    ? (JSON.parse(readFileSync(vectors, 'utf8')) as NoteVectors)
    : { notes: [], bad_vkeys: [] };

  it.each(notes)('$name verifies, and is what we would have written', ({ vkey, skey, note: whole }) => {
    const key = parseNoteKey(vkey);
    expect(formatNoteKey(key)).toBe(vkey);
    expect(verifies(note(whole), [key])).toBe(true);
    expect(formatNote(parseNote(note(whole)))).toBe(whole);
    for (const { changed } of changedBytes(note(whole))) expect(verifies(changed, [key])).toBe(false);
    if (skey === undefined) return;
    const signer = createSigner(parsePrivateKey(skey));
    const { text } = parseNote(note(whole));
    expect(formatNote({ text, signatures: [signNote(text, key.name, signer)] })).toBe(whole);
  });

  it.each(badKeys.map((vkey) => [vkey]))('the key %s is refused', (vkey) => {
    expect(codeOf(() => parseNoteKey(vkey))).toMatch(/^KEY_(?:MALFORMED|UNSUPPORTED)$/);
  });

  it.each(notes)('each substring and each changed byte of the key of $name is refused', ({ vkey }) => {
    for (const part of substrings(note(vkey))) {
      expect(codeOf(() => parseNoteKey(part.toString()))).toMatch(/^KEY_(?:MALFORMED|UNSUPPORTED)$/);
    }
    for (const { changed } of changedBytes(note(vkey))) {
      expect(codeOf(() => parseNoteKey(changed.toString('latin1')))).toMatch(
        /^KEY_(?:MALFORMED|UNSUPPORTED)$/,
      );
    }
  });
});

describe('a checkpoint in a note', () => {
  it('is read with its signatures', () => {
    expect(decodeCheckpoint(COSIGNED)).toHaveProperty('value', {
      text: TEXT,
      signatures: [logLine, witnessLine, strangerLine],
      checkpoint: { origin: ORIGIN, size: 7, root: 'r'.repeat(32), extensions: [] },
    });
  });
});
