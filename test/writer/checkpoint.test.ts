/** Checkpoints that a writer makes, by count, by time and on demand; those that it is given; and the keys that come and go. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import { formatNote, parseNote } from '../../src/format/note/signed-note.js';
import { cosignNote } from '../../src/format/note/note-key.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Report } from '../../src/rules/report/report.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { digestFromBase64url } from '../../src/base/value/digest.js';
import type { Ledger, Appended, CheckpointResult, LedgerOptions } from '../../src/log/writer/ledger.js';
import { FaultyFileSystem, soundFileSystem, type Fault } from './file-systems.js';
import {
  codeOf,
  draft,
  errorOf,
  NOON,
  openLedger,
  openUnsigned,
  otherSigner,
  readBytes,
  readRecords,
  signer,
  temporaryFolder,
  type WireRecord,
} from './support.js';

const ORIGIN = 'example.com/tests/writer';

function newPath(name = 'ledger.jsonl'): string {
  return join(temporaryFolder(), name);
}

function typesOf(path: string): string[] {
  return readRecords(path).map(({ event }) => event['event_type'] as string);
}

/** The places of the checkpoints. */
function sealsOf(path: string): number[] {
  return typesOf(path).flatMap((type, seq) => (type === 'checkpoint' ? [seq] : []));
}

/** Asserts that a ledger is right, that each of its checkpoints counts, and returns its report. */
async function expectSealed(path: string): Promise<Report> {
  const report = await verifyLedger(path);
  const places = sealsOf(path);
  expect({
    verdict: report.verdict,
    findings: report.findings.filter(({ severity }) => severity !== 'info'),
  }).toEqual({
    verdict: 'ok',
    findings: [],
  });
  expect(report.checkpoints).toMatchObject({ count: places.length, last_tree_size: places.at(-1) ?? null });
  return report;
}

/** A clock that is set by hand. */
function handClock(at = NOON): { now: () => string; move: (seconds: number) => void } {
  let time = Date.parse(at);
  return { now: () => new Date(time).toISOString(), move: (seconds) => (time += seconds * 1000) };
}

function newSigner(alg: 'ed25519' | 'p256' = 'ed25519'): Signer {
  return createSigner(generatePrivateKey(alg));
}

/** The draft of a key event. */
function keyEvent(
  action: 'add' | 'revoke',
  { publicKey }: Signer,
  more: object = {},
  event: object = {},
): object {
  const key = {
    keyid: publicKey.keyid,
    public_key: formatPublicKey(publicKey),
    roles: ['event'],
    principals: ['*'],
  };
  return { event_type: 'key', action, key: { ...key, ...more }, ...event };
}

/** The members of a checkpoint event, of a record in a ledger. */
function checkpointDraft(record: WireRecord, more: object = {}): object {
  const { event_type, principal_id, occurred_at, tree_size, root, chain_tip_event_id, note } = record.event;
  return { event_type, principal_id, occurred_at, tree_size, root, chain_tip_event_id, note, ...more };
}

describe('a checkpoint on demand', () => {
  test('covers what was appended before it, and says so', async () => {
    const path = newPath();
    const told: CheckpointResult[] = [];
    const ledger = await openLedger(path, { checkpoints: true, onCheckpoint: (made) => told.push(made) });
    const [, made] = await Promise.all([
      ledger.append({ event: draft(1) }),
      ledger.checkpoint(),
      ledger.append({ event: draft(2) }),
    ]);
    const again = await ledger.checkpoint('agent:a2');
    await ledger.close();
    const records = readRecords(path);
    expect(typesOf(path)).toEqual(['genesis', 'x.test', 'checkpoint', 'x.test', 'checkpoint']);
    expect(made).toEqual({
      seq: 2,
      eventId: `sha-256:${records[2].event.event_id.b64}`,
      status: 'appended',
      note: records[2].event['note'],
      treeSize: 2,
      findings: [],
      verdict: 'ok',
    });
    expect(told).toEqual([made, again]);
    expect(records.map(({ event }) => event['principal_id'])).toEqual([
      records[0].event['principal_id'],
      'agent:a1',
      records[0].event['principal_id'],
      'agent:a1',
      'agent:a2',
    ]);
    expect(parseNote(Buffer.from(made.note)).text.startsWith(`${ORIGIN}\n2\n`)).toBe(true);
    await expectSealed(path);
  });

  test('is taken up by a writer that comes later', async () => {
    const path = newPath();
    for (let run = 0; run < 4; run += 1) {
      const ledger = await openLedger(path, { checkpoints: true });
      await ledger.append({ event: draft(run) });
      expect((await ledger.checkpoint()).treeSize).toBe(2 + 2 * run);
      await ledger.close();
    }
    expect(sealsOf(path)).toEqual([2, 4, 6, 8]);
    await expectSealed(path);
  });

  test('needs a ledger that was opened for it, and a signer', async () => {
    const plain = await openLedger(newPath());
    expect(await errorOf(plain.checkpoint())).toBeInstanceOf(TypeError);
    const unsigned = await openUnsigned(newPath(), { checkpoints: true });
    expect(await codeOf(unsigned.checkpoint())).toBe('SIGNATURE_MISSING');
    await unsigned.close();
    expect(await errorOf(unsigned.checkpoint())).toBeInstanceOf(TypeError);
  });

  test.each<[string, string, () => Promise<Ledger>]>([
    [
      'a P-256 key',
      'KEY_UNSUPPORTED',
      () => openLedger(newPath(), { signer: newSigner('p256'), checkpoints: true }),
    ],
    [
      'a key that the ledger does not know',
      'KEY_UNKNOWN',
      async () => {
        const path = newPath();
        await (await openLedger(path)).close();
        return openLedger(path, { signer: otherSigner, checkpoints: true });
      },
    ],
    [
      'a key without the role checkpoint',
      'KEY_NOT_FOR_ROLE',
      async () => {
        const path = newPath();
        const first = await openLedger(path);
        await first.append({ event: keyEvent('add', otherSigner) });
        await first.close();
        return openLedger(path, { signer: otherSigner, checkpoints: true });
      },
    ],
    [
      'a key whose time is over',
      'KEY_NOT_VALID_HERE',
      async () => {
        const path = newPath();
        const first = await openLedger(path);
        const more = { roles: ['event', 'checkpoint'], valid_until: '2026-01-01T12:00:00Z' };
        await first.append({ event: keyEvent('add', otherSigner, more) });
        await first.close();
        return openLedger(path, { signer: otherSigner, checkpoints: true });
      },
    ],
    [
      'a key that was revoked',
      'KEY_NOT_VALID_HERE',
      async () => {
        const ledger = await openLedger(newPath(), { checkpoints: true });
        await ledger.append({
          event: keyEvent('add', otherSigner, { roles: ['event', 'checkpoint', 'admin'] }),
        });
        await ledger.checkpoint();
        await ledger.append({ event: keyEvent('revoke', signer) });
        return ledger;
      },
    ],
  ])('is not made with %s', async (_what, code, open) => {
    const ledger = await open();
    const before = readBytes(ledger.path);
    const error = await errorOf(ledger.checkpoint());
    expect(error).toMatchObject({ code });
    expect(readBytes(ledger.path)).toEqual(before);
    const { verdict } = await verifyLedger(ledger.path);
    expect(verdict).toBe('ok');
  });

  test('of an unsigned ledger seals it for whoever pins the key', async () => {
    const path = newPath();
    await (await openUnsigned(path)).close();
    const ledger = await openLedger(path, { checkpoints: true });
    await ledger.append({ event: draft(1) });
    await ledger.checkpoint();
    await ledger.close();
    const key = {
      keyid: signer.publicKey.keyid,
      public_key: formatPublicKey(signer.publicKey),
      roles: ['event' as const, 'checkpoint' as const],
      principals: ['*'],
    };
    const unpinned = await verifyLedger(path);
    expect(unpinned.checkpoints).toMatchObject({ count: 1, last_tree_size: null });
    const pinned = await verifyLedger(path, { trust: { trust_version: '1', keys: [key], require: {} } });
    expect(pinned.checkpoints).toMatchObject({ count: 1, last_tree_size: 2 });
  });
});

describe('checkpoints by count', () => {
  test.each<[number, number, number[]]>([
    // Genesis counts as the first.
    [1, 3, [1, 3, 5, 7]],
    [3, 8, [3, 7, 11]],
    [4, 3, [4]],
    [100, 9, []],
  ])('every %i records, in one group of %i events', async (records, count, expected) => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpointEvery: { records } });
    const calls = Array.from({ length: count }, (_, n) => ledger.append({ event: draft(n) }));
    const appended = await Promise.all(calls);
    await ledger.close();
    expect(sealsOf(path)).toEqual(expected);
    const lines = readRecords(path);
    for (const { seq, eventId } of appended) expect(`sha-256:${lines[seq].event.event_id.b64}`).toBe(eventId);
    await expectSealed(path);
  });

  test('are counted on from one writer to the next', async () => {
    const path = newPath();
    for (let run = 0; run < 6; run += 1) {
      const ledger = await openLedger(path, { checkpointEvery: { records: 3 } });
      await Promise.all([
        ledger.append({ event: draft(2 * run) }),
        ledger.append({ event: draft(2 * run + 1) }),
      ]);
      await ledger.close();
    }
    // Every third record since the last one is followed by a checkpoint.
    expect(sealsOf(path)).toEqual([3, 7, 11, 15]);
    await expectSealed(path);
  });

  test('count no event that the ledger has already', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpointEvery: { records: 3 } });
    for (let n = 0; n < 5; n += 1) await ledger.append({ event: draft(1) });
    await ledger.append({ event: draft(2) });
    await ledger.close();
    expect(sealsOf(path)).toEqual([3]);
  });

  test('are made across segments', async () => {
    const path = newPath('ledger/');
    for (let run = 0; run < 3; run += 1) {
      const ledger = await openLedger(path, { checkpointEvery: { records: 2 }, segmentBytes: 1_500 });
      for (let n = 0; n < 7; n += 1) await ledger.append({ event: draft(10 * run + n) });
      await ledger.close();
    }
    expect(sealsOf(path).length).toBeGreaterThan(9);
    await expectSealed(path);
  });

  test('hold for more records than one group has', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpointEvery: { records: 700 } });
    await Promise.all(Array.from({ length: 2_500 }, (_, n) => ledger.append({ event: draft(n) })));
    await ledger.close();
    expect(sealsOf(path)).toEqual([700, 1401, 2102]);
    await expectSealed(path);
  });

  test.each([{ records: 0 }, { records: 1.5 }, { records: NaN }, { milliseconds: 0 }, { milliseconds: NaN }])(
    'not with %j',
    async (checkpointEvery) => {
      expect(await errorOf(openLedger(newPath(), { checkpointEvery }))).toBeInstanceOf(RangeError);
    },
  );

  test('and a signer that may not make them is told of when the ledger is opened', async () => {
    const checkpointEvery = { records: 10 };
    expect(await codeOf(openUnsigned(newPath(), { checkpointEvery }))).toBe('SIGNATURE_MISSING');
    const path = newPath();
    expect(await codeOf(openLedger(path, { checkpointEvery, signer: newSigner('p256') }))).toBe(
      'KEY_UNSUPPORTED',
    );
  });
});

describe('checkpoints by time', () => {
  test('follow the first record that comes when they are due', async () => {
    const path = newPath();
    const { now, move } = handClock();
    const ledger = await openLedger(path, { now, checkpointEvery: { milliseconds: 60_000 } });
    for (let n = 0; n < 6; n += 1) {
      move(25);
      await ledger.append({ event: draft(n) });
    }
    await ledger.close();
    // After 75 s, and 75 s after that.
    expect(typesOf(path)).toEqual([
      'genesis',
      'x.test',
      'x.test',
      'x.test',
      'checkpoint',
      'x.test',
      'x.test',
      'x.test',
      'checkpoint',
    ]);
    await expectSealed(path);
  });

  test('come by themselves when no record does, once', async () => {
    const path = newPath();
    const made: CheckpointResult[] = [];
    const ledger = await openLedger(path, {
      now: () => new Date().toISOString(),
      checkpointEvery: { milliseconds: 30 },
      onCheckpoint: (checkpoint) => made.push(checkpoint),
    });
    await expect.poll(() => made.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(made).toHaveLength(1);
    await ledger.append({ event: draft(1) });
    await expect.poll(() => made.length).toBe(2);
    await ledger.close();
    await expectSealed(path);
  });

  test('a clock that goes back does no harm', async () => {
    const path = newPath();
    const { now, move } = handClock();
    const ledger = await openLedger(path, { now, checkpointEvery: { milliseconds: 1_000, records: 5 } });
    for (let n = 0; n < 12; n += 1) {
      move(n % 2 === 0 ? 5 : -3_600);
      await ledger.append({ event: draft(n) });
    }
    await ledger.close();
    const { verdict } = await verifyLedger(path);
    expect(verdict).toBe('ok');
    expect(sealsOf(path).length).toBeGreaterThan(0);
  });

  test('closing waits for what was asked, and makes none that was not', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpointEvery: { milliseconds: 3_600_000 } });
    const calls = [
      ledger.append({ event: draft(1) }),
      ledger.checkpoint(),
      ledger.append({ event: draft(2) }),
    ];
    await ledger.close();
    await Promise.all(calls);
    expect(typesOf(path)).toEqual(['genesis', 'x.test', 'checkpoint', 'x.test']);
    await expectSealed(path);
  });
});

test('a listener that throws does not stop the ledger', async () => {
  const path = newPath();
  const thrown: unknown[] = [];
  const before = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => thrown.push(error));
  try {
    const ledger = await openLedger(path, {
      checkpoints: true,
      onCheckpoint: () => {
        throw new Error('the listener failed');
      },
    });
    await ledger.checkpoint();
    await ledger.append({ event: draft(1) });
    await ledger.checkpoint();
    await ledger.close();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of before) process.on('uncaughtException', listener);
  }
  expect(thrown).toHaveLength(2);
  expect(sealsOf(path)).toEqual([1, 3]);
  await expectSealed(path);
});

describe('a checkpoint that is given', () => {
  /** A ledger, and the checkpoint that a copy of it got next. */
  async function prepare(): Promise<{ path: string; event: (more?: object) => object }> {
    const copy = newPath();
    const path = newPath();
    for (const each of [copy, path]) {
      const ledger = await openLedger(each);
      await ledger.append({ event: draft(1) });
      await ledger.append({ event: draft(2) });
      await ledger.close();
    }
    const sealed = await openLedger(copy, { checkpoints: true });
    await sealed.checkpoint();
    await sealed.close();
    const record = readRecords(copy)[3];
    return { path, event: (more = {}) => buildEvent(checkpointDraft(record, more)) };
  }

  test.each([true, false])('is appended where it fits, tree kept: %s', async (checkpoints) => {
    const { path, event } = await prepare();
    const ledger = await openLedger(path, { checkpoints });
    expect(await ledger.append({ event: event() })).toMatchObject({ seq: 3, status: 'appended' });
    expect(await ledger.append({ event: event() })).toMatchObject({ seq: 3, status: 'exists' });
    await ledger.append({ event: draft(3) });
    await ledger.close();
    await expectSealed(path);
  });

  const zeros = digestFromBase64url('A'.repeat(43));
  const otherNote = (text: string): string => {
    const line = cosignNote(text, 'witness.example', otherSigner, 1_800_000_000);
    return formatNote({ text, signatures: [line] });
  };
  describe.each([true, false])('where the tree is kept: %s', (checkpoints) => {
    test.each<[string, string, (note: string) => object]>([
      ['another size', 'CHECKPOINT_SIZE_MISMATCH', () => ({ tree_size: 2 })],
      ['another root', 'CHECKPOINT_ROOT_MISMATCH', () => ({ root: zeros })],
      ['another tip', 'CHECKPOINT_ROOT_MISMATCH', () => ({ chain_tip_event_id: zeros })],
      ['a note that is none', 'CHECKPOINT_NOTE_MALFORMED', () => ({ note: 'none\n' })],
      [
        'a note of another tree',
        'CHECKPOINT_NOTE_MALFORMED',
        (note) => ({ note: otherNote(parseNote(Buffer.from(note)).text.replace('\n3\n', '\n2\n')) }),
      ],
      [
        'a note of another log',
        'ORIGIN_MISMATCH',
        (note) => ({
          note: otherNote(parseNote(Buffer.from(note)).text.replace(ORIGIN, 'example.com/other')),
        }),
      ],
      [
        'a wrong signature by a known key',
        'CHECKPOINT_SIGNATURE_INVALID',
        (note) => {
          const { text, signatures } = parseNote(Buffer.from(note));
          const wrong = signatures.map((line) => ({
            ...line,
            signature: line.signature.map((byte) => byte ^ 1),
          }));
          return { note: formatNote({ text, signatures: wrong }) };
        },
      ],
    ])('with %s is refused: %s', async (_what, code, change) => {
      const { path, event } = await prepare();
      const { note } = event() as { note: string };
      const ledger = await openLedger(path, { checkpoints });
      const before = readBytes(path);
      expect(await errorOf(ledger.append({ event: event(change(note)) }))).toMatchObject({
        code,
      });
      expect(readBytes(path)).toEqual(before);
      await ledger.append({ event: draft(8) });
      await ledger.close();
      expect((await verifyLedger(path)).verdict).toBe('ok');
    });
  });

  test('and refused has moved no clock', async () => {
    const { path, event } = await prepare();
    const ledger = await openLedger(path);
    const more = { roles: ['event'], valid_until: '2030-01-01T00:00:00Z' };
    await ledger.append({ event: keyEvent('add', otherSigner, more) });
    expect(await codeOf(ledger.append({ event: event({ occurred_at: '2031-01-01T00:00:00Z' }) }))).toBe(
      'CHECKPOINT_SIZE_MISMATCH',
    );
    await ledger.close();
    const later = await openLedger(path, { signer: otherSigner });
    await later.append({ event: draft(3) });
    await later.close();
    expect((await verifyLedger(path)).verdict).toBe('ok');
  });
});

describe('an attestation that is given', () => {
  async function prepare(): Promise<{ ledger: Ledger; made: CheckpointResult; path: string }> {
    const path = newPath();
    const ledger = await openLedger(path, { checkpoints: true });
    await ledger.append({ event: draft(1) });
    return { ledger, made: await ledger.checkpoint(), path };
  }
  const attestationOf = (id: string, note: string): object => ({
    event_type: 'attestation',
    checkpoint_event_id: digestFromBase64url(id.slice('sha-256:'.length)),
    note,
  });
  const withLine = (text: string): string => {
    const line = cosignNote(text, 'witness.example', otherSigner, 1_800_000_000);
    return formatNote({ text, signatures: [line] });
  };
  const spoilt = (note: string): string => {
    const { text, signatures } = parseNote(Buffer.from(note));
    const [line] = signatures;
    const wrong = { ...line, signature: line.signature.map((byte) => byte ^ 1) };
    return formatNote({ text, signatures: [wrong] });
  };

  test.each([true, false])('is held against its checkpoint, opened anew: %s', async (isOpenedAnew) => {
    const prepared = await prepare();
    const { made, path } = prepared;
    if (isOpenedAnew) await prepared.ledger.close();
    const ledger = isOpenedAnew ? await openLedger(path) : prepared.ledger;
    const { text } = parseNote(Buffer.from(made.note));
    const refused: [string, string, string][] = [
      [made.eventId, 'none\n', 'CHECKPOINT_NOTE_MALFORMED'],
      [made.eventId, withLine(text.replace('\n2\n', '\n1\n')), 'CHECKPOINT_NOTE_MALFORMED'],
      [ledger.genesisId, withLine(text), 'CHECKPOINT_MISSING'],
    ];
    for (const [id, note, code] of refused) {
      const error = await errorOf(ledger.append({ event: attestationOf(id, note) }));
      expect(error).toMatchObject({ code });
    }
    expect(ledger.size).toBe(made.seq + 1);
    await ledger.append({ event: attestationOf(made.eventId, withLine(text)) });
    // Whoever collected the lines signed them as they are.
    await ledger.append({ event: attestationOf(made.eventId, spoilt(made.note)) });
    await ledger.close();
    const { verdict, findings } = await verifyLedger(path);
    expect(verdict).toBe('ok');
    expect(findings.map(({ code, severity }) => `${code} ${severity}`)).toEqual([
      'CHECKPOINT_SIGNATURE_INVALID warning',
      'TAIL_UNSEALED info',
    ]);
  });
});

describe('keys', () => {
  test('come and go with key events, in this process and later ones', async () => {
    const path = newPath();
    const admin = await openLedger(path);
    expect((await admin.listKeys()).map(({ keyid }) => keyid)).toEqual([signer.publicKey.keyid]);
    await admin.append({ event: keyEvent('add', otherSigner) });
    expect((await admin.listKeys()).map(({ keyid }) => keyid)).toEqual([
      signer.publicKey.keyid,
      otherSigner.publicKey.keyid,
    ]);
    await admin.close();

    const added = await openLedger(path, { signer: otherSigner });
    await added.append({ event: draft(1) });
    expect(await codeOf(added.append({ event: keyEvent('revoke', signer) }))).toBe('KEY_NOT_FOR_ROLE');
    expect(await added.listKeys()).toHaveLength(2);
    await added.close();

    const again = await openLedger(path, { checkpoints: true });
    await again.checkpoint();
    await again.append({ event: keyEvent('revoke', otherSigner) });
    expect(await again.listKeys()).toHaveLength(1);
    for (const key of [signer, otherSigner]) {
      const event = keyEvent('add', key, {}, { reason: 'once more' });
      expect(await codeOf(again.append({ event }))).toBe('SCHEMA');
    }
    await again.close();

    const late = await openLedger(path, { signer: otherSigner });
    expect(await late.listKeys()).toHaveLength(1);
    expect(await codeOf(late.append({ event: draft(2) }))).toBe('KEY_NOT_VALID_HERE');
    await late.close();
    expect((await verifyLedger(path)).verdict).toBe('ok');
  });

  test('are as before after a key event that was refused in its place', async () => {
    const path = newPath();
    const missing = { prev_event_id: digestFromBase64url('A'.repeat(43)) };
    const ledger = await openLedger(path);
    expect(await codeOf(ledger.append({ event: keyEvent('add', otherSigner, {}, missing) }))).toBe(
      'PREV_EVENT_NOT_FOUND',
    );
    expect(await ledger.listKeys()).toHaveLength(1);
    expect(await codeOf(ledger.append({ event: keyEvent('revoke', signer, {}, missing) }))).toBe(
      'PREV_EVENT_NOT_FOUND',
    );
    // What waits behind it is judged without it.
    const refused = ledger.append({ event: keyEvent('add', otherSigner, {}, missing) });
    const behind = ledger.append({ event: keyEvent('revoke', otherSigner) });
    const other = ledger.append({ event: draft(1) });
    expect(await codeOf(refused)).toBe('PREV_EVENT_NOT_FOUND');
    expect((await behind).findings.map(({ code }) => code)).toEqual(['KEY_UNKNOWN']);
    await other;
    await ledger.append({ event: keyEvent('add', otherSigner) });
    await ledger.close();
    const next = await openLedger(path, { signer: otherSigner });
    await next.append({ event: draft(2) });
    await next.close();
    expect(typesOf(path)).toEqual(['genesis', 'key', 'x.test', 'key', 'x.test']);
    expect((await verifyLedger(path)).verdict).toBe('ok');
  });

  test('a key event that is given twice at once is appended once', async () => {
    const path = newPath();
    const ledger = await openLedger(path);
    const given = [keyEvent('add', otherSigner), keyEvent('revoke', signer)];
    const calls = given.flatMap((event) => [ledger.append({ event }), ledger.append({ event })]);
    const statuses = (await Promise.all(calls)).map(({ seq, status }) => `${seq} ${status}`);
    expect(statuses).toEqual(['1 appended', '1 exists', '2 appended', '2 exists']);
  });

  test('an admin may revoke the last admin: then nobody changes keys any more', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpoints: true });
    await ledger.append({ event: keyEvent('add', otherSigner, { roles: ['event', 'checkpoint'] }) });
    await ledger.append({ event: keyEvent('revoke', signer) });
    expect(await codeOf(ledger.append({ event: keyEvent('add', newSigner()) }))).toBe('KEY_NOT_VALID_HERE');
    await ledger.close();
    const other = await openLedger(path, { signer: otherSigner, checkpoints: true });
    expect(await codeOf(other.append({ event: keyEvent('add', newSigner()) }))).toBe('KEY_NOT_FOR_ROLE');
    await other.checkpoint();
    await other.close();
    await expectSealed(path);
  });
});

describe('whatever fails around a checkpoint', () => {
  const kinds: Omit<Fault, 'nth'>[] = [
    { operation: 'write', errno: 'ENOSPC', mode: 'once' },
    { operation: 'write', errno: 'ENOSPC', mode: 'short' },
    { operation: 'write', errno: 'ENOSPC', mode: 'short', then: ['truncate'] },
    { operation: 'datasync', errno: 'EIO', mode: 'once' },
    { operation: 'datasync', errno: 'EIO', mode: 'once', then: ['truncate'] },
    { operation: 'truncate', errno: 'EIO', mode: 'once' },
    { operation: 'size', errno: 'EIO', mode: 'once' },
    { operation: 'open', errno: 'EACCES', mode: 'once' },
    { operation: 'read', errno: 'EIO', mode: 'once' },
    { operation: 'syncFolderOf', errno: 'EIO', mode: 'once' },
  ];

  /** Appends and seals, as far as that goes; what was acknowledged, and what was told of. */
  async function work(
    path: string,
    fileSystem: FaultyFileSystem,
  ): Promise<{ done: Appended[]; told: CheckpointResult[] }> {
    const done: Appended[] = [];
    const told: CheckpointResult[] = [];
    const options: LedgerOptions = {
      fileSystem,
      segmentBytes: 2_500,
      checkpointEvery: { records: 3 },
      onCheckpoint: (checkpoint) => told.push(checkpoint),
    };
    const ledger = await openLedger(path, options).catch(() => undefined);
    if (ledger === undefined) return { done, told };
    for (let group = 0; group < 3; group += 1) {
      const calls = [
        ledger.append({ event: draft(10 * group) }),
        ledger.append({ event: draft(10 * group + 1) }),
        ledger.checkpoint(),
      ];
      for (const outcome of await Promise.allSettled(calls)) {
        if (outcome.status === 'fulfilled') done.push(outcome.value);
        else expect(outcome.reason).toMatchObject({ code: 'LEDGER_FAILED' });
      }
    }
    await ledger.close().catch(() => undefined);
    return { done, told };
  }

  describe.each(['ledger.jsonl', 'ledger/'])('%s', (name) => {
    test.each(
      kinds.map((kind) => [`${kind.operation}, ${kind.mode} ${(kind.then ?? []).join()}`, kind] as const),
    )('%s: nothing that was acknowledged is lost, and no half checkpoint is there', async (_label, kind) => {
      const folder = temporaryFolder();
      for (let nth = 1; ; nth += 1) {
        const path = join(folder, `${nth}-${name}`);
        const fileSystem = new FaultyFileSystem({ ...kind, nth });
        const { done, told } = await work(path, fileSystem);
        const healthy = await openLedger(path, {
          fileSystem: soundFileSystem,
          checkpoints: true,
          segmentBytes: 2_500,
        });
        await healthy.append({ event: draft(100) });
        await healthy.checkpoint();
        await healthy.close();
        await expectSealed(path);
        const records = readRecords(path);
        for (const { seq, eventId } of [...done, ...told]) {
          expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(eventId);
        }
        // A listener hears of what is on disk and of nothing else.
        for (const { seq, note } of told) expect(records[seq].event['note']).toBe(note);
        if (!fileSystem.fired) break;
      }
    });
  });
});

describe('what does not verify', () => {
  /** An execution of an authorization that is not there: accepted as evidence, and invalid. */
  const unlinked = {
    event_type: 'execution',
    intents: { intent_digest: digestFromBase64url('A'.repeat(43)) },
    auth_event_id: digestFromBase64url('A'.repeat(43)),
    tool_name: 'fs.read',
    meter_used: [],
    outcome: 'success',
  };
  const changed = async (count: number): Promise<string> => {
    const path = newPath();
    const ledger = await openLedger(path);
    for (let n = 1; n <= count; n += 1) await ledger.append({ event: draft(n) });
    await ledger.close();
    writeFileSync(path, readFileSync(path, 'utf8').replace('"n":1', '"n":7'));
    return path;
  };

  test('is not sealed on demand', async () => {
    const path = await changed(3);
    const before = readBytes(path);
    const ledger = await openLedger(path, { checkpoints: true });
    expect(await errorOf(ledger.checkpoint())).toMatchObject({ code: 'LEDGER_INVALID' });
    expect(await codeOf(ledger.checkpoint())).toBe('LEDGER_INVALID');
    expect(readBytes(path)).toEqual(before);
    expect(await ledger.append({ event: draft(9) })).toMatchObject({ seq: 4 });
    await ledger.close();
    expect(sealsOf(path)).toEqual([]);
  });

  test('is not sealed by a schedule', async () => {
    const path = await changed(3);
    const codes: string[] = [];
    const ledger = await openLedger(path, {
      checkpointEvery: { records: 5 },
      onNotice: (notice) => codes.push('error' in notice ? notice.error.code : notice.code),
    });
    await ledger.append({ event: draft(4) });
    expect(codes).toEqual(['LEDGER_INVALID']);
    await ledger.close();
    expect(sealsOf(path)).toEqual([]);
  });

  test('is not sealed when it was appended after the last checkpoint, in the same group or before', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { checkpoints: true });
    await ledger.append({ event: draft(1) });
    await ledger.checkpoint();
    await ledger.append({ event: draft(2) });
    await ledger.checkpoint();
    const [appended, refused] = [ledger.append({ event: unlinked }), codeOf(ledger.checkpoint())];
    expect(await appended).toMatchObject({ status: 'appended' });
    expect(await refused).toBe('LEDGER_INVALID');
    await ledger.append({ event: draft(3) });
    expect(await codeOf(ledger.checkpoint())).toBe('LEDGER_INVALID');
    await ledger.close();
    expect(sealsOf(path)).toEqual([2, 4]);
  });

  test('is found in a folder of segments too', async () => {
    const path = newPath('ledger/');
    const ledger = await openLedger(path, { checkpoints: true, segmentBytes: 1 });
    await ledger.append({ event: draft(1) });
    await ledger.append({ event: draft(2) });
    await ledger.checkpoint();
    await ledger.append({ event: unlinked });
    expect(await codeOf(ledger.checkpoint())).toBe('LEDGER_INVALID');
    await ledger.close();
    const again = await openLedger(path, { checkpoints: true, segmentBytes: 1 });
    expect(await codeOf(again.checkpoint())).toBe('LEDGER_INVALID');
    await again.close();
    expect(sealsOf(path)).toEqual([3]);
  });
});
