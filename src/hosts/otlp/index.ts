/** OTLP JSON: spans with the GenAI attributes of OpenTelemetry. docs/hosts/otlp.md says what becomes of each. */

import { SourceNumber, SourceObject, type SourceValue } from '../../json/source-json.js';
import type { JsonObject } from '../../json/value.js';
import { sha256Digest, toDigestText } from '../../value/digest.js';
import { formatQuantity, type Quantity } from '../../value/quantity.js';
import { compareTimestamps } from '../../value/timestamp.js';
import { documentsOf, peekDocuments } from '../documents.js';
import { membersOf } from '../members.js';
import type { Host, HostFile, HostFinding, HostOptions, HostPlace, HostReading } from '../host.js';
import { principalOf, toolOf, wellFormed } from '../names.js';
import { checkReadOptions } from '../read-options.js';
import { ReadingBuilder } from '../reading.js';
import { inTimeOrder } from '../time-order.js';
import { amountFacts, differ, exceeds, metersOf, sumOf, type StatedAmounts } from '../usage.js';
import { amountOf, jcsDigest, listAt } from '../values.js';
import { OTLP_RULES } from './rules.js';
import { attributeJson, attributeText, readSpan, resourceOf, type Attributes, type Span } from './spans.js';

/** The host OTLP. */
export const otlp: Host = {
  name: 'otlp',
  title: 'OTLP spans with GenAI attributes',
  rules: OTLP_RULES,
  aids: {},
  recognises,
  read,
};

const MAX_FACT_LENGTH = 256;
/** A collector may write all that it is sent to one file. */
const SIGNALS = ['resourceMetrics', 'resourceLogs', 'resourceProfiles'] as const;
const LOOKED_AT = 1_000;
/** The second until version 0.15 of the protocol. */
const SCOPES = ['scopeSpans', 'instrumentationLibrarySpans'] as const;

function recognises(file: HostFile): boolean {
  let left = LOOKED_AT;
  for (const { value } of peekDocuments(file)) {
    if (listAt(value, 'resourceSpans') !== undefined) return true;
    if (!SIGNALS.some((name) => listAt(value, name) !== undefined) || --left === 0) return false;
  }
  return false;
}

function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('otlp', options);
  const reader = new SpanReader(options);
  for (const file of files) reader.readFile(file);
  return inTimeOrder(reader.finish());
}

/** What a span is about. */
type Kind = 'inference' | 'tool' | 'agent' | 'other';

const INFERENCE = ['chat', 'generate_content', 'text_completion', 'embeddings'];
/** Of a call of a model whose operation is not stated. */
const UNNAMED_INFERENCE = 'inference';
const AGENT = ['invoke_agent', 'create_agent', 'invoke_workflow'];

interface Read extends Span {
  readonly kind: Kind;
  readonly operation: string;
  readonly amounts: StatedAmounts;
}

class SpanReader {
  readonly #reading: ReadingBuilder;
  /** By trace and span. */
  readonly #spans = new Map<string, Span>();
  readonly #digests = new Map<string, string>();
  readonly #calls = new Map<string, Read>();
  readonly #kept: Read[] = [];

  constructor(options: HostOptions) {
    this.#reading = new ReadingBuilder(options);
  }

  readFile(file: HostFile): void {
    for (const item of documentsOf(this.#reading, file)) {
      const resources = listAt(item.value, 'resourceSpans');
      if (resources === undefined) {
        this.#reading.drop(item.at, 'unknown', 'NOT_TRACES');
        continue;
      }
      for (const [r, resource] of resources.entries())
        this.#resource({ ...item.at, pointer: `/resourceSpans/${r}` }, resource);
    }
  }

  /** What is there in the place of a list is an item that is dropped: nothing is passed over. */
  #resource(at: HostPlace & { readonly pointer: string }, resource: SourceValue): void {
    const attributes = resourceOf(resource);
    const isObject = resource instanceof SourceObject;
    if (!isObject) this.#reading.drop(at, 'unknown', 'NOT_AN_OBJECT');
    for (const name of SCOPES) {
      if (!isObject || !resource.has(name)) continue;
      const scopes = { ...at, pointer: `${at.pointer}/${name}` };
      for (const [index, scope] of this.#list(scopes, resource.get(name)).entries()) {
        const spans = { ...at, pointer: `${scopes.pointer}/${index}/spans` };
        const found = scope instanceof SourceObject ? scope.get('spans') : scope;
        for (const member of membersOf(spans, spans.pointer, this.#list(spans, found)))
          this.#span(readSpan(member, attributes));
      }
    }
  }

  #list(at: HostPlace, value: SourceValue | undefined): readonly SourceValue[] {
    if (Array.isArray(value)) return value as readonly SourceValue[];
    if (value !== undefined && value !== null) this.#reading.drop(at, 'unknown', 'NOT_A_LIST');
    return [];
  }

  /** Parents and totals are only known when all files are read. */
  finish(): HostReading {
    for (const span of this.#kept) {
      this.#checkParent(span);
    }
    this.#checkTotals();
    return this.#reading.finish();
  }

  #span(span: Span): void {
    const { item, traceId, spanId } = span;
    const { at } = item;
    if (!(item.value instanceof SourceObject)) {
      this.#reading.drop(at, 'unknown', 'NOT_AN_OBJECT');
      return;
    }
    const operation = operationOf(span);
    const type = operation === undefined ? 'span' : wellFormed(operation);
    if (traceId === undefined || spanId === undefined) {
      this.#find('OT-3', 'ID_INVALID', INVALID, span, '32 and 16 hexadecimal digits', span.statedIds);
      this.#reading.drop(at, type, 'ID_INVALID');
      return;
    }
    const id = idOf(traceId, spanId);
    if (this.#isRepeated(span, id, type)) return;
    if (operation === undefined) {
      this.#reading.drop(at, type, 'NOT_GEN_AI');
      return;
    }
    const kind = kindOf(operation);
    const occurredAt = this.#reading.timeOf(span.start, at, id);
    if (occurredAt === undefined) {
      this.#reading.drop(at, type, 'TIME_NOT_STATED');
      return;
    }
    if (span.start !== undefined && span.end !== undefined && compareTimestamps(span.end, span.start) < 0)
      this.#find('OT-2', 'END_BEFORE_START', INVALID, span, `from ${span.start}`, span.end);
    const kept: Read = { ...span, kind, operation, amounts: this.#amounts(span) };
    this.#kept.push(kept);
    this.#checkAttributes(kept);
    this.#keep(kept, id, occurredAt);
  }

  #isRepeated(span: Span, id: string, type: string): boolean {
    const { at, bytes } = span.item;
    const content = toDigestText(sha256Digest(bytes).b64);
    const before = this.#spans.get(id);
    if (before === undefined) {
      this.#spans.set(id, span);
      this.#digests.set(id, content);
      return false;
    }
    const isSame = this.#digests.get(id) === content;
    if (!isSame) {
      this.#find('OT-1', 'DUPLICATE_SPAN', INVALID, span, 'the span as it was before', 'another', [
        before.item.at,
      ]);
    }
    const reason = isSame ? 'SPAN_REPEATED' : 'DUPLICATE_SPAN';
    this.#reading.item({ at, type, fate: 'repeated', reason });
    return true;
  }

  #keep(span: Read, id: string, occurredAt: string): void {
    const { item, attributes, kind, operation, amounts } = span;
    const { at, bytes } = item;
    const callId = attributeText(attributes, 'gen_ai.tool.call.id');
    const tool = toolNameOf(span);
    if (this.#isSecondSpanOfCall(span, callId, tool)) {
      this.#reading.item({ at, type: cut(operation), fate: 'repeated', reason: 'CALL_REPEATED' });
      return;
    }
    const paramsDigest = digestOf(attributeJson(attributes, 'gen_ai.tool.call.arguments'));
    const outcome = outcomeOf(span);
    const facts: JsonObject = {
      trace_id: span.traceId ?? '',
      span_id: span.spanId ?? '',
      ...(span.parentId === undefined ? {} : { parent_span_id: cut(span.parentId) }),
      operation: cut(operation),
      ...(tool === undefined ? {} : { tool_name: toolOf(tool) }),
      ...texts(attributes, FACTS),
      ...(span.end === undefined ? {} : { ended_at: span.end }),
      outcome,
      amounts: amountFacts(amounts),
      ...(paramsDigest === undefined ? {} : { params_digest: { ...paramsDigest } }),
    };
    const principalId = principalFor(span);
    this.#reading.claim({
      kind: 'evidence',
      id: `span:${id}`,
      type: kind,
      facts,
      at,
      bytes,
      occurredAt,
      principalId,
    });
    if (kind === 'inference' || kind === 'tool') {
      const response = attributeText(attributes, 'gen_ai.response.id');
      this.#reading.observe({
        at,
        callIds: [callId, kind === 'inference' ? response : undefined, span.spanId].filter(
          (each) => each !== undefined,
        ),
        tool,
        paramsDigest,
        outcome,
        meters: metersOf({
          'tokens.input': amounts['input_tokens'],
          'tokens.output': amounts['output_tokens'],
          'tokens.input.cache_read': amounts['cache_read.input_tokens'],
          'tokens.input.cache_creation': amounts['cache_creation.input_tokens'],
          'tokens.output.reasoning': amounts['reasoning.output_tokens'],
        }),
        occurredAt,
      });
    }
    this.#reading.item({ at, type: cut(operation), fate: 'evidence' });
  }

  /** Client and server, or a framework and the tool below it, each write a span of one call. */
  #isSecondSpanOfCall(span: Read, callId: string | undefined, tool: string | undefined): boolean {
    if (span.kind !== 'tool' || callId === undefined) return false;
    const key = `${span.traceId ?? ''}/${callId}`;
    const before = this.#calls.get(key);
    if (before === undefined) {
      this.#calls.set(key, span);
      return false;
    }
    const name = toolNameOf(before);
    if (name !== tool) {
      this.#find('OT-8', 'DUPLICATE_CALL', INVALID, span, `a call of ${name ?? 'none'}`, tool ?? 'none', [
        before.item.at,
      ]);
    }
    return true;
  }

  #amounts(span: Span): StatedAmounts {
    const amounts: Record<string, Quantity | undefined> = {};
    for (const [name, ...attributes] of TOKENS) {
      const [attribute, value] = firstOf(span.attributes, attributes);
      if (value === undefined) continue;
      const amount = value instanceof SourceNumber ? amountOf(value.text) : undefined;
      if (amount?.t === 'int') {
        amounts[name] = amount;
        continue;
      }
      const actual = `${attribute} ${value instanceof SourceNumber ? value.text : 'no number'}`;
      this.#find('OT-5', 'AMOUNT_INVALID', INVALID, span, 'a whole number that is not negative', actual);
    }
    for (const [part, whole] of PARTS) {
      if (!exceeds(amounts[part], amounts[whole])) continue;
      const actual = `${shown(amounts[part])} of ${shown(amounts[whole])}`;
      this.#find('OT-6', 'PART_EXCEEDS_TOTAL', WARNING, span, `${part} within ${whole}`, actual);
    }
    return amounts;
  }

  #checkAttributes(span: Read): void {
    const { attributes, kind, operation, status } = span;
    for (const key of span.repeatedKeys)
      this.#find('OT-9', 'ATTRIBUTE_REPEATED', INVALID, span, `one ${key}`, 'several');
    const required = REQUIRED.get(operation) ?? (kind === 'inference' ? REQUIRED_OF_MODELS : []);
    for (const name of required) {
      if (attributeText(attributes, ...(OLDER_NAMES[name] ?? []), name) === undefined)
        this.#find('OT-9', 'ATTRIBUTE_MISSING', WARNING, span, name, 'none');
    }
    const error = attributeText(attributes, 'error.type');
    if (error !== undefined && status === 'ok')
      this.#find('OT-7', 'STATUS_DISAGREES', INVALID, span, 'no error.type, since the status is ok', error);
    if (error === undefined && status === 'error')
      this.#find('OT-7', 'ERROR_TYPE_MISSING', WARNING, span, 'error.type', 'none');
  }

  #checkParent(span: Read): void {
    const { traceId = '', parentId } = span;
    if (parentId === undefined || this.#spans.has(idOf(traceId, parentId))) return;
    this.#find('OT-4', 'PARENT_NOT_FOUND', WARNING, span, `span ${parentId}`, 'none in these files');
  }

  /** Tokens of agents' spans that state some, against those of the calls below that no other agent's span is between. */
  #checkTotals(): void {
    const above = this.#agentsAbove();
    const below = new Map<Read, Read[]>();
    for (const span of this.#kept) {
      const agent = span.kind === 'inference' ? above.get(keyOf(span)) : undefined;
      if (agent === undefined) continue;
      const calls = below.get(agent);
      if (calls === undefined) below.set(agent, [span]);
      else calls.push(span);
    }
    for (const [agent, calls] of below) {
      for (const name of ['input_tokens', 'output_tokens']) {
        const sum = sumOf(calls.map(({ amounts }) => amounts[name]));
        const stated = agent.amounts[name];
        if (differ(sum, stated))
          this.#find('OT-10', 'TOTAL_DIFFERS', WARNING, agent, `${name} ${shown(sum)}`, shown(stated));
      }
    }
  }

  /** The nearest agent's span above each span, by trace and span. Each is walked over once, and a circle ends where it began. */
  #agentsAbove(): ReadonlyMap<string, Read | undefined> {
    const agents = new Map(
      this.#kept.flatMap((span) => (span.kind === 'agent' ? [[keyOf(span), span]] : [])),
    );
    const above = new Map<string, Read | undefined>();
    for (const [key] of this.#spans) {
      const path: string[] = [];
      let agent: Read | undefined;
      for (let at: string | undefined = key; at !== undefined && !above.has(at);) {
        path.push(at);
        above.set(at, undefined);
        const { traceId = '', parentId }: Partial<Span> = this.#spans.get(at) ?? {};
        at = parentId === undefined ? undefined : idOf(traceId, parentId);
        if (at === undefined) break;
        agent = agents.get(at) ?? above.get(at);
        if (agent !== undefined) break;
      }
      // From the top down: what is below an agent's span has that one.
      for (const step of path.reverse()) {
        above.set(step, agent);
        agent = agents.get(step) ?? agent;
      }
    }
    return above;
  }

  #find(
    rule: string,
    code: string,
    judged: Pick<HostFinding, 'severity' | 'class'>,
    { item: { at }, statedIds }: Span,
    expected: string,
    actual: string,
    related?: readonly HostPlace[],
  ): void {
    this.#reading.find({ rule, code, ...judged, at, about: statedIds, expected, actual, related });
  }
}

const INVALID = { severity: 'error', class: 'invalid' } as const;
const WARNING = { severity: 'warning', class: 'none' } as const;

const FACTS = [
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
  'gen_ai.response.id',
  'gen_ai.conversation.id',
  'gen_ai.agent.id',
  'gen_ai.agent.name',
  'gen_ai.tool.call.id',
  'gen_ai.tool.type',
  'error.type',
] as const;

const REQUIRED_OF_MODELS = ['gen_ai.operation.name', 'gen_ai.provider.name'];
const REQUIRED: ReadonlyMap<string, readonly string[]> = new Map([
  ['execute_tool', ['gen_ai.tool.name']],
  ['create_agent', ['gen_ai.provider.name']],
  ['invoke_agent', ['gen_ai.provider.name']],
]);

/** Names up to version 1.36 of the conventions. */
const OLDER_NAMES: Readonly<Record<string, readonly string[]>> = {
  'gen_ai.provider.name': ['gen_ai.system'],
};

const TOKENS = [
  ['input_tokens', 'gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens'],
  ['output_tokens', 'gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens'],
  ['cache_read.input_tokens', 'gen_ai.usage.cache_read.input_tokens'],
  ['cache_creation.input_tokens', 'gen_ai.usage.cache_creation.input_tokens'],
  ['reasoning.output_tokens', 'gen_ai.usage.reasoning.output_tokens'],
] as const;

const PARTS = [
  ['cache_read.input_tokens', 'input_tokens'],
  ['cache_creation.input_tokens', 'input_tokens'],
  ['reasoning.output_tokens', 'output_tokens'],
] as const;

/** What a span states, or what it can only be by its other attributes: before version 1.27 of the conventions none was stated. */
function operationOf({ attributes }: Span): string | undefined {
  const stated = attributeText(attributes, 'gen_ai.operation.name');
  if (stated !== undefined) return stated;
  if (attributeText(attributes, 'mcp.method.name') === 'tools/call') return 'execute_tool';
  if (attributeText(attributes, 'gen_ai.provider.name', 'gen_ai.system') === undefined) return undefined;
  const model = attributeText(attributes, 'gen_ai.request.model', 'gen_ai.response.model');
  return model === undefined ? undefined : UNNAMED_INFERENCE;
}

function kindOf(operation: string): Kind {
  if (INFERENCE.includes(operation) || operation === UNNAMED_INFERENCE) return 'inference';
  if (AGENT.includes(operation)) return 'agent';
  return operation === 'execute_tool' ? 'tool' : 'other';
}

function idOf(traceId: string, spanId: string): string {
  return `${traceId}/${spanId}`;
}

function keyOf({ traceId = '', spanId = '' }: Span): string {
  return idOf(traceId, spanId);
}

/** A span that ended without an error was done; one without an end is not known to be. */
function outcomeOf({ attributes, status, end }: Span): 'success' | 'failure' | 'unknown' {
  if (status === 'error' || attributeText(attributes, 'error.type') !== undefined) return 'failure';
  return end === undefined ? 'unknown' : 'success';
}

function toolNameOf({ kind, attributes }: Read): string | undefined {
  if (kind === 'tool') return attributeText(attributes, 'gen_ai.tool.name');
  if (kind !== 'inference') return undefined;
  const model = attributeText(attributes, 'gen_ai.request.model', 'gen_ai.response.model');
  if (model === undefined) return undefined;
  const provider = attributeText(attributes, 'gen_ai.provider.name', 'gen_ai.system');
  return provider === undefined ? `llm.${model}` : `llm.${provider}/${model}`;
}

/** The agent where the span names one, else the service that wrote it. */
function principalFor({ attributes, resource }: Span): string {
  const agent = attributeText(attributes, 'gen_ai.agent.id', 'gen_ai.agent.name');
  if (agent !== undefined) return principalOf('agent', 'otlp', agent);
  const service = attributeText(resource, 'service.name');
  return principalOf('service', 'otlp', ...(service === undefined ? [] : [service]));
}

function firstOf(
  attributes: Attributes,
  names: readonly string[],
): readonly [string, SourceValue | undefined] {
  const name = names.find((each) => attributes.has(each)) ?? '';
  return [name, attributes.get(name)];
}

function digestOf(value: SourceValue | undefined): ReturnType<typeof jcsDigest> {
  return value === undefined || value === null ? undefined : jcsDigest(value);
}

function texts(attributes: Attributes, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = attributeText(attributes, name);
      return text === undefined ? [] : [[name, cut(text)]];
    }),
  );
}

function cut(text: string): string {
  return wellFormed(text.slice(0, MAX_FACT_LENGTH));
}

function shown(amount: Quantity | undefined): string {
  return amount === undefined ? 'none' : formatQuantity(amount);
}
