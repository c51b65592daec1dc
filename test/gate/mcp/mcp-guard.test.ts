/** Rules for messages of MCP: what is decided, forwarded and settled, in both eras. */

import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import type { Adviser } from '../../../src/gate/advisers/adviser.js';
import { MAX_OPEN_CALLS } from '../../../src/gate/mcp/mcp-calls.js';
import { LineFrames, type LongLine } from '../../../src/gate/mcp/line-frames.js';
import { McpGuard } from '../../../src/gate/mcp/mcp-guard.js';
import { memoryPlace, usedBy } from '../../agent/support.js';
import { reopen } from '../support.js';
import { keptBytes } from '../../collect-garbage.js';
import {
  type Became,
  bytesOf,
  call,
  guardOver,
  MODERN,
  openGuard,
  result,
  stepOf,
  story,
  TEXT,
} from './support.js';

const cancelled = (requestId: unknown): object => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});

describe('a call of a tool', () => {
  it('is authorized and begun before it is forwarded, and settled by its answer', async () => {
    const place = memoryPlace();
    const { client, server, events } = await openGuard(place);
    const asked = call(7, 'echo', { m: 'x' }, { _meta: { progressToken: 1 } });
    expect(await client(asked)).toEqual(['>', asked]);
    expect(story(place)).toEqual(['allow', 'start']);
    const answer = result(7, { ...TEXT, _meta: { a: 1 } });
    expect(await server(answer)).toEqual(['>', answer]);
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    const [authorization, , execution] = place.events().slice(2) as unknown as Record<string, never>[];
    expect(authorization).toMatchObject({
      checks: expect.arrayContaining([{ check: 'coverage', result: 'pass', code: 'PROXY' }]) as never,
      authorization: {
        action: { tool_name: 'mcp.s.echo', tool_params_digest: sha256Digest(canonicalBytes({ m: 'x' })) },
      },
    });
    expect(execution?.['output_digest']).toEqual(sha256Digest(canonicalBytes(TEXT)));
    expect(events.map(({ event }) => event)).toEqual(['decided', 'settled']);
    expect(await place.verdict()).toBe('ok');
  });

  it('that is denied is not forwarded: the model is told by a result', async () => {
    const place = memoryPlace();
    const { client } = await openGuard(place, {}, { allowedTools: ['mcp.s.echo'] });
    const legacy = await client(call('a', 'rm'));
    expect(legacy).toMatchObject(['<', { jsonrpc: '2.0', id: 'a', result: { isError: true } }]);
    expect(legacy).not.toHaveProperty('1.result.resultType');
    expect(JSON.stringify(legacy)).toContain('TOOL_NOT_ALLOWED');
    const modern = await client(call('a', 'rm', {}, { _meta: MODERN }));
    expect(modern).toMatchObject(['<', { id: 'a', result: { resultType: 'complete', isError: true } }]);
    expect(story(place)).toEqual(['deny', 'deny']);
  });

  it('that is denied may be answered by an error', async () => {
    const { client } = await openGuard(memoryPlace(), { denyAs: 'error' }, { allowedTools: ['mcp.s.x'] });
    expect(await client(call(1, 'rm'))).toMatchObject(['<', { id: 1, error: { code: -32010 } }]);
  });

  it('has the digest of {} where it brings no arguments, in whatever form its name is recorded', async () => {
    const place = memoryPlace();
    const { client } = await openGuard(place);
    await client(call(1, 'a b'));
    const { action } = place.events()[2]?.authorization ?? {};
    expect(action).toMatchObject({
      tool_name: 'mcp.s.a~20b',
      tool_params_digest: sha256Digest(canonicalBytes({})),
    });
  });

  it.each([
    ['a result with isError', result(1, { ...TEXT, isError: true }), 'failure MCP_TOOL_ERROR'],
    ['an error', { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'x' } }, 'failure MCP_32603'],
    ['an error without a code', { jsonrpc: '2.0', id: 1, error: 'x' }, 'failure MCP_ERROR'],
    ['a result', result(1, TEXT), 'success'],
    ['a result that is no object', { jsonrpc: '2.0', id: 1, result: 3 }, 'success'],
  ])('settles by %s', async (_, answer, end) => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo'));
    expect(await server(answer)).toEqual(['>', answer]);
    expect(story(place)).toEqual(['allow', 'start', end]);
  });

  it('settles by an answer that is no strict JSON, without its digest, and passes it on as it is', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(place);
    await client(call(1, 'echo'));
    const answer = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'),
      Buffer.from([0xff]),
      Buffer.from('"}]}}'),
    ]);
    expect(await link.fromServer(answer).step).toEqual({ kind: 'forward', message: answer });
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    expect(place.events().at(-1)?.output_digest).toBeUndefined();
  });

  it.each([
    ['duplicate keys', '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true,"isError":false}}'],
    ['a result and an error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}'],
    ['another case', '{"jsonrpc":"2.0","id":1,"result":{},"Error":{"code":1,"message":""}}'],
  ])('does not claim a success for an answer with %s', async (_, answer) => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo'));
    expect((await server(answer))[0]).toBe('>');
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_AMBIGUOUS']);
  });

  it('reserves what a call may use', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(
      place,
      { reserve: { usd: '0.4' } },
      { meterCaps: { usd: '1', calls: 9 } },
    );
    for (const id of [1, 2]) expect((await client(call(id, 'echo')))[0]).toBe('>');
    expect((await client(call(3, 'echo')))[0]).toBe('<');
    await server(result(1, TEXT));
    expect(usedBy(place.events().at(-1))).toMatchObject({ usd: '0.4', calls: '1' });
  });

  it('runs as an adviser rewrote it', async () => {
    const place = memoryPlace();
    const adviser: Adviser = { name: 'r', advise: () => ({ effect: 'rewrite', params: { m: 'safe' } }) };
    const { client, server } = await openGuard(place, {}, {}, { advisers: [adviser] });
    const asked = call(1, 'echo', { m: 'x' }, { _meta: MODERN });
    expect(await client(asked)).toEqual(['>', call(1, 'echo', { m: 'safe' }, { _meta: MODERN })]);
    // A repetition is of what the client asked for, and is given what the server was asked.
    await server(result(1, { resultType: 'input_required', requestState: 's' }));
    const again = call(2, 'echo', { m: 'x' }, { _meta: MODERN, requestState: 's' });
    expect(await client(again)).toMatchObject([
      '>',
      { params: { arguments: { m: 'safe' }, requestState: 's' } },
    ]);
    expect(story(place)).toEqual(['allow', 'start']);
  });

  it('is denied where no ledger can be asked, and forwarded without a record where that is to fail open', async () => {
    const open = (): Promise<never> => Promise.reject(new Error('no'));
    const closed = guardOver(memoryPlace(), { open });
    expect(await closed.client(call(1, 'echo'))).toMatchObject(['<', { result: { isError: true } }]);
    const { client, server, events, guard } = guardOver(memoryPlace(), { open, fail: 'open' });
    expect((await client(call(1, 'echo')))[0]).toBe('>');
    expect((await server(result(1, TEXT)))[0]).toBe('>');
    await guard.close();
    expect(events).toEqual([{ event: 'unrecorded', tool: 'mcp.s.echo', code: 'INTERNAL_ERROR' }]);
  });

  it('is asked of a ledger again after it could not be opened', async () => {
    const place = memoryPlace();
    const { guard: sound } = await openGuard(place);
    await sound.close();
    let tries = 0;
    const { client } = guardOver(place, {
      open: () => {
        tries += 1;
        return tries === 1 ? Promise.reject(new Error('later')) : reopen(place);
      },
    });
    expect((await client(call(1, 'echo')))[0]).toBe('<');
    expect((await client(call(1, 'echo')))[0]).toBe('>');
  });

  it('is denied without a record beyond the bound of open calls', async () => {
    const place = memoryPlace();
    const { link, events, guard } = await openGuard(place, {}, { meterCaps: { calls: 2_000 } });
    const steps = Array.from({ length: MAX_OPEN_CALLS + 1 }, (_, n) =>
      link.fromClient(bytesOf(call(n, 'echo'))),
    );
    const last = await stepOf(steps.at(-1)!);
    expect(JSON.stringify(last)).toContain('MCP_TOO_MANY_CALLS');
    const all = await Promise.all(steps.map(async ({ step }) => step));
    expect(all.filter(({ kind }) => kind === 'forward')).toHaveLength(MAX_OPEN_CALLS);
    await guard.close();
    expect(story(place).filter((each) => each === 'unknown MCP_CLOSED')).toHaveLength(MAX_OPEN_CALLS);
    expect(events).toHaveLength(2 * MAX_OPEN_CALLS);
    expect(await place.verdict()).toBe('ok');
  });
});

describe('what has two readings', () => {
  const params = '"params":{"name":"echo","arguments":{}}';
  it.each([
    ['duplicate keys', `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",${params}}`, 1],
    ['another case', `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call",${params}}`, 1],
    ['another s', `{"jsonrpc":"2.0","id":1,"method":"ping","param\u017F":{},${params}}`, 1],
    [
      'a name in another case',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"rm"}}',
      1,
    ],
    ['no method in this case', `{"jsonrpc":"2.0","id":1,"METHOD":"tools/call",${params}}`, 1],
    [
      'lines within',
      `{"jsonrpc":"2.0","id":1,"method":"ping","x":\r{"jsonrpc":"2.0","id":2,"method":"tools/call",${params}}\r}`,
      1,
    ],
    [
      'two messages',
      `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"tools/call",${params}}`,
      null,
    ],
    ['a batch', `[{"jsonrpc":"2.0","id":1,"method":"tools/call",${params}}]`, null],
    ['no end', `{"jsonrpc":"2.0","id":1,"method":"tools/call",${params}`, null],
    ['comments', `/**/{"jsonrpc":"2.0","id":1,"method":"tools/call",${params}}`, null],
    ['a byte order mark', `\uFEFF{"jsonrpc":"2.0","id":1,"method":"tools/call",${params}}`, 1],
    [
      'no Unicode',
      Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call",${params},"x":"\u00FF"}`, 'latin1'),
      1,
    ],
    ['an id that is none', `{"jsonrpc":"2.0","id":null,"method":"tools/call",${params}}`, null],
    ['a fraction for an id', `{"jsonrpc":"2.0","id":1.5,"method":"tools/call",${params}}`, null],
    ['a result beside the method', `{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},${params}}`, 1],
    [
      'a number without a canonical form',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":12345678901234567890}}}`,
      1,
    ],
    [
      'arguments that are a list',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}`,
      1,
    ],
    ['params that are a list', `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}`, 1],
    [
      'a name that is no text',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["echo"]}}`,
      1,
    ],
    [
      'too many levels',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(600)}${']'.repeat(600)}}`,
      null,
    ],
  ])('is refused: %s', async (_, message, id) => {
    const place = memoryPlace();
    const { client } = await openGuard(place);
    expect(await client(message)).toMatchObject(['<', { jsonrpc: '2.0', id, error: {} }]);
    expect(story(place)).toEqual([]);
  });

  it.each([
    ['a call without an id', `{"jsonrpc":"2.0","method":"tools/call",${params}}`],
    ['a notification with duplicate keys', `{"jsonrpc":"2.0","method":"x","method":"tools/call",${params}}`],
    ['an answer with duplicate keys', '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}'],
  ])('and is not answered, is dropped: %s', async (_, message) => {
    const { client, events } = await openGuard(memoryPlace());
    expect(await client(message)).toBe('dropped');
    expect(events).toMatchObject([{ event: 'dropped', from: 'client' }]);
  });

  it.each(['', 'free text', '"text"', '17'])(
    'but what nobody reads as a message passes: %s',
    async (message) => {
      const { link, events } = await openGuard(memoryPlace());
      for (const way of ['fromClient', 'fromServer'] as const)
        expect(await link[way](Buffer.from(message)).step).toMatchObject({ kind: 'forward' });
      expect(events.map(({ event }) => event)).toEqual(['unread', 'unread']);
    },
  );

  it('passes where nothing is decided on it: other spellings of numbers and white space', async () => {
    const { client } = await openGuard(memoryPlace());
    const message =
      '{ "jsonrpc": "2.0", "id": 1, "method": "x/y", "params": {"n": 12345678901234567890, "e": 1E2}}';
    expect((await client(message))[0]).toBe('>');
    expect(
      (
        await client(
          '{ "jsonrpc" : "2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50}}}',
        )
      )[0],
    ).toBe('>');
  });
});

describe('ids', () => {
  it('are told apart by their type, and one in flight is refused', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    expect((await client(call(1, 'echo')))[0]).toBe('>');
    expect((await client(call('1', 'fail')))[0]).toBe('>');
    expect(await client(call(1, 'echo'))).toMatchObject(['<', { id: 1, error: { code: -32600 } }]);
    expect(await client({ jsonrpc: '2.0', id: 1, method: 'ping' })).toMatchObject(['<', { error: {} }]);
    await server(result('1', { ...TEXT, isError: true }));
    await server(result(1, TEXT));
    expect(story(place)).toEqual(['allow', 'start', 'allow', 'start', 'failure MCP_TOOL_ERROR', 'success']);
    // It is free again.
    expect((await client(call(1, 'echo')))[0]).toBe('>');
  });

  it('of other requests cannot settle a call', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client({ jsonrpc: '2.0', id: 5, method: 'ping' });
    expect(await client(call(5, 'echo'))).toMatchObject(['<', { error: { code: -32600 } }]);
    expect((await server(result(5, {})))[0]).toBe('>');
    expect(story(place)).toEqual([]);
  });

  it('of the server are a space of their own', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo'));
    const asked = { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: {} };
    expect(await server(asked)).toEqual(['>', asked]);
    expect(await client(result(1, { action: 'accept' }))).toMatchObject(['>', {}]);
    expect(story(place)).toEqual(['allow', 'start']);
    await server(result(1, TEXT));
    expect(story(place).at(-1)).toBe('success');
  });

  it('that nobody awaits are not answered: unknown ones, those answered before, and those being decided', async () => {
    const place = memoryPlace();
    const { client, server, link } = await openGuard(place, {}, { allowedTools: ['mcp.s.echo'] });
    expect(await server(result(9, TEXT))).toBe('dropped');
    await client(call(1, 'echo'));
    expect((await server(result(1, TEXT)))[0]).toBe('>');
    expect(await server(result(1, TEXT))).toBe('dropped');
    const deciding = link.fromClient(bytesOf(call(2, 'rm')));
    expect(await server(result(2, TEXT))).toBe('dropped');
    expect((await stepOf(deciding))[0]).toBe('<');
    expect(await server(result(2, TEXT))).toBe('dropped');
    // An error of a message that the server could not read has none.
    expect((await server({ jsonrpc: '2.0', id: null, error: { code: -32700, message: '' } }))[0]).toBe('>');
    expect(story(place)).toEqual(['allow', 'start', 'success', 'deny']);
  });
});

describe('a call that the client is asked for input in', () => {
  const asks = (id: unknown, state?: string): object =>
    result(id, { resultType: 'input_required', inputRequests: {}, requestState: state });
  const again = (id: unknown, state?: string, args: unknown = { m: 1 }): object =>
    call(id, 'echo', args, { _meta: MODERN, inputResponses: {}, requestState: state });

  it('is one authorization and one execution, however often it is repeated', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo', { m: 1 }, { _meta: MODERN }));
    await server(asks(1, 'a'));
    expect(await client(again(2, 'a'))).toEqual(['>', JSON.parse(JSON.stringify(again(2, 'a')))]);
    await server(asks(2));
    expect((await client(again(3)))[0]).toBe('>');
    await server(result(3, { resultType: 'complete', ...TEXT }));
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });

  it.each([
    ['other arguments', again(2, 'a', { m: 2 })],
    ['another state', again(2, 'b')],
    ['no state', again(2)],
    ['no answers', call(2, 'echo', { m: 1 }, { _meta: MODERN })],
  ])('is not continued by a call with %s', async (_, message) => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place);
    await client(call(1, 'echo', { m: 1 }, { _meta: MODERN }));
    await server(asks(1, 'a'));
    expect((await client(message))[0]).toBe('>');
    expect(story(place)).toEqual(['allow', 'start', 'allow', 'start']);
    await guard.close();
    expect(story(place).slice(4)).toEqual(['unknown MCP_CLOSED', 'unknown MCP_CLOSED']);
  });

  it('is continued once: the same repetition again is a call of its own', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place, {}, { meterCaps: { calls: 1 } });
    await client(call(1, 'echo', { m: 1 }, { _meta: MODERN }));
    await server(asks(1, 'a'));
    expect((await client(again(2, 'a')))[0]).toBe('>');
    expect((await client(again(3, 'a')))[0]).toBe('<');
    expect(story(place)).toEqual(['allow', 'start', 'deny']);
  });

  it('is continued on another connection', async () => {
    const place = memoryPlace();
    const { client, server, guard, link } = await openGuard(place);
    await client(call(1, 'echo', { m: 1 }, { _meta: MODERN }));
    await server(asks(1, 'a'));
    await link.close();
    const other = guard.connect();
    expect((await stepOf(other.fromClient(bytesOf(again(1, 'a')))))[0]).toBe('>');
    await other.fromServer(bytesOf(result(1, TEXT))).step;
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });

  it('ends as unknown where it is never repeated', async () => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place, { ttlMs: 50 });
    await client(call(1, 'echo', { m: 1 }, { _meta: MODERN }));
    await server(asks(1, 'a'));
    await expect.poll(() => guard.openCalls).toBe(0);
    await guard.close();
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_INPUT_EXPIRED']);
  });

  it('is complete in the legacy era, where nothing is repeated', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo'));
    await server(asks(1));
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });
});

describe('a call that is a task', () => {
  const task = (status: string, more: object = {}): object => ({
    taskId: 't1',
    status,
    ttlMs: 60_000,
    ...more,
  });
  const get = (id: unknown, method = 'tasks/get'): object => ({
    jsonrpc: '2.0',
    id,
    method,
    params: { taskId: 't1' },
  });

  it.each([
    ['completed', { result: TEXT }, 'success'],
    ['completed', { result: { ...TEXT, isError: true } }, 'failure MCP_TOOL_ERROR'],
    ['failed', { error: { code: -32000, message: '' } }, 'failure MCP_32000'],
    ['failed', {}, 'failure MCP_TASK_FAILED'],
    ['cancelled', {}, 'unknown MCP_TASK_CANCELLED'],
  ])('ends with its state %s %j, in 2026-07-28', async (status, more, end) => {
    for (const how of ['get', 'notification']) {
      const place = memoryPlace();
      const { client, server } = await openGuard(place);
      await client(call(1, 'echo', {}, { _meta: MODERN }));
      await server(result(1, { resultType: 'task', ...task('working') }));
      await client(get(2));
      await server(result(2, { resultType: 'complete', ...task('input_required') }));
      expect(story(place)).toEqual(['allow', 'start']);
      if (how === 'get') {
        await client(get(3));
        await server(result(3, task(status, more)));
      } else await server({ jsonrpc: '2.0', method: 'notifications/tasks', params: task(status, more) });
      expect(story(place)).toEqual(['allow', 'start', end]);
    }
  });

  it('ends with its result in the legacy era', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(call(1, 'echo', {}, { task: { ttl: 60_000 } }));
    await server(result(1, { task: task('working') }));
    await client(get(2));
    await server(result(2, task('completed')));
    expect(story(place)).toEqual(['allow', 'start']);
    await client(get(3, 'tasks/result'));
    await server(result(3, { ...TEXT, isError: true }));
    expect(story(place)).toEqual(['allow', 'start', 'failure MCP_TOOL_ERROR']);
  });

  it('that is complete counts so, even if nobody asks for its result', async () => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place);
    await client(call(1, 'echo', {}, { task: {} }));
    await server(result(1, { task: task('working') }));
    await server({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: task('completed') });
    await guard.close();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });

  it('is not ended by a server that does not know it any more, and ends as unknown after its time', async () => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place);
    await client(call(1, 'echo', {}, { _meta: MODERN }));
    await server(result(1, { resultType: 'task', taskId: 't1', status: 'working', ttlMs: 50 }));
    await client(get(2));
    await server({ jsonrpc: '2.0', id: 2, error: { code: -32602, message: '' } });
    await expect.poll(() => guard.openCalls).toBe(0);
    await guard.close();
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_TASK_EXPIRED']);
  });

  it('is not told by the id of another', async () => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place);
    for (const id of [1, 2]) {
      await client(call(id, 'echo', { id }, { _meta: MODERN }));
      await server(result(id, { resultType: 'task', ...task('working') }));
    }
    await guard.close();
    expect(story(place).slice(4).sort()).toEqual(['unknown MCP_CLOSED', 'unknown MCP_NOT_ANSWERED']);
  });
});

describe('a cancelled call', () => {
  it('that was denied is not told to the server; nor one that was answered, or never sent', async () => {
    const { client, server } = await openGuard(memoryPlace(), {}, { allowedTools: ['mcp.s.echo'] });
    await client(call(1, 'rm'));
    expect(await client(cancelled(1))).toBe('dropped');
    await client(call(2, 'echo'));
    await server(result(2, TEXT));
    expect(await client(cancelled(2))).toBe('dropped');
    expect(await client(cancelled(3))).toBe('dropped');
    expect(await client(cancelled({}))).toBe('dropped');
  });

  it('may have been done: unknown, unless it is answered after all', async () => {
    const place = memoryPlace();
    const { client, server, guard } = await openGuard(place);
    await client(call(1, 'echo'));
    await client(call(2, 'echo'));
    expect(await client(cancelled(1))).toEqual(['>', cancelled(1)]);
    expect(await client(cancelled(2))).toEqual(['>', cancelled(2)]);
    await server(result(1, TEXT));
    expect(story(place).slice(4)).toEqual(['success']);
    await guard.close();
    expect(story(place).slice(5)).toEqual(['unknown MCP_CLOSED']);
  });

  it('while it is decided never reaches the server', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(
      place,
      { waitMs: 60_000 },
      { approvals: [{ tools: ['mcp.s.*'], approvers: ['human:*'] }] },
    );
    const { step, waits } = link.fromClient(bytesOf(call(1, 'echo')));
    await waits;
    expect(await client(cancelled(1))).toBe('dropped');
    expect(await step).toEqual({ kind: 'drop' });
    await guard.close();
    expect(story(place)).toEqual(['deny']);
  });

  it('that was allowed and not sent is settled as such', async () => {
    const place = memoryPlace();
    const { client, link } = await openGuard(place);
    await client(call(1, 'echo'));
    const { step } = link.fromClient(bytesOf(call(2, 'echo')));
    // Its decision is on its way to the disk.
    await new Promise(setImmediate);
    await client(cancelled(2));
    expect(await step).toEqual({ kind: 'drop' });
    expect(['', 'failure MCP_NOT_SENT']).toContain(story(place).slice(4)[0] ?? '');
    expect(await place.verdict()).toBe('ok');
  });
});

describe('what needs an approval', () => {
  const bounds = { approvals: [{ tools: ['mcp.s.*'], approvers: ['human:olga'] }] };

  it('is denied with who may approve which request', async () => {
    const place = memoryPlace();
    const { client } = await openGuard(place, { howToApprove: (id) => `approve ${id}` }, bounds);
    const told = JSON.stringify(await client(call(1, 'echo')));
    expect(told).toContain('APPROVAL_REQUIRED');
    expect(told).toContain('human:olga');
    expect(told).toMatch(/approve sha-256:/);
    expect(story(place)).toEqual(['deny']);
  });

  it('is waited for, and meanwhile others may pass', async () => {
    const place = memoryPlace();
    const { link, events } = await openGuard(place, { waitMs: 60_000 }, bounds);
    const { step, waits, overtakes } = link.fromClient(bytesOf(call(1, 'echo')));
    expect(overtakes).toBe(false);
    await waits;
    const waiting = events.find(({ event }) => event === 'waiting') as { authorization: string };
    const approver = await reopen(place);
    await approver.ledger.approve(waiting.authorization, { principalId: 'human:olga' });
    expect((await step).kind).toBe('forward');
    expect(story(place)).toEqual(['deny', 'approval', 'allow', 'start']);
  });
});

describe('a connection that ends', () => {
  it('leaves what was forwarded as unknown, and what is being decided unsent', async () => {
    const place = memoryPlace();
    const { client, link, events } = await openGuard(place);
    await client(call(1, 'echo'));
    const { step } = link.fromClient(bytesOf(call(2, 'echo')));
    await link.close();
    expect(await step).toEqual({ kind: 'drop' });
    expect(story(place).filter((each) => each === 'unknown MCP_CLOSED')).toHaveLength(1);
    expect(events.filter(({ event }) => event === 'unsettled')).toEqual([]);
    expect(link.fromClient(bytesOf(call(3, 'echo'))).step).toEqual({ kind: 'drop' });
    expect(link.fromServer(bytesOf(result(1, TEXT))).step).toEqual({ kind: 'drop' });
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a message that is too long', () => {
  it('of the server answers its request by an error, where it has an id', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(place);
    await client(call(1, 'echo'));
    await client({ jsonrpc: '2.0', id: 'p', method: 'ping' });
    const answer = (id?: string | number): LongLine => ({ id, hasMethod: false });
    expect(await stepOf(link.tooLongFromServer(answer(1)))).toMatchObject([
      '>',
      { id: 1, error: { code: -32603 } },
    ]);
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_TOO_LONG']);
    const ping = await stepOf(link.tooLongFromServer(answer('p')));
    expect(ping).toMatchObject(['>', { id: 'p', error: {} }]);
    for (const id of [1, 'p', undefined])
      expect(await stepOf(link.tooLongFromServer(answer(id)))).toBe('dropped');
    for (const id of [1, undefined])
      expect(await stepOf(link.tooLongFromClient({ id, hasMethod: true }))).toMatchObject([
        '<',
        { id: id ?? null, error: {} },
      ]);
  });

  it('of one side that asks answers no request of the other, which has the same id', async () => {
    const place = memoryPlace();
    const { client, server, link, guard } = await openGuard(place);
    await client(call(1, 'echo'));
    const asked = { id: 1, hasMethod: true };
    expect(await stepOf(link.tooLongFromServer(asked))).toMatchObject(['<', { id: 1, error: {} }]);
    expect(await stepOf(link.tooLongFromServer({ id: undefined, hasMethod: true }))).toBe('dropped');
    const told = await stepOf(link.tooLongFromClient({ id: 1, hasMethod: false }));
    expect(told).toMatchObject(['>', { id: 1, error: {} }]);
    await server({ jsonrpc: '2.0', id: 1, result: { content: [], isError: false } });
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });

  it.each([
    ['{"jsonrpc":"2.0","id":4,"result":"', '"}', 4],
    ['{"id":"a","result":{"content":[{"text":"', '"}]}}', 'a'],
    ['{"result":{"x":["', '"]},"jsonrpc":"2.0","id":4}', 4],
    ['{"a":"', '"\t, "id" : -4 ,"jsonrpc":"2.0","b":"xx"}', -4],
    ['{"\\u0069d":"\\u00e9","x":"', '"}', 'é'],
    ['{"id":4,"result":"', '","id":4}', 4],
    ['{"id":4,"result":"', '","id":5}', undefined],
    ['{"id":4,"result":"', '","id":null}', undefined],
    ['{"id":{"id":4},"result":"', '"}', undefined],
    ['{"result":{"id":4,"x":"', '"}}', undefined],
    ['{"result":"', ',\\"id\\":4}"}', undefined],
    ['{"result":{"x":"', '","id":4}}', undefined],
    ['{"id":4.5,"result":"', '"}', undefined],
    ['[{"id":4,"result":"', '"}]', undefined],
    ['{"method":"notifications/x","params":"', '"}', undefined],
    ['{"m\\u0065thod":"x","params":{"method":"', '"},"id":4}', 4],
    ['{"x":"', `","id":"${'i'.repeat(300)}"}`, undefined],
    ['"id":4,', '', undefined],
  ])('has its id wherever it stands, in however small pieces it comes: %s … %s', (head, tail, id) => {
    const line = Buffer.from(`${head}${'x'.repeat(5_000)}\\"{[,:${'x'.repeat(5_000)}${tail}\r\n`);
    const whole = new LineFrames(2_000);
    const long = [{ id, hasMethod: /"m(e|.u0065)thod"/.test(head) }];
    expect([...whole.push(line)]).toEqual(long);
    const frames = new LineFrames(2_000);
    expect([...line].flatMap((byte) => [...frames.push(Uint8Array.of(byte))])).toEqual(long);
  });
});

describe('a guard', () => {
  it.each([
    ['a server with a dot', { server: 'a.b' }],
    ['a server without a name', { server: '' }],
    ['an unknown option', { servers: 's' }],
    ['an amount that is none', { reserve: { usd: 'x' } }],
  ])('refuses %s', (_, options) => {
    const open = (): Promise<never> => Promise.reject(new Error());
    expect(() => new McpGuard({ open, server: 's', ...options })).toThrow(/McpGuard|usd/);
  });
});

describe('long ids', () => {
  const long = (end: string): string => `${'x'.repeat(2 ** 18)}${end}`;

  it('are told apart', async () => {
    const { link } = await openGuard(memoryPlace());
    const from = (id: string): Promise<Became> =>
      stepOf(link.fromClient(bytesOf({ jsonrpc: '2.0', id, method: 'resources/list' })));
    expect((await from(long('a')))[0]).toBe('>');
    expect((await from(long('b')))[0]).toBe('>');
    expect((await from(long('a')))[0]).toBe('<');
    const answer = bytesOf({ jsonrpc: '2.0', id: long('b'), result: {} });
    expect((await stepOf(link.fromServer(answer)))[0]).toBe('>');
    expect(await stepOf(link.fromServer(answer))).toBe('dropped');
  });

  it('take little memory, however many are not answered', async () => {
    const { link } = await openGuard(memoryPlace());
    const before = keptBytes();
    // In all, 160 MiB.
    for (let n = 0; n < 640; n += 1)
      await link.fromClient(bytesOf({ jsonrpc: '2.0', id: long(`${n}`), method: 'resources/list' })).step;
    expect(keptBytes() - before).toBeLessThan(16 * 1024 * 1024);
  });
});
