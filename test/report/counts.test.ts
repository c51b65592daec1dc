/** Counts by verdict say what the findings say: a record with a finding of class invalid is not counted as ok. */

import { expect, test } from 'vitest';
import type { Report, TrustPolicy } from '../../src/api/index.js';
import { checkpoint, genesis, keyOf, ledger, makeSigner, note, verify } from '../docs/ledger-kit.js';

const a = makeSigner();
const key = keyOf(a, { roles: ['event', 'checkpoint'] });
const bytes = ledger(
  { event: genesis([key]), signers: [a] },
  { event: checkpoint([a]), signers: [a] },
  { event: note(1), signers: [a] },
);

async function under(require: TrustPolicy['require']): Promise<Report> {
  const trust: TrustPolicy = {
    trust_version: '1',
    keys: [key],
    ...(require === undefined ? {} : { require }),
  };
  return verify(bytes, { trust, now: '2026-02-01T00:00:00Z' });
}

test('an error of the end at a checkpoint makes that checkpoint invalid, once', async () => {
  const tail = await under({ max_unsealed_records: 0 });
  expect(tail.findings).toMatchObject([{ code: 'TAIL_UNSEALED', class: 'invalid', at: { line: 2 } }]);
  expect(tail.counts.by_verdict).toEqual({ ok: 2, denied: 0, violation: 0, invalid: 1 });
  const both = await under({ max_unsealed_records: 0, checkpoint_max_age_seconds: 1 });
  expect(both.findings.map(({ at }) => at.line)).toEqual([2, 2]);
  expect(both.counts.by_verdict).toMatchObject({ ok: 2, invalid: 1 });
});

test('an info does not', async () => {
  const report = await under({});
  expect(report.findings).toMatchObject([{ code: 'TAIL_UNSEALED', severity: 'info', at: { line: 2 } }]);
  expect(report.counts.by_verdict).toMatchObject({ ok: 3, invalid: 0 });
});
