/** Rows of one request count once, and requests that only share an id count each. */

import { expect, it } from 'vitest';
import { planImport } from '../../../src/hosts/shared/import.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { litellm } from '../../../src/hosts/litellm/index.js';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { sumLeftOut } from '../../../src/hosts/shared/usage.js';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { fileOf, found } from '../samples.js';

interface Parts {
  readonly call?: string;
  readonly from?: number;
  readonly to?: number;
  readonly [member: string]: unknown;
}

/** A row that goes on from one second of a minute to another. */
function row(id: string, { call, from = 0, to = 2, ...more }: Parts = {}): object {
  const at = (second: number): string => new Date(1_772_359_200_000 + second * 1000).toISOString();
  return {
    request_id: id,
    spend: 0.25,
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    startTime: at(from),
    endTime: at(to),
    model: 'gpt-5',
    status: 'success',
    cache_hit: 'False',
    metadata: call === undefined ? {} : { litellm_call_id: call },
    ...more,
  };
}

function read(...rows: object[]) {
  const reading = litellm.read([fileOf('f', rows)]);
  const backwards = litellm.read([fileOf('f', rows.toReversed())]);
  const sumOf = ({ observations }: typeof reading): number =>
    observations
      .flatMap(({ meters }) => meters.filter(({ unit }) => unit === 'usd'))
      .reduce((sum, { amount }) => sum + Number(formatQuantity(amount)), 0);
  expect(sumOf(backwards)).toBe(sumOf(reading));
  return {
    usd: sumOf(reading),
    calls: reading.observations.length,
    codes: found(reading),
    leftOut: sumLeftOut(reading.leftOut).map(({ reason, items, amounts }) => [
      reason,
      items,
      amounts.find(({ unit }) => unit === 'usd')?.amount,
    ]),
    reading,
  };
}

it('counts a call once that is logged by the outer and the inner route', () => {
  const { usd, calls, codes, leftOut, reading } = read(
    row('resp_1', { call: 'c', to: 2 }),
    row('chatcmpl-1', { call: 'c', to: 1.9 }),
  );
  expect([usd, calls, codes, leftOut]).toEqual([
    0.25,
    1,
    ['LL-13 CALL_LOGGED_TWICE'],
    [['CALL_LOGGED_TWICE', 1, '0.25']],
  ]);
  expect(reading.observations[0]?.callIds).toEqual(['resp_1', 'c', 'chatcmpl-1']);
  expect(reading.claims).toHaveLength(1);
});

it('counts it once over several files, and three times logged as once', () => {
  const rows = ['a', 'b', 'd'].map((id) => row(id, { call: 'c' }));
  expect(read(...rows)).toMatchObject({ usd: 0.25, calls: 1, leftOut: [['CALL_LOGGED_TWICE', 2, '0.5']] });
  const { observations } = litellm.read(rows.map((each, index) => fileOf(`${index}`, [each])));
  expect(observations).toHaveLength(1);
});

it.each([
  ['another cost', { spend: 0.5 }, 0.75, ['LL-13 CALL_LOGGED_AGAIN']],
  ['another time', { from: 60, to: 62 }, 0.5, ['LL-13 CALL_LOGGED_AGAIN']],
  [
    'a failure',
    { status: 'failure', spend: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    0.25,
    [],
  ],
  ['a failure that cost something', { status: 'failure' }, 0.5, ['LL-8 FAILURE_SPENT']],
  ['an answer of the cache', { cache_hit: 'True', spend: 0 }, 0.25, []],
])('counts tries of one call each: %s', (_what, change, usd, codes) => {
  const result = read(row('a', { call: 'c' }), row('b', { call: 'c', ...change }));
  expect(result).toMatchObject({ usd, calls: 2, codes, leftOut: [] });
});

it('counts requests each that a server answers with one id', () => {
  const rows = [
    row('static', { call: 'c-1' }),
    row('static', { call: 'c-2', from: 300, to: 302, spend: 0.75 }),
    row('static', { call: 'c-3', from: 600, to: 602 }),
  ];
  const { usd, calls, codes, leftOut, reading } = read(...rows);
  expect([usd, calls, leftOut]).toEqual([1.25, 3, []]);
  expect(codes).toEqual(['LL-1 DUPLICATE_REQUEST', 'LL-1 DUPLICATE_REQUEST']);
  expect(reading.findings.every(({ severity }) => severity === 'warning')).toBe(true);
  // The first has the id to itself, whatever comes later and in whichever order.
  const idsOf = (...given: object[]): string[] =>
    planImport(litellm, [fileOf('f', given)]).events.map(({ sourceId }) => sourceId);
  const all = idsOf(...rows);
  expect(new Set(all).size).toBe(3);
  expect(idsOf(...rows.toReversed())).toEqual(all);
  expect(idsOf(...rows.slice(0, 2))).toEqual(all.slice(0, 2));
});

it('tells requests of one id without a call id apart by their time', () => {
  const later = read(row('static'), row('static', { from: 300, to: 302 }));
  expect(later).toMatchObject({ usd: 0.5, calls: 2, codes: ['LL-1 DUPLICATE_REQUEST'] });
});

it('leaves out what says something else of the same call, with its amount', () => {
  const { usd, calls, leftOut, reading } = read(
    row('r', { call: 'c' }),
    row('r', { call: 'c', spend: 0.5, to: 1 }),
  );
  expect([usd, calls, leftOut]).toEqual([0.25, 1, [['DUPLICATE_REQUEST', 1, '0.5']]]);
  expect(reading.findings).toMatchObject([
    { code: 'DUPLICATE_REQUEST', severity: 'error', class: 'invalid' },
  ]);
});

it.each([
  ['SUMMARY', { spend: 1.5, startTime: '2026-03-01' }],
  ['ID_NOT_STATED', row('')],
  ['TIME_NOT_STATED', row('x', { startTime: null })],
])('names the spend of a row that is dropped as %s', (reason, dropped) => {
  expect(read(dropped).leftOut).toMatchObject([[reason, 1, expect.any(String)]]);
});

it('has what is left out in a reconciliation', async () => {
  const rows = fileOf('f', [row('resp_1', { call: 'c' }), row('chatcmpl-1', { call: 'c' })]);
  const report = await reconcileLedger(Buffer.from(''), [readSource(litellm, [rows])]);
  expect(report.sources[0]?.left_out).toMatchObject([
    { reason: 'CALL_LOGGED_TWICE', items: 1, amounts: [{ unit: 'tokens.input', amount: '100' }, {}, {}] },
  ]);
  expect(report.meters.find(({ unit }) => unit === 'usd')?.sources[0]?.amount).toBe('0.25');
  expect(report.not_checked.map(({ code }) => code)).toContain('USAGE_LEFT_OUT');
});
