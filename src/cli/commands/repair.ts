/** `northroot repair`: repairs the end of a ledger after a crash. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { repairLedger } from '../../log/writer/repair.js';
import type { Run } from '../context.js';
import { seconds } from '../options.js';
import { describeNotice } from './notices.js';

export function addRepair(program: Command, run: Run): void {
  program
    .command('repair')
    .summary('repair the end of a ledger after a crash')
    .description(
      'Saves the bytes after the last whole record beside the ledger and cuts them off. Records are never touched: what verify finds elsewhere is evidence and stays.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--lock-timeout <seconds>', 'how long to wait for a writer', seconds, 10)
    .action((path: string, options: { lockTimeout: number }) =>
      run(async ({ terminal, signal }) => {
        const { saved, lines } = await repairLedger(path, {
          lockTimeoutMs: options.lockTimeout * 1000,
          signal,
        });
        if (saved === undefined)
          terminal.say(`${printable(path)} ends with a whole record: nothing to repair`);
        else terminal.say(describeNotice({ code: 'TORN_TAIL_SAVED', ...saved }));
        const result = saved && {
          saved_to: saved.savedTo,
          byte_offset: saved.offset,
          byte_length: saved.length,
        };
        await terminal.write(
          `${JSON.stringify({ records: lines, repaired: saved !== undefined, ...result })}\n`,
        );
        return 0;
      }),
    );
}
