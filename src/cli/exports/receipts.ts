/** `export --receipts`: a COSE receipt of each selected record, in a folder. */

import { exportReceipts, openLedger, printable, writeFilesThrough } from '../../index.js';
import { CommandError } from '../command-error.js';
import { readSigner } from '../input.js';
import type { ExportKind } from './export-kind.js';
import { heldNote, provenOptions, SIGNING_KEY } from './export-to.js';

export const RECEIPTS: ExportKind = {
  flags: '--receipts <folder>',
  target: 'folder',
  description:
    "a COSE receipt (RFC 9942) of each record, SEQ.cose, signed with --key, the log's; verify-proof takes one with its record (show --format record)",
  further: [SIGNING_KEY],
  write: async (job) => {
    const { context, path } = job;
    const { terminal } = context;
    const { key } = job.options as { readonly key?: string };
    if (key === undefined)
      throw new CommandError('USAGE', "--receipts needs --key: the log's private key signs them");
    const checkpoint = heldNote(job, '--receipts');
    const signer = await readSigner(terminal, key);
    const source = await openLedger(job.ledger);
    const { receipts, skipped, beyond, treeSize, report } = await writeFilesThrough(path, (place) =>
      exportReceipts(source, ({ name, bytes }) => place(name, bytes), {
        ...provenOptions(job),
        checkpoint,
        signer,
      }),
    );
    const parts = [
      `${receipts} receipt${receipts === 1 ? '' : 's'} in the checkpoint of ${treeSize} records`,
      ...(beyond === 0
        ? []
        : [
            `${beyond} selected record${beyond === 1 ? '' : 's'} after that checkpoint left out, as nothing proves them yet (northroot checkpoint)`,
          ]),
      ...(skipped === 0
        ? []
        : [`${skipped} record${skipped === 1 ? '' : 's'} left out: broken, or out of place`]),
      `the ledger's verdict is ${report.verdict}`,
    ];
    terminal.say(`${printable(path)}: ${parts.join('; ')}`);
    return report.exit_status;
  },
};
