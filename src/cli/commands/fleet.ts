/** `northroot fleet verify`: verifies many ledgers together. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import { listFleet, parseFleetList } from '../../log/fleet/list-fleet.js';
import { verifyFleet } from '../../log/fleet/verify-fleet.js';
import { renderFleet } from '../../out/text/fleet.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readInput, readTrustPolicy, STDIN } from '../input.js';
import { wholeNumber } from '../options.js';
import { addReportOutput, type ReportOutputOptions, targetsOf, writeReport } from '../report-output.js';
import { assertTargets } from '../targets.js';

interface FleetVerifyOptions extends ReportOutputOptions<'text' | 'json'> {
  readonly trust?: string;
  readonly maxFindings: number;
}

const NOTES = `
A ledger whose parent is not among those given says SLICES in what was not checked. A slice whose ledger is not
among them counts as spent: it cannot hide what it used. Each ledger is given once.`;

export function addFleet(program: Command, run: Run): void {
  const fleet = program
    .command('fleet')
    .summary('verify many ledgers together')
    .description('Works on many ledgers at once.');
  const command = fleet
    .command('verify')
    .summary('verify many ledgers, and the slices between them')
    .description(
      'Verifies each ledger by itself, then its slices against the ledgers that set them aside, and its anchors in others. Reports what each cap allowed, what was set aside, used, settled and is missing. The exit status is that of the worst ledger.',
    )
    .argument('<fleet>', 'a folder of ledgers, or a file with one path on each line; - for standard input')
    .option('--trust <file>', 'verify all ledgers with this trust policy (default: each by its own keys)')
    .option('--max-findings <n>', 'how many findings to list of each ledger', wholeNumber(0), 10)
    .addHelpText('after', NOTES);
  addReportOutput(command, ['text', 'json']).action((path: string, options: FleetVerifyOptions) =>
    run((context) => verify(context, path, options)),
  );
}

async function verify(context: Context, path: string, options: FleetVerifyOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  await assertTargets(targetsOf(options.output), path === STDIN ? [] : [path]);
  const trust = await readTrustPolicy(options.trust);
  const paths = await findLedgers(context, path);
  const report = await verifyFleet(paths, {
    maxFindings: options.maxFindings,
    signal,
    ...defined({ trust }),
  });
  await writeReport(terminal, options, (format, paint) =>
    format === 'json' ? { json: report } : renderFleet(report, paint),
  );
  return report.exit_status;
}

async function findLedgers(context: Context, path: string): Promise<string[]> {
  if (path !== STDIN && (await kindOfPath(path)) === 'folder') return listFleet(path);
  const text = Buffer.from(await readInput(path, context)).toString('utf8');
  if (text.startsWith('{'))
    throw usageError(
      `${printable(path)} is no list of paths`,
      'expected a folder of ledgers, or a file with one path on each line',
    );
  return parseFleetList(text);
}
