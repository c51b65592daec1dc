/** A ledger that is asked by its index answers as one that is read; whatever has become of the index. */

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { NorthrootError } from '../../src/error.js';
import { resolveAuthorization } from '../../src/policy/record.js';
import { listGrants, listOpenAuthorizations, listOpenStarts } from '../../src/report/accounts.js';
import { LedgerView } from '../../src/view/ledger-view.js';
import { maintainIndex } from '../../src/view/maintain-index.js';
import { Ledger } from '../../src/writer/ledger.js';
import { FIXTURES } from '../fixtures/cases.js';
import { codeOf } from '../writer/support.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-view-'));
afterAll(() => rmSync(folder, { recursive: true }));

let path: string;
let index: string;
let count = 0;

beforeEach(() => {
  count += 1;
  path = join(folder, `${count}.jsonl`);
  index = `${path}.index`;
  copyFileSync(join(FIXTURES, 'ledgers/agent-run.jsonl'), path);
});

async function tellAll(view: LedgerView): Promise<unknown> {
  const record = await view.findRecord('12');
  return {
    record,
    byPrefix: await view.findRecord(record.eventId.slice(0, 20)),
    history: await view.explainEvent('12'),
    accounts: await view.inspect((state) => ({
      grants: listGrants(state),
      open: listOpenAuthorizations(state),
      starts: listOpenStarts(state),
    })),
    proof: await codeOf(view.makeProof('12')),
    missing: await codeOf(view.findRecord('999999')),
    ambiguous: await codeOf(view.findRecord('A')),
  };
}

/** What is asked of the index, and what is said of it. */
async function ask(): Promise<{ told: unknown; notices: string[] }> {
  const notices: string[] = [];
  const view = new LedgerView(path, { onNotice: ({ code }) => notices.push(code) });
  return { told: await tellAll(view), notices };
}

test('with an index, and without', async () => {
  const expected = await tellAll(new LedgerView(path, { index: false }));
  expect(existsSync(index)).toBe(false);
  const { records } = await maintainIndex(path);
  expect(records).toBe(22);
  expect(await ask()).toEqual({ told: expected, notices: [] });
});

test('an index that is damaged, in each of its files', async () => {
  const expected = await tellAll(new LedgerView(path, { index: false }));
  await maintainIndex(path);
  for (const name of readdirSync(index)) {
    await maintainIndex(path);
    if (!existsSync(join(index, name))) continue;
    truncateSync(join(index, name), 0);
    const { told } = await ask();
    expect(told, name).toEqual(expected);
    await maintainIndex(path);
    if (!existsSync(join(index, name))) continue;
    writeFileSync(join(index, name), Buffer.alloc(5_000, 7));
    expect((await ask()).told, name).toEqual(expected);
  }
});

test('an index of another ledger is made anew, and said so', async () => {
  await maintainIndex(path);
  copyFileSync(join(FIXTURES, 'ledgers/checkpoints.jsonl'), path);
  const view = new LedgerView(path, { index: false });
  const expected = await view.explainEvent('2');
  const notices: string[] = [];
  const asked = new LedgerView(path, { onNotice: ({ code }) => notices.push(code) });
  expect(await asked.explainEvent('2')).toEqual(expected);
  expect(notices).toEqual(['INDEX_REBUILT']);
  expect(await asked.makeProof('2')).toEqual(await view.makeProof('2'));
});

test('what a look at the state throws is thrown as it is', async () => {
  await maintainIndex(path);
  const error = new RangeError('mine');
  const look = (): never => {
    throw error;
  };
  await expect(new LedgerView(path).inspect(look)).rejects.toBe(error);
});

test('the last records, and what follows them', async () => {
  const view = new LedgerView(path);
  expect(await view.listLast(3)).toBeUndefined();
  await maintainIndex(path);
  const last = await view.listLast(3);
  expect(last).toEqual(await Promise.all(['19', '20', '21'].map((seq) => view.findRecord(seq))));
  expect(await view.inspect(({ hasInvalid }) => hasInvalid)).toBe(false);
  appendFileSync(path, 'torn');
  expect(await view.listLast(3)).toBeUndefined();
  expect(await view.inspect(({ hasInvalid }) => hasInvalid)).toBe(true);
});

test('a check finds nothing in an index that is right', async () => {
  await maintainIndex(path);
  const { differencesTotal, bytes } = await maintainIndex(path, { check: true });
  expect(differencesTotal).toBe(0);
  expect(bytes).toBeGreaterThan(1_000);
  expect(existsSync(`${index}.check`)).toBe(false);
});

test('a check finds an entry that was changed', async () => {
  await maintainIndex(path);
  const { openLevelEntries } = await import('../../src/cache/level-entries.js');
  const entries = await openLevelEntries(index, { create: false, waitMs: 0 });
  const key = '-:r:0000000000000003';
  await entries?.write([{ key, value: entries.get(key)?.replace('"b":', '"b":1') }]);
  await entries?.close();
  const { differences } = await maintainIndex(path, { check: true });
  expect(differences).toEqual(['r:0000000000000003']);
  expect((await maintainIndex(path, { rebuild: true, check: true })).differences).toEqual([]);
});

test('an authorization is found by number and prefix in a ledger that is opened by its index', async () => {
  await maintainIndex(path);
  const resolveAll = async (index: boolean): Promise<unknown[]> => {
    const ledger = await Ledger.open(path, { index });
    try {
      const names = ['1', '2', '5', '12', '999', 'A', 'X', 'a', '8', 'zzz'];
      const tell = (error: unknown): string => (error instanceof NorthrootError ? error.message : 'unknown');
      return await Promise.all(names.map((name) => resolveAuthorization(ledger, name).catch(tell)));
    } finally {
      await ledger.close();
    }
  };
  const expected = await resolveAll(false);
  expect(expected).not.toContain('unknown');
  expect(await resolveAll(true)).toEqual(expected);
});
