/** Bundles of every fixture: what they hold is judged as in the ledger, and never worse. */

import { describe, expect, it } from 'vitest';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { bytesSource } from '../bytes-source.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { rememberingBackend } from '../verify/support.js';
import { bundleOf } from './support.js';

const backend = rememberingBackend();

/** What a bundle itself can be wrong in; none of it is ever found of one that northroot made. */
const OWN = /^(?:BUNDLE_|SELECTION_MISMATCH|PROOF_INVALID|CONTENT_)/;

const cases = sample([...new Map(FILE_CASES.map((each) => [each.ledger, each])).values()], 30);

describe.each(cases.map((each) => [each.ledger, each] as const))('%s', (_, fixture) => {
  it('gives bundles whose records have the findings that they have in the ledger', async () => {
    const { trust, witnessPolicy } = optionsOf(fixture);
    const options = { trust, witnessPolicy, now: '2026-06-01T00:00:00Z' };
    const ledger = fixtureBytes(fixture.ledger);
    const known = new Set<string>();
    const principals = new Set<string>();
    const whole = await runVerification(bytesSource(ledger, 'ledger.jsonl'), {
      ...options,
      backend,
      onRecord: ({ ordinal, findings, examined }) => {
        for (const { code } of findings) known.add(`${ordinal} ${code}`);
        if (examined?.wellFormed === true) principals.add(examined.principalId);
        return undefined;
      },
    });
    if (whole.state.layout !== 'records') return;
    for (const { code, at } of whole.findings) known.add(`${at.line - 1} ${code}`);
    const selections = [{}, ...[...principals].map((principal) => ({ principal }))];
    for (const selection of selections) {
      const { file } = await bundleOf(ledger, { ...options, selection });
      const result = await verifyBundle(file, { ...options, backend, name: 'ledger.jsonl' });
      expect(result.problems.filter(({ code }) => OWN.test(code))).toEqual([]);
      if (result.scope === 'whole') continue;
      // After a gap a ledger's numbers go on from there; in a bundle each is held against its place.
      const strange = result.findings.filter(
        ({ code, at }) => code !== 'SEQ_GAP' && !known.has(`${at.line - 1} ${code}`),
      );
      expect(strange.map(({ at, code }) => `${at.line - 1} ${code}`)).toEqual([]);
      expect(result.not_checked.map(({ code }) => code)).toEqual(
        expect.arrayContaining(['SELECTION', 'BUDGETS', 'SINGLE_USE', 'ABSENCE']),
      );
    }
  });
});
