/** OpenTelemetry spans: their ids and parents, their times, and their attributes. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { exportOtlp, type ExportOptions, type LedgerInput } from '../../src/api/index.js';
import { action, execution, grant, unsigned, usd } from '../docs/grant-kit.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { adjustment, costlyLedger, MemorySink, root } from '../table/kit.js';

interface AnyValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly AnyValue[] };
}
interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}
interface JsonSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: number; readonly message?: string };
}
interface Request {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly scope: object; readonly spans: readonly JsonSpan[] }[];
  }[];
}

function plain(value: AnyValue): unknown {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(plain);
  return value.stringValue ?? value.boolValue ?? BigInt(value.intValue ?? '');
}
const attributesOf = (list: readonly KeyValue[] | undefined): Record<string, unknown> =>
  Object.fromEntries((list ?? []).map(({ key, value }) => [key, plain(value)]));

async function otlp(ledger: LedgerInput, options: ExportOptions = {}) {
  const sink = new MemorySink();
  const pass = await exportOtlp(ledger, sink, options);
  const { resourceSpans } = JSON.parse(sink.text) as Request;
  const [only] = resourceSpans;
  const spans = only?.scopeSpans[0]?.spans ?? [];
  expect(pass.spans).toBe(spans.length);
  return { text: sink.text, spans, resource: attributesOf(only?.resource.attributes) };
}

describe('exportOtlp', () => {
  it('has parents of the same trace alone, and links what names a grant that it is not under', async () => {
    const refused = grant({}, root, { decision: 'deny' });
    const under = action(refused, 1);
    const credit = adjustment('credit', usd(1), { grant_event_id: refused.event_id });
    const { spans } = await otlp(unsigned(root, refused, under, execution(under, 1), credit));
    expect(spans).toHaveLength(5);
    const traces = new Map(spans.map(({ spanId, traceId }) => [spanId, traceId]));
    for (const { parentSpanId: parent, traceId } of spans) {
      if (parent !== undefined) expect(traces.get(parent)).toBe(traceId);
    }
    const links = spans.map(({ links: list = [] }) => list.map(({ spanId }) => spanId));
    const [first, second] = spans.map(({ spanId }) => spanId);
    expect(links).toEqual([[], [first], [second], [], [second]]);
    for (const { links: list = [] } of spans) {
      for (const { spanId, traceId } of list) expect(traces.get(spanId)).toBe(traceId);
    }
  });

  it('describes errors alone', async () => {
    const code = { error_code: 'SLOW' };
    const { spans } = await otlp(
      unsigned(
        root,
        execution(root, 1, code),
        execution(root, 1, { ...code, outcome: 'unknown' }),
        execution(root, 1, { ...code, outcome: 'failure' }),
      ),
    );
    expect(spans.slice(1).map(({ status }) => status)).toEqual([
      { code: 1 },
      { code: 0 },
      { code: 2, message: 'SLOW' },
    ]);
    const types = spans.slice(1).map(({ attributes }) => attributesOf(attributes)['error.type']);
    expect(types).toEqual([undefined, undefined, 'SLOW']);
  });

  it('has a span for each authorization, execution and adjustment, in one trace under a root grant', async () => {
    const { spans } = await otlp(costlyLedger);
    expect(spans.map(({ name, status }) => [name, status.code])).toEqual([
      ['grant', 0],
      ['grant', 0],
      ['authorize fs.read', 0],
      ['authorize fs.read', 0],
      ['execute_tool fs.read', 1],
      ['execute_tool llm.complete', 1],
      ['execute_tool fs.read', 2],
      ['debit', 0],
      ['credit', 0],
      ['credit', 2],
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const place = new Map(spans.map(({ spanId }, index) => [spanId, index]));
    expect(place.size).toBe(spans.length);
    expect(spans.map(({ parentSpanId }) => place.get(parentSpanId ?? ''))).toEqual([
      undefined,
      ...[0, 1, 0, 2, 0, 3, 0, 0, 0],
    ]);
    for (const { traceId, spanId, kind } of spans) {
      expect(traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(spanId).toMatch(/^[0-9a-f]{16}$/);
      expect(kind).toBe(1);
    }
  });

  it('has the times that were recorded, to the nanosecond, and says where there are none', async () => {
    const { spans } = await otlp(costlyLedger);
    const base = BigInt(Date.parse('2026-01-02T00:00:00Z')) * 1_000_000n;
    expect([spans[5]?.startTimeUnixNano, spans[5]?.endTimeUnixNano]).toEqual([
      String(base + 123_456_789n),
      String(base + 2_500_000_000n),
    ]);
    expect(attributesOf(spans[5]?.attributes)).not.toHaveProperty('northroot.zero_length');
    expect(spans[4]?.startTimeUnixNano).toBe(spans[4]?.endTimeUnixNano);
    expect(attributesOf(spans[4]?.attributes)).toMatchObject({ 'northroot.zero_length': true });
  });

  it('has the attributes of the GenAI conventions, and its own', async () => {
    const { spans } = await otlp(costlyLedger);
    expect(attributesOf(spans[5]?.attributes)).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'llm.complete',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-opus',
      'gen_ai.usage.input_tokens': 1200n,
      'gen_ai.usage.output_tokens': 80n,
      'gen_ai.agent.id': 'agent:a1',
      'northroot.meter.used.usd': '2.5',
      'northroot.estimated': true,
      'northroot.verdict': 'ok',
      'northroot.seq': 6n,
    });
    expect(attributesOf(spans[6]?.attributes)).toMatchObject({
      'error.type': 'BLOCKED',
      'northroot.verdict': 'denied',
    });
    expect(attributesOf(spans[9]?.attributes)).toMatchObject({
      'northroot.findings': ['ADJUSTMENT_EXCEEDED'],
    });
  });

  const conventions = fileURLToPath(new URL('../../../shared/specs/otel-genai', import.meta.url));
  it.skipIf(!existsSync(conventions))('names nothing of GenAI that the conventions do not', async () => {
    const text = ['gen-ai-spans.md', 'gen-ai-agent-spans.md']
      .map((file) => readFileSync(`${conventions}/${file}`, 'utf8'))
      .join('');
    const { spans } = await otlp(costlyLedger);
    const keys = new Set(spans.flatMap(({ attributes }) => attributes.map(({ key }) => key)));
    const foreign = [...keys].filter((key) => !key.startsWith('northroot.'));
    expect(foreign.length).toBeGreaterThan(5);
    expect(foreign.filter((key) => !text.includes(`\`${key}\``))).toEqual([]);
    expect(text).toContain('| `execute_tool` |');
  });

  it('says in its resource what was verified, and what is left out', async () => {
    const { resource } = await otlp(costlyLedger, { selection: { principal: '*' } });
    expect(resource).toMatchObject({
      'service.name': 'northroot',
      'northroot.verdict': 'violation',
      'northroot.is_selection': 'true',
      'northroot.spans': 10n,
      'northroot.left_out': 1n,
    });
  });

  it('has no span twice, and none that OTLP cannot hold', async () => {
    const old = execution(root, 1, { occurred_at: '1969-12-31T23:59:59Z' });
    const far = execution(root, 1, { occurred_at: '2600-01-01T00:00:00Z' });
    const { spans, resource } = await otlp(unsigned(root, root, old, far));
    expect(spans.map(({ name }) => name)).toEqual(['grant']);
    expect(resource['northroot.left_out']).toBe(4n);
    expect((await otlp(unsigned())).spans).toEqual([]);
  });

  it('lets outside text be text', async () => {
    const names = HOSTILE_STRINGS.map((text) => text.slice(0, 200).replace(/\p{Cs}/gu, '?')).filter(
      (text) => text !== '',
    );
    const { text, spans } = await otlp(
      unsigned(root, ...names.map((name) => execution(root, 0, { model_id: name }))),
    );
    expect(text).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u);
    expect(spans.slice(1).map((span) => attributesOf(span.attributes)['gen_ai.request.model'])).toEqual(
      names,
    );
  });

  it('is the same each time', async () => {
    expect((await otlp(costlyLedger)).text).toBe((await otlp(costlyLedger)).text);
  });
});
