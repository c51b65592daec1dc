/** The gate as a service: who may ask what, and what a client is told. */

import { connect, createServer } from 'node:net';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Gate, GateOptions } from '../../src/gate/gate.js';
import { refuse, type ServiceEvent } from '../../src/gate/service/gate-service.js';
import { NorthrootError } from '../../src/base/error.js';
import { type GateServer, serveGate, type ServeGateOptions } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import { MAX_SOCKET_PATH_BYTES } from '../../src/base/platform/socket-path.js';
import { WireDesk } from '../../src/gate/hook/wire-desk.js';
import { listPendingApprovals } from '../../src/log/policy/approve.js';
import type { GrantOptions } from '../../src/log/policy/draft-grant.js';
import { filePlace, memoryPlace } from '../agent/support.js';
import { codeOf, temporaryFolder } from '../writer/support.js';
import { type Answer, send } from './service-process.js';
import { openGate, reopen } from './support.js';

interface Served {
  readonly gate: Gate;
  readonly server: GateServer;
  readonly socket: string;
  readonly events: ServiceEvent[];
  readonly ask: (path: string, body?: unknown, token?: string) => Promise<Answer>;
}

async function serve(
  options: Partial<ServeGateOptions> = {},
  bounds: Partial<GrantOptions> = { meterCaps: { calls: 10, usd: '1' } },
  ofGate: GateOptions = {},
): Promise<Served> {
  const { gate } = await openGate(memoryPlace(), bounds, ofGate);
  const socket = join(temporaryFolder(), 's.sock');
  const events: ServiceEvent[] = [];
  const server = await serveGate({ gate, socket, onEvent: (event) => events.push(event), ...options });
  onTestFinished(() => server.close());
  return { gate, server, socket, events, ask: (path, body, token) => send(socket, path, body, token) };
}

const READ = { ref: 'c1', session: 's', tool: 'fs.read', params: { secret: 'PASSWORD' } };

const document = JSON.parse(
  readFileSync(new URL('../../schemas/openapi/gate.json', import.meta.url), 'utf8'),
) as {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema: object }> }> }>
  >;
  components: { schemas: Record<string, object> };
};

/** Whether an answer has the form that the OpenAPI document says. */
function faultsOf(path: string, method: string, { status, body }: Answer): unknown {
  const { responses } = document.paths[path][method];
  const schema = (responses[status] ?? responses['default'])?.content?.['application/json']?.schema;
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'doc', components: document.components });
  const absolute = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/components', '"doc#/components'),
  ) as object;
  const check = ajv.compile(absolute);
  return check(body) ? undefined : check.errors;
}

describe('a call', () => {
  it('is decided, listed, settled; each answer has the form that the document says', async () => {
    const { ask, events } = await serve();
    const decided = await ask('/v1/decide', {
      ...READ,
      reserve: { usd: '0.10' },
      intent: 'x',
      ttl_ms: 60_000,
    });
    expect(decided).toMatchObject({ status: 200, body: { effect: 'allow', is_repeated: false } });
    expect(faultsOf('/v1/decide', 'post', decided)).toBeUndefined();
    expect((await ask('/v1/decide', { ...READ, reserve: { usd: '0.10' } })).body['is_repeated']).toBe(true);
    const open = await ask('/v1/open?session=s');
    expect(open.body['open']).toMatchObject([{ ref: 'c1', session: 's', tool: 'fs.read' }]);
    expect(faultsOf('/v1/open', 'get', open)).toBeUndefined();
    expect((await ask('/v1/open?session=other')).body['open']).toEqual([]);
    const done = { ref: 'c1', session: 's', outcome: 'success', used: { usd: '0.02' }, output: { ok: 1 } };
    const settled = await ask('/v1/settle', done);
    expect(settled).toMatchObject({ status: 200, body: { recorded: { verdict: 'ok' } } });
    expect(faultsOf('/v1/settle', 'post', settled)).toBeUndefined();
    const again = await ask('/v1/settle', done);
    expect(again.body['recorded']).toBeNull();
    expect(faultsOf('/v1/settle', 'post', again)).toBeUndefined();
    const budget = await ask('/v1/budget');
    expect(budget.body['grants']).toMatchObject([{ principal_id: 'agent:a1', started: 0 }]);
    expect(events.map(({ route, effect }) => [route, effect])).toContainEqual(['POST /v1/decide', 'allow']);
    expect(JSON.stringify(events)).not.toContain('PASSWORD');
  });

  it('that is denied is a 200', async () => {
    const { ask } = await serve({}, { meterCaps: { calls: 1 } });
    await ask('/v1/decide', READ);
    const denied = await ask('/v1/decide', { ...READ, ref: 'c2' });
    expect(denied).toMatchObject({ status: 200, body: { effect: 'deny', code: 'RESERVATION_OVER_CAP' } });
    expect(faultsOf('/v1/decide', 'post', denied)).toBeUndefined();
  });

  it('of a session that ends is released with all others', async () => {
    const { ask, gate } = await serve();
    for (const ref of ['c1', 'c2', 'c3']) await ask('/v1/decide', { ...READ, ref, start: false });
    await ask('/v1/decide', { ...READ, ref: 'c4', session: 'other', start: false });
    expect((await ask('/v1/release', { session: 's' })).body).toEqual({ released: 3 });
    expect(gate.listOpen().map(({ ref }) => ref)).toEqual(['c4']);
    expect((await ask('/v1/release', { session: 's' })).body).toEqual({ released: 0 });
  });

  it('of a session that broke off is settled as unknown, and charged', async () => {
    const { ask, gate } = await serve({}, { meterCaps: { calls: 3 } });
    for (const ref of ['c1', 'c2']) await ask('/v1/decide', { ...READ, ref, start: false });
    expect((await ask('/v1/release', { session: 's', may_have_run: true })).body).toEqual({ released: 2 });
    const [budget] = await gate.ledger.budget();
    expect(budget?.balances).toMatchObject([{ unit: 'calls', used: { v: '2' }, reserved: { v: '0' } }]);
  });

  it('of a session that another process has allowed is released too', async () => {
    const place = filePlace();
    const { gate } = await openGate(place);
    const call = { ...READ, start: false };
    await gate.decide(call);
    await gate.release(call);
    for (const ref of ['c1', 'c2']) await gate.decide({ ...call, ref });
    await gate.decide({ tool: 'fs.read', params: {}, session: 's', start: false });
    await gate.decide({ ...call, session: 'other' });
    await gate.close();
    const other = await reopen(place);
    const server = await serveGate({ gate: other, socket: join(temporaryFolder(), 's.sock') });
    onTestFinished(() => server.close());
    const [url = ''] = server.urls;
    const { body } = await send(url.slice('unix:'.length), '/v1/release', { session: 's' });
    expect(body).toEqual({ released: 3 });
    const [{ unstarted } = { unstarted: [] }] = await other.ledger.budget();
    expect(unstarted).toHaveLength(1);
    expect(await place.verdict()).toBe('ok');
  });

  it('in a hundred clients at once spends a cap exactly', async () => {
    const { ask } = await serve({}, { meterCaps: { calls: 10 } });
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => ask('/v1/decide', { ...READ, ref: `c${n}` })),
    );
    expect(answers.filter(({ body }) => body['effect'] === 'allow')).toHaveLength(10);
    expect(answers.filter(({ body }) => body['effect'] === 'deny')).toHaveLength(90);
  });
});

describe('wrong requests', () => {
  it.each([
    ['no JSON', '{', 400, 'USAGE'],
    ['a duplicate key', '{"tool":"fs.read","tool":"x"}', 400, 'USAGE'],
    ['a list', '[]', 400, 'USAGE'],
    ['no tool', '{}', 400, 'USAGE'],
    ['an unknown member', '{"tool":"fs.read","x":1}', 400, 'USAGE'],
    ['a tool of a wrong type', '{"tool":1}', 400, 'USAGE'],
    ['no name of a tool', '{"tool":"a b"}', 400, 'USAGE'],
    ['a negative amount', '{"tool":"fs.read","reserve":{"usd":"-1"}}', 400, 'USAGE'],
    ['a fraction as an amount', '{"tool":"fs.read","reserve":{"usd":0.1}}', 400, 'USAGE'],
    ['an unknown coverage', '{"tool":"fs.read","coverage":"all"}', 400, 'USAGE'],
    ['a long wait', '{"tool":"fs.read","wait_ms":1e12}', 400, 'USAGE'],
    ['another principal', '{"tool":"fs.read","principal":"agent:b"}', 403, 'NOT_ALLOWED'],
    ['the wrong parameters of an id', '{"ref":"c1","tool":"fs.read","params":{}}', 409, 'REQUEST_CONFLICT'],
  ])('%s: refused, and nothing is recorded', async (_, body, status, code) => {
    const { ask, gate } = await serve();
    await ask('/v1/decide', { ref: 'c1', tool: 'fs.read', params: { a: 1 } });
    const { size } = gate.ledger;
    const answer = await ask('/v1/decide', body);
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(faultsOf('/v1/decide', 'post', answer)).toBeUndefined();
    expect(gate.ledger.size).toBe(size);
  });

  it('have the status of HTTP', async () => {
    const { ask, socket } = await serve();
    expect((await ask('/v1/settle', { ref: 'none', outcome: 'success' })).status).toBe(404);
    expect((await ask('/nothing')).status).toBe(404);
    expect((await ask('/v1/decide')).status).toBe(405);
    expect((await ask('/v1/decide', `{"tool":"${'x'.repeat(1024 * 1024)}"}`)).status).toBe(413);
    expect((await send(socket, '/v1/decide', '{}', undefined, 'text/plain')).status).toBe(400);
    expect((await ask('/v1/settle', { ref: 'c', outcome: 'fine' })).status).toBe(400);
    for (const name of ['output_digest', 'params_digest'])
      expect((await ask('/v1/settle', { ref: 'c', outcome: 'success', [name]: 'sha-256:x' })).status).toBe(
        400,
      );
  });
});

describe('tokens', () => {
  const entries = [
    makeToken({ name: 'ci', principals: ['agent:a1'], tools: ['fs.*'] }),
    makeToken({ name: 'reader', principals: ['*'], may: ['read'] }),
    makeToken({ name: 'olga', principals: ['human:olga'], may: ['approve', 'read'] }),
  ];
  const [ci = '', reader = '', olga = ''] = entries.map(({ token }) => token);
  const file = Buffer.from(JSON.stringify({ tokens: entries.map(({ entry }) => entry) }));

  it('say whom and what a client may speak for', async () => {
    const { ask } = await serve({ tokens: Tokens.parse(file) });
    const statusOf = async (path: string, body?: unknown, token?: string) =>
      (await ask(path, body, token)).status;
    expect(await statusOf('/v1/decide', READ)).toBe(401);
    expect(await statusOf('/v1/decide', READ, 'nr_guessed')).toBe(401);
    expect(await statusOf('/v1/decide', READ, `${ci}x`)).toBe(401);
    expect(await statusOf('/v1/decide', READ, ci)).toBe(200);
    expect(await statusOf('/v1/decide', { ...READ, tool: 'net.get' }, ci)).toBe(403);
    expect(await statusOf('/v1/decide', { ...READ, principal: 'agent:b' }, ci)).toBe(403);
    expect(await statusOf('/v1/decide', READ, reader)).toBe(403);
    expect(await statusOf('/v1/budget', undefined, ci)).toBe(403);
    expect(await statusOf('/v1/budget', undefined, reader)).toBe(200);
    expect(await statusOf('/metrics', undefined, ci)).toBe(403);
    expect(await statusOf('/healthz')).toBe(200);
    expect(await statusOf('/v1/settle', { ref: 'c1', session: 's', outcome: 'success' }, reader)).toBe(403);
  });

  it('are never in the file, and the file is strict', async () => {
    expect(file.toString()).not.toContain(ci);
    for (const wrong of [
      '{',
      '{}',
      '{"tokens":[{}]}',
      '{"tokens":[],"x":1}',
      JSON.stringify({ tokens: [{ ...entries[0]?.entry, principals: ['nobody'] }] }),
      JSON.stringify({ tokens: [{ ...entries[0]?.entry, may: ['all'] }] }),
      JSON.stringify({ tokens: [{ ...entries[0]?.entry, token: ci }] }),
      JSON.stringify({ tokens: [entries[0]?.entry, entries[0]?.entry] }),
      JSON.stringify({ tokens: [{ ...entries[0]?.entry, more: 1 }] }),
    ])
      expect(await codeOf(Promise.resolve().then(() => Tokens.parse(Buffer.from(wrong))))).toBe(
        'TOKENS_MALFORMED',
      );
  });

  it('are required by an address', async () => {
    const { gate } = await openGate(memoryPlace());
    await expect(serveGate({ gate, listen: { port: 0 } })).rejects.toThrow(TypeError);
    await expect(serveGate({ gate })).rejects.toThrow(TypeError);
    const server = await serveGate({ gate, listen: { port: 0 }, tokens: Tokens.parse(file) });
    onTestFinished(() => server.close());
    const [url = ''] = server.urls;
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(READ),
    };
    expect((await fetch(`${url}/v1/decide`, init)).status).toBe(401);
    const headers = { ...init.headers, authorization: `Bearer ${ci}` };
    expect((await fetch(`${url}/v1/decide`, { ...init, headers })).status).toBe(200);
  });

  it('let an approver approve and reject, and nobody else', async () => {
    const rule = { tools: ['fs.*'], approvers: ['human:*'] };
    const { ask } = await serve(
      { tokens: Tokens.parse(file) },
      { meterCaps: { calls: 9 }, approvals: [rule] },
    );
    const asked = await ask('/v1/decide', READ, ci);
    expect(asked.body).toMatchObject({ effect: 'ask', need: { approvers: ['human:*'], count: 1 } });
    expect(faultsOf('/v1/decide', 'post', asked)).toBeUndefined();
    const id = asked.body['authorization'] as string;
    const list = await ask('/v1/approvals', undefined, olga);
    expect(list.body['requests']).toMatchObject([{ event_id: id, status: 'waiting' }]);
    expect(faultsOf('/v1/approvals', 'get', list)).toBeUndefined();
    expect((await ask(`/v1/approvals/${id}/approve`, {}, ci)).status).toBe(403);
    const wrong = { principal: 'human:eve' };
    expect((await ask(`/v1/approvals/${id}/approve`, wrong, olga)).status).toBe(403);
    expect((await ask('/v1/approvals/sha-256:x/approve', {}, olga)).status).toBe(400);
    const answered = await ask(`/v1/approvals/${id}/approve`, { limit: { calls: 1 } }, olga);
    expect(answered.body).toMatchObject({ status: 'approved' });
    expect(faultsOf('/v1/approvals/{id}/approve', 'post', answered)).toBeUndefined();
    expect((await ask('/v1/decide', READ, ci)).body['effect']).toBe('allow');
    const other = await ask('/v1/decide', { ...READ, ref: 'c2', params: {}, wait_ms: 0 }, ci);
    const next = other.body['authorization'] as string;
    expect((await ask(`/v1/approvals/${next}/reject`, {}, olga)).body['status']).toBe('rejected');
  });

  it('shows one request with the parameters that were kept', async () => {
    const place = filePlace();
    const rule = { tools: ['fs.*'], approvers: ['human:*'] };
    const { gate } = await openGate(place, { meterCaps: { calls: 9 }, approvals: [rule] }, { attach: true });
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({ gate, socket, tokens: Tokens.parse(file) });
    onTestFinished(() => server.close());
    const { authorization } = await gate.decide(READ);
    const path = `/v1/approvals/${authorization}`;
    const { body } = await send(socket, path, undefined, olga);
    expect(body).toMatchObject({
      tool_params: { status: 'attached', value: READ.params },
      status: 'waiting',
    });
    expect((await send(socket, path, undefined, ci)).status).toBe(403);
    expect((await send(socket, '/v1/approvals/1', undefined, olga)).status).toBe(400);
    expect((await send(socket, '/v1/approvals/%', undefined, olga)).status).toBe(400);
    const other = `/v1/approvals/sha-256:${'A'.repeat(43)}`;
    expect((await send(socket, other, undefined, olga)).status).toBe(404);
  });

  it('a call can wait for an approval; one that waits in vain is asked, not allowed', async () => {
    const rule = { tools: ['fs.*'], approvers: ['human:*'] };
    const { ask, gate } = await serve({ maxWaiting: 1 }, { meterCaps: { calls: 9 }, approvals: [rule] });
    expect((await ask('/v1/decide', { ...READ, ref: 'v', wait_ms: 300 })).body['effect']).toBe('ask');
    const waiting = ask('/v1/decide', { ...READ, wait_ms: 60_000 });
    let found: Awaited<ReturnType<typeof gate.ledger.requests>> = [];
    while (!found.some(({ status }) => status === 'waiting')) found = await gate.ledger.requests();
    const busy = await ask('/v1/decide', { ...READ, ref: 'c2', wait_ms: 60_000 });
    expect([busy.status, busy.headers['retry-after']]).toEqual([503, '1']);
    const [request] = found;
    await gate.ledger.approve(request?.eventId ?? '', { principalId: 'human:olga' });
    expect((await waiting).body['effect']).toBe('allow');
  });
});

describe('the list of requests', () => {
  const rule = { tools: ['fs.*'], approvers: ['human:*'] };

  it('comes in parts, from the first to the last', async () => {
    const { ask, gate } = await serve({}, { meterCaps: { calls: 5_000 }, approvals: [rule] });
    const refs = Array.from({ length: 1_001 }, (_, n) => `c${n}`);
    await Promise.all(refs.map((ref) => gate.decide({ ref, tool: 'fs.read', params: { ref } })));
    const all = (await gate.ledger.requests()).map(({ seq }) => seq);
    expect(all).toHaveLength(1_001);
    const first = await ask('/v1/approvals');
    expect(faultsOf('/v1/approvals', 'get', first)).toBeUndefined();
    const seqs = ({ body }: Answer): number[] =>
      (body as unknown as { requests: { seq: number }[] }).requests.map(({ seq }) => seq);
    expect([seqs(first), first.body['next']]).toEqual([all.slice(0, 1_000), all[999]]);
    const rest = await ask(`/v1/approvals?after=${all[999]}`);
    expect([seqs(rest), rest.body['next']]).toEqual([all.slice(1_000), undefined]);
    expect(seqs(await ask(`/v1/approvals?waiting=2&after=${all[4]}`))).toEqual(all.slice(5, 7));
    for (const query of ['after=-1', 'after=x', 'after='])
      expect((await ask(`/v1/approvals?${query}`)).status).toBe(400);
  });

  it('of those that wait looks at none whose grant is over', async () => {
    const { gate, ask } = await serve({}, { meterCaps: { calls: 99 }, approvals: [rule] });
    for (let n = 0; n < 9; n += 1) await gate.decide({ ref: `c${n}`, tool: 'fs.read', params: { n } });
    const looks = (): Promise<number> =>
      gate.ledger.use((ledger) =>
        ledger.inspect((state) => {
          const spy = vi.spyOn(state.links.calls, 'get');
          listPendingApprovals(state, gate.ledger.now(), { waiting: 100 });
          const { length } = spy.mock.calls;
          spy.mockRestore();
          return length;
        }),
      );
    expect(await looks()).toBeGreaterThanOrEqual(9);
    await gate.ledger.revoke('all', { inFlight: 'stop', reason: 'OVER', principalId: 'org:o' });
    expect(await looks()).toBe(0);
    expect((await ask('/v1/approvals?waiting=5')).body['requests']).toEqual([]);
    expect((await ask('/v1/approvals')).body['requests']).toHaveLength(9);
  });
});

it('a request is read through the index that the gate was given, or without one', async () => {
  const place = filePlace();
  const rule = { tools: ['fs.*'], approvers: ['human:*'] };
  const { gate: first } = await openGate(place, { meterCaps: { calls: 9 }, approvals: [rule] });
  // Large enough for an index of its own.
  for (let n = 0; n < 5; n += 1)
    await first.ledger.append({ event: { event_type: 'x.large', n, text: 'x'.repeat(60_000) } });
  await first.close();
  for (const index of [false, join(temporaryFolder(), 'index')]) {
    rmSync(`${place.path}.index`, { recursive: true, force: true });
    const gate = await reopen(place, { index });
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({ gate, socket });
    const { body } = await send(socket, '/v1/decide', { ...READ, ref: `by ${index}` });
    const shown = await send(socket, `/v1/approvals/${String(body['authorization'])}`);
    expect(shown).toMatchObject({ status: 200, body: { tool_name: 'fs.read' } });
    expect((await send(socket, '/v1/release', { session: 's' })).status).toBe(200);
    expect(existsSync(`${place.path}.index`)).toBe(false);
    await server.close();
    await gate.close();
  }
});

describe('AuthZEN', () => {
  const subject = { type: 'agent', id: 'a1' };
  const action = { name: 'call' };
  const tool = (id: string) => ({ type: 'tool', id });

  it('asks without spending, whoever repeats it', async () => {
    const { ask, gate } = await serve({}, { meterCaps: { calls: 1 } });
    const { size } = gate.ledger;
    const body = { subject, action, resource: tool('fs.read') };
    for (let n = 0; n < 5; n += 1)
      expect((await ask('/access/v1/evaluation', body)).body['decision']).toBe(true);
    expect((await ask('/access/v1/evaluation', { ...body, resource: tool('net') })).body['decision']).toBe(
      false,
    );
    expect(gate.ledger.size).toBe(size);
  });

  it('with our context decides, and reserves', async () => {
    const { ask, gate } = await serve({}, { meterCaps: { calls: 1 } });
    const body = {
      subject,
      action,
      resource: tool('fs.read'),
      context: { northroot: { ref: 'c1', params: { a: 1 } } },
    };
    const first = await ask('/access/v1/evaluation', body);
    expect(first.body).toMatchObject({
      decision: true,
      context: { northroot: { effect: 'allow', ref: 'c1' } },
    });
    expect(gate.openCalls).toBe(1);
    const second = { ...body, context: { northroot: { ref: 'c2' } } };
    expect((await ask('/access/v1/evaluation', second)).body['decision']).toBe(false);
  });

  it('a batch ends as its semantics say, and an error of one denies that one', async () => {
    const { ask } = await serve();
    const path = '/access/v1/evaluations';
    const evaluations = [{ resource: tool('net') }, { resource: tool('fs.read') }, { resource: 7 }];
    const decisionsOf = async (semantic?: string): Promise<boolean[]> => {
      const options = semantic === undefined ? undefined : { evaluations_semantic: semantic };
      const { body } = await ask(path, { subject, action, evaluations, options });
      return (body['evaluations'] as { decision: boolean }[]).map(({ decision }) => decision);
    };
    expect(await decisionsOf()).toEqual([false, true, false]);
    expect(await decisionsOf('deny_on_first_deny')).toEqual([false]);
    expect(await decisionsOf('permit_on_first_permit')).toEqual([false, true]);
    expect((await ask(path, { subject, action, resource: tool('fs.read') })).body['decision']).toBe(true);
    expect((await ask(path, { evaluations, options: { evaluations_semantic: 'x' } })).status).toBe(400);
    expect((await ask('/access/v1/evaluation', { subject })).status).toBe(400);
    const other = { subject: { type: 'agent', id: 'b' }, action, resource: tool('fs.read') };
    expect((await ask('/access/v1/evaluation', other)).status).toBe(403);
  });
});

describe('the service', () => {
  it('opens its socket to its user alone, and replaces one that a killed service left', async () => {
    const { socket, server, gate } = await serve();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await codeOf(serveGate({ gate, socket }))).toBe('SOCKET_IN_USE');
    await server.close();
    expect(existsSync(socket)).toBe(false);
    const file = join(temporaryFolder(), 'no.sock');
    writeFileSync(file, 'mine');
    expect(await codeOf(serveGate({ gate, socket: file }))).toBe('SOCKET_IN_USE');
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  it('has no socket whose path the system would cut off, and so name another', async () => {
    const { gate } = await serve();
    const folder = temporaryFolder();
    const longest = join(folder, 'x'.repeat(MAX_SOCKET_PATH_BYTES - folder.length - 1));
    const server = await serveGate({ gate, socket: longest });
    onTestFinished(() => server.close());
    expect(existsSync(longest)).toBe(true);
    const cutOff = `${longest}${'x'.repeat(20)}`;
    expect(await codeOf(serveGate({ gate, socket: `${longest}x` }))).toBe('LISTEN_FAILED');
    expect(await codeOf(serveGate({ gate, socket: cutOff }))).toBe('LISTEN_FAILED');
    const desk = await WireDesk.connect(longest, undefined);
    expect(desk).toBeDefined();
    desk?.close();
    // What is there under the name that is left is another's.
    const other = createServer();
    await new Promise((resolve) => other.once('error', resolve).listen(cutOff, () => resolve(undefined)));
    onTestFinished(() => void other.close());
    expect(await WireDesk.connect(cutOff, undefined)).toBeUndefined();
  });

  it('closes connections that send nothing sound', async () => {
    const { socket } = await serve();
    const talk = (text: string): Promise<string> =>
      new Promise((resolve) => {
        const connection = connect(socket, () => connection.write(text));
        let answer = '';
        connection.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
        connection.on('close', () => resolve(answer));
        connection.on('error', () => resolve(answer));
      });
    expect(await talk('garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await talk(`GET / HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(5_000)}\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it('shows metrics, and its document', async () => {
    const { ask } = await serve();
    await ask('/v1/decide', READ);
    const { body } = await ask('/metrics');
    expect(body['text']).toContain('northroot_decisions_total{effect="allow",code="ALLOW"} 1');
    expect(body['text']).toContain('northroot_open_calls 1');
    expect(
      String(body['text'])
        .split('\n')
        .every((line) => /^(?:#.*|[a-z_]+(?:\{[^}]*\})? [-+.e\d]+|)$/.test(line)),
    ).toBe(true);
  });

  it('keeps what it answered when it is stopped', async () => {
    const place = filePlace();
    const { gate } = await openGate(place, { meterCaps: { calls: 100 } });
    const socket = join(temporaryFolder(), 's.sock');
    const server = await serveGate({ gate, socket });
    const asked = Array.from({ length: 20 }, (_, n) =>
      send(socket, '/v1/decide', { ...READ, ref: `c${n}` }).catch(() => undefined),
    );
    await asked[0];
    await server.close();
    await gate.close();
    const answered = (await Promise.all(asked)).filter((answer) => answer?.body['effect'] === 'allow');
    const other = await reopen(place);
    for (const answer of answered) {
      const { authorization } = await other.settle(
        { ref: String(answer?.body['ref']), session: 's' },
        { outcome: 'success' },
      );
      expect(authorization).toBe(answer?.body['authorization']);
    }
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a refusal', () => {
  it.each(['LEDGER_LOCKED', 'STORE_UNREACHABLE', 'STORE_NOT_DURABLE', 'BUSY'])(
    'by %s is one to ask again',
    (code) => {
      const { status, headers } = refuse(new NorthrootError(code, 'not now'));
      expect([status, headers]).toEqual([503, { 'Retry-After': '1' }]);
    },
  );
});
