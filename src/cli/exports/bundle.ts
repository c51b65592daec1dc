/** `export --bundle`: the selected records with what proves them, in one file. */

import { InvalidArgumentError } from 'commander';
import { contentsPath, KeptContents } from '../../log/contents/content-folder.js';
import { findRecord } from '../../log/read/read-records.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import type { Stretch } from '../../proof/bundle/bundle-file.js';
import { type BundleExport, exportBundle } from '../../proof/bundle/export-bundle.js';
import type { RecordSelection } from '../../rules/selection.js';
import { readSigner } from '../input.js';
import { usageError } from '../command-error.js';
import { collect, instant } from '../options.js';
import { writeTarget } from '../targets.js';
import type { ExportJob, ExportKind } from './export-kind.js';
import { count, heldNote, LEFT_OUT, provenOptions, sayWritten, SIGNING_KEY } from './export-to.js';

interface BundleFlags {
  readonly event?: readonly string[];
  readonly complete?: readonly Stretch[];
  readonly key?: string;
  readonly createdAt?: string;
  /** False with `--no-contents`. */
  readonly contents?: boolean;
}

export const BUNDLE: ExportKind = {
  flags: '--bundle <file>',
  target: 'file',
  description: 'a bundle for verify: the records, those they link to, and proofs against a checkpoint',
  further: [
    ['--event <id>', 'for --bundle: only this event, by its seq or id (repeatable)', collect],
    [
      '--complete <from..to>',
      'for --bundle: all records in this range of seqs; with a selection, the others as hashes only (repeatable)',
      stretch,
    ],
    SIGNING_KEY,
    ['--created-at <time>', 'for --bundle: the creation time to state (default: none)', instant],
    [
      '--no-contents',
      'for --bundle: attach nothing of LEDGER.contents (default: what records of the bundle name)',
    ],
  ],
  write: async (job) => {
    const { context, ledger, path } = job;
    const { terminal } = context;
    const flags = job.options as BundleFlags;
    const signer = flags.key === undefined ? undefined : await readSigner(terminal, flags.key);
    const checkpoint = heldNote(job, '--bundle');
    const selection = await withEvents(job, flags.event);
    const kept = flags.contents !== false ? await KeptContents.open(contentsPath(ledger)) : undefined;
    const made = await writeTarget(terminal, path, (sink) =>
      exportBundle(() => openLedger(ledger), sink, {
        ...provenOptions(job),
        selection,
        complete: flags.complete,
        checkpoint,
        signer,
        createdAt: flags.createdAt,
        contents: kept === undefined || kept.size === 0 ? undefined : (digest) => kept.find(digest),
      }),
    );
    const parts = [...describe(made, signer !== undefined), ...describeContents(made, kept)];
    return sayWritten({ ...job, selection }, parts, made);
  },
};

function describeContents({ contents }: BundleExport, kept: KeptContents | undefined): string[] {
  const mismatched = kept?.mismatched ?? 0;
  return [
    ...(contents === 0
      ? []
      : [`${count(contents, 'content')} attached, readable by everyone who has the bundle (--no-contents)`]),
    ...(mismatched === 0 ? [] : [`${count(mismatched, 'content')} left out: not what the name says`]),
  ];
}

async function withEvents(
  { ledger, selection }: ExportJob,
  events: readonly string[] | undefined,
): Promise<RecordSelection> {
  if (events === undefined) return selection;
  if (selection.eventIds !== undefined) throw usageError('--event and --sample exclude each other');
  const eventIds = new Set<string>();
  for (const each of events) eventIds.add((await findRecord(await openLedger(ledger), each)).eventId);
  return { ...selection, eventIds };
}

function describe(made: BundleExport, isSigned: boolean): string[] {
  const { selected, linked, hashesOnly, beyond, treeSize, hasCheckpoint } = made;
  return [
    `${count(selected, 'record')} and ${linked} that they link to`,
    hasCheckpoint
      ? `proven against the checkpoint of ${count(treeSize, 'record')}`
      : 'not proven: the ledger has no checkpoint (northroot checkpoint)',
    ...(hashesOnly === 0
      ? []
      : [
          `${hashesOnly} as hashes only, which do not show whose they are: without a selection all are included`,
        ]),
    ...(beyond === 0 ? [] : [`${count(beyond, 'selected record')} ${LEFT_OUT}`]),
    ...(isSigned ? [] : ['not signed (--key)']),
  ];
}

/** Collects `from..to`, both ends included. */
function stretch(text: string, previous: readonly Stretch[] = []): Stretch[] {
  const [, from = '', to = ''] = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text) ?? [];
  const read = { from: Number(from), to: Number(to) };
  if (from === '' || read.from > read.to)
    throw new InvalidArgumentError('Expected two seqs such as 100..199.');
  const overlaps = previous.some((each) => each.from <= read.to && read.from <= each.to);
  if (overlaps) throw new InvalidArgumentError('Expected stretches that do not overlap.');
  return [...previous, read];
}
