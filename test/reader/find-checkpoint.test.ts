import { describe, expect, test } from 'vitest';
import { buildCheckpoint, buildEvent, type AnyEvent } from '../../src/format/event/build.js';
import { streamSource } from '../../src/log/fs/source.js';
import { bytesSource } from '../bytes-source.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { formatRecord } from '../../src/format/record/record.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, signNote } from '../../src/format/note/note-key.js';
import { formatNote, formatSignatureLine, type NoteSignature } from '../../src/format/note/signed-note.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';
import { digestFromBase64url } from '../../src/base/value/digest.js';
import { findCheckpoint } from '../../src/log/read/find-checkpoint.js';
import { ed25519Key } from '../key/key-samples.js';
import { inChunks } from '../verify/support.js';

const ORIGIN = 'example.com/tests/find';
const DEFAULTS = { occurredAt: '2026-01-01T00:00:00Z', principalId: 'service:ledger' };
const signer = createSigner(ed25519Key(Buffer.alloc(32, 3)));
const ROOT = leafHash(Buffer.from('any'));

const textOf = (size: number, origin = ORIGIN): string =>
  formatCheckpoint({ origin, size, root: ROOT, extensions: [] });
const own = (size: number): NoteSignature => signNote(textOf(size), ORIGIN, signer);
const witness = (size: number, n: number): NoteSignature =>
  cosignNote(textOf(size), `w.example/${n}`, signer, n);
const note = (size: number, ...signatures: NoteSignature[]): string =>
  formatNote({ text: textOf(size), signatures });

function checkpoint(size: number, text = note(size, own(size))): AnyEvent {
  const root = digestFromBase64url(hashToBase64url(ROOT)) as { alg: 'sha-256'; b64: string };
  const draft = { tree_size: size, root, chain_tip_event_id: root, note: text };
  return buildCheckpoint(draft, DEFAULTS) as unknown as AnyEvent;
}

function attestation(of: AnyEvent, text: string): AnyEvent {
  return buildEvent({ event_type: 'attestation', checkpoint_event_id: of.event_id, note: text }, DEFAULTS);
}

const filler = (n: number): AnyEvent => buildEvent({ event_type: 'x.filler', n }, DEFAULTS);

function lineOf(event: AnyEvent, seq: number): Buffer {
  const prev = hashToBase64url(leafHash(Buffer.of()));
  return Buffer.from(formatRecord({ eventText: canonicalText(event), prev, seq, signatures: [] }));
}

function ledgerOf(...events: AnyEvent[]): Buffer {
  return Buffer.concat(events.map(lineOf));
}

const find = (bytes: Buffer): ReturnType<typeof findCheckpoint> =>
  findCheckpoint(bytesSource(bytes, 'ledger'));

describe('findCheckpoint', () => {
  test('finds nothing in a ledger without a checkpoint', async () => {
    expect(await find(Buffer.of())).toBeUndefined();
    const talks = buildEvent({ event_type: 'x.talk', text: '"event_type":"checkpoint"' }, DEFAULTS);
    expect(await find(ledgerOf(filler(1), talks))).toBeUndefined();
  });

  test('finds the last one, wherever it stands, in chunks of any size', async () => {
    const last = checkpoint(2);
    const bytes = ledgerOf(filler(1), checkpoint(1), last, filler(2));
    const expected = {
      note: note(2, own(2)),
      checkpoint: { origin: ORIGIN, size: 2, root: ROOT, extensions: [] },
      eventId: `sha-256:${last.event_id.b64}`,
      seq: 2,
      attestations: 0,
      records: 4,
    };
    expect(await find(bytes)).toEqual(expected);
    for (const size of [1, 7, 64, 1_000]) {
      expect(await findCheckpoint(streamSource(inChunks(bytes, size), 'ledger'))).toEqual(expected);
    }
  });

  test('adds what attestations add, each signature once, in their order', async () => {
    const last = checkpoint(1, note(1, own(1), witness(1, 1)));
    const bytes = ledgerOf(
      filler(1),
      last,
      attestation(last, note(1, witness(1, 2), witness(1, 1))),
      attestation(last, note(1, witness(1, 3), own(1))),
    );
    expect((await find(bytes))?.note).toBe(note(1, own(1), witness(1, 1), witness(1, 2), witness(1, 3)));
  });

  test('adds nothing of other checkpoints', async () => {
    const [earlier, last] = [checkpoint(0), checkpoint(1)];
    const bytes = ledgerOf(
      earlier,
      last,
      attestation(earlier, note(0, witness(0, 1))),
      attestation(earlier, note(1, witness(1, 2))),
      attestation(last, note(2, witness(2, 3))),
      attestation(last, formatNote({ text: textOf(1, 'example.com/other'), signatures: [witness(1, 4)] })),
    );
    expect((await find(bytes))?.note).toBe(note(1, own(1)));
  });

  test('never makes a note of more signatures than a note may have', async () => {
    const last = checkpoint(0);
    const many = Array.from({ length: 99 }, (_, n) => witness(0, n));
    const bytes = ledgerOf(
      last,
      attestation(last, note(0, ...many)),
      attestation(last, note(0, witness(0, 200))),
    );
    expect((await find(bytes))?.note).toBe(note(0, own(0), ...many));
  });

  test.each([
    ['a note that is none', checkpoint(1, 'example.com/tests/find\n1\n')],
    ['a note without signatures', checkpoint(1, `${textOf(1)}\n`)],
    ['a note of something else', checkpoint(1, `hello\n\n${formatSignatureLine(own(1))}\n`)],
    ['a changed event', { ...checkpoint(1), tree_size: 2 }],
  ])('passes over %s', async (_name, event) => {
    expect(await find(ledgerOf(checkpoint(0), event, filler(1)))).toMatchObject({ seq: 0, records: 3 });
    expect(await find(ledgerOf(event))).toBeUndefined();
  });

  test('passes over lines that are no records', async () => {
    const junk = '{"event":{"event_type":"checkpoint"}}\n\n"event_type":"checkpoint"\n[]\n';
    const bytes = Buffer.concat([Buffer.from(junk), lineOf(checkpoint(3), 3), Buffer.alloc(70_000, 'a')]);
    expect(await find(bytes)).toMatchObject({ seq: 3, records: 4 });
    const torn = lineOf(checkpoint(3), 3).subarray(0, -1);
    expect(await find(torn)).toBeUndefined();
  });

  test('ends when it is told to', async () => {
    const run = findCheckpoint(bytesSource(ledgerOf(checkpoint(0)), 'ledger'), {
      signal: AbortSignal.abort('enough'),
    });
    await expect(run).rejects.toBe('enough');
  });
});
