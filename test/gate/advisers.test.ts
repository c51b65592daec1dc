/** Advisers: they can deny, ask and rewrite, and never allow what the grants do not. */

import { describe, expect, it } from 'vitest';
import type { Adviser, AdviserAnswer } from '../../src/gate/advisers/adviser.js';
import type { GateCall } from '../../src/gate/gate.js';
import { memoryPlace } from '../agent/support.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { unknownRuleText } from '../../src/out/text/request.js';
import { openGate, reopen } from './support.js';

const READ: GateCall = { ref: 'c1', tool: 'fs.read', params: { path: '/x' } };
const BOUNDS = { meterCaps: { calls: 10 } };

function says(answer: unknown, name = 'one'): Adviser {
  return { name, advise: () => answer as AdviserAnswer };
}

function decisionOf(event: unknown) {
  const { decision, decision_code, policy_id, policy_digest, checks } = event as Record<string, unknown>;
  return { decision, decision_code, policy_id, policy_digest, checks: checks as { check: string }[] };
}

describe('an adviser', () => {
  it('that permits or abstains leaves it to the grants, and is recorded', async () => {
    const place = memoryPlace();
    const advisers = [says({ effect: 'permit' }), says({ effect: 'abstain', code: 'NO_RULE' }, 'two')];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    expect((await gate.decide(READ)).effect).toBe('allow');
    const { checks, policy_id: policyId } = decisionOf(place.events().at(-2));
    expect(checks.slice(0, 3)).toEqual([
      { check: 'coverage', result: 'pass', code: 'SDK' },
      { check: 'adviser:one', result: 'pass', code: 'PERMITTED' },
      { check: 'adviser:two', result: 'pass', code: 'NO_RULE' },
    ]);
    expect(policyId).toBe('northroot/gate/1');
    expect((await gate.decide({ ...READ, ref: 'c2', tool: 'net.get' })).code).toBe('TOOL_NOT_ALLOWED');
  });

  it('that denies ends it: later ones are not asked, nothing is reserved', async () => {
    const place = memoryPlace();
    let asked = 0;
    const later: Adviser = {
      name: 'later',
      advise: () => {
        asked += 1;
        return { effect: 'permit' };
      },
    };
    const deny = says({ effect: 'deny', code: 'TOO_LATE', reason: 'after six \u001b[2J' });
    const { gate } = await openGate(place, BOUNDS, { advisers: [deny, later] });
    const decision = await gate.decide(READ);
    expect(decision).toMatchObject({ effect: 'deny', code: 'TOO_LATE', remaining: {} });
    expect(decision.reason).not.toContain('\u001b');
    expect(asked).toBe(0);
    expect(await place.verdict()).toBe('ok');
  });

  it('of one call is asked after those of the gate, about that call alone', async () => {
    const place = memoryPlace();
    const { gate } = await openGate(place, BOUNDS, { advisers: [says({ effect: 'permit' })] });
    const own = [says({ effect: 'deny', code: 'NOT_NOW' }, 'own')];
    expect(await gate.decide({ ...READ, advisers: own })).toMatchObject({ effect: 'deny', code: 'NOT_NOW' });
    expect(decisionOf(place.events().at(-1)).checks.slice(1, 3)).toEqual([
      { check: 'adviser:one', result: 'pass', code: 'PERMITTED' },
      { check: 'adviser:own', result: 'fail', code: 'NOT_NOW' },
    ]);
    expect((await gate.decide({ ...READ, ref: 'c2' })).effect).toBe('allow');
    await expect(gate.decide({ ...READ, ref: 'c3', advisers: [says({})] })).rejects.toThrow(RangeError);
  });

  it('that rewrites decides which parameters are allowed, and what was asked for is recorded', async () => {
    const place = memoryPlace();
    const seen: unknown[] = [];
    const second: Adviser = {
      name: 'second',
      advise: ({ params }) => {
        seen.push(params);
        return { effect: 'permit' };
      },
    };
    const advisers = [says({ effect: 'rewrite', params: { path: '/tmp' } }), second];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    const decision = await gate.decide(READ);
    expect(decision).toMatchObject({ effect: 'rewrite', params: { path: '/tmp' } });
    expect(seen).toEqual([{ path: '/tmp' }]);
    const event = place.events().at(-2);
    const digest = sha256Digest(Buffer.from('{"path":"/tmp"}'));
    expect(event?.authorization?.action?.tool_params_digest).toEqual({ ...digest });
    const asked = sha256Digest(Buffer.from('{"path":"/x"}'));
    expect(decisionOf(event).checks).toContainEqual({
      check: `asked:${asked.b64}`,
      result: 'pass',
      code: 'REWRITTEN',
    });
  });

  it('that asks requires an approval, which is then named and used up', async () => {
    const place = memoryPlace();
    const advisers = [says({ effect: 'ask', approvers: ['human:olga'] })];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    const decision = await gate.decide(READ);
    expect(decision).toMatchObject({ effect: 'ask', need: { approvers: ['human:olga'] } });
    await gate.ledger.approve(decision.authorization, { principalId: 'human:eve' });
    expect((await gate.decide(READ)).effect).toBe('ask');
    await gate.ledger.approve(decision.authorization, { principalId: 'human:olga' });
    expect((await gate.decide(READ)).effect).toBe('allow');
    expect((await gate.decide({ ...READ, ref: 'c2' })).effect).toBe('ask');
    expect(await place.verdict()).toBe('ok');
  });

  it('that asks is waited for like a rule of the grant, until the call is allowed', async () => {
    const place = memoryPlace();
    const advisers = [says({ effect: 'ask', approvers: ['human:olga'] })];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    const { authorization } = await gate.decide(READ);
    const need = { approvers: ['human:olga'], count: 1 };
    const waiting = { eventId: authorization, status: 'waiting', need };
    expect(await gate.ledger.requests()).toMatchObject([{ ...waiting, approvals: [] }]);
    await gate.ledger.approve(authorization, { principalId: 'human:eve' });
    expect(await gate.ledger.requests()).toMatchObject([
      { ...waiting, approvals: [{ principalId: 'human:eve' }] },
    ]);
    await gate.ledger.reject(authorization, { principalId: 'human:olga' });
    expect(await gate.ledger.requests()).toMatchObject([{ status: 'rejected' }]);
    await gate.ledger.approve(authorization, { principalId: 'human:olga' });
    expect(await gate.ledger.requests()).toMatchObject([
      { status: 'approved', need: undefined, approvals: [{ principalId: 'human:olga' }] },
    ]);
    expect((await gate.decide(READ)).effect).toBe('allow');
    expect(await gate.ledger.requests()).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('that asked has its rule known in every process', async () => {
    const place = memoryPlace();
    const advisers = [says({ effect: 'ask', approvers: ['human:omar'] })];
    const approvals = [{ tools: ['fs.*'], approvers: ['human:olga'] }];
    const { gate } = await openGate(place, { ...BOUNDS, approvals }, { advisers });
    const { authorization } = await gate.decide(READ);
    const other = await reopen(place);
    await gate.ledger.approve(authorization, { principalId: 'human:olga' });
    for (const each of [gate, other])
      expect(await each.ledger.requests()).toMatchObject([{ status: 'waiting' }]);
    await gate.close();
    await other.ledger.approve(authorization, { principalId: 'human:omar' });
    for (const each of [other, await reopen(place)])
      expect(await each.ledger.requests()).toMatchObject([{ status: 'approved', need: undefined }]);
    expect((await (await reopen(place, { advisers })).decide(READ)).effect).toBe('allow');
    expect(await place.verdict()).toBe('ok');
  });

  it('that asked for whom no record can name leaves a request waiting until it is asked again', async () => {
    const place = memoryPlace();
    const advisers = [says({ effect: 'ask', approvers: ['human:omar', `human:${'x'.repeat(60)}`] })];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    const { authorization } = await gate.decide(READ);
    expect((await gate.ledger.requests()).map(unknownRuleText)).toEqual([undefined]);
    await gate.ledger.approve(authorization, { principalId: 'human:omar' });
    expect(await gate.ledger.requests()).toMatchObject([{ status: 'waiting', need: { approvers: [] } }]);
    expect((await gate.ledger.requests()).map(unknownRuleText)).toEqual([expect.stringContaining('adviser')]);
    expect((await gate.decide(READ)).effect).toBe('allow');
  });

  it('cannot change the parameters of the caller', async () => {
    const params = { path: '/x' };
    const advisers: Adviser[] = [
      {
        name: 'one',
        advise: (call) => {
          (call.params as { path: string }).path = '/etc';
          return { effect: 'permit' };
        },
      },
    ];
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers });
    expect((await gate.decide({ ...READ, params })).effect).toBe('allow');
    expect(params).toEqual({ path: '/x' });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('down')), 'ADVISER_FAILED'],
    ['hangs', () => new Promise<never>(() => undefined), 'ADVISER_TIMEOUT'],
    ['answers nothing', () => undefined, 'ADVISER_INVALID'],
    ['answers another effect', () => ({ effect: 'allow' }), 'ADVISER_INVALID'],
    ['answers a member of objects', () => ({ effect: 'constructor' }), 'ADVISER_INVALID'],
    ['answers a malformed code', () => ({ effect: 'permit', code: 'no code' }), 'ADVISER_INVALID'],
    ['answers a wrong digest', () => ({ effect: 'permit', policyDigest: 'x' }), 'ADVISER_INVALID'],
    ['rewrites to no JSON', () => ({ effect: 'rewrite', params: () => 1 }), 'ADVISER_INVALID'],
    ['asks nobody', () => ({ effect: 'ask', approvers: [] }), 'ADVISER_INVALID'],
  ])('that %s denies', async (_, advise, code) => {
    const place = memoryPlace();
    const advisers = [{ name: 'one', timeoutMs: 50, advise }] as unknown as Adviser[];
    const { gate } = await openGate(place, BOUNDS, { advisers });
    expect(await gate.decide(READ)).toMatchObject({ effect: 'deny', code });
    expect(await place.verdict()).toBe('ok');
  });

  it('that is late is told by its signal', async () => {
    let isTold = false;
    const advisers: Adviser[] = [
      {
        name: 'one',
        timeoutMs: 20,
        advise: (_, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              isTold = true;
              resolve({ effect: 'permit' });
            });
          }),
      },
    ];
    const { gate } = await openGate(memoryPlace(), BOUNDS, { advisers });
    expect((await gate.decide(READ)).code).toBe('ADVISER_TIMEOUT');
    expect(isTold).toBe(true);
  });
});

it.each([
  [[{ name: 'no name!', advise: () => ({ effect: 'permit' }) }], RangeError],
  [[{ name: 'one' }], TypeError],
  [[says({}), says({})], RangeError],
  [[{ ...says({}), timeoutMs: 0 }], RangeError],
])('malformed advisers %# are refused', async (advisers, kind) => {
  await expect(openGate(memoryPlace(), BOUNDS, { advisers: advisers as Adviser[] })).rejects.toThrow(kind);
});
