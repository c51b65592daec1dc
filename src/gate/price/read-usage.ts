/** The usage that providers and SDKs state, as {@link ModelUsage}. Each counts its own way what lies in what. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { describeValue } from '../../base/options.js';
import { MODEL_USAGE_INVALID, type ModelUsage } from '../../log/agent/model-usage.js';
import { checkUsage, MAX_COUNT } from './usage.js';

export type UsageKind =
  | 'openai-chat'
  | 'openai-responses'
  | 'anthropic'
  | 'gemini'
  | 'vercel-ai'
  | 'langchain';

const MAX_MODALITIES = 16;

const READERS: Readonly<Record<UsageKind, (raw: Raw) => ModelUsage | undefined>> = {
  'openai-chat': readOpenaiChat,
  'openai-responses': readOpenaiResponses,
  anthropic: readAnthropic,
  gemini: readGemini,
  'vercel-ai': readVercelAi,
  langchain: readLangchain,
};

/**
 * Reads the usage of an answer: `usage` of the OpenAI APIs (`openai-chat`, `openai-responses`) and of Anthropic's messages (`anthropic`),
 * `usageMetadata` of Gemini (`gemini`), `usage` of the AI SDK (`vercel-ai`), `usage_metadata` of LangChain (`langchain`). Members that are not
 * known are ignored.
 * @returns undefined where there is none: `undefined`, `null`, and an AI SDK usage that states neither input nor output. A stream states its
 *   usage at its end, and an aborted one never.
 * @throws NorthrootError `MODEL_USAGE_INVALID` where a needed member is missing, a number is no whole number from 0 to 10^9, parts are more
 *   than their whole, or the usage says that it was charged at other prices than the standard ones. A guarded call that throws it is charged
 *   as reserved.
 * @throws RangeError for an unknown kind
 */
export function readUsage(kind: UsageKind, raw: unknown): ModelUsage | undefined {
  if (!Object.hasOwn(READERS, kind))
    throw new RangeError(
      `readUsage: expected one of ${Object.keys(READERS).join(', ')}, found ${printable(String(kind), 80)}`,
    );
  if (raw === undefined || raw === null) return undefined;
  const usage = READERS[kind](new Raw(kind, '', raw));
  if (usage === undefined) return undefined;
  try {
    const stated = defined(usage) as ModelUsage;
    checkUsage(kind, stated);
    return stated;
  } catch (error) {
    if (error instanceof RangeError)
      throw new NorthrootError(MODEL_USAGE_INVALID, error.message, { cause: error });
    throw error;
  }
}

/** A foreign object, of which members are read with care. */
class Raw {
  readonly #kind: string;
  readonly #path: string;
  readonly #value: Readonly<Record<string, unknown>>;

  constructor(kind: string, path: string, value: unknown) {
    this.#kind = kind;
    this.#path = path;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw this.fault('', 'an object', describeValue(value));
    this.#value = value as Readonly<Record<string, unknown>>;
  }

  /** A count; undefined where it is absent or null. */
  count(name: string): number | undefined {
    const value = this.#member(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > MAX_COUNT) {
      const found = typeof value === 'number' ? String(value) : describeValue(value);
      throw this.fault(name, `a whole number from 0 to ${MAX_COUNT}`, found);
    }
    return value;
  }

  needed(name: string): number {
    const value = this.count(name);
    if (value === undefined) throw this.fault(name, 'a number', 'none');
    return value;
  }

  /** The object of this name; an empty one where it is absent or null. */
  object(name: string): Raw {
    return new Raw(this.#kind, `${this.#path}${name}.`, this.#member(name) ?? {});
  }

  has(name: string): boolean {
    return this.#member(name) !== undefined;
  }

  /** The counts of Gemini's `[{ modality, tokenCount }]`, by modality in capitals. */
  modalities(name: string): ReadonlyMap<string, number> {
    const list = this.#member(name) ?? [];
    if (!Array.isArray(list) || list.length > MAX_MODALITIES)
      throw this.fault(name, `an array of at most ${MAX_MODALITIES}`, describeValue(list));
    const counts = new Map<string, number>();
    for (const [index, each] of (list as readonly unknown[]).entries()) {
      const one = new Raw(this.#kind, `${this.#path}${name}.${index}.`, each);
      const modality = one.#member('modality');
      const key = typeof modality === 'string' ? modality : '';
      // A modality of no tokens has no count.
      counts.set(key, (counts.get(key) ?? 0) + (one.count('tokenCount') ?? 0));
    }
    return counts;
  }

  /** @throws NorthrootError where a member says that other prices hold than those of any of these values */
  expectStandard(name: string, ...values: readonly string[]): void {
    const value = this.#member(name);
    if (value === undefined || (typeof value === 'string' && values.includes(value))) return;
    const found = typeof value === 'string' ? printable(value, 80) : describeValue(value);
    throw this.fault(name, `${values.join(' or ')}, as other prices hold for others`, found);
  }

  fault(name: string, expected: string, actual: string): NorthrootError {
    const place = `${this.#path}${name}`.replace(/\.$/, '');
    const where = place === '' ? this.#kind : `${this.#kind}: ${place}`;
    return new NorthrootError(MODEL_USAGE_INVALID, `${where}: expected ${expected}, found ${actual}`);
  }

  #member(name: string): unknown {
    return Object.hasOwn(this.#value, name) ? (this.#value[name] ?? undefined) : undefined;
  }
}

/**
 * The output with what the total has beside input and output: some providers state reasoning there alone, or beside the output, and charge
 * for it as output.
 */
function withRest(input: number, output: number, total = 0): number {
  return Math.max(output, total - input);
}

/** The cache is within the input; what of the cache is audio or images is not said, so that those count in full. */
function readOpenaiChat(raw: Raw): ModelUsage {
  const input = raw.needed('prompt_tokens');
  const details = raw.object('prompt_tokens_details');
  const outputs = raw.object('completion_tokens_details');
  const inputAudio = details.count('audio_tokens');
  const inputImage = details.count('image_tokens');
  const total = raw.count('total_tokens');
  // Embeddings have no output.
  const isInputOnly = !raw.has('completion_tokens') && total === input;
  return {
    input,
    output: isInputOnly ? 0 : withRest(input, raw.needed('completion_tokens'), total),
    cacheRead: within(details.count('cached_tokens'), input, (inputAudio ?? 0) + (inputImage ?? 0)),
    cacheWrite: shortWrites(details),
    inputAudio,
    inputImage,
    reasoning: outputs.count('reasoning_tokens'),
    outputAudio: outputs.count('audio_tokens'),
  };
}

/** A part that is stated without saying how much of it is in another part: no more than is left beside that. */
function within(part: number | undefined, whole: number, other = 0): number | undefined {
  return part === undefined || other === 0 ? part : Math.min(part, Math.max(0, whole - other));
}

/** What was written to the cache. To write it for half a day has a price of its own, which no price file has. */
function shortWrites(details: Raw): number | undefined {
  const long = details.object('cache_write_tokens_details').count('ttl_12h_tokens') ?? 0;
  if (long === 0) return details.count('cache_write_tokens');
  throw details.fault(
    'cache_write_tokens_details.ttl_12h_tokens',
    '0, as other prices hold for others',
    `${long}`,
  );
}

function readOpenaiResponses(raw: Raw): ModelUsage {
  const details = raw.object('input_tokens_details');
  const input = raw.needed('input_tokens');
  return {
    input,
    output: withRest(input, raw.needed('output_tokens'), raw.count('total_tokens')),
    cacheRead: details.count('cached_tokens'),
    cacheWrite: shortWrites(details),
    reasoning: raw.object('output_tokens_details').count('reasoning_tokens'),
  };
}

/** The cache is beside the input. */
function readAnthropic(raw: Raw): ModelUsage {
  raw.expectStandard('service_tier', 'standard');
  raw.expectStandard('speed', 'standard');
  raw.expectStandard('inference_geo', 'global', 'not_available', '');
  const fresh = raw.needed('input_tokens');
  const read = raw.count('cache_read_input_tokens');
  const written = raw.count('cache_creation_input_tokens');
  const creation = raw.object('cache_creation');
  const hour = creation.count('ephemeral_1h_input_tokens');
  const minutes = creation.count('ephemeral_5m_input_tokens');
  const all =
    written ?? (hour === undefined && minutes === undefined ? undefined : (hour ?? 0) + (minutes ?? 0));
  if (all !== undefined && (hour ?? 0) + (minutes ?? 0) > all)
    throw raw.fault(
      'cache_creation_input_tokens',
      `at least ${(hour ?? 0) + (minutes ?? 0)}, as cache_creation states`,
      `${all}`,
    );
  return {
    input: fresh + (read ?? 0) + (all ?? 0),
    output: raw.needed('output_tokens'),
    cacheRead: read,
    cacheWrite: all === undefined ? undefined : all - (hour ?? 0),
    cacheWrite1h: hour,
    reasoning: raw.object('output_tokens_details').count('thinking_tokens'),
    webSearches: raw.object('server_tool_use').count('web_search_requests'),
  };
}

/** The cache is within the prompt; thoughts and the results of tools are beside output and prompt. */
function readGemini(raw: Raw): ModelUsage {
  const prompt = raw.count('promptTokenCount');
  const tools = raw.count('toolUsePromptTokenCount') ?? 0;
  const answer = raw.count('candidatesTokenCount') ?? raw.count('responseTokenCount');
  const thoughts = raw.count('thoughtsTokenCount');
  // Counts of 0 are left out: the total tells them from those that are not known.
  const sum = (prompt ?? 0) + tools + (answer ?? 0) + (thoughts ?? 0);
  if (prompt === undefined || answer === undefined) {
    const total = raw.needed('totalTokenCount');
    if (total !== sum) throw raw.fault('totalTokenCount', `${sum}, the sum of what is stated`, `${total}`);
  }
  const [inputs, toolInputs] = [
    raw.modalities('promptTokensDetails'),
    raw.modalities('toolUsePromptTokensDetails'),
  ];
  const cached = raw.modalities('cacheTokensDetails');
  const outputs = raw.modalities(
    raw.has('candidatesTokensDetails') ? 'candidatesTokensDetails' : 'responseTokensDetails',
  );
  const cacheOf = (modality: string): number => cached.get(modality) ?? 0;
  const freshOf = (modality: string): number | undefined => {
    const all = (inputs.get(modality) ?? 0) + (toolInputs.get(modality) ?? 0);
    return all === 0 ? undefined : Math.max(0, all - cacheOf(modality));
  };
  const input = (prompt ?? 0) + tools;
  const [inputAudio, inputImage, inputVideo] = [freshOf('AUDIO'), freshOf('IMAGE'), freshOf('VIDEO')];
  const [cacheAudio, cacheImage] = [cacheOf('AUDIO'), cacheOf('IMAGE')];
  const others = (inputAudio ?? 0) + (inputImage ?? 0) + (inputVideo ?? 0) + cacheAudio + cacheImage;
  const stated = raw.count('cachedContentTokenCount');
  return {
    input,
    output: (answer ?? 0) + (thoughts ?? 0),
    cacheRead:
      stated === undefined ? undefined : within(Math.max(0, stated - cacheAudio - cacheImage), input, others),
    cacheReadAudio: cacheAudio || undefined,
    cacheReadImage: cacheImage || undefined,
    inputAudio,
    inputImage,
    inputVideo,
    reasoning: thoughts,
    outputAudio: outputs.get('AUDIO'),
    outputImage: outputs.get('IMAGE'),
    outputVideo: outputs.get('VIDEO'),
  };
}

/** The cache is within the input. Versions before 6 state it beside the details. */
function readVercelAi(raw: Raw): ModelUsage | undefined {
  const input = raw.count('inputTokens');
  const output = raw.count('outputTokens');
  if (input === undefined && output === undefined) return undefined;
  const inputs = raw.object('inputTokenDetails');
  return {
    input: raw.needed('inputTokens'),
    output: raw.needed('outputTokens'),
    cacheRead: inputs.count('cacheReadTokens') ?? raw.count('cachedInputTokens'),
    cacheWrite: inputs.count('cacheWriteTokens'),
    reasoning: raw.object('outputTokenDetails').count('reasoningTokens') ?? raw.count('reasoningTokens'),
  };
}

/** The cache is within the input. */
function readLangchain(raw: Raw): ModelUsage {
  const input = raw.needed('input_tokens');
  const inputs = raw.object('input_token_details');
  const outputs = raw.object('output_token_details');
  const inputAudio = inputs.count('audio');
  const hour = inputs.count('ephemeral_1h_input_tokens');
  // Beside what is stated by how long it is kept, the sum may be 0.
  const byTime = (inputs.count('ephemeral_5m_input_tokens') ?? 0) + (hour ?? 0);
  const written = Math.max(inputs.count('cache_creation') ?? 0, byTime);
  return {
    input,
    output: raw.needed('output_tokens'),
    cacheRead: within(inputs.count('cache_read'), input, inputAudio),
    cacheWrite: inputs.has('cache_creation') || byTime > 0 ? written - (hour ?? 0) : undefined,
    cacheWrite1h: hour,
    inputAudio,
    reasoning: outputs.count('reasoning'),
    outputAudio: outputs.count('audio'),
  };
}
