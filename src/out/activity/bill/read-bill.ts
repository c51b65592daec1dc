/**
 * Bills of providers: exports of costs and usage, in amounts by day, model and unit. Numbers are taken from their digits. A file that cannot be
 * read in full is refused: a bill of which lines are missing would be explained too easily.
 */

import { printable } from '../../../base/bytes/printable.js';
import { NorthrootError } from '../../../base/error.js';
import { parseDecimal } from '../../../base/json/decimal.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../../base/json/source-json.js';
import { addRationals, type Rational, reduceRational, ZERO } from '../../../base/value/rational.js';
import { formatInstant } from '../../../base/value/timestamp.js';
import { tryReadTime } from '../../../base/value/when.js';
import { CsvError, readCsv } from './csv-reader.js';

export const MAX_BILL_BYTES = 128 * 1024 * 1024;

/** The most lines of one bill by day, model and unit. */
const MAX_BILL_ROWS = 100_000;

const MAX_MODEL_LENGTH = 256;
/** Of an amount, before and after the point. */
const MAX_DIGITS = 38;
const DAY_SECONDS = 86_400n;
const UNIT = /^[a-z][a-z0-9_.-]{0,63}$/;

/** What was billed of one unit on one day. */
export interface BilledAmount {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  /** As the bill names it, without a date at its end; null where it names none. */
  readonly model: string | null;
  /** `usd`, another currency in lower case, or a unit of usage such as `tokens.input`. */
  readonly unit: string;
  /** Negative for a credit. */
  readonly amount: Rational;
}

/** The form of a bill that was recognised. */
export type BillKind = 'openai-costs' | 'openai-usage' | 'anthropic-costs' | 'anthropic-usage' | 'csv';

export interface Bill {
  readonly kinds: readonly BillKind[];
  /** Ordered by day, model and unit; each once. */
  readonly amounts: readonly BilledAmount[];
  readonly lines: number;
  /** Whether the last page of any of its kinds says that there are more. */
  readonly hasMore: boolean;
}

/**
 * Reads a bill of one or more files: pages of the costs or usage that the APIs of OpenAI (`/v1/organization/costs`, `…/usage/completions`) and
 * Anthropic (`/v1/organizations/cost_report`, `…/usage_report/messages`) give, or CSV with a heading that names a day, an amount, and perhaps a
 * model and a unit (or currency; `usd` where there is none).
 * @param files - The bytes of each
 * @throws NorthrootError `BILL_INVALID`
 */
export function readBill(files: readonly Uint8Array[]): Bill {
  const reader = new BillReader();
  for (const bytes of files) reader.read(bytes);
  return reader.finish();
}

/** The name of a model without a date at its end: bills have `m-1-2026-03-01` where requests have `m-1`. */
export function undatedModel(name: string): string {
  return name.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, '');
}

class BillReader {
  readonly #amounts = new Map<string, { readonly billed: Omit<BilledAmount, 'amount'>; amount: Rational }>();
  readonly #kinds = new Set<BillKind>();
  #lines = 0;
  /** Of the last result. */
  #kind: BillKind | undefined = undefined;
  /** By kind, what its last page says: a page of usage does not complete one of costs. */
  readonly #hasMore = new Map<BillKind | undefined, boolean>();

  read(bytes: Uint8Array): void {
    if (bytes.length > MAX_BILL_BYTES) throw refuse(`at most ${MAX_BILL_BYTES} bytes`, `${bytes.length}`);
    const first = bytes.find((byte) => !WHITE_SPACE.has(byte));
    if (first === 0x7b || first === 0x5b) this.#readJson(bytes);
    else this.#readCsv(bytes);
  }

  finish(): Bill {
    const key = ({ day, model, unit }: Omit<BilledAmount, 'amount'>): string =>
      `${day}\n${model ?? ''}\n${unit}`;
    const amounts = [...this.#amounts.values()]
      .map(({ billed, amount }) => ({ ...billed, amount }))
      .sort((a, b) => (key(a) < key(b) ? -1 : 1));
    if (amounts.length === 0) throw refuse('an amount', 'none');
    const hasMore = [...this.#hasMore.values()].includes(true);
    return { kinds: [...this.#kinds], amounts, lines: this.#lines, hasMore };
  }

  #add(where: string, day: string, model: string | undefined, unit: string, amount: Rational): void {
    if (model !== undefined && (model.length > MAX_MODEL_LENGTH || /\p{Surrogate}/u.test(model)))
      throw refuse(`${where}: the name of a model of at most ${MAX_MODEL_LENGTH} characters`, 'a longer one');
    if (!UNIT.test(unit)) throw refuse(`${where}: a unit or currency`, printable(unit, 80));
    const name = model === undefined || model === '' ? null : undatedModel(model);
    const key = JSON.stringify([day, name, unit]);
    const known = this.#amounts.get(key);
    if (known !== undefined) {
      known.amount = addRationals(known.amount, amount);
      return;
    }
    if (this.#amounts.size >= MAX_BILL_ROWS)
      throw refuse(`at most ${MAX_BILL_ROWS} amounts by day, model and unit`, 'more');
    this.#amounts.set(key, { billed: { day, model: name, unit }, amount });
  }

  #readCsv(bytes: Uint8Array): void {
    this.#kinds.add('csv');
    let columns: Columns | undefined;
    try {
      for (const { fields, line } of readCsv(bytes)) {
        if (columns === undefined) {
          columns = findColumns(fields);
          continue;
        }
        this.#lines += 1;
        const at = `line ${line}`;
        const { day, amount, model, unit } = columns;
        this.#add(
          at,
          dayOf(fields[day] ?? '', at),
          model === undefined ? undefined : fields[model]?.trim(),
          unit === undefined ? 'usd' : (fields[unit] ?? '').trim().toLowerCase() || 'usd',
          amountOf((fields[amount] ?? '').trim(), at),
        );
      }
    } catch (error) {
      if (error instanceof CsvError) throw refuse(error.expected, error.found);
      throw error;
    }
    if (columns === undefined) throw refuse('a heading', 'an empty file');
  }

  #readJson(bytes: Uint8Array): void {
    const decoded = decodeSourceJson(bytes);
    if (!decoded.ok) throw refuse('JSON', `${decoded.fault.code} at byte ${decoded.fault.offset}`);
    const { value } = decoded;
    const pages = Array.isArray(value) ? (value as readonly SourceValue[]) : [value];
    for (const [index, page] of pages.entries()) {
      const at = pages.length === 1 ? '' : `/${index}`;
      const buckets = member(page, 'data');
      if (!Array.isArray(buckets)) throw refuse(`${at}/data: a list of days`, 'none');
      for (const [n, bucket] of (buckets as readonly SourceValue[]).entries())
        this.#readBucket(bucket, `${at}/data/${n}`);
      // A page without results is one of the kind before it.
      if (this.#kind !== undefined) this.#hasMore.delete(undefined);
      this.#hasMore.set(this.#kind, member(page, 'has_more') === true);
    }
  }

  #readBucket(bucket: SourceValue, at: string): void {
    const from = instantOf(member(bucket, 'start_time') ?? member(bucket, 'starting_at'), `${at}/start_time`);
    const to = instantOf(member(bucket, 'end_time') ?? member(bucket, 'ending_at'), `${at}/end_time`);
    const day = formatInstant(from * 1_000_000_000n).slice(0, 10);
    if (to <= from || (to - 1n) / DAY_SECONDS !== from / DAY_SECONDS)
      throw refuse(`${at}: a part of one day (UTC)`, `${to - from} seconds`);
    const results = member(bucket, 'results') ?? member(bucket, 'result');
    if (!Array.isArray(results)) throw refuse(`${at}/results: a list`, 'none');
    for (const [n, result] of (results as readonly SourceValue[]).entries()) {
      this.#lines += 1;
      this.#readResult(result, day, `${at}/results/${n}`);
    }
  }

  #readResult(result: SourceValue, day: string, at: string): void {
    const amount = member(result, 'amount');
    const model = textOf(result, 'model');
    if (amount instanceof SourceObject) {
      this.#setKind('openai-costs');
      // `m-1-2026-03-01, input`
      const item = textOf(result, 'line_item')?.split(',')[0]?.trim();
      const unit = (textOf(amount, 'currency') ?? 'usd').toLowerCase();
      this.#add(at, day, model ?? item, unit, numberOf(amount.get('value'), `${at}/amount/value`));
    } else if (amount !== undefined) {
      this.#setKind('anthropic-costs');
      const unit = (textOf(result, 'currency') ?? 'usd').toLowerCase();
      // In the lowest unit of the currency: cents.
      const cents = numberOf(amount, `${at}/amount`);
      this.#add(at, day, model, unit, reduceRational(cents.n, cents.d * 100n));
    } else if (member(result, 'uncached_input_tokens') !== undefined) {
      this.#setKind('anthropic-usage');
      this.#addUsage(at, day, model, anthropicUsage(result, at));
    } else if (member(result, 'input_tokens') !== undefined) {
      this.#setKind('openai-usage');
      this.#addUsage(at, day, model, openaiUsage(result, at));
    } else throw refuse(`${at}: an amount, or tokens of OpenAI or Anthropic`, 'neither');
  }

  #setKind(kind: BillKind): void {
    this.#kind = kind;
    this.#kinds.add(kind);
  }

  #addUsage(
    at: string,
    day: string,
    model: string | undefined,
    usage: Readonly<Record<string, Rational>>,
  ): void {
    for (const [unit, amount] of Object.entries(usage))
      if (amount.n !== 0n) this.#add(at, day, model, unit, amount);
  }
}

const WHITE_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);

/** Units as `countUsage` has them: each with its parts. */
function anthropicUsage(result: SourceValue, at: string): Record<string, Rational> {
  const count = (name: string, of = result): Rational => countOf(of, name, at);
  const created = member(result, 'cache_creation');
  const [short, hour] =
    created instanceof SourceObject
      ? [count('ephemeral_5m_input_tokens', created), count('ephemeral_1h_input_tokens', created)]
      : [count('cache_creation_5m_input_tokens'), count('cache_creation_1h_input_tokens')];
  const written = addRationals(short, hour);
  const read = count('cache_read_input_tokens');
  const tools = member(result, 'server_tool_use') ?? null;
  return {
    'tokens.input': [count('uncached_input_tokens'), read, written].reduce(addRationals),
    'tokens.input.cache_read': read,
    'tokens.input.cache_creation': written,
    'tokens.input.cache_creation.1h': hour,
    'tokens.output': count('output_tokens'),
    web_searches: count('web_search_requests', tools),
  };
}

function openaiUsage(result: SourceValue, at: string): Record<string, Rational> {
  const count = (name: string): Rational => countOf(result, name, at);
  return {
    'tokens.input': count('input_tokens'),
    'tokens.input.cache_read': count('input_cached_tokens'),
    'tokens.input.audio': count('input_audio_tokens'),
    'tokens.output': count('output_tokens'),
    'tokens.output.audio': count('output_audio_tokens'),
  };
}

function member(value: SourceValue | undefined, name: string): SourceValue | undefined {
  return value instanceof SourceObject ? (value.get(name) ?? undefined) : undefined;
}

function textOf(value: SourceValue, name: string): string | undefined {
  const text = member(value, name);
  return typeof text === 'string' ? text : undefined;
}

function countOf(value: SourceValue, name: string, at: string): Rational {
  const given = member(value, name);
  return given === undefined ? ZERO : numberOf(given, `${at}/${name}`);
}

/** A number, or a text of one. */
function numberOf(value: SourceValue | undefined, at: string): Rational {
  return amountOf(value instanceof SourceNumber ? value.text : typeof value === 'string' ? value : '', at);
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function amountOf(text: string, at: string): Rational {
  if (!NUMBER.test(text))
    throw refuse(`${at}: an amount in digits`, text === '' ? 'none' : printable(text, 80));
  const { negative, digits, exponent } = parseDecimal(text);
  if (digits === '') return ZERO;
  if (-exponent > MAX_DIGITS || digits.length + exponent > MAX_DIGITS)
    throw refuse(
      `${at}: an amount of at most ${MAX_DIGITS} digits before and after the point`,
      'a longer one',
    );
  const sign = negative ? -1n : 1n;
  const n = sign * BigInt(digits);
  return exponent >= 0
    ? { n: n * 10n ** BigInt(exponent), d: 1n }
    : reduceRational(n, 10n ** BigInt(-exponent));
}

const EPOCH_SECONDS = /^\d{9,11}$/;

/** Seconds since 1970. */
function instantOf(value: SourceValue | undefined, at: string): bigint {
  const text = value instanceof SourceNumber ? value.text : typeof value === 'string' ? value : '';
  const found = tryInstant(text);
  if (found === undefined) throw refuse(`${at}: a time`, text === '' ? 'none' : printable(text, 80));
  return found;
}

function tryInstant(text: string): bigint | undefined {
  if (EPOCH_SECONDS.test(text)) return BigInt(text);
  const time = tryReadTime(text.trim().replace(' ', 'T'));
  return time === undefined ? undefined : BigInt(Date.parse(`${time.slice(0, 19)}Z`) / 1_000);
}

function dayOf(text: string, at: string): string {
  const instant = tryInstant(text.trim());
  if (instant === undefined)
    throw refuse(
      `${at}: a day such as 2026-03-01, or a time with Z or an offset`,
      printable(text, 80) || 'none',
    );
  return formatInstant(instant * 1_000_000_000n).slice(0, 10);
}

interface Columns {
  readonly day: number;
  readonly amount: number;
  readonly model: number | undefined;
  readonly unit: number | undefined;
}

/** The names that columns have in exports, the best first. */
const NAMES = {
  day: [
    'day',
    'date',
    'usage_date_utc',
    'usage_date',
    'start_time_iso',
    'start_time',
    'starting_at',
    'timestamp',
  ],
  amount: ['amount', 'amount_value', 'cost_usd', 'cost', 'usd'],
  model: ['model', 'model_name', 'model_version', 'line_item'],
  unit: ['unit', 'currency', 'amount_currency'],
} as const;

function findColumns(heads: readonly string[]): Columns {
  const lower = heads.map((head) => head.trim().toLowerCase());
  const find = (names: readonly string[]): number | undefined => {
    const name = names.find((each) => lower.includes(each));
    if (name === undefined) return undefined;
    const index = lower.indexOf(name);
    if (lower.lastIndexOf(name) !== index) throw refuse(`one column ${name}`, 'two');
    return index;
  };
  const [day, amount] = [find(NAMES.day), find(NAMES.amount)];
  if (day === undefined)
    throw refuse(`a column ${NAMES.day.slice(0, 2).join(' or ')}`, 'none in the heading');
  if (amount === undefined)
    throw refuse(`a column ${NAMES.amount.slice(0, 3).join(' or ')}`, 'none in the heading');
  return { day, amount, model: find(NAMES.model), unit: find(NAMES.unit) };
}

function refuse(expected: string, found: string): NorthrootError {
  return new NorthrootError('BILL_INVALID', `the bill is not valid: expected ${expected}, found ${found}`);
}
