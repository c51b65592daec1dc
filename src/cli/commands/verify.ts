/** `northroot verify`: checks a ledger offline and reports. */

import { setFlagsFromString } from 'node:v8';
import { examinePart, MAX_PARTS, openParts } from '#fast/step';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { BundleResult, TrustPolicy } from '../../format/schema/generated/types.js';
import {
  AnchorList,
  type AnchoringParent,
  anchorsToCheckpoints,
  type HeldAnchors,
  verifyAnchoringParent,
} from '../../log/fleet/anchor.js';
import { findLedgerId } from '../../log/fleet/list-fleet.js';
import { loadVerification, saveVerification } from '../../log/cache/saved-state.js';
import type { Prices } from '../../gate/price/price-file.js';
import { kindOfPath, readFileChunks, replaceFile } from '../../log/fs/file-system.js';
import { followLedger } from '../../log/fs/follow.js';
import { BaselineMatch, decideExitStatus, type FailOn } from '../../out/ci/baseline.js';
import { count } from '../../out/text/words.js';
import { type FindingFilter, matchesFilter } from '../../rules/report/finding-filter.js';
import { NOT_CHECKED_CODES, type NotCheckedCode, requireChecks } from '../../rules/report/not-checked.js';
import { buildLazyReport, type LazyReport } from '../../rules/report/report.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import {
  canGoOn,
  DEFAULT_MAX_FINDINGS,
  MAX_THREADS,
  MIN_MAX_MEMORY,
  runVerification,
  type VerificationResult,
} from '../../rules/verify/run-verification.js';
import type { RecordCheck } from '../../rules/verify/record-check.js';
import type { ParentLedger } from '../../rules/verify/parents.js';
import type { SavedVerification } from '../../rules/verify/verified-prefix.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Outcome, Run } from '../context.js';
import { openLedgerInput, readBundleInput, readTrustPolicy, STDIN } from '../input.js';
import { assertPatterns, assertSpan, byteSize, pastInstant, repeatable, wholeNumber } from '../options.js';
import { passkeyGapsOf, sayPasskeyGaps } from '../passkey-notes.js';
import { findGrantRecord } from '../selection.js';
import { shellWord } from '../shell-word.js';
import { assertFolderOf, assertTargets, filesOf, writeTarget } from '../targets.js';
import type { Terminal } from '../terminal.js';
import { addOutputs, type OutputOptions, readBaseline, VerifyOutputs } from '../verify-output.js';
import {
  addVerifying,
  filesOfVerifying,
  readVerifying,
  type Verifying,
  type VerifyingOptions,
} from '../verifying.js';
import { openScratchFile } from '../../log/fs/scratch-file.js';
import { renderBundleResult } from '../../out/text/bundle-result.js';
import {
  verifyBundle,
  type VerifyBundleOptions,
  verifyParentBundle,
} from '../../proof/bundle/verify-bundle.js';
import { jsonText } from '../json-text.js';

interface VerifyCommandOptions extends OutputOptions, VerifyingOptions {
  readonly predecessor?: string;
  readonly parent?: readonly string[];
  readonly failOn: FailOn;
  readonly require: readonly NotCheckedCode[];
  readonly since?: string;
  readonly until?: string;
  readonly principal?: string;
  readonly grant?: string;
  readonly state?: string;
  readonly new?: boolean;
  readonly threads?: number;
  readonly maxMemory?: number;
  readonly decisions?: boolean;
  readonly prices?: readonly string[];
  readonly watch?: boolean;
  readonly part?: PartNumber;
  readonly out?: string;
  readonly merge?: readonly string[];
}

/** What a part has no use for. */
const OPTIONS_OF_REPORTS = [
  ...[
    'witnessPolicy',
    'checkpoint',
    'predecessor',
    'parent',
    'now',
    'format',
    'output',
    'sarifAnchor',
    'baseline',
  ],
  ...['maxFindings', 'since', 'until', 'principal', 'grant', 'failOn', 'require', 'state', 'new'],
  ...['threads', 'maxMemory', 'watch', 'decisions', 'prices'],
];

export function addVerify(program: Command, run: Run): void {
  const command = program
    .command('verify')
    .summary('check a ledger offline')
    .description(
      'Checks a ledger (a file, a folder of segments, a tile tree, or - for standard input) or a bundle (export --bundle). Reads it once, uses no network, changes nothing. Exit status: 0 ok, 1 invalid, 3 violation, 2 could not decide.',
    )
    .argument('[path]', 'the ledger');
  addOutputs(addVerifying(command))
    .option('--predecessor <path>', 'the ledger that this one continues, as its genesis says')
    .addOption(
      new Option(
        '--parent <path>',
        'a ledger whose slices this one spends, or that anchored it, or a bundle of it (repeatable); it is verified first, and the two are compared',
      )
        .argParser((path: string, previous: readonly string[] = []) => [...previous, path])
        .conflicts('state'),
    )
    .addOption(
      new Option(
        '--decisions',
        'decide every denied action again by the grants, as they were there, and list those that they would have allowed',
      ).conflicts('state'),
    )
    .addOption(
      repeatable(
        '--prices <file>',
        'compute every amount in usd again from its tokens and this price file, if its execution names it',
      ).conflicts('state'),
    )
    .option('--max-findings <n>', 'list at most n findings; all are counted', wholeNumber(0), 1_000)
    .option(
      '--since <time>',
      'list only findings on events at this time or later: 2026-03-01, or 7d (ago)',
      pastInstant,
    )
    .option('--until <time>', 'list only findings on events before this time', pastInstant)
    .option('--principal <pattern>', 'list only findings on events of this principal; may end in *')
    .option('--grant <id>', 'list only findings on this grant and events under it (seq, id or id prefix)')
    .addOption(
      new Option('--fail-on <what>', 'the least that makes the exit status other than 0')
        .choices(['invalid', 'violation', 'warning'])
        .default('violation'),
    )
    .option(
      '--require <check>',
      'exit with 2 instead of 0 if this was not checked, such as TRUST or TRUNCATION (repeatable)',
      requirement,
      [],
    )
    .option(
      '--state <file>',
      'resume from the state in this file, if it exists, and save the new one; reports what is new',
    )
    .option('--new', 'with --state: list only findings since the state was saved')
    .option(
      '--threads <n>',
      'examine lines in n threads (default: one per processor); the result does not depend on it',
      wholeNumber(1, MAX_THREADS),
    )
    .option(
      '--max-memory <size>',
      'keep event ids in memory up to this size, such as 64MiB, then in temporary files (default: 96MiB)',
      memorySize,
    )
    .addOption(
      new Option(
        '--watch',
        'continue with new records until Ctrl-C: prints each finding at once, and a report at the end',
      ).conflicts(['state', 'baseline', 'merge']),
    )
    .addOption(
      new Option('--part <i/n>', 'verify only the signatures of part i of n, and write the result to --out')
        .argParser(partNumber)
        .conflicts([...OPTIONS_OF_REPORTS, 'merge']),
    )
    .option('--out <file>', 'with --part: the file to write')
    .addOption(
      new Option(
        '--merge <part...>',
        'instead of a ledger: all its parts; the report is that of one run, and says that the parts are trusted (PARTS)',
      ).conflicts('grant'),
    )
    .action((path: string | undefined, options: VerifyCommandOptions) => {
      const isFormatGiven = command.getOptionValueSource('format') === 'cli';
      return run((context) => verifyOrPart(context, path, options, isFormatGiven));
    });
}

function memorySize(text: string): number {
  const size = byteSize(text);
  if (size < MIN_MAX_MEMORY) throw new InvalidArgumentError('Expected at least 64KiB.');
  return size;
}

function requirement(text: string, previous: readonly NotCheckedCode[] = []): NotCheckedCode[] {
  const code = NOT_CHECKED_CODES.find((each) => each === text);
  if (code === undefined) throw new InvalidArgumentError(`Expected one of ${NOT_CHECKED_CODES.join(', ')}.`);
  return [...previous, code];
}

async function verifyOrPart(
  context: Context,
  path: string | undefined,
  options: VerifyCommandOptions,
  isFormatGiven: boolean,
): Promise<Outcome> {
  const { part, out, merge, watch = false } = options;
  const hint = 'northroot verify --help says what is expected';
  if (path !== undefined && merge !== undefined)
    throw usageError('--merge takes the place of a ledger', hint);
  if (path === undefined && merge === undefined) throw usageError("missing required argument 'path'", hint);
  if ((part === undefined) !== (out === undefined))
    throw usageError('--part and --out belong together', hint);
  if (watch && path === STDIN)
    throw usageError('standard input is read to its end: --watch is for files', hint);
  if (part === undefined || out === undefined || path === undefined) {
    const exitStatus = await verify(context, path, options, isFormatGiven);
    return watch ? { stopped: exitStatus } : exitStatus;
  }
  return writePart(context, path, part, out, options.trust);
}

async function verify(
  context: Context,
  ledger: string | undefined,
  options: VerifyCommandOptions,
  isFormatGiven: boolean,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const { maxFindings, merge = [] } = options;
  // Without a ledger, the parts are read.
  const path = ledger ?? merge[0] ?? '';
  const { trust, witnessPolicy, checkpoints } = await readVerifying(options, terminal);
  const bundle =
    ledger === undefined || options.watch === true ? undefined : await readBundleInput(path, context);
  if (bundle !== undefined) {
    if (options.require.length > 0)
      throw usageError('--require is about ledgers: a bundle says itself what it does not show');
    if (options.decisions === true || options.prices !== undefined)
      throw usageError('--decisions and --prices are about ledgers: a bundle has only some records of one');
    return verifyBundleFile(context, path, bundle, { ...options, trust, witnessPolicy, checkpoints });
  }
  assertChecksMade(options);
  const filter = await toFilter(context, path, options);
  if (options.state !== undefined) await assertFolderOf(options.state);
  const { new: onlyNew = false } = options;
  if (onlyNew && options.state === undefined)
    throw usageError('--new needs --state: it is about what is new since that was saved');
  const isFiltered = Object.keys(filter).length > 0;
  const baseline = await readBaseline(options.baseline);
  if (baseline !== undefined && (isFiltered || onlyNew))
    throw usageError('--baseline says what is new of all findings: it goes with no filter');
  const canSpool = options.state === undefined && !isFiltered;
  const outputs = new VerifyOutputs(terminal, options, isFormatGiven, canSpool);
  await outputs.check([
    ...(ledger === undefined ? merge : filesOf(path)),
    ...filesOfVerifying(options),
    ...[options.predecessor, options.state, options.baseline],
    ...(options.parent ?? []).flatMap(filesOf),
    ...(options.prices ?? []),
  ]);
  const checks = await makeChecks(options);
  const from = await readSavedVerification(
    options.state,
    { trust, witnessPolicy, checkpoints },
    // What was known before is not shown then.
    onlyNew ? 0 : isFiltered || baseline !== undefined ? 'filtered' : maxFindings,
  );
  const known = new Set(onlyNew ? from?.findings : []);
  const before = from?.state.records;
  const { watch = false } = options;
  const source = await openSource(context, ledger, options);
  if (watch) {
    context.endsInItsTime();
    outputs.goLive();
  }
  const predecessor = await openPredecessor(context, path, options.predecessor);
  const { parents, held } = await readParents(context, path, options, trust);
  const match = baseline === undefined ? undefined : new BaselineMatch(baseline);
  const release = holdYoungGeneration(source.size);
  const { result, exitStatus } = await outputs.write(async () => {
    const verification = await runVerification(source, {
      maxFindings: outputs.maxKept,
      // What is watched ends with a report when it is stopped.
      ...(watch ? {} : { signal }),
      ...(isFiltered || onlyNew
        ? { show: (finding) => matchesFilter(finding, filter) && !known.has(finding) }
        : {}),
      ...(match === undefined ? {} : { acknowledge: match.acknowledge }),
      ...defined({ trust, witnessPolicy, now: options.now }),
      checkpoints: [...checkpoints, ...held.flatMap((each) => each.checkpoints)],
      earlierCheckpoints: held.flatMap(({ earlierCheckpoints }) => earlierCheckpoints),
      ...defined({ predecessor, parents, from }),
      checks,
      keepPrefix: options.state !== undefined,
      ...defined({ threads: options.threads, maxMemory: options.maxMemory }),
      onProgress: (done, size) => terminal.progress(done, size),
      onFinding: (finding) => outputs.take(finding),
    }).finally(release);
    if (options.state !== undefined) sayResumed(terminal, options.state, before, verification);
    const whole = buildLazyReport(verification);
    const outcome = match?.finish(whole, verification, maxFindings);
    const report = requireChecks(outcome?.report ?? whole, options.require);
    sayBaseline(terminal, report, outcome?.isOfOther);
    sayShown(terminal, report, options.require);
    sayPasskeyGaps({ terminal }, passkeyGapsOf(verification.state));
    return {
      report,
      result: verification,
      exitStatus: decideExitStatus(report, verification.warnings, options.failOn, outcome?.fresh),
      outcome,
    };
  });
  // A state with broken evidence is not saved: a repaired ledger must be read again.
  if (options.state !== undefined && !result.state.hasInvalid) {
    const { state, kept: findings, prefix } = result;
    await replaceFile(options.state, saveVerification({ state, findings, prefix }));
  }
  return exitStatus;
}

/** What is required and not asked for would seem to be checked, since nothing says that it was not. */
function assertChecksMade({ require, decisions, prices }: VerifyCommandOptions): void {
  if (require.includes('DECISIONS') && decisions !== true)
    throw usageError('--require DECISIONS needs --decisions');
  if (require.includes('PRICES') && prices === undefined) throw usageError('--require PRICES needs --prices');
}

async function makeChecks({ decisions, prices: paths }: VerifyCommandOptions): Promise<RecordCheck[]> {
  const checks: RecordCheck[] = [];
  if (decisions === true) {
    const { checkDecisions } = await import('../../log/policy/check-decisions.js');
    checks.push(checkDecisions());
  }
  if (paths !== undefined) {
    const [{ checkPrices }, { openPrices }] = await Promise.all([
      import('../../gate/price/check-prices.js'),
      import('../../gate/price/open-prices.js'),
    ]);
    const files: Prices[] = [];
    for (const path of paths) files.push(await openPrices(path));
    checks.push(checkPrices(files));
  }
  return checks;
}

/** The ledger, followed with `--watch`; or its parts. */
async function openSource(
  context: Context,
  ledger: string | undefined,
  { merge = [], watch = false }: VerifyCommandOptions,
): Promise<LedgerSource> {
  if (ledger === undefined) return openPartFiles(merge);
  if (!watch) return openLedgerInput(ledger, context);
  const { terminal, signal } = context;
  const onCaughtUp = (): void => terminal.say('watching for new records, until Ctrl-C');
  return followLedger(ledger, { signal, wholeLines: true, onCaughtUp });
}

/** What a baseline does not list, it does not acknowledge. */
function sayBaseline(terminal: Terminal, { baseline }: LazyReport, isOfOther = false): void {
  if (isOfOther) terminal.say('the baseline is of a ledger of another origin, and acknowledges nothing');
  if (baseline === undefined || baseline.unlisted === 0) return;
  terminal.say(
    `the baseline was cut: it counts ${baseline.unlisted} findings that it does not list, and acknowledges none of these; a higher --max-findings makes one that lists all`,
  );
}

/** Says up to which record a required check was made, if not for all. */
function sayShown(
  terminal: Terminal,
  { not_checked: list, ledger }: LazyReport,
  required: readonly string[],
): void {
  for (const { code, required: isOpen = false, shown_before_seq: before } of list) {
    if (before === undefined || isOpen || !required.includes(code)) continue;
    terminal.say(
      `${code} is shown up to seq ${before - 1}, and not for ${count(ledger.records - before, 'record')} after it`,
    );
  }
}

/** Says whether verification was resumed, and how many records are new. */
function sayResumed(
  terminal: Terminal,
  path: string,
  before: number | undefined,
  { state }: VerificationResult,
): void {
  const name = printable(path);
  if (before === undefined) terminal.say(`verified from the beginning: there is no usable state in ${name}`);
  else
    terminal.say(
      `resumed from ${name}: ${before} records were verified before, ${state.records - before} are new`,
    );
  if (state.hasInvalid) terminal.say(`the state was not saved to ${name}: the evidence is broken`);
}

async function openPredecessor(
  context: Context,
  ledger: string,
  path: string | undefined,
): Promise<LedgerSource | undefined> {
  if (path === STDIN && ledger === STDIN)
    throw usageError('standard input cannot be both the ledger and its predecessor');
  return path === undefined ? undefined : openLedgerInput(path, context);
}

interface GivenParents {
  readonly parents?: readonly ParentLedger[];
  /** What they anchored of the ledger, as checkpoints that the user holds. */
  readonly held: readonly HeldAnchors[];
}

/** A bundle holds the slice, its start and its grants; and perhaps anchors. */
async function verifyAnchoringBundle(
  bytes: Uint8Array,
  options: Pick<VerifyBundleOptions, 'name' | 'trust' | 'now'>,
): Promise<Pick<AnchoringParent, 'parent' | 'anchors'>> {
  const list = new AnchorList();
  const { parent } = await verifyParentBundle(bytes, {
    ...options,
    onRecord: ({ examined, ordinal }) => {
      if (examined !== undefined) list.take(examined, ordinal);
      return undefined;
    },
  });
  return { parent, anchors: parent.isInvalid ? new Map() : list.anchors };
}

/** Verifies the parents, one after the other. */
async function readParents(
  context: Context,
  ledger: string,
  { parent: paths, threads, maxMemory, now }: VerifyCommandOptions,
  trust: TrustPolicy | undefined,
): Promise<GivenParents> {
  if (paths === undefined) return { held: [] };
  if ([ledger, ...paths].filter((path) => path === STDIN).length > 1)
    throw usageError('standard input can be only one ledger');
  const ledgerId = ledger === STDIN ? undefined : await findLedgerId(ledger, context.signal);
  if (ledgerId === undefined)
    context.terminal.say('note: anchors are compared only where the ledger can be read twice');
  const parents: ParentLedger[] = [];
  const held: HeldAnchors[] = [];
  for (const path of paths) {
    const bundle = await readBundleInput(path, context);
    const verified =
      bundle === undefined
        ? await verifyAnchoringParent(await openLedgerInput(path, context), {
            maxFindings: 0,
            signal: context.signal,
            ...defined({ trust, now, threads, maxMemory }),
          })
        : await verifyAnchoringBundle(bundle, { name: path, ...defined({ trust, now }) });
    if (parents.some((each) => each.ledgerId === verified.parent.ledgerId))
      throw usageError(`--parent ${printable(path)}: expected each ledger once`);
    if (verified.parent.isInvalid)
      context.terminal.say(`note: ${printable(path)} is itself invalid: its anchors are not compared`);
    parents.push(verified.parent);
    const own = ledgerId === undefined ? undefined : verified.anchors.get(ledgerId);
    held.push(anchorsToCheckpoints(own ?? [], path));
  }
  return { parents, held };
}

async function toFilter(
  context: Context,
  path: string,
  options: VerifyCommandOptions,
): Promise<FindingFilter> {
  const { since, until, principal, grant } = options;
  assertSpan(since, until);
  assertPatterns({ principal });
  const { record, isGrant } = await findGrantRecord(context, path, grant);
  if (record !== undefined && !isGrant) {
    // No finding could be about it.
    throw new CommandError('GRANT_NOT_FOUND', `${printable(record.eventId)} is not a grant`, {
      exitStatus: 2,
      hint: `northroot budget ${shellWord(path)} lists the grants`,
    });
  }
  return {
    ...defined({ since, until, principal }),
    ...(record === undefined ? {} : { grantId: record.eventId }),
  };
}

type Policies = Pick<Verifying, 'trust' | 'witnessPolicy' | 'checkpoints'>;

/**
 * The verification to resume, if it leads to the same report as one pass: under the same policies, by the same
 * version, with all the findings that are to be shown.
 */
async function readSavedVerification(
  path: string | undefined,
  policies: Policies,
  shown: number | 'filtered',
): Promise<SavedVerification | undefined> {
  if (path === undefined || (await kindOfPath(path)) === 'missing') return undefined;
  const saved = await tryLoad(path);
  if (saved === undefined) return undefined;
  const { policy, witnessPolicy } = saved.state;
  const isSame =
    JSON.stringify([policy, witnessPolicy]) === JSON.stringify([policies.trust, policies.witnessPolicy]);
  const isWhole =
    shown === 'filtered'
      ? // What folded is not there to be shown in place of what is not.
        saved.findings.every(({ folded }) => folded === undefined) &&
        [...saved.state.links.pending.values()].every(({ others }) => others === 0) &&
        saved.findings.length === saved.state.findings
      : saved.findings.length === saved.state.findings || shown <= DEFAULT_MAX_FINDINGS;
  return isSame && isWhole && canGoOn(saved, policies.checkpoints) ? saved : undefined;
}

async function tryLoad(path: string): Promise<SavedVerification | undefined> {
  try {
    return await loadVerification(path);
  } catch (error) {
    if (error instanceof NorthrootError && error.code === 'STATE_OUTDATED') return undefined;
    throw error;
  }
}

const INTERVAL_MS = 20;
/** Smaller inputs are read before the space grows much. */
const MIN_BYTES = 8 * 1024 * 1024;
/** The last release of V8 known to have the flag; V8 reports unknown flags on standard error. */
const MAX_VERSION = 13;

/**
 * Keeps this thread's space for new objects from growing: V8 would double it, up to 48 MB, though the fast path makes few objects. Other
 * threads have a limit (`base/platform/node.ts`). V8 resets the flag whenever a thread starts, so it is set repeatedly.
 *
 * @param size - The size of the input in bytes, if known.
 * @returns stops that
 */
function holdYoungGeneration(size = Infinity): () => void {
  if (size < MIN_BYTES || Number.parseInt(process.versions.v8, 10) > MAX_VERSION) return () => undefined;
  const timer = setInterval(() => setFlagsFromString('--semi-space-growth-factor=1'), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

interface PartNumber {
  readonly part: number;
  readonly of: number;
}

/** Parses `I/N`. */
function partNumber(text: string): PartNumber {
  const [, part, of] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  const number = { part: Number(part), of: Number(of) };
  if (part === undefined || number.part < 1 || number.part > number.of || number.of > MAX_PARTS)
    throw new InvalidArgumentError(`Expected a part and their number, such as 2/4; at most ${MAX_PARTS}.`);
  return number;
}

/** Verifies one part, and writes it. The report is made when the parts are merged. */
async function writePart(
  context: Context,
  ledger: string,
  { part, of }: PartNumber,
  target: string,
  trust: string | undefined,
): Promise<ExitStatus> {
  const policy = await readTrustPolicy(trust);
  if (ledger === STDIN) throw usageError('standard input has no parts: each part reads the ledger itself');
  const { terminal, signal } = context;
  await assertTargets([{ path: target, kind: 'file' }], [...filesOf(ledger), trust]);
  const source = await openLedgerInput(ledger, context);
  const pieces = examinePart(source, {
    part,
    of,
    signal,
    ...(policy === undefined ? {} : { keys: policy.keys }),
  });
  await writeTarget(terminal, target, async (sink) => {
    for await (const piece of pieces) await sink.write(piece);
  });
  terminal.say(
    `part ${part} of ${of} of ${printable(ledger)} is in ${printable(target)}; northroot verify --merge reports on all parts`,
  );
  return 0;
}

async function openPartFiles(paths: readonly string[]): Promise<LedgerSource> {
  const source = await openParts(paths.map((path) => ({ name: path, open: () => readFileChunks(path) })));
  return { ...source, openScratch: openScratchFile };
}

const OF_LEDGERS = [
  ...(['predecessor', 'parent', 'since', 'until', 'principal', 'grant', 'state', 'new', 'baseline'] as const),
  'sarifAnchor',
] as const;

async function verifyBundleFile(
  { terminal, signal }: Context,
  path: string,
  bytes: Uint8Array,
  options: Omit<VerifyCommandOptions, keyof Policies> & Policies,
): Promise<ExitStatus> {
  const wrong = OF_LEDGERS.find((name) => options[name] !== undefined);
  const flag =
    wrong === 'sarifAnchor' ? 'sarif-anchor' : (wrong ?? (options.output.length > 0 ? 'output' : undefined));
  if (flag !== undefined) throw usageError(`--${flag} is for ledgers, and this is a bundle`);
  const { trust, witnessPolicy, checkpoints, now, format, failOn, maxFindings } = options;
  if (format !== 'text' && format !== 'json')
    throw usageError(
      `the result on a bundle is written as text or json, not as ${format}`,
      'northroot verify BUNDLE --format json > FILE, and go by the exit status',
    );
  const found = await verifyBundle(bytes, { name: path, trust, witnessPolicy, checkpoints, now, signal });
  const result = cut(found, maxFindings);
  const text =
    format === 'json' ? `${jsonText(result, 2)}\n` : renderBundleResult(result, path, terminal.paint);
  await terminal.write(text);
  const { verdict, exit_status: status, findings } = found;
  if (failOn === 'invalid' && verdict === 'violation') return 0;
  const hasWarnings = findings.some(({ severity }) => severity === 'warning');
  return failOn === 'warning' && verdict === 'ok' && hasWarnings ? 3 : status;
}

/** The result with at most so many findings listed. */
function cut(result: BundleResult, most: number): BundleResult {
  const { report, findings } = result;
  return {
    ...result,
    findings: findings.slice(0, most),
    ...(report === undefined
      ? {}
      : { report: { ...report, findings: (report.findings ?? []).slice(0, most) } }),
  };
}
