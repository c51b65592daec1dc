/** A gate in the path of the pipeline: what it decides on, what it settles, and what the ledger has of what others cancelled. */

import { describe, expect, it } from 'vitest';
import type { GateOptions } from '../../../src/gate/gate.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import {
  gateStages,
  type GateStagesOptions,
  type PipelineOptions,
} from '../../../src/hosts/openclaw/index.js';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { AGENT, filePlace, memoryPlace, type Place, usedBy } from '../../agent/support.js';
import { openGate, reopen } from '../../gate/support.js';
import { contribution, findingsOf, recorded } from './stages-kit.js';

const CALL = { sessionId: 's1', correlationId: 'r1', agentId: 'main' };
const CALLING = { ...CALL, family: 'agent.tool.calling', payload: { toolName: 'exec', toolCallId: 'c1' } };

async function gated(
  place: Place,
  {
    gateOptions,
    approvals,
    ...more
  }: PipelineOptions &
    GateStagesOptions & { gateOptions?: GateOptions } & Pick<GrantOptions, 'approvals'> = {},
) {
  const bounds = {
    allowedTools: ['exec', 'openclaw.*', 'llm.*'],
    meterCaps: { calls: 4, 'tokens.input': 100, 'tokens.output': 100 },
    maxDelegationDepth: 2,
    ...(approvals === undefined ? {} : { approvals }),
  };
  const { gate, grantId } = await openGate(place, bounds, gateOptions);
  const { stages, timeoutMs, ...options } = more;
  const part = gateStages(gate, { principal: AGENT, ...options });
  return { gate, grantId, ...recorded({ gate: part, stages, timeoutMs }) };
}

const digest = (value: unknown): object => {
  const { alg, b64 } = sha256Digest(canonicalBytes(value));
  return { alg, b64 };
};

describe.each([
  ['in memory', memoryPlace],
  ['in a file', filePlace],
])('over a ledger %s', (_, makePlace) => {
  it('decides on a tool as the mutators have left it, last, and settles what came of it', async () => {
    const place = makePlace();
    const { pipeline, lines, hidden, problems } = await gated(place);
    pipeline.register(
      contribution('agent.tool.calling', 'mutator', () => ({ patch: { command: 'ls -l' } }), {
        priority: Number.MIN_SAFE_INTEGER + 1,
        extensionId: '~',
      }),
    );
    const { decision, working } = await pipeline.run(CALLING, { working: { command: 'ls' } });
    expect(decision).toBe('allow');
    expect(working).toEqual({ command: 'ls -l' });
    const action = place.events().findLast(({ event_type: type }) => type === 'authorization');
    expect(action?.authorization?.action?.tool_params_digest).toEqual(digest({ command: 'ls -l' }));
    await pipeline.run({
      ...{ ...CALL, family: 'agent.tool.called' },
      payload: {
        ...{ toolName: 'exec', toolCallId: 'c1', params: { command: 'ls -l' }, durationMs: 7 },
        result: { details: { status: 'completed', exitCode: 3 } },
      },
    });
    expect(place.events().at(-1)).toMatchObject({
      ...{ event_type: 'execution', outcome: 'failure', error_code: 'EXIT_3' },
    });
    expect(usedBy(place.events().at(-1))).toEqual({ calls: '1', 'time.ms': '7' });
    expect(await place.verdict()).toBe('ok');
    expect(problems).toEqual([]);
    expect(findingsOf(lines)).toEqual([]);
    expect(findingsOf(hidden)).toEqual([]);
    expect(hidden.join('')).not.toContain('ls -l');
  });

  it('cancels what the grants deny, and nothing of it is settled', async () => {
    const place = makePlace();
    const { pipeline, lines, problems } = await gated(place);
    const denied = { ...CALLING, payload: { toolName: 'write', toolCallId: 'c1' } };
    const outcome = await pipeline.run(denied, { working: { path: '/x' } });
    expect(outcome).toMatchObject({
      ...{ decision: 'cancel', by: { extensionId: 'northroot', contributionId: 'decide' } },
    });
    expect(outcome.reason).toMatch(/^TOOL_NOT_ALLOWED/);
    expect(place.events().at(-1)).toMatchObject({ decision: 'deny' });
    const called = { ...denied, family: 'agent.tool.called' };
    await expect(pipeline.run(called)).rejects.toMatchObject({ code: 'FOLLOWS_CANCEL' });
    expect(problems).toEqual([]);
    expect(findingsOf(lines)).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('records what another veto has cancelled as a denial, and of other stages an event', async () => {
    const place = makePlace();
    const { pipeline } = await gated(place);
    const cancel = () => ({ decision: 'cancel', reason: 'secret words' });
    for (const stage of ['agent.tool.calling', 'routing.resolving'])
      pipeline.register(contribution(stage, 'veto', cancel, { extensionId: 'owner' }));
    await pipeline.run(CALLING, { working: { command: 'ls' } });
    expect(place.events().at(-1)).toMatchObject({
      ...{ event_type: 'authorization', decision: 'deny', decision_code: 'OPENCLAW_STAGE_CANCELLED' },
      checks: expect.arrayContaining([
        { check: 'openclaw.stage', result: 'fail', code: 'CANCELLED_BY_OWNER' },
      ]) as unknown,
    });
    await pipeline.run({ ...CALL, family: 'routing.resolving' });
    expect(place.events().at(-1)).toMatchObject({
      ...{ event_type: 'x.openclaw.stage_cancelled', stage: 'routing.resolving', extension: 'owner' },
    });
    expect(JSON.stringify(place.events())).not.toContain('secret');
    expect(await place.verdict()).toBe('ok');
  });

  it('decides on messages, and settles them as sent or failed', async () => {
    const place = makePlace();
    const { pipeline, lines, problems } = await gated(place);
    const message = { channel: 'slack', to: 'C1', content: 'hello' };
    for (const [ref, end] of [
      ['m1', 'egress.sent'],
      ['m2', 'egress.failed'],
      [null, 'egress.sent'],
    ] as const) {
      const event = { ...CALL, messageRef: ref, payload: message };
      const { decision } = await pipeline.run({ ...event, family: 'egress.preparing' }, { working: message });
      expect(decision).toBe('allow');
      await pipeline.run({ ...event, family: end });
    }
    const done = place.events().filter(({ event_type: type }) => type === 'execution');
    expect(done.map(({ outcome, error_code }) => [outcome, error_code])).toEqual([
      ['success', undefined],
      ['failure', 'SEND_FAILED'],
      ['success', undefined],
    ]);
    expect(problems).toEqual([]);
    expect(findingsOf(lines)).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('records what models used, and what the budget did not hold', async () => {
    const place = makePlace();
    const { pipeline, problems } = await gated(place);
    const said = { provider: 'openai', model: 'gpt', stopReason: 'stop' };
    const output = { ...CALL, family: 'agent.llm.output' };
    await pipeline.run({ ...output, payload: { ...said, usage: { input: 60, output: 5, cacheRead: 10 } } });
    expect(place.events().at(-1)).toMatchObject({
      ...{ event_type: 'execution', outcome: 'success', model_id: 'gpt', provider: 'openai' },
      meter_basis: 'reported',
    });
    expect(usedBy(place.events().at(-1))).toMatchObject({ 'tokens.input': '70', 'tokens.output': '5' });
    await pipeline.run({ ...output, payload: { ...said, usage: { input: 60, output: 5 } } });
    expect(place.events().slice(-2)).toMatchObject([
      { event_type: 'x.openclaw.model_usage' },
      { event_type: 'adjustment', direction: 'debit', reason: 'MODEL_USAGE_DENIED' },
    ]);
    expect(problems.map(({ code }) => code)).toEqual(['MODEL_USAGE_DENIED']);
    await pipeline.run({ ...output, payload: { ...said } });
    await pipeline.run({ ...output, payload: 'nothing' });
    // It stays used: less than what was left before is too much now.
    await pipeline.run({ ...output, payload: { ...said, usage: { input: 1 } } });
    expect(problems).toHaveLength(2);
    expect(await place.verdict()).toBe('violation');
  });

  it('hands a part of the grant to a subagent, where the host declares that stage', async () => {
    const place = makePlace();
    const stages = {
      'subagent.spawning': { classes: ['observer', 'veto'], mode: 'sequential' },
      'subagent.spawned': { classes: ['observer'], mode: 'sequential' },
    } as const;
    const grants: string[] = [];
    const { pipeline, lines, grantId } = await gated(place, {
      stages,
      delegate: () => ({ to: 'agent:sub', parent: grants[0], caps: { calls: 1 }, tools: ['exec'] }),
    });
    grants.push(grantId);
    const event = { ...CALL, payload: { childSessionKey: 'agent:sub:1' } };
    expect(await pipeline.run({ ...event, family: 'subagent.spawning' })).toMatchObject({
      decision: 'allow',
    });
    expect(place.events().at(-1)).toMatchObject({
      ...{ event_type: 'authorization', principal_id: 'agent:sub' },
      authorization: { kind: 'grant' },
    });
    await pipeline.run({ ...event, family: 'subagent.spawned' });
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'success' });
    // A grant that is not there: what was allowed is given up again, and the subagent does not start.
    grants[0] = `sha-256:${'A'.repeat(43)}`;
    const other = { ...CALL, family: 'subagent.spawning', payload: { childSessionKey: 'agent:sub:2' } };
    expect(await pipeline.run(other)).toMatchObject({ decision: 'cancel', reason: 'HANDLER_FAILED' });
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'unknown' });
    expect(findingsOf(lines)).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });
});

it('counts each call of an id that models use again', async () => {
  const place = memoryPlace();
  const { pipeline, gate, grantId } = await gated(place);
  const run = () => pipeline.run(CALLING, { working: { command: 'ls' } });
  const left = async () =>
    (await gate.ledger.budget(grantId)).balances
      .filter(({ unit }) => unit === 'calls')
      .map(({ used, reserved }) => [formatQuantity(used), formatQuantity(reserved)]);
  const outcomes = await Promise.all([run(), run(), run()]);
  expect(outcomes.map(({ decision }) => decision)).toEqual(['allow', 'allow', 'allow']);
  expect(await left()).toEqual([['0', '3']]);
  const payload = { toolName: 'exec', toolCallId: 'c1', params: { command: 'ls' }, result: { text: '' } };
  const end = () => pipeline.run({ ...CALL, family: 'agent.tool.called', payload });
  await end();
  await end();
  expect(await left()).toEqual([['2', '1']]);
  await end();
  await end();
  expect(await left()).toEqual([['3', '0']]);
  expect(place.events().filter(({ event_type: type }) => type === 'execution')).toHaveLength(3);
  expect(await place.verdict()).toBe('ok');
});

it('lets nothing run where the gate cannot decide', async () => {
  const { pipeline, gate, lines, problems } = await gated(memoryPlace());
  await gate.close();
  const outcome = await pipeline.run(CALLING, { working: { command: 'ls' } });
  expect(outcome).toMatchObject({ decision: 'cancel', reason: 'HANDLER_FAILED' });
  expect(problems.map(({ code }) => code)).toEqual(['HANDLER_FAILED']);
  expect(findingsOf(lines)).toEqual([]);
});

it('lets nothing run that was decided too late', async () => {
  const place = memoryPlace();
  let answer: (() => void) | undefined;
  const advise = () =>
    new Promise<{ effect: 'abstain' }>((resolve) => (answer = () => resolve({ effect: 'abstain' })));
  const { pipeline, gate } = await gated(place, {
    gateOptions: { advisers: [{ name: 'slow', advise }] },
    timeoutMs: 20,
  });
  const before = place.events().length;
  const outcome = await pipeline.run(CALLING, { working: { command: 'ls' } });
  expect(outcome).toMatchObject({ decision: 'cancel', reason: 'HANDLER_TIMEOUT' });
  answer?.();
  await gate.close();
  // It was withdrawn before it was written.
  expect(
    place
      .events()
      .slice(before)
      .filter(({ decision }) => decision === 'allow'),
  ).toEqual([]);
  expect(gate.openCalls).toBe(0);
});

it('denies what advisers would rewrite: a veto changes nothing', async () => {
  const place = memoryPlace();
  const advise = () => ({ effect: 'rewrite', params: { command: 'true' } }) as const;
  const { pipeline, gate } = await gated(place, { gateOptions: { advisers: [{ name: 'r', advise }] } });
  const outcome = await pipeline.run(CALLING, { working: { command: 'ls' } });
  expect(outcome).toMatchObject({ decision: 'cancel', reason: 'REWRITE_NOT_POSSIBLE' });
  expect(gate.openCalls).toBe(0);
  expect(await place.verdict()).toBe('ok');
});

it('says of a call that ran with other parameters, and of one that nobody allowed', async () => {
  const place = memoryPlace();
  const { pipeline, problems } = await gated(place);
  await pipeline.run(CALLING, { working: { command: 'ls' } });
  const called = { ...CALL, family: 'agent.tool.called' };
  const payload = { toolName: 'exec', toolCallId: 'c1', params: { command: 'rm' }, result: {} };
  await pipeline.run({ ...called, payload });
  const ends = place.events().filter(({ event_type: type }) => type === 'execution');
  expect(ends[0]).toMatchObject({ outcome: 'unknown', error_code: 'TOOL_PARAMS_MISMATCH' });
  expect(ends).toHaveLength(2);
  expect(await place.verdict()).toBe('violation');
  await pipeline.run({ ...called, correlationId: 'r2', payload: { ...payload, toolCallId: 'never' } });
  expect(problems.map(({ code }) => code)).toEqual(['CALL_NOT_ALLOWED']);
  expect(JSON.stringify(place.events())).not.toContain('"rm"');
});

it('cancels a call that needs an approval; with a wait, and approved in it, the call runs', async () => {
  const approvals = [{ tools: ['exec'], approvers: ['human:*'] }];
  const place = memoryPlace();
  const { pipeline, gate, lines } = await gated(place, { approvals, waitMs: 30_000 });
  const isAsked = () => place.events().some(({ decision }) => decision === 'deny');
  const running = pipeline.run(CALLING, { working: { command: 'ls' } });
  while (!isAsked()) await new Promise((resolve) => setTimeout(resolve, 5));
  const [asked] = await gate.ledger.requests();
  await gate.ledger.approve(asked.eventId, { principalId: 'human:olga' });
  expect(await running).toMatchObject({ decision: 'allow' });
  const unapproved = await gated(memoryPlace(), { approvals });
  const outcome = await unapproved.pipeline.run(CALLING, { working: { command: 'ls' } });
  expect(outcome.decision).toBe('cancel');
  expect(outcome.reason).toMatch(/^APPROVAL_REQUIRED/);
  expect(findingsOf(lines)).toEqual([]);
});

it('settles in another process what a host allowed that died', async () => {
  const place = filePlace();
  const first = await gated(place);
  await first.pipeline.run(CALLING, { working: { command: 'ls' } });
  const second = recorded({ gate: gateStages(await reopen(place), { principal: AGENT }) });
  const payload = { toolName: 'exec', toolCallId: 'c1', params: { command: 'ls' }, result: 'done' };
  await second.pipeline.run({ ...CALL, family: 'agent.tool.called', payload });
  // Told again, and by the first that had not died after all: recorded once.
  await first.pipeline.run({ ...CALL, family: 'agent.tool.called', payload });
  const ends = place.events().filter(({ event_type: type }) => type === 'execution');
  expect(ends.map(({ outcome }) => outcome)).toEqual(['success']);
  expect([...first.problems, ...second.problems]).toEqual([]);
  expect(await place.verdict()).toBe('ok');
});

it('in shadow, cancels nothing', async () => {
  const place = memoryPlace();
  const { pipeline, problems } = await gated(place, { gateOptions: { shadow: true } });
  const denied = { ...CALLING, payload: { toolName: 'write', toolCallId: 'c1' } };
  expect(await pipeline.run(denied, { working: {} })).toMatchObject({ decision: 'allow' });
  expect(place.events().at(-1)).toMatchObject({ decision: 'deny' });
  await pipeline.run({ ...denied, family: 'agent.tool.called', payload: { ...denied.payload, result: {} } });
  expect(problems).toEqual([]);
});

it('lets nobody else be last, or pass for it', async () => {
  const { pipeline } = await gated(memoryPlace());
  const allow = () => ({ decision: 'allow' });
  for (const more of [{ priority: Number.MIN_SAFE_INTEGER }, { extensionId: 'northroot' }]) {
    expect(() => pipeline.register(contribution('agent.tool.calling', 'veto', allow, more))).toThrow(
      RangeError,
    );
  }
});
