/** `northroot import` and `northroot check`: records of other systems, checked by their own rules, and imported. */

import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import type { ImportReport } from '../../format/schema/generated/types.js';
import type { Host, HostFile } from '../../hosts/shared/host.js';
import { reportCheck, reportImport } from '../../hosts/shared/import-report.js';
import {
  appendImport,
  firstTimeOf,
  ImportOutdatedError,
  planReading,
  readKnownLedger,
} from '../../hosts/shared/import.js';
import { checkHost, type HostReadOptions, readHost } from '../../hosts/shared/read-host.js';
import { CHECKERS, HOSTS } from '../../hosts/shared/registry.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { isEmptyLedger } from '../../log/writer/genesis.js';
import type { Ledger } from '../../log/writer/ledger.js';
import { renderImport, renderImportMarkdown } from '../../out/text/import-text.js';
import { plainPaint } from '../../out/text/guide.js';
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
import { assertStdinOnce, STDIN } from '../input.js';
import { interruptible } from '../interruptible.js';
import {
  addReportOutput,
  DOCUMENT_FORMATS,
  type DocumentFormat,
  renderDocument,
  type ReportOutputOptions,
  screenFormat,
  targetsOf,
  writeReportFiles,
} from '../report-output.js';
import { shellWord } from '../shell-word.js';
import { assertTargets, filesOf, STDOUT } from '../targets.js';
import {
  assertOneSigning,
  KEY,
  noLedger,
  openOrCreate,
  withWriting,
  type WritingChoice,
} from './ledger-key.js';

interface ReadingOptions extends HostReadingOptions, ReportOutputOptions<DocumentFormat> {}

interface ImportOptions extends ReadingOptions, Omit<WritingChoice, 'key'> {
  readonly from?: string;
  readonly ledger?: string;
  readonly check?: boolean;
  readonly create?: boolean;
  readonly origin?: string;
  readonly key?: string;
  readonly unsigned?: boolean;
}

/** How often another import may interfere before this one gives up. */
const MAX_ATTEMPTS = 20;

export function addImport(program: Command, run: Run): void {
  const command = program
    .command('import')
    .summary('import records of other systems')
    .description(
      `Reads files of another system, checks them against that system's rules, and converts them to authorizations, executions and evidence. With --ledger, appends these events; otherwise writes them to standard output, ready for append, and the report to standard error. The report accounts for every item, and nothing is invented. Importing the same files again adds nothing. Exit status as verify: 0 ok, 1 invalid, 3 violation, 2 could not decide.`,
    )
    .argument('<files...>', 'files of the system, or folders of them; - for standard input')
    .addOption(new Option('--from <host>', 'the system').choices(HOSTS.map(({ name }) => name)))
    .option('--ledger <path>', 'append to this ledger')
    .option('--check', 'only report: write no events')
    .option('--create', 'create the ledger if it does not exist, with the time of the first record')
    .option('--origin <name>', "the new ledger's unique name (as with --create)")
    .option(...KEY)
    .option('--unsigned', 'sign nothing; a new ledger then declares no key');
  addReading(withWriting(command)).action((files: string[], options: ImportOptions) =>
    run((context) => importFiles(context, files, options)),
  );
}

export function addCheck(program: Command, run: Run): void {
  const command = program
    .command('check')
    .summary("check files against another system's rules")
    .description(
      'Checks files against a published profile of another system, and reports violations with rule, file and line. Writes only the report. Exit status as verify: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
    )
    .argument('<files...>', 'files, or folders of them; - for standard input')
    .addOption(
      new Option('--as <profile>', 'the profile to check against').choices(CHECKERS.map(({ name }) => name)),
    );
  addReading(command).action((files: string[], options: ReadingOptions & { readonly as?: string }) =>
    run((context) => check(context, files, options)),
  );
}

/** Refuses a missing host or profile, and lists the known ones. */
function refuseUnnamed(option: string, known: readonly Pick<Host, 'name' | 'title'>[]): never {
  const all = known.map(({ name, title }) => `${name} (${title})`).join(', ');
  throw usageError(`${option} is missing`, `one of ${all}`);
}

function addReading(command: Command): Command {
  return addReportOutput(addHostReading(command), DOCUMENT_FORMATS);
}

async function importFiles(
  context: Context,
  paths: readonly string[],
  options: ImportOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const host = HOSTS.find(({ name }) => name === options.from) ?? refuseUnnamed('--from', HOSTS);
  const { ledger: path, check: isCheck = false } = options;
  assertCombination(options);
  const { files, hostOptions } = await readAll(context, host, paths, options, path);
  const reading = await interruptible(context, () => readHost(host, files, hostOptions));
  const about = { files: files.map(({ name }) => name) };
  if (path === undefined) {
    const plan = await interruptible(context, () => planReading(host, reading));
    if (isCheck) return report(context, reportImport(plan, undefined, about), options);
    for (const { event } of plan.events) {
      // A reader may take nothing for as long as it likes.
      await interruptible(context, () => terminal.write(`${canonicalText(event)}\n`));
    }
    return report(context, reportImport(plan, undefined, about), options, 'stderr');
  }
  const isNew = await isEmptyLedger(path);
  if (isNew && !isCheck && options.create !== true && options.origin === undefined)
    throw await noLedger(
      path,
      `northroot import --create --ledger ${shellWord(path)} makes it and appends to it`,
    );
  // Without claims no ledger is made.
  if (isCheck || (isNew && reading.claims.length === 0)) {
    const into = isNew ? undefined : await readKnownLedger(await openLedger(path), host.name, signal);
    const plan = await interruptible(context, () => planReading(host, reading, into));
    return report(context, reportImport(plan, undefined, about), options);
  }
  let before = 0;
  for (let attempt = 1; ; attempt += 1) {
    const time = isNew && attempt === 1 ? firstTimeOf(reading) : undefined;
    const ledger = await openTarget(context, path, options, time);
    let done: ImportReport;
    try {
      const into = await readKnownLedger(await openLedger(path), host.name, signal);
      const plan = await interruptible(context, () => planReading(host, reading, into));
      const { appended, existing } = await appendImport(ledger, plan, { signal });
      done = reportImport(plan, { appended: before + appended, existing }, about);
    } catch (error) {
      // Another import ran meanwhile: its records stay.
      if (!(error instanceof ImportOutdatedError) || attempt === MAX_ATTEMPTS) throw error;
      before += error.result.appended;
      continue;
    } finally {
      await ledger.close();
    }
    return report(context, done, options);
  }
}

function assertCombination({
  ledger,
  check: isCheck,
  output,
  create,
  origin,
  key,
  unsigned,
}: ImportOptions): void {
  if (ledger === undefined && isCheck !== true && output.some(({ path }) => path === STDOUT))
    throw usageError('standard output has the events', '--check reports only, and --ledger appends them');
  assertOneSigning({ key, unsigned });
  const writing = { create, origin, key, unsigned };
  for (const [name, value] of Object.entries(writing)) {
    if (value === undefined) continue;
    if (ledger === undefined) throw usageError(`--${name} wants --ledger`);
    if (isCheck === true) throw usageError(`--${name} and --check exclude each other`);
  }
}

/** @param time - The time of the first record, for a ledger that is made. */
function openTarget(
  context: Context,
  path: string,
  options: ImportOptions,
  time: string | undefined,
): Promise<Ledger> {
  const create = defined({ origin: options.origin });
  return openOrCreate(context, path, options, {
    ...(time === undefined ? {} : { now: () => time, create }),
    stopsAtRefusal: true,
  });
}

async function check(
  context: Context,
  paths: readonly string[],
  options: ReadingOptions & { readonly as?: string },
): Promise<ExitStatus> {
  const checker = CHECKERS.find(({ name }) => name === options.as) ?? refuseUnnamed('--as', CHECKERS);
  const { files, hostOptions } = await readAll(context, checker, paths, options, undefined);
  const about = { files: files.map(({ name }) => name) };
  const found = await interruptible(context, () => checkHost(checker, files, hostOptions));
  return report(context, reportCheck(checker, found, about), options);
}

interface Read {
  readonly files: readonly HostFile[];
  readonly hostOptions: HostReadOptions;
}

/** Reads all files, after checking the command line. */
async function readAll(
  context: Context,
  subject: Pick<Host, 'aids' | 'name' | 'hasReceipts'>,
  paths: readonly string[],
  { aid, output, occurredAt, timeZone, unverified }: ReadingOptions,
  ledger: string | undefined,
): Promise<Read> {
  const aids = aid.map((text) => assertAid(toAid(text), subject));
  assertReceipts(unverified, [subject]);
  assertStdinOnce(paths);
  const inputs = new Map<string, string>();
  for (const path of paths) {
    for (const found of await filesAt(context, path)) {
      // The folder of logs may contain the ledger that is made from them.
      const isOwn = found !== path && ledger !== undefined && isOf(ledger, found);
      const place = found === STDIN ? STDIN : resolve(found);
      if (!isOwn && !inputs.has(place)) inputs.set(place, found);
    }
  }
  await assertTargets(targetsOf(output), [
    ...inputs.values(),
    ...aids.map(({ path }) => path),
    ...(ledger === undefined ? [] : filesOf(ledger)),
  ]);
  const files: HostFile[] = [];
  for (const path of inputs.values()) files.push(await readHostFile(context, path));
  const read: Record<string, HostFile> = {};
  for (const { name, path } of aids) read[name] = await readHostFile(context, path);
  return {
    files,
    hostOptions: {
      ...defined({ occurredAt, timeZone, unverified }),
      ...(aids.length === 0 ? {} : { aids: read }),
    },
  };
}

/** Whether a path is the ledger, or a file named after it, such as its key. */
function isOf(ledger: string, path: string): boolean {
  const [own, other] = [resolve(ledger), resolve(path)];
  return other === own || other.startsWith(`${own}.`);
}

function assertAid(aid: Aid, { aids, name: of }: Pick<Host, 'aids' | 'name'>): Aid {
  const names = Object.keys(aids);
  if (names.includes(aid.name)) return aid;
  const known = names.map((each) => `${each} (${aids[each] ?? ''})`).join(', ');
  const like = didYouMean(aid.name, names);
  const taken = names.length === 0 ? `${of} takes none` : `aids are ${known}`;
  throw usageError(
    `${printable(aid.name)} is not an aid of ${of}`,
    like === undefined ? taken : `${like} ${taken}`,
  );
}

async function report(
  context: Context,
  result: ImportReport,
  options: ReadingOptions,
  to: 'stdout' | 'stderr' = 'stdout',
): Promise<ExitStatus> {
  const { terminal } = context;
  const write = renderDocument(result, { text: renderImport, markdown: renderImportMarkdown });
  const notice = authorityNotice(result);
  if (notice !== undefined) terminal.say(notice);
  await writeReportFiles(options, write);
  await interruptible(context, () =>
    to === 'stdout'
      ? terminal.write(write(screenFormat(options), terminal.paint))
      : terminal.say(write(options.format, plainPaint).trimEnd()),
  );
  hintAtTimeZone(context, result.findings);
  return result.exit_status;
}

/** Warns if imported authority could be mistaken for the ledger's own. */
function authorityNotice({ imported_authority: authority, subject }: ImportReport): string | undefined {
  if (authority === undefined) return undefined;
  const { grants, actions, credits, own_grants: own } = authority;
  if (grants + credits === 0 && (own === 0 || actions === 0)) return undefined;
  const counts = `grants: ${grants}, allowed actions: ${actions}, credits: ${credits}`;
  const beside = own === 0 ? '' : `, beside grants of the ledger's own: ${own}`;
  return `note: IMPORTED_AUTHORITY: imported authority is claimed by ${subject.name} alone (${counts}${beside}); authorize and record ignore it without --honour-imported ${subject.name}`;
}
