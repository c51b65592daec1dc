/** Price files from the price lists of others. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { decodeSourceJson, type SourceValue } from '../../base/json/source-json.js';
import { checkOptions } from '../../base/options.js';
import { sha256Digest } from '../../base/value/digest.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { PricedModel, PriceFile } from '../../format/schema/generated/types.js';
import { isGenaiPrices, readGenaiPrices } from './import-genai-prices.js';
import { isLitellm, readLitellm } from './import-litellm.js';
import { type ImportedModel, LeftOut, type LeftOutPrices, settleNames } from './imported.js';
import { parsePrices, type Prices } from './price-file.js';

/** The largest price list that is imported, in bytes. */
export const MAX_PRICE_LIST_BYTES = 64 * 1024 * 1024;

export type PriceListKind = 'litellm' | 'genai-prices';

export interface ImportPricesOptions {
  /** What it is. Default: as it looks. */
  readonly from?: PriceListKind | undefined;
  /** When these were the prices, a timestamp of SPEC §2. */
  readonly asOf: string;
  /** Only models with a name that is one of these, or begins with one that ends in `*`. Default: all. */
  readonly models?: readonly string[] | undefined;
}

export interface ImportedPrices {
  /** The file: canonical JSON, and a line feed. */
  readonly bytes: Uint8Array;
  readonly prices: Prices;
  readonly leftOut: readonly LeftOutPrices[];
}

/**
 * Makes a price file of a price list: LiteLLM's `model_prices_and_context_window.json`, or the data file of genai-prices. Numbers are taken
 * from their digits: `3e-06` is exactly 0.000003. Models and prices that cannot be taken over exactly are left out, and listed.
 * @throws NorthrootError `PRICES_INVALID` for what is no such list or has no price; `MODEL_UNKNOWN` where it has none of `models`
 * @throws TypeError, RangeError for malformed options
 */
export function importPrices(bytes: Uint8Array, options: ImportPricesOptions): ImportedPrices {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`expected a Uint8Array, found ${typeof bytes}`);
  checkOptions('importPrices', options, { from: 'string', asOf: 'string', models: 'array' });
  const { from, asOf, models } = options;
  if (!isTimestamp(asOf))
    throw new RangeError('importPrices: asOf: expected a timestamp such as 2026-03-01T12:00:00Z');
  if (from !== undefined && from !== 'litellm' && from !== 'genai-prices')
    throw new RangeError('importPrices: from: expected litellm or genai-prices');
  const root = decode(bytes);
  const leftOut = new LeftOut();
  const name = from ?? recognise(root);
  const all = settleNames(readList(name, root, leftOut), leftOut);
  if (all.length === 0) throw refuse('a price of a model', 'none');
  const kept = models === undefined ? all : choose(all, models);
  const file: PriceFile = {
    prices_version: '1',
    as_of: asOf,
    currency_unit: 'usd',
    source: { name, digest: sha256Digest(bytes) },
    models: kept,
  };
  const text = canonicalBytes(file);
  const made = new Uint8Array(text.length + 1);
  made.set(text);
  made[text.length] = 0x0a;
  // What is made is read as any other: it is never refused later.
  return { bytes: made, prices: parsePrices(made), leftOut: leftOut.list() };
}

function decode(bytes: Uint8Array): SourceValue {
  if (bytes.length > MAX_PRICE_LIST_BYTES)
    throw refuse(`at most ${MAX_PRICE_LIST_BYTES} bytes`, `${bytes.length} bytes`);
  const decoded = decodeSourceJson(bytes);
  if (decoded.ok) return decoded.value;
  const { code, offset = 0 } = decoded.fault;
  throw refuse('JSON without faults', `${code} at byte ${offset}`);
}

function recognise(root: SourceValue): PriceListKind {
  if (isLitellm(root)) return 'litellm';
  if (isGenaiPrices(root)) return 'genai-prices';
  throw refuse('the price list of LiteLLM or genai-prices', 'another form');
}

function readList(name: PriceListKind, root: SourceValue, leftOut: LeftOut): ImportedModel[] {
  if (name === 'litellm' && isLitellm(root)) return readLitellm(root, leftOut);
  if (name === 'genai-prices' && isGenaiPrices(root)) return readGenaiPrices(root, leftOut);
  throw refuse(`the price list of ${name}`, 'another form');
}

/** @throws NorthrootError `MODEL_UNKNOWN` for a pattern that no model has */
function choose(all: readonly PricedModel[], patterns: readonly string[]): PricedModel[] {
  const kept = new Set<PricedModel>();
  for (const pattern of patterns) {
    if (typeof pattern !== 'string') throw new TypeError('importPrices: models: expected texts');
    const begin = pattern.endsWith('*') ? pattern.slice(0, -1) : undefined;
    const found = all.filter(({ model, aliases = [] }) =>
      [model, ...aliases].some((name) => (begin === undefined ? name === pattern : name.startsWith(begin))),
    );
    if (found.length === 0)
      throw new NorthrootError('MODEL_UNKNOWN', `the price list has no model ${printable(pattern)}`);
    for (const each of found) kept.add(each);
  }
  return all.filter((model) => kept.has(model));
}

function refuse(expected: string, actual: string): NorthrootError {
  return new NorthrootError(
    'PRICES_INVALID',
    `the price list is not valid: expected ${expected}, found ${actual}`,
  );
}
