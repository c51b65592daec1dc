/** LiteLLM's `model_prices_and_context_window.json`: an object of models, usd for one token. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import {
  exactPrice,
  hasPrice,
  type ImportedModel,
  isPriceName,
  type LeftOut,
  memberOf,
  PriceList,
} from './imported.js';
import type { PriceUnit } from './units.js';

const UNITS: Readonly<Record<string, PriceUnit>> = {
  input_cost_per_token: 'tokens.input',
  output_cost_per_token: 'tokens.output',
  cache_read_input_token_cost: 'tokens.input.cache_read',
  input_cost_per_token_cache_hit: 'tokens.input.cache_read',
  cache_read_input_audio_token_cost: 'tokens.input.cache_read.audio',
  cache_creation_input_token_cost: 'tokens.input.cache_creation',
  cache_creation_input_token_cost_above_1hr: 'tokens.input.cache_creation.1h',
  input_cost_per_audio_token: 'tokens.input.audio',
  input_cost_per_image_token: 'tokens.input.image',
  output_cost_per_reasoning_token: 'tokens.output.reasoning',
  output_cost_per_audio_token: 'tokens.output.audio',
  output_cost_per_image_token: 'tokens.output.image',
  output_cost_per_video_token: 'tokens.output.video',
  output_cost_per_image: 'images',
  input_cost_per_request: 'requests',
};

const SEARCHES = 'search_context_cost_per_query';
/** Above so many thousand input tokens, every token has this price. */
const TIER = /^(.+)_above_([1-9][0-9]{0,5})k_tokens$/;
const IS_PRICE = /cost|pric/;
/** Documents the members. */
const SAMPLE = 'sample_spec';

/** Whether this is such a file. */
export function isLitellm(root: SourceValue): root is SourceObject {
  return (
    root instanceof SourceObject &&
    root.entries().some(([, each]) => each instanceof SourceObject && each.has('litellm_provider'))
  );
}

/** The models of the file. Prices of batches and of other service levels are left out. */
export function readLitellm(root: SourceObject, leftOut: LeftOut): ImportedModel[] {
  return root.entries().flatMap(([name, value]) => {
    if (name === SAMPLE) return [];
    const model = readModel(name, value, leftOut);
    if (typeof model !== 'string') return [model];
    leftOut.add('model', model, name);
    return [];
  });
}

/** A model, or why it is left out. */
function readModel(name: string, value: SourceValue, leftOut: LeftOut): ImportedModel | string {
  if (!(value instanceof SourceObject)) return 'NOT_AN_OBJECT';
  const provider = memberOf(value, 'litellm_provider');
  if (!isPriceName(name) || !isPriceName(provider)) return 'NAME_INVALID';
  const list = new PriceList();
  const others: string[] = [];
  const seen = new Map<string, string>();
  for (const [member, price] of value.entries()) {
    if (!IS_PRICE.test(member) || price === null) continue;
    // Other steps than those of input tokens: which tokens they hold for is not said.
    if (member === 'tiered_pricing') return 'TIERS_UNCLEAR';
    if (member === SEARCHES) {
      const usd = readSearches(price);
      if (usd === undefined) others.push(member);
      else list.set('web_searches', usd);
      continue;
    }
    const [, base = member, thousands] = TIER.exec(member) ?? [];
    const unit = Object.hasOwn(UNITS, base) ? UNITS[base] : undefined;
    if (unit === undefined) {
      if (exactPrice(price) !== '0') others.push(member);
      continue;
    }
    const usd = exactPrice(price);
    if (usd === undefined) return 'PRICE_INVALID';
    const place = `${unit} ${thousands ?? ''}`;
    if ((seen.get(place) ?? usd) !== usd) return 'PRICE_AMBIGUOUS';
    seen.set(place, usd);
    list.set(unit, usd, thousands === undefined ? undefined : Number(thousands) * 1_000);
  }
  const prices = list.list();
  if (prices === undefined) return 'TIERS_UNCLEAR';
  // A price of 0 beside others means that it is charged by those.
  if (prices.length === 0 || (!hasPrice(prices) && others.length > 0)) return others[0] ?? 'NO_PRICE';
  for (const member of others) leftOut.add('price', member, name);
  const short = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : '';
  const aliases = short === '' ? [] : [short];
  return { provider, model: name, aliases, prefixes: [], periods: [{ prices }] };
}

/** The price of a search, where it is the same for every amount of context. */
function readSearches(value: SourceValue): string | undefined {
  if (!(value instanceof SourceObject)) return undefined;
  const [first, ...others] = value.entries().map(([, price]) => exactPrice(price));
  return others.every((price) => price === first) ? first : undefined;
}
