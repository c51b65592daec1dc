/** What hooks of other versions and other kinds become, in lines made here. */

import { expect, it } from 'vitest';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import type { ExecutionClaim } from '../../../src/hosts/shared/host.js';
import { fileOf, findingsOf, hooks, imported, linesOf } from './kit.js';

const ctx = { agentId: 'main', sessionKey: 'agent:main:main', sessionId: 's1', runId: 'r1' };
let clock = 0;

function hook(name: string, event: object, returned: unknown = null, more: object = {}): object {
  return { n: ++clock, ts: 1795292352000 + clock, hook: name, event, ctx: { ...ctx, ...more }, returned };
}

const before = (
  toolCallId: string | undefined,
  params: object,
  returned: unknown = null,
  toolName = 'exec',
) => hook('before_tool_call', { toolName, params, runId: 'r1', toolCallId }, returned);
const after = (toolCallId: string | undefined, params: object, rest: object, toolName = 'exec') =>
  hook('after_tool_call', { toolName, params, runId: 'r1', toolCallId, ...rest });

const claimsOf = (...lines: readonly object[]) => openclaw.read([hooks(linesOf(...lines))]).claims;
const findings = (...lines: readonly object[]) => findingsOf([hooks(linesOf(...lines))]);

it('does not take for a run what 2026.9 says was blocked, whoever blocked it', () => {
  const details = { status: 'blocked', deniedReason: 'plugin-before-tool-call', reason: 'no' };
  const lines = [before('c1', { a: 1 }), after('c1', { a: 1 }, { result: { content: [], details } })];
  expect(findings(...lines)).toEqual([]);
  expect(claimsOf(...lines)).toMatchObject([
    { kind: 'action', decisionCode: 'OPENCLAW_NO_DECISION' },
    { kind: 'action', decision: 'deny', decisionCode: 'OPENCLAW_BLOCKED_PLUGIN_BEFORE_TOOL_CALL' },
  ]);
  const blocked = [before('c1', {}, { block: true, blockReason: 'no' }), lines[1]];
  expect(claimsOf(...blocked).map(({ kind }) => kind)).toEqual(['action', 'evidence', 'evidence']);
});

it('does not say how a command ended that goes on, or of which nothing is stated', () => {
  const running = [before('c1', {}), after('c1', {}, { result: { details: { status: 'running' } } })];
  expect(claimsOf(...running)[1]).toMatchObject({ outcome: 'unknown' });
  expect(claimsOf(before('c1', {}), after('c1', {}, {}))[1]).toMatchObject({ outcome: 'unknown' });
});

it('pairs calls without ids by what was let through', () => {
  const lines = [
    before(undefined, { a: 1 }),
    before(undefined, { a: 2 }),
    after(undefined, { a: 2 }, { result: {} }),
    after(undefined, { a: 1 }, { result: {} }),
  ];
  expect(findings(...lines)).toEqual(['OC-1 CALL_ID_NOT_STATED', 'OC-1 CALL_ID_NOT_STATED']);
  const runs = claimsOf(...lines).filter((claim): claim is ExecutionClaim => claim.kind === 'execution');
  expect(runs.every(({ authorization }) => authorization !== undefined)).toBe(true);
  expect(new Set(runs.map(({ id }) => id)).size).toBe(2);
});

it('tells a call id that the session uses again from the call before', () => {
  const once = [before('c1', { a: 1 }), after('c1', { a: 1 }, { result: {} })];
  const ids = claimsOf(...once, before('c1', { a: 2 }), after('c1', { a: 2 }, { result: {} })).map(
    ({ id }) => id,
  );
  expect(ids).toEqual(['decision:s1/c1', 'run:s1/c1', 'decision:s1/c1#2', 'run:s1/c1#2']);
});

it('compares parameters that no double holds', () => {
  const line = (name: string, number: string, rest: string): string =>
    `{"ts":1795292352000,"hook":"${name}","event":{"toolName":"t","params":{"n":${number}},"runId":"r1","toolCallId":"c1"${rest}},"ctx":null,"returned":null}\n`;
  const file = (number: string) =>
    hooks(line('before_tool_call', '9007199254740993', '') + line('after_tool_call', number, ',"result":{}'));
  expect(findingsOf([file('9007199254740993.0')])).toEqual([]);
  expect(findingsOf([file('9007199254740992')])).toEqual(['OC-3 PARAMS_DIFFER']);
});

it('takes messages and subagents for actions too', async () => {
  const to = { to: '+1', content: 'hi' };
  const lines = [
    hook('message_sending', to, null, { channelId: 'telegram' }),
    hook('message_sent', { ...to, success: true, messageId: 'm1' }, null, { channelId: 'telegram' }),
    hook('message_sending', { to: '+1', content: 'bad' }, { cancel: true }, { channelId: 'telegram' }),
    hook('message_sending', { to: '+1', content: 'a' }, { content: 'b' }, { channelId: 'telegram' }),
    hook('message_sent', { to: '+1', content: 'b', success: false, error: 'x' }, null, {
      channelId: 'telegram',
    }),
    hook('subagent_spawning', { childSessionKey: 'agent:x:1' }, { status: 'error', error: 'no' }),
    hook('subagent_spawning', { childSessionKey: 'agent:x:2' }, { status: 'ok' }),
    hook('subagent_spawned', { childSessionKey: 'agent:x:2', runId: 'r2' }),
  ];
  const { plan, account, report } = await imported([hooks(linesOf(...lines))]);
  expect(account.total).toMatchObject({ items: 8, mapped: 8 });
  expect(plan.reading.claims).toMatchObject([
    { decisionCode: 'OPENCLAW_NO_DECISION', tool: 'openclaw.message.send' },
    { kind: 'execution', outcome: 'success' },
    { decision: 'deny', decisionCode: 'OPENCLAW_MESSAGE_CANCELLED' },
    { decision: 'allow', decisionCode: 'OPENCLAW_MESSAGE_REWRITTEN' },
    { kind: 'execution', outcome: 'failure', errorCode: 'SEND_FAILED' },
    { decision: 'deny', decisionCode: 'OPENCLAW_SUBAGENT_REFUSED', tool: 'openclaw.subagent.spawn' },
    { decision: 'allow', decisionCode: 'OPENCLAW_SUBAGENT_OK' },
    { kind: 'execution', outcome: 'success' },
  ]);
  expect(report.verdict).toBe('ok');
});

it('finds messages and subagents that were stopped and went all the same', () => {
  const to = { to: '+1', content: 'hi' };
  expect(
    findings(hook('message_sending', to, { cancel: true }), hook('message_sent', { ...to, success: true })),
  ).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
  expect(findings(hook('message_sent', { ...to, success: true }))).toEqual(['OC-1 BEFORE_MISSING']);
  const child = { childSessionKey: 'k' };
  expect(
    findings(hook('subagent_spawning', child, { status: 'error' }), hook('subagent_spawned', child)),
  ).toEqual(['OC-2 EXECUTED_AFTER_BLOCK']);
  expect(findings(hook('subagent_spawned', child))).toEqual(['OC-11 DECISION_NOT_RECORDED']);
});

it('keeps names of tools and models, whatever characters they have', async () => {
  const usage = { input: 1, output: 2, cost: { total: 0.25 } };
  const message = {
    role: 'assistant',
    content: [],
    provider: 'p',
    model: 'm@2(x)',
    usage,
    stopReason: 'error',
    timestamp: 5,
  };
  const lines = [before('c1', {}, null, 'Bash(rm:*)'), hook('before_message_write', { message })];
  const { plan } = await imported([hooks(linesOf(...lines))]);
  expect(plan.unfit).toBe(0);
  expect(plan.events.map(({ event }) => event['tool_name']).filter((name) => name !== undefined)).toEqual([
    'llm.p/m@2~28x~29',
  ]);
  expect(plan.reading.claims[1]).toMatchObject({ outcome: 'failure', errorCode: 'LLM_ERROR' });
});

it('takes a model call once, whichever hooks are recorded, and no message of the host for one', () => {
  const said = (provider: string, model: string): object => ({
    ...{ role: 'assistant', content: [], provider, model, usage: { input: 3, output: 4 } },
    ...{ stopReason: 'stop', timestamp: 1795292352000 },
  });
  const messages = [{ role: 'user', content: [] }, said('p', 'm')];
  const output = {
    runId: 'r1',
    provider: 'p',
    model: 'm',
    usage: { input: 3, output: 4 },
    lastAssistant: messages[1],
  };
  const end = hook('agent_end', { messages });
  const ids = (...lines: readonly object[]): string[] =>
    claimsOf(...lines).flatMap(({ id, kind }) => (kind === 'execution' ? [id] : []));
  expect(ids(end, hook('llm_output', output))).toEqual(['turn-llm:s1/1795292352000']);
  expect(ids(hook('llm_output', output), end)).toEqual(['llm-run:s1/r1']);
  expect(ids(hook('before_message_write', { message: said('openclaw', 'delivery-mirror') }))).toEqual([]);
});

it('reads a run that has the id of the one before it', () => {
  const event = (seq: number, phase: string): object => ({
    ...{ runId: 'r1', seq, stream: 'lifecycle', ts: 1795292352000 + seq, data: { phase, at: ++clock } },
  });
  const again = [event(1, 'start'), event(2, 'end'), event(1, 'start'), event(2, 'end')];
  expect(findingsOf([fileOf('e.jsonl', linesOf(...again))])).toEqual([]);
  const on = [event(1, 'start'), event(2, 'end'), event(3, 'start'), event(4, 'end')];
  expect(findingsOf([fileOf('e.jsonl', linesOf(...on))])).toEqual([]);
});

it('takes agent events that stand alone for what they say, and for no decision', () => {
  const event = (seq: number, stream: string, data: object): object => ({
    runId: 'r1',
    seq,
    stream,
    ts: 1795292352000 + seq,
    data,
    sessionKey: 'agent:main:main',
  });
  const tool = (seq: number, id: string, rest: object): object =>
    event(seq, 'tool', { name: 'exec', toolCallId: id, ...rest });
  const lines = [
    event(1, 'lifecycle', { phase: 'start' }),
    tool(2, 'c1', { phase: 'start', args: {} }),
    tool(3, 'c1', { phase: 'result', isError: false, result: { content: [] } }),
    tool(4, 'c2', { phase: 'start', args: {} }),
    tool(5, 'c2', { phase: 'result', isError: true, result: { details: { status: 'error' } } }),
    event(6, 'lifecycle', { phase: 'end' }),
  ];
  const file = fileOf('events.jsonl', linesOf(...lines));
  expect(findingsOf([file])).toEqual(['OC-11 DECISION_NOT_RECORDED', 'OC-11 DECISION_NOT_RECORDED']);
  const acts = openclaw.read([file]).claims.filter(({ kind }) => kind !== 'evidence');
  expect(acts).toMatchObject([{ id: 'event-run:r1/c1', outcome: 'success' }]);
});

it('drops what it does not know, and says so', () => {
  const file = hooks('{"x":1}\n[1]\n{"eventId":"e","family":"agent.completed"}\nnot json\n');
  const { items } = openclaw.read([file]);
  expect(items.map(({ fate, reason }) => [fate, reason])).toEqual([
    ['dropped', 'UNKNOWN_ITEM'],
    ['dropped', 'NOT_AN_OBJECT'],
    ['dropped', 'PIPELINE_EVENT'],
    ['dropped', 'NOT_JSON'],
  ]);
});

it('refuses options and profiles that it does not know', () => {
  expect(() => openclaw.read([], { aid: 1 } as never)).toThrow(TypeError);
  expect(() => openclaw.read([], { aids: { policy: fileOf('p', '') } })).toThrow(RangeError);
  expect(findingsOf([], { aids: { profile: fileOf('p', '{}') } })).toEqual(['INPUT PROFILE_INVALID']);
});
