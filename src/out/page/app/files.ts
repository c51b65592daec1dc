/** Files that the user drops or chooses: which is a ledger, a bundle, a policy, a checkpoint. */

import { printable } from '../../../base/bytes/printable.js';
import { recogniseOtherFile } from '../../../log/fs/other-file.js';
import { isBundle } from '../../../proof/bundle/bundle-start.js';
import type { Against, BundleInputs, Inputs } from '../model/protocol.js';

/** So much of a file is looked at; notes, policies and their likes are no larger than the second. */
const HEAD_BYTES = 4_096;
const MAX_SMALL_BYTES = 1024 * 1024;
const MAX_FILES = 10_000;

const SEGMENT_NAME = /^(\d{20})\.jsonl$/;

type FileKind = 'bundle' | 'trust' | 'witnessPolicy' | 'checkpoint' | 'ledger';

/** By what a file looks like. All else is refused as the ledger that it is not, by what it looks like. */
const KINDS: Readonly<Record<string, FileKind>> = {
  'a trust policy': 'trust',
  'a witness policy': 'witnessPolicy',
  'a checkpoint': 'checkpoint',
  'a signed note': 'checkpoint',
};

interface GivenFiles extends Omit<Against, 'now'> {
  /** Undefined: none of the files is a ledger's or a bundle. */
  readonly inputs: Inputs | BundleInputs | undefined;
}

/** Reads files. @throws Error for more than one ledger or bundle, or what is too large. */
export async function readGiven(files: readonly File[]): Promise<GivenFiles> {
  if (files.length > MAX_FILES) throw new Error(`at most ${MAX_FILES} files at once`);
  const ledgers: File[] = [];
  const bundles: File[] = [];
  const checkpoints: { name: string; note: Uint8Array }[] = [];
  let trust: Uint8Array | undefined;
  let witnessPolicy: Uint8Array | undefined;
  for (const file of files) {
    const kind = await kindOf(file);
    if (kind === 'ledger') ledgers.push(file);
    else if (kind === 'bundle') bundles.push(file);
    else if (kind === 'checkpoint') checkpoints.push({ name: file.name, note: await readSmall(file) });
    else if (kind === 'trust') trust = await readSmall(file);
    else witnessPolicy = await readSmall(file);
  }
  const given = { trust, witnessPolicy, checkpoints };
  const [bundle] = bundles;
  if (bundle === undefined)
    return { ...given, inputs: ledgers.length === 0 ? undefined : toInputs(ledgers, given) };
  if (bundles.length + ledgers.length > 1)
    throw new Error('give one bundle at a time, and no ledger with it');
  return { ...given, inputs: { ...given, name: bundle.name, bundle, now: undefined } };
}

async function kindOf(file: File): Promise<FileKind> {
  const start = await file
    .slice(0, HEAD_BYTES)
    .arrayBuffer()
    .catch(() => {
      const name = printable(file.name, 200);
      throw new Error(`${name} cannot be read; of a folder give the files in it, all at once`);
    });
  const bytes = new Uint8Array(start);
  if (isBundle(bytes)) return 'bundle';
  return KINDS[recogniseOtherFile(bytes) ?? ''] ?? 'ledger';
}

async function readSmall(file: File): Promise<Uint8Array> {
  if (file.size > MAX_SMALL_BYTES) throw new Error('a policy or a checkpoint has at most 1 MiB');
  return new Uint8Array(await file.arrayBuffer());
}

function toInputs(files: readonly File[], given: Omit<Against, 'now'>): Inputs {
  const areSegments = files.every(({ name }) => SEGMENT_NAME.test(name));
  if (files.length > 1 && !areSegments)
    throw new Error('give one ledger at a time: one file, or all segments of one folder');
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const [first] = sorted;
  return {
    ...given,
    paths: [areSegments ? 'segments' : (first?.name ?? '')],
    bytes: new Blob(sorted),
    isCompressed: false,
    segments: sorted.map(({ name, size }) => {
      const digits = SEGMENT_NAME.exec(name)?.[1];
      return { file: name, firstSeq: digits === undefined ? undefined : Number(digits), bytes: size };
    }),
    predecessor: undefined,
    published: undefined,
    faults: undefined,
    growth: undefined,
    isGuess: true,
    now: undefined,
  };
}
