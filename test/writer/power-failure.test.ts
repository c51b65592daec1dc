/** Processes are killed and the power fails, at every operation on files: what was acknowledged was on disk. */

import { appendFileSync, existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Appended, Ledger } from '../../src/log/writer/ledger.js';
import { repairLedger } from '../../src/log/writer/repair.js';
import { times } from '../slow.js';
import { soundFileSystem, VolatileFileSystem } from './file-systems.js';
import {
  draft,
  expectSound,
  judge,
  lastFile,
  openUnsigned,
  readRecords,
  temporaryFolder,
} from './support.js';

/** A process: takes up the ledger, appends drafts 0 to 7, and dies when its time has come. */
async function runProcess(path: string, fileSystem: VolatileFileSystem): Promise<Appended[]> {
  const acknowledged: Appended[] = [];
  let ledger: Ledger | undefined;
  try {
    ledger = await openUnsigned(path, { fileSystem, segmentBytes: 1_200 });
    for (const group of [[0], [1, 2, 3], [4, 5, 6], [7]]) {
      const calls = group.map((n) => (ledger as Ledger).append({ event: draft(n) }));
      for (const outcome of await Promise.allSettled(calls)) {
        if (outcome.status === 'fulfilled') acknowledged.push(outcome.value);
      }
    }
  } catch {
    // It died while it opened the ledger.
  }
  await ledger?.close().catch(() => undefined);
  return acknowledged;
}

/** Every acknowledged event is in its place; what else is wrong is a torn tail, and the next writer goes on. */
async function expectKept(path: string, acknowledged: readonly Appended[]): Promise<void> {
  if (acknowledged.length > 0) {
    const records = readRecords(path);
    for (const { seq, eventId } of acknowledged) {
      expect(`sha-256:${records[seq]?.event.event_id.b64}`).toBe(eventId);
    }
    const { verdict, codes } = await judge(path);
    expect(codes).toEqual(verdict === 'ok' ? [] : ['LINE_TORN']);
  }
  // A file of which only the size reached the disk is not taken for a ledger; nobody was told of it.
  const ledger = await openUnsigned(path, { fileSystem: soundFileSystem }).catch(
    (error: { code?: string }) => {
      expect(error.code).toBe('NOT_A_LEDGER');
      expect(acknowledged).toEqual([]);
    },
  );
  if (ledger === undefined) return;
  await ledger.append({ event: draft(100) });
  const { size } = ledger;
  await ledger.close();
  await expectSound(path, size);
}

/** Numbers from 0 up to 1, always the same ones. */
function dice(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe.each([
  ['a file', 'ledger.jsonl'],
  ['a folder of segments', 'ledger/'],
])('%s', (_layout, name) => {
  test('keeps what was acknowledged when the power fails at any operation', async () => {
    const folder = temporaryFolder();
    for (let lifetime = 0; ; lifetime += 1) {
      const path = join(folder, `${lifetime}-${name}`);
      const fileSystem = new VolatileFileSystem();
      fileSystem.startProcess(lifetime);
      const acknowledged = await runProcess(path, fileSystem);
      const { operations } = fileSystem;
      fileSystem.failPower(dice(lifetime));
      await expectKept(path, acknowledged);
      if (operations <= lifetime) {
        expect(acknowledged).toHaveLength(8);
        break;
      }
    }
  });

  test('keeps a torn tail, in the ledger or beside it, when the power fails while it is repaired', async () => {
    const folder = temporaryFolder();
    const tail = '{"event":{"canonical_profile_id":"torn';
    for (let lifetime = 0, isDone = false; !isDone; lifetime += 1) {
      for (let seed = 1; seed <= times(3, 6); seed += 1) {
        const path = join(folder, `${lifetime}-${seed}-${name}`);
        await (await openUnsigned(path, { fileSystem: soundFileSystem })).close();
        appendFileSync(lastFile(path), tail);
        const fileSystem = new VolatileFileSystem();
        fileSystem.startProcess(lifetime);
        await repairLedger(path, { fileSystem }).catch(() => undefined);
        isDone = fileSystem.operations <= lifetime;
        fileSystem.failPower(dice(seed));
        const file = lastFile(path);
        const tornFiles = readdirSync(dirname(file)).map((entry) => join(dirname(file), entry));
        const kept = [file, ...tornFiles.filter((entry) => entry.startsWith(`${file}.torn-`))];
        expect(kept.some((entry) => readFileSync(entry, 'utf8').endsWith(tail))).toBe(true);
      }
    }
  });

  test('keeps what a writer acknowledged that took over from one that was killed', async () => {
    const folder = temporaryFolder();
    for (let lifetime = 0; ; lifetime += times(3, 1)) {
      const path = join(folder, `${lifetime}-${name}`);
      const fileSystem = new VolatileFileSystem();
      fileSystem.startProcess(lifetime);
      const before = await runProcess(path, fileSystem);
      const wasKilled = fileSystem.operations > lifetime;
      fileSystem.startProcess(Infinity);
      const acknowledged = [...before, ...(await runProcess(path, fileSystem))];
      expect(acknowledged.length).toBe(before.length + 8);
      fileSystem.failPower(() => 0);
      expect(existsSync(path)).toBe(true);
      await expectKept(path, acknowledged);
      if (!wasKilled) break;
    }
  });
});
