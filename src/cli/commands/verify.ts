/** `northroot verify`: checks a ledger offline and reports. */

import { Option, type Command } from 'commander';
import { streamSource, openLedgerSource } from '../../fs/source.js';
import { toFindingJson } from '../../report/report.js';
import { renderReport } from '../../report/text.js';
import { verifyLedger } from '../../report/verify-ledger.js';
import type { Context, ExitStatus } from '../context.js';
import { openInput, readTrustPolicy, STDIN } from '../input.js';
import { wholeNumber } from '../options.js';

interface VerifyCommandOptions {
  readonly trust?: string;
  readonly format: 'text' | 'json' | 'ndjson';
  readonly maxFindings: number;
}

/** Streamed findings are written in batches of about so many characters. */
const BATCH = 64 * 1024;

export function addVerify(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('verify')
    .summary('check a ledger offline')
    .description(
      'Checks a ledger: a file, a folder of segments, or - for standard input. Reads it once, asks no network, changes nothing. Exit status: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
    )
    .argument('<path>', 'the ledger')
    .option('--trust <file>', 'the trust policy: which origins and keys count, and what must be signed')
    .addOption(
      new Option('--format <format>', 'of the report').choices(['text', 'json', 'ndjson']).default('text'),
    )
    .option('--max-findings <n>', 'list at most so many findings; all are counted', wholeNumber(0), 1_000)
    .action((path: string, options: VerifyCommandOptions) =>
      run((context) => verify(context, path, options)),
    );
}

async function verify(
  { terminal, signal }: Context,
  path: string,
  options: VerifyCommandOptions,
): Promise<ExitStatus> {
  const { format, maxFindings } = options;
  const trust = await readTrustPolicy(options.trust);
  const source = path === STDIN ? streamSource(openInput(path, signal), STDIN) : await openLedgerSource(path);
  let streamed = 0;
  let batch = '';
  const report = await verifyLedger(source, {
    maxFindings,
    signal,
    ...(trust === undefined ? {} : { trust }),
    onProgress: (done, size) => terminal.progress(done, size),
    onFinding: (finding) => {
      if (format !== 'ndjson' || streamed >= maxFindings) return;
      streamed += 1;
      batch += `${JSON.stringify(toFindingJson(finding))}\n`;
      if (batch.length < BATCH) return;
      void terminal.write(batch);
      batch = '';
    },
  });
  if (format === 'text') {
    await terminal.write(renderReport(report, terminal.paint));
  } else if (format === 'json') {
    await terminal.write(`${JSON.stringify(report, undefined, 2)}\n`);
  } else {
    const { findings: _findings, ...rest } = report;
    await terminal.write(`${batch}${JSON.stringify(rest)}\n`);
  }
  return report.exit_status as ExitStatus;
}
