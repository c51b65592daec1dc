/** `northroot simulate` and `northroot draft-grant`: what a grant would have denied, and the least that denies nothing. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import type { Meter } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type { Bounds } from '../../format/schema/generated/types.js';
import type { HostFile } from '../../hosts/shared/host.js';
import { callsOfLedger, callsOfReading, type RecordedCall } from '../../hosts/shared/made-calls.js';
import { readHost } from '../../hosts/shared/read-host.js';
import { HOSTS } from '../../hosts/shared/registry.js';
import { reportSimulation } from '../../hosts/shared/simulation-report.js';
import { describeLeft } from '../../log/policy/deciding-bound.js';
import { draftBounds, parseBounds } from '../../log/policy/draft-bounds.js';
import { type SimulatedDenial, simulateGrant, type Simulation } from '../../log/policy/simulate.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { filesAt, readHostFile } from '../host-files.js';
import { ingestError } from '../ingest-error.js';
import { assertStdinOnce, openLedgerInput, readInput } from '../input.js';
import { interruptible } from '../interruptible.js';
import { jsonText } from '../json-text.js';
import { principalId, textOrJson } from '../options.js';

interface SourceOptions {
  readonly from?: string;
  readonly principal?: string;
}

interface SimulateOptions extends SourceOptions {
  readonly grant: string;
  readonly format: 'text' | 'json';
}

interface DraftGrantOptions extends SourceOptions {
  readonly prefixes?: boolean;
}

/** The most denials that the text shows. */
const MAX_SHOWN = 20;

export function addSimulate(program: Command, run: Run): void {
  const command = program
    .command('simulate')
    .summary('say what a grant would have denied')
    .description(
      'Decides on the calls that were made, of a ledger or of files of another system, as a grant would have: in the order of their times, each with what it used. A call that is denied or needs approval uses nothing. Writes nothing to any ledger; the ledger is not verified. Exit status: 0 all allowed, 3 some not, 1 a line of the ledger is no record, 2 could not decide.',
    );
  withSources(command)
    .requiredOption('--grant <file>', 'bounds as JSON, or a grant that has them; - for standard input')
    .addOption(textOrJson())
    .action((sources: string[], options: SimulateOptions) =>
      run((context) => simulate(context, sources, options)),
    );
}

export function addDraftGrant(program: Command, run: Run): void {
  const command = program
    .command('draft-grant')
    .summary('propose the least grant for calls that were made')
    .description(
      'Writes the bounds of the least grant that would have allowed the calls of a ledger, or of files of another system: their tools, the sum of each unit, and the most of it that one call used. simulate --grant reads them. The command that makes the grant goes to standard error.',
    );
  withSources(command)
    .option(
      '--prefixes',
      'a pattern such as fs.* for two tools or more that are the same up to the first dot',
    )
    .action((sources: string[], options: DraftGrantOptions) =>
      run((context) => draftGrant(context, sources, options)),
    );
}

function withSources(command: Command): Command {
  return command
    .argument('<sources...>', 'a ledger; with --from files of that system, or folders of them')
    .addOption(
      new Option('--from <host>', 'the system that wrote the files').choices(HOSTS.map(({ name }) => name)),
    )
    .option('--principal <id>', 'only calls of this principal', principalId);
}

async function simulate(
  context: Context,
  sources: readonly string[],
  options: SimulateOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  assertStdinOnce([...sources, options.grant]);
  const bounds = await readBounds(context, options.grant);
  const calls = await readCalls(context, sources, options);
  if (calls.length === 0) terminal.say('warning: there are no calls');
  const result = await interruptible(context, () => simulateGrant(calls, bounds));
  const text = options.format === 'json' ? `${jsonText(reportSimulation(result), 2)}\n` : render(result);
  await terminal.write(text);
  return result.allowed === result.calls ? 0 : 3;
}

async function draftGrant(
  context: Context,
  sources: readonly string[],
  options: DraftGrantOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  assertStdinOnce(sources);
  const calls = await readCalls(context, sources, options);
  if (calls.length === 0) throw usageError('there are no calls that a grant could allow');
  const { prefixes } = options;
  const bounds = await interruptible(context, () => propose(calls, prefixes));
  await terminal.write(`${jsonText(bounds, 2)}\n`);
  terminal.say(
    isDecimal(bounds)
      ? commandFor(bounds, options.principal)
      : 'note: amounts that are no decimals cannot be options of northroot grant',
  );
  return 0;
}

function propose(calls: readonly RecordedCall[], prefixes: boolean | undefined): Bounds {
  try {
    return draftBounds(calls, { prefixes });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandError('QUANTITY_INVALID', error.message, { exitStatus: 2, cause: error });
  }
}

async function readBounds(context: Context, path: string): Promise<Bounds> {
  const ingested = ingestJson(await readInput(path, context));
  const hint = 'northroot draft-grant writes bounds';
  if (ingested.value === undefined) {
    const error = ingestError(ingested, hint);
    throw new CommandError(error.code, `${printable(path)}: ${error.message}`, {
      exitStatus: 2,
      cause: error,
      hint: error.hint,
    });
  }
  try {
    return parseBounds(ingested.value);
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    throw new CommandError(error.code, `${printable(path)}: ${error.message}`, {
      exitStatus: 2,
      cause: error,
      hint,
    });
  }
}

async function readCalls(
  context: Context,
  sources: readonly string[],
  { from, principal: only }: SourceOptions,
): Promise<readonly RecordedCall[]> {
  const calls =
    from === undefined ? await readLedger(context, sources) : await readFiles(context, sources, from);
  return only === undefined ? calls : calls.filter(({ principalId }) => principalId === only);
}

async function readLedger(context: Context, sources: readonly string[]): Promise<readonly RecordedCall[]> {
  const [path, ...others] = sources;
  if (path === undefined || others.length > 0)
    throw usageError('expected one ledger', '--from HOST reads several files of another system');
  return callsOfLedger(await openLedgerInput(path, context), { signal: context.signal });
}

async function readFiles(
  context: Context,
  sources: readonly string[],
  from: string,
): Promise<readonly RecordedCall[]> {
  const host = HOSTS.find(({ name }) => name === from);
  if (host === undefined) throw usageError(`there is no host ${printable(from)}`);
  const paths = new Set<string>();
  for (const source of sources) for (const path of await filesAt(context, source)) paths.add(path);
  const files: HostFile[] = [];
  for (const path of paths) files.push(await readHostFile(context, path));
  const reading = await interruptible(context, () => readHost(host, files));
  if (reading.findings.some(({ severity }) => severity === 'error'))
    context.terminal.say('note: the files have faults; northroot import --check lists them');
  return interruptible(context, () => callsOfReading(host, reading));
}

function placeOf({ seq, at }: RecordedCall): string {
  if (seq !== undefined) return `seq ${seq}`;
  return at.line === undefined ? printable(at.file) : `${printable(at.file)}:${at.line}`;
}

function render(result: Simulation<RecordedCall>): string {
  const { calls, allowed, needApproval, denied, denials, remaining } = result;
  const others = Object.entries(denied).map(([code, count]) => `${count} denied: ${code}`);
  const waiting = needApproval === 0 ? [] : [`${needApproval} would need approval`];
  const shown = denials.slice(0, MAX_SHOWN);
  const more = calls - allowed - shown.length;
  return [
    `${calls} calls, ${allowed} allowed`,
    ...others,
    ...waiting,
    ...shown.map((denial) => `  ${describe(denial)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...Object.entries(decimalsOf(remaining)).map(
      ([unit, { cap, left }]) => `left at the end: ${left ?? ''} of ${cap ?? ''} ${printable(unit)}`,
    ),
    '',
  ].join('\n');
}

function describe({ call, code, reason, bound }: SimulatedDenial<RecordedCall>): string {
  const left = bound === undefined ? undefined : describeLeft({ ...bound, grantId: undefined });
  const why = left ?? printable(reason ?? '', 200);
  return `${placeOf(call)} ${call.startedAt} ${printable(call.toolName)} ${code}: ${why}`;
}

function isDecimal({ meter_caps: caps = [], action_caps: each = [] }: Bounds): boolean {
  return [...caps, ...each].every(({ amount }) => amount.t === 'int' || amount.t === 'dec');
}

/** What a shell takes as it is. */
const PLAIN_WORD = /^[\w./:@+-]+$/;

function commandFor(
  { allowed_tools: tools, meter_caps: caps, action_caps: each }: Bounds,
  to?: string,
): string {
  const parts = [
    ...(tools ?? []).map((tool) => `--tool ${PLAIN_WORD.test(tool) ? tool : `'${tool}'`}`),
    ...amounts('--cap', caps),
    ...amounts('--action-cap', each),
  ];
  return `northroot grant LEDGER --to ${to ?? 'PRINCIPAL'} ${parts.join(' ')}`;
}

function amounts(option: string, vector: readonly Meter[] = []): string[] {
  return vector.map(({ unit, amount }) => `${option} ${unit}=${formatQuantity(amount)}`);
}
