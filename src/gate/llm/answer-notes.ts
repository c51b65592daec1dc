/** What is found in an answer as it passes. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { MAX_COUNT } from '../price/usage.js';
import type { ModelRequest } from './model-api.js';
import type { Picks } from './json-picker.js';
import type { TextPath } from './piece-template.js';

export interface AnswerForm {
  /** Of an answer in one piece. */
  readonly picks: Picks;
  /** A value that was picked, in the order of the text. */
  readonly onValue: (notes: AnswerNotes, path: string, value: unknown) => void;
  /** Of an event that is too long to be read in full. What is sized is output. */
  readonly eventPicks: Picks;
  /** An event of an answer in pieces; `data` is undefined for `[DONE]`. */
  readonly onEvent: (notes: AnswerNotes, event: string, data: JsonObject | undefined) => void;
  /**
   * Where the text is of an event that does nothing but add text: to take it in again, with another text, adds that text and changes nothing
   * else. Undefined for all other events.
   */
  readonly textOf?: ((data: JsonObject) => TextPath | undefined) | undefined;
}

export class AnswerNotes {
  readonly request: ModelRequest;
  model: string | undefined;
  /** As stated, the greatest of each count. */
  usage: JsonObject | undefined;
  /** Whether `usage` is that of the whole answer, rather than of its beginning. */
  isUsageFinal = false;
  isUsageRepeated = false;
  isPricedOtherwise = false;
  /** Whether the end that the API marks was seen. */
  isEnded = false;
  /** Whether the work goes on after the answer. */
  isGoingOn = false;
  errorCode: string | undefined;
  outputBytes = 0;
  /** Whether output was seen. */
  hasOutput = false;
  /** Whether there is output that is not shown, or may be. */
  isOutputHidden = false;
  webSearches = 0;
  /** Searches that are charged, as stated; others only look at a page that was found. */
  chargedSearches: number | undefined;
  images = 0;
  readonly finishedChoices = new Set<unknown>();
  /** By which a later request may name the answer, and items of it. */
  responseId: string | undefined;
  readonly itemIds = new Set<string>();
  /** Whether there are items that may bring more than what was made, such as what a search found. */
  hasOtherItems = false;
  /** The bytes of items that came whole. */
  itemBytes = 0;

  constructor(request: ModelRequest) {
    this.request = request;
  }

  setResponseId(id: unknown): void {
    if (typeof id === 'string') this.responseId ??= id;
  }

  addItemId(id: unknown): void {
    if (typeof id === 'string' && this.itemIds.size < MAX_ITEM_IDS) this.itemIds.add(id);
  }

  setModel(name: unknown): void {
    if (typeof name === 'string' && name !== '') this.model ??= name;
  }

  /** Usage of the whole answer. Some state it more often than once: as it grows, or by mistake. */
  addUsage(usage: unknown): void {
    if (!isJsonObject(usage)) return;
    if (this.isUsageFinal) this.isUsageRepeated = true;
    this.usage = mergeUsage(this.usage, usage);
    this.isUsageFinal = true;
  }

  /** Usage as the answer begins. */
  beginUsage(usage: unknown): void {
    if (!isJsonObject(usage)) return;
    if (this.usage !== undefined) this.isUsageRepeated = true;
    this.usage = mergeUsage(this.usage, usage);
  }

  /** The level of service that was used; each but the standard one has other prices. */
  setServiceTier(tier: unknown): void {
    if (tier === null || tier === undefined) return;
    if (typeof tier !== 'string' || !STANDARD_TIERS.has(tier)) this.isPricedOtherwise = true;
  }

  setError(error: unknown): void {
    if (error === null || error === undefined) return;
    this.errorCode ??= errorCodeOf(error);
  }

  setChargedSearches(count: unknown): void {
    if (isCount(count) && count <= MAX_COUNT)
      this.chargedSearches = Math.max(count, this.chargedSearches ?? 0);
  }

  addOutputBytes(bytes: number): void {
    if (bytes === 0) return;
    this.outputBytes += bytes;
    this.hasOutput = true;
  }

  /** Text that was made: what counts is at most its bytes. */
  addOutput(value: unknown): void {
    this.addOutputBytes(textBytes(value));
  }
}

/** The most items of one answer that may be named later. */
const MAX_ITEM_IDS = 256;

/** As OpenAI and others name it. */
const STANDARD_TIERS: ReadonlySet<string> = new Set(['auto', 'default', 'standard', 'on_demand']);

/** Deeper, no usage nests. */
const MAX_USAGE_DEPTH = 3;

/** The most members of a usage, at each level; those of real ones are fewer than 20. */
const MAX_USAGE_MEMBERS = 64;

/** The greatest of each count; what is no count stays, so that it is found out. */
function mergeUsage(first: JsonObject | undefined, second: JsonObject, depth = 0): JsonObject {
  const merged = new Map<string, JsonValue>(Object.entries(first ?? {}));
  for (const [name, value] of Object.entries(second)) {
    const known = merged.get(name);
    if (!merged.has(name) && merged.size >= MAX_USAGE_MEMBERS) continue;
    if (isJsonObject(known) && isJsonObject(value) && depth < MAX_USAGE_DEPTH)
      merged.set(name, mergeUsage(known, value, depth + 1));
    else if (known === undefined || known === null || (isCount(known) && (!isCount(value) || value > known)))
      if (value !== null || known === undefined) merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

/** Members of pieces that are no text of the model. */
const NO_TEXT: ReadonlySet<string> = new Set(['id', 'call_id', 'item_id', 'role', 'signature', 'type']);
const MAX_TEXT_DEPTH = 16;

/** The bytes of all texts within a value. */
function textBytes(value: unknown, depth = 0): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null || depth > MAX_TEXT_DEPTH) return 0;
  let sum = 0;
  for (const [name, each] of Object.entries(value))
    if (Array.isArray(value) || !NO_TEXT.has(name)) sum += textBytes(each, depth + 1);
  return sum;
}

/** Errors that providers document. Others are not repeated: an upstream may write anything into them. */
const ERROR_CODES: ReadonlySet<string> = new Set([
  'api_error',
  'authentication_error',
  'billing_error',
  'content_filter',
  'content_policy_violation',
  'context_length_exceeded',
  'insufficient_quota',
  'invalid_api_key',
  'invalid_prompt',
  'invalid_request_error',
  'model_not_found',
  'not_found_error',
  'overloaded_error',
  'permission_error',
  'rate_limit_error',
  'rate_limit_exceeded',
  'request_too_large',
  'server_error',
  'timeout_error',
]);

/** The code of an error (SPEC §2). */
function errorCodeOf(error: unknown): string {
  const { code, type } = isJsonObject(error) ? error : {};
  const known = [code, type].find((each) => typeof each === 'string' && ERROR_CODES.has(each));
  return typeof known === 'string' ? known.toUpperCase() : MODEL_ERROR;
}

/** The code of an error of which no more is known. */
const MODEL_ERROR = 'MODEL_ERROR';
