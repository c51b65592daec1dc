/** Language models of the AI SDK, under a guard. */

import type { GuardContext } from '../../log/agent/guard.js';
import { checkMethod, guardCall, type GuardingLedger, guardPieces, overriding } from './shared.js';
import { meterUsage, type ModelGuardOptions, modelToolName, type StatedUsage, tokensOf } from './usage.js';

export interface AiModel {
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** Of a call of a model. */
type CallOptions = Readonly<Record<string, unknown>> & { readonly abortSignal?: AbortSignal | undefined };
interface Answer {
  readonly content?: unknown;
  readonly usage?: Raw;
  readonly response?: { readonly modelId?: unknown };
}
type Raw = Readonly<Record<string, unknown>> | undefined | null;
type Part = Answer & { readonly type?: unknown; readonly modelId?: unknown };

/**
 * Guards a language model, for `generateText`, `streamText` and agents: reserves before each call, and meters what the model states after
 * it. A call without stated usage is charged as reserved, and so is one that breaks or is left. The tool of a call is `llm.PROVIDER/MODEL`.
 * @throws TypeError for what is no model, such as its name
 * @example
 * const model = guardModel(ledger, openai('gpt-5'), { reserve: { usd: '0.50' } });
 */
export function guardModel<M extends AiModel>(
  ledger: GuardingLedger,
  model: M,
  options: ModelGuardOptions = {},
): M {
  checkMethod('guardModel', 'a ledger', ledger, 'guard');
  checkMethod('guardModel', 'a model', model, 'doGenerate');
  const { provider: source, modelId } = model;
  const [provider = ''] = source.split('.');
  const { priceOf, ...guarding } = options;
  void priceOf;
  const callOf = ({ abortSignal: signal, headers, ...params }: CallOptions) => {
    void headers;
    return { tool: modelToolName(modelId, provider), params, signal, answerer: 'model' } as const;
  };
  const note = (context: GuardContext, usage: Raw, answered: unknown): void => {
    const name = typeof answered === 'string' && answered !== '' ? answered : modelId;
    meterUsage(context, usageOf(usage, name, provider), options);
  };
  return overriding(model, {
    doGenerate: (how: CallOptions) =>
      guardCall(
        ledger,
        callOf(how),
        ({ signal }) => model.doGenerate({ ...how, abortSignal: signal } as never) as PromiseLike<Answer>,
        ({ content, usage, response }, context) => {
          note(context, usage, response?.modelId);
          return { output: content };
        },
        guarding,
      ),
    doStream: async (how: CallOptions) => {
      let answered: unknown;
      const { head, pieces } = await guardPieces(
        ledger,
        callOf(how),
        async ({ signal }) => {
          const begun = await model.doStream({ ...how, abortSignal: signal } as never);
          const { stream, ...rest } = begun as { readonly stream: AsyncIterable<Part> };
          return { head: rest, pieces: stream };
        },
        ({ type, modelId: named, usage }: Part, context) => {
          if (type === 'response-metadata') answered = named;
          if (type === 'finish') note(context, usage, answered);
          return { fault: type === 'error' ? 'MODEL_ERROR' : undefined };
        },
        guarding,
      );
      return { ...head, stream: toReadable(pieces) };
    },
  });
}

/** Pieces are made when they are asked for. */
function toReadable<P>(pieces: AsyncGenerator<P, void, void>): ReadableStream<P> {
  return new ReadableStream<P>(
    {
      pull: async (controller) => {
        const next = await pieces.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      cancel: async () => void (await pieces.return()),
    },
    { highWaterMark: 0 },
  );
}

/** Versions before 6 state numbers where later ones state parts. */
function usageOf(usage: Raw, model: string, provider: string): StatedUsage {
  const { inputTokens: input, outputTokens: output } = usage ?? {};
  const [ins, outs] = [partsOf(input), partsOf(output)];
  return {
    model,
    provider,
    ...tokensOf({
      input: ins['total'],
      output: outs['total'],
      cacheRead: ins['cacheRead'] ?? usage?.['cachedInputTokens'],
      cacheWrite: ins['cacheWrite'],
      reasoning: outs['reasoning'] ?? usage?.['reasoningTokens'],
    }),
  };
}

function partsOf(tokens: unknown): Readonly<Record<string, unknown>> {
  return typeof tokens === 'object' && tokens !== null ? { ...tokens } : { total: tokens };
}
