/** Metering of calls of models, as SDKs state their usage. */

import { printable } from '../../base/bytes/printable.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import type { GuardContext } from '../../log/agent/guard.js';
import type { ModelCall } from '../../log/agent/model-usage.js';
import type { CallGuardOptions } from './shared.js';

/**
 * What a call of a model used, as the SDK states it. Tokens are whole numbers; undefined where they are not stated. Cached input lies within
 * `input`, reasoning within `output`.
 */
export interface StatedUsage {
  /** The model that answered, as its provider names it. */
  readonly model: string;
  readonly provider?: string | undefined;
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cacheRead?: number | undefined;
  /** But for what is kept for an hour. */
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
  readonly inputAudio?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly outputAudio?: number | undefined;
}

export interface ModelGuardOptions extends CallGuardOptions {
  /**
   * The price of a call by unit, such as `{ usd: '0.004' }`; recorded as estimated. Default: by `prices`, of these options or of the
   * ledger, if they are given. What was reserved and is neither stated nor priced is charged. An error of it is a meter problem.
   */
  readonly priceOf?: ((usage: StatedUsage) => AmountsByUnit) | undefined;
}

/** Meters what a model states; what it does not state stays unsaid, and the reservation is charged. */
export function meterUsage(
  { meter, setDetails }: Pick<GuardContext, 'meter' | 'setDetails'>,
  usage: StatedUsage,
  { priceOf, meterBasis, modelId, provider, onMeterProblem }: ModelGuardOptions,
): void {
  if (modelId === undefined && DETAIL.test(usage.model)) setDetails({ modelId: usage.model });
  const from = usage.provider ?? '';
  if (provider === undefined && DETAIL.test(from)) setDetails({ provider: from });
  const stated = TOKENS.filter(([, member]) => usage[member] !== undefined);
  // Some SDKs make 0 of what a provider does not state; no call uses nothing.
  if (stated.every(([, member]) => usage[member] === 0)) return;
  if (meter.isPriced && priceOf === undefined) {
    try {
      meter.addUsage(usage as ModelCall);
    } catch {
      // The meter has told it, and charges what was reserved.
    }
    return;
  }
  // The lower claim holds for all: what is priced is estimated.
  if (meterBasis === undefined) setDetails({ meterBasis: priceOf === undefined ? 'reported' : 'estimated' });
  for (const [unit, member] of stated) meter.add(unit, usage[member] as number);
  try {
    if (priceOf !== undefined) meter.add(priceOf(usage));
  } catch (error) {
    // The answer is there by now, and must not be lost.
    const text = `a call of ${printable(usage.model, 80)} was not priced: ${printable(String(error), 400)}`;
    if (onMeterProblem === undefined) process.emitWarning(text, { code: 'NORTHROOT_UNMETERED' });
    else queueMicrotask(() => onMeterProblem(text));
  }
}

/** Units as imports have them. */
const TOKENS = [
  ['tokens.input', 'input'],
  ['tokens.output', 'output'],
  ['tokens.input.cache_read', 'cacheRead'],
  ['tokens.input.cache_creation', 'cacheWrite'],
  ['tokens.input.cache_creation.1h', 'cacheWrite1h'],
  ['tokens.input.audio', 'inputAudio'],
  ['tokens.output.reasoning', 'reasoning'],
  ['tokens.output.audio', 'outputAudio'],
] as const;

/** What a model or its provider may be recorded as; every name in use is. */
const DETAIL = /^[\x21-\x7e]{1,256}$/;

/** `llm.PROVIDER/MODEL`, as imports name calls of models. */
export function modelToolName(model: string, provider?: string): string {
  return provider === undefined || provider === '' ? `llm.${model}` : `llm.${provider}/${model}`;
}

/** Counts as a foreign usage states them: those that are there. What is no count is left for the meter to report. */
export function tokensOf(
  counts: Readonly<Partial<Record<keyof StatedUsage, unknown>>>,
): Omit<StatedUsage, 'model' | 'provider'> {
  return Object.fromEntries(
    Object.entries(counts).filter(([, count]) => count !== undefined && count !== null),
  );
}
