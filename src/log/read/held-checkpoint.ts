/** Compares a given checkpoint with the ledger to prove records under. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { Checkpoint } from '../../format/note/checkpoint.js';
import type { VerifyState } from '../../rules/verify/state.js';

/** @throws NorthrootError `ORIGIN_MISMATCH`, `TRUNCATED` if the checkpoint is of another or a longer ledger */
export function assertReaches(
  { origin: own, records }: VerifyState,
  { origin, size }: Pick<Checkpoint, 'origin' | 'size'>,
): void {
  if (own !== undefined && origin !== own) {
    throw new NorthrootError(
      'ORIGIN_MISMATCH',
      `the checkpoint is of ${printable(origin)}, and the ledger is ${printable(own)}`,
    );
  }
  if (size > records) {
    throw new NorthrootError(
      'TRUNCATED',
      `the checkpoint covers ${size} records, and the ledger has only ${records}`,
    );
  }
}

export function forked(size: number): NorthrootError {
  return new NorthrootError(
    'FORKED',
    `the first ${size} records of the ledger are not those that the checkpoint covers`,
  );
}
