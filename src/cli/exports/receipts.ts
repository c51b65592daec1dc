/** `export --receipts`: a COSE receipt of each selected record, in a folder. */

import { writeFilesThrough } from '../../log/fs/file-sink.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { exportReceipts } from '../../out/export/receipts.js';
import { usageError } from '../command-error.js';
import { readSigner } from '../input.js';
import type { ExportKind } from './export-kind.js';
import { count, heldNote, LEFT_OUT, provenOptions, sayWritten, SIGNING_KEY } from './export-to.js';

export const RECEIPTS: ExportKind = {
  flags: '--receipts <folder>',
  target: 'folder',
  // Names of records, which no input has: the folder is looked at as a whole.
  filesAt: () => [],
  description:
    "a COSE receipt (RFC 9942) of each record, as SEQ.cose; needs --key, the log's. Verify with verify-proof --entry (show --format record writes the record)",
  further: [SIGNING_KEY],
  write: async (job) => {
    const { key } = job.options as { readonly key?: string };
    if (key === undefined) throw usageError("--receipts needs --key: the log's private key signs them");
    const checkpoint = heldNote(job, '--receipts');
    const signer = await readSigner(job.context.terminal, key);
    const source = await openLedger(job.ledger);
    const made = await writeFilesThrough(job.path, (place) =>
      exportReceipts(source, ({ name, bytes }) => place(name, bytes), {
        ...provenOptions(job),
        checkpoint,
        signer,
      }),
    );
    const { receipts, skipped, beyond, treeSize } = made;
    const parts = [`${count(receipts, 'receipt')} in the checkpoint of ${count(treeSize, 'record')}`];
    if (beyond > 0) parts.push(`${count(beyond, 'selected record')} ${LEFT_OUT}`);
    if (skipped > 0) parts.push(`${count(skipped, 'record')} left out: broken, or out of place`);
    return sayWritten(job, parts, made);
  },
};
