/** Clasper's adapter: executions, their tools, and what is reported of them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkEnvelope } from '../../../src/hosts/clasper/envelope.js';
import { readTelemetryKey } from '../../../src/hosts/clasper/keys.js';
import { checkSteps } from '../../../src/hosts/clasper/steps.js';
import { ClasperClient, ClasperDeniedError } from '../../../src/hosts/clasper/index.js';
import type { Asked, Said } from '../live/scripted-server.js';
import {
  allows,
  IDS,
  issues,
  jwt,
  openClient,
  pends,
  READ,
  scope,
  serveClasper,
  SIGNERS,
} from './client-kit.js';
import { parseObject } from './kit.js';

const REQUEST = '/api/execution/request';
const TOOL = '/api/governance/tool/authorize';

describe('an execution', () => {
  it('that is allowed is a grant, under the names of an import', async () => {
    const server = await serveClasper();
    const { client, last, verdict } = await openClient(server.url);
    const execution = await client.begin({ ...READ, intent: 'read_config', maxSteps: 10, maxCost: 0.5 });
    const [{ body, headers }] = server.of(REQUEST);
    expect(headers['x-adapter-token']).toBe('S3CRET-adapter-token');
    expect(body).toMatchObject({
      ...{ ...IDS, execution_id: execution.id, requested_capabilities: ['fs.read'], tool_count: 1 },
      ...{ intent: 'read_config', max_steps: 10, max_cost: 0.5 },
    });
    expect(last('grant')).toMatchObject({
      ...{ decision: 'allow', decision_code: 'ALLOWED', policy_id: 'clasper:no-match' },
      principal_id: 'agent:clasper/t1/openclaw',
      source: { system: 'clasper', id: execution.id },
      authorization: {
        bounds: {
          allowed_tools: ['clasper.execution', 'fs.read', 'fs.read.*'],
          meter_caps: [
            { unit: 'clasper.steps', amount: { t: 'int', v: '10' } },
            { unit: 'usd', amount: { t: 'dec', m: '5', s: 1 } },
          ],
          expires_at: expect.any(String),
        },
      },
    });
    expect(await verdict()).toBe('ok');
  });

  it.each<[string, (asked: Asked) => Said, string]>([
    [
      'is denied',
      ({ body }) => ({
        body: {
          allowed: false,
          execution_id: body.execution_id,
          decision: 'deny',
          blocked_reason: 'policy_denied',
        },
      }),
      'POLICY_DENIED',
    ],
    [
      'is denied by a word of the ledger',
      ({ body }) => ({
        body: {
          allowed: false,
          execution_id: body.execution_id,
          decision: 'deny',
          blocked_reason: 'approval_required',
        },
      }),
      'CLASPER_APPROVAL_REQUIRED',
    ],
    [
      'asks too much',
      () => ({ status: 403, body: { error: 'Capability not allowed', capabilities: ['x'] } }),
      'CAPABILITY_NOT_ALLOWED',
    ],
    [
      'is not its own',
      () => ({ status: 403, body: { error: 'Adapter scope mismatch' } }),
      'ADAPTER_SCOPE_MISMATCH',
    ],
    ['has no token', () => ({ status: 401, body: { error: 'Missing adapter token' } }), 'FORBIDDEN'],
    ['is malformed', () => ({ status: 400, body: { error: 'Invalid payload' } }), 'CLASPER_INVALID_RESPONSE'],
    [
      'is answered about another',
      (asked) => allows(asked, { execution_id: 'exec_other' }),
      'CLASPER_INVALID_RESPONSE',
    ],
    ['is allowed and denied', (asked) => allows(asked, { decision: 'deny' }), 'CLASPER_INVALID_RESPONSE'],
    [
      'is granted nothing',
      (asked) => allows(asked, { granted_scope: undefined }),
      'CLASPER_INVALID_RESPONSE',
    ],
    [
      'is granted another capability',
      (asked) => allows(asked, {}, { capabilities: ['db.drop'] }),
      'CAPABILITY_NOT_ALLOWED',
    ],
    [
      'is granted what is over',
      (asked) => allows(asked, {}, { expires_at: '2020-01-01T00:00:00Z' }),
      'GRANT_EXPIRED',
    ],
    ['is granted half a step', (asked) => allows(asked, {}, { max_steps: 0.5 }), 'CLASPER_INVALID_RESPONSE'],
    [
      'is granted less than nothing',
      (asked) => allows(asked, {}, { max_cost: -1 }),
      'CLASPER_INVALID_RESPONSE',
    ],
    ['is granted no end', (asked) => allows(asked, {}, { expires_at: 'soon' }), 'CLASPER_INVALID_RESPONSE'],
    ['is granted no budget', (asked) => allows(asked, {}, { max_cost: 0 }), 'MAX_COST_ZERO'],
    ['is answered junk', () => ({ body: '<html>' }), 'CLASPER_INVALID_RESPONSE'],
    ['is answered at length', () => ({ body: ' '.repeat(1_100_000) }), 'CLASPER_INVALID_RESPONSE'],
    [
      'is sent elsewhere',
      () => ({ status: 308, headers: { location: '/elsewhere' } }),
      'CLASPER_INVALID_RESPONSE',
    ],
    ['is not answered', () => 'drop', 'CLASPER_UNREACHABLE'],
    ['fails', () => ({ status: 500 }), 'CLASPER_INVALID_RESPONSE'],
    ['meets a proxy', () => ({ status: 502 }), 'CLASPER_UNREACHABLE'],
  ])('that %s does not begin, and is recorded', async (_, answer, code) => {
    const server = await serveClasper((asked) => (asked.path === REQUEST ? answer(asked) : undefined));
    const { client, last, verdict } = await openClient(server.url);
    const denied = await client.begin(READ).catch((error: unknown) => error);
    expect(denied).toBeInstanceOf(ClasperDeniedError);
    expect(denied).toMatchObject({ code });
    expect(last('grant')).toMatchObject({ decision: 'deny', decision_code: code });
    expect(await verdict()).toBe('ok');
    expect(server.asked).toHaveLength(1);
  });

  it('of cost 0 has no cap where that is what it means', async () => {
    const server = await serveClasper((asked) =>
      asked.path === REQUEST ? allows(asked, {}, { max_cost: 0 }) : undefined,
    );
    const { client, last } = await openClient(server.url, { zeroCost: 'unlimited' });
    await client.begin(READ);
    expect(last('grant').authorization.bounds.meter_caps.map(({ unit }: { unit: string }) => unit)).toEqual([
      'clasper.steps',
    ]);
  });

  it('is asked for once by its id', async () => {
    const server = await serveClasper();
    const { client } = await openClient(server.url);
    await client.begin({ ...READ, executionId: 'exec_1' });
    await expect(client.begin({ ...READ, executionId: 'exec_1' })).rejects.toThrow(RangeError);
    await expect(client.begin({ ...READ, executionId: '../x' })).rejects.toThrow(RangeError);
    expect(server.of(REQUEST)).toHaveLength(1);
  });
});

describe('an execution that waits for somebody', () => {
  interface Desk {
    status: string;
    token?: string | undefined;
    consumed: number;
    answer?: Said;
  }
  const serveDesk = (desk: Desk) =>
    serveClasper((asked) => {
      if (asked.path === REQUEST) return pends(asked);
      if (asked.path === '/api/decisions/d-1') {
        const body = { decision_id: 'd-1', status: desk.status, decision_token: desk.token };
        return {
          body: { ...body, granted_scope: scope(), resolution: { action: 'approve', role: 'admin' } },
        };
      }
      if (asked.path !== '/api/decisions/d-1/consume') return undefined;
      desk.consumed += 1;
      if (desk.answer !== undefined) return desk.answer;
      return desk.consumed === 1 ? { body: { status: 'ok' } } : { status: 409 };
    });
  const tokenFor = (executionId: string, members: object = {}): string =>
    jwt({
      typ: 'decision_token',
      ...IDS,
      execution_id: executionId,
      decision_id: 'd-1',
      jti: 'j',
      ...members,
    });
  const of = (executionId: string) => ({ ...READ, executionId });

  it('begins once it is approved, after the approval is used up', async () => {
    const desk: Desk = { status: 'approved', token: tokenFor('exec_p'), consumed: 0 };
    const server = await serveDesk(desk);
    const { client, events, verdict, path } = await openClient(server.url);
    const waits: string[] = [];
    const execution = await client.begin(of('exec_p'), { onPending: (id) => waits.push(id) });
    expect(waits).toEqual(['d-1']);
    expect(desk.consumed).toBe(1);
    expect(await execution.guard('fs.read', { path: '/x' }, () => 'ran')).toBe('ran');
    expect(events().map((each) => each.decision_code ?? each.event_type)).toEqual([
      'genesis',
      'PENDING_APPROVAL',
      'x.clasper.decision_consumed',
      'APPROVED',
      'ALLOWED',
      'x.northroot.start',
      'execution',
    ]);
    expect(await verdict()).toBe('ok');
    expect(readFileSync(path, 'utf8')).not.toContain(desk.token);
  });

  it.each<[string, Partial<Desk>, string]>([
    ['denied', { status: 'denied' }, 'APPROVAL_DENIED'],
    ['expired', { status: 'expired' }, 'APPROVAL_EXPIRED'],
    ['approved without a token', { token: undefined }, 'CLASPER_INVALID_RESPONSE'],
    ['approved for another execution', { token: tokenFor('exec_other') }, 'DECISION_TOKEN_MISMATCH'],
    [
      'approved for another adapter',
      { token: tokenFor('exec_p', { adapter_id: 'x' }) },
      'DECISION_TOKEN_MISMATCH',
    ],
    ['used up by another', { consumed: 1 }, 'DECISION_TOKEN_REUSED'],
    ['refused when it is used', { answer: { status: 403 } }, 'DECISION_TOKEN_REFUSED'],
    ['lost when it is used', { answer: 'drop' }, 'CLASPER_UNREACHABLE'],
  ])('and is %s does not begin', async (_, members, code) => {
    const desk: Desk = { status: 'approved', token: tokenFor('exec_p'), consumed: 0, ...members };
    const server = await serveDesk(desk);
    const { client, last, verdict } = await openClient(server.url);
    await expect(client.begin(of('exec_p'))).rejects.toMatchObject({ code });
    expect(last('grant')).toMatchObject({ decision: 'deny', decision_code: code });
    expect(await verdict()).toBe('ok');
    // Asked once, also where the answer was lost.
    expect(desk.consumed).toBeLessThanOrEqual(2);
  });

  it('and on which nobody decides in time does not begin', async () => {
    const server = await serveDesk({ status: 'pending', consumed: 0 });
    const { client, events } = await openClient(server.url);
    await expect(client.begin(of('exec_p'), { waitMs: 50 })).rejects.toMatchObject({
      code: 'PENDING_APPROVAL',
    });
    await expect(client.begin(of('exec_q'), { waitMs: 0 })).rejects.toMatchObject({
      code: 'PENDING_APPROVAL',
    });
    const signal = AbortSignal.timeout(50);
    await expect(client.begin(of('exec_r'), { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(events().filter(({ decision }) => decision === 'allow')).toEqual([]);
  });
});

describe('a tool', () => {
  it('runs after Clasper and the ledger allow it, and of its token no more than a digest is kept', async () => {
    const server = await serveClasper();
    const { client, last, events, verdict, path } = await openClient(server.url);
    const execution = await client.begin(READ);
    const ran = await execution.guard('fs.read', { path: '/x' }, ({ report }) => {
      expect(last('action')).toMatchObject({ decision: 'allow', decision_code: 'ALLOWED', policy_id: 'p1' });
      report({ used: { usd: '0.01' }, output: 'S3CRET-out' });
      return 'read';
    });
    expect(ran).toBe('read');
    const [{ body }] = server.of(TOOL);
    expect(body).toEqual({
      ...IDS,
      execution_id: execution.id,
      tool: 'fs.read',
      requested_scope: { path: '/x' },
    });
    const { checks } = last('action');
    expect(checks).toContainEqual({ check: 'clasper.tool', result: 'pass', code: 'ALLOWED' });
    expect(checks).toContainEqual({
      check: expect.stringMatching(/^clasper\.token:[\w-]{43}$/),
      result: 'pass',
    });
    expect(events().at(-1)).toMatchObject({ outcome: 'success' });
    expect(readFileSync(path, 'utf8')).not.toContain('S3CRET');
    expect(await verdict()).toBe('ok');
  });

  it.each<[string, (asked: Asked) => Said, string]>([
    [
      'that Clasper denies',
      () => ({ body: { decision: 'deny', reason: 'policy_denied', policy_id: 'p' } }),
      'POLICY_DENIED',
    ],
    [
      'that needs an approval there',
      () => ({ body: { decision: 'deny', reason: 'approval_required' } }),
      'CLASPER_APPROVAL_REQUIRED',
    ],
    ['without a token', () => ({ body: { decision: 'allow' } }), 'CLASPER_INVALID_RESPONSE'],
    [
      'with a token that is none',
      () => ({ body: { decision: 'allow', tool_token: 'a.b.c' } }),
      'CLASPER_INVALID_RESPONSE',
    ],
    ['with a token for another tool', (asked) => issues(asked, { tool: 'fs.rm' }), 'TOOL_TOKEN_MISMATCH'],
    [
      'with a token for another execution',
      (asked) => issues(asked, { execution_id: 'e' }),
      'TOOL_TOKEN_MISMATCH',
    ],
    [
      'with a token for another scope',
      (asked) => issues(asked, { scope_hash: 'sha256:0' }),
      'TOOL_TOKEN_MISMATCH',
    ],
    ['with a token that is over', (asked) => issues(asked, { exp: 1 }), 'TOOL_TOKEN_EXPIRED'],
    ['with a token without end', (asked) => issues(asked, { exp: undefined }), 'TOOL_TOKEN_EXPIRED'],
    ['with a token that was used', (asked) => issues(asked, { jti: 'same' }), 'TOOL_TOKEN_REUSED'],
    ['while Clasper is away', () => 'drop', 'CLASPER_UNREACHABLE'],
    ['while Clasper hangs', () => 'hang', 'CLASPER_UNREACHABLE'],
    ['while Clasper fails', () => ({ status: 500 }), 'CLASPER_INVALID_RESPONSE'],
    ['with a token that is refused', () => ({ status: 403 }), 'FORBIDDEN'],
  ])('%s does not run, and is recorded under its grant', async (when, answer, code) => {
    let isFirst = true;
    const server = await serveClasper((asked) => {
      if (asked.path !== TOOL) return undefined;
      const first = isFirst;
      isFirst = false;
      return first && code === 'TOOL_TOKEN_REUSED' ? issues(asked, { jti: 'same' }) : answer(asked);
    });
    const limit = when.endsWith('hangs') ? { timeoutMs: 2_000 } : {};
    const { client, last, verdict } = await openClient(server.url, limit);
    const execution = await client.begin(READ);
    if (code === 'TOOL_TOKEN_REUSED') await execution.guard('fs.read', {}, () => 'ran');
    await expect(execution.guard('fs.read', {}, () => 'ran')).rejects.toMatchObject({ code });
    expect(last('action')).toMatchObject({
      ...{ decision: 'deny', decision_code: code },
      checks: expect.arrayContaining([{ check: 'clasper.tool', result: 'fail', code }]),
    });
    expect(await verdict()).toBe('ok');
  });

  it('that Clasper allows and the ledger does not, does not run', async () => {
    const server = await serveClasper((asked) =>
      asked.path === REQUEST ? allows(asked, {}, { max_steps: 3 }) : undefined,
    );
    const { client, verdict } = await openClient(server.url);
    const execution = await client.begin(READ);
    await expect(execution.guard('db.drop', {}, () => 'ran')).rejects.toMatchObject({
      code: 'TOOL_NOT_ALLOWED',
    });
    const dear = { reserve: { usd: '0.6' } };
    await expect(execution.guard('fs.read', {}, () => 'ran', dear)).rejects.toMatchObject({
      code: 'RESERVATION_OVER_CAP',
    });
    expect(await execution.guard('fs.read', {}, () => 'ran')).toBe('ran');
    // Of three steps two are used.
    await expect(execution.guard('fs.read', {}, () => 'ran')).rejects.toMatchObject({
      code: 'RESERVATION_OVER_CAP',
    });
    expect(await verdict()).toBe('ok');
  });

  it('whose function fails is a failure, and its error is given on', async () => {
    const server = await serveClasper();
    const { client, events } = await openClient(server.url);
    const execution = await client.begin(READ);
    const error = Object.assign(new Error('gone'), { code: 'ENOENT' });
    await expect(execution.guard('fs.read', {}, () => Promise.reject(error))).rejects.toBe(error);
    expect(events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ENOENT' });
  });
});

describe('reports', () => {
  it.each(['ed25519', 'p256'] as const)(
    'are signed by %s as Clasper checks them, with chained steps',
    async (alg) => {
      const server = await serveClasper();
      const telemetrySigner = SIGNERS[alg];
      const { client, verdict, problems } = await openClient(server.url, { telemetrySigner });
      const execution = await client.begin(READ);
      await execution.guard('fs.read', { path: 'S3CRET' }, ({ report }) => report({ used: { usd: '0.10' } }));
      await execution
        .guard('fs.read', { path: '/y' }, () => Promise.reject(new Error('S3CRET')))
        .catch(() => 0);
      const use = {
        model: 'm',
        provider: 'p',
        inputTokens: 120,
        outputTokens: 40,
        cost: '0.2',
        durationMs: 7,
      };
      await execution.noteModel(use);
      await execution.end({
        audits: [
          { type: 'note', message: 'a' },
          { type: 'note', message: 'b' },
        ],
        violations: [{ type: 'cost_exceeded', message: 'c' }],
      });
      await execution.end();
      expect(await client.flush()).toBe(0);
      const sent = server.asked.filter(({ path }) => path.startsWith('/api/ingest/'));
      expect(sent.map(({ path }) => path.slice(12))).toEqual([
        'trace',
        'cost',
        'metrics',
        'audit',
        'violations',
      ]);
      await client.setTelemetryKey('operator').catch(() => undefined);
      const { key_alg: keyAlg, public_jwk: jwk } = server.of('/ops/api/adapters/telemetry-key')[0].body;
      const key = readTelemetryKey(
        parseObject(JSON.stringify({ adapter_id: 'openclaw', key_alg: keyAlg, public_jwk: jwk })),
      );
      for (const { body } of sent) {
        const receivedAt = new Date().toISOString();
        expect(checkEnvelope(parseObject(JSON.stringify(body)), { key, receivedAt })).toMatchObject({
          ...{ result: 'ok', hasShape: true, unsigned: [], differing: [] },
        });
      }
      const { trace } = sent[0].body.payload;
      expect(checkSteps(parseObject(JSON.stringify(trace)))).toEqual([]);
      expect(trace.steps.map(({ type }: { type: string }) => type)).toEqual([
        ...['tool_call', 'tool_result', 'tool_call', 'tool_result', 'llm_call'],
      ]);
      expect(trace.usage).toEqual({ inputTokens: 120, outputTokens: 40, totalCost: 0.3 });
      expect(sent[1].body.payload).toMatchObject({ cost_usd: 0.3, input_tokens: 120, output_tokens: 40 });
      expect(sent[2].body.payload).toMatchObject({ step_count: 5 });
      // Only the ids of its tokens are told.
      expect(JSON.stringify(sent).replaceAll(/S3CRET-(jti|adapter)/g, '')).not.toContain('S3CRET');
      expect(await verdict()).toBe('ok');
      expect(problems).toEqual([]);
      await expect(execution.guard('fs.read', {}, () => 'ran')).rejects.toThrow(TypeError);
    },
  );

  it('are signed anew by the clock of the server, where it differs', async () => {
    const ahead = 3_600_000;
    const server = await serveClasper((asked) => {
      if (!asked.path.startsWith('/api/ingest/')) return undefined;
      const skew = Math.abs(Date.parse(asked.body.issued_at) - Date.now() - ahead);
      const headers = { date: new Date(Date.now() + ahead).toUTCString() };
      return skew < 300_000
        ? { body: { status: 'ok' } }
        : { status: 400, body: { error: 'skew', code: 'timestamp_skew' }, headers };
    });
    const { client } = await openClient(server.url);
    await (await client.begin(READ)).end();
    expect(await client.flush()).toBe(0);
    const sent = server.of('/api/ingest/trace');
    expect(sent).toHaveLength(2);
    expect(sent[1].body.payload_hash).toBe(sent[0].body.payload_hash);
  });

  it('wait on disk while Clasper is away, and are sent after another start, once they were not taken', async () => {
    let isAway = true;
    const server = await serveClasper((asked) =>
      asked.path.startsWith('/api/ingest/') && isAway ? 'drop' : undefined,
    );
    const { client, path } = await openClient(server.url);
    const execution = await client.begin(READ);
    await execution.guard('fs.read', {}, () => 'ran');
    await execution.end();
    expect(await client.flush()).toBe(3);
    await client.close();
    expect(readdirSync(`${path}.clasper/outbox`).filter((name) => name.endsWith('.json'))).toHaveLength(3);
    isAway = false;
    server.asked.length = 0;
    const next = new ClasperClient({
      ...{
        endpoint: server.url,
        gate: client.gate,
        adapterToken: () => Promise.resolve('t'),
        version: '0.4.1',
      },
      ...{ adapterId: IDS.adapter_id, tenantId: IDS.tenant_id, workspaceId: IDS.workspace_id },
      telemetrySigner: SIGNERS.ed25519,
    });
    expect(await next.flush()).toBe(0);
    expect(server.asked.map(({ path: to }) => to.slice(12))).toEqual(['trace', 'cost', 'metrics']);
    expect(server.asked[0].headers['x-adapter-token']).toBe('t');
    await next.close();
  });

  it.each([
    ['a duplicate is taken', { body: { status: 'duplicate' } }, 0, []],
    ['a refusal is given up', { status: 400, body: { code: 'invalid_signature' } }, 0, ['TELEMETRY_REFUSED']],
    ['a conflict is given up', { status: 409, body: {} }, 0, ['TELEMETRY_REFUSED']],
    ['what is not there any more is given up', { status: 501, body: {} }, 0, ['TELEMETRY_REFUSED']],
    ['a key that is not registered yet is waited for', { status: 400, body: { code: 'missing_key' } }, 1, []],
    ['a token that is over is waited for', { status: 403, body: { code: 'invalid_token' } }, 1, []],
    ['what is not its own is given up', { status: 403, body: {} }, 0, ['TELEMETRY_REFUSED']],
    ['a failure is waited for', { status: 500, body: {} }, 1, []],
  ] as const)('%s', async (_, said, left, codes) => {
    const server = await serveClasper(({ path }) => (path === '/api/ingest/trace' ? said : undefined));
    const { client, problems } = await openClient(server.url);
    await (await client.begin(READ)).end();
    expect(await client.flush()).toBe(left * 3);
    expect(problems.map((problem) => (problem as { code: string }).code)).toEqual(codes);
  });

  it('are kept without tokens and readable by their owner alone', async () => {
    const server = await serveClasper(({ path }) => (path.startsWith('/api/ingest/') ? 'drop' : undefined));
    const { client, path } = await openClient(server.url);
    await (await client.begin(READ)).end();
    await client.flush();
    const folder = `${path}.clasper/outbox`;
    for (const name of readdirSync(folder))
      expect(readFileSync(join(folder, name), 'utf8')).not.toContain('S3CRET-adapter');
  });
});

it('a client registers itself and its key, and says why it cannot', async () => {
  let status = 200;
  const server = await serveClasper(({ path }) =>
    path.startsWith('/adapters') || path.startsWith('/ops')
      ? { status, body: { error: 'no\u001b[2J' } }
      : undefined,
  );
  const { client } = await openClient(server.url);
  await client.register({ displayName: 'x', riskClass: 'low', capabilities: ['fs.read'] });
  await client.setTelemetryKey('S3CRET-operator');
  expect(server.asked[0].body).toMatchObject({ adapter_id: 'openclaw', version: '0.4.1', risk_class: 'low' });
  expect(server.asked[1]).toMatchObject({
    headers: { authorization: 'Bearer S3CRET-operator' },
    body: { adapter_id: 'openclaw', key_alg: 'ed25519', key_id: SIGNERS.ed25519.publicKey.keyid },
  });
  expect(server.asked[1].headers).not.toHaveProperty('x-adapter-token');
  status = 403;
  const refused = (await client.setTelemetryKey('S3CRET').catch((error: unknown) => error)) as Error;
  expect(refused).toMatchObject({ code: 'CLASPER_REFUSED' });
  expect(refused.message).not.toMatch(/S3CRET|\u001b/);
  await server.stop();
  await expect(client.setTelemetryKey()).rejects.toMatchObject({ code: 'CLASPER_UNREACHABLE' });
});
