/** A state that is stepped over a block of lines at a time is what `verifyLine` makes of them, line by line. */

import { deserialize } from 'node:v8';
import { expect, test, vi } from 'vitest';
import type { RawLine } from '../../src/format/record/line-splitter.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { BlockSteps } from '../../src/fast/blocks/block-steps.js';
import { saveVerification } from '../../src/log/cache/saved-state.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import type { EventVerdict } from '../../src/rules/verify/line-result.js';
import { FastStep } from '../../src/fast/fast-step.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { linesOf, SEGMENT } from '../cache/support.js';
import { makeSigner } from '../docs/ledger-kit.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { times } from '../slow.js';
import { fixtureOrigins, makeOrigin, mutateLedger } from './mutation-kit.js';
import { ledgerNearBounds } from './near-bounds.js';

const SEED = Number(process.env['SEED'] ?? 20_261_210);
const COUNT = Number(process.env['COUNT'] ?? times(20, 10_000));

type Assumed = VerifyState['assumedSignatures'];
interface Sizes {
  readonly blockBytes: number;
  readonly minLines: number;
}

/** The verdict of each line, and the state at the end. */
async function outcomeOf(
  lines: readonly RawLine[],
  trust: TrustPolicy | undefined,
  assumed: Assumed,
  sizes?: Sizes,
): Promise<unknown> {
  const state = startVerification(trust, defaultBackend);
  state.assumedSignatures = assumed;
  const verdicts: EventVerdict[] = [];
  if (sizes === undefined) {
    for (const line of lines) verdicts.push(verifyLine(state, line, SEGMENT).verdict);
  } else {
    const steps = new BlockSteps(
      {
        state,
        step: (line, segment, examined, known) => {
          verdicts.push(verifyLine(state, line, segment, examined, known).verdict);
        },
        afterFast: (_line, _examined, { verdict }) => {
          verdicts.push(verdict);
        },
      },
      sizes,
    );
    for (const line of lines) {
      const given = Uint8Array.from(line.bytes);
      await steps.apply({ ...line, bytes: given }, SEGMENT);
      // Whoever reads them reads the next lines into the same room.
      given.fill(0);
    }
    await steps.flush();
  }
  const saved = saveVerification({ state, findings: [] });
  return { verdicts, state: deserialize(saved.subarray(saved.indexOf(0x0a) + 1)) as unknown };
}

test('ledgers with anything changed', { timeout: 3_600_000 }, async () => {
  const random = makeRandom(SEED);
  const below = (end: number): number => Math.floor(random() * end);
  const origins = [...fixtureOrigins(16_000), ...Array.from({ length: 20 }, () => makeOrigin(random))];
  for (let n = 0; n < COUNT; n += 1) {
    const origin = origins[below(origins.length)];
    const lines = linesOf(mutateLedger(origin, origins, random));
    const { trust } = origin.options();
    const sizes = { blockBytes: 1 + below(random() < 0.5 ? 3_000 : 60_000), minLines: 1 + below(10) };
    for (const assumed of ['none', 'ordinary'] as const) {
      const expected = await outcomeOf(lines, trust, assumed);
      expect(await outcomeOf(lines, trust, assumed, sizes), `ledger ${n} of seed ${SEED}`).toEqual(expected);
    }
  }
});

test('ledgers that use up what their grants allow', async () => {
  const random = makeRandom(SEED);
  const signer = makeSigner();
  const taken = vi.spyOn(FastStep.prototype, 'tryApply');
  for (let n = 0; n < times(5, 400); n += 1) {
    const lines = linesOf(ledgerNearBounds(random, n % 2 === 0 ? signer : undefined, 120));
    const sizes = { blockBytes: 20_000, minLines: 1 };
    const assumed = n % 4 < 2 ? 'none' : 'ordinary';
    const expected = await outcomeOf(lines, undefined, assumed);
    expect(await outcomeOf(lines, undefined, assumed, sizes), `ledger ${n}`).toEqual(expected);
  }
  const usual = taken.mock.results.filter(({ value }) => value === true).length;
  vi.restoreAllMocks();
  expect(usual).toBeGreaterThan(taken.mock.results.length / 5);
});

test('a block of thousands of lines that are no records', async () => {
  const records = ledgerNearBounds(makeRandom(SEED), makeSigner(), 20).toString().trimEnd().split('\n');
  const others = Array.from({ length: 3_000 }, (_, n) => (n % 2 === 0 ? '{}' : '[1]'));
  const text = [records[0], ...others, ...records.slice(1)].join('\n');
  const lines = linesOf(Buffer.from(`${text}\n`));
  const expected = await outcomeOf(lines, undefined, 'none');
  const sizes = { blockBytes: 1_000_000, minLines: 1 };
  expect(await outcomeOf(lines, undefined, 'none', sizes)).toEqual(expected);
});
