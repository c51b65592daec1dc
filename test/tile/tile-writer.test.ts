import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodeFileSystem } from '../../src/log/fs/file-system.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { openTileTree } from '../../src/log/tile/tile-tree.js';
import { writeTiles } from '../../src/log/tile/tile-writer.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { codeOf, errorOf } from '../writer/support.js';
import {
  ORIGIN,
  makeLines,
  naiveTree,
  noteOf,
  publish,
  readTiles,
  readTree,
  signedNote,
  temporaryFolder,
  toLedger,
} from './support.js';

const LINES = makeLines(1_100);
const EDGES = [1, 2, 255, 256, 257, 511, 512, 513, 768];

/** The partial tiles of an earlier tree that must stay: their full ones are not there. */
function keptPartials(
  old: ReadonlyMap<string, Buffer>,
  now: ReadonlyMap<string, Buffer>,
): Map<string, Buffer> {
  return new Map([...old].filter(([name]) => /\.p\//.test(name) && !now.has(name.replace(/\.p\/.*/, ''))));
}

function sorted(files: Iterable<[string, Buffer]>): Map<string, Buffer> {
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

describe('a tree from scratch', () => {
  test.each([0, ...EDGES, 1_025])('of %d lines is what the specification says', async (size) => {
    const lines = LINES.slice(0, size);
    const folder = join(temporaryFolder(), 'deep/down');
    const { tiles, bundles, previousSize } = await publish(lines, folder);
    const expected = naiveTree(lines);
    expect(readTree(folder)).toEqual(sorted(expected));
    expect(tiles.written + bundles.written).toBe(expected.size - 1);
    expect(tiles.kept + bundles.kept).toBe(0);
    expect(previousSize).toBeUndefined();
  });

  test('covers what its checkpoint covers, though the ledger goes on', async () => {
    const folder = temporaryFolder();
    await publish(LINES, folder, { note: noteOf(LINES, 300) });
    expect(readTree(folder)).toEqual(sorted(naiveTree(LINES.slice(0, 300))));
  });

  test('beyond a thousand tiles', async () => {
    const lines = makeLines(257_000);
    const folder = temporaryFolder();
    const range = emptyRange();
    for (const line of lines) appendLeaf(range, leafHash(line));
    const text = formatCheckpoint({ origin: ORIGIN, size: 257_000, root: rangeRoot(range), extensions: [] });
    const { tiles, bundles } = await publish(lines, folder, { note: signedNote(text) });
    expect(bundles.written).toBe(1_004);
    expect(tiles.written).toBe(1_004 + 4 + 1);
    expect(statSync(join(folder, 'tile/entries/x001/003.p/232')).isFile()).toBe(true);
    const tree = await openTileTree(folder);
    const hash = createHash('sha256');
    for await (const { chunks } of tree.source.segments) for await (const chunk of chunks) hash.update(chunk);
    expect(await tree.finish()).toEqual({ faults: [], total: 0 });
    expect(hash.digest()).toEqual(createHash('sha256').update(toLedger(lines)).digest());
  });

  test('has lines of every length', async () => {
    const lines = [1, 255, 256, 65_534, 65_535].map((length) => Buffer.alloc(length, 'a'));
    const folder = temporaryFolder();
    await publish(lines, folder);
    expect(readTree(folder)).toEqual(sorted(naiveTree(lines)));
  });
});

describe('a tree brought up to date', () => {
  const pairs = EDGES.flatMap((from) => EDGES.filter((to) => to >= from).map((to) => [from, to] as const));
  test.each(pairs)('from %d to %d lines is that from scratch', async (from, to) => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, from), folder);
    const before = readTree(folder);
    const result = await publish(LINES.slice(0, to), folder);
    const expected = naiveTree(LINES.slice(0, to));
    expect(readTree(folder)).toEqual(sorted([...keptPartials(before, expected), ...expected]));
    expect(result.previousSize).toBe(from);
    const { faults, isComplete } = await readTiles(folder);
    expect({ faults, isComplete }).toEqual({ faults: [], isComplete: true });
  });

  test('writes no full tile again', async () => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, 600), folder);
    const path = join(folder, 'tile/entries/001');
    const before = statSync(path);
    const { tiles, bundles } = await publish(LINES.slice(0, 601), folder);
    expect({ tiles, bundles }).toEqual({ tiles: { written: 1, kept: 3 }, bundles: { written: 1, kept: 2 } });
    expect(statSync(path).ino).toBe(before.ino);
  });

  test('takes further signatures on the same checkpoint', async () => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, 5), folder);
    const note = Buffer.concat([noteOf(LINES, 5), Buffer.from('— w.example YWJjZGVmZ2g=\n')]);
    await publish(LINES.slice(0, 5), folder, { note });
    expect(readFileSync(join(folder, 'checkpoint'))).toEqual(note);
  });

  test('in many steps', async () => {
    const folder = temporaryFolder();
    for (let size = 250; size <= 530; size += 7) await publish(LINES.slice(0, size), folder);
    const { faults, isComplete } = await readTiles(folder);
    expect({ faults, isComplete }).toEqual({ faults: [], isComplete: true });
    const partials = [...readTree(folder).keys()].filter(
      (name) => name.startsWith('tile/0/') && name.includes('.p'),
    );
    // All of the last tile, each as its checkpoint needs it, and none of those before.
    expect(partials).toEqual(['tile/0/002.p/11', 'tile/0/002.p/18', 'tile/0/002.p/4']);
  });

  test('keeps strange files beside the partial ones', async () => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, 5), folder);
    writeFileSync(join(folder, 'tile/0/000.p/note'), '');
    await publish(LINES.slice(0, 256), folder);
    expect([...readTree(folder).keys()].filter((name) => name.includes('.p/'))).toEqual([
      'tile/0/000.p/note',
      'tile/1/000.p/1',
    ]);
  });
});

describe('is refused:', () => {
  const other = [...LINES.slice(0, 3), Buffer.from('{"other":true}'), ...LINES.slice(4)];

  /** Publishes 300 lines, then tries; the tree must be what it was. */
  async function refusalOf(tryTo: (folder: string) => Promise<unknown>, size = 300): Promise<unknown> {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, size), folder);
    const before = readTree(folder);
    const error = await errorOf(tryTo(folder));
    expect(readTree(folder)).toEqual(before);
    return error;
  }

  test('a ledger of another history', async () => {
    const error = await refusalOf((folder) => publish(other.slice(0, 400), folder));
    expect(error).toMatchObject({ code: 'FORKED' });
  });

  test('a smaller checkpoint', async () => {
    const error = await refusalOf((folder) => publish(LINES, folder, { note: noteOf(LINES, 299) }));
    expect(error).toMatchObject({ code: 'TRUNCATED' });
  });

  test('a ledger that was cut', async () => {
    const cut = LINES.slice(0, 200);
    expect(await refusalOf((folder) => publish(cut, folder))).toMatchObject({ code: 'TRUNCATED' });
    const note = noteOf(LINES, 300);
    expect(await refusalOf((folder) => publish(cut, folder, { note }))).toMatchObject({ code: 'TRUNCATED' });
  });

  test('a checkpoint with another root', async () => {
    const note = noteOf(other, 310);
    const error = await refusalOf((folder) => publish(LINES, folder, { note }));
    expect(error).toMatchObject({ code: 'CHECKPOINT_ROOT_MISMATCH' });
  });

  test('a checkpoint of another log', async () => {
    const note = noteOf(LINES, 310, 'example.com/other');
    expect(await refusalOf((folder) => publish(LINES, folder, { note }))).toMatchObject({
      code: 'ORIGIN_MISMATCH',
    });
  });

  test.each(['tile/0/000', 'tile/entries/000', 'tile/0/001.p/44', 'tile/1/000.p/1', 'tile/entries/001.p/44'])(
    'a tree whose %s was changed',
    async (name) => {
      for (const content of [Buffer.alloc(0), Buffer.alloc(8192, 1), Buffer.alloc(10_000)]) {
        const folder = temporaryFolder();
        await publish(LINES.slice(0, 300), folder);
        writeFileSync(join(folder, name), content);
        const before = readTree(folder);
        const error = await errorOf(publish(LINES.slice(0, 300), folder));
        expect(error).toMatchObject({ code: 'TILE_MISMATCH' });
        expect(readTree(folder)).toEqual(before);
      }
    },
  );

  test('a link, or a folder, in place of a tile', async () => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, 300), folder);
    const path = join(folder, 'tile/0/000');
    const bytes = readFileSync(path);
    unlinkSync(path);
    writeFileSync(join(folder, 'aside'), bytes);
    symlinkSync(join(folder, 'aside'), path);
    expect(await codeOf(publish(LINES, folder))).toBe('TILE_MISMATCH');
    unlinkSync(path);
    mkdirSync(path);
    expect(await codeOf(publish(LINES, folder))).toBe('TILE_MISMATCH');
  });

  test('a folder whose checkpoint is malformed', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'checkpoint'), 'example.com/tests/tiles\n');
    expect(await errorOf(publish(LINES, folder))).toMatchObject({ code: 'CHECKPOINT_NOTE_MALFORMED' });
    unlinkSync(join(folder, 'checkpoint'));
    mkdirSync(join(folder, 'checkpoint'));
    expect(await codeOf(publish(LINES, folder))).toBe('NOT_A_TILE_TREE');
  });

  test("a ledger's own folder", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, `${'0'.repeat(20)}.jsonl`), toLedger(LINES));
    expect(await codeOf(publish(LINES, folder))).toBe('NOT_A_TILE_TREE');
  });

  test('a file in place of the folder', async () => {
    const path = join(temporaryFolder(), 'file');
    writeFileSync(path, '');
    expect(await codeOf(publish(LINES, path))).toBe('FILE_EXISTS');
  });

  test('a line that no entry can hold', async () => {
    const lines = [...LINES.slice(0, 3), Buffer.alloc(65_536, 'a')];
    const folder = join(temporaryFolder(), 'out');
    expect(await codeOf(publish(lines, folder))).toBe('LINE_TOO_LONG');
    expect(await nodeFileSystem.kindOf(folder)).toBe('missing');
    await publish(lines, folder, { note: noteOf(lines, 3) });
    expect((await readTiles(folder)).ledger).toEqual(toLedger(LINES.slice(0, 3)));
  });

  test('a ledger without a checkpoint', async () => {
    const bytes = toLedger(LINES);
    const folder = join(temporaryFolder(), 'out');
    const error = await errorOf(writeTiles(() => Promise.resolve(bytesSource(bytes, 'a.jsonl')), folder));
    expect(error).toMatchObject({
      code: 'CHECKPOINT_MISSING',
    });
    expect(await nodeFileSystem.kindOf(folder)).toBe('missing');
  });

  test('a malformed note', async () => {
    expect(await codeOf(publish(LINES, temporaryFolder(), { note: Buffer.from('x') }))).toBe(
      'NOTE_MALFORMED',
    );
  });

  test('a tree that another process writes', async () => {
    const error = await refusalOf(async (folder) => {
      const held = await nodeFileSystem.open(folder, 'read');
      await held.lock(0);
      await publish(LINES, folder, { fileSystem: nodeFileSystem }).finally(() => held.close());
    });
    expect(error).toMatchObject({ code: 'TREE_LOCKED' });
  });

  test('a ledger that is changed between two readings', async () => {
    const folder = temporaryFolder();
    await publish(LINES.slice(0, 300), folder);
    let opened = 0;
    const open = (): Promise<LedgerSource> => {
      opened += 1;
      return Promise.resolve(bytesSource(toLedger(opened === 1 ? LINES : other), 'a.jsonl'));
    };
    expect(await codeOf(writeTiles(open, folder, { note: noteOf(LINES) }))).toBe('TILE_MISMATCH');
    const elsewhere = temporaryFolder();
    opened = 0;
    expect(await codeOf(writeTiles(open, elsewhere, { note: noteOf(LINES) }))).toBe('FILE_CHANGED');
    expect(readTree(elsewhere).has('checkpoint')).toBe(false);
  });

  test('an ending signal', async () => {
    const error = await refusalOf((folder) =>
      publish(LINES, folder, { signal: AbortSignal.abort('enough') }),
    );
    expect(error).toBe('enough');
  });
});
