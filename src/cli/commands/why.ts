/** `northroot why`: the history of one event. */

import type { Command } from 'commander';
import { renderEventHistory } from '../../out/text/event-history.js';
import { usageError } from '../command-error.js';
import type { Run } from '../context.js';
import { readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { textOrJson } from '../options.js';
import { commandGuide } from '../remedies.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

interface WhyOptions extends IndexChoice {
  readonly trust?: string;
  readonly format: 'text' | 'json';
}

const STATUS = { ok: 0, denied: 0, violation: 3, invalid: 1 } as const;

export function addWhy(program: Command, run: Run): void {
  program
    .command('why')
    .summary('show the history of one event')
    .description(
      'Shows the history of one event: what it says, its verdict, who decided under which policy, its grants with their accounts before and after, what followed, and its signatures. The ledger is verified; the exit status is that of the event.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('<event>', 'a seq such as 17, an id (sha-256:…, base64url or hex), or a prefix of one')
    .option('--trust <file>', 'verify with this trust policy')
    .option(...INDEX)
    .option(...NO_INDEX)
    .addOption(textOrJson())
    .action((ledger: string, event: string, options: WhyOptions) =>
      run(async (context) => {
        const { terminal } = context;
        if (ledger === STDIN) throw usageError('why reads the ledger twice: name a file or folder');
        const trust = await readTrustPolicy(options.trust);
        const history = await viewOf(context, ledger, event, options, trust).explainEvent(event);
        const text =
          options.format === 'json'
            ? `${jsonText(history, 2)}\n`
            : renderEventHistory(history, terminal.paint, commandGuide);
        await terminal.write(text);
        return STATUS[history.verdict];
      }),
    );
}
