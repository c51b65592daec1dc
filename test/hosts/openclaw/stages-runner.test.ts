/** The pipeline as it runs: registration, order, classes, modes, merging, errors. */

import { describe, expect, it } from 'vitest';
import { PIPELINE_FAMILIES } from '../../../src/hosts/openclaw/families.js';
import {
  createEvent,
  createPipeline,
  createRecorder,
  type Contribution,
  fromHook,
  gateStages,
  type HandlerClass,
  type StageHandler,
} from '../../../src/hosts/openclaw/index.js';
import { codeOf, codeOfLater, contribution, findingsOf, recorded } from './stages-kit.js';

const nothing = (): undefined => undefined;

describe('registration', () => {
  it('takes in each stage the classes that it allows, and no others', () => {
    const classes = ['observer', 'augmenter', 'mutator', 'veto', 'resolver'] as const;
    for (const [stage, rule] of PIPELINE_FAMILIES) {
      const { pipeline } = recorded();
      for (const kind of classes) {
        const code = codeOf(() => pipeline.register(contribution(stage, kind, nothing)));
        const isAllowed = rule?.classes.includes(kind) === true;
        expect([stage, kind, code]).toEqual([
          ...[stage, kind],
          rule === undefined ? 'STAGE_UNSPECIFIED' : isAllowed ? 'nothing' : 'CLASS_NOT_ALLOWED',
        ]);
      }
    }
  });

  it('refuses families that there are not, repeated contributions, and what is malformed', () => {
    const { pipeline } = recorded();
    const good: Contribution = contribution('gateway.started', 'observer', nothing);
    pipeline.register(good);
    expect(codeOf(() => pipeline.register({ ...good }))).toBe('CONTRIBUTION_REPEATED');
    // Ids that look the same when they are joined are others.
    pipeline.register({ ...good, extensionId: 'a/b', contributionId: 'c' });
    pipeline.register({ ...good, extensionId: 'a', contributionId: 'b/c' });
    const cases: [Partial<Record<keyof Contribution | 'more', unknown>>, string][] = [
      [{ stage: 'gateway.paused' }, 'FAMILY_UNKNOWN'],
      [{ stage: 'toString' }, 'FAMILY_UNKNOWN'],
      [{ class: 'dictator' }, 'RangeError'],
      [{ extensionId: '' }, 'RangeError'],
      [{ extensionId: 7 }, 'TypeError'],
      [{ extensionId: undefined }, 'TypeError'],
      [{ contributionId: 'a\nb' }, 'RangeError'],
      [{ contributionId: '\uD800' }, 'RangeError'],
      [{ contributionId: 'x'.repeat(257) }, 'RangeError'],
      [{ priority: 0.5 }, 'RangeError'],
      [{ priority: Infinity }, 'RangeError'],
      [{ priority: '1' }, 'TypeError'],
      [{ failClosed: true }, 'RangeError'],
      [{ trusted: true }, 'RangeError'],
      [{ purpose: 'auth' }, 'RangeError'],
      [{ timeoutMs: 0 }, 'RangeError'],
      [{ timeoutMs: 600_001 }, 'RangeError'],
      [{ timeoutMs: NaN }, 'RangeError'],
      [{ handler: undefined }, 'TypeError'],
      [{ handler: 'run' }, 'TypeError'],
      [{ more: 1 }, 'TypeError'],
    ];
    for (const [more, code] of cases) {
      const given = { ...good, contributionId: 'other', ...more } as Contribution;
      expect([more, codeOf(() => pipeline.register(given))]).toEqual([more, code]);
    }
  });

  it('takes at most 1,000 contributions of a stage, and removes them again', async () => {
    const { pipeline } = recorded();
    let runs = 0;
    const count: StageHandler = () => void (runs += 1);
    const remove = Array.from({ length: 1_000 }, () =>
      pipeline.register(contribution('gateway.started', 'observer', count)),
    );
    const one = contribution('gateway.started', 'observer', count);
    expect(codeOf(() => pipeline.register(one))).toBe('TOO_MANY_HANDLERS');
    remove[0]?.();
    remove[0]?.();
    pipeline.register(one);
    await pipeline.run({ family: 'gateway.started' });
    expect(runs).toBe(1_000);
  });

  it('lets the host say what a stage allows of which nothing else does', async () => {
    const stages = { 'compaction.before': { classes: ['veto'], mode: 'sequential' } } as const;
    const { pipeline, lines } = recorded({ stages });
    pipeline.register(contribution('compaction.before', 'veto', () => ({ decision: 'cancel' })));
    expect(await pipeline.run({ family: 'compaction.before' })).toMatchObject({ decision: 'cancel' });
    // Without a rule the event is recorded, and nothing runs.
    expect(await pipeline.run({ family: 'runtime.started' })).toMatchObject({ decision: 'allow' });
    expect(findingsOf(lines)).toEqual([]);
    const create = (given: object) => codeOf(() => createPipeline({ stages: given as never }));
    const rule = { classes: ['observer'], mode: 'parallel' };
    expect(create({ 'egress.sent': rule })).toBe('STAGE_SPECIFIED');
    expect(create({ 'egress.lost': rule })).toBe('FAMILY_UNKNOWN');
    expect(create({ 'runtime.started': { ...rule, classes: ['veto'] } })).toBe('RangeError');
    expect(create({ 'runtime.started': { ...rule, mode: 'fast' } })).toBe('RangeError');
    expect(create({ 'runtime.started': { ...rule, failPolicy: 'ajar' } })).toBe('RangeError');
    expect(create({ 'runtime.started': { ...rule, classes: ['reader'] } })).toBe('RangeError');
  });

  it('fails closed in a stage of the host that does, but for observers and who declares otherwise', async () => {
    const rule = { classes: ['observer', 'mutator'], mode: 'sequential', failPolicy: 'closed' } as const;
    for (const [kind, failClosed, decision] of [
      ['observer', undefined, 'allow'],
      ['mutator', undefined, 'cancel'],
      ['mutator', false, 'allow'],
    ] as const) {
      const { pipeline, lines } = recorded({ stages: { 'session.resetting': rule } });
      const fail = () => Promise.reject(new Error('no'));
      pipeline.register(contribution('session.resetting', kind, fail, { failClosed }));
      expect(await pipeline.run({ family: 'session.resetting' })).toMatchObject({ decision });
      expect(findingsOf(lines)).toEqual([]);
    }
  });
});

it('what is given instead of a gate, a recorder or a handler is refused', () => {
  for (const make of [
    () => gateStages(undefined as never),
    () => gateStages({} as never),
    () => createRecorder(undefined as never),
    () => createPipeline({ stages: 5 as never }),
    () => createPipeline({ timeoutMS: 5 } as never),
    () => fromHook({ hook: 'message_sent', extensionId: 'a', contributionId: 'b' } as never),
  ])
    expect(codeOf(make)).toBe('TypeError');
});

describe('order', () => {
  it('is by priority descending, then by the code units of both ids, however they were registered', async () => {
    const names = [
      ['b', 'x', 1],
      ['a', 'y', 1],
      ['a', 'x', 1],
      ['z', 'z', 2],
      ['B', 'x', 0],
      ['\uFFFD', 'x', 0],
      ['\u{1F600}', 'x', 0],
      ['a', 'x', -1],
    ] as const;
    const ran: string[] = [];
    const { pipeline } = recorded();
    for (const [extensionId, id, priority] of names) {
      const contributionId = `${id}${priority}`;
      pipeline.register(
        contribution(
          'command.received',
          'observer',
          () => void ran.push(`${extensionId}/${contributionId}`),
          {
            ...{ extensionId, contributionId, priority },
          },
        ),
      );
    }
    await pipeline.run({ family: 'command.received' });
    expect(ran).toEqual([...['z/z2', 'a/x1', 'a/y1', 'b/x1', 'B/x0', '\u{1F600}/x0', '\uFFFD/x0', 'a/x-1']]);
  });

  it('lets handlers of a parallel stage wait for each other, and those of a sequential one not', async () => {
    for (const [stage, code] of [
      ['egress.sending', undefined],
      ['egress.sent', 'HANDLER_TIMEOUT'],
    ] as const) {
      const { pipeline, problems } = recorded({ timeoutMs: 30 });
      let arrive: () => void = nothing;
      const arrived = new Promise<void>((resolve) => (arrive = resolve));
      pipeline.register(contribution(stage, 'observer', () => arrived, { priority: 1 }));
      pipeline.register(contribution(stage, 'observer', () => arrive()));
      await pipeline.run({ family: stage });
      expect(problems[0]?.code).toBe(code);
    }
  });

  it('leaves a stage that runs as it was when it began', async () => {
    const { pipeline } = recorded();
    const ran: string[] = [];
    const late = contribution('egress.sent', 'observer', () => void ran.push('late'));
    pipeline.register(
      contribution('egress.sent', 'observer', () => {
        ran.push('first');
        pipeline.register(late);
      }),
    );
    await pipeline.run({ family: 'egress.sent' });
    expect(ran).toEqual(['first']);
  });
});

describe('events', () => {
  it('have all 16 members, and are copies that nobody changes', async () => {
    const given = { family: 'egress.sent', payload: { deep: [{ a: 1 }] }, metadata: { b: undefined } };
    const event = createEvent(given);
    expect(Object.keys(event)).toHaveLength(16);
    given.payload.deep.length = 0;
    expect(event.payload).toEqual({ deep: [{ a: 1 }] });
    expect(event.metadata).toEqual({});
    const { pipeline, problems, lines } = recorded();
    pipeline.register(
      contribution('egress.sent', 'observer', ({ payload }) => {
        (payload as { deep: { a: number }[] }).deep[0].a = 2;
      }),
    );
    await pipeline.run(event);
    expect(problems.map(({ code, cause }) => [code, (cause as Error).name])).toEqual([
      ['HANDLER_FAILED', 'TypeError'],
    ]);
    expect(findingsOf(lines)).toEqual([]);
  });

  it('are refused where a member is unknown or of another type, or a value has no canonical form', async () => {
    const { pipeline, lines } = recorded();
    for (const more of [
      { occurredAt: 'today' },
      { occurredAt: '2026-11-26T10:00:00' },
      { hotPath: 1 },
      { agentId: '' },
      { messageRef: 7 },
      { metadata: [] },
      { extra: 1 },
      { payload: { a: Number.NaN } },
      { payload: '\uD800' },
      { payload: 2 ** 60 },
      {
        payload: {
          get secret() {
            return 1;
          },
        },
      },
      { payload: new Map() },
    ])
      expect([more, await codeOfLater(pipeline.run({ family: 'egress.sent', ...more }))]).toEqual([
        more,
        'EVENT_INVALID',
      ]);
    expect(await codeOfLater(pipeline.run({ family: 'egress.lost' }))).toBe('FAMILY_UNKNOWN');
    expect(await codeOfLater(pipeline.run({} as never))).toBe('EVENT_INVALID');
    expect(await codeOfLater(pipeline.run({ family: 'egress.sent' }, { working: new Map([[1, 2]]) }))).toBe(
      'nothing',
    );
    const deep = Array.from({ length: 62 }).reduce<object>((inner) => [inner], []);
    expect(await codeOfLater(pipeline.run({ family: 'egress.sent' }, { working: { deep } }))).toBe(
      'INPUT_INVALID',
    );
    expect(findingsOf(lines)).toEqual([]);
  });

  it('never change under the same id, and may come again', async () => {
    const { pipeline, lines } = recorded();
    const event = createEvent({ family: 'egress.sent', payload: { a: 1 } });
    await pipeline.run(event);
    await pipeline.run(JSON.parse(JSON.stringify(event)) as never);
    expect(await codeOfLater(pipeline.run({ ...event, payload: { a: 2 } }))).toBe('EVENT_CHANGED');
    expect(lines.filter((line) => !line.includes('"trace"'))).toHaveLength(1);
    expect(findingsOf(lines)).toEqual([]);
  });

  it('do not follow a stage that was cancelled', async () => {
    const { pipeline, lines } = recorded();
    pipeline.register(
      contribution('agent.tool.calling', 'veto', ({ payload }) => ({
        decision: (payload as { toolCallId: string }).toolCallId === 'bad' ? 'cancel' : 'allow',
      })),
    );
    for (const correlationId of ['r', 'r'.repeat(100_000)]) await follow(correlationId);

    async function follow(correlationId: string) {
      const of = (family: string, toolCallId: string) =>
        pipeline.run({ family, correlationId, payload: { toolCallId } });
      await of('agent.tool.calling', 'bad');
      await of('agent.tool.calling', 'good');
      expect(await codeOfLater(of('agent.tool.called', 'bad'))).toBe('FOLLOWS_CANCEL');
      expect(await codeOfLater(of('agent.tool.called', 'good'))).toBe('nothing');
    }
    expect(findingsOf(lines)).toEqual([]);
  });
});

describe('merging', () => {
  const run = async (
    stage: string,
    list: readonly (readonly [HandlerClass, unknown, Partial<Contribution>?])[],
    input: object = {},
  ) => {
    const { pipeline, problems, lines, hidden } = recorded();
    for (const [index, [kind, value, more]] of list.entries())
      pipeline.register(contribution(stage, kind, () => value, { priority: -index, ...more }));
    const outcome = await pipeline.run({ family: stage }, input);
    expect(findingsOf(lines)).toEqual([]);
    expect(findingsOf(hidden)).toEqual([]);
    return { ...outcome, problems: problems.map(({ code }) => code) };
  };

  it('appends to lists, keeps the first of other fields, and replaces only what is marked', async () => {
    const list = [
      ['augmenter', { add: { notes: 'b', owner: 'one', last: 1 } }],
      ['augmenter', { add: { notes: ['c', 'd'], owner: 'two', last: 2 } }],
    ] as const;
    const input = { context: { notes: ['a'] }, replaceable: ['last'] };
    const { context, problems } = await run('ingress.normalized', list, input);
    expect(context).toEqual({ notes: ['a', 'b', 'c', 'd'], owner: 'one', last: 2 });
    expect(problems).toEqual(['FIELD_KEPT']);
  });

  it('shows later mutators what earlier ones made', async () => {
    const { pipeline, lines } = recorded();
    const sees: unknown[] = [];
    for (const priority of [2, 1])
      pipeline.register(
        contribution(
          'egress.preparing',
          'mutator',
          (_, working) => {
            sees.push(working);
            return { patch: { content: `${working['content'] as string}!`, [`by${priority}`]: true } };
          },
          { priority },
        ),
      );
    const { working } = await pipeline.run({ family: 'egress.preparing' }, { working: { content: 'hi' } });
    expect(sees).toEqual([{ content: 'hi' }, { content: 'hi!', by2: true }]);
    expect(working).toEqual({ content: 'hi!!', by2: true, by1: true });
    expect(findingsOf(lines)).toEqual([]);
  });

  it('takes the first model and the first provider, and fails closed without a valid provider', async () => {
    const list = [
      ['mutator', { patch: { model: null, provider: 'a' } }],
      ['mutator', { patch: { model: 'm', provider: 'b' } }],
    ] as const;
    const stage = 'agent.model.resolving';
    const { working } = await run(stage, list, { working: { model: 'x', provider: 'y' } });
    expect(working).toEqual({ model: 'm', provider: 'a' });
    const backend = { selection: 'backend' };
    expect(await run(stage, list, { ...backend, providers: ['a'] })).toMatchObject({ decision: 'allow' });
    const none = await run(stage, list, { ...backend, providers: ['b'] });
    expect(none).toMatchObject({ decision: 'cancel', reason: 'NO_BACKEND', by: undefined });
    expect(await run(stage, [], backend)).toMatchObject({ decision: 'cancel' });
    expect((await run(stage, [['mutator', { patch: { key: 'k' } }]])).problems).toEqual([
      'PATCH_NOT_ALLOWED',
    ]);
  });

  it('composes the prompt, and lets only trusted mutators replace it', async () => {
    const list = [
      ['mutator', { patch: { staticGuidance: 'one', ephemeral: ['e'] } }],
      ['mutator', { patch: { staticGuidance: ['two'], systemPrompt: 'mine' } }],
      ['mutator', { patch: { systemPrompt: 'ours' } }, { trusted: true }],
      ['mutator', { patch: { staticGuidance: ['three'] } }],
      ['mutator', { patch: { tools: [] } }],
    ] as const;
    const input = { working: { systemPrompt: 'base', staticGuidance: ['zero'] } };
    const { working, problems } = await run('agent.prompt.building', list, input);
    expect(working).toEqual({
      ...{ systemPrompt: 'ours', staticGuidance: ['zero', 'one', 'three'], ephemeral: ['e'] },
    });
    expect(problems).toEqual(['NOT_TRUSTED', 'PATCH_NOT_ALLOWED']);
  });

  it('lets no stage before the routing choose a route, and no patch change what a message is', async () => {
    const route = [
      ['mutator', { patch: { route: 'x' } }],
      ['augmenter', { add: { route: 'x' } }],
    ] as const;
    expect((await run('ingress.normalized', route)).problems).toEqual([
      ...['PATCH_NOT_ALLOWED', 'PATCH_NOT_ALLOWED'],
    ]);
    const message = { role: 'toolResult', toolCallId: 'c', content: 'x' };
    const list = [
      ['mutator', { patch: { ...message, content: 'y' } }],
      ['mutator', { patch: { toolCallId: 'd' } }],
    ] as const;
    const { working, problems } = await run('transcript.tool-result.persisting', list, { working: message });
    expect(working).toEqual({ ...message, content: 'y' });
    expect(problems).toEqual(['PATCH_NOT_ALLOWED']);
  });

  it('selects explicit targets, then the highest rank, then the first; and none that is invalid', async () => {
    const stage = 'subagent.delivery.resolving';
    const give = (...candidates: object[]) => ['resolver', { candidates }] as const;
    const a = { target: 'a', rank: 1 };
    expect((await run(stage, [give(a, { target: 'b', rank: 1 })])).selected).toBe('a');
    expect((await run(stage, [give(a), give({ target: 'b', rank: 2 })])).selected).toBe('b');
    expect((await run(stage, [give(a), give({ target: { to: 'c' }, explicit: true })])).selected).toEqual({
      to: 'c',
    });
    expect((await run(stage, [give({ ...a, rank: 9, valid: false })])).selected).toBeUndefined();
    const input = { selection: 'backend' };
    expect(await run(stage, [give({ ...a, valid: false })], input)).toMatchObject({ decision: 'cancel' });
    expect(await run(stage, [give({ target: '' })])).toMatchObject({ problems: ['RESULT_INVALID'] });
  });

  it('ends with the first cancel: what comes later does not run', async () => {
    for (const stage of ['agent.tool.calling', 'egress.preparing', 'transcript.message.writing']) {
      const outcome = await run(stage, [
        ['mutator', { patch: { a: 1 } }],
        ['veto', { decision: 'allow' }],
        ['veto', { decision: 'cancel', reason: 'not yours' }, { contributionId: 'stop' }],
        ['mutator', { patch: { a: 2 } }],
      ]);
      expect(outcome).toMatchObject({
        ...{ decision: 'cancel', reason: 'not yours', working: { a: 1 } },
        by: { extensionId: 'x', contributionId: 'stop' },
      });
      const { handlers } = outcome.trace as unknown as { handlers: object[] };
      expect(handlers.at(-1)).toMatchObject({ skipped: true });
      expect(outcome.selected).toBeUndefined();
    }
  });
});

describe('errors', () => {
  const fails = () => {
    throw new Error('no');
  };

  it('of open contributions do nothing, of closed ones cancel', async () => {
    for (const [kind, more, decision] of [
      ['observer', {}, 'allow'],
      ['augmenter', {}, 'allow'],
      ['veto', {}, 'allow'],
      ['veto', { failClosed: true }, 'cancel'],
      ['resolver', { failClosed: true }, 'cancel'],
      ['mutator', {}, 'allow'],
      ['mutator', { purpose: 'credential' }, 'cancel'],
      ['mutator', { purpose: 'auth' }, 'cancel'],
      ['mutator', { purpose: 'auth', failClosed: false }, 'allow'],
    ] as const) {
      const { pipeline, problems, lines } = recorded();
      let later = 0;
      pipeline.register(contribution('egress.preparing', kind, fails, more));
      pipeline.register(
        contribution('egress.preparing', 'observer', () => void (later += 1), { priority: -1 }),
      );
      const outcome = await pipeline.run({ family: 'egress.preparing' });
      expect([kind, more, outcome.decision, later]).toEqual([
        kind,
        more,
        decision,
        decision === 'allow' ? 1 : 0,
      ]);
      expect(problems.map(({ code }) => code)).toEqual(['HANDLER_FAILED']);
      expect(findingsOf(lines)).toEqual([]);
    }
  });

  it('of a closed veto that decides nothing is one', async () => {
    for (const [failClosed, decision] of [
      [true, 'cancel'],
      [false, 'allow'],
    ] as const) {
      const { pipeline, lines } = recorded();
      pipeline.register(contribution('egress.preparing', 'veto', nothing, { failClosed }));
      expect(await pipeline.run({ family: 'egress.preparing' })).toMatchObject({ decision });
      expect(findingsOf(lines)).toEqual([]);
    }
  });

  it('of who records, of who is told, and of the gate stop nothing', async () => {
    const problems: string[] = [];
    const pipeline = createPipeline({
      record: fails,
      onProblem: ({ code }) => {
        problems.push(code);
        fails();
      },
      gate: { contributions: [], stageEnded: () => Promise.reject(new Error('no')) },
    });
    expect(await pipeline.run({ family: 'egress.sent' })).toMatchObject({ decision: 'allow' });
    expect(problems).toEqual(['RECORDING_FAILED', 'RECORDING_FAILED', 'GATE_FAILED']);
  });
});

describe('synchronous stages', () => {
  const stage = 'transcript.message.writing';

  it('take no asynchronous handler, not even one that only turns out to be', () => {
    const { pipeline, problems, lines } = recorded();
    // eslint-disable-next-line @typescript-eslint/require-await
    const later = async () => ({ patch: { a: 1 } });
    // eslint-disable-next-line @typescript-eslint/require-await
    async function* pieces() {
      yield 1;
    }
    for (const handler of [later, pieces])
      expect(codeOf(() => pipeline.register(contribution(stage, 'mutator', handler)))).toBe(
        'ASYNC_IN_SYNC_STAGE',
      );
    pipeline.register(contribution(stage, 'mutator', () => later()));
    pipeline.register(contribution(stage, 'mutator', () => Promise.reject(new Error('later'))));
    pipeline.register(contribution(stage, 'mutator', () => ({ patch: { b: 1 } })));
    const { working, trace } = pipeline.runSync({ family: stage }, { working: { c: 1 } });
    expect(working).toEqual({ b: 1, c: 1 });
    expect(problems.map(({ code }) => code)).toEqual(['ASYNC_RESULT', 'ASYNC_RESULT']);
    expect((trace as unknown as { handlers: object[] }).handlers[0]).toMatchObject({ rejected: true });
    expect(findingsOf(lines)).toEqual([]);
  });

  it('run without waiting, and only they do', async () => {
    const { pipeline } = recorded();
    pipeline.register(contribution(stage, 'veto', () => ({ decision: 'cancel' })));
    expect(pipeline.runSync({ family: stage })).toMatchObject({ decision: 'cancel' });
    expect(await pipeline.run({ family: stage })).toMatchObject({ decision: 'cancel' });
    expect(codeOf(() => pipeline.runSync({ family: 'egress.sent' }))).toBe('MODE_WRONG');
    expect(codeOf(() => pipeline.runSync({ family: 'runtime.started' }))).toBe('MODE_WRONG');
    expect(codeOf(() => pipeline.runSync({ family: 'egress.lost' }))).toBe('FAMILY_UNKNOWN');
    expect(codeOf(() => pipeline.runSync(undefined as never))).toBe('EVENT_INVALID');
  });
});
