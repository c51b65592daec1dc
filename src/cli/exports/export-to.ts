/** Runs an export of the library into one file, which appears whole or not at all, and says what was written. */

import {
  openLedger,
  printable,
  type ByteSink,
  type ExportOptions,
  type ExportPass,
  type LedgerSource,
} from '../../index.js';
import { warnOfNothing } from '../empty-selection.js';
import type { ExitStatus } from '../context.js';
import { writeTarget } from '../targets.js';
import type { ExportJob } from './export-kind.js';

/** What an export gave, and how what it wrote is counted. */
export interface Exported extends ExportPass {
  /** In the singular. */
  readonly what: string;
  /** Selected records of which nothing could be written. */
  readonly skipped?: number;
  /** What is said of those; default: not readable. */
  readonly why?: string;
  /** What else is to be said of what was written. */
  readonly also?: string;
}

/** @param run - The library's function, given the ledger, where to write and how to verify. */
export async function exportTo(
  job: ExportJob,
  run: (ledger: LedgerSource, sink: ByteSink, options: ExportOptions) => Promise<Exported>,
): Promise<ExitStatus> {
  const { context, ledger, path } = job;
  const { terminal } = context;
  const source = await openLedger(ledger);
  const {
    report,
    selected,
    unmatched,
    skipped = 0,
    what,
    why = 'not readable',
    also,
  } = await writeTarget(terminal, path, (sink) => run(source, sink, verificationOptions(job)));
  const left = skipped === 0 ? '' : `; ${skipped} record${skipped === 1 ? '' : 's'} left out: ${why}`;
  const written = selected - skipped;
  warnOfNothing(terminal, unmatched, selected, job.selection);
  terminal.say(
    `${printable(path)}: ${written} ${what}${written === 1 ? '' : 's'}${left}${also === undefined ? '' : `; ${also}`}; the ledger's verdict is ${report.verdict}`,
  );
  return report.exit_status;
}

/** How the ledger of an export is verified. */
export function verificationOptions({
  context,
  selection,
  trust,
  checkpoints,
  now,
}: ExportJob): ExportOptions {
  const { terminal, signal } = context;
  return {
    selection,
    trust,
    checkpoints,
    ...(now === undefined ? {} : { now }),
    signal,
    onProgress: (done, size) => terminal.progress(done, size),
  };
}
