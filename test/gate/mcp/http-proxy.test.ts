/** A proxy before an MCP server over HTTP: what reaches the server, what reaches the client, and what the ledger says of it. */

import { Agent } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { McpEvent, McpGuardOptions } from '../../../src/gate/mcp/mcp-calls.js';
import { McpGuard } from '../../../src/gate/mcp/mcp-guard.js';
import { type McpProxyOptions, serveMcpProxy } from '../../../src/gate/mcp/http-proxy.js';
import type { Gate } from '../../../src/gate/gate.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import type { JsonObject } from '../../../src/base/json/value.js';
import { memoryPlace, type Place } from '../../agent/support.js';
import { openGate, reopen } from '../support.js';
import { type Answer, callOf, legacyCall, parsed, post, type SendOptions, until } from './http-client.js';
import { modernHeaders, modernMeta, startUpstream, type Upstream } from './http-upstream.js';

interface Served {
  readonly url: string;
  readonly place: Place;
  readonly gate: Gate;
  readonly upstream: Upstream;
  readonly events: McpEvent[];
  readonly close: () => Promise<void>;
  /** A modern call of a tool; waits until what it ends is settled. */
  readonly call: (tool: string, options?: CallOptions) => Promise<Answer>;
  /** Any message, with these headers; likewise. */
  readonly send: (message: unknown, headers?: Record<string, string>, options?: Hasty) => Promise<Answer>;
  readonly outcomes: () => string[];
}

interface Hasty extends SendOptions {
  readonly waits?: boolean;
}

interface CallOptions extends Hasty {
  readonly id?: string | number;
  readonly params?: JsonObject;
  readonly headers?: Record<string, string>;
}

const TOOLS = { allowedTools: ['mcp.up.*'], meterCaps: { calls: 50 } };

type Options = Partial<McpGuardOptions & McpProxyOptions>;

async function serve(options: Options = {}, bounds: Partial<GrantOptions> = TOOLS): Promise<Served> {
  const upstream = await startUpstream();
  const place = memoryPlace();
  const { gate } = await openGate(place, bounds, { coverage: 'proxy' });
  return { ...(await serveAgain(place, gate, upstream, options)), upstream };
}

async function serveAgain(
  place: Place,
  gate: Gate,
  upstream: Upstream,
  { legacy, origins, maxMessageBytes, upstream: url, ...ofGuard }: Options = {},
): Promise<Served> {
  const events: McpEvent[] = [];
  const guard = new McpGuard({
    open: () => Promise.resolve(gate),
    server: 'up',
    onEvent: (event) => events.push(event),
    ...ofGuard,
  });
  const proxy = await serveMcpProxy({
    guard,
    upstream: url ?? upstream.url,
    legacy,
    origins,
    maxMessageBytes,
  });
  onTestFinished(() => proxy.close());
  const send: Served['send'] = async (message, headers = {}, { waits = true, ...more } = {}) => {
    const answer = await post(proxy.url, message, headers, more);
    if (waits) await guard.settled();
    return answer;
  };
  return {
    url: proxy.url,
    place,
    gate,
    upstream,
    events,
    close: () => proxy.close(),
    send,
    call: (tool, { id = 1, params = {}, headers = {}, ...more } = {}) => {
      const message = callOf(tool, id, params);
      return send(message, { ...modernHeaders(message), ...headers }, more);
    },
    outcomes: () =>
      place
        .events()
        .filter(({ event_type }) => event_type === 'execution')
        .map(({ outcome, error_code }) => `${outcome} ${error_code ?? ''}`.trim()),
  };
}

describe('a modern call', () => {
  it('that is allowed reaches the server as it came, and its answer the client', async () => {
    const { call, upstream, outcomes, place } = await serve();
    const answer = await call('echo', {
      headers: { Authorization: 'Bearer SECRET', 'Mcp-Param-Region': 'us' },
    });
    expect(answer).toMatchObject({ status: 200, isWhole: true });
    expect(parsed(answer)).toMatchObject({ id: 1, result: { content: [{ text: 'ok' }] } });
    const [seen] = upstream.seen;
    expect(seen?.body).toBe(JSON.stringify(callOf('echo')));
    expect(seen?.headers).toMatchObject({
      authorization: 'Bearer SECRET',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'echo',
      'mcp-param-region': 'us',
      'accept-encoding': 'identity',
      host: new URL(upstream.url).host,
    });
    expect(outcomes()).toEqual(['success']);
    expect(JSON.stringify(place.events())).not.toContain('SECRET');
    expect(await place.verdict()).toBe('ok');
  });

  it('that is denied never reaches it, and the model is told', async () => {
    const { call, upstream, outcomes } = await serve({}, { ...TOOLS, allowedTools: ['mcp.up.echo'] });
    const answer = await call('progress');
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
    expect(parsed(answer)['result']).toMatchObject({ isError: true, resultType: 'complete' });
    expect(upstream.calls()).toBe(0);
    expect(outcomes()).toEqual([]);
  });

  it('that is denied can be told as an error', async () => {
    const { call } = await serve({ denyAs: 'error' }, { ...TOOLS, allowedTools: ['mcp.up.echo'] });
    const answer = await call('progress');
    expect(answer.status).toBe(200);
    expect(parsed(answer)['error']).toHaveProperty('code', -32010);
  });

  it.each([
    ['fail', 200, 'failure MCP_TOOL_ERROR'],
    ['error', 200, 'failure MCP_32602'],
    ['progress', 200, 'success'],
    ['gzip', 200, 'success'],
    ['twice', 200, 'success'],
    ['stranger', 200, 'unknown MCP_NOT_ANSWERED'],
    ['silent', 200, 'unknown MCP_NOT_ANSWERED'],
    ['break', 200, 'unknown MCP_NOT_ANSWERED'],
    ['big', 200, 'unknown MCP_NOT_ANSWERED'],
    ['cut', 502, 'unknown MCP_NOT_ANSWERED'],
    ['drop', 502, 'unknown MCP_NOT_ANSWERED'],
    ['bomb', 502, 'unknown MCP_NOT_ANSWERED'],
    ['redirect', 502, 'failure MCP_HTTP_307'],
    ['unauthorized', 401, 'failure MCP_HTTP_401'],
    ['broken', 500, 'unknown MCP_HTTP_500'],
    ['html', 200, 'unknown MCP_NOT_ANSWERED'],
    ['empty', 202, 'unknown MCP_NOT_ANSWERED'],
    ['task', 200, undefined],
    ['ask', 200, undefined],
  ])('%s is answered by %s and recorded as %s', async (tool, status, outcome) => {
    const { call, outcomes, place, close } = await serve();
    const answer = await call(tool);
    expect(answer.status).toBe(status);
    await close();
    expect(outcomes()).toEqual([outcome ?? 'unknown MCP_CLOSED']);
    expect(await place.verdict()).toBe('ok');
  });

  it('has each event when it is sent, and comments, as they came', async () => {
    const { call, upstream } = await serve();
    const [mine, theirs] = await Promise.all([
      call('progress'),
      post(upstream.url, callOf('progress'), modernHeaders(callOf('progress')), {}),
    ]);
    expect(mine.text).toBe(theirs.text);
    expect(mine.text).toContain(': keep-alive\r\n\r\n');
    expect(mine.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
  });

  it('is settled before the next is decided: one at a time is allowed, one after the other', async () => {
    const { call, outcomes, close } = await serve({}, { ...TOOLS, concurrencyLimit: 1 });
    const agent = new Agent({ keepAlive: true });
    for (let id = 0; id < 20; id += 1) {
      const text = (await call(id % 2 === 0 ? 'echo' : 'progress', { id, agent, waits: false })).text;
      expect(text).toContain('"text":"ok"');
      expect(text).not.toContain('isError');
    }
    agent.destroy();
    await close();
    expect(outcomes()).toHaveLength(20);
  });

  it('may have the id of another that runs: each request stands alone', async () => {
    const { call, outcomes } = await serve();
    const answers = await Promise.all([1, 1, 1, 1].map((id) => call('progress', { id })));
    expect(answers.map(({ text }) => text.includes('"ok"'))).toEqual([true, true, true, true]);
    expect(outcomes()).toEqual(['success', 'success', 'success', 'success']);
  });

  it('has one authorization, though the client is asked and repeats it under another id', async () => {
    const { call, place, outcomes, upstream } = await serve();
    expect(parsed(await call('ask', { id: 1 }))['result']).toMatchObject({ resultType: 'input_required' });
    const params = { requestState: 'state-1', inputResponses: {} };
    expect(parsed(await call('ask', { id: 2, params }))['result']).toMatchObject({ resultType: 'complete' });
    expect(place.events().filter((event) => event.authorization?.action !== undefined)).toHaveLength(1);
    expect(outcomes()).toEqual(['success']);
    expect(upstream.calls('ask')).toBe(2);
  });

  it('goes on as a task until the server says that it is complete', async () => {
    const { call, send, outcomes } = await serve();
    await call('task');
    expect(outcomes()).toEqual([]);
    const message: JsonObject = {
      jsonrpc: '2.0',
      id: 2,
      method: 'tasks/get',
      params: { taskId: 'task-1', _meta: modernMeta() },
    };
    await send(message, { ...modernHeaders(message), 'Mcp-Name': 'task-1' });
    expect(outcomes()).toEqual(['success']);
  });

  it('of a client that leaves within the answer is given up, and recorded as unknown', async () => {
    const { call, upstream, outcomes } = await serve();
    await call('hang', { onData: (_, leave) => leave() });
    expect(await upstream.seen[0]?.over).toBe(false);
    await until(() => outcomes().length > 0);
    expect(outcomes()).toEqual(['unknown MCP_CANCELLED']);
  });

  it('of a client that leaves before the answer is given up too', async () => {
    const { call, upstream, outcomes } = await serve();
    let leave = (): void => undefined;
    const gone = call('mute', { onSent: (go) => (leave = go) });
    await until(() => upstream.calls() === 1);
    leave();
    await gone;
    expect(await upstream.seen[0]?.over).toBe(false);
    await until(() => outcomes().length > 0);
    expect(outcomes()).toEqual(['unknown MCP_CANCELLED']);
  });

  it('of a client that leaves while it waits for an approval is never sent', async () => {
    const bounds = { ...TOOLS, approvals: [{ tools: ['mcp.up.*'], approvers: ['human:h1'] }] };
    const { call, upstream, events } = await serve({ waitMs: 60_000 }, bounds);
    let leave = (): void => undefined;
    const gone = call('echo', { onSent: (go) => (leave = go) });
    await until(() => events.some(({ event }) => event === 'waiting'));
    leave();
    await gone;
    expect(upstream.calls()).toBe(0);
  });

  it('to a server that is not there is a failure: nothing was sent', async () => {
    const { call, upstream, outcomes, place } = await serve();
    await upstream.close();
    const answer = await call('echo');
    expect(answer.status).toBe(502);
    expect(parsed(answer)).toMatchObject({ id: 1, error: { code: -32603 } });
    expect(outcomes()).toEqual(['failure MCP_NOT_SENT']);
    expect(await place.verdict()).toBe('ok');
  });

  it('that an adviser rewrites is sent so, and its headers say so', async () => {
    const upstream = await startUpstream();
    const place = memoryPlace();
    const adviser = {
      name: 'a',
      advise: () =>
        Promise.resolve({ effect: 'rewrite', params: { region: 'eu', deep: { n: 'ü' } } } as const),
    };
    const { gate } = await openGate(place, TOOLS, { advisers: [adviser] });
    const { call, place: where } = await serveAgain(place, gate, upstream);
    const params = { arguments: { region: 'us', deep: { n: 7 }, gone: 'x' } };
    const headers = {
      'Mcp-Param-Region': 'us',
      'Mcp-Param-N': '7',
      'Mcp-Param-Gone': 'x',
      'Mcp-Param-Else': 'y',
    };
    expect((await call('echo', { params, headers })).status).toBe(200);
    const [seen] = upstream.seen;
    expect(JSON.parse(seen?.body ?? '')).toMatchObject({
      params: { name: 'echo', arguments: { region: 'eu', deep: { n: 'ü' } } },
    });
    expect(seen?.headers).toMatchObject({ 'mcp-param-region': 'eu', 'mcp-param-n': '=?base64?w7w=?=' });
    expect(seen?.headers).not.toHaveProperty('mcp-param-gone');
    expect(seen?.headers).not.toHaveProperty('mcp-param-else');
    expect(seen?.headers['content-length']).toBe(String(Buffer.byteLength(seen?.body ?? '')));
    expect(await where.verdict()).toBe('ok');
  });

  it('where nobody can decide is denied', async () => {
    const upstream = await startUpstream();
    const place = memoryPlace();
    const { gate } = await openGate(place, TOOLS);
    const broken = { open: () => Promise.reject(new Error('no ledger')) };
    const closed = await serveAgain(place, gate, upstream, broken);
    expect(parsed(await closed.call('echo'))['result']).toMatchObject({ isError: true });
    expect(upstream.calls()).toBe(0);
    const open = await serveAgain(place, gate, upstream, { ...broken, fail: 'open' });
    expect(parsed(await open.call('echo'))['result']).not.toHaveProperty('isError');
    expect(upstream.calls()).toBe(1);
  });
});

describe('budgets', () => {
  it('hold over proxies on one ledger: five of thirty calls at once reach the server', async () => {
    const first = await serve({}, { ...TOOLS, meterCaps: { calls: 5 } });
    const { place, upstream } = first;
    const others = await Promise.all(
      [1, 2].map(async () => serveAgain(place, await reopen(place, { coverage: 'proxy' }), upstream)),
    );
    const calls = Array.from({ length: 30 }, (_, id) => [first, ...others][id % 3].call('echo', { id }));
    const answers = await Promise.all(calls);
    expect(answers.filter((answer) => !answer.text.includes('isError'))).toHaveLength(5);
    expect(upstream.calls()).toBe(5);
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a request that is not what it says', () => {
  it('never reaches the server', async () => {
    const { send, upstream, outcomes } = await serve();
    const message = callOf('echo');
    const headers = modernHeaders(message);
    for (const wrong of [
      { 'Mcp-Name': 'other' },
      { 'Mcp-Method': 'ping' },
      { 'MCP-Protocol-Version': '2025-11-25' },
      { 'Mcp-Param-X': '=?base64?%?=' },
    ]) {
      const answer = await send(message, { ...headers, ...wrong });
      expect(answer.status).toBe(400);
      expect(parsed(answer)).toMatchObject({ id: 1, error: { code: -32020 } });
    }
    expect(upstream.seen).toEqual([]);
    expect(outcomes()).toEqual([]);
  });

  it.each([
    ['no JSON', 'tools/call', 400],
    ['broken JSON', '{"jsonrpc":"2.0"', 400],
    ['duplicate keys', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', 400],
    ['a batch', `[${JSON.stringify(callOf('echo'))}]`, 400],
    ['a call without an id', '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}', 400],
    ['nothing', '', 400],
    ['bytes of no text', '{"jsonrpc":"2.0","id":1,"method":"a\ud800"}', 400],
  ])('with %s is refused', async (_, body, status) => {
    const { send, upstream } = await serve();
    for (const method of ['tools/call', 'ping']) {
      const answer = await send(body, {
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': method,
        'Mcp-Name': 'echo',
      });
      expect(answer.status).toBe(status);
    }
    expect(upstream.seen).toEqual([]);
  });

  it('of another type, or encoded further, is refused', async () => {
    const { call, upstream } = await serve();
    expect((await call('echo', { headers: { 'Content-Type': 'text/plain' } })).status).toBe(415);
    expect(
      (await call('echo', { headers: { 'Content-Type': 'application/json; charset=utf-16' } })).status,
    ).toBe(415);
    expect((await call('echo', { headers: { 'Content-Encoding': 'gzip' } })).status).toBe(415);
    expect(upstream.seen).toEqual([]);
  });

  it('that is too long is refused', async () => {
    const { call, upstream } = await serve({ maxMessageBytes: 2_000 });
    expect((await call('echo', { params: { arguments: { x: 'y'.repeat(2_000) } } })).status).toBe(413);
    expect((await call('echo', { params: { arguments: { x: 'y'.repeat(1_000) } } })).status).toBe(200);
    expect(upstream.calls()).toBe(1);
  });

  it('of a page, or for another name, is refused', async () => {
    const { call, upstream, url } = await serve({ origins: ['https://app.example'] });
    expect((await call('echo', { headers: { Origin: 'https://evil.example' } })).status).toBe(403);
    expect((await call('echo', { headers: { Origin: 'null' } })).status).toBe(403);
    expect((await call('echo', { headers: { Host: 'evil.example' } })).status).toBe(403);
    expect(upstream.seen).toEqual([]);
    const { host } = new URL(url);
    const own = { Origin: `http://${host}` };
    for (const headers of [
      { Origin: 'http://127.0.0.1:1' },
      { Origin: `https://${host}` },
      { ...own, Host: 'localhost' },
      { Host: 'evil.example', Origin: 'http://evil.example' },
    ])
      expect((await call('echo', { headers })).status).toBe(403);
    expect(upstream.seen).toEqual([]);
    expect((await call('echo', { headers: own })).status).toBe(200);
    expect((await call('echo', { headers: { Origin: 'https://app.example' } })).status).toBe(200);
  });

  it('to another path or by another method is refused', async () => {
    const { send, call, upstream } = await serve();
    expect((await call('echo', { path: '/other' })).status).toBe(404);
    expect((await call('echo', { path: '/mcp/../mcp' })).status).not.toBe(500);
    for (const method of ['GET', 'DELETE', 'PUT', 'OPTIONS'])
      expect(await send(undefined, {}, { method })).toMatchObject({
        status: 405,
        headers: { allow: 'POST' },
      });
    expect(upstream.calls()).toBeLessThanOrEqual(1);
  });

  it('that smuggles another is refused, and nothing of it reaches the server', async () => {
    const { url, upstream } = await serve();
    const { hostname, port } = new URL(url);
    const body = JSON.stringify(callOf('echo'));
    const headers = Object.entries(modernHeaders(callOf('echo'))).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const start = `POST /mcp HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n${headers.join('')}`;
    for (const rest of [
      `Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
      `Content-Length: ${body.length}\r\nContent-Length: 5\r\n\r\n${body}`,
      `Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      `Content-Length: ${body.length}\r\nMcp-Name: other\r\n\r\n${body}`,
      `Content-Length: ${body.length}\r\nX: a\r\n b\r\n\r\n${body}`,
    ]) {
      const text = await new Promise<string>((resolve) => {
        const socket = connect(Number(port), hostname);
        let read = '';
        socket.on('data', (chunk) => {
          read += String(chunk);
          socket.destroy();
        });
        socket.on('error', () => undefined);
        socket.on('close', () => resolve(read));
        socket.write(start + rest);
      });
      expect(text.split(' ')[1] ?? '400').toBe('400');
    }
    expect(upstream.seen).toEqual([]);
  });
});

describe('what is no call', () => {
  it('passes without a record', async () => {
    const { send, upstream, place } = await serve();
    const before = place.events().length;
    for (const method of ['server/discover', 'tools/list', 'prompts/list']) {
      const message: JsonObject = { jsonrpc: '2.0', id: 1, method, params: { _meta: modernMeta() } };
      expect((await send(message, modernHeaders(message))).status).toBe(200);
    }
    const note: JsonObject = { jsonrpc: '2.0', method: 'notifications/x' };
    expect((await send(note, { 'MCP-Protocol-Version': '2026-07-28' })).status).toBe(202);
    expect(upstream.seen).toHaveLength(4);
    expect(place.events()).toHaveLength(before);
  });

  it('is who may give tokens: its metadata passes', async () => {
    const { send, call } = await serve();
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp'])
      expect((await send(undefined, {}, { method: 'GET', path })).text).toContain('upstream.example');
    expect((await send(undefined, {}, { method: 'GET', path: '/.well-known/other' })).status).toBe(404);
    expect(await call('unauthorized')).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringContaining('resource_metadata') as unknown },
    });
  });

  it('has the query of the server, and lists only what is granted if asked to', async () => {
    const upstream = await startUpstream();
    const place = memoryPlace();
    const { gate } = await openGate(place, { ...TOOLS, allowedTools: ['mcp.up.other'] });
    const proxy = await serveAgain(place, gate, upstream, { upstream: `${upstream.url}?key=1`, hide: true });
    const message: JsonObject = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: { _meta: modernMeta() },
    };
    expect(parsed(await proxy.send(message, modernHeaders(message)))['result']).toMatchObject({ tools: [] });
    expect(upstream.seen[0]?.path).toBe('/mcp?key=1');
    expect(new URL(proxy.url).search).toBe('');
  });
});

describe('a legacy session', () => {
  const initialize: JsonObject = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  };
  const SESSION = { 'Mcp-Session-Id': 'session-1', 'MCP-Protocol-Version': '2025-11-25' };

  it('is refused unless it is allowed', async () => {
    const { send, upstream } = await serve();
    const answer = await send(initialize);
    expect(answer.status).toBe(400);
    expect(parsed(answer)['error']).toMatchObject({ code: -32022, data: { requested: '2025-11-25' } });
    expect((await send(legacyCall('echo'), SESSION)).status).toBe(400);
    expect(upstream.seen).toEqual([]);
  });

  it('is begun, used and ended', async () => {
    const { send, upstream, outcomes, close } = await serve({ legacy: true });
    const begun = await send(initialize);
    expect(begun.headers).toMatchObject({ 'mcp-session-id': 'session-1' });
    expect((await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, SESSION)).status).toBe(202);
    expect(parsed(await send(legacyCall('echo', 2), SESSION))['result']).toMatchObject({
      content: [{ text: 'ok' }],
    });
    expect((await send(undefined, SESSION, { method: 'DELETE' })).status).toBe(204);
    expect(upstream.seen.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'DELETE']);
    expect(upstream.seen.at(-1)?.headers['mcp-session-id']).toBe('session-1');
    await close();
    expect(outcomes()).toEqual(['success']);
  });

  it('has one request of an id at a time', async () => {
    const { send } = await serve({ legacy: true });
    await send(initialize);
    let leave = (): void => undefined;
    let isOn = false;
    const hanging = send(legacyCall('hang', 5), SESSION, {
      onData: (_, go) => {
        isOn = true;
        leave = go;
      },
    });
    await until(() => isOn);
    expect((await send(legacyCall('echo', 5), SESSION)).status).toBe(400);
    expect(parsed(await send(legacyCall('echo', '5'), SESSION))).toMatchObject({ id: '5' });
    leave();
    await hanging;
  });

  it('gets the answer to a call on another stream, if the first one broke off', async () => {
    const { send, outcomes } = await serve({ legacy: true });
    await send(initialize);
    const cut = await send(legacyCall('resume', 7), SESSION);
    expect(cut.text).toContain('id: e1');
    expect(outcomes()).toEqual([]);
    const resumed = { ...SESSION, 'Last-Event-ID': 'e1' };
    const rest = await send(undefined, resumed, { method: 'GET' });
    expect(rest.text).toContain('"id":7');
    expect(outcomes()).toEqual(['success']);
    const again = await send(undefined, resumed, { method: 'GET' });
    expect(again.text).toBe(rest.text);
    expect(outcomes()).toEqual(['success']);
  });

  it('whose call is cancelled is told to the server, unless the call was denied', async () => {
    const { send, upstream, outcomes } = await serve(
      { legacy: true },
      { ...TOOLS, allowedTools: ['mcp.up.hang'] },
    );
    await send(initialize);
    const cancel = (requestId: number): JsonObject => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId },
    });
    await send(legacyCall('echo', 1), SESSION);
    expect((await send(cancel(1), SESSION)).status).toBe(202);
    expect(upstream.seen.filter(({ body }) => body.includes('cancelled'))).toEqual([]);
    let isOn = false;
    let leave = (): void => undefined;
    const hanging = send(legacyCall('hang', 2), SESSION, {
      onData: (_, go) => {
        isOn = true;
        leave = go;
      },
    });
    await until(() => isOn);
    expect((await send(cancel(2), SESSION)).status).toBe(202);
    expect(upstream.seen.filter(({ body }) => body.includes('cancelled'))).toHaveLength(1);
    leave();
    await hanging;
    await until(() => outcomes().length > 0);
    expect(outcomes()).toEqual(['unknown MCP_CANCELLED']);
  });

  it('that is gone is 404, and what was open in it is unknown', async () => {
    const { send, outcomes, events } = await serve({ legacy: true });
    expect((await send(legacyCall('echo', 1), { ...SESSION, 'Mcp-Session-Id': 'gone' })).status).toBe(404);
    expect(outcomes()).toEqual(['failure MCP_HTTP_404']);
    expect(events.filter(({ event }) => event === 'unsettled')).toEqual([]);
  });

  it('has a stream by GET, which closing ends', async () => {
    const { send, close } = await serve({ legacy: true });
    await send(initialize);
    let isOn = false;
    const stream = send(undefined, SESSION, {
      method: 'GET',
      onData: (text) => (isOn ||= text.includes('list_changed')),
    });
    await until(() => isOn);
    await close();
    expect((await stream).text).toContain(': hello');
  });
});
