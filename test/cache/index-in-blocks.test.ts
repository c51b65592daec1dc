/** An index that is made a block of lines at a time keeps, entry for entry, what one keeps that is made line by line. */

import { expect, test, vi } from 'vitest';
import { BlockSteps } from '../../src/fast/blocks/block-steps.js';
import { MemoryEntries } from './memory-entries.js';
import type { IndexedState } from '../../src/log/cache/indexed-state.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { FastStep } from '../../src/fast/fast-step.js';
import { event, genesis, keyOf, ledger, makeSigner, note, type Item } from '../docs/ledger-kit.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { sample, times } from '../slow.js';
import { fixtureOrigins, makeOrigin, mutateLedger } from '../verify/mutation-kit.js';
import { ledgerNearBounds } from '../verify/near-bounds.js';
import { ledgerOf } from '../verify/support.js';
import { linesOf, openIndex, SEGMENT } from './support.js';

const SEED = Number(process.env['SEED'] ?? 20_261_130);
const COUNT = Number(process.env['COUNT'] ?? times(20, 10_000));

async function entriesOf(
  bytes: Uint8Array,
  trust: TrustPolicy | undefined,
  savedAfter: number,
  blockBytes: number | undefined,
): Promise<unknown> {
  const store = new MemoryEntries();
  let view = await openIndex(store, trust);
  const begin = (of: IndexedState): BlockSteps | undefined =>
    blockBytes === undefined ? undefined : new BlockSteps(of, { blockBytes, minLines: 1 });
  let steps = begin(view);
  for (const [n, line] of linesOf(bytes).entries()) {
    if (steps === undefined) view.step(line, SEGMENT);
    else await steps.apply(line, SEGMENT);
    if ((n + 1) % savedAfter > 0) continue;
    await steps?.flush();
    await store.write(view.takeChanges());
    view.trim(0);
    if (n % 2 === 0) continue;
    view = await openIndex(store, trust);
    steps = begin(view);
  }
  await steps?.flush();
  await store.write(view.takeChanges());
  const entries: unknown[] = [];
  for await (const entry of store.list({ prefix: '' })) entries.push(entry);
  return entries;
}

test.each(
  sample(
    FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length > 0),
    100,
  ).map((fixture) => [fixture.ledger, fixture] as const),
)('of the fixture %s', async (_name, fixture) => {
  const bytes = fixtureBytes(fixture.ledger);
  const { trust } = optionsOf(fixture);
  const expected = await entriesOf(bytes, trust, Infinity, undefined);
  for (const size of [1, 4_000, 1_000_000])
    expect(await entriesOf(bytes, trust, Infinity, size)).toEqual(expected);
});

test('of a ledger whose key is revoked in the midst of a block', async () => {
  const [admin, worker] = [makeSigner(), makeSigner()];
  const adminKey = keyOf(admin, { roles: ['event', 'admin'] });
  const workerKey = keyOf(worker);
  const notes = (from: number): Item[] =>
    Array.from({ length: 6 }, (_, n) => ({ event: note(from + n), signers: [worker] }));
  const bytes = ledger(
    { event: genesis([adminKey, workerKey]), signers: [admin] },
    ...notes(0),
    { event: event('key', { action: 'revoke', key: workerKey }), signers: [admin] },
    ...notes(6),
  );
  const expected = await entriesOf(bytes, undefined, Infinity, undefined);
  expect(JSON.stringify(expected)).toContain('KEY_NOT_VALID_HERE');
  expect(await entriesOf(bytes, undefined, Infinity, 1_000_000)).toEqual(expected);
});

test('of ledgers with anything changed', { timeout: 3_600_000 }, async () => {
  const random = makeRandom(SEED);
  const below = (end: number): number => Math.floor(random() * end);
  const origins = [...fixtureOrigins(16_000), ...Array.from({ length: 20 }, () => makeOrigin(random))];
  for (let n = 0; n < COUNT; n += 1) {
    const origin = origins[below(origins.length)];
    const bytes = n % 3 === 0 ? ledgerOf(origin.lines) : mutateLedger(origin, origins, random);
    const { trust } = origin.options();
    const savedAfter = 1 + below(40);
    const expected = await entriesOf(bytes, trust, savedAfter, undefined);
    const size = 1 + below(random() < 0.5 ? 3_000 : 60_000);
    expect(await entriesOf(bytes, trust, savedAfter, size), `ledger ${n} of seed ${SEED}`).toEqual(expected);
  }
});

test('of ledgers that use up what their grants allow', async () => {
  const random = makeRandom(SEED);
  const taken = vi.spyOn(FastStep.prototype, 'tryApply');
  for (let n = 0; n < times(5, 400); n += 1) {
    const bytes = ledgerNearBounds(random, undefined, 120);
    const savedAfter = 1 + Math.floor(random() * 60);
    const expected = await entriesOf(bytes, undefined, savedAfter, undefined);
    expect(await entriesOf(bytes, undefined, savedAfter, 20_000), `ledger ${n}`).toEqual(expected);
  }
  const usual = taken.mock.results.filter(({ value }) => value === true).length;
  vi.restoreAllMocks();
  expect(usual).toBeGreaterThan(taken.mock.results.length / 10);
});
