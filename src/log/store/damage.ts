/** What reading shows of a ledger's files that stands in no line: kept with the state, for who builds on the ledger. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Stored } from './ledger-store.js';

/** Whether the last line is a record, so that another can follow it. */
export function isTailSound({ damage, lines }: VerifyState): boolean {
  return lines === 0 || damage.at !== lines;
}

/** Takes note of where a file begins, and of one that ends within a line. */
export function noteStored(state: VerifyState, stored: Exclude<Stored, { readonly kind: 'lines' }>): void {
  const { damage, chain } = state;
  if (stored.kind === 'torn') {
    // Only the last file can be torn by a crash: what came after was begun when all before it was on disk.
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
