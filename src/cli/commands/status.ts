/** `northroot status`: how a ledger stands, on one screen. */

import { type Command, Option } from 'commander';
import { writeJson } from '../../base/json/write-json.js';
import { renderStatus } from '../../out/text/status.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readAnchors, readTrustPolicy } from '../input.js';
import { safeSink } from '../json-text.js';
import { collect } from '../options.js';
import { commandGuide } from '../remedies.js';
import { type IndexChoice, NO_INDEX, viewOf } from '../view.js';

interface StatusOptions extends IndexChoice {
  readonly trust?: string;
  readonly checkpoint?: readonly string[];
  readonly format: 'text' | 'json';
}

export function addStatus(program: Command, run: Run): void {
  program
    .command('status')
    .summary('show how a ledger stands, on one screen')
    .description(
      'Shows what a ledger is and how it stands: origin, period, tip, keys and who may sign, the last checkpoint, what is open, which caps are nearly used up, and what verify would need to say more. The ledger is verified for it, as far as its index has not kept that; the exit status is that of verify.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .option('--trust <file>', 'verify with this trust policy')
    .option(
      '--checkpoint <file>',
      'a checkpoint that you hold, for which the whole ledger is read; may be given again',
      collect,
    )
    .option(...NO_INDEX)
    .addOption(new Option('--format <format>', 'of the status').choices(['text', 'json']).default('text'))
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
