/**
 * The canonical pipeline as it runs: contributions are registered for stages, and an event is put through the stage of its family. What
 * comes of a stage is merged by the rules that `check` holds its trace to. Handlers run in this process: what they return, how long they
 * take and when they fail is bounded here; what else they do is not.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { NorthrootError } from '../../../base/error.js';
import { MAX_DEPTH } from '../../../base/json/scan.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { checkOptions, type OptionTypes } from '../../../base/options.js';
import { HANDLER_CLASSES, type HandlerClass, PIPELINE_FAMILIES, type StageRule } from '../families.js';
import {
  addField,
  bestOf,
  Followers,
  forgetOldest,
  lacksBackend,
  MAX_HANDLERS,
  patchFields,
  STAGE_TRACE,
} from '../stage-rules.js';
import {
  checkTimeout,
  compareRegistered,
  type Contribution,
  type Registered,
  ruleOf,
  type StageView,
  toRegistered,
} from './contribution.js';
import {
  copyJson,
  createEvent,
  deepFreeze,
  digestOfEvent,
  type EventInit,
  type FrozenJson,
  type FrozenObject,
  keyOfId,
  type PipelineEvent,
  subjectOfEvent,
} from './event.js';
import { type Candidate, HandlerFault, isFault, PROMPT_LISTS, readResult, TRACE_DEPTH } from './result.js';

export interface ContributionName {
  readonly extensionId: string;
  readonly contributionId: string;
}

/** A trace of a stage, as ../README.md defines it. */
export type StageTrace = Readonly<JsonObject>;

/** What did not go as it should, and stopped nothing that goes on. */
export interface StageProblem {
  /**
   * Of a handler: `HANDLER_FAILED`, `HANDLER_TIMEOUT`, `ASYNC_RESULT`, `RESULT_INVALID`, `RESULT_TOO_LARGE`, `PATCH_NOT_ALLOWED`,
   * `NOT_TRUSTED`; `RESULT_IGNORED` of an observer; `FIELD_KEPT` of an augmenter that would have replaced a field. Of the host:
   * `RECORDING_FAILED`, `GATE_FAILED`, and what the gate's stages say.
   */
  readonly code: string;
  readonly stage: string;
  readonly eventId: string;
  readonly contribution?: ContributionName | undefined;
  /** What was thrown. It may hold what the handler knew: not for logs. */
  readonly cause?: unknown;
}

/** What the gate brings to a pipeline; see `gateStages`. */
export interface StageGate {
  readonly contributions: readonly Contribution[];
  /** Called when a stage has ended; of an asynchronous stage it is waited for. */
  stageEnded(outcome: StageOutcome): Promise<void>;
  /** Where the pipeline gives its own way of reporting. */
  onProblem?: ((problem: StageProblem) => void) | undefined;
}

export interface PipelineOptions {
  /** What stages allow for which nothing else says it, by family. */
  readonly stages?: Readonly<Record<string, StageRule>> | undefined;
  /** How long a handler may take unless its contribution says otherwise, in milliseconds: 1 to 600,000. Default 15,000. */
  readonly timeoutMs?: number | undefined;
  /** Given each event before its stage and each trace after it, in order; see `createRecorder`. */
  readonly record?: ((item: PipelineEvent | StageTrace) => void) | undefined;
  /** Decides on tools, messages and subagents, and records what was done. */
  readonly gate?: StageGate | undefined;
  readonly onProblem?: ((problem: StageProblem) => void) | undefined;
}

export interface StageInput {
  /** The object that mutators patch: of a tool call its parameters, of a message its fields. Default `{}`. */
  readonly working?: object | undefined;
  /** What augmenters add to. Default `{}`. */
  readonly context?: object | undefined;
  /** Fields of the context whose last writer wins. Default: none. */
  readonly replaceable?: readonly string[] | undefined;
  /** `backend`: the stage chooses a provider, and is cancelled where no valid one remains. */
  readonly selection?: 'backend' | undefined;
  /** For `agent.model.resolving` with `backend`: the valid providers. Default: any. */
  readonly providers?: readonly string[] | undefined;
}

export interface StageOutcome {
  readonly event: PipelineEvent;
  readonly decision: 'allow' | 'cancel';
  /** Of a cancel: what the veto said, or the code of the error that cancelled. */
  readonly reason: string | undefined;
  /** Who cancelled; undefined where no valid provider remained. */
  readonly by: ContributionName | undefined;
  /** Goes nowhere after a cancel. */
  readonly context: FrozenObject;
  /** Likewise. */
  readonly working: FrozenObject;
  /** The target that resolvers gave. */
  readonly selected: FrozenJson | undefined;
  readonly trace: StageTrace;
}

const OPTION_TYPES: OptionTypes<PipelineOptions> = {
  stages: 'object',
  timeoutMs: 'number',
  record: 'function',
  gate: 'object',
  onProblem: 'function',
};

const INPUT_TYPES: OptionTypes<StageInput> = {
  working: 'object',
  context: 'object',
  replaceable: 'array',
  selection: 'string',
  providers: 'array',
};

const DEFAULT_TIMEOUT_MS = 15_000;

/** Events, and correlations of them, that a pipeline remembers to find what was changed and what follows a cancel. */
const MAX_REMEMBERED = 10_000;

/** The bytes of the canonical forms of a stage's working object and of its context, together, when it begins. */
const MAX_INPUT_BYTES = 16_777_216;

/** The handler that runs here; it may not run the pipeline again. */
interface Running {
  isActive: boolean;
  readonly pipeline: Pipeline;
  readonly within: Running | undefined;
}

const running = new AsyncLocalStorage<Running>();

/**
 * A pipeline without contributions but the gate's.
 * @throws TypeError, RangeError for a malformed option
 * @throws NorthrootError `FAMILY_UNKNOWN`: `stages` names no family; `STAGE_SPECIFIED`: it names one that has a rule
 */
export function createPipeline(options: PipelineOptions = {}): Pipeline {
  return new Pipeline(options);
}

/** Runs stages; see the head of this file. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #timeoutMs: number;
  readonly #rules: ReadonlyMap<string, StageRule>;
  /** By stage, in the order in which they run. Lists are replaced, never changed: a stage that runs keeps its own. */
  readonly #contributions = new Map<string, readonly Registered[]>();
  /** The digests of the last events, by id. */
  readonly #events = new Map<string, string>();
  readonly #followers = new Followers<true>(MAX_REMEMBERED);

  /** @throws as {@link createPipeline} */
  constructor(options: PipelineOptions = {}) {
    checkOptions('createPipeline', options, OPTION_TYPES);
    const { timeoutMs = DEFAULT_TIMEOUT_MS, stages = {}, gate } = options;
    checkTimeout('createPipeline', timeoutMs);
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#rules = rulesWith(stages);
    if (gate === undefined) return;
    gate.onProblem = (problem) => this.#problem(problem);
    for (const contribution of gate.contributions)
      if (this.#rules.has(contribution.stage)) this.register(contribution);
  }

  /**
   * Registers a contribution, for the stages that begin from now on.
   * @returns What removes it again
   * @throws NorthrootError `FAMILY_UNKNOWN`; `STAGE_UNSPECIFIED`: nothing says what the stage allows; `CLASS_NOT_ALLOWED`;
   *   `ASYNC_IN_SYNC_STAGE`; `CONTRIBUTION_REPEATED`: the stage has one of that extension and id; `TOO_MANY_HANDLERS`: it has 1,000
   * @throws TypeError, RangeError for a malformed contribution
   */
  register(contribution: Contribution): () => void {
    const added = toRegistered(contribution, this.#rules, this.#timeoutMs);
    const { stage } = added;
    const list = this.#contributions.get(stage) ?? [];
    if (list.some((each) => each.extension === added.extension && each.contribution === added.contribution))
      throw new NorthrootError('CONTRIBUTION_REPEATED', `the stage ${stage} has that contribution`);
    if (list.length >= MAX_HANDLERS)
      throw new NorthrootError('TOO_MANY_HANDLERS', `the stage ${stage} has ${MAX_HANDLERS} handlers`);
    this.#contributions.set(stage, [...list, added].sort(compareRegistered));
    return () => {
      const now = this.#contributions.get(stage) ?? [];
      this.#contributions.set(
        stage,
        now.filter((each) => each !== added),
      );
    };
  }

  /**
   * Puts an event through the stage of its family.
   *
   * @throws NorthrootError `EVENT_INVALID`; `INPUT_INVALID`; `FAMILY_UNKNOWN`; `EVENT_CHANGED`: one of that id was another; `FOLLOWS_CANCEL`: it follows a
   *   stage that was cancelled; `REENTERED`: a handler of this pipeline runs it
   * @throws TypeError, RangeError for a malformed input. No handler has run then.
   */
  async run(event: EventInit, input: StageInput = {}): Promise<StageOutcome> {
    const stage = this.#begin(event, input);
    const { list, rule } = stage;
    if (rule.mode === 'sync-sequential') return this.#runSync(stage);
    if (rule.mode === 'parallel')
      await Promise.all(list.map((each, place) => this.#handle(stage, each, place)));
    else for (const [place, each] of list.entries()) await this.#handle(stage, each, place);
    const outcome = this.#end(stage);
    await this.#tellGate(outcome);
    return outcome;
  }

  /**
   * {@link Pipeline.run} of a synchronous stage: `transcript.tool-result.persisting`, `transcript.message.writing`.
   * @throws as {@link Pipeline.run}; NorthrootError `MODE_WRONG` for any other stage
   */
  runSync(event: EventInit, input: StageInput = {}): StageOutcome {
    const made = createEvent(event);
    const { family } = made;
    const mode = PIPELINE_FAMILIES.has(family) ? this.#rules.get(family)?.mode : 'sync-sequential';
    if (mode !== 'sync-sequential')
      throw new NorthrootError('MODE_WRONG', `the stage ${family} does not run synchronously`);
    return this.#runSync(this.#begin(made, input));
  }

  #runSync(stage: Stage): StageOutcome {
    for (const [place, each] of stage.list.entries()) this.#handleNow(stage, each, place);
    const outcome = this.#end(stage);
    void this.#tellGate(outcome);
    return outcome;
  }

  #begin(init: EventInit, input: StageInput): Stage {
    for (let at = running.getStore(); at !== undefined; at = at.within)
      if (at.isActive && at.pipeline === this)
        throw new NorthrootError('REENTERED', 'a handler may not run the pipeline that runs it');
    checkOptions('run', input, INPUT_TYPES);
    const event = createEvent(init);
    const { family, eventId, correlationId } = event;
    // Of a stage without a rule nothing can be registered: the event is recorded, and all may go on.
    const rule = PIPELINE_FAMILIES.has(family)
      ? (this.#rules.get(family) ?? UNSPECIFIED)
      : ruleOf(family, this.#rules);
    const stage = new Stage(event, rule, this.#contributions.get(family) ?? [], input);
    const digest = digestOfEvent(event);
    const id = keyOfId(eventId);
    const known = this.#events.get(id);
    if (known !== undefined && known !== digest)
      throw new NorthrootError('EVENT_CHANGED', 'an event of that id was another one');
    if (known === undefined) {
      if (
        correlationId !== null &&
        this.#followers.follow(family, keyOfId(correlationId), subjectOfEvent(event)) !== undefined
      )
        throw new NorthrootError('FOLLOWS_CANCEL', `${family} follows a stage that was cancelled`);
      this.#events.set(id, digest);
      forgetOldest(this.#events, MAX_REMEMBERED);
      this.#record(event, event);
    }
    return stage;
  }

  async #handle(stage: Stage, registered: Registered, place: number): Promise<void> {
    if (stage.isOver) return stage.skip(registered, place);
    const startedAt = performance.now();
    const { view, abort } = viewOf(stage);
    const isInside: Running = { isActive: true, pipeline: this, within: running.getStore() };
    try {
      const working = stage.working;
      const returned = running.run(isInside, () => callOf(registered, stage.event, working, view));
      const given = isThenable(returned) ? await within(returned, registered.timeoutMs, abort) : returned;
      this.#apply(stage, registered, place, working, startedAt, given);
    } catch (cause) {
      this.#fail(stage, registered, place, startedAt, faultOf(cause));
    } finally {
      isInside.isActive = false;
    }
  }

  #handleNow(stage: Stage, registered: Registered, place: number): void {
    if (stage.isOver) return stage.skip(registered, place);
    const startedAt = performance.now();
    const isInside: Running = { isActive: true, pipeline: this, within: running.getStore() };
    try {
      const working = stage.working;
      const returned = running.run(isInside, () =>
        callOf(registered, stage.event, working, viewOf(stage).view),
      );
      if (isThenable(returned)) {
        // Nobody waits for it: that it fails later must not end the process.
        Promise.resolve(returned).catch(() => undefined);
        throw new HandlerFault('ASYNC_RESULT', 'a synchronous stage takes no promise');
      }
      this.#apply(stage, registered, place, working, startedAt, returned);
    } catch (cause) {
      this.#fail(stage, registered, place, startedAt, faultOf(cause));
    } finally {
      isInside.isActive = false;
    }
  }

  #apply(
    stage: Stage,
    registered: Registered,
    place: number,
    working: FrozenObject,
    startedAt: number,
    returned: unknown,
  ): void {
    const { kind } = registered;
    const result = readResult(registered, returned, stage.fields, stage.bytes);
    const endedAt = performance.now();
    const isIgnored = kind === 'observer' && returned !== undefined && returned !== null;
    if (isIgnored) this.#report(stage, registered, 'RESULT_IGNORED');
    const traced: JsonObject = { ...(registered.facts as JsonObject), startedAt, endedAt };
    if (kind === 'mutator') traced['sees'] = working as JsonValue;
    stage.handlers[place] = traced;
    if (result === undefined) return;
    const { add, patch, decision, candidates = [], length } = result;
    stage.bytes += length;
    traced['result'] = result.traced;
    if (add !== undefined) {
      const kept = stage.add(add);
      if (kept.length > 0) {
        traced['result'] = {
          add: Object.fromEntries(
            Object.entries(add).filter(([field]) => !kept.includes(field)),
          ) as JsonObject,
        };
        traced['kept'] = kept;
        this.#report(stage, registered, 'FIELD_KEPT');
      }
    }
    if (patch !== undefined) stage.patch(patch);
    if (decision === 'cancel') stage.cancel(result.reason, nameOf(registered));
    stage.candidates.push(...candidates);
  }

  #fail(stage: Stage, registered: Registered, place: number, startedAt: number, fault: HandlerFault): void {
    const { code } = fault;
    stage.handlers[place] = {
      ...(registered.facts as JsonObject),
      ...(code === 'ASYNC_RESULT' ? { async: true, rejected: true } : {}),
      startedAt,
      endedAt: performance.now(),
      error: { code },
    };
    if (registered.isClosed) stage.cancel(code, nameOf(registered));
    this.#report(stage, registered, code, fault.cause ?? fault);
  }

  #end(stage: Stage): StageOutcome {
    const outcome = stage.end();
    const { event, trace, decision } = outcome;
    this.#record(event, trace);
    if (event.correlationId !== null)
      this.#followers.ended(
        event.family,
        keyOfId(event.correlationId),
        subjectOfEvent(event),
        true,
        decision === 'cancel',
      );
    return outcome;
  }

  async #tellGate(outcome: StageOutcome): Promise<void> {
    try {
      await this.#options.gate?.stageEnded(outcome);
    } catch (cause) {
      const { family, eventId } = outcome.event;
      this.#problem({ code: 'GATE_FAILED', stage: family, eventId, cause });
    }
  }

  #record({ family, eventId }: PipelineEvent, item: PipelineEvent | StageTrace): void {
    try {
      this.#options.record?.(item);
    } catch (cause) {
      this.#problem({ code: 'RECORDING_FAILED', stage: family, eventId, cause });
    }
  }

  #report({ event }: Stage, registered: Registered, code: string, cause?: unknown): void {
    const { family, eventId } = event;
    this.#problem({ code, stage: family, eventId, contribution: nameOf(registered), cause });
  }

  #problem(problem: StageProblem): void {
    try {
      this.#options.onProblem?.(problem);
    } catch {
      // Who is told of problems makes none.
    }
  }
}

interface StageStart {
  readonly context: FrozenObject;
  readonly working: FrozenObject;
}

class Stage {
  readonly event: PipelineEvent;
  readonly rule: StageRule;
  readonly list: readonly Registered[];
  readonly handlers: JsonObject[] = [];
  readonly candidates: Candidate[] = [];
  readonly #input: StageInput;
  readonly #given: StageStart;
  readonly #replaceable: ReadonlySet<string>;
  readonly #overridden = new Set<string>();
  #context: Map<string, FrozenJson>;
  #fields: Map<string, FrozenJson>;
  #shownContext: FrozenObject;
  #cancel: { readonly reason: string | undefined; readonly by: ContributionName | undefined } | undefined;
  /** What the mutators so far have made; frozen. */
  working: FrozenObject;
  /** What handlers have returned so far. */
  bytes = 0;

  constructor(event: PipelineEvent, rule: StageRule, list: readonly Registered[], input: StageInput) {
    const { working = {}, context = {}, replaceable = [], providers, selection } = input;
    for (const [name, texts] of Object.entries({ replaceable, providers: providers ?? [] }))
      if (!texts.every((text) => typeof text === 'string'))
        throw new TypeError(`run: ${name}: expected texts`);
    if (selection !== undefined && selection !== 'backend')
      throw new RangeError('run: selection: expected backend');
    if (providers !== undefined && (selection === undefined || event.family !== 'agent.model.resolving'))
      throw new RangeError('run: providers: expected the selection of a backend by agent.model.resolving');
    const isPrompt = event.family === 'agent.prompt.building';
    // What patches append to is a list from the beginning.
    const lists = isPrompt ? Object.fromEntries(PROMPT_LISTS.map((name) => [name, []])) : {};
    const given = inputOf({ working: { ...lists, ...working }, context });
    this.#given = deepFreeze(given.copy) as unknown as StageStart;
    this.event = event;
    this.rule = rule;
    this.list = list;
    this.#input = { replaceable: [...replaceable], selection, providers: providers && [...providers] };
    this.#replaceable = new Set(replaceable);
    this.working = this.#given.working;
    this.#shownContext = this.#given.context;
    this.#fields = new Map(Object.entries(this.working));
    this.#context = new Map(Object.entries(this.#shownContext));
  }

  get fields(): ReadonlyMap<string, FrozenJson> {
    return this.#fields;
  }

  /** Whether nothing may run any more. */
  get isOver(): boolean {
    return this.#cancel !== undefined;
  }

  get context(): FrozenObject {
    return this.#shownContext;
  }

  skip({ facts }: Registered, place: number): void {
    this.handlers[place] = { ...(facts as JsonObject), skipped: true };
  }

  /** Adds what it may. The fields that it may not replace. */
  add(fields: FrozenObject): string[] {
    const kept: string[] = [];
    for (const [field, value] of Object.entries(fields))
      if (!addField(this.#context, field, value, this.#replaceable.has(field), isSameJson)) kept.push(field);
    this.#shownContext = frozenOf(this.#context);
    return kept;
  }

  patch(patch: FrozenObject): void {
    this.#fields = patchFields(this.event.family, this.#fields, Object.entries(patch), this.#overridden);
    this.working = frozenOf(this.#fields);
  }

  /** The first stands. */
  cancel(reason: string | undefined, by: ContributionName | undefined): void {
    this.#cancel ??= { reason, by };
  }

  end(): StageOutcome {
    const { event, rule, working } = this;
    const { family, eventId } = event;
    const { replaceable = [], selection, providers } = this.#input;
    const selected = bestOf<number, Candidate>(
      this.candidates.filter(({ isValid }) => isValid),
      (a, b) => a < b,
    )?.target;
    if (
      !this.isOver &&
      selection === 'backend' &&
      lacksBackend<FrozenJson>(
        family,
        { provider: this.#fields.get('provider'), selected },
        providers,
        isSameJson,
      )
    )
      this.cancel('NO_BACKEND', undefined);
    const decision = this.isOver ? 'cancel' : 'allow';
    const context = this.#shownContext;
    const said = selected === undefined || this.isOver ? {} : { selected };
    const trace = {
      trace: STAGE_TRACE,
      stage: family,
      eventId,
      mode: rule.mode,
      failPolicy: rule.failPolicy ?? 'open',
      ...(selection === undefined ? {} : { selection }),
      ...(providers === undefined ? {} : { providers }),
      ...(replaceable.length === 0 ? {} : { replaceable }),
      input: this.#given,
      handlers: this.handlers,
      output: { context, working, decision, ...said },
    } as unknown as StageTrace;
    return {
      ...{ event, decision, context, working, trace },
      reason: this.#cancel?.reason,
      by: this.#cancel?.by,
      selected: this.isOver ? undefined : selected,
    };
  }
}

/** @throws NorthrootError `INPUT_INVALID` */
function inputOf(input: object): ReturnType<typeof copyJson> {
  try {
    const given = copyJson(input, MAX_DEPTH - TRACE_DEPTH);
    if (given.length <= MAX_INPUT_BYTES) return given;
  } catch (cause) {
    throw new NorthrootError('INPUT_INVALID', 'the working object or the context has no canonical form', {
      cause,
    });
  }
  throw new NorthrootError(
    'INPUT_INVALID',
    `the working object and the context have more than ${MAX_INPUT_BYTES} bytes`,
  );
}

/** Of stages of which nothing says how they run: no handler runs in them. */
const UNSPECIFIED: StageRule = { classes: [], mode: 'parallel' };

/** Calls a handler, which has no `this`: it would be what the pipeline knows of it. */
function callOf(
  { handler }: Registered,
  event: PipelineEvent,
  working: FrozenObject,
  view: StageView,
): unknown {
  return handler(event, working, view);
}

/** What a handler is told of its stage. Few look at the signal, and making one costs more than all else. */
function viewOf({ event, context }: Stage): {
  readonly view: StageView;
  readonly abort: (reason: HandlerFault) => void;
} {
  let controller: AbortController | undefined;
  const made = (): AbortController => (controller ??= new AbortController());
  const view = {
    stage: event.family,
    context,
    get signal() {
      return made().signal;
    },
  };
  return { view, abort: (reason) => made().abort(reason) };
}

function rulesWith(stages: Readonly<Record<string, StageRule>>): ReadonlyMap<string, StageRule> {
  const rules = new Map<string, StageRule>();
  for (const [family, rule] of PIPELINE_FAMILIES) if (rule !== undefined) rules.set(family, rule);
  for (const [family, rule] of Object.entries(stages)) {
    if (rules.has(family))
      throw new NorthrootError('STAGE_SPECIFIED', `what the stage ${family} allows is not the host's to say`);
    if (!PIPELINE_FAMILIES.has(family)) ruleOf(family, rules);
    rules.set(family, checkedRule(family, rule));
  }
  return rules;
}

function checkedRule(family: string, given: StageRule): StageRule {
  checkOptions(`stages: ${family}`, given, { classes: 'array', mode: 'string', failPolicy: 'string' });
  const { mode, failPolicy = 'open' } = given;
  const classes = given.classes as unknown;
  if (!isClasses(classes))
    throw new RangeError(`stages: ${family}: classes: expected a list of ${HANDLER_CLASSES.join(', ')}`);
  if (!['parallel', 'sequential', 'sync-sequential'].includes(mode))
    throw new RangeError(`stages: ${family}: mode: expected parallel, sequential or sync-sequential`);
  if (mode === 'parallel' && classes.some((each) => each !== 'observer'))
    throw new RangeError(`stages: ${family}: only observers run in parallel`);
  if (failPolicy !== 'open' && failPolicy !== 'closed')
    throw new RangeError(`stages: ${family}: failPolicy: expected open or closed`);
  return { classes: [...classes], mode, failPolicy };
}

function isClasses(value: unknown): value is readonly HandlerClass[] {
  return (
    Array.isArray(value) && value.every((each: unknown) => HANDLER_CLASSES.includes(each as HandlerClass))
  );
}

/** What it resolves to in time. What comes later is ignored. */
async function within(
  returned: PromiseLike<unknown>,
  timeoutMs: number,
  abort: (reason: HandlerFault) => void,
): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const fault = new HandlerFault('HANDLER_TIMEOUT', `took longer than ${timeoutMs} ms`);
      reject(fault);
      abort(fault);
    }, timeoutMs);
  });
  try {
    return await Promise.race([returned, late]);
  } finally {
    clearTimeout(timer);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  return typeof (value as { then?: unknown }).then === 'function';
}

function faultOf(cause: unknown): HandlerFault {
  return isFault(cause) ? cause : new HandlerFault('HANDLER_FAILED', 'the handler has thrown', cause);
}

function nameOf({ extension, contribution }: Registered): ContributionName {
  return { extensionId: extension, contributionId: contribution };
}

/** The fields as an object that nobody changes; `fromEntries` also makes `__proto__` an own member. */
function frozenOf(fields: ReadonlyMap<string, FrozenJson>): FrozenObject {
  return Object.freeze(Object.fromEntries(fields));
}

/** Whether two values of JSON are the same, whatever the order of their members. */
function isSameJson(a: FrozenJson | undefined, b: FrozenJson | undefined): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [x, y] = [a as Record<string, FrozenJson>, b as Record<string, FrozenJson>];
  const names = Object.keys(x);
  return (
    names.length === Object.keys(y).length &&
    names.every((name) => Object.hasOwn(y, name) && isSameJson(x[name], y[name]))
  );
}
