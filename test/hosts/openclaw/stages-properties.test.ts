/** What the pipeline does always passes its own checks, whatever contributions do. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PIPELINE_FAMILIES } from '../../../src/hosts/openclaw/families.js';
import type { Contribution, HandlerClass } from '../../../src/hosts/openclaw/index.js';
import { findingsOf, recorded } from './stages-kit.js';

const STAGES = [...PIPELINE_FAMILIES].flatMap(([stage, rule]) =>
  rule === undefined ? [] : [{ stage, rule }],
);

const field = fc.constantFrom(
  ...['model', 'provider', 'systemPrompt', 'staticGuidance', 'ephemeral', 'route', 'role', 'toolCallId'],
  ...['a', 'list', '__proto__', 'constructor', 'content'],
);
const json = fc.jsonValue({ maxDepth: 3 });
const fields = fc.dictionary(field, fc.oneof(json, fc.string(), fc.array(fc.string())), { maxKeys: 4 });

/** What a handler returns: what its class may give, and anything. */
const returned = (kind: HandlerClass): fc.Arbitrary<unknown> => {
  const right = {
    observer: fc.constant(undefined),
    augmenter: fc.record({ add: fields }),
    mutator: fc.oneof(
      fc.record({ patch: fields }),
      fc.record({ patch: fc.record({ systemPrompt: fc.string() }) }),
    ),
    veto: fc.oneof(
      fc.record({ decision: fc.constantFrom('allow', 'cancel') }),
      fc.record({ decision: fc.constantFrom('allow', 'allow', 'cancel'), reason: fc.string() }),
    ),
    resolver: fc.record({
      candidates: fc.array(
        fc.record(
          {
            target: fc.constantFrom('one', 'two', { to: 'three' }),
            rank: fc.oneof(
              fc.integer({ min: -2, max: 2 }),
              fc.double({ noNaN: true, noDefaultInfinity: true }),
            ),
            explicit: fc.boolean(),
            valid: fc.boolean(),
          },
          { requiredKeys: ['target'] },
        ),
        { maxLength: 3 },
      ),
    }),
  }[kind];
  return fc.oneof(
    { weight: 6, arbitrary: right },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: json },
    { weight: 1, arbitrary: fc.record({ add: fields, patch: fields, decision: fc.constant('cancel') }) },
  );
};

const way = fc.constantFrom('returns', 'returns', 'returns', 'promises', 'throws', 'rejects', 'hangs');

/** Of a stage where trust matters, mutators alone. */
const PROMPT = STAGES.filter(({ stage }) => stage === 'agent.prompt.building').map(({ stage, rule }) => ({
  stage,
  rule: { ...rule, classes: ['mutator' as const] },
}));

const stages = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...STAGES) },
  { weight: 1, arbitrary: fc.constantFrom(...PROMPT) },
);

const contributions = stages.chain(({ stage, rule }) =>
  fc.record({
    stage: fc.constant(stage),
    list: fc.array(
      fc.constantFrom(...rule.classes).chain((kind) =>
        fc.record({
          kind: fc.constant(kind),
          extensionId: fc.constantFrom('a', 'b', 'a/b', 'B', 'é', '\u{1F600}'),
          contributionId: fc.constantFrom('a', 'b', 'b/a', 'Z', '\uFFFD'),
          priority: fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
          failClosed: fc.option(fc.boolean(), { nil: undefined }),
          trusted: fc.boolean(),
          purpose: fc.option(fc.constantFrom('credential' as const, 'auth' as const), { nil: undefined }),
          returned: returned(kind),
          way,
        }),
      ),
      { maxLength: 6 },
    ),
    input: fc.record(
      {
        working: fields,
        context: fields,
        replaceable: fc.array(field, { maxLength: 2 }),
        selection: fc.constant('backend' as const),
      },
      { requiredKeys: [] },
    ),
    providers: fc.option(fc.array(fc.string(), { maxLength: 2 }), { nil: undefined }),
    runs: fc.integer({ min: 1, max: 3 }),
    payload: fc.oneof(json, fc.record({ toolCallId: fc.constantFrom('c1', 'c2') })),
    correlationId: fc.constantFrom(null, 'r1', 'r2'),
  }),
);

const MARKS = [
  ...['"decision":"cancel"', '"skipped":true', '"kept":[', '"rejected":true', '"selected":', '"sees":'],
  ...['HANDLER_FAILED', 'HANDLER_TIMEOUT', 'RESULT_INVALID', 'PATCH_NOT_ALLOWED', 'NOT_TRUSTED'],
];

it(
  'finds nothing in what the pipeline records, with contents or without',
  { timeout: 1_200_000 },
  async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(contributions, { minLength: 1, maxLength: 5 }), async (stages) => {
        const { pipeline, lines, hidden } = recorded({ timeoutMs: 2 });
        for (const { stage, list } of stages) {
          for (const each of list) register(pipeline.register.bind(pipeline), stage, each);
        }
        for (const { stage, input, providers, runs, payload, correlationId } of stages) {
          for (let run = 0; run < runs; run += 1) {
            const isModel = stage === 'agent.model.resolving' && input.selection !== undefined;
            await pipeline
              .run({ family: stage, payload, correlationId }, { ...input, ...(isModel ? { providers } : {}) })
              .catch((error: { code?: string }) => {
                expect(['FOLLOWS_CANCEL', 'EVENT_INVALID', 'INPUT_INVALID']).toContain(error.code);
              });
          }
        }
        expect(findingsOf(lines)).toEqual([]);
        for (const mark of MARKS) if (lines.some((line) => line.includes(mark))) seen.add(mark);
        expect(findingsOf(hidden)).toEqual([]);
        expect(hidden.length).toBe(lines.length);
      }),
      { numRuns: process.env['SLOW'] === undefined ? 300 : 10_000 },
    );
    // It has tried what it is about.
    expect([...seen].sort()).toEqual([...MARKS].sort());
  },
);

function register(
  add: (contribution: Contribution) => unknown,
  stage: string,
  each: {
    kind: HandlerClass;
    returned: unknown;
    way: string;
    trusted: boolean;
    failClosed: boolean | undefined;
    purpose: 'credential' | 'auth' | undefined;
  } & Pick<Contribution, 'extensionId' | 'contributionId' | 'priority'>,
): void {
  const { kind, returned, way, trusted, failClosed, purpose, ...rest } = each;
  const isMutator = kind === 'mutator';
  try {
    add({
      ...rest,
      stage,
      class: kind,
      trusted: isMutator && trusted,
      ...(kind === 'observer' ? {} : { failClosed }),
      ...(isMutator ? { purpose } : {}),
      handler: () => {
        if (way === 'throws') throw new Error('no');
        if (way === 'rejects') return Promise.reject(new Error('no'));
        if (way === 'hangs') return new Promise(() => undefined);
        return way === 'promises' ? Promise.resolve(returned) : returned;
      },
    });
  } catch (error) {
    expect((error as { code?: string }).code).toBe('CONTRIBUTION_REPEATED');
  }
}
