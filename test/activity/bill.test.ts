/** Bills: what is one, and how much of it a ledger explains. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBill, reportActivity, type Bill } from '../../src/api/index.js';
import { NorthrootError } from '../../src/base/error.js';
import { defined } from '../../src/base/defined.js';
import { meters, type AmountsByUnit } from '../../src/base/value/meter.js';
import { formatExactly } from '../../src/base/value/format-rational.js';
import { digestFromBase64url, fromDigestText } from '../../src/base/value/digest.js';
import { digestIntent } from '../../src/log/policy/draft-grant.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { renderActivityCsv } from '../../src/out/activity/csv.js';
import { csvRow } from '../../src/out/export/table/csv.js';
import { AGENT, filePlace, grant, openLive } from '../agent/support.js';

const read = (...texts: readonly string[]): Bill => readBill(texts.map((text) => Buffer.from(text)));

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof NorthrootError ? error.code : String(error);
  }
  return 'nothing';
}

const rowsOf = ({ amounts }: Bill): (string | null)[][] =>
  amounts.map(({ day, model, unit, amount }) => [day, model, unit, formatExactly(amount)]);

/** Seconds of a day of March 2026. */
const second = (day: number): number => Date.UTC(2026, 2, day) / 1_000;

const openai = (results: readonly object[], more: object = {}): string =>
  JSON.stringify({
    object: 'page',
    data: [{ object: 'bucket', start_time: second(1), end_time: second(2), results }],
    has_more: false,
    ...more,
  });

const anthropic = (results: readonly object[]): string =>
  JSON.stringify({
    data: [{ starting_at: '2026-03-01T00:00:00Z', ending_at: '2026-03-02T00:00:00Z', results }],
    has_more: false,
    next_page: null,
  });

describe('a bill', () => {
  it('is costs of OpenAI: numbers by their digits, models of line items without what follows', () => {
    const text = openai([
      {
        object: 'organization.costs.result',
        amount: { value: 1, currency: 'usd' },
        line_item: 'm-1-2026-03-01, input',
      },
      {
        object: 'organization.costs.result',
        amount: { value: 0.1, currency: 'usd' },
        line_item: 'm-1, output',
      },
      { object: 'organization.costs.result', amount: { value: 2, currency: 'EUR' }, line_item: null },
    ]).replace('"value":0.1', '"value":1.000000000000000000001e-1');
    const bill = read(text);
    expect([bill.kinds, bill.lines, bill.hasMore]).toEqual([['openai-costs'], 3, false]);
    expect(rowsOf(bill)).toEqual([
      ['2026-03-01', null, 'eur', '2'],
      ['2026-03-01', 'm-1', 'usd', '1.1000000000000000000001'],
    ]);
    expect(read(openai([{ amount: { value: 1 } }], { has_more: true })).hasMore).toBe(true);
  });

  it('has more where the last page of any kind says so, whatever the others say', () => {
    const costs = (hasMore: boolean): string =>
      openai([{ amount: { value: 1, currency: 'usd' } }], { has_more: hasMore });
    const usage = openai([{ model: 'm-1', input_tokens: 1, output_tokens: 1 }]);
    const empty = (hasMore: boolean): string => openai([], { has_more: hasMore });
    expect(read(costs(true), usage).hasMore).toBe(true);
    expect(read(costs(true), usage, costs(false)).hasMore).toBe(false);
    expect(read(costs(true), empty(false)).hasMore).toBe(false);
    expect(read(empty(true), costs(false)).hasMore).toBe(false);
    expect(read(costs(false), empty(true), usage).hasMore).toBe(true);
  });

  it('is usage of OpenAI', () => {
    const bill = read(
      openai([
        { model: 'm-1', input_tokens: 100, input_cached_tokens: 20, output_tokens: 7, num_model_requests: 3 },
      ]),
    );
    expect(bill.kinds).toEqual(['openai-usage']);
    expect(rowsOf(bill)).toEqual([
      ['2026-03-01', 'm-1', 'tokens.input', '100'],
      ['2026-03-01', 'm-1', 'tokens.input.cache_read', '20'],
      ['2026-03-01', 'm-1', 'tokens.output', '7'],
    ]);
  });

  it('is costs of Anthropic, in cents, and its usage, of which all input is the sum', () => {
    const bill = read(
      anthropic([
        { currency: 'USD', amount: '123.78912', model: 'c-1-20260301', token_type: 'output_tokens' },
      ]),
      anthropic([
        {
          model: 'c-1',
          uncached_input_tokens: 100,
          cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 5 },
          cache_read_input_tokens: 20,
          output_tokens: 7,
          server_tool_use: { web_search_requests: 2 },
        },
      ]),
    );
    expect(bill.kinds).toEqual(['anthropic-costs', 'anthropic-usage']);
    expect(rowsOf(bill)).toEqual([
      ['2026-03-01', 'c-1', 'tokens.input', '135'],
      ['2026-03-01', 'c-1', 'tokens.input.cache_creation', '15'],
      ['2026-03-01', 'c-1', 'tokens.input.cache_creation.1h', '5'],
      ['2026-03-01', 'c-1', 'tokens.input.cache_read', '20'],
      ['2026-03-01', 'c-1', 'tokens.output', '7'],
      ['2026-03-01', 'c-1', 'usd', '1.2378912'],
      ['2026-03-01', 'c-1', 'web_searches', '2'],
    ]);
  });

  it('is CSV with any order of columns, quotes, line ends and names of days', () => {
    const text =
      '\uFEFFModel,Note,Cost_USD,usage_date_utc\r\n"m,1","a ""b""\nc",-0.5,2026-03-01\r\n\r\n=1+1,,2,2026-03-02T23:30:00-01:00\r\n,,1e-3,1772323200';
    expect(rowsOf(read(text))).toEqual([
      ['2026-03-01', null, 'usd', '0.001'],
      ['2026-03-01', 'm,1', 'usd', '-0.5'],
      ['2026-03-03', '=1+1', 'usd', '2'],
    ]);
    expect(rowsOf(read('date,amount,unit\n2026-03-01,3,tokens.input'))).toEqual([
      ['2026-03-01', null, 'tokens.input', '3'],
    ]);
  });

  it('of CSV is what was written: any texts', () => {
    const name = fc.string({ maxLength: 20, unit: 'binary' }).filter((text) => !/\p{Surrogate}/u.test(text));
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 20 }), (names) => {
        const quoted = names.map((each) => `"${each.replaceAll('"', '""')}"`);
        const text = ['date,model,amount', ...quoted.map((each) => `2026-03-01,${each},1`), ''].join('\n');
        const sum = read(text).amounts.reduce((all, { amount }) => all + amount.n, 0n);
        expect(sum).toBe(BigInt(names.length));
      }),
    );
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['a heading alone', 'date,amount\n'],
    ['no day', 'model,amount\nm,1'],
    ['no amount', 'date,model\n2026-03-01,m'],
    ['two columns of a name', 'date,amount,amount\n2026-03-01,1,2'],
    ['a row with fewer fields', 'date,model,amount\n2026-03-01,1'],
    ['a quote that does not end', 'date,model,amount\n2026-03-01,"m,1'],
    ['text after a quote', 'date,model,amount\n2026-03-01,"m"x,1'],
    ['a formula for an amount', 'date,amount\n2026-03-01,=1+1'],
    ['NaN', 'date,amount\n2026-03-01,NaN'],
    ['a sign of a currency', 'date,amount\n2026-03-01,$1'],
    ['thousands', 'date,amount\n2026-03-01,"1,000"'],
    ['an amount of 39 digits', `date,amount\n2026-03-01,${'1'.repeat(39)}`],
    ['an amount with a large exponent', 'date,amount\n2026-03-01,1e999999999'],
    ['a small one', 'date,amount\n2026-03-01,1e-39'],
    ['a day that does not exist', 'date,amount\n2026-02-30,1'],
    ['a time without a zone', 'date,amount\n2026-03-01T12:00:00,1'],
    ['a unit that is none', 'date,amount,unit\n2026-03-01,1,US $'],
    ['a long name', `date,model,amount\n2026-03-01,${'m'.repeat(257)},1`],
    ['a long row', `date,model,amount\n2026-03-01,${'m'.repeat(70_000)},1`],
    ['no JSON', '{"data":['],
    ['JSON without days', '{"object":"page"}'],
    ['two of a member', '{"data":[],"data":[]}'],
    ['no results', openai([]).replace('"results":[]', '"results":{}')],
    ['a result of another kind', openai([{ audio_seconds: 1 }])],
    [
      'a bucket of a month',
      openai([{ amount: { value: 1 } }]).replace(String(second(2)), String(second(20))),
    ],
    ['a value that is none', openai([{ amount: { value: true } }])],
    ['no amounts', openai([])],
  ])('is refused with %s', (_, text) => {
    expect(codeOf(() => read(text))).toBe('BILL_INVALID');
  });

  it('may have a million lines, and 100,000 amounts of its own', () => {
    const lines = Array.from({ length: 1_000_000 }, (_, n) => `2026-03-01,m-${n % 1_000},0.001\n`);
    const bill = read(`date,model,amount\n${lines.join('')}`);
    expect([bill.lines, bill.amounts.length]).toEqual([1_000_000, 1_000]);
    const many = Array.from({ length: 100_001 }, (_, n) => `2026-03-01,m${n},1\n`);
    expect(read(`date,model,amount\n${many.slice(1).join('')}`).amounts).toHaveLength(100_000);
    expect(codeOf(() => read(`date,model,amount\n${many.join('')}`))).toBe('BILL_INVALID');
  });
});

describe('a report with a bill', () => {
  async function ledgerOf(
    ...executions: readonly { at: string; model?: string; provider?: string; used: AmountsByUnit }[]
  ): Promise<string> {
    const place = filePlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, {
      intent: 'test',
      meterCaps: { usd: '100' },
      occurredAt: '2026-01-01T00:00:00Z',
    });
    for (const { at, model, provider, used } of executions)
      await ledger.append({
        event: defined({
          event_type: 'execution',
          occurred_at: at,
          principal_id: AGENT,
          intents: { intent_digest: digestIntent('test') },
          auth_event_id: digestFromBase64url(fromDigestText(grantId)),
          tool_name: 'fs.read',
          meter_used: meters(used),
          outcome: 'success',
          model_id: model,
          provider,
        }),
      });
    return place.path;
  }

  const at = (day: number): string => `2026-03-0${day}T12:00:00Z`;

  it('explains by day, model and unit; what is too much in one row explains nothing of another', async () => {
    const path = await ledgerOf(
      { at: at(1), model: 'm-1', used: { usd: '1', calls: 1 } },
      { at: at(1), model: 'm-1-2026-01-01', used: { usd: '0.5' } },
      { at: at(1), model: 'm-2', used: { usd: '9' } },
      { at: at(2), model: 'm-1', used: { usd: '0.1' } },
      { at: at(2), used: { usd: '7' } },
      { at: at(4), model: 'm-1', used: { usd: '3' } },
    );
    const bill = read('date,model,amount\n2026-03-01,m-1,2\n2026-03-02,,0.3\n2026-03-03,m-1,1\n');
    const report = await reportActivity(path, { bill });
    expect(report.bill).toEqual({
      kinds: ['csv'],
      lines: 3,
      from: '2026-03-01',
      until: '2026-03-04',
      sums: [
        {
          unit: 'usd',
          billed: '3.3',
          explained: '10.6',
          rest: '-7.3',
          covered: '1.6',
          covered_percent: '48.4',
        },
      ],
      rows: [
        { day: '2026-03-01', model: 'm-1', unit: 'usd', billed: '2', explained: '1.5', rest: '0.5' },
        { day: '2026-03-01', model: 'm-2', unit: 'usd', billed: '0', explained: '9', rest: '-9' },
        { day: '2026-03-02', model: null, unit: 'usd', billed: '0.3', explained: '0.1', rest: '0.2' },
        { day: '2026-03-03', model: 'm-1', unit: 'usd', billed: '1', explained: '0', rest: '1' },
      ],
      rows_total: 4,
      left_out: 0,
    });
    expect(renderActivity(report)).toContain('48.4 %');
    expect(renderActivityCsv(report)).toContain(csvRow(['bill', '2026-03-01 m-2', 'bill', 'usd', 9]).trim());
  });

  it('has no larger share where the bill has credits', async () => {
    const path = await ledgerOf({ at: at(1), model: 'm-1', used: { usd: '50' } });
    const bill = read('date,model,amount\n2026-03-01,m-1,100\n2026-03-01,,-50\n');
    const { bill: told } = await reportActivity(path, { bill });
    expect(told?.sums).toEqual([
      { unit: 'usd', billed: '50', explained: '50', rest: '0', covered: '50', covered_percent: '50.0' },
    ]);
    const credit = read('date,model,amount\n2026-03-01,m-1,-1\n');
    expect((await reportActivity(path, { bill: credit })).bill?.sums[0]).not.toHaveProperty(
      'covered_percent',
    );
  });

  it('counts one provider where it is named, and is of the whole ledger', async () => {
    const path = await ledgerOf(
      { at: at(1), model: 'm-1', provider: 'acme', used: { usd: '1' } },
      { at: at(1), model: 'm-1', provider: 'other', used: { usd: '5' } },
    );
    const bill = read('date,model,amount\n2026-03-01,m-1,1\n');
    const { bill: told } = await reportActivity(path, { bill, billProvider: 'acme' });
    expect(told).toMatchObject({ provider: 'acme', sums: [{ rest: '0', covered_percent: '100.0' }] });
    await expect(reportActivity(path, { bill, selection: { tool: 'fs.*' } })).rejects.toThrow(RangeError);
  });

  it('shows names of a hostile bill made printable, and never as formulas', async () => {
    const path = await ledgerOf({ at: at(1), model: 'm-1', used: { usd: '1' } });
    const bill = read('date,model,amount\n2026-03-01,"=HYPERLINK(1)\u001b[31m",1\n');
    const report = await reportActivity(path, { bill });
    expect(renderActivity(report)).not.toContain('\u001b');
    expect(renderActivityCsv(report)).not.toMatch(/(?:^|,)"?[=]/m);
  });
});
