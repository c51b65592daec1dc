/** The hash tiles of a growing tree, from its leaf hashes; keeps only the rightmost tile of each level. */

import { appendLeaf, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import { TILE_WIDTH } from './tile-path.js';

export interface HashTile {
  readonly level: number;
  readonly index: number;
  readonly width: number;
  /** 32 bytes per hash. */
  readonly bytes: Uint8Array;
}

interface Level {
  index: number;
  /** Binary strings of 32 characters. */
  hashes: string[];
}

const NONE: readonly HashTile[] = [];

export class TileHasher {
  readonly #levels: Level[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a leaf hash; returns the tiles it completes, from level 0 up. */
  push(leafHash: string): readonly HashTile[] {
    this.#size += 1;
    const level = this.#level(0);
    level.hashes.push(leafHash);
    if (level.hashes.length < TILE_WIDTH) return NONE;
    const tiles: HashTile[] = [];
    for (let at = 0, current = level; current.hashes.length === TILE_WIDTH; at += 1) {
      tiles.push(toTile(at, current));
      const above = this.#level(at + 1);
      above.hashes.push(rootOf(current.hashes));
      current.index += 1;
      current.hashes = [];
      current = above;
    }
    return tiles;
  }

  /** The current partial tiles, from level 0 up. */
  partials(): HashTile[] {
    return this.#levels.flatMap((level, at) => (level.hashes.length === 0 ? [] : [toTile(at, level)]));
  }

  #level(at: number): Level {
    return (this.#levels[at] ??= { index: 0, hashes: [] });
  }
}

function toTile(level: number, { index, hashes }: Level): HashTile {
  return { level, index, width: hashes.length, bytes: Buffer.from(hashes.join(''), 'latin1') };
}

function rootOf(hashes: readonly string[]): string {
  const range = emptyRange();
  for (const hash of hashes) appendLeaf(range, hash);
  return rangeRoot(range);
}
