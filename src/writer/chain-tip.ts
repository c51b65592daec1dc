/** Where the next record of a ledger goes: its number, what it is chained to, and what a checkpoint there would state. */

import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
  type CompactRange,
} from '../tree/compact-range.js';

/** See the head of this file. */
export interface ChainTip {
  /** The `seq` of the next record: as many are there. */
  readonly seq: number;
  /** base64url leaf hash of the last line; the empty tree's hash before the first. */
  readonly prev: string;
  /** base64url id of the last event. */
  readonly eventId: string | undefined;
  /** The tree over all lines, where it is kept. */
  readonly tree: CompactRange | undefined;
  /** The last checkpoint. */
  readonly checkpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
}

/** The tip of a ledger without records. */
export function emptyTip(keepsTree: boolean): ChainTip {
  const tree = emptyRange();
  const prev = hashToBase64url(rangeRoot(tree));
  return { seq: 0, prev, eventId: undefined, tree: keepsTree ? tree : undefined, checkpoint: undefined };
}

/** The tip after one more line, given without its `\n`. */
export function advanceTip(
  tip: ChainTip,
  line: Uint8Array,
  event: { readonly id: string; readonly checkpointAt?: string | undefined },
): ChainTip {
  const leaf = leafHash(line);
  const tree = tip.tree && { size: tip.tree.size, hashes: [...tip.tree.hashes] };
  if (tree !== undefined) appendLeaf(tree, leaf);
  const checkpoint =
    event.checkpointAt === undefined ? tip.checkpoint : { seq: tip.seq, occurredAt: event.checkpointAt };
  return { seq: tip.seq + 1, prev: hashToBase64url(leaf), eventId: event.id, tree, checkpoint };
}
