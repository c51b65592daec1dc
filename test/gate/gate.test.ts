/** The gate: decides before calls, settles after them, and knows each by its host's id. */

import { systemClock } from '../../src/base/clock.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readContent } from '../../src/log/contents/content-folder.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { type Digest, sha256Digest } from '../../src/base/value/digest.js';
import type { GateCall } from '../../src/gate/gate.js';
import { AGENT, filePlace, leftOf, memoryPlace, usedBy } from '../agent/support.js';
import { collectingGarbage } from '../collect-garbage.js';
import { codeOf, errorOf } from '../writer/support.js';
import { openGate, reopen } from './support.js';

const READ: GateCall = { ref: 'c1', tool: 'fs.read', params: { path: '/x' } };

function checksOf(event: unknown): { check: string; result: string; code?: string }[] {
  return (event as { checks: { check: string; result: string; code?: string }[] }).checks;
}

describe.each([
  ['in memory', memoryPlace],
  ['in a file', filePlace],
])('a gate over a ledger %s', (_, makePlace) => {
  it('allows, begins and settles: three records, and what was not used is given back', async () => {
    const place = makePlace();
    const { gate, grantId } = await openGate(place);
    const decision = await gate.decide({ ...READ, reserve: { usd: '0.4' } });
    expect(decision).toMatchObject({ effect: 'allow', code: 'ALLOW', ref: 'c1', isRepeated: false });
    expect(decision.remaining['usd']).toMatchObject({ cap: '1', reserved: '0.4', left: '0.6' });
    expect(gate.listOpen()).toMatchObject([{ ref: 'c1', principal: AGENT, start: decision.start }]);
    const settled = await gate.settle('c1', {
      outcome: 'success',
      used: { usd: '0.1' },
      output: { ok: true },
      meterBasis: 'reported',
    });
    expect(settled.authorization).toBe(decision.authorization);
    expect(settled.recorded?.verdict).toBe('ok');
    expect(gate.listOpen()).toEqual([]);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.9');
    const kinds = place.events().map(({ event_type: type }) => type);
    expect(kinds.slice(-3)).toEqual(['authorization', 'x.northroot.start', 'execution']);
    const execution = place.events().at(-1);
    expect(usedBy(execution)).toMatchObject({ usd: '0.1', calls: '1' });
    expect(execution).toMatchObject({ outcome: 'success', meter_basis: 'reported' });
    expect(checksOf(place.events().at(-3))[0]).toEqual({ check: 'coverage', result: 'pass', code: 'SDK' });
    expect(await place.verdict()).toBe('ok');
  });

  it('counts what runs on another machine, whose clock is ahead', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 20 }, concurrencyLimit: 1 });
    const ahead = await reopen(place, { now: () => new Date(Date.now() + 60_000).toISOString() });
    expect(await ahead.decide({ ...READ, ref: 'a' })).toMatchObject({ effect: 'allow' });
    expect(await gate.decide({ ...READ, ref: 'b' })).toMatchObject({
      effect: 'deny',
      code: 'CONCURRENCY_EXCEEDED',
    });
    await ahead.release('a');
    expect(await place.verdict()).toBe('ok');
  });

  it('dates records in the order of the ledger, however many calls are at once', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 20 } });
    await gate.close();
    let ms = Date.now();
    // Each look at the clock is later than the one before.
    const ticking = await reopen(place, { now: () => new Date((ms += 10)).toISOString() });
    const names = [1, 2, 3, 4];
    await Promise.all(names.map((n) => ticking.decide({ ...READ, ref: `a${n}` })));
    await Promise.all(
      names.flatMap((n) => [
        ticking.decide({ ...READ, ref: `b${n}` }),
        ticking.settle(`a${n}`, { outcome: 'success' }),
      ]),
    );
    const events = place.events() as unknown as { occurred_at: string; ended_at?: string }[];
    const dates = events.map(({ occurred_at: at }) => at);
    expect(dates).toEqual(dates.toSorted());
    const ended = events.filter(({ ended_at: end }) => end !== undefined);
    expect(ended).toHaveLength(4);
    for (const { occurred_at: at, ended_at: end = '' } of ended) expect(end < at).toBe(true);
    expect(await place.verdict()).toBe('ok');
  });

  it('denies, and tells why and by which bound', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 1 } });
    await gate.decide(READ);
    const second = await gate.decide({ ...READ, ref: 'c2' });
    expect(second).toMatchObject({ effect: 'deny', code: 'RESERVATION_OVER_CAP', start: undefined });
    expect(second.bound).toMatchObject({ unit: 'calls', left: { t: 'int', v: '0' } });
    expect((await gate.decide({ ...READ, ref: 'c3', tool: 'net.get' })).code).toBe('TOOL_NOT_ALLOWED');
    expect(await codeOf(gate.settle('c2', { outcome: 'success' }))).toBe('CALL_NOT_FOUND');
    expect(await place.verdict()).toBe('ok');
  });

  it('gives the same call the same answer, here and in another process, and records nothing', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 1 } });
    const [first, same] = await Promise.all([gate.decide(READ), gate.decide(READ)]);
    const size = place.events().length;
    const other = await reopen(place);
    const answers = [same, await gate.decide(READ), await other.decide(READ)];
    for (const answer of answers)
      expect(answer).toMatchObject({
        effect: 'allow',
        authorization: first.authorization,
        start: first.start,
        expires: first.expires,
        isRepeated: true,
      });
    const denied = await gate.decide({ ...READ, ref: 'c2' });
    expect(await gate.decide({ ...READ, ref: 'c2' })).toEqual({ ...denied, isRepeated: true });
    expect(place.events()).toHaveLength(size + 1);
  });

  it('decides again on a denied call that others have made room for, or approved', async () => {
    const place = makePlace();
    const rule = { tools: ['fs.*'], approvers: ['human:*'], above: { usd: '5' } };
    const { gate } = await openGate(place, { meterCaps: { calls: 9, usd: '10' }, approvals: [rule] });
    const small = { ...READ, reserve: { usd: '4' } };
    for (const ref of ['c1', 'c2']) await gate.decide({ ...small, ref });
    expect((await gate.decide({ ...small, ref: 'c3' })).code).toBe('RESERVATION_OVER_CAP');
    await gate.settle('c1', { outcome: 'success', used: { usd: '1' } });
    expect(await gate.decide({ ...small, ref: 'c3' })).toMatchObject({ effect: 'allow', isRepeated: false });
    await gate.settle('c3', { outcome: 'success', used: { usd: '0' } });
    await gate.settle('c2', { outcome: 'success', used: { usd: '0' } });
    const large = { ...READ, ref: 'c4', reserve: { usd: '9' } };
    const owner = { principalId: 'human:olga' };
    const rejected = await gate.decide(large, {
      waitMs: 600_000,
      onApprovalNeeded: ({ recorded }) => void gate.ledger.reject(recorded.eventId, owner),
    });
    expect(rejected.code).toBe('APPROVAL_REJECTED');
    expect(await gate.decide(large)).toEqual({ ...rejected, isRepeated: true });
    await gate.ledger.approve(rejected.authorization, owner);
    expect((await gate.decide(large)).effect).toBe('allow');
    expect(await place.verdict()).toBe('ok');
  });

  it('records what the asker found, which can deny and not allow', async () => {
    const place = makePlace();
    const { gate } = await openGate(place);
    const check = { check: 'own', result: 'pass', code: 'OWN' } as const;
    expect((await gate.decide({ ...READ, found: { checks: [check] } })).effect).toBe('allow');
    expect(checksOf(place.events()[2])).toContainEqual(check);
    const denial = { code: 'OWN_REASON', reason: 'because' };
    const denied = await gate.decide({ ...READ, ref: 'c2', found: { checks: [], denial } });
    expect(denied).toMatchObject({ effect: 'deny', code: 'OWN_REASON', reason: 'because' });
    const nine = Array.from({ length: 9 }, () => check);
    await expect(gate.decide({ ...READ, ref: 'c3', found: { checks: nine } })).rejects.toThrow(RangeError);
    expect(await place.verdict()).toBe('ok');
  });

  it('refuses an id with another tool or other parameters', async () => {
    const place = makePlace();
    const { gate } = await openGate(place);
    const asked = gate.decide(READ);
    expect(await codeOf(gate.decide({ ...READ, params: { path: '/y' } }))).toBe('REQUEST_CONFLICT');
    await asked;
    expect(await codeOf(gate.decide({ ...READ, tool: 'fs.write' }))).toBe('REQUEST_CONFLICT');
    const other = await reopen(place);
    expect(await codeOf(other.decide({ ...READ, params: {} }))).toBe('REQUEST_CONFLICT');
    // What an id is unique in tells calls apart.
    expect((await gate.decide({ ...READ, session: 's', params: {} })).effect).toBe('allow');
  });

  it('another process settles what one that is gone has allowed, once', async () => {
    const place = makePlace();
    const { gate, grantId } = await openGate(place);
    const call = { ...READ, session: 'one', reserve: { usd: '0.5' } };
    await gate.decide(call);
    await gate.close();
    const other = await reopen(place);
    const { recorded } = await other.settle(call, { outcome: 'failure', errorCode: 'EIO' });
    expect(recorded?.verdict).toBe('ok');
    expect(await leftOf(other.ledger, grantId, 'usd')).toBe('1');
    expect((await other.settle(call, { outcome: 'success' })).recorded).toBeUndefined();
    expect((await other.release(call)).recorded).toBeUndefined();
    expect((await other.decide(call)).code).toBe('AUTHORIZATION_REUSED');
    expect(await place.verdict()).toBe('ok');
  });

  it('releases what was not begun; what was begun is charged', async () => {
    const place = makePlace();
    const { gate, grantId } = await openGate(place);
    await gate.decide({ ...READ, reserve: { usd: '0.5' }, start: false });
    await gate.release('c1');
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('1');
    await gate.decide({ ...READ, ref: 'c2', reserve: { usd: '0.5' } });
    await gate.release('c2');
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.5');
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
    expect(await place.verdict()).toBe('ok');
  });

  it('a released call may be asked for again, under another key, and only so often', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 100 } });
    const call = { ...READ, start: false };
    for (let n = 0; n < 16; n += 1) {
      expect((await gate.decide(call)).effect).toBe('allow');
      await gate.release('c1');
    }
    const keys = place
      .events()
      .flatMap(({ authorization }) => (authorization?.action as { request_key?: string })?.request_key ?? []);
    expect(keys).toEqual(['c1', ...Array.from({ length: 15 }, (_, n) => `c1/${n + 2}`)]);
    expect((await gate.decide(call)).code).toBe('AUTHORIZATION_REUSED');
    expect(await place.verdict()).toBe('ok');
  });

  it('tells calls without an id apart by their order, oldest first', async () => {
    const place = makePlace();
    const { gate } = await openGate(place);
    const call = { tool: 'fs.read', params: { path: '/x' }, session: 's', start: false };
    const [first, second] = [await gate.decide(call), await gate.decide(call)];
    expect(first.authorization).not.toBe(second.authorization);
    const other = await reopen(place);
    expect((await other.settle(call, { outcome: 'success' })).authorization).toBe(first.authorization);
    expect((await other.settle(call, { outcome: 'success' })).authorization).toBe(second.authorization);
    expect(await codeOf(other.settle(call, { outcome: 'success' }))).toBe('CALL_NOT_FOUND');
    const third = await other.decide(call);
    expect((await other.settle(third.ref, { outcome: 'success' })).authorization).toBe(third.authorization);
    expect(await place.verdict()).toBe('ok');
  });

  it('records what ran after its reservation was given back', async () => {
    const place = makePlace();
    let now = Date.parse('2026-03-01T00:00:00Z');
    await (
      await openGate(place, { meterCaps: { calls: 10 }, occurredAt: '2026-03-01T00:00:00Z' })
    ).gate.close();
    const gate = await reopen(place, { now: () => new Date(now).toISOString() });
    await gate.decide({ ...READ, start: false, ttlMs: 1_000 });
    now += 2_000;
    // The next decision releases what has expired.
    await gate.decide({ ...READ, ref: 'c2' });
    const { recorded } = await gate.settle('c1', { outcome: 'success' });
    expect(recorded?.findings.map(({ code }) => code)).toContain('AUTHORIZATION_REUSED');
    expect(await place.verdict()).toBe('violation');
  });

  it('records what ran with other parameters as a violation, once, and goes on deciding', async () => {
    const place = makePlace();
    const { gate, grantId } = await openGate(place);
    const ran = sha256Digest(canonicalBytes({ path: '/etc' }));
    await gate.decide({ ...READ, reserve: { usd: '0.4' } });
    const settled = await gate.settle('c1', { outcome: 'success', paramsDigest: ran, used: { usd: '0.1' } });
    expect(settled.recorded?.verdict).toBe('violation');
    expect(settled.recorded?.findings.map(({ code }) => code)).toEqual(['EXECUTION_UNDER_DENY']);
    const [expected, denial, execution] = place.events().slice(-3);
    expect(expected).toMatchObject({ outcome: 'unknown', error_code: 'TOOL_PARAMS_MISMATCH' });
    expect(denial).toMatchObject({ decision: 'deny', decision_code: 'TOOL_PARAMS_MISMATCH' });
    expect(execution).toMatchObject({ outcome: 'success', tool_params_digest: { b64: ran.b64 } });
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.9');
    const records = place.events().length;
    expect(await gate.settle('c1', { outcome: 'success', paramsDigest: ran })).toMatchObject({
      recorded: undefined,
    });
    expect(place.events()).toHaveLength(records);
    const same = sha256Digest(canonicalBytes(READ.params));
    expect((await gate.decide({ ...READ, ref: 'c2' })).effect).toBe('allow');
    const { recorded } = await gate.settle('c2', { outcome: 'success', paramsDigest: same });
    expect(recorded?.verdict).toBe('ok');
    expect(await place.verdict()).toBe('violation');
    await expect(
      gate.settle('c2', { outcome: 'success', paramsDigest: 'sha-256:x' as unknown as Digest }),
    ).rejects.toThrow(TypeError);
  });

  it('in shadow allows all, records what it would have done, and stays ok', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 1 } }, { shadow: true });
    expect((await gate.decide(READ)).shadow).toBeUndefined();
    const second = await gate.decide({ ...READ, ref: 'c2' });
    expect(second).toMatchObject({ effect: 'allow', code: 'RESERVATION_OVER_CAP', shadow: 'deny' });
    expect(await gate.settle('c2', { outcome: 'success' })).toEqual({
      authorization: undefined,
      recorded: undefined,
    });
    await gate.settle('c1', { outcome: 'success' });
    expect(checksOf(place.events().at(-2))).toContainEqual({
      check: 'shadow',
      result: 'pass',
      code: 'SHADOW',
    });
    expect(await place.verdict()).toBe('ok');
  });

  it.each([{ concurrencyLimit: 1 }, { rateLimits: { 'calls.per_min': 1 } }])(
    'records what ran of calls that were not begun, though it broke %o',
    async (bound) => {
      const place = makePlace();
      const { grantId } = await openGate(place, { meterCaps: { usd: '1' }, ...bound });
      let ms = Date.now();
      const gate = await reopen(place, { clock: { ...systemClock, now: () => ms, ticks: () => ms } });
      const refs = ['a', 'b'];
      for (const ref of refs) await gate.decide({ ...READ, ref, start: false, reserve: { usd: '0.5' } });
      ms += 1_000;
      const verdicts: unknown[] = [];
      for (const ref of refs) {
        const { recorded } = await gate.settle(ref, { outcome: 'success', used: { usd: '0.5' } });
        verdicts.push(recorded?.verdict);
      }
      expect(verdicts).toEqual(['ok', 'violation']);
      expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0');
    },
  );

  it('means the last try of a call, whatever it knows of one that another gate gave back', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 9 } });
    const other = await reopen(place);
    for (const ref of ['a', 'b']) {
      await gate.decide({ ...READ, ref, start: false });
      await other.release(ref);
    }
    const again = await other.decide({ ...READ, ref: 'a' });
    await other.settle('a', { outcome: 'success' });
    const size = place.events().length;
    expect(await gate.settle('a', { outcome: 'success' })).toEqual({
      authorization: again.authorization,
      recorded: undefined,
    });
    expect(place.events()).toHaveLength(size);
    const open = await other.decide({ ...READ, ref: 'b', start: false });
    expect(await gate.release('b')).toMatchObject({
      authorization: open.authorization,
      recorded: { status: 'appended' },
    });
    expect(await place.verdict()).toBe('ok');
  });

  it('asks without recording', async () => {
    const place = makePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 1 } });
    const size = place.events().length;
    for (let n = 0; n < 3; n += 1) expect((await gate.ask(READ)).effect).toBe('allow');
    expect(await gate.ask({ ...READ, tool: 'net.get' })).toMatchObject({
      effect: 'deny',
      code: 'TOOL_NOT_ALLOWED',
    });
    expect(place.events()).toHaveLength(size);
  });

  it('waits for an approval, and closing ends the wait', async () => {
    const place = makePlace();
    const rule = { tools: ['fs.*'], approvers: ['human:*'] };
    const { gate } = await openGate(place, { meterCaps: { calls: 9 }, approvals: [rule] });
    const asked = await gate.decide(READ);
    expect(asked).toMatchObject({ effect: 'ask', code: 'APPROVAL_REQUIRED' });
    expect(asked.need).toMatchObject({ approvers: ['human:*'], count: 1 });
    const waiting = gate.decide(READ, {
      waitMs: 60_000,
      onApprovalNeeded: (request) =>
        void gate.ledger.approve(request.recorded.eventId, { principalId: 'human:olga' }),
    });
    expect(await waiting).toMatchObject({ effect: 'allow' });
    const never = gate.decide({ ...READ, ref: 'c9', params: {} }, { waitMs: 60_000 });
    const ended = codeOf(never);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await gate.close();
    expect(await ended).toBe('GATE_CLOSED');
  });
});

it("ends a wait by the caller's time, which nobody else holds on to", async () => {
  const rule = { tools: ['fs.*'], approvers: ['human:*'] };
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 9 }, approvals: [rule] });
  const ended = errorOf(gate.decide(READ, { waitMs: 10_000, signal: AbortSignal.timeout(300) }));
  expect(await collectingGarbage(ended)).toMatchObject({ name: 'TimeoutError' });
});

it('warns of no leak while many wait', async () => {
  const warned: string[] = [];
  const hear = ({ name }: Error): void => void warned.push(name);
  process.on('warning', hear);
  onTestFinished(() => void process.off('warning', hear));
  const rule = { tools: ['fs.*'], approvers: ['human:*'] };
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 99 }, approvals: [rule] });
  const refs = Array.from({ length: 20 }, (_, n) => `c${n}`);
  const waits = refs.map((ref) => gate.decide({ ...READ, ref }, { waitMs: 200 }));
  for (const { effect } of await Promise.all(waits)) expect(effect).toBe('ask');
  expect(warned).not.toContain('MaxListenersExceededWarning');
});

it('lets who asks for the same call leave before who asked first', async () => {
  const rule = { tools: ['fs.*'], approvers: ['human:*'] };
  const { gate } = await openGate(memoryPlace(), { meterCaps: { calls: 9 }, approvals: [rule] });
  const first = gate.decide(READ, { waitMs: 600_000 });
  const leaving = new AbortController();
  const second = errorOf(gate.decide(READ, { waitMs: 600_000, signal: leaving.signal }));
  leaving.abort(new Error('left'));
  expect(await second).toMatchObject({ message: 'left' });
  const [request] = await gate.ledger.requests();
  await gate.ledger.approve(request?.eventId ?? '', { principalId: 'human:olga' });
  expect(await first).toMatchObject({ effect: 'allow' });
});

it('keeps the parameters beside the ledger where asked to', async () => {
  const place = filePlace();
  const { gate } = await openGate(place, { meterCaps: { calls: 9 } }, { attach: true });
  await gate.decide(READ);
  const digest = place.events().at(-2)?.authorization?.action?.tool_params_digest as Digest;
  const kept = await readContent(place.path, digest);
  expect(Buffer.from((kept as { bytes: Uint8Array }).bytes).toString()).toBe('{"path":"/x"}');
});

it('a runaway loop and a hundred calls at once: as many run as the cap allows', async () => {
  const place = filePlace();
  const { gate, grantId } = await openGate(place, { meterCaps: { usd: '1' } });
  let ran = 0;
  const call = async (ref: string): Promise<void> => {
    const { effect } = await gate.decide({ ref, tool: 'fs.read', params: { ref }, reserve: { usd: '0.18' } });
    if (effect !== 'allow') return;
    ran += 1;
    await gate.settle(ref, { outcome: 'success', used: { usd: '0.18' } });
  };
  await Promise.all(Array.from({ length: 100 }, (_, n) => call(`c${n}`)));
  expect(ran).toBe(5);
  expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.1');
  expect(await place.verdict()).toBe('ok');
});

it.each([
  [{ ...READ, tool: 7 }, TypeError],
  [{ ...READ, tool: 'no tool' }, TypeError],
  [{ ...READ, ttlMs: 0 }, RangeError],
  [{ ...READ, coverage: 'all' }, RangeError],
  [{ ...READ, reserve: { usd: '-1' } }, RangeError],
  [{ ...READ, params: () => 1 }, TypeError],
  [{ ...READ, other: 1 }, TypeError],
  [{ ...READ, principal: 'nobody' }, TypeError],
])('refuses the malformed call %o', async (call, kind) => {
  const place = memoryPlace();
  const { gate } = await openGate(place);
  const size = place.events().length;
  await expect(gate.decide(call as GateCall)).rejects.toThrow(kind);
  expect(place.events()).toHaveLength(size);
});
