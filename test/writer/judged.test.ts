/** What appending tells of each record, and what a strict writer refuses (SPEC §8). */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { meters } from '../../src/base/value/meter.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { type Entry } from '../../src/log/writer/ledger.js';
import { StrictError } from '../../src/log/writer/admission.js';
import { codeOf, draft, openLedger, readRecords, temporaryFolder } from './support.js';

const intents = { intent_digest: sha256Digest(Buffer.from('intent')) };
const policy = { policy_id: 'p', policy_digest: sha256Digest(Buffer.from('policy')) };
const nothing = sha256Digest(Buffer.from('nothing'));

const grant = (usd: string): Entry => ({
  event: {
    event_type: 'authorization',
    intents,
    ...policy,
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: { kind: 'grant', bounds: { allowed_tools: ['*'], meter_caps: meters({ usd }) } },
  },
});

const execution = (auth: object, usd: string, more: object = {}): Entry => ({
  event: {
    event_type: 'execution',
    intents,
    auth_event_id: auth,
    tool_name: 'fs.read',
    meter_used: meters({ usd }),
    outcome: 'success',
    ...more,
  },
});

const idOf = (eventId: string): object => ({ alg: 'sha-256', b64: eventId.slice('sha-256:'.length) });
const codesOf = ({ findings }: { findings: readonly { code: string }[] }): string[] =>
  findings.map(({ code }) => code);

async function open(
  options: Parameters<typeof openLedger>[1] = {},
): Promise<{ path: string; ledger: Ledger }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  return { path, ledger: await openLedger(path, options) };
}

describe('each append', () => {
  test('tells what verification finds in its record, also where it is alike with an earlier one', async () => {
    const { path, ledger } = await open();
    const { eventId } = await ledger.append(grant('1'));
    const used = await Promise.all(
      ['0.5', '0.6', '0.7'].map((usd) => ledger.append(execution(idOf(eventId), usd))),
    );
    expect(used.map(codesOf)).toEqual([[], ['METER_CAP_EXCEEDED'], ['METER_CAP_EXCEEDED']]);
    expect(used.map(({ verdict }) => verdict)).toEqual(['ok', 'violation', 'violation']);
    const lost = await Promise.all([1, 2].map((n) => ledger.append(execution(nothing, `${n}`))));
    expect(lost.map(codesOf)).toEqual([['AUTH_NOT_FOUND'], ['AUTH_NOT_FOUND']]);
    await ledger.close();
    const { counts } = await verifyLedger(path);
    expect(counts.by_verdict).toEqual({ ok: 3, denied: 0, violation: 2, invalid: 2 });
  });

  test('goes on from what a ledger holds when it is opened', async () => {
    const { path, ledger } = await open();
    const { eventId } = await ledger.append(grant('1'));
    await ledger.append(execution(idOf(eventId), '0.9'));
    await ledger.close();
    const again = await openLedger(path);
    expect(codesOf(await again.append(execution(idOf(eventId), '0.2')))).toEqual(['METER_CAP_EXCEEDED']);
  });
});

describe('a strict ledger', () => {
  test('refuses what would make it invalid, and takes what is in violation', async () => {
    const { path, ledger } = await open({ strict: true });
    const { eventId } = await ledger.append(grant('1'));
    const results = await Promise.allSettled([
      ledger.append(execution(idOf(eventId), '0.5')),
      ledger.append(execution(nothing, '0.5')),
      ledger.append(execution(idOf(eventId), '0.6')),
      ledger.append({
        event: { ...execution(idOf(eventId), '0').event, intents: { intent_digest: nothing } },
      }),
      ledger.append({ event: draft(1) }),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    const refusal: unknown = await ledger.append(execution(nothing, '1')).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StrictError);
    expect(refusal).toMatchObject({ code: 'AUTH_NOT_FOUND', findings: [{ code: 'AUTH_NOT_FOUND' }] });
    await ledger.close();
    expect(readRecords(path)).toHaveLength(5);
    const { verdict, counts } = await verifyLedger(path);
    expect(verdict).toBe('violation');
    expect(counts.by_verdict).toEqual({ ok: 4, denied: 0, violation: 1, invalid: 0 });
  });

  test('forgets what it has refused: the same link is judged anew', async () => {
    const { ledger } = await open({ strict: true });
    const missing = ledger.append(execution(nothing, '1'));
    const after = ledger.append(grant('1'));
    expect(await codeOf(missing)).toBe('AUTH_NOT_FOUND');
    const { eventId } = await after;
    const used = await ledger.append(execution(idOf(eventId), '1'));
    expect([codesOf(used), used.seq]).toEqual([[], 2]);
  });
});

test('what others wrote counts by its signatures, whoever goes on from it', async () => {
  const { path, ledger } = await open();
  const { eventId } = await ledger.append(grant('1'));
  const action = await ledger.append({
    event: {
      event_type: 'authorization',
      intents,
      ...policy,
      decision: 'allow',
      decision_code: 'ALLOW',
      authorization: {
        kind: 'action',
        grant_event_id: idOf(eventId),
        action: {
          tool_name: 'fs.read',
          tool_params_digest: nothing,
          meter_reservation: meters({ usd: '1' }),
        },
      },
    },
  });
  const started = await ledger.append({
    event: {
      event_type: 'x.northroot.start',
      intents,
      auth_event_id: idOf(action.eventId),
      tool_name: 'fs.read',
      tool_params_digest: nothing,
      started_at: '2026-01-01T00:00:00Z',
      meter_known: [],
      recorder: 'A'.repeat(22),
    },
  });
  await ledger.close();
  // Its signature is not one of it any more: it does not count, and the release gives everything back.
  const text = readFileSync(path, 'utf8');
  const at = text.lastIndexOf('"sig":"') + 7;
  writeFileSync(path, `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`);
  expect((await verifyLedger(path)).open_starts).toBeUndefined();
  const release = execution(idOf(action.eventId), '0', {
    outcome: 'failure',
    error_code: 'ABANDONED',
    meter_used: [],
    tool_params_digest: nothing,
  });
  for (const options of [{}, { strict: true }]) {
    const copy = join(temporaryFolder(), 'ledger.jsonl');
    copyFileSync(path, copy);
    const again = await openLedger(copy, options);
    expect(codesOf(await again.append(release))).not.toContain('RELEASE_OF_STARTED');
    expect(started.seq).toBe(3);
    await again.close();
  }
});

test('an event for another ledger is refused, and one that does not say for which', async () => {
  const one = await open({ create: { origin: 'example.com/one' } });
  const other = await open({ create: { origin: 'example.com/other' } });
  const { eventId } = await one.ledger.append(grant('1'));
  const [, record] = readRecords(one.path);
  expect(record?.event.event_id.b64).toBe(eventId.slice('sha-256:'.length));
  const { event, signatures } = record;
  expect(await codeOf(other.ledger.append({ event, signatures }))).toBe('LEDGER_MISMATCH');
  const { ledger_id: bound, event_id: id, payload_digest: digest, ...unbound } = event;
  expect([bound, id, digest]).not.toContain(undefined);
  // A draft is bound where it goes; a whole event that is not says nothing of where it was meant to go.
  expect((await other.ledger.append({ event: unbound })).status).toBe('appended');
});

describe('a look that takes its time', () => {
  test('sees what was asked for before it and nothing after, and keeps everybody else from writing', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const other = await openLedger(path);
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => (open = resolve));
    let looked: () => void = () => undefined;
    const looking = new Promise<void>((resolve) => (looked = resolve));
    const before = ledger.append({ event: draft(1) });
    const seen = ledger.inspect(async ({ lines }) => {
      looked();
      await opened;
      return lines;
    });
    const broken = new Error('no');
    const failing = ledger.inspect(() => Promise.reject(broken));
    const after = ledger.append({ event: draft(2) });
    await looking;
    // Tries once: the lock is held.
    expect(await codeOf(other.append({ event: draft(3) }))).toBe('LEDGER_LOCKED');
    expect(readRecords(path)).toHaveLength(1);
    open();
    expect(await seen).toBe(2);
    await expect(failing).rejects.toBe(broken);
    expect([(await before).seq, (await after).seq]).toEqual([1, 2]);
    await ledger.close();
    expect(await other.inspect(({ lines }) => lines)).toBe(3);
  });

  test('is withdrawn while it waits', async () => {
    const ledger = await openLedger(join(temporaryFolder(), 'ledger.jsonl'));
    const controller = new AbortController();
    const waiting = ledger.inspect(() => Promise.resolve(expect.fail('it looked')), controller);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });
});
