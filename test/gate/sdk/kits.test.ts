/** What single kits do beside what all of them do. */

/* eslint-disable @typescript-eslint/require-await -- the SDKs that are imitated here are asynchronous */

import { describe, expect, it } from 'vitest';
import { Gate } from '../../../src/gate/gate.js';
import { guardApproval, guardTools } from '../../../src/gate/sdk/ai.js';
import { guardHooks } from '../../../src/gate/sdk/claude-agent.js';
import { guardMiddleware } from '../../../src/gate/sdk/langchain.js';
import { guardClient, guardTool as guardMcpTool } from '../../../src/gate/sdk/mcp.js';
import { guardExecute, guardTool as guardAgentTool } from '../../../src/gate/sdk/openai-agents.js';
import { AGENT, leftOf, usedBy } from '../../agent/support.js';
import { codeOf, errorOf } from '../../writer/support.js';
import { approvingAi, hookedClaude, ToolMessage } from './fakes.js';
import { endsOf, executionsOf, openFor } from './kit.js';

/** An adviser that gives a call other parameters. */
const rewriting = {
  name: 'rewriter',
  advise: async () => ({ effect: 'rewrite', params: { path: 'b' } }) as const,
};

describe('ai', () => {
  it('leaves tools without execute as they are', async () => {
    const { ledger } = await openFor('read', { calls: 1 });
    const tools = { ask: { description: 'asks the user' } };
    expect(guardTools(ledger, tools).ask).toBe(tools.ask);
    expect(() => guardTools(ledger, [] as never)).toThrow(TypeError);
    expect(() => guardTools({} as never, tools)).toThrow(TypeError);
  });

  it('leaves all of a tool but its execute as it is', async () => {
    const { ledger } = await openFor('read', { calls: 1 });
    const inputSchema = Object.assign(() => 1, { '~standard': { vendor: 'a' } });
    const own = Object.freeze({ inputSchema, execute: async () => 1 });
    const { read } = guardTools(ledger, { read: own });
    expect(read.inputSchema).toBe(inputSchema);
    expect({ ...read, execute: own.execute }).toEqual(own);
    expect(await read.execute()).toBe(1);
  });

  it('digests parameters that are no JSON, and runs nothing whose parameters cannot be', async () => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    let ran = 0;
    const { read } = guardTools(ledger, { read: { execute: async (_input: object) => (ran += 1) } });
    await read.execute({ at: new Date(0), bytes: Buffer.from('a'), large: 10n, none: undefined });
    const circle: { self?: object } = {};
    circle.self = circle;
    expect(await codeOf(read.execute(circle))).toBe('PARAMS_NOT_JSON');
    expect(ran).toBe(1);
    expect(endsOf(place)).toEqual(['success']);
  });

  it('a result that is no JSON is handed on, without a digest', async () => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    const circle: { self?: object } = {};
    circle.self = circle;
    const { read } = guardTools(ledger, { read: { execute: async () => circle } });
    expect(await read.execute()).toBe(circle);
    expect(executionsOf(place)[0]).not.toHaveProperty('output_digest');
  });

  it('escapes names of tools that grants could not name', async () => {
    const { place, ledger } = await openFor('read~20all', { calls: 1 });
    const { 'read all': read } = guardTools(ledger, { 'read all': { execute: async () => 1 } });
    await read.execute();
    expect(endsOf(place)).toEqual(['success']);
  });

  it('approval: gives the same call the same answer, and settles it once', async () => {
    const { place, ledger } = await openFor('read', { calls: 2 });
    const { toolApproval, onToolExecutionEnd } = guardApproval(new Gate(ledger), { principal: AGENT });
    const toolCall = { toolCallId: 'c1', toolName: 'read', input: {} };
    expect(await toolApproval({ toolCall })).toBeUndefined();
    expect(await toolApproval({ toolCall })).toBeUndefined();
    const end = { toolCall, toolExecutionMs: 1, toolOutput: { type: 'tool-result', output: 1 } };
    await onToolExecutionEnd(end);
    await onToolExecutionEnd(end);
    expect(endsOf(place)).toEqual(['success']);
    expect((await toolApproval({ toolCall }))?.type).toBe('denied');
  });

  it('approval: denies and releases what it would have to rewrite', async () => {
    const { place, ledger, grantId } = await openFor('read', { calls: 2 });
    const gate = new Gate(ledger, { advisers: [rewriting] });
    const { told } = await approvingAi(gate, { principal: AGENT }, () => 1).call('a');
    expect(told).toContain('not run');
    expect(endsOf(place)).toEqual(['failure ABANDONED']);
    expect(await leftOf(ledger, grantId)).toBe('2');
  });

  it('approval: warns of a call whose end could not be recorded', async () => {
    const { ledger } = await openFor('read', { calls: 2 });
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const { onToolExecutionEnd } = guardApproval(new Gate(ledger), { principal: AGENT });
    const toolCall = { toolCallId: 'c1', toolName: 'read', input: {} };
    await onToolExecutionEnd({ toolCall, toolExecutionMs: 1, toolOutput: { type: 'tool-result' } });
    expect(await warned).toMatchObject({ code: 'NORTHROOT_UNRECORDED' });
  });
});

describe('langchain', () => {
  const request = { toolCall: { id: 'c', name: 'read', args: {} } };

  it('lets an interrupt pass, as a failure that gives back what it reserved', async () => {
    const { place, ledger, grantId } = await openFor('read', { calls: 2, usd: 1 });
    const { wrapToolCall } = guardMiddleware(ledger, { ToolMessage, tools: { reserve: { usd: '0.5' } } });
    const interrupt = Object.assign(new Error('ask'), { name: 'GraphInterrupt' });
    expect(await errorOf(wrapToolCall!(request, () => Promise.reject(interrupt)))).toBe(interrupt);
    expect(endsOf(place)).toEqual(['failure INTERRUPTED']);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('1');
  });

  it('throws denials and errors where it is told to', async () => {
    const { place, ledger } = await openFor('read', { calls: 1 });
    const options = { ToolMessage, onDenied: 'throw', onToolError: 'throw' } as const;
    const { wrapToolCall } = guardMiddleware(ledger, options);
    const error = new Error('no');
    expect(await errorOf(wrapToolCall!(request, () => Promise.reject(error)))).toBe(error);
    expect(await codeOf(wrapToolCall!(request, () => 1))).toBe('RESERVATION_OVER_CAP');
    expect(endsOf(place)).toEqual(['failure ERROR', 'deny']);
  });

  it('guards neither what is left out', async () => {
    const { ledger } = await openFor('read', { calls: 1 });
    expect(Object.keys(guardMiddleware(ledger, { ToolMessage, tools: false, models: false }))).toEqual([
      'name',
    ]);
    expect(() => guardMiddleware(ledger, {} as never)).toThrow(TypeError);
  });
});

describe('openai-agents and mcp', () => {
  it('throw a denial where they are told to', async () => {
    const { ledger } = await openFor('other', { calls: 1 });
    const options = { onDenied: 'throw' } as const;
    const run = async (): Promise<object> => ({});
    const callTool = async (_params: object): Promise<object> => ({});
    const invoke = async (_context: object, _input: string): Promise<object> => ({});
    const calls = [
      guardExecute(ledger, 'read', run, options)(),
      guardAgentTool(ledger, { name: 'read', invoke }, options).invoke({}, '{}'),
      guardMcpTool(ledger, 'files.read', run, options)(),
      guardClient(ledger, 'files', { callTool }, options).callTool({ name: 'read' }),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe('TOOL_NOT_ALLOWED');
  });

  it.each([
    ['an error of the server', { code: -32_602 }, 'failure ERROR', '1'],
    ['a status of HTTP', { code: 404 }, 'failure ERROR', '1'],
    ['what was never connected', { code: 'NOT_CONNECTED' }, 'failure NOT_CONNECTED', '1'],
    ['a fault of the server', { code: 502 }, 'unknown', '0.5'],
    ['a connection that was closed', { code: -32_000 }, 'unknown', '0.5'],
    ['a time that is over', { code: -32_001 }, 'unknown', '0.5'],
    ['a connection that broke', { cause: { code: 'UND_ERR_SOCKET' } }, 'unknown', '0.5'],
  ])('mcp: a client charges what the server may have done: %s', async (_what, members, end, left) => {
    const { place, ledger, grantId } = await openFor('mcp.files.read', { usd: '1' });
    const callTool = async (_params: object): Promise<object> => {
      throw Object.assign(new Error('no'), members);
    };
    const client = guardClient(ledger, 'files', { callTool }, { reserve: { usd: '0.5' } });
    await errorOf(client.callTool({ name: 'read' }));
    expect(endsOf(place)).toEqual([end]);
    expect(await leftOf(ledger, grantId, 'usd')).toBe(left);
    expect(await place.verdict()).toBe('ok');
  });

  it('refuse what they cannot guard', async () => {
    const { ledger } = await openFor('read', { calls: 1 });
    for (const wrong of [
      () => guardExecute(ledger, 'read', undefined as never),
      () => guardAgentTool(ledger, { name: 'search', type: 'hosted_tool' } as never),
      () => guardMcpTool(ledger, 'files.read', undefined as never),
      () => guardMcpTool(ledger, undefined as never, () => 1),
      () => guardClient(ledger, 'files', {} as never),
    ])
      expect(wrong).toThrow(TypeError);
  });

  it('mcp: a handler without arguments gets the context alone', async () => {
    const { place, ledger } = await openFor('mcp.files.list', { calls: 1 });
    const seen: unknown[][] = [];
    const handler = guardMcpTool(ledger, 'files.list', async (...args: object[]) => {
      seen.push(args);
      return {};
    });
    const extra = { signal: new AbortController().signal };
    await handler(extra);
    expect(seen).toEqual([[extra]]);
    expect(endsOf(place)).toEqual(['success']);
  });
});

describe('claude-agent', () => {
  const call = (session: string, id: string) => ({
    session_id: session,
    tool_name: 'read',
    tool_input: {},
    tool_use_id: id,
  });
  const signal = new AbortController().signal;

  it.each([
    ['Stop', { background_tasks: [] }, 0],
    ['Stop', { background_tasks: [{ id: 'b1' }] }, 2],
    ['StopFailure', {}, 0],
    ['SessionEnd', { reason: 'other' }, 0],
    ['PostToolBatch', { tool_calls: [{ tool_use_id: 't1' }] }, 1],
    ['PostToolBatch', { tool_calls: [] }, 2],
    ['PermissionDenied', { tool_use_id: 't1' }, 1],
  ] as const)('%s %j leaves %i of two calls of its session open', async (name, more, left) => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    const gate = new Gate(ledger);
    const hooks = guardHooks(gate);
    for (const [session, id] of [
      ['s1', 't1'],
      ['s1', 't2'],
      ['s2', 't1'],
    ] as const)
      await hooks.PreToolUse[0].hooks[0]({ hook_event_name: 'PreToolUse', ...call(session, id) }, id, {
        signal,
      });
    await hooks[name][0].hooks[0]({ hook_event_name: name, session_id: 's1', ...more }, undefined, {
      signal,
    });
    expect(gate.listOpen('s1')).toHaveLength(left);
    expect(gate.listOpen('s2')).toHaveLength(1);
    const end = name === 'SessionEnd' ? 'unknown SESSION_ENDED' : 'failure ABANDONED';
    expect(endsOf(place)).toEqual(Array<string>(2 - left).fill(end));
    expect(await place.verdict()).toBe('ok');
  });

  it('blocks where a hook fails, and only before a call', async () => {
    const { ledger } = await openFor('read', { calls: 9 });
    const hooks = guardHooks(new Gate(ledger), { waitMs: 90_000 });
    for (const [name, [matcher]] of Object.entries(hooks)) {
      expect(matcher).not.toHaveProperty('matcher');
      expect(matcher?.onFailure).toBe(name === 'PreToolUse' ? 'block' : 'continue');
      expect(matcher?.timeout).toBe(150);
    }
    expect(() => guardHooks(ledger as never)).toThrow(TypeError);
  });

  it('reserves by tool, and hands on other parameters', async () => {
    const { place, ledger } = await openFor('read', { calls: 9, usd: 1 });
    const gate = new Gate(ledger, { advisers: [rewriting] });
    const hooks = guardHooks(gate, { reserve: (tool) => (tool === 'read' ? { usd: '0.5' } : {}) });
    const input = { hook_event_name: 'PreToolUse', ...call('s1', 't1') };
    expect(await hooks.PreToolUse[0].hooks[0](input, 't1', { signal })).toMatchObject({
      hookSpecificOutput: { permissionDecision: 'allow', updatedInput: { path: 'b' } },
    });
    const after = { ...input, hook_event_name: 'PostToolUse', tool_response: 'x' };
    await hooks.PostToolUse[0].hooks[0](after, 't1', { signal });
    expect(usedBy(executionsOf(place)[0])).toMatchObject({ usd: '0.5', calls: '1' });
  });

  it('says nothing of the end of a call that was denied', async () => {
    const { place, ledger } = await openFor('other', { calls: 9 });
    const caller = hookedClaude(new Gate(ledger), {}, () => 1);
    expect((await caller.call('a')).told).toContain('TOOL_NOT_ALLOWED');
    const hooks = guardHooks(new Gate(ledger));
    const input = { hook_event_name: 'PostToolUseFailure', ...call('s1', 'toolu_1'), error: 'denied' };
    await hooks.PostToolUseFailure[0].hooks[0](input, 'toolu_1', { signal });
    expect(endsOf(place)).toEqual(['deny']);
  });
});
