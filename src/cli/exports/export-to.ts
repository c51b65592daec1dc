/** Runs an export of the library into one file, which appears whole or not at all, and says what was written. */

import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { ExportOptions, ExportPass } from '../../log/read/write-records.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { usageError } from '../command-error.js';
import type { ExitStatus } from '../context.js';
import { warnOfNothing } from '../selection.js';
import { writeTarget } from '../targets.js';
import type { ExportJob, ExportKind } from './export-kind.js';

/** What an export gave, and how what it wrote is counted. */
interface Exported extends ExportPass {
  /** In the singular. */
  readonly what: string;
  /** Selected records of which nothing could be written. */
  readonly skipped?: number;
  /** What is said of those; default: not readable. */
  readonly why?: string;
  /** What else is to be said of what was written. */
  readonly also?: string | undefined;
}

/** The library's function, given the ledger, where to write and how to verify. */
export type ExportRun = (ledger: LedgerSource, sink: ByteSink, options: ExportOptions) => Promise<Exported>;

export async function exportTo(job: ExportJob, run: ExportRun): Promise<ExitStatus> {
  const { context, ledger, path } = job;
  const source = await openLedger(ledger);
  const exported = await writeTarget(context.terminal, path, (sink) =>
    run(source, sink, verificationOptions(job)),
  );
  const { selected, skipped = 0, what, why = 'not readable', also } = exported;
  const left = skipped === 0 ? [] : [`${count(skipped, 'record')} left out: ${why}`];
  const more = also === undefined ? [] : [also];
  return sayWritten(job, [count(selected - skipped, what), ...left, ...more], exported);
}

/** Says what was written, and the verdict on the ledger; returns the verdict's exit status. */
export function sayWritten(
  { context, path, selection }: ExportJob,
  parts: readonly string[],
  { report, selected, unmatched }: Pick<ExportPass, 'report' | 'selected' | 'unmatched'>,
): ExitStatus {
  warnOfNothing(context.terminal, unmatched, selected, selection);
  const words = [...parts, `the ledger's verdict is ${report.verdict}`].join('; ');
  context.terminal.say(`${printable(path)}: ${words}`);
  return report.exit_status;
}

/** `1 record`, `2 records`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** Why selected records are not in what is proven: often the checkpoint's own record alone. */
export const LEFT_OUT = 'left out: the checkpoint covers only what came before it';

export const SIGNING_KEY: NonNullable<ExportKind['further']>[number] = [
  '--key <file>',
  'private key that signs the export',
];

/**
 * The one checkpoint that records are proven against, where one is given.
 *
 * @throws NorthrootError `USAGE` for several
 */
export function heldNote({ checkpoints: [held, other] }: ExportJob, flag: string): Uint8Array | undefined {
  if (other === undefined) return held?.note;
  throw usageError(`${flag} takes one --checkpoint: the records are proven against it`);
}

export function verificationOptions(job: ExportJob): ExportOptions {
  return { ...provenOptions(job), checkpoints: job.checkpoints };
}

/** The same where a checkpoint is what records are proven against. */
export function provenOptions({
  context,
  selection,
  trust,
  witnessPolicy,
  now,
}: ExportJob): Omit<ExportOptions, 'checkpoints'> {
  const { terminal, signal } = context;
  return {
    selection,
    trust,
    witnessPolicy,
    ...defined({ now }),
    signal,
    onProgress: (done, size) => terminal.progress(done, size),
  };
}
