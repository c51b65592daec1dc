/**
 * Where the parts of a tlog-tiles tree lie and which parts a tree has (https://c2sp.org/tlog-tiles, SPEC §6):
 *
 *     tile/<L>/<N>[.p/<W>]          hash tiles: up to 256 hashes of level 8·L of the tree
 *     tile/entries/<N>[.p/<W>]      entry bundles: the entries whose hashes are in tile <N> of level 0
 *
 * where <N> is written in groups of three digits, all but the last with an `x` before them: 1234067 is `x001/x234/067`.
 */

/** How many hashes or entries a full tile has. */
export const TILE_WIDTH = 256;
/** The highest level that a path can name. */
const MAX_LEVEL = 63;

/** One tile or entry bundle. */
export interface TileId {
  /** 0 to 63, or `entries` for a bundle. */
  readonly level: number | 'entries';
  /** 0 for the first of its level. */
  readonly index: number;
  /** How many hashes or entries it has, from 1 to 256; less than 256 in a partial one. */
  readonly width: number;
}

/** The parts of one level in a tree: the full tiles [0, `full`), then a partial one unless `partial` is 0. */
export interface TileLevel {
  readonly level: number | 'entries';
  readonly full: number;
  /** The width of the partial tile, 0 where there is none. */
  readonly partial: number;
}

const PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/**
 * The path of a tile from the tree's prefix.
 *
 * @throws RangeError for a level, index or width that no tile has
 */
export function formatTilePath({ level, index, width }: TileId): string {
  if (level !== 'entries' && !(Number.isInteger(level) && level >= 0 && level <= MAX_LEVEL)) {
    throw new RangeError(`level must be an integer from 0 to ${MAX_LEVEL}, or entries`);
  }
  if (!Number.isSafeInteger(index) || index < 0)
    throw new RangeError('index must be an integer of at least 0');
  if (!(Number.isInteger(width) && width >= 1 && width <= TILE_WIDTH)) {
    throw new RangeError(`width must be an integer from 1 to ${TILE_WIDTH}`);
  }
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) as string[];
  const number = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${number}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** The tile that a path from the tree's prefix names; `undefined` for any other text. */
export function tryParseTilePath(path: string): TileId | undefined {
  const [, level, number, width] = PATH.exec(path) ?? [];
  if (level === undefined || number === undefined) return undefined;
  const id: TileId = {
    level: level === 'entries' ? level : Number(level),
    index: Number(number.replace(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  // One spelling each: no leading group of zeros, no partial tile as wide as a full one.
  const isOne =
    (id.level === 'entries' || id.level <= MAX_LEVEL) &&
    Number.isSafeInteger(id.index) &&
    id.width <= TILE_WIDTH &&
    formatTilePath(id) === path;
  return isOne ? id : undefined;
}

/**
 * What a tree of `size` entries is made of: its bundles, then its tiles from level 0 up. None of it where the tree is empty.
 *
 * @throws RangeError unless `size` is an integer from 0 to 2^53 − 1
 */
export function tileLevels(size: number): TileLevel[] {
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new RangeError('a tree size must be an integer from 0 to 2^53 - 1');
  }
  const levels: TileLevel[] = [];
  for (let level = 0, count = size; count > 0; level += 1) {
    const [full, partial] = [Math.floor(count / TILE_WIDTH), count % TILE_WIDTH];
    if (level === 0) levels.push({ level: 'entries', full, partial });
    levels.push({ level, full, partial });
    count = full;
  }
  return levels;
}

/** Whether a tree made of `levels` has this tile, as wide as that. */
export function hasTile(levels: readonly TileLevel[], { level, index, width }: TileId): boolean {
  const of = levels.find((each) => each.level === level);
  if (of === undefined) return false;
  return width === TILE_WIDTH ? index < of.full : index === of.full && width === of.partial;
}
