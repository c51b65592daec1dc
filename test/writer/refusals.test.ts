import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildEvent, type AnyEvent } from '../../src/format/event/build.js';
import { EventError } from '../../src/format/event/validate.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import type { JsonValue } from '../../src/base/json/value.js';
import { signEvent } from '../../src/format/signature/signer.js';
import type { CheckpointEvent } from '../../src/format/schema/generated/types.js';
import { appendLeaf, emptyRange, leafHash } from '../../src/format/tree/compact-range.js';
import { makeCheckpoint } from '../../src/log/writer/checkpoint.js';
import { makeGenesis, ownKeyEntry } from '../../src/log/writer/genesis.js';
import type { Entry, Ledger, LedgerOptions } from '../../src/log/writer/ledger.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  NOON,
  openLedger,
  openUnsigned,
  otherSigner,
  readBytes,
  signer,
  temporaryFolder,
} from './support.js';

const defaults = { principalId: 'agent:a1', occurredAt: NOON };
const whole = buildEvent(draft(1), defaults);
const ids = { alg: 'sha-256', b64: 'A'.repeat(43) };

/** Refuses `entry` between two good ones, and finds the ledger as if it had never been there. */
async function refuse(entry: Entry, options: LedgerOptions = {}): Promise<unknown> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, options);
  await ledger.append({ event: draft(1_000) });
  const before = readBytes(path);
  const alone = await errorOf(ledger.append(entry));
  expect(readBytes(path)).toEqual(before);
  const [first, refused, second] = await Promise.allSettled([
    ledger.append({ event: draft(1_001) }),
    ledger.append(entry),
    ledger.append({ event: draft(1_002) }),
  ]);
  expect(first).toMatchObject({ status: 'fulfilled', value: { seq: 2 } });
  expect(refused).toMatchObject({ status: 'rejected', reason: alone });
  expect(second).toMatchObject({ status: 'fulfilled', value: { seq: 3 } });
  await ledger.close();
  await expectSound(path, 4);
  return alone;
}

describe('an event that is not valid', () => {
  test.each<[string, object, string]>([
    ['no type', { n: 1 }, 'SCHEMA'],
    ['a type of other characters', { event_type: 'a b' }, 'SCHEMA'],
    ['a member that its schema has not', { event_type: 'execution', colour: 'red' }, 'SCHEMA'],
    ['another version', draft(1, { event_version: '2' }), 'EVENT_VERSION_UNKNOWN'],
    ['another profile', draft(1, { canonical_profile_id: 'northroot-jcs-v9' }), 'PROFILE_UNKNOWN'],
    ['a day that is not', draft(1, { occurred_at: '2026-02-30T00:00:00Z' }), 'TIMESTAMP_INVALID'],
    ['a principal of no kind', draft(1, { principal_id: 'root' }), 'SCHEMA'],
    ['a claimed id alone', draft(1, { event_id: whole.event_id }), 'SCHEMA'],
    ['an id of other content', { ...whole, n: 2 }, 'PAYLOAD_DIGEST_MISMATCH'],
    ['a wrong id', { ...whole, event_id: ids }, 'EVENT_ID_MISMATCH'],
    ['a wrong digest', { ...whole, payload_digest: ids }, 'PAYLOAD_DIGEST_MISMATCH'],
    ['an id spelled otherwise', { ...whole, event_id: { ...whole.event_id, alg: 'sha256' } }, 'SCHEMA'],
  ])('%s is refused', async (_name, event, code) => {
    const error = await refuse({ event });
    expect(error).toBeInstanceOf(EventError);
    expect(error).toMatchObject({ code });
  });

  test.each<[string, unknown, string]>([
    ['a lone surrogate', '\ud800', 'LONE_SURROGATE'],
    ['an integer beyond 2^53', 2 ** 53, 'UNSAFE_INTEGER'],
    ['minus zero', -0, 'NEGATIVE_ZERO'],
    ['no number', NaN, 'NON_FINITE_NUMBER'],
    ['65 levels', nest(64), 'NESTING_TOO_DEEP'],
    ['64 levels, which its record makes 65', nest(63), 'NESTING_TOO_DEEP'],
  ])('%s is refused', async (_name, value, code) => {
    expect(await refuse({ event: draft(1, { value }) })).toMatchObject({ code });
  });

  test('a second genesis is refused', async () => {
    const event = makeGenesis({ origin: 'example.com/second' }, signer.publicKey, NOON);
    expect(await refuse({ event })).toMatchObject({ code: 'GENESIS_MISPLACED' });
  });
});

describe('what is no JSON', () => {
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a date', new Date(0)],
    ['a hole', new Array(1)],
    ['a map', new Map()],
  ])('%s in an event is refused', async (_name, value) => {
    expect(await refuse({ event: draft(1, { value }) })).toBeInstanceOf(TypeError);
  });

  test('no event at all is refused', async () => {
    expect(await refuse({} as Entry)).toBeInstanceOf(TypeError);
    expect(await refuse(undefined as unknown as Entry)).toBeInstanceOf(TypeError);
    expect(await refuse({ event: null } as unknown as Entry)).toBeInstanceOf(TypeError);
  });
});

describe('what is too long', () => {
  test('a record of more than 65,535 bytes is refused', async () => {
    const error = await refuse({ event: draft(1, { text: 'a'.repeat(65_535) }) });
    expect(error).toMatchObject({ code: 'LINE_TOO_LONG' });
  });

  test('meta of more than 4,096 bytes is refused', async () => {
    const meta = { a: 'b'.repeat(4097 - '{"a":""}'.length) };
    expect(await refuse({ event: draft(1), meta })).toMatchObject({ code: 'SCHEMA' });
  });
});

describe('what travels beside an event', () => {
  const sig = signEvent(canonicalBytes(whole), signer);
  test.each<[string, object]>([
    ['meta that is no object', { meta: 'a' }],
    ['meta of other things than strings', { meta: { a: 1 } }],
    ['meta that is null', { meta: null }],
    ['signatures that are no array', { signatures: 5 }],
    ['signatures that are null', { signatures: null }],
    ['signatures that are an empty text', { signatures: '' }],
    ['a signature that is no object', { signatures: ['a'] }],
    ['a signature without sig', { signatures: [{ keyid: sig.keyid }] }],
    ['a signature with more members', { signatures: [{ ...sig, alg: 'ed25519' }] }],
    ['a signature in padded base64', { signatures: [{ ...sig, sig: `${sig.sig}==` }] }],
    ['17 signatures', { signatures: Array.from({ length: 17 }, () => sig) }],
  ])('%s is refused', async (_name, companions) => {
    const error = await refuse({ event: whole, ...companions });
    expect(error).toBeInstanceOf(EventError);
    expect(error).toMatchObject({ code: 'SCHEMA' });
  });

  test('meta with a lone surrogate is refused', async () => {
    expect(await refuse({ event: draft(1), meta: { a: '\udc00' } })).toMatchObject({
      code: 'LONE_SURROGATE',
    });
  });

  test('16 signatures and the own one are one too many', async () => {
    const foreign = signEvent(canonicalBytes(whole), otherSigner);
    const signatures = Array.from({ length: 16 }, () => foreign);
    expect(await refuse({ event: whole, signatures })).toMatchObject({ code: 'SCHEMA' });
  });
});

describe('what would not verify', () => {
  const own = ownKeyEntry(signer.publicKey);
  const other = ownKeyEntry(otherSigner.publicKey);
  /** A ledger of the signer's, which declares the other key in a certain way; the other signs this event. */
  const byOther = async (key: object, event: object): Promise<string> => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const create = {
      origin: 'example.com/keys',
      binding: 'optional' as const,
      keys: [own, { ...other, ...key }],
    };
    await (await openLedger(path, { create })).close();
    return appendInVain(await openLedger(path, { signer: otherSigner }), { event });
  };

  test('a key that the ledger does not know', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await (await openLedger(path)).close();
    const ledger = await openLedger(path, { signer: otherSigner });
    expect(await appendInVain(ledger, { event: draft(1) })).toBe('KEY_UNKNOWN');
  });

  test('a key for other principals', async () => {
    expect(await byOther({ principals: ['agent:b*', 'agent:a'] }, draft(1))).toBe('KEY_NOT_FOR_PRINCIPAL');
  });

  test('a key for other roles', async () => {
    expect(await byOther({ roles: ['checkpoint', 'admin', 'witness'] }, draft(1))).toBe('KEY_NOT_FOR_ROLE');
  });

  test('a key event that no admin signs', async () => {
    const key = ownKeyEntry(otherSigner.publicKey);
    expect(await byOther({ roles: ['event'] }, { event_type: 'key', action: 'add', key })).toBe(
      'KEY_NOT_FOR_ROLE',
    );
  });

  test.each([
    ['before it is valid', { valid_from: '2026-01-01T12:00:00.000000001Z' }],
    ['when it is no longer valid', { valid_until: NOON }],
  ])('a key %s', async (_name, key) => {
    expect(await byOther(key, draft(1))).toBe('KEY_NOT_VALID_HERE');
  });

  test('a key that expired before the ledger began, under an event that claims to be older', async () => {
    const key = { valid_until: '2026-01-01T11:00:00Z' };
    const event = draft(1, { occurred_at: '2026-01-01T10:00:00Z' });
    expect(await byOther(key, event)).toBe('KEY_NOT_VALID_HERE');
  });

  test('a key that expired before the last checkpoint, of this session or an earlier one', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const keys = [own, { ...other, valid_until: '2026-01-01T13:00:00Z' }];
    await (
      await openLedger(path, { create: { origin: 'example.com/keys', binding: 'optional' as const, keys } })
    ).close();
    const signedBy = (by: typeof signer, event: ReturnType<typeof buildEvent>): Entry => ({
      event,
      signatures: [signEvent(canonicalBytes(event), by)],
    });
    const ledger = await openUnsigned(path);
    await ledger.append(signedBy(otherSigner, whole));
    await ledger.append(signedBy(signer, checkpointOf(path, '2026-01-01T14:00:00Z') as unknown as AnyEvent));
    const late = signedBy(otherSigner, buildEvent(draft(2), defaults));
    expect(await appendInVain(ledger, late)).toBe('KEY_NOT_VALID_HERE');
    expect(await appendInVain(await openUnsigned(path), late)).toBe('KEY_NOT_VALID_HERE');
    await expectSound(path, 3);
  });

  test('a signature of another event, by a key that the ledger knows', async () => {
    const wrong = signEvent(canonicalBytes(buildEvent(draft(2), defaults)), otherSigner);
    const options = {
      create: { origin: 'example.com/keys', binding: 'optional' as const, keys: [own, other] },
    };
    expect(await refuse({ event: whole, signatures: [wrong] }, options)).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
  });

  test('a signature cut short', async () => {
    const { keyid, sig } = signEvent(canonicalBytes(whole), signer);
    const entry = { event: whole, signatures: [{ keyid, sig: sig.slice(0, 80) }] };
    expect(await refuse(entry)).toMatchObject({ code: 'SIGNATURE_INVALID' });
  });
});

describe('a checkpoint that somebody made', () => {
  const appendChanged = async (change: (checkpoint: CheckpointEvent) => object): Promise<string> => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, {
      create: { origin: 'example.com/keys', binding: 'optional' as const },
    });
    await ledger.append({ event: whole });
    const { event_id: id, payload_digest: digest, ...checkpoint } = checkpointOf(path, NOON);
    expect([id, digest]).toHaveLength(2);
    return appendInVain(ledger, { event: change(checkpoint as CheckpointEvent) });
  };

  test.each<[string, (checkpoint: CheckpointEvent) => object, string]>([
    ['of another size', (event) => ({ ...event, tree_size: 1 }), 'CHECKPOINT_SIZE_MISMATCH'],
    ['after another event', (event) => ({ ...event, chain_tip_event_id: ids }), 'CHECKPOINT_ROOT_MISMATCH'],
    ['whose note is none', (event) => ({ ...event, note: 'a note' }), 'CHECKPOINT_NOTE_MALFORMED'],
    [
      'whose note states another tree',
      (event) => ({ ...event, note: event.note.replace('\n2\n', '\n3\n') }),
      'CHECKPOINT_NOTE_MALFORMED',
    ],
  ])('is refused: one %s', async (_name, change, code) => {
    expect(await appendChanged(change)).toBe(code);
  });

  test('is refused: one of another tree, where the tree is known', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const create = { origin: 'example.com/keys', binding: 'optional' as const };
    const ledger = await openLedger(path, { create, checkpoints: true });
    await ledger.append({ event: whole });
    const { event_id: id, payload_digest: digest, ...checkpoint } = checkpointOf(path, NOON);
    expect([id, digest]).toHaveLength(2);
    expect(await appendInVain(ledger, { event: { ...checkpoint, root: ids } })).toBe(
      'CHECKPOINT_ROOT_MISMATCH',
    );
  });
});

/** The checkpoint of what a ledger holds now. */
function checkpointOf(path: string, occurredAt: string): CheckpointEvent {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  const tree = emptyRange();
  let eventId: string | undefined;
  for (const line of lines) {
    eventId = eventIdOf(line);
    appendLeaf(tree, leafHash(Buffer.from(line)));
  }
  const tip = { seq: lines.length, prev: '', eventId, tree, checkpoint: undefined };
  return makeCheckpoint(tip, {
    origin: 'example.com/keys',
    principalId: 'service:ledger',
    occurredAt,
    noteSigners: [signer],
    ledgerId: `sha-256:${eventIdOf(lines[0])}`,
  });
}

function eventIdOf(line: string): string {
  return (JSON.parse(line) as { event: { event_id: { b64: string } } }).event.event_id.b64;
}

describe('a ledger that stops at a refusal', () => {
  test.each<[string, Entry, string]>([
    ['seen at once', { event: { n: 1 } }, 'SCHEMA'],
    ['seen when it is written', { event: draft(1, { text: 'a'.repeat(65_535) }) }, 'LINE_TOO_LONG'],
  ])('%s: appends what was given before it, and nothing after it', async (_name, entry, code) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, { stopsAtRefusal: true });
    const calls = [{ event: draft(2) }, entry, { event: draft(3) }, { event: draft(2) }];
    const outcomes = await Promise.allSettled(calls.map((call) => ledger.append(call)));
    expect(outcomes[0]).toMatchObject({ value: { seq: 1 } });
    expect(outcomes.slice(1)).toMatchObject(
      [code, 'NOT_REACHED', 'NOT_REACHED'].map((reason) => ({ reason: { code: reason } })),
    );
    expect(await codeOf(ledger.append({ event: draft(4) }))).toBe('NOT_REACHED');
    await ledger.close();
    await expectSound(path, 2);
  });
});

/** The code with which the ledger refuses; nothing is written. Closes it. */
async function appendInVain(ledger: Ledger, entry: Entry): Promise<string> {
  const before = readBytes(ledger.path);
  const code = await codeOf(ledger.append(entry));
  await ledger.close();
  expect(readBytes(ledger.path)).toEqual(before);
  return code;
}

/** An array in an array … `levels` deep. */
function nest(levels: number): JsonValue {
  let value: JsonValue = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}
