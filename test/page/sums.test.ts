/** The page's sums are those of `northroot report`. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Workshop } from '../cli/runner.js';
import { FIXTURES } from '../fixtures/cases.js';
import type { Overview } from '../../src/out/page/model/protocol.js';
import type { ActivityReport, ActivityMeter } from '../../src/format/schema/generated/types.js';
import { makeDemo } from './demo.js';
import { openOnPage } from './support.js';

const shop = new Workshop();
const LEDGERS = [
  'ledgers/agent-run.jsonl',
  'ledgers/quantities.jsonl',
  'broken/meter-cap-exceeded.jsonl',
  'broken/adjustment-exceeded.jsonl',
  'broken/execution-under-deny.jsonl',
  'broken/event-duplicate.jsonl',
  'broken/signature-missing-stripped.jsonl',
];

/** Of each unit the sums, without the commas. */
function fromPage(units: Overview['spent']): Record<string, string[]> {
  const plain = (text = '0'): string => text.replaceAll(',', '');
  return Object.fromEntries(
    units.map(({ unit, total, used, debited, credited, invalid }) => [
      unit,
      [total, used, debited, credited, invalid].map((text) => plain(text)),
    ]),
  );
}

function fromReport(meters: readonly ActivityMeter[]): Record<string, string[]> {
  return Object.fromEntries(
    meters
      .map(({ unit, spent, used, debited, credited, in_invalid: invalid = '0' }) => [
        unit,
        [spent, used, debited, credited, invalid],
      ])
      .filter(([, sums]) => (sums as string[]).some((sum) => sum !== '0')),
  ) as Record<string, string[]>;
}

describe('the sums on the page', () => {
  it.each(['the demo', ...LEDGERS])('are those of `northroot report`: %s', async (name) => {
    const bytes = name === 'the demo' ? makeDemo().bytes : readFileSync(`${FIXTURES}${name}`);
    const path = shop.write('ledger.jsonl', bytes);
    const { stdout } = shop.run(['report', path, '--by', 'principal', '--format', 'json']);
    const report = JSON.parse(stdout) as ActivityReport;
    const { spent, spenders, refusedActions, refusedGrants, blocked } = (await openOnPage(bytes)).overview;
    expect(fromPage(spent)).toEqual(fromReport(report.totals.meters));
    expect(report.totals.records).toBeGreaterThan(0);
    for (const { key, totals } of report.groups ?? []) {
      const spender = spenders.find(({ principal }) => principal === key);
      const { success, failure, unknown } = totals.executions;
      expect(spender?.executions ?? 0).toBe(success + failure + unknown);
      expect(fromPage(spender?.units ?? [])).toEqual(fromReport(totals.meters));
    }
    expect([refusedActions, refusedGrants, blocked]).toEqual([
      report.totals.actions.denied,
      report.totals.grants.denied,
      report.totals.executions.blocked,
    ]);
  });
});
