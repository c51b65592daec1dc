/** `northroot copy`: moves a ledger between files and databases, byte for byte. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { Durability } from '../../log/store/ledger-store.js';
import { copyLedger } from '../../log/writer/copy-ledger.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { byteSize } from '../options.js';
import { STDOUT } from '../targets.js';
import { durabilityOption, LOCK_TIMEOUT, POSITION_WITNESS } from './ledger-key.js';
import { describeNotice } from './notices.js';

interface CopyChoice {
  readonly lockTimeout: number;
  readonly segmentBytes?: number;
  readonly durability?: Durability;
  readonly positionWitness?: string;
}

export function addCopy(program: Command, run: Run): void {
  program
    .command('copy')
    .summary('copy a ledger between files and databases')
    .description(
      'Copies a ledger byte for byte between files, folders of segments and PostgreSQL, and verifies each record before it is written. A copy that was stopped continues where it ends. Files beside the ledger, such as its key, are not copied.',
    )
    .argument('<from>', 'the ledger to copy: a file, a folder, or postgres://USER@HOST/DATABASE#NAME')
    .argument('<to>', 'where to: the same; a path that ends in / becomes a folder of segments')
    .option(...LOCK_TIMEOUT)
    .option(
      '--segment-bytes <size>',
      'in a folder, start a new segment at this size (default: 64MiB)',
      byteSize,
    )
    .addOption(durabilityOption())
    .option(...POSITION_WITNESS)
    .action((from: string, to: string, options: CopyChoice) =>
      run((context) => copy(context, from, to, options)),
    );
}

async function copy(
  { terminal, signal }: Context,
  from: string,
  to: string,
  { lockTimeout, segmentBytes, durability, positionWitness }: CopyChoice,
): Promise<ExitStatus> {
  if (to === STDOUT)
    throw usageError('a copy is continued where it ends, and standard output has no end', 'name a file');
  const { copied, size, root, isBehind, ...names } = await copyLedger(from, to, {
    lockTimeoutMs: lockTimeout * 1000,
    ...defined({ segmentBytes, durability, positionWitness }),
    signal,
    onProgress: (bytes, all) => terminal.progress(bytes, all),
    onTornTail: (saved) => terminal.say(describeNotice({ code: 'TORN_TAIL_SAVED', ...saved })),
  });
  await terminal.write(`${JSON.stringify({ records: size, copied, root, behind: isBehind })}\n`);
  const [source, target] = [printable(names.from), printable(names.to)];
  if (isBehind) terminal.say(`${source} has more by now: stop what writes to it, and copy again`);
  else
    terminal.say(
      `${target} has all of ${source}: stop what writes to ${source}, copy once more, and write to ${target} alone: two that grow are a fork`,
    );
  return 0;
}
