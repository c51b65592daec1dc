/** Who is told of each record hears the same of it, whether the fast step went over it or `verifyLine`. */

import { afterEach, expect, test, vi } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { FastStep } from '../../src/fast/fast-step.js';
import type { VerifiedRecord } from '../../src/rules/verify/verified-record.js';
import { makeSigner } from '../docs/ledger-kit.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { sample, times } from '../slow.js';
import type { Anchor } from '../../src/rules/verify/anchors.js';
import { fixtureOrigins, makeOrigin, mutateLedger } from './mutation-kit.js';
import { ledgerNearBounds } from './near-bounds.js';
import { anchorAt } from './seal-kit.js';
import { rememberingBackend } from './support.js';

const SEED = Number(process.env['SEED'] ?? 20_261_212);
const SIGNER = makeSigner();
const OPTIONS: VerifyOptions = { backend: rememberingBackend(), now: '2026-11-22T00:00:00Z', threads: 1 };

afterEach(() => {
  useFastPath(true);
  vi.restoreAllMocks();
});

/** What is told of a record, with what of the state a listener may ask. */
function formOf({ bytes, examined, state, ...said }: VerifiedRecord): unknown {
  const { chain, tipEventId, tree, links, records, signatures, countsByVerdict, signers, seals } = state;
  const texts = {
    bytes: bytes && Buffer.from(bytes).toString('latin1'),
    event: examined?.json(),
    seq: examined?.seq,
    wellFormed: examined?.wellFormed,
  };
  const accounts = [...links.grants.values()].map((grant) => [...grant.accounts]);
  const known = {
    chain,
    tipEventId,
    tree,
    records,
    signatures,
    countsByVerdict,
    latest: links.latest,
    open: links.actions.countOpen(),
  };
  return structuredClone({
    ...said,
    ...texts,
    known,
    accounts,
    signers: [...signers.values()],
    interval: seals.intervalStart,
  });
}

async function toldOf(
  bytes: Uint8Array,
  isFast: boolean,
  options: VerifyOptions,
  later = false,
): Promise<unknown[]> {
  useFastPath(isFast);
  const told: unknown[] = [];
  await runVerification(bytesSource(bytes, 'ledger'), {
    ...OPTIONS,
    ...options,
    onRecord: (record) => {
      told.push(formOf(record));
      return later ? new Promise((resolve) => setImmediate(resolve)) : undefined;
    },
  });
  return told;
}

test.each(
  sample(
    FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length < 300_000),
    120,
  ),
)('$ledger $trust $witness_policy $checkpoints', async (fixture) => {
  const bytes = fixtureBytes(fixture.ledger);
  // Sources are read once.
  const options = (): VerifyOptions => ({
    ...optionsOf(fixture),
    now: fixture.now ?? '2026-11-22T00:00:00Z',
  });
  expect(await toldOf(bytes, true, options())).toEqual(await toldOf(bytes, false, options()));
});

test('ledgers with anything changed', { timeout: 1_800_000 }, async () => {
  const random = makeRandom(SEED);
  const origins = [...fixtureOrigins(16_000), ...Array.from({ length: 10 }, () => makeOrigin(random))];
  for (let n = 0; n < Number(process.env['COUNT'] ?? times(8, 4_000)); n += 1) {
    const origin = origins[Math.floor(random() * origins.length)];
    const bytes = mutateLedger(origin, origins, random);
    const expected = await toldOf(bytes, false, origin.options());
    expect(await toldOf(bytes, true, origin.options()), `ledger ${n} of seed ${SEED}`).toEqual(expected);
  }
});

test('ledgers that use up what their grants allow', async () => {
  const random = makeRandom(SEED);
  const taken = vi.spyOn(FastStep.prototype, 'tryApply');
  for (let n = 0; n < times(4, 400); n += 1) {
    const bytes = ledgerNearBounds(random, n % 2 === 0 ? SIGNER : undefined, 80);
    const checkpoints: Anchor[] = n % 3 === 0 ? [anchorAt(bytes, SIGNER, 40)] : [];
    const expected = await toldOf(bytes, false, { checkpoints });
    expect(await toldOf(bytes, true, { checkpoints }, n % 5 === 0), `ledger ${n}`).toEqual(expected);
  }
  const usual = taken.mock.results.filter(({ value }) => value === true).length;
  expect(usual).toBeGreaterThan(taken.mock.results.length / 5);
});
