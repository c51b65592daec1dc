/** Notes signed with ML-DSA-44 (https://c2sp.org/tlog-cosignature, type 0x06): by logs and by witnesses. */

import { readFileSync } from 'node:fs';
import { Point } from '@noble/ed25519';
import { describe, expect, test } from 'vitest';
import { formatPublicKeyAs, makePublicKey, parsePublicKey } from '../../src/format/key/public-key.js';
import { generatePrivateKey, parsePrivateKey } from '../../src/format/key/private-key.js';
import { formatVkey } from '../../src/format/key/vkey.js';
import { formatCheckpoint, decodeCheckpointText, type Checkpoint } from '../../src/format/note/checkpoint.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import {
  canBeLogKey,
  canBeWitnessKey,
  cosignNote,
  formatNoteKey,
  makeNoteKey,
  parseNoteKey,
  signNote,
  verifyNoteSignature,
} from '../../src/format/note/note-key.js';
import {
  formatNote,
  parseNote,
  readSignatureLine,
  type NoteSignature,
} from '../../src/format/note/signed-note.js';
import { createSigner, signEvent } from '../../src/format/signature/signer.js';
import { codeOf } from '../key/key-samples.js';
import { valueOf } from '../value-of.js';
import { logKey, logSigner, ORIGIN, strangerLine, TEXT, TIME } from './support.js';

/** A cosignature that another implementation made. */
const vector = JSON.parse(readFileSync(new URL('ml-dsa-44-vector.json', import.meta.url), 'utf8')) as {
  readonly seed_hex: string;
  readonly name: string;
  readonly text: string;
  readonly timestamp: number;
  readonly vkey: string;
  readonly line: string;
};

function signerOf(fill: number) {
  const der = Buffer.concat([
    Buffer.from('3034020100300b060960864801650304031104228020', 'hex'),
    Buffer.alloc(32, fill),
  ]);
  return createSigner(
    parsePrivateKey(
      `-----BEGIN PRIVATE KEY-----\n${der.toString('base64').slice(0, 64)}\n${der.toString('base64').slice(64)}\n-----END PRIVATE KEY-----\n`,
    ),
  );
}

const signer = signerOf(7);
const witness = makeNoteKey('w.example/w1', signer.publicKey, 'ml-dsa-44');
const log = makeNoteKey(ORIGIN, signer.publicKey, 'ml-dsa-44');
const line = cosignNote(TEXT, witness.name, signer, TIME);
const verifies = (text: string, signature: NoteSignature, key = witness): boolean =>
  verifyNoteSignature(text, signature, key) !== undefined;

describe('a cosignature by another implementation', () => {
  const read = readSignatureLine(vector.line)!;
  const key = parseNoteKey(vector.vkey);

  test('is right, and has its time', () => {
    expect(formatNoteKey(key)).toBe(vector.vkey);
    expect(formatNoteKey(makeNoteKey(vector.name, signer.publicKey, 'ml-dsa-44'))).toBe(vector.vkey);
    expect(vector.seed_hex).toBe('07'.repeat(32));
    expect(read).toMatchObject({ name: vector.name, keyId: key.keyId });
    expect(verifyNoteSignature(vector.text, read, key)).toEqual({ timestamp: vector.timestamp });
  });

  test('is wrong with any of its bytes changed', () => {
    // Each verification takes 2 ms: every byte that is not the signature's own, and some of those that are.
    for (let at = 0; at < read.signature.length; at += at < 8 ? 1 : 29) {
      const signature = Uint8Array.from(read.signature);
      signature[at] ^= 1;
      expect(verifyNoteSignature(vector.text, { ...read, signature }, key), `byte ${at}`).toBe(undefined);
    }
  });

  test('is wrong when it is longer or shorter', () => {
    const whole = read.signature;
    for (const signature of [
      whole.subarray(1),
      whole.subarray(0, -1),
      Uint8Array.of(...whole, 0),
      whole.subarray(0, 8),
    ]) {
      expect(verifyNoteSignature(vector.text, { ...read, signature }, key)).toBe(undefined);
    }
  });
});

describe('what is signed', () => {
  const checkpoint = valueOf(decodeCheckpointText(TEXT));
  const textOf = (change: Partial<Checkpoint>): string => formatCheckpoint({ ...checkpoint, ...change });

  test('is the name, the time, the origin, the size and the root', () => {
    expect(verifies(TEXT, line)).toBe(true);
    expect(verifies(textOf({ origin: `${ORIGIN}x` }), line)).toBe(false);
    expect(verifies(textOf({ size: 8 }), line)).toBe(false);
    expect(verifies(textOf({ root: 's'.repeat(32) }), line)).toBe(false);
    const elsewhere = makeNoteKey('w.example/w2', signer.publicKey, 'ml-dsa-44');
    expect(verifies(TEXT, { ...line, name: elsewhere.name, keyId: elsewhere.keyId }, elsewhere)).toBe(false);
  });

  test('is not the extension lines, as the specification says', () => {
    expect(verifies(textOf({ extensions: ['more'] }), line)).toBe(true);
  });

  test('is nothing but a checkpoint', () => {
    expect(() => cosignNote('other text\n', 'w', signer, TIME)).toThrow(RangeError);
    expect(verifies('other text\n', line)).toBe(false);
  });

  test('has names of at most 255 bytes', () => {
    const name = 'é'.repeat(127);
    expect(
      verifies(TEXT, cosignNote(TEXT, name, signer, TIME), makeNoteKey(name, signer.publicKey, 'ml-dsa-44')),
    ).toBe(true);
    expect(() => cosignNote(TEXT, `${name}ee`, signer, TIME)).toThrow(RangeError);
    expect(() => cosignNote(textOf({ origin: 'é'.repeat(128) }), 'w', signer, TIME)).toThrow(RangeError);
    expect(verifies(textOf({ origin: 'é'.repeat(128) }), line)).toBe(false);
  });

  test('is never signed alike twice', () => {
    const again = cosignNote(TEXT, witness.name, signer, TIME);
    expect(verifies(TEXT, again)).toBe(true);
    expect(Buffer.compare(again.signature, line.signature)).not.toBe(0);
  });

  test.each([-1, 1.5, Number.NaN, 2 ** 53])('has no time %d', (time) => {
    expect(() => signNote(TEXT, ORIGIN, signer, time)).toThrow(RangeError);
  });
});

describe('a hybrid note', () => {
  const own = signNote(TEXT, ORIGIN, signer, TIME);
  const note = parseNote(
    Buffer.from(
      formatNote({ text: TEXT, signatures: [signNote(TEXT, ORIGIN, logSigner), own, line, strangerLine] }),
    ),
  );

  test('is signed by both keys of the log, and by the witness', () => {
    const { valid, invalid, unknown } = verifyNoteSignatures(note, [logKey, log, witness]);
    expect(valid.map(({ key, timestamp }) => [key, timestamp])).toEqual([
      [logKey, null],
      [log, TIME],
      [witness, TIME],
    ]);
    expect([invalid.length, unknown.length]).toEqual([0, 1]);
  });

  test('is read by those who know one of its kinds', () => {
    expect(verifyNoteSignatures(note, [logKey])).toMatchObject({ valid: [{ key: logKey }], invalid: [] });
    expect(verifyNoteSignatures(note, [log])).toMatchObject({ valid: [{ key: log }], invalid: [] });
  });
});

describe('a vkey of ML-DSA-44', () => {
  const { vkey } = vector;

  test('can be that of a log and of a witness', () => {
    expect([canBeLogKey(witness), canBeWitnessKey(witness)]).toEqual([true, true]);
    expect([canBeLogKey(logKey), canBeWitnessKey(logKey)]).toEqual([true, false]);
  });

  test('is refused when any byte is changed', () => {
    for (let at = 0; at < vkey.length; at += 1) {
      const byte = vkey.charCodeAt(at);
      for (const other of [byte ^ 1, byte ^ 0x20, (byte + 1) % 128]) {
        const changed = `${vkey.slice(0, at)}${String.fromCharCode(other)}${vkey.slice(at + 1)}`;
        expect(
          codeOf(() => parseNoteKey(changed)),
          `byte ${at} as ${other}`,
        ).toMatch(/^KEY_/);
      }
    }
  });

  test('is refused when a part is missing', () => {
    for (let at = 1; at < vkey.length; at += 1) {
      for (const part of [vkey.slice(at), vkey.slice(0, at), vkey.slice(0, at) + vkey.slice(at + 1)]) {
        expect(
          codeOf(() => parseNoteKey(part)),
          `at ${at}`,
        ).toMatch(/^KEY_/);
      }
    }
  });

  test('is of its own algorithm', () => {
    expect(codeOf(() => makeNoteKey('w', signer.publicKey, 'cosignature'))).toBe('KEY_UNSUPPORTED');
    expect(codeOf(() => makeNoteKey('w', logSigner.publicKey, 'ml-dsa-44'))).toBe('KEY_UNSUPPORTED');
    expect(codeOf(() => formatVkey('w', logSigner.publicKey, 'ml-dsa-44'))).toBe('KEY_UNSUPPORTED');
    expect(formatPublicKeyAs(signer.publicKey, 'vkey', 'w.example/w1')).toBe(vkey);
    expect(formatPublicKeyAs(signer.publicKey, 'cosigner', 'w.example/w1')).toBe(vkey);
    expect(parsePublicKey(vkey)).toEqual(signer.publicKey);
  });
});

const ORDER_8 = Buffer.from('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a', 'hex');

test('a vkey of a point that is not a valid key is refused (SPEC §5)', () => {
  const points = {
    'small order': Uint8Array.of(1, ...new Uint8Array(31)),
    'not canonical': Uint8Array.of(0xee, ...new Uint8Array(30).fill(0xff), 0x7f),
    'not on the curve': Uint8Array.of(2, ...new Uint8Array(31)),
    torsion: Point.BASE.add(Point.fromBytes(ORDER_8)).toBytes(),
  };
  for (const [what, bytes] of Object.entries(points)) {
    const key = makePublicKey('ed25519', bytes);
    for (const type of ['ed25519', 'cosignature'] as const) {
      expect(
        codeOf(() => parseNoteKey(formatVkey('log', key, type))),
        what,
      ).toBe('KEY_MALFORMED');
      expect(
        codeOf(() => makeNoteKey('log', key, type)),
        what,
      ).toBe('KEY_MALFORMED');
    }
  }
});

test('an ML-DSA-44 key signs no record', () => {
  expect(codeOf(() => signEvent(Buffer.from('{}'), signer))).toBe('KEY_UNSUPPORTED');
});

test('a signer of type 0x06, as other tools keep it, is the key of its seed', () => {
  const typed = Buffer.from([6, ...new Uint8Array(32).fill(7)]).toString('base64');
  expect(parsePrivateKey(`PRIVATE+KEY+${witness.name}+${witness.keyId}+${typed}`).publicKey).toEqual(
    signer.publicKey,
  );
  expect(codeOf(() => parsePrivateKey(`PRIVATE+KEY+${witness.name}+00000000+${typed}`))).toBe(
    'KEY_MALFORMED',
  );
  expect(generatePrivateKey('ml-dsa-44').publicKey.keyid).not.toBe(signer.publicKey.keyid);
});
