/** The data file of genai-prices: an array of providers with their models, usd for a million tokens. */

import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { PricePeriod, UnitPrice } from '../../format/schema/generated/types.js';
import {
  exactPrice,
  type ImportedModel,
  isPriceName,
  type LeftOut,
  memberOf,
  PriceList,
} from './imported.js';
import type { PriceUnit } from './units.js';

const MILLION = 6;
const THOUSAND = 3;

const UNITS: Readonly<Record<string, readonly [unit: PriceUnit, places: number]>> = {
  input_mtok: ['tokens.input', MILLION],
  output_mtok: ['tokens.output', MILLION],
  cache_read_mtok: ['tokens.input.cache_read', MILLION],
  cache_audio_read_mtok: ['tokens.input.cache_read.audio', MILLION],
  cache_image_read_mtok: ['tokens.input.cache_read.image', MILLION],
  cache_write_mtok: ['tokens.input.cache_creation', MILLION],
  cache_write_1h_mtok: ['tokens.input.cache_creation.1h', MILLION],
  input_audio_mtok: ['tokens.input.audio', MILLION],
  input_image_mtok: ['tokens.input.image', MILLION],
  input_video_mtok: ['tokens.input.video', MILLION],
  output_reasoning_mtok: ['tokens.output.reasoning', MILLION],
  output_audio_mtok: ['tokens.output.audio', MILLION],
  output_image_mtok: ['tokens.output.image', MILLION],
  output_video_mtok: ['tokens.output.video', MILLION],
  requests_kcount: ['requests', THOUSAND],
  web_searches_kcount: ['web_searches', THOUSAND],
};

/** As the schema has them. */
const MAX_PERIODS = 64;
const MAX_NAMES = 1_000;
/** Of alternatives within alternatives. */
const MAX_MATCH_DEPTH = 8;

/** Whether this is such a file. */
export function isGenaiPrices(root: SourceValue): root is readonly SourceValue[] {
  return Array.isArray(root) && root.some((each) => each instanceof SourceObject && each.has('models'));
}

/**
 * The models of the file. Prices that depend on the time of day leave a model out. Names that a pattern other than `equals` and
 * `starts_with` matches stay unknown.
 */
export function readGenaiPrices(root: readonly SourceValue[], leftOut: LeftOut): ImportedModel[] {
  return root.flatMap((each) => {
    const models = each instanceof SourceObject ? each.get('models') : undefined;
    const provider = each instanceof SourceObject ? each.get('id') : undefined;
    if (!isPriceName(provider) || !Array.isArray(models)) {
      leftOut.add('model', 'NAME_INVALID', typeof provider === 'string' ? provider : '');
      return [];
    }
    return (models as readonly SourceValue[]).flatMap((value) => {
      const model = readModel(provider, value, leftOut);
      if (typeof model !== 'string') return [model];
      const id = value instanceof SourceObject ? value.get('id') : undefined;
      leftOut.add('model', model, typeof id === 'string' ? id : provider);
      return [];
    });
  });
}

/** A model, or why it is left out. */
function readModel(provider: string, value: SourceValue, leftOut: LeftOut): ImportedModel | string {
  if (!(value instanceof SourceObject)) return 'NOT_AN_OBJECT';
  const model = value.get('id');
  if (!isPriceName(model)) return 'NAME_INVALID';
  const others = new Set<string>();
  const periods = readPeriods(value.get('prices'), others);
  if (typeof periods === 'string') return periods;
  if (periods.some(({ prices }) => prices.length === 0)) return [...others][0] ?? 'NO_PRICE';
  for (const member of others) leftOut.add('price', member, model);
  const aliases = new Set<string>();
  const prefixes = new Set<string>();
  const other = (kind: string): void => leftOut.add('pattern', kind, model);
  const addTo = (names: Set<string>) => (name: string) => {
    if (names.size < MAX_NAMES) names.add(name);
    else other('TOO_MANY');
  };
  readMatch(value.get('match'), { equals: addTo(aliases), starts_with: addTo(prefixes), other });
  aliases.delete(model);
  return { provider, model, aliases: [...aliases], prefixes: [...prefixes], periods };
}

/** The last that has begun holds, so they must be in the order of time; the first holds where none has begun. */
function readPeriods(value: SourceValue | undefined, others: Set<string>): PricePeriod[] | string {
  if (value instanceof SourceObject) {
    const prices = readPrices(value, others);
    return typeof prices === 'string' ? prices : [{ prices }];
  }
  if (!Array.isArray(value)) return 'NO_PRICE';
  const periods: PricePeriod[] = [];
  for (const [index, each] of (value as readonly SourceValue[]).entries()) {
    const list = each instanceof SourceObject ? memberOf(each, 'prices') : undefined;
    if (!(each instanceof SourceObject) || !(list instanceof SourceObject)) return 'NO_PRICE';
    const prices = readPrices(list, others);
    if (typeof prices === 'string') return prices;
    const constraint = memberOf(each, 'constraint');
    if (constraint === undefined && index === 0) {
      periods.push({ prices });
      continue;
    }
    const start = constraint instanceof SourceObject ? constraint.get('start_date') : undefined;
    if (typeof start !== 'string') return 'TIME_OF_DAY';
    const from = `${start}T00:00:00Z`;
    const isLater = isTimestamp(from) && (periods.at(-1)?.from ?? '') < from;
    if (!isLater || periods.length === MAX_PERIODS) return 'PERIODS_UNCLEAR';
    periods.push(index === 0 ? { prices } : { from, prices });
  }
  return periods.length === 0 ? 'NO_PRICE' : periods;
}

function readPrices(value: SourceObject, others: Set<string>): UnitPrice[] | string {
  const list = new PriceList();
  for (const [member, price] of value.entries()) {
    if (price === null) continue;
    const [unit, places] = Object.hasOwn(UNITS, member) ? (UNITS[member] ?? []) : [];
    if (unit === undefined) {
      others.add(member);
      continue;
    }
    const tiered = price instanceof SourceObject ? price : undefined;
    const base = exactPrice(tiered === undefined ? price : tiered.get('base'), places);
    if (base === undefined) return 'PRICE_INVALID';
    list.set(unit, base);
    const tiers = tiered?.get('tiers') ?? [];
    if (!Array.isArray(tiers)) return 'PRICE_INVALID';
    const limits = new Set<number>();
    for (const tier of tiers as readonly SourceValue[]) {
      const above = tier instanceof SourceObject ? limitOf(tier.get('start')) : undefined;
      const usd = tier instanceof SourceObject ? exactPrice(tier.get('price'), places) : undefined;
      if (above === undefined || usd === undefined || limits.has(above)) return 'PRICE_INVALID';
      limits.add(above);
      list.set(unit, usd, above);
    }
  }
  return list.list() ?? 'PRICE_INVALID';
}

function limitOf(value: SourceValue | undefined): number | undefined {
  return value instanceof SourceNumber && /^(?:0|[1-9][0-9]{0,8})$/.test(value.text)
    ? Number(value.text)
    : undefined;
}

interface MatchReader {
  readonly equals: (name: string) => void;
  readonly starts_with: (name: string) => void;
  /** Told of the kind of a pattern that is left out. */
  readonly other: (kind: string) => void;
}

function readMatch(value: SourceValue | undefined, reader: MatchReader, depth = 0): void {
  if (!(value instanceof SourceObject) || depth > MAX_MATCH_DEPTH) {
    reader.other('NOT_A_PATTERN');
    return;
  }
  for (const [kind, each] of value.entries()) {
    if (kind === 'or' && Array.isArray(each))
      for (const one of each as readonly SourceValue[]) readMatch(one, reader, depth + 1);
    else if ((kind === 'equals' || kind === 'starts_with') && isPriceName(each)) reader[kind](each);
    else reader.other(kind);
  }
}
