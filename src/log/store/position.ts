import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { StorePosition } from './ledger-store.js';

const BLANK_TIP = hashToBase64url(leafHash(new Uint8Array()));

/** Where to continue reading after a state. */
export function positionOf({ lines, chain, end, damage }: VerifyState): StorePosition {
  // A blank line is not in the chain, but may be the last line.
  const tip = lines > 0 && damage.blank === lines ? BLANK_TIP : chain.prev;
  return { size: lines, tip, file: end.file, line: end.line, byteOffset: end.byteOffset };
}
