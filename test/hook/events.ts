/** Hook calls: recorded ones of real agents, and ones that are made. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const RECORDED = fileURLToPath(new URL('../../../shared/live/recorded/', import.meta.url));

/** Whether there are recorded calls here. */
export const HAS_RECORDED = existsSync(RECORDED);

/** The calls of a recorded run, in order, as they came. */
export function recorded(name: string): string[] {
  return readFileSync(`${RECORDED}${name}.hooks.jsonl`, 'utf8').trimEnd().split('\n');
}

/** A call in the form of Claude Code. */
export function event(name: string, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    session_id: 's1',
    hook_event_name: name,
    tool_name: 'Bash',
    tool_input: { command: 'echo hello' },
    ...(name.startsWith('Before') || name.startsWith('After') ? {} : { tool_use_id: 't1' }),
    ...more,
  });
}
