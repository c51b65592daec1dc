import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Stored, StorePosition } from './ledger-store.js';

const BLANK_TIP = hashToBase64url(leafHash(new Uint8Array()));

/** Where to continue reading after a state. */
export function positionOf({ lines, chain, end, damage }: VerifyState): StorePosition {
  // A blank line is not in the chain, but may be the last line.
  const tip = lines > 0 && damage.blank === lines ? BLANK_TIP : chain.prev;
  return { size: lines, tip, file: end.file, line: end.line, byteOffset: end.byteOffset };
}

/** Whether the last line is a record, so that another can follow. */
export function isTailSound({ damage, lines }: VerifyState): boolean {
  return lines === 0 || damage.at !== lines;
}

/** Records the start of a file, or a file that ends within a line. */
export function noteStored(state: VerifyState, stored: Exclude<Stored, { readonly kind: 'lines' }>): void {
  const { damage, chain } = state;
  if (stored.kind === 'torn') {
    // A crash can tear only the last file: earlier ones were on disk before the next began.
    if (stored.isLast || stored.file === damage.file) return;
    damage.files += 1;
    damage.file = stored.file;
    return;
  }
  const { file, firstSeq } = stored;
  const isKnown = isTailSound(state) && damage.files === 0;
  if (firstSeq !== undefined && isKnown && firstSeq !== chain.seq)
    damage.segment ??= { file, expected: chain.seq };
}
