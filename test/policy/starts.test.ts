/** Starts through the API: which of them count, what they hold, and what settles them. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { authorizeAction, authorizeAndStart, type ActionRequest } from '../../src/log/policy/authorize.js';
import {
  draftExecution,
  draftSettlement,
  findPermission,
  findSpent,
  raiseMeters,
} from '../../src/log/policy/record.js';
import { ONE_CALL_USED, startExecution } from '../../src/log/policy/start.js';
import { listBudgets } from '../../src/log/agent/budget.js';
import { listGrants, listOpenStarts, reserveAllStarted } from '../../src/rules/report/accounts.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { meters, type MeterVector } from '../../src/base/value/meter.js';
import { fromRational } from '../../src/base/value/quantity.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { signingRuleFor } from '../../src/rules/trust/authority.js';
import { MAX_OPEN_STARTS, START_TYPE } from '../../src/rules/verify/starts.js';
import { Ledger, type LedgerOptions } from '../../src/log/writer/ledger.js';
import { ed25519Key } from '../key/key-samples.js';
import * as kit from '../docs/ledger-kit.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { replayTo } from '../../src/log/read/read-records.js';
import { codeOf, judge, readRecords, signer, temporaryFolder } from '../writer/support.js';
import { INTENT, digestOf, emptyState, feed, grantEvent, int } from './bare-events.js';

const GRANTED = '2026-03-01T10:00:00Z';
const NOON = '2026-03-01T12:00:00Z';
const LATER = '2026-03-01T12:10:00Z';
const PARAMS = digestOf('params');
const stranger = createSigner(ed25519Key(Buffer.alloc(32, 9)));
const unknown = createSigner(ed25519Key(Buffer.alloc(32, 8)));

const REQUEST: ActionRequest = {
  principalId: 'agent:a1',
  toolName: 'fs.read',
  paramsDigest: PARAMS,
  intentDigest: INTENT,
  now: NOON,
};

function grant(bounds: object = {}, members: object = {}): object {
  return {
    event_type: 'authorization',
    principal_id: 'agent:a1',
    occurred_at: GRANTED,
    intents: { intent_digest: INTENT },
    policy_id: 'test/1',
    policy_digest: digestOf('policy'),
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: {
      kind: 'grant',
      bounds: { allowed_tools: ['fs.*'], meter_caps: meters({ calls: 10, usd: 5 }), ...bounds },
    },
    ...members,
  };
}

async function open(path: string, options: LedgerOptions = {}): Promise<Ledger> {
  const ledger = await Ledger.open(path, { signer, lockTimeoutMs: 0, ...options });
  onTestFinished(() => ledger.close());
  return ledger;
}

/** A signed ledger, open for decisions, and the ids of these drafts in it. */
async function make(...drafts: object[]): Promise<{ ledger: Ledger; path: string; ids: string[] }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const create = { origin: 'example.com/tests/starts', principalId: 'service:keeper' };
  const ledger = await open(path, { create, decides: true, now: () => GRANTED });
  const ids: string[] = [];
  for (const event of drafts) ids.push((await ledger.append({ event })).eventId);
  return { ledger, path, ids };
}

function start(ledger: Ledger, wanted: string, more: object = {}) {
  return startExecution(ledger, wanted, { paramsDigest: PARAMS, now: NOON, ...more });
}

const underGrant = { toolName: 'fs.read', meterUsed: meters({ calls: 1 }) };

async function ask(ledger: Ledger, amounts: Record<string, number | string> = {}, at = NOON) {
  return authorizeAction(ledger, { ...REQUEST, now: at, meters: meters(amounts) });
}

function used(amounts: Record<string, number | string>, at = NOON) {
  return { startedAt: NOON, endedAt: at, meterUsed: meters(amounts), outcome: 'success' } as const;
}

describe('a start of an action', () => {
  it('keeps every other recorder from it until it is recorded', async () => {
    const { ledger, path } = await make(grant());
    const { recorded } = await ask(ledger, { usd: 1 });
    const { permission } = await start(ledger, recorded.eventId);
    expect(await codeOf(start(ledger, recorded.eventId))).toBe('AUTHORIZATION_STARTED');
    const { eventId } = await ledger.append({ event: draftExecution(permission, used({ usd: '0.5' })) });
    expect(await codeOf(start(ledger, recorded.eventId))).toBe('AUTHORIZATION_REUSED');
    expect(await ledger.inspect(listOpenStarts)).toEqual([]);
    const [, , , begun, execution] = readRecords(path).map(({ event }) => event);
    expect(begun).toMatchObject({
      event_type: 'x.northroot.start',
      auth_event_id: { b64: recorded.eventId.slice('sha-256:'.length) },
      tool_name: 'fs.read',
      tool_params_digest: PARAMS,
      started_at: NOON,
      meter_known: [],
    });
    expect(execution?.['prev_event_id']).toEqual(begun?.event_id);
    expect(`sha-256:${execution?.event_id.b64}`).toBe(eventId);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 5 });
  });

  it('of eight at once lets one through', async () => {
    const { ledger } = await make(grant());
    const { recorded } = await ask(ledger);
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => start(ledger, recorded.eventId)));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is taken over once, and settled as used', async () => {
    const { ledger, path } = await make(grant());
    const { recorded } = await ask(ledger, { usd: 1 });
    const first = (await start(ledger, recorded.eventId)).recorded.eventId;
    const second = (await start(ledger, recorded.eventId, { start: first, now: LATER })).recorded.eventId;
    expect(await codeOf(start(ledger, recorded.eventId, { start: first, now: LATER }))).toBe(
      'START_NOT_FOUND',
    );
    expect((await ledger.inspect(listOpenStarts)).map(({ eventId }) => eventId)).toEqual([second]);
    expect((await verifyLedger(path)).open_starts).toMatchObject([{ event_id: second, started_at: LATER }]);
    const done = { endedAt: LATER, isRelease: true };
    const permission = await ledger.inspect((state) =>
      findPermission(state, recorded.eventId, { now: LATER, start: true, done }),
    );
    await ledger.append({ event: draftSettlement(permission, LATER) });
    expect(await ledger.inspect(listOpenStarts)).toEqual([]);
    expect(await verifyLedger(path)).not.toHaveProperty('open_starts');
    const last = readRecords(path).at(-1)?.event;
    expect(last).toMatchObject({ outcome: 'unknown', meter_used: meters({ usd: 1 }) });
    // The first try, and the second.
    expect((await ask(ledger, { usd: 4 }, LATER)).decisionCode).toBe('RESERVATION_OVER_CAP');
    expect((await ask(ledger, { usd: 3 }, LATER)).decision).toBe('allow');
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
  });

  it('is settled as used where that is said', async () => {
    const { ledger, path } = await make(grant());
    const { recorded } = await ask(ledger, { usd: 1 });
    await start(ledger, recorded.eventId);
    const done = { endedAt: LATER, isRelease: true };
    const permission = await ledger.inspect((state) =>
      findPermission(state, recorded.eventId, { now: LATER, start: true, done }),
    );
    await ledger.append({ event: draftSettlement(permission, LATER, meters({ usd: 1 })) });
    expect(readRecords(path).at(-1)?.event).toMatchObject({
      outcome: 'unknown',
      started_at: NOON,
      ended_at: LATER,
      meter_used: meters({ usd: 1 }),
    });
    expect((await ask(ledger, { usd: 5 }, LATER)).decisionCode).toBe('RESERVATION_OVER_CAP');
  });

  it('is for the parameters that were authorized', async () => {
    const { ledger, path } = await make(grant());
    const { recorded } = await ask(ledger);
    const other = { paramsDigest: digestOf('others') };
    expect(await codeOf(start(ledger, recorded.eventId, other))).toBe('TOOL_PARAMS_MISMATCH');
    expect(readRecords(path)).toHaveLength(3);
  });
});

describe('a start under a grant', () => {
  it('holds what it is known to use, for recorders and for whoever asks', async () => {
    const { ledger, ids } = await make(grant({ meter_caps: meters({ calls: 1 }) }));
    const [id = ''] = ids;
    const { permission } = await start(ledger, id, underGrant);
    expect(await codeOf(start(ledger, id, underGrant))).toBe('METER_CAP_EXCEEDED');
    const denied = await ask(ledger, { calls: 1 });
    expect(denied).toMatchObject({
      decisionCode: 'RESERVATION_OVER_CAP',
      bound: { grantId: id, unit: 'calls', limit: int(1), used: int(1), left: int(0) },
    });
    await ledger.append({ event: draftExecution(permission, used({})) });
    // It used none after all.
    expect((await ask(ledger, { calls: 1 })).decision).toBe('allow');
  });

  it.each<[string, object, string]>([
    ['its rate', { rate_limits: [{ unit: 'calls.per_min', amount: int(1) }] }, 'RATE_LIMIT_EXCEEDED'],
    ['the rate of a unit', { rate_limits: [{ unit: 'usd.per_5h', amount: int(3) }] }, 'RATE_LIMIT_EXCEEDED'],
    ['that it goes on', { concurrency_limit: int(1) }, 'CONCURRENCY_EXCEEDED'],
  ])('counts for %s', async (_what, bounds, code) => {
    const { ledger, ids } = await make(grant(bounds));
    const [id = ''] = ids;
    const using = { toolName: 'fs.read', meterUsed: meters({ calls: 1, usd: 2 }) };
    await start(ledger, id, using);
    expect(await codeOf(start(ledger, id, using))).toBe(code);
    expect((await ask(ledger, { usd: 2 })).decisionCode).toBe(code);
    // At the end of its windows it goes on.
    const muchLater = '2026-03-01T17:00:00Z';
    const isOver = code === 'RATE_LIMIT_EXCEEDED';
    expect((await ask(ledger, { usd: '0.5' }, muchLater)).decision).toBe(isOver ? 'allow' : 'deny');
  });

  it('counts under every grant above, and under no other', async () => {
    const { ledger, ids } = await make(grant({ meter_caps: meters({ calls: 2 }) }), grant());
    const [root = '', other = ''] = ids;
    const { authorization, ...rest } = grant({ meter_caps: meters({ calls: 2 }) }) as {
      authorization: object;
    };
    const parent = { alg: 'sha-256', b64: root.slice('sha-256:'.length) };
    const event = {
      ...rest,
      principal_id: 'agent:a2',
      authorization: { ...authorization, grant_event_id: parent },
    };
    const child = (await ledger.append({ event })).eventId;
    await start(ledger, child, { toolName: 'fs.read', meterUsed: meters({ calls: 2 }) });
    expect(await codeOf(start(ledger, root, underGrant))).toBe('METER_CAP_EXCEEDED');
    await start(ledger, other, underGrant);
    const [accounts, budgets] = await ledger.inspect((state) => [
      [...reserveAllStarted(state, listGrants(state))],
      listBudgets(state),
    ]);
    const reserved = accounts.map(({ balances }) => balances.map((each) => each.reserved));
    expect(reserved).toEqual([[int(2)], [int(1), int(0)], [int(2)]]);
    expect(budgets.map(({ balances }) => balances.map((each) => each.reserved))).toEqual(reserved);
    expect(budgets.map(({ started }) => started.map(({ grantId }) => grantId))).toEqual([
      [child],
      [other],
      [child],
    ]);
  });

  it('is settled as one of which nobody knows how it ended', async () => {
    const { ledger, path, ids } = await make(grant({ concurrency_limit: int(1) }));
    const [id = ''] = ids;
    const { recorded } = await start(ledger, id, underGrant);
    const settle = {
      now: LATER,
      start: recorded.eventId.slice(0, 20),
      done: { endedAt: LATER, isRelease: true },
    };
    const permission = await ledger.inspect((state) => findPermission(state, id, settle));
    await ledger.append({ event: draftSettlement(permission, LATER, meters({ usd: 1 })) });
    expect(readRecords(path).at(-1)?.event).toMatchObject({
      outcome: 'unknown',
      started_at: NOON,
      ended_at: LATER,
      meter_used: meters({ calls: 1, usd: 1 }),
    });
    expect((await ask(ledger, {}, LATER)).decision).toBe('allow');
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
  });

  it('has to be named where there are several', async () => {
    const { ledger, ids } = await make(grant());
    const [id = ''] = ids;
    const [first, second] = [await start(ledger, id, underGrant), await start(ledger, id, underGrant)];
    expect(await codeOf(start(ledger, id, { ...underGrant, start: true }))).toBe('START_AMBIGUOUS');
    await start(ledger, id, { start: String(second.recorded.seq), now: LATER });
    expect((await ledger.inspect(listOpenStarts))[0]?.eventId).toBe(first.recorded.eventId);
    expect(await ledger.inspect(listOpenStarts)).toHaveLength(2);
  });
});

describe('a start that counts for nothing', () => {
  const b64 = (id: string) => ({ alg: 'sha-256', b64: id.slice('sha-256:'.length) });
  const fake = (id: string, members: object = {}): object => ({
    event_type: 'x.northroot.start',
    principal_id: 'agent:a1',
    occurred_at: NOON,
    intents: { intent_digest: INTENT },
    auth_event_id: b64(id),
    tool_name: 'fs.read',
    tool_params_digest: PARAMS,
    started_at: NOON,
    meter_known: meters({ calls: 10 }),
    recorder: 'AAAAAAAAAAAAAAAA',
    ...members,
  });

  it('does, as it stands, where it is right', async () => {
    const { ledger, ids } = await make(grant());
    await ledger.append({ event: fake(ids[0] ?? '') });
    expect((await ask(ledger, { calls: 1 })).decisionCode).toBe('RESERVATION_OVER_CAP');
  });

  it.each<[string, object]>([
    ['another principal', { principal_id: 'agent:a2' }],
    ['no recorder', { recorder: 'me' }],
    ['a negative amount', { meter_known: [{ unit: 'calls', amount: int(-1) }] }],
    ['a time that is none', { started_at: 'noon' }],
    ['no tool', { tool_name: 'fs read' }],
    ['an authorization that is not there', { auth_event_id: digestOf('nothing') }],
  ])('has %s', async (_what, members) => {
    const { ledger, ids } = await make(grant());
    await ledger.append({ event: fake(ids[0] ?? '', members) });
    expect(await ledger.inspect(listOpenStarts)).toEqual([]);
    expect((await ask(ledger, { calls: 10 })).decision).toBe('allow');
  });

  it('is of an action, with another tool or other parameters, or a second one', async () => {
    const { ledger } = await make(grant());
    const { recorded } = await ask(ledger);
    await ledger.append({ event: fake(recorded.eventId, { tool_name: 'fs.write' }) });
    await ledger.append({ event: fake(recorded.eventId, { tool_params_digest: digestOf('others') }) });
    const { eventId } = (await start(ledger, recorded.eventId)).recorded;
    await ledger.append({ event: fake(recorded.eventId) });
    expect((await ledger.inspect(listOpenStarts)).map((each) => each.eventId)).toEqual([eventId]);
  });

  it.each<[string, readonly Signer[], number]>([
    ['nobody', [], 0],
    ['a key that is not known', [unknown], 0],
    ['a key of agent:a2 alone', [stranger], 0],
    ['a key of the principal', [signer], 1],
    ['the same, beside one that is not known', [unknown, signer], 1],
  ])('is signed, where records must be, by %s', async (_what, signers, count) => {
    const first = kit.genesis([kit.keyOf(signer), kit.keyOf(stranger, { principals: ['agent:a2'] })], {
      signing: { events: 'required', checkpoints: 'optional' },
    });
    const granted = kit.event('authorization', grant());
    const begun = kit.event('x.northroot.start', fake(`sha-256:${granted.event_id.b64}`));
    const bytes = kit.ledger(
      { event: first, signers: [signer] },
      { event: granted, signers: [signer] },
      { event: begun, signers },
    );
    const path = join(temporaryFolder(), 'ledger.jsonl');
    writeFileSync(path, bytes);
    const state = await replayTo(await openLedgerSource(path), 'end');
    expect(listOpenStarts(state)).toHaveLength(count);
  });

  it('is one of more than are remembered: then nothing is started any more under that grant', () => {
    const state = emptyState();
    const bounds = { allowed_tools: ['*'], meter_caps: [{ unit: 'usd', amount: int(1) }] };
    const [one = '', two = ''] = ['agent:a1', 'agent:a2'].map(
      (principal) => feed(state, grantEvent({ principal, at: GRANTED, bounds })).id,
    );
    for (let n = 0; n < MAX_OPEN_STARTS + 5; n += 1) {
      feed(state, {
        auth_event_id: b64(one),
        canonical_profile_id: 'northroot-jcs-v1',
        event_type: 'x.northroot.start',
        event_version: '1',
        intents: { intent_digest: INTENT },
        meter_known: [],
        occurred_at: NOON,
        principal_id: 'agent:a1',
        recorder: `recorder-${String(n).padStart(8, '0')}`,
        started_at: NOON,
        tool_name: 'fs.read',
      });
    }
    expect(listOpenStarts(state)).toHaveLength(MAX_OPEN_STARTS);
    const asked = { now: NOON, toolName: 'fs.read' };
    expect(() => findPermission(state, one, asked)).toThrow(
      expect.objectContaining({ code: 'STARTS_UNSETTLED' }),
    );
    expect(findPermission(state, two, asked).authorizationId).toBe(two);
    const { state: restored } = restoreVerification(saveVerification({ state, findings: [] }));
    expect(listOpenStarts(restored)).toEqual(listOpenStarts(state));
  });
});

describe('an open ledger', () => {
  it('decides for many in one process without opening it again', async () => {
    const { ledger, path } = await make(grant());
    const answers = await Promise.all(Array.from({ length: 16 }, () => ask(ledger, { calls: 1 })));
    expect(answers.filter(({ decision }) => decision === 'allow')).toHaveLength(10);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 18 });
  });

  it('verifies all of itself before it decides, also where that was not asked for', async () => {
    const { ledger, path } = await make(grant());
    await ledger.close();
    const other = await open(path);
    expect((await ask(other)).decision).toBe('allow');
    await expect(
      authorizeAction(other, REQUEST, { trust: { trust_version: '1', keys: [] } }),
    ).rejects.toThrow(TypeError);
  });

  it('decides by the trust policy that it was opened with', async () => {
    const { ledger, path } = await make(grant());
    const keys = await ledger.listKeys();
    await ledger.close();
    const pinned = await open(path, { decides: true, trust: { trust_version: '1', keys } });
    expect((await ask(pinned)).decision).toBe('allow');
    await pinned.close();
    const require = { event_signatures: 'required' as const };
    const other = await open(path, { decides: true, trust: { trust_version: '1', keys: [], require } });
    expect(await codeOf(ask(other))).toBe('LEDGER_INVALID');
  });

  it('decides nothing where a grant is not signed by its authority, whatever the ledger says of its keys', async () => {
    const { ledger, path } = await make(grant());
    const keys = (await ledger.listKeys()).map((key) => ({ ...key, roles: ['event' as const] }));
    await ledger.close();
    const authority = { ...kit.keyOf(stranger), roles: ['authority' as const] };
    const trust = { trust_version: '1' as const, keys: [...keys, authority] };
    expect(await codeOf(authorizeAction(path, REQUEST, { signer, trust }))).toBe('LEDGER_INVALID');
    expect((await authorizeAction(path, REQUEST, { signer })).decision).toBe('allow');
  });

  it('goes on after a decision that was not made', async () => {
    const { ledger } = await make(grant());
    const broken = new Error('no');
    const failing = ledger.decide(() => {
      throw broken;
    });
    const fine = ask(ledger);
    await expect(failing).rejects.toBe(broken);
    expect((await fine).decision).toBe('allow');
  });
});

describe('a decision with its start', () => {
  const begin = (ledger: Ledger, more: Partial<ActionRequest> = {}, at = NOON) =>
    authorizeAndStart(
      ledger,
      { ...REQUEST, meters: meters({ usd: 1 }), ...more },
      { meterUsed: meters({ calls: 1 }), now: at },
    );

  it('is on disk with it, and is settled as any other', async () => {
    const { ledger, path } = await make(grant());
    const { decision, recorded, started, refusal } = await begin(ledger);
    expect({ decision, refusal }).toEqual({ decision: 'allow', refusal: undefined });
    expect(started).toMatchObject({ startedAt: NOON, recorded: { seq: recorded.seq + 1 } });
    const { permission } = started!;
    expect(permission).toMatchObject({
      authorizationId: recorded.eventId,
      startId: started!.recorded.eventId,
    });
    expect(await codeOf(start(ledger, recorded.eventId))).toBe('AUTHORIZATION_STARTED');
    await ledger.append({ event: draftExecution(permission, used({ usd: '0.5', calls: 1 })) });
    expect(await ledger.inspect(listOpenStarts)).toEqual([]);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 5, codes: [] });
  });

  it('is without one where it denies, and where the start is refused', async () => {
    const { ledger, path } = await make(grant());
    const denied = await begin(ledger, { toolName: 'net.get' });
    expect(denied).toMatchObject({ decision: 'deny', decisionCode: 'TOOL_NOT_ALLOWED' });
    expect(denied).not.toHaveProperty('started');
    const late = await begin(ledger, { expiresAt: LATER }, LATER);
    expect(late).toMatchObject({ decision: 'allow', refusal: { code: 'ACTION_EXPIRED' } });
    expect(late).not.toHaveProperty('started');
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 4 });
  });

  it('is begun once for a request key', async () => {
    const { ledger } = await make(grant());
    const { recorded } = await authorizeAction(ledger, { ...REQUEST, requestKey: 'once' });
    const second = await begin(ledger, { requestKey: 'once' });
    expect(second).toMatchObject({
      decision: 'allow',
      recorded: { eventId: recorded.eventId, status: 'exists' },
    });
    expect(second.started?.permission.authorizationId).toBe(recorded.eventId);
    const third = await begin(ledger, { requestKey: 'once' });
    expect(third).toMatchObject({ decision: 'allow', refusal: { code: 'AUTHORIZATION_STARTED' } });
    expect(third).not.toHaveProperty('started');
  });
});

describe('an unsound grant', () => {
  it('is nothing to act under, nor is what hangs below it', async () => {
    const checks = [{ check: 'human', result: 'fail', code: 'NO' }];
    const { ledger, ids } = await make(grant({}, { checks }));
    const [root = ''] = ids;
    const { authorization, ...rest } = grant() as { authorization: object };
    const grant_event_id = { alg: 'sha-256', b64: root.slice('sha-256:'.length) };
    const child = (
      await ledger.append({ event: { ...rest, authorization: { ...authorization, grant_event_id } } })
    ).eventId;
    for (const id of [root, child]) {
      const answer = await authorizeAction(ledger, { ...REQUEST, grantId: id });
      expect(answer).toMatchObject({ decisionCode: 'GRANT_UNSOUND', bound: { grantId: root } });
      expect(await codeOf(start(ledger, id, underGrant))).toBe('GRANT_UNSOUND');
    }
  });
});

describe('what is written', () => {
  it('names the intent of the grant where its own is another', async () => {
    const userIntent = digestOf('what the user said');
    const linked = { intents: { intent_digest: INTENT, user_intent_digest: userIntent } };
    const { ledger, path } = await make(grant({}, linked), grant({}, { principal_id: 'agent:a2' }));
    const step = { ...REQUEST, intentDigest: digestOf('a step') };
    await authorizeAction(ledger, step);
    await authorizeAction(ledger, { ...step, principalId: 'agent:a2' });
    await authorizeAction(ledger, REQUEST);
    const other = await authorizeAction(ledger, { ...step, userIntentDigest: digestOf('another') });
    expect(other.decisionCode).toBe('INTENT_MISMATCH');
    const intents = readRecords(path).map(({ event }) => event['intents']);
    expect(intents.slice(3, 6)).toEqual([
      { intent_digest: step.intentDigest, user_intent_digest: userIntent },
      { intent_digest: step.intentDigest, user_intent_digest: INTENT },
      { intent_digest: INTENT },
    ]);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
  });
});

describe('a decision by a bound', () => {
  it.each<[string, object, Partial<ActionRequest>, object]>([
    ['not_before', { not_before: LATER }, {}, { code: 'GRANT_NOT_YET_VALID' }],
    [
      'an action cap',
      { action_caps: meters({ usd: 1 }) },
      { meters: meters({ usd: 2 }) },
      { code: 'ACTION_CAP_EXCEEDED', unit: 'usd', limit: int(1), left: int(1) },
    ],
    [
      'a resource',
      { resources: [{ kind: 'file', reference: '/a' }] },
      { resources: [{ kind: 'file', reference: '/b' }] },
      { code: 'RESOURCE_NOT_GRANTED' },
    ],
  ])('says which: %s', async (_what, bounds, request, bound) => {
    const { ledger, ids } = await make(grant(bounds));
    const answer = await authorizeAction(ledger, { ...REQUEST, ...request });
    expect(answer).toMatchObject({ decision: 'deny', bound: { grantId: ids[0], ...bound } });
  });

  it('says what is used up, and what is overspent', async () => {
    const { ledger, ids } = await make(grant());
    const [id = ''] = ids;
    const spend = async (amounts: MeterVector) => {
      const permission = await ledger.inspect((state) =>
        findPermission(state, id, {
          ...{ now: NOON, toolName: 'fs.read', meterUsed: amounts },
          done: { endedAt: NOON, isRelease: false },
        }),
      );
      await ledger.append({ event: draftExecution(permission, { ...used({}), meterUsed: amounts }) });
      return (await ledger.inspect((state) => findSpent(state, id, amounts))).map(({ unit, isOverspent }) => [
        unit,
        isOverspent,
      ]);
    };
    expect(await spend(meters({ usd: '4.5', calls: 1 }))).toEqual([]);
    expect(await spend(meters({ usd: '0.5', calls: 1 }))).toEqual([['usd', false]]);
    expect(await spend(meters({ usd: '0.01', calls: 1 }))).toEqual([['usd', true]]);
  });

  it('never lowers what was measured', () => {
    const measured = meters({ calls: 1, 'time.ms': 300 });
    expect(raiseMeters(measured, meters({ 'time.ms': 7, usd: 1 }))).toEqual(
      meters({ calls: 1, 'time.ms': 300, usd: 1 }),
    );
    expect(raiseMeters(measured, meters({ calls: 3 }))).toEqual(meters({ calls: 3, 'time.ms': 300 }));
  });
});

describe('whatever is asked, begun, finished and given up', () => {
  it.each([1, 2, 3, 4])('breaks no bound (%i)', async (seed) => {
    let random = seed;
    const below = (n: number): number => {
      random = (random * 48_271) % 2_147_483_647;
      return random % n;
    };
    const bounds = {
      meter_caps: meters({ calls: 25, usd: 20 }),
      rate_limits: [
        { unit: 'calls.per_min', amount: int(4) },
        { unit: 'usd.per_5m', amount: int(5) },
      ],
      concurrency_limit: int(3),
    };
    const { ledger, path, ids } = await make(grant(bounds));
    const [id = ''] = ids;
    let clock = Date.parse(NOON);
    const now = (): string => new Date(clock).toISOString();
    const actions: string[] = [];
    const running: Awaited<ReturnType<typeof start>>[] = [];
    const outcomes = new Map<string, number>();
    const count = (what: string): unknown => outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
    for (let step = 0; step < 120; step += 1) {
      clock += below(20_000);
      const usd = below(4);
      const kind = below(5);
      const [action] = actions;
      if (kind === 0) {
        const answer = await ask(ledger, { calls: 1, usd }, now());
        count(`authorize ${answer.decisionCode}`);
        if (answer.decision === 'allow') actions.push(answer.recorded.eventId);
      } else if (kind === 1 || (kind === 2 && action === undefined)) {
        const begun = start(ledger, id, {
          toolName: 'fs.read',
          meterUsed: meters({ calls: 1, usd }),
          now: now(),
        });
        await begun.then(
          (started) => running.push(started),
          (error: { code: string }) => count(`start ${error.code}`),
        );
      } else if (kind === 2 && action !== undefined) {
        await start(ledger, action, { meterUsed: meters({ calls: 1 }), now: now() }).then(
          (started) => {
            actions.shift();
            running.push(started);
          },
          (error: { code: string }) => count(`start of an action ${error.code}`),
        );
      } else if (running.length > 0) {
        const [{ permission, startedAt }] = running.splice(below(running.length), 1) as [
          (typeof running)[number],
        ];
        const { kind: of } = permission;
        if (kind === 3) {
          await ledger.append({ event: draftSettlement(permission, now()) });
          count(`gave up ${of}`);
          continue;
        }
        const reserved =
          (await reservedBy(ledger, permission.authorizationId)) ?? permission.started?.meters ?? [];
        const outcome = { startedAt, endedAt: now(), meterUsed: reserved, outcome: 'success' } as const;
        await ledger.append({ event: draftExecution(permission, outcome) });
        count(`finished ${of}`);
      }
    }
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok' });
    expect(outcomes.size).toBeGreaterThan(4);
  });
});

it('is signed by who signs its execution, so that what begins as one call need not be tried as that', () => {
  const ruleOf = (type: string, hasAuthority: boolean): unknown =>
    signingRuleFor({ event_type: type, principal_id: 'agent:a1' }, { hasAuthority });
  for (const hasAuthority of [false, true])
    expect(ruleOf(START_TYPE, hasAuthority)).toEqual(ruleOf('execution', hasAuthority));
  expect(() => {
    (ONE_CALL_USED as unknown[]).push(ONE_CALL_USED[0]);
  }).toThrow(TypeError);
});

/** All that an action has reserved. */
async function reservedBy(ledger: Ledger, id: string): Promise<MeterVector | undefined> {
  const action = await ledger.inspect((state) => state.links.actions.get(id.slice('sha-256:'.length)));
  return action && [...action.reservation].map(([unit, amount]) => ({ unit, amount: fromRational(amount) }));
}
