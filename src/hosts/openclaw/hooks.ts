/** Recordings of plugin hooks: one line for each call of a handler, with what it returned. They take precedence over all else. */

import { SourceObject } from '../../base/json/source-json.js';
import { jcsDigest, listAt, numberAt, objectAt, textAt, timeOf, valueAt } from '../shared/values.js';
import type { AgentEvents } from './agent-events.js';
import type { Audit } from './audit.js';
import type { Calls } from './calls.js';
import { type Context, factsOf, hexOf, type HookCall, hookText } from './context.js';
import type { Deliveries } from './deliveries.js';
import type { Entry } from './entries.js';
import { FAMILIES_OF_HOOKS } from './families.js';
import type { ModelCalls } from './model-calls.js';

interface HookParts {
  readonly context: Context;
  readonly calls: Calls;
  readonly events: AgentEvents;
  readonly models: ModelCalls;
  readonly deliveries: Deliveries;
  readonly audit: Audit;
}

const STARTS = new Set([
  ...['gateway_start', 'session_start', 'message_received', 'before_dispatch', 'before_agent_run'],
  ...['before_model_resolve', 'before_agent_start', 'before_prompt_build', 'llm_input'],
]);

function reasonOf(hook: string): string {
  if (hook === 'before_tool_call' || hook === 'after_tool_call') return 'SAME_CALL';
  return 'SAME_ITEM';
}

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
    const ctx = valueAt(entry.value, 'ctx') ?? undefined;
    const { file } = entry.at;
    const time = timeOf(numberAt(entry.value, 'ts'), 'ms');
    if (time !== undefined && this.#isCopy(entry)) {
      context.fate(entry, 'repeated', hook === '@agent_event' ? 'SAME_EVENT' : reasonOf(hook));
      return;
    }
    context.checkTime(entry, time);
    context.learn(ctx, event);
    const isFirst = !this.#begun.has(file);
    if (hook === '@agent_event' && event instanceof SourceObject) {
      this.#begun.add(file);
      if (textAt(event, 'data', 'phase') === 'start' && textAt(event, 'stream') === 'lifecycle')
        this.#started.add(context.scopeOf(event));
      this.#parts.events.read(entry, event, time, isFirst);
      return;
    }
    const scope = context.scopeOf(ctx, event);
    if (STARTS.has(hook)) {
      this.#begun.add(file);
      this.#started.add(scope);
    }
    const base = context.base(entry, time, context.principalOf(ctx, event));
    if (base === undefined) return;
    const [runId, callId] = ['runId', 'toolCallId'].map((name) => hookText({ event, ctx }, name));
    const returned = valueAt(entry.value, 'returned');
    const call: HookCall = { entry, base, hook, event, ctx, returned, scope, runId, callId };
    switch (hook) {
      case 'before_tool_call':
        this.#called.add(scope);
        return calls.before(call);
      case 'after_tool_call':
        return calls.after(call, !this.#started.has(scope) && !this.#called.has(scope));
      case 'message_sending':
        return deliveries.sending(call);
      case 'message_sent':
        audit.messagesAreRecorded();
        return deliveries.sent(call);
      case 'subagent_spawning':
        return deliveries.spawning(call);
      case 'subagent_spawned':
        return deliveries.spawned(call);
      case 'before_message_write':
      case 'tool_result_persist':
        return this.#message(call);
      case 'agent_end':
        return this.#end(call);
      case 'llm_output':
        return this.#output(call);
      default:
        if (/approval|resolution/i.test(hook)) this.#approval(call);
        return this.#keep(call);
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
  #message(call: HookCall): void {
    const { context, models, calls } = this.#parts;
    const { entry, base, hook, event, returned, scope } = call;
    const message = valueAt(event, 'message');
    const callId = textAt(message, 'toolCallId');
    if (textAt(message, 'role') === 'toolResult' && callId !== undefined) {
      if (objectAt(returned) !== undefined) calls.rewritesResult(callId);
      if (calls.ofSession(scope, callId).length > 0) {
        context.fate(entry, 'repeated', 'SAME_CALL');
        return;
      }
    }
    const done =
      hook === 'before_message_write' ? models.message(entry, base, scope, message, 'recording') : 'none';
    if (done === 'claimed') context.fate(entry, 'mapped');
    else if (done === 'repeated') context.fate(entry, 'repeated', 'SAME_MODEL_CALL');
    else this.#keep(call);
  }

  /** The messages of a turn, where no hook showed them one by one. */
  #end(call: HookCall): void {
    const { context, models } = this.#parts;
    const { entry, base, event, scope } = call;
    const messages = listAt(event, 'messages') ?? [];
    const from = messages.findLastIndex((message) => textAt(message, 'role') === 'user') + 1;
    const turn = models.hasPending(scope) || from === 0 ? [] : messages.slice(from);
    const done = turn.map((message) => models.message(entry, base, scope, message, 'recording', true));
    if (done.includes('claimed')) context.fate(entry, 'mapped');
    else this.#keep(call);
  }

  #output(call: HookCall): void {
    const { context, models } = this.#parts;
    const { entry, base, event, scope } = call;
    const until = Number(numberAt(entry.value, 'ts') ?? NaN);
    const done = models.run(entry, base, scope, event, until, !this.#started.has(scope));
    this.#started.add(scope);
    if (done === 'claimed') context.fate(entry, 'mapped');
    else this.#keep(call);
  }

  /** What a recorder writes when an approval is resolved: `{toolCallId, decision}`. */
  #approval({ base, event, runId, callId }: HookCall): void {
    const resolution = textAt(event, 'decision') ?? textAt(event, 'resolution');
    if (callId !== undefined && resolution !== undefined)
      this.#parts.calls.resolve(base, runId, callId, resolution);
  }

  #keep({ entry, base, hook, event, returned, scope, runId }: HookCall): void {
    const facts = factsOf({
      hook,
      family: FAMILIES_OF_HOOKS.get(hook)?.join(' '),
      session: scope,
      run: runId,
      role: textAt(event, 'message', 'role'),
      event_digest: jcsDigest(event),
      returned_digest: jcsDigest(returned ?? undefined),
    });
    this.#parts.context.evidence(entry, base, `hook:${hexOf(entry.bytes).slice(0, 32)}`, 'hook', facts);
  }
}
