/** How a ledger stands is the same whether its index says so or the whole ledger was read. */

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readLedgerStatus } from '../../src/log/read/status.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { FILE_CASES, FIXTURES, fixtureBytes, optionsOf, type LedgerCase } from '../fixtures/cases.js';
import { sample } from '../slow.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-status-'));
afterAll(() => rmSync(folder, { recursive: true }));

const NOW = '2026-06-01T00:00:00Z';

const SEGMENT = '00000000000000000000.jsonl';

class WasRead extends Error {}

/** Says how a ledger stands by its index alone. */
const unread = (): never => {
  throw new WasRead();
};

/** A part of the bytes that ends where a line does. */
function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.indexOf(0x0a, bytes.length / 2) + 1);
}

const folds = ({ findings }: LedgerCase): boolean => findings.some(({ folded }) => folded !== undefined);
const LOOKED_AT = [...FILE_CASES.filter(folds), ...sample(FILE_CASES, 40)];

test('an index tells of the ledgers of the fixtures what reading them tells', async () => {
  let byIndex = 0;
  for (const [number, fixture] of LOOKED_AT.entries()) {
    const path = join(folder, `${number}.jsonl`);
    const { trust } = optionsOf(fixture);
    const bytes = fixtureBytes(fixture.ledger);
    // In two steps, so that what is found in the second folds under what was found in the first.
    writeFileSync(path, half(bytes));
    await maintainIndex(path, { trust }).catch(() => undefined);
    writeFileSync(path, bytes);
    await maintainIndex(path, { trust }).catch(() => undefined);
    const tell = (view: Promise<unknown>): Promise<unknown> => view.catch((error: unknown) => error);
    const expected = await tell(readLedgerStatus(path, { trust, now: NOW }));
    const told = await tell(new LedgerView(path, { trust, open: unread }).readStatus({ now: NOW }));
    if (told instanceof WasRead) {
      expect(await tell(new LedgerView(path, { trust }).readStatus({ now: NOW })), fixture.ledger).toEqual(
        expected,
      );
    } else {
      expect(told, fixture.ledger).toEqual(expected);
      byIndex += 1;
    }
    rmSync(path);
    rmSync(`${path}.index`, { recursive: true, force: true });
  }
  expect(byIndex).toBeGreaterThan(LOOKED_AT.length / 2);
});

test('a checkpoint that the user holds has the ledger read', async () => {
  const path = join(folder, 'held.jsonl');
  copyFileSync(join(FIXTURES, 'ledgers/checkpoints.jsonl'), path);
  await maintainIndex(path);
  const { checkpoints = [] } = optionsOf(FILE_CASES.find(({ checkpoints: held = [] }) => held.length > 0)!);
  const view = new LedgerView(path, { open: unread });
  await expect(view.readStatus({ checkpoints, now: NOW })).rejects.toBeInstanceOf(WasRead);
  await expect(view.readStatus({ now: NOW })).resolves.toHaveProperty('verdict', 'ok');
  expect(await new LedgerView(path).readStatus({ checkpoints, now: NOW })).toEqual(
    await readLedgerStatus(path, { checkpoints, now: NOW }),
  );
});

test('an index of a folder of segments names the files as reading them does', async () => {
  const path = join(folder, 'segments');
  mkdirSync(path);
  writeFileSync(join(path, SEGMENT), fixtureBytes('broken/meter-cap-exceeded.jsonl'));
  await maintainIndex(path);
  const told = await new LedgerView(path, { open: unread }).readStatus({ now: NOW });
  expect(told).toEqual(await readLedgerStatus(path, { now: NOW }));
  expect(told.worst_finding?.at.file).toBe(join(path, SEGMENT));
});

test('an option that is not known is a TypeError', async () => {
  const view = new LedgerView(join(folder, 'none.jsonl'));
  await expect(view.readStatus({ nw: NOW } as object)).rejects.toThrow(TypeError);
});
