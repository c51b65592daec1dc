/** LiteLLM: spend logs of its proxy, and its standard logging payloads. README.md says what becomes of each field. */

import type { FindingDetails } from '../shared/findings.js';
import { type Code, finding, LITELLM_RULES } from './rules.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import { sha256Digest, toDigestText } from '../../base/value/digest.js';
import { formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import {
  checkReadOptions,
  compactJson,
  documentsOf,
  membersOf,
  peekDocuments,
  ReadingBuilder,
} from '../shared/reading.js';
import type { Host, HostFile, HostOptions, HostPlace, HostReading, SourceItem } from '../shared/host.js';
import {
  amountFacts,
  differ,
  exceeds,
  metersOf,
  meterText,
  shownAmount,
  type StatedAmounts,
  sumOf,
} from '../shared/usage.js';
import { codeOf, factText, factTexts, principalOf, toolOf, wellFormed } from '../shared/names.js';
import { inFileOrder, inTimeOrder } from '../shared/order.js';
import {
  amountOf,
  jcsDigest,
  listAt,
  numberAt,
  numberTextOf,
  objectAt,
  textAt,
  timeOf,
  timeOfText,
  valueAt,
} from '../shared/values.js';
import { type Copy, findCopies, type Request } from './copies.js';

/** The host LiteLLM: spend logs. */
export const litellm: Host = {
  name: 'litellm',
  title: 'LiteLLM spend logs',
  rules: LITELLM_RULES,
  aids: {},
  recognises,
  read,
};

const MAX_IDS = 16;
const KEY_HASH = /^[0-9a-f]{64}$/;
/** Of a cost, by which its parts may differ from it: they are sums of doubles. */
const COST_TOLERANCE = 1e-6;

function recognises(file: HostFile): boolean {
  for (const { value } of peekDocuments(file)) {
    const [first] = rowsOf(value)?.list ?? [value];
    return (
      first instanceof SourceObject &&
      (first.has('request_id') || first.has('id')) &&
      (first.has('spend') || first.has('response_cost')) &&
      first.has('startTime')
    );
  }
  return false;
}

function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('litellm.read', options);
  const reader = new SpendReader(options);
  for (const file of files) reader.readFile(file);
  const made = inFileOrder(reader.finish(), files, true);
  return { ...made, claims: inTimeOrder(made.claims) };
}

/** The rows of a response of an endpoint: a list, or a page that has them in `data`. */
function rowsOf(
  value: SourceValue,
): { readonly pointer: string; readonly list: readonly SourceValue[] } | undefined {
  if (Array.isArray(value)) return { pointer: '', list: value as readonly SourceValue[] };
  const list = listAt(value, 'data');
  return list === undefined ? undefined : { pointer: '/data', list };
}

/** The endpoint behind the proxy's own pages has the metadata as the text of a JSON object. */
function withMetadata(row: SourceObject): SourceObject {
  const text = textAt(row, 'metadata');
  const decoded = text === undefined ? undefined : decodeSourceJson(encodeUtf8(text));
  if (decoded?.ok !== true || !(decoded.value instanceof SourceObject)) return row;
  return new SourceObject(new Map([...row.entries(), ['metadata', decoded.value]]));
}

interface Row extends SourceItem, Request {
  readonly value: SourceObject;
  readonly type: string;
  readonly occurredAt: string;
}

class SpendReader {
  readonly reading: ReadingBuilder;
  readonly #rows: Row[] = [];
  /** Which rows there are, by their id and content. */
  readonly #contents = new Set<string>();
  /** Pages that say how many rows there are in all, by that number. */
  readonly #pages = new Map<string, { readonly at: HostPlace; rows: number }>();

  constructor(options: HostOptions) {
    this.reading = new ReadingBuilder(options);
  }

  readFile(file: HostFile): void {
    for (const item of documentsOf(this.reading, file)) {
      const rows = rowsOf(item.value);
      if (rows === undefined) {
        this.#row(item);
        continue;
      }
      for (const member of membersOf(item.at, rows.pointer, rows.list)) this.#row(member);
      this.#countPage(item, rows.list.length);
    }
  }

  finish(): HostReading {
    const copies = findCopies(this.#rows, (row) => metersOf(unitsOf(this.#amountsIn(row.value))));
    const alsoIds = new Map<Request, string[]>();
    for (const [{ id }, { of, counts }] of copies)
      if (!counts) alsoIds.set(of, [...(alsoIds.get(of) ?? []), id].slice(0, MAX_IDS));
    for (const row of this.#rows) {
      const copy = copies.get(row);
      if (copy !== undefined) this.#tellOfCopy(row, copy);
      if (copy === undefined || copy.counts) this.#request(row, copies, alsoIds.get(row));
    }
    for (const [total, { at, rows }] of this.#pages) {
      if (Number(total) <= rows) continue;
      this.#find('ROWS_MISSING', at, { expected: `${total} rows`, actual: `${rows} rows` });
    }
    return this.reading.finish();
  }

  /** The pages of one list say the same number. */
  #countPage({ at, value }: SourceItem, rows: number): void {
    const total = valueAt(value, 'total');
    if (!(total instanceof SourceNumber) || amountOf(total.text) === undefined) return;
    const page = this.#pages.get(total.text);
    if (page === undefined) this.#pages.set(total.text, { at, rows });
    else page.rows += rows;
  }

  #row(item: SourceItem): void {
    const { at } = item;
    if (!(item.value instanceof SourceObject)) {
      this.reading.drop(at, 'unknown', 'NOT_AN_OBJECT');
      return;
    }
    const value = withMetadata(item.value);
    const type = textAt(value, 'call_type') ?? 'spend';
    const id = textAt(value, 'request_id') ?? textAt(value, 'id');
    if (id === undefined && !value.has('request_id')) {
      // A sum of several requests has no id of its own, nor any place in a ledger of single ones.
      const isSummary = value.has('spend');
      if (isSummary) this.#leaveOut(at, 'SUMMARY', value);
      this.reading.drop(at, 'summary', isSummary ? 'SUMMARY' : 'NOT_A_ROW');
      return;
    }
    if (id === undefined || id === '') {
      this.#find('ID_NOT_STATED', at);
      this.#leaveOut(at, 'ID_NOT_STATED', value);
      this.reading.drop(at, type, 'ID_NOT_STATED');
      return;
    }
    const content = contentOf(value);
    const key = `${id}\n${content}`;
    if (this.#contents.has(key)) {
      this.reading.item({ at, type, fate: 'repeated', reason: 'ROW_REPEATED' });
      return;
    }
    this.#contents.add(key);
    const started = instantAt(value, 'startTime');
    const ended = instantAt(value, 'endTime');
    const occurredAt = this.reading.timeOf(started, at, id);
    if (occurredAt === undefined) {
      this.#leaveOut(at, 'TIME_NOT_STATED', value);
      this.reading.drop(at, type, 'TIME_NOT_STATED');
      return;
    }
    if (started !== undefined && ended !== undefined && compareTimestamps(ended, started) < 0)
      this.#find('END_BEFORE_START', at, { about: id, expected: `from ${started}`, actual: ended });
    const call = textAt(value, 'metadata', 'litellm_call_id') ?? textAt(value, 'litellm_call_id');
    const callId = call === '' ? undefined : call;
    const status = statusOf(value);
    const isCached = isCacheHit(value);
    this.#rows.push({
      ...item,
      value,
      id,
      status,
      isCached,
      callId,
      type,
      content,
      started,
      ended,
      occurredAt,
    });
  }

  #leaveOut(at: HostPlace, reason: string, row: SourceObject): void {
    this.reading.leaveOut({ at, reason, meters: metersOf(unitsOf(this.#amountsIn(row))) });
  }

  #tellOfCopy({ at, id, type, value }: Row, { of, code, counts }: Copy): void {
    const meters = metersOf(unitsOf(this.#amountsIn(value)));
    const used = meters.length === 0 ? 'another' : meterText(meters);
    const isBroken = code === 'DUPLICATE_REQUEST' && !counts;
    this.#find(code, at, {
      about: id,
      weight: isBroken ? 'invalid' : 'warning',
      expected: code === 'DUPLICATE_REQUEST' ? 'an id of its own' : 'a call that is logged once',
      actual: counts ? `${used}, counted too` : `${used}, left out`,
      related: [of.at],
    });
    if (counts) return;
    this.#leaveOut(at, code, value);
    this.reading.item({ at, type, fate: 'repeated', reason: code });
  }

  #request(row: Row, copies: ReadonlyMap<Row, Copy>, alsoIds: readonly string[] = []): void {
    const { at, bytes, value, id, type, occurredAt, ended, content } = row;
    // Of several requests under one id the first has it to itself, and the others are told apart by what they say.
    const name = copies.get(row)?.code === 'DUPLICATE_REQUEST' ? `${id}~${shortOf(content)}` : id;
    const amounts = this.#amounts(value, at, id);
    const status = statusOf(value);
    const outcome = status === 'success' || status === 'failure' ? status : undefined;
    const refusal = refusalOf(value);
    const tool = toolNameOf(value);
    const paramsDigest = jcsDigest(
      valueAt(value, 'metadata', 'mcp_tool_call_metadata', 'arguments') ?? undefined,
    );
    const key = textAt(value, 'api_key') ?? textAt(value, 'metadata', 'user_api_key_hash');
    this.#checkKey(key, at, id);
    this.#checkFree(value, amounts, at, id);
    const principalId = principalOf('service', 'litellm', ...(key === undefined ? [] : [hashOf(key)]));
    const claimed = { at, bytes, occurredAt, principalId };
    const facts: JsonObject = {
      request_id: factText(id),
      call_type: factText(type),
      ...(tool === undefined ? {} : { tool_name: toolOf(tool) }),
      ...factTexts(FACTS, (name) => textAt(value, name) || undefined),
      ...(status === undefined ? {} : { status: factText(status) }),
      ...(key === undefined ? {} : { api_key: hashOf(key) }),
      ...(ended === undefined ? {} : { ended_at: ended }),
      amounts: amountFacts(amounts),
    };
    if (refusal !== undefined && tool !== undefined)
      this.reading.claim({
        ...claimed,
        kind: 'action',
        id: `refusal:${name}`,
        decision: 'deny',
        decisionCode: codeOf(refusal),
        tool,
        paramsDigest,
      });
    this.reading.claim({ ...claimed, kind: 'evidence', id: `spend:${name}`, type: 'spend', facts });
    this.reading.observe({
      at,
      callIds: [...new Set([id, ...(row.callId === undefined ? [] : [row.callId]), ...alsoIds])],
      tool,
      paramsDigest,
      ...(refusal === undefined ? { outcome } : { decision: 'deny' as const }),
      meters: metersOf(unitsOf(amounts)),
      occurredAt,
    });
    const isMapped = refusal !== undefined && tool !== undefined;
    this.reading.item({ at, type, fate: isMapped ? 'mapped' : 'evidence' });
  }

  /** What a row states that can be counted; what cannot is reported where it is counted. */
  #amountsIn(
    row: SourceObject,
    refuse: (name: string, path: readonly string[], text: string) => void = () => undefined,
  ): StatedAmounts {
    const amount = (name: string, ...path: readonly string[]): Quantity | undefined => {
      const stated = valueAt(row, ...path);
      if (stated === undefined || stated === null) return undefined;
      const found = stated instanceof SourceNumber ? amountOf(stated.text) : undefined;
      if (found !== undefined && (name === 'spend' || found.t === 'int')) return found;
      refuse(name, path, numberTextOf(stated));
      return undefined;
    };
    const usage = ['metadata', 'usage_object'];
    return {
      spend: amount('spend', row.has('spend') ? 'spend' : 'response_cost'),
      prompt_tokens: amount('prompt_tokens', 'prompt_tokens'),
      completion_tokens: amount('completion_tokens', 'completion_tokens'),
      total_tokens: amount('total_tokens', 'total_tokens'),
      cached_tokens:
        amount('cached_tokens', ...usage, 'prompt_tokens_details', 'cached_tokens') ??
        amount('cached_tokens', ...usage, 'cache_read_input_tokens'),
      cache_creation_tokens: amount('cache_creation_tokens', ...usage, 'cache_creation_input_tokens'),
      reasoning_tokens: amount('reasoning_tokens', ...usage, 'completion_tokens_details', 'reasoning_tokens'),
      ...Object.fromEntries(
        ['prompt_tokens', 'completion_tokens', 'total_tokens'].map((name) => [
          `usage.${name}`,
          amount(name, ...usage, name),
        ]),
      ),
    };
  }

  #amounts(row: SourceObject, at: HostPlace, id: string): StatedAmounts {
    const all = this.#amountsIn(row, (name, path, text) => {
      const code = name === 'spend' && text.startsWith('-') ? 'NEGATIVE_SPEND' : 'AMOUNT_INVALID';
      const expected =
        name === 'spend' ? 'an amount that is not negative' : 'a whole number that is not negative';
      this.#find(code, at, { about: id, expected, actual: `${path.join('.')} ${text}` });
    });
    const amounts = Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith('usage.')));
    const { prompt_tokens: prompt, completion_tokens: completion } = amounts;
    const sum = prompt !== undefined && completion !== undefined ? sumOf([prompt, completion]) : undefined;
    // Some providers count what a model thinks beside its answer, and in the total.
    const whole = sumOf([sum, amounts['reasoning_tokens']]);
    if (sum !== undefined && differ(whole, amounts['total_tokens']))
      this.#compare('TOKEN_SUM', at, id, 'total_tokens', sum, amounts['total_tokens']);
    for (const name of ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const)
      this.#compare('USAGE_DISAGREES', at, id, name, amounts[name], all[`usage.${name}`]);
    for (const [part, whole] of PARTS) {
      if (!exceeds(amounts[part], amounts[whole])) continue;
      this.#find('PART_EXCEEDS_TOTAL', at, {
        about: id,
        expected: `${part} within ${whole}`,
        actual: `${shownAmount(amounts[part])} of ${shownAmount(amounts[whole])}`,
      });
    }
    this.#checkCost(row, at, id);
    return amounts;
  }

  #compare(
    code: Code,
    at: HostPlace,
    id: string,
    name: string,
    expected: Quantity | undefined,
    actual: Quantity | undefined,
  ): void {
    if (!differ(expected, actual)) return;
    this.#find(code, at, {
      about: id,
      expected: `${name} ${shownAmount(expected)}`,
      actual: shownAmount(actual),
    });
  }

  /** Where a discount or a margin is in it, the parts are before it and the total after. */
  #checkCost(row: SourceObject, at: HostPlace, id: string): void {
    const breakdown = objectAt(row, 'metadata', 'cost_breakdown') ?? objectAt(row, 'cost_breakdown');
    if (breakdown === undefined || COST_CHANGES.some((name) => numberOf(breakdown, name) !== 0)) return;
    const total = valueAt(breakdown, 'total_cost');
    if (!(total instanceof SourceNumber)) return;
    const sum = COST_PARTS.reduce((before, name) => before + numberOf(breakdown, name), 0);
    const stated = Number(total.text);
    if (Math.abs(sum - stated) <= COST_TOLERANCE * Math.max(Math.abs(stated), Math.abs(sum))) return;
    this.#find('COST_PARTS', at, { about: id, expected: `total_cost ${sum}`, actual: total.text });
  }

  #checkKey(key: string | undefined, at: HostPlace, id: string): void {
    if (key === undefined || !key.startsWith('sk-')) return;
    this.#find('KEY_IN_CLEAR', at, { about: id });
  }

  #checkFree(row: SourceObject, { spend }: StatedAmounts, at: HostPlace, id: string): void {
    if (spend === undefined || formatQuantity(spend) === '0') return;
    const isCached = isCacheHit(row);
    if (statusOf(row) !== 'failure' && !isCached) return;
    this.#find(isCached ? 'CACHE_HIT_SPENT' : 'FAILURE_SPENT', at, { about: id, actual: shownAmount(spend) });
  }

  #find(code: Code, at: HostPlace, details?: FindingDetails): void {
    this.reading.find(finding(code, at, details));
  }
}

const FACTS = [
  'model',
  'model_group',
  'model_id',
  'custom_llm_provider',
  'user',
  'end_user',
  'team_id',
  'organization_id',
  'session_id',
  'cache_hit',
] as const;

const AMOUNTS = ['spend', 'response_cost', 'prompt_tokens', 'completion_tokens', 'total_tokens'] as const;

const PARTS = [
  ['cached_tokens', 'prompt_tokens'],
  ['cache_creation_tokens', 'prompt_tokens'],
  ['reasoning_tokens', 'completion_tokens'],
] as const;

const COST_PARTS = ['input_cost', 'output_cost', 'tool_usage_cost'] as const;
const COST_CHANGES = ['discount_amount', 'margin_total_amount', 'additional_costs'] as const;

function numberOf(value: SourceObject, name: string): number {
  const found = valueAt(value, name);
  if (found === undefined || found === null) return 0;
  return found instanceof SourceNumber ? Number(found.text) : NaN;
}

function isCacheHit(row: SourceObject): boolean {
  const hit = valueAt(row, 'cache_hit');
  return hit === true || (typeof hit === 'string' && hit.toLowerCase() === 'true');
}

/** Rows of older versions state it in the metadata only. */
function statusOf(row: SourceObject): string | undefined {
  const status = textAt(row, 'status') ?? '';
  return status === '' ? textAt(row, 'metadata', 'status') : status;
}

/** A digest of what is read of a row, however it is written. */
function contentOf(row: SourceObject): string {
  const metadata = row.get('metadata') ?? null;
  const read = compactJson([
    ...AMOUNTS.map((name) => {
      const amount = amountOf(numberAt(row, name));
      return amount === undefined ? (row.get(name) ?? null) : formatQuantity(amount);
    }),
    ...['startTime', 'endTime'].map((name) => instantAt(row, name) ?? null),
    ...[...FACTS, 'api_key', 'call_type'].map((name) => row.get(name) ?? null),
    statusOf(row) ?? null,
    jcsDigest(metadata)?.b64 ?? metadata,
  ]);
  return toDigestText(sha256Digest(encodeUtf8(read)).b64);
}

/** A date and time, or seconds since 1970. The proxy writes UTC, and its tables keep that without an offset. */
function instantAt(row: SourceObject, name: string): string | undefined {
  const stated = valueAt(row, name);
  return stated instanceof SourceNumber
    ? timeOf(stated.text, 's')
    : timeOfText(typeof stated === 'string' ? stated : undefined, 'UTC');
}

/** The error by which the proxy itself refused the request, before any provider saw it. */
function refusalOf(row: SourceObject): string | undefined {
  const error =
    textAt(row, 'metadata', 'error_information', 'error_class') ??
    textAt(row, 'error_information', 'error_class');
  return statusOf(row) === 'failure' && error === 'BudgetExceededError' ? 'BUDGET_EXCEEDED' : undefined;
}

function toolNameOf(row: SourceObject): string | undefined {
  const mcp = textAt(row, 'metadata', 'mcp_tool_call_metadata', 'name');
  if (mcp !== undefined) return mcp;
  const model = textAt(row, 'model');
  if (model === undefined || model === '') return undefined;
  const provider = textAt(row, 'custom_llm_provider') ?? '';
  return provider === '' || model.startsWith(`${provider}/`) ? `llm.${model}` : `llm.${provider}/${model}`;
}

/** The meters of the amounts, by their names in other sources. */
function unitsOf(amounts: StatedAmounts): StatedAmounts {
  return {
    usd: amounts['spend'],
    'tokens.input': amounts['prompt_tokens'],
    'tokens.output': amounts['completion_tokens'],
    'tokens.input.cache_read': amounts['cached_tokens'],
    'tokens.input.cache_creation': amounts['cache_creation_tokens'],
    'tokens.output.reasoning': amounts['reasoning_tokens'],
  };
}

function shortOf(digest: string): string {
  return digest.slice(digest.indexOf(':') + 1).slice(0, 22);
}

/** A key never leaves here: what is no hash is hashed. */
function hashOf(key: string): string {
  return KEY_HASH.test(key) ? key : toDigestText(sha256Digest(encodeUtf8(wellFormed(key))).b64);
}
