/**
 * What a writer leaves that is killed amid an append, while it has an index: whoever comes next reads what is new, and all of it where it
 * cannot be told that nothing else was changed.
 */

import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { sha256Base64url } from '../../src/base/bytes/sha256.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { type Operation, StoppingFileSystem } from './file-systems.js';
import {
  draft,
  expectSound,
  judge,
  makeLedger,
  noticeBoard,
  openLedger,
  temporaryFolder,
} from './support.js';

const RECORDS = 60;

interface Left {
  readonly path: string;
  /** Before what the process stopped. */
  readonly before: Operation;
  /** Of the ledger as the index has it. */
  readonly bytes: number;
}

/** What is on disk when a writer stops so many operations after an append began; undefined if it was over by then. */
async function leave(operations: number): Promise<Left | undefined> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const fileSystem = new StoppingFileSystem(path);
  const options = { fileSystem, index: `${path}.index`, position: false };
  await makeLedger(path, RECORDS, options);
  const bytes = readFileSync(path).length;
  const ledger = await openLedger(path, options);
  // Close to each other: they share a lock, and what they add is not saved.
  for (let n = 1; n <= 5; n += 1) await ledger.append({ event: draft(RECORDS + n) });
  const stopped = fileSystem.stopAfter(operations);
  const last = ledger.append({ event: draft(RECORDS + 6) }).catch(() => 'failed');
  const before = await Promise.race([stopped, last.then(() => undefined)]);
  if (before === undefined) {
    fileSystem.end();
    return undefined;
  }
  // Beside the sync it is noted how far the writer has come.
  if (before === 'datasync') await vi.waitUntil(() => hasNote(path), { timeout: 60_000 });
  const copy = copyOf(path);
  fileSystem.end();
  await ledger.close().catch(() => undefined);
  return { path: copy, before, bytes };
}

/** Whether the index knows the stamp of what was written. */
function hasNote(path: string): boolean {
  const stamp = sha256Base64url(Buffer.from(`ledger.jsonl:${sha256Base64url(readFileSync(path))}`));
  const index = `${path}.index`;
  const logs = readdirSync(index).filter((name) => name.endsWith('.log'));
  return logs.some((name) => readFileSync(join(index, name)).includes(stamp));
}

function copyOf(path: string): string {
  const copy = join(temporaryFolder(), 'ledger.jsonl');
  cpSync(path, copy);
  cpSync(`${path}.index`, `${copy}.index`, { recursive: true });
  return copy;
}

/** Goes on with what is left. @returns the bytes of the ledger that were read, and what was told */
async function goOn(path: string): Promise<{ readonly read: number; readonly codes: string[] }> {
  const fileSystem = new StoppingFileSystem(path);
  const { notices, onNotice } = noticeBoard();
  const options = { fileSystem, index: `${path}.index`, position: false, onNotice };
  const ledger = await openLedger(path, options);
  await ledger.append({ event: draft(0) });
  await ledger.close();
  return { read: fileSystem.bytesRead, codes: notices.map(({ code }) => code) };
}

test('is not read again where nothing else was changed, and is found out where something was', async () => {
  let usual = Infinity;
  const wholes = new Map<Operation, boolean[]>();
  for (let operations = 0; ; operations += 1) {
    const left = await leave(operations);
    if (left === undefined) break;
    const { path, before, bytes } = left;
    const changed = copyOf(path);
    const { read, codes } = await goOn(path);
    expect(codes).toEqual([]);
    // Stopped before anything was written.
    if (operations === 0) usual = read;
    wholes.set(before, [...(wholes.get(before) ?? []), read >= usual + bytes]);
    const records = readFileSync(path, 'latin1').split('\n').length - 1;
    expect(records).toBeGreaterThanOrEqual(RECORDS + 1 + 5 + 1);
    await expectSound(path, records);
    const { records: indexed, differences } = await maintainIndex(path, { check: true });
    expect([indexed, differences]).toEqual([records, []]);

    const content = readFileSync(changed);
    const at = content.indexOf('"n":7,');
    content.write('"n":8,', at);
    writeFileSync(changed, content);
    expect((await goOn(changed)).codes).toContain('INDEX_REBUILT');
    expect((await judge(changed)).verdict).toBe('invalid');
  }
  // Only between the write and the look at what it left may others have changed something.
  expect(wholes.get('stampOf')).toContain(true);
  wholes.delete('stampOf');
  expect(wholes.get('datasync')).toEqual([false]);
  expect(new Set([...wholes.values()].flat())).toEqual(new Set([false]));
});
