/** The events that `append` is given: JSON texts from files or a pipe, and what each asks for. */

import { defined } from '../../base/defined.js';
import { ingestJson } from '../../base/json/ingest.js';
import { type JsonText, JsonTextSplitter, placeInText } from '../../base/json/split-texts.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { quantity } from '../../base/value/quantity.js';
import { resolveReferences } from '../../format/event/references.js';
import type { Entry } from '../../log/writer/options.js';
import { parseJournalEvent } from '../../out/export/journal/journal-event.js';
import { isJournal, JOURNAL_START_BYTES, readJournal } from '../../out/export/journal/journal-file.js';
import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import { firstIssue, ingestError } from '../ingest-error.js';
import { openInput, STDIN } from '../input.js';

/** The longest text of one event, in bytes: white space included, so more than a record may have. */
const MAX_EVENT_TEXT_BYTES = 1024 * 1024;

export interface InputEvent {
  /** The input's name and the line that the event begins in. */
  readonly place: string;
  /**
   * What the event asks for, and what was lost when its numbers were read.
   *
   * @throws NorthrootError with the code of what is wrong with the text, and its place where that is another.
   */
  readonly read: () => ReadInput;
}

export interface ReadInput {
  readonly entry: Entry;
  readonly lossy: readonly string[];
}

/** An error within the text of an event, which may have many lines. */
export class InputError extends CommandError {
  readonly place: string;

  constructor(error: CommandError, place: string) {
    const { code, message, hint } = error;
    super(code, message, { hint, cause: error });
    this.place = place;
  }
}

export interface InputOptions {
  /** For `event_type` where a draft has none. */
  readonly type?: string | undefined;
  /** The type of extension events that carry what journals of others hold. */
  readonly foreignAs?: string | undefined;
  /** Whether JSON numbers, and texts of them, become quantities where amounts are. */
  readonly quantities: boolean;
}

/** The events of all inputs in order. Each must be read before the next is taken. */
export async function* readEvents(
  inputs: readonly string[],
  options: InputOptions,
  context: Context,
): AsyncGenerator<InputEvent, void, void> {
  for (const input of inputs) {
    const name = input === STDIN ? 'stdin' : input;
    const { start, chunks } = await peek(openInput(input, context));
    if (isJournal(start)) {
      try {
        yield* readJournalEvents(chunks, name, options);
      } finally {
        // A journal is not read to its end where one of its events is refused.
        await chunks.return();
      }
      continue;
    }
    const splitter = new JsonTextSplitter({ maxBytes: MAX_EVENT_TEXT_BYTES });
    const toEvent = (text: JsonText): InputEvent => ({
      place: `${name}:${text.line}`,
      read: () => readEntry(text, name, options),
    });
    for await (const chunk of chunks) {
      for (const text of splitter.push(chunk)) {
        context.signal.throwIfAborted();
        yield toEvent(text);
      }
    }
    const last = splitter.finish();
    if (last !== undefined) yield toEvent(last);
  }
}

/** The first bytes of an input, and all of it. */
async function peek(
  input: AsyncGenerator<Uint8Array, void, void>,
): Promise<{ readonly start: Uint8Array; readonly chunks: AsyncGenerator<Uint8Array, void, void> }> {
  const first: Uint8Array[] = [];
  let start = Buffer.alloc(0);
  while (start.length < JOURNAL_START_BYTES) {
    const next = await input.next();
    if (next.done === true) break;
    first.push(Uint8Array.from(next.value));
    start = Buffer.concat(first).subarray(0, JOURNAL_START_BYTES);
  }
  async function* chunks(): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* first;
      yield* input;
    } finally {
      await input.return();
    }
  }
  return { start, chunks: chunks() };
}

/** The events of a journal. A fault of a frame is reported at its event. */
async function* readJournalEvents(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  { foreignAs }: InputOptions,
): AsyncGenerator<InputEvent, void, void> {
  const frames = readJournal(chunks);
  for (;;) {
    try {
      const next = await frames.next();
      if (next.done === true) return;
      const { offset, payload } = next.value;
      yield { place: `${name}, byte ${offset}`, read: () => toEntry(payload, foreignAs) };
    } catch (error) {
      const read = (): never => {
        throw error;
      };
      yield { place: name, read };
      return;
    }
  }
}

function toEntry(payload: Uint8Array, foreignAs: string | undefined): ReadInput {
  const { event, own } = parseJournalEvent(payload);
  if (own !== undefined) return { entry: { event: own }, lossy: [] };
  if (foreignAs === undefined) {
    const message = 'the event is not one of this format: its id is of another profile, or of other members';
    const hint = '--foreign-as x.TYPE appends each such event inside an extension event';
    throw new CommandError('JOURNAL_FOREIGN', message, { hint });
  }
  const { occurred_at, principal_id } = event;
  const draft = {
    event_type: foreignAs,
    ...defined({ occurred_at, principal_id }),
    journal_event: event,
  };
  return { entry: { event: draft }, lossy: [] };
}

function readEntry(text: JsonText, name: string, { type, quantities }: InputOptions): ReadInput {
  assertWhole(text);
  const ingested = ingestJson(text.bytes, {
    numbers: quantities ? (pointer) => (AMOUNT.test(pointer) ? 'quantity' : 'exact') : 'exact',
  });
  const { report } = ingested;
  const value = ingested.value && quantities ? readTexts(ingested.value) : ingested.value;
  if (value === undefined) {
    const { line, column } = placeInText(text, firstIssue(ingested).offset);
    const hint =
      text.fault === 'cut'
        ? 'the input ends within this event: was it cut off?'
        : 'expected events: JSON objects, or arrays of them';
    const error = ingestError(ingested, hint, `byte ${column} of the line`);
    throw new InputError(error, `${name}:${line}`);
  }
  if (!isJsonObject(value))
    throw new CommandError('SCHEMA', 'expected a JSON object, found another JSON value', {
      hint: 'each event is one JSON object',
    });
  const lossy = report.warnings;
  if (!Object.hasOwn(value, 'event') || Object.hasOwn(value, 'event_type'))
    return { entry: { event: withType(value, type) }, lossy };
  const { event, meta, signatures, ...others } = value;
  const [other] = Object.keys(others);
  if (other !== undefined || !isJsonObject(event)) {
    const problem =
      other === undefined
        ? 'event: expected an object'
        : `${other}: expected nothing but event, meta and signatures beside an event`;
    const hint = 'prev and seq are given by the ledger that an event is appended to';
    throw new CommandError('SCHEMA', problem, {
      ...(other === 'prev' || other === 'seq' ? { hint } : {}),
    });
  }
  const entry = {
    event: withType(event, type),
    ...defined({ meta, signatures }),
  };
  return { entry: entry as unknown as Entry, lossy };
}

function assertWhole({ bytes, fault }: JsonText): void {
  if (fault === 'long')
    throw new CommandError('LINE_TOO_LONG', `the event has more than ${MAX_EVENT_TEXT_BYTES} bytes`, {
      hint: 'refer to large content by its digest; or is a closing bracket missing?',
    });
  if (fault !== 'stray') return;
  const found = bytes.length === 0 ? 'the end of the input' : 'something else';
  throw new CommandError('NOT_JSON', `expected a comma or ] between the events of an array, found ${found}`, {
    hint: 'events may stand in one array, or one after the other without commas',
  });
}

/** A whole event has its type, under its id. */
function withType(event: JsonObject, type: string | undefined): JsonObject {
  const isWhole = Object.hasOwn(event, 'event_type') || Object.hasOwn(event, 'event_id');
  return type === undefined || isWhole ? event : { event_type: type, ...event };
}

/** The entry with the ids of the events that its draft names by seq, or by the beginning of an id. */
export async function resolveEntry(entry: Entry, find: (wanted: string) => Promise<string>): Promise<Entry> {
  if (Object.hasOwn(entry.event, 'event_id')) return entry;
  return { ...entry, event: await resolveReferences(entry.event, find) };
}

/** The value with quantities where amounts are texts of numbers, as the builders take them; another text is the schema's to refuse. */
function readTexts(value: JsonValue, name?: string): JsonValue {
  if (Array.isArray(value)) return value.map((item) => readTexts(item));
  if (isJsonObject(value)) {
    const members = Object.entries(value).map(([key, item]) => [key, readTexts(item, key)] as const);
    return Object.fromEntries(members);
  }
  if (typeof value !== 'string' || name === undefined || !AMOUNT.test(`/${name}`)) return value;
  try {
    return quantity(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return value;
  }
}

/** Where an event holds quantities; elsewhere JSON numbers are what the schemas say. */
export const AMOUNT = /\/(?:amount|concurrency_limit)$/;
