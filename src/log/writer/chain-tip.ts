/** Where the next record of a ledger goes: its number, what it is chained to, and what a checkpoint there would state. */

import type { CompactRange } from '../../format/tree/compact-range.js';

/** What the next record says of its place. */
export interface NextLink {
  /** The `seq` of the next record: as many are there. */
  readonly seq: number;
  /** base64url leaf hash of the last line; the empty tree's hash before the first. */
  readonly prev: string;
}

/** See the head of this file. */
export interface ChainTip extends NextLink {
  /** base64url id of the last event. */
  readonly eventId: string | undefined;
  /** The tree over all lines; it grows with them. */
  readonly tree: CompactRange;
  /** The last checkpoint. */
  readonly checkpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
}
