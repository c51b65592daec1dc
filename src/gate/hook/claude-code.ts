/**
 * Hooks of Claude Code. Seen: 2.1.197 and 2.1.331. An allowed call may still be refused by its own rules, and then there is no
 * PostToolUse: the batch's end, the turn's or the session's releases it.
 */

import { CLAUDE_EVENTS } from '../claude-events.js';
import {
  callOf,
  callsOf,
  durationOf,
  exitCodeOf,
  type HookProfile,
  type HookStep,
  isEveryHookOff,
  NO_STEP,
  textOf,
} from './profile.js';

export const CLAUDE_CODE: HookProfile = {
  name: 'claude-code',
  title: 'Claude Code',
  principal: 'agent:claude-code',
  decides: 'PreToolUse',
  events: CLAUDE_EVENTS,
  hears: ['allow', 'ask', 'rewrite'],
  settings: {
    folder: '.claude',
    variable: 'CLAUDE_CONFIG_DIR',
    file: 'settings.json',
    empty: {},
    command: 'command',
    isGrouped: true,
    isOff: isEveryHookOff,
    // Versions that do not know `onFailure` let a call pass whose hook was killed.
    hook: (command, timeout, isDecision) => ({
      type: 'command',
      command,
      timeout,
      ...(isDecision ? { onFailure: 'block' } : {}),
    }),
  },
  read: (event, name): HookStep => {
    switch (name) {
      case 'PreToolUse':
        return { kind: 'decide', call: callOf(event) };
      case 'PostToolUse':
        return {
          kind: 'settle',
          call: callOf(event),
          outcome: 'success',
          output: event['tool_response'],
          durationMs: durationOf(event, 'duration_ms'),
        };
      case 'PostToolUseFailure':
        return {
          kind: 'settle',
          call: callOf(event),
          // How far a call came that was interrupted, nobody knows.
          outcome: event['is_interrupt'] === true ? 'unknown' : 'failure',
          output: event['error'],
          errorCode: event['is_interrupt'] === true ? 'INTERRUPTED' : exitCodeOf(event['error']),
          durationMs: durationOf(event, 'duration_ms'),
        };
      case 'PostToolBatch':
        return { kind: 'release', calls: callsOf(event, 'tool_calls') };
      case 'PermissionDenied':
        return { kind: 'release', calls: [callOf(event)] };
      case 'Stop':
      case 'StopFailure': {
        // What runs in the background has calls of its own, which are not over.
        const { background_tasks: tasks } = event;
        if (Array.isArray(tasks) && tasks.length > 0) return NO_STEP;
        return { kind: 'release-session', session: textOf(event, 'session_id') };
      }
      // What no end of a turn has released was running, or waited for its user.
      case 'SessionEnd':
        return { kind: 'release-session', session: textOf(event, 'session_id'), mayHaveRun: true };
      default:
        return NO_STEP;
    }
  },
  answer: (verdict) => ({
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: verdict.effect === 'rewrite' ? 'allow' : verdict.effect,
      permissionDecisionReason: verdict.reason,
      ...(verdict.effect === 'rewrite' ? { updatedInput: verdict.params } : {}),
    },
  }),
};
