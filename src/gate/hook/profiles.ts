/** The profiles by their names. */

import { CLAUDE_CODE } from './claude-code.js';
import { CODEX } from './codex.js';
import { COPILOT } from './copilot.js';
import { GEMINI } from './gemini.js';
import type { HookName, HookProfile } from './profile.js';

/** How each coding agent speaks to its hooks, by name. */
export const HOOK_PROFILES: Readonly<Record<HookName, HookProfile>> = {
  'claude-code': CLAUDE_CODE,
  codex: CODEX,
  gemini: GEMINI,
  copilot: COPILOT,
};

export function isHookName(name: string): name is HookName {
  return Object.hasOwn(HOOK_PROFILES, name);
}
