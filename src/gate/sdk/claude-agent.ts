/**
 * `northroot/claude-agent`: hooks for the Claude Agent SDK (`@anthropic-ai/claude-agent-sdk`) that decide on each tool call of an agent and
 * of its sub-agents, and record how it ended. Seen: 0.3.332. Calls of models pass no hook; the result message prices them.
 */

import { CLAUDE_EVENTS } from '../claude-events.js';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { escapeToolName } from '../../base/value/tool.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import type { CallName, CallOutcome, Gate, GateCall } from '../gate.js';
import { SESSION_ENDED } from '../release-session.js';
import { checkMethod, mcpFault, refusalText, toJson, tryDigest } from './shared.js';

export interface HookOptions extends Pick<
  GateCall,
  'principal' | 'resources' | 'userIntentDigest' | 'grantId' | 'ttlMs'
> {
  /** The most that a call may use, by unit: for all tools, or by tool. */
  readonly reserve?: AmountsByUnit | ((tool: string) => AmountsByUnit) | undefined;
  /** How long a call waits for an approval, in milliseconds. Default 0: it is denied, with the reason. */
  readonly waitMs?: number | undefined;
  /** How long a hook may take, in seconds. Default 60, beside the wait. */
  readonly timeout?: number | undefined;
}

/** What the SDK gives a hook. Members depend on the event. */
export interface HookInput {
  readonly hook_event_name: string;
  readonly session_id: string;
}
type Event = HookInput & Readonly<Record<string, unknown>>;
type Answer = Readonly<Record<string, unknown>>;
type Hook = (
  input: HookInput,
  toolUseId: string | undefined,
  options: { readonly signal: AbortSignal },
) => Promise<Answer>;

/** For `options.hooks`. */
export type GuardHooks = Record<
  (typeof CLAUDE_EVENTS)[number],
  { hooks: Hook[]; timeout: number; onFailure: 'block' | 'continue' }[]
>;

/**
 * Hooks for `query({ prompt, options: { hooks } })`. A denial tells the model why. What is allowed still needs the agent's own permission; if
 * that refuses it, or nothing tells how it ended, it is released at the end of its batch or turn. A hook that fails blocks the call.
 * @throws TypeError unless it is given a gate
 * @example
 * for await (const message of query({ prompt, options: { hooks: guardHooks(gate) } })) console.log(message);
 */
export function guardHooks(gate: Gate, options: HookOptions = {}): GuardHooks {
  checkMethod('guardHooks', 'a gate', gate, 'decide');
  const { reserve, waitMs = 0, timeout = 60 + Math.ceil(waitMs / 1000), ...rest } = options;
  const nameOf = (session: string, ref: unknown): CallName => ({
    ...defined({ principal: rest.principal }),
    session,
    ref: String(ref),
  });
  const decide: Hook = async (input, _, { signal }) => {
    const { session_id: session, tool_name: name, tool_input: params, tool_use_id: ref } = input as Event;
    const tool = escapeToolName(String(name));
    const decision = await gate.decide(
      {
        ...rest,
        ...nameOf(session, ref),
        ...defined({ reserve: typeof reserve === 'function' ? reserve(String(name)) : reserve }),
        tool,
        params: toJson(params),
        start: false,
        coverage: 'hook',
      },
      { signal, waitMs },
    );
    const { effect, code, reason } = decision;
    if (effect === 'allow') return {};
    const rewritten = effect === 'rewrite' ? { updatedInput: decision.params } : {};
    return {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        // The agent takes other parameters only with an answer.
        permissionDecision: effect === 'rewrite' ? 'allow' : 'deny',
        permissionDecisionReason: effect === 'rewrite' ? printable(`${code}`) : refusalText(code, reason),
        ...rewritten,
      },
    };
  };
  const settle: Hook = async (input, _, { signal }) => {
    const { session_id: session, tool_use_id: ref } = input as Event;
    await ifKnown(() => gate.settle(nameOf(session, ref), outcomeOf(input as Event), { signal }));
    return {};
  };
  const release: Hook = async (input) => {
    const {
      session_id: session,
      tool_use_id: ref,
      tool_calls: calls,
      background_tasks: tasks,
      hook_event_name: name,
    } = input as Event;
    const ended = Array.isArray(calls)
      ? calls.map((call) => (call as { tool_use_id?: unknown }).tool_use_id)
      : [ref].filter((each) => each !== undefined);
    const isTurn = ended.length === 0 && !Array.isArray(calls);
    // What runs in the background has calls of its own, which are not over.
    if (isTurn && Array.isArray(tasks) && tasks.length > 0) return {};
    const isEnded = (each: string): boolean => isTurn || ended.includes(each);
    for (const { ref: open } of gate.listOpen(session).filter((each) => isEnded(each.ref)))
      await ifKnown(() =>
        // What no end of a turn has released was running.
        name === 'SessionEnd'
          ? gate.settle(nameOf(session, open), { outcome: 'unknown', errorCode: SESSION_ENDED })
          : gate.release(nameOf(session, open)),
      );
    return {};
  };
  const handlers: Readonly<Partial<Record<(typeof CLAUDE_EVENTS)[number], Hook>>> = {
    PreToolUse: decide,
    PostToolUse: settle,
    PostToolUseFailure: settle,
  };
  return Object.fromEntries(
    CLAUDE_EVENTS.map((event) => [
      event,
      [
        {
          hooks: [handlers[event] ?? release],
          timeout,
          onFailure: event === 'PreToolUse' ? 'block' : 'continue',
        },
      ],
    ]),
  ) as GuardHooks;
}

function outcomeOf(event: Event): CallOutcome {
  const { hook_event_name: name, duration_ms: ms, tool_response: output, error } = event;
  const durationMs = typeof ms === 'number' && ms >= 0 && Number.isFinite(ms) ? ms : undefined;
  const done = defined({ durationMs, outputDigest: tryDigest(name === 'PostToolUse' ? output : error) });
  const fault = mcpFault(output);
  if (name === 'PostToolUse' && fault === undefined) return { outcome: 'success', ...done };
  // How far a call came that was interrupted, nobody knows.
  if (event['is_interrupt'] === true) return { outcome: 'unknown', errorCode: 'INTERRUPTED', ...done };
  return { outcome: 'failure', errorCode: fault ?? exitCodeOf(error), ...done };
}

/** Of a failed command the agent says so in words. */
function exitCodeOf(error: unknown): string {
  const [, code] = typeof error === 'string' ? (/^Exit code (\d{1,3})(?!\d)/.exec(error) ?? []) : [];
  return code === undefined ? 'TOOL_ERROR' : `EXIT_${Number(code)}`;
}

/** A call that was denied has nothing to settle. */
async function ifKnown(settle: () => Promise<unknown>): Promise<void> {
  try {
    await settle();
  } catch (error) {
    if (!(error instanceof NorthrootError && error.code === 'CALL_NOT_FOUND')) throw error;
  }
}
