/** What an answer used, from its bytes as they pass. */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { isJsonObject, type JsonObject, type JsonValue, tryParse } from '../../base/json/value.js';
import { type ModelUsage, MODEL_USAGE_INVALID } from '../../log/agent/model-usage.js';
import { readUsage } from '../price/read-usage.js';
import { MAX_COUNT } from '../price/usage.js';
import { EventStreamReader, type ServerSentEvent } from '../proxy/event-stream.js';
import { MESSAGES_ANSWER } from './anthropic-answers.js';
import { type AnswerForm, AnswerNotes } from './answer-notes.js';
import { assemble, JsonPicker } from './json-picker.js';
import type { PassedAnswer } from './known-answers.js';
import type { AnswerProblem, ModelAnswer, ModelApi, ModelRequest } from './model-api.js';
import {
  AUDIO_ANSWER,
  CHAT_ANSWER,
  EMBEDDINGS_ANSWER,
  IMAGES_ANSWER,
  RESPONSES_ANSWER,
  STORED_ANSWER,
} from './openai-answers.js';
import { memberOf } from './content.js';
import { MAX_SCANNED_BYTES, type PieceScanner, pieceScanner } from './piece-scanner.js';
import { PieceTemplates } from './piece-template.js';

const FORMS: Readonly<Record<ModelApi, AnswerForm>> = {
  'openai-chat': CHAT_ANSWER,
  'openai-responses': RESPONSES_ANSWER,
  'openai-completions': CHAT_ANSWER,
  'openai-embeddings': EMBEDDINGS_ANSWER,
  'openai-images': IMAGES_ANSWER,
  'openai-audio': AUDIO_ANSWER,
  'openai-batches': STORED_ANSWER,
  'openai-files': STORED_ANSWER,
  'anthropic-messages': MESSAGES_ANSWER,
  'anthropic-batches': STORED_ANSWER,
};

/** What later requests may name of an answer. */
export interface NamedAnswer extends Pick<PassedAnswer, 'responseId' | 'itemIds' | 'outputTokens'> {
  /** As stated; 0 where it is not. */
  readonly inputTokens: number;
}

/** The longest event that is parsed as a whole, in bytes: a parsed text takes up to 60 times its bytes. */
const MAX_PARSED_BYTES = 256 * 1024;

/** An answer in one piece of fewer bytes may have no text in it. */
const MAX_EMPTY_BYTES = 1_024;

/** The most bytes of the beginning of an event that wait for its end, to be looked at again with each chunk until then. */
const MAX_BEGUN_BYTES = 1_024;

/** The most bytes of an answer that are looked at at once. */
const MAX_BLOCK_BYTES = MAX_SCANNED_BYTES - MAX_BEGUN_BYTES;
const NOTHING = new Uint8Array();

interface Pieces {
  readonly scanner: PieceScanner;
  readonly templates: PieceTemplates;
}

/** APIs whose answers may be other than JSON and events. */
const ANY_CONTENT: ReadonlySet<ModelApi> = new Set(['openai-audio', 'openai-batches', 'openai-files']);

/**
 * Reads an answer while it passes, in chunks of any size, never keeping more of it than one event or one number. Bytes MUST be decompressed.
 */
export class AnswerReader {
  readonly #status: number;
  readonly #form: AnswerForm;
  readonly #notes: AnswerNotes;
  readonly #events: EventStreamReader | undefined;
  readonly #json: JsonPicker | undefined;
  readonly #pieces: Pieces | undefined;
  /** The bytes of an event whose end did not come, and that is not read yet. */
  #begun: Uint8Array = NOTHING;
  #isUnread = false;
  #arePicksRead = false;

  /**
   * @param contentType - Of the answer's head; decides how it is read, whatever was asked for
   * @param isFast - False reads each event in full, which finds the same
   */
  constructor(request: ModelRequest, status: number, contentType: string | undefined, isFast = true) {
    this.#status = status;
    this.#form = FORMS[request.api];
    this.#notes = new AnswerNotes(request);
    const [type = ''] = (contentType ?? '').split(';', 1);
    const essence = type.trim().toLowerCase();
    const { textOf } = this.#form;
    if (essence === 'text/event-stream') {
      this.#events = new EventStreamReader();
      const scanner = isFast ? pieceScanner() : undefined;
      if (scanner !== undefined && textOf !== undefined)
        this.#pieces = { scanner, templates: new PieceTemplates(textOf) };
    }
    if (/^application\/(?:[^;]+\+)?json$/.test(essence)) this.#json = new JsonPicker(this.#form.picks);
  }

  push(chunk: Uint8Array): void {
    this.#json?.push(chunk);
    if (this.#json?.isWhole === true) this.#takePicks();
    const events = this.#events;
    if (events === undefined) return;
    const pieces = this.#pieces;
    if (pieces === undefined) this.#readEvents(events, chunk);
    else
      for (let at = 0; at < chunk.length; at += MAX_BLOCK_BYTES)
        this.#readPieces(events, pieces, chunk.subarray(at, at + MAX_BLOCK_BYTES));
  }

  #readEvents(events: EventStreamReader, bytes: Uint8Array): void {
    for (const event of events.push(bytes)) this.#readEvent(event);
  }

  /** Events that are like those before are not read. */
  #readPieces(events: EventStreamReader, { templates, scanner }: Pieces, block: Uint8Array): void {
    const notes = this.#notes;
    const begun = this.#begun;
    const length = begun.length + block.length;
    if (begun.length > 0) scanner.bytes.set(begun);
    scanner.bytes.set(block, begun.length);
    this.#begun = NOTHING;
    let ends: EventEnds | undefined;
    for (let at = 0; at < length;) {
      const isBetween = events.isBetween;
      if (isBetween) {
        const found = scanner.scan(templates, at, length);
        if (found.end > at) templates.noteMatch();
        notes.addOutputBytes(found.output);
        at = found.end;
        if (at === length) return;
      }
      if (isBetween && length - at <= MAX_BEGUN_BYTES && !hasEmptyLine(scanner.bytes, at, length)) {
        this.#begun = Buffer.from(scanner.bytes.subarray(at, length));
        return;
      }
      // One at a time, to learn from it.
      ends ??= new EventEnds(scanner.bytes.subarray(0, length));
      const end = ends.after(at);
      const raw = scanner.bytes.subarray(at, end);
      const before = notes.outputBytes;
      const [event, ...others] = events.push(raw);
      if (event !== undefined) this.#readEvent(event);
      for (const other of others) this.#readEvent(other);
      const isAlone = event !== undefined && others.length === 0 && isBetween && events.isBetween;
      if (isAlone) templates.learn(raw, event, notes.outputBytes - before);
      at = end;
    }
  }

  /**
   * By which ids later requests may name what was answered, and a bound of it. Undefined before its end, and for what may bring more than is
   * known of it.
   * @param maxOutput - The most output that was asked for: the bound where no usage is stated
   */
  named(maxOutput: number | undefined): NamedAnswer | undefined {
    const notes = this.#notes;
    const isEnded = notes.isEnded || this.#json?.isWhole === true;
    const isUnread = this.#isUnread || this.#json?.isCut === true || (this.#events?.skipped ?? 0) > 0;
    if (!isEnded || isUnread || this.#status >= 400 || notes.isGoingOn || notes.hasOtherItems)
      return undefined;
    if (notes.responseId === undefined && notes.itemIds.size === 0) return undefined;
    const usage = this.#usage(new Set());
    const output = usage?.output ?? maxOutput;
    if (output === undefined) return undefined;
    return {
      responseId: notes.responseId,
      itemIds: [...notes.itemIds],
      inputTokens: usage?.input ?? 0,
      outputTokens: Math.max(output, notes.outputBytes, notes.itemBytes),
    };
  }

  /** @param isBroken - Whether the answer broke off, as far as the connection tells */
  end(isBroken = false): ModelAnswer {
    if (this.#events !== undefined) this.#readEvents(this.#events, this.#begun);
    const last = this.#events?.end();
    if (last !== undefined) this.#readEvent(last);
    this.#readPicks();
    const notes = this.#notes;
    const isComplete = this.#isComplete(isBroken);
    const outcome = this.#outcome(isComplete);
    const problems = new Set<AnswerProblem>();
    if (this.#isUnread || this.#json?.isCut === true || (this.#events?.skipped ?? 0) > 0)
      problems.add('ANSWER_UNREAD');
    if (notes.isUsageRepeated) problems.add('USAGE_REPEATED');
    if (notes.isPricedOtherwise) problems.add('PRICED_OTHERWISE');
    const isMade = this.#status < 400;
    const usage = isMade && !notes.isPricedOtherwise ? this.#usage(problems) : undefined;
    return {
      usage,
      estimate: isMade && usage === undefined && problems.has('USAGE_MISSING') ? this.#estimate() : undefined,
      outcome,
      model: notes.model,
      outputBytes: notes.outputBytes,
      isComplete,
      errorCode: outcome === 'failure' ? (notes.errorCode ?? `HTTP_${this.#status}`) : undefined,
      problems: [...problems],
    };
  }

  #readEvent({ event, data }: ServerSentEvent): void {
    if (data.length > MAX_PARSED_BYTES) {
      this.#readLongEvent(event, data);
      return;
    }
    const text = decodeUtf8(data);
    if (text === '[DONE]') {
      this.#form.onEvent(this.#notes, event, undefined);
      return;
    }
    const value = tryParse(text);
    if (isJsonObject(value)) this.#form.onEvent(this.#notes, event, value);
    else this.#isUnread = true;
  }

  #readLongEvent(event: string, data: Uint8Array): void {
    const { eventPicks, onEvent } = this.#form;
    const picker = new JsonPicker(eventPicks);
    picker.push(data);
    if (!picker.isWhole || picker.isCut) this.#isUnread = true;
    if (!picker.isWhole) return;
    for (const path of eventPicks.sizes ?? []) this.#notes.addOutputBytes(picker.sizeOf(path));
    const read = assemble(picker.values);
    // Of a long item, only some members are read.
    if (memberOf(read, 'item') !== undefined) this.#notes.itemBytes += data.length;
    onEvent(this.#notes, event, read);
  }

  #readPicks(): void {
    if (this.#json === undefined) return;
    this.#takePicks();
    if (this.#json.isWhole) this.#notes.hasOutput = true;
    else this.#isUnread = true;
  }

  #takePicks(): void {
    if (this.#json === undefined || this.#arePicksRead) return;
    this.#arePicksRead = true;
    for (const { path, value } of this.#json.values) this.#form.onValue(this.#notes, path, value);
    const { sizes = [], counts = [] } = this.#form.picks;
    for (const path of sizes) this.#notes.outputBytes += this.#json.sizeOf(path);
    for (const path of counts) this.#notes.images += this.#json.countOf(path);
  }

  #isComplete(isBroken: boolean): boolean {
    if (this.#events !== undefined) return this.#notes.isEnded;
    if (this.#json !== undefined) return this.#json.isWhole;
    const isKnown = this.#status >= 400 || ANY_CONTENT.has(this.#notes.request.api);
    if (!isKnown) this.#isUnread = true;
    return isKnown && !isBroken;
  }

  #outcome(isComplete: boolean): ModelAnswer['outcome'] {
    if (this.#status >= 400 || this.#notes.errorCode !== undefined) return 'failure';
    return isComplete && !this.#notes.isGoingOn ? 'success' : 'unknown';
  }

  #usage(problems: Set<AnswerProblem>): ModelUsage | undefined {
    const { usage, isUsageFinal, request, images } = this.#notes;
    if (usage === undefined || !isUsageFinal || this.#isUsageOfPart()) {
      if (request.api === 'openai-images' && images > 0 && usage === undefined)
        return { input: 0, output: 0, images };
      problems.add('USAGE_MISSING');
      return undefined;
    }
    try {
      const read = readStated(request.api, usage);
      if (this.#isNothing(read))
        throw new NorthrootError(MODEL_USAGE_INVALID, 'expected what was used, found none');
      // Usage of OpenAI does not count them.
      const webSearches = this.#notes.chargedSearches ?? this.#notes.webSearches;
      return webSearches > 0 ? { ...read, webSearches } : read;
    } catch (error) {
      if (!(error instanceof NorthrootError) || error.code !== MODEL_USAGE_INVALID) throw error;
      problems.add('USAGE_INVALID');
      return undefined;
    }
  }

  /** Some state in every chunk of a chat what was used until then, or only what was read. */
  #isUsageOfPart(): boolean {
    const { request, isEnded } = this.#notes;
    const hasChunks = request.api === 'openai-chat' || request.api === 'openai-completions';
    return this.#events !== undefined && hasChunks && !isEnded;
  }

  /** Whether it says that nothing was read, or nothing written where there is text: some state zeros for what they do not count. */
  #isNothing({ input, output }: ModelUsage): boolean {
    const { request, outputBytes } = this.#notes;
    if (request.api === 'openai-images') return input + output === 0;
    const leastText = this.#events === undefined ? MAX_EMPTY_BYTES : 0;
    return input === 0 || (output === 0 && outputBytes > leastText);
  }

  /** By what came, where that is all of what was made until then. */
  #estimate(): ModelUsage | undefined {
    const { request, usage, outputBytes, hasOutput, isOutputHidden, isGoingOn, isEnded } = this.#notes;
    if (!hasOutput || isOutputHidden || this.#isUnread || mayThinkUnseen(request)) return undefined;
    // What goes on is paid for, and not seen here.
    const isCut = this.#events !== undefined && !isEnded;
    if (isGoingOn || (isCut && request.isBackground === true)) return undefined;
    const output = Math.min(outputBytes, request.maxOutput ?? MAX_COUNT);
    if (usage === undefined || request.api !== 'anthropic-messages')
      return { input: request.inputBytes, output };
    try {
      const begun = memberOf(usage, 'output_tokens') ?? 0;
      const most = typeof begun === 'number' && begun > output ? begun : output;
      return readUsage('anthropic', { ...usage, output_tokens: most });
    } catch {
      return undefined;
    }
  }
}

/** Chat completions do not show that there was reasoning. These models have none. */
const PLAIN_MODELS = /(?:^|[/:])(?:gpt-3\.5|gpt-4(?![0-9])|chatgpt-4o)/;

function mayThinkUnseen({ api, model, params }: ModelRequest): boolean {
  if (api !== 'openai-chat' || PLAIN_MODELS.test(model)) return false;
  return !isJsonObject(params) || memberOf(params, 'reasoning_effort') !== 'none';
}

/** @throws NorthrootError `MODEL_USAGE_INVALID` */
function readStated(api: ModelApi, usage: JsonObject): ModelUsage {
  const read = (kind: Parameters<typeof readUsage>[0], raw: JsonObject): ModelUsage =>
    readUsage(kind, raw) as ModelUsage;
  switch (api) {
    case 'anthropic-messages':
      return read('anthropic', usage);
    case 'openai-responses':
      return read('openai-responses', usage);
    case 'openai-images':
      return withParts(read('openai-responses', usage), usage);
    case 'openai-audio': {
      if ((memberOf(usage, 'type') ?? 'tokens') !== 'tokens')
        throw new NorthrootError(MODEL_USAGE_INVALID, 'expected tokens, found another unit');
      return withParts(read('openai-responses', usage), usage);
    }
    default:
      return read('openai-chat', usage);
  }
}

/** Images and sound within the tokens. Some state the details of the output, others only that all of it is images. */
function withParts(read: ModelUsage, usage: JsonObject): ModelUsage {
  const inputs = objectOf(memberOf(usage, 'input_tokens_details') ?? memberOf(usage, 'input_token_details'));
  const outputs = memberOf(usage, 'output_tokens_details');
  const part = (object: JsonObject, name: string, whole: number): number | undefined => {
    const value = memberOf(object, name);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= whole) return value;
    throw new NorthrootError(MODEL_USAGE_INVALID, `expected ${name} to be a part of ${whole}`);
  };
  const isImages = Object.keys(inputs).includes('image_tokens');
  const outputImage =
    outputs === undefined ? read.output : part(objectOf(outputs), 'image_tokens', read.output);
  const parts: Record<string, number | undefined> = {
    inputImage: part(inputs, 'image_tokens', read.input),
    inputAudio: part(inputs, 'audio_tokens', read.input),
    outputImage: isImages ? outputImage : undefined,
  };
  const stated = Object.entries(parts).filter(([, count]) => count !== undefined);
  return { ...read, ...Object.fromEntries(stated) };
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Where events mostly end. Where others do, several are read at once. */
class EventEnds {
  readonly #bytes: Buffer;
  readonly #next = ['\n\n', '\n\r\n'].map((text) => ({ text, at: -1 }));

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The place after the end of the event at `from`; the end of the bytes where it is not in them. */
  after(from: number): number {
    let end = this.#bytes.length;
    for (const each of this.#next) {
      if (each.at < from) {
        const place = this.#bytes.indexOf(each.text, from);
        each.at = place < 0 ? Infinity : place;
      }
      end = Math.min(end, each.at + each.text.length);
    }
    return end;
  }
}

/** Whether an event may end within: lines end with CR, LF or CRLF. */
function hasEmptyLine(bytes: Uint8Array, from: number, to: number): boolean {
  let before = 0;
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] as number;
    if ((byte === LF && before === LF) || (byte === CR && (before === LF || before === CR))) return true;
    before = byte;
  }
  return false;
}

const CR = 0x0d;
const LF = 0x0a;
