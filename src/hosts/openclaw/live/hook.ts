/**
 * Handlers of the hooks that were there before the pipeline, as contributions to its stages (`FAMILIES_OF_HOOKS`). A handler that both
 * changes and stops, such as one of `before_tool_call`, is two contributions, as each has one class: it is called by the first, and the
 * second says whether it stops.
 */

import { types } from 'node:util';
import { printable } from '../../../base/bytes/printable.js';
import { defined } from '../../../base/defined.js';
import { NorthrootError } from '../../../base/error.js';
import { describeValue } from '../../../base/options.js';
import { FAMILIES_OF_HOOKS, type HandlerClass, PIPELINE_FAMILIES } from '../families.js';
import { forgetOldest } from '../stage-rules.js';
import { asyncHandler, type Contribution, type StageHandler } from './contribution.js';
import { type FrozenObject, memberOf, type PipelineEvent, textOf } from './event.js';

export type HookHandler = (event: Record<string, unknown>, context: Record<string, unknown>) => unknown;

/** A hook's handler, and how it is registered. */
export type HookContribution = Pick<
  Contribution,
  'extensionId' | 'contributionId' | 'priority' | 'failClosed' | 'trusted' | 'timeoutMs'
> & {
  /** `before_tool_call`, `message_sending`, … */
  readonly hook: string;
  readonly handler: HookHandler;
};

/** How a hook's handler is called, and what becomes of what it returns. */
interface Way {
  readonly classes: readonly HandlerClass[];
  /** What the hook is given of the event. */
  readonly given?: (event: PipelineEvent, working: FrozenObject) => Record<string, unknown>;
  readonly patch?: (returned: Returned) => Record<string, unknown> | undefined;
  /** Why it stops; undefined where it does not. */
  readonly stops?: (returned: Returned) => string | undefined;
  readonly target?: (returned: Returned) => unknown;
}

type Returned = Readonly<Record<string, unknown>>;

const payloadOf = ({ payload }: PipelineEvent): FrozenObject =>
  typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? (payload as FrozenObject) : {};

const ofMessage = (event: PipelineEvent, working: FrozenObject): Record<string, unknown> => ({
  ...payloadOf(event),
  ...working,
  threadId: event.threadRef ?? undefined,
  metadata: { ...event.metadata },
});

const ofTranscript = (event: PipelineEvent, working: FrozenObject): Record<string, unknown> => ({
  ...payloadOf(event),
  message: working,
});

const whole = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;

const WAYS: Readonly<Record<string, Way>> = {
  before_model_resolve: {
    classes: ['mutator'],
    patch: ({ modelOverride, providerOverride }) =>
      defined({ model: modelOverride, provider: providerOverride }),
  },
  before_prompt_build: { classes: ['mutator'], patch: ofPrompt },
  message_received: { classes: ['observer'], given: ofMessage },
  message_sending: {
    classes: ['mutator', 'veto'],
    given: ofMessage,
    patch: ({ content }) => defined({ content }),
    stops: ({ cancel, cancelReason }) => (cancel === true ? reasonOf(cancelReason) : undefined),
  },
  message_sent: { classes: ['observer'], given: ofMessage },
  before_tool_call: {
    classes: ['mutator', 'veto'],
    given: (event, working) => ({ ...payloadOf(event), params: working }),
    patch: ({ params }) => whole(params),
    stops: ({ block, blockReason, requireApproval }) =>
      block === true
        ? reasonOf(blockReason)
        : requireApproval === undefined || requireApproval === null
          ? undefined
          : // The pipeline knows no approvals: what nobody approved does not run.
            'approval required',
  },
  tool_result_persist: {
    classes: ['mutator'],
    given: ofTranscript,
    patch: ({ message }) => whole(message),
  },
  before_message_write: {
    classes: ['mutator', 'veto'],
    given: ofTranscript,
    patch: ({ message }) => whole(message),
    stops: ({ block }) => (block === true ? 'blocked' : undefined),
  },
  subagent_delivery_target: { classes: ['resolver'], target: ({ origin }) => origin },
};

const OBSERVED: Way = { classes: ['observer'] };

/** The runs of which a hook of two stages remembers what it returned. */
const MAX_REMEMBERED = 1_000;

/**
 * The contributions that a hook's handler is. Each hook goes to the stages that the mapping names; `before_agent_start` to two, for which it
 * is called once in a run. `block`, `cancel` and `requireApproval` are vetoes, other returned members are patches.
 *
 * @throws NorthrootError `HOOK_UNKNOWN`: the mapping has no such hook; `ASYNC_IN_SYNC_STAGE`; TypeError for a handler that is no function
 */
export function fromHook(given: HookContribution): Contribution[] {
  const { hook, handler, contributionId, extensionId, ...rest } = given;
  const families = FAMILIES_OF_HOOKS.get(hook);
  if (families === undefined)
    throw new NorthrootError('HOOK_UNKNOWN', `no stage is known for the hook ${printable(hook, 80)}`);
  if (typeof handler !== 'function')
    throw new TypeError(`fromHook: handler: expected a function, found ${describeValue(handler)}`);
  const calls = new Map<string, unknown>();
  return families.flatMap((stage) => {
    if (PIPELINE_FAMILIES.get(stage)?.mode === 'sync-sequential' && types.isAsyncFunction(handler))
      throw asyncHandler(`${printable(extensionId, 80)}/${printable(contributionId, 80)}`, stage);
    const way = hook === 'before_agent_start' ? WAY_OF_START[stage] : (WAYS[hook] ?? OBSERVED);
    if (way === undefined) return [];
    const call: Call = { way, handler, calls, isShared: families.length > 1 };
    return way.classes.map((kind) => ({
      ...withoutUnfit(kind, rest),
      extensionId,
      // In the order of classes: what is changed comes first.
      contributionId: way.classes.length === 1 ? contributionId : `${contributionId}#${kind}`,
      stage,
      class: kind,
      handler: handlerOf(kind, call),
    }));
  });
}

/** `before_agent_start` is split: one part of what it returns is for the model, the other for the prompt. */
const WAY_OF_START: Readonly<Record<string, Way | undefined>> = {
  'agent.model.resolving': WAYS['before_model_resolve'],
  'agent.prompt.building': WAYS['before_prompt_build'],
};

interface Call {
  readonly way: Way;
  readonly handler: HookHandler;
  /** What was returned, by what the second call of it is told by. */
  readonly calls: Map<string, unknown>;
  readonly isShared: boolean;
}

function withoutUnfit(
  kind: HandlerClass,
  {
    failClosed,
    trusted,
    ...rest
  }: Omit<HookContribution, 'hook' | 'handler' | 'extensionId' | 'contributionId'>,
): Partial<Contribution> {
  return {
    ...rest,
    ...(kind === 'observer' ? {} : defined({ failClosed })),
    ...(kind === 'mutator' ? defined({ trusted }) : {}),
  };
}

function handlerOf(kind: HandlerClass, { way, handler, calls, isShared }: Call): StageHandler {
  const call: StageHandler = (event, working) =>
    handler({ ...(way.given ?? payloadOf)(event, working) }, contextOf(event));
  const isOneOfTwo = way.classes.length > 1;
  if (kind === 'observer') return (event, working, view) => then(call(event, working, view), () => undefined);
  if (kind === 'resolver')
    return (event, working, view) =>
      then(call(event, working, view), (returned) => {
        const target = way.target?.(asReturned(returned));
        return target === undefined || target === null ? undefined : { candidates: [{ target }] };
      });
  if (kind === 'veto')
    return ({ eventId }) => {
      if (!calls.has(eventId)) throw new Error('the handler has returned nothing for its event');
      const reason = way.stops?.(asReturned(calls.get(eventId)));
      calls.delete(eventId);
      return reason === undefined ? { decision: 'allow' } : { decision: 'cancel', reason };
    };
  return (event, working, view) => {
    const run = event.correlationId ?? event.eventId;
    const isSecond = isShared && calls.has(run);
    const returned = isSecond ? calls.get(run) : call(event, working, view);
    if (isSecond) calls.delete(run);
    return then(returned, (value) => {
      if (view.signal.aborted) return undefined;
      if (isOneOfTwo) calls.set(event.eventId, value);
      else if (isShared && !isSecond) calls.set(run, value);
      forgetOldest(calls, MAX_REMEMBERED);
      const answer = asReturned(value);
      // What is stopped is not changed.
      const patch = way.stops?.(answer) === undefined ? way.patch?.(answer) : undefined;
      return patch === undefined || Object.keys(patch).length === 0 ? undefined : { patch };
    });
  };
}

/** Without waiting where there is nothing to wait for: stages may be synchronous. */
function then(returned: unknown, use: (value: unknown) => unknown): unknown {
  const isLater =
    typeof returned === 'object' &&
    returned !== null &&
    typeof (returned as { then?: unknown }).then === 'function';
  return isLater ? (returned as Promise<unknown>).then(use) : use(returned);
}

function asReturned(value: unknown): Returned {
  return typeof value === 'object' && value !== null ? (value as Returned) : {};
}

function ofPrompt(returned: Returned): Record<string, unknown> {
  const { systemPrompt, prependSystemContext, appendSystemContext, prependContext, appendContext } = returned;
  const staticGuidance = [prependSystemContext, appendSystemContext].filter((each) => each !== undefined);
  const ephemeral = [prependContext, appendContext].filter((each) => each !== undefined);
  return {
    ...defined({ systemPrompt }),
    ...(staticGuidance.length === 0 ? {} : { staticGuidance }),
    ...(ephemeral.length === 0 ? {} : { ephemeral }),
  };
}

function reasonOf(reason: unknown): string {
  return typeof reason === 'string' && reason !== '' ? reason : 'blocked';
}

function contextOf(event: PipelineEvent): Record<string, unknown> {
  const { agentId, sessionId, correlationId, accountRef, conversationRef, messageRef, payload, metadata } =
    event;
  const given = {
    ...{ agentId, sessionId, runId: correlationId, accountId: accountRef },
    ...{ conversationId: conversationRef, messageId: messageRef },
    toolName: memberOf(payload, 'toolName'),
    toolCallId: memberOf(payload, 'toolCallId'),
    channelId: textOf(payload, 'channelId') ?? textOf(metadata, 'channelId'),
  };
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== null && value !== undefined),
  );
}
