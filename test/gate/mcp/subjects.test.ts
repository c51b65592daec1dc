/** What a guard of MCP does besides calls of tools: resources, prompts, sampling, and lists of tools. */

import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { filePlace, memoryPlace, type Place } from '../../agent/support.js';
import { bytesOf, call, guardOver, MODERN, openGuard, result, stepOf, story, TEXT } from './support.js';

const request = (id: unknown, method: string, params: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

function actionOf(place: Place): unknown {
  return place.events()[2]?.authorization?.action;
}

describe('resources and prompts', () => {
  const read = request(1, 'resources/read', { uri: 'file:///x' });
  const prompt = request(1, 'prompts/get', { name: 'p', arguments: { a: '1' } });

  it('pass unless they are guarded', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    expect(await client(read)).toEqual(['>', read]);
    await server(result(1, { contents: [] }));
    expect(await client(prompt)).toEqual(['>', prompt]);
    expect(story(place)).toEqual([]);
  });

  it.each([
    ['resources', read, 'mcp.s.resources.read', { uri: 'file:///x' }],
    ['prompts', prompt, 'mcp.s.prompts.get', { name: 'p', arguments: { a: '1' } }],
  ] as const)('are guarded: %s', async (subject, message, tool, params) => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place, { guard: [subject] });
    expect(await client(message)).toEqual(['>', message]);
    await server(result(1, { contents: [] }));
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    expect(actionOf(place)).toMatchObject({
      tool_name: tool,
      tool_params_digest: sha256Digest(canonicalBytes(params)),
    });
  });

  it('are denied by an error, as their results cannot say that they are one', async () => {
    const { client } = await openGuard(
      memoryPlace(),
      { guard: ['resources'] },
      { allowedTools: ['mcp.s.x'] },
    );
    expect(await client(read)).toMatchObject(['<', { id: 1, error: { code: -32010 } }]);
    expect(await client(request(2, 'resources/read', { uri: 7 }))).toMatchObject([
      '<',
      { error: { code: -32602 } },
    ]);
  });

  it('are not to be had by a tool of the same name', async () => {
    const place = memoryPlace();
    const { client } = await openGuard(place, { guard: ['resources', 'prompts'] });
    for (const name of ['resources.read', 'prompts.get'])
      expect(await client(call(1, name))).toMatchObject(['<', { error: { code: -32602 } }]);
    expect(story(place)).toEqual([]);
  });
});

describe('sampling', () => {
  const sample = request(3, 'sampling/createMessage', { messages: [], maxTokens: 9, _meta: { a: 1 } });

  it('passes unless it is guarded', async () => {
    const place = memoryPlace();
    const { server } = await openGuard(place);
    expect(await server(sample)).toEqual(['>', sample]);
    expect(story(place)).toEqual([]);
  });

  it('is a call of a model, settled by the answer of the client', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place, { guard: ['sampling'] });
    expect(await server(sample)).toEqual(['>', sample]);
    expect(actionOf(place)).toMatchObject({ tool_name: 'llm.mcp/s' });
    // The client's own ids are others.
    expect((await client(request(3, 'ping')))[0]).toBe('>');
    await client(result(3, { model: 'm-1', content: {} }));
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    expect(place.events().at(-1)?.model_id).toBe('m-1');
    await server(sample);
    await client({ jsonrpc: '2.0', id: 3, error: { code: -1, message: '' } });
    expect(story(place).slice(3)).toEqual(['allow', 'start', 'failure MCP_1']);
  });

  it('whose answer is too long fails for the server; what came of it is not known', async () => {
    const place = memoryPlace();
    const { server, link, guard } = await openGuard(place, { guard: ['sampling'] });
    await server(sample);
    const told = await stepOf(link.tooLongFromClient({ id: 3, hasMethod: false }));
    expect(told).toMatchObject(['>', { id: 3, error: { code: -32603 } }]);
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_TOO_LONG']);
  });

  it('that is denied is answered to the server, and the client never sees it', async () => {
    const place = memoryPlace();
    const { server } = await openGuard(place, { guard: ['sampling'] }, { allowedTools: ['mcp.s.*'] });
    expect(await server(sample)).toMatchObject(['<', { id: 3, error: { code: -1 } }]);
    expect(story(place)).toEqual(['deny']);
  });

  it('cannot be had by what has two readings', async () => {
    const { server, events } = await openGuard(memoryPlace(), { guard: ['sampling'] });
    for (const message of [
      '{"jsonrpc":"2.0","id":1,"method":"ping","method":"sampling/createMessage","params":{}}',
      '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"sampling/createMessage","params":{}}',
      '{"jsonrpc":"2.0","method":"sampling/createMessage","id":1',
      '[{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}]',
    ])
      expect(await server(message)).toBe('dropped');
    expect(events).toHaveLength(4);
  });

  it('is unknown where the connection ends before its answer', async () => {
    const place = memoryPlace();
    const { server, guard } = await openGuard(place, { guard: ['sampling'] });
    await server(sample);
    await guard.close();
    expect(story(place)).toEqual(['allow', 'start', 'unknown MCP_CLOSED']);
  });

  describe('of 2026-07-28, which is asked for in a result', () => {
    const asks = result(1, {
      resultType: 'input_required',
      requestState: 'x',
      inputRequests: {
        a: { method: 'sampling/createMessage', params: { maxTokens: 9 } },
        b: { method: 'elicitation/create' },
      },
    });
    const again = call(
      2,
      'echo',
      {},
      { _meta: MODERN, requestState: 'x', inputResponses: { a: { model: 'm-1' }, b: {} } },
    );

    it('is a call of its own within the call', async () => {
      const place = memoryPlace();
      const { client, server } = await openGuard(place, { guard: ['sampling'] });
      await client(call(1, 'echo', {}, { _meta: MODERN }));
      expect(await server(asks)).toEqual(['>', asks]);
      expect(story(place)).toEqual(['allow', 'start', 'allow', 'start']);
      expect((await client(again))[0]).toBe('>');
      await server(result(2, TEXT));
      expect(story(place).slice(4).sort()).toEqual(['success', 'success']);
      expect(await place.verdict()).toBe('ok');
    });

    it('that is denied ends the call, of which it is not known what it did', async () => {
      const place = memoryPlace();
      const { client, server } = await openGuard(
        place,
        { guard: ['sampling'] },
        { allowedTools: ['mcp.s.*'] },
      );
      await client(call(1, 'echo', {}, { _meta: MODERN }));
      expect(await server(asks)).toMatchObject([
        '>',
        { id: 1, result: { isError: true, resultType: 'complete' } },
      ]);
      expect(story(place)).toEqual(['allow', 'start', 'deny', 'unknown MCP_SAMPLING_DENIED']);
      // The state was never told.
      expect((await client(again))[0]).toBe('>');
      expect(story(place).slice(4)).toEqual(['allow', 'start']);
    });

    it('is unknown where the call is not repeated', async () => {
      const place = memoryPlace();
      const { client, server, guard } = await openGuard(place, { guard: ['sampling'] });
      await client(call(1, 'echo', {}, { _meta: MODERN }));
      await server(asks);
      await guard.close();
      expect(story(place).slice(4).sort()).toEqual(['unknown MCP_CLOSED', 'unknown MCP_CLOSED']);
    });
  });
});

const tool = (name: string, description = 'd'): object => ({
  name,
  description,
  inputSchema: { type: 'object' },
});
const list = (id: number): object => request(id, 'tools/list');
const digestOf = (definition: object): string => sha256Digest(canonicalBytes(definition)).b64;

/** The checks of the last decision that are of definitions. */
function definitionsOf(place: Place): object[] {
  const events = place.events() as unknown as { event_type: string; checks: { check: string }[] }[];
  const { checks } = events.filter(({ event_type: type }) => type === 'authorization').at(-1)!;
  return checks.filter(({ check }) => check.startsWith('tool:'));
}

describe('definitions of tools', () => {
  it('are recorded with each call, without what is not told to the model', async () => {
    const place = memoryPlace();
    const { client, server } = await openGuard(place);
    await client(list(1));
    await server(result(1, { tools: [{ ...tool('echo'), _meta: { a: 1 } }] }));
    await client(call(2, 'echo'));
    expect(definitionsOf(place)).toEqual([
      { check: `tool:${digestOf(tool('echo'))}`, result: 'pass', code: 'MCP_TOOL_DEFINITION' },
    ]);
    await client(call(3, 'other'));
    expect(definitionsOf(place)).toEqual([]);
  });

  it('that change are told of', async () => {
    const { client, server, events } = await openGuard(memoryPlace());
    for (const [id, description] of ['a', 'a', 'b'].entries()) {
      await client(list(id));
      await server(result(id, { tools: [tool('echo', description)] }));
    }
    expect(events).toEqual([{ event: 'changed', tool: 'echo' }]);
  });

  it('that are pinned deny another one, in this session and later', async () => {
    const place = filePlace();
    const first = await openGuard(place, { pin: true });
    const say = async ({ client, server }: typeof first, id: number, description: string): Promise<void> => {
      await client(list(id));
      await server(result(id, { tools: [tool('echo', description)] }));
    };
    const ask = async ({ client, server }: typeof first, id: number): Promise<string> => {
      const [way] = await client(call(id, 'echo'));
      await server(result(id, TEXT));
      return String(way);
    };
    expect(await ask(first, 1)).toBe('<');
    await say(first, 2, 'a');
    expect(await ask(first, 3)).toBe('>');
    await say(first, 4, 'b');
    expect(await ask(first, 5)).toBe('<');
    expect(story(place).filter((each) => each !== 'start')).toEqual(['deny', 'allow', 'success', 'deny']);
    const codes = place.events().map((event) => (event as { decision_code?: string }).decision_code);
    expect(codes.filter((code) => code?.startsWith('MCP_'))).toEqual([
      'MCP_TOOL_NOT_LISTED',
      'MCP_TOOL_CHANGED',
    ]);
    await first.guard.close();

    const second = guardOver(place, { pin: true });
    await say(second, 1, 'b');
    expect(await ask(second, 2)).toBe('<');
    await say(second, 3, 'a');
    expect(await ask(second, 4)).toBe('>');
    await second.guard.close();

    // Who runs it once without pins takes the new one for good.
    const third = guardOver(place);
    await say(third, 1, 'b');
    expect(await ask(third, 2)).toBe('>');
    await third.guard.close();
    const fourth = guardOver(place, { pin: true });
    await say(fourth, 1, 'b');
    expect(await ask(fourth, 2)).toBe('>');
    expect(await place.verdict()).toBe('ok');
  });

  it('that are pinned deny a tool that is listed twice, each time as another', async () => {
    const { client, server } = await openGuard(filePlace(), { pin: true });
    await client(list(1));
    await server(result(1, { tools: [tool('echo', 'a'), tool('echo', 'b')] }));
    expect((await client(call(2, 'echo')))[0]).toBe('<');
  });

  it('that cannot be read in one way are not forwarded where they are pinned or hidden', async () => {
    const { client, server } = await openGuard(memoryPlace(), { hide: true });
    await client(list(1));
    const twice = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","name":"b"}]}}';
    expect(await server(twice)).toMatchObject(['>', { id: 1, error: { code: -32603 } }]);
  });

  it('are hidden where no grant names the tool', async () => {
    const { client, server, link } = await openGuard(
      memoryPlace(),
      { hide: true },
      { allowedTools: ['mcp.s.e*'] },
    );
    const whole = { tools: [tool('echo'), tool('rm'), {}, tool('each')], nextCursor: 'c' };
    await client(list(1));
    expect(await server(result(1, whole))).toEqual([
      '>',
      result(1, { tools: [tool('echo'), tool('each')], nextCursor: 'c' }),
    ]);
    await client(list(2));
    const granted = result(2, { tools: [tool('echo')] });
    const { step } = link.fromServer(bytesOf(granted));
    expect(await step).toEqual({ kind: 'forward', message: bytesOf(granted) });
    await client(list(3));
    const error = { jsonrpc: '2.0', id: 3, error: { code: 1, message: '' } };
    expect(await stepOf(link.fromServer(bytesOf(error)))).toEqual(['>', error]);
  });
});
