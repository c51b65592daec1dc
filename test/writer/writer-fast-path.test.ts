/** Records that are made here are stepped over the fast path or by `verifyLine`: what is written, told and kept is the same. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize } from 'node:v8';
import { afterEach, expect, test, vi } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import type { Signer } from '../../src/format/signature/signer.js';
import { saveVerification } from '../../src/log/cache/saved-state.js';
import { FastStep } from '../../src/fast/fast-step.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { meters } from '../../src/base/value/meter.js';
import { authorization, execution, grant, unsigned } from '../docs/grant-kit.js';
import { DIGEST } from '../docs/ledger-kit.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { times } from '../slow.js';
import { ledgerNearBounds } from '../verify/near-bounds.js';
import { soundFileSystem } from './file-systems.js';
import { openUnsigned, readBytes, readRecords, signer, temporaryFolder } from './support.js';

afterEach(() => {
  useFastPath(true);
  vi.restoreAllMocks();
});

interface Way {
  readonly isFast: boolean;
  readonly index: boolean;
}

/** Appends the events of a ledger to its genesis, `most` at a time: the ledger, what was told of each, and the state that is left. */
async function append(
  bytes: Buffer,
  by: Signer | undefined,
  most: number,
  { isFast, index }: Way,
): Promise<{ path: string; written: Buffer; told: unknown; state: unknown }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  writeFileSync(path, bytes);
  const [, ...records] = readRecords(path);
  writeFileSync(path, bytes.subarray(0, bytes.indexOf('\n') + 1));
  if (index) mkdirSync(`${path}.index`);
  useFastPath(isFast);
  const fileSystem = soundFileSystem;
  const ledger = await openUnsigned(path, { index, signer: by, signingThreads: 0, fileSystem });
  const told: unknown[] = [];
  for (let at = 0; at < records.length; at += most) {
    const group = records.slice(at, at + most).map(({ event }) => ledger.append({ event }));
    const code = (error: unknown): unknown => (error instanceof NorthrootError ? error.code : error);
    const answers = await Promise.all(group.map((each) => each.catch(code)));
    // Files are named by their paths, and these differ.
    told.push(JSON.parse(JSON.stringify(answers).replaceAll(path, 'ledger')));
  }
  const state = await ledger.inspect((seen) => {
    if (index) return undefined;
    const saved = saveVerification({ state: seen, findings: [] });
    return deserialize(saved.subarray(saved.indexOf(0x0a) + 1)) as unknown;
  });
  await ledger.close();
  const text = JSON.stringify(state, (_key, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value instanceof Map ? [...value] : value,
  );
  return {
    path,
    written: readBytes(path),
    told,
    state: text && (JSON.parse(text.replaceAll(path, 'ledger')) as unknown),
  };
}

test('in ledgers that come near what their grants allow', { timeout: 1_800_000 }, async () => {
  const random = makeRandom(Number(process.env['SEED'] ?? 20_261_125));
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  let [taken, all] = [0, 0];
  for (let n = 0; n < Number(process.env['COUNT'] ?? times(9, 1_000)); n += 1) {
    const by = n % 3 === 0 ? signer : undefined;
    const bytes = ledgerNearBounds(random, by, 60);
    const most = 1 + Math.floor(random() * 30);
    const expected = await append(bytes, by, most, { isFast: false, index: false });
    take.mockClear();
    const quick = await append(bytes, by, most, { isFast: true, index: false });
    expect({ ...quick, path: '' }, bytes.toString('base64')).toEqual({ ...expected, path: '' });
    const indexed = await append(bytes, by, most, { isFast: true, index: true });
    const { written, told } = expected;
    expect({ written: indexed.written, told: indexed.told }).toEqual({ written, told });
    taken += take.mock.results.filter(({ value }) => value === true).length;
    all += take.mock.results.length;
    // What the index has is what the ledger gives, step by step the slow way.
    expect((await maintainIndex(indexed.path, { check: true })).differences).toEqual([]);
  }
  expect(taken / all).toBeGreaterThan(0.2);
  expect(taken / all).toBeLessThan(0.95);
});

test('tells each record of a unit without a cap, as `verifyLine` does', async () => {
  const under = grant({ meter_caps: meters({ usd: 1_000 }) });
  const amounts = meters({ 'tokens.in': 3, 'tokens.out': 2, usd: 1 });
  const at = (n: number): object => ({ occurred_at: `2026-02-01T00:00:${10 + n}Z` });
  const call = { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: amounts };
  const acts = { kind: 'action', grant_event_id: under.event_id, action: call };
  const actions = [0, 1, 2].map((n) => authorization(acts, at(n)));
  const executions = actions.map((of, n) => execution(of, 0, { meter_used: amounts, ...at(10 + n) }));
  const direct = [0, 1, 2].map((n) => execution(under, 0, { meter_used: amounts, ...at(20 + n) }));
  const made = [...actions, ...executions, ...direct];
  const bytes = unsigned(under, ...made);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  for (const index of [false, true]) {
    const expected = await append(bytes, undefined, 4, { isFast: false, index });
    take.mockClear();
    const quick = await append(bytes, undefined, 4, { isFast: true, index });
    expect({ ...quick, path: '' }).toEqual({ ...expected, path: '' });
    // Who writes the answers as JSON gets the same text.
    expect(JSON.stringify(quick.told)).toBe(JSON.stringify(expected.told));
    const taken = take.mock.results.slice(-made.length).map(({ value }) => value as unknown);
    expect(taken).toEqual([false, true, true, false, true, true, true, true, true]);
    if (index) expect((await maintainIndex(quick.path, { check: true })).differences).toEqual([]);
    const told = (quick.told as { findings: { code: string; at: { pointer: string } }[] }[][]).flat();
    const found = told.map(({ findings }) =>
      findings.map(({ code, at: { pointer } }) => `${code} ${pointer}`),
    );
    const both = (list: string): string[] => [0, 1].map((n) => `METER_UNCAPPED ${list}/${n}/amount`);
    expect(found).toEqual([
      [],
      ...actions.map(() => both('/event/authorization/action/meter_reservation')),
      ...executions.map(() => []),
      ...direct.map(() => both('/event/meter_used')),
    ]);
  }
});
