/** Several writers that have one ledger open: what each sees of the others, what is told of it, and what a cache is asked for. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import type { WriteLock } from '../../src/log/store/ledger-store.js';
import { MemoryStore } from '../store/memory-store.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { Ledger as LedgerClass } from '../../src/log/writer/ledger.js';
import type { LedgerOptions } from '../../src/log/writer/ledger.js';
import type {
  MissedRecords,
  OtherRecord,
  StateCache,
  StateView,
  WatchedRecords,
} from '../../src/api/index.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import { startVerification } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { LineSplitter } from '../../src/format/record/line-splitter.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  NOON,
  openLedger,
  readBytes,
  signer,
  temporaryFolder,
} from './support.js';

const PATIENT = { lockTimeoutMs: 20_000 };
const OPTIONS: LedgerOptions = {
  signer,
  now: () => NOON,
  principalId: 'agent:a1',
  create: { origin: 'example.com/tests/many', binding: 'optional' },
  ...PATIENT,
};

function newPath(): string {
  return join(temporaryFolder(), 'ledger.jsonl');
}

/** The first of what is watched. */
async function take(watched: WatchedRecords, count: number): Promise<(OtherRecord | MissedRecords)[]> {
  const taken: (OtherRecord | MissedRecords)[] = [];
  for (let n = 0; n < count; n += 1) {
    const next = await watched.next();
    if (next.done !== true) taken.push(next.value);
  }
  return taken;
}

const seqsOf = (records: readonly (OtherRecord | MissedRecords)[]): number[] => records.map(({ seq }) => seq);

describe('what others append', () => {
  test('is watched with its verdict, without what is appended here', async () => {
    const path = newPath();
    const [watching, other] = [await openLedger(path, PATIENT), await openLedger(path, PATIENT)];
    const watched = watching.watch();
    const first = take(watched, 2);
    await watching.append({ event: draft(1) });
    const { eventId } = await other.append({ event: draft(2) });
    await watching.append({ event: draft(3) });
    await other.append({ event: draft(4) });
    const records = await first;
    expect(records).toMatchObject([
      { seq: 2, eventId, event: { event_type: 'x.test', n: 2 }, verdict: 'ok', findings: [] },
      { seq: 4 },
    ]);
    await watched.return?.();
    await Promise.all([watching.close(), other.close()]);
    await expectSound(path, 5);
  });

  test('and is not taken in time is missed, and the watcher told how much', async () => {
    const path = newPath();
    const [watching, other] = [await openLedger(path, PATIENT), await openLedger(path, PATIENT)];
    const watched = watching.watch({ limit: 2 });
    for (let n = 0; n < 6; n += 1) await other.append({ event: draft(n) });
    await watching.append({ event: draft(10) });
    const records = await take(watched, 3);
    expect(seqsOf(records)).toEqual([1, 2, 3]);
    expect(records.at(-1)).toEqual({ missed: 4, seq: 3 });
    await other.append({ event: draft(11) });
    expect(seqsOf(await take(watched, 1))).toEqual([8]);
    await watching.close();
    expect((await watched.next()).done).toBe(true);
  });

  test('ends to be watched when that is given up', async () => {
    const path = newPath();
    const ledger = await openLedger(path, PATIENT);
    const controller = new AbortController();
    const next = ledger.watch({ signal: controller.signal }).next();
    controller.abort();
    expect((await next).done).toBe(true);
    await ledger.append({ event: draft(1) });
  });

  test('counts for what is judged here: keys, links, and what there is already', async () => {
    const path = newPath();
    const [one, two] = [
      await openLedger(path, PATIENT),
      await openLedger(path, { ...PATIENT, strict: true }),
    ];
    const { eventId } = await one.append({ event: draft(1) });
    const previous = { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) };
    expect(await two.append({ event: draft(1) })).toMatchObject({ seq: 1, status: 'exists' });
    expect(await two.append({ event: draft(2, { prev_event_id: previous }) })).toMatchObject({ seq: 2 });
    expect([one.size, two.size]).toEqual([2, 3]);
    expect(await one.append({ event: draft(3) })).toMatchObject({ seq: 3 });
    await expectSound(path, 4);
  });

  test('is sealed by whoever seals, and counted by a schedule', async () => {
    const path = newPath();
    const sealing = await openLedger(path, { ...PATIENT, checkpoints: true });
    const other = await openLedger(path, { ...PATIENT, checkpointEvery: { records: 5 } });
    await sealing.append({ event: draft(1) });
    await other.append({ event: draft(2) });
    expect((await sealing.checkpoint()).treeSize).toBe(3);
    for (const n of [3, 4, 5, 6]) await sealing.append({ event: draft(n) });
    // The fifth since the last checkpoint, four of them another's.
    await other.append({ event: draft(7) });
    expect((await sealing.checkpoint()).treeSize).toBe(10);
    await Promise.all([sealing.close(), other.close()]);
    expect((await verifyLedger(path)).checkpoints.count).toBe(3);
  });
});

describe.each([
  ['with locks', true],
  ['without locks', false],
])('a ledger in memory %s', (_how, hasLocks) => {
  test('takes what several writers append at once, and none is lost', async () => {
    const memory = new MemoryStore({ hasLocks });
    const ledgers: Ledger[] = [];
    for (let n = 0; n < 3; n += 1) ledgers.push(await LedgerClass.open(memory.open(), OPTIONS));
    const appended = await Promise.all(
      ledgers.flatMap((ledger, index) =>
        Array.from({ length: 8 }, (_, n) => ledger.append({ event: draft(100 * index + n) })),
      ),
    );
    expect(appended.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 24 }, (_, n) => n + 1),
    );
    for (const ledger of ledgers) await ledger.close();
    expect(await verifyLedger(memory.bytes())).toMatchObject({ verdict: 'ok', ledger: { records: 25 } });
  });
});

/** A cache that keeps where it was asked to, and gives states that were made of the ledger's bytes. */
class TestCache implements StateCache {
  readonly calls: string[] = [];
  give: (view: StateView, current: VerifyState | undefined) => VerifyState | undefined = () => undefined;
  load(view: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined> {
    this.calls.push(`load ${current?.lines ?? 'none'}`);
    return Promise.resolve(this.give(view, current));
  }
  save(_view: StateView, state: VerifyState): Promise<void> {
    this.calls.push(`save ${state.lines}`);
    return Promise.resolve();
  }
  release(): Promise<void> {
    this.calls.push('release');
    return Promise.resolve();
  }
}

/** One that keeps something to itself from one lock to the next. */
class PausingCache extends TestCache {
  onPause: () => void = () => undefined;
  onRelease: () => void = () => undefined;
  pause(): boolean {
    this.calls.push('pause');
    this.onPause();
    return true;
  }
  override release(): Promise<void> {
    this.onRelease();
    return super.release();
  }
}

function kindsOf({ calls }: TestCache): (string | undefined)[] {
  return calls.map((call) => call.split(' ')[0]);
}

/** So many are written at once. */
const GROUP = 1_000;

async function appendMany(ledger: Ledger, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => ledger.append({ event: draft(n) })));
}

/** The state of a ledger's bytes. */
function stateOf(path: string): VerifyState {
  const state = startVerification(undefined, nodeBackend);
  for (const line of new LineSplitter().push(readBytes(path)))
    verifyLine(state, line, { file: path, firstSeq: undefined });
  return state;
}

test('a writer keeps its turn until its group is stored, however long that takes', async () => {
  const store = new MemoryStore().open();
  let isHeld = false;
  const acquire = store.acquire.bind(store);
  store.acquire = async (options) => {
    const turn = await acquire(options);
    isHeld = true;
    const release = (): Promise<void> => {
      isHeld = false;
      return turn.release();
    };
    return { release };
  };
  const appendIf = store.appendIf.bind(store);
  const held: boolean[] = [];
  store.appendIf = async (end, lines) => {
    await sleep(60);
    await appendIf(end, lines);
    held.push(isHeld);
  };
  const ledger = await LedgerClass.open(store, { ...OPTIONS, lingerMs: 20 });
  for (const n of [1, 2, 3, 4]) await ledger.append({ event: draft(n) });
  await ledger.close();
  // The genesis is a group, too.
  expect(held).toEqual([true, true, true, true, true]);
  expect(isHeld).toBe(false);
});

describe('a cache of states', () => {
  test('is asked at each lock, and told of each group that is on disk', async () => {
    const stateCache = new TestCache();
    const path = newPath();
    const ledger = await openLedger(path, { stateCache, lingerMs: 0 });
    await ledger.append({ event: draft(1) });
    await ledger.close();
    expect(stateCache.calls).toEqual(['load 0', 'save 1', 'release', 'load 1', 'save 2', 'release']);
  });

  test('pauses where a lock follows on another at once', async () => {
    const stateCache = new PausingCache();
    const ledger = await LedgerClass.open(new MemoryStore().open(), { ...OPTIONS, stateCache, lingerMs: 0 });
    stateCache.calls.length = 0;
    await appendMany(ledger, GROUP + 1);
    await ledger.close();
    const kinds = kindsOf(stateCache);
    // A machine that is slow makes smaller groups.
    expect(kinds.slice(0, 4)).toEqual(['load', 'save', 'pause', 'load']);
    expect([kinds.indexOf('release'), kinds.at(-1)]).toEqual([kinds.length - 1, 'release']);
  });

  test('that pauses gives up what it has where another has the lock', async () => {
    const memory = new MemoryStore();
    const other = memory.open();
    const stateCache = new PausingCache();
    const ledger = await LedgerClass.open(memory.open(), { ...OPTIONS, stateCache, lingerMs: 0 });
    stateCache.calls.length = 0;
    const released = new Promise<void>((resolve) => {
      stateCache.onRelease = resolve;
    });
    // It is next, and keeps the lock for as long as the cache is not released.
    stateCache.onPause = () =>
      void other.acquire({ timeoutMs: 20_000 }).then(async (lock) => released.then(() => lock.release()));
    await appendMany(ledger, GROUP + 1);
    await ledger.close();
    expect(kindsOf(stateCache).slice(0, 5)).toEqual(['load', 'save', 'pause', 'release', 'load']);
    await other.close();
  });

  test('that pauses gives up what it has where the lock is not had', async () => {
    const memory = new MemoryStore();
    const other = memory.open();
    const stateCache = new PausingCache();
    const options = { ...OPTIONS, stateCache, lingerMs: 0, lockTimeoutMs: 0 };
    const ledger = await LedgerClass.open(memory.open(), options);
    stateCache.calls.length = 0;
    const locks: Promise<WriteLock>[] = [];
    stateCache.onPause = () => void locks.push(other.acquire({ timeoutMs: 20_000 }));
    expect(await codeOf(appendMany(ledger, GROUP + 1))).toBe('LEDGER_LOCKED');
    expect(stateCache.calls.slice(-2)).toEqual(['pause', 'release']);
    for (const lock of locks) await (await lock).release();
    await ledger.close();
    await other.close();
  });

  test('is never given what was judged and not written', async () => {
    const stateCache = new TestCache();
    const ledger = await openLedger(newPath(), { stateCache, strict: true, lingerMs: 0 });
    stateCache.calls.length = 0;
    const digest = { alg: 'sha-256', b64: 'A'.repeat(43) };
    const unlinked = {
      event_type: 'execution',
      intents: { intent_digest: digest },
      auth_event_id: digest,
      tool_name: 'fs.read',
      meter_used: [],
      outcome: 'success',
    };
    const [kept, refused] = [ledger.append({ event: draft(1) }), codeOf(ledger.append({ event: unlinked }))];
    await kept;
    expect(await refused).toBe('AUTH_NOT_FOUND');
    // The state that saw the refused event is begun again before it is saved.
    await expect.poll(() => stateCache.calls).toEqual(['load 1', 'load none', 'save 2', 'release']);
    expect(await ledger.inspect(({ hasInvalid }) => hasInvalid)).toBe(false);
    await ledger.close();
  });

  test('keeps nobody waiting that has been written', async () => {
    const stateCache = new TestCache();
    const ledger = await openLedger(newPath(), { stateCache, lingerMs: 0 });
    let endSave = (): void => undefined;
    const saved = new Promise<void>((resolve) => (endSave = resolve));
    stateCache.save = () => saved;
    expect(await ledger.append({ event: draft(1) })).toMatchObject({ seq: 1 });
    let isNext = false;
    const next = ledger.append({ event: draft(2) }).then(({ seq }) => {
      isNext = true;
      return seq;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    // What comes after it does wait: two groups never overlap.
    expect(isNext).toBe(false);
    endSave();
    expect(await next).toBe(2);
    await ledger.close();
  });

  test('keeps one state for groups that share a lock, and more where they write much', async () => {
    const stateCache = new TestCache();
    // Time stands still: the lock is kept.
    const clock = { ...systemClock, ticks: () => 0 };
    const ledger = await LedgerClass.open(new MemoryStore().open(), { ...OPTIONS, stateCache, clock });
    stateCache.calls.length = 0;
    for (let n = 0; n < 100; n += 1) await ledger.append({ event: draft(n) });
    await ledger.close();
    const kept = stateCache.calls.filter((call) => !call.startsWith('load'));
    expect(kept).toEqual(['save 65', 'save 101', 'release']);
  });

  test('is not given the state again that it could not keep', async () => {
    const stateCache = new TestCache();
    const ledger = await openLedger(newPath(), { stateCache, lingerMs: 0 });
    stateCache.calls.length = 0;
    stateCache.save = () => Promise.reject(new Error('no space'));
    for (const n of [1, 2]) await ledger.append({ event: draft(n) });
    await ledger.close();
    expect(stateCache.calls).toEqual(['load 1', 'release', 'load none', 'release']);
  });

  test('may give a state that is further along; what is skipped is told of all the same', async () => {
    const path = newPath();
    const other = await openLedger(path, PATIENT);
    const stateCache = new TestCache();
    const ledger = await openLedger(path, { ...PATIENT, stateCache, lingerMs: 0 });
    const watched = ledger.watch();
    const first = watched.next();
    await other.append({ event: draft(1) });
    await first;
    await other.append({ event: draft(2) });
    stateCache.give = (_view, current) => ((current?.lines ?? 0) < 3 ? stateOf(path) : undefined);
    expect(await ledger.append({ event: draft(3) })).toMatchObject({ seq: 3 });
    expect((await watched.next()).value).toMatchObject({ seq: 2, event: { n: 2 } });
    expect(await ledger.inspect(({ lines }) => lines)).toBe(4);
    await ledger.close();
    await other.close();
    await expectSound(path, 4);
  });

  test('may give one at opening, of a ledger in which the last checkpoint is known', async () => {
    const path = newPath();
    const first = await openLedger(path, { checkpoints: true });
    await first.append({ event: draft(1) });
    await first.checkpoint();
    await first.close();
    const stateCache = new TestCache();
    stateCache.give = () => stateOf(path);
    const ledger = await openLedger(path, { stateCache, checkpointEvery: { records: 2 } });
    stateCache.give = () => undefined;
    expect([ledger.origin, ledger.size]).toEqual(['example.com/tests/writer', 3]);
    await Promise.all([2, 3, 4].map((n) => ledger.append({ event: draft(n) })));
    await ledger.close();
    const { verdict, checkpoints } = await verifyLedger(path);
    expect([verdict, checkpoints.count]).toEqual(['ok', 2]);
  });

  test('that fails costs no record', async () => {
    const path = newPath();
    const no = (): Promise<never> => Promise.reject(new Error('no'));
    const ledger = await openLedger(path, { stateCache: { load: no, save: no, release: no } });
    await ledger.append({ event: draft(1) });
    await ledger.close();
    await expectSound(path, 2);
  });
});

describe('an option', () => {
  test.each<[string, object]>([
    ['lockTimeout', { lockTimeout: 5 }],
    ['trustPolicy', { trustPolicy: {} }],
    ['lockTimeoutMs', { lockTimeoutMs: '5' }],
    ['strict', { strict: 1 }],
    ['signer', { signer: 'key.pem' }],
    ['noteSigners', { noteSigners: {} }],
    ['create', { create: null }],
    ['now', { now: '2026-01-01T00:00:00Z' }],
  ])('that is unknown or of the wrong type is refused by its name: %s', async (name, options) => {
    const error = await errorOf(LedgerClass.open(newPath(), options));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(name);
  });

  test('may be undefined', async () => {
    const path = newPath();
    const ledger = await openLedger(path, { trust: undefined, strict: undefined, segmentBytes: undefined });
    await ledger.close();
    expect(await errorOf(openLedger(path, { lingerMs: 1_001 }))).toBeInstanceOf(RangeError);
  });
});
