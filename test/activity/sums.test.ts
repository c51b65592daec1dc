/** What the activity report adds up, against the accounts of verification and against a naive addition over the JSON. */

import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { ACTIVITY_GROUPINGS } from '../../src/out/activity/groups.js';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import { CODE_PAGES, type FindingCode } from '../../src/format/finding/catalog.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import type { JsonValue } from '../../src/base/json/value.js';
import type { ActivityMeter, ActivityReport } from '../../src/format/schema/generated/types.js';
import { formatExactly } from '../../src/base/value/format-rational.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import {
  reduceRational,
  ZERO,
  addRationals,
  subtractRationals,
  type Rational,
} from '../../src/base/value/rational.js';
import { judgeNaively, valueOf, type Entry } from '../bounds/naive-checker.js';
import { makeSequence } from '../bounds/sequences.js';
import { FILE_CASES, FIXTURES, optionsOf, type LedgerCase } from '../fixtures/cases.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { validatorOf } from '../schema/ajv.js';
import { times } from '../slow.js';

/** The schema as anyone else would use it. */
const isReport = validatorOf('activity-report');

function sumOf(text: string): Rational {
  const [n = '', d = '1'] = text.split('/');
  const [whole = '', fraction = ''] = n.split('.');
  return reduceRational(BigInt(whole + fraction), BigInt(d) * 10n ** BigInt(fraction.length));
}

/** What the accounts of a grant must say by the report's sums. */
function accounted(meter: ActivityMeter | undefined): string[] {
  if (meter === undefined) return ['0', '0'];
  const { spent, unauthorized = '0', reserved } = meter;
  return [formatExactly(subtractRationals(sumOf(spent), sumOf(unauthorized))), reserved];
}

/** What each grant has as delegated, with what the report by grant sums beyond its own. */
function compareDelegated({ grants, groups = [] }: ActivityReport): string[][] {
  const net = (meter: ActivityMeter | undefined): Rational =>
    meter === undefined ? ZERO : subtractRationals(sumOf(meter.spent), sumOf(meter.unauthorized ?? '0'));
  return grants.flatMap(({ event_id: id, meters }) =>
    meters.map(({ unit, delegated = '0' }) => {
      const group = groups.find(({ key }) => key === id);
      const of = (list: readonly ActivityMeter[] = []): Rational =>
        net(list.find((meter) => meter.unit === unit));
      const all = group?.with_delegated;
      const wanted = all === undefined ? ZERO : subtractRationals(of(all), of(group?.totals.meters));
      return [delegated, formatExactly(wanted)];
    }),
  );
}

/** Each account of the whole ledger with what the report by grant sums under the same grant. */
function compareAccounts({ grants, groups = [] }: ActivityReport): { said: string[]; summed: string[] }[] {
  const byGrant = new Map(groups.map((group) => [group.key, group.with_delegated ?? group.totals.meters]));
  return grants.flatMap(({ event_id: id, meters }) =>
    meters.map(({ unit, used, reserved }) => ({
      said: [used, reserved],
      summed: accounted(byGrant.get(id)?.find((meter) => meter.unit === unit)),
    })),
  );
}

/** Groups and others must come to the totals. */
function expectWhole(report: ActivityReport): void {
  const parts = [
    ...(report.groups ?? []).map(({ totals }) => totals),
    ...(report.others ? [report.others] : []),
  ];
  for (const { unit, used, spent, reserved } of report.totals.meters) {
    const of = parts.flatMap(({ meters }) => meters.filter((meter) => meter.unit === unit));
    const add = (member: 'used' | 'spent' | 'reserved'): string =>
      formatExactly(of.reduce((sum, meter) => addRationals(sum, sumOf(meter[member])), ZERO));
    expect([add('used'), add('spent'), add('reserved')]).toEqual([used, spent, reserved]);
  }
  expect(parts.reduce((all, { records }) => all + records, 0)).toBe(report.totals.records);
}

describe('every fixture', () => {
  const reports: { readonly fixture: LedgerCase; readonly report: ActivityReport }[] = [];

  beforeAll(async () => {
    // A thousand records show nothing that a few do not.
    for (const fixture of FILE_CASES.filter(({ ledger }) => ledger !== 'ledgers/pipeline-1000.jsonl')) {
      const { predecessor, parents, ...options } = optionsOf(fixture);
      if (predecessor !== undefined || parents !== undefined) continue;
      const report = await reportActivity(`${FIXTURES}${fixture.ledger}`, { ...options, by: 'grant' });
      reports.push({ fixture, report });
    }
  });

  it('has a report that is valid by its schema, with the exit status and the verdict of verify', () => {
    for (const { fixture, report } of reports) {
      expect(isReport(report), JSON.stringify(isReport.errors)).toBe(true);
      const { ledger, verdict, exit_status: status } = fixture;
      expect([ledger, report.verdict, report.exit_status]).toEqual([ledger, verdict, status]);
      expect(report.totals.records).toBe(report.ledger.records);
    }
  });

  it('has, for each grant, the sums that its accounts have', () => {
    const compared = reports.flatMap(({ report }) => compareAccounts(report));
    expect(compared.length).toBeGreaterThan(300);
    expect(compared.map(({ summed }) => summed)).toEqual(compared.map(({ said }) => said));
  });

  it('has, for each grant, what was used under those delegated from it', () => {
    const compared = reports.flatMap(({ report }) => compareDelegated(report));
    expect(compared.filter(([said]) => said !== '0').length).toBeGreaterThan(3);
    for (const [said, summed] of compared) expect(said).toBe(summed);
  });

  it('names every code that makes it invalid or a violation', () => {
    for (const { fixture, report } of reports) {
      const errors = fixture.findings.filter(
        ({ code, severity = 'error' }) =>
          severity === 'error' &&
          CODE_PAGES[code as FindingCode].class !== 'none' &&
          CODE_PAGES[code as FindingCode].severity === 'error',
      );
      const codes = report.problems.map(({ code }) => code);
      expect([fixture.ledger, ...codes]).toEqual(
        expect.arrayContaining([fixture.ledger, ...errors.map(({ code }) => code)]),
      );
    }
  });

  it('does not claim that a ledger extends a checkpoint that it does not, nor of a part of it', async () => {
    const codes = ['TRUNCATED', 'FORKED', 'ORIGIN_MISMATCH'];
    const cases = FILE_CASES.filter(
      (each) => optionsOf(each).checkpoints && each.findings.some(({ code }) => codes.includes(code)),
    );
    expect(cases.length).toBeGreaterThan(2);
    for (const fixture of cases) {
      for (const selection of [{}, { principal: 'agent:*' }]) {
        const report = await reportActivity(`${FIXTURES}${fixture.ledger}`, {
          ...optionsOf(fixture),
          selection,
        });
        expect(report.limits.map(({ code }) => code)).toContain('NOT_EXTENDED');
        expect(renderActivity(report)).not.toContain('the ledger extends the checkpoint');
      }
    }
  });

  it('says of a part that there is a line that nobody can say belongs to it', async () => {
    for (const name of ['line-torn', 'line-blank', 'not-json']) {
      const report = await reportActivity(`${FIXTURES}broken/${name}.jsonl`, { selection: { tool: 'x' } });
      expect([name, ...report.limits.map(({ code }) => code)]).toContain('UNREADABLE');
    }
  });
});

describe('any ledger', () => {
  const toBytes = (entries: readonly Entry[]): Buffer =>
    Buffer.from(entries.map(({ event }) => `${canonicalText(event as unknown as JsonValue)}\n`).join(''));
  const seeds = fc.array(fc.nat(0xffff_ffff), { minLength: 1, maxLength: 30, size: 'max' });

  it('is added up as by hand over its JSON, and as verification accounts for it', async () => {
    let [used, adjusted] = [0, 0];
    await fc.assert(
      fc.asyncProperty(seeds, fc.constantFrom(...ACTIVITY_GROUPINGS), async (list, by) => {
        const entries = makeSequence(list);
        const report = await reportActivity(toBytes(entries), { by });
        expectWhole(report);
        expect(
          Object.fromEntries(
            report.totals.meters
              .filter(({ used: sum }) => sum !== '0')
              .map((meter) => [meter.unit, meter.used]),
          ),
        ).toEqual(addByHand(entries));
        expect(report.totals.open.authorizations).toBe(judgeNaively(entries).open.length);
        used += report.totals.meters.length;
        adjusted += report.totals.adjustments.credits + report.totals.adjustments.debits;
        if (by !== 'grant') return;
        for (const { said, summed } of compareAccounts(report)) expect(summed).toEqual(said);
      }),
      { numRuns: times(50, 1_000) },
    );
    expect(Math.min(used, adjusted)).toBeGreaterThan(15);
  });

  it('is the sum of its parts, cut at any time', async () => {
    const path = `${FIXTURES}ledgers/agent-run.jsonl`;
    const whole = await reportActivity(path);
    for (const at of ['2026-03-02T09:00:30Z', '2026-03-02T09:03:00Z', '2026-03-02T09:20:00.5Z']) {
      const before = await reportActivity(path, { selection: { until: at } });
      const after = await reportActivity(path, { selection: { since: at } });
      expect(before.totals.records + after.totals.records).toBe(whole.totals.records);
      for (const { unit, used: sum } of whole.totals.meters) {
        const of = (report: ActivityReport): Rational =>
          sumOf(report.totals.meters.find((meter) => meter.unit === unit)?.used ?? '0');
        expect(formatExactly(addRationals(of(before), of(after)))).toBe(sum);
      }
    }
  });
});

/** What well-formed executions say that they used, each once, and what counts though nobody stated it. */
function addByHand(entries: readonly Entry[]): Record<string, string> {
  const seen = new Set<string>();
  const sums = new Map<string, Rational>();
  const add = ({ unit, amount }: { readonly unit: string; readonly amount: Quantity }): void => {
    const [n, d] = valueOf(amount);
    sums.set(unit, addRationals(sums.get(unit) ?? ZERO, reduceRational(n, d)));
  };
  for (const { event, malformed } of entries) {
    const isNew = !seen.has(event.event_id.b64);
    seen.add(event.event_id.b64);
    if (malformed || !isNew || event.event_type !== 'execution') continue;
    const { meter_used: meters } = event as unknown as { meter_used: { unit: string; amount: Quantity }[] };
    for (const meter of meters) add(meter);
  }
  for (const meter of judgeNaively(entries).unstated) add(meter);
  return Object.fromEntries(
    [...sums]
      .filter(([, sum]) => sum.n !== 0n)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([unit, sum]) => [unit, formatExactly(sum)]),
  );
}
