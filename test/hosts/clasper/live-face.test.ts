/** The live face: what an adapter is told, and what the ledger then says. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { parsePasskey } from '../../../src/format/key/passkey.js';
import { serveGate } from '../../../src/gate/service/serve-gate.js';
import { clasperFace } from '../../../src/hosts/clasper/index.js';
import { stepHash } from '../../../src/hosts/clasper/steps.js';
import { makeKeyEntry } from '../../../src/rules/trust/key-entry.js';
import { Authenticator } from '../../key/authenticator.js';
import {
  ADAPTER,
  authorize,
  BOUNDS,
  claimsOf,
  COST,
  envelope,
  executionRequest,
  HOST,
  type Json,
  live,
  type Live,
  METRICS,
  OPERATOR,
  register,
  type Reply,
  SECRETS,
  source,
  token,
} from './live-kit.js';

const OK = { status: 200, body: { status: 'ok' } };
const DUPLICATE = { status: 200, body: { status: 'duplicate' } };

function refused(status: number, code: string): object {
  return { status, body: { code } };
}

function report({ send }: Pick<Live, 'send'>, type: string, payload: object, edit?: object): Promise<Reply> {
  return send('POST', `/api/ingest/${type}`, envelope(type, payload, edit));
}

/** A trace of one call of a tool, its steps chained. */
function trace(jti: string, edit: object = {}, data: object = {}): object {
  const steps = [
    {
      type: 'tool_call',
      timestamp: new Date().toISOString(),
      durationMs: 15,
      data: {
        toolCallId: 'c1',
        toolName: 'filesystem.read',
        arguments: { path: '/etc/hosts' },
        permitted: true,
        tool_token_jti: jti,
        ...data,
      },
    },
    {
      type: 'tool_result',
      timestamp: new Date().toISOString(),
      durationMs: 1,
      data: { toolCallId: 'c1', toolName: 'filesystem.read', success: true, result: { bytes: 12 } },
    },
  ];
  let before: string | null = null;
  const chained = steps.map((step) => {
    const linked = { step_id: step.type, prev_step_hash: before, ...step };
    before = stepHash(source(linked), true);
    return { ...linked, step_hash: before };
  });
  return {
    trace: {
      id: 'trace1',
      tenantId: 'dev-tenant',
      workspaceId: 'dev-tenant',
      startedAt: new Date().toISOString(),
      skillVersions: {},
      model: 'm',
      provider: 'p',
      input: { message: 'SECRET PROMPT', messageHistory: 0 },
      steps: chained,
      usage: { inputTokens: 10, outputTokens: 5, totalCost: 0.25 },
      ...edit,
    },
  };
}

async function jtiOf({ send }: Pick<Live, 'send'>, body?: object): Promise<string> {
  const { tool_token: text } = (await authorize(send, body)).body;
  return claimsOf(text)['jti'];
}

function executions(events: readonly Json[]): readonly Json[] {
  return events.filter(({ event_type: type }) => type === 'execution');
}

describe('an execution', () => {
  it('is allowed, uses a tool, reports once, and leaves a ledger that verifies and holds no contents', async () => {
    const served = await live();
    const { send, ask, events, verdict } = served;
    await register(send);
    expect(await ask()).toMatchObject({
      status: 200,
      body: {
        allowed: true,
        decision: 'allow',
        execution_id: 'exec1',
        granted_scope: { capabilities: ['filesystem.read'], max_steps: 10, max_cost: 0.5 },
      },
    });
    const tool = await authorize(send);
    expect(tool).toMatchObject({ status: 200, body: { decision: 'allow' } });
    expect(claimsOf(tool.body['tool_token'])).toMatchObject({
      typ: 'tool_auth',
      tool: 'filesystem.read',
      execution_id: 'exec1',
      scope: { path: '/etc/hosts' },
    });
    const { jti } = claimsOf(tool.body['tool_token']);
    const reports = [
      ['trace', trace(jti)],
      ['cost', COST],
      ['metrics', METRICS],
      ['audit', { event_type: 'done', message: 'SECRET', occurred_at: 'x' }],
      ['violations', { violation_type: 'late', message: 'SECRET', occurred_at: 'x' }],
    ] as const;
    for (const [type, payload] of reports) {
      const sent = envelope(type, payload);
      expect(await send('POST', `/api/ingest/${type}`, sent), type).toMatchObject(OK);
      expect(await send('POST', `/api/ingest/${type}`, sent), type).toMatchObject(DUPLICATE);
    }
    expect(executions(events())).toMatchObject([
      { tool_name: 'filesystem.read', outcome: 'success', source: { system: 'clasper', id: jti } },
      { tool_name: 'clasper.execution', source: { id: 'cost:dev-tenant/exec1' }, principal_id: ADAPTER },
      { tool_name: 'clasper.execution', source: { id: 'metrics:dev-tenant/exec1' } },
    ]);
    const text = JSON.stringify(events());
    for (const secret of ['SECRET', '/etc/hosts', token().split('.')[2], tool.body['tool_token']])
      expect(text).not.toContain(secret);
    expect(await verdict()).toBe('ok');
  });

  it('is answered alike when it is asked for again, and not at all with another scope', async () => {
    const { ask, events } = await live();
    const first = await ask();
    const before = events().length;
    expect(await ask()).toEqual(first);
    expect(events()).toHaveLength(before);
    expect(await ask({ max_cost: 5 })).toMatchObject(refused(409, 'execution_conflict'));
  });

  it('gets no more than is left, and holds it until it reports', async () => {
    const served = await live({}, { meterCaps: { usd: '1' } });
    await register(served.send);
    expect(await served.ask({ max_cost: 0.75 })).toMatchObject({
      body: { granted_scope: { max_cost: 0.75 } },
    });
    expect(await served.ask({ execution_id: 'exec2', max_cost: 5 })).toMatchObject({
      body: { allowed: true, granted_scope: { max_cost: 0.25 } },
    });
    expect(
      await served.ask({ execution_id: 'exec3', max_cost: undefined, estimated_cost: 0.01 }),
    ).toMatchObject({
      body: { allowed: false, decision: 'deny', blocked_reason: 'budget_exceeded' },
    });
    expect(await report(served, 'cost', { ...COST, cost_usd: 0.5 })).toMatchObject(OK);
    expect(await served.ask({ execution_id: 'exec4', max_cost: 0.25 })).toMatchObject({
      body: { allowed: true },
    });
    expect(await served.verdict()).toBe('ok');
  });

  it('is its own, however many are asked for at the same moment', async () => {
    const moment = new Date().toISOString();
    const { ask, verdict } = await live({}, BOUNDS, () => moment);
    const ends = await Promise.all(Array.from({ length: 20 }, (_, n) => ask({ execution_id: `e${n}` })));
    expect(ends.map(({ body }) => body['allowed'])).toEqual(Array<boolean>(20).fill(true));
    expect(await verdict()).toBe('ok');
  });

  it('counts once against a limit of concurrency, and ends with its cost', async () => {
    const served = await live({}, { concurrencyLimit: 1 });
    await register(served.send);
    expect(await served.ask()).toMatchObject({ body: { allowed: true } });
    expect(await served.ask({ execution_id: 'exec2' })).toMatchObject({ body: { allowed: false } });
    expect(await report(served, 'cost', COST)).toMatchObject(OK);
    expect(await authorize(served.send)).toMatchObject({ body: { decision: 'deny' } });
    expect(await served.ask({ execution_id: 'exec3' })).toMatchObject({ body: { allowed: true } });
  });

  it('whose steps were reported before its cost holds its cost, however often it is asked for', async () => {
    const served = await live({}, { meterCaps: { usd: '10', 'clasper.steps': '100' } });
    await register(served.send);
    const first = await served.ask();
    expect(await report(served, 'metrics', METRICS)).toMatchObject(OK);
    expect(await served.ask()).toEqual(first);
    const { send } = await served.another();
    const again = await send('POST', '/api/execution/request', executionRequest());
    expect(again.body).toEqual(first.body);
    expect(await authorize(send)).toMatchObject({ body: { decision: 'allow' } });
    expect(await report(served, 'cost', COST)).toMatchObject(OK);
    const { balances } = await served.gate.ledger.budget(served.grantId);
    expect(balances.map(({ unit, left }) => [unit, formatQuantity(left)])).toEqual([
      ['clasper.steps', '97'],
      ['usd', '9.75'],
    ]);
  });

  it('of another adapter with the same id is another one, and so are its reports', async () => {
    const served = await live({ signatures: 'warn' });
    await served.ask();
    const as = { 'x-adapter-token': token({ adapter_id: 'other' }) };
    const asked = executionRequest({ adapter_id: 'other' });
    const allowed = await served.send('POST', '/api/execution/request', asked, as);
    expect(allowed).toMatchObject({ body: { allowed: true } });
    const ids = {
      tenant_id: 'dev-tenant',
      workspace_id: 'dev-tenant',
      execution_id: 'exec1',
      trace_id: 't',
    };
    const told = { ...ids, adapter_id: 'other', ...COST, cost_usd: 0 };
    expect(await served.send('POST', '/api/ingest/cost', told, as)).toMatchObject(OK);
    const { send } = await served.another();
    const own = { ...ids, adapter_id: 'openclaw', ...COST };
    expect(await send('POST', '/api/ingest/cost', own)).toMatchObject(OK);
    expect(await send('POST', '/api/ingest/cost', own)).toMatchObject(DUPLICATE);
    const { balances } = await served.gate.ledger.budget(served.grantId);
    expect(balances.map(({ left }) => formatQuantity(left))).toEqual(['9.75']);
  });

  it('is neither used nor ended from another workspace, nor beyond what a token may', async () => {
    const served = await live({ signatures: 'warn' });
    await served.ask({ requested_capabilities: ['filesystem.read', 'shell.exec'] });
    const { send } = await served.another();
    const as =
      (claims: object): Live['send'] =>
      (method, path, body) =>
        send(method, path, body, { 'x-adapter-token': token(claims) });
    const elsewhere = as({ workspace_id: 'w2' });
    const denied = { body: { decision: 'deny', policy_id: 'execution_not_allowed' } };
    expect(await authorize(elsewhere)).toMatchObject(denied);
    const cost = {
      tenant_id: 'dev-tenant',
      workspace_id: 'w2',
      execution_id: 'exec1',
      trace_id: 't',
      adapter_id: 'openclaw',
      ...COST,
    };
    expect(await elsewhere('POST', '/api/ingest/cost', cost)).toMatchObject(
      refused(403, 'execution_not_allowed'),
    );
    const narrow = as({ allowed_capabilities: ['filesystem'] });
    expect(await authorize(narrow)).toMatchObject({ body: { decision: 'allow' } });
    expect(await authorize(narrow, { tool: 'shell.exec' })).toMatchObject({
      body: { decision: 'deny', policy_id: 'capability_not_allowed' },
    });
    expect(await authorize(send, { tool: 'shell.exec' })).toMatchObject({ body: { decision: 'allow' } });
  });

  it.each([
    ['of another tenant', { tenant_id: 'other' }, 'Adapter scope mismatch'],
    ['of another adapter', { adapter_id: 'other' }, 'Adapter scope mismatch'],
    [
      'with a capability that the token lacks',
      { requested_capabilities: ['payments'] },
      'Capability not allowed',
    ],
  ])('%s is refused, and the refusal is recorded', async (_, body, error) => {
    const { ask, events } = await live();
    expect(await ask(body)).toMatchObject({ status: 403, body: { error } });
    expect(events().at(-1)).toMatchObject({
      event_type: 'authorization',
      decision: 'deny',
      principal_id: HOST,
    });
  });

  it('of a tenant without a grant, or beyond it, is denied', async () => {
    const { ask, send } = await live();
    const other = token({ tenant_id: 't2', workspace_id: 't2' });
    const body = { tenant_id: 't2', workspace_id: 't2', adapter_id: 'openclaw', tool_count: 1 };
    expect(
      await send(
        'POST',
        '/api/execution/request',
        { ...body, requested_capabilities: ['filesystem.read'] },
        { 'x-adapter-token': other },
      ),
    ).toMatchObject({ status: 200, body: { allowed: false, blocked_reason: 'policy_denied' } });
    expect(await ask({ requested_capabilities: ['db.drop'] })).toMatchObject({ body: { decision: 'deny' } });
  });
});

describe('a token', () => {
  const now = Math.floor(Date.now() / 1000);
  it.each([
    ['with no algorithm', token({}, '', { alg: 'none' })],
    ['without a signature', `${token().split('.').slice(0, 2).join('.')}.`],
    ['that says RS256', token({}, SECRETS.adapter, { alg: 'RS256' })],
    ['that names what must be understood', token({}, SECRETS.adapter, { alg: 'HS256', crit: ['x'] })],
    ['by another secret', token({}, 'other')],
    ['that is over', token({ exp: now - 1 })],
    ['without an end', token({ exp: undefined })],
    ['that begins later', token({ nbf: now + 3600 })],
    ['for somebody else', token({ aud: 'other' })],
    ['of another type', token({ type: 'decision' })],
    ['without a tenant', token({ tenant_id: undefined })],
    ['that is edited', token().replace(/\.(.)/, (_, first: string) => `.${first === 'e' ? 'f' : 'e'}`)],
    ['that is no token', 'secret'],
  ])('%s is refused', async (_, text) => {
    const { ask, send, events } = await live();
    const before = events().length;
    const reply = await send('POST', '/api/execution/request', {}, { 'x-adapter-token': text });
    expect(reply.status).toBe(403);
    expect(events()).toHaveLength(before);
    expect(await ask()).toMatchObject({ status: 200 });
  });

  it('may name the audience that is expected', async () => {
    const { send } = await live({ audience: 'gate' });
    const ask = (aud: unknown): Promise<Reply> =>
      send('GET', '/api/decisions/none', undefined, { 'x-adapter-token': token({ aud }) });
    expect(await ask(['x', 'gate'])).toMatchObject({ status: 404 });
    expect(await ask('other')).toMatchObject(refused(403, 'invalid_token'));
    expect(await ask(undefined)).toMatchObject(refused(403, 'invalid_token'));
  });
});

describe('what nobody may decide alone', () => {
  async function pending(served: Live): Promise<string> {
    const reply = await served.ask({ requested_capabilities: ['shell.exec'] });
    expect(reply).toMatchObject({ body: { allowed: false, decision: 'pending', requires_approval: true } });
    expect(await served.ask({ requested_capabilities: ['shell.exec'] })).toEqual(reply);
    return reply.body['decision_id'];
  }
  const poll = ({ send }: Pick<Live, 'send'>, id: string): Promise<Reply> =>
    send('GET', `/api/decisions/${encodeURIComponent(id)}`);
  const consume = ({ send }: Pick<Live, 'send'>, id: string, text: string): Promise<Reply> =>
    send('POST', `/api/decisions/${encodeURIComponent(id)}/consume`, {}, { 'x-decision-token': text });

  it('waits for an approval in the ledger, and begins once, in any process', async () => {
    const served = await live({ approveCapabilities: ['shell.*'] });
    const id = await pending(served);
    expect(await poll(served, id)).toMatchObject({
      body: { status: 'pending', decision_token_used_at: null },
    });
    expect(await authorize(served.send, { tool: 'shell.exec' })).toMatchObject({
      body: { decision: 'deny' },
    });
    const other = await served.another();
    expect(await poll(other, id)).toMatchObject({ body: { status: 'pending' } });
    await other.gate.ledger.approve(id, { principalId: 'human:olga' });
    const approved = await poll(served, id);
    expect(approved).toMatchObject({ body: { status: 'approved', resolution: { actor: 'human:olga' } } });
    const text = approved.body['decision_token'] as string;
    const ends = await Promise.all([
      consume(served, id, text),
      consume(other, id, text),
      consume(served, id, text),
    ]);
    expect(ends.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(await consume(await served.another(), id, text)).toMatchObject({
      status: 409,
      body: { error: 'Decision token already used' },
    });
    expect(await authorize(served.send, { tool: 'shell.exec' })).toMatchObject({
      body: { decision: 'allow' },
    });
    expect((await poll(served, id)).body['decision_token_used_at']).toEqual(expect.any(String));
    expect(await served.verdict()).toBe('ok');
  });

  it.each([
    ['browser.pay', 'browser', 'pending'],
    ['browser.pay.*', 'browser', 'pending'],
    ['browser.*', 'browser.pay', 'pending'],
    ['browser.pay', 'browser.read', 'allow'],
    ['browsers.pay', 'browser', 'allow'],
  ])('%s: what has it in it, such as %s, is answered with %s', async (pattern, capability, decision) => {
    const { send } = await live({ approveCapabilities: [pattern] });
    const as = { 'x-adapter-token': token({ allowed_capabilities: [capability] }) };
    const asked = executionRequest({ requested_capabilities: [capability] });
    expect(await send('POST', '/api/execution/request', asked, as)).toMatchObject({ body: { decision } });
  });

  it('is not begun by anybody else, nor after a rejection', async () => {
    const served = await live({ approveCapabilities: ['shell.*'] });
    const id = await pending(served);
    const path = `/api/decisions/${encodeURIComponent(id)}`;
    for (const claims of [{ adapter_id: 'other' }, { workspace_id: 'other' }, { tenant_id: 'other' }])
      expect(await served.send('GET', path, undefined, { 'x-adapter-token': token(claims) })).toMatchObject({
        status: 403,
        body: { error: 'Decision scope mismatch' },
      });
    expect(await consume(served, id, token())).toMatchObject(refused(400, 'invalid_token'));
    await served.gate.ledger.reject(id, { principalId: 'human:olga' });
    const denied = await poll(served, id);
    expect(denied).toMatchObject({ body: { status: 'denied' } });
    expect(denied.body).not.toHaveProperty('decision_token');
    expect(await served.verdict()).toBe('ok');
  });

  it('is asked for by a rule of the grant too', async () => {
    const served = await live(
      {},
      { approvals: [{ tools: ['clasper.execution'], approvers: ['human:*'], above: { usd: '1' } }] },
    );
    expect(await served.ask()).toMatchObject({ body: { allowed: true } });
    const { body } = await served.ask({ execution_id: 'exec2', max_cost: 2 });
    expect(body).toMatchObject({ decision: 'pending' });
    await served.gate.ledger.approve(body['decision_id'], { principalId: 'human:olga' });
    const approved = await poll(served, body['decision_id']);
    expect(await consume(served, body['decision_id'], approved.body['decision_token'])).toMatchObject(OK);
    expect(await served.verdict()).toBe('ok');
  });
});

describe('telemetry that lies', () => {
  it.each([
    ['cost', { ...COST, cost_usd: 99 }, 'cost_exceeded', 400],
    ['cost', { ...COST, cost_usd: -1 }, 'amount_invalid', 400],
    ['cost', { ...COST, input_tokens: -5 }, 'amount_invalid', 400],
    ['metrics', { ...METRICS, step_count: 11 }, 'steps_exceeded', 400],
    ['cost', { ...COST, execution_id: 'never' }, 'execution_not_allowed', 403],
    ['trace', trace('made-up'), 'tool_token_invalid_or_reused', 400],
    ['trace', trace(''), 'tool_token_missing', 400],
    ['trace', trace('x', { id: 'other' }), 'id_mismatch', 400],
    ['trace', trace('x', { usage: { totalCost: 7 } }), 'cost_exceeded', 400],
    ['trace', trace('x', {}, { permitted: false }), 'ran_though_not_permitted', 400],
  ])('%s %#: is refused, recorded once, and changes nothing else', async (type, payload, code, status) => {
    const served = await live();
    await register(served.send);
    await served.ask();
    const before = served.events().length;
    for (let times = 0; times < 2; times += 1)
      expect(await report(served, type, payload)).toMatchObject(refused(status, code));
    const added = served.events().slice(before);
    expect(added).toMatchObject([{ event_type: 'x.clasper.telemetry_refused', reason: code.toUpperCase() }]);
    expect(await report(served, 'cost', COST)).toMatchObject(OK);
    expect(await served.verdict()).toBe('ok');
  });

  it('is refused by its envelope before anything else is looked at', async () => {
    const served = await live();
    await register(served.send);
    await served.ask();
    const before = served.events().length;
    const ask = (edit: object): Promise<Reply> => report(served, 'cost', COST, edit);
    expect(await ask({ payload_hash: 'sha256:00' })).toMatchObject(refused(400, 'payload_hash_mismatch'));
    expect(await ask({ issued_at: '2020-01-01T00:00:00Z' })).toMatchObject(refused(400, 'timestamp_skew'));
    expect(await ask({ signature: 'AAAA' })).toMatchObject(refused(400, 'invalid_signature'));
    expect(await ask({ adapter_version: '9' })).toMatchObject(refused(400, 'missing_key'));
    expect(await ask({ payload_type: 'metrics' })).toMatchObject(refused(400, 'payload_type_mismatch'));
    const { ['payload']: bare } = envelope('cost', COST) as Json;
    expect(await served.send('POST', '/api/ingest/cost', bare)).toMatchObject(refused(400, 'missing_key'));
    expect(served.events()).toHaveLength(before);
    expect(await ask({ execution_id: 'other' })).toMatchObject(refused(400, 'id_mismatch'));
    const other = { 'x-adapter-token': token({ adapter_id: 'other' }) };
    expect(await served.send('POST', '/api/ingest/cost', envelope('cost', COST), other)).toMatchObject({
      status: 403,
    });
    await served.send('POST', '/ops/api/adapters/telemetry-key/revoke', {
      adapter_id: 'openclaw',
      version: '1.0.0',
    });
    expect(await ask({})).toMatchObject(refused(400, 'missing_key'));
  });

  it('with other content than before is a conflict, or a duplicate where that is wanted', async () => {
    for (const compatible of [false, true]) {
      const served = await live({ compatible });
      await register(served.send);
      await served.ask();
      expect(await report(served, 'cost', COST)).toMatchObject(OK);
      const other = await report(await served.another(), 'cost', { ...COST, cost_usd: 0.5 });
      expect(other).toMatchObject(compatible ? DUPLICATE : refused(409, 'conflict'));
      expect(served.events().at(-1)).toMatchObject({ event_type: 'x.clasper.telemetry_conflict' });
    }
  });

  it('cannot use the token of a tool twice, nor for another tool, nor of another execution', async () => {
    const served = await live();
    await register(served.send);
    await served.ask();
    await served.ask({ execution_id: 'exec2' });
    const jti = await jtiOf(served);
    const other = await jtiOf(served, { execution_id: 'exec2' });
    expect(await report(served, 'trace', trace(other))).toMatchObject(
      refused(400, 'tool_token_invalid_or_reused'),
    );
    expect(await report(served, 'trace', trace(jti, {}, { toolName: 'filesystem.write' }))).toMatchObject(
      refused(400, 'tool_token_other_tool'),
    );
    expect(await report(served, 'trace', trace(jti))).toMatchObject(OK);
    expect(await report(served, 'trace', trace(jti, { model: 'other' }))).toMatchObject(
      refused(409, 'conflict'),
    );
  });
});

describe('what is reported late', () => {
  it('is kept, and refunds nothing', async () => {
    const served = await live();
    await register(served.send);
    await served.ask();
    const jti = await jtiOf(served);
    const open = served.gate.listOpen('exec1');
    expect(open.map(({ tool }) => tool)).toEqual(['clasper.execution', 'filesystem.read']);
    // As the gate does with what took longer than it may.
    for (const { authorization, start } of open)
      await served.gate.ledger.abandon(authorization, { start: start! });
    expect(await report(served, 'cost', COST)).toMatchObject(OK);
    expect(await report(served, 'cost', COST)).toMatchObject(DUPLICATE);
    expect(await report(served, 'cost', { ...COST, cost_usd: 0.1 })).toMatchObject(refused(409, 'conflict'));
    expect(await report(served, 'trace', trace(jti))).toMatchObject(OK);
    expect(served.events().map(({ event_type: type }) => type)).toContain('x.clasper.late_report');
    const { balances } = await served.gate.ledger.budget(served.grantId);
    expect(balances.map(({ unit, left }) => [unit, formatQuantity(left)])).toEqual([['usd', '9.5']]);
    expect(await served.verdict()).toBe('ok');
  });
});

describe('hostile requests', () => {
  it.each([
    ['', 'invalid_json'],
    ['[]', 'invalid_json'],
    ['{"adapter_id":"a","adapter_id":"b"}', 'invalid_json'],
    ['['.repeat(5000), 'invalid_json'],
  ])('%# are refused', async (body, code) => {
    const { send } = await live();
    expect(await send('POST', '/api/execution/request', body)).toMatchObject(refused(400, code));
  });

  it('say which members are wrong, and nothing of their content', async () => {
    const { ask } = await live();
    const { status, body } = await ask({
      requested_capabilities: Array.from({ length: 100 }, () => 'x'),
      max_cost: -1,
      max_steps: 1.5,
      execution_id: 'SECRET'.repeat(100),
    });
    expect(status).toBe(400);
    expect(Object.keys(body['details']['fieldErrors'])).toEqual([
      'execution_id',
      'requested_capabilities',
      'max_steps',
      'max_cost',
    ]);
    expect(JSON.stringify(body)).not.toContain('SECRET');
  });

  it('with any member something else are answered, and the ledger stays whole', async () => {
    const served = await live({ signatures: 'warn' });
    await register(served.send);
    await served.ask();
    const { payload } = envelope('cost', COST) as Json;
    const bodies: Readonly<Record<string, object>> = {
      '/adapters/register': { adapter_id: 'openclaw', display_name: 'O', risk_class: 'low', version: '1' },
      '/api/execution/request': executionRequest(),
      '/api/governance/tool/authorize': {
        execution_id: 'exec1',
        adapter_id: 'openclaw',
        tool: 'filesystem.read',
        requested_scope: {},
      },
      '/api/ingest/cost': payload,
      '/api/ingest/metrics': envelope('metrics', METRICS),
      '/api/ingest/trace': (envelope('trace', trace('x')) as Json)['payload'],
    };
    const odd = [
      'null',
      '-1',
      '1e400',
      '0.1234567890123456789',
      '""',
      '"\\ud800"',
      '[[]]',
      '{"a":1e999}',
      '"\\u0000/:%"',
    ];
    for (const [path, body] of Object.entries(bodies))
      for (const name of Object.keys(body))
        for (const value of odd) {
          const rest = JSON.stringify({ ...body, [name]: undefined }).slice(1);
          const text = `{"${name}":${value},${rest}`;
          const { status } = await served.send('POST', path, text);
          expect(status, `${path} ${text}`).toBeLessThan(500);
        }
    expect(await served.verdict()).toBe('ok');
  });

  it('without a valid token have no body in a recording', async () => {
    const bodies: (readonly [number, boolean])[] = [];
    const { send, ask } = await live({
      onExchange: ({ status, request }) => Promise.resolve(void bodies.push([status, request !== null])),
    });
    const body = executionRequest();
    for (const text of ['', 'none', token({}, 'another secret'), token({ type: 'operator' })])
      await send('POST', '/api/execution/request', body, { 'x-adapter-token': text });
    await ask({ adapter_id: 'other' });
    await ask();
    expect(bodies).toEqual([
      ...[401, 403, 403, 403].map((status) => [status, false]),
      ...[403, 200].map((status) => [status, true]),
    ]);
  });

  it('for keys and approvals are the service’s to allow, not an adapter’s', async () => {
    const served = await live({ approveCapabilities: ['shell.*'] });
    const { body } = await served.ask({ requested_capabilities: ['shell.exec'] });
    const server = await serveGate({
      gate: served.gate,
      listen: { port: 0 },
      faces: [clasperFace({ secrets: SECRETS })],
    });
    onTestFinished(() => server.close());
    const ask = (path: string, what: object): Promise<number> =>
      fetch(`${server.urls[0]}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-adapter-token': token() },
        body: JSON.stringify(what),
      }).then(({ status }) => status);
    const resolve = `/api/decisions/${encodeURIComponent(body['decision_id'])}/resolve`;
    expect(await ask(resolve, { action: 'approve', justification: 'because I say so' })).toBe(401);
    expect(await ask('/ops/api/adapters/telemetry-key', { adapter_id: 'openclaw' })).toBe(401);
    expect(await ask('/api/execution/request', executionRequest())).toBe(200);
  });

  it('for approvals are refused of a principal that has a passkey', async () => {
    const served = await live({ approveCapabilities: ['shell.*'] });
    const { body } = await served.ask({ requested_capabilities: ['shell.exec'] });
    const { publicKey, webauthn } = parsePasskey(new Authenticator().register());
    const key = makeKeyEntry(publicKey, { principals: [OPERATOR], webauthn });
    await served.gate.ledger.append({ event: { event_type: 'key', action: 'add', key } });
    for (const action of ['approve', 'deny', 'approve_with_override']) {
      const resolve = `/api/decisions/${encodeURIComponent(body['decision_id'])}/resolve`;
      const { status } = await served.send('POST', resolve, { action, justification: 'because I say so' });
      expect(status).toBe(403);
    }
    expect(served.events().map(({ event_type: type }) => type)).not.toContain('approval');
  });

  it('cannot have the tool of executions authorized', async () => {
    const served = await live();
    await served.ask();
    expect(await authorize(served.send, { tool: 'clasper.execution' })).toMatchObject({
      body: { decision: 'deny', reason: 'policy_denied' },
    });
  });
});
