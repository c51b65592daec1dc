/** Chat models of LangChain: their names, and what their messages state of usage. */

import type { GuardContext } from '../../log/agent/guard.js';
import { readUsage } from '../price/read-usage.js';
import { meterUsage, type ModelGuardOptions, type StatedUsage, tokensOf } from './usage.js';

type Raw = Readonly<Record<string, unknown>>;

export interface Named {
  readonly model: string;
  readonly provider?: string | undefined;
}

/** The name of a chat model, as it tells it to LangSmith, or as its class has it. */
export function nameModel(model: unknown): Named {
  const known = model as {
    readonly getLsParams?: (options: object) => {
      readonly ls_provider?: string;
      readonly ls_model_name?: string;
    };
    readonly getName?: () => string;
    readonly model?: unknown;
  };
  const { ls_provider: provider, ls_model_name: named } = known.getLsParams?.({}) ?? {};
  const name = named ?? known.model ?? known.getName?.();
  return { model: typeof name === 'string' && name !== '' ? name : 'unknown', provider };
}

/** Meters what a message of a model states. */
export function meterAnswer(
  context: GuardContext,
  answer: unknown,
  named: Named,
  options: ModelGuardOptions,
): void {
  const { usage_metadata: usage = {}, response_metadata: response = {} } = (answer ?? {}) as {
    readonly usage_metadata?: Raw;
    readonly response_metadata?: Raw;
  };
  const answered = response['model_name'] ?? response['model'];
  const model = typeof answered === 'string' && answered !== '' ? answered : named.model;
  meterUsage(context, { ...named, model, ...readStated(usage) }, options);
}

/** What cannot be read is left for the meter to report. */
function readStated(usage: Raw): Omit<StatedUsage, 'model' | 'provider'> {
  try {
    return readUsage('langchain', usage) ?? {};
  } catch {
    const [ins, outs] = [usage['input_token_details'], usage['output_token_details']] as (Raw | undefined)[];
    return tokensOf({
      input: usage['input_tokens'],
      output: usage['output_tokens'],
      cacheRead: ins?.['cache_read'],
      cacheWrite: ins?.['cache_creation'],
      cacheWrite1h: ins?.['ephemeral_1h_input_tokens'],
      inputAudio: ins?.['audio'],
      reasoning: outs?.['reasoning'],
      outputAudio: outs?.['audio'],
    });
  }
}
