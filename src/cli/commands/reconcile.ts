/** `northroot reconcile`: a ledger against what other systems recorded of the same calls. */

import { type Command, Option } from 'commander';
import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { MAX_EXPECTATION_BYTES, parseExpectation } from '../../hosts/shared/expectation.js';
import type { Host, HostFile } from '../../hosts/shared/host.js';
import {
  looksLikeLedger,
  readSource,
  recogniseHost,
  type ReconcileSource,
} from '../../hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../hosts/shared/reconcile.js';
import { HOSTS } from '../../hosts/shared/registry.js';
import { kindOfPath, readSmallFile } from '../../log/fs/file-system.js';
import { renderReconciliation, renderReconciliationMarkdown } from '../../out/text/reconcile-text.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import {
  addHostReading,
  type Aid,
  assertReceipts,
  filesAt,
  hintAtTimeZone,
  type HostReadingOptions,
  readHostFile,
  toAid,
} from '../host-files.js';
import { openLedgerInput, readStart, STDIN } from '../input.js';
import { interruptible } from '../interruptible.js';
import { wholeNumber } from '../options.js';
import {
  addReportOutput,
  DOCUMENT_FORMATS,
  type DocumentFormat,
  renderDocument,
  type ReportOutputOptions,
  targetsOf,
  writeReport,
} from '../report-output.js';
import { addSelection, type SelectionOptions, toSelection } from '../selection.js';
import { assertTargets, filesOf } from '../targets.js';
import { addVerifying, filesOfVerifying, readVerifying, type VerifyingOptions } from '../verifying.js';

const HOST_NAMES = HOSTS.map(({ name }) => name);

interface ReconcileOptions
  extends SelectionOptions, HostReadingOptions, VerifyingOptions, ReportOutputOptions<DocumentFormat> {
  readonly from?: string;
  readonly expect?: string;
  readonly allowMissing?: boolean;
  readonly window: number;
  readonly maxListed: number;
}

export function addReconcile(program: Command, run: Run): void {
  const command = program
    .command('reconcile')
    .summary('compare a ledger with what other systems recorded')
    .description(
      'Verifies a ledger and compares it, call by call, with logs, transcripts and usage records of other systems: calls that both have and agree on, calls that only one has, contradictions, and sums of every unit. It cannot show what no system recorded. Exits with 0 if nothing is contradicted, 1 if evidence is broken, contradictory or missing in the ledger, 3 if something was not allowed, 2 if nothing could be compared.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .argument('<sources...>', 'files or folders of other systems: HOST=PATH, or PATH if only one host fits')
    .addOption(new Option('--from <host>', 'the host of sources without HOST=').choices(HOST_NAMES));
  addHostReading(command)
    .option('--expect <file>', 'what was promised: tools, counts, a time window, sequences (JSON)')
    .option('--allow-missing', 'only warn of executions that a source has and the ledger does not')
    .option('--window <n>', 'seconds between calls that may match without a common id', wholeNumber(0), 300);
  addReportOutput(addSelection(command), DOCUMENT_FORMATS).option(
    '--max-listed <n>',
    'the most calls, and the most findings, in the report',
    wholeNumber(0),
    1_000,
  );
  addVerifying(command).action((ledger: string, sources: string[], options: ReconcileOptions) =>
    run((context) => reconcile(context, ledger, sources, options)),
  );
}

async function reconcile(
  context: Context,
  ledger: string,
  given: readonly string[],
  options: ReconcileOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const inputs = await inputsOf(context, given, options.from, ledger);
  await assertLedger(context, ledger);
  const aids = options.aid.map(toAid);
  await assertTargets(targetsOf(options.output), [
    ...filesOf(ledger),
    ...inputs.map(({ path }) => path),
    ...aids.map(({ path }) => path),
    options.expect,
    ...filesOfVerifying(options),
  ]);
  const verifying = await readVerifying(options, terminal);
  const expectation =
    options.expect === undefined
      ? undefined
      : parseExpectation(await readSmallFile(options.expect, MAX_EXPECTATION_BYTES));
  const selection = await toSelection(context, ledger, options);
  const sources = await readSources(context, inputs, aids, options);
  const report = await reconcileLedger(await openLedgerInput(ledger, context), sources, {
    ...verifying,
    selection,
    expectation,
    signal,
    allowsMissing: options.allowMissing,
    windowSeconds: options.window,
    maxListed: options.maxListed,
    onProgress: (done, size) => terminal.progress(done, size),
  });
  const texts = { text: renderReconciliation, markdown: renderReconciliationMarkdown };
  await writeReport(terminal, options, renderDocument(report, texts));
  hintAtTimeZone(
    context,
    sources.flatMap(({ reading }) => reading.findings),
  );
  return report.exit_status;
}

/** Enough of a file to recognise its host. */
const START_BYTES = 65_536;

/** A file that a host recognises, and that does not begin like a ledger, is most likely a source. */
async function assertLedger(context: Context, path: string): Promise<void> {
  if (path === STDIN || (await kindOfPath(path)) !== 'file') return;
  const file = { name: path, bytes: await readStart(path, START_BYTES, context) };
  const host = looksLikeLedger(file) ? undefined : HOSTS.find((each) => each.recognises(file));
  if (host === undefined) return;
  throw usageError(
    `${printable(path)} is a file of ${host.name}, not a ledger`,
    `the ledger comes first, then the files of other systems; northroot import --from ${host.name} makes a ledger of such files`,
  );
}

interface Input {
  readonly path: string;
  /** If named; otherwise it is recognised. */
  readonly host: Host | undefined;
}

/** All files, including those in folders, each once. */
async function inputsOf(
  context: Context,
  given: readonly string[],
  from: string | undefined,
  ledger: string,
): Promise<readonly Input[]> {
  const inputs = new Map<string, Input>();
  for (const text of given) {
    const [, name, rest = text] = /^([a-z0-9-]+)=(.+)$/s.exec(text) ?? [];
    const named = hostOf(name);
    if (name !== undefined && named === undefined && (await kindOfPath(text)) === 'missing')
      throw usageError(
        `${printable(name)} is not a host`,
        `${didYouMean(name, HOST_NAMES) ?? ''} hosts are ${HOST_NAMES.join(', ')}`.trim(),
      );
    const [path, host] = named === undefined ? [text, hostOf(from)] : [rest, named];
    for (const file of await filesAt(context, path)) {
      const key = `${host?.name ?? ''}=${file}`;
      if (file === STDIN && (ledger === STDIN || inputs.has(key)))
        throw usageError('standard input can be read once only');
      inputs.set(key, { path: file, host });
    }
  }
  return [...inputs.values()];
}

function hostOf(name: string | undefined): Host | undefined {
  return name === undefined ? undefined : HOSTS.find((host) => host.name === name);
}

/** The files of one host are one source, so that repetitions among them are found. */
async function readSources(
  context: Context,
  inputs: readonly Input[],
  aids: readonly Aid[],
  { occurredAt, timeZone, unverified }: HostReadingOptions,
): Promise<readonly ReconcileSource[]> {
  const byHost = new Map<Host, HostFile[]>();
  for (const { path, host } of inputs) {
    const file = await readHostFile(context, path);
    const its = host ?? recogniseHost(file, HOSTS);
    if (looksLikeLedger(file) && !its.recognises(file))
      throw usageError(
        `${printable(file.name)} is not a file of ${its.name}`,
        'it looks like a ledger: the ledger comes first, then the files of other systems',
      );
    const files = byHost.get(its);
    if (files === undefined) byHost.set(its, [file]);
    else files.push(file);
  }
  const hosts = [...byHost.keys()];
  assertReceipts(unverified, hosts);
  const read = new Map<string, HostFile>();
  for (const { name, path } of aids) {
    if (!hosts.some((host) => Object.hasOwn(host.aids, name))) {
      const known = hosts.flatMap((host) => Object.keys(host.aids).map((aid) => `${aid} (${host.name})`));
      throw usageError(
        `${printable(name)} is not an aid of any of the sources`,
        known.length === 0 ? 'they take none' : `aids are ${known.join(', ')}`,
      );
    }
    read.set(name, await readHostFile(context, path));
  }
  const sources: ReconcileSource[] = [];
  for (const [host, files] of byHost) {
    const own = [...read].filter(([name]) => Object.hasOwn(host.aids, name));
    const options = {
      ...defined({ occurredAt, timeZone, unverified: host.hasReceipts === true ? unverified : undefined }),
      ...(own.length === 0 ? {} : { aids: Object.fromEntries(own) }),
    };
    sources.push(await interruptible(context, () => readSource(host, files, options)));
  }
  return sources;
}
