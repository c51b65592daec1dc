/** `northroot status`: the state of a ledger, on one screen. */

import type { Command } from 'commander';
import { writeJson } from '../../base/json/write-json.js';
import { renderStatus } from '../../out/text/status.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readAnchors, readTrustPolicy } from '../input.js';
import { safeSink } from '../json-text.js';
import { repeatable, textOrJson } from '../options.js';
import { commandGuide } from '../remedies.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

interface StatusOptions extends IndexChoice {
  readonly trust?: string;
  readonly checkpoint?: readonly string[];
  readonly format: 'text' | 'json';
}

export function addStatus(program: Command, run: Run): void {
  program
    .command('status')
    .summary('show the state of a ledger on one screen')
    .description(
      'Shows the state of a ledger: origin, period, tip, keys and who may sign, the last checkpoint, what is open, which caps are nearly used up, and what was not checked. The ledger is verified, with the help of its index. Exit status as verify.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .option('--trust <file>', 'verify with this trust policy')
    .addOption(repeatable('--checkpoint <file>', 'a checkpoint that you hold; the whole ledger is read'))
    .option(...INDEX)
    .option(...NO_INDEX)
    .addOption(textOrJson())
    .action((ledger: string, options: StatusOptions) => run((context) => status(context, ledger, options)));
}

async function status(context: Context, ledger: string, options: StatusOptions): Promise<ExitStatus> {
  const { terminal } = context;
  const trust = await readTrustPolicy(options.trust);
  const checkpoints = await readAnchors(options.checkpoint ?? []);
  const found = await viewOf(context, ledger, undefined, options, trust).readStatus({
    checkpoints,
    onProgress: (done, size) => terminal.progress(done, size),
  });
  if (options.format === 'json') {
    await writeJson(safeSink({ write: (piece) => terminal.write(piece) }), found, 2);
    await terminal.write('\n');
  } else await terminal.write(renderStatus(found, terminal.paint, commandGuide));
  return found.exit_status;
}
