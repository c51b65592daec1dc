/** Handlers of the hooks that were there before, as contributions. */

import { expect, it } from 'vitest';
import { FAMILIES_OF_HOOKS, PIPELINE_FAMILIES } from '../../../src/hosts/openclaw/families.js';
import { fromHook, type HookContribution, type HookHandler } from '../../../src/hosts/openclaw/index.js';
import { codeOf, findingsOf, recorded } from './stages-kit.js';

const MESSAGE = { channel: 'slack', to: 'C1', content: 'hi' };

function bridged(hook: string, handler: HookHandler, more: Partial<HookContribution> = {}) {
  const all = recorded();
  for (const each of fromHook({ hook, handler, extensionId: 'old', contributionId: 'h', ...more }))
    all.pipeline.register(each);
  return all;
}

it('takes every hook of the mapping to its stages, and no other', () => {
  for (const [hook, families] of FAMILIES_OF_HOOKS) {
    const given = fromHook({ hook, handler: () => undefined, extensionId: 'old', contributionId: 'h' });
    expect([hook, [...new Set(given.map(({ stage }) => stage))]]).toEqual([hook, families]);
    const { pipeline } = recorded();
    for (const each of given) {
      const rule = PIPELINE_FAMILIES.get(each.stage);
      expect([hook, codeOf(() => pipeline.register(each))]).toEqual([
        ...[hook, rule === undefined ? 'STAGE_UNSPECIFIED' : 'nothing'],
      ]);
    }
  }
  expect(codeOf(() => bridged('before_everything', () => undefined))).toBe('HOOK_UNKNOWN');
});

it('before_tool_call: parameters are a patch, a block and a required approval are a cancel', async () => {
  const run = async (returned: unknown, more: Partial<HookContribution> = {}) => {
    let given: unknown[] = [];
    const handler: HookHandler = (...all) => {
      given = all;
      if (returned instanceof Error) throw returned;
      return Promise.resolve(returned);
    };
    const { pipeline, lines, problems } = bridged('before_tool_call', handler, more);
    const outcome = await pipeline.run(
      {
        ...{ family: 'agent.tool.calling', agentId: 'main', sessionId: 's', correlationId: 'r' },
        payload: { toolName: 'exec', toolCallId: 'c1' },
      },
      { working: { command: 'ls' } },
    );
    expect(given).toEqual([
      { toolName: 'exec', toolCallId: 'c1', params: { command: 'ls' } },
      { agentId: 'main', sessionId: 's', runId: 'r', toolName: 'exec', toolCallId: 'c1' },
    ]);
    expect(findingsOf(lines)).toEqual([]);
    return { ...outcome, problems: problems.map(({ code }) => code) };
  };
  expect(await run(undefined)).toMatchObject({ decision: 'allow', working: { command: 'ls' } });
  expect(await run({ block: false })).toMatchObject({ decision: 'allow', problems: [] });
  expect(await run({ params: { cwd: '/' } })).toMatchObject({ working: { command: 'ls', cwd: '/' } });
  expect(await run({ block: true, blockReason: 'no', params: { command: 'x' } })).toMatchObject({
    ...{ decision: 'cancel', reason: 'no', working: { command: 'ls' } },
    by: { extensionId: 'old', contributionId: 'h#veto' },
  });
  expect(await run({ block: true })).toMatchObject({ decision: 'cancel', reason: 'blocked' });
  expect(await run({ requireApproval: { title: 'ok?' } })).toMatchObject({ decision: 'cancel' });
  expect(await run(new Error('no'))).toMatchObject({
    ...{ decision: 'allow', problems: ['HANDLER_FAILED', 'HANDLER_FAILED'] },
  });
  expect(await run(new Error('no'), { failClosed: true })).toMatchObject({
    ...{ decision: 'cancel', reason: 'HANDLER_FAILED', problems: ['HANDLER_FAILED'] },
  });
});

it('message_sending and message_received: content is a patch, cancel a cancel', async () => {
  let heard: unknown;
  const event = {
    family: 'egress.preparing',
    conversationRef: 'C1',
    threadRef: 't',
    metadata: { channelId: 'slack' },
  };
  const { pipeline, lines } = bridged('message_sending', (given, context) => {
    heard = [given, context];
    return given['content'] === 'hi' ? { content: 'hello' } : { cancel: true };
  });
  expect(await pipeline.run(event, { working: MESSAGE })).toMatchObject({
    ...{ decision: 'allow', working: { ...MESSAGE, content: 'hello' } },
  });
  expect(heard).toEqual([
    { ...MESSAGE, threadId: 't', metadata: { channelId: 'slack' } },
    { conversationId: 'C1', channelId: 'slack' },
  ]);
  const other = await pipeline.run(event, { working: { ...MESSAGE, content: 'spam' } });
  expect(other).toMatchObject({ decision: 'cancel' });
  expect(findingsOf(lines)).toEqual([]);
  const received = bridged('message_received', () => ({ cancel: true }));
  const outcome = await received.pipeline.run({ family: 'ingress.normalized', payload: { content: 'hi' } });
  expect(outcome).toMatchObject({ decision: 'allow' });
  expect(received.problems).toEqual([]);
});

it('before_agent_start is called once in a run, for the model and for the prompt', async () => {
  let calls = 0;
  const { pipeline, lines } = bridged(
    'before_agent_start',
    () => {
      calls += 1;
      return { modelOverride: 'm', systemPrompt: 'mine', prependContext: 'now', appendSystemContext: 'rule' };
    },
    { trusted: true },
  );
  const model = await pipeline.run({ family: 'agent.model.resolving', correlationId: 'r' });
  const prompt = await pipeline.run({ family: 'agent.prompt.building', correlationId: 'r' });
  expect(model.working).toEqual({ model: 'm' });
  expect(prompt.working).toEqual({ systemPrompt: 'mine', staticGuidance: ['rule'], ephemeral: ['now'] });
  expect(calls).toBe(1);
  await pipeline.run({ family: 'agent.prompt.building', correlationId: 'r2' });
  expect(calls).toBe(2);
  expect(findingsOf(lines)).toEqual([]);
});

it('before_prompt_build of an untrusted extension does not replace the prompt', async () => {
  const { pipeline, problems } = bridged('before_prompt_build', () => ({ systemPrompt: 'mine' }));
  await pipeline.run({ family: 'agent.prompt.building' }, { working: { systemPrompt: 'its' } });
  expect(problems.map(({ code }) => code)).toEqual(['NOT_TRUSTED']);
});

it('the hooks of transcripts are synchronous', () => {
  // eslint-disable-next-line @typescript-eslint/require-await
  const later = async () => undefined;
  for (const hook of ['tool_result_persist', 'before_message_write'])
    expect(codeOf(() => bridged(hook, later))).toBe('ASYNC_IN_SYNC_STAGE');
  const message = { role: 'toolResult', content: 'long' };
  const persist = bridged('tool_result_persist', () => ({ message: { ...message, content: 'short' } }));
  const family = 'transcript.tool-result.persisting';
  expect(persist.pipeline.runSync({ family }, { working: message }).working).toMatchObject({
    content: 'short',
  });
  const write = bridged('before_message_write', () => ({ block: true }));
  const stage = 'transcript.message.writing';
  expect(write.pipeline.runSync({ family: stage }, { working: message })).toMatchObject({
    decision: 'cancel',
  });
  const sneaky = bridged('before_message_write', () => Promise.resolve({ block: true }));
  expect(sneaky.pipeline.runSync({ family: stage }, { working: message })).toMatchObject({
    decision: 'allow',
  });
  expect(sneaky.problems.map(({ code }) => code)).toEqual(['ASYNC_RESULT', 'HANDLER_FAILED']);
  expect(findingsOf([...persist.lines, ...write.lines, ...sneaky.lines])).toEqual([]);
});

it('subagent_delivery_target proposes a candidate', async () => {
  const origin = { channel: 'discord', to: 'T1' };
  const { pipeline, lines } = bridged('subagent_delivery_target', () => ({ origin }));
  const { selected } = await pipeline.run({ family: 'subagent.delivery.resolving' });
  expect(selected).toEqual(origin);
  expect(findingsOf(lines)).toEqual([]);
});
