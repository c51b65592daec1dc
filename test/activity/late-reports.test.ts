/** The report on agents says how many calls were reported after they were settled as unknown. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { AGENT, filePlace } from '../agent/support.js';
import { bytesSource } from '../bytes-source.js';
import { openGate } from '../gate/support.js';

it('counts each call once, by its own principal, and none that nobody reported', async () => {
  const place = filePlace();
  const { gate } = await openGate(place);
  for (const ref of ['c1', 'c2', 'c3']) {
    await gate.decide({ ref, tool: 'fs.read', params: { ref }, reserve: { usd: '0.1' } });
    await gate.release(ref);
  }
  const report = async () =>
    reportActivity(bytesSource(readFileSync(place.path), 'ledger.jsonl'), { by: 'tool' });
  expect((await report()).totals.executions).not.toHaveProperty('reported_late');
  const [lost] = place.events().filter(({ event_type: type }) => type === 'execution') as unknown as [
    Record<string, object>,
  ];
  const forged = { event_type: 'x.northroot.late_report', auth_event_id: lost['auth_event_id'] };
  const of = { prev_event_id: lost['event_id'], outcome: 'success' };
  await gate.ledger.append({ event: { ...forged, ...of, principal_id: 'agent:other' } });
  await gate.settle('c1', { outcome: 'success', used: { usd: '0.3' } });
  await gate.settle('c2', { outcome: 'failure', used: { usd: '0.1' } });
  await gate.ledger.append({ event: { ...forged, ...of, principal_id: AGENT, again: true } });
  await gate.close();
  const told = await report();
  expect(told.verdict).toBe('ok');
  expect(told.totals.executions).toMatchObject({ unknown: 3, reported_late: 2 });
  expect(told.groups?.map(({ totals }) => totals.executions.reported_late)).toContain(2);
  expect(told.adjustments).toMatchObject([
    { reason: 'LATE_REPORT', amounts: [{ unit: 'usd', amount: '0.2' }] },
  ]);
  expect(renderActivity(told)).toMatch(/2\s+of\s+them\s+reported\s+later/);
});
