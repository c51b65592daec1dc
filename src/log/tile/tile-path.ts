/**
 * The parts of a tlog-tiles tree and their paths (https://c2sp.org/tlog-tiles, SPEC §6):
 *
 *     tile/<L>/<N>[.p/<W>]          up to 256 hashes of level 8·L of the tree
 *     tile/entries/<N>[.p/<W>]      the entries whose hashes are in tile <N> of level 0
 *
 * <N> is in groups of three digits, all but the last after an `x`: 1234067 is `x001/x234/067`.
 */

/** Hashes or entries in a full tile. */
export const TILE_WIDTH = 256;
const MAX_LEVEL = 63;

export interface TileId {
  /** 0 to 63, or `entries` for a bundle. */
  readonly level: number | 'entries';
  /** From 0. */
  readonly index: number;
  /** Hashes or entries, 1 to 256; fewer than 256 in a partial tile. */
  readonly width: number;
}

/** One level of a tree: the full tiles [0, `full`), then a partial one unless `partial` is 0. */
export interface TileLevel {
  readonly level: number | 'entries';
  readonly full: number;
  readonly partial: number;
}

const PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** @throws RangeError for a level, index or width that no tile has */
export function formatTilePath({ level, index, width }: TileId): string {
  if (level !== 'entries' && !(Number.isInteger(level) && level >= 0 && level <= MAX_LEVEL))
    throw new RangeError(`level must be an integer from 0 to ${MAX_LEVEL}, or entries`);
  if (!Number.isSafeInteger(index) || index < 0)
    throw new RangeError('index must be an integer of at least 0');
  if (!(Number.isInteger(width) && width >= 1 && width <= TILE_WIDTH))
    throw new RangeError(`width must be an integer from 1 to ${TILE_WIDTH}`);
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) as string[];
  const number = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${number}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** The tile that a path names, if any. */
export function tryParseTilePath(path: string): TileId | undefined {
  const [, level, number, width] = PATH.exec(path) ?? [];
  if (level === undefined || number === undefined) return undefined;
  const id: TileId = {
    level: level === 'entries' ? level : Number(level),
    index: Number(number.replace(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  // Each tile has one spelling: no leading zero group, no partial tile of full width.
  const isOne =
    (id.level === 'entries' || id.level <= MAX_LEVEL) &&
    Number.isSafeInteger(id.index) &&
    id.width <= TILE_WIDTH &&
    formatTilePath(id) === path;
  return isOne ? id : undefined;
}

/**
 * A tree's bundles, then its tiles from level 0 up.
 * @throws RangeError unless `size` is an integer from 0 to 2^53 − 1
 */
export function tileLevels(size: number): TileLevel[] {
  if (!Number.isSafeInteger(size) || size < 0)
    throw new RangeError('a tree size must be an integer from 0 to 2^53 - 1');
  const levels: TileLevel[] = [];
  for (let level = 0, count = size; count > 0; level += 1) {
    const [full, partial] = [Math.floor(count / TILE_WIDTH), count % TILE_WIDTH];
    if (level === 0) levels.push({ level: 'entries', full, partial });
    levels.push({ level, full, partial });
    count = full;
  }
  return levels;
}

export function hasTile(levels: readonly TileLevel[], { level, index, width }: TileId): boolean {
  const of = levels.find((each) => each.level === level);
  if (of === undefined) return false;
  return width === TILE_WIDTH ? index < of.full : index === of.full && width === of.partial;
}
