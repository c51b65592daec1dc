/** Events of a ledger as a Northroot journal. */

import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import { type ExportOptions, type ExportPass, writeRecords } from '../../../log/read/write-records.js';
import { toJournalPayload } from './journal-event.js';
import { formatJournalFrame, formatJournalHeader } from './journal-file.js';

export interface JournalExport extends ExportPass {
  /** Selected records of which no frame is written: no event can be read in them, or its ids are not its own. */
  readonly skipped: number;
}

/**
 * Writes the selected events as a journal, one frame each, in ledger order. Of each record the event alone is written: journals have no
 * place for chains, signatures and `meta`.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what `sink` rejects with.
 */
export async function exportJournal(
  ledger: LedgerInput,
  sink: ByteSink,
  options: ExportOptions = {},
): Promise<JournalExport> {
  let skipped = 0;
  await sink.write(formatJournalHeader());
  const pass = await writeRecords('exportJournal', ledger, options, ({ examined }) => {
    // A journal's id does not cover payload_digest, so that a wrong one would be gone.
    if (examined?.wellFormed !== true || examined.faults.some(({ code }) => IDENTITY.has(code))) {
      skipped += 1;
      return undefined;
    }
    return sink.write(formatJournalFrame(toJournalPayload(examined.event())));
  });
  return { ...pass, skipped };
}

const IDENTITY: ReadonlySet<string> = new Set([
  'EVENT_ID_MISMATCH',
  'PAYLOAD_DIGEST_MISMATCH',
  'NOT_CANONICAL',
]);
