/** `northroot index`: creates, updates or checks the index beside a ledger. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { isStoreUrl } from '../../log/fs/place.js';
import { maintainIndex } from '../../log/read/maintain-index.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { shellWord } from '../shell-word.js';
import { describeNotice } from './notices.js';

interface IndexOptions {
  readonly index?: string;
  readonly check?: boolean;
  readonly rebuild?: boolean;
  readonly trust?: string;
}

export function addIndex(program: Command, run: Run): void {
  program
    .command('index')
    .summary('make or check the index of a ledger')
    .description(
      'Creates or updates the index beside a ledger (LEDGER.index/), and prints its size. The index is a cache: it may be deleted at any time, and verify never uses it. With --check, verifies the ledger again and exits with 1 if the index differs.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--index <folder>', 'its folder (default: LEDGER.index; a database needs one)')
    .option('--check', 'compare every entry with the ledger')
    .option('--rebuild', 'delete the existing index first')
    .option('--trust <file>', 'the index of decisions under this trust policy')
    .action((ledger: string, options: IndexOptions) => run((context) => index(context, ledger, options)));
}

async function index(context: Context, ledger: string, options: IndexOptions): Promise<ExitStatus> {
  if (isStoreUrl(ledger) && options.index === undefined)
    throw usageError('the index of a database needs --index', 'name a folder of this machine');
  const { terminal, signal } = context;
  const { path, records, end, bytes, differences, differencesTotal } = await maintainIndex(ledger, {
    ...defined({ folder: options.index }),
    check: options.check,
    rebuild: options.rebuild,
    trust: await readTrustPolicy(options.trust),
    signal,
    onProgress: (done) => terminal.progress(done, undefined),
    onNotice: (notice) => terminal.say(describeNotice(notice)),
  });
  const where =
    end.file === '' ? 'at the beginning' : `up to byte ${end.byteOffset} of ${printable(end.file)}`;
  await terminal.write(`${printable(path)}: ${records} records, ${where}; ${bytes} bytes\n`);
  for (const key of differences) await terminal.write(`differs: ${printable(key)}\n`);
  if (differencesTotal === 0) return 0;
  terminal.say(
    `${differencesTotal} entries differ from what the ledger gives: northroot index --rebuild ${shellWord(ledger)}`,
  );
  return 1;
}
