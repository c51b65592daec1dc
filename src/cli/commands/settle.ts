/** `northroot settle`: ends the slices of a child, and records in the parent what was used. */

import type { Command } from 'commander';
import { formatQuantity } from '../../base/value/quantity.js';
import { defined } from '../../base/defined.js';
import { settleSlices, type SettledSlice } from '../../log/fleet/settle.js';
import { Ledger, type LedgerOptions } from '../../log/writer/ledger.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { principalId, waitSpan } from '../options.js';
import { NO_INDEX } from '../view.js';
import {
  decidingOptions,
  durabilityOption,
  findSigner,
  forOneOf,
  LOCK_TIMEOUT,
  POSITION_WITNESS,
  type WritingChoice,
} from './ledger-key.js';

interface SettleCommandOptions extends Omit<WritingChoice, 'key' | 'position'> {
  readonly position?: false;
  readonly parentKey?: string;
  readonly childKey?: string;
  readonly trust?: string;
  readonly wait?: number;
  readonly abandon?: boolean;
  readonly principal?: string;
}

const NOTES = `
The child must verify, and nothing may be open under its grant: what was allowed and not begun is released; what
was begun is waited for. A slice that the child has no grant of stays open, and the exit status is then 1: it may still be taken
up there. A crash at any step does no harm: give the command again.`;

export function addSettle(program: Command, run: Run): void {
  program
    .command('settle')
    .summary('settle the slices of a child in its parent')
    .description(
      'Ends the slices of a child ledger: revokes its grants of them, releases what has not begun, waits for what has, seals the child with a checkpoint, and records in the parent what was used up to there. What was not used is free again in the parent. Prints one line for each slice.',
    )
    .argument('<parent>', 'the ledger that set the slices aside')
    .argument('<child>', 'the ledger that spent them')
    .option(
      '--parent-key <file>',
      'private key to sign with in the parent (default: NORTHROOT_KEY, then PARENT.key)',
    )
    .option(
      '--child-key <file>',
      'private key to sign with in the child (default: NORTHROOT_KEY, then CHILD.key)',
    )
    .option('--trust <file>', 'verify both ledgers with this trust policy first')
    .option('--wait <span>', 'how long to wait for what was begun in the child, such as 10m', waitSpan)
    .option('--abandon', 'record what was begun and has not ended by then as unknown, charged as reserved')
    .option('--principal <id>', 'who stops and seals the child (default: who made it)', principalId)
    .option(...LOCK_TIMEOUT)
    .option('--no-position', 'keep no positions: a rollback of the ledgers is not detected')
    .option(...POSITION_WITNESS)
    .addOption(durabilityOption())
    .option(...NO_INDEX)
    .addHelpText('after', NOTES)
    .action((parent: string, child: string, options: SettleCommandOptions) =>
      run((context) => settle(context, parent, child, options)),
    );
}

async function settle(
  context: Context,
  parentPath: string,
  childPath: string,
  options: SettleCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const open = async (path: string, key: string | undefined, own: LedgerOptions): Promise<Ledger> => {
    const choice = forOneOf([parentPath, childPath], path, { ...options, ...defined({ key }) });
    const signer = await findSigner(terminal, path, key);
    const lasting = await decidingOptions(terminal, path, signer, choice);
    return Ledger.open(path, { ...lasting, decides: true, signal, ...defined({ trust }), ...own });
  };
  const child = await open(childPath, options.childKey, { checkpoints: true });
  try {
    const parent = await open(parentPath, options.parentKey, {});
    try {
      const settled = await settleSlices(parent, child, {
        signal,
        ...defined({ waitMs: options.wait, abandon: options.abandon, principalId: options.principal }),
      });
      for (const each of settled) await terminal.write(`${jsonText(settledJson(each))}\n`);
      for (const each of settled) terminal.say(describeSettled(each));
      return settled.some(({ status }) => status === 'ungranted') ? 1 : 0;
    } finally {
      await parent.close();
    }
  } finally {
    await child.close();
  }
}

function settledJson({ sliceId, grantId, used, checkpoint, recorded, status }: SettledSlice): object {
  return {
    slice_event_id: sliceId,
    ...(grantId === undefined ? {} : { grant_event_id: grantId }),
    status,
    ...(recorded === undefined ? {} : { seq: recorded.seq, event_id: recorded.eventId }),
    ...(used === undefined ? {} : { meter_used: used }),
    ...(checkpoint === undefined
      ? {}
      : { checkpoint_event_id: checkpoint.eventId, tree_size: checkpoint.treeSize }),
  };
}

function describeSettled({ sliceId, used, recorded, status }: SettledSlice): string {
  if (status === 'ungranted') return `not settled: the child has no grant of ${sliceId}; it counts as spent`;
  if (used === undefined || recorded === undefined) return `settled before: ${sliceId}`;
  const amounts = used.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  return `settled: ${amounts} used of ${sliceId}, seq ${recorded.seq}`;
}
