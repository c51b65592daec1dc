/** Answers of OpenAI's APIs, in one piece and as events. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import type { AnswerForm, AnswerNotes } from './answer-notes.js';
import { memberOf } from './content.js';

const COMMON = ['model', 'usage', 'service_tier', 'error'];

function onCommon(notes: AnswerNotes, path: string, value: unknown): void {
  if (path === 'model') notes.setModel(value);
  else if (path === 'usage') notes.addUsage(value);
  else if (path === 'service_tier') notes.setServiceTier(value);
  else if (path === 'error') notes.setError(value);
}

/** Chat completions and legacy completions. */
export const CHAT_ANSWER: AnswerForm = {
  picks: { values: COMMON, sizes: ['choices'] },
  eventPicks: { values: COMMON, sizes: ['choices'] },
  onValue: onCommon,
  onEvent: (notes, event, data) => {
    if (data === undefined) {
      notes.isEnded = true;
      return;
    }
    for (const name of COMMON) onCommon(notes, name, memberOf(data, name));
    if (event === 'error' && memberOf(data, 'error') === undefined) notes.setError(data);
    const choices = memberOf(data, 'choices');
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (!isJsonObject(choice)) continue;
      notes.addOutput(memberOf(choice, 'delta') ?? memberOf(choice, 'text'));
      const reason = memberOf(choice, 'finish_reason');
      if (reason !== undefined && !notes.isEnded) notes.finishedChoices.add(memberOf(choice, 'index') ?? 0);
      // Some end the stream without `[DONE]`.
      if (notes.finishedChoices.size >= notes.request.choices) notes.isEnded = true;
    }
  },
  textOf: (data) => {
    const choices = memberOf(data, 'choices');
    const [choice, ...others] = Array.isArray(choices) ? choices : [];
    // Usage that comes twice is told of; an end is the end of one choice.
    const isMore = memberOf(data, 'usage') !== undefined || memberOf(data, 'error') !== undefined;
    if (isMore || others.length > 0 || choice === undefined || !isJsonObject(choice)) return undefined;
    if (memberOf(choice, 'finish_reason') !== undefined) return undefined;
    const delta = memberOf(choice, 'delta');
    if (delta === undefined)
      return typeof memberOf(choice, 'text') === 'string' ? ['choices', 0, 'text'] : undefined;
    if (!isJsonObject(delta)) return undefined;
    const name = DELTA_TEXTS.find((each) => typeof memberOf(delta, each) === 'string');
    return name === undefined ? undefined : ['choices', 0, 'delta', name];
  },
};

const DELTA_TEXTS = ['content', 'reasoning_content', 'reasoning', 'refusal'];

export const EMBEDDINGS_ANSWER: AnswerForm = {
  picks: { values: COMMON },
  eventPicks: { values: [] },
  onValue: onCommon,
  onEvent: () => undefined,
};

/** Items that providers charge for, and that usage does not count. */
const PRICED_ITEMS: ReadonlySet<string> = new Set([
  'code_interpreter_call',
  'file_search_call',
  'image_generation_call',
  'mcp_call',
  'shell_call_output',
]);

/** What usage does not count, beside it. */
const CHARGED_SEARCHES = 'tool_usage.web_search.num_requests';

export const RESPONSES_ANSWER: AnswerForm = {
  picks: {
    values: [...COMMON, 'id', 'status', 'output.*.id', 'output.*.type', CHARGED_SEARCHES],
    sizes: ['output'],
  },
  eventPicks: {
    values: [
      ...['type', 'error', 'item.id', 'item.type'],
      ...['response.id', 'response.status', 'response.output.*.id', 'response.output.*.type'],
      ...[...COMMON, CHARGED_SEARCHES].map((name) => `response.${name}`),
    ],
    sizes: ['delta'],
  },
  onValue: (notes, path, value) => {
    if (path === 'status') setStatus(notes, value);
    else if (path === 'id') notes.setResponseId(value);
    else if (path === CHARGED_SEARCHES) notes.setChargedSearches(value);
    else if (path === 'output.*.id') notes.addItemId(value);
    else if (path === 'output.*.type') addItem(notes, value);
    else onCommon(notes, path, value);
  },
  onEvent: (notes, event, data) => {
    if (data === undefined) return;
    const stated = memberOf(data, 'type');
    const type = typeof stated === 'string' ? stated : event;
    if (type === 'error') {
      notes.setError(memberOf(data, 'error') ?? data);
      return;
    }
    const item = memberOf(data, 'item');
    if (type === 'response.output_item.added' && isJsonObject(item)) addItem(notes, memberOf(item, 'type'));
    if (type === 'response.output_item.done' && isJsonObject(item)) {
      notes.addItemId(memberOf(item, 'id'));
      notes.hasOtherItems ||= !isNamable(memberOf(item, 'type'));
      notes.itemBytes += Buffer.byteLength(JSON.stringify(item));
    }
    if (type.endsWith('.delta')) notes.addOutput(memberOf(data, 'delta'));
    const response = memberOf(data, 'response');
    if (!isJsonObject(response)) return;
    notes.setModel(memberOf(response, 'model'));
    notes.setResponseId(memberOf(response, 'id'));
    if (!ENDS.has(type)) return;
    for (const name of COMMON) onCommon(notes, name, memberOf(response, name));
    notes.setChargedSearches(memberAt(response, CHARGED_SEARCHES));
    setStatus(notes, memberOf(response, 'status') ?? type.slice('response.'.length));
    notes.isEnded = true;
    const output = memberOf(response, 'output');
    if (Array.isArray(output)) recountItems(notes, output.filter(isJsonObject));
  },
  textOf: (data) => {
    const [type, delta] = [memberOf(data, 'type'), memberOf(data, 'delta')];
    const isPiece = typeof type === 'string' && type.endsWith('.delta') && typeof delta === 'string';
    return isPiece && memberOf(data, 'response') === undefined ? ['delta'] : undefined;
  },
};

function memberAt(object: JsonObject, path: string): JsonValue | undefined {
  let at: JsonValue | undefined = object;
  for (const name of path.split('.')) at = isJsonObject(at) ? memberOf(at, name) : undefined;
  return at;
}

/** Items that are all that the model made of them. */
const NAMABLE_ITEMS: ReadonlySet<string> = new Set([
  'apply_patch_call',
  'computer_call',
  'custom_tool_call',
  'function_call',
  'local_shell_call',
  'message',
  'reasoning',
]);

function isNamable(type: unknown): boolean {
  return typeof type === 'string' && NAMABLE_ITEMS.has(type);
}

const ENDS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
]);

function setStatus(notes: AnswerNotes, status: unknown): void {
  if (status === 'queued' || status === 'in_progress') notes.isGoingOn = true;
  if (status === 'failed') notes.setError({});
  if (status === 'cancelled') notes.errorCode ??= 'CANCELLED';
}

function addItem(notes: AnswerNotes, type: unknown): void {
  notes.hasOtherItems ||= !isNamable(type);
  if (typeof type !== 'string') return;
  if (type === 'web_search_call') notes.webSearches += 1;
  if (type === 'reasoning') notes.isOutputHidden = true;
  if (PRICED_ITEMS.has(type)) notes.isPricedOtherwise = true;
}

/** The end repeats all items: it may have some that were not announced. */
function recountItems(notes: AnswerNotes, items: readonly JsonObject[]): void {
  const before = notes.webSearches;
  notes.webSearches = 0;
  for (const item of items) {
    const [type, id] = [memberOf(item, 'type'), memberOf(item, 'id')];
    // Of an event that is read in parts, each is an item by itself.
    if (type !== undefined) addItem(notes, type);
    notes.addItemId(id);
  }
  notes.webSearches = Math.max(before, notes.webSearches);
}

export const IMAGES_ANSWER: AnswerForm = {
  picks: { values: COMMON, counts: ['data.*'] },
  eventPicks: { values: ['type', 'usage', 'error'] },
  onValue: onCommon,
  onEvent: (notes, event, data) => {
    if (data === undefined) return;
    const type = memberOf(data, 'type') ?? event;
    if (type === 'error') notes.setError(memberOf(data, 'error') ?? data);
    if (type !== 'image_generation.completed') return;
    notes.addUsage(memberOf(data, 'usage'));
    notes.images += 1;
    notes.isEnded = true;
  },
};

/** Transcriptions; speech is no JSON. */
export const AUDIO_ANSWER: AnswerForm = {
  picks: { values: COMMON },
  eventPicks: { values: ['type', 'usage', 'error'] },
  onValue: onCommon,
  onEvent: (notes, event, data) => {
    if (data === undefined) return;
    const type = memberOf(data, 'type') ?? event;
    if (type === 'error') notes.setError(memberOf(data, 'error') ?? data);
    if (type !== 'transcript.text.done' && type !== 'speech.audio.done') return;
    notes.addUsage(memberOf(data, 'usage'));
    notes.isEnded = true;
  },
};

/** What costs later, if at all. */
export const STORED_ANSWER: AnswerForm = {
  picks: { values: ['error'] },
  eventPicks: { values: [] },
  onValue: onCommon,
  onEvent: () => undefined,
};
