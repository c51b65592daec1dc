/** A checkpoint that the user holds over some of what a revoked key signed: also where verification is gone on with. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import { buildReport } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { canGoOn, runVerification } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { ledgerOf, linesOf } from './support.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`../../fixtures/${name}`, import.meta.url));
const bytes = fixture('broken/key-not-valid-here-uncovered.jsonl');
const lines = linesOf(bytes);
const checkpoints = [{ name: 'kept', note: fixture('anchors/uncovered-of-2.checkpoint') }];

test('is the same in one pass and resumed, where it was held when the state was saved', async () => {
  const whole = await verifyLedger(bytes, { checkpoints });
  expect(whole.findings[0]).toMatchObject({ code: 'KEY_NOT_VALID_HERE', seq: 2, folded: 1 });
  expect(whole.counts.by_verdict.invalid).toBe(2);
  for (let size = 1; size < lines.length; size += 1) {
    const part = await runVerification(bytesSource(ledgerOf(lines.slice(0, size)), '-'), { checkpoints });
    const saved = restoreVerification(saveVerification({ state: part.state, findings: part.kept }));
    expect(canGoOn(saved, checkpoints)).toBe(true);
    const result = await runVerification(bytesSource(bytes, '-'), { checkpoints, from: saved });
    expect(buildReport(result).findings.map(({ at, ...rest }) => [at.line, rest])).toEqual(
      whole.findings.map(({ at, ...rest }) => [at.line, rest]),
    );
  }
});

test('is not known from a state that was saved without it', async () => {
  const part = await runVerification(bytesSource(ledgerOf(lines.slice(0, 5)), '-'));
  const saved = { state: part.state, findings: part.kept };
  expect(canGoOn(saved, checkpoints)).toBe(false);
  expect(canGoOn(saved, [])).toBe(true);
  const early = await runVerification(bytesSource(ledgerOf(lines.slice(0, 2)), '-'));
  expect(canGoOn({ state: early.state, findings: early.kept }, checkpoints)).toBe(true);
});
