/** `northroot verify`: checks a ledger offline and reports. */

import { Option, type Command } from 'commander';
import { toFindingJson } from '../../report/report.js';
import { renderReport } from '../../report/text.js';
import { verifyLedger } from '../../report/verify-ledger.js';
import type { Context, ExitStatus } from '../context.js';
import { openLedgerInput, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
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

async function verify(context: Context, path: string, options: VerifyCommandOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { format, maxFindings } = options;
  const trust = await readTrustPolicy(options.trust);
  const source = await openLedgerInput(path, context);
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
      batch += `${jsonText(toFindingJson(finding))}\n`;
      if (batch.length < BATCH) return;
      void terminal.write(batch);
      batch = '';
    },
  });
  if (format === 'text') {
    await terminal.write(renderReport(report, terminal.paint));
  } else if (format === 'json') {
    await terminal.write(`${jsonText(report, 2)}\n`);
  } else {
    await terminal.write(`${batch}${jsonText({ ...report, findings: undefined })}\n`);
  }
  return report.exit_status;
}
