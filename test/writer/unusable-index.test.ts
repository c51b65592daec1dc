/** A ledger's writer goes on from its index, and no fault of the index costs a record or lets one in twice. */

import { mkdirSync } from 'node:fs';
import { Level } from 'level';
import { afterEach, expect, test, vi } from 'vitest';
import { indexPath } from '../../src/log/cache/ledger-index.js';
import { openLevelEntries } from '../../src/log/cache/level-entries.js';
import { FileStore } from '../../src/log/store/file-store.js';
import { IndexCache } from '../../src/log/writer/index-cache.js';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { draft, expectSound, openLedger, temporaryFolder } from './support.js';

afterEach(() => vi.restoreAllMocks());

interface Indexed {
  readonly path: string;
  readonly reasons: string[];
  readonly open: () => Promise<Ledger>;
}

function newLedger(): Indexed {
  const path = `${temporaryFolder()}/l.jsonl`;
  // A folder that is there already makes a small ledger have one.
  mkdirSync(indexPath(path));
  const reasons: string[] = [];
  const open = async (): Promise<Ledger> => {
    const store = await FileStore.open(path, { create: true });
    const onNotice = ({ reason }: { readonly reason: string }): void => void reasons.push(reason);
    const stateCache = new IndexCache(path, store, { waitMs: 0, onNotice });
    return openLedger(store, { stateCache });
  };
  return { path, reasons, open };
}

async function appendAll(ledger: Ledger, ...numbers: number[]): Promise<string[]> {
  const statuses: string[] = [];
  for (const n of numbers) statuses.push((await ledger.append({ event: draft(n) })).status);
  return statuses;
}

test('one that another process has open is done without, and gone on with later', async () => {
  const { path, open } = newLedger();
  const ledger = await open();
  await appendAll(ledger, 1, 2);
  const held = await openLevelEntries(indexPath(path), 5_000);
  expect(held).toBeDefined();
  expect(await appendAll(ledger, 1, 3)).toEqual(['exists', 'appended']);
  await held?.close();
  expect(await appendAll(ledger, 2, 3, 4)).toEqual(['exists', 'exists', 'appended']);
  await ledger.close();
  expect(await appendAll(await open(), 1, 2, 3, 4)).toEqual(Array(4).fill('exists'));
  await expectSound(path, 5);
});

test('one that cannot be written to forgets nothing', async () => {
  const { path, reasons, open } = newLedger();
  const ledger = await open();
  await appendAll(ledger, 1);
  const batch = vi.spyOn(Level.prototype, 'batch');
  const fails = (): Promise<void> => Promise.reject(new Error('no space'));
  const nothing = (): void => undefined;
  batch.mockImplementationOnce((() => ({
    put: nothing,
    del: nothing,
    write: fails,
    close: nothing,
  })) as never);
  await appendAll(ledger, 2);
  // Once the lock is given back.
  await vi.waitFor(() => expect(batch).toHaveBeenCalled(), 20_000);
  await appendAll(ledger, 3);
  await ledger.close();
  expect(await appendAll(await open(), 1, 2, 3)).toEqual(Array(3).fill('exists'));
  expect(reasons).toEqual([]);
  await expectSound(path, 4);
});

test.each([['at opening'], ['while it is open']])(
  'one that turns out to be damaged %s is made anew',
  async (when) => {
    const { path, reasons, open } = newLedger();
    const first = await open();
    await appendAll(first, 1);
    await first.close();
    const isOpening = when === 'at opening';
    const before = isOpening ? undefined : await open();
    await damage(indexPath(path), isOpening ? ':k:' : ':e:');
    // What it does not know yet, and reads at opening.
    const other = await openLedger(path, { index: false });
    await appendAll(other, 2);
    await other.close();
    const ledger = before ?? (await open());
    expect(await appendAll(ledger, 1, 2, 3)).toEqual(['exists', 'exists', 'appended']);
    expect(reasons).toEqual(['an entry is damaged']);
    await ledger.close();
    await expectSound(path, 4);
  },
);

test('one of another form is made anew, and said to be of another version', async () => {
  const { path, reasons, open } = newLedger();
  const first = await open();
  await appendAll(first, 1);
  await first.close();
  const level = new Level(indexPath(path));
  const [key] = (await level.keys().all()).filter((each) => each.endsWith(':h'));
  // Its checksum was longer, and of another kind.
  await level.put(key, `${'A'.repeat(16)}{"format":"northroot-index 3","version":"0.1.0"}`);
  await level.close();
  const ledger = await open();
  expect(await appendAll(ledger, 1, 2)).toEqual(['exists', 'appended']);
  expect(reasons).toEqual(['it was made by another version']);
  await ledger.close();
  await expectSound(path, 3);
});

async function damage(folder: string, part: string): Promise<void> {
  const level = new Level(folder);
  const keys = await level.keys().all();
  for (const key of keys.filter((key) => key.includes(part))) await level.put(key, 'damaged');
  await level.close();
}
