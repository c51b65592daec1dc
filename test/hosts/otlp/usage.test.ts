/** Usage of spans in one another counts once, and what is in no sum is told of with its amount. */

import { expect, it } from 'vitest';
import { reportImport } from '../../../src/hosts/shared/import-report.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { otlp } from '../../../src/hosts/otlp/index.js';
import { sumLeftOut } from '../../../src/hosts/shared/usage.js';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { fileOf, found } from '../samples.js';

interface Parts {
  readonly parent?: number;
  readonly second?: number;
  readonly trace?: string;
  readonly [attribute: string]: string | number | undefined;
}

const idOf = (n: number): string => n.toString(16).padStart(16, '0');

/** A span of one second. Attributes with `_tokens` in their name, and other numbers, are usage. */
function span(n: number, operation: string | undefined, parts: Parts = {}): object {
  const { parent, second = 0, trace = 'a', ...attributes } = parts;
  const start = 1_700_000_000n + BigInt(second);
  const all = {
    'gen_ai.provider.name': 'p',
    'gen_ai.request.model': 'm',
    ...(operation === undefined ? {} : { 'gen_ai.operation.name': operation }),
    ...Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [
        typeof value === 'number' ? `gen_ai.usage.${name}` : name,
        value,
      ]),
    ),
  };
  return {
    traceId: trace.repeat(32),
    spanId: idOf(n),
    ...(parent === undefined ? {} : { parentSpanId: idOf(parent) }),
    startTimeUnixNano: `${start}000000000`,
    endTimeUnixNano: `${start + 1n}000000000`,
    attributes: Object.entries(all).map(([key, value]) => ({
      key,
      value: typeof value === 'number' ? { doubleValue: value } : { stringValue: value },
    })),
  };
}

const fileWith = (name: string, ...spans: object[]) =>
  fileOf(name, [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }]);

/** Sums of all observations, and what is left out. */
function read(...spans: object[]) {
  return readFiles(fileWith('f', ...spans));
}

function readFiles(...files: ReturnType<typeof fileWith>[]) {
  const reading = otlp.read(files);
  const sums: Record<string, number> = {};
  for (const { meters } of reading.observations) {
    for (const { unit, amount } of meters) sums[unit] = (sums[unit] ?? 0) + Number(formatQuantity(amount));
  }
  return { reading, calls: reading.observations.length, sums, leftOut: sumLeftOut(reading.leftOut) };
}

it.each(['llm_call', 'retrieval', 'anything', 'invoke_agent', undefined])(
  'counts usage of a span with the operation %s',
  (operation) => {
    const { calls, sums, leftOut } = read(span(1, operation, { input_tokens: 28, output_tokens: 3 }));
    expect([calls, sums, leftOut]).toEqual([1, { 'tokens.input': 28, 'tokens.output': 3 }, []]);
  },
);

it.each([
  ['embeddings', 'embeddings'],
  ['chat', 'llm_call'],
  ['llm_call', 'chat'],
  ['invoke_agent', 'chat'],
  ['execute_tool', 'chat'],
  ['invoke_agent', 'invoke_agent'],
])('counts usage of %s above %s once, in any order and over several files', (outer, inner) => {
  const [above, below] = [
    span(1, outer, { input_tokens: 28 }),
    span(2, inner, { input_tokens: 28, parent: 1 }),
  ];
  for (const result of [
    read(above, below),
    read(below, above),
    readFiles(fileWith('f', below), fileWith('g', above)),
    readFiles(fileWith('f', above), fileWith('g', below)),
  ]) {
    expect([result.sums, result.leftOut]).toEqual([{ 'tokens.input': 28 }, []]);
    expect(found(result.reading).filter((code) => !code.startsWith('OT-9'))).toEqual([]);
  }
});

it('finds one call under the ids of all spans that tell of it', () => {
  const { reading } = read(
    span(1, 'chat', { input_tokens: 28 }),
    span(2, 'chat', { input_tokens: 28, parent: 1 }),
  );
  expect(reading.observations.map(({ callIds }) => callIds)).toEqual([[idOf(2), idOf(1)]]);
});

it('counts the innermost of several levels, with spans between that use nothing', () => {
  const { sums, leftOut, calls } = read(
    span(5, 'chat', { input_tokens: 10, parent: 4 }),
    span(4, 'execute_tool', { parent: 3 }),
    span(3, 'chat', { input_tokens: 10, parent: 2 }),
    span(2, 'llm_call', { input_tokens: 10, parent: 1 }),
    span(1, 'invoke_workflow', { input_tokens: 10 }),
  );
  // The tool is a call too.
  expect([sums, leftOut, calls]).toEqual([{ 'tokens.input': 10 }, [], 2]);
});

it('adds siblings up, and keeps what only the outer one states', () => {
  const { sums, leftOut, calls } = read(
    span(1, 'embeddings', { input_tokens: 50, output_tokens: 0 }),
    span(2, 'embeddings', { input_tokens: 20, parent: 1 }),
    span(3, 'embeddings', { input_tokens: 30, parent: 1 }),
  );
  expect([sums['tokens.input'], leftOut, calls]).toEqual([50, [], 2]);
  const other = read(
    span(1, 'chat', { input_tokens: 28, output_tokens: 5 }),
    span(2, 'chat', { input_tokens: 28, parent: 1 }),
  );
  expect([other.sums, other.calls]).toEqual([{ 'tokens.input': 28, 'tokens.output': 5 }, 1]);
});

it('names what an outer span states beyond those below it, once for all levels', () => {
  const { sums, leftOut, reading } = read(
    span(1, 'invoke_agent', { input_tokens: 100 }),
    span(2, 'invoke_agent', { input_tokens: 100, parent: 1 }),
    span(3, 'chat', { input_tokens: 60, parent: 2 }),
  );
  expect(sums).toEqual({ 'tokens.input': 60 });
  expect(leftOut).toEqual([
    { reason: 'TOTAL_DIFFERS', items: 1, amounts: [{ unit: 'tokens.input', amount: '40' }] },
  ]);
  expect(found(reading)).toEqual(['OT-10 TOTAL_DIFFERS']);
});

it('finds an outer span that states less than those below it', () => {
  const { sums, leftOut, reading } = read(
    span(1, 'chat', { input_tokens: 10 }),
    span(2, 'chat', { input_tokens: 60, parent: 1 }),
  );
  expect([sums, leftOut]).toEqual([{ 'tokens.input': 60 }, []]);
  expect(found(reading)).toEqual(['OT-10 TOTAL_DIFFERS']);
});

it('lets an agent leave out what the agents below it used', () => {
  const { sums, reading } = read(
    span(1, 'invoke_agent', { input_tokens: 100 }),
    span(2, 'chat', { input_tokens: 100, parent: 1 }),
    span(3, 'invoke_agent', { parent: 1 }),
    span(4, 'chat', { input_tokens: 60, parent: 3 }),
  );
  expect([sums, found(reading)]).toEqual([{ 'tokens.input': 160 }, []]);
});

it.each([
  ['itself', [span(1, 'chat', { input_tokens: 10, parent: 1 })]],
  [
    'a circle',
    [
      span(1, 'chat', { input_tokens: 10, parent: 3 }),
      span(2, 'chat', { input_tokens: 10, parent: 1 }),
      span(3, 'chat', { input_tokens: 10, parent: 2 }),
    ],
  ],
])('counts what lies below %s once', (_of, spans) => {
  expect(read(...spans).sums).toEqual({ 'tokens.input': 10 });
});

it('counts spans of two traces each, though their ids are alike', () => {
  const { sums } = read(
    span(1, 'chat', { input_tokens: 10 }),
    span(2, 'chat', { input_tokens: 10, parent: 1, trace: 'b' }),
  );
  expect(sums).toEqual({ 'tokens.input': 20 });
});

it('counts two spans of one response once where they go on at the same time, and tells of it', () => {
  const response = { input_tokens: 10, 'gen_ai.response.id': 'r' };
  const same = read(span(1, 'chat', response), span(2, 'chat', { ...response, trace: 'b' }));
  expect([same.sums, found(same.reading)]).toEqual([{ 'tokens.input': 10 }, ['OT-13 RESPONSE_REPEATED']]);
  expect(same.leftOut).toMatchObject([{ reason: 'RESPONSE_REPEATED', amounts: [{ amount: '10' }] }]);
  const later = read(span(1, 'chat', response), span(2, 'chat', { ...response, second: 300 }));
  expect([later.sums, found(later.reading)]).toEqual([{ 'tokens.input': 20 }, ['OT-13 RESPONSE_ID_REUSED']]);
});

it.each([
  ['ID_INVALID', { ...span(1, 'chat', { input_tokens: 10 }), traceId: 'x' }],
  ['TIME_NOT_STATED', { ...span(1, 'chat', { input_tokens: 10 }), startTimeUnixNano: '0' }],
])('names the usage of a span that is dropped as %s', (reason, dropped) => {
  const { leftOut, reading } = read(dropped);
  expect(leftOut).toEqual([{ reason, items: 1, amounts: [{ unit: 'tokens.input', amount: '10' }] }]);
  expect(found(reading).join()).toContain(reason);
});

it('names the usage of another span of one id, and of a second span of one tool call', () => {
  const { leftOut } = read(span(1, 'chat', { input_tokens: 10 }), span(1, 'chat', { input_tokens: 11 }));
  expect(leftOut).toMatchObject([{ reason: 'DUPLICATE_SPAN', amounts: [{ amount: '11' }] }]);
  const call = { 'gen_ai.tool.call.id': 'c', 'gen_ai.tool.name': 't', input_tokens: 10 };
  const tools = read(span(1, 'execute_tool', call), span(2, 'execute_tool', call));
  expect([tools.sums, tools.leftOut]).toMatchObject([{ 'tokens.input': 10 }, [{ reason: 'CALL_REPEATED' }]]);
});

it('names usage in units that are not counted, and no sum of what is', () => {
  const { leftOut, reading } = read(
    span(1, 'chat', { input_tokens: 10, output_tokens: 2, total_tokens: 12, cost: 0.25 }),
    span(2, 'chat', { total_tokens: 12 }),
  );
  expect(leftOut).toEqual([
    {
      reason: 'UNIT_UNKNOWN',
      items: 2,
      amounts: [
        { unit: 'cost', amount: '0.25' },
        { unit: 'total_tokens', amount: '12' },
      ],
    },
  ]);
  expect(found(reading)).toEqual(['OT-14 UNIT_UNKNOWN', 'OT-14 UNIT_UNKNOWN']);
});

it('has what is left out in the report of an import', () => {
  const plan = planImport(otlp, [
    fileWith(
      'f',
      span(1, 'invoke_agent', { input_tokens: 9 }),
      span(2, 'chat', { input_tokens: 4, parent: 1 }),
    ),
  ]);
  expect(reportImport(plan).left_out).toEqual([
    { reason: 'TOTAL_DIFFERS', items: 1, amounts: [{ unit: 'tokens.input', amount: '5' }] },
  ]);
});

it('names usage that only log records state', () => {
  const record = {
    attributes: [
      { key: 'event.name', value: { stringValue: 'gemini_cli.api_response' } },
      { key: 'input_token_count', value: { intValue: '28' } },
      { key: 'output_token_count', value: { intValue: '3' } },
    ],
  };
  const logs = { resourceLogs: [{ scopeLogs: [{ logRecords: [record, { attributes: [] }] }] }] };
  const { sums, leftOut, reading } = readFiles(fileOf('f', [logs]));
  expect([sums, found(reading)]).toEqual([{}, ['OT-15 USAGE_IN_LOG']]);
  expect(leftOut).toMatchObject([
    { reason: 'USAGE_IN_LOG', items: 1, amounts: [{ amount: '28' }, { amount: '3' }] },
  ]);
});
