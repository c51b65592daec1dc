/**
 * `northroot/openai-agents`: guards for the OpenAI Agents SDK (`@openai/agents`). Seen: 0.20.0. A tool is guarded in its `execute`, where
 * what it throws is still an error: behind it the SDK makes a text of that. Hosted tools, such as OpenAI's search of the web, never come by
 * here.
 */

import {
  type CallGuardOptions,
  checkGuarded,
  checkMethod,
  type GuardingLedger,
  guardTold,
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

type Run = (...args: unknown[]) => unknown;

/**
 * Guards the `execute` of a tool.
 * @param name - The tool's
 * @throws TypeError for a malformed argument
 * @example
 * const read = tool({ name: 'read', description, parameters, execute: guardExecute(ledger, 'read', execute) });
 */
export function guardExecute<F extends (...args: never[]) => unknown>(
  ledger: GuardingLedger,
  name: string,
  execute: F,
  options: AgentToolOptions = {},
): F {
  checkGuarded('guardExecute', ledger, name, 'a function', execute);
  const run = execute as unknown as Run;
  const guarded: Run = (input, context, details) =>
    guardResult(ledger, name, input, details, () => run(input, context, details), options);
  return guarded as unknown as F;
}

export interface AgentTool {
  readonly name: string;
  readonly invoke: (...args: never[]) => Promise<unknown>;
}

/**
 * Guards a function tool that was made elsewhere, such as one of an MCP server. What it throws has become a text by then: only the text that
 * the SDK makes by itself is known for a failure. Where you can, use {@link guardExecute}.
 * @throws TypeError for what is no function tool
 */
export function guardTool<T extends AgentTool>(
  ledger: GuardingLedger,
  tool: T,
  options: AgentToolOptions = {},
): T {
  checkMethod('guardTool', 'a ledger', ledger, 'guard');
  checkMethod('guardTool', 'a tool', tool, 'invoke');
  const invoke = tool.invoke as unknown as Run;
  const guarded: Run = (context, input, details) =>
    guardResult(
      ledger,
      tool.name,
      parse(input),
      details,
      () => invoke.call(tool, context, input, details),
      options,
    );
  return { ...tool, invoke: guarded };
}

function guardResult(
  ledger: GuardingLedger,
  tool: string,
  params: unknown,
  details: unknown,
  run: () => unknown,
  options: AgentToolOptions,
): Promise<unknown> {
  const { signal } = (details ?? {}) as { readonly signal?: AbortSignal };
  return guardTold(ledger, { tool, params, signal }, run, readResult, options, (text) => text);
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
