/** The page's sums are those of `northroot report`. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Workshop } from '../cli/runner.js';
import { FIXTURES } from '../fixtures/cases.js';
import type { ActivityReport } from '../../src/format/schema/generated/types.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { meters } from '../../src/base/value/meter.js';
import { buildEvent } from '../../src/format/event/build.js';
import { makeAction, makeGrant, NOON, number } from '../bounds/support.js';
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

it('calls without approval, and under a withdrawn grant, are counted though not every finding is listed', async () => {
  const bounds = { allowed_tools: ['*'], meter_caps: meters({ usd: 1n }) };
  const approvals = [{ tools: ['*'], approvers: ['human:*'] }];
  const grant = makeGrant({}, undefined, {
    authorization: { kind: 'grant', bounds: { ...bounds, approvals } },
  });
  const revocation = buildEvent({
    event_type: 'revocation',
    occurred_at: NOON,
    principal_id: 'agent:a1',
    grant_event_id: grant.event_id,
    effect: 'revoke',
    in_flight: 'stop',
    reason: 'ON_CALL',
  });
  const actions = Array.from({ length: 1_100 }, (_, n) => makeAction(grant, {}, number(n)));
  const events = [grant, ...actions.slice(0, 600), revocation, ...actions.slice(600)];
  const lines = events.map((event) => `${canonicalText(event)}\n`).join('');
  const { report, oversight } = (await openOnPage(Buffer.from(lines))).overview;
  expect([report.findings.length, report.findings_total]).toEqual([1_000, 1_600]);
  expect([oversight.unapproved, oversight.defied]).toEqual([1_100, 500]);
});
