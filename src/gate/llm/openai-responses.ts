/** OpenAI's responses (`/v1/responses`). */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { BoundSum, type CallBounds, SCHEMA_TOKENS } from './bounds.js';
import { memberOf, objectsOf, typeOf } from './content.js';
import type { KnownOutput, NamedAnswers } from './known-answers.js';
import { addCacheOptions, addImage, addTools, imageTokensOf } from './openai-content.js';
import { mostOutput } from './output-limit.js';
import { invalid, type RequestMembers } from './request-body.js';

/** Members that make no difference to what a call may cost. */
const FREE: ReadonlySet<string> = new Set([
  'client_metadata',
  'include',
  'instructions',
  'max_tool_calls',
  'metadata',
  'moderation',
  'parallel_tool_calls',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'store',
  'stream_options',
  'temperature',
  'tool_choice',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
]);

const CLIENT_TOOLS: ReadonlySet<string> = new Set(['function', 'custom', 'namespace']);

/** Items whose content is in the request itself. */
const PLAIN_ITEMS: ReadonlySet<string> = new Set([
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'computer_call',
  'custom_tool_call',
  'file_search_call',
  'function_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'shell_call',
  'shell_call_output',
  'web_search_call',
]);

/**
 * @param known - The earlier turns that the request may name. Default: none
 * @throws RequestFault
 */
export function readResponses(members: RequestMembers, known?: NamedAnswers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  const imageTokens = imageTokensOf(model);
  const limit = members.count('max_output_tokens', 1);
  const input = members.any('input') ?? '';
  const named = new NamedSum(sum, model, known);
  if (Array.isArray(input))
    for (const item of objectsOf(input, 'input')) addItem(sum, named, item, imageTokens);
  else if (typeof input !== 'string') throw invalid('input: expected a text or an array');
  const tools = members.list('tools');
  addTools(sum, tools, CLIENT_TOOLS);
  sum.webSearches = countSearches(tools, members.count('max_tool_calls', 0));
  if (/-(?:search|deep-research)(?:-|$)/.test(model)) sum.leaveOpen('tools of the model');
  if (members.has('text')) sum.addedInput += SCHEMA_TOKENS;
  if (members.has('previous_response_id')) named.addResponse(members.any('previous_response_id'));
  for (const name of ['conversation', 'prompt', 'context_management'])
    if (members.has(name)) sum.leaveOpen(name);
  if (!members.isOneOf('service_tier', 'auto', 'default')) sum.leaveOpen('service_tier');
  addCacheOptions(sum, members);
  const mode = memberOf(members.object('reasoning') ?? {}, 'mode') ?? 'standard';
  if (mode !== 'standard') sum.leaveOpen('reasoning.mode');
  const [isStream, isBackground] = [members.flag('stream'), members.flag('background')];
  sum.leaveOpen(...members.unknown(FREE));
  return sum.of({ model, isStream, isBackground, choices: 1, maxOutput: mostOutput([limit], 1) });
}

/** Searches are as many as all calls of tools, where that is limited. */
function countSearches(tools: readonly JsonValue[], maxCalls: number | undefined): number {
  const searches = tools.some((tool) => isJsonObject(tool) && /^web_search/.test(typeOf(tool) ?? ''));
  return searches ? (maxCalls ?? 1) : 0;
}

/** What the provider adds to the input for the ids in a request. */
class NamedSum {
  readonly #sum: BoundSum;
  readonly #model: string;
  readonly #known: NamedAnswers | undefined;
  readonly #ids = new Set<string>();
  readonly #outputs = new Set<KnownOutput>();

  constructor(sum: BoundSum, model: string, known: NamedAnswers | undefined) {
    this.#sum = sum;
    this.#model = model;
    this.#known = known;
  }

  addResponse(id: JsonValue | undefined): void {
    const tokens = typeof id === 'string' ? this.#known?.response(this.#model, id) : undefined;
    if (tokens === undefined) this.#sum.leaveOpen('previous_response_id that was not seen here');
    else this.#sum.addedInput += tokens;
  }

  addItem(id: JsonValue | undefined, name: string): void {
    const output = typeof id === 'string' ? this.#known?.item(this.#model, id) : undefined;
    if (typeof id !== 'string' || output === undefined) {
      this.#sum.leaveOpen(`${name} that was not seen here`);
      return;
    }
    // The items of an answer are its output together, unless one is named twice.
    if (this.#ids.has(id) || !this.#outputs.has(output)) this.#sum.addedInput += output.tokens;
    this.#ids.add(id);
    this.#outputs.add(output);
  }
}

function addItem(sum: BoundSum, named: NamedSum, item: JsonObject, imageTokens: number): void {
  const type = typeOf(item) ?? 'message';
  if (PLAIN_ITEMS.has(type)) return;
  switch (type) {
    case 'message':
      addContent(sum, memberOf(item, 'content'), imageTokens);
      return;
    case 'function_call_output':
    case 'custom_tool_call_output':
      addContent(sum, memberOf(item, 'output'), imageTokens);
      return;
    case 'computer_call_output': {
      const output = memberOf(item, 'output');
      addImage(sum, isJsonObject(output) ? memberOf(output, 'image_url') : undefined, imageTokens);
      return;
    }
    case 'image_generation_call':
      addImage(sum, undefined, imageTokens);
      return;
    case 'reasoning':
      // Without its content, the provider may add what it keeps under this id.
      if (memberOf(item, 'encrypted_content') === undefined)
        named.addItem(memberOf(item, 'id'), 'reasoning by id');
      return;
    case 'item_reference':
      named.addItem(memberOf(item, 'id'), type);
      return;
    default:
      sum.leaveOpen('input of another type');
  }
}

function addContent(sum: BoundSum, content: JsonValue | undefined, imageTokens: number): void {
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) throw invalid('input: expected content to be a text or an array');
  for (const part of objectsOf(content, 'input: content')) {
    const type = typeOf(part);
    if (type === 'input_image') addImage(sum, memberOf(part, 'image_url'), imageTokens);
    else if (type === 'input_file') sum.leaveOpen('file');
    // Sound has fewer tokens than bytes, as in chat completions.
    else if (!PLAIN_PARTS.has(type ?? '')) sum.leaveOpen('content of another type');
  }
}

const PLAIN_PARTS: ReadonlySet<string> = new Set([
  'input_audio',
  'input_text',
  'output_text',
  'reasoning_text',
  'refusal',
  'summary_text',
  'text',
]);
