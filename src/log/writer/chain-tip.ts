/** The end of a ledger, where the next record goes. */

import type { CompactRange } from '../../format/tree/compact-range.js';

export interface NextLink {
  /** The next record's. */
  readonly seq: number;
  /** base64url leaf hash of the last line, or the empty tree's. */
  readonly prev: string;
}

export interface ChainTip extends NextLink {
  /** base64url. */
  readonly eventId: string | undefined;
  /** Over all lines; it grows with them. */
  readonly tree: CompactRange;
  readonly checkpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
}
