/** The quick step over sound usual records leaves the state that `verifyLine` leaves, and is what most lines are stepped over by. */

import { deserialize } from 'node:v8';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bytesSource } from '../../src/fs/source.js';
import { useQuickPath } from '../../src/ledger/quick-line.js';
import { runVerification, type VerifyOptions } from '../../src/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/verify/saved-state.js';
import { UsualStep } from '../../src/verify/usual-step.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
const OPTIONS: VerifyOptions = { backend, now: '2026-11-22T00:00:00Z', threads: 1 };

afterEach(() => {
  useQuickPath(true);
  vi.restoreAllMocks();
});

/** All that a verification of the bytes knows at the end. */
async function stateOf(bytes: Uint8Array, isQuick: boolean, options: VerifyOptions = {}): Promise<unknown> {
  useQuickPath(isQuick);
  const { state, kept } = await runVerification(bytesSource(bytes, 'ledger'), { ...OPTIONS, ...options });
  const saved = saveVerification({ state, findings: kept });
  return deserialize(saved.subarray(saved.indexOf(0x0a) + 1));
}

const CHOSEN = FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length < 3_000_000);

test.each(CHOSEN)('$ledger $trust $witness_policy $checkpoints', async (fixture) => {
  const bytes = fixtureBytes(fixture.ledger);
  const options = { ...optionsOf(fixture), now: fixture.now ?? '2026-11-22T00:00:00Z' };
  expect(await stateOf(bytes, true, options)).toEqual(await stateOf(bytes, false, options));
});

describe('a ledger of a thousand records', () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');

  test('is stepped over by it, but for what is not usual', async () => {
    const take = vi.spyOn(UsualStep.prototype, 'take');
    await stateOf(bytes, true);
    const taken = take.mock.results.filter(({ value }) => value === true).length;
    expect(taken).toBeGreaterThan(0.9 * linesOf(bytes).length);
  });

  test('is left in the same state wherever it ends, and is gone on from', async () => {
    const lines = linesOf(bytes);
    for (const count of [2, 3, 7, 50, 333, 700]) {
      const begin = Buffer.concat(lines.slice(0, count).flatMap((line) => [line, Buffer.from('\n')]));
      const expected = await stateOf(begin, false);
      expect(await stateOf(begin, true)).toEqual(expected);
      const { state, kept } = await runVerification(bytesSource(begin, 'ledger'), OPTIONS);
      const saved = saveVerification({ state, findings: kept });
      const goOn = (isQuick: boolean): Promise<unknown> =>
        stateOf(bytes, isQuick, { from: restoreVerification(saved, backend) });
      expect(await goOn(true)).toEqual(await goOn(false));
    }
  });

  test('whoever is told of each record is told the same, and nothing is stepped over', async () => {
    const take = vi.spyOn(UsualStep.prototype, 'take');
    let told = 0;
    const onRecord = (): undefined => {
      told += 1;
    };
    await stateOf(bytes, true, { onRecord });
    expect(told).toBe(linesOf(bytes).length);
    expect(take).not.toHaveBeenCalled();
  });
});
