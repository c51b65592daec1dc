/**
 * Files of the canonical pipeline: lines that are events, and lines that are traces of stages, in the form that README.md
 * defines. What the handlers gave is merged again, and checked against what the trace says came of the stage.
 */

import { equalNumberTexts, parseDecimal } from '../../base/json/decimal.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { FindingDetails } from '../shared/findings.js';
import type { Checker, HostFile, HostOptions, HostPlace, HostReading, SourceItem } from '../shared/host.js';
import { checkReadOptions, ReadingBuilder } from '../shared/reading.js';
import { listAt, numberAt, objectAt, textAt, timeOf, timeOfText, valueAt } from '../shared/values.js';
import {
  ENVELOPE,
  HANDLER_CLASSES,
  type HandlerClass,
  type MemberKind,
  PIPELINE_FAMILIES,
  type StageRule,
} from './families.js';
import { type Code, finding, PIPELINE_RULES } from './pipeline-rules.js';
import { isSame } from './same.js';
import { inFileOrder } from '../shared/order.js';
import {
  addField,
  bestOf,
  choosesRoute,
  comparePlaces,
  failsClosed,
  Followers,
  lacksBackend,
  MAX_HANDLERS,
  needsTrust,
  patchFields,
  RESULTS,
  STAGE_TRACE,
} from './stage-rules.js';

/** Checks the stages of a pipeline of OpenClaw. */
export const openclawPipeline: Checker = {
  name: 'openclaw-pipeline',
  title: 'OpenClaw canonical event pipeline',
  rules: PIPELINE_RULES,
  aids: {},
  check,
};

function check(
  files: readonly HostFile[],
  options: HostOptions = {},
): Pick<HostReading, 'items' | 'findings'> {
  checkReadOptions('openclaw-pipeline.check', options);
  const pipeline = new Pipeline(new ReadingBuilder(options));
  for (const file of files) pipeline.read(file);
  return inFileOrder(pipeline.finish(), files);
}

interface Known {
  readonly at: HostPlace;
  readonly value: SourceObject;
}

class Pipeline {
  readonly #builder: ReadingBuilder;
  readonly #events = new Map<string, Known>();
  readonly #stages: (SourceItem & { readonly value: SourceObject })[] = [];
  readonly #order: { readonly at: HostPlace; readonly value: SourceObject; readonly isStage: boolean }[] = [];
  readonly #cancelled = new Set<SourceObject>();

  constructor(builder: ReadingBuilder) {
    this.#builder = builder;
  }

  read(file: HostFile): void {
    for (const item of this.#builder.lines(file)) {
      const { at, value } = item;
      if (!(value instanceof SourceObject)) {
        this.#builder.drop(at, 'unknown', 'NOT_AN_OBJECT');
        continue;
      }
      if (textAt(value, 'trace') === STAGE_TRACE) {
        this.#stages.push({ ...item, value });
        this.#order.push({ at, value, isStage: true });
        this.#builder.item({ at, type: 'stage', fate: 'evidence' });
      } else if (value.has('eventId') || value.has('family')) this.#event(at, value);
      else {
        this.#find('UNKNOWN_ITEM', at, { expected: `an event, or a trace "${STAGE_TRACE}"` });
        this.#builder.drop(at, 'unknown', 'UNKNOWN_ITEM');
      }
    }
  }

  finish(): Pick<HostReading, 'items' | 'findings'> {
    for (const stage of this.#stages) this.#stage(stage.at, stage.value);
    this.#checkDownstream();
    return this.#builder.finish();
  }

  #event(at: HostPlace, value: SourceObject): void {
    const id = textAt(value, 'eventId');
    const known = id === undefined ? undefined : this.#events.get(id);
    if (known !== undefined && isSame(known.value, value)) {
      this.#builder.item({ at, type: 'event', fate: 'repeated', reason: 'SAME_EVENT' });
      return;
    }
    this.#builder.item({ at, type: 'event', fate: 'evidence' });
    this.#checkEnvelope(at, value);
    if (known !== undefined) {
      this.#find('EVENT_CHANGED', at, { about: id, expected: 'the same event', related: [known.at] });
      return;
    }
    if (id !== undefined) this.#events.set(id, { at, value });
    this.#order.push({ at, value, isStage: false });
  }

  #checkEnvelope(at: HostPlace, value: SourceObject): void {
    const about = textAt(value, 'eventId');
    for (const [member, kind] of Object.entries(ENVELOPE)) {
      const found = value.get(member);
      if (found === undefined) this.#find('MEMBER_MISSING', at, { about, expected: member });
      else if (!MEMBERS[kind](found))
        this.#find('MEMBER_INVALID', at, { about, expected: member, actual: typeNameOf(found) });
    }
    for (const member of value.keys())
      if (!Object.hasOwn(ENVELOPE, member)) this.#find('MEMBER_UNKNOWN', at, { about, actual: member });
    const family = textAt(value, 'family');
    if (family !== undefined && !PIPELINE_FAMILIES.has(family))
      this.#find('FAMILY_UNKNOWN', at, { about, actual: family });
  }

  #stage(at: HostPlace, trace: SourceObject): void {
    const name = textAt(trace, 'stage') ?? '';
    const about = textAt(trace, 'eventId') ?? name;
    if (!PIPELINE_FAMILIES.has(name)) this.#find('FAMILY_UNKNOWN', at, { about, actual: name });
    const rule = PIPELINE_FAMILIES.get(name);
    this.#checkEventOf(at, trace, name, about);
    const mode = textAt(trace, 'mode');
    if (mode === undefined || (rule !== undefined && mode !== rule.mode))
      this.#find('MODE_WRONG', at, { about, expected: rule?.mode ?? 'a mode', actual: mode ?? 'none' });
    const policy = textAt(trace, 'failPolicy');
    if (policy !== 'open' && policy !== 'closed')
      this.#find('POLICY_NOT_STATED', at, { about, actual: policy ?? 'none' });
    const all = listAt(trace, 'handlers');
    if (all === undefined || all.length > MAX_HANDLERS) {
      this.#find(all === undefined ? 'HANDLERS_MISSING' : 'TOO_MANY_HANDLERS', at, {
        about,
        expected: `at most ${MAX_HANDLERS} handlers`,
        actual: all === undefined ? 'none stated' : `${all.length}`,
      });
      return;
    }
    const handlers = all.map((value, index) => handlerOf(value, index, policy === 'closed'));
    const stage: Stage = {
      at,
      trace,
      name,
      about,
      rule,
      mode: rule?.mode ?? mode ?? 'sequential',
      handlers,
      isClosed: policy === 'closed',
    };
    for (const handler of handlers) this.#checkHandler(stage, handler);
    this.#checkOrder(stage);
    const working = this.#mutated(stage, applied(handlers));
    const decided = this.#checkDecisions(stage, working);
    if (decided) this.#cancelled.add(trace);
    // What a cancelled stage made of its object goes nowhere.
    this.#checkMerges(stage, working, decided);
  }

  #checkEventOf(at: HostPlace, trace: SourceObject, name: string, about: string): void {
    const id = textAt(trace, 'eventId');
    const event = id === undefined ? undefined : this.#events.get(id);
    if (event === undefined) {
      this.#find('EVENT_NOT_FOUND', at, { about });
      return;
    }
    const family = textAt(event.value, 'family');
    if (family !== name)
      this.#find('FAMILY_DIFFERS', at, { about, expected: family, actual: name, related: [event.at] });
    const after = objectAt(trace, 'event');
    if (after !== undefined && !isSame(after, event.value))
      this.#find('EVENT_CHANGED', at, { about, expected: 'the event as it was', related: [event.at] });
  }

  #checkHandler({ at, about, rule, mode, name }: Stage, handler: Handler): void {
    const place = handler.placeIn(at);
    const { kind } = handler;
    if (kind === undefined) {
      const expected = `one of ${HANDLER_CLASSES.join(', ')}`;
      this.#find('CLASS_INVALID', place, { about, expected, actual: handler.classText });
      return;
    }
    if (rule !== undefined && !rule.classes.includes(kind))
      this.#find('CLASS_NOT_ALLOWED', place, { about, expected: rule.classes.join(', '), actual: kind });
    if (handler.mode !== undefined && handler.mode !== mode)
      this.#find('MODE_WRONG', place, { about, expected: mode, actual: handler.mode });
    if (handler.isAsync && mode === 'sync-sequential' && !handler.isRejected)
      this.#find('ASYNC_IN_SYNC_STAGE', place, { about, actual: handler.id });
    if (handler.isRejected && handler.result !== undefined)
      this.#find('REJECTED_WITH_RESULT', place, { about, actual: handler.id });
    const gave = valueAt(handler.value, 'result') ?? undefined;
    if (gave === undefined) return;
    if (kind === 'observer') {
      this.#find('OBSERVER_GAVE', place, { about, actual: handler.id });
      return;
    }
    for (const [member, of] of Object.entries(RESULTS)) {
      if (!handler.has(member) || of === kind) continue;
      const decides = of === 'veto' || of === 'resolver';
      this.#find(decides ? 'DECIDED_BY_OTHERS' : 'RESULT_OF_OTHER_CLASS', place, {
        about,
        expected: `${member} of a ${of} only`,
        actual: kind,
      });
    }
    const fields = [...keysOf(handler.result, 'patch'), ...keysOf(handler.result, 'add')];
    if (fields.some((field) => choosesRoute(name, field)))
      this.#find('ROUTE_CHOSEN', place, { about, actual: handler.id });
    if (kind === 'veto' && !['allow', 'cancel'].includes(textAt(handler.result, 'decision') ?? ''))
      this.#find('DECISION_INVALID', place, { about, actual: textAt(handler.result, 'decision') ?? 'none' });
  }

  #checkOrder({ at, about, handlers, mode }: Stage): void {
    const seen = new Set<string>();
    for (const [index, handler] of handlers.entries()) {
      const name = `${handler.extension}\n${handler.contribution}`;
      if (seen.has(name)) this.#find('HANDLER_REPEATED', handler.placeIn(at), { about, actual: handler.id });
      seen.add(name);
      const before = handlers[index - 1];
      if (before === undefined) continue;
      if (comparePlaces(before, handler, isLess) > 0)
        this.#find('ORDER_WRONG', handler.placeIn(at), {
          about,
          expected: `before ${before.id}`,
          actual: `${handler.id} after it`,
        });
      if (
        mode !== 'parallel' &&
        before.endedAt !== undefined &&
        handler.startedAt !== undefined &&
        isLess(handler.startedAt, before.endedAt)
      )
        this.#find('HANDLERS_OVERLAP', handler.placeIn(at), {
          about,
          expected: `not before ${before.endedAt}`,
          actual: handler.startedAt,
        });
    }
  }

  /** Vetoes, resolvers and errors. Whether the stage is cancelled by what its handlers did. */
  #checkDecisions(stage: Stage, working: SourceObject): boolean {
    const { at, trace, about, handlers, isClosed, name } = stage;
    const ran = handlers.filter((handler) => !handler.isSkipped);
    const isTerminal = isClosed || name === 'transcript.message.writing';
    const veto = ran.findIndex(
      (handler) =>
        handler.kind === 'veto' && handler.isApplied && textAt(handler.result, 'decision') === 'cancel',
    );
    const failure = ran.findIndex((handler) => handler.isClosed && handler.error !== undefined);
    if (veto >= 0 && isTerminal && ran.length > veto + 1)
      this.#find('RAN_AFTER_CANCEL', ran[veto + 1]!.placeIn(at), { about, actual: ran[veto + 1]!.id });
    if (failure >= 0 && ran.length > failure + 1 && (veto < 0 || failure < veto))
      this.#find('RAN_AFTER_FAILURE', ran[failure + 1]!.placeIn(at), { about, actual: ran[failure + 1]!.id });
    const decision = textAt(trace, 'output', 'decision');
    const chosen = { provider: working.get('provider'), selected: selectedOf(ran) };
    const hasNoBackend =
      textAt(trace, 'selection') === 'backend' &&
      lacksBackend(name, chosen, listAt(trace, 'providers'), isSame);
    if (veto >= 0) {
      if (decision !== 'cancel') this.#find('CANCEL_IGNORED', at, { about, actual: decision ?? 'none' });
    } else if (failure >= 0) {
      if (decision !== 'cancel') this.#find('FAILURE_IGNORED', at, { about, actual: decision ?? 'none' });
    } else if (hasNoBackend) {
      if (decision !== 'cancel') this.#find('NO_BACKEND', at, { about, actual: decision ?? 'none' });
    } else if (decision === 'cancel') {
      const hadError = ran.some(({ error }) => error !== undefined);
      this.#find(hadError ? 'FAILED_CLOSED' : 'CANCELLED_BY_NOBODY', at, { about });
    }
    return veto >= 0 || failure >= 0 || hasNoBackend;
  }

  #checkMerges(stage: Stage, working: SourceObject, isCancelled: boolean): void {
    const { at, trace, about, handlers } = stage;
    const context = this.#augmented(stage, applied(handlers));
    const output = objectAt(trace, 'output');
    if (output === undefined) {
      this.#find('OUTPUT_MISSING', at, { about });
      return;
    }
    if (isCancelled) return;
    const said = valueAt(output, 'context');
    if (said !== undefined && !isSame(said, context)) this.#find('CONTEXT_DIFFERS', at, { about });
    const left = valueAt(output, 'working');
    if (left !== undefined && !isSame(left, working)) this.#find('WORKING_DIFFERS', at, { about });
    const best = selectedOf(handlers);
    const selected = valueAt(output, 'selected') ?? undefined;
    if (!isSame(best, selected))
      this.#find(best === undefined ? 'SELECTED_BY_NOBODY' : 'SELECTED_OTHER', at, {
        about,
        expected: typeof best === 'string' ? best : best === undefined ? 'none' : 'the best candidate',
        actual: typeof selected === 'string' ? selected : typeNameOf(selected),
      });
  }

  #augmented({ at, trace, about }: Stage, applied: readonly Handler[]): SourceObject {
    const context = new Map(objectAt(trace, 'input', 'context')?.entries() ?? []);
    const replaceable = new Set(
      (listAt(trace, 'replaceable') ?? []).filter((field) => typeof field === 'string'),
    );
    for (const handler of applied) {
      if (handler.kind !== 'augmenter') continue;
      for (const [field, value] of objectAt(handler.result, 'add')?.entries() ?? [])
        if (!addField<SourceValue>(context, field, value, replaceable.has(field), isSame))
          this.#find('REPLACED', handler.placeIn(at), { about, actual: field });
    }
    return new SourceObject(context);
  }

  #mutated({ at, trace, about, name }: Stage, applied: readonly Handler[]): SourceObject {
    let working = new Map(objectAt(trace, 'input', 'working')?.entries() ?? []);
    const overridden = new Set<string>();
    for (const handler of applied) {
      if (handler.kind !== 'mutator') continue;
      const sees = objectAt(handler.value, 'sees');
      if (sees !== undefined && !isSame(sees, new SourceObject(working)))
        this.#find('SEES_OTHER', handler.placeIn(at), { about });
      const patch = objectAt(handler.result, 'patch')?.entries() ?? [];
      for (const [field] of patch)
        if (needsTrust(name, field) && !handler.isTrusted)
          this.#find('MUTATOR_NOT_TRUSTED', handler.placeIn(at), { about, actual: handler.id });
      working = patchFields<SourceValue>(name, working, patch, overridden);
    }
    return new SourceObject(working);
  }

  /** OC-9.15, in the order of the files. */
  #checkDownstream(): void {
    const followers = new Followers<HostPlace>();
    for (const { at, value, isStage } of this.#order) {
      const event = isStage ? this.#events.get(textAt(value, 'eventId') ?? '')?.value : value;
      const correlation = textAt(event, 'correlationId');
      if (event === undefined || correlation === undefined) continue;
      const subject = subjectOf(event);
      if (isStage) {
        const stage = textAt(value, 'stage') ?? '';
        followers.ended(stage, correlation, subject, at, this.#cancelled.has(value));
        continue;
      }
      const wrong = followers.follow(textAt(value, 'family') ?? '', correlation, subject);
      if (wrong !== undefined)
        this.#find('FOLLOWS_CANCEL', at, { about: textAt(value, 'eventId'), related: [wrong.cancelledAt] });
    }
  }

  #find(code: Code, at: HostPlace, details?: FindingDetails): void {
    this.#builder.find(finding(code, at, details));
  }
}

/** What an event is about, within its correlation: a call, a message. */
function subjectOf(event: SourceObject): string | undefined {
  return textAt(event, 'payload', 'toolCallId') ?? textAt(event, 'messageRef');
}

interface Stage {
  readonly at: HostPlace;
  readonly trace: SourceObject;
  readonly name: string;
  readonly about: string;
  readonly rule: StageRule | undefined;
  readonly mode: string;
  readonly handlers: readonly Handler[];
  readonly isClosed: boolean;
}

interface Handler {
  readonly value: SourceValue;
  readonly kind: HandlerClass | undefined;
  readonly classText: string;
  readonly mode: string | undefined;
  readonly priority: string;
  readonly extension: string;
  readonly contribution: string;
  readonly id: string;
  readonly isAsync: boolean;
  readonly isRejected: boolean;
  readonly isSkipped: boolean;
  readonly isTrusted: boolean;
  /** Whether an error of it ends the stage. */
  readonly isClosed: boolean;
  readonly isApplied: boolean;
  readonly result: SourceObject | undefined;
  readonly error: SourceValue | undefined;
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
  has(member: string): boolean;
  placeIn(at: HostPlace): HostPlace;
}

function handlerOf(value: SourceValue, index: number, stageFailsClosed: boolean): Handler {
  const classText = textAt(value, 'class') ?? typeNameOf(valueAt(value, 'class'));
  const kind = HANDLER_CLASSES.find((each) => each === textAt(value, 'class'));
  const extension = textAt(value, 'extensionId') ?? '';
  const contribution = textAt(value, 'contributionId') ?? '';
  const error = valueAt(value, 'error') ?? undefined;
  const result = objectAt(value, 'result');
  const isRejected = valueAt(value, 'rejected') === true;
  const isSkipped = valueAt(value, 'skipped') === true;
  const declared = valueAt(value, 'failClosed');
  return {
    ...{ value, kind, classText, extension, contribution, error, result, isRejected, isSkipped },
    mode: textAt(value, 'mode'),
    priority: numberAt(value, 'priority') ?? '0',
    id: `${extension}/${contribution}`,
    isAsync: valueAt(value, 'async') === true,
    isTrusted: valueAt(value, 'trusted') === true,
    isClosed: failsClosed(
      kind,
      typeof declared === 'boolean' ? declared : undefined,
      textAt(value, 'purpose'),
      stageFailsClosed,
    ),
    isApplied: error === undefined && !isRejected && !isSkipped && result !== undefined,
    startedAt: numberAt(value, 'startedAt'),
    endedAt: numberAt(value, 'endedAt'),
    has: (member) => result?.has(member) === true,
    placeIn: (at) => ({ ...at, pointer: `/handlers/${index}` }),
  };
}

function applied(handlers: readonly Handler[]): readonly Handler[] {
  return handlers.filter(({ isApplied }) => isApplied);
}

/** The target that is to be selected; undefined where there is no valid candidate. */
function selectedOf(handlers: readonly Handler[]): SourceValue | undefined {
  const candidates = applied(handlers)
    .filter(({ kind }) => kind === 'resolver')
    .flatMap(({ result }) => listAt(result, 'candidates') ?? [])
    .filter((each) => valueAt(each, 'valid') !== false && valueAt(each, 'target') !== undefined)
    .map((each) => ({
      target: valueAt(each, 'target'),
      isExplicit: valueAt(each, 'explicit') === true,
      rank: numberAt(each, 'rank') ?? '0',
    }));
  return bestOf(candidates, isLess)?.target;
}

/** Exactly, whatever the exponent. */
function isLess(a: string, b: string): boolean {
  const [x, y] = [parseDecimal(a), parseDecimal(b)];
  const signs = [signOf(x), signOf(y)] as const;
  if (signs[0] !== signs[1]) return signs[0] < signs[1];
  if (signs[0] === 0) return false;
  const [p, q] = [x.digits.length + x.exponent, y.digits.length + y.exponent];
  const isSmaller =
    p !== q ? p < q : x.digits.padEnd(y.digits.length, '0') < y.digits.padEnd(x.digits.length, '0');
  if (equalNumberTexts(a, b)) return false;
  return signs[0] > 0 ? isSmaller : !isSmaller;
}

function signOf({ negative, digits }: ReturnType<typeof parseDecimal>): number {
  return digits === '' ? 0 : negative ? -1 : 1;
}

function keysOf(value: SourceValue | undefined, member: string): readonly string[] {
  return objectAt(value, member)?.keys() ?? [];
}

type IsRight = (value: SourceValue) => boolean;

const isText: IsRight = (value) => typeof value === 'string' && value !== '';
const isTextOrNull: IsRight = (value) => value === null || isText(value);

const MEMBERS: Readonly<Record<MemberKind, IsRight>> = {
  text: isText,
  name: isTextOrNull,
  ref: (value) => isTextOrNull(value) || value instanceof SourceObject,
  time: (value) =>
    value instanceof SourceNumber
      ? timeOf(value.text, 'ms') !== undefined
      : typeof value === 'string' && timeOfText(value) !== undefined,
  any: () => true,
  object: (value) => value === null || value instanceof SourceObject,
  boolean: (value) => typeof value === 'boolean',
};

function typeNameOf(value: SourceValue | undefined): string {
  if (value === undefined) return 'none';
  if (value === null) return 'null';
  if (value instanceof SourceNumber) return 'a number';
  if (value instanceof SourceObject) return 'an object';
  return Array.isArray(value) ? 'an array' : typeof value === 'string' ? 'a text' : `${typeof value}`;
}
