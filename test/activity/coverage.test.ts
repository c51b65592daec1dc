/** The report on agents says by which ways actions were decided. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { filePlace } from '../agent/support.js';
import { bytesSource } from '../bytes-source.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { openGate, reopen } from '../gate/support.js';

it('counts the decisions of each way, and those in shadow', async () => {
  const place = filePlace();
  const { gate } = await openGate(place, { meterCaps: { calls: 2 } }, { coverage: 'proxy' });
  const call = { tool: 'fs.read', params: {} };
  await gate.decide({ ...call, ref: 'c1' });
  await gate.decide({ ...call, ref: 'c2', coverage: 'hook' });
  await gate.decide({ ...call, ref: 'c3', coverage: 'hook' });
  await gate.close();
  const shadow = await reopen(place, { shadow: true });
  await shadow.decide({ ...call, ref: 'c4' });
  await shadow.close();
  const report = await reportActivity(bytesSource(readFileSync(place.path), 'ledger.jsonl'));
  expect(report.coverage).toEqual({ hook: 2, proxy: 1, sdk: 1, kernel: 0, unstated: 0, shadow: 1 });
  expect(renderActivity(report)).toMatch(/By which way actions were decided:\n[^]*hooks[^]*in shadow/);
});

it('says nothing where no decision does', async () => {
  const source = bytesSource(fixtureBytes('ledgers/approvals-and-revocations.jsonl'), 'ledger.jsonl');
  const report = await reportActivity(source);
  expect(report).not.toHaveProperty('coverage');
  expect(renderActivity(report)).not.toContain('By which way');
});
