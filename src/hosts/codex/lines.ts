/** Lines of rollouts, read. */

import { SourceObject } from '../../base/json/source-json.js';
import {
  type AnswerLine,
  type HookLine,
  isCodexHook,
  readLine as readHookLine,
} from '../claude-code/lines.js';
import type { SourceItem } from '../shared/host.js';
import { objectAt, textAt, timeOfText } from '../shared/values.js';

export interface RolloutLine {
  readonly kind: 'rollout';
  readonly item: SourceItem;
  readonly record: string;
  /** What the payload says that it is: `function_call`. */
  readonly type: string | undefined;
  readonly payload: SourceObject;
  readonly time: string | undefined;
}

export type Line = HookLine | AnswerLine | RolloutLine;

/** What older versions wrote without a record around it. */
const BARE_ITEMS: readonly string[] = [
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'local_shell_call',
  'custom_tool_call',
  'custom_tool_call_output',
  'web_search_call',
];

/** Reads a line; undefined for what is none of these. */
export function readLine(item: SourceItem): Line | undefined {
  const { value } = item;
  if (!(value instanceof SourceObject)) return undefined;
  const rollout = rolloutOf(item, value);
  if (rollout !== undefined) return rollout;
  const line = readHookLine(item);
  return line?.kind === 'transcript' ? undefined : line;
}

function rolloutOf(item: SourceItem, value: SourceObject): RolloutLine | undefined {
  const time = timeOfText(textAt(value, 'timestamp'));
  const record = textAt(value, 'type');
  const payload = objectAt(value, 'payload');
  if (record !== undefined && payload !== undefined)
    return { kind: 'rollout', item, record, type: textAt(payload, 'type'), payload, time };
  if (record !== undefined && BARE_ITEMS.includes(record))
    return { kind: 'rollout', item, record: 'response_item', type: record, payload: value, time };
  const isMeta = record === undefined && textAt(value, 'id') !== undefined && value.has('instructions');
  return isMeta && time !== undefined
    ? { kind: 'rollout', item, record: 'session_meta', type: undefined, payload: value, time }
    : undefined;
}

const RECORDS: readonly string[] = [
  'session_meta',
  'turn_context',
  'response_item',
  'event_msg',
  'compacted',
];

/** Whether a line is one of Codex and of nothing else: its hooks are told much the same as those of Claude Code. */
export function isOwnLine(item: SourceItem): boolean {
  const line = readLine(item);
  if (line?.kind === 'rollout')
    return RECORDS.includes(line.record) && (line.payload !== item.value || line.record === 'session_meta');
  return line?.kind === 'hook' && isCodexHook(line);
}
