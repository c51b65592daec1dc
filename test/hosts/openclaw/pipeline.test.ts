/** Events and stage traces of the canonical pipeline: each rule broken once in a file that is otherwise right. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FAMILIES_OF_HOOKS, PIPELINE_FAMILIES } from '../../../src/hosts/openclaw/families.js';
import { openclawPipeline } from '../../../src/hosts/openclaw/index.js';
import { fileOf, linesOf } from './kit.js';

type Json = Record<string, unknown>;

function event(eventId: string, family: string, more: Json = {}): Json {
  return {
    ...{
      eventId,
      family,
      occurredAt: '2026-11-22T10:00:00Z',
      workspaceId: 'w',
      agentId: 'main',
      sessionId: 's1',
    },
    ...{
      accountRef: null,
      conversationRef: null,
      threadRef: null,
      messageRef: null,
      sourceContributionId: null,
    },
    ...{ correlationId: 'c1', payload: {}, metadata: {}, providerMetadata: null, hotPath: false },
    ...more,
  };
}

const handler = (kind: string, extensionId: string, result?: Json, more: Json = {}): Json => ({
  ...{ class: kind, extensionId, contributionId: 'main' },
  ...(result === undefined ? {} : { result }),
  ...more,
});

function stage(name: string, handlers: readonly Json[], output: Json = {}, more: Json = {}): Json {
  const mode = PIPELINE_FAMILIES.get(name)?.mode ?? 'sequential';
  return {
    trace: 'openclaw.stage.v1',
    stage: name,
    eventId: `e:${name}`,
    mode,
    failPolicy: 'open',
    handlers,
    output,
    ...more,
  };
}

/** What is found of a stage, with its event before it. */
function found(trace: Json, ...more: readonly Json[]): string[] {
  return check(event(String(trace['eventId']), String(trace['stage'])), trace, ...more);
}

function check(...lines: readonly Json[]): string[] {
  const { findings } = openclawPipeline.check([fileOf('p.jsonl', linesOf(...lines))]);
  return findings.map(({ rule, code }) => `${rule} ${code}`);
}

const cancel = { decision: 'cancel', reason: 'not yours' };

it('knows 39 families, two more, and those of the hooks', () => {
  expect(PIPELINE_FAMILIES.size).toBe(41);
  for (const families of FAMILIES_OF_HOOKS.values())
    for (const family of families) expect(PIPELINE_FAMILIES.has(family)).toBe(true);
});

it('finds nothing in what is right, and accounts for every line', () => {
  const lines = [
    event('e:agent.tool.calling', 'agent.tool.calling'),
    stage(
      'agent.tool.calling',
      [
        handler('observer', 'z', undefined, { priority: 10 }),
        handler('augmenter', 'a', { add: { notes: ['one'] } }, { priority: 5 }),
        handler('mutator', 'b', { patch: { command: 'echo b' } }, { priority: 5, sees: { command: 'echo' } }),
        handler('veto', 'c', { decision: 'allow' }),
      ],
      { context: { notes: ['zero', 'one'] }, working: { command: 'echo b' }, decision: 'allow' },
      { input: { context: { notes: ['zero'] }, working: { command: 'echo' } } },
    ),
    event('e2', 'agent.tool.called'),
    event('e2', 'agent.tool.called'),
  ];
  const { items, findings } = openclawPipeline.check([fileOf('p.jsonl', linesOf(...lines))]);
  expect(findings).toEqual([]);
  expect(items.map(({ type, fate }) => [type, fate])).toEqual([
    ['event', 'evidence'],
    ['stage', 'evidence'],
    ['event', 'evidence'],
    ['event', 'repeated'],
  ]);
});

it('finds nothing in the example of the documentation', () => {
  const text = readFileSync(new URL('../../../src/hosts/openclaw/README.md', import.meta.url), 'utf8');
  const trace = JSON.parse(/```json\n([^]*?)```/.exec(text)![1]) as Json;
  expect(check(event('e1', 'agent.tool.calling'), trace)).toEqual([]);
});

it('OC-9.1 and OC-9.2: the envelope and its family', () => {
  const { hotPath, ...rest } = event('e', 'agent.completed');
  expect(hotPath).toBe(false);
  expect(check(rest)).toEqual(['OC-9.1 MEMBER_MISSING']);
  expect(check(event('e', 'agent.completed', { occurredAt: 'today' }))).toEqual(['OC-9.1 MEMBER_INVALID']);
  expect(check(event('e', 'agent.completed', { extra: 1 }))).toEqual(['OC-9.1 MEMBER_UNKNOWN']);
  expect(check(event('e', 'agent.finished'))).toEqual(['OC-9.2 FAMILY_UNKNOWN']);
  expect(check(event('e', 'interaction.completed'))).toEqual([]);
});

it('OC-9.3: events are never changed', () => {
  const first = event('e', 'agent.completed');
  expect(check(first, { ...first, payload: { a: 1 } })).toEqual(['OC-9.3 EVENT_CHANGED']);
  const name = 'session.started';
  const changed = event(`e:${name}`, name, { metadata: { a: 1 } });
  expect(found(stage(name, [handler('observer', 'a')], {}, { event: changed }))).toEqual([
    'OC-9.3 EVENT_CHANGED',
  ]);
});

it('OC-9.4: classes of stages', () => {
  const classes = ['observer', 'augmenter', 'mutator', 'veto', 'resolver'];
  for (const [name, rule] of PIPELINE_FAMILIES) {
    for (const kind of classes) {
      const codes = found(stage(name, [handler(kind, 'a')]));
      const isAllowed = rule === undefined || rule.classes.some((each) => each === kind);
      expect(codes, `${name} ${kind}`).toEqual(isAllowed ? [] : ['OC-9.4 CLASS_NOT_ALLOWED']);
    }
  }
  expect(found(stage('egress.preparing', [handler('filter', 'a')]))).toEqual(['OC-9.4 CLASS_INVALID']);
  const both = { ...handler('veto', 'a'), class: ['veto', 'mutator'] };
  expect(found(stage('egress.preparing', [both]))).toEqual(['OC-9.4 CLASS_INVALID']);
});

it('OC-9.5: modes', () => {
  const handlers = [
    handler('observer', 'a', undefined, { startedAt: 1, endedAt: 5 }),
    handler('observer', 'b', undefined, { startedAt: 4, endedAt: 6 }),
  ];
  expect(found(stage('agent.completed', handlers))).toEqual(['OC-9.5 HANDLERS_OVERLAP']);
  expect(found(stage('egress.sending', handlers))).toEqual([]);
  expect(found(stage('agent.completed', [], {}, { mode: 'parallel' }))).toEqual(['OC-9.5 MODE_WRONG']);
  const own = handler('observer', 'a', undefined, { mode: 'parallel' });
  expect(found(stage('agent.completed', [own]))).toEqual(['OC-9.5 MODE_WRONG']);
});

it('OC-9.6: order of handlers', () => {
  const ordered = (...handlers: readonly Json[]): string[] => found(stage('agent.completed', handlers));
  const of = (priority: number, extensionId: string, contributionId: string): Json =>
    handler('observer', extensionId, undefined, { priority, contributionId });
  expect(
    ordered(of(9, 'z', 'z'), of(1.5, 'b', 'a'), of(1.5, 'b', 'b'), of(1.5, 'c', 'a'), of(-1, 'a', 'a')),
  ).toEqual([]);
  expect(ordered(of(1, 'a', 'a'), of(2, 'b', 'a'))).toEqual(['OC-9.6 ORDER_WRONG']);
  expect(ordered(of(-2, 'a', 'a'), of(-1, 'b', 'a'))).toEqual(['OC-9.6 ORDER_WRONG']);
  expect(ordered(of(10, 'b', 'a'), of(10, 'a', 'a'))).toEqual(['OC-9.6 ORDER_WRONG']);
  expect(ordered(of(10, 'a', 'b'), of(10, 'a', 'a'))).toEqual(['OC-9.6 ORDER_WRONG']);
  expect(ordered(of(10, 'a', 'a'), of(10, 'a', 'a'))).toEqual(['OC-9.6 HANDLER_REPEATED']);
});

it('OC-9.7: asynchronous handlers in synchronous stages', () => {
  const name = 'transcript.tool-result.persisting';
  const late = (more: Json): string[] =>
    found(
      stage(name, [handler('mutator', 'a', more['result'] as Json | undefined, { async: true, ...more })]),
    );
  expect(late({ result: { patch: { a: 1 } } })).toEqual(['OC-9.7 ASYNC_IN_SYNC_STAGE']);
  expect(late({ rejected: true })).toEqual([]);
  expect(late({ rejected: true, result: { patch: {} } })).toEqual(['OC-9.7 REJECTED_WITH_RESULT']);
  expect(found(stage('agent.tool.calling', [handler('mutator', 'a', undefined, { async: true })]))).toEqual(
    [],
  );
});

it('OC-9.8: who decides', () => {
  const one = (name: string, kind: string, result: Json): string[] =>
    found(stage(name, [handler(kind, 'a', result)]));
  expect(one('agent.completed', 'observer', { add: {} })).toEqual(['OC-9.8 OBSERVER_GAVE']);
  expect(one('egress.preparing', 'augmenter', { decision: 'cancel' })).toEqual(['OC-9.8 DECIDED_BY_OTHERS']);
  expect(one('egress.preparing', 'mutator', { candidates: [] })).toEqual(['OC-9.8 DECIDED_BY_OTHERS']);
  expect(one('egress.preparing', 'veto', { decision: 'allow', patch: {} })).toEqual([
    'OC-9.8 RESULT_OF_OTHER_CLASS',
  ]);
  expect(one('ingress.normalized', 'mutator', { patch: { route: 'x' } })).toEqual(['OC-9.8 ROUTE_CHOSEN']);
});

it('OC-9.9: merging what augmenters add', () => {
  const two = (output: Json, more: Json = {}): string[] =>
    found(
      stage(
        'agent.completed',
        [
          handler('augmenter', 'a', { add: { tags: ['x'], mood: 'calm' } }),
          handler('augmenter', 'b', { add: { tags: 'y', mood: 'wild' } }),
        ],
        output,
        more,
      ),
    );
  const right = { context: { tags: ['x', 'y'], mood: 'wild' } };
  expect(two(right, { replaceable: ['mood'] })).toEqual([]);
  expect(two({ context: { tags: ['x', 'y'], mood: 'calm' } })).toEqual(['OC-9.9 REPLACED']);
  expect(two({ context: { tags: ['y'], mood: 'wild' } }, { replaceable: ['mood'] })).toEqual([
    'OC-9.9 CONTEXT_DIFFERS',
  ]);
});

it('OC-9.10: patches in order', () => {
  const two = (name: string, first: Json, second: Json, output: Json, more: Json = {}): string[] =>
    found(
      stage(
        name,
        [handler('mutator', 'a', { patch: first }), handler('mutator', 'b', { patch: second }, more)],
        { working: output },
        { input: { working: { list: [0] } } },
      ),
    );
  const tool = 'agent.tool.calling';
  expect(two(tool, { a: 1 }, { a: 2 }, { list: [0], a: 2 })).toEqual([]);
  expect(two(tool, { a: 1 }, { a: 2 }, { list: [0], a: 1 })).toEqual(['OC-9.10 WORKING_DIFFERS']);
  expect(two(tool, { a: 1 }, { a: 2 }, { list: [0], a: 2 }, { sees: { list: [0] } })).toEqual([
    'OC-9.10 SEES_OTHER',
  ]);
  const model = 'agent.model.resolving';
  expect(
    two(model, { model: 'x' }, { model: 'y', provider: 'p' }, { list: [0], model: 'x', provider: 'p' }),
  ).toEqual([]);
  expect(two(model, { model: 'x' }, { model: 'y' }, { list: [0], model: 'y' })).toEqual([
    'OC-9.10 WORKING_DIFFERS',
  ]);
  const prompt = 'agent.prompt.building';
  expect(two(prompt, { list: [1] }, { list: [2] }, { list: [0, 1, 2] })).toEqual([]);
  expect(two(prompt, {}, { systemPrompt: 's' }, { list: [0], systemPrompt: 's' })).toEqual([
    'OC-9.10 MUTATOR_NOT_TRUSTED',
  ]);
  expect(two(prompt, {}, { systemPrompt: 's' }, { list: [0], systemPrompt: 's' }, { trusted: true })).toEqual(
    [],
  );
});

it('OC-9.11: a cancel is a cancel', () => {
  const name = 'egress.preparing';
  const veto = handler('veto', 'a', cancel);
  expect(found(stage(name, [veto], { decision: 'cancel' }))).toEqual([]);
  expect(found(stage(name, [veto], { decision: 'allow' }))).toEqual(['OC-9.11 CANCEL_IGNORED']);
  expect(found(stage(name, [veto], {}))).toEqual(['OC-9.11 CANCEL_IGNORED']);
  expect(found(stage(name, [], { decision: 'cancel' }))).toEqual(['OC-9.11 CANCELLED_BY_NOBODY']);
  expect(found(stage(name, [handler('veto', 'a', { decision: 'maybe' })]))).toEqual([
    'OC-9.11 DECISION_INVALID',
  ]);
  const more = [veto, handler('observer', 'b')];
  expect(found(stage(name, more, { decision: 'cancel' }))).toEqual([]);
  expect(found(stage(name, more, { decision: 'cancel' }, { failPolicy: 'closed' }))).toEqual([
    'OC-9.11 RAN_AFTER_CANCEL',
  ]);
  const skipped = [veto, handler('observer', 'b', undefined, { skipped: true })];
  expect(found(stage(name, skipped, { decision: 'cancel' }, { failPolicy: 'closed' }))).toEqual([]);
  const written = [veto, handler('mutator', 'b', { patch: {} })];
  expect(found(stage('transcript.message.writing', written, { decision: 'cancel' }))).toEqual([
    'OC-9.11 RAN_AFTER_CANCEL',
  ]);
});

it('OC-9.12: which candidate is selected', () => {
  const resolved = (selected: string | undefined, ...candidates: readonly Json[]): string[] =>
    found(
      stage(
        'routing.resolving',
        candidates.map((candidate, index) => handler('resolver', `e${index}`, { candidates: [candidate] })),
        selected === undefined ? {} : { selected },
      ),
    );
  expect(resolved('b', { target: 'a', rank: 1 }, { target: 'b', rank: 2 })).toEqual([]);
  expect(resolved('a', { target: 'a', rank: 1 }, { target: 'b', rank: 2 })).toEqual([
    'OC-9.12 SELECTED_OTHER',
  ]);
  expect(resolved('a', { target: 'a', explicit: true }, { target: 'b', rank: 2 })).toEqual([]);
  expect(resolved('b', { target: 'a', explicit: true }, { target: 'b', rank: 2 })).toEqual([
    'OC-9.12 SELECTED_OTHER',
  ]);
  expect(resolved('a', { target: 'a', rank: 2 }, { target: 'b', rank: 2.0 })).toEqual([]);
  expect(resolved('a', { target: 'a', rank: 1 }, { target: 'b', rank: 2, valid: false })).toEqual([]);
  expect(resolved('x')).toEqual(['OC-9.12 SELECTED_BY_NOBODY']);
});

it('OC-9.13: errors open and closed', () => {
  const name = 'egress.preparing';
  const failed = (kind: string, more: Json = {}): Json =>
    handler(kind, 'a', undefined, { error: 'x', ...more });
  expect(found(stage(name, [], {}, { failPolicy: undefined }))).toEqual(['OC-9.13 POLICY_NOT_STATED']);
  expect(found(stage(name, [failed('veto')], { decision: 'allow' }))).toEqual([]);
  expect(found(stage(name, [failed('veto')], { decision: 'cancel' }))).toEqual(['OC-9.13 FAILED_CLOSED']);
  const closed = failed('veto', { failClosed: true });
  expect(found(stage(name, [closed], { decision: 'cancel' }))).toEqual([]);
  expect(found(stage(name, [closed], { decision: 'allow' }))).toEqual(['OC-9.13 FAILURE_IGNORED']);
  expect(
    found(stage(name, [closed, handler('veto', 'b', { decision: 'allow' })], { decision: 'cancel' })),
  ).toEqual(['OC-9.13 RAN_AFTER_FAILURE']);
  const secret = failed('mutator', { purpose: 'credential' });
  expect(found(stage(name, [secret], { decision: 'allow' }))).toEqual(['OC-9.13 FAILURE_IGNORED']);
  const observer = stage(name, [failed('observer')], { decision: 'allow' }, { failPolicy: 'closed' });
  expect(found(observer)).toEqual([]);
  const none = handler('resolver', 'a', { candidates: [{ target: 'p', valid: false }] });
  expect(found(stage(name, [none], { decision: 'allow' }, { selection: 'backend' }))).toEqual([
    'OC-9.13 NO_BACKEND',
  ]);
  expect(found(stage(name, [none], { decision: 'cancel' }, { selection: 'backend' }))).toEqual([]);
});

it('OC-9.14: the event of a stage', () => {
  expect(check(stage('agent.completed', []))).toEqual(['OC-9.14 EVENT_NOT_FOUND']);
  expect(check(event('e:agent.completed', 'agent.starting'), stage('agent.completed', []))).toEqual([
    'OC-9.14 FAMILY_DIFFERS',
  ]);
});

it('OC-9.15: what was cancelled does not follow', () => {
  const name = 'agent.tool.calling';
  const stopped = stage(name, [handler('veto', 'a', cancel)], { decision: 'cancel' });
  expect(found(stopped, event('e2', 'agent.tool.called'))).toEqual(['OC-9.15 FOLLOWS_CANCEL']);
  expect(found(stopped, event('e2', 'agent.tool.called', { correlationId: 'c2' }))).toEqual([]);
  // The next call of the run has the same correlation.
  const next = (payload: Json = {}): Json[] => [
    event('e3', name, { payload }),
    stage(name, [handler('veto', 'a', { decision: 'allow' })], { decision: 'allow' }, { eventId: 'e3' }),
  ];
  expect(found(stopped, ...next(), event('e4', 'agent.tool.called'))).toEqual([]);
  expect(
    found(stopped, ...next(), event('e4', 'agent.tool.called'), event('e5', 'agent.tool.called')),
  ).toEqual(['OC-9.15 FOLLOWS_CANCEL']);
  const ofCall = (toolCallId: string): Json => ({ payload: { toolCallId } });
  const two = [event(`e:${name}`, name, ofCall('1')), stopped, ...next({ toolCallId: '2' })];
  expect(check(...two, event('e4', 'agent.tool.called', ofCall('2')))).toEqual([]);
  expect(check(...two, event('e4', 'agent.tool.called', ofCall('1')))).toEqual(['OC-9.15 FOLLOWS_CANCEL']);
  const send = stage('egress.preparing', [handler('veto', 'a', cancel)], { decision: 'cancel' });
  expect(found(send, event('e2', 'egress.cancelled'))).toEqual([]);
  expect(found(send, event('e2', 'egress.sent'))).toEqual(['OC-9.15 FOLLOWS_CANCEL']);
});

it('says of lines that are neither, and of stages without their parts, what is wrong', () => {
  expect(check({ a: 1 })).toEqual(['INPUT UNKNOWN_ITEM']);
  const { handlers, ...rest } = stage('agent.completed', []);
  expect(handlers).toEqual([]);
  expect(found(rest)).toEqual(['INPUT HANDLERS_MISSING']);
  expect(
    found(
      stage(
        'agent.completed',
        Array.from({ length: 1001 }, () => ({})),
      ),
    ),
  ).toEqual(['INPUT TOO_MANY_HANDLERS']);
  const { output, ...open } = stage('agent.completed', []);
  expect(output).toEqual({});
  expect(found(open)).toEqual(['INPUT OUTPUT_MISSING']);
});
