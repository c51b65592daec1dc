/** `northroot diff`: where two ledgers part. */

import type { Command } from 'commander';
import { renderLedgerDiff } from '../../out/text/ledger-diff.js';
import { diffLedgers } from '../../proof/ledger-diff.js';
import { usageError } from '../command-error.js';
import type { Run } from '../context.js';
import { openLedgerInput, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { textOrJson } from '../options.js';
import { commandGuide } from '../remedies.js';

export function addDiff(program: Command, run: Run): void {
  program
    .command('diff')
    .summary('compare two ledgers')
    .description(
      'Compares two ledgers byte by byte and shows the first record that differs. Neither is verified. Exits with 0 if they are identical or one extends the other, 1 if they forked.',
    )
    .argument('<a>', 'a file or folder; - for standard input')
    .argument('<b>', 'the other one')
    .addOption(textOrJson())
    .action((a: string, b: string, options: { format: 'text' | 'json' }) =>
      run(async (context) => {
        const { terminal, signal } = context;
        if (a === STDIN && b === STDIN) throw usageError('only one of the ledgers can be on standard input');
        const result = await diffLedgers(
          await openLedgerInput(a, context),
          await openLedgerInput(b, context),
          signal,
        );
        const isJson = options.format === 'json';
        await terminal.write(
          isJson ? `${jsonText(result, 2)}\n` : renderLedgerDiff(result, terminal.paint, commandGuide),
        );
        return result.exit_status;
      }),
    );
}
