/** Approval of tool calls in version 7 of the AI SDK, where tools cannot be wrapped. */

import { randomUUID } from 'node:crypto';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { escapeToolName } from '../../base/value/tool.js';
import { codeOf } from '../../log/agent/guard.js';
import type { CallOutcome, Gate, GateCall } from '../gate.js';
import { checkMethod, mcpFault, refusalText, toJson, tryDigest } from './shared.js';

/** For all calls of one `generateText` or `streamText`. */
export interface ApprovalOptions extends Pick<
  GateCall,
  'principal' | 'reserve' | 'resources' | 'userIntentDigest' | 'grantId' | 'ttlMs'
> {
  /** What ids of calls are unique in. Default: a new one. To go on after an approval by the user, give the same. */
  readonly session?: string | undefined;
}

interface ToolCallLike {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input?: unknown;
}

/** What to spread into the options of `generateText` or `streamText`. */
export interface GuardedApproval {
  readonly toolApproval: (asked: {
    readonly toolCall: ToolCallLike;
  }) => Promise<{ readonly type: 'denied'; readonly reason: string } | undefined>;
  readonly onToolExecutionEnd: (end: {
    readonly toolCall: ToolCallLike;
    readonly toolExecutionMs: number;
    readonly toolOutput: unknown;
  }) => Promise<void>;
}

/**
 * For version 7, instead of {@link guardTools}, where tools cannot be wrapped: decides in `toolApproval`, before any call of a step runs, and
 * settles in `onToolExecutionEnd`. What is allowed keeps the tool's own approval. What was allowed and does not run is released when it
 * expires (`ttlMs`). A call whose end could not be recorded emits the process warning `NORTHROOT_UNRECORDED`.
 * @example
 * await generateText({ model, tools, prompt, ...guardApproval(gate) });
 */
export function guardApproval(gate: Gate, options: ApprovalOptions = {}): GuardedApproval {
  checkMethod('guardApproval', 'a gate', gate, 'decide');
  const { session = randomUUID(), ...rest } = options;
  const ofCall = { session, principal: rest.principal };
  return {
    toolApproval: async ({ toolCall: { toolCallId: ref, toolName, input } }) => {
      const params = toJson(input);
      const tool = escapeToolName(toolName);
      const decision = await gate.decide({ ...rest, session, ref, tool, params, start: false });
      if (decision.effect === 'allow') return undefined;
      // The SDK cannot be given other parameters.
      if (decision.effect === 'rewrite') await gate.release({ ref, ...ofCall });
      const { code, reason = decision.effect } = decision;
      return { type: 'denied', reason: refusalText(code, reason) };
    },
    onToolExecutionEnd: async ({
      toolCall: { toolCallId: ref },
      toolExecutionMs: durationMs,
      toolOutput,
    }) => {
      const { type, error, output } = toolOutput as { type?: unknown; error?: unknown; output?: unknown };
      const errorCode = type === 'tool-error' ? codeOf({ kind: 'threw', error }) : mcpFault(output);
      const done: CallOutcome = {
        outcome: errorCode === undefined ? 'success' : 'failure',
        durationMs,
        ...defined({ errorCode, outputDigest: tryDigest(output) }),
      };
      try {
        await gate.settle({ ref, ...ofCall }, done);
      } catch (cause) {
        // The SDK would take no notice of it.
        const text = `how call ${printable(ref, 80)} ended is not recorded: ${printable(String(cause), 400)}`;
        process.emitWarning(text, { code: 'NORTHROOT_UNRECORDED' });
      }
    },
  };
}
