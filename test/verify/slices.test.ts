/** Slices with the ledger that sets them aside (SPEC §8 rule 17): how that is given, and what the report says where it shows nothing. */

import { describe, expect, test } from 'vitest';
import { buildReport, runVerification, verifyLedger, verifyParent } from '../../src/api/index.js';
import { checkEvent } from '../../src/format/schema/check.js';
import { bytesSource } from '../bytes-source.js';
import { grant } from '../docs/grant-kit.js';
import { DIGEST } from '../docs/ledger-kit.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { inChunks } from './support.js';

const CHILD = 'ledgers/slices.jsonl';
const PARENT = 'ledgers/slices-parent.jsonl';
const child = fixtureBytes(CHILD);
const parent = fixtureBytes(PARENT);

const codesOf = (list: readonly { readonly code: string }[]): string[] => list.map(({ code }) => code);

describe('a ledger that spends a slice', () => {
  test('says that it was not compared with its parent, where that is another or none', async () => {
    for (const parents of [undefined, [], [child]]) {
      const report = await verifyLedger(child, { parents });
      expect([report.verdict, codesOf(report.not_checked).includes('SLICES')]).toEqual(['ok', true]);
    }
    const both = await verifyLedger(child, { parents: [parent] });
    expect([both.verdict, codesOf(both.not_checked).includes('SLICES')]).toEqual(['ok', false]);
    // What was used of the slices that it settled is not known there.
    expect(codesOf((await verifyLedger(parent)).not_checked)).toContain('SLICES');
  });

  test('is held against a parent that was verified once, in whatever chunks', async () => {
    const { result, parent: known } = await verifyParent(bytesSource(parent, PARENT));
    expect(buildReport(result).verdict).toBe('ok');
    for (const name of ['slice-exceeded', 'slice-mismatch-in-use', 'slice-mismatch-used-afterwards']) {
      const bytes = fixtureBytes(`broken/${name}.jsonl`);
      const whole = await verifyLedger(bytes, { parents: [parent] });
      expect(whole.verdict).toBe('violation');
      expect(await verifyLedger(inChunks(bytes, 7), { parents: [known] })).toEqual(whole);
    }
  });

  test('shows nothing of a parent that is invalid, or that nothing seals', async () => {
    const lines = parent.toString().split('\n');
    const cut = lines.findIndex((line) => line.includes('"checkpoint"') && !line.includes('"genesis"'));
    const unsealed = Buffer.from(`${lines.slice(0, cut).join('\n')}\n`);
    const open = await verifyLedger(fixtureBytes('ledgers/slices-unsettled.jsonl'), { parents: [unsealed] });
    expect([open.verdict, codesOf(open.not_checked).includes('SLICES')]).toEqual(['ok', true]);
    const torn = parent.subarray(0, -1);
    const report = await verifyLedger(child, { parents: [torn] });
    expect(codesOf(report.not_checked)).toContain('SLICES');
  });

  test('that was cut to before its grant of a slice that was settled says that this was not checked', async () => {
    const lines = child.toString().split('\n');
    const granted = lines.findIndex((line) => line.includes('"slice":{'));
    const cut = Buffer.from(`${lines.slice(0, granted).join('\n')}\n`);
    for (const [parents, isListed] of [
      [[parent], true],
      [[], false],
    ] as const) {
      const report = await verifyLedger(cut, { parents });
      expect([report.verdict, codesOf(report.not_checked).includes('SLICES')]).toEqual(['ok', isListed]);
    }
  });

  test('takes each parent once, and no saved state', async () => {
    await expect(verifyLedger(child, { parents: [parent, parent] })).rejects.toMatchObject({
      code: 'PARENT_REPEATED',
    });
    const { state, kept } = await runVerification(bytesSource(child, CHILD));
    const from = { state, findings: kept };
    const again = bytesSource(child, CHILD);
    await expect(runVerification(again, { from, parents: [] })).rejects.toThrow(RangeError);
  });
});

test('a delegated grant names no slice', () => {
  const event = grant({}, grant()) as unknown as { readonly authorization: object };
  const slice = { ledger_id: DIGEST, event_id: DIGEST };
  const faults = checkEvent({ ...event, authorization: { ...event.authorization, slice } });
  expect(faults).toMatchObject([{ code: 'SCHEMA', pointer: '/authorization/slice' }]);
});
