/** OTLP spans with GenAI attributes: what becomes of each span, and each rule broken. */

import { expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { otlp } from '../../../src/hosts/otlp/index.js';
import { quantity } from '../../../src/base/value/quantity.js';
import { countUsage } from '../../../src/hosts/otlp/usage.js';
import { times } from '../../slow.js';
import { edited, fileOf, found, holdsForBrokenFiles, linesOf, sample, verifyPlan } from '../samples.js';

/** More than a call takes arguments. */
const MANY = 130_000;

const lines = sample('otlp', 'traces.jsonl');
const whole = sample('otlp', 'traces.json');

interface Span {
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly status: object;
}

/** The sample with one span changed. */
function withSpan(id: number, change: (span: Span) => object) {
  const spanId = id.toString(16).padStart(16, '0');
  const exports = linesOf(lines) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }[];
  const changed = exports.map(({ resourceSpans }) => ({
    resourceSpans: resourceSpans.map((resource) => ({
      ...resource,
      scopeSpans: resource.scopeSpans.map((scope) => ({
        ...scope,
        spans: scope.spans.map((span) => (span.spanId === spanId ? change(span) : span)),
      })),
    })),
  }));
  return fileOf('f', changed);
}

function without(name: string) {
  return (span: Span): object => ({ ...span, attributes: span.attributes.filter(({ key }) => key !== name) });
}

it('keeps GenAI spans as evidence, and drops others', async () => {
  const plan = planImport(otlp, [lines]);
  const { total, byReason } = accountFor(plan.reading.items);
  expect(total).toEqual({ items: 6, mapped: 0, evidence: 5, repeated: 0, dropped: 1 });
  expect([...byReason]).toEqual([['NOT_GEN_AI', 1]]);
  expect(Object.fromEntries(plan.byType)).toEqual({
    'x.otlp.agent': 1,
    'x.otlp.inference': 2,
    'x.otlp.tool': 2,
  });
  expect(plan.findings).toEqual([]);
  expect((await verifyPlan(plan)).verdict).toBe('ok');
});

it('keeps times to the nanosecond, tokens, and arguments as their digest', () => {
  const events = planImport(otlp, [lines]).events.map(({ event }) => event);
  expect(events[1]).toMatchObject({
    occurred_at: '2026-11-21T09:00:01.000000321Z',
    ended_at: '2026-11-21T09:00:02.500000321Z',
    principal_id: 'service:otlp/weather-agent',
    tool_name: 'llm.openai/gpt-sample',
    amounts: { input_tokens: { t: 'int', v: '1200' }, 'cache_read.input_tokens': { t: 'int', v: '1024' } },
  });
  expect(events[2]).toMatchObject({ tool_name: 'get_weather', params_digest: { alg: 'sha-256' } });
  expect(JSON.stringify(events)).not.toContain('Paris');
});

it('observes calls of models and of tools, and no agent, whose tokens are theirs', () => {
  const { observations } = otlp.read([lines]);
  expect(observations.map(({ callIds, tool, outcome }) => [callIds[0], tool, outcome])).toEqual([
    ['chatcmpl-sample1', 'llm.openai/gpt-sample', 'success'],
    ['call_sample1', 'get_weather', 'success'],
    ['call_sample2', 'get_forecast', 'failure'],
    ['chatcmpl-sample2', 'llm.openai/gpt-sample', 'success'],
  ]);
});

it('has the same digest for arguments as text, and as structured values', () => {
  const structured = withSpan(3, (span) => ({
    ...span,
    attributes: span.attributes.map(({ key, value }) =>
      key === 'gen_ai.tool.call.arguments'
        ? {
            key,
            value: {
              kvlistValue: {
                values: [
                  { key: 'unit', value: { stringValue: 'celsius' } },
                  { key: 'location', value: { stringValue: 'Paris' } },
                ],
              },
            },
          }
        : { key, value },
    ),
  }));
  const digests = (file: typeof lines): unknown =>
    otlp.read([file]).observations.map(({ paramsDigest }) => paramsDigest);
  expect(digests(structured)).toEqual(digests(lines));
});

it('gives the same events for export requests on lines, and for one formatted file', () => {
  const ids = (file: typeof lines): unknown[] =>
    planImport(otlp, [file]).events.map(({ event }) => event.event_id);
  expect(ids(whole)).toEqual(ids(lines));
  expect([otlp.recognises(whole), otlp.recognises(lines)]).toEqual([true, true]);
});

it('takes a span that was exported twice once, and one call of a client and a server once', () => {
  const twice = otlp.read([lines, { ...lines, name: 'again' }]);
  expect(accountFor(twice.items).byReason.get('SPAN_REPEATED')).toBe(6);
  expect(found(twice)).toEqual([]);
  const both = otlp.read([
    withSpan(9, (span) => ({
      ...span,
      attributes: [
        { key: 'mcp.method.name', value: { stringValue: 'tools/call' } },
        { key: 'gen_ai.tool.name', value: { stringValue: 'get_weather' } },
        { key: 'gen_ai.tool.call.id', value: { stringValue: 'call_sample1' } },
      ],
    })),
  ]);
  expect(accountFor(both.items).byReason.get('CALL_REPEATED')).toBe(1);
  expect(found(both)).toEqual([]);
});

it('drops what is not traces', () => {
  const { items } = otlp.read([fileOf('f', [{ resourceLogs: [] }])]);
  expect(items).toMatchObject([{ fate: 'dropped', reason: 'NOT_TRACES' }]);
});

it.each([
  ['OT-1 DUPLICATE_SPAN', '"spanId":"0000000000000005"', '"spanId":"0000000000000004"'],
  [
    'OT-2 END_BEFORE_START',
    '"endTimeUnixNano":"1795251608800002000"',
    '"endTimeUnixNano":"1795251607000000000"',
  ],
  ['OT-3 ID_INVALID', '"spanId":"0000000000000004"', '"spanId":"0000000000000000"'],
  ['OT-5 AMOUNT_INVALID', '{"intValue":"85"}', '{"intValue":"-85"}'],
  ['OT-5 AMOUNT_INVALID', '{"intValue":"85"}', '{"doubleValue":8.5}'],
  ['OT-6 PART_EXCEEDS_TOTAL', '{"intValue":"1024"}', '{"intValue":"1201"}'],
  ['OT-8 DUPLICATE_CALL', 'call_sample2', 'call_sample1'],
  ['OT-10 TOTAL_DIFFERS', '{"intValue":"2510"}', '{"intValue":"2511"}'],
])('finds %s', (expected, from, to) => {
  const findings = found(otlp.read([edited(lines, from, to)]));
  // Tokens that are no amounts, and calls that are missing, are not in the total either.
  expect(findings.filter((each) => each !== 'OT-10 TOTAL_DIFFERS' || each === expected)).toEqual([expected]);
});

it.each([
  ['OT-4 PARENT_NOT_FOUND', 3, (span: Span) => ({ ...span, parentSpanId: '00000000000000aa' })],
  ['OT-7 STATUS_DISAGREES', 4, (span: Span) => ({ ...span, status: { code: 1 } })],
  ['OT-7 ERROR_TYPE_MISSING', 4, without('error.type')],
  ['OT-9 ATTRIBUTE_MISSING', 2, without('gen_ai.provider.name')],
  ['OT-9 ATTRIBUTE_MISSING', 3, without('gen_ai.tool.name')],
  [
    'OT-9 ATTRIBUTE_REPEATED',
    3,
    (span: Span) => ({ ...span, attributes: [...span.attributes, ...span.attributes.slice(0, 1)] }),
  ],
] as const)('finds %s', (expected, id, change) => {
  expect(found(otlp.read([withSpan(id, change)]))).toEqual([expected]);
});

/** One span in a request of its own. */
function spanOf(attributes: Readonly<Record<string, string | number>>, rest: object = {}): object {
  return {
    traceId: 'a'.repeat(32),
    spanId: '0000000000000001',
    parentSpanId: '0000000000000000',
    startTimeUnixNano: '1795251600000000000',
    endTimeUnixNano: '1795251601000000000',
    attributes: Object.entries(attributes).map(([key, value]) => ({
      key,
      value: typeof value === 'number' ? { intValue: `${value}` } : { stringValue: value },
    })),
    ...rest,
  };
}

function requestOf(...spans: readonly object[]) {
  return fileOf('f', [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }]);
}

it('observes a call of a model that states no operation, as older conventions have it', () => {
  const { items, findings, observations } = otlp.read([
    requestOf(
      spanOf({
        'gen_ai.system': 'openai',
        'gen_ai.request.model': 'gpt-sample',
        'gen_ai.usage.prompt_tokens': 12,
        'gen_ai.usage.completion_tokens': 3,
      }),
    ),
  ]);
  expect(items).toMatchObject([{ fate: 'evidence' }]);
  expect(found({ findings })).toEqual(['OT-9 ATTRIBUTE_MISSING']);
  expect(observations).toMatchObject([
    {
      tool: 'llm.openai/gpt-sample',
      meters: [
        { unit: 'tokens.input', amount: { t: 'int', v: '12' } },
        { unit: 'tokens.output', amount: { t: 'int', v: '3' } },
      ],
    },
  ]);
});

it('asks for what the conventions require of an operation, and for no more', () => {
  const missing = (attributes: Readonly<Record<string, string>>): unknown[] =>
    otlp.read([requestOf(spanOf(attributes))]).findings.map(({ expected }) => expected);
  expect(missing({ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' })).toEqual([]);
  expect(missing({ 'gen_ai.operation.name': 'invoke_agent' })).toEqual(['gen_ai.provider.name']);
  expect(missing({ 'gen_ai.operation.name': 'invoke_workflow' })).toEqual([]);
  expect(missing({ 'gen_ai.operation.name': 'constructor' })).toEqual([]);
});

it('does not call a span invalid whose writer counts cached tokens beside the input', () => {
  const { findings } = otlp.read([
    requestOf(
      spanOf({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.cache_read.input_tokens': 4096,
      }),
    ),
  ]);
  expect(findings).toMatchObject([{ code: 'PART_EXCEEDS_TOTAL', severity: 'warning', class: 'none' }]);
});

it('reads spans under the older name of their scope', () => {
  const spans = [spanOf({ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' })];
  const { items } = otlp.read([
    fileOf('f', [{ resourceSpans: [{ instrumentationLibrarySpans: [{ spans }] }] }]),
  ]);
  expect(items).toMatchObject([{ fate: 'evidence' }]);
});

it('passes nothing over that stands where spans should', () => {
  const items = (resourceSpans: readonly unknown[]): unknown[] =>
    otlp
      .read([fileOf('f', [{ resourceSpans }])])
      .items.map(({ at: { pointer }, reason }) => [pointer, reason]);
  expect(items([null])).toEqual([['/resourceSpans/0', 'NOT_AN_OBJECT']]);
  expect(items([{ scopeSpans: { spans: [] } }])).toEqual([['/resourceSpans/0/scopeSpans', 'NOT_A_LIST']]);
  expect(items([{ scopeSpans: ['x', { spans: {} }, {}] }])).toEqual([
    ['/resourceSpans/0/scopeSpans/0/spans', 'NOT_A_LIST'],
    ['/resourceSpans/0/scopeSpans/1/spans', 'NOT_A_LIST'],
  ]);
});

it('recognises spans among the other signals of a collector', () => {
  const others = [{ resourceMetrics: [] }, { resourceLogs: [] }];
  expect(otlp.recognises(fileOf('f', [...others, ...linesOf(lines)]))).toBe(true);
  expect(otlp.recognises(fileOf('f', others))).toBe(false);
  expect(otlp.recognises(fileOf('f', [{ a: 1 }, ...linesOf(lines)]))).toBe(false);
});

it('walks circles and long chains of parents', () => {
  const spans = Array.from({ length: 5_000 }, (_, index) => ({
    traceId: 'a'.repeat(32),
    spanId: (index + 1).toString(16).padStart(16, '0'),
    parentSpanId: (((index + 1) % 5_000) + 1).toString(16).padStart(16, '0'),
    startTimeUnixNano: '1795251600000000000',
    endTimeUnixNano: '1795251600000000000',
    attributes: [{ key: 'gen_ai.operation.name', value: { stringValue: 'invoke_agent' } }],
  }));
  const { items } = otlp.read([fileOf('f', [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }])]);
  expect(items).toHaveLength(5_000);
});

it('reads whatever it is given', () => {
  holdsForBrokenFiles(otlp, [lines, whole]);
});

it('adds up the calls below one agent, as many as a file may hold', () => {
  const traceId = 'a'.repeat(32);
  const span = (n: number, operation: string, more: object): object => ({
    traceId,
    spanId: n.toString(16).padStart(16, '0'),
    startTimeUnixNano: '1700000000000000000',
    attributes: [
      { key: 'gen_ai.operation.name', value: { stringValue: operation } },
      { key: 'gen_ai.usage.input_tokens', value: { intValue: '3' } },
    ],
    ...more,
  });
  const count = times(5_000, MANY);
  const calls = Array.from({ length: count }, (_, n) =>
    span(n + 2, 'chat', { parentSpanId: '0000000000000001' }),
  );
  const spans = [span(1, 'invoke_agent', {}), ...calls];
  const { findings } = otlp.read([fileOf('f', [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }])]);
  expect(findings.filter(({ rule }) => rule === 'OT-10')).toMatchObject([
    { code: 'TOTAL_DIFFERS', expected: `input_tokens ${3 * count}`, actual: '3' },
  ]);
});

it('counts as many spans below one as a call has no arguments', () => {
  const amounts = { input_tokens: quantity(3) };
  const agent = { isAgent: true, amounts };
  const calls = Array.from({ length: MANY }, () => ({ isAgent: false, amounts }));
  const usage = countUsage(
    [agent, ...calls],
    (span) => (span === agent ? undefined : agent),
    () => agent,
  );
  const [difference] = usage.get(agent)?.differences ?? [];
  expect(difference?.below).toEqual(quantity(3 * MANY));
});
