/** What the activity report says of approvals and revocations. */

import { expect, test } from 'vitest';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { bytesSource } from '../bytes-source.js';
import { fixtureBytes } from '../fixtures/cases.js';

const report = await reportActivity(
  bytesSource(fixtureBytes('ledgers/approvals-and-revocations.jsonl'), 'ledger.jsonl'),
);

test('approvals and revocations are counted', () => {
  expect(report.totals.approvals).toEqual({ approved: 2, rejected: 0, used: 2 });
  expect(report.totals.revocations).toEqual({ revoked: 1, suspended: 1, resumed: 1, refused: 0 });
});

test('each says who, of which grant, and by which action it was used', () => {
  expect(report.approvals[1]).toMatchObject({
    seq: 4,
    principal_id: 'human:ada',
    decision: 'approve',
    tool_name: 'fs.read',
    grant_seq: 1,
    used_by_seq: 8,
  });
  expect(report.approvals.every(({ used_by: action }) => action?.startsWith('sha-256:'))).toBe(true);
  expect(report.revocations[2]).toMatchObject({
    seq: 10,
    effect: 'revoke',
    in_flight: 'stop',
    counted: true,
  });
  expect(report.limits.map(({ code }) => code)).not.toContain('LIST_CUT');
});

test('the text has a section of each', () => {
  const text = renderActivity(report);
  expect(text).toMatch(/Who approved what\n[^]*2 approvals, of which 2 used; 0 rejected\./);
  expect(text).toMatch(/ human:ada {2}approved .* fs\.read seq 8 /);
  expect(text).toMatch(/What was revoked\n[^]*1 revoked, 1 suspended, 1 resumed\./);
});

test('a revocation whose record is invalid counts for nothing', async () => {
  const broken = await reportActivity(
    bytesSource(fixtureBytes('broken/key-not-for-role-resume.jsonl'), 'b.jsonl'),
  );
  expect(broken.totals.revocations.refused).toBe(1);
  expect(broken.revocations.filter(({ counted }) => !counted)).toHaveLength(1);
});

test('a grant says which calls need approval, above which amount, by whom and by how many', async () => {
  const rulesOf = async (name: string) => {
    const made = await reportActivity(bytesSource(fixtureBytes(`ledgers/${name}.jsonl`), 'l.jsonl'));
    const [, table] = /Which calls need approval:\n([^]*?)\n\n/.exec(renderActivity(made)) ?? [];
    return { rules: made.grants[0]?.approvals, text: table?.replaceAll(/ {2,}/g, '|') };
  };
  const rule = { tools: ['deploy.*'], tools_total: 1, approvers: ['human:*'], count: 1 };
  const above = [{ unit: 'usd', amount: '100' }];
  const limited = await rulesOf('approvals-before-authority');
  expect(limited.rules).toEqual([{ ...rule, above, count: 2 }]);
  expect(limited.text).toContain('|1|deploy.*|above 100 usd|human:*|2|as each says');
  const timed = await rulesOf('approvals-in-time');
  expect(timed.rules).toEqual([{ ...rule, max_age_s: 10 }]);
  expect(timed.text).toContain('|1|deploy.*|always|human:*|1|at most 10 seconds');
  const none = await rulesOf('stated');
  expect(none).toEqual({ rules: undefined, text: undefined });
});
