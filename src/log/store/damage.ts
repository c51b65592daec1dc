/** File damage that no line shows, kept in the state for those who build on the ledger. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Stored } from './ledger-store.js';

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
