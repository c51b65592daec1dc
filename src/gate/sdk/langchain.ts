/**
 * `northroot/langchain`: a middleware for `createAgent` of LangChain that guards its tools and its models. Seen: `langchain` 1.5.14,
 * `@langchain/core` 1.4.0. Tools that the provider runs never come by here, and neither do graphs without middleware.
 */

import { describeValue } from '../../base/options.js';
import {
  type CallGuardOptions,
  checkMethod,
  denialText,
  guardCall,
  type GuardingLedger,
  type OnDenied,
} from './shared.js';
import { meterAnswer, nameModel } from './langchain-model.js';
import { type ModelGuardOptions, modelToolName } from './usage.js';

export type { CallGuardOptions, GuardingLedger, OnDenied } from './shared.js';
export type { ModelGuardOptions, StatedUsage } from './usage.js';

export interface MiddlewareOptions {
  /** The class, of `@langchain/core/messages` or `langchain`: what the model is told is one. */
  readonly ToolMessage: new (fields: {
    readonly content: string;
    readonly tool_call_id: string;
    readonly name: string;
    readonly status: 'error';
  }) => object;
  /** For calls of tools; false: they are not guarded. */
  readonly tools?: CallGuardOptions | false | undefined;
  /** For calls of models; false: they are not guarded. */
  readonly models?: ModelGuardOptions | false | undefined;
  /** Of tools. A denied call of a model always throws. Default `tell`. */
  readonly onDenied?: OnDenied | undefined;
  /**
   * An error that a tool throws: `tell` makes it a message, as the agent does without middleware; `throw` hands it to the middleware around
   * this one, such as one that retries, and else ends the run. Default `tell`.
   */
  readonly onToolError?: 'tell' | 'throw' | undefined;
}

interface ToolRequest {
  readonly toolCall: { readonly id?: string | undefined; readonly name: string; readonly args?: unknown };
  readonly runtime?: object;
}
interface ModelRequest {
  readonly model: unknown;
  readonly messages: unknown;
  readonly systemPrompt?: unknown;
  readonly runtime?: object;
}
type Wrap<R> = <Q extends R, T>(request: Q, handler: (request: Q) => T | Promise<T>) => Promise<T>;

export interface GuardMiddleware {
  readonly name: 'northroot';
  readonly wrapToolCall?: Wrap<ToolRequest>;
  readonly wrapModelCall?: Wrap<ModelRequest>;
}

/**
 * A middleware that guards each call of a tool and of a model. A `ToolMessage` of the status `error` is recorded as a failure, `TOOL_ERROR`;
 * an interrupt for a human too, `INTERRUPTED`, as the tool is run again. Put it last: what other middleware makes of a call is then guarded.
 * The tool of a model's call is `llm.PROVIDER/MODEL`.
 * @throws TypeError without `ToolMessage`
 * @example
 * const agent = createAgent({ model, tools, middleware: [guardMiddleware(ledger, { ToolMessage })] });
 */
export function guardMiddleware(ledger: GuardingLedger, options: MiddlewareOptions): GuardMiddleware {
  checkMethod('guardMiddleware', 'a ledger', ledger, 'guard');
  const { ToolMessage, tools = {}, models = {}, onDenied = 'tell', onToolError = 'tell' } = options;
  if (typeof ToolMessage !== 'function')
    throw new TypeError(
      `guardMiddleware: expected the class ToolMessage, found ${describeValue(ToolMessage)}`,
    );
  const wrapToolCall: Wrap<ToolRequest> = async (request, handler) => {
    const { id = '', name, args } = request.toolCall;
    const tell = <T>(content: string): T =>
      new ToolMessage({ content, tool_call_id: id, name, status: 'error' }) as T;
    const signal = signalOf(request);
    try {
      const done = await guardCall(
        ledger,
        { tool: name, params: args, signal },
        () => untilInterrupt(() => handler(request)),
        (end) => (end.isInterrupt ? { fault: 'INTERRUPTED' } : readMessage(end.value)),
        tools || {},
      );
      if (done.isInterrupt) throw done.error;
      return done.value;
    } catch (error) {
      const denial = denialText(error);
      if (denial !== undefined && onDenied === 'tell') return tell(denial);
      if (denial !== undefined || isInterrupt(error) || signal?.aborted === true) throw error;
      if (onToolError === 'throw') throw error;
      return tell(`${String(error)}\n Please fix your mistakes.`);
    }
  };
  const wrapModelCall: Wrap<ModelRequest> = (request, handler) => {
    const { priceOf, ...guarding } = models || {};
    const named = nameModel(request.model);
    const { messages, systemPrompt } = request;
    return guardCall(
      ledger,
      {
        tool: modelToolName(named.model, named.provider),
        params: { messages, systemPrompt },
        signal: signalOf(request),
        answerer: 'model',
      },
      () => handler(request),
      (answer, context) => {
        meterAnswer(context, answer, named, { ...guarding, priceOf });
        return { output: (answer as { content?: unknown } | undefined)?.content };
      },
      guarding,
    );
  };
  return {
    name: 'northroot',
    ...(tools === false ? {} : { wrapToolCall }),
    ...(models === false ? {} : { wrapModelCall }),
  };
}

type ToolEnd<T> =
  | { readonly isInterrupt: false; readonly value: T }
  | { readonly isInterrupt: true; readonly error: unknown };

async function untilInterrupt<T>(run: () => T | Promise<T>): Promise<ToolEnd<T>> {
  try {
    return { isInterrupt: false, value: await run() };
  } catch (error) {
    if (isInterrupt(error)) return { isInterrupt: true, error };
    throw error;
  }
}

/** By which LangGraph pauses a run; it must pass. */
function isInterrupt(error: unknown): boolean {
  return error instanceof Error && (error.name === 'GraphInterrupt' || error.name === 'NodeInterrupt');
}

function signalOf({ runtime }: { readonly runtime?: object }): AbortSignal | undefined {
  const { signal } = (runtime ?? {}) as { readonly signal?: unknown };
  return signal instanceof AbortSignal ? signal : undefined;
}

function readMessage(message: unknown): { readonly output: unknown; readonly fault?: string } {
  const { status, content } = message as { readonly status?: unknown; readonly content?: unknown };
  // A command has no content.
  const output = content ?? message;
  return status === 'error' ? { output, fault: 'TOOL_ERROR' } : { output };
}
