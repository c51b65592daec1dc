/** What every place of objects must do, whichever it is. */

import { describe, expect, test } from 'vitest';
import type { ObjectSink } from '../../src/log/object/object-sink.js';
import { writeTiles, type WriteTilesOptions, type WrittenTiles } from '../../src/log/tile/tile-writer.js';
import { bytesSource } from '../bytes-source.js';
import { makeLines, naiveTree, noteOf, toLedger } from '../tile/support.js';
import { codeOf, errorOf } from '../writer/support.js';

export interface Place {
  /** Another publisher. */
  open(): ObjectSink;
  /** What is there, by key. */
  files(): Map<string, Buffer>;
  /** Changes what is there behind the publishers' back; undefined removes it. */
  set(key: string, bytes: Buffer | undefined): void;
}

export const LINES = makeLines(600);

export function publishTo(
  sink: ObjectSink,
  lines: readonly Buffer[],
  options: WriteTilesOptions = {},
): Promise<WrittenTiles> {
  const bytes = toLedger(lines);
  return writeTiles(() => Promise.resolve(bytesSource(bytes, 'ledger.jsonl')), sink, {
    note: noteOf(lines),
    ...options,
  });
}

/** Without the partial tiles that may go or stay. */
function settled(files: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  return new Map(
    [...files]
      .filter(([name]) => !/\.p\//.test(name) || !files.has(name.replace(/\.p\/.*/, '')))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

export function expectTree(files: ReadonlyMap<string, Buffer>, lines: readonly Buffer[]): void {
  const expected = naiveTree(lines);
  for (const [name, bytes] of expected) expect(files.get(name), name).toEqual(bytes);
}

export function describeSink(name: string, make: () => Promise<Place> | Place): void {
  const [a, b] = [Buffer.from('one'), Buffer.from('two')];

  async function begun(place: Place): Promise<ObjectSink> {
    const sink = place.open();
    await sink.begin();
    return sink;
  }

  describe(`${name}, as a place of objects`, () => {
    test('has nothing at first', async () => {
      const place = await make();
      expect(await place.open().get('tile/0/000', 10)).toBeUndefined();
    });

    test('gives what was written, and what is too long only as being there', async () => {
      const place = await make();
      const sink = await begun(place);
      expect(await sink.putNew('tile/0/000', a)).toBe('written');
      await sink.flush();
      await sink.close();
      expect((await place.open().get('tile/0/000', 3))?.bytes).toEqual(a);
      const found = await place.open().get('tile/0/000', 2);
      expect([found === undefined, found?.bytes]).toEqual([false, undefined]);
      expect(place.files().get('tile/0/000')).toEqual(a);
    });

    test('writes an object once: the same bytes are kept, others refused', async () => {
      const place = await make();
      const sink = await begun(place);
      await sink.putNew('tile/0/000', a);
      expect(await sink.putNew('tile/0/000', a)).toBe('kept');
      for (const other of [b, Buffer.from('on'), Buffer.from('ones'), Buffer.of()])
        expect(await codeOf(sink.putNew('tile/0/000', other))).toBe('TILE_MISMATCH');
      expect(place.files().get('tile/0/000')).toEqual(a);
      await sink.close();
    });

    test('replaces what was read, and nothing else', async () => {
      const place = await make();
      const sink = await begun(place);
      await sink.replaceIf('checkpoint', a, undefined);
      expect(await codeOf(sink.replaceIf('checkpoint', b, undefined))).toBe('FILE_CHANGED');
      const first = await sink.get('checkpoint', 10);
      await sink.replaceIf('checkpoint', b, first);
      expect(await codeOf(sink.replaceIf('checkpoint', Buffer.from('three'), first))).toBe('FILE_CHANGED');
      await sink.replaceIf('checkpoint', b, await sink.get('checkpoint', 10));
      expect(place.files().get('checkpoint')).toEqual(b);
      place.set('checkpoint', undefined);
      expect(await codeOf(sink.replaceIf('checkpoint', a, { bytes: b, tag: '"0"' }))).toBe('FILE_CHANGED');
      await sink.close();
    });

    test.each([0, 1, 255, 256, 257, 600])('gets the tree of %d lines', async (size) => {
      const place = await make();
      const lines = LINES.slice(0, size);
      const { tiles, bundles } = await publishTo(place.open(), lines);
      const expected = naiveTree(lines);
      expect(place.files()).toEqual(settled(expected));
      expect([tiles.kept + bundles.kept, tiles.written + bundles.written]).toEqual([0, expected.size - 1]);
    });

    test('is brought up to date, and says what was there', async () => {
      const place = await make();
      for (const size of [3, 255, 255, 256, 300, 513, 600]) {
        await publishTo(place.open(), LINES.slice(0, size));
        expectTree(place.files(), LINES.slice(0, size));
      }
      const { previousSize, tiles, bundles } = await publishTo(place.open(), LINES);
      expect({ previousSize, tiles, bundles }).toEqual({
        previousSize: 600,
        tiles: { written: 0, kept: 4 },
        bundles: { written: 0, kept: 3 },
      });
    });

    test('never goes back, and never to another history', async () => {
      const place = await make();
      await publishTo(place.open(), LINES.slice(0, 300));
      const before = place.files();
      const other = [...LINES.slice(0, 3), Buffer.from('{"other":true}'), ...LINES.slice(4)];
      const refused: readonly (readonly [string, readonly Buffer[], Buffer?])[] = [
        ['TRUNCATED', LINES.slice(0, 299)],
        ['TRUNCATED', LINES, noteOf(LINES, 299)],
        ['FORKED', other],
        ['ORIGIN_MISMATCH', LINES, noteOf(LINES, 310, 'example.com/other')],
        ['CHECKPOINT_ROOT_MISMATCH', LINES, noteOf(other, 310)],
      ];
      for (const [code, lines, note = noteOf(lines)] of refused)
        expect(await codeOf(publishTo(place.open(), lines, { note }))).toBe(code);
      expect(place.files()).toEqual(before);
    });

    test('is not written to where something else is', async () => {
      const place = await make();
      await publishTo(place.open(), LINES.slice(0, 300));
      place.set('tile/0/001.p/45', Buffer.from('strange'));
      const before = place.files().get('checkpoint');
      expect(await codeOf(publishTo(place.open(), LINES.slice(0, 301)))).toBe('TILE_MISMATCH');
      expect(place.files().get('checkpoint')).toEqual(before);
      place.set('checkpoint', Buffer.from('no checkpoint'));
      expect(await codeOf(publishTo(place.open(), LINES))).toBe('CHECKPOINT_NOTE_MALFORMED');
      place.set('checkpoint', Buffer.alloc(2_000_000));
      expect(await codeOf(publishTo(place.open(), LINES))).toBe('NOT_A_TILE_TREE');
    });

    test('with recheck gets back what was lost, and shows what was changed', async () => {
      const place = await make();
      await publishTo(place.open(), LINES.slice(0, 300));
      place.set('tile/0/000', undefined);
      await publishTo(place.open(), LINES.slice(0, 300), { recheck: true });
      expectTree(place.files(), LINES.slice(0, 300));
      place.set('tile/entries/000', Buffer.from('strange'));
      expect(await codeOf(publishTo(place.open(), LINES.slice(0, 300), { recheck: true }))).toBe(
        'TILE_MISMATCH',
      );
    });

    test('ends with a signal', async () => {
      const place = await make();
      expect(await errorOf(publishTo(place.open(), LINES, { signal: AbortSignal.abort('enough') }))).toBe(
        'enough',
      );
      expect(place.files().has('checkpoint')).toBe(false);
    });
  });
}
