/** The options that draw a sample of executions. */

import { type Command, InvalidArgumentError } from 'commander';
import { defined } from '../base/defined.js';
import { drawSample, idsOf, MAX_SAMPLE, type Sample, SAMPLE_NONCE } from '../log/read/draw-sample.js';
import { openLedger } from '../log/tile/tile-tree.js';
import { count } from '../out/text/words.js';
import type { RecordSelection } from '../rules/selection.js';
import { usageError } from './command-error.js';
import type { Context } from './context.js';
import { STDIN } from './input.js';
import { wholeNumber } from './options.js';
import type { Verifying } from './verifying.js';

export interface SamplingOptions {
  readonly sample?: number;
  readonly sampleNonce?: string;
}

export function addSampling(command: Command): Command {
  return command
    .option(
      '--sample <n>',
      'only n executions, drawn by lot by the last checkpoint, or by the one of --checkpoint',
      wholeNumber(1, MAX_SAMPLE),
    )
    .option(
      '--sample-nonce <text>',
      'what the auditor adds to the lot, chosen after the checkpoint was made',
      printableNonce,
    );
}

function printableNonce(text: string): string {
  if (SAMPLE_NONCE.test(text)) return text;
  throw new InvalidArgumentError('Expected 1 to 128 characters of printable ASCII.');
}

/** What is drawn of a selection; undefined if nothing is asked for. @throws NorthrootError `USAGE`, and as `drawSample` */
export async function readSample(
  { terminal, signal }: Context,
  ledger: string,
  { sample: count, sampleNonce: nonce }: SamplingOptions,
  selection: RecordSelection,
  { trust, checkpoints: [held, other], now }: Verifying,
): Promise<Sample | undefined> {
  if (count === undefined) {
    if (nonce === undefined) return undefined;
    throw usageError('--sample-nonce needs --sample');
  }
  if (ledger === STDIN) throw usageError('--sample needs a file: standard input is read only once');
  if (other !== undefined) throw usageError('--sample takes one --checkpoint: the sample is drawn by it');
  return drawSample(await openLedger(ledger), {
    ...defined({ trust, now, nonce, checkpoint: held?.note }),
    ...{ count, selection, signal },
    onProgress: (done, size) => terminal.progress(done, size),
  });
}

/** The selection of what was drawn. */
export function ofSample(selection: RecordSelection, sample: Sample | undefined): RecordSelection {
  return sample === undefined ? selection : { ...selection, eventIds: idsOf(sample) };
}

/** `25 of 1200 executions, drawn by the checkpoint of 4096 records`. */
export function sampleText({ executions, of, treeSize }: Sample): string {
  return `${executions.length} of ${count(of, 'execution')}, drawn by the checkpoint of ${count(treeSize, 'record')}`;
}
