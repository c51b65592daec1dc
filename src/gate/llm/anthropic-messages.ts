/** Anthropic's messages (`/v1/messages`). */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import {
  ANTHROPIC_IMAGE_TOKENS,
  BoundSum,
  type CallBounds,
  DEFINED_TOOL_TOKENS,
  REFERENCE_TOKENS,
  SCHEMA_TOKENS,
  TOOLS_TOKENS,
} from './bounds.js';
import { memberOf, objectsOf, toolName, typeOf } from './content.js';
import { mostOutput } from './output-limit.js';
import { invalid, type RequestMembers } from './request-body.js';

/** Members that make no difference to what a call may cost; a budget for thinking lies within `max_tokens`. */
const FREE: ReadonlySet<string> = new Set([
  'cache_control',
  'diagnostics',
  'metadata',
  'stop_sequences',
  'temperature',
  'thinking',
  'tool_choice',
  'top_k',
  'top_p',
  'user_profile_id',
]);

/** Members each of which makes a call cost what its request does not tell. */
const OPEN: readonly string[] = [
  'billing_policy',
  'compaction',
  'container',
  'fallbacks',
  'mcp_servers',
  'thread',
  'workspace_id',
];

/** Tools that Anthropic defines and the client runs, by the beginning of their type; their names end with a date. */
const CLIENT_TOOLS = /^(?:bash|text_editor|computer)_2[0-9]{7}$/;

/** @throws RequestFault */
export function readMessages(members: RequestMembers): CallBounds {
  const sum = new BoundSum();
  const model = members.model();
  // 0 fills the cache and answers nothing.
  const limit = members.count('max_tokens', 0);
  if (limit === undefined) throw invalid('max_tokens: expected a number, found none');
  if (!members.has('messages')) throw invalid('messages: expected an array, found none');
  const tools = objectsOf(members.list('tools'), 'tools');
  const content = new ContentSum(sum, tools);
  for (const message of objectsOf(members.list('messages'), 'messages'))
    content.add(memberOf(message, 'content'));
  content.add(members.any('system'));
  addTools(sum, tools);
  if (members.has('output_format') || members.has('output_config')) sum.addedInput += SCHEMA_TOKENS;
  for (const name of OPEN) if (members.has(name)) sum.leaveOpen(name);
  if (!clearsOnly(members.object('context_management'))) sum.leaveOpen('context_management');
  // Each has prices of its own. `auto` may be another level of service: the answer says so.
  if (!members.isOneOf('service_tier', 'auto', 'standard_only')) sum.leaveOpen('service_tier');
  if (!members.isOneOf('speed', 'standard')) sum.leaveOpen('speed');
  if (!members.isOneOf('inference_geo', 'global')) sum.leaveOpen('inference_geo');
  const isStream = members.flag('stream');
  sum.leaveOpen(...members.unknown(FREE));
  return sum.of({ model, isStream, choices: 1, maxOutput: mostOutput([limit], 1) });
}

/** Whether it only leaves out what is in the request: whatever else it does is a call of its own. */
function clearsOnly(management: JsonObject | undefined): boolean {
  if (management === undefined) return true;
  const edits = memberOf(management, 'edits') ?? [];
  return (
    Array.isArray(edits) &&
    edits.every((edit) => isJsonObject(edit) && (typeOf(edit) ?? '').startsWith('clear_'))
  );
}

function addTools(sum: BoundSum, tools: readonly JsonObject[]): void {
  if (tools.length > 0) sum.addedInput += TOOLS_TOKENS;
  for (const tool of tools) {
    const type = memberOf(tool, 'type') ?? 'custom';
    if (type === 'custom') continue;
    if (typeof type === 'string' && CLIENT_TOOLS.test(type)) {
      sum.addedInput += DEFINED_TOOL_TOKENS;
      continue;
    }
    // What it finds is input of a further turn.
    sum.leaveOpen(toolName(typeof type === 'string' ? type : undefined));
    if (typeof type === 'string' && type.startsWith('web_search_')) sum.webSearches += maxUses(tool);
  }
}

/** The most searches, if it says so; else one stands for them, as the tool has no bound anyway. */
function maxUses(tool: JsonObject): number {
  const uses = memberOf(tool, 'max_uses') ?? 1;
  if (typeof uses !== 'number' || !Number.isInteger(uses) || uses < 1 || uses > MAX_SEARCHES)
    throw invalid(`tools: expected max_uses to be a whole number from 1 to ${MAX_SEARCHES}`);
  return uses;
}

const MAX_SEARCHES = 100_000;

/** Blocks whose content is in the request itself; what is within them is looked at too. */
const PLAIN_BLOCKS: ReadonlySet<string> = new Set([
  'bash_code_execution_result',
  'bash_code_execution_tool_result',
  'code_execution_result',
  'code_execution_tool_result',
  'encrypted_code_execution_result',
  'mcp_tool_result',
  'mcp_tool_use',
  'redacted_thinking',
  'search_result',
  'server_tool_use',
  'text',
  'text_editor_code_execution_tool_result',
  'thinking',
  'tool_result',
  'tool_use',
  'web_fetch_result',
  'web_fetch_tool_result',
  'web_search_result',
  'web_search_tool_result',
]);

/** What is in messages. Tools that are named in it are put there, each time anew. */
class ContentSum {
  readonly #sum: BoundSum;
  readonly #tools: readonly JsonObject[];
  #sizes: ReadonlyMap<string, number> | undefined;

  constructor(sum: BoundSum, tools: readonly JsonObject[]) {
    this.#sum = sum;
    this.#tools = tools;
  }

  /** Content is a text, a block, or an array of blocks; parsing has bounded how deep they nest. */
  add(content: JsonValue | undefined): void {
    if (content === undefined || content === null || typeof content === 'string') return;
    const blocks = Array.isArray(content) ? content : [content];
    for (const block of objectsOf(blocks, 'content')) this.#addBlock(block);
  }

  #addBlock(block: JsonObject): void {
    const sum = this.#sum;
    const type = typeOf(block) ?? '';
    if (isCited(block)) sum.leaveOpen('citations');
    if (type === 'image') addImage(sum, block);
    else if (type === 'document') this.#addDocument(block);
    else if (type === 'tool_reference') this.#addTool(memberOf(block, 'tool_name'));
    else if (type === 'tool_addition' || type === 'tool_removal') this.#addChange(memberOf(block, 'tool'));
    else if (PLAIN_BLOCKS.has(type)) {
      // The input of a tool is not content, whatever it looks like.
      if (type.endsWith('result')) this.add(memberOf(block, 'content'));
    } else if (!type.endsWith('_error')) sum.leaveOpen('content of another type');
  }

  /** A page of a PDF is text and an image; a small file may have hundreds. */
  #addDocument(block: JsonObject): void {
    const source = memberOf(block, 'source');
    const type = isJsonObject(source) ? typeOf(source) : undefined;
    if (isJsonObject(source) && type === 'content') this.add(memberOf(source, 'content'));
    else if (type !== 'text') this.#sum.leaveOpen('document');
  }

  #addChange(tool: JsonValue | undefined): void {
    const isReference = isJsonObject(tool) && typeOf(tool) === 'tool_reference';
    this.#addTool(isReference ? memberOf(tool, 'name') : undefined);
  }

  #addTool(name: JsonValue | undefined): void {
    this.#sizes ??= sizesOf(this.#tools);
    const size = typeof name === 'string' ? this.#sizes.get(name) : undefined;
    if (size === undefined) this.#sum.leaveOpen('tool by reference');
    else this.#sum.addedInput += size + REFERENCE_TOKENS;
  }
}

/** What the definition of a tool has at most, by its name. */
function sizesOf(tools: readonly JsonObject[]): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const tool of tools) {
    const name = memberOf(tool, 'name');
    if (typeof name !== 'string') continue;
    const text = JSON.stringify(tool);
    const bytes = Math.max(Buffer.byteLength(text), Buffer.byteLength(text.normalize('NFKC')));
    const own = typeOf(tool) === undefined ? bytes : Math.max(bytes, DEFINED_TOOL_TOKENS);
    sizes.set(name, Math.max(own, sizes.get(name) ?? 0));
  }
  return sizes;
}

/** A text to be cited is cut into numbered pieces, by which it becomes longer than it is. */
function isCited(block: JsonObject): boolean {
  const citations = memberOf(block, 'citations');
  return isJsonObject(citations) && memberOf(citations, 'enabled') === true;
}

const IMAGE_MEMBERS: ReadonlySet<string> = new Set(['type', 'source', 'cache_control']);

/** By data in the request, by address or by id: its size is bounded, wherever it is from. */
function addImage(sum: BoundSum, block: JsonObject): void {
  const source = memberOf(block, 'source');
  const data = isJsonObject(source) ? memberOf(source, 'data') : undefined;
  sum.addImage(typeof data === 'string' ? data.length : 0, ANTHROPIC_IMAGE_TOKENS);
  if (!Object.keys(block).every((name) => IMAGE_MEMBERS.has(name))) sum.leaveOpen('image');
}
