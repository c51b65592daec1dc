/** OpenAI's chat completions (`/v1/chat/completions`), as many providers have them. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { BoundSum, type CallBounds, SCHEMA_TOKENS } from './bounds.js';
import { memberOf, objectsOf, typeOf } from './content.js';
import { addCacheOptions, addImage, addTools, imageTokensOf } from './openai-content.js';
import { invalid, type RequestMembers, shownName } from './request-body.js';
import { mostOutput } from './output-limit.js';

/** The most answers that are made of one request. */
const MAX_CHOICES = 128;

/** Members that make no difference to what a call may cost. */
const FREE: ReadonlySet<string> = new Set([
  'frequency_penalty',
  'function_call',
  'logit_bias',
  'logprobs',
  'metadata',
  'moderation',
  'parallel_tool_calls',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_retention',
  'reasoning_effort',
  'repetition_penalty',
  'safety_identifier',
  'seed',
  'stop',
  'store',
  'stream_options',
  'temperature',
  'tool_choice',
  'top_k',
  'top_logprobs',
  'top_p',
  'min_p',
  'user',
  'verbosity',
]);

/** Members of messages whose content is in the request itself. */
const MESSAGE_MEMBERS: ReadonlySet<string> = new Set([
  'cache_control',
  'content',
  'function_call',
  'name',
  'prefix',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'refusal',
  'role',
  'tool_call_id',
  'tool_calls',
]);

const CLIENT_TOOLS: ReadonlySet<string> = new Set(['function', 'custom']);

/** @throws RequestFault */
export function readChat(members: RequestMembers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  const choices = members.count('n', 1, MAX_CHOICES) ?? 1;
  const limits = [members.count('max_tokens', 1), members.count('max_completion_tokens', 1)];
  for (const message of objectsOf(requiredList(members, 'messages'), 'messages'))
    addMessage(sum, message, imageTokensOf(model));
  addTools(sum, members.list('tools'), CLIENT_TOOLS);
  if (members.list('functions').length > 0) addTools(sum, [{ type: 'function' }], CLIENT_TOOLS);
  if (members.has('response_format')) sum.addedInput += SCHEMA_TOKENS;
  // Models that search at each call are told from others by their names alone.
  if (members.has('web_search_options') || /-search(?:-|$)/.test(model)) {
    sum.webSearches = 1;
    sum.leaveOpen('web_search_options');
  }
  // What is predicted and rejected is output beyond the limit, which is not taken with it.
  if (members.has('prediction')) sum.leaveOpen('prediction');
  if (members.has('audio') || !isTextOnly(members.list('modalities'))) sum.leaveOpen('audio');
  // Each level of service has prices of its own. `auto` may be one of them: the answer says so.
  if (!members.isOneOf('service_tier', 'auto', 'default')) sum.leaveOpen('service_tier');
  addCacheOptions(sum, members);
  const isStream = members.flag('stream');
  sum.leaveOpen(...members.unknown(FREE));
  return sum.of({ model, isStream, choices, maxOutput: mostOutput(limits, choices) });
}

function requiredList(members: RequestMembers, name: string): readonly JsonValue[] {
  if (!members.has(name)) throw invalid(`${name}: expected an array, found none`);
  return members.list(name);
}

function isTextOnly(modalities: readonly JsonValue[]): boolean {
  return modalities.every((each) => each === 'text');
}

const PART_MEMBERS: ReadonlySet<string> = new Set([
  'type',
  'image_url',
  'cache_control',
  'prompt_cache_breakpoint',
]);
const IMAGE_MEMBERS: ReadonlySet<string> = new Set(['url', 'detail']);

function hasOnly(object: JsonObject, names: ReadonlySet<string>): boolean {
  return Object.keys(object).every((name) => names.has(name));
}

function addMessage(sum: BoundSum, message: JsonObject, imageTokens: number): void {
  for (const name of Object.keys(message))
    if (!MESSAGE_MEMBERS.has(name) && message[name] !== null) sum.leaveOpen(`messages: ${shownName(name)}`);
  const content = memberOf(message, 'content') ?? '';
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) throw invalid('messages: expected content to be a text or an array');
  for (const part of objectsOf(content, 'messages: content')) addPart(sum, part, imageTokens);
}

function addPart(sum: BoundSum, part: JsonObject, imageTokens: number): void {
  switch (typeOf(part)) {
    case 'text':
    case 'refusal':
      return;
    // No sound that is taken has as many tokens as bytes: the least of MP3 is 1,000 bytes a second.
    case 'input_audio':
      return;
    case 'image_url': {
      const image = memberOf(part, 'image_url');
      // Some providers take members by which an image has more pixels.
      const isPlain = hasOnly(part, PART_MEMBERS) && (!isJsonObject(image) || hasOnly(image, IMAGE_MEMBERS));
      if (!isPlain) sum.leaveOpen('image');
      addImage(sum, isJsonObject(image) ? memberOf(image, 'url') : image, imageTokens);
      return;
    }
    case 'file':
      sum.leaveOpen('file');
      return;
    default:
      sum.leaveOpen('content of another type');
  }
}
