/**
 * `northroot/ai`: guards for the AI SDK of Vercel (`ai`), versions 6 and 7. Seen: 6.0.326 and 7.0.173. Tools are guarded in their `execute`,
 * models in `doGenerate` and `doStream`, so that each retry is a call of its own. What a provider executes itself, such as its search of the
 * web, never comes by here.
 */

import type { GuardContext } from '../../log/agent/guard.js';
import { guardStream } from '../guard-stream.js';
import { escapeToolName } from '../../base/value/tool.js';
import {
  type CallGuardOptions,
  checkMethod,
  guardCall,
  type GuardingLedger,
  mcpFault,
  toJson,
  tryDigest,
} from './shared.js';

export { guardApproval, type ApprovalOptions, type GuardedApproval } from './ai-approval.js';
export { guardModel, type AiModel } from './ai-model.js';
export type { CallGuardOptions, GuardingLedger } from './shared.js';
export type { ModelGuardOptions, StatedUsage } from './usage.js';

interface Execution {
  readonly abortSignal?: AbortSignal | undefined;
}
type Execute = (input: unknown, how?: Execution) => unknown;

/**
 * Guards the `execute` of each tool. A denial is thrown, a `DeniedError`: the SDK hands its text to the model as the tool's error. A result
 * of MCP with `isError` is recorded as a failure.
 * @param tools - By name, as for `generateText`. Those without `execute` stay as they are: they are not seen.
 * @throws TypeError for what is no object of tools
 * @example
 * const tools = guardTools(ledger, { read, write }, { reserve: { usd: '0.10' } });
 */
export function guardTools<T extends Readonly<Record<string, object>>>(
  ledger: GuardingLedger,
  tools: T,
  options: CallGuardOptions = {},
): T {
  checkMethod('guardTools', 'a ledger', ledger, 'guard');
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools))
    throw new TypeError('guardTools: expected an object of tools by name');
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => [
      name,
      'execute' in tool && typeof tool.execute === 'function'
        ? copyWith(tool, { execute: guardExecute(ledger, name, tool.execute as Execute, options) })
        : tool,
    ]),
  ) as T;
}

/** A tool is data: its schema may be a function with members, which no method is. */
function copyWith(tool: object, members: object): object {
  return Object.assign(Object.create(Object.getPrototypeOf(tool) as object | null) as object, tool, members);
}

function guardExecute(
  ledger: GuardingLedger,
  name: string,
  execute: Execute,
  options: CallGuardOptions,
): Execute {
  // The SDK must be told at once whether results come in pieces.
  if (isGenerator(execute))
    return (input, how) =>
      guardStream(
        ledger,
        escapeToolName(name),
        toJson(input),
        (context) => withDigest(execute(input, { ...how, abortSignal: context.signal }), context),
        { ...options, signal: how?.abortSignal },
      );
  return (input, how) =>
    guardCall(
      ledger,
      { tool: name, params: input, signal: how?.abortSignal },
      ({ signal }) => lastOf(execute(input, { ...how, abortSignal: signal })),
      (output) => ({ output, fault: mcpFault(output) }),
      options,
    );
}

const AsyncGenerator: unknown = Object.getPrototypeOf(async function* () {});

function isGenerator(
  execute: Execute,
): execute is (input: unknown, how?: Execution) => AsyncIterable<unknown> {
  return Object.getPrototypeOf(execute) === AsyncGenerator;
}

async function* withDigest(
  pieces: AsyncIterable<unknown>,
  { setOutputDigest }: GuardContext,
): AsyncGenerator<unknown, void, void> {
  let last: unknown;
  for await (last of pieces) yield last;
  const digest = tryDigest(last);
  if (digest !== undefined) setOutputDigest(digest);
}

/** Of results in pieces, the SDK takes the last. */
async function lastOf(result: unknown): Promise<unknown> {
  const awaited = await result;
  if (typeof awaited !== 'object' || awaited === null || !(Symbol.asyncIterator in awaited)) return awaited;
  let last: unknown;
  for await (last of awaited as AsyncIterable<unknown>);
  return last;
}
