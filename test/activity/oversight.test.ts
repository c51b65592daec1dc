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
  expect(text).toMatch(/What was revoked\n[^]*1 revoked, 1 suspended, 1 resumed\./);
});

test('a revocation whose record is invalid counts for nothing', async () => {
  const broken = await reportActivity(
    bytesSource(fixtureBytes('broken/key-not-for-role-resume.jsonl'), 'b.jsonl'),
  );
  expect(broken.totals.revocations.refused).toBe(1);
  expect(broken.revocations.filter(({ counted }) => !counted)).toHaveLength(1);
});
