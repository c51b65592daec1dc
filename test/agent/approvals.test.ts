/** Approving, rejecting, suspending and revoking through a live ledger: what is decided verifies, and nothing starts after a stop. */

import { describe, expect, it } from 'vitest';
import type { PendingApproval } from '../../src/log/policy/approve.js';
import type { RecordedDecision } from '../../src/log/policy/authorize.js';
import { GRANTS_POLICY, GrantEvaluator } from '../../src/log/policy/evaluator.js';
import { draftGrant, type GrantOptions } from '../../src/log/policy/draft-grant.js';
import type { LiveLedger, LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { codeOf } from '../writer/support.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import type { LiveRequest } from '../../src/log/agent/guard.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import { AGENT, filePlace, memoryPlace, leftOf, openLive, request, type Place } from './support.js';

const PLACES = [
  { name: 'a file', place: filePlace },
  { name: 'memory', place: memoryPlace },
];

const RULE = { tools: ['deploy'], approvers: ['human:*'], above: { usd: '100' } } as const;

/** A ledger whose agent has a key of its own, with the grant of `options`, and one opened by an approver. */
async function open(
  place: Place,
  options: Partial<GrantOptions> = {},
  agents: LiveLedgerOptions = {},
): Promise<{ agent: LiveLedger; owner: LiveLedger; ownerKey: LiveLedger; grantId: string }> {
  const [own, agentKey, approver] = [0, 1, 2].map(() => createSigner(generatePrivateKey()));
  const keys = [
    entry(own, ['event', 'checkpoint', 'admin', 'authority'], ['*']),
    entry(agentKey, ['event'], [AGENT]),
    entry(approver, ['event'], ['human:olga']),
  ];
  const owner = await openLive(place, {
    signer: own,
    principalId: 'org:acme',
    create: { origin: 'example.com/tests/approvals', keys },
  });
  const event = draftGrant({
    principalId: AGENT,
    allowedTools: ['*'],
    meterCaps: { usd: '1000', calls: 100 },
    approvals: [RULE],
    ...options,
  });
  const { eventId: grantId } = await owner.append({ event });
  const agent = await openLive(place, { signer: agentKey, principalId: AGENT, ...agents });
  const ownerKey = await openLive(place, { signer: approver, principalId: 'human:olga' });
  return { agent, owner, ownerKey, grantId };
}

function entry({ publicKey }: Signer, roles: readonly string[], principals: readonly string[]): never {
  return { keyid: publicKey.keyid, public_key: formatPublicKey(publicKey), roles, principals } as never;
}

function call(toolName: string, usd: string, params: unknown = {}): LiveRequest {
  const paramsDigest = sha256Digest(canonicalBytes(params));
  return { ...request(0, { usd }), toolName, paramsDigest };
}

function deploy(usd: string, params: unknown = { env: 'prod' }): LiveRequest {
  return call('deploy', usd, params);
}

describe.each(PLACES)('over $name', ({ place: makePlace }) => {
  it('a call that needs approval is denied, approved, allowed once, and denied again', async () => {
    const place = makePlace();
    const { agent, ownerKey, grantId } = await open(place);
    expect((await agent.authorize(deploy('100'))).decision).toBe('allow');
    const asked = await agent.authorize(deploy('101'));
    expect(asked).toMatchObject({
      decisionCode: 'APPROVAL_REQUIRED',
      need: { grantId, approvers: ['human:*'], count: 1 },
    });
    const [waiting] = await ownerKey.requests();
    expect(waiting).toMatchObject({ eventId: asked.recorded.eventId, status: 'waiting', toolName: 'deploy' });
    expect(await ownerKey.request(asked.recorded.eventId)).toEqual(waiting);
    const { principalId, toolName, paramsDigest } = waiting as PendingApproval;
    const ofCall = { principalId, toolName, paramsDigest };
    expect(await ownerKey.waitingRequest(ofCall)).toEqual(waiting);
    expect(await ownerKey.waitingRequest({ ...ofCall, toolName: 'other' })).toBeUndefined();
    expect(await ownerKey.waitingRequest({ ...ofCall, principalId: 'agent:other' })).toBeUndefined();
    const { eventId } = await ownerKey.approve(asked.recorded.eventId);
    expect((await ownerKey.requests())[0]).toMatchObject({ status: 'approved' });
    expect(await ownerKey.request(asked.recorded.eventId)).toMatchObject({ status: 'approved' });
    expect(await ownerKey.waitingRequest(ofCall)).toBeUndefined();
    expect((await agent.authorize(deploy('101', { env: 'other' }))).decisionCode).toBe('APPROVAL_REQUIRED');
    expect((await agent.authorize(deploy('102'))).decisionCode).toBe('APPROVAL_REQUIRED');
    const allowed = await agent.authorize(deploy('101'));
    expect(allowed).toMatchObject({ decision: 'allow', approvalIds: [eventId] });
    expect(await ownerKey.request(asked.recorded.eventId)).toBeUndefined();
    for (const [none, code] of [
      [allowed.recorded.eventId, 'REQUEST_ALLOWED'],
      [eventId, 'AUTH_NOT_AN_AUTHORIZATION'],
      [grantId, 'AUTH_NOT_AN_AUTHORIZATION'],
    ] as const)
      expect(await codeOf(ownerKey.request(none))).toBe(code);
    expect((await agent.authorize(deploy('101'))).decisionCode).toBe('APPROVAL_REQUIRED');
    const named = await agent.authorize({ ...deploy('101'), approvalIds: [eventId] });
    expect(named.decisionCode).toBe('APPROVAL_REUSED');
    expect(await place.verdict()).toBe('ok');
  });

  it("nobody's own approval counts, and a reject takes one back", async () => {
    const place = makePlace();
    const { agent, ownerKey } = await open(place);
    const { recorded } = await agent.authorize(deploy('500'));
    await agent.approve(recorded.eventId);
    expect((await agent.authorize(deploy('500'))).decisionCode).toBe('APPROVAL_REQUIRED');
    await agent.reject(recorded.eventId);
    expect((await ownerKey.requests())[0]).toMatchObject({ status: 'waiting' });
    const { eventId } = await ownerKey.approve(recorded.eventId);
    await ownerKey.reject(recorded.eventId);
    expect((await ownerKey.requests())[0]).toMatchObject({ status: 'rejected' });
    const named = await agent.authorize({ ...deploy('500'), approvalIds: [eventId] });
    expect(named.decisionCode).toBe('APPROVAL_REQUIRED');
    expect((await agent.authorize(deploy('500'))).decisionCode).toBe('APPROVAL_REQUIRED');
    expect(await place.verdict()).toBe('ok');
  });

  it('a call is shown again that was rejected and is asked for anew, or for more', async () => {
    const { agent, ownerKey } = await open(makePlace());
    const first = (await agent.authorize(deploy('101'))).recorded.eventId;
    await ownerKey.reject(first);
    const anew = (await agent.authorize(deploy('101'))).recorded.eventId;
    expect(await ownerKey.requests()).toMatchObject([{ eventId: anew, status: 'waiting' }]);
    expect(await ownerKey.request(first)).toMatchObject({ eventId: first, status: 'rejected' });
    await ownerKey.approve(anew);
    const more = (await agent.authorize(deploy('500'))).recorded.eventId;
    expect(await ownerKey.requests()).toMatchObject([{ eventId: more, status: 'waiting' }]);
    expect(await ownerKey.request(anew)).toMatchObject({ eventId: anew, status: 'approved' });
  });

  it('one request allows one call, however many approve it, and whenever', async () => {
    const place = makePlace();
    const { agent, owner, ownerKey } = await open(place);
    const { eventId } = (await agent.authorize(deploy('500'))).recorded;
    const boss = { principalId: 'human:boss' };
    const answers = await Promise.allSettled([
      ownerKey.approve(eventId),
      owner.approve(eventId, boss),
      ownerKey.approve(eventId),
    ]);
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await agent.authorize(deploy('500'))).decision).toBe('allow');
    expect(await codeOf(owner.approve(eventId, boss))).toBe('REQUEST_ALLOWED');
    expect(await ownerKey.request(eventId)).toBeUndefined();
    expect((await agent.authorize(deploy('500'))).decisionCode).toBe('APPROVAL_REQUIRED');
    expect(await place.verdict()).toBe('ok');
  });

  it('who approves one request twice approves one call', async () => {
    const { agent, owner, ownerKey } = await open(makePlace(), { approvals: [{ ...RULE, count: 2 }] });
    const ask = () => agent.authorize(deploy('500'));
    const { eventId } = (await ask()).recorded;
    const own = [await ownerKey.approve(eventId), await ownerKey.approve(eventId)];
    const boss = { principalId: 'human:boss' };
    const other = await owner.approve(eventId, boss);
    const allowed = await ask();
    expect(allowed.approvalIds).toEqual([...own, other].map((each) => each.eventId));
    const next = await ask();
    await owner.approve(next.recorded.eventId, boss);
    expect((await ask()).decisionCode).toBe('APPROVAL_REQUIRED');
  });

  it('of two that wait for the same call, the one that comes too late asks anew', async () => {
    const place = makePlace();
    const { agent, ownerKey } = await open(place);
    const asked: string[] = [];
    const wait = (): Promise<{ readonly decision: string }> =>
      agent.authorize(deploy('500'), {
        waitMs: 600_000,
        onApprovalNeeded: ({ recorded }) => {
          asked.push(recorded.eventId);
          if (asked.length > 1) void ownerKey.approve(recorded.eventId);
        },
      });
    const decisions = await Promise.all([wait(), wait()]);
    expect(decisions).toMatchObject([{ decision: 'allow' }, { decision: 'allow' }]);
    expect(asked).toHaveLength(3);
    expect(await place.verdict()).toBe('ok');
  });

  it('of several that wait together each gets its own answer, and one that leaves takes nobody with it', async () => {
    const place = makePlace();
    let isBroken = false;
    const policy: NonNullable<LiveLedgerOptions['policy']> = (state) => {
      const grants = new GrantEvaluator(state);
      return {
        ...GRANTS_POLICY,
        evaluate: (asked) => {
          if (isBroken && JSON.stringify(asked.meters).includes('204')) throw new RangeError('no policy');
          return grants.evaluate(asked);
        },
      };
    };
    const { agent, ownerKey } = await open(place, {}, { policy });
    const leaving = new AbortController();
    const ids = new Map<string, string>();
    const wait = (usd: string, options: object = {}): Promise<{ readonly decision: string }> =>
      agent.authorize(call('deploy', usd, { usd }), {
        waitMs: 60_000,
        onApprovalNeeded: ({ recorded }) => void ids.set(usd, recorded.eventId),
        ...options,
      });
    const [left, approved, rejected] = [wait('201', { signal: leaving.signal }), wait('202'), wait('203')];
    await expect.poll(() => ids.size).toBe(3);
    leaving.abort(new RangeError('enough'));
    await expect(left).rejects.toThrow('enough');
    await ownerKey.approve(ids.get('202') as string);
    await expect(approved).resolves.toMatchObject({ decision: 'allow' });
    await ownerKey.reject(ids.get('203') as string);
    await expect(rejected).resolves.toMatchObject({ decisionCode: 'APPROVAL_REJECTED' });
    const [broken, whole] = [wait('204'), wait('205')];
    await expect.poll(() => ids.size).toBe(5);
    isBroken = true;
    await expect(broken).rejects.toThrow('no policy');
    await ownerKey.approve(ids.get('205') as string);
    await expect(whole).resolves.toMatchObject({ decision: 'allow' });
    expect(await place.verdict()).toBe('ok');
  });

  it('a guard waits for approval, and is told of a reject', async () => {
    const place = makePlace();
    const { agent, ownerKey } = await open(place);
    const run = (answer: 'approve' | 'reject'): Promise<string> =>
      agent.guard('deploy', { answer }, () => 'done', {
        reserve: { usd: '200' },
        approval: 'wait',
        onApprovalNeeded: ({ recorded }: RecordedDecision) => void ownerKey[answer](recorded.eventId),
      });
    expect(await run('approve')).toBe('done');
    expect(await codeOf(run('reject'))).toBe('APPROVAL_REJECTED');
    const denied = agent.guard('deploy', { n: 1 }, () => 'done', { reserve: { usd: '200' } });
    expect(await codeOf(denied)).toBe('APPROVAL_REQUIRED');
    expect(await place.verdict()).toBe('ok');
  });

  it('nothing is allowed or started under a suspended grant, and a stop is for good', async () => {
    const place = makePlace();
    const { agent, owner, grantId } = await open(place);
    const before = await agent.authorize(call('fs.read', '1'));
    await owner.suspend(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
    const read = call('fs.read', '1');
    expect((await agent.authorize(read)).decisionCode).toBe('GRANT_REVOKED');
    const start = (id: string): Promise<unknown> => agent.start(id, { paramsDigest: read.paramsDigest });
    expect(await codeOf(start(before.recorded.eventId))).toBe('GRANT_REVOKED');
    expect(await codeOf(agent.resume(grantId, { reason: 'OVER' }))).toMatch(/^KEY_NOT_FOR_/);
    await owner.resume(grantId, { reason: 'OVER' });
    expect((await agent.authorize(read)).decision).toBe('allow');
    expect(await codeOf(start(before.recorded.eventId))).toBe('GRANT_REVOKED');
    await agent.abandon(before.recorded.eventId);
    const [revoked] = await agent.revoke('all', { reason: 'DONE' });
    expect(revoked.status).toBe('appended');
    expect((await agent.authorize(read)).decisionCode).toBe('GRANT_REVOKED');
    expect(await agent.revoke('all', { reason: 'DONE' })).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('of 50 guards that a stop meets, none starts after it', async () => {
    const place = makePlace();
    const { agent, owner, grantId } = await open(place);
    const calls = Array.from({ length: 50 }, (_, n) =>
      agent
        .guard('fs.read', { n }, () => n, { reserve: { usd: '1' } })
        .catch((error: { code: string }) => error.code),
    );
    await owner.suspend(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
    for (const ended of await Promise.all(calls))
      expect(typeof ended === 'number' || ended === 'GRANT_REVOKED').toBe(true);
    expect(await place.verdict()).toBe('ok');
    const events = place.events();
    const stopped = events.findIndex(({ event_type: type }) => type === 'revocation');
    const started = events.slice(stopped).filter(({ event_type: type }) => type === 'x.northroot.start');
    expect(started).toEqual([]);
  });

  it('a stop aborts what runs, and what was begun before it is recorded without a finding', async () => {
    const place = makePlace();
    const { agent, owner, grantId } = await open(place);
    let begun = (): void => undefined;
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    const run = agent.guard(
      'fs.read',
      {},
      async ({ signal }) => {
        begun();
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      },
      { reserve: { usd: '1' } },
    );
    await isBegun;
    await owner.revoke(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
    expect(await codeOf(run)).toBe('GRANT_REVOKED');
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'unknown' });
    expect(await place.verdict()).toBe('ok');
  });

  it('each part is a grant of its own, also in one moment and with the same words', async () => {
    const place = makePlace();
    const { agent, grantId } = await open(place, {}, { now: () => '2999-01-01T00:00:00.000Z' });
    const part = { to: 'agent:sub', parent: grantId, caps: { usd: '5' } };
    const parts = await Promise.all([agent.delegate(part), agent.delegate(part), agent.delegate(part)]);
    expect(new Set(parts.map(({ eventId }) => eventId)).size).toBe(3);
    for (const { eventId } of parts) expect(await leftOf(agent, eventId, 'usd')).toBe('5');
    expect(await place.verdict()).toBe('ok');
  });

  it('a part of a grant is handed on by its id, within the parent', async () => {
    const place = makePlace();
    const { agent, grantId } = await open(place, { rateLimits: { 'usd.per_day': '500' } });
    const { eventId } = await agent.delegate({
      to: 'agent:sub',
      parent: grantId,
      caps: { usd: '5' },
      tools: ['fs.*'],
    });
    const sub = { ...call('fs.read', '5'), principalId: 'agent:sub' };
    const budget = await agent.budget(eventId);
    expect(budget.principalId).toBe('agent:sub');
    expect(await codeOf(agent.delegate({ to: 'agent:sub', parent: grantId, caps: { usd: '5000' } }))).toBe(
      'DELEGATION_EXCEEDED',
    );
    expect(await codeOf(agent.authorize(sub))).toBe('KEY_NOT_FOR_PRINCIPAL');
    expect(await place.verdict()).toBe('ok');
  });

  it('nothing is handed on, three deep either, of what is suspended, revoked or expired', async () => {
    const place = makePlace();
    const expiresAt = '2999-01-02T00:00:00Z';
    const { agent, owner, grantId } = await open(place, { expiresAt }, { now: () => expiresAt });
    const handOn = async (parent: string): Promise<string> =>
      (await owner.delegate({ to: 'agent:sub', parent, caps: { usd: '5' } })).eventId;
    const child = await handOn(grantId);
    const deep = await handOn(child);
    await owner.suspend(grantId, { reason: 'X' });
    expect(await codeOf(handOn(deep))).toBe('GRANT_REVOKED');
    await owner.resume(grantId, { reason: 'X' });
    await handOn(deep);
    await owner.revoke(child, { reason: 'X' });
    expect(await codeOf(handOn(deep))).toBe('GRANT_REVOKED');
    await handOn(grantId);
    expect(await codeOf(agent.delegate({ to: 'agent:sub', parent: grantId }))).toBe('GRANT_EXPIRED');
    expect(await place.verdict()).toBe('ok');
  });
});

it('a sub-agent with a handle and a key of its own spends its part, which counts under the parent', async () => {
  const place = filePlace();
  const subKey = createSigner(generatePrivateKey());
  const { agent, owner, grantId } = await open(place);
  await owner.append({
    event: {
      event_type: 'key',
      principal_id: 'org:acme',
      action: 'add',
      key: entry(subKey, ['event'], ['agent:sub']),
    },
  });
  const { eventId } = await agent.delegate({ to: 'agent:sub', parent: grantId, caps: { usd: '5' } });
  const sub = await agent.as(eventId, subKey);
  expect(await sub.guard('fs.read', {}, () => 'read', { reserve: { usd: '4' } })).toBe('read');
  expect(await codeOf(sub.guard('fs.read', {}, () => 'read', { reserve: { usd: '2' } }))).toBe(
    'RESERVATION_OVER_CAP',
  );
  expect(await leftOf(agent, grantId, 'usd')).toBe('996');
  await agent.close();
  expect(() => sub.watch()).toThrow('closed');
  await expect(sub.authorize(call('fs.read', '1'))).rejects.toThrow('closed');
  expect(await place.verdict()).toBe('ok');
});
