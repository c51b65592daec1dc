/** Entries that follow a decision in its group: they rest on it, and it stands whatever becomes of them. */

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { meters } from '../../src/base/value/meter.js';
import { StrictError } from '../../src/log/writer/admission.js';
import type { Appended, Entry, Ledger } from '../../src/log/writer/ledger.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { MemoryStore } from '../store/memory-store.js';
import { FaultyFileSystem } from './file-systems.js';
import { draft, judge, openLedger, temporaryFolder } from './support.js';

const NOTHING = sha256Digest(Buffer.from('nothing'));

function open(path: string, options: Parameters<typeof openLedger>[1] = {}): Promise<Ledger> {
  return openLedger(path, { decides: true, ...options });
}

const follows = ({ eventId }: Appended, n: number): Entry => ({
  event: { ...draft(n), prev_event_id: { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) } },
});

/** An execution of an authorization that is not there. */
const unlinked: Entry = {
  event: {
    event_type: 'execution',
    intents: { intent_digest: NOTHING },
    auth_event_id: NOTHING,
    tool_name: 'fs.read',
    meter_used: meters({}),
    outcome: 'unknown',
  },
};

describe('what follows a decision', () => {
  it('is made with the state that has it, and is written with it', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await open(path);
    const decided = await ledger.decide(() => ({ event: draft(1) }), {
      after: (state, appended) => {
        expect(state.records).toBe(2);
        expect(state.events.find(appended.eventId.slice('sha-256:'.length))?.seq).toBe(1);
        return [follows(appended, 2), follows(appended, 3)];
      },
    });
    expect(decided).toMatchObject({ seq: 1, status: 'appended', followers: [{ seq: 2 }, { seq: 3 }] });
    expect(decided).not.toHaveProperty('refusal');
    const plain = await ledger.decide(() => ({ event: draft(4) }));
    expect(plain).not.toHaveProperty('followers');
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 5 });
  });

  it.each<[string, number, (appended: Appended) => readonly Entry[], object]>([
    ['cannot be made', 0, () => failing('no'), { message: 'no' }],
    [
      'is malformed',
      1,
      (made) => [follows(made, 2), { event: { event_type: 'execution' } }],
      { name: 'EventError' },
    ],
    [
      'is not admitted',
      1,
      (made) => [follows(made, 2), { event: { ...draft(3), prev_event_id: NOTHING } }],
      { code: 'PREV_EVENT_NOT_FOUND' },
    ],
    [
      'would make the ledger invalid',
      1,
      (made) => [follows(made, 2), unlinked, follows(made, 4)],
      StrictError,
    ],
  ])('leaves it as it is where it %s', async (_why, count, after, refusal) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await open(path, { strict: true });
    const first = ledger.decide(() => ({ event: draft(1) }), { after: (_, made) => after(made) });
    const second = ledger.decide(() => ({ event: draft(5) }));
    const decided = await first;
    if (typeof refusal === 'function') expect(decided.refusal).toBeInstanceOf(refusal);
    else expect(decided.refusal).toMatchObject(refusal);
    const { followers = [] } = decided;
    expect(followers.map(({ seq }) => seq)).toEqual([2].slice(0, count));
    expect((await second).seq).toBe(2 + count);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 3 + count });
  });

  it('is not made where the decision is not', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await open(path);
    const after = (): never => expect.unreachable();
    await expect(ledger.decide(() => failing('never'), { after })).rejects.toThrow('never');
    expect(ledger.size).toBe(1);
  });

  it('is made again after the records of who came first', async () => {
    const places = new MemoryStore({ hasLocks: false });
    const store = places.open();
    const own = await openLedger(store, { decides: true });
    const rival = await openLedger(places.open());
    const appendIf = store.appendIf.bind(store);
    let tries = 0;
    store.appendIf = async (end, lines) => {
      if (tries === 1) await rival.append({ event: draft(3) });
      await appendIf(end, lines);
    };
    const decided = await own.decide(() => ({ event: draft(1) }), {
      after: (_, appended) => {
        tries += 1;
        return [follows(appended, 2)];
      },
    });
    expect(tries).toBe(2);
    expect(decided).toMatchObject({ seq: 2, followers: [{ seq: 3 }] });
    expect((await verifyChunks(places.bytes())).verdict).toBe('ok');
  });

  it('is refused with the decision where the group cannot be written', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await (await open(path)).close();
    const fault = { operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'once' } as const;
    const fileSystem = new FaultyFileSystem(fault);
    const ledger = await openLedger(path, { decides: true, fileSystem });
    const after = (_: unknown, appended: Appended): Entry[] => [follows(appended, 2)];
    await expect(ledger.decide(() => ({ event: draft(1) }), { after })).rejects.toMatchObject({
      code: 'LEDGER_FAILED',
    });
    await ledger.close().catch(() => undefined);
    expect(await judge(path)).toMatchObject({ records: 1 });
  });
});

function failing(message: string): never {
  throw new Error(message);
}
