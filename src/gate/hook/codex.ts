/**
 * Hooks of Codex CLI. Seen: 0.169, 0.171. It hears a denial with a reason, or nothing: what it does not know it takes for nothing, and the
 * tool runs. It reports no exit status and no duration; nor an end of a command that still runs at the end of its turn or session, so that
 * neither gives back what was not reported.
 */

import { callOf, type HookProfile, type HookStep, NO_STEP } from './profile.js';

export const CODEX: HookProfile = {
  name: 'codex',
  title: 'Codex CLI',
  principal: 'agent:codex',
  decides: 'PreToolUse',
  events: ['PreToolUse', 'PostToolUse'],
  hears: [],
  settings: {
    folder: '.codex',
    variable: 'CODEX_HOME',
    file: 'hooks.json',
    empty: {},
    command: 'command',
    isGrouped: true,
    hook: (command, timeout) => ({ type: 'command', command, timeout }),
    remark: 'Codex runs hooks only after you trusted them: start it, and answer what it asks about them',
  },
  read: (event, name): HookStep => {
    switch (name) {
      case 'PreToolUse':
        return { kind: 'decide', call: callOf(event) };
      case 'PostToolUse':
        return { kind: 'settle', call: callOf(event), outcome: 'success', output: event['tool_response'] };
      default:
        return NO_STEP;
    }
  },
  answer: ({ effect, reason }) => ({
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: effect,
      permissionDecisionReason: reason,
    },
  }),
};
