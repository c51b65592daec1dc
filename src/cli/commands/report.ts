/** `northroot report`: what was spent, allowed, refused and left open, in sentences and tables. */

import { Option, type Command } from 'commander';
import {
  ACTIVITY_GROUPINGS,
  NorthrootError,
  plainPaint,
  printable,
  renderActivity,
  renderActivityCsv,
  renderActivityHtml,
  renderActivityMarkdown,
  replaceFile,
  reportActivity,
  withoutGroups,
  type ActivityGrouping,
  type ActivityReport,
} from '../../index.js';
import type { Context, ExitStatus } from '../context.js';
import { warnOfNothing } from '../empty-selection.js';
import { openLedgerInput, readAnchors, readTrustPolicy, readWitnessPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, instant } from '../options.js';
import { commandGuide } from '../remedies.js';
import { assertTargets, filesOf, STDOUT } from '../targets.js';
import { addSelection, toSelection, type SelectionOptions } from '../selection.js';

const FORMATS = ['text', 'markdown', 'csv', 'json', 'html'] as const;

type Format = (typeof FORMATS)[number];

interface ReportOptions extends SelectionOptions {
  readonly by?: ActivityGrouping;
  readonly format: Format;
  readonly output: readonly string[];
  readonly trust?: string;
  readonly witnessPolicy?: string;
  readonly checkpoint: readonly string[];
  readonly now?: string;
}

export function addReport(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  const command = program
    .command('report')
    .summary('say what was spent, allowed and refused')
    .description(
      'Verifies a ledger, and says what was spent, allowed, refused, corrected and left open in it or in a part of it: exact sums of every unit, who authorized it, and what cannot be said. The exit status is that of verify: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input');
  addSelection(command)
    .addOption(
      new Option(
        '--by <what>',
        'sum by this as well; for people by principal where there are several, unless told otherwise',
      ).choices(ACTIVITY_GROUPINGS),
    )
    .addOption(new Option('--format <format>', 'of the report').choices(FORMATS).default('text'))
    .option(
      '--output <format=path>',
      'write the report to a file too, in any of these formats; may be given again. - is standard output, in place of --format',
      collect,
      [],
    )
    .option('--trust <file>', 'verify with this trust policy')
    .option('--witness-policy <file>', 'logs, witnesses and their quorum, as a C2SP tlog-policy file')
    .option(
      '--checkpoint <file>',
      'a checkpoint that you hold (a signed note): the ledger must extend it; may be given again',
      collect,
      [],
    )
    .option(
      '--now <time>',
      'the time by which the age of checkpoints is judged (default: the present)',
      instant,
    )
    .action((ledger: string, options: ReportOptions) => run((context) => report(context, ledger, options)));
}

async function report(context: Context, ledger: string, options: ReportOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const outputs = options.output.map(toOutput);
  if (outputs.filter(({ path }) => path === STDOUT).length > 1) {
    throw new NorthrootError('USAGE', 'only one report can be written to standard output');
  }
  await assertTargets(
    outputs.map(({ path }) => ({ path, kind: 'file' })),
    [...filesOf(ledger), options.trust, options.witnessPolicy, ...options.checkpoint],
  );
  const toScreen = outputs.find(({ path }) => path === STDOUT)?.format ?? options.format;
  const formats = [toScreen, ...outputs.map(({ format }) => format)];
  const trust = await readTrustPolicy(options.trust);
  const witnessPolicy = await readWitnessPolicy(options.witnessPolicy, terminal);
  const checkpoints = await readAnchors(options.checkpoint);
  const selection = await toSelection(context, ledger, options);
  const whole = await reportActivity(await openLedgerInput(ledger, context), {
    selection,
    trust,
    witnessPolicy,
    checkpoints,
    signal,
    by: options.by ?? (formats.some(isForPeople) ? 'principal' : undefined),
    now: options.now,
    onProgress: (done, size) => terminal.progress(done, size),
  });
  const plain = options.by === undefined ? withoutGroups(whole) : whole;
  // A table of one principal would only repeat the sums.
  const told = whole.principals_total > 1 ? whole : plain;
  const forFormat = (format: Format): ActivityReport => (isForPeople(format) ? told : plain);
  warnOfNothing(terminal, whole.selection.unmatched ?? [], whole.selection.records, selection);
  for (const { format, path } of outputs) {
    if (path !== STDOUT) await replaceFile(path, Buffer.from(render(format, forFormat(format))));
  }
  const activity = forFormat(toScreen);
  await terminal.write(
    toScreen === 'text' ? renderActivity(activity, terminal.paint, commandGuide) : render(toScreen, activity),
  );
  return whole.exit_status;
}

/** Programs get groups only where they ask for them. */
function isForPeople(format: Format): boolean {
  return format !== 'json' && format !== 'csv';
}

function render(format: Format, activity: ActivityReport): string {
  switch (format) {
    case 'text':
      return renderActivity(activity, plainPaint, commandGuide);
    case 'markdown':
      return renderActivityMarkdown(activity, commandGuide);
    case 'csv':
      return renderActivityCsv(activity);
    case 'json':
      return `${jsonText(activity, 2)}\n`;
    case 'html':
      return renderActivityHtml(activity, commandGuide);
  }
}

function toOutput(text: string): { readonly format: Format; readonly path: string } {
  const [, name, path = ''] = /^([a-z]+)=(.+)$/s.exec(text) ?? [];
  const format = FORMATS.find((each) => each === name);
  if (format !== undefined) return { format, path };
  throw new NorthrootError('USAGE', `${printable(text)} is not a format and a path`, {
    hint: `such as html=report.html; formats are ${FORMATS.join(', ')}`,
  });
}
