/** `northroot anchor`: records the last checkpoint of one ledger in another. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { anchorLedger } from '../../log/fleet/anchor.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { count } from '../../out/text/words.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { principalId } from '../options.js';
import { openSigned, type SigningChoice, withSigning } from './ledger-key.js';

interface AnchorCommandOptions extends SigningChoice {
  readonly principal?: string;
  readonly trust?: string;
}

export function addAnchor(program: Command, run: Run): void {
  const command = program
    .command('anchor')
    .summary('record the checkpoint of one ledger in another')
    .description(
      'Verifies a child ledger and records its last checkpoint in a parent, so that who watches the parent watches the child: verify CHILD --parent PARENT, and fleet verify, then detect that the child was cut (TRUNCATED) or changed (FORKED) since. A child that does not extend its furthest anchor there is refused by the same codes. The same checkpoint is recorded once. The child needs no slice.',
    )
    .argument('<parent>', 'the ledger to record it in')
    .argument('<child>', 'the ledger, or tile tree, with the checkpoint')
    .option('--principal <id>', 'who anchors (default: who made the parent)', principalId)
    .option('--trust <file>', 'verify the child with this trust policy');
  withSigning(command).action((parent: string, child: string, options: AnchorCommandOptions) =>
    run((context) => anchor(context, parent, child, options)),
  );
}

async function anchor(
  context: Context,
  path: string,
  child: string,
  options: AnchorCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const { ledger } = await openSigned(context, path, options);
  try {
    const { seq, eventId, status, ...anchored } = await anchorLedger(ledger, () => openLedger(child), {
      signal,
      ...defined({ trust, principalId: options.principal, index: options.index }),
    });
    const { childId, origin, treeSize, root } = anchored;
    await terminal.write(
      `${jsonText({ seq, event_id: eventId, status, child_ledger_id: childId, origin, tree_size: treeSize, root })}\n`,
    );
    const was = status === 'exists' ? 'was anchored before' : 'anchored';
    terminal.say(`${was}: ${count(treeSize, 'record')} of ${printable(origin)}`);
    return 0;
  } finally {
    await ledger.close();
  }
}
