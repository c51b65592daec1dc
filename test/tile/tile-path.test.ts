import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTilePath, hasTile, tileLevels, tryParseTilePath } from '../../src/log/tile/tile-path.js';

const level = fc.oneof(fc.constant('entries' as const), fc.integer({ min: 0, max: 63 }));
const tile = fc.record({
  level,
  index: fc.oneof(fc.integer({ min: 0, max: 1_002_000 }), fc.maxSafeNat()),
  width: fc.integer({ min: 1, max: 256 }),
});

describe('paths', () => {
  test.each([
    [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
    [{ level: 0, index: 1_234_067, width: 256 }, 'tile/0/x001/x234/067'],
    [{ level: 'entries', index: 273, width: 112 }, 'tile/entries/273.p/112'],
    [{ level: 63, index: 1000, width: 1 }, 'tile/63/x001/000.p/1'],
    [{ level: 2, index: 999, width: 255 }, 'tile/2/999.p/255'],
  ] as const)('%j is %s', (id, path) => {
    expect(formatTilePath(id)).toBe(path);
    expect(tryParseTilePath(path)).toEqual(id);
  });

  test('are read back', () => {
    fc.assert(
      fc.property(tile, (id) => {
        expect(tryParseTilePath(formatTilePath(id))).toEqual(id);
      }),
    );
  });

  test.each([
    '',
    'tile/0',
    'tile/0/',
    'tile/0/0',
    'tile/0/0000',
    'tile/00/000',
    'tile/01/000',
    'tile/64/000',
    'tile/100/000',
    'tile/-1/000',
    'tile/data/000',
    'tile/0/x000/000',
    'tile/0/x000/x001/000',
    'tile/0/001/000',
    'tile/0/x001',
    'tile/0/x1/000',
    'tile/0/X001/000',
    'tile/0/000.p',
    'tile/0/000.p/',
    'tile/0/000.p/0',
    'tile/0/000.p/01',
    'tile/0/000.p/256',
    'tile/0/000.p/999',
    'tile/0/000.p/1/',
    'tile/0/000/1',
    '/tile/0/000',
    'tile/0/000\n',
    'tile/0/٠٠٠',
    `tile/0/${'x999/'.repeat(6)}999`,
    `tile/0/${'x001/'.repeat(10_000)}001`,
  ])('%j is none', (path) => expect(tryParseTilePath(path)).toBeUndefined());

  test('every changed character gives another path or none', () => {
    for (const path of ['tile/entries/x001/x234/067.p/112', 'tile/17/x020/000']) {
      for (let at = 0; at < path.length; at += 1) {
        for (const other of '0159xp./e') {
          const changed = path.slice(0, at) + other + path.slice(at + 1);
          const id = tryParseTilePath(changed);
          if (id !== undefined) expect(formatTilePath(id)).toBe(changed);
        }
      }
    }
  });

  test.each([
    { level: -1, index: 0, width: 1 },
    { level: 64, index: 0, width: 1 },
    { level: 0.5, index: 0, width: 1 },
    { level: 0, index: -1, width: 1 },
    { level: 0, index: 2 ** 53, width: 1 },
    { level: 0, index: 0, width: 0 },
    { level: 0, index: 0, width: 257 },
    { level: 0, index: 0, width: 1.5 },
  ])('there is no path of %j', (id) => expect(() => formatTilePath(id)).toThrow(RangeError));
});

describe('the tiles of a tree', () => {
  test.each([
    [0, []],
    [1, ['entries 0 1', '0 0 1']],
    [255, ['entries 0 255', '0 0 255']],
    [256, ['entries 1 0', '0 1 0', '1 0 1']],
    [70_000, ['entries 273 112', '0 273 112', '1 1 17', '2 0 1']],
    [2 ** 53 - 1, undefined],
  ])('of %d entries', (size, expected) => {
    const levels = tileLevels(size);
    if (expected !== undefined) {
      expect(levels.map(({ level: name, full, partial }) => `${name} ${full} ${partial}`)).toEqual(expected);
    }
    for (const { level: name, full, partial } of levels) {
      expect(full * 256 + partial).toBe(Math.floor(size / 256 ** (name === 'entries' ? 0 : name)));
    }
  });

  test('are those and no others', () => {
    const levels = tileLevels(70_000);
    const has = (path: string): boolean => hasTile(levels, tryParseTilePath(path)!);
    expect(['tile/0/272', 'tile/0/273.p/112', 'tile/1/001.p/17', 'tile/2/000.p/1'].every(has)).toBe(true);
    const others = ['tile/0/273', 'tile/0/273.p/111', 'tile/0/272.p/112', 'tile/2/000', 'tile/3/000.p/1'];
    expect(others.some(has)).toBe(false);
  });

  test.each([-1, 1.5, 2 ** 53, Number.NaN])('%d is no size', (size) =>
    expect(() => tileLevels(size)).toThrow(RangeError),
  );
});
