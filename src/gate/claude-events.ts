/** The events of Claude Code that tell what becomes of a call: of its hooks, and of its SDK's. */
export const CLAUDE_EVENTS = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PostToolBatch',
  'PermissionDenied',
  'Stop',
  'StopFailure',
  'SessionEnd',
] as const;
