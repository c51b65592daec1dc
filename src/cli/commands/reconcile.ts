/** `northroot reconcile`: a ledger against what other systems recorded of the same calls. */

import { Option, type Command } from 'commander';
import {
  HOSTS,
  kindOfPath,
  listFiles,
  MAX_EXPECTATION_BYTES,
  parseExpectation,
  plainPaint,
  printable,
  readSmallFile,
  readSource,
  recogniseHost,
  reconcileLedger,
  renderReconciliation,
  renderReconciliationMarkdown,
  replaceFile,
  type Host,
  type HostFile,
  type ReconcileReport,
  type ReconcileSource,
} from '../../index.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus } from '../context.js';
import {
  openLedgerInput,
  readAnchors,
  readInput,
  readTrustPolicy,
  readWitnessPolicy,
  STDIN,
} from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, instant, wholeNumber } from '../options.js';
import { addSelection, toSelection, type SelectionOptions } from '../selection.js';
import { assertTargets, filesOf, STDOUT } from '../targets.js';

const FORMATS = ['text', 'markdown', 'json'] as const;
type Format = (typeof FORMATS)[number];

/** The most that one file may have, in bytes: all of it is read before anything is compared. */
const MAX_FILE_BYTES = 512 * 1024 * 1024;

interface ReconcileOptions extends SelectionOptions {
  readonly from?: string;
  readonly aid: readonly string[];
  readonly occurredAt?: string;
  readonly expect?: string;
  readonly allowMissing?: boolean;
  readonly window: number;
  readonly maxListed: number;
  readonly format: Format;
  readonly output: readonly string[];
  readonly trust?: string;
  readonly witnessPolicy?: string;
  readonly checkpoint: readonly string[];
  readonly now?: string;
}

export function addReconcile(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  const command = program
    .command('reconcile')
    .summary('compare a ledger with what other systems recorded')
    .description(
      'Verifies a ledger and compares it, call by call, with logs, transcripts and usage records of other systems: what both have and agree on, what only one has, what they contradict each other in, and sums of every unit. It says nothing of what nobody recorded. The exit status is 0 where nothing is contradicted, 1 for evidence that is broken, contradictory or missing in the ledger, 3 for something that was not allowed, 2 where nothing could be compared.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .argument(
      '<sources...>',
      'files of other systems, or folders of them, each as HOST=PATH, or as PATH where one host alone takes it for its own',
    )
    .addOption(
      new Option('--from <host>', 'the host of all sources that name none').choices(
        HOSTS.map(({ name }) => name),
      ),
    )
    .option(
      '--aid <name=path>',
      'a file that is no traffic but helps to read it; see import. May be given again',
      collect,
      [],
    )
    .option(
      '--occurred-at <time>',
      'for items that state no time, and that no item with one comes before',
      instant,
    )
    .option(
      '--expect <file>',
      'what was promised beforehand: tools, counts, a window of time, sequences (JSON)',
    )
    .option('--allow-missing', 'what a source executed and the ledger does not have is a warning')
    .option(
      '--window <n>',
      'how many seconds apart calls may be that have no id in common',
      wholeNumber(0),
      300,
    );
  addSelection(command)
    .addOption(new Option('--format <format>', 'of the report').choices(FORMATS).default('text'))
    .option(
      '--output <format=path>',
      'write the report to a file too, in any of these formats; may be given again',
      collect,
      [],
    )
    .option('--max-listed <n>', 'the most calls, and the most findings, in the report', wholeNumber(0), 1_000)
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
    .action((ledger: string, sources: string[], options: ReconcileOptions) =>
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
  const outputs = options.output.map(toOutput);
  const inputs = await inputsOf(given, options.from, ledger);
  const aids = options.aid.map(toAid);
  await assertTargets(
    outputs.map(({ path }) => ({ path, kind: 'file' })),
    [
      ...filesOf(ledger),
      ...inputs.map(({ path }) => path),
      ...aids.map(({ path }) => path),
      options.expect,
      options.trust,
      options.witnessPolicy,
      ...options.checkpoint,
    ],
  );
  const trust = await readTrustPolicy(options.trust);
  const witnessPolicy = await readWitnessPolicy(options.witnessPolicy, terminal);
  const checkpoints = await readAnchors(options.checkpoint);
  const expectation =
    options.expect === undefined
      ? undefined
      : parseExpectation(await readSmallFile(options.expect, MAX_EXPECTATION_BYTES));
  const selection = await toSelection(context, ledger, options);
  const sources = await readSources(context, inputs, aids, options.occurredAt);
  const report = await reconcileLedger(await openLedgerInput(ledger, context), sources, {
    selection,
    expectation,
    trust,
    witnessPolicy,
    checkpoints,
    signal,
    allowsMissing: options.allowMissing,
    windowSeconds: options.window,
    maxListed: options.maxListed,
    now: options.now,
    onProgress: (done, size) => terminal.progress(done, size),
  });
  for (const { format, path } of outputs) await replaceFile(path, Buffer.from(render(format, report)));
  const { format } = options;
  await terminal.write(
    format === 'text' ? renderReconciliation(report, terminal.paint) : render(format, report),
  );
  return report.exit_status;
}

function render(format: Format, report: ReconcileReport): string {
  switch (format) {
    case 'text':
      return renderReconciliation(report, plainPaint);
    case 'markdown':
      return renderReconciliationMarkdown(report);
    case 'json':
      return `${jsonText(report, 2)}\n`;
  }
}

interface Input {
  readonly path: string;
  /** As the user said; otherwise it is recognised. */
  readonly host: Host | undefined;
}

/** The files, in place of folders the files in them; each once. */
async function inputsOf(
  given: readonly string[],
  from: string | undefined,
  ledger: string,
): Promise<readonly Input[]> {
  const inputs = new Map<string, Input>();
  for (const text of given) {
    const [, name, rest = text] = /^([a-z0-9-]+)=(.+)$/s.exec(text) ?? [];
    const named = hostOf(name);
    const [path, host] = named === undefined ? [text, hostOf(from)] : [rest, named];
    const isFolder = path !== STDIN && (await kindOfPath(path)) === 'folder';
    for (const file of isFolder ? await listFiles(path) : [path]) {
      const key = `${host?.name ?? ''}=${file}`;
      if (file === STDIN && (ledger === STDIN || inputs.has(key)))
        throw new CommandError('USAGE', 'standard input can be read once only');
      inputs.set(key, { path: file, host });
    }
  }
  return [...inputs.values()];
}

function hostOf(name: string | undefined): Host | undefined {
  return name === undefined ? undefined : HOSTS.find((host) => host.name === name);
}

/** The files of one host are one source: it tells what they repeat of each other. */
async function readSources(
  context: Context,
  inputs: readonly Input[],
  aids: readonly { readonly name: string; readonly path: string }[],
  occurredAt: string | undefined,
): Promise<readonly ReconcileSource[]> {
  const byHost = new Map<Host, HostFile[]>();
  for (const { path, host } of inputs) {
    const file: HostFile = {
      name: path === STDIN ? 'stdin' : path,
      bytes: await readInput(path, context, MAX_FILE_BYTES),
    };
    const its = host ?? recogniseHost(file, HOSTS);
    const files = byHost.get(its);
    if (files === undefined) byHost.set(its, [file]);
    else files.push(file);
  }
  const hosts = [...byHost.keys()];
  const read = new Map<string, HostFile>();
  for (const { name, path } of aids) {
    if (!hosts.some((host) => Object.hasOwn(host.aids, name))) {
      const known = hosts.flatMap((host) => Object.keys(host.aids).map((aid) => `${aid} (${host.name})`));
      throw new CommandError('USAGE', `${printable(name)} is not an aid of any of the sources`, {
        hint: known.length === 0 ? 'they take none' : `aids are ${known.join(', ')}`,
      });
    }
    read.set(name, { name: path, bytes: await readInput(path, context, MAX_FILE_BYTES) });
  }
  return [...byHost].map(([host, files]) => {
    const own = [...read].filter(([name]) => Object.hasOwn(host.aids, name));
    return readSource(host, files, {
      ...(occurredAt === undefined ? {} : { occurredAt }),
      ...(own.length === 0 ? {} : { aids: Object.fromEntries(own) }),
    });
  });
}

function toAid(text: string): { readonly name: string; readonly path: string } {
  const [, name, path] = /^([a-z0-9-]+)=(.+)$/s.exec(text) ?? [];
  if (name !== undefined && path !== undefined && path !== STDIN) return { name, path };
  throw new CommandError('USAGE', `${printable(text)} is not the name of an aid and its path`);
}

function toOutput(text: string): { readonly format: Format; readonly path: string } {
  const [, name, path = ''] = /^([a-z]+)=(.+)$/s.exec(text) ?? [];
  const format = FORMATS.find((each) => each === name);
  if (format !== undefined && path !== STDOUT) return { format, path };
  throw new CommandError('USAGE', `${printable(text)} is not a format and a path`, {
    hint: `such as json=reconcile.json; formats are ${FORMATS.join(', ')}`,
  });
}
