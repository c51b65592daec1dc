/** What every store must do, whatever keeps the lines. A new one passes this, called with a function that makes it. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import type { LedgerStore, StorePosition, WriteLock } from '../../src/log/store/ledger-store.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';

/** One ledger, new and empty. */
export interface StoreUnderTest {
  /** Another writer's store of the same ledger. */
  open(): Promise<LedgerStore>;
}

/** What a store is not asked for. */
export interface Abilities {
  /** Whether writers wait for each other; without it they meet in `appendIf`. */
  readonly hasLocks: boolean;
}

const START: StorePosition = {
  size: 0,
  tip: hashToBase64url(rangeRoot(emptyRange())),
  file: '',
  line: 1,
  byteOffset: 0,
};
const PATIENT = { timeoutMs: 20_000 };

/** Runs the suite over a store. */
export function describeStore(name: string, make: () => StoreUnderTest, { hasLocks }: Abilities): void {
  describe(name, () => {
    const handles = async (count: number): Promise<LedgerStore[]> => {
      const ledger = make();
      const stores: LedgerStore[] = [];
      for (let n = 0; n < count; n += 1) {
        const store = await ledger.open();
        onTestFinished(() => store.close().catch(() => undefined));
        stores.push(store);
      }
      return stores;
    };

    test('is empty when it is new', async () => {
      const [store] = await handles(1);
      const lock = await store.acquire(PATIENT);
      expect(await readFrom(store)).toEqual({ lines: [], position: START });
      await lock.release();
    });

    test('gives back what was appended, from any position on, also to others', async () => {
      const [store, other] = await handles(2);
      const first = await append(store, START, ['one', 'two']);
      const second = await append(store, first, ['three']);
      for (const each of [store, other]) {
        const whole = await inTurn(each, () => readFrom(each));
        expect(whole.lines).toEqual(['one', 'two', 'three']);
        expect(whole.position).toMatchObject({ size: 3, tip: second.tip });
        expect((await inTurn(each, () => readFrom(each, first))).lines).toEqual(['three']);
        expect((await inTurn(each, () => readFrom(each, second))).lines).toEqual([]);
      }
    });

    test('says where the next line will stand, and puts it there', async () => {
      const [store] = await handles(1);
      const end = await append(store, START, ['one']);
      const lock = await store.acquire(PATIENT);
      await readFrom(store, end);
      const place = await store.nextPlace(1);
      await store.appendIf(end, [lineOf('two')]);
      const { position } = await readFrom(store, end);
      await lock.release();
      expect(place).toEqual({ file: end.file, line: 2, byteOffset: 'one\n'.length });
      expect(position).toMatchObject({ file: place.file, line: 3, byteOffset: 'one\ntwo\n'.length });
    });

    test('gives a line by its place, or none where no line is exactly there', async () => {
      const [store, other] = await handles(2);
      const first = await append(store, START, ['one', 'three']);
      const { file } = first;
      const place = { ordinal: 1, file, byteOffset: 'one\n'.length, byteLength: 'three'.length };
      for (const each of [store, other]) {
        const line = await inTurn(each, () => each.readLine(place));
        expect(Buffer.from(line ?? []).toString()).toBe('three');
        for (const wrong of [{ byteOffset: 3 }, { byteLength: 4 }, { byteLength: 6 }])
          expect(await each.readLine({ ...place, ...wrong })).toBeUndefined();
      }
    });

    test('is read as a source as it is read line by line', async () => {
      const [store, other] = await handles(2);
      await append(store, START, ['one', 'two']);
      const source = await other.source();
      let text = '';
      for await (const { chunks } of source.segments)
        for await (const chunk of chunks) text += Buffer.from(chunk).toString();
      expect(text).toBe('one\ntwo\n');
      expect(['local', 'replicated']).toContain(store.durability);
    });

    test('appends nothing behind another end than was expected', async () => {
      const [store, other] = await handles(2);
      const first = await append(store, START, ['one']);
      await append(other, first, ['two']);
      for (const expected of [START, first, { ...first, size: 2 }, { ...first, tip: START.tip }]) {
        expect(await inTurn(store, () => codeOf(store.appendIf(expected, [lineOf('three')])))).toBe(
          'LEDGER_CONFLICT',
        );
      }
      const { lines, position } = await inTurn(store, () => readFrom(store, first));
      expect(lines).toEqual(['two']);
      await append(store, position, ['three']);
      expect((await inTurn(other, () => readFrom(other))).lines).toEqual(['one', 'two', 'three']);
    });

    test('appends a group of 8 MiB, in one piece and in its order', async () => {
      const [store, other] = await handles(2);
      const long = 'x'.repeat(60_000);
      const texts = Array.from({ length: 140 }, (_, n) => `${n}-${long}`);
      const end = await append(store, START, texts);
      expect(end).toMatchObject({
        size: 140,
        tip: hashToBase64url(leafHash(Buffer.from(texts[139]))),
      });
      const { lines, position } = await inTurn(other, () => readFrom(other));
      expect(lines).toEqual(texts);
      expect(position).toEqual(end);
      // All of a group, or none of it.
      const refused = await inTurn(other, () => codeOf(other.appendIf(START, texts.map(lineOf))));
      expect(refused).toBe('LEDGER_CONFLICT');
      expect((await inTurn(store, () => readFrom(store, end))).lines).toEqual([]);
    });

    test('does not read on from what does not stand there', async () => {
      const [store] = await handles(1);
      const end = await append(store, START, ['one', 'two']);
      const tip = hashToBase64url(leafHash(Buffer.from('other')));
      expect(await inTurn(store, () => codeOf(readFrom(store, { ...end, tip })))).toBe('LEDGER_CONFLICT');
    });

    test('appends only under the lock, and holds one lock at a time', async () => {
      const [store] = await handles(1);
      await expect(store.appendIf(START, [lineOf('one')])).rejects.toThrow(TypeError);
      const lock = await store.acquire(PATIENT);
      await expect(store.acquire(PATIENT)).rejects.toThrow(TypeError);
      await lock.release();
      await lock.release();
      await (await store.acquire(PATIENT)).release();
    });

    test('loses and doubles nothing when four append at once, each behind what it has read', async () => {
      const stores = await handles(4);
      const work = async (store: LedgerStore, tag: number): Promise<void> => {
        let position = START;
        for (let n = 0; n < 10;) {
          const lock = await store.acquire(PATIENT);
          try {
            ({ position } = await readFrom(store, position));
            await store.nextPlace(position.size);
            await store.appendIf(position, [lineOf(`${tag}-${n}`)]);
            n += 1;
          } catch (error) {
            // Where nobody waits for others, another may come first.
            if (hasLocks || (error as NorthrootError).code !== 'LEDGER_CONFLICT') throw error;
          } finally {
            await lock.release();
          }
        }
      };
      await Promise.all(stores.map(work));
      const { lines } = await inTurn(stores[0], () => readFrom(stores[0]));
      expect(lines).toHaveLength(40);
      expect(new Set(lines).size).toBe(40);
      // Of each in its order.
      for (const tag of [0, 1, 2, 3]) {
        expect(lines.filter((line) => line.startsWith(`${tag}-`))).toEqual(
          Array.from({ length: 10 }, (_, n) => `${tag}-${n}`),
        );
      }
    });

    test.runIf(hasLocks)('gives the lock to one writer at a time, in call order', async () => {
      const [first, second, third] = await handles(3);
      const lock = await first.acquire(PATIENT);
      expect(await codeOf(second.acquire({ timeoutMs: 0 }))).toBe('LEDGER_LOCKED');
      const order: string[] = [];
      let onWait = (): void => undefined;
      const ask = (store: LedgerStore, name: string): Promise<void> =>
        store.acquire({ ...PATIENT, onWait: () => onWait() }).then(async (own) => {
          order.push(name);
          await own.release();
        });
      // Who asks later asks well after the other waits, which a store that has more to do than to queue it tells.
      const waits = new Promise<void>((resolve) => (onWait = resolve));
      const asked = [ask(second, 'second')];
      await Promise.race([waits, new Promise((resolve) => setTimeout(resolve, 1_500))]);
      await new Promise((resolve) => setTimeout(resolve, 300));
      asked.push(ask(third, 'third'));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(order).toEqual([]);
      await lock.release();
      await Promise.all(asked);
      expect(order).toEqual(['second', 'third']);
    });

    test.runIf(hasLocks)('lets four who ask again and again append about as often', async () => {
      const stores = await handles(4);
      const counts = [0, 0, 0, 0];
      let all = 0;
      // What takes the lock for a store may be a process, which must have started.
      for (const store of stores) await (await store.acquire(PATIENT)).release();
      const share = (): number => Math.min(...counts) / Math.max(...counts);
      // Where the system chooses among those who wait, chance decides of few turns, and what else the machine does.
      const isTooEarly = (): boolean => all < 400 || (all < 4_000 && share() < 0.5);
      const work = async (store: LedgerStore, tag: number): Promise<void> => {
        for (let position = START; isTooEarly();) {
          const lock = await store.acquire(PATIENT);
          try {
            ({ position } = await readFrom(store, position));
            await store.nextPlace(position.size);
            await store.appendIf(position, [lineOf(`${tag}`)]);
            counts[tag] = (counts[tag] ?? 0) + 1;
            all += 1;
          } finally {
            await lock.release();
          }
        }
      };
      await Promise.all(stores.map(work));
      expect(share()).toBeGreaterThanOrEqual(0.5);
    });

    test.runIf(hasLocks)('ends a wait that is given up, with the reason', async () => {
      const [first, second] = await handles(2);
      const lock = await first.acquire(PATIENT);
      const controller = new AbortController();
      const waiting = second.acquire({ ...PATIENT, signal: controller.signal });
      setTimeout(() => controller.abort(new Error('enough')), 50);
      await expect(waiting).rejects.toThrow('enough');
      await lock.release();
      await (await second.acquire(PATIENT)).release();
    });

    test.runIf(hasLocks)('releases the lock when it is closed', async () => {
      const [first, second] = await handles(2);
      await first.acquire(PATIENT);
      await first.close();
      await (await second.acquire(PATIENT)).release();
    });

    test('tells who waits when there is more, and ends the wait when it is told to, or closed', async () => {
      const [store, other, third] = await handles(3);
      const end = await append(store, START, ['one']);
      await other.waitForMore(START);
      let isOver = false;
      const waiting = other.waitForMore(end).then(() => (isOver = true));
      await new Promise((resolve) => setTimeout(resolve, 120));
      expect(isOver).toBe(false);
      await append(store, end, ['two']);
      await waiting;
      const controller = new AbortController();
      const { position } = await inTurn(other, () => readFrom(other));
      const stopped = other.waitForMore(position, controller.signal);
      controller.abort(new Error('enough'));
      await expect(stopped).rejects.toThrow('enough');
      const closed = third.waitForMore(position);
      await third.close();
      await closed;
    });

    test('has no torn tail where all was written whole', async () => {
      const [store] = await handles(1);
      const end = await append(store, START, ['one']);
      const lock = await store.acquire(PATIENT);
      await readFrom(store, end);
      expect(await store.settleTornTail()).toBeUndefined();
      await store.confirm();
      await store.discard();
      await lock.release();
      expect((await inTurn(store, () => readFrom(store))).lines).toEqual(['one']);
    });
  });
}

export function lineOf(text: string): Buffer {
  return Buffer.from(`${text}\n`);
}

/** The code of the NorthrootError that a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => new Error('expected a rejection'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof NorthrootError) return error.code;
  throw error;
}

/** Runs a function under the lock. */
export async function inTurn<T>(store: LedgerStore, act: () => Promise<T>): Promise<T> {
  const lock: WriteLock = await store.acquire(PATIENT);
  try {
    return await act();
  } finally {
    await lock.release();
  }
}

/** What is stored from a position on, and the position after it. */
export async function readFrom(
  store: LedgerStore,
  from: StorePosition = START,
): Promise<{ lines: string[]; position: StorePosition }> {
  const lines: string[] = [];
  let position = from;
  for await (const stored of store.read(from)) {
    if (stored.kind !== 'lines') continue;
    for (const { bytes, length, number, offset } of stored.lines) {
      lines.push(Buffer.from(bytes).toString());
      position = {
        size: position.size + 1,
        tip: hashToBase64url(leafHash(bytes)),
        file: stored.file,
        line: number + 1,
        byteOffset: offset + length + 1,
      };
    }
  }
  return { lines, position };
}

/** Appends under the lock; returns the position after it. */
export async function append(
  store: LedgerStore,
  from: StorePosition,
  texts: readonly string[],
): Promise<StorePosition> {
  return inTurn(store, async () => {
    await readFrom(store, from);
    await store.nextPlace(from.size);
    await store.appendIf(from, texts.map(lineOf));
    return (await readFrom(store, from)).position;
  });
}
