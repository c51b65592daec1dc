/** OpenAI's other APIs: legacy completions, embeddings, images, sound, batches and files. */

import type { JsonValue } from '../../base/json/value.js';
import { BoundSum, type CallBounds } from './bounds.js';
import { mostOutput } from './output-limit.js';
import { invalid, type RequestMembers } from './request-body.js';

const MAX_CHOICES = 128;
/** The most prompts or texts in one request. */
const MAX_PROMPTS = 2_048;

const COMPLETION_FREE: ReadonlySet<string> = new Set([
  'echo',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'presence_penalty',
  'seed',
  'stop',
  'stream_options',
  'suffix',
  'temperature',
  'top_p',
  'user',
]);

/** `/v1/completions`. @throws RequestFault */
export function readCompletions(members: RequestMembers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  const answers = Math.max(
    members.count('n', 1, MAX_CHOICES) ?? 1,
    members.count('best_of', 1, MAX_CHOICES) ?? 1,
  );
  const choices = answers * countPrompts(members.any('prompt'));
  const limit = members.count('max_tokens', 1);
  const isStream = members.flag('stream');
  sum.leaveOpen(...members.unknown(COMPLETION_FREE));
  return sum.of({ model, isStream, choices, maxOutput: mostOutput([limit], choices) });
}

/** A prompt is a text or a list of tokens; several are a list of those. */
function countPrompts(prompt: JsonValue | undefined): number {
  if (prompt === undefined || typeof prompt === 'string') return 1;
  if (!Array.isArray(prompt)) throw invalid('prompt: expected a text or an array');
  if (prompt.every((each) => typeof each === 'number')) return 1;
  if (prompt.length > MAX_PROMPTS) throw invalid(`prompt: expected at most ${MAX_PROMPTS}`);
  if (!prompt.every((each) => typeof each === 'string' || Array.isArray(each)))
    throw invalid('prompt: expected texts or arrays of tokens');
  return prompt.length;
}

const EMBEDDING_FREE: ReadonlySet<string> = new Set([
  'dimensions',
  'encoding_format',
  'input_type',
  'truncate',
  'user',
]);

/** `/v1/embeddings`: no output. @throws RequestFault */
export function readEmbeddings(members: RequestMembers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  const input = members.any('input');
  if (input === undefined) throw invalid('input: expected a text or an array, found none');
  const list = Array.isArray(input) ? input : [input];
  const isPlain = (each: JsonValue): boolean => typeof each === 'string' || typeof each === 'number';
  if (!list.every((each) => (Array.isArray(each) ? each.every(isPlain) : isPlain(each))))
    sum.leaveOpen('input of another type');
  sum.leaveOpen(...members.unknown(EMBEDDING_FREE));
  return sum.of({ model, isStream: false, choices: 1, maxOutput: 0 });
}

/** The most output tokens of an image of gpt-image-1: 6,240, high quality, 1024 by 1536 ("Image generation: cost and latency"). */
const IMAGE_TOKENS = 6_240;
/** What an image that is shown before it is ready adds (there). */
const PARTIAL_IMAGE_TOKENS = 100;
const IMAGE_TOKEN_MODELS = /^gpt-image-1(?:$|-)/;
const IMAGE_SIZES = ['auto', '1024x1024', '1536x1024', '1024x1536'];
const MAX_IMAGES = 10;
const MAX_PARTIAL_IMAGES = 3;

const IMAGE_FREE: ReadonlySet<string> = new Set([
  'background',
  'moderation',
  'output_compression',
  'output_format',
  'prompt',
  'response_format',
  'user',
]);

/**
 * `/v1/images/generations`. gpt-image-1 is priced by tokens; others by image, at a price that depends on size and quality.
 * @throws RequestFault
 */
export function readImages(members: RequestMembers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  const images = members.count('n', 1, MAX_IMAGES) ?? 1;
  const partial = members.count('partial_images', 0, MAX_PARTIAL_IMAGES) ?? 0;
  const isByToken = IMAGE_TOKEN_MODELS.test(model);
  if (isByToken) {
    members.any('quality');
    if (!members.isOneOf('size', ...IMAGE_SIZES)) sum.leaveOpen('size');
  } else {
    for (const name of ['quality', 'size', 'style']) if (members.has(name)) sum.leaveOpen(name);
  }
  const isStream = members.flag('stream');
  sum.leaveOpen(...members.unknown(IMAGE_FREE));
  const maxOutput = isByToken ? images * (IMAGE_TOKENS + partial * PARTIAL_IMAGE_TOKENS) : 0;
  return { ...sum.of({ model, isStream, choices: 1, maxOutput }), images };
}

/** `/v1/audio/speech`: how long the sound of a text is, is not known before. @throws RequestFault */
export function readSpeech(members: RequestMembers): CallBounds {
  return openCall(members.model(), 'audio', members.any('stream_format') === 'sse');
}

/** A call whose cost its request does not tell. */
export function openCall(model: string, reason: string, isStream = false): CallBounds {
  const sum = new BoundSum();
  sum.leaveOpen(reason);
  return sum.of({ model, isStream, choices: 1, maxOutput: 0 });
}
