/** Small price lists and price files of invented models. */

import { NorthrootError } from '../../src/base/error.js';
import { importPrices } from '../../src/gate/price/import-prices.js';
import { parsePrices, type Prices } from '../../src/gate/price/price-file.js';
import type { PricedModel, PriceFile } from '../../src/format/schema/generated/types.js';

export const AS_OF = '2026-03-01T00:00:00Z';

/** As LiteLLM writes it: exponents and all. */
export const LITELLM = `{
  "sample_spec": { "litellm_provider": "one of many", "input_cost_per_token": 0.0 },
  "m-1": {
    "litellm_provider": "acme", "mode": "chat", "max_tokens": 8192,
    "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
    "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06, "cache_read_input_token_cost_above_200k_tokens": 6e-07,
    "input_cost_per_token_batches": 1.5e-06,
    "search_context_cost_per_query": { "search_context_size_low": 0.01, "search_context_size_high": 0.01 }
  },
  "cloud/m-1": { "litellm_provider": "cloud", "input_cost_per_token": 0.0000033, "output_cost_per_token": 0.0000165 },
  "pics": { "litellm_provider": "acme", "mode": "image_generation", "output_cost_per_image": 4E-2 },
  "asks": { "litellm_provider": "acme", "input_cost_per_request": 0.005, "input_cost_per_token": 0, "output_cost_per_token": 2.8e-7 }
}`;

/** As the data file of genai-prices is. */
export const GENAI = `[{
  "id": "acme", "name": "Acme", "api_pattern": "https://api.example.com",
  "models": [
    { "id": "m-1", "match": { "or": [ { "starts_with": "m-1-2026" }, { "equals": "m1" }, { "contains": "m-one" } ] },
      "prices": { "input_mtok": { "base": 3, "tiers": [ { "start": 200000, "price": 6 } ] }, "output_mtok": 15, "cache_read_mtok": 0.3,
                  "cache_write_mtok": 3.75, "cache_write_1h_mtok": 6, "web_searches_kcount": 10 } },
    { "id": "m-2", "match": { "equals": "m-2" },
      "prices": [ { "prices": { "input_mtok": 2, "output_mtok": 8 } },
                  { "constraint": { "start_date": "2026-09-01" }, "prices": { "input_mtok": 0.123456789, "output_mtok": 8 } } ] }
  ]
}]`;

export function imported(list: string, models?: readonly string[]): Prices {
  return importPrices(Buffer.from(list), { asOf: AS_OF, models }).prices;
}

/** A price file of these models. */
export function priceFile(models: readonly PricedModel[], more: Partial<PriceFile> = {}): Uint8Array {
  const file = {
    prices_version: '1',
    as_of: AS_OF,
    currency_unit: 'usd',
    source: { name: 'test' },
    models,
    ...more,
  };
  return Buffer.from(JSON.stringify(file));
}

export function model(more: Partial<PricedModel> = {}): PricedModel {
  const prices = [
    { unit: 'tokens.input' as const, usd: '0.000003' },
    { unit: 'tokens.output' as const, usd: '0.000015' },
  ];
  return { provider: 'acme', model: 'm-1', periods: [{ prices }], ...more };
}

export function pricesOf(...models: readonly PricedModel[]): Prices {
  return parsePrices(priceFile(models));
}

/** The code of what a function throws. */
export function codeThrown(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof NorthrootError ? error.code : String(error);
  }
  return 'nothing';
}
