/** A ledger that is asked by its index answers as one that is read; whatever has become of the index. */

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Level } from 'level';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { openLevelEntries } from '../../src/log/cache/level-entries.js';
import { NorthrootError } from '../../src/base/error.js';
import { findPermission, resolveAuthorization } from '../../src/log/policy/record.js';
import { listGrants, listOpenAuthorizations, listOpenStarts } from '../../src/rules/report/accounts.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { openLedger } from '../../src/log/tile/tile-tree.js';
import { readRecords, type ReadRecord } from '../../src/log/read/read-records.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { proveRecord } from '../../src/proof/prove.js';
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
    proof: await codeOf(proveRecord(view, '12')),
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

test('a ledger answers alike with an index, and without', async () => {
  const expected = await tellAll(new LedgerView(path, { index: false }));
  expect(existsSync(index)).toBe(false);
  const { records } = await maintainIndex(path);
  expect(records).toBe(22);
  expect(await ask()).toEqual({ told: expected, notices: [] });
});

test('a ledger answers alike whichever file of its index is damaged', async () => {
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
  expect(await proveRecord(asked, '2')).toEqual(await proveRecord(view, '2'));
});

test('the records of many events are found in one reading, by an index or without', async () => {
  const records: ReadRecord[] = [];
  for await (const record of readRecords(await openLedger(path))) records.push(record);
  const wanted = [12, 3, 20].map((seq) => records[seq] as ReadRecord);
  const ids = wanted.map(({ eventId }) => eventId);
  let opened = 0;
  const open = () => {
    opened += 1;
    return openLedger(path);
  };
  const read = await new LedgerView(path, { index: false, open }).findEvents(ids);
  expect(opened).toBe(1);
  expect([...read.values()].sort((a, b) => a.seq - b.seq)).toEqual([...wanted].sort((a, b) => a.seq - b.seq));
  await maintainIndex(path);
  expect([...(await new LedgerView(path, { open }).findEvents(ids)).values()]).toEqual(wanted);
  expect(opened).toBe(1);
  const other = `sha-256:${'A'.repeat(43)}`;
  expect(await codeOf(new LedgerView(path).findEvents([...ids, other]))).toBe('RECORD_NOT_FOUND');
  expect(await new LedgerView(path, { index: false }).findEvents([])).toEqual(new Map());
});

test('the records of events are found by an index of a ledger whose numbers are no ordinals', async () => {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  writeFileSync(path, `${[...lines.slice(0, 3), ...lines.slice(4)].join('\n')}\n`);
  await maintainIndex(path);
  const { eventId } = await new LedgerView(path, { index: false }).findRecord('12');
  const notices: string[] = [];
  const view = new LedgerView(path, { onNotice: ({ code }) => notices.push(code) });
  expect([...(await view.findEvents([eventId])).values()]).toMatchObject([{ seq: 12, eventId }]);
  expect(notices).toEqual([]);
});

test('keys that the ledger declares are found by its index, and what it does not have is read', async () => {
  const { signatures } = await new LedgerView(path, { index: false }).findRecord('12');
  const keyids = signatures.map(({ keyid }) => keyid);
  const unread = (): never => {
    throw new RangeError('read');
  };
  await maintainIndex(path);
  const view = new LedgerView(path, { open: unread });
  const declared = await new LedgerView(path, { index: false }).findDeclaredKeys([]);
  const found = await view.findDeclaredKeys(keyids);
  expect([...found.keys()]).toEqual(keyids);
  for (const [keyid, key] of found) expect(key).toEqual(declared.get(keyid));
  await expect(view.findDeclaredKeys(['A'.repeat(43)])).rejects.toThrow('read');
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

/** Changes an entry of the index as who may write it could. */
async function change(key: string, to: (text: string) => string): Promise<void> {
  const entries = await openLevelEntries(index, 0);
  const text = entries?.get(key) ?? '';
  const value = to(text);
  expect(value).not.toBe(text);
  await entries?.write([{ key, value }]);
  await entries?.close();
}

test('a check finds an entry that was changed', async () => {
  await maintainIndex(path);
  await change('-:r:0000000000000001', (text) => text.replace('"b":', '"b":1'));
  const { differences } = await maintainIndex(path, { check: true });
  expect(differences).toEqual(['r:0000000000000001']);
  expect((await maintainIndex(path, { rebuild: true, check: true })).differences).toEqual([]);
});

test('a check finds whatever is changed in a timeline', async () => {
  copyFileSync(join(FIXTURES, 'ledgers/at-the-bounds.jsonl'), path);
  await maintainIndex(path);
  expect((await maintainIndex(path, { check: true })).differences).toEqual([]);
  const entries = await openLevelEntries(index, 0);
  const nodes: (readonly [key: string, text: string])[] = [];
  for await (const node of entries!.list({ prefix: '-:t:' })) nodes.push(node);
  await entries?.close();
  const [key, text] = nodes.find(([, each]) => /"keys":\[\d+,/.test(each))!;
  const [, limit] = /^-:(t:\d+:\d+):/.exec(key)!;
  const changes: ((text: string) => string)[] = [
    (was) => was.replace(/"base":\{"\$i":"/, '$&1'),
    (was) => was.replace(/"unit":\{"\$i":"/, '$&1'),
    (was) => was.replace(/"keys":\[\d+,/, '$&1'),
    (was) => was.replace(/"keys":\[\d+,/, '"keys":["x",'),
    (was) => was.replace(/"keys":\[\d+,/, '"keys":['),
    (was) => was.replace(/"scale":\{"\$i":"/, '$&1'),
    (was) => was.replace(/"values":\[/, '$&1'),
    (was) => was.replace(/"starts":\[/, '"starts":[9'),
    (was) => was.replace(/"denominators":\[/, '"denominators":[{"$i":"2"},'),
    (was) => was.replace(/"level":0/, '"level":1'),
    () => '{}',
  ];
  for (const each of changes) {
    expect(each(text), String(each)).not.toBe(text);
    await change(key, each);
    expect((await maintainIndex(path, { check: true })).differences, String(each)).toEqual([limit]);
    await change(key, () => text);
  }
  await change(`${key.slice(0, -16)}9999999999999999`, () => text);
  expect((await maintainIndex(path, { check: true })).differences).toEqual([limit]);
});

test('a check says behind which entry one cannot be read', async () => {
  await maintainIndex(path);
  const level = new Level(index);
  await level.put('-:r:0000000000000001', 'damaged');
  await level.close();
  expect((await maintainIndex(path, { check: true })).differences.at(-1)).toBe('r:0000000000000000');
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

test('what may be executed is found by id and number over an index, and by prefix when that was resolved', async () => {
  await maintainIndex(path);
  const now = '2026-03-01T11:00:00Z';
  const names = ['1', '2', '5', '12', '999', '8', 'X', 'a', 'zzz', 'no id'];
  const tell = (error: unknown): string => {
    if (error instanceof NorthrootError) return `${error.code} ${error.message}`;
    throw error;
  };
  const find = (view: LedgerView): Promise<unknown[]> =>
    view.inspect(async (state) => {
      const told: unknown[] = [];
      for (const name of names) {
        const resolved = await resolveAuthorization(state, name).catch(tell);
        const ids = [
          ...(/^\d+$/.test(name) ? [name] : []),
          ...(resolved.startsWith('sha-256:') ? [resolved] : []),
        ];
        told.push(resolved);
        for (const id of ids) {
          try {
            told.push(findPermission(state, id, { now, toolName: 'fs.read' }));
          } catch (error) {
            told.push(tell(error));
          }
        }
      }
      return told;
    });
  const told = await find(new LedgerView(path));
  expect(told).toEqual(await find(new LedgerView(path, { index: false })));
  expect(told).toEqual(expect.arrayContaining([expect.stringMatching(/^sha-256:/)]));
  const begun = (state: VerifyState): unknown => findPermission(state, 'abc', { now });
  expect(await codeOf(new LedgerView(path).inspect(begun))).toBe('USAGE');
});
