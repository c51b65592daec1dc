/**
 * `northroot/openai-agents`: guards for the OpenAI Agents SDK (`@openai/agents`). Seen: 0.20.0. A tool is guarded in its `execute`, where
 * what it throws is still an error: behind it the SDK makes a text of that. Hosted tools, such as OpenAI's search of the web, never come by
 * here.
 */

import { checkString } from '../../base/options.js';
import {
  type CallGuardOptions,
  checkMethod,
  denialText,
  guardCall,
  type GuardingLedger,
  mcpFault,
  type OnDenied,
  type ReadResult,
} from './shared.js';

export { guardModel, type AgentModel } from './openai-agents-model.js';
export type { CallGuardOptions, GuardingLedger, OnDenied } from './shared.js';
export type { ModelGuardOptions, StatedUsage } from './usage.js';

export interface AgentToolOptions extends CallGuardOptions {
  /** With `throw`, the tool's `errorFunction` decides; null ends the run. Default `tell`: the text is the tool's result. */
  readonly onDenied?: OnDenied | undefined;
}

/** What is used of the options of `tool()`, or of a tool that was made without it. */
export interface AgentTool {
  readonly name?: string | undefined;
  readonly execute?: ((...args: never[]) => unknown) | undefined;
  readonly invoke?: ((...args: never[]) => Promise<unknown>) | undefined;
}

type Run = (...args: unknown[]) => unknown;

/**
 * Guards a tool: the options of `tool()` in their `execute`; a function tool, such as one of an MCP server, in its `invoke`. Of that one only
 * the error text that the SDK makes by itself is known for a failure: guard `execute` where you can.
 * @throws TypeError for what has neither, or no name
 * @example
 * const read = tool(guardTool(ledger, { name: 'read', description, parameters, execute }));
 */
export function guardTool<T extends AgentTool>(
  ledger: GuardingLedger,
  tool: T,
  options: AgentToolOptions = {},
): T {
  checkMethod('guardTool', 'a ledger', ledger, 'guard');
  const { execute, invoke } = tool as { readonly execute?: unknown; readonly invoke?: unknown } as {
    readonly execute?: Run;
    readonly invoke?: Run;
  };
  const name = tool.name ?? execute?.name;
  checkString('guardTool', 'name', name);
  if (typeof execute === 'function') {
    const guarded: Run = (input, ...rest) =>
      guardResult(ledger, name, input, rest[1], () => execute.call(tool, input, ...rest), options);
    return { ...tool, execute: guarded };
  }
  checkMethod('guardTool', 'a tool', tool, 'invoke');
  const guarded: Run = (context, input, ...rest) =>
    guardResult(
      ledger,
      name,
      parse(input),
      rest[0],
      () => invoke?.call(tool, context, input, ...rest),
      options,
    );
  return { ...tool, invoke: guarded };
}

async function guardResult(
  ledger: GuardingLedger,
  tool: string,
  params: unknown,
  details: unknown,
  run: () => unknown,
  { onDenied = 'tell', ...options }: AgentToolOptions,
): Promise<unknown> {
  const { signal } = (details ?? {}) as { readonly signal?: AbortSignal };
  try {
    return await guardCall(ledger, { tool, params, signal }, run, readResult, options);
  } catch (error) {
    const text = onDenied === 'tell' ? denialText(error) : undefined;
    if (text === undefined) throw error;
    return text;
  }
}

/** How the SDK's own error function begins; `invoke` gives nothing else to tell it by. */
const ERROR_TEXT = 'An error occurred while running the tool.';

function readResult(output: unknown): ReadResult {
  const isError = typeof output === 'string' && output.startsWith(ERROR_TEXT);
  return { output, fault: isError ? 'TOOL_ERROR' : mcpFault(output) };
}

/** A model writes arguments as a text; what is no JSON is taken as it is. */
function parse(input: unknown): unknown {
  try {
    return JSON.parse(input as string);
  } catch {
    return input;
  }
}
