/** A ledger's lines as the leaves of its Merkle tree (SPEC §6): which lines count, and how they are hashed. */

import type { LedgerSource } from '../fs/source.js';
import { LineSplitter, type RawLine } from '../ledger/line-splitter.js';
import { leafHash } from '../tree/compact-range.js';

/** Opens the same ledger again and again, as more than one pass over it needs. */
export type OpenLedger = () => Promise<LedgerSource>;

/** Whether a line is a leaf: a blank one and a torn one are none. */
export function isLeaf({ length, terminated }: RawLine): boolean {
  return length > 0 && terminated;
}

/** The leaf hash of a line of any length. */
export function hashLine({ bytes, longLeafHash }: RawLine): string {
  return longLeafHash ?? leafHash(bytes);
}

/**
 * Reads the leaves of a ledger in order.
 *
 * @param take - Called with each; `false` ends the reading.
 * @throws NorthrootError when the source cannot be read.
 */
export async function readLeaves(
  source: LedgerSource,
  take: (line: RawLine) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      signal?.throwIfAborted();
      for (const line of splitter.push(chunk)) {
        if (isLeaf(line) && !take(line)) return;
      }
    }
  }
}
