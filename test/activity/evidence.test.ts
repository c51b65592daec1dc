/** What evidence says that was used stands in the report, apart from what was accounted. */

import { describe, expect, it } from 'vitest';
import {
  renderActivity,
  renderActivityCsv,
  reportActivity,
  type ActivityReport,
  type AnyEvent,
} from '../../src/api/index.js';
import { MAX_EVIDENCE_NAMES, MAX_EVIDENCE_TYPES } from '../../src/out/activity/evidence.js';

import { execution, grant, unsigned } from '../docs/grant-kit.js';
import { event } from '../docs/ledger-kit.js';
import { validatorOf } from '../schema/ajv.js';

const isReport = validatorOf('activity-report');
const int = (v: number) => ({ t: 'int', v: String(v) });
let made = 0;
const stated = (type: string, amounts: object, more: object = {}): AnyEvent =>
  event(`x.example.${type}`, { n: String((made += 1)), amounts, ...more });
const reportOn = (...events: AnyEvent[]): Promise<ActivityReport> => reportActivity(unsigned(...events));
const amountsOf = (report: ActivityReport): Record<string, Record<string, string>> =>
  Object.fromEntries(
    (report.evidence ?? []).map(({ event_type: type, amounts }) => [
      type,
      Object.fromEntries(amounts.map(({ name, amount }) => [name, amount])),
    ]),
  );

describe('what evidence states', () => {
  it('is told apart by type and name, and is in no sum', async () => {
    const own = grant();
    const used = execution(own, 2);
    const without = await reportOn(own, used);
    const report = await reportOn(
      own,
      used,
      stated('spend', { usd: { t: 'dec', m: '25', s: 2 }, prompt_tokens: int(10) }),
      stated('spend', { usd: { t: 'dec', m: '5', s: 1 } }),
      stated('note', { 'tokens of it': int(3) }),
    );
    expect(isReport(report), JSON.stringify(isReport.errors)).toBe(true);
    expect(amountsOf(report)).toEqual({
      'x.example.note': { 'tokens of it': '3' },
      'x.example.spend': { usd: '0.75', prompt_tokens: '10' },
    });
    expect(report.totals.meters).toEqual(without.totals.meters);
    expect(report.grants[0]?.meters).toEqual(without.grants[0]?.meters);
    expect(without).not.toHaveProperty('evidence');
    const codes = (of: ActivityReport) => of.limits.map(({ code }) => code);
    expect([codes(report).includes('EVIDENCE_NOT_ACCOUNTED'), codes(without)]).toEqual([
      true,
      ['RECORDED_ONLY'],
    ]);
    const text = renderActivity(report);
    expect(text).toMatch(/x\.example\.spend +2 +prompt_tokens +10\n +usd +0\.75/);
    expect(renderActivity(without)).not.toContain('What evidence says');
    const rows = renderActivityCsv(report)
      .split('\r\n')
      .map((row) => row.split(','));
    const [head = [], ...others] = rows;
    expect(
      others
        .filter((row) => row[2] === 'evidence')
        .map((row) => [row[1], row[3], row[4], row[head.indexOf('stated')]]),
    ).toEqual([
      ['x.example.note', 'tokens of it', '', '3'],
      ['x.example.spend', 'prompt_tokens', '', '10'],
      ['x.example.spend', 'usd', '', '0.75'],
    ]);
    expect(new Set(rows.slice(0, -1).map(({ length }) => length)).size).toBe(1);
  });

  it('of a message that is stated again is what was stated last', async () => {
    const at = (id: string, output: number) =>
      stated('message', { input_tokens: int(2), output_tokens: int(output) }, { message_id: id });
    const report = await reportOn(at('m1', 1), at('m2', 20), at('m1', 159), at('m1', 150));
    expect(amountsOf(report)).toEqual({
      'x.example.message': { input_tokens: '4', output_tokens: '170' },
    });
    expect(report.evidence?.[0]?.records).toBe(4);
  });

  it('of a span counts where no span below it states the same, in whatever order they stand', async () => {
    const span = (id: string, parent: string | undefined, amounts: object) =>
      stated('span', amounts, { trace_id: 't', span_id: id, ...(parent && { parent_span_id: parent }) });
    const spans = [
      span('root', undefined, { input_tokens: int(30), output_tokens: int(7) }),
      span('between', 'root', {}),
      span('a', 'between', { input_tokens: int(10) }),
      span('b', 'between', { input_tokens: int(20) }),
      span('below-b', 'b', { input_tokens: int(20) }),
    ];
    for (const order of [spans, spans.toReversed()]) {
      expect(amountsOf(await reportOn(...order))).toEqual({
        'x.example.span': { input_tokens: '30', output_tokens: '7' },
      });
    }
    const [first, second] = [span('x', 'y', { n: int(1) }), span('y', 'x', { n: int(1) })];
    expect((await reportOn(first, second)).evidence).toHaveLength(1);
  });

  it('is of the records that are selected', async () => {
    const other = stated('spend', { usd: int(5) }, { principal_id: 'agent:other' });
    const bytes = unsigned(stated('spend', { usd: int(1) }), other);
    const report = await reportActivity(bytes, { selection: { principal: 'agent:other' } });
    expect(amountsOf(report)).toEqual({ 'x.example.spend': { usd: '5' } });
  });

  it('is a quantity that is not negative, and nothing else', async () => {
    const report = await reportOn(
      stated('odd', { a: '7', b: 7, c: int(-1), d: { t: 'rat', n: '2', d: '4' }, e: null, f: int(1) }),
      stated('odd', { ['__proto__']: int(2) }),
      event('x.example.list', { amounts: [int(1)] }),
      event('x.example.none', { amounts: {} }),
    );
    expect(amountsOf(report)).toMatchObject({ 'x.example.odd': { f: '1' } });
    expect(report.evidence).toHaveLength(1);
  });

  it('is bounded, and what is left out is counted', async () => {
    const many = Array.from({ length: MAX_EVIDENCE_TYPES + 2 }, (_, n) => stated(`t${n}`, { usd: int(1) }));
    const wide = stated(
      't0',
      Object.fromEntries(Array.from({ length: MAX_EVIDENCE_NAMES + 3 }, (_, n) => [`n${n}`, int(1)])),
    );
    const report = await reportOn(...many, wide);
    expect(report.evidence).toHaveLength(MAX_EVIDENCE_TYPES);
    const first = report.evidence?.find(({ event_type: type }) => type === 'x.example.t0');
    expect([first?.amounts.length, first?.left_out]).toEqual([MAX_EVIDENCE_NAMES, 4]);
    expect(report.limits.map(({ code }) => code)).toContain('EVIDENCE_LEFT_OUT');
  });
});
