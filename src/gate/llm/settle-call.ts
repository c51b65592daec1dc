/** How a forwarded call of a model ended, as it is recorded. */

import type { Digest } from '../../base/value/digest.js';
import { amountsByUnit, type AmountsByUnit, type Meter, meters } from '../../base/value/meter.js';
import { compareQuantities } from '../../base/value/quantity.js';
import type { MeterBasis } from '../../format/schema/generated/types.js';
import type { ModelUsage } from '../../log/agent/model-usage.js';
import type { CallOutcome } from '../gate.js';
import { countUsage } from '../price/usage.js';
import type { Prices } from '../price/price-file.js';
import type { ProxyFault } from '../proxy/observer.js';
import type { ModelAnswer, ModelRequest } from './model-api.js';
import { chargedCall } from './model-cost.js';

export interface EndedCall {
  readonly request: ModelRequest;
  readonly reserve: AmountsByUnit;
  readonly prices: Prices | undefined;
  readonly status: number;
  /** Undefined where no answer came. */
  readonly answer: ModelAnswer | undefined;
  readonly fault: ProxyFault | undefined;
  /** Of an answer that came whole. */
  readonly outputDigest: Digest | undefined;
}

/**
 * The outcome of a call:
 * - by its stated usage, tokens as reported and money as estimated by the price file, also above what was reserved;
 * - without one, by what came, as estimated, at most what was reserved; where that is not known, all that was reserved, as estimated;
 * - nothing, where the upstream did not get the request, or answered with an error.
 */
export function outcomeOf(ended: EndedCall): CallOutcome {
  const { request, status, answer, fault, outputDigest } = ended;
  const { provider } = request;
  if (answer === undefined) {
    // A redirect is no answer of a model.
    const isUnserved = fault?.wasSent !== true || fault.code === 'UPSTREAM_REDIRECTED';
    if (isUnserved) return { outcome: 'failure', errorCode: fault?.code ?? 'ERROR', provider };
    return { outcome: 'unknown', provider, modelId: nameOf(request.model) };
  }
  const { outcome, errorCode, usage, estimate } = answer;
  if (status >= 400) return { outcome: 'failure', errorCode, provider };
  return {
    outcome,
    errorCode,
    provider,
    modelId: nameOf(request.model),
    // With it, a failure is charged.
    ...(outcome === 'unknown' ? {} : { outputDigest }),
    ...(usage === undefined ? estimated(ended, estimate) : metered(ended, usage, 'reported')),
  };
}

type Metered = Pick<
  CallOutcome,
  'used' | 'meterBasisByUnit' | 'modelId' | 'provider' | 'pricingSnapshotDigest'
>;

/** What is not among it is charged as reserved. */
function metered({ request, prices, answer }: EndedCall, usage: ModelUsage, basis: MeterBasis): Metered {
  const counts = countUsage(usage);
  const tokens = { used: amountsByUnit(counts), meterBasisByUnit: basesOf(counts, basis) };
  if (prices === undefined) return tokens;
  try {
    const call = chargedCall(prices, request, usage, { answered: answer?.model });
    const { usd, provider, pricingSnapshotDigest } = prices.charge(call);
    return {
      used: amountsByUnit([...counts, usd]),
      meterBasisByUnit: { ...tokens.meterBasisByUnit, [usd.unit]: 'estimated' },
      modelId: nameOf(call.model),
      provider,
      pricingSnapshotDigest,
    };
  } catch {
    // The model has no price of what it used.
    return tokens;
  }
}

function estimated(ended: EndedCall, usage: ModelUsage | undefined): Metered {
  // What cannot be bounded from its request cannot be estimated by it.
  if (usage === undefined || ended.request.unbounded.length > 0) return {};
  const { used = {}, ...rest } = metered(ended, usage, 'estimated');
  const most = new Map(meters(ended.reserve).map(({ unit, amount }) => [unit, amount]));
  const lowered = meters(used).map(({ unit, amount }): Meter => {
    const limit = most.get(unit);
    return { unit, amount: limit !== undefined && compareQuantities(amount, limit) > 0 ? limit : amount };
  });
  return { ...rest, used: amountsByUnit(lowered) };
}

function basesOf(vector: readonly Meter[], basis: MeterBasis): Record<string, MeterBasis> {
  return Object.fromEntries(vector.map(({ unit }) => [unit, basis]));
}

/** What may be recorded as a model; every name in use is. */
function nameOf(model: string): string | undefined {
  return /^[\x21-\x7e]{1,256}$/.test(model) ? model : undefined;
}
