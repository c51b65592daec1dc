import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { MAX_TILE_FAULTS, isTileTree, openTileTree } from '../../src/log/tile/tile-tree.js';
import { leafHash } from '../../src/format/tree/compact-range.js';
import { codeOf, errorOf, makeLedger, signer as writerSigner } from '../writer/support.js';
import {
  isDoubted,
  linesOf,
  makeLines,
  naiveTree,
  noteOf,
  plantTree,
  publish,
  readTiles,
  readTree,
  signedNote,
  temporaryFolder,
  toLedger,
} from './support.js';

const LINES = makeLines(1_100);

/** A folder with the tree of so many lines. */
function plant(size: number): string {
  const folder = temporaryFolder();
  plantTree(folder, naiveTree(LINES.slice(0, size)));
  mkdirSync(join(folder, 'tile'), { recursive: true });
  return folder;
}

async function faultsOf(folder: string): Promise<string[]> {
  const { faults } = await readTiles(folder);
  return faults.map(({ code, file }) => `${code} ${file.slice(folder.length + 1)}`);
}

describe('a tile tree', () => {
  test.each([0, 1, 2, 255, 256, 257, 511, 512, 513, 1_025])('of %d lines gives their bytes', async (size) => {
    const folder = plant(size);
    const { ledger, files, faults, isComplete, isSigned } = await readTiles(folder);
    expect(ledger).toEqual(toLedger(LINES.slice(0, size)));
    expect({ faults, isComplete, isSigned }).toEqual({ faults: [], isComplete: true, isSigned: true });
    expect(files).toHaveLength(Math.ceil(size / 256));
    expect(await isTileTree(folder)).toBe(true);
  });

  test('is verified as the ledger that it was made of', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'ledger.jsonl');
    await makeLedger(path, 300);
    const lines = linesOf(readFileSync(path));
    const { root } = (await verifyLedger(path)).ledger;
    const binary = Buffer.from(String(root).slice('sha-256:'.length), 'base64url').toString('latin1');
    const origin = 'example.com/tests/writer';
    const text = formatCheckpoint({ origin, size: 301, root: binary, extensions: [] });
    const note = Buffer.from(formatNote({ text, signatures: [signNote(text, origin, writerSigner)] }));
    const out = join(folder, 'out');
    await publish(lines, out, { note });

    const tree = await openTileTree(out);
    const report = await verifyLedger(tree.source);
    const direct = await verifyLedger(path);
    expect(report).toEqual({ ...direct, ledger: { ...direct.ledger, paths: [out] } });
    expect(report.verdict).toBe('ok');
    expect((await tree.finish()).faults).toEqual([]);
    expect(Buffer.from(tree.note)).toEqual(note);
  });

  test("findings name the bundle's file and the place in it", async () => {
    const lines = [...LINES.slice(0, 299), Buffer.from('{"n" :1}')];
    const folder = temporaryFolder();
    await publish(lines, folder);
    const { findings } = await verifyLedger((await openTileTree(folder)).source);
    expect(findings.filter(({ code }) => code === 'NOT_CANONICAL').at(-1)).toMatchObject({
      at: { file: join(folder, 'tile/entries/001.p/44'), line: 44 },
    });
  });

  test('may have full tiles in place of the partial ones', async () => {
    const folder = temporaryFolder();
    const whole = naiveTree(LINES.slice(0, 512));
    for (const name of whole.keys())
      if (name.startsWith('tile/1') || name.startsWith('tile/2')) whole.delete(name);
    plantTree(folder, whole);
    writeFileSync(join(folder, 'checkpoint'), noteOf(LINES, 300));
    plantTree(folder, new Map([['tile/1/000.p/1', naiveTree(LINES.slice(0, 300)).get('tile/1/000.p/1')!]]));
    const { ledger, faults, isComplete } = await readTiles(folder);
    expect({ faults, isComplete }).toEqual({ faults: [], isComplete: true });
    expect(ledger).toEqual(toLedger(LINES.slice(0, 300)));
  });

  test('may have partial tiles of earlier checkpoints, and they are checked', async () => {
    const folder = plant(300);
    for (const size of [5, 255, 270]) plantTree(folder, naiveTree(LINES.slice(0, size)));
    writeFileSync(join(folder, 'checkpoint'), noteOf(LINES, 300));
    expect(await faultsOf(folder)).toEqual([]);
    for (const name of [
      'tile/0/000.p/5',
      'tile/entries/001.p/14',
      'tile/entries/000.p/255',
      'tile/0/001.p/14',
    ]) {
      const bytes = readFileSync(join(folder, name));
      for (const changed of [
        bytes.subarray(1),
        Buffer.concat([bytes, bytes]),
        Buffer.from(bytes).fill(1, 20, 21),
      ]) {
        writeFileSync(join(folder, name), changed);
        expect(await faultsOf(folder)).toEqual([`TILE_MISMATCH ${name}`]);
      }
      writeFileSync(join(folder, name), bytes);
    }
  });
});

describe('what is wrong is found:', () => {
  test('every changed byte of a small tree', async () => {
    const folder = plant(4);
    for (const [name, bytes] of readTree(folder)) {
      const path = join(folder, name);
      for (let at = 0; at < bytes.length; at += 1) {
        for (const mask of [0x01, 0x80]) {
          const changed = Buffer.from(bytes);
          changed[at] ^= mask;
          writeFileSync(path, changed);
          expect(await isDoubted(folder), `${name} byte ${at} ^ ${mask}`).toBe(true);
        }
        writeFileSync(path, bytes.subarray(0, at));
        expect(await isDoubted(folder), `${name} cut at ${at}`).toBe(true);
      }
      writeFileSync(path, Buffer.concat([bytes, Buffer.of(0)]));
      expect(await isDoubted(folder), `${name} longer`).toBe(true);
      writeFileSync(path, bytes);
    }
    expect(await isDoubted(folder)).toBe(false);
  });

  test('a changed byte anywhere in a tree of several levels', async () => {
    const folder = plant(513);
    for (const [name, bytes] of readTree(folder)) {
      for (let at = 0; at < bytes.length; at += at < 40 ? 7 : 997) {
        const changed = Buffer.from(bytes);
        changed[at] ^= 0x04;
        writeFileSync(join(folder, name), changed);
        expect(await isDoubted(folder), `${name} byte ${at}`).toBe(true);
      }
      writeFileSync(join(folder, name), bytes);
    }
    expect(await isDoubted(folder)).toBe(false);
  });

  test('every file that is missing', async () => {
    const folder = plant(513);
    for (const [name, bytes] of readTree(folder)) {
      if (name === 'checkpoint') continue;
      unlinkSync(join(folder, name));
      const { faults, ledger, isComplete } = await readTiles(folder);
      expect(faults).toEqual([
        {
          code: 'TILE_MISSING',
          file: join(folder, name),
          expected: expect.any(String) as string,
          actual: 'nothing',
        },
      ]);
      const isBundle = name.includes('entries');
      expect(isComplete).toBe(!isBundle);
      // Where a bundle is missing the ledger ends.
      const lines = isBundle ? 256 * Number(/entries\/(\d{3})/.exec(name)?.[1]) : 513;
      expect(ledger).toEqual(toLedger(LINES.slice(0, lines)));
      writeFileSync(join(folder, name), bytes);
    }
    unlinkSync(join(folder, 'checkpoint'));
    expect(await codeOf(openTileTree(folder))).toBe('NOT_A_TILE_TREE');
    expect(await isTileTree(folder)).toBe(false);
  });

  test.each([
    'tile/0/002',
    'tile/0/003',
    'tile/0/002.p/2',
    'tile/0/002.p/256',
    'tile/0/002.p/01',
    'tile/0/003.p/1',
    'tile/1/000',
    'tile/1/000.p/3',
    'tile/1/001.p/1',
    'tile/entries/002',
    'tile/entries/002.p/2',
    'tile/entries/000.txt',
    'tile/0/0000',
    'tile/.hidden',
    'tile/note\u001b[2J',
  ])('%j, which does not belong there', async (name) => {
    const folder = plant(513);
    plantTree(folder, new Map([[name, Buffer.from('x')]]));
    const reading = await readTiles(folder);
    expect(reading.isComplete).toBe(true);
    const [fault, ...more] = reading.faults;
    expect(more).toEqual([]);
    expect(fault).toMatchObject({ code: 'TILE_UNEXPECTED' });
    expect([join(folder, name), join(folder, dirname(name))]).toContain(fault.file);
  });

  test.each(['tile/2/000.p/1', 'tile/63/000', 'tile/data/000', 'tile/0/x001/000', 'tile/0/x000/000'])(
    'the folder of %j, which does not belong there',
    async (name) => {
      const folder = plant(513);
      plantTree(folder, new Map([[name, Buffer.from('x')]]));
      const { faults } = await readTiles(folder);
      expect(faults).toMatchObject([{ code: 'TILE_UNEXPECTED', actual: 'a folder' }]);
    },
  );

  test('beside a thousand tiles too', async () => {
    const folder = plant(3);
    writeFileSync(join(folder, 'checkpoint'), hugeNote(1_234_568 * 256));
    const inside = ['tile/0/x001/000', 'tile/0/x001/x234/566', 'tile/1/x004/821', 'tile/2/018.p/1'];
    const outside = [
      'tile/0/x000/000',
      'tile/0/x001/x235/000',
      'tile/0/x001/x234/568',
      'tile/0/x002/x000/000',
      'tile/0/x001/x001/x001/000',
      'tile/1/x005/000',
      'tile/1/x004/x000/000',
      'tile/entries/x999/x000/000',
    ];
    for (const name of [...inside, ...outside]) plantTree(folder, new Map([[name, Buffer.of()]]));
    const faults = (await faultsOf(folder)).filter((text) => text.startsWith('TILE_UNEXPECTED'));
    expect(faults.map((text) => text.slice('TILE_UNEXPECTED '.length))).toEqual([
      'tile/0/x000',
      'tile/0/x001/x001/x001',
      'tile/0/x001/x234/568',
      'tile/0/x001/x235',
      'tile/0/x002/x000',
      'tile/1/x004/x000',
      'tile/1/x005',
      'tile/entries/x999/x000',
    ]);
  });
});

/** A right signature on a tree that nobody has. */
function hugeNote(size: number): Buffer {
  return signedNote(
    formatCheckpoint({
      origin: 'example.com/tests/tiles',
      size,
      root: leafHash(Buffer.of()),
      extensions: [],
    }),
  );
}

describe('a hostile tree', () => {
  const bundle = (...lines: (string | Buffer)[]): Buffer =>
    Buffer.concat(
      lines.flatMap((line) => [Buffer.of(line.length >> 8, line.length & 0xff), Buffer.from(line)]),
    );

  test.each([
    ['a length that overruns', Buffer.concat([bundle('a', 'b'), Buffer.of(0, 2), Buffer.from('c')]), 2],
    ['half a length', Buffer.concat([bundle('a', 'b'), Buffer.of(0)]), 2],
    ['too few entries', bundle('a', 'b'), 2],
    ['too many entries', bundle('a', 'b', 'c', 'd'), 3],
    ['bytes after the last entry', Buffer.concat([bundle('a', 'b', 'c'), Buffer.of(0)]), 3],
    ['an entry of nothing', bundle('a', '', 'c'), 1],
    ['an entry that ends a line', bundle('a', 'b\n', 'c'), 1],
    ['two lines in one entry', bundle('a', 'b\nc', 'd'), 1],
    ['no entry', Buffer.alloc(0), 0],
  ])('with %s', async (_name, bytes, count) => {
    const folder = temporaryFolder();
    plantTree(folder, naiveTree(['a', 'b', 'c'].map((text) => Buffer.from(text))));
    writeFileSync(join(folder, 'tile/entries/000.p/3'), bytes);
    const { ledger, faults, isComplete } = await readTiles(folder);
    expect(faults).toMatchObject([{ code: 'TILE_MISMATCH', file: join(folder, 'tile/entries/000.p/3') }]);
    expect(ledger.toString()).toBe('a\nb\nc\n'.slice(0, 2 * count));
    expect(isComplete).toBe(count === 3);
  });

  test('whose root is that of an entry with a newline', async () => {
    const folder = temporaryFolder();
    const lines = [Buffer.from('a'), Buffer.from('b\nc')];
    plantTree(folder, naiveTree(lines));
    const { ledger, faults } = await readTiles(folder);
    expect(ledger.toString()).toBe('a\n');
    expect(faults).toMatchObject([{ code: 'TILE_MISMATCH', expected: 'one line in entry 1' }]);
  });

  test('with files of any size', async () => {
    for (const name of ['tile/0/000', 'tile/entries/000', 'tile/0/001.p/1', 'tile/entries/001.p/1']) {
      const folder = plant(257);
      truncateSync(join(folder, name), 2 ** 40);
      expect(await faultsOf(folder)).toEqual([`TILE_MISMATCH ${name}`]);
    }
    const folder = plant(257);
    truncateSync(join(folder, 'checkpoint'), 2 ** 40);
    expect(await codeOf(openTileTree(folder))).toBe('NOT_A_TILE_TREE');
  });

  const replace: [string, (path: string) => void][] = [
    ['a symbolic link', (path) => symlinkSync('/etc/hostname', path)],
    ['a link to a device', (path) => symlinkSync('/dev/zero', path)],
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
    ['a folder', (path) => mkdirSync(path)],
  ];
  test.each(replace)('with %s in place of each file', async (_name, make) => {
    for (const name of readTree(plant(257)).keys()) {
      const folder = plant(257);
      unlinkSync(join(folder, name));
      make(join(folder, name));
      if (name === 'checkpoint') expect(await codeOf(openTileTree(folder))).toBe('NOT_A_TILE_TREE');
      else expect(await faultsOf(folder)).toEqual([`TILE_MISMATCH ${name}`]);
    }
  });

  test('with links and files in place of folders', async () => {
    const good = plant(257);
    for (const name of ['tile', 'tile/0', 'tile/1', 'tile/entries', 'tile/0/001.p']) {
      const folder = plant(257);
      rmSync(join(folder, name), { recursive: true });
      symlinkSync(join(good, name), join(folder, name));
      expect(await faultsOf(folder)).toEqual([`TILE_MISMATCH ${name}`]);
      unlinkSync(join(folder, name));
      writeFileSync(join(folder, name), '');
      const { faults } = await readTiles(folder);
      expect(faults.map(({ code, file }) => `${code} ${file}`)).toContain(
        `TILE_MISMATCH ${join(folder, name)}`,
      );
    }
  });

  test('with thousands of files that do not belong there', async () => {
    const folder = plant(3);
    for (let n = 0; n < 5_000; n += 1) writeFileSync(join(folder, `tile/0/z${n}`), '');
    const { faults, total, isComplete } = await readTiles(folder);
    expect(isComplete).toBe(true);
    expect(faults).toHaveLength(MAX_TILE_FAULTS);
    // 4,096 names are looked at, one of them the folder that belongs there unless the system names it late; the rest is one fault.
    expect(total).toBeGreaterThanOrEqual(4_096);
    expect(total).toBeLessThanOrEqual(4_097);
  });

  test('with a deep hole of folders', async () => {
    const folder = plant(3);
    const deep = join(folder, 'tile/0', ...Array.from({ length: 300 }, () => 'x001'));
    mkdirSync(deep, { recursive: true });
    expect(await faultsOf(folder)).toEqual(['TILE_UNEXPECTED tile/0/x001']);
  });

  test.each([2 ** 53 - 1, 1_000_000, 257])('whose checkpoint claims %d entries', async (size) => {
    const folder = plant(3);
    writeFileSync(join(folder, 'checkpoint'), hugeNote(size));
    const { faults, ledger, isComplete } = await readTiles(folder);
    expect(ledger).toHaveLength(0);
    expect(isComplete).toBe(false);
    expect(faults[0]).toMatchObject({ code: 'TILE_MISSING', file: join(folder, 'tile/entries/000') });
  });

  test('whose checkpoint is no checkpoint', async () => {
    const folder = plant(3);
    const note = noteOf(LINES, 3);
    for (let end = 0; end < note.length; end += 1) {
      writeFileSync(join(folder, 'checkpoint'), note.subarray(0, end));
      expect(await errorOf(openTileTree(folder))).toMatchObject({
        code: 'CHECKPOINT_NOTE_MALFORMED',
      });
    }
  });

  test('that is not read to its end is not judged', async () => {
    const tree = await openTileTree(plant(300));
    await expect(tree.finish()).rejects.toThrow(TypeError);
    for await (const segment of tree.source.segments) if (segment.file !== '') break;
    await expect(tree.finish()).rejects.toThrow(TypeError);
  });
});

test('asked twice, it answers the same', async () => {
  const folder = plant(300);
  unlinkSync(join(folder, 'tile/0/000'));
  const tree = await openTileTree(folder);
  for await (const { chunks } of tree.source.segments)
    for await (const chunk of chunks) expect(chunk).not.toEqual([]);
  const first = await tree.finish();
  expect(first.total).toBe(1);
  expect(await tree.finish()).toEqual(first);
});

test('a folder that is not a tile tree', async () => {
  const folder = temporaryFolder();
  expect(await isTileTree(folder)).toBe(false);
  expect(await isTileTree(join(folder, 'nothing'))).toBe(false);
  writeFileSync(join(folder, 'checkpoint'), 'x');
  expect(await isTileTree(folder)).toBe(false);
  expect(await isTileTree(join(folder, 'checkpoint'))).toBe(false);
  writeFileSync(join(folder, 'tile'), 'x');
  expect(await isTileTree(folder)).toBe(false);
  expect(await codeOf(openTileTree(join(folder, 'nothing')))).toBe('NOT_A_TILE_TREE');
});
