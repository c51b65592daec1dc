/**
 * `northroot append`: events in, one a line, from files or a pipe; one result line out for each, once it is on disk. Reading
 * continues while earlier events are being written, so that a fast pipe is written in groups.
 */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { EventError } from '../../format/event/validate.js';
import type { Finding } from '../../format/finding/finding.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import type { CheckpointSchedule } from '../../log/writer/checkpoint.js';
import type { Ledger } from '../../log/writer/ledger.js';
import {
  type CheckpointResult,
  type Entry,
  MAX_SIGNING_THREADS,
  type Notice,
} from '../../log/writer/options.js';
import { count } from '../../out/text/words.js';
import { toFindingJson } from '../../rules/report/report.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { Backlog } from '../backlog.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { exitStatusForRefusal } from '../exit-status.js';
import { assertStdinOnce, readStart, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { byteSize, checkpointSchedule, extensionType, principalId, wholeNumber } from '../options.js';
import { ResultLines } from '../result-lines.js';
import { shellWord } from '../shell-word.js';
import { assertApart } from '../targets.js';
import { viewOf } from '../view.js';
import { withEntitledKeys } from './append-draft.js';
import { AMOUNT, InputError, readEvents, type ReadInput, resolveEntry } from './append-input.js';
import {
  assertOneSigning,
  isMissing,
  noLedger,
  KEY,
  notePathOf,
  openOrCreate,
  prepareStateFolder,
  withWriting,
  type WritingChoice,
} from './ledger-key.js';
import { describeNotice } from './notices.js';

interface AppendOptions extends WritingChoice {
  readonly key?: string;
  readonly principal?: string;
  readonly create?: boolean;
  readonly origin?: string;
  readonly quantities?: boolean;
  readonly type?: string;
  readonly foreignAs?: string;
  readonly existing: 'ok' | 'refuse';
  readonly unsigned?: boolean;
  readonly segmentBytes?: number;
  readonly checkpointEvery?: CheckpointSchedule;
  readonly strict?: boolean;
  readonly note?: string;
  readonly signingThreads?: number;
}

export function addAppend(program: Command, run: Run): void {
  const command = program
    .command('append')
    .summary('append events, as JSON')
    .description(
      'Appends events from files or standard input: JSON objects, one or more per line, over several lines, or in an array. Each is a draft (event_type and its members; the envelope and the ids are added), a whole event (its ids are checked), or {"event":…,"meta":{…},"signatures":[…]}. A Northroot journal (.nrj) is detected by its first bytes. Writes one result line per event once it is on disk, with its findings. Stops at the first refused event; earlier events stay. The ledger must exist, unless --create or --origin is given, which make it as init does.',
    )
    .argument('<ledger>', 'the file or folder to append to')
    .argument('[files...]', 'files of events; - or none for standard input')
    .option(...KEY)
    .option('--unsigned', 'sign nothing; a new ledger then declares no key')
    .option('--principal <id>', 'the principal of drafts that have none', principalId)
    .option('--type <type>', 'the event_type of drafts that have none, such as x.build')
    .addOption(
      new Option(
        '--existing <how>',
        'an event that is already in the ledger: ok reports its position ("status":"exists"), refuse stops',
      )
        .choices(['ok', 'refuse'])
        .default('ok'),
    )
    .option(
      '--foreign-as <type>',
      'for journals: wrap events of other formats in extension events of this type, such as x.journal, under journal_event',
      extensionType,
    )
    .option('--create', 'make the ledger if it does not exist')
    .option(
      '--origin <name>',
      "the ledger's unique name: a new one gets it (as with --create), another must have it",
    )
    .option(
      '--quantities',
      'convert JSON numbers in amounts, and strings such as "0.25", to exact quantities',
    )
    .option(
      '--strict',
      'refuse an event that would make the ledger invalid, such as an execution of an unknown authorization',
    )
    .option(
      '--segment-bytes <size>',
      'in a folder, start a new segment at this size (default: 64MiB)',
      byteSize,
    )
    .option(
      '--checkpoint-every <n>',
      'make a checkpoint after this many records, or this long after the last one: 1000, or 30s, 15m, 1h, 1d',
      checkpointSchedule,
    )
    .option('--note <file>', 'where to write the note of each checkpoint (default: LEDGER.checkpoint)')
    .option(
      '--signing-threads <n>',
      'sign in this many extra threads when hundreds of events wait (default: 1, or 0 with one processor); the output does not depend on it',
      wholeNumber(0, MAX_SIGNING_THREADS),
    );
  withWriting(command).action((ledger: string, files: string[], options: AppendOptions) =>
    run((context) => append(context, ledger, files.length === 0 ? [STDIN] : files, options)),
  );
}

/** The most events that wait to be written before reading pauses. */
const MAX_WAITING = 2_000;

/** The most codes that the last line names. */
const MAX_CODES = 5;

async function append(
  context: Context,
  path: string,
  inputs: readonly string[],
  options: AppendOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  await assertReadable(inputs, context);
  await assertApart(options.note, path);
  let published: Promise<unknown> = Promise.resolve();
  const wrong = { violation: 0, invalid: 0, codes: new Set<string>() };
  const publish = ({ note, seq, treeSize }: CheckpointResult, ledger: Ledger): void => {
    terminal.say(`sealed ${count(treeSize, 'record')} with the checkpoint of seq ${seq}`);
    published = Promise.all([published, ledger.publishNote(options.note ?? notePathOf(path), note)]);
    // Reported when it is awaited.
    published.catch(() => undefined);
  };
  let unsealed: NorthrootError | undefined;
  const notice = (of: Notice): void => {
    if (of.code === 'CHECKPOINT_FAILED') unsealed = of.error;
    terminal.say(describeNotice(of));
  };
  await prepareStateFolder(path);
  const ledger = await openLedger(context, path, options, publish, notice);
  const waiting = new Backlog();
  // What was given to a slow disk is told once it is there.
  context.endsInItsTime(() => waiting.size > 0);
  const results = new ResultLines(terminal);
  let refusal: { readonly error: unknown; readonly order: number; readonly place: string } | undefined;
  let order = 0;

  /** Results are written in the order of the events, each once it is on disk. */
  const report = async (read: ReadInput, order: number, place: string): Promise<void> => {
    try {
      const { entry, lossy } = read;
      const { seq, eventId, status, findings, verdict } = await ledger
        .append(entry)
        .catch(async (error: unknown) => {
          throw withHint(await withKeys(error, entry, ledger, options.principal), entry);
        });
      if (verdict === 'violation' || verdict === 'invalid') {
        wrong[verdict] += 1;
        for (const { code, severity } of findings) if (severity === 'error') wrong.codes.add(code);
      }
      const hygiene = lossy.length === 0 ? {} : { hygiene: lossy };
      const told = findings.length === 0 ? {} : { findings: findings.map(toResultFinding) };
      results.add(`${jsonText({ seq, event_id: eventId, status, ...hygiene, ...told })}\n`);
    } catch (error) {
      refuse(error, order, place);
    }
  };
  const refuse = (error: unknown, order: number, place: string): void => {
    // The ledger may refuse an event after a later one was refused as JSON.
    if (refusal !== undefined && order >= refusal.order) return;
    refusal = { error, order, place: error instanceof InputError ? error.place : place };
  };
  const settle = async (): Promise<void> => {
    await waiting.shrinkTo(0);
    await results.written();
  };
  const ids = new Map<string, string>();
  /** The id of an event in the ledger, including events given before. */
  const find = async (wanted: string): Promise<string> => {
    await settle();
    const { eventId } = await viewOf(context, path, undefined, options).findRecord(wanted);
    ids.set(wanted, eventId);
    return eventId;
  };
  const { type, foreignAs, quantities = false } = options;

  try {
    for await (const { place, read } of readEvents(inputs, { type, foreignAs, quantities }, context)) {
      try {
        const { entry, lossy } = read();
        const resolved = await resolveEntry(entry, async (wanted) => ids.get(wanted) ?? find(wanted));
        const isNew = options.existing === 'refuse';
        waiting.add(report({ entry: { ...resolved, refusesExisting: isNew }, lossy }, order, place));
      } catch (error) {
        refuse(error, order, place);
      }
      order += 1;
      if (waiting.size >= MAX_WAITING) {
        await waiting.shrinkTo(MAX_WAITING / 2);
        await results.written();
      }
      if (refusal !== undefined) break;
    }
  } finally {
    await settle();
    await ledger.close();
    await published;
    if (wrong.violation + wrong.invalid > 0) terminal.say(describeWrong(wrong, path));
  }
  if (refusal === undefined) {
    if (order === 0) terminal.say('nothing was appended: there is no event in what was read');
    if (unsealed === undefined) return 0;
    terminal.fail(unsealed);
    return 2;
  }
  const { error, place } = refusal;
  if (!(error instanceof NorthrootError)) throw error;
  terminal.fail(error, place);
  return exitStatusForRefusal(error);
}

/** Violations are recorded, and do not change the exit status of appending: the last line reports them. */
function describeWrong(
  { violation, invalid, codes }: { violation: number; invalid: number; codes: ReadonlySet<string> },
  path: string,
): string {
  const counts = [
    ...(invalid === 0 ? [] : [`${invalid} invalid`]),
    ...(violation === 0 ? [] : [`${violation} in violation`]),
  ];
  const all = [...codes].sort();
  const more = all.length > MAX_CODES ? `, … ${all.length - MAX_CODES} more` : '';
  return `warning: of the events that were appended, ${counts.join(' and ')}: ${all.slice(0, MAX_CODES).join(', ')}${more}; northroot verify ${shellWord(path)} says where`;
}

/** Wrong paths are refused before a ledger is made. */
async function assertReadable(inputs: readonly string[], context: Context): Promise<void> {
  for (const input of inputs) {
    if (input === STDIN) continue;
    const kind = await kindOfPath(input);
    if (kind === 'missing') await readStart(input, 0, context);
    if (kind === 'folder')
      throw new CommandError('IS_A_FOLDER', `cannot read ${printable(input)}: it is a folder`, {
        hint: 'name the files in it',
      });
  }
  assertStdinOnce(inputs);
}

async function openLedger(
  context: Context,
  path: string,
  options: AppendOptions,
  onCheckpoint: (checkpoint: CheckpointResult, ledger: Ledger) => void,
  onNotice: (notice: Notice) => void,
): Promise<Ledger> {
  const { origin, principal, segmentBytes, checkpointEvery, signingThreads } = options;
  assertOneSigning(options);
  const mayCreate = options.create === true || origin !== undefined;
  if (!mayCreate && (await isMissing(path)))
    throw await noLedger(
      path,
      `northroot init ${shellWord(path)} makes one; append --create makes it and appends to it`,
    );
  return openOrCreate(context, path, options, {
    create: defined({ origin }),
    onNotice,
    stopsAtRefusal: true,
    strict: options.strict === true,
    ...defined({ principalId: principal, segmentBytes, signingThreads }),
    ...(checkpointEvery === undefined ? {} : { checkpointEvery, onCheckpoint }),
  });
}

/** A finding in a result line, which already says its place. */
function toResultFinding(finding: Finding): object {
  const { code, severity, class: of, at, expected, actual, related, message } = toFindingJson(finding);
  const { pointer } = at;
  return {
    code,
    severity,
    class: of,
    ...defined({ pointer, expected, actual, related }),
    message,
  };
}

/** The error of a refused key, with the keys that may sign. */
async function withKeys(
  error: unknown,
  { event }: Entry,
  ledger: Ledger,
  principal: string | undefined,
): Promise<unknown> {
  const isKey = error instanceof NorthrootError && /^KEY_(?:NOT|UNKNOWN)/.test(error.code);
  if (!isKey) return error;
  const at = new Date().toISOString();
  const said = principal === undefined ? event : { principal_id: principal, ...event };
  return withEntitledKeys(error, findEntitledKeys(await ledger.listKeys(), said, { at }), said);
}

function withHint(error: unknown, { event }: Entry): unknown {
  if (!(error instanceof EventError) || error.code !== 'SCHEMA') return error;
  let hint = error.schema === undefined ? error.hint : `northroot schema ${error.schema} shows the form`;
  if (error.faults[0].pointer === '/principal_id' && !Object.hasOwn(event, 'principal_id'))
    hint = 'say who acted: in the event, or with --principal for all';
  else if (error.faults[0].pointer === '/event_type' && !Object.hasOwn(event, 'event_type'))
    hint =
      'say what kind of event it is: in the event, or with --type for all; northroot schema lists the known types';
  else if (error.faults.some(({ pointer, actual }) => AMOUNT.test(pointer) && /^"?-?\d/.test(actual)))
    hint = '--quantities makes quantities of numbers in amounts, such as 5 or "0.25"';
  return new EventError(error.faults, error.eventType, hint);
}
