/** Fakes of SDKs that ask before a call and tell after it, as the real ones were seen to do. */

import { guardApproval } from '../../../src/gate/sdk/ai.js';
import { guardHooks, type HookInput, type HookOptions } from '../../../src/gate/sdk/claude-agent.js';
import type { Gate } from '../../../src/gate/gate.js';
import type { Body, Called, Caller } from './kit.js';

/** `ToolMessage` of LangChain, as far as it matters. */
export class ToolMessage {
  readonly content: string;
  readonly tool_call_id: string;
  readonly name: string;
  readonly status: string | undefined;

  constructor(fields: { content: string; tool_call_id: string; name: string; status?: 'error' }) {
    this.content = fields.content;
    this.tool_call_id = fields.tool_call_id;
    this.name = fields.name;
    this.status = fields.status;
  }
}

/** Version 7 of the AI SDK: asks `toolApproval`, and tells `onToolExecutionEnd`, of which it swallows errors. */
export function approvingAi(
  gate: Gate,
  options: Parameters<typeof guardApproval>[1],
  body: Body,
  { toolApproval, onToolExecutionEnd } = guardApproval(gate, options),
): Caller {
  let count = 0;
  return {
    call: async (path, signal): Promise<Called> => {
      const toolCall = { toolCallId: `call_${(count += 1)}`, toolName: 'read', input: { path } };
      const status = await toolApproval({ toolCall });
      if (status !== undefined) return { told: status.reason };
      const tell = async (toolOutput: object): Promise<void> =>
        onToolExecutionEnd({ toolCall, toolExecutionMs: 1.5, toolOutput }).catch(() => undefined);
      try {
        const output = await body(path, signal);
        await tell({ type: 'tool-result', output });
        return { value: output };
      } catch (error) {
        await tell({ type: 'tool-error', error });
        return { told: String(error) };
      }
    },
  };
}

/** The agent of the Claude Agent SDK: it blocks where a hook fails, and hands an error on as a text. */
export function hookedClaude(gate: Gate, options: HookOptions, body: Body): Caller {
  const hooks = guardHooks(gate, options);
  let count = 0;
  return {
    call: async (path, signal): Promise<Called> => {
      const of = {
        session_id: 's1',
        tool_name: 'read',
        tool_input: { path },
        tool_use_id: `toolu_${(count += 1)}`,
      };
      const fire = (name: keyof typeof hooks, more: object = {}): Promise<Record<string, unknown>> => {
        const input: HookInput = { hook_event_name: name, ...of, ...more };
        const { signal: never } = new AbortController();
        return hooks[name][0].hooks[0](input, of.tool_use_id, { signal: never });
      };
      const answer = await fire('PreToolUse');
      const output = answer['hookSpecificOutput'] as Record<string, string> | undefined;
      if (output?.['permissionDecision'] === 'deny')
        return { told: output['permissionDecisionReason'] ?? '' };
      try {
        const response = await body(path, signal);
        await fire('PostToolUse', { tool_response: response, duration_ms: 2 });
        return { value: response };
      } catch (error) {
        const interrupt = signal?.aborted === true ? { is_interrupt: true } : {};
        await fire('PostToolUseFailure', { error: 'Exit code 3\nno', ...interrupt });
        return { told: String(error) };
      }
    },
  };
}
