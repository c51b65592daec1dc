/** Handlers that do what they should not: the stage goes on, and what it records passes its own checks. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createRecorder, type StageHandler } from '../../../src/hosts/openclaw/index.js';
import { codeOfLater, contribution, findingsOf, recorded } from './stages-kit.js';

const STAGE = 'egress.preparing';
const rejections: unknown[] = [];
process.on('unhandledRejection', (reason) => rejections.push(reason));

afterEach(() => {
  expect(rejections).toEqual([]);
});

/** A proxy of which every use throws. */
function trap(target: object = {}): object {
  const handler = new Proxy(
    {},
    {
      get: () => () => {
        throw new Error('trapped');
      },
    },
  );
  return new Proxy(target, handler);
}

const hidden = (value: unknown) => ({
  get patch() {
    return value;
  },
});

class Patch {
  readonly patch = { content: 'mine' };
}

const cyclic: Record<string, unknown> = { patch: {} };
(cyclic['patch'] as Record<string, unknown>)['again'] = cyclic;

const deep = Array.from({ length: 61 }).reduce<object>((inner) => ({ a: inner }), {});

const RETURNS: Readonly<Record<string, () => unknown>> = {
  'a proxy': () => trap(),
  'a proxy of a function': () => trap(() => undefined),
  'a getter': () => hidden({ content: 'mine' }),
  'an instance of a class': () => new Patch(),
  'a prototype': () => Object.create({ patch: { content: 'mine' } }) as object,
  'a patch with a prototype': () => ({ patch: Object.create({ content: 'mine' }) as object, more: 1 }),
  'a symbol': () => ({ patch: { [Symbol('a')]: 1 } }),
  'a cycle': () => cyclic,
  'what is too deep': () => ({ patch: { deep } }),
  'what is too large': () => ({ patch: { content: 'x'.repeat(1_048_577) } }),
  'a bigint': () => 7n,
  'a function': () => () => 1,
  'a list': () => [{ patch: {} }],
  'a list as a patch': () => ({ patch: [1] }),
  'a decision that is not its own': () => ({ decision: 'cancel' }),
  'a patch with more': () => ({ patch: {}, decision: 'cancel' }),
  'lone surrogates': () => ({ patch: { content: '\uDC00' } }),
  'an unsafe integer': () => ({ patch: { count: 2 ** 60 } }),
  'a getter of then': () => ({
    get then() {
      throw new Error('trapped');
    },
  }),
  'a thenable that throws': () => ({
    then: () => {
      throw new Error('no');
    },
  }),
  'a thenable of nonsense': () => ({ then: (resolve: (value: unknown) => void) => resolve(trap()) }),
  'a promise of a proxy': () => Promise.resolve(new Patch()),
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
  'a rejection of a proxy': () => Promise.reject(trap()),
};

describe.each(Object.entries(RETURNS))('a handler that returns %s', (_, make) => {
  it('changes nothing, fails, and stops nothing', async () => {
    for (const stage of [STAGE, 'transcript.message.writing']) {
      const { pipeline, problems, lines } = recorded({ timeoutMs: 1_000 });
      pipeline.register(contribution(stage, 'mutator', make, { priority: 1 }));
      pipeline.register(contribution(stage, 'mutator', () => ({ patch: { after: true } })));
      const { decision, working } = await pipeline.run({ family: stage }, { working: { content: 'its' } });
      expect(decision).toBe('allow');
      expect(working).toEqual({ content: 'its', after: true });
      expect(problems).toHaveLength(1);
      expect(findingsOf(lines)).toEqual([]);
      expect(lines.join('')).not.toContain('mine');
    }
  });
});

it.each([
  ['a proxy', () => trap()],
  ['nothing', () => undefined],
  ['an error whose name is a trap', () => Object.defineProperty(new Error('x'), 'code', { get: trap })],
])('a handler that throws %s fails', async (_, make) => {
  const { pipeline, problems, lines } = recorded();
  const fails: StageHandler = () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error
    throw make();
  };
  pipeline.register(contribution(STAGE, 'veto', fails, { failClosed: true }));
  expect(await pipeline.run({ family: STAGE })).toMatchObject({
    decision: 'cancel',
    reason: 'HANDLER_FAILED',
  });
  expect(problems.map(({ code }) => code)).toEqual(['HANDLER_FAILED']);
  expect(findingsOf(lines)).toEqual([]);
});

it('what a handler is given, it cannot change: not the event, the working object, the context, nor what it returned', async () => {
  const { pipeline, lines } = recorded();
  const patch = { list: [{ a: 1 }] };
  const add = { notes: ['one'] };
  const seen: unknown[] = [];
  pipeline.register(contribution(STAGE, 'augmenter', () => ({ add }), { priority: 3 }));
  pipeline.register(contribution(STAGE, 'mutator', () => ({ patch }), { priority: 2 }));
  pipeline.register(
    contribution(
      STAGE,
      'observer',
      (event, working, { context }) => {
        patch.list[0].a = 2;
        add.notes.push('two');
        for (const [object, name] of [
          [event, 'payload'],
          [event.payload, 'a'],
          [working, 'list'],
          [working['list'], '0'],
          [(working['list'] as object[])[0], 'a'],
          [context, 'notes'],
          [context['notes'], '0'],
        ] as const)
          seen.push(
            Reflect.set(object as object, name, 'mine'),
            Reflect.deleteProperty(object as object, name),
          );
        seen.push(
          Reflect.defineProperty(working, 'more', { value: 1 }),
          Reflect.setPrototypeOf(working, null),
        );
      },
      { priority: 1 },
    ),
  );
  const event = { family: STAGE, payload: { a: 1 } };
  const { working, context } = await pipeline.run(event, { working: { b: 1 } });
  expect(new Set(seen)).toEqual(new Set([false]));
  expect(working).toEqual({ b: 1, list: [{ a: 1 }] });
  expect(context).toEqual({ notes: ['one'] });
  expect(findingsOf(lines)).toEqual([]);
});

it('a handler and a contribution cannot change what the pipeline keeps of them', async () => {
  const { pipeline, problems } = recorded();
  const seen: unknown[] = [];
  const contributed = contribution('agent.prompt.building', 'mutator', function (this: unknown) {
    seen.push(this);
    Object.assign(contributed, { trusted: true, class: 'veto' });
    return { patch: { systemPrompt: 'mine' } };
  });
  let reads = 0;
  pipeline.register(contributed);
  pipeline.register({
    ...contribution('agent.prompt.building', 'mutator', () => ({ patch: { systemPrompt: 'mine' } })),
    // The first answer is what is checked, and what is kept.
    get trusted() {
      return reads++ > 0;
    },
  });
  for (let n = 0; n < 2; n += 1) await pipeline.run({ family: 'agent.prompt.building' });
  expect(seen).toEqual([undefined, undefined]);
  expect(problems.map(({ code }) => code)).toEqual(Array.from({ length: 4 }, () => 'NOT_TRUSTED'));
});

it('a member __proto__ is a field like any other', async () => {
  const { pipeline, lines } = recorded();
  const patch = JSON.parse('{"patch":{"__proto__":{"admin":true},"constructor":1}}') as object;
  const add = JSON.parse('{"add":{"__proto__":["x"]}}') as object;
  pipeline.register(contribution(STAGE, 'mutator', () => patch));
  pipeline.register(contribution(STAGE, 'augmenter', () => add));
  const { working, context } = await pipeline.run({ family: STAGE }, { working: {} });
  expect(Object.keys(working)).toEqual(['__proto__', 'constructor']);
  expect((working as { admin?: unknown }).admin).toBeUndefined();
  expect(Object.keys(context)).toEqual(['__proto__']);
  expect(Object.getPrototypeOf(working)).toBe(Object.prototype);
  expect(findingsOf(lines)).toEqual([]);
});

describe('a handler that takes too long', () => {
  it('is left behind by its error policy, and what it says later is ignored', async () => {
    for (const [failClosed, decision] of [
      [false, 'allow'],
      [true, 'cancel'],
    ] as const) {
      const { pipeline, problems, lines } = recorded({ timeoutMs: 20 });
      let answer: (value: unknown) => void = () => undefined;
      let isAborted = false;
      pipeline.register(
        contribution(
          STAGE,
          'mutator',
          (_, __, { signal }) => {
            signal.addEventListener('abort', () => (isAborted = true));
            return new Promise((resolve) => (answer = resolve));
          },
          { failClosed },
        ),
      );
      const outcome = await pipeline.run({ family: STAGE }, { working: { a: 1 } });
      answer({ patch: { a: 2 } });
      await sleep(5);
      expect(outcome).toMatchObject({ decision, working: { a: 1 } });
      expect(isAborted).toBe(true);
      expect(problems.map(({ code }) => code)).toEqual(['HANDLER_TIMEOUT']);
      expect(findingsOf(lines)).toEqual([]);
    }
  });

  it('or fails later, and a thenable that answers twice, end nothing else', async () => {
    const { pipeline, problems } = recorded({ timeoutMs: 20 });
    pipeline.register(
      contribution('egress.sending', 'observer', () =>
        sleep(40).then(() => Promise.reject(new Error('late'))),
      ),
    );
    pipeline.register(
      contribution('egress.sending', 'observer', () => ({
        then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
          resolve(undefined);
          reject(new Error('again'));
          throw new Error('and again');
        },
      })),
    );
    await pipeline.run({ family: 'egress.sending' });
    await sleep(60);
    expect(problems.map(({ code }) => code)).toEqual(['HANDLER_TIMEOUT']);
  });

  it('has the time of its contribution, where that says one', async () => {
    const { pipeline, problems } = recorded({ timeoutMs: 10 });
    pipeline.register(contribution(STAGE, 'observer', () => sleep(30), { timeoutMs: 5_000 }));
    await pipeline.run({ family: STAGE });
    expect(problems).toEqual([]);
  });
});

describe('a handler that runs the pipeline again', () => {
  it('is refused, at once or later, also by way of another pipeline', async () => {
    const { pipeline, lines } = recorded();
    const other = recorded().pipeline;
    const codes: string[] = [];
    const again = async () => void codes.push(await codeOfLater(pipeline.run({ family: STAGE })));
    other.register(contribution(STAGE, 'observer', again));
    pipeline.register(contribution(STAGE, 'observer', again));
    pipeline.register(contribution(STAGE, 'observer', () => sleep(1).then(again)));
    pipeline.register(contribution(STAGE, 'observer', () => other.run({ family: STAGE })));
    pipeline.register(
      contribution(STAGE, 'observer', () => {
        pipeline.runSync({ family: 'transcript.message.writing' });
      }),
    );
    await pipeline.run({ family: STAGE });
    expect(codes).toEqual(['REENTERED', 'REENTERED', 'REENTERED']);
    expect(lines.filter((line) => line.includes('"trace"'))).toHaveLength(1);
    expect(findingsOf(lines)).toEqual([]);
  });

  it('may do so when it has ended', async () => {
    const { pipeline } = recorded();
    let later: Promise<unknown> = Promise.resolve();
    pipeline.register(
      contribution(STAGE, 'observer', () => {
        later = sleep(5).then(() => pipeline.run({ family: 'egress.sent' }));
      }),
    );
    await pipeline.run({ family: STAGE });
    expect(await later).toMatchObject({ decision: 'allow' });
  });
});

it('what all contributions of a stage return together is bounded', async () => {
  const { pipeline, problems, lines } = recorded();
  for (let n = 0; n < 10; n += 1)
    pipeline.register(
      contribution(STAGE, 'augmenter', () => ({ add: { [`field${n}`]: 'x'.repeat(1_000_000) } })),
    );
  expect(await pipeline.run({ family: STAGE })).toMatchObject({ decision: 'allow' });
  expect(problems.map(({ code }) => code)).toEqual(['RESULT_TOO_LARGE', 'RESULT_TOO_LARGE']);
  // What could not be read again is not recorded: its stage goes on.
  const large = { content: 'x'.repeat(9_000_000) };
  expect(await pipeline.run({ family: 'ingress.normalized' }, { working: large })).toMatchObject({
    decision: 'allow',
  });
  expect(problems.at(-1)?.code).toBe('RECORDING_FAILED');
  expect(findingsOf(lines)).toEqual([]);
});

it('a recording without contents has none, and equal ones are equal in it', async () => {
  const { pipeline, hidden: lines } = recorded();
  const secret = 'correct horse';
  pipeline.register(
    contribution(STAGE, 'mutator', () => ({ patch: { content: secret, n: 123456789 } }), { priority: 2 }),
  );
  pipeline.register(contribution(STAGE, 'augmenter', () => ({ add: { memory: [secret, { [secret]: 1 }] } })));
  pipeline.register(
    contribution(STAGE, 'resolver', () => ({ candidates: [{ target: secret }, { target: { to: secret } }] })),
  );
  const cancels = () => ({ decision: 'cancel', reason: secret });
  pipeline.register(contribution(STAGE, 'veto', cancels, { priority: -1 }));
  const refs = { accountRef: secret, conversationRef: { id: secret }, threadRef: secret, messageRef: secret };
  await pipeline.run({
    ...{ family: STAGE, ...refs, metadata: { a: secret }, providerMetadata: { a: [secret] } },
    payload: { text: secret, toolCallId: 'c1', toolName: 'exec' },
  });
  await pipeline.run({ family: 'egress.sent', payload: secret });
  const text = lines.join('');
  expect(text).not.toContain(secret);
  expect(text).not.toContain('123456789');
  expect(text).toContain('"toolCallId":"c1"');
  expect(findingsOf(lines)).toEqual([]);
  const texts = new Set(text.match(/"hmac:[\w-]{22}"/g));
  // The text, the number, the name of the inner member, and 1.
  expect(texts.size).toBeLessThanOrEqual(8);
  const again: string[] = [];
  createRecorder((line) => again.push(line))(
    (await recorded().pipeline.run({ family: 'egress.sent', payload: secret })).event,
  );
  expect(again.join('').match(/"payload":"[^"]*"/)?.[0]).not.toBe(
    lines.at(-2)?.match(/"payload":"[^"]*"/)?.[0],
  );
});
