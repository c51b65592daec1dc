/** CGF's server on a gate: repeated proposals, reports of outcomes, replays and event logs, also by hostile adapters and after a restart. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Tokens } from '../../../src/gate/service/tokens.js';
import { formatDigest, sha256Digest } from '../../../src/base/value/digest.js';
import { cgf } from '../../../src/hosts/cgf/index.js';
import { Workshop } from '../../cli/runner.js';
import { judge, temporaryFolder } from '../../writer/support.js';
import {
  CgfPlace,
  type CgfServer,
  type Json,
  outcomeOf,
  policyBytes,
  REGISTRATION,
  toolCall,
} from './live-kit.js';

const BLOCK = { decision: 'BLOCK', decision_id: 'dec-none' };

describe('the same proposal again', () => {
  const policy = policyBytes();

  it.each(['ls', 'to_block', 'to_defer', 'to_audit', 'to_constrain'])(
    'gets the same answer, after a restart and from another service too (%s)',
    async (tool) => {
      const place = new CgfPlace();
      const first = await place.serve({ policy });
      const adapter = await first.register();
      const answer = await first.decide(adapter, toolCall('p1', tool));
      expect(await first.decide(adapter, toolCall('p1', tool))).toEqual(answer);
      const second = await place.serve({ policy });
      const { explanation_text: words, ...rest } = answer;
      expect(words).not.toBe('');
      expect(await second.decide(adapter, toolCall('p1', tool))).toMatchObject(rest);
      await first.close();
      await second.close();
      const third = await place.serve({ policy });
      expect(await third.decide(adapter, toolCall('p1', tool))).toMatchObject(rest);
      expect(place.eventsOf('authorization')).toHaveLength(2);
    },
  );

  it('is decided once, however many ask at once, of two services', async () => {
    const place = new CgfPlace();
    const servers = [await place.serve(), await place.serve()] as const;
    const adapter = await servers[0].register();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        servers[n % 2 === 0 ? 0 : 1].decide(adapter, toolCall('p1', 'ls')),
      ),
    );
    expect(new Set(answers.map((each) => each['decision_id'])).size).toBe(1);
    expect(new Set(answers.map((each) => each['decision']))).toEqual(new Set(['ALLOW']));
    expect(place.eventsOf('authorization')).toHaveLength(2);
  });

  it.each<[string, Json]>([
    ['other parameters', { action_params: { tool_name: 'ls', tool_args_hash: 'ff' } }],
    ['another tool', { action_params: { tool_name: 'cat', tool_args_hash: 'ab12' } }],
    ['another tier', { risk_tier: 'high' }],
    ['less cost', { estimated_cost: { tokens: 1 } }],
    ['other references', { context_refs: [] }],
  ])('with %s is a conflict, and blocked', async (_, more) => {
    const place = new CgfPlace();
    const first = await place.serve();
    const adapter = await first.register();
    await first.decide(adapter, toolCall('p1', 'ls'));
    await first.decide(adapter, toolCall('p2', 'ls', { estimated_cost: { tokens: 1e6 } }));
    const second = await place.serve();
    for (const server of [first, second])
      expect(await server.decide(adapter, toolCall('p1', 'ls', more))).toMatchObject({
        ...{ status: 409, reason_code: 'REQUEST_CONFLICT', ...BLOCK },
      });
    const other = await first.register();
    expect(await second.decide(other, toolCall('p1', 'ls'))).toMatchObject({ status: 409, ...BLOCK });
    expect(place.eventsOf('authorization')).toHaveLength(3);
  });

  it('that was acted upon, given back, or has expired is blocked', async () => {
    const place = new CgfPlace();
    let later = 0;
    const now = (): string => new Date(Date.now() + later).toISOString();
    const server = await place.serve({}, { gate: { ttlMs: 60_000, now } });
    const adapter = await server.register();
    const [done, left, late] = [toolCall('done', 'ls'), toolCall('left', 'ls'), toolCall('late', 'ls')];
    await server.report(adapter, await server.decide(adapter, done));
    await server.report(adapter, await server.decide(adapter, left), { executed: false, success: false });
    await server.decide(adapter, late);
    const second = await place.serve({}, { gate: { now } });
    for (const each of [server, second])
      for (const proposal of [done, left])
        expect(await each.decide(adapter, proposal)).toMatchObject({
          ...{ status: 409, reason_code: 'AUTHORIZATION_REUSED', ...BLOCK },
        });
    later = 61_000;
    for (const each of [server, second])
      expect(await each.decide(adapter, late)).toMatchObject({
        ...{ status: 409, reason_code: 'ACTION_EXPIRED', ...BLOCK },
      });
    expect(place.eventsOf('authorization')).toHaveLength(4);
  });

  it('under a grant that was withdrawn since is blocked', async () => {
    const place = new CgfPlace();
    const server = await place.serve();
    const adapter = await server.register();
    await server.decide(adapter, toolCall('p1', 'ls'));
    await server.gate.ledger.revoke('all', { reason: 'TEST', inFlight: 'stop' });
    expect(await server.decide(adapter, toolCall('p1', 'ls'))).toMatchObject({
      ...{ status: 409, reason_code: 'GRANT_REVOKED', ...BLOCK },
    });
  });
});

describe('an outcome', () => {
  const start = async (place: CgfPlace): Promise<[CgfServer, string]> => {
    const server = await place.serve();
    return [server, await server.register()];
  };
  const executionsOf = (place: CgfPlace): Json[] => place.eventsOf('execution');

  it.each([
    [true, 'success', undefined],
    [false, 'failure', 'CGF_EXEC_ERROR'],
  ])('success: %s is recorded once, with its time as it is written', async (success, outcome, code) => {
    const place = new CgfPlace();
    const [server, adapter] = await start(place);
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    const used = { success, actual_cost: { tokens: 2 } };
    const answer = await server.report(adapter, decision, used);
    expect([answer.status, answer.body]).toEqual([200, { received: true }]);
    const [execution] = executionsOf(place) as [Json];
    expect(execution).toMatchObject({ outcome, meter_basis: 'reported' });
    expect(execution['error_code']).toBe(code);
    expect(execution['meter_used']).toEqual([
      { unit: 'calls', amount: { t: 'int', v: '1' } },
      { unit: 'time.ms', amount: { t: 'dec', m: '4006385803222656', s: 14 } },
      { unit: 'tokens', amount: { t: 'int', v: '2' } },
    ]);
    expect((await server.report(adapter, decision, used)).body).toEqual({ received: true });
    const other = await server.report(adapter, decision, { ...used, success: !success });
    expect([other.status, other.body]).toEqual([409, { detail: 'Another outcome was reported' }]);
    await server.close();
    const next = await place.serve();
    expect((await next.report(adapter, decision, used)).status).toBe(200);
    expect((await next.report(adapter, decision, { ...used, duration_ms: 1 })).status).toBe(409);
    expect(executionsOf(place)).toHaveLength(1);
    expect(await judge(place.path)).toMatchObject({ verdict: 'ok' });
  });

  it('that was not executed gives back what was reserved', async () => {
    const place = new CgfPlace({ meterCaps: { calls: 1 } });
    const [server, adapter] = await start(place);
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    expect(await server.decide(adapter, toolCall('p2', 'ls'))).toMatchObject({ decision: 'BLOCK' });
    const no = { executed: false, success: false };
    expect((await server.report(adapter, decision, no)).status).toBe(200);
    expect((await server.report(adapter, decision, no)).status).toBe(200);
    expect(await server.decide(adapter, toolCall('p3', 'ls'))).toMatchObject({ decision: 'ALLOW' });
    expect(executionsOf(place)).toMatchObject([{ error_code: 'ABANDONED' }]);
  });

  it('that was not executed, and was all the same, counts, once', async () => {
    const place = new CgfPlace();
    const [server, adapter] = await start(place);
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    const no = { executed: false, success: false };
    expect((await server.report(adapter, decision, no)).status).toBe(200);
    const used = { actual_cost: { tokens: 1000 } };
    for (let n = 0; n < 2; n += 1) expect((await server.report(adapter, decision, used)).status).toBe(200);
    for (const other of [no, { actual_cost: { tokens: 1 } }])
      expect((await server.report(adapter, decision, other)).status).toBe(409);
    expect(executionsOf(place)).toMatchObject([{ error_code: 'ABANDONED' }, { outcome: 'success' }]);
    expect(await judge(place.path)).toMatchObject({ verdict: 'violation', codes: ['AUTHORIZATION_REUSED'] });
  });

  it('of no decision, or of another adapter, is refused and changes nothing', async () => {
    const place = new CgfPlace();
    const [server, adapter] = await start(place);
    const foreign = await server.register();
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    const other = await server.decide(adapter, toolCall('p2', 'ls'));
    const refused = [
      outcomeOf(adapter, { ...decision, decision_id: 'dec-000000000000' }),
      outcomeOf(adapter, { ...decision, decision_id: other['decision_id'] }),
      outcomeOf(adapter, { ...decision, decision_id: '' }),
      outcomeOf(adapter, { ...decision, proposal_id: 'p9' }),
      outcomeOf(foreign, decision),
      outcomeOf('adp-ffffffffffff', decision),
    ];
    for (const outcome of refused) {
      const { status, body } = await server.ask('/v1/outcomes/report', outcome);
      expect([status, body]).toEqual([404, { detail: 'Decision not found' }]);
    }
    expect(executionsOf(place)).toEqual([]);
    expect((await server.report(adapter, decision)).status).toBe(200);
  });

  it.each(['executed', 'executed_at', 'duration_ms', 'success', 'decision_id', 'adapter_id', 'proposal_id'])(
    'without %s is refused',
    async (name) => {
      const place = new CgfPlace();
      const [server, adapter] = await start(place);
      const outcome = outcomeOf(adapter, await server.decide(adapter, toolCall('p1', 'ls')));
      const { [name]: gone, ...rest } = outcome;
      expect(gone).toBeDefined();
      expect((await server.ask('/v1/outcomes/report', rest)).status).toBe(422);
      expect((await server.ask('/v1/outcomes/report', { ...rest, [name]: null })).status).toBe(422);
    },
  );

  it('of several at once is recorded once', async () => {
    const place = new CgfPlace();
    const [server, adapter] = await start(place);
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => server.report(adapter, decision, { duration_ms: n })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(9);
    expect(executionsOf(place)).toHaveLength(1);
  });

  it.each(['to_block', 'to_defer'])('of what was %s is a violation, once', async (tool) => {
    const place = new CgfPlace();
    const server = await place.serve({ policy: policyBytes() });
    const adapter = await server.register();
    const decision = await server.decide(adapter, toolCall('p1', tool));
    expect((await server.report(adapter, decision)).status).toBe(200);
    expect((await server.report(adapter, decision)).status).toBe(200);
    expect((await server.report(adapter, decision, { success: false })).status).toBe(409);
    expect(executionsOf(place)).toHaveLength(1);
    expect(await judge(place.path)).toMatchObject({ verdict: 'violation', codes: ['EXECUTION_UNDER_DENY'] });
    // That it was not executed is no news.
    const kept = await server.decide(adapter, toolCall('p2', tool));
    expect((await server.report(adapter, kept, { executed: false, success: false })).status).toBe(200);
    expect(executionsOf(place)).toHaveLength(1);
  });

  it.each([false, true])(
    'that comes after its reservation has ended still counts (restart: %s)',
    async (isRestarted) => {
      const place = new CgfPlace();
      const first = await place.serve({}, { gate: { ttlMs: 100 } });
      const adapter = await first.register();
      const decision = await first.decide(adapter, toolCall('p1', 'ls'));
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(await first.decide(adapter, toolCall('p2', 'ls'))).toMatchObject({ decision: 'ALLOW' });
      expect(executionsOf(place)).toMatchObject([{ error_code: 'ABANDONED' }]);
      if (isRestarted) await first.close();
      const server = isRestarted ? await place.serve() : first;
      for (let n = 0; n < 2; n += 1) expect((await server.report(adapter, decision)).status).toBe(200);
      expect((await server.report(adapter, decision, { success: false })).status).toBe(409);
      expect(executionsOf(place)).toMatchObject([{}, { outcome: 'success' }]);
      expect(await judge(place.path)).toMatchObject({
        verdict: 'violation',
        codes: ['AUTHORIZATION_REUSED'],
      });
    },
  );
});

describe('a replay', () => {
  const replayOf = async (server: CgfServer, id: string): Promise<Json> => {
    const { status, body } = await server.ask(`/v1/proposals/${encodeURIComponent(id)}/replay`);
    expect(status).toBe(200);
    return body['replay'] as Json;
  };

  it.each([true, false])('has all that is kept, after a restart too (attach: %s)', async (attach) => {
    const place = new CgfPlace();
    const face = { policy: policyBytes(), attach };
    const gate = { attach };
    const first = await place.serve(face, { gate });
    const adapter = await first.register();
    const decisions: Json[] = [];
    for (const tool of ['ls', 'to_constrain', 'to_block'])
      decisions.push(await first.decide(adapter, toolCall(`${tool}/1`, tool)));
    const [allowed, constrained] = decisions as [Json, Json, Json];
    await first.report(adapter, allowed, { result_summary: 'read it' });
    await first.report(adapter, constrained, { quarantined: true });
    const second = await place.serve(face, { gate });
    await first.close();
    for (const decision of decisions) {
      const id = decision['proposal_id'] as string;
      const replay = await replayOf(second, id);
      const { status, explanation_text: words, ...decided } = decision;
      expect([status, typeof words]).toEqual([200, 'string']);
      expect(replay).toMatchObject({ completeness: attach ? 'full' : 'decision-only', errors: [] });
      const isBound = decision['decision'] === 'CONSTRAIN' && !attach;
      expect(replay['decision']).toMatchObject(
        isBound ? { ...decided, constraint: { type: 'quarantine_namespace', params: {} } } : decided,
      );
      expect(replay['proposal']).toEqual(attach ? toolCall(id, id.slice(0, -2)) : null);
    }
    const { outcome, events } = await replayOf(second, 'ls/1');
    expect(outcome).toMatchObject({ executed: true, success: true, duration_ms: 40.06385803222656 });
    expect((outcome as Json)['result_summary']).toBe(attach ? 'read it' : undefined);
    expect((events as Json[]).map((event) => event['event_type'])).toEqual([
      ...['proposal_received', 'decision_made', 'action_allowed', 'outcome_logged'],
    ]);
    const missing = await second.ask('/v1/proposals/none/replay');
    expect([missing.status, missing.body]).toEqual([404, { detail: 'Proposal not found' }]);
  });
});

describe('an event log', () => {
  it('breaks no rule of CGF, and agrees with the ledger', async () => {
    const place = new CgfPlace();
    const events = join(temporaryFolder(), 'events.jsonl');
    const first = await place.serve({ policy: policyBytes(), events });
    const adapter = await first.register();
    const done: Json[] = [];
    for (const tool of ['ls', 'to_audit', 'to_constrain', 'to_block', 'to_defer'])
      done.push(await first.decide(adapter, toolCall(`p-${tool}`, tool)));
    for (const decision of done.slice(0, 2)) await first.report(adapter, decision);
    await first.close();
    const second = await place.serve({ policy: policyBytes(), events });
    await second.report(adapter, done[2]);
    // Nothing is told twice, or of what was refused.
    for (const decision of done.slice(0, 3)) await second.report(adapter, decision);
    await second.decide(adapter, toolCall('p-to_block', 'to_block'));
    await second.decide(adapter, toolCall('p-ls', 'rm'));
    await second.report(adapter, { ...done[0], decision_id: 'dec-0' });
    await second.close();
    const bytes = readFileSync(events);
    const { findings, items } = cgf.read([{ name: 'events.jsonl', bytes }]);
    expect(findings).toEqual([]);
    expect(items).toHaveLength(1 + 5 * 2 + 2 + 3 * 2);
    const shop = new Workshop();
    const run = shop.run(['reconcile', place.path, events, '--format', 'json']);
    expect(run.status).toBe(0);
    const report = JSON.parse(run.stdout) as { findings: unknown[]; totals?: unknown };
    expect(report.findings).toEqual([]);
  });

  it('ends a line that was cut off, and does not stop decisions when it cannot be written', async () => {
    const place = new CgfPlace();
    const folder = temporaryFolder();
    const failed: unknown[] = [];
    const server = await place.serve({ events: folder, onEventsFailed: ({ code }) => failed.push(code) });
    const adapter = await server.register();
    expect(await server.decide(adapter, toolCall('p1', 'ls'))).toMatchObject({ decision: 'ALLOW' });
    expect(failed).toHaveLength(1);
  });
});

describe('who asks', () => {
  const token = 'a-token-of-all-adapters';
  const entry = (name: string, text: string, principals: string[], more: Json = {}): Json => ({
    ...{ name, token: formatDigest(sha256Digest(Buffer.from(text))), principals },
    ...more,
  });
  const tokens = Tokens.parse(
    Buffer.from(
      JSON.stringify({
        tokens: [
          entry('one', 'token-one', ['agent:a1'], { tools: ['ls'] }),
          entry('two', 'token-two', ['service:cgf/*']),
          entry('reader', 'token-reader', ['agent:a1'], { may: ['read'] }),
        ],
      }),
    ),
  );

  it('must have the token, on an address', async () => {
    const place = new CgfPlace();
    const server = await place.serve({ token }, { service: { tokens } });
    for (const wrong of [undefined, 'a-token-of-all-adapter', 'token-none']) {
      for (const path of ['/v1/register', '/v1/evaluate', '/v1/outcomes/report', '/v1/capacity/signals'])
        expect((await server.ask(path, {}, wrong)).body).toEqual({ detail: 'Unauthorized' });
      expect((await server.ask('/v1/proposals/p1/replay', undefined, wrong)).status).toBe(401);
    }
    for (const open of ['/', '/v1/health']) expect((await server.ask(open)).status).toBe(200);
    const adapter = await server.register(token);
    const { body } = await server.evaluate(adapter, toolCall('p1', 'ls'), token);
    expect(body).toMatchObject({ decision: { decision: 'ALLOW' } });
  });

  it('keeps nobody else from registering', async () => {
    const server = await new CgfPlace().serve({}, { service: { tokens } });
    const ask = async (own: string): Promise<number> =>
      (await server.ask('/v1/register', REGISTRATION, own)).status;
    const many = await Promise.all(Array.from({ length: 61 }, () => ask('token-one')));
    expect(many.filter((status) => status === 429)).toHaveLength(1);
    expect([await ask('token-two'), await ask('token-one')]).toEqual([200, 429]);
  });

  it('speaks for the principal of its token, and for no other adapter', async () => {
    const place = new CgfPlace();
    const server = await place.serve({}, { service: { tokens } });
    const one = await server.register('token-one');
    const two = await server.register('token-two');
    const decide = async (adapter: string, id: string, tool: string, own: string): Promise<unknown[]> => {
      const { status, body } = await server.evaluate(adapter, toolCall(id, tool), own);
      return [status, (body['decision'] as Json | undefined)?.['reason_code']];
    };
    expect(await decide(one, 'p1', 'ls', 'token-one')).toEqual([200, 'ALLOW']);
    expect(await decide(one, 'p2', 'rm', 'token-one')).toEqual([403, 'TOOL_NOT_ALLOWED']);
    expect(await decide(one, 'p3', 'ls', 'token-two')).toEqual([401, 'ADAPTER_UNKNOWN']);
    expect(await decide(two, 'p4', 'ls', 'token-two')).toEqual([200, 'GRANT_NOT_FOUND']);
    expect((await server.ask('/v1/register', {}, 'token-reader')).status).toBe(403);
    for (const [own, status] of [
      ['token-reader', 200],
      ['token-one', 200],
      ['token-two', 404],
    ] as const)
      expect((await server.ask('/v1/proposals/p1/replay', undefined, own)).status).toBe(status);
    const [, , last] = place.eventsOf('authorization') as [Json, Json, Json];
    expect(last['principal_id']).toBe(`service:cgf/${two}`);
  });
});

it('nothing of parameters, results and tokens is in the ledger, in events or in answers that refuse', async () => {
  const secret = 'S3CRET';
  const place = new CgfPlace();
  const events = join(temporaryFolder(), 'events.jsonl');
  const logged: unknown[] = [];
  const server = await place.serve({ events }, { service: { onEvent: (event) => logged.push(event) } });
  const adapter = await server.register();
  const params = { tool_name: 'ls', tool_args_hash: 'ab', note: secret, target_path: `/${secret}` };
  const proposal = toolCall('p1', 'ls', { action_params: params, context_refs: [secret] });
  const decision = await server.decide(adapter, proposal);
  await server.report(adapter, decision, { result_summary: secret, errors: [secret] });
  const refused = [
    await server.evaluate(adapter, { ...proposal, risk_tier: secret }),
    await server.evaluate(adapter, { ...proposal, timestamp: secret, action_type: secret }),
    await server.ask('/v1/evaluate', `{"${secret}":1,"${secret}":2}`),
    await server.report(adapter, decision, { result_summary: `${secret}2` }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([422, 422, 422, 409]);
  const text = [readFileSync(place.path), readFileSync(events), JSON.stringify([logged, refused])].join('');
  expect(text).not.toContain(secret);
});
