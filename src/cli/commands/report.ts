/** `northroot report`: what was spent, allowed, refused and left open, in sentences and tables. */

import { type Command, Option } from 'commander';
import type { ActivityReport } from '../../format/schema/generated/types.js';
import { renderActivityCsv } from '../../out/activity/csv.js';
import { ACTIVITY_GROUPINGS, type ActivityGrouping } from '../../out/activity/groups.js';
import { withoutGroups } from '../../out/activity/limits.js';
import { type Bill, MAX_BILL_BYTES, readBill } from '../../out/activity/bill/read-bill.js';
import { reportActivity } from '../../out/activity/report-activity.js';
import { renderActivityHtml } from '../../out/text/activity-html.js';
import { renderActivity, renderActivityMarkdown } from '../../out/text/activity-document.js';
import type { Paint } from '../../out/text/guide.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openLedgerInput } from '../input.js';
import { commandGuide } from '../remedies.js';
import { repeatable } from '../options.js';
import {
  addReportOutput,
  type Rendered,
  type ReportOutputOptions,
  screenFormat,
  targetsOf,
  writeReport,
} from '../report-output.js';
import { addSampling, readSample, type SamplingOptions } from '../sampling.js';
import { addSelection, type SelectionOptions, toSelection, warnOfNothing } from '../selection.js';
import { assertTargets, filesOf } from '../targets.js';
import { addVerifying, filesOfVerifying, readVerifying, type VerifyingOptions } from '../verifying.js';

const FORMATS = ['text', 'markdown', 'csv', 'json', 'html'] as const;

type Format = (typeof FORMATS)[number];

interface ReportOptions
  extends SelectionOptions, SamplingOptions, VerifyingOptions, ReportOutputOptions<Format> {
  readonly by?: ActivityGrouping;
  readonly bill?: readonly string[];
  readonly billProvider?: string;
}

/** A bill is of all executions. */
const OPTIONS_OF_PARTS = ['principal', 'grant', 'tool', 'since', 'until', 'last', 'sample'];

export function addReport(program: Command, run: Run): void {
  const command = program
    .command('report')
    .summary('report what was spent, allowed and refused')
    .description(
      'Verifies a ledger and reports what was spent, allowed, refused, corrected and left open in all or part of it: exact sums of every unit, who authorized it, and what is not known. Exit status as verify: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input');
  addSampling(addSelection(command)).addOption(
    new Option(
      '--by <what>',
      'group by (default, not for csv and json: principal, if there are several)',
    ).choices(ACTIVITY_GROUPINGS),
  );
  command
    .addOption(
      repeatable(
        '--bill <file>',
        "what of a provider's bill the ledger explains: costs or usage of OpenAI or Anthropic in JSON, or CSV with day, model and amount",
      ).conflicts(OPTIONS_OF_PARTS),
    )
    .option('--bill-provider <name>', 'with --bill: only executions of this provider explain it');
  addVerifying(addReportOutput(command, FORMATS)).action((ledger: string, options: ReportOptions) =>
    run((context) => report(context, ledger, options)),
  );
}

async function report(context: Context, ledger: string, options: ReportOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { bill: paths = [], billProvider } = options;
  if (billProvider !== undefined && paths.length === 0) throw usageError('--bill-provider needs --bill');
  await assertTargets(targetsOf(options.output), [
    ...filesOf(ledger),
    ...filesOfVerifying(options),
    ...paths,
  ]);
  const formats = [screenFormat(options), ...options.output.map(({ format }) => format)];
  const verifying = await readVerifying(options, terminal);
  const selection = await toSelection(context, ledger, options);
  const sample = await readSample(context, ledger, options, selection, verifying);
  const bill = paths.length === 0 ? undefined : await readBillFiles(paths);
  const whole = await reportActivity(await openLedgerInput(ledger, context), {
    ...verifying,
    selection,
    sample,
    bill,
    billProvider,
    signal,
    by: options.by ?? (formats.some(isForPeople) ? 'principal' : undefined),
    onProgress: (done, size) => terminal.progress(done, size),
  });
  const plain = options.by === undefined ? withoutGroups(whole) : whole;
  // A table of one principal would only repeat the sums.
  const told = whole.principals_total > 1 ? whole : plain;
  const forFormat = (format: Format): ActivityReport => (isForPeople(format) ? told : plain);
  warnOfNothing(terminal, whole.selection.unmatched ?? [], whole.selection.records, selection);
  await writeReport(terminal, options, (format, paint) => render(format, forFormat(format), paint));
  return whole.exit_status;
}

async function readBillFiles(paths: readonly string[]): Promise<Bill> {
  const files: Uint8Array[] = [];
  for (const path of paths) files.push(await readSmallFile(path, MAX_BILL_BYTES));
  return readBill(files);
}

/** Programs get groups only where they ask for them. */
function isForPeople(format: Format): boolean {
  return format !== 'json' && format !== 'csv';
}

function render(format: Format, activity: ActivityReport, paint: Paint): Rendered {
  switch (format) {
    case 'text':
      return renderActivity(activity, paint, commandGuide);
    case 'markdown':
      return renderActivityMarkdown(activity, commandGuide);
    case 'csv':
      return renderActivityCsv(activity);
    case 'json':
      return { json: activity };
    case 'html':
      return renderActivityHtml(activity, commandGuide);
  }
}
