/** OTLP JSON: spans with the GenAI attributes of OpenTelemetry. README.md says what becomes of each. */

import type { FindingDetails } from '../shared/findings.js';
import { type Code, finding, OTLP_RULES } from './rules.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import { sha256Digest, toDigestText } from '../../base/value/digest.js';
import { formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import {
  checkReadOptions,
  documentsOf,
  membersOf,
  peekDocuments,
  ReadingBuilder,
} from '../shared/reading.js';
import type { Host, HostFile, HostOptions, HostPlace, HostReading, SourceItem } from '../shared/host.js';
import {
  amountFacts,
  differ,
  exceeds,
  metersOf,
  meterText,
  shownAmount,
  type StatedAmounts,
  sumOf,
} from '../shared/usage.js';
import { factText, factTexts, principalOf, toolOf, unitOf, wellFormed } from '../shared/names.js';
import { inTimeOrder } from '../shared/order.js';
import { amountOf, countIn, jcsDigest, listAt, numberTextOf } from '../shared/values.js';
import {
  attributeJson,
  type Attributes,
  attributesAt,
  attributeText,
  readSpan,
  resourceOf,
  type Span,
} from './spans.js';
import { countUsage } from './usage.js';

/** The host OpenTelemetry traces and logs (OTLP) with the GenAI conventions. */
export const otlp: Host = {
  name: 'otlp',
  title: 'OTLP spans with GenAI attributes',
  rules: OTLP_RULES,
  aids: {},
  recognises,
  read,
};

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
  checkReadOptions('otlp.read', options);
  const reader = new SpanReader(options);
  for (const file of files) reader.readFile(file);
  const made = reader.finish();
  return { ...made, claims: inTimeOrder(made.claims) };
}

type Kind = 'inference' | 'tool' | 'agent' | 'other';

const INFERENCE = ['chat', 'generate_content', 'text_completion', 'embeddings'];
/** Of a call of a model whose operation is not stated. */
const UNNAMED_INFERENCE = 'inference';
const AGENT = ['invoke_agent', 'create_agent', 'invoke_workflow'];

interface Read extends Span {
  readonly kind: Kind;
  readonly isAgent: boolean;
  readonly operation: string;
  readonly amounts: StatedAmounts;
  readonly occurredAt: string;
  isRepeated: boolean;
}

class SpanReader {
  readonly #reading: ReadingBuilder;
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
        this.#leaveOutLogs(item);
        this.#reading.drop(item.at, 'unknown', 'NOT_TRACES');
        continue;
      }
      for (const [r, resource] of resources.entries())
        this.#resource({ ...item.at, pointer: `/resourceSpans/${r}` }, resource);
    }
  }

  /** Logs report calls that have spans too, or have none: it is unknown which, and what they used is left out. */
  #leaveOutLogs({ at, value }: SourceItem): void {
    const records = (listAt(value, 'resourceLogs') ?? [])
      .flatMap((resource) => listAt(resource, 'scopeLogs') ?? [])
      .flatMap((scope) => listAt(scope, 'logRecords') ?? []);
    for (const record of records) {
      const attributes = attributesAt(record);
      const amounts = Object.fromEntries(
        TOKENS.map(([name, ...names]) => [
          name,
          countIn(firstOf(attributes, [...names, ...(LOG_NAMES[name] ?? [])])[1]),
        ]),
      );
      const meters = metersOf(unitsOf(amounts));
      if (meters.length === 0) continue;
      const [expected, actual] = ['usage on spans', `${meterText(meters)} in a log`];
      this.#reading.find(finding('USAGE_IN_LOG', at, { expected, actual }));
      this.#reading.leaveOut({ at, reason: 'USAGE_IN_LOG', meters });
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
    for (const span of this.#kept) this.#checkParent(span);
    this.#countUsage();
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
      this.#find('ID_INVALID', span, { actual: span.statedIds });
      this.#leaveOut(span, 'ID_INVALID', this.#amounts(span));
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
      this.#leaveOut(span, 'TIME_NOT_STATED', this.#amounts(span));
      this.#reading.drop(at, type, 'TIME_NOT_STATED');
      return;
    }
    if (span.start !== undefined && span.end !== undefined && compareTimestamps(span.end, span.start) < 0)
      this.#find('END_BEFORE_START', span, { expected: `from ${span.start}`, actual: span.end });
    const amounts = this.#amounts(span);
    const isAgent = kind === 'agent';
    const kept: Read = { ...span, kind, isAgent, operation, amounts, occurredAt, isRepeated: false };
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
      this.#find('DUPLICATE_SPAN', span, { related: [before.item.at] });
      this.#leaveOut(span, 'DUPLICATE_SPAN', this.#amounts(span));
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
      span.isRepeated = true;
      this.#reading.item({ at, type: factText(operation), fate: 'repeated', reason: 'CALL_REPEATED' });
      return;
    }
    const paramsDigest = jcsDigest(attributeJson(attributes, 'gen_ai.tool.call.arguments') ?? undefined);
    const outcome = outcomeOf(span);
    const facts: JsonObject = {
      trace_id: span.traceId ?? '',
      span_id: span.spanId ?? '',
      ...(span.parentId === undefined ? {} : { parent_span_id: factText(span.parentId) }),
      operation: factText(operation),
      ...(tool === undefined ? {} : { tool_name: toolOf(tool) }),
      ...factTexts(FACTS, (name) => attributeText(attributes, name)),
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
    this.#reading.item({ at, type: factText(operation), fate: 'evidence' });
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
    if (name !== tool)
      this.#find('DUPLICATE_CALL', span, {
        expected: `a call of ${name ?? 'none'}`,
        actual: tool ?? 'none',
        related: [before.item.at],
      });
    return true;
  }

  #amounts(span: Span): StatedAmounts {
    const amounts: Record<string, Quantity | undefined> = {};
    for (const [name, ...attributes] of TOKENS) {
      const [attribute, value] = firstOf(span.attributes, attributes);
      if (value === undefined) continue;
      amounts[name] = countIn(value);
      if (amounts[name] === undefined)
        this.#find('AMOUNT_INVALID', span, { actual: `${attribute} ${numberTextOf(value)}` });
    }
    for (const [part, whole] of PARTS) {
      if (!exceeds(amounts[part], amounts[whole])) continue;
      const actual = `${shownAmount(amounts[part])} of ${shownAmount(amounts[whole])}`;
      this.#find('PART_EXCEEDS_TOTAL', span, { expected: `${part} within ${whole}`, actual });
    }
    return amounts;
  }

  #checkAttributes(span: Read): void {
    const { attributes, kind, operation, status } = span;
    for (const key of span.repeatedKeys) this.#find('ATTRIBUTE_REPEATED', span, { expected: `one ${key}` });
    const required = REQUIRED.get(operation) ?? (kind === 'inference' ? REQUIRED_OF_MODELS : []);
    for (const name of required)
      if (attributeText(attributes, ...(OLDER_NAMES[name] ?? []), name) === undefined)
        this.#find('ATTRIBUTE_MISSING', span, { expected: name });
    const error = attributeText(attributes, 'error.type');
    if (error !== undefined && status === 'ok') this.#find('STATUS_DISAGREES', span, { actual: error });
    if (error === undefined && status === 'error') this.#find('ERROR_TYPE_MISSING', span);
  }

  #checkParent(span: Read): void {
    const { traceId = '', parentId } = span;
    if (parentId === undefined || this.#spans.has(idOf(traceId, parentId))) return;
    this.#find('PARENT_NOT_FOUND', span, { expected: `span ${parentId}` });
  }

  /** Says which calls there were, and what each used: once, however many spans report it. */
  #countUsage(): void {
    const using = this.#kept.filter(({ amounts }) => hasUsage(amounts));
    const [above, agentAbove] = [
      this.#nearestAbove(using),
      this.#nearestAbove(this.#kept.filter(({ isAgent }) => isAgent)),
    ];
    const usage = countUsage(
      using,
      (span) => above.get(keyOf(span)),
      (span) => agentAbove.get(keyOf(span)),
    );
    for (const { span, differences } of [...usage.values()].reverse()) {
      for (const { name, own, below, rest } of differences) {
        this.#find('TOTAL_DIFFERS', span, {
          expected: `${name} ${shownAmount(below)}`,
          actual: shownAmount(own),
        });
        if (rest !== undefined) this.#leaveOut(span, 'TOTAL_DIFFERS', { [name]: rest });
      }
    }
    // From the outermost on: what only reports one call again adds its ids to it, and what else it states of it.
    const said = new Map<Read, { readonly callIds: string[]; readonly amounts: StatedAmounts }>();
    const isCall = new Set<Read>();
    for (const span of [...usage.values()].reverse().map((each) => each.span)) {
      const { counted = {}, below = [] } = usage.get(span) ?? {};
      const amounts = { ...counted, ...said.get(span)?.amounts };
      const callIds = [...callIdsOf(span), ...(said.get(span)?.callIds ?? [])];
      const [only, ...more] = below;
      const tellsOfCall = span.kind === 'inference' || span.kind === 'other';
      if (tellsOfCall && only !== undefined && only.kind !== 'tool' && more.length === 0) {
        said.set(only, { callIds, amounts });
        continue;
      }
      said.set(span, { callIds, amounts });
      const isOuter = below.some(({ kind }) => kind !== 'tool');
      if (isOuter ? isMore(amounts) : hasUsage(amounts) || span.kind === 'inference') isCall.add(span);
    }
    const answers = new Map<string, { readonly span: Read; readonly callIds: string[] }>();
    for (const span of this.#kept) {
      const isOwn = span.kind === 'tool' || (span.kind === 'inference' && !usage.has(span));
      if (span.isRepeated || !(isOwn || isCall.has(span))) continue;
      const { callIds: all = callIdsOf(span), amounts = {} } = said.get(span) ?? {};
      const callIds = [...new Set(all)];
      if (!this.#isAnswerAgain(span, amounts, callIds, answers)) this.#observe(span, amounts, callIds);
    }
    for (const span of this.#kept) {
      const { counted, below = [] } = usage.get(span) ?? {};
      if (span.isRepeated && counted !== undefined && hasUsage(counted)) {
        this.#find('CALL_REPEATED', span, { actual: meterText(metersOf(unitsOf(counted))) });
        this.#leaveOut(span, 'CALL_REPEATED', counted);
      }
      if (below.length === 0) this.#leaveOutUnknown(span);
    }
  }

  /** Two spans of one answer that do not lie in one another, as a caller and a gateway write them. */
  #isAnswerAgain(
    span: Read,
    counted: StatedAmounts,
    callIds: string[],
    answers: Map<string, { readonly span: Read; readonly callIds: string[] }>,
  ): boolean {
    const answer = span.kind === 'tool' ? undefined : attributeText(span.attributes, 'gen_ai.response.id');
    if (answer === undefined || !hasUsage(counted)) return false;
    const before = answers.get(answer);
    if (before === undefined) {
      answers.set(answer, { span, callIds });
      return false;
    }
    const isSame = isSameUsage(before.span.amounts, span.amounts) && overlap(before.span, span);
    const code = isSame ? 'RESPONSE_REPEATED' : 'RESPONSE_ID_REUSED';
    const actual = isSame ? `${meterText(metersOf(unitsOf(counted)))} once more` : 'another response';
    this.#find(code, span, { actual, related: [before.span.item.at] });
    if (!isSame) return false;
    this.#leaveOut(span, code, counted);
    // The observation has the same list.
    before.callIds.push(...callIds.filter((id) => !before.callIds.includes(id)));
    return true;
  }

  #observe(span: Read, counted: StatedAmounts, callIds: readonly string[]): void {
    const { item, kind, attributes } = span;
    this.#reading.observe({
      at: item.at,
      callIds,
      tool: kind === 'tool' ? toolNameOf(span) : modelNameOf(span),
      paramsDigest: jcsDigest(attributeJson(attributes, 'gen_ai.tool.call.arguments') ?? undefined),
      outcome: outcomeOf(span),
      meters: metersOf(unitsOf(counted)),
      occurredAt: span.occurredAt,
    });
  }

  /** Usage in units that the conventions do not have, such as costs. */
  #leaveOutUnknown(span: Read): void {
    const meters = [...span.attributes].flatMap(([name, value]) => {
      if (!name.startsWith(USAGE) || KNOWN_USAGE.has(name) || !(value instanceof SourceNumber)) return [];
      const unit = name.slice(USAGE.length);
      const amount = amountOf(value.text);
      // Parts of what is counted, and the sum of it.
      if (amount === undefined || unit === '' || unit.startsWith('details.')) return [];
      const { input_tokens: input, output_tokens: output } = span.amounts;
      const isSum = unit === 'total_tokens' && !differ(sumOf([input, output]), amount);
      return isSum && (input !== undefined || output !== undefined) ? [] : [{ unit: unitOf(unit), amount }];
    });
    if (meters.length === 0) return;
    this.#find('UNIT_UNKNOWN', span, { actual: meterText(meters) });
    this.#reading.leaveOut({ at: span.item.at, reason: 'UNIT_UNKNOWN', meters });
  }

  #leaveOut({ item: { at } }: Span, reason: string, amounts: StatedAmounts): void {
    this.#reading.leaveOut({ at, reason, meters: metersOf(unitsOf(amounts)) });
  }

  /** The nearest of some spans above each span, by trace and span. Each is walked over once, and a circle ends where it began. */
  #nearestAbove(spans: readonly Read[]): ReadonlyMap<string, Read | undefined> {
    const wanted = new Map(spans.map((span) => [keyOf(span), span]));
    const above = new Map<string, Read | undefined>();
    for (const [key] of this.#spans) {
      const path: string[] = [];
      let nearest: Read | undefined;
      for (let at: string | undefined = key; at !== undefined && !above.has(at);) {
        path.push(at);
        above.set(at, undefined);
        const { traceId = '', parentId }: Partial<Span> = this.#spans.get(at) ?? {};
        at = parentId === undefined ? undefined : idOf(traceId, parentId);
        if (at === undefined) break;
        nearest = wanted.get(at) ?? above.get(at);
        if (nearest !== undefined) break;
      }
      // From the top down: what is below a wanted one has that.
      for (const step of path.reverse()) {
        above.set(step, nearest);
        nearest = wanted.get(step) ?? nearest;
      }
    }
    return above;
  }

  #find(code: Code, { item, statedIds }: Span, details?: FindingDetails): void {
    this.#reading.find(finding(code, item.at, { about: statedIds, ...details }));
  }
}

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

/** As logs of programs name them that have no attributes of the conventions. */
const LOG_NAMES: Readonly<Record<string, readonly string[]>> = {
  input_tokens: ['input_token_count'],
  output_tokens: ['output_token_count'],
  'cache_read.input_tokens': ['cached_content_token_count'],
  'reasoning.output_tokens': ['thoughts_token_count'],
};

const PARTS = [
  ['cache_read.input_tokens', 'input_tokens'],
  ['cache_creation.input_tokens', 'input_tokens'],
  ['reasoning.output_tokens', 'output_tokens'],
] as const;

/** All usage, of which conventions and their older versions have some. */
const USAGE = 'gen_ai.usage.';
const KNOWN_USAGE: ReadonlySet<string> = new Set(TOKENS.flatMap(([, ...attributes]) => attributes));

/** The meters of the amounts, by their names in other sources. */
function unitsOf(amounts: StatedAmounts): StatedAmounts {
  return {
    'tokens.input': amounts['input_tokens'],
    'tokens.output': amounts['output_tokens'],
    'tokens.input.cache_read': amounts['cache_read.input_tokens'],
    'tokens.input.cache_creation': amounts['cache_creation.input_tokens'],
    'tokens.output.reasoning': amounts['reasoning.output_tokens'],
  };
}

function hasUsage(amounts: StatedAmounts): boolean {
  return Object.values(amounts).some((amount) => amount !== undefined);
}

/** Whether there is an amount that is not zero. */
function isMore(amounts: StatedAmounts): boolean {
  return Object.values(amounts).some((amount) => amount !== undefined && formatQuantity(amount) !== '0');
}

function isSameUsage(one: StatedAmounts, other: StatedAmounts): boolean {
  return TOKENS.every(([name]) => shownAmount(one[name]) === shownAmount(other[name]));
}

/** Whether there is a moment at which both went on. */
function overlap(one: Read, other: Read): boolean {
  const isBy = (a: Read, b: Read): boolean => compareTimestamps(a.occurredAt, b.end ?? b.occurredAt) <= 0;
  return isBy(one, other) && isBy(other, one);
}

function callIdsOf({ kind, attributes, spanId }: Read): string[] {
  const ids = [
    attributeText(attributes, 'gen_ai.tool.call.id'),
    kind === 'tool' ? undefined : attributeText(attributes, 'gen_ai.response.id'),
    spanId,
  ];
  return ids.filter((each) => each !== undefined);
}

/** What a span states, or what it can only be by its other attributes: before version 1.27 of the conventions none was stated. */
function operationOf({ attributes }: Span): string | undefined {
  const stated = attributeText(attributes, 'gen_ai.operation.name');
  if (stated !== undefined) return stated;
  if (attributeText(attributes, 'mcp.method.name') === 'tools/call') return 'execute_tool';
  // Whatever used tokens called a model.
  if ([...attributes.keys()].some((name) => name.startsWith(USAGE))) return UNNAMED_INFERENCE;
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

function toolNameOf(span: Read): string | undefined {
  if (span.kind === 'tool') return attributeText(span.attributes, 'gen_ai.tool.name');
  return span.kind === 'inference' ? modelNameOf(span) : undefined;
}

function modelNameOf({ attributes }: Read): string | undefined {
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
