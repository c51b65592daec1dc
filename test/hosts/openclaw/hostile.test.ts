/** Whatever stands in the files: nothing throws, every item is accounted for, and the same files give the same. */

import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openclaw, openclawPipeline } from '../../../src/hosts/openclaw/index.js';
import { accountFor } from '../../../src/hosts/shared/account.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { hasRecordings } from '../recorded.js';
import { inTime } from '../../in-time.js';
import { cliText, fileOf, hooks, hooksText, linesOf, transcriptText } from './kit.js';

const sampleText = (name: string): string =>
  readFileSync(new URL(`samples/${name}`, import.meta.url), 'utf8');

/** An edit of a text: a piece of it, as shares of its length, replaced. */
const edits = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat({ max: 60 }),
    by: fc.oneof(
      fc.constantFrom(
        '',
        'null',
        '"',
        '{}',
        '[]',
        '-1',
        '1e999',
        '\n',
        '{',
        '"a":',
        'true',
        '\\ud800',
        '\u0000',
        '9'.repeat(50),
      ),
      fc.string({ maxLength: 8 }),
    ),
  }),
  { minLength: 1, maxLength: 8 },
);

type Edits = typeof edits extends fc.Arbitrary<infer E> ? E : never;

function mutated(text: string, all: Edits): string {
  let out = text;
  for (const { at, length, by } of all) {
    const from = Math.floor(at * out.length);
    out = out.slice(0, from) + by + out.slice(from + length);
  }
  return out;
}

function holds(files: readonly HostFile[]): void {
  const plan = planImport(openclaw, files);
  const { total } = accountFor(plan.reading.items);
  expect(total.mapped + total.evidence + total.repeated + total.dropped).toBe(total.items);
  const places = plan.reading.items.map(({ at }) => `${at.file} ${at.line} ${at.pointer}`);
  expect(new Set(places).size).toBe(places.length);
  const ids = plan.reading.claims.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(plan.conflicting).toBe(0);
  expect(planImport(openclaw, files)).toEqual(plan);
}

describe.skipIf(!hasRecordings)('mutated recordings', () => {
  it('of hooks, transcripts and audit records', () => {
    fc.assert(
      fc.property(edits, edits, (first, second) => {
        const hookFile = hooks(mutated(hooksText(), first));
        holds([hookFile]);
        holds([
          hookFile,
          fileOf('t.jsonl', mutated(transcriptText(), second)),
          fileOf('a.json', mutated(sampleText('audit-2026.9.made-by-us.json'), second)),
          fileOf('r.jsonl', mutated(sampleText('receipts-2026.9.made-by-us.jsonl'), first)),
          fileOf('c.json', mutated(cliText(), second)),
        ]);
      }),
      { numRuns: 8 },
    );
  });

  it('with lines that come twice, not at all, or in another order', () => {
    const lines = hooksText().split('\n').slice(0, -1);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: lines.length - 1 }), { maxLength: 90 }), (order) => {
        holds([hooks(order.map((index) => `${lines[index]}\n`).join(''))]);
      }),
      { numRuns: 25 },
    );
  });
});

it('any values in the place of what a hook, an event or a stage has', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  const object = (...names: readonly string[]) =>
    fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
  const hook = fc.record({
    ts: fc.constantFrom(1795292352000, 'x', null),
    hook: fc.constantFrom(
      'before_tool_call',
      'after_tool_call',
      'message_sending',
      'message_sent',
      'subagent_spawning',
      'subagent_spawned',
      'before_message_write',
      'agent_end',
      'llm_output',
      '@agent_event',
      'tool_result_persist',
      'x',
    ),
    event: fc.oneof(
      value,
      object(
        'toolName',
        'params',
        'runId',
        'toolCallId',
        'message',
        'messages',
        'usage',
        'data',
        'seq',
        'stream',
        'to',
        'content',
        'result',
        'error',
      ),
    ),
    ctx: fc.oneof(value, object('agentId', 'sessionKey', 'sessionId', 'runId')),
    returned: fc.oneof(value, object('block', 'params', 'requireApproval', 'cancel', 'content')),
  });
  const stage = fc.record({
    trace: fc.constant('openclaw.stage.v1'),
    stage: fc.constantFrom('egress.preparing', 'agent.model.resolving', 'agent.prompt.building', 'x'),
    handlers: fc.oneof(
      value,
      fc.array(
        fc.oneof(
          value,
          object('class', 'result', 'error', 'priority', 'sees'),
          fc.record({
            class: fc.constantFrom('augmenter', 'mutator', 'veto', 'resolver'),
            result: fc.oneof(value, object('add', 'patch', 'decision', 'candidates')),
          }),
        ),
      ),
    ),
    output: fc.oneof(value, object('context', 'working', 'decision', 'selected')),
    input: value,
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(hook, stage, object('eventId', 'family')), { maxLength: 12 }), (lines) => {
      const file = fileOf('f.jsonl', linesOf(...lines));
      holds([file]);
      const checked = openclawPipeline.check([file]);
      expect(checked.items).toHaveLength(lines.length);
      expect(openclawPipeline.check([file])).toEqual(checked);
    }),
    { numRuns: 120 },
  );
});

it('reads many calls of one id in a time that grows with them', () => {
  const lines = Array.from({ length: 6_000 }, (_, index) => [
    {
      ts: 1795292352000,
      hook: 'before_tool_call',
      event: { toolName: 't', params: { index }, runId: 'r', toolCallId: 'c' },
      ctx: {},
      returned: null,
    },
    {
      type: 'message',
      id: `${index}`,
      parentId: index === 0 ? null : `${index - 1}`,
      timestamp: '2026-11-21T20:19:12.839Z',
      message: { role: 'toolResult', toolCallId: 'c', content: [] },
    },
  ]).flat();
  const { items } = inTime(() => openclaw.read([fileOf('many.jsonl', linesOf(...lines))]));
  expect(items).toHaveLength(12_000);
});
