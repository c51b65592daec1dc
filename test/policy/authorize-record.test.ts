/** Decisions and executions through the API: what is written verifies, and nobody is allowed what another has spent. */

import { execFile } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { sumQuantity } from '../../src/rules/bounds/balance.js';
import { NorthrootError } from '../../src/base/error.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { authorizeAction, type ActionRequest } from '../../src/log/policy/authorize.js';
import type { AuthorizationDecision, PolicyEvaluator } from '../../src/log/policy/evaluator.js';
import { draftExecution, findPermission, type ExecutionRequest } from '../../src/log/policy/record.js';
import { findBalance, listOpenAuthorizations } from '../../src/rules/report/accounts.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { JsonObject } from '../../src/base/json/value.js';
import { meters } from '../../src/base/value/meter.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import {
  codeOf,
  holdLock,
  judge,
  openUnsigned,
  readRecords,
  temporaryFolder,
  untilWaiting,
} from '../writer/support.js';
import {
  INTENT,
  actionEvent,
  digestOf,
  emptyState,
  executionEvent,
  feed,
  grantEvent,
  int,
  type ActionOptions,
  type Bounds,
} from './bare-events.js';

const NOON = '2026-03-01T12:00:00Z';
const BOUNDS: Bounds = {
  allowed_tools: ['fs.*'],
  meter_caps: [
    { unit: 'calls', amount: int(10) },
    { unit: 'usd', amount: int(2) },
  ],
};
const ANY_TIME: ActionRequest = {
  principalId: 'agent:a1',
  toolName: 'fs.read',
  paramsDigest: digestOf('params'),
  intentDigest: INTENT,
  meters: meters({ calls: 1 }),
};
const REQUEST: ActionRequest = { ...ANY_TIME, now: NOON };

/** A ledger with one grant, and the grant's id. */
async function makeLedger(bounds: Bounds = BOUNDS): Promise<{ path: string; grantId: string }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openUnsigned(path, { now: () => '2026-03-01T10:00:00Z' });
  const event = grantEvent({ principal: 'agent:a1', at: '2026-03-01T10:00:00Z', bounds });
  const { eventId: grantId } = await ledger.append({ event });
  await ledger.close();
  return { path, grantId };
}

async function readState(path: string): Promise<VerifyState> {
  return (await runVerification(await openLedgerSource(path), { maxFindings: 0 })).state;
}

async function leftOf(path: string, grantId: string, unit: string): Promise<string> {
  const balance = findBalance(await readState(path), grantId, unit);
  return balance === undefined ? 'none' : formatQuantity(balance.left);
}

describe('authorizeAction', () => {
  it('appends what verifies: an allow and a deny', async () => {
    const { path, grantId } = await makeLedger();
    const allowed = await authorizeAction(path, REQUEST);
    expect(allowed).toMatchObject({
      decision: 'allow',
      grantId,
      recorded: { seq: 2, status: 'appended' },
    });
    const denied = await authorizeAction(path, { ...REQUEST, toolName: 'net.get' });
    expect(denied).toMatchObject({
      decision: 'deny',
      decisionCode: 'TOOL_NOT_ALLOWED',
      recorded: { seq: 3 },
    });
    expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records: 4 });
    expect(await leftOf(path, grantId, 'calls')).toBe('9');
    const report = await verifyLedger(path);
    expect(report.counts.by_verdict).toEqual({ ok: 3, denied: 1, violation: 0, invalid: 0 });
    expect(report.open_authorizations).toEqual([
      { event_id: allowed.recorded.eventId, seq: 2, tool_name: 'fs.read' },
    ]);
  });

  it('records the whole decision', async () => {
    const { path, grantId } = await makeLedger();
    const contextDigest = digestOf('context');
    const hygiene = {
      status: 'Lossy' as const,
      warnings: ['NUMBER_COERCED'],
      metrics: { NUMBER_COERCED: 2 },
      profile_id: 'northroot-jcs-v1' as const,
    };
    await authorizeAction(path, { ...REQUEST, contextDigest, hygiene });
    await authorizeAction(path, { ...REQUEST, principalId: 'agent:a2' });
    const [, , allow, deny] = readRecords(path).map(({ event }) => event);
    expect(allow).toMatchObject({
      event_type: 'authorization',
      principal_id: 'agent:a1',
      occurred_at: NOON,
      intents: { intent_digest: INTENT },
      policy_id: 'northroot/grants/1',
      decision: 'allow',
      decision_code: 'ALLOW',
      context_digest: contextDigest,
      hygiene,
      authorization: {
        kind: 'action',
        grant_event_id: { alg: 'sha-256', b64: grantId.slice('sha-256:'.length) },
        action: {
          tool_name: 'fs.read',
          tool_params_digest: REQUEST.paramsDigest,
          meter_reservation: REQUEST.meters,
        },
      },
    });
    expect(allow?.['checks']).toHaveLength(10);
    expect(deny).toMatchObject({
      decision: 'deny',
      decision_code: 'GRANT_NOT_FOUND',
      checks: [
        { check: 'grant', result: 'fail', code: 'GRANT_NOT_FOUND' },
        { check: 'hygiene', result: 'pass' },
      ],
    });
    expect(deny?.['authorization']).toEqual({
      kind: 'action',
      action: {
        tool_name: 'fs.read',
        tool_params_digest: REQUEST.paramsDigest,
        meter_reservation: REQUEST.meters,
      },
    });
  });

  it('never gives two askers the same authorization', async () => {
    const { path, grantId } = await makeLedger();
    const answers = [];
    for (let n = 0; n < 4; n += 1) answers.push(await authorizeAction(path, REQUEST));
    expect(new Set(answers.map(({ recorded }) => recorded.eventId)).size).toBe(4);
    expect(answers.map(({ recorded }) => recorded.seq)).toEqual([2, 3, 4, 5]);
    expect(await leftOf(path, grantId, 'calls')).toBe('6');
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
    const previous = readRecords(path).map(({ event }) => (event['prev_event_id'] as JsonObject)?.['b64']);
    const ids = answers.map(({ recorded }) => recorded.eventId.slice('sha-256:'.length));
    expect(previous.slice(2)).toEqual([undefined, ...ids.slice(0, 3)]);
  });

  it('is asked about the moment in which it has the ledger for itself', async () => {
    const { path } = await makeLedger({ ...BOUNDS, expires_at: '2026-03-01T12:00:01Z' });
    const release = await holdLock(path);
    let now = NOON;
    const answer = authorizeAction(path, ANY_TIME, { now: () => now, lockTimeoutMs: 20_000 });
    await untilWaiting(path);
    now = '2026-03-01T12:00:01Z';
    await release();
    expect((await answer).decisionCode).toBe('GRANT_EXPIRED');
    expect(readRecords(path).at(-1)?.event['occurred_at']).toBe(now);
  });

  it('asks another policy, and records its answer', async () => {
    const { path, grantId } = await makeLedger();
    const asked: unknown[] = [];
    const answers: AuthorizationDecision[] = [
      {
        decision: 'deny',
        decisionCode: 'ON_HOLIDAY',
        checks: [{ check: 'calendar', result: 'fail', code: 'SUNDAY' }],
        grantId,
        reservation: [],
        remaining: [],
      },
      {
        decision: 'allow',
        decisionCode: 'FINE',
        checks: [],
        grantId: undefined,
        reservation: meters({ usd: '0.5' }),
        remaining: [],
      },
    ];
    const policy = (state: VerifyState): PolicyEvaluator => ({
      policyId: 'calendar/7',
      policyDigest: digestOf('calendar'),
      evaluate: (request) => {
        asked.push([state.records, request]);
        return answers.shift() as AuthorizationDecision;
      },
    });
    const denied = await authorizeAction(path, REQUEST, { policy });
    expect(denied).toMatchObject({ decision: 'deny', decisionCode: 'ON_HOLIDAY', recorded: { seq: 2 } });
    await authorizeAction(path, REQUEST, { policy });
    expect(asked).toEqual([
      [2, REQUEST],
      [3, REQUEST],
    ]);
    const [, , deny, allow] = readRecords(path).map(({ event }) => event);
    expect(deny).toMatchObject({
      policy_id: 'calendar/7',
      policy_digest: digestOf('calendar'),
      decision_code: 'ON_HOLIDAY',
      checks: [{ check: 'calendar', result: 'fail', code: 'SUNDAY' }],
    });
    expect(allow).toMatchObject({
      authorization: { kind: 'action', action: { meter_reservation: meters({ usd: '0.5' }) } },
    });
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
  });

  it('records nothing that is no authorization, and lets the ledger go', async () => {
    const { path } = await makeLedger();
    const answer: AuthorizationDecision = {
      decision: 'allow',
      decisionCode: 'FINE',
      checks: [],
      grantId: undefined,
      reservation: [],
      remaining: [],
    };
    const policy = (evaluate: PolicyEvaluator['evaluate']) => () => ({
      policyId: 'loose/1',
      policyDigest: digestOf('loose'),
      evaluate,
    });
    // An allow without a grant and without a reservation has no bounds at all.
    expect(await codeOf(authorizeAction(path, REQUEST, { policy: policy(() => answer) }))).toBe('SCHEMA');
    const failure = new Error('the policy is out');
    const failing = policy(() => {
      throw failure;
    });
    await expect(authorizeAction(path, REQUEST, { policy: failing })).rejects.toBe(failure);
    await expect(authorizeAction(path, { ...REQUEST, toolName: 'fs read' })).rejects.toThrow(TypeError);
    expect(readRecords(path)).toHaveLength(2);
    expect((await authorizeAction(path, REQUEST, { lockTimeoutMs: 0 })).recorded.seq).toBe(2);
  });

  it('decides nothing upon a ledger whose evidence is broken', async () => {
    const { path, grantId } = await makeLedger();
    await authorizeAction(path, REQUEST);
    await authorizeAction(path, REQUEST);
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, lines.with(2, lines[2].replace('"ALLOW"', '"ALLOX"')).join('\n'));
    const before = readFileSync(path);
    const error = await authorizeAction(path, { ...REQUEST, grantId }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NorthrootError);
    expect(error).toMatchObject({ code: 'LEDGER_INVALID' });
    expect(readFileSync(path)).toEqual(before);
  });

  it('decides nothing upon a ledger that is not of the trust policy', async () => {
    const { path } = await makeLedger();
    const trust = { trust_version: '1' as const, origins: ['example.com/other'], keys: [] };
    expect(await codeOf(authorizeAction(path, REQUEST, { trust }))).toBe('LEDGER_INVALID');
    const own = { ...trust, origins: ['example.com/tests/writer'] };
    expect((await authorizeAction(path, REQUEST, { trust: own })).decision).toBe('allow');
  });

  it('decides upon a ledger in which a bound was broken, and allows nothing of what is overdrawn', async () => {
    const { path, grantId } = await makeLedger();
    const ledger = await openUnsigned(path);
    const event = executionEvent({
      principal: 'agent:a1',
      authorizationId: grantId,
      tool: 'fs.read',
      startedAt: NOON,
      endedAt: NOON,
      meters: meters({ usd: 3 }),
    });
    await ledger.append({ event });
    await ledger.close();
    const answers = [
      await authorizeAction(path, REQUEST),
      await authorizeAction(path, { ...REQUEST, meters: meters({ usd: '0.01' }) }),
    ];
    expect(answers.map(({ decisionCode }) => decisionCode)).toEqual([
      'METER_CAP_EXCEEDED',
      'RESERVATION_OVER_CAP',
    ]);
    expect(await judge(path)).toMatchObject({ verdict: 'violation', codes: ['METER_CAP_EXCEEDED'] });
  });

  it('cuts off a torn tail first', async () => {
    const { path } = await makeLedger();
    appendFileSync(path, '{"event":');
    const notices: string[] = [];
    const onNotice = ({ code }: { code: string }): void => void notices.push(code);
    expect((await authorizeAction(path, REQUEST, { onNotice })).decision).toBe('allow');
    expect(notices).toEqual(['TORN_TAIL_SAVED']);
    expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records: 3 });
  });
});

describe('many askers', () => {
  it('in one process never overspend', async () => {
    const { path, grantId } = await makeLedger();
    const answers = await Promise.all(
      Array.from({ length: 16 }, () => authorizeAction(path, REQUEST, { lockTimeoutMs: 60_000 })),
    );
    expect(answers.filter(({ decision }) => decision === 'allow')).toHaveLength(10);
    expect(await leftOf(path, grantId, 'calls')).toBe('0');
    expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records: 18 });
  });

  it('in six processes never overspend', async () => {
    const { path, grantId } = await makeLedger();
    const script = fileURLToPath(new URL('children/asker.js', import.meta.url));
    const run = promisify(execFile);
    const task = JSON.stringify({ path, times: 5, request: ANY_TIME });
    const runs = await Promise.all(Array.from({ length: 6 }, () => run(process.execPath, [script, task])));
    const answers = runs.flatMap(({ stdout }) =>
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { decision: string; decisionCode: string; eventId: string }),
    );
    const allowed = answers.filter(({ decision }) => decision === 'allow');
    const codes = new Set(answers.filter((each) => !allowed.includes(each)).map((each) => each.decisionCode));
    expect([answers.length, allowed.length, [...codes]]).toEqual([30, 10, ['RESERVATION_OVER_CAP']]);
    expect(new Set(answers.map(({ eventId }) => eventId)).size).toBe(30);
    expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records: 32 });
    const state = await readState(path);
    expect(
      listOpenAuthorizations(state)
        .map(({ eventId }) => eventId)
        .sort(),
    ).toEqual(allowed.map(({ eventId }) => eventId).sort());
    expect(await leftOf(path, grantId, 'calls')).toBe('0');
  });
});

/** A state in which there is one authorization of every kind. */
function makeState() {
  const state = emptyState();
  const at = '2026-03-01T10:00:00Z';
  const put = (payload: Parameters<typeof feed>[1]): string => feed(state, payload).id;
  const grant = (bounds: Partial<Bounds>, decision: 'allow' | 'deny' = 'allow'): string =>
    put(grantEvent({ principal: 'agent:a1', at, decision, bounds: { ...BOUNDS, ...bounds } }));
  const action = (params: string, options: Partial<ActionOptions> = {}): string =>
    put(actionEvent({ principal: 'agent:a1', at, tool: 'fs.read', params, grantId: open, ...options }));
  const open = grant({});
  const busy = grant({
    meter_caps: [{ unit: 'usd', amount: int(9) }],
    concurrency_limit: int(1),
    rate_limits: [{ unit: 'calls.per_min', amount: int(2) }],
  });
  const running = { principal: 'agent:a1', authorizationId: busy, tool: 'fs.read' };
  put(executionEvent({ ...running, startedAt: NOON, endedAt: '2026-03-01T12:30:00Z' }));
  put(executionEvent({ ...running, startedAt: '2026-03-01T13:00:00Z', endedAt: '2026-03-01T13:00:00Z' }));
  put(executionEvent({ ...running, startedAt: '2026-03-01T13:00:30Z', endedAt: '2026-03-01T13:00:30Z' }));
  const spent = action('spent');
  const use = { ...running, authorizationId: spent };
  put(executionEvent({ ...use, startedAt: NOON, endedAt: NOON }));
  const expiring = grant({ expires_at: '2026-03-01T12:00:00Z' });
  return {
    state,
    open,
    busy,
    spent,
    expiring,
    reserved: action('reserved', { grantId: expiring, meters: meters({ usd: '0.5' }) }),
    deniedGrant: grant({}, 'deny'),
    denied: action('denied', { decision: 'deny' }),
    small: action('small', { meters: meters({ usd: '0.5', calls: 1 }) }),
    unreserved: action('unreserved'),
    other: put({
      canonical_profile_id: 'northroot-jcs-v1',
      event_type: 'x.note',
      event_version: '1',
      occurred_at: at,
      principal_id: 'agent:a1',
    }),
  };
}

function refusalOf(attempt: () => unknown): NorthrootError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof NorthrootError) return error;
    throw error;
  }
  return expect.fail('expected to be refused');
}

describe('findPermission', () => {
  const world = makeState();
  const { state, open, busy, spent, expiring, reserved, deniedGrant, denied, small, unreserved, other } =
    world;
  const now = '2026-03-01T11:00:00Z';
  const fsRead = { now, toolName: 'fs.read' };
  const done = { endedAt: now, isRelease: false };
  const late = '2030-01-01T00:00:00Z';

  it('finds what may be executed, by id, prefix and number', () => {
    const permission = {
      kind: 'action',
      startId: undefined,
      started: undefined,
      authorizationId: small,
      principalId: 'agent:a1',
      toolName: 'fs.read',
      intentDigest: INTENT,
      paramsDigest: digestOf('small'),
      reserved: [...(state.links.actions.get(small.slice('sha-256:'.length))?.reservation ?? [])].map(
        ([unit, amount]) => ({ unit, amount: sumQuantity(amount) }),
      ),
    };
    const b64 = small.slice('sha-256:'.length);
    const hex = Buffer.from(b64, 'base64url').toString('hex');
    const { seq } = [...state.links.actions.values()].find(({ place }) => place.eventId === small)!.place;
    for (const name of [small, b64, hex, `sha-256:${hex}`, b64.slice(0, 8), hex.slice(0, 12), String(seq)]) {
      expect(findPermission(state, name, { now })).toEqual(permission);
    }
    expect(findPermission(state, open, fsRead)).toEqual({
      ...permission,
      kind: 'grant',
      authorizationId: open,
      paramsDigest: undefined,
      reserved: [],
    });
  });

  it.each<[string, string, ExecutionRequest]>([
    ['AUTH_NOT_FOUND', `sha-256:${'A'.repeat(43)}`, { now }],
    ['AUTH_NOT_FOUND', '99', { now }],
    ['AUTH_NOT_AN_AUTHORIZATION', other, { now }],
    ['AUTH_NOT_AN_AUTHORIZATION', other.slice(0, 20), { now }],
    ['USAGE', '', { now }],
    ['USAGE', 'sha-256:', { now }],
    ['USAGE', 'no id', { now }],
    ['USAGE', open, { now }],
    ['AUTHORIZATION_REUSED', spent, { now }],
    ['AUTHORIZATION_REUSED', spent.slice(0, 20), { now }],
    ['EXECUTION_UNDER_DENY', denied, { now }],
    ['EXECUTION_UNDER_DENY', deniedGrant, fsRead],
    ['TOOL_MISMATCH', small, { now, toolName: 'fs.write' }],
    ['TOOL_NOT_ALLOWED', open, { now, toolName: 'net.get' }],
    ['EXECUTION_BEFORE_AUTHORIZATION', small, { now: '2026-03-01T09:59:59.999999999Z' }],
    ['GRANT_EXPIRED', expiring, { ...fsRead, now: NOON }],
    ['METER_CAP_EXCEEDED', open, { ...fsRead, meterUsed: meters({ usd: '1.51' }) }],
    ['METER_CAP_EXCEEDED', unreserved, { now, meterUsed: meters({ usd: '1.51' }) }],
    ['RESERVATION_EXCEEDED', small, { now, meterUsed: meters({ usd: '0.51' }) }],
    ['RATE_LIMIT_EXCEEDED', busy, { ...fsRead, now: '2026-03-01T13:00:59.999999999Z' }],
    ['CONCURRENCY_EXCEEDED', busy, { ...fsRead, now: '2026-03-01T12:29:59.999999999Z' }],
    // What was done already is held against the same bounds, but for what it used.
    ['TOOL_NOT_ALLOWED', open, { now, toolName: 'net.get', done }],
    ['EXECUTION_BEFORE_AUTHORIZATION', small, { now: '2026-03-01T09:00:00Z', done }],
    ['GRANT_EXPIRED', expiring, { ...fsRead, now: NOON, done }],
    // Under a grant itself there is nothing to give back.
    ['GRANT_EXPIRED', expiring, { ...fsRead, now: late, done: { endedAt: late, isRelease: true } }],
    [
      'CONCURRENCY_EXCEEDED',
      busy,
      { ...fsRead, now: '2026-03-01T11:59:59Z', done: { endedAt: '2026-03-01T12:00:01Z', isRelease: false } },
    ],
  ])('refuses with %s', (code, wanted, request) => {
    const error = refusalOf(() => findPermission(state, wanted, request));
    expect(error).toMatchObject({ code });
  });

  it.each<[string, string, ExecutionRequest]>([
    ['the last nanosecond before expiry', expiring, { ...fsRead, now: '2026-03-01T11:59:59.999999999Z' }],
    ['the instant of the authorization', small, { now: '2026-03-01T10:00:00Z' }],
    ['all that is left', open, { ...fsRead, meterUsed: meters({ usd: '1.5' }) }],
    ['all that is reserved', small, { now, meterUsed: meters({ usd: '0.5' }) }],
    ['the end of the one that runs', busy, { ...fsRead, now: '2026-03-01T12:30:00Z' }],
    ['the end of the window', busy, { ...fsRead, now: '2026-03-01T13:01:00Z' }],
    ['more than was reserved, when it is done', small, { now, meterUsed: meters({ usd: 5 }), done }],
    ['giving back late', reserved, { now: late, done: { endedAt: late, isRelease: true } }],
  ])('permits %s', (_what, wanted, request) => {
    expect(findPermission(state, wanted, request).principalId).toBe('agent:a1');
  });

  it('refuses a prefix that more than one authorization has', () => {
    const many = emptyState();
    const ids = Array.from(
      { length: 65 },
      (_, n) =>
        feed(many, grantEvent({ principal: `agent:a${n}`, at: NOON, bounds: BOUNDS })).id.slice(
          'sha-256:'.length,
        )[0],
    );
    const twice = ids.find((first, n) => !/\d/.test(first) && ids.indexOf(first) !== n)!;
    expect(refusalOf(() => findPermission(many, twice, fsRead)).code).toBe('AUTHORIZATION_AMBIGUOUS');
  });

  it('changes nothing in the state that it looks through', () => {
    const accounts = (): string =>
      JSON.stringify(
        [...[...state.links.grants.values()].map(({ accounts: each }) => [...each])],
        (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
      );
    const before = accounts();
    findPermission(state, small, { now, meterUsed: meters({ usd: '0.5' }) });
    expect(accounts()).toBe(before);
    expect(state.links.actions.has(small.slice('sha-256:'.length))).toBe(true);
  });
});

describe('draftExecution', () => {
  it('records what was permitted, so that it verifies', async () => {
    const { path, grantId } = await makeLedger();
    const { recorded } = await authorizeAction(path, { ...REQUEST, meters: meters({ calls: 1, usd: 1 }) });
    const state = await readState(path);
    const ledger = await openUnsigned(path);
    const times = { startedAt: NOON, endedAt: '2026-03-01T12:00:00.5Z' };
    const permission = findPermission(state, recorded.eventId, { now: NOON });
    await ledger.append({
      event: draftExecution(permission, {
        ...times,
        meterUsed: meters({ calls: 1, usd: '0.25' }),
        outcome: 'success',
        outputDigest: digestOf('output'),
      }),
    });
    const direct = findPermission(state, grantId, { now: NOON, toolName: 'fs.write' });
    await ledger.append({
      event: draftExecution(direct, { ...times, meterUsed: [], outcome: 'failure', errorCode: 'TIMEOUT' }),
    });
    await ledger.close();
    expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records: 5 });
    expect(await leftOf(path, grantId, 'usd')).toBe('1.75');
    const [, , , execution, failure] = readRecords(path).map(({ event }) => event);
    expect(execution).toMatchObject({
      occurred_at: times.endedAt,
      started_at: NOON,
      ended_at: times.endedAt,
      tool_params_digest: REQUEST.paramsDigest,
      output_digest: digestOf('output'),
      outcome: 'success',
    });
    expect(execution).not.toHaveProperty('error_code');
    expect(failure).toMatchObject({ outcome: 'failure', error_code: 'TIMEOUT', meter_used: [] });
    expect(failure).not.toHaveProperty('tool_params_digest');
  });

  it('refuses an end before the start', () => {
    const { state, small } = makeState();
    const permission = findPermission(state, small, { now: NOON });
    const outcome = { meterUsed: [], outcome: 'success' } as const;
    const draft = (endedAt: string): object =>
      draftExecution(permission, { ...outcome, startedAt: NOON, endedAt });
    expect(() => draft('2026-03-01T11:59:59.999999999Z')).toThrow(RangeError);
    expect(draft(NOON)).toMatchObject({ started_at: NOON, ended_at: NOON });
  });
});
