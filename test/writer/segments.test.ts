import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openLedger as openSource } from '../../src/log/tile/tile-tree.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import {
  codeOf,
  draft,
  expectSound,
  judge,
  makeLedger,
  noticeBoard,
  openLedger,
  readBytes,
  readRecords,
  temporaryFolder,
} from './support.js';

const SEGMENT = /^\d{20}\.jsonl$/;

/** The segments' names, each with the `seq` of its first record and its size. */
function listSegments(path: string): { name: string; firstSeq: number; size: number }[] {
  return readdirSync(path)
    .sort()
    .map((name) => {
      const text = readFileSync(join(path, name), 'utf8');
      const { seq } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { seq: number };
      return { name, firstSeq: seq, size: text.length };
    });
}

describe('a folder of segments', () => {
  test('is made with the folders above it, of a path that ends in a slash', async () => {
    const path = join(temporaryFolder(), 'deep', 'down', 'ledger/');
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { onNotice });
    expect(ledger.path).toBe(path);
    await ledger.append({ event: draft(1) });
    await ledger.close();
    expect(readdirSync(path)).toEqual(['00000000000000000000.jsonl']);
    expect(notices).toMatchObject([{ code: 'LEDGER_CREATED', path }]);
    await expectSound(path, 2);
  });

  test('is made in an empty folder', async () => {
    const path = join(temporaryFolder(), 'ledger');
    mkdirSync(path);
    await makeLedger(path, 1);
    expect(readdirSync(path)).toEqual(['00000000000000000000.jsonl']);
    await expectSound(path, 2);
  });

  test('rolls when a segment has the size, at once or after reopening, and names each by its first record', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    const segmentBytes = 1_500;
    const ledger = await openLedger(path, { segmentBytes });
    for (let n = 1; n <= 10; n += 1) await ledger.append({ event: draft(n) });
    await ledger.close();
    for (let n = 11; n <= 20; n += 1) {
      const reopened = await openLedger(path.slice(0, -1), { segmentBytes });
      expect(await reopened.append({ event: draft(n) })).toMatchObject({ seq: n, status: 'appended' });
      await reopened.close();
    }
    const segments = listSegments(path);
    expect(segments.length).toBeGreaterThan(5);
    for (const [index, { name, firstSeq, size }] of segments.entries()) {
      expect(name).toMatch(SEGMENT);
      expect(Number(name.slice(0, 20))).toBe(firstSeq);
      const isLast = index === segments.length - 1;
      // A segment is followed by another as soon as it has the size, and not before.
      if (!isLast) expect(size).toBeGreaterThanOrEqual(segmentBytes);
      expect(size).toBeLessThan(segmentBytes + 1_000);
    }
    expect(readRecords(path).map(({ event }) => event['n'])).toEqual([
      undefined,
      ...Array.from({ length: 20 }, (_, n) => n + 1),
    ]);
    await expectSound(path, 21);
    expect(await verifyLedger(readBytes(path))).toMatchObject({ verdict: 'ok', ledger: { records: 21 } });
  });

  test('has one record a segment when segments are tiny, and finds events in all of them', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 30, { segmentBytes: 1 });
    expect(readdirSync(path)).toHaveLength(31);
    const ledger = await openLedger(path, { segmentBytes: 1 });
    for (const n of [1, 15, 30]) {
      expect(await ledger.append({ event: draft(n) })).toMatchObject({ seq: n, status: 'exists' });
    }
    await ledger.close();
    expect(readdirSync(path)).toHaveLength(31);
    await expectSound(path, 31);
  });

  test('keeps few files open, however many segments it has', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    const countOpen = (): number =>
      existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : Number.NaN;
    const before = countOpen();
    const ledger = await openLedger(path, { segmentBytes: 1 });
    for (let n = 1; n <= 40; n += 1) await ledger.append({ event: draft(n) });
    if (!Number.isNaN(before)) expect(countOpen() - before).toBeLessThan(10);
    await ledger.close();
    const reopened = await openLedger(path, { segmentBytes: 1 });
    if (!Number.isNaN(before)) expect(countOpen() - before).toBeLessThan(10);
    await reopened.close();
  });

  test('goes on in an empty last segment, which a crash may have left', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 2, { segmentBytes: 1 });
    writeFileSync(join(path, '00000000000000000003.jsonl'), '');
    await makeLedger(path, 3, { segmentBytes: 1 });
    expect(listSegments(path).map(({ firstSeq }) => firstSeq)).toEqual([0, 1, 2, 3]);
    await expectSound(path, 4);
  });

  test('makes its genesis where a crash left only an empty first segment', async () => {
    const path = join(temporaryFolder(), 'ledger');
    mkdirSync(path);
    writeFileSync(join(path, '00000000000000000000.jsonl'), '');
    await makeLedger(path, 1);
    await expectSound(path, 2);
  });

  test('may have other files beside its segments', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 1);
    writeFileSync(join(path, 'README'), 'mine');
    writeFileSync(join(path, '1.jsonl'), 'mine');
    await makeLedger(path, 2);
    expect(readFileSync(join(path, 'README'), 'utf8')).toBe('mine');
    await expectSound(path, 3);
  });

  test('with a segment whose end is missing is damaged, and goes on after its last record', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 3, { segmentBytes: 1 });
    const first = join(path, '00000000000000000001.jsonl');
    writeFileSync(first, readFileSync(first).subarray(0, -20));
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { onNotice, segmentBytes: 1 });
    expect(await ledger.append({ event: draft(4) })).toMatchObject({ seq: 4 });
    await ledger.close();
    expect(notices).toEqual([{ code: 'LEDGER_DAMAGED', path, lines: 1 }]);
    expect((await judge(path)).codes).toContain('LINE_TORN');
    expect(readFileSync(first).at(-1)).not.toBe(0x0a);
  });
});

describe('a folder is refused', () => {
  const name = (seq: number): string => `${String(seq).padStart(20, '0')}.jsonl`;
  /** A ledger of five records, each in its own segment. */
  const make = async (): Promise<string> => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 4, { segmentBytes: 1 });
    return path;
  };

  test.each<[string, string, (path: string) => void]>([
    ['a segment in the middle is missing', 'SEGMENT_MISSING', (path) => rmSync(join(path, name(2)))],
    ['the first is missing', 'SEGMENT_MISSING', (path) => rmSync(join(path, name(0)))],
    ['the one before the last is missing', 'SEGMENT_MISSING', (path) => rmSync(join(path, name(3)))],
    [
      'a name promises more than there is',
      'SEGMENT_MISSING',
      (path) => renameSync(join(path, name(4)), join(path, name(7))),
    ],
    [
      'a segment begins before the one before it ends',
      'SEGMENT_MISPLACED',
      (path) => {
        const records = [name(2), name(3)].map((each) => readFileSync(join(path, each)));
        writeFileSync(join(path, name(2)), Buffer.concat(records));
      },
    ],
    ['an empty one begins too late', 'SEGMENT_MISSING', (path) => writeFileSync(join(path, name(9)), '')],
  ])('when %s, and nothing is changed', async (_what, code, damage) => {
    const path = await make();
    damage(path);
    const before = [readdirSync(path), readBytes(path)];
    for (const checkpoints of [false, true]) {
      expect(await codeOf(openLedger(path, { segmentBytes: 1, checkpoints }))).toBe(code);
    }
    expect([readdirSync(path), readBytes(path)]).toEqual(before);
  });

  test('when it is a tile tree as well, also to be read', async () => {
    const path = await make();
    mkdirSync(join(path, 'tile'));
    await expectSound(path, 5);
    writeFileSync(join(path, 'checkpoint'), 'note');
    expect(await codeOf(openLedger(path))).toBe('NOT_A_LEDGER');
    expect(await codeOf(verifyLedger(path))).toBe('NOT_A_LEDGER');
    expect(await codeOf(openSource(path))).toBe('NOT_A_LEDGER');
    rmSync(join(path, 'tile'), { recursive: true });
    await expectSound(path, 5);
  });

  test('when it has other things in it and no segments', async () => {
    const path = temporaryFolder();
    writeFileSync(join(path, 'notes.txt'), 'mine');
    expect(await codeOf(openLedger(path))).toBe('NOT_A_LEDGER');
    expect(readdirSync(path)).toEqual(['notes.txt']);
    expect(readFileSync(join(path, 'notes.txt'), 'utf8')).toBe('mine');
  });

  test('when it is empty and no ledger is to be made', async () => {
    const path = temporaryFolder();
    const { repairLedger } = await import('../../src/log/writer/repair.js');
    expect(await codeOf(repairLedger(path))).toBe('NOT_A_LEDGER');
    expect(readdirSync(path)).toEqual([]);
  });

  test('when its last segment is a folder, or leads nowhere', async () => {
    for (const spoil of [mkdirSync, (name: string) => symlinkSync('nowhere', name)]) {
      const path = join(temporaryFolder(), 'ledger/');
      await makeLedger(path, 1);
      const name = join(path, '00000000000000000002.jsonl');
      spoil(name);
      expect(await codeOf(openLedger(path))).toMatch(/^(IS_A_FOLDER|FILE_NOT_FOUND)$/);
      expect(existsSync(join(path, '00000000000000000000.jsonl'))).toBe(true);
    }
  });

  test('when a file is asked for by a path that ends in a slash', async () => {
    const path = join(temporaryFolder(), 'ledger');
    await makeLedger(path, 1);
    expect(await codeOf(openLedger(`${path}/`))).toBe('FILE_NOT_FOUND');
    expect(statSync(path).isFile()).toBe(true);
  });
});
