/**
 * `northroot append`: events in, one a line, from files or a pipe; one result line out for each, once it is on disk. Reading
 * goes on while earlier events are being written, so that a fast pipe is written in groups.
 */

import type { Command } from 'commander';
import { printable } from '../../bytes/printable.js';
import { NorthrootError } from '../../error.js';
import { ingestJson } from '../../json/ingest.js';
import type { JsonObject, JsonValue } from '../../json/value.js';
import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../../ledger/line-splitter.js';
import { Ledger, type Appended, type Entry } from '../../writer/ledger.js';
import type { Context, ExitStatus } from '../context.js';
import { openInput, STDIN } from '../input.js';
import { byteSize, seconds } from '../options.js';
import type { Terminal } from '../terminal.js';
import { findSigner, isMissing, makeLedgerKey } from './ledger-key.js';
import { describeNotice } from './notices.js';

interface AppendOptions {
  readonly key?: string;
  readonly principal?: string;
  readonly origin?: string;
  readonly quantities?: boolean;
  readonly unsigned?: boolean;
  readonly lockTimeout: number;
  readonly segmentBytes?: number;
}

export function addAppend(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('append')
    .summary('append events, one JSON object a line')
    .description(
      'Appends events from files or standard input, one JSON object a line: a draft (event_type and its members; the envelope and the ids are added), a whole event (its ids are checked), or {"event":…,"meta":{…},"signatures":[…]}. Writes one result line for each event once it is on disk. Stops at the first event that is refused; those before it stay. A ledger that is not there is made as by init.',
    )
    .argument('<ledger>', 'the file or folder to append to')
    .argument('[files...]', 'files of events; - or none for standard input')
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--unsigned', 'sign nothing; a new ledger then declares no key')
    .option('--principal <id>', 'principal_id of drafts that have none')
    .option('--origin <name>', "a new ledger's unique name")
    .option('--quantities', 'turn JSON numbers in amounts into exact quantities, from their text')
    .option('--lock-timeout <seconds>', 'how long to wait for another writer', seconds, 10_000)
    .option(
      '--segment-bytes <size>',
      'in a folder, begin a new segment at this size (default: 64MiB)',
      byteSize,
    )
    .action((ledger: string, files: string[], options: AppendOptions) =>
      run((context) => append(context, ledger, files.length === 0 ? [STDIN] : files, options)),
    );
}

/** So many events may wait to be written before reading stops. */
const MAX_WAITING = 2_000;

async function append(
  { terminal, signal }: Context,
  path: string,
  inputs: readonly string[],
  options: AppendOptions,
): Promise<ExitStatus> {
  const ledger = await openLedger(terminal, path, options);
  const waiting: Promise<void>[] = [];
  let status: ExitStatus = 0;
  let written = Promise.resolve();

  const fail = (error: unknown, place: string): void => {
    if (status === 0) status = failAt(terminal, error, place);
  };
  /** Results come out in the order of the events, each when it is on disk. */
  const report = async (
    result: Promise<Appended>,
    place: string,
    lossy: readonly string[],
  ): Promise<void> => {
    try {
      const { seq, eventId, status: outcome } = await result;
      const hygiene = lossy.length === 0 ? {} : { hygiene: lossy };
      const line = `${JSON.stringify({ seq, event_id: eventId, status: outcome, ...hygiene })}\n`;
      written = written.then(() => terminal.write(line));
    } catch (error) {
      fail(error, place);
    }
  };

  try {
    for await (const { line, place } of readLines(inputs, signal)) {
      if (status !== 0) break;
      try {
        const { entry, lossy } = readEntry(line, options.quantities === true);
        waiting.push(report(ledger.append(entry), place, lossy));
      } catch (error) {
        fail(error, place);
      }
      if (waiting.length >= MAX_WAITING) {
        await Promise.all(waiting.splice(0));
        await written;
      }
    }
  } finally {
    await Promise.all(waiting);
    await written;
    await ledger.close();
  }
  return status;
}

async function openLedger(terminal: Terminal, path: string, options: AppendOptions): Promise<Ledger> {
  if (options.unsigned && options.key !== undefined) {
    throw new NorthrootError('USAGE', '--key and --unsigned exclude each other');
  }
  const isNew = await isMissing(path);
  let signer = options.unsigned ? undefined : await findSigner(path, options.key);
  if (isNew && signer === undefined && !options.unsigned) {
    const made = await makeLedgerKey(path);
    signer = made.signer;
    terminal.say(`made a key for the new ledger: ${printable(made.path)}; keep it secret, and keep a copy`);
  }
  return Ledger.open(path, {
    create: options.origin === undefined ? {} : { origin: options.origin },
    lockTimeoutMs: options.lockTimeout,
    onNotice: (notice) => terminal.say(describeNotice(notice)),
    ...(signer === undefined ? {} : { signer }),
    ...(options.principal === undefined ? {} : { principalId: options.principal }),
    ...(options.segmentBytes === undefined ? {} : { segmentBytes: options.segmentBytes }),
  });
}

/** The lines of all inputs; blank ones are passed over. A last line without newline counts, unless it stops half-way. */
async function* readLines(
  inputs: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<{ line: Uint8Array; place: string }, void, void> {
  for (const input of inputs) {
    const name = input === STDIN ? 'stdin' : input;
    const splitter = new LineSplitter();
    const check = (line: RawLine): { line: Uint8Array; place: string } => {
      const place = `${name}:${line.number}`;
      if (line.length === line.bytes.length) return { line: line.bytes, place };
      throw new InputError(
        'LINE_TOO_LONG',
        `a line has ${line.length} bytes, more than ${MAX_LINE_BYTES}`,
        place,
      );
    };
    for await (const chunk of openInput(input, signal)) {
      for (const line of splitter.push(chunk)) if (!isBlank(line.bytes)) yield check(line);
      if (signal.aborted) return;
    }
    const last = splitter.finish();
    if (last !== undefined && !isBlank(last.bytes)) yield check(last);
  }
}

/** What an input line asks for: an event, or an event with what travels beside it. */
function readEntry(line: Uint8Array, quantities: boolean): { entry: Entry; lossy: readonly string[] } {
  const { value, report, issues } = ingestJson(line, {
    numbers: (pointer) => (quantities && AMOUNT.test(pointer) ? 'quantity' : 'exact'),
  });
  if (value === undefined) {
    const [issue] = issues.filter(({ code }) => code !== 'NUMBER_COERCED');
    const message = `byte ${issue?.offset}${issue?.pointer ? ` at ${issue.pointer}` : ''} of the line`;
    throw new NorthrootError(issue?.code ?? 'NOT_JSON', message, {
      exitStatus: 1,
      hint: 'each line must be one JSON object without faults; northroot canonicalize tells more',
    });
  }
  if (!isObject(value)) {
    throw new NorthrootError('SCHEMA', 'expected an object, found another JSON value', { exitStatus: 1 });
  }
  const lossy = report.warnings;
  if (!Object.hasOwn(value, 'event') || Object.hasOwn(value, 'event_type'))
    return { entry: { event: value }, lossy };
  const { event, meta, signatures, ...others } = value;
  const [other] = Object.keys(others);
  if (other !== undefined || !isObject(event)) {
    const problem =
      other === undefined ? 'event: expected an object' : `${other}: expected event, meta or signatures`;
    throw new NorthrootError('SCHEMA', problem, {
      exitStatus: 1,
      hint: 'prev and seq are given by the ledger that an event is appended to',
    });
  }
  const entry = {
    event,
    ...(meta === undefined ? {} : { meta }),
    ...(signatures === undefined ? {} : { signatures }),
  };
  return { entry: entry as unknown as Entry, lossy };
}

/** Where an event holds quantities; elsewhere JSON numbers are what the schemas say. */
const AMOUNT = /\/(?:amount|concurrency_limit)$/;

/** An error that knows which line of the input it is about. */
class InputError extends NorthrootError {
  readonly place: string;

  constructor(code: string, message: string, place: string) {
    super(code, message, { exitStatus: 1 });
    this.place = place;
  }
}

function failAt(terminal: Terminal, error: unknown, place: string): ExitStatus {
  if (error instanceof NorthrootError) {
    terminal.fail(error, place);
    return error.exitStatus;
  }
  throw error;
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
