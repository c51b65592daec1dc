/**
 * Hooks of Gemini CLI. Seen: 0.61. Calls have no id: the end of one is that of the oldest with the same tool and parameters in its
 * session. It merges rewritten parameters into the given ones, so that what would run is not what was decided: it is not asked to.
 */

import { isJsonObject } from '../../base/json/value.js';
import { callOf, type HookProfile, type HookStep, NO_STEP, textOf } from './profile.js';

export const GEMINI: HookProfile = {
  name: 'gemini',
  title: 'Gemini CLI',
  principal: 'agent:gemini',
  decides: 'BeforeTool',
  events: ['BeforeTool', 'AfterTool', 'AfterAgent', 'SessionEnd'],
  hears: ['allow'],
  settings: {
    folder: '.gemini',
    file: 'settings.json',
    empty: {},
    command: 'command',
    isGrouped: true,
    isOff: ({ hooksConfig }) => {
      if (!isJsonObject(hooksConfig)) return undefined;
      if (hooksConfig['enabled'] === false) return 'hooksConfig.enabled is false';
      const { disabled } = hooksConfig;
      const isNamed = Array.isArray(disabled) && disabled.includes('northroot');
      return isNamed ? 'hooksConfig.disabled has northroot' : undefined;
    },
    hook: (command, seconds) => ({ type: 'command', name: 'northroot', command, timeout: seconds * 1000 }),
  },
  read: (event, name): HookStep => {
    switch (name) {
      case 'BeforeTool':
        return { kind: 'decide', call: callOf(event) };
      case 'AfterTool': {
        const response = event['tool_response'];
        const hasFailed = isJsonObject(response) && (response['error'] ?? null) !== null;
        return {
          kind: 'settle',
          call: callOf(event),
          outcome: hasFailed ? 'failure' : 'success',
          output: response,
        };
      }
      case 'AfterAgent':
        return { kind: 'release-session', session: textOf(event, 'session_id') };
      // What no end of a turn has released was running, or waited for its user.
      case 'SessionEnd':
        return { kind: 'release-session', session: textOf(event, 'session_id'), mayHaveRun: true };
      default:
        return NO_STEP;
    }
  },
  answer: ({ effect, reason }) => ({ decision: effect, reason }),
};
