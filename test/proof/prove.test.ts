/** Proofs made from ledgers and verified without them; and each way to spoil one. */

import { describe, expect, it } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, makeNoteKey, signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { makeConsistencyProof, makeProof } from '../../src/proof/make-proof.js';
import { makeReceipt } from '../../src/proof/make-receipt.js';
import { parseProofKey, type ProofKey, type ProofTrust } from '../../src/proof/proof-keys.js';
import { valueOf } from '../value-of.js';
import { decodeTlogProof, formatTlogProof, type TlogProof } from '../../src/proof/tlog-proof.js';
import { leafHash } from '../../src/format/tree/compact-range.js';
import { RangeHasher, inclusionRanges } from '../../src/format/tree/proof.js';
import { verifyConsistencyProof } from '../../src/proof/verify-consistency.js';
import { verifyProof, type ProofResult } from '../../src/proof/verify-proof.js';
import { verifyReceipt } from '../../src/proof/verify-receipt.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { formatVkey } from '../../src/format/key/vkey.js';
import { formatConsistencyProof } from '../../src/proof/consistency-proof.js';
import { renderConsistencyResult, renderProofResult } from '../../src/out/text/proof-result.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { codeOf, errorOf } from '../writer/support.js';
import { ledgerOf, rememberingBackend } from '../verify/support.js';
import { p256Key, codeOf as syncCodeOf } from '../key/key-samples.js';
import { changedBytes } from '../note/support.js';
import {
  NOON,
  ORIGIN,
  TIME,
  checkpointLine,
  checkpointText,
  cosignatureOf,
  logKey,
  makeLines,
  noteOf,
  opener,
  rootOf,
  signer,
  stranger,
  witness,
  witnessKey,
} from './support.js';

// 0 genesis, 1–3 events, 4 checkpoint, 5–6 events, 7 checkpoint, 8 attestation, 9–10 events
const lines = await makeLines({ events: [3, 2, 2], attested: true });
const open = opener(lines);
const sealed = 7;
const backend = rememberingBackend();

const known: ProofTrust = { keys: [logKey], backend };

function codes({ problems }: { problems: readonly { code: string }[] }): string[] {
  return problems.map(({ code }) => code);
}

async function prove(wanted: string, note?: Uint8Array): Promise<Uint8Array> {
  const { bytes } = await makeProof(open, wanted, note === undefined ? {} : { checkpoint: note });
  return bytes;
}

function policyOf(keys: readonly Key[], more: Partial<TrustPolicy> = {}): ProofTrust {
  const policy = { trust_version: '1', keys, ...more } as unknown as TrustPolicy;
  return { policy, backend };
}

const own = ownKeyEntry(signer.publicKey);
const proof3 = await prove('3');
/** The same, signed by nobody but the log. */
const alone = await prove('3', noteOf(lines.slice(0, sealed)));

describe('a proof of a record', () => {
  it('is made of each record under each checkpoint, and verifies', async () => {
    for (let index = 0; index < lines.length; index += 1) {
      for (let size = index + 1; size <= lines.length; size += 1) {
        const note = noteOf(lines.slice(0, size));
        const made = await makeProof(open, String(index), { checkpoint: note });
        expect(made).toMatchObject({ index, checkpoint: { size, origin: ORIGIN } });
        const parsed = valueOf(decodeTlogProof(made.bytes));
        expect(Buffer.from(parsed.extra!)).toEqual(lines[index]);
        expect(Buffer.from(parsed.note)).toEqual(note);
        const result = verifyProof(made.bytes, known);
        expect(result).toMatchObject({
          verdict: 'ok',
          exit_status: 0,
          problems: [],
          origin: ORIGIN,
          index,
          event_id: made.eventId,
          event: (JSON.parse(lines[index].toString()) as { event: object }).event,
          event_signatures: [{ keyid: signer.publicKey.keyid, result: 'valid' }],
        });
        expect(result.tree?.tree_size).toBe(size);
      }
    }
  });

  it('rests on the last checkpoint of the ledger, with the cosignatures that attestations add', async () => {
    const made = await makeProof(open, '5');
    expect(made.checkpoint.size).toBe(sealed);
    const result = verifyProof(made.bytes, { keys: [logKey, witnessKey] });
    expect(result.verdict).toBe('ok');
    expect(result.checkpoint_signers.witnesses).toMatchObject([{ timestamp: TIME }]);
    expect(result.not_checked.map(({ code }) => code)).not.toContain('WITNESSES');
  });

  it('is made in a ledger with lines that are no records: too long ones are leaves, blank and torn ones are not', async () => {
    const long = Buffer.alloc(70_000, 0x61);
    const all = [...lines.slice(0, 4), long];
    const bytes = Buffer.concat([ledgerOf([...all.slice(0, 2), Buffer.alloc(0), ...all.slice(2)]), lines[4]]);
    const odd = (): Promise<LedgerSource> => Promise.resolve(bytesSource(bytes, 'odd.jsonl'));
    const made = await makeProof(odd, '3', { checkpoint: noteOf(all) });
    expect(verifyProof(made.bytes, known).verdict).toBe('ok');
    expect(await codeOf(makeProof(odd, '3', { checkpoint: noteOf(lines.slice(0, 6)) }))).toBe('TRUNCATED');
  });

  it('finds the record by its id, or the beginning of it', async () => {
    const { eventId } = await makeProof(open, '3');
    expect(await prove(eventId)).toEqual(proof3);
    expect(await prove(eventId.slice(0, 20))).toEqual(proof3);
  });

  it('takes any form of the key, and a vkey only for the origin that is its name', () => {
    const { publicKey } = signer;
    const vkey = formatPublicKeyAs(publicKey, 'vkey', ORIGIN);
    const texts = [
      vkey,
      formatPublicKeyAs(publicKey, 'pem'),
      formatPublicKeyAs(publicKey, 'openssh'),
      formatPublicKeyAs(publicKey, 'jwk'),
      formatPublicKeyAs(publicKey, 'did'),
      formatPublicKeyAs(publicKey, 'wire'),
    ];
    for (const text of texts) {
      for (const input of [text, Buffer.from(text), `${text}\n`]) {
        expect(verifyProof(proof3, { keys: [parseProofKey(input)] }).verdict).toBe('ok');
      }
    }
    expect(verifyProof(proof3, { keys: [parseProofKey(publicKey.bytes)] }).verdict).toBe('ok');
    const elsewhere = parseProofKey(formatPublicKeyAs(publicKey, 'vkey', 'example.com/other'));
    expect(verifyProof(proof3, { keys: [elsewhere] })).toMatchObject({ verdict: 'undecided' });
    expect(syncCodeOf(() => parseProofKey(`${vkey}A`))).toBe('KEY_MALFORMED');
  });

  it('may be of a record whose signatures are by keys that are not known', async () => {
    const note = noteOf(lines.slice(0, 5), { by: stranger });
    const result = verifyProof(await prove('3', note), {
      keys: [{ kind: 'public-key', key: stranger.publicKey }],
    });
    expect(result).toMatchObject({
      verdict: 'ok',
      event_signatures: [{ keyid: signer.publicKey.keyid, result: 'unverified' }],
    });
    expect(result.not_checked.map(({ code }) => code)).toContain('SIGNATURES_UNVERIFIED');
  });
});

describe('a key that was given', () => {
  it('signs only for the origin that is its name', async () => {
    const first = lines.slice(0, 5);
    const elsewhere = 'example.com/other';
    const text = checkpointText(first);
    const note = Buffer.from(formatNote({ text, signatures: [signNote(text, elsewhere, signer)] }));
    const bytes = await prove('3', note);
    const named: ProofKey = { kind: 'note-key', key: makeNoteKey(elsewhere, signer.publicKey, 'ed25519') };
    for (const key of [named, logKey]) {
      expect(codes(verifyProof(bytes, { keys: [key] }))).toEqual(['KEY_UNKNOWN']);
    }
  });

  it("as a witness's signs no events, and counts for no policy that does not name it", async () => {
    const asWitness: ProofKey = {
      kind: 'note-key',
      key: makeNoteKey('witness.example/w9', signer.publicKey, 'cosignature'),
    };
    const first = lines.slice(0, 5);
    const byStranger = await prove('3', noteOf(first, { by: stranger }));
    const keys: ProofKey[] = [{ kind: 'public-key', key: stranger.publicKey }, asWitness];
    expect(verifyProof(byStranger, { keys }).event_signatures).toMatchObject([{ result: 'unverified' }]);
    const cosigned = await prove('3', noteOf(first, { further: [cosignatureOf(first)] }));
    const demands = policyOf([own], { require: { witness_threshold: 1 } });
    const result = verifyProof(cosigned, { ...demands, keys: [witnessKey] });
    expect(result.checkpoint_signers.witnesses).toHaveLength(1);
    expect(codes(result)).toEqual(['WITNESS_QUORUM']);
  });

  it('may be given twice', () => {
    expect(verifyProof(proof3, { keys: [logKey, logKey] }).checkpoint_signers.log).toHaveLength(1);
  });
});

describe('without the right key nothing is proven', () => {
  const p256: ProofKey = { kind: 'public-key', key: p256Key(Buffer.alloc(32, 7)).publicKey };

  it.each<[string, ProofTrust]>([
    ['no key', {}],
    ['no key in a list', { keys: [] }],
    ["a stranger's key", { keys: [{ kind: 'public-key', key: stranger.publicKey }] }],
    ['a key that signs no checkpoints', { keys: [p256] }],
    ["a witness's key alone", { keys: [witnessKey] }],
    [
      "the log's key as that of a witness",
      { keys: [{ kind: 'note-key', key: makeNoteKey(ORIGIN, signer.publicKey, 'cosignature') }] },
    ],
    ['a policy without keys', policyOf([])],
    ["a policy with a stranger's key", policyOf([ownKeyEntry(stranger.publicKey)])],
  ])('proves nothing with %s', (_what, trust) => {
    const result = verifyProof(proof3, trust);
    expect(result).toMatchObject({ verdict: 'undecided', exit_status: 2 });
    expect(codes(result)).toEqual(['KEY_UNKNOWN']);
    expect(result.checkpoint_signers.log).toEqual([]);
  });
});

describe('a trust policy', () => {
  it('pins the key', () => {
    expect(verifyProof(proof3, policyOf([own]))).toMatchObject({ verdict: 'ok', problems: [] });
  });

  it.each<[string, Key[], Partial<TrustPolicy>, string[]]>([
    ['another origin', [own], { origins: ['example.com/other'] }, ['ORIGIN_MISMATCH']],
    ['a key for events only', [{ ...own, roles: ['event'] }], {}, ['KEY_NOT_FOR_ROLE']],
    ['a key for others', [{ ...own, principals: ['human:*'] }], {}, ['KEY_NOT_FOR_PRINCIPAL']],
    [
      'a key that was no longer valid',
      [{ ...own, valid_until: NOON }],
      {},
      ['KEY_NOT_VALID_HERE', 'KEY_NOT_VALID_HERE'],
    ],
    ['a quorum', [own], { require: { checkpoint_quorum: 2 } }, ['CHECKPOINT_MISSING']],
    ['witnesses', [own], { require: { witness_threshold: 1 } }, ['WITNESS_QUORUM']],
    [
      'signatures of events',
      [{ ...own, roles: ['checkpoint'] }],
      { require: { event_signatures: 'required' } },
      ['KEY_NOT_FOR_ROLE'],
    ],
  ])('refuses by %s', (_what, keys, more, expected) => {
    const result = verifyProof(proof3, policyOf(keys, more));
    expect(result).toMatchObject({ verdict: 'invalid', exit_status: 1 });
    expect(codes(result)).toEqual(expected);
  });

  it('counts the witnesses that it names', async () => {
    const entry = {
      ...ownKeyEntry(witness.publicKey),
      roles: ['witness'],
      name: 'witness.example/w1',
    } as Key;
    const demands = { require: { witness_threshold: 1 } } as Partial<TrustPolicy>;
    const note = noteOf(lines.slice(0, 5), { further: [cosignatureOf(lines.slice(0, 5))] });
    const cosigned = await prove('3', note);
    expect(verifyProof(cosigned, policyOf([own, entry], demands)).verdict).toBe('ok');
    expect(codes(verifyProof(cosigned, policyOf([own], demands)))).toEqual(['WITNESS_QUORUM']);
    const expired = { ...entry, valid_until: NOON };
    expect(codes(verifyProof(cosigned, policyOf([own, expired], demands)))).toEqual(['WITNESS_QUORUM']);
    // A witness is no log.
    expect(codes(verifyProof(cosigned, policyOf([entry])))).toEqual(['KEY_UNKNOWN']);
  });

  it('knows a key that came later, as the checkpoint may be later than the event', () => {
    const later = { ...own, roles: ['checkpoint'], valid_from: '2026-02-01T00:00:00Z' } as Key;
    const result = verifyProof(proof3, policyOf([later]));
    expect(result.checkpoint_signers.log).toHaveLength(1);
  });

  it('wants the event signed by a key that it knows', async () => {
    const note = noteOf(lines.slice(0, 5), { by: stranger });
    const keys = [{ ...ownKeyEntry(stranger.publicKey), roles: ['checkpoint'] } as Key];
    const required = policyOf(keys, { require: { event_signatures: 'required' } });
    const result = verifyProof(await prove('3', note), required);
    expect(result).toMatchObject({ verdict: 'invalid' });
    expect(codes(result)).toEqual(['KEY_UNKNOWN']);
  });
});

describe('a witness policy', () => {
  const logVkey = formatPublicKeyAs(signer.publicKey, 'vkey', ORIGIN);
  const witnessVkey = formatVkey('witness.example/w1', witness.publicKey, 'cosignature');
  const otherVkey = formatVkey('witness.example/w2', stranger.publicKey, 'cosignature');

  function witnessed(...policy: string[]): ProofTrust {
    return {
      backend,
      witnessPolicy: parseWitnessPolicy(Buffer.from(policy.map((line) => `${line}\n`).join(''))),
    };
  }

  const log = `log ${logVkey}`;
  const w1 = `witness w1 ${witnessVkey}`;
  const w2 = `witness w2 ${otherVkey}`;

  it.each<[string, ProofTrust, string[]]>([
    ['its log', witnessed(log, 'quorum none'), []],
    ['its log and witness', witnessed(log, w1, 'quorum w1'), []],
    ['any of its witnesses', witnessed(log, w1, w2, 'group g any w1 w2', 'quorum g'), []],
    ['all of its witnesses', witnessed(log, w1, w2, 'group g all w1 w2', 'quorum g'), ['WITNESS_QUORUM']],
    ['another witness', witnessed(log, w2, 'quorum w2'), ['WITNESS_QUORUM']],
    ['no log', witnessed(w1, 'quorum w1'), ['KEY_UNKNOWN']],
    ['no log, and a key beside it', { ...witnessed(w1, 'quorum w1'), keys: [logKey] }, []],
    [
      'another log, and a key beside it',
      {
        ...witnessed(`log ${formatPublicKeyAs(stranger.publicKey, 'vkey', ORIGIN)}`, 'quorum none'),
        keys: [logKey],
      },
      ['CHECKPOINT_MISSING'],
    ],
    [
      'a log of another origin',
      witnessed(`log ${formatPublicKeyAs(signer.publicKey, 'vkey', 'example.com/other')}`, 'quorum none'),
      ['KEY_UNKNOWN', 'CHECKPOINT_MISSING'],
    ],
    [
      'what a trust policy names too',
      {
        ...policyOf(
          [own, { ...ownKeyEntry(witness.publicKey), roles: ['witness'], name: 'witness.example/w1' }],
          {
            require: { witness_threshold: 1 },
          },
        ),
        ...witnessed(log, w1, 'quorum w1'),
      },
      [],
    ],
  ])('asks for %s', (_what, trust, expected) => {
    expect(codes(verifyProof(proof3, trust))).toEqual(expected);
  });
});

describe('hostile files', () => {
  it('with an origin that names no key are signed by nobody known', () => {
    const text = formatCheckpoint({ origin: 'no name', size: 1, root: rootOf([lines[0]]), extensions: [] });
    const note = Buffer.from(formatNote({ text, signatures: [signNote(text, 'x', stranger)] }));
    const bytes = formatTlogProof({ extra: lines[0], index: 0, hashes: [], note });
    for (const trust of [known, policyOf([own])]) {
      expect(codes(verifyProof(bytes, trust))).toEqual(['KEY_UNKNOWN']);
    }
  });

  it('with a cosignature from the end of time are judged and shown', async () => {
    const first = lines.slice(0, 5);
    const late = cosignNote(checkpointText(first), 'witness.example/w1', witness, 2 ** 53 - 1);
    const bytes = await prove('3', noteOf(first, { further: [late] }));
    const entry = {
      ...ownKeyEntry(witness.publicKey),
      roles: ['witness'],
      name: 'witness.example/w1',
      valid_until: NOON,
    } as Key;
    expect(verifyProof(bytes, policyOf([own, entry])).checkpoint_signers.witnesses).toEqual([]);
    const result = verifyProof(bytes, { keys: [logKey, witnessKey] });
    expect(renderProofResult(result, 'file', plainPaint)).toContain('9007199254740991');
  });

  it('move no terminal', () => {
    const origin = 'example.com/\u202etxt';
    const text = formatCheckpoint({ origin, size: 1, root: 'x'.repeat(32), extensions: [] });
    const note = Buffer.from(formatNote({ text, signatures: [signNote(text, 'x', stranger)] }));
    const extra = Buffer.from('\u202e\u0007');
    const result = verifyProof(formatTlogProof({ extra, index: 0, hashes: [], note }), known);
    const shown = renderProofResult(result, '\u001b[1m', plainPaint);
    expect(shown).toContain('example.com/');
    expect(shown).not.toMatch(/[\u202e\u0007\u001b]/);
    const grown = verifyConsistencyProof(
      formatConsistencyProof({ oldSize: 0, hashes: [], note }),
      note,
      known,
    );
    expect(renderConsistencyResult(grown, '\u001b[1m', plainPaint)).not.toMatch(/[\u202e\u0007\u001b]/);
  });
});

describe('a broken proof', () => {
  const parsed = valueOf(decodeTlogProof(proof3));
  const line = lines[3];

  function broken(changes: Partial<TlogProof>): ProofResult {
    return verifyProof(formatTlogProof({ ...parsed, ...changes }), known);
  }

  /** The record with another text in it, in a tree that it belongs to. */
  function provenAnyway(from: string | RegExp, to: string): ProofResult {
    const forged = Buffer.from(line.toString().replace(from, to));
    expect(forged.equals(line)).toBe(false);
    const tree = [...lines.slice(0, 3), forged];
    const hasher = new RangeHasher(inclusionRanges(3, 4));
    for (const leaf of tree) hasher.push(leafHash(leaf));
    const bytes = formatTlogProof({ extra: forged, index: 3, hashes: hasher.roots(), note: noteOf(tree) });
    return verifyProof(bytes, known);
  }

  it('is of another record, place or tree', () => {
    expect(codes(broken({ extra: lines[2] }))).toEqual(['PROOF_INVALID', 'SEQ_GAP']);
    expect(codes(broken({ index: 2 }))).toEqual(['PROOF_INVALID', 'SEQ_GAP']);
    expect(codes(broken({ hashes: parsed.hashes.slice(1) }))).toEqual(['PROOF_INVALID']);
    expect(codes(broken({ hashes: [...parsed.hashes].reverse() }))).toEqual(['PROOF_INVALID']);
    expect(codes(broken({ note: noteOf(lines.slice(0, 5)) }))).toEqual(['PROOF_INVALID']);
  });

  it('has no record', () => {
    const result = broken({ extra: undefined });
    expect(result).toMatchObject({ verdict: 'undecided', exit_status: 2, entry: null, event: null });
    expect(codes(result)).toEqual(['ENTRY_MISSING']);
    expect(result.checkpoint_signers.log).toHaveLength(1);
  });

  it('has what is no note', () => {
    expect(codes(broken({ note: Buffer.from('checkpoint\n') }))).toEqual(['NOTE_MALFORMED']);
    expect(codes(broken({ note: Buffer.alloc(600_000) }))).toEqual(['NOTE_MALFORMED']);
  });

  it('has a checkpoint whose signature is wrong', () => {
    const text = checkpointText(lines.slice(0, sealed));
    const wrong = { ...signNote(text, ORIGIN, signer), signature: new Uint8Array(64) };
    const further = noteOf(lines.slice(0, sealed), { further: [wrong] });
    expect(codes(broken({ note: further }))).toEqual(['CHECKPOINT_SIGNATURE_INVALID']);
    const other = noteOf(lines.slice(0, sealed + 1)).toString();
    const signature = other.split('\n').at(-2)!;
    const forged = Buffer.from(`${text}\n${signature}\n`);
    expect(codes(broken({ note: forged }))).toEqual(['CHECKPOINT_SIGNATURE_INVALID']);
  });

  it('has a cosignature that is wrong, by a witness that is known', () => {
    const wrong = { ...cosignatureOf(lines.slice(0, 5)) };
    const note = noteOf(lines.slice(0, sealed), { further: [wrong] });
    const bytes = formatTlogProof({ ...parsed, note });
    expect(verifyProof(bytes, known).verdict).toBe('ok');
    const result = verifyProof(bytes, { keys: [logKey, witnessKey] });
    expect(codes(result)).toEqual(['CHECKPOINT_SIGNATURE_INVALID']);
  });

  it.each<[string, string | RegExp, string, string[]]>([
    ['says another seq than its place', '"seq":3', '"seq":7', ['SEQ_GAP']],
    [
      'has another content than its ids say',
      '"n":3',
      '"n":4',
      ['PAYLOAD_DIGEST_MISMATCH', 'EVENT_ID_MISMATCH', 'SIGNATURE_INVALID'],
    ],
    ['is not canonical', '"n":3', '"n": 3', ['NOT_CANONICAL']],
    ['has a member too many', '"seq":3', '"seq":3,"sez":1', ['SCHEMA']],
    ['has a wrong signature', /"sig":"../, '"sig":"__', ['SIGNATURE_INVALID']],
    ['is no JSON', '"seq":3', '"seq":', ['NOT_JSON']],
    ['has its members in another order', /^\{"event":(.*),"prev"/, '{ "event":$1,"prev"', ['NOT_CANONICAL']],
  ])('has a record that %s, though the log committed to it', (_what, from, to, expected) => {
    const result = provenAnyway(from, to);
    expect(result.verdict).toBe('invalid');
    expect(codes(result)).toEqual(expected);
  });

  it('has more than a record', () => {
    const extra = Buffer.alloc(65_536, '{"event":{},');
    const result = verifyProof(
      formatTlogProof({ extra, index: 0, hashes: [], note: noteOf([extra]) }),
      known,
    );
    expect(codes(result)).toEqual(['LINE_TOO_LONG']);
  });

  it('proves no more after any change of a byte', () => {
    let count = 0;
    for (const { changed } of changedBytes(alone)) {
      const { verdict } = verifyProof(changed, known);
      expect(verdict).not.toBe('ok');
      count += 1;
    }
    expect(count).toBeGreaterThan(3 * alone.length);
  });

  it('proves no more when cut anywhere', () => {
    for (let at = 0; at < alone.length; at += 1) {
      expect(verifyProof(alone.subarray(0, at), known).verdict).toBe('invalid');
      if (at > 0) expect(verifyProof(alone.subarray(at), known).verdict).toBe('invalid');
    }
  });

  it('claims nothing else when the line of an unknown key is changed', async () => {
    const text = checkpointText(lines.slice(0, 5));
    const note = noteOf(lines.slice(0, 5), { further: [signNote(text, 'stranger.example', stranger)] });
    const bytes = await prove('3', note);
    const claimed = verifyProof(bytes, known);
    expect(claimed).toMatchObject({ verdict: 'ok', checkpoint_signers: { unverified: 1 } });
    const start = Buffer.from(bytes).indexOf('— stranger');
    let same = 0;
    for (const { at, changed } of changedBytes(bytes)) {
      const result = verifyProof(changed, known);
      if (result.verdict === 'ok') {
        expect(at).toBeGreaterThanOrEqual(start);
        expect(result).toEqual(claimed);
        same += 1;
      }
    }
    expect(same).toBeGreaterThan(100);
  });
});

describe('a proof whose record is handed on beside it', () => {
  it('verifies with the record, with or without the newline of its line, and with nothing else', async () => {
    const { bytes, entry } = await makeProof(open, '3', { extra: false });
    expect(valueOf(decodeTlogProof(bytes)).extra).toBeUndefined();
    expect(Buffer.from(entry)).toEqual(lines[3]);
    for (const given of [entry, Buffer.concat([entry, Buffer.from('\n')])]) {
      const result = verifyProof(bytes, known, { entry: given });
      expect(result).toMatchObject({
        verdict: 'ok',
        entry: { kind: 'record', size_bytes: entry.length },
        event_signatures: [{ result: 'valid' }],
      });
    }
    for (const other of [lines[2], Buffer.concat([entry, Buffer.from('\n\n')]), Buffer.alloc(0)]) {
      expect(codes(verifyProof(bytes, known, { entry: other }))).toContain('PROOF_INVALID');
    }
    // What is given counts, not what the proof carries.
    expect(codes(verifyProof(proof3, known, { entry: lines[2] }))).toContain('PROOF_INVALID');
    expect(() => verifyProof(bytes, known, { entry: Buffer.alloc(1_048_577) })).toThrow(RangeError);
  });

  it('can be read line by line in 64 KiB, where with the record it could not from 49,147 bytes on', () => {
    const longest = (size: number, isCarried: boolean): number => {
      const extra = isCarried ? Buffer.alloc(size) : undefined;
      const proof = formatTlogProof({ extra, index: 0, hashes: [], note: noteOf([lines[0]]) });
      return Math.max(
        ...Buffer.from(proof)
          .toString()
          .split('\n')
          .map(({ length }) => length + 1),
      );
    };
    expect(longest(49_146, true)).toBeLessThanOrEqual(65_536);
    expect(longest(49_147, true)).toBeGreaterThan(65_536);
    expect(longest(65_535, false)).toBeLessThan(1_000);
  });
});

describe('a proof of another log', () => {
  const entries = [
    '{"a": 1}',
    'not JSON',
    '',
    '{"event":{},"seq":3}',
    '\n',
    '[{"seq":1}]',
    '{"event":1,"sec":2}',
  ].map((text) => Buffer.from(text));
  const ofEntry = (index: number, extra?: Uint8Array): Uint8Array => {
    const hasher = new RangeHasher(inclusionRanges(index, entries.length));
    for (const entry of entries) hasher.push(leafHash(entry));
    return formatTlogProof({ extra, index, hashes: hasher.roots(), note: noteOf(entries) });
  };

  it('is verified as bytes, and said to be of no record', () => {
    for (const [index, entry] of entries.entries()) {
      // What has the members of a record is judged as one.
      const isRecord = index === 3;
      const results = [
        verifyProof(ofEntry(index), known, { entry }),
        ...(entry.length === 0 ? [] : [verifyProof(ofEntry(index, entry), known)]),
        verifyProof(ofEntry(index, Buffer.from('something else')), known, { entry }),
      ];
      for (const result of results) {
        expect(result.verdict).toBe(isRecord ? 'invalid' : 'ok');
        expect(result.entry).toMatchObject({ kind: isRecord ? 'record' : 'bytes', size_bytes: entry.length });
        expect(result.not_checked.some(({ code }) => code === 'NOT_A_RECORD')).toBe(!isRecord);
        if (!isRecord) expect(result).toMatchObject({ event: null, event_id: null, event_signatures: [] });
      }
    }
    const shown = renderProofResult(verifyProof(ofEntry(0), known, { entry: entries[0] }), 'f', plainPaint);
    expect(shown).toContain('not a record of this format');
  });

  it('is nothing without its log’s key, with another entry, or where events must be signed', () => {
    const [entry] = entries;
    expect(verifyProof(ofEntry(0), {}, { entry }).verdict).toBe('undecided');
    expect(codes(verifyProof(ofEntry(0), known, { entry: entries[1] }))).toEqual(['PROOF_INVALID']);
    expect(codes(verifyProof(ofEntry(0, Buffer.from('opaque')), known))).toEqual(['PROOF_INVALID']);
    const required = policyOf([own], { require: { event_signatures: 'required' } });
    expect(codes(verifyProof(ofEntry(0), required, { entry }))).toEqual(['SIGNATURE_MISSING']);
  });
});

describe('no proof is made', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    ['of a record after the last checkpoint', () => makeProof(open, '7'), 'CHECKPOINT_MISSING'],
    [
      'of a record that the given checkpoint does not cover',
      () => makeProof(open, '5', { checkpoint: noteOf(lines.slice(0, 5)) }),
      'CHECKPOINT_MISSING',
    ],
    [
      'from a ledger without a checkpoint',
      () => makeProof(opener(lines.slice(0, 4)), '1'),
      'CHECKPOINT_MISSING',
    ],
    ['of what is not there', () => makeProof(open, '99'), 'RECORD_NOT_FOUND'],
    ['of what cannot be an id', () => makeProof(open, '!'), 'USAGE'],
    ['under what is no note', () => makeProof(open, '1', { checkpoint: Buffer.from('x') }), 'NOTE_MALFORMED'],
    [
      'when the ledger is shorter than the note says',
      () => makeProof(opener(lines.slice(0, 6)), '1', { checkpoint: noteOf(lines) }),
      'TRUNCATED',
    ],
    [
      'when the ledger is another than the note says',
      () => makeProof(open, '1', { checkpoint: noteOf([...lines.slice(0, 4), Buffer.from('{}')]) }),
      'FORKED',
    ],
    [
      'when a record before the checkpoint was changed',
      () => makeProof(opener(lines.with(2, lines[1])), '3'),
      'CHECKPOINT_ROOT_MISMATCH',
    ],
    [
      'when a record before the checkpoint was dropped',
      () => makeProof(opener(lines.toSpliced(2, 1)), '3'),
      'CHECKPOINT_ROOT_MISMATCH',
    ],
    [
      'of a record that stands in another place than it says',
      () => {
        const moved = [lines[0], lines[2], lines[1]];
        return makeProof(opener(moved), '1', { checkpoint: noteOf(moved) });
      },
      'SEQ_GAP',
    ],
    [
      'of a broken record',
      () => makeProof(opener([Buffer.from(lines[0].toString().replace('"seq":0', '"seq":0,"sez":1'))]), '0'),
      'SCHEMA',
    ],
    [
      'of a bare event',
      () => {
        const { event } = JSON.parse(lines[1].toString()) as { event: object };
        return makeProof(opener([Buffer.from(JSON.stringify(event))]), '0');
      },
      'NOT_A_LEDGER',
    ],
  ])('%s', async (_what, make, code) => {
    expect(await errorOf(make())).toMatchObject({ name: 'NorthrootError', code });
  });

  it('when it is interrupted', async () => {
    const signal = AbortSignal.abort(new Error('stop'));
    await expect(makeProof(open, '1', { signal })).rejects.toThrow('stop');
    const settings = { signal, checkpoint: noteOf(lines) };
    await expect(makeConsistencyProof(open, noteOf(lines), settings)).rejects.toThrow('stop');
  });

  it('under a checkpoint of the ledger that states another root or size', async () => {
    const first = lines.slice(0, 3);
    const sealedBy = (note: Buffer): Buffer[] => [...first, checkpointLine(first, note)];
    expect(await makeProof(opener(sealedBy(noteOf(first))), '1')).toMatchObject({ index: 1 });
    const otherRoot = sealedBy(noteOf(first, { root: 'x'.repeat(32) }));
    expect(await codeOf(makeProof(opener(otherRoot), '1'))).toBe('CHECKPOINT_ROOT_MISMATCH');
    const otherSize = sealedBy(noteOf(first.slice(1)));
    expect(await codeOf(makeProof(opener(otherSize), '1'))).toBe('CHECKPOINT_SIZE_MISMATCH');
  });
});

describe('a consistency proof', () => {
  it('is made between each pair of checkpoints, and verifies', async () => {
    for (let size2 = 0; size2 <= lines.length; size2 += 1) {
      for (let size1 = 0; size1 <= size2; size1 += 1) {
        const old = noteOf(lines.slice(0, size1));
        const checkpoint = noteOf(lines.slice(0, size2));
        const made = await makeConsistencyProof(open, old, { checkpoint });
        const result = verifyConsistencyProof(made.bytes, old, known);
        expect(result).toMatchObject({ verdict: 'ok', exit_status: 0, problems: [], origin: ORIGIN });
        expect([result.old_tree?.tree_size, result.tree?.tree_size]).toEqual([size1, size2]);
      }
    }
  });

  it('leads to the last checkpoint of the ledger', async () => {
    const made = await makeConsistencyProof(open, noteOf(lines.slice(0, 3)));
    expect(made).toMatchObject({ oldCheckpoint: { size: 3 }, checkpoint: { size: sealed } });
  });

  it.each<[string, () => Promise<unknown>, string]>([
    [
      'the ledger is shorter',
      () => makeConsistencyProof(opener(lines.slice(0, 6)), noteOf(lines)),
      'TRUNCATED',
    ],
    [
      'the ledger is shorter and has no checkpoint',
      () => makeConsistencyProof(opener(lines.slice(0, 3)), noteOf(lines)),
      'TRUNCATED',
    ],
    [
      'the ledger is another',
      () => makeConsistencyProof(open, noteOf([...lines.slice(0, 2), Buffer.from('{}')])),
      'FORKED',
    ],
    [
      'the ledger is another from the beginning',
      () => makeConsistencyProof(open, noteOf([], { root: 'x'.repeat(32) })),
      'FORKED',
    ],
    [
      'the checkpoint is of another log',
      () => makeConsistencyProof(open, noteOf(lines.slice(0, 2), { origin: 'o' })),
      'ORIGIN_MISMATCH',
    ],
    ['there is no newer checkpoint', () => makeConsistencyProof(open, noteOf(lines)), 'CHECKPOINT_MISSING'],
    ['the old note is none', () => makeConsistencyProof(open, Buffer.from('x')), 'NOTE_MALFORMED'],
  ])('is not made when %s', async (_what, make, code) => {
    expect(await errorOf(make())).toMatchObject({ code });
  });

  it('proves nothing without the right key, or with another checkpoint', async () => {
    const old = noteOf(lines.slice(0, 3));
    const { bytes } = await makeConsistencyProof(open, old);
    expect(verifyConsistencyProof(bytes, old, {})).toMatchObject({ verdict: 'undecided', exit_status: 2 });
    const others: [Buffer, string][] = [
      [noteOf(lines.slice(0, 2)), 'PROOF_INVALID'],
      [noteOf(lines.slice(1, 4)), 'PROOF_INVALID'],
      [noteOf(lines.slice(0, 3), { origin: 'example.com/other' }), 'ORIGIN_MISMATCH'],
      [noteOf(lines.slice(0, 3), { by: stranger }), 'KEY_UNKNOWN'],
      [Buffer.from('x'), 'NOTE_MALFORMED'],
    ];
    for (const [note, code] of others) {
      const result = verifyConsistencyProof(bytes, note, known);
      expect(result.verdict).not.toBe('ok');
      expect(codes(result)).toEqual([code]);
    }
    const pinned = policyOf([own], { origins: ['example.com/other'] });
    expect(codes(verifyConsistencyProof(bytes, old, pinned))).toEqual(['ORIGIN_MISMATCH', 'ORIGIN_MISMATCH']);
  });

  it('says, as any proof does, that the age which a policy bounds was not checked', async () => {
    const old = noteOf(lines.slice(0, 3));
    const { bytes } = await makeConsistencyProof(open, old);
    const made = await makeReceipt(open, '1', { signer });
    const gaps = (trust: ProofTrust): string[][] =>
      [
        verifyProof(proof3, trust),
        verifyReceipt(made.bytes, trust, { entry: made.entry }),
        verifyConsistencyProof(bytes, old, trust),
      ].map(({ verdict, not_checked: list }) => {
        expect(verdict).toBe('ok');
        return list.map(({ code }) => code).filter((code) => code === 'CHECKPOINT_AGE');
      });
    expect(gaps(policyOf([own], { require: { checkpoint_max_age_seconds: 1 } })).flat()).toHaveLength(3);
    expect(gaps(policyOf([own])).flat()).toEqual([]);
  });

  it('proves no more after any change of a byte, in either file, or when cut', async () => {
    const old = noteOf(lines.slice(0, 3));
    const { bytes } = await makeConsistencyProof(open, old, { checkpoint: noteOf(lines.slice(0, 10)) });
    expect(verifyConsistencyProof(bytes, old, known).verdict).toBe('ok');
    for (const { changed } of changedBytes(bytes)) {
      expect(verifyConsistencyProof(changed, old, known).verdict).not.toBe('ok');
    }
    for (const { changed } of changedBytes(old)) {
      expect(verifyConsistencyProof(bytes, changed, known).verdict).not.toBe('ok');
    }
    for (let at = 0; at < bytes.length; at += 1) {
      expect(verifyConsistencyProof(bytes.subarray(0, at), old, known).verdict).toBe('invalid');
    }
  });
});
