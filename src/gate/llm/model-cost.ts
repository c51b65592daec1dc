/** What a call may cost, and what it did, by a price file. */

import { NorthrootError } from '../../base/error.js';
import { compareQuantities, type Quantity } from '../../base/value/quantity.js';
import type { ModelCall, ModelUsage } from '../../log/agent/model-usage.js';
import { costOf, type WorstCase } from '../price/cost.js';
import type { ModelPrice } from '../price/model-price.js';
import type { Prices } from '../price/price-file.js';
import type { ModelRequest } from './model-api.js';

/**
 * What `worstCaseOf` takes of a request. Images that are made are counted as such where the model has a price of them, and as tokens else.
 * @param maxOutput - Where the request leaves it open: what is put into it
 */
export function mostOf(price: ModelPrice, request: ModelRequest, maxOutput: number): WorstCase {
  const { inputBytes, images, webSearches } = request;
  const isByImage = images > 0 && price.prices.some(({ unit }) => unit === 'images');
  return {
    inputBytes:
      isByImage && !price.prices.some(({ unit }) => unit.startsWith('tokens.input')) ? 0 : inputBytes,
    maxOutput: isByImage ? 0 : (request.maxOutput ?? maxOutput),
    images: isByImage ? images : 0,
    webSearches,
  };
}

/**
 * The call that an answer is charged as: that of the model that was asked for. Where the answer names another one that costs more by the
 * same prices, that one: aliases and dated names are often answered by their other name, and some providers answer by another model.
 * @throws NorthrootError where the model that was asked for has no price; TypeError, RangeError for a malformed usage
 */
export function chargedCall(
  prices: Prices,
  request: Pick<ModelRequest, 'model' | 'provider'>,
  usage: ModelUsage,
  { answered, at }: { readonly answered?: string | undefined; readonly at?: string | undefined } = {},
): ModelCall {
  const { model, provider } = request;
  const asked = { ...usage, model, provider, at };
  const cost = costOf(findPrice(prices, asked), usage);
  if (answered === undefined || answered === model) return asked;
  const other = { ...asked, model: answered };
  const otherCost = tryCost(prices, other, usage);
  return otherCost !== undefined && compareQuantities(otherCost, cost) > 0 ? other : asked;
}

function findPrice(prices: Prices, { model, provider, at }: ModelCall): ModelPrice {
  return prices.find({ model, provider, at });
}

/** Undefined for a model without a price, or with a name that none can have. */
function tryCost(prices: Prices, call: ModelCall, usage: ModelUsage): Quantity | undefined {
  try {
    return costOf(findPrice(prices, call), usage);
  } catch (error) {
    if (error instanceof NorthrootError || error instanceof RangeError) return undefined;
    throw error;
  }
}
