/** Models of the OpenAI Agents SDK, under a guard. */

import { checkString } from '../../base/options.js';
import type { GuardContext } from '../../log/agent/guard.js';
import { checkMethod, guardCall, type GuardingLedger, guardPieces, overriding } from './shared.js';
import { meterUsage, type ModelGuardOptions, modelToolName, tokensOf } from './usage.js';

export interface AgentModel {
  getResponse(request: never): Promise<unknown>;
  getStreamedResponse(request: never): AsyncIterable<unknown>;
}

type Request = Readonly<Record<string, unknown>> & { readonly signal?: AbortSignal };
interface Response {
  readonly usage?: Readonly<Record<string, unknown>>;
  readonly output?: unknown;
}

/**
 * Guards a model: reserves before each call, and meters what the model states after it. A call without stated usage is charged as reserved,
 * and so is one that breaks or is left.
 * @param name - `PROVIDER/MODEL`, for a model does not tell its name: the tool of a call is `llm.PROVIDER/MODEL`
 * @throws TypeError for what is no model
 * @example
 * const model = guardModel(ledger, 'openai/gpt-5', await provider.getModel('gpt-5'), { reserve: { usd: '0.50' } });
 */
export function guardModel<M extends AgentModel>(
  ledger: GuardingLedger,
  name: string,
  model: M,
  options: ModelGuardOptions = {},
): M {
  checkMethod('guardModel', 'a ledger', ledger, 'guard');
  checkString('guardModel', 'name', name);
  checkMethod('guardModel', 'a model', model, 'getResponse');
  const { priceOf, ...guarding } = options;
  void priceOf;
  const callOf = ({ signal, tracing, ...params }: Request) => {
    void tracing;
    return { tool: modelToolName(name), params, signal, answerer: 'model' } as const;
  };
  const [provider, ...rest] = name.split('/');
  const named = rest.length === 0 ? { model: name } : { model: rest.join('/'), provider };
  const note = ({ usage }: Response, context: GuardContext): void =>
    meterUsage(context, { ...named, ...readUsage(usage) }, options);
  return overriding(model, {
    getResponse: (request: Request) =>
      guardCall(
        ledger,
        callOf(request),
        ({ signal }) => model.getResponse({ ...request, signal } as never) as Promise<Response>,
        (response, context) => {
          note(response, context);
          return { output: response.output };
        },
        guarding,
      ),
    getStreamedResponse: async function* (request: Request) {
      const { pieces } = await guardPieces(
        ledger,
        callOf(request),
        ({ signal }) => ({
          head: undefined,
          pieces: model.getStreamedResponse({ ...request, signal } as never),
        }),
        (event, context) => {
          const { type, response } = event as { readonly type?: unknown; readonly response?: Response };
          if (type === 'response_done') note(response ?? {}, context);
          return {};
        },
        guarding,
      );
      yield* pieces;
    },
  });
}

/** Details are lists, an entry for each request. */
function readUsage(usage: Response['usage']): ReturnType<typeof tokensOf> {
  const sumOf = (details: unknown, name: string): unknown => {
    const counts = ([details].flat() as (Readonly<Record<string, unknown>> | undefined)[])
      .map((each) => each?.[name])
      .filter((count) => typeof count === 'number');
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0);
  };
  return tokensOf({
    input: usage?.['inputTokens'],
    output: usage?.['outputTokens'],
    cacheRead: sumOf(usage?.['inputTokensDetails'], 'cached_tokens'),
    reasoning: sumOf(usage?.['outputTokensDetails'], 'reasoning_tokens'),
  });
}
