/** Requests that may wait for a later one share its write, stay in order, and are written at the end at the latest. */

import { describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import type { Clock, Timer } from '../../src/base/clock.js';
import { MemoryStore } from '../store/memory-store.js';
import { draft, openLedger } from './support.js';

interface Counted {
  readonly ledger: Ledger;
  /** How many lines each write had. */
  readonly writes: number[];
  readonly store: MemoryStore;
}

async function open(clock?: Clock): Promise<Counted> {
  const store = new MemoryStore(clock && { name: 'memory', hasLocks: false, clock });
  const view = store.open();
  const writes: number[] = [];
  const counting = new Proxy<LedgerStore>(view, {
    get: (target, name) => {
      if (name === 'appendIf')
        return (...args: Parameters<LedgerStore['appendIf']>) => {
          writes.push(args[1].length);
          return target.appendIf(...args);
        };
      const member = Reflect.get(target, name) as unknown;
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  const ledger = await openLedger(counting, { decides: true, clock });
  writes.length = 0;
  return { ledger, writes, store };
}

/** When what was asked for, and could be done, is done. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const patient = (ledger: Ledger, n: number): Promise<{ seq: number }> =>
  ledger.decide(() => ({ event: draft(n) }), { mayWait: true });

describe('a request that may wait', () => {
  it('has the write of the one that comes after it, before that', async () => {
    const { ledger, writes } = await open();
    const first = patient(ledger, 1);
    const second = patient(ledger, 2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(writes).toEqual([]);
    const third = ledger.append({ event: draft(3) });
    expect((await Promise.all([first, second, third])).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(writes).toEqual([3]);
  });

  it('is written alone where none comes', async () => {
    const { ledger, writes } = await open();
    expect(await patient(ledger, 1)).toMatchObject({ seq: 1 });
    expect(await patient(ledger, 2)).toMatchObject({ seq: 2 });
    expect(writes).toEqual([1, 1]);
  });

  it('is made while it waits, and anew where another writer came before it', async () => {
    // Time passes when the test says so.
    const held = new Map<object, () => void>();
    let ticks = 0;
    const hold = (run: () => void, ms: number): Timer => {
      const timer = { unref: () => undefined };
      if (ms < 5) setImmediate(run);
      else held.set(timer, run);
      return timer;
    };
    const clear = (timer: Timer | undefined): void => void held.delete(timer ?? {});
    const clock = {
      now: () => Date.now(),
      ticks: () => (ticks += 0.01),
      setTimeout: hold,
      setInterval: hold,
      clear,
    };
    const { ledger, writes, store } = await open(clock);
    // Close enough that the lock is kept.
    for (const n of [0, 1]) {
      await ledger.append({ event: draft(n) });
      await settled();
    }
    writes.length = 0;
    const made: number[] = [];
    const waiting = (n: number): Promise<{ seq: number }> =>
      ledger.decide(
        ({ records }) => {
          made.push(records);
          return { event: draft(n) };
        },
        { mayWait: true },
      );
    const second = waiting(2);
    await settled();
    expect([made, writes]).toEqual([[3], []]);
    const third = ledger.append({ event: draft(3) });
    expect((await Promise.all([second, third])).map(({ seq }) => seq)).toEqual([3, 4]);
    expect([made, writes]).toEqual([[3], [2]]);
    const fourth = waiting(4);
    await settled();
    expect(made).toEqual([3, 5]);
    const other = await openLedger(store.open());
    expect(await other.append({ event: draft(5) })).toMatchObject({ seq: 5 });
    await other.close();
    for (const run of held.values()) run();
    expect(await fourth).toMatchObject({ seq: 6 });
    expect(made).toEqual([3, 5, 6]);
  });

  it('is not waited for by queries', async () => {
    const { ledger } = await open();
    const waiting = patient(ledger, 1);
    expect(await ledger.inspect(({ records }) => records)).toBe(1);
    await waiting;
    expect(await ledger.inspect(({ records }) => records)).toBe(2);
  });

  it('can be withdrawn', async () => {
    const { ledger, writes } = await open();
    const abort = new AbortController();
    const waiting = ledger.decide(() => ({ event: draft(1) }), { mayWait: true, signal: abort.signal });
    abort.abort(new Error('withdrawn'));
    await expect(waiting).rejects.toThrow('withdrawn');
    expect(await ledger.append({ event: draft(2) })).toMatchObject({ seq: 1 });
    expect(writes).toEqual([1]);
  });

  it('is written when the ledger is closed', async () => {
    const { ledger, store } = await open();
    const waiting = patient(ledger, 1);
    await ledger.close();
    expect(await waiting).toMatchObject({ seq: 1 });
    expect(Buffer.from(store.bytes()).toString().trim().split('\n')).toHaveLength(2);
  });

  it('waits among many, which keep their order', async () => {
    const { ledger } = await open();
    const all = Array.from({ length: 3_000 }, (_, n) =>
      n % 7 === 0 ? ledger.append({ event: draft(n) }) : patient(ledger, n),
    );
    expect((await Promise.all(all)).map(({ seq }) => seq)).toEqual(all.map((_, n) => n + 1));
  });
});
