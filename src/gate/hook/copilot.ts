/**
 * Hooks of GitHub Copilot CLI, by its documentation of 1.0.102; not tried. Events are registered by their names in PascalCase, for which
 * it sends members in snake_case.
 */

import { callOf, type HookProfile, type HookStep, isEveryHookOff, NO_STEP, textOf } from './profile.js';

export const COPILOT: HookProfile = {
  name: 'copilot',
  title: 'GitHub Copilot CLI',
  principal: 'agent:copilot',
  decides: 'PreToolUse',
  events: ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'Stop', 'SessionEnd'],
  hears: ['allow', 'ask', 'rewrite'],
  settings: {
    folder: '.github/hooks',
    file: 'northroot.json',
    isProjectOnly: true,
    empty: { version: 1 },
    command: 'bash',
    isGrouped: false,
    isOff: isEveryHookOff,
    hook: (bash, timeoutSec) => ({ type: 'command', bash, timeoutSec }),
  },
  read: (event, name): HookStep => {
    switch (name) {
      case 'PreToolUse':
        return { kind: 'decide', call: callOf(event) };
      case 'PostToolUse':
        return { kind: 'settle', call: callOf(event), outcome: 'success', output: event['tool_result'] };
      case 'PostToolUseFailure':
        return { kind: 'settle', call: callOf(event), outcome: 'failure', output: event['error'] };
      case 'Stop':
        return { kind: 'release-session', session: textOf(event, 'session_id') };
      // What no end of a turn has released was running, or waited for its user.
      case 'SessionEnd':
        return { kind: 'release-session', session: textOf(event, 'session_id'), mayHaveRun: true };
      default:
        return NO_STEP;
    }
  },
  answer: (verdict) => ({
    permissionDecision: verdict.effect === 'rewrite' ? 'allow' : verdict.effect,
    permissionDecisionReason: verdict.reason,
    ...(verdict.effect === 'rewrite' ? { modifiedArgs: verdict.params } : {}),
  }),
};
