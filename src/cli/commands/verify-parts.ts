/** `northroot verify --part` and `--merge`: one verification spread over jobs. */

import { examinePart, MAX_PARTS, openParts } from '#fast/step';
import { InvalidArgumentError } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { readFileChunks } from '../../log/fs/file-system.js';
import { openScratchFile } from '../../log/fs/scratch-file.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerInput, STDIN } from '../input.js';
import { assertTargets, filesOf, writeTarget } from '../targets.js';

export interface PartNumber {
  readonly part: number;
  readonly of: number;
}

/** Parses `I/N`. */
export function partNumber(text: string): PartNumber {
  const [, part, of] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  const number = { part: Number(part), of: Number(of) };
  if (part === undefined || number.part < 1 || number.part > number.of || number.of > MAX_PARTS) {
    throw new InvalidArgumentError(`Expected a part and their number, such as 2/4; at most ${MAX_PARTS}.`);
  }
  return number;
}

/** Verifies one part, and writes it. The report is made when the parts are merged. */
export async function writePart(
  context: Context,
  ledger: string,
  { part, of }: PartNumber,
  target: string,
  trust: { readonly path: string | undefined; readonly policy: TrustPolicy | undefined },
): Promise<ExitStatus> {
  if (ledger === STDIN) {
    throw usageError('standard input has no parts: each part reads the ledger itself');
  }
  const { terminal, signal } = context;
  await assertTargets([{ path: target, kind: 'file' }], [...filesOf(ledger), trust.path]);
  const source = await openLedgerInput(ledger, context);
  const { policy } = trust;
  const pieces = examinePart(source, {
    part,
    of,
    signal,
    ...(policy === undefined ? {} : { keys: policy.keys }),
  });
  await writeTarget(terminal, target, async (sink) => {
    for await (const piece of pieces) await sink.write(piece);
  });
  terminal.say(
    `part ${part} of ${of} of ${printable(ledger)} is in ${printable(target)}; northroot verify --merge reports on all parts`,
  );
  return 0;
}

export async function openPartFiles(paths: readonly string[]): Promise<LedgerSource> {
  const source = await openParts(paths.map((path) => ({ name: path, open: () => readFileChunks(path) })));
  return { ...source, openScratch: openScratchFile };
}
