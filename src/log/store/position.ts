/** Where a state of the verification stands in what is stored: from there it is gone on with. */

import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { StorePosition } from './ledger-store.js';

const BLANK_TIP = hashToBase64url(leafHash(new Uint8Array()));

/** The position behind the last line that a state has seen; of one that has seen none, the beginning. */
export function positionOf({ lines, chain, end, damage }: VerifyState): StorePosition {
  // A blank line takes no place in the chain, and is the last line all the same.
  const tip = lines > 0 && damage.blank === lines ? BLANK_TIP : chain.prev;
  return { size: lines, tip, file: end.file, line: end.line, byteOffset: end.byteOffset };
}
