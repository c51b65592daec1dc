/**
 * `northroot append`: events in, one a line, from files or a pipe; one result line out for each, once it is on disk. Reading
 * goes on while earlier events are being written, so that a fast pipe is written in groups.
 */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { EventError } from '../../format/event/validate.js';
import type { Finding } from '../../format/finding/finding.js';
import type { Signer } from '../../format/signature/signer.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import type { CheckpointSchedule } from '../../log/writer/checkpoint.js';
import { Ledger } from '../../log/writer/ledger.js';
import {
  type CheckpointResult,
  type Entry,
  MAX_SIGNING_THREADS,
  type Notice,
} from '../../log/writer/options.js';
import { toFindingJson } from '../../rules/report/report.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { Backlog } from '../backlog.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { exitStatusForRefusal } from '../exit-status.js';
import { readStart, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import {
  byteSize,
  checkpointSchedule,
  extensionType,
  principalId,
  seconds,
  wholeNumber,
} from '../options.js';
import { ResultLines } from '../result-lines.js';
import { NO_INDEX, viewOf } from '../view.js';
import { withEntitledKeys } from './append-draft.js';
import { AMOUNT, InputError, readEvents, type ReadInput, resolveEntry } from './append-input.js';
import {
  assertOrigin,
  asUsageError,
  findNamedSigner,
  notePathOf,
  openWithOwnKey,
  writingOptions,
} from './ledger-key.js';
import { describeNotice } from './notices.js';

interface AppendOptions {
  readonly key?: string;
  readonly principal?: string;
  readonly create?: boolean;
  readonly origin?: string;
  readonly quantities?: boolean;
  readonly type?: string;
  readonly foreignAs?: string;
  readonly existing: 'ok' | 'refuse';
  readonly unsigned?: boolean;
  readonly lockTimeout: number;
  readonly index: boolean;
  readonly segmentBytes?: number;
  readonly checkpointEvery?: CheckpointSchedule;
  readonly strict?: boolean;
  readonly note?: string;
  readonly signingThreads?: number;
}

export function addAppend(program: Command, run: Run): void {
  program
    .command('append')
    .summary('append events, as JSON')
    .description(
      'Appends events from files or standard input, JSON objects one a line, over several lines, or in an array: each is a draft (event_type and its members; the envelope and the ids are added), a whole event (its ids are checked), or {"event":…,"meta":{…},"signatures":[…]}. A Northroot journal (.nrj) is known by its first bytes, and its events are taken as they are. Writes one result line for each event once it is on disk, with what verification finds in it. Stops at the first event that is refused; those before it stay. The ledger must be there, unless --create or --origin asks for a new one, which is then made as by init.',
    )
    .argument('<ledger>', 'the file or folder to append to')
    .argument('[files...]', 'files of events; - or none for standard input')
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--unsigned', 'sign nothing; a new ledger then declares no key')
    .option('--principal <id>', 'who acted, for drafts that do not say it', principalId)
    .option('--type <type>', 'the event_type of drafts that do not say it, such as x.build')
    .addOption(
      new Option(
        '--existing <how>',
        'an event that the ledger has already: ok reports where it is ("status":"exists"), refuse stops there',
      )
        .choices(['ok', 'refuse'])
        .default('ok'),
    )
    .option(
      '--foreign-as <type>',
      'for journals: carry events that are not of this format in extension events of this type, such as x.journal, under journal_event',
      extensionType,
    )
    .option('--create', 'make the ledger if nothing is there')
    .option(
      '--origin <name>',
      "the ledger's unique name: a new one gets it (as with --create), another must have it",
    )
    .option(
      '--quantities',
      'turn JSON numbers in amounts, and texts such as "0.25", into exact quantities, from their text',
    )
    .option(
      '--strict',
      'refuse an event that would make the ledger invalid, such as an execution of an unknown authorization',
    )
    .option('--lock-timeout <seconds>', 'how long to wait for another writer', seconds, 10)
    .option(...NO_INDEX)
    .option(
      '--segment-bytes <size>',
      'in a folder, begin a new segment at this size (default: 64MiB)',
      byteSize,
    )
    .option(
      '--checkpoint-every <n>',
      'seal the ledger after so many records, or so long after the last checkpoint: 1000, or 30s, 15m, 1h, 1d',
      checkpointSchedule,
    )
    .option('--note <file>', 'where to write the note of each checkpoint (default: LEDGER.checkpoint)')
    .option(
      '--signing-threads <n>',
      'where hundreds of events wait, sign them in so many further threads (default: 1, or 0 where there is one processor); what is written does not depend on it',
      wholeNumber(0, MAX_SIGNING_THREADS),
    )
    .action((ledger: string, files: string[], options: AppendOptions) =>
      run((context) => append(context, ledger, files.length === 0 ? [STDIN] : files, options)),
    );
}

/** So many events may wait to be written before reading stops. */
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
  let published: Promise<unknown> = Promise.resolve();
  const wrong = { violation: 0, invalid: 0, codes: new Set<string>() };
  const publish = ({ note, seq, treeSize }: CheckpointResult, ledger: Ledger): void => {
    terminal.say(`sealed ${treeSize} records with the checkpoint of seq ${seq}`);
    published = Promise.all([published, ledger.publishNote(options.note ?? notePathOf(path), note)]);
    // Told of when it is waited for.
    published.catch(() => undefined);
  };
  let unsealed: NorthrootError | undefined;
  const notice = (of: Notice): void => {
    if (of.code === 'CHECKPOINT_FAILED') unsealed = of.error;
    terminal.say(describeNotice(of));
  };
  const ledger = await openLedger(context, path, options, publish, notice);
  const waiting = new Backlog();
  const results = new ResultLines(terminal);
  let refusal: { readonly error: unknown; readonly order: number; readonly place: string } | undefined;
  let order = 0;

  /** Results come out in the order of the events, each when it is on disk. */
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
    // A refusal by the ledger may become known after one of a later event that is not even JSON.
    if (refusal !== undefined && order >= refusal.order) return;
    refusal = { error, order, place: error instanceof InputError ? error.place : place };
  };
  const settle = async (): Promise<void> => {
    await waiting.shrinkTo(0);
    await results.written();
  };
  const ids = new Map<string, string>();
  /** The id of an event of the ledger, also of one that was given before. */
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
    if (unsealed === undefined) return 0;
    terminal.fail(unsealed);
    return 2;
  }
  const { error, place } = refusal;
  if (!(error instanceof NorthrootError)) throw error;
  terminal.fail(error, place);
  return exitStatusForRefusal(error);
}

/** What was done is recorded also where it should not have been; the last line says so, whose exit status is that of appending. */
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
  return `warning: of the events that were appended, ${counts.join(' and ')}: ${all.slice(0, MAX_CODES).join(', ')}${more}; northroot verify ${printable(path)} says where`;
}

/** A path that is wrong is told of before a ledger is made for nothing. */
async function assertReadable(inputs: readonly string[], context: Context): Promise<void> {
  for (const input of inputs) {
    if (input === STDIN) continue;
    const kind = await kindOfPath(input);
    // Where it has come meanwhile, it is closed again.
    if (kind === 'missing') await readStart(input, 0, context);
    if (kind === 'folder') {
      throw new CommandError('IS_A_FOLDER', `cannot read ${printable(input)}: it is a folder`);
    }
  }
  if (inputs.filter((input) => input === STDIN).length > 1) {
    throw usageError('standard input can be read once only');
  }
}

async function openLedger(
  { terminal, signal }: Context,
  path: string,
  options: AppendOptions,
  onCheckpoint: (checkpoint: CheckpointResult, ledger: Ledger) => void,
  onNotice: (notice: Notice) => void,
): Promise<Ledger> {
  const { unsigned = false, key, origin, principal, segmentBytes, checkpointEvery, signingThreads } = options;
  if (unsigned && key !== undefined) {
    throw usageError('--key and --unsigned exclude each other');
  }
  const mayCreate = options.create === true || origin !== undefined;
  if (!mayCreate && (await kindOfPath(path)) === 'missing') {
    throw new CommandError('FILE_NOT_FOUND', `there is no ledger ${printable(path)}`, {
      hint: `northroot init ${printable(path)} makes one; append --create makes it and appends to it`,
    });
  }
  const open = async (signer: Signer | undefined): Promise<Ledger> => {
    try {
      return await Ledger.open(path, {
        ...writingOptions(terminal, signer, options),
        signal,
        create: origin === undefined ? {} : { origin },
        onNotice,
        stopsAtRefusal: true,
        strict: options.strict === true,
        ...defined({ principalId: principal, segmentBytes, signingThreads }),
        ...(checkpointEvery === undefined ? {} : { checkpointEvery, onCheckpoint }),
      });
    } catch (error) {
      throw asUsageError(error);
    }
  };
  const named = unsigned ? undefined : await findNamedSigner(terminal, key);
  const isSettled = unsigned || named !== undefined;
  const ledger = isSettled ? await open(named) : await openWithOwnKey(terminal, path, open);
  return assertOrigin(ledger, origin);
}

/** A finding as result lines have it: its place is the record that the line is about. */
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

/** A key that is refused is answered with those that would do. */
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

/** An error of an append, with a hint for those who write drafts. */
function withHint(error: unknown, { event }: Entry): unknown {
  if (!(error instanceof EventError) || error.code !== 'SCHEMA') return error;
  let hint = error.schema === undefined ? error.hint : `northroot schema ${error.schema} shows the form`;
  if (error.faults[0].pointer === '/principal_id' && !Object.hasOwn(event, 'principal_id')) {
    hint = 'say who acted: in the event, or with --principal for all';
  } else if (error.faults[0].pointer === '/event_type' && !Object.hasOwn(event, 'event_type')) {
    hint =
      'say what kind of event it is: in the event, or with --type for all; northroot schema lists the known types';
  } else if (error.faults.some(({ pointer, actual }) => AMOUNT.test(pointer) && /^"?-?\d/.test(actual))) {
    hint = '--quantities makes quantities of numbers in amounts, such as 5 or "0.25"';
  }
  return new EventError(error.faults, error.eventType, hint);
}
