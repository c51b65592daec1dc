import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { signEvent } from '../../src/format/signature/signer.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import {
  draft,
  expectSound,
  judge,
  makeLedger,
  NOON,
  openLedger,
  openUnsigned,
  otherSigner,
  readBytes,
  readRecords,
  signer,
  temporaryFolder,
} from './support.js';

const defaults = { principalId: 'agent:a1', occurredAt: NOON };

describe('append', () => {
  test('completes a draft: envelope, binding, ids, signature, place', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const appended = await ledger.append({ event: draft(1) });
    await ledger.close();
    const [, record] = readRecords(path);
    expect(record.event).toEqual(buildEvent(draft(1), { ...defaults, ledgerId: ledger.genesisId }));
    expect(record.signatures).toEqual([signEvent(canonicalBytes(record.event), signer)]);
    expect(appended).toEqual({
      seq: 1,
      eventId: `sha-256:${record.event.event_id.b64}`,
      status: 'appended',
      findings: [],
      verdict: 'ok',
    });
    await expectSound(path, 2);
  });

  test('leaves to a draft what it says itself', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    await ledger.append({
      event: draft(1, { principal_id: 'human:h', occurred_at: '2026-01-01T00:00:00.5Z' }),
    });
    await ledger.close();
    expect(readRecords(path)[1].event).toMatchObject({
      principal_id: 'human:h',
      occurred_at: '2026-01-01T00:00:00.5Z',
    });
  });

  test('takes whole events as they are', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const intents = { intent_digest: sha256Digest(Buffer.from('intent')) };
    const execution = buildEvent(
      {
        event_type: 'execution',
        intents,
        auth_event_id: sha256Digest(Buffer.from('authorization')),
        tool_name: 'fs.read',
        meter_used: [],
        outcome: 'success',
      },
      defaults,
    );
    const ledger = await openLedger(path);
    const { eventId } = await ledger.append({ event: execution });
    await ledger.close();
    expect(eventId).toBe(`sha-256:${execution.event_id.b64}`);
    expect(readRecords(path)[1].event).toEqual(execution);
  });

  test('takes meta and signatures that come with an event, and adds its own', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const keys = [signer, otherSigner].map(({ publicKey }) => ownKeyEntry(publicKey));
    const ledger = await openLedger(path, {
      create: { origin: 'example.com/two', binding: 'optional', keys },
    });
    const events = [1, 2].map((n) => buildEvent(draft(n), defaults));
    const foreign = signEvent(canonicalBytes(events[0]), otherSigner);
    const own = signEvent(canonicalBytes(events[1]), signer);
    const meta = { 'trace.id': 'ü', attempt: '2' };
    await ledger.append({ event: events[0], meta, signatures: [foreign] });
    await ledger.append({ event: events[1], meta: {}, signatures: [own] });
    await ledger.close();
    const [, first, second] = readRecords(path);
    expect(first.meta).toEqual(meta);
    expect(first.signatures.map(({ keyid }) => keyid)).toEqual([
      otherSigner.publicKey.keyid,
      signer.publicKey.keyid,
    ]);
    expect(second.meta).toEqual({});
    expect(second.signatures).toEqual([own]);
    await expectSound(path, 3);
  });

  test('takes an event signed elsewhere into a ledger opened without a signer', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const event = buildEvent(draft(2), defaults);
    const ledger = await openUnsigned(path);
    await ledger.append({ event, signatures: [signEvent(canonicalBytes(event), signer)] });
    await ledger.close();
    await expectSound(path, 3);
  });

  test('takes signatures by unknown keys beside its own, or where none is required', async () => {
    const folder = temporaryFolder();
    const event = buildEvent(draft(1), defaults);
    const signatures = [signEvent(canonicalBytes(event), otherSigner)];
    for (const open of [openLedger, openUnsigned]) {
      const ledger = await open(join(folder, open.name));
      await ledger.append({ event, signatures });
      await ledger.close();
      // Verification warns of the key that it does not know; the ledger stands.
      expect(await judge(ledger.path)).toEqual({ verdict: 'ok', codes: ['KEY_UNKNOWN'], records: 2 });
    }
  });

  test('keeps what it was given at the call, whatever becomes of it', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const first: Record<string, unknown> = { ...draft(1) };
    const whole = structuredClone(buildEvent(draft(2), defaults)) as unknown as {
      n: number;
      event_id: { b64: string };
    };
    const meta = { step: 'one' };
    const appended = [ledger.append({ event: first, meta }), ledger.append({ event: whole, meta })];
    const { b64 } = whole.event_id;
    first['n'] = whole.n = 7;
    whole.event_id.b64 = 'x';
    meta.step = 'two';
    const [, { eventId }] = await Promise.all(appended);
    await ledger.close();
    expect(eventId).toBe(`sha-256:${b64}`);
    expect(readRecords(path).map(({ event, meta: kept }) => [event['n'], kept?.['step']])).toEqual([
      [undefined, undefined],
      [1, 'one'],
      [2, 'one'],
    ]);
    await expectSound(path, 3);
  });

  test('takes records up to the limits of SPEC §4', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const room = 65_535 - (await measureLine(ledger.append({ event: draft(1, { text: '' }) }), path));
    await ledger.append({ event: draft(1, { text: 'a'.repeat(room) }) });
    await ledger.append({ event: draft(2), meta: { a: 'b'.repeat(4096 - '{"a":""}'.length) } });
    await ledger.close();
    const lengths = readBytes(path)
      .toString('latin1')
      .split('\n')
      .map(({ length }) => length);
    expect(Math.max(...lengths)).toBe(65_535);
    await expectSound(path, 4);
  });
});

describe('the same event again', () => {
  test('is a no-op that gives its place: in the same group, in another, after reopening', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const group = await Promise.all([1, 2, 1].map((n) => ledger.append({ event: draft(n) })));
    expect(group.map(({ seq, status }) => [seq, status])).toEqual([
      [1, 'appended'],
      [2, 'appended'],
      [1, 'exists'],
    ]);
    const bytes = readBytes(path);
    const exists = { status: 'exists', verdict: undefined };
    expect(await ledger.append({ event: draft(1) })).toEqual({ ...group[0], ...exists });
    await ledger.close();
    const reopened = await openLedger(path);
    expect(await reopened.append({ event: draft(2) })).toEqual({ ...group[1], ...exists });
    expect(readBytes(path)).toEqual(bytes);
    expect((await reopened.append({ event: draft(3) })).seq).toBe(3);
    await reopened.close();
    await expectSound(path, 4);
  });

  test('is one whoever signs it, and asks for no signature', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 2);
    const bytes = readBytes(path);
    const ledger = await openUnsigned(path);
    for (const { event, seq } of readRecords(path)) {
      expect(await ledger.append({ event })).toEqual({
        seq,
        eventId: `sha-256:${event.event_id.b64}`,
        status: 'exists',
        findings: [],
        verdict: undefined,
      });
    }
    await ledger.close();
    expect(readBytes(path)).toEqual(bytes);
  });

  test('is found by its content: another time makes it another event', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    await ledger.append({ event: draft(1) });
    const { status } = await ledger.append({ event: draft(1, { occurred_at: '2026-01-01T12:00:00.0Z' }) });
    expect(status).toBe('appended');
    await ledger.close();
    await expectSound(path, 3);
  });
});

describe('prev_event_id', () => {
  const naming = (n: number, previous: { event_id: unknown }) => ({
    event: draft(n, { prev_event_id: previous.event_id }),
  });

  test('may name any earlier event: in the same group, in another, in the ledger as it was opened', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const first = buildEvent(draft(1), defaults);
    const ledger = await openLedger(path);
    await Promise.all([ledger.append({ event: first }), ledger.append(naming(2, first))]);
    await ledger.append(naming(3, first));
    await ledger.close();
    const reopened = await openLedger(path);
    await reopened.append(naming(4, first));
    await reopened.append(naming(5, readRecords(path)[0].event));
    await reopened.close();
    await expectSound(path, 6);
  });

  test('may not name an event that is not there, comes later, or was refused', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const later = buildEvent(draft(2), defaults);
    const refused = buildEvent(draft(3, { text: 'a'.repeat(70_000) }), defaults);
    const outcomes = await Promise.allSettled([
      ledger.append(naming(1, later)),
      ledger.append({ event: later }),
      ledger.append({ event: refused }),
      ledger.append(naming(4, refused)),
      ledger.append(naming(1, later)),
    ]);
    await ledger.close();
    expect(
      outcomes.map((outcome) =>
        outcome.status === 'fulfilled' ? outcome.value.seq : (outcome.reason as { code: string }).code,
      ),
    ).toEqual(['PREV_EVENT_NOT_FOUND', 1, 'LINE_TOO_LONG', 'PREV_EVENT_NOT_FOUND', 2]);
    await expectSound(path, 3);
  });
});

describe('many calls at once', () => {
  test('5,000 of them keep their order, and share their syncs', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openUnsigned(path);
    const appended = await Promise.all(
      Array.from({ length: 5_000 }, (_, n) => ledger.append({ event: draft(n) })),
    );
    expect(appended.map(({ seq }) => seq)).toEqual(Array.from({ length: 5_000 }, (_, n) => n + 1));
    expect(ledger.size).toBe(5_001);
    await ledger.close();
    const records = readRecords(path);
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index));
    expect(records.slice(1).map(({ event }) => event['n'])).toEqual(appended.map((_, n) => n));
    expect(records.slice(1).map(({ event }) => `sha-256:${event.event_id.b64}`)).toEqual(
      appended.map(({ eventId }) => eventId),
    );
    await expectSound(path, 5_001);
  });

  test('groups of large records are cut and lose nothing', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openUnsigned(path);
    const text = 'a'.repeat(60_000);
    const appended = await Promise.all(
      Array.from({ length: 300 }, (_, n) => ledger.append({ event: draft(n, { text }) })),
    );
    expect(appended.map(({ seq }) => seq)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
    await ledger.close();
    await expectSound(path, 301);
    const reopened = await openUnsigned(path);
    expect((await reopened.append({ event: draft(150, { text }) })).status).toBe('exists');
    expect((await reopened.append({ event: draft(300, { text }) })).seq).toBe(301);
    await reopened.close();
    await expectSound(path, 302);
  });

  test('what is appended while a group is written makes the next one', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openUnsigned(path);
    const append = async (n: number): Promise<number[]> => {
      const { seq } = await ledger.append({ event: draft(n) });
      return n >= 2 ** 7 ? [seq] : [seq, ...(await Promise.all([append(2 * n), append(2 * n + 1)])).flat()];
    };
    const seqs = await append(1);
    expect(seqs.sort((a, b) => a - b)).toEqual(Array.from({ length: 255 }, (_, n) => n + 1));
    await ledger.close();
    await expectSound(path, 256);
  });
});

/** The length of the last line, once `appended` is there. */
async function measureLine(appended: Promise<unknown>, path: string): Promise<number> {
  await appended;
  return readBytes(path).toString('latin1').split('\n').at(-2)!.length;
}
