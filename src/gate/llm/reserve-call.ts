/** What a call of a model reserves before it is forwarded: its worst case, by the price file and the limits of its request. */

import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { NorthrootError } from '../../base/error.js';
import { sha256Digest } from '../../base/value/digest.js';
import { type AmountsByUnit, type Meter, meters } from '../../base/value/meter.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import type { AuthorizationDecision } from '../../log/policy/evaluator.js';
import { raiseMeters } from '../../log/policy/record.js';
import type { AskOptions } from '../../log/writer/withdrawal.js';
import { worstCaseOf } from '../price/cost.js';
import type { ModelPrice } from '../price/model-price.js';
import type { Prices } from '../price/price-file.js';
import { USD } from '../price/units.js';
import type { ModelApi, ModelRequest } from './model-api.js';
import { mostOf } from './model-cost.js';
import { leastOutput } from './output-limit.js';

export interface ReserveOptions {
  readonly prices?: Prices | undefined;
  /** The most output tokens of one answer where the request leaves it open. */
  readonly maxOutput: number;
  /** The least to reserve for what cannot be bounded from its request. Without it, such calls are denied where their grant has bounds. */
  readonly reserve?: AmountsByUnit | undefined;
}

export interface Reservation {
  readonly reserve: AmountsByUnit;
  /** The limit of output to put into the request; undefined where it has one. */
  readonly limit: number | undefined;
  /** The only grant that may serve it. */
  readonly grantId?: string | undefined;
}

/** A call whose most is not known, and that no grant without bounds serves. */
export interface Unbounded {
  /** `CALL_UNBOUNDED`, `PRICES_MISSING`, or why the price file has no price of it. */
  readonly code: string;
  readonly message: string;
}

export type Planned = Reservation | Unbounded;

const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };
/** More than any bound: what is allowed with so much has none. */
const WITHOUT_BOUND = '1000000000000000000';
const MONEY: AmountsByUnit = { usd: WITHOUT_BOUND };
const ALL: AmountsByUnit = { ...MONEY, 'tokens.input': WITHOUT_BOUND, 'tokens.output': WITHOUT_BOUND };
/** Whose requests name no model: what they may cost is what is reserved for them, whatever has a price. */
const NAMELESS: ReadonlySet<ModelApi> = new Set(['openai-batches', 'openai-files', 'anthropic-batches']);

/** Denials that less output may lift. */
const TOO_MUCH: ReadonlySet<string> = new Set([
  ...['RESERVATION_OVER_CAP', 'METER_CAP_EXCEEDED', 'ACTION_CAP_EXCEEDED', 'RATE_LIMIT_EXCEEDED'],
]);

/**
 * Plans the reservation of a call. An open limit of output is the option's, or less where the budget allows no more. A call whose most is not
 * known is for a grant that bounds neither its money nor, where its tokens are not known, those.
 */
export async function planReservation(
  ledger: Pick<LiveLedger, 'evaluate'>,
  principalId: string,
  request: ModelRequest,
  options: ReserveOptions,
  asking: AskOptions,
): Promise<Planned> {
  const { toolName, params, choices } = request;
  const price = findPrice(request, options);
  const isOpen = request.maxOutput === undefined;
  const least = leastOutput(request) * choices;
  const most = Math.max(least, options.maxOutput * choices);
  const plan = (output: number, grantId?: string): Reservation => ({
    reserve: reserveFor(request, 'code' in price ? undefined : price, output, options),
    limit: isOpen ? output : undefined,
    grantId,
  });
  const usual = plan(request.maxOutput ?? most);
  if (NAMELESS.has(request.api) && meters(options.reserve ?? {}).some(({ unit }) => unit === USD))
    return usual;
  if (!('code' in price) && !isOpen) return usual;
  const paramsDigest = sha256Digest(canonicalBytesWithout(params));
  const ask = (reserve: AmountsByUnit, grantId?: string): Promise<AuthorizationDecision> => {
    const reserved = raiseMeters([ONE_CALL], meters(reserve));
    const asked = { principalId, toolName, paramsDigest, intentDigest: paramsDigest, meters: reserved };
    return ledger.evaluate(grantId === undefined ? asked : { ...asked, grantId }, asking);
  };
  if ('code' in price) {
    const free = price.code === 'CALL_UNBOUNDED' ? ALL : { ...usual.reserve, ...MONEY };
    const { decision, grantId } = await ask(free);
    return decision === 'allow' ? { ...usual, grantId } : price;
  }
  const asked = await ask(usual.reserve);
  if (asked.decision === 'allow' || !TOO_MUCH.has(asked.decisionCode)) return usual;
  const smallest = await ask(plan(least).reserve);
  // Denied as it is, or served by a grant of which the rest must not be another's.
  if (smallest.decision === 'deny') return plan(least);
  const { grantId } = smallest;
  let [low, high] = [least, most];
  while (high - low > Math.max(1, low / PRECISION)) {
    const middle = Math.floor((low + high) / 2);
    if ((await ask(plan(middle).reserve, grantId)).decision === 'allow') low = middle;
    else high = middle;
  }
  return plan(low, grantId);
}

/** How near to the rest of a budget a limit is looked for: a sixteenth. */
const PRECISION = 16;

function reserveFor(
  request: ModelRequest,
  price: ModelPrice | undefined,
  output: number,
  { reserve = {} }: ReserveOptions,
): AmountsByUnit {
  const bound = meters({
    'tokens.input': request.inputBytes,
    'tokens.output': output,
    ...(price === undefined ? {} : { usd: worstCaseOf(price, mostOf(price, request, output)) }),
  });
  const raised = request.unbounded.length === 0 ? bound : raiseMeters(bound, meters(reserve));
  return Object.fromEntries(raised.map(({ unit, amount }) => [unit, amount]));
}

/** The price, or why a call has no known most. */
function findPrice(request: ModelRequest, { prices, reserve }: ReserveOptions): ModelPrice | Unbounded {
  const { model, provider, unbounded } = request;
  if (unbounded.length > 0 && reserve === undefined) {
    const message = `what it costs cannot be told from the request (${unbounded.join(', ')}), and no amount is reserved for such calls: give the proxy one (reserve), or leave that out of the request`;
    return { code: 'CALL_UNBOUNDED', message };
  }
  if (prices === undefined) return { code: 'PRICES_MISSING', message: 'there is no price file' };
  try {
    const price = prices.find({ model, provider });
    // Whether all that it may use has a price.
    worstCaseOf(price, mostOf(price, request, request.maxOutput ?? 1));
    return price;
  } catch (error) {
    if (error instanceof NorthrootError) {
      const { code, message, hint } = error;
      return { code, message: hint === undefined ? message : `${message}: ${hint}` };
    }
    if (error instanceof RangeError) return { code: 'CALL_UNBOUNDED', message: error.message };
    throw error;
  }
}
