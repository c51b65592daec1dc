/** `northroot status`: how a ledger stands, on one screen. */

import { Option, type Command } from 'commander';
import { readLedgerStatus, renderStatus } from '../../index.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerInput, readAnchors, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { commandGuide } from '../remedies.js';
import { collect } from '../options.js';

interface StatusOptions {
  readonly trust?: string;
  readonly checkpoint?: readonly string[];
  readonly format: 'text' | 'json';
}

export function addStatus(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('status')
    .summary('show how a ledger stands, on one screen')
    .description(
      'Shows what a ledger is and how it stands: origin, period, tip, keys and who may sign, the last checkpoint, what is open, which caps are nearly used up, and what verify would need to say more. The ledger is verified for it; the exit status is that of verify.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .option('--trust <file>', 'verify with this trust policy')
    .option('--checkpoint <file>', 'a checkpoint that you hold; may be given again', collect)
    .addOption(new Option('--format <format>', 'of the status').choices(['text', 'json']).default('text'))
    .action((ledger: string, options: StatusOptions) => run((context) => status(context, ledger, options)));
}

async function status(context: Context, ledger: string, options: StatusOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const checkpoints = await readAnchors(options.checkpoint ?? []);
  const found = await readLedgerStatus(await openLedgerInput(ledger, context), {
    trust,
    checkpoints,
    signal,
    onProgress: (done, size) => terminal.progress(done, size),
  });
  await terminal.write(
    options.format === 'json' ? `${jsonText(found, 2)}\n` : renderStatus(found, terminal.paint, commandGuide),
  );
  return found.exit_status;
}
