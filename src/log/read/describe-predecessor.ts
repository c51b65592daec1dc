/** What a successor's genesis states of a ledger (SPEC §3.3, `continues`). */

import { printable } from '../../base/bytes/printable.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import type { Predecessor } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { viewPredecessor } from '../../rules/verify/predecessor.js';
import { findCheckpoint } from './find-checkpoint.js';

/** A longer note would not fit into a genesis record. */
const MAX_KEPT_NOTE_LENGTH = 16 * 1024;

/**
 * A ledger's id, size and root, and the note of its last checkpoint if only that checkpoint's own records follow and it has at most 16 KiB.
 * Nothing is verified.
 * @param open - Opens the ledger, which is read twice
 * @throws NorthrootError `NOT_A_LEDGER` when the first line is no readable record; as the source does
 */
export async function describePredecessor(
  open: () => Promise<LedgerSource>,
  signal?: AbortSignal,
): Promise<Predecessor> {
  const source = await open();
  const view = await viewPredecessor(source, undefined, signal);
  const { name, ledgerId, records, root } = view;
  if (ledgerId === undefined || root === undefined)
    throw new NorthrootError('NOT_A_LEDGER', `${printable(name)} is not a ledger to continue from`, {
      hint: 'its first line must be a record, whose event_id is the id of the ledger',
    });
  const note = await findWholeNote(source, open, records, signal);
  return {
    ledger_id: { alg: 'sha-256', b64: ledgerId },
    tree_size: records,
    root: { alg: 'sha-256', b64: root },
    ...(note === undefined || note.length > MAX_KEPT_NOTE_LENGTH ? {} : { note }),
  };
}

async function findWholeNote(
  { published }: LedgerSource,
  open: () => Promise<LedgerSource>,
  records: number,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  // A tree is published whole.
  if (published !== undefined) return decodeUtf8(published.note);
  const found = await findCheckpoint(await open(), { signal });
  const isWhole = found !== undefined && found.seq + 1 + found.attestations === records;
  return isWhole ? found.note : undefined;
}
