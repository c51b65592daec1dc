/** The page's sums are those of `northroot report`. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Workshop } from '../cli/runner.js';
import { FIXTURES } from '../fixtures/cases.js';
import type { ActivityReport } from '../../src/format/schema/generated/types.js';
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

describe('the sums on the page', () => {
  it.each(['the demo', ...LEDGERS])('are those of `northroot report`: %s', async (name) => {
    const bytes = name === 'the demo' ? makeDemo().bytes : readFileSync(`${FIXTURES}${name}`);
    const path = shop.write('ledger.jsonl', bytes);
    const { stdout } = shop.run(['report', path, '--by', 'principal', '--format', 'json']);
    const report = JSON.parse(stdout) as ActivityReport;
    const { totals, groups, decisions } = (await openOnPage(bytes)).overview.activity;
    expect(report.totals.records).toBeGreaterThan(0);
    expect({ totals, groups, decisions }).toEqual({
      totals: report.totals,
      groups: report.groups,
      decisions: report.decisions,
    });
  });
});
