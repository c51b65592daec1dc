/** Recordings of plugin hooks: one line for each call of a handler, with what it returned. They take precedence over all else. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { jcsDigest, listAt, numberAt, objectAt, textAt, timeOf, valueAt } from '../shared/values.js';
import type { AgentEvents } from './agent-events.js';
import type { Audit } from './audit.js';
import type { Calls } from './calls.js';
import { type ClaimBase, type Context, factsOf, hexOf } from './context.js';
import type { Deliveries } from './deliveries.js';
import type { Entry } from './entries.js';
import { FAMILIES_OF_HOOKS } from './families.js';
import type { ModelCalls } from './model-calls.js';

/** What hooks are read into. */
interface HookParts {
  readonly context: Context;
  readonly calls: Calls;
  readonly events: AgentEvents;
  readonly models: ModelCalls;
  readonly deliveries: Deliveries;
  readonly audit: Audit;
}

/** Hooks that a run begins with. */
const STARTS = new Set([
  ...['gateway_start', 'session_start', 'message_received', 'before_dispatch', 'before_agent_run'],
  ...['before_model_resolve', 'before_agent_start', 'before_prompt_build', 'llm_input'],
]);

function reasonOf(hook: string): string {
  if (hook === 'before_tool_call' || hook === 'after_tool_call') return 'SAME_CALL';
  return 'SAME_ITEM';
}

/** Reads hooks, in order. */
export class Hooks {
  readonly #parts: HookParts;
  /** Files that show that they were written when a run began, or an agent event came. */
  readonly #begun = new Set<string>();
  /** Sessions that the recordings show the start of a run of. */
  readonly #started = new Set<string>();
  /** Sessions that the recordings show a before_tool_call of. */
  readonly #called = new Set<string>();
  readonly #seen = new Set<string>();

  constructor(parts: HookParts) {
    this.#parts = parts;
  }

  read(entry: Entry): void {
    const { context, calls, deliveries, audit } = this.#parts;
    const hook = textAt(entry.value, 'hook') ?? '';
    const event = valueAt(entry.value, 'event') ?? null;
    const hookContext = valueAt(entry.value, 'ctx') ?? undefined;
    const { file } = entry.at;
    const time = timeOf(numberAt(entry.value, 'ts'), 'ms');
    if (time !== undefined && this.#isCopy(entry)) {
      context.fate(entry, 'repeated', hook === '@agent_event' ? 'SAME_EVENT' : reasonOf(hook));
      return;
    }
    context.checkTime(entry, time);
    context.learn(hookContext, event);
    const isFirst = !this.#begun.has(file);
    if (hook === '@agent_event' && event instanceof SourceObject) {
      this.#begun.add(file);
      if (textAt(event, 'data', 'phase') === 'start' && textAt(event, 'stream') === 'lifecycle')
        this.#started.add(context.scopeOf(event));
      this.#parts.events.read(entry, event, time, isFirst);
      return;
    }
    const scope = context.scopeOf(hookContext, event);
    if (STARTS.has(hook)) {
      this.#begun.add(file);
      this.#started.add(scope);
    }
    const base = context.base(entry, time, context.principalOf(hookContext, event));
    if (base === undefined) return;
    switch (hook) {
      case 'before_tool_call':
        this.#called.add(scope);
        return calls.before(entry, base, event, hookContext);
      case 'after_tool_call':
        return calls.after(
          entry,
          base,
          event,
          hookContext,
          !this.#started.has(scope) && !this.#called.has(scope),
        );
      case 'message_sending':
        return deliveries.sending(entry, base, event, hookContext);
      case 'message_sent':
        audit.messagesAreRecorded();
        return deliveries.sent(entry, base, event, hookContext);
      case 'subagent_spawning':
        return deliveries.spawning(entry, base, event, hookContext);
      case 'subagent_spawned':
        return deliveries.spawned(entry, base, event, hookContext);
      case 'before_message_write':
      case 'tool_result_persist':
        return this.#message(entry, base, hook, event, hookContext);
      case 'agent_end':
        return this.#end(entry, base, event, hookContext);
      case 'llm_output':
        return this.#output(entry, base, event, hookContext);
      default:
        if (/approval|resolution/i.test(hook)) this.#approval(base, event, hookContext);
        return this.#keep(entry, base, hook, event, hookContext);
    }
  }

  /** Whether the same line was there before: a recording that was given twice, or parts of it that overlap. */
  #isCopy(entry: Entry): boolean {
    const digest = hexOf(entry.bytes);
    if (this.#seen.has(digest)) return true;
    this.#seen.add(digest);
    return false;
  }

  /** A message that is about to be written into the transcript. */
  #message(
    entry: Entry,
    base: ClaimBase,
    hook: string,
    event: SourceValue,
    hookContext: SourceValue | undefined,
  ): void {
    const { context, models, calls } = this.#parts;
    const message = valueAt(event, 'message');
    const scope = context.scopeOf(hookContext, event);
    const callId = textAt(message, 'toolCallId');
    if (textAt(message, 'role') === 'toolResult' && callId !== undefined) {
      if (objectAt(entry.value, 'returned') !== undefined) calls.rewritesResult(callId);
      if (calls.ofSession(scope, callId).length > 0) {
        context.fate(entry, 'repeated', 'SAME_CALL');
        return;
      }
    }
    const done =
      hook === 'before_message_write' ? models.message(entry, base, scope, message, 'recording') : 'none';
    if (done === 'claimed') context.fate(entry, 'mapped');
    else if (done === 'repeated') context.fate(entry, 'repeated', 'SAME_MODEL_CALL');
    else this.#keep(entry, base, hook, event, hookContext);
  }

  /** The messages of a turn, where no hook showed them one by one. */
  #end(entry: Entry, base: ClaimBase, event: SourceValue, hookContext: SourceValue | undefined): void {
    const { context, models } = this.#parts;
    const scope = context.scopeOf(hookContext, event);
    const messages = listAt(event, 'messages') ?? [];
    const from = messages.findLastIndex((message) => textAt(message, 'role') === 'user') + 1;
    const turn = models.hasPending(scope) || from === 0 ? [] : messages.slice(from);
    const done = turn.map((message) => models.message(entry, base, scope, message, 'recording', true));
    if (done.includes('claimed')) context.fate(entry, 'mapped');
    else this.#keep(entry, base, 'agent_end', event, hookContext);
  }

  #output(entry: Entry, base: ClaimBase, event: SourceValue, hookContext: SourceValue | undefined): void {
    const { context, models } = this.#parts;
    const until = Number(numberAt(entry.value, 'ts') ?? NaN);
    const scope = context.scopeOf(hookContext, event);
    const done = models.run(entry, base, scope, event, until, !this.#started.has(scope));
    this.#started.add(scope);
    if (done === 'claimed') context.fate(entry, 'mapped');
    else this.#keep(entry, base, 'llm_output', event, hookContext);
  }

  /** What a recorder writes when an approval is resolved: `{toolCallId, decision}`. */
  #approval(base: ClaimBase, event: SourceValue, hookContext: SourceValue | undefined): void {
    const callId = textAt(event, 'toolCallId') ?? textAt(hookContext, 'toolCallId');
    const runId = textAt(event, 'runId') ?? textAt(hookContext, 'runId');
    const resolution = textAt(event, 'decision') ?? textAt(event, 'resolution');
    if (callId !== undefined && resolution !== undefined)
      this.#parts.calls.resolve(base, runId, callId, resolution);
  }

  #keep(
    entry: Entry,
    base: ClaimBase,
    hook: string,
    event: SourceValue,
    hookContext: SourceValue | undefined,
  ): void {
    const { context } = this.#parts;
    const returned = valueAt(entry.value, 'returned') ?? undefined;
    const facts = factsOf({
      hook,
      family: FAMILIES_OF_HOOKS.get(hook)?.join(' '),
      session: context.scopeOf(hookContext, event),
      run: textAt(event, 'runId') ?? textAt(hookContext, 'runId'),
      role: textAt(event, 'message', 'role'),
      event_digest: jcsDigest(event),
      returned_digest: jcsDigest(returned),
    });
    context.evidence(entry, base, `hook:${hexOf(entry.bytes).slice(0, 32)}`, 'hook', facts);
  }
}
