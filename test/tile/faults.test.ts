/** Whatever fails while a tile tree is written, and whenever: the checkpoint that is there is served whole, and the next run mends the rest. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { FaultyFileSystem, type Fault, type Operation } from '../writer/file-systems.js';
import { errorOf } from '../writer/support.js';
import { CrashingFileSystem } from './crashing-file-system.js';
import { makeLines, plantTree, publish, readTiles, readTree, temporaryFolder } from './support.js';

const LINES = makeLines(520);

/** The long run goes through every combination. */
const isSlow = process.env['SLOW'] === '1';

/** From nothing; a full tile and its bundle come and partial ones go, and a level more; then others, and nothing to do. */
const STEPS: readonly (readonly [from: number, to: number])[] = [
  [0, 3],
  [255, 258],
  ...(isSlow
    ? ([
        [250, 258],
        [255, 513],
        [511, 512],
        [300, 300],
      ] as const)
    : []),
];

type Files = ReadonlyMap<string, Buffer>;

async function made(...sizes: readonly number[]): Promise<Files> {
  const folder = join(temporaryFolder(), 'tree');
  for (const size of sizes) await publish(LINES.slice(0, size), folder);
  return readTree(folder);
}

/** A folder with these files, made without anything that could fail. */
function start(files: Files): string {
  const folder = join(temporaryFolder(), 'tree');
  plantTree(folder, files);
  return folder;
}

/** The size of the tree that is served; asserts that it is served whole, and that nothing in it is wrong. */
async function servedSize(folder: string): Promise<number> {
  if (!existsSync(join(folder, 'checkpoint'))) return 0;
  const { faults, isComplete, isSigned, ledger } = await readTiles(folder);
  expect({ isComplete, isSigned }).toEqual({ isComplete: true, isSigned: true });
  // Tiles that are there before their checkpoint is.
  expect(faults.filter(({ code }) => code !== 'TILE_UNEXPECTED')).toEqual([]);
  return ledger.filter((byte) => byte === 0x0a).length;
}

describe.each(STEPS)('from %d to %d lines', (from, to) => {
  const operations: readonly Operation[] = [
    'kindOf',
    'open',
    'list',
    'makeFolder',
    'write',
    'datasync',
    'close',
    'rename',
    'syncFolderOf',
    'remove',
    'removeFolder',
  ];
  const kinds: readonly Pick<Fault, 'operation' | 'mode' | 'errno'>[] = [
    ...operations.map((operation) => ({ operation, mode: 'once', errno: 'EIO' }) as const),
    { operation: 'write', mode: 'short', errno: 'ENOSPC' },
  ];
  test.each(kinds)('$operation fails ($mode)', async (kind) => {
    const [before, after] = [
      from === 0 ? new Map() : await made(from),
      await made(...(from === 0 ? [to] : [from, to])),
    ];
    for (let nth = 1; ; nth += 1) {
      const folder = start(before);
      const fileSystem = new FaultyFileSystem({ ...kind, nth });
      const run = publish(LINES.slice(0, to), folder, { fileSystem });
      if (
        !(await run.then(
          () => fileSystem.fired,
          () => true,
        ))
      )
        break;
      const error = await errorOf(run);
      expect(error).toBeInstanceOf(NorthrootError);
      expect(['IO_FAILED', 'DISK_FULL']).toContain((error as NorthrootError).code);
      expect([from, to]).toContain(await servedSize(folder));
      await publish(LINES.slice(0, to), folder);
      expect(readTree(folder)).toEqual(after);
    }
  });

  test('the process dies, or the machine, after any operation', async () => {
    let state = from * 1_000 + to;
    const chance = (): boolean => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 16) % 2 === 0;
    };
    const losses = [() => true, () => false, chance, chance];
    const [before, after] = [
      from === 0 ? new Map() : await made(from),
      await made(...(from === 0 ? [to] : [from, to])),
    ];
    const sizes = new Set<number>();
    for (let lifetime = 0, isDone = false; !isDone; lifetime += 1) {
      for (const [at, isLost] of losses.entries()) {
        if (!isSlow && at > 0 && at !== lifetime % 9) continue;
        const folder = start(before);
        const fileSystem = new CrashingFileSystem(lifetime);
        isDone = await publish(LINES.slice(0, to), folder, { fileSystem }).then(
          () => true,
          () => false,
        );
        fileSystem.failPower(isLost);
        const size = await servedSize(folder);
        // What was said to be done is done, whatever happens to the machine then.
        if (isDone) expect(size).toBe(to);
        sizes.add(size);
        if (at === 0 && !isSlow) continue;
        await publish(LINES.slice(0, to), folder);
        expect(readTree(folder)).toEqual(after);
      }
    }
    expect(sizes).toEqual(new Set([from, to]));
  });
});

test('what a process that died has left is on disk when the next one has finished', async () => {
  const before = await made(255);
  for (let lifetime = 0, isDone = false; !isDone; lifetime += isSlow ? 1 : 3) {
    const folder = start(before);
    const fileSystem = new CrashingFileSystem(lifetime);
    const run = (): Promise<boolean> =>
      publish(LINES.slice(0, 258), folder, { fileSystem }).then(
        () => true,
        () => false,
      );
    isDone = await run();
    fileSystem.restart();
    expect(await run()).toBe(true);
    fileSystem.failPower(() => true);
    expect(await servedSize(folder)).toBe(258);
  }
});

test('the checkpoint is never there before what it covers', async () => {
  const folder = start(await made(250));
  const before = readFileSync(join(folder, 'checkpoint'));
  const fileSystem = new FaultyFileSystem({ operation: 'rename', mode: 'once', errno: 'EIO', nth: 3 });
  await errorOf(publish(LINES.slice(0, 258), folder, { fileSystem }));
  expect(readFileSync(join(folder, 'checkpoint'))).toEqual(before);
});
