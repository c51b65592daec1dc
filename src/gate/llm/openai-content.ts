/** What is in the messages and tools of OpenAI's APIs, as far as it decides what a call may cost. */

import type { JsonValue } from '../../base/json/value.js';
import { type BoundSum, GPT_4O_MINI_IMAGE_TOKENS, OPENAI_IMAGE_TOKENS, TOOLS_TOKENS } from './bounds.js';
import { memberOf, objectsOf, toolName, typeOf } from './content.js';
import { invalid, type RequestMembers } from './request-body.js';

/** How many tokens an image has at most for a model. */
export function imageTokensOf(model: string): number {
  return /(?:^|[/:])gpt-4o-mini/.test(model) ? GPT_4O_MINI_IMAGE_TOKENS : OPENAI_IMAGE_TOKENS;
}

/** An image, by data in the request, by address or by id: its size is bounded, wherever it is from. */
export function addImage(sum: BoundSum, source: JsonValue | undefined, maxTokens: number): void {
  const isData = typeof source === 'string' && /^data:/i.test(source);
  // Some providers take other documents where an image is expected.
  if (isData && !/^data:image\//i.test(source)) sum.leaveOpen('file');
  sum.addImage(isData ? source.length : 0, maxTokens);
}

/** How long what is written to a cache stays at the price of writing; longer has another. */
const STANDARD_TTL = '30m';

export function addCacheOptions(sum: BoundSum, members: RequestMembers): void {
  const ttl = memberOf(members.object('prompt_cache_options') ?? {}, 'ttl') ?? STANDARD_TTL;
  if (ttl !== STANDARD_TTL) sum.leaveOpen('prompt_cache_options.ttl');
}

/**
 * The tools of a request. Those of these types run at the client; all others run at the provider, which pays for what it does with them by
 * the input and output of further turns.
 */
export function addTools(
  sum: BoundSum,
  tools: readonly JsonValue[],
  types: ReadonlySet<string>,
  where = 'tools',
): void {
  if (tools.length === 0) return;
  if (where === 'tools') sum.addedInput += TOOLS_TOKENS;
  for (const tool of objectsOf(tools, where)) {
    const type = typeOf(tool);
    if (type === undefined || !types.has(type)) sum.leaveOpen(toolName(type));
    const nested = memberOf(tool, 'tools');
    if (type === 'namespace' && types.has(type) && nested !== undefined) {
      if (!Array.isArray(nested)) throw invalid(`${where}: expected the tools of a namespace to be an array`);
      addTools(sum, nested, types, `${where}.tools`);
    }
  }
}
