/** The fast step over sound scannable records leaves the state that `verifyLine` leaves, and is what most lines are stepped over by. */

import { deserialize } from 'node:v8';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { FastStep } from '../../src/fast/fast-step.js';
import { AUTHORIZATION, EXECUTION, ROW_WIDTH, START, TYPE } from '../../src/fast/scan/row.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { meters } from '../../src/base/value/meter.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { sample, times } from '../slow.js';
import { action, authorization, execution, grant, unsigned, usd } from '../docs/grant-kit.js';
import { DIGEST, brief, genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { makeLedger } from './differential-kit.js';
import { ledgerNearBounds } from './near-bounds.js';
import { makeOrigin, mutateLedger } from './mutation-kit.js';
import { LedgerMaker, anchorAt, keyEvent } from './seal-kit.js';
import { ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
const SIGNER = makeSigner();
const OPTIONS: VerifyOptions = { backend, now: '2026-11-22T00:00:00Z', threads: 1 };

afterEach(() => {
  useFastPath(true);
  vi.restoreAllMocks();
});

/** The state that was told last: the same bytes are the same object, which needs no comparing in depth. */
let last: { readonly bytes: Buffer; readonly state: unknown } | undefined;

/** All that a verification of the bytes knows at the end. */
async function stateOf(bytes: Uint8Array, isFast: boolean, options: VerifyOptions = {}): Promise<unknown> {
  useFastPath(isFast);
  const { state, kept } = await runVerification(bytesSource(bytes, 'ledger'), { ...OPTIONS, ...options });
  const saved = saveVerification({ state, findings: kept });
  const end = Buffer.from(saved.subarray(saved.indexOf(0x0a) + 1));
  if (!last?.bytes.equals(end)) last = { bytes: end, state: deserialize(end) };
  return last.state;
}

/** Their reports are compared in `fast-path.test.ts`, of all. */
const CHOSEN = sample(
  FILE_CASES.filter(
    ({ ledger, parents }) => parents === undefined && fixtureBytes(ledger).length < 3_000_000,
  ),
  120,
);

test.each(CHOSEN)('$ledger $trust $witness_policy $checkpoints', async (fixture) => {
  const bytes = fixtureBytes(fixture.ledger);
  const options = { ...optionsOf(fixture), now: fixture.now ?? '2026-11-22T00:00:00Z' };
  expect(await stateOf(bytes, true, options)).toEqual(await stateOf(bytes, false, options));
});

test('ledgers made and changed at random', { timeout: 1_800_000 }, async () => {
  const random = makeRandom(Number(process.env['SEED'] ?? 20_261_124));
  for (let n = 0; n < Number(process.env['COUNT'] ?? times(5, 20_000)); n += 1) {
    const origin = makeOrigin(random);
    const bytes = mutateLedger(origin, [origin], random);
    const expected = await stateOf(bytes, false, origin.options());
    expect(await stateOf(bytes, true, origin.options()), bytes.toString('base64')).toEqual(expected);
  }
});

test('events in order that come near what their grants allow', { timeout: 1_800_000 }, async () => {
  const random = makeRandom(Number(process.env['SEED'] ?? 20_261_123));
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  let [taken, asked] = [0, 0];
  for (let n = 0; n < Number(process.env['COUNT'] ?? times(8, 10_000)); n += 1) {
    const bytes = ledgerNearBounds(random, n % 2 === 0 ? SIGNER : undefined, 40);
    const expected = await stateOf(bytes, false);
    take.mockClear();
    expect(await stateOf(bytes, true), bytes.toString('base64')).toEqual(expected);
    asked += take.mock.results.length;
    taken += take.mock.results.filter(({ value }) => value === true).length;
  }
  expect(taken / asked).toBeGreaterThan(0.15);
  expect(taken / asked).toBeLessThan(0.9);
});

test('guarded calls: authorizations with an expiry and a request key, starts, executions', async () => {
  const random = makeRandom(Number(process.env['SEED'] ?? 20_261_127));
  const types: unknown[] = [];
  const { tryApply } = FastStep.prototype;
  vi.spyOn(FastStep.prototype, 'tryApply').mockImplementation(function (this: FastStep, line) {
    const isTaken = tryApply.call(this, line);
    // The line is used again for the next one.
    if (isTaken) types.push(line.facts.rows[(line.facts.rowAt[line.index] ?? 0) * ROW_WIDTH + TYPE]);
    return isTaken;
  });
  for (let n = 0; n < Number(process.env['COUNT'] ?? times(30, 10_000)); n += 1) {
    const { bytes } = makeLedger(random, 20 + Math.floor(random() * 70));
    const expected = await stateOf(bytes, false);
    expect(await stateOf(bytes, true), bytes.toString('base64')).toEqual(expected);
  }
  for (const type of [AUTHORIZATION, EXECUTION, START])
    expect(types.filter((each) => each === type).length).toBeGreaterThan(20);
});

test('counts of each unit whether it is estimated, by its own basis or that of all', async () => {
  const units = ['calls', 'eur', ...Array.from('abcdefgh', (letter) => `tokens.${letter}`), 'usd', 'x', 'y'];
  const under = grant({ meter_caps: meters(Object.fromEntries(units.map((unit) => [unit, 1_000]))) });
  const usedOf = (count: number): unknown =>
    meters(Object.fromEntries(units.slice(0, count).map((unit, index) => [unit, index + 1])));
  const made: object[] = [];
  const add = (count: number, bases: object | undefined, whole?: string): void => {
    const meter_basis_by_unit = bases && { meter_basis_by_unit: bases };
    const basis = whole === undefined ? {} : { meter_basis: whole };
    const used = { meter_used: usedOf(count), ...basis, ...meter_basis_by_unit };
    made.push(execution(under, 0, { ...used, occurred_at: `2026-02-01T00:00:${10 + made.length}Z` }));
  };
  // The rules take the first of a type.
  add(1, undefined);
  for (const whole of [undefined, 'estimated', 'billed']) {
    add(4, undefined, whole);
    add(4, { 'tokens.b': 'estimated' }, whole);
    add(4, { calls: 'billed', eur: 'estimated' }, whole);
    add(2, { eur: 'measured' }, whole);
    add(12, { calls: 'reported', eur: 'estimated', x: 'estimated' }, whole);
    // Of more, only the rules know the bases.
    add(13, { eur: 'estimated', x: 'billed', y: 'estimated' }, whole);
    add(13, { calls: 'reported' }, whole);
  }
  const bytes = unsigned(under, ...made);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  const expected = await stateOf(bytes, false);
  expect(await stateOf(bytes, true)).toEqual(expected);
  const taken = take.mock.results.slice(1 - made.length).map(({ value }) => value as unknown);
  expect(taken).toEqual(made.slice(1).map((_, index) => index % 7 < 5));
});

test('units without a cap: what only adds to an earlier finding is counted at once', async () => {
  const under = grant({ meter_caps: meters({ usd: 1_000 }) });
  const amounts = meters({ 'tokens.in': 3, usd: 1 });
  const at = (n: number): object => ({ occurred_at: `2026-02-01T00:00:${10 + n}Z` });
  const call = { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: amounts };
  const acts = { kind: 'action', grant_event_id: under.event_id, action: call };
  const actions = [0, 1, 2].map((n) => authorization(acts, at(n)));
  const executions = actions.map((of, n) => execution(of, 0, { meter_used: amounts, ...at(10 + n) }));
  const direct = [0, 1, 2].map((n) =>
    execution(under, 0, { meter_used: meters({ 'tokens.in': n, 'tokens.out': 1 }), ...at(20 + n) }),
  );
  const made = [...actions, ...executions, ...direct];
  const bytes = unsigned(under, ...made);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  const expected = await stateOf(bytes, false);
  expect(await stateOf(bytes, true)).toEqual(expected);
  // The rules take the first of a type, and the first of a unit.
  const taken = take.mock.results.slice(-made.length).map(({ value }) => value as unknown);
  expect(taken).toEqual([false, true, true, false, true, true, false, true, true]);
  const told = vi.fn();
  useFastPath(true);
  await runVerification(bytesSource(bytes, 'ledger'), { ...OPTIONS, onFinding: told });
  const all = told.mock.calls.map(([finding]) => finding as { code: string; folded?: number });
  expect(all.filter(({ code }) => code === 'METER_UNCAPPED').map(({ folded }) => folded)).toEqual([4, 2]);
});

test('counts what is used under more grants than are remembered at once', async () => {
  const grants = Array.from({ length: 1_030 }, (_, n) => grant({}, undefined, { policy_id: `p${n}` }));
  const first = grants.map((each) => execution(each, 6));
  const second = grants.map((each) => execution(each, 6, { outcome: 'unknown' }));
  const bytes = unsigned(...grants, ...first, ...second);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  const quick = await stateOf(bytes, true);
  expect(take.mock.results.filter(({ value }) => value === true).length).toBeGreaterThan(1_024);
  expect(quick).toEqual(await stateOf(bytes, false));
});

test.each([0, 1])('checks each of several signatures with its key: number %i', async (index) => {
  const other = makeSigner();
  const maker = new LedgerMaker();
  maker.append(genesis([keyOf(SIGNER), keyOf(other)]), SIGNER);
  for (const n of [1, 2, 3, 4]) maker.append(note(n), SIGNER, other);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  await stateOf(maker.bytes, true);
  expect(take.mock.results.at(-1)?.value).toBe(true);
  const lines = linesOf(maker.bytes);
  const [before = '', right = ''] = lines.slice(-2).map((line) => {
    const { signatures } = JSON.parse(line.toString()) as { signatures: { sig: string }[] };
    return signatures[index]?.sig;
  });
  const wrong = Buffer.from((lines.pop() as Buffer).toString().replace(right, before));
  const bytes = ledgerOf([...lines, wrong]);
  expect(await stateOf(bytes, true)).toEqual(await stateOf(bytes, false));
  expect((await verifyLedger(bytes)).findings.map(brief)).toContain('SIGNATURE_INVALID in 5');
});

test('applies calls that stay below the amounts of rules of approval, and no others', async () => {
  const rule = (above: number): object => ({ tools: ['*'], approvers: ['human:*'], above: usd(above) });
  const rules = grant({ meter_caps: usd(1_000), approvals: [rule(100), rule(90)] });
  const acts = [90, 91].map((reserved) => action(rules, reserved));
  const silent = action(rules, 0, {
    authorization: {
      kind: 'action',
      grant_event_id: rules.event_id,
      action: { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: [] },
    },
  });
  const ran = [execution(acts[0], 90), execution(rules, 90), execution(rules, 91)];
  const bytes = unsigned(note(0), rules, action(rules, 5), execution(rules, 5), ...acts, silent, ...ran);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  const quick = await stateOf(bytes, true);
  // The first of each type is never applied by it.
  const taken = take.mock.results.map(({ value }) => value as unknown).slice(-6);
  expect(taken).toEqual([true, false, false, true, true, false]);
  expect(quick).toEqual(await stateOf(bytes, false));
  const { findings } = await verifyLedger(bytes);
  expect(findings.map(brief)).toEqual([
    'APPROVAL_MISSING in 7',
    'APPROVAL_MISSING in 8',
    'APPROVAL_MISSING in 11',
  ]);
});

test('forgets a request for approval once the call is allowed without', async () => {
  const rule = { tools: ['*'], approvers: ['human:*'], above: usd(100) };
  const rules = grant({ approvals: [rule] });
  const asked = action(rules, 200, { decision: 'deny', decision_code: 'APPROVAL_REQUIRED' });
  const bytes = unsigned(rules, asked, action(rules, 1), note(1));
  expect(await stateOf(bytes, true)).toEqual(await stateOf(bytes, false));
  const { state } = await runVerification(bytesSource(bytes, 'ledger'), OPTIONS);
  expect([...state.links.awaiting.values()]).toEqual([]);
});

test('decides again who may act without a grant once a key has the role authority', async () => {
  const maker = new LedgerMaker();
  maker.append(genesis([keyOf(SIGNER, { roles: ['event', 'admin'] })]), SIGNER);
  const act = (name: string): unknown => maker.append(action(undefined, 1, { policy_id: name }), SIGNER);
  for (const name of ['first', 'second', 'third']) act(name);
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  await stateOf(maker.bytes, true);
  expect(take.mock.results.map(({ value }) => value as unknown).slice(-2)).toEqual([true, true]);
  maker.append(keyEvent('add', keyOf(makeSigner(), { roles: ['authority'] })), SIGNER);
  act('late');
  expect(await stateOf(maker.bytes, true)).toEqual(await stateOf(maker.bytes, false));
  const { findings } = await verifyLedger(maker.bytes);
  expect(findings.map(brief)).toContain('KEY_NOT_FOR_ROLE in 6');
});

test.each([0, 200])('tells names apart that begin alike, with %i other records', async (others) => {
  const long = Array.from({ length: 128 }, (_, n) => ((7 * n * n + 13 * n + 10) % 36).toString(36)).join('');
  const acts = Array.from({ length: long.length }, (_, n) => {
    const name = long.slice(0, long.length - n);
    const each = { tool_name: name, tool_params_digest: DIGEST, meter_reservation: usd(1) };
    return authorization({ kind: 'action', action: each }, { principal_id: `agent:${name}` });
  });
  const bytes = unsigned(...acts, ...Array.from({ length: others }, (_, n) => note(n)));
  const take = vi.spyOn(FastStep.prototype, 'tryApply');
  const quick = await stateOf(bytes, true);
  expect(take.mock.results.filter(({ value }) => value === true).length).toBeGreaterThan(100);
  expect(quick).toEqual(await stateOf(bytes, false));
});

describe('a ledger of a thousand records', () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');

  test('is applied by it, except for records that are not scannable', async () => {
    const take = vi.spyOn(FastStep.prototype, 'tryApply');
    await stateOf(bytes, true);
    const taken = take.mock.results.filter(({ value }) => value === true).length;
    expect(taken).toBeGreaterThan(0.9 * linesOf(bytes).length);
  });

  test('leaves the same state wherever it ends, and resumes', async () => {
    const lines = linesOf(bytes);
    for (const count of [2, 3, 7, 50, 333, 700]) {
      const begin = Buffer.concat(lines.slice(0, count).flatMap((line) => [line, Buffer.from('\n')]));
      const expected = await stateOf(begin, false);
      expect(await stateOf(begin, true)).toEqual(expected);
      const { state, kept } = await runVerification(bytesSource(begin, 'ledger'), OPTIONS);
      const saved = saveVerification({ state, findings: kept });
      const goOn = (isFast: boolean): Promise<unknown> =>
        stateOf(bytes, isFast, { from: restoreVerification(saved, backend) });
      expect(await goOn(true)).toEqual(await goOn(false));
    }
  });

  test('with blank lines, and lines left out, doubled and swapped', async () => {
    const random = makeRandom(3);
    for (let n = 0; n < times(4, 200); n += 1) {
      const lines: Uint8Array[] = linesOf(bytes);
      for (let changes = n % 4; changes > 0; changes -= 1) {
        const at = 1 + Math.floor(random() * (lines.length - 2));
        const line = lines[at];
        const others = [[], [line, line], [Buffer.alloc(0), line], [lines[at + 1], line]];
        lines.splice(at, 1, ...(others[Math.floor(random() * 4)] as Uint8Array[]));
      }
      const changed = ledgerOf(lines);
      const checkpoints = [1, 2, 100, 333, 512, 777].map((size) => anchorAt(changed, SIGNER, size));
      const expected = await stateOf(changed, false, { checkpoints });
      expect(await stateOf(changed, true, { checkpoints })).toEqual(expected);
      const roots = async (isFast: boolean): Promise<unknown> => {
        useFastPath(isFast);
        const { ending } = await runVerification(bytesSource(changed, 'ledger'), { ...OPTIONS, checkpoints });
        return ending.anchors.map(({ relation, root }) => [relation, root]);
      };
      expect(await roots(true)).toEqual(await roots(false));
    }
  });

  test('is applied by it with a listener for each record, too', async () => {
    const take = vi.spyOn(FastStep.prototype, 'tryApply');
    let told = 0;
    const onRecord = (): undefined => {
      told += 1;
    };
    await stateOf(bytes, true, { onRecord });
    const taken = take.mock.results.filter(({ value }) => value === true).length;
    expect(told).toBe(linesOf(bytes).length);
    expect(taken).toBeGreaterThan(0.9 * told);
  });
});
