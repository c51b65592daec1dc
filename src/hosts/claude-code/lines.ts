/** Lines of hook logs and of transcripts, read. */

import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { SourceItem } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, timeOf, timeOfText, valueAt } from '../shared/values.js';

export interface HookLine {
  readonly kind: 'hook';
  readonly item: SourceItem;
  /** `PreToolUse` */
  readonly event: string;
  readonly session: string;
  /** The subagent that it is about; undefined where it is the session's own agent. */
  readonly agent: string | undefined;
  readonly time: string | undefined;
  readonly input: SourceObject;
  readonly answer: HookAnswer | undefined;
}

export interface HookAnswer {
  /** As it was written: `allow`, `ask`; `exit 2`. */
  readonly stated: string;
  /** Undefined where it decides nothing: `ask`, `defer`. */
  readonly decision: 'allow' | 'deny' | undefined;
  /** Whether it is one of those that hooks can give. */
  readonly isKnown: boolean;
  /** The parameters that are to run instead. */
  readonly updatedInput: SourceObject | undefined;
  /** What the model is told of it; kept nowhere. */
  readonly reason: string | undefined;
}

export interface AnswerLine {
  readonly kind: 'answer';
  readonly item: SourceItem;
  readonly event: string | undefined;
  readonly time: string | undefined;
  readonly answer: HookAnswer | undefined;
}

export interface TranscriptLine {
  readonly kind: 'transcript';
  readonly item: SourceItem;
  /** `assistant` */
  readonly type: string;
  readonly uuid: string | undefined;
  readonly parent: string | undefined;
  readonly session: string;
  /** The subagent that wrote it; undefined where it is the session's own agent. */
  readonly agent: string | undefined;
  readonly time: string | undefined;
  readonly value: SourceObject;
}

export type Line = HookLine | AnswerLine | TranscriptLine;

/** Whether a hook was one of Codex CLI, whose hooks are told much the same, and the turn. */
export function isCodexHook({ input }: Pick<HookLine, 'input'>): boolean {
  const path = textAt(input, 'transcript_path') ?? '';
  return textAt(input, 'turn_id') !== undefined || /(?:^|[/\\])rollout-[^/\\]*\.jsonl$/.test(path);
}

const TIMES = ['timestamp', 'logged_at', 'time', 'ts'] as const;
/** A count of seconds of this many is in the year 5138. */
const MILLISECONDS_FROM = 1e11;

/** Reads a line; undefined for what is none of these. */
export function readLine(item: SourceItem): Line | undefined {
  const { value } = item;
  if (!(value instanceof SourceObject)) return undefined;
  const input = objectAt(value, 'input') ?? objectAt(value, 'hook_input') ?? value;
  const event = textAt(input, 'hook_event_name');
  const output = objectAt(value, 'output') ?? objectAt(value, 'hook_output') ?? value;
  const time = timeAt(value) ?? timeAt(input);
  if (event !== undefined) {
    const session = textAt(input, 'session_id') ?? '';
    const agent = named(textAt(input, 'agent_id'));
    return { kind: 'hook', item, event, session, agent, time, input, answer: answerOf(output, value) };
  }
  const type = textAt(value, 'type');
  // The older form has no member that names it.
  if (output.has('hookSpecificOutput') || (type === undefined && textAt(output, 'decision') !== undefined)) {
    const about = textAt(output, 'hookSpecificOutput', 'hookEventName');
    return { kind: 'answer', item, event: about, time, answer: answerOf(output, value) };
  }
  if (type === undefined) return undefined;
  return {
    kind: 'transcript',
    item,
    type,
    uuid: textAt(value, 'uuid'),
    parent: textAt(value, 'parentUuid'),
    session: textAt(value, 'sessionId') ?? '',
    agent: named(textAt(value, 'agentId')) ?? agentOfFile(item.at.file),
    time,
    value,
  };
}

function named(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** A subagent's transcript is a file of its own, named by it. */
function agentOfFile(file: string): string | undefined {
  return /(?:^|[/\\!])agent-([A-Za-z0-9_-]{1,128})\.jsonl$/.exec(file)?.[1];
}

/** Lines of sidechains that name no subagent, as older versions wrote them, with the line that each sidechain begins with for its name. */
export function withSidechains(lines: readonly TranscriptLine[]): readonly TranscriptLine[] {
  const names = new Map<string, string>();
  return lines.map((line) => {
    const { uuid, parent } = line;
    if (line.agent !== undefined || uuid === undefined || valueAt(line.value, 'isSidechain') !== true)
      return line;
    const agent = (parent === undefined ? undefined : names.get(parent)) ?? `sidechain-${uuid}`;
    names.set(uuid, agent);
    return { ...line, agent };
  });
}

function timeAt(value: SourceObject): string | undefined {
  for (const name of TIMES) {
    const stated = value.get(name);
    if (typeof stated === 'string') return timeOfText(stated);
    if (stated instanceof SourceNumber)
      return timeOf(stated.text, Number(stated.text) >= MILLISECONDS_FROM ? 'ms' : 's');
  }
  return undefined;
}

const DECISIONS: Readonly<Record<string, 'allow' | 'deny' | 'none'>> = {
  allow: 'allow',
  approve: 'allow',
  deny: 'deny',
  block: 'deny',
  ask: 'none',
  defer: 'none',
};

/** An exit status of 2 blocks, whatever was written besides. */
function answerOf(output: SourceObject, line: SourceObject): HookAnswer | undefined {
  const specific = objectAt(output, 'hookSpecificOutput');
  const updatedInput = objectAt(specific, 'updatedInput') ?? objectAt(specific, 'decision', 'updatedInput');
  const reason =
    textAt(specific, 'permissionDecisionReason') ??
    textAt(specific, 'decision', 'message') ??
    textAt(output, 'reason');
  if (numberAt(line, 'exit_code') === '2')
    return { stated: 'exit 2', decision: 'deny', isKnown: true, updatedInput: undefined, reason };
  const stated =
    textAt(specific, 'permissionDecision') ??
    textAt(specific, 'decision', 'behavior') ??
    textAt(output, 'decision');
  if (stated === undefined) return undefined;
  const meant = Object.hasOwn(DECISIONS, stated) ? DECISIONS[stated] : undefined;
  return {
    stated,
    decision: meant === 'none' ? undefined : meant,
    isKnown: meant !== undefined,
    updatedInput,
    reason,
  };
}

/** A tool use or a tool result within a message. */
export interface Block {
  readonly id: string;
  readonly value: SourceObject;
}

/** The blocks of one type in a line's message. */
export function blocksOf(line: TranscriptLine, type: 'tool_use' | 'tool_result'): readonly Block[] {
  const member = type === 'tool_use' ? 'id' : 'tool_use_id';
  return (listAt(line.value, 'message', 'content') ?? []).flatMap((value) => {
    const id = textAt(value, member);
    return value instanceof SourceObject && textAt(value, 'type') === type && id !== undefined
      ? [{ id, value }]
      : [];
  });
}

/**
 * What Claude Code writes as the result of a tool use that did not run. A transcript has no member that says so, only these words, which
 * an answer of a tool could hold too: only results that are errors are checked against them.
 */
const DENIALS: readonly (readonly [string, RegExp])[] = [
  [
    'USER_REJECTED',
    /^(?:Error: )?(?:The user doesn['’]t want to (?:proceed with this tool use|take this action)|User rejected tool use$)/,
  ],
  [
    'PERMISSION_DENIED',
    /^(?:Error: )?(?:Permission to use .{1,40000} has been denied|Permission for this (?:action|tool use) (?:was|has been) denied|Claude requested permissions to .{1,40000}, but you haven['’]t granted it yet|This (?:Bash )?command (?:requires approval|contains multiple operations\. The following parts? requires? approval))/s,
  ],
  ['HOOK_DENIED', /^(?:Error: )?(?:Hook )?PreToolUse:\S{1,200} (?:hook (?:blocking )?error|denied)/],
];

/**
 * What it writes where it called no tool: the call names none, its input is not of the tool's schema, or another call of the same message
 * failed before this one's turn.
 */
const NOT_CALLED: readonly (readonly [string, RegExp])[] = [
  ['CANCELLED', /^(?:Cancelled: parallel tool call |Sibling tool call errored)/],
  ['INPUT_REFUSED', /^InputValidationError: /],
  ['TOOL_UNKNOWN', /^(?:Error: )?No such tool available: /],
];

/** The code of the denial that a result states; undefined where the tool ran. */
export function denialOf(line: TranscriptLine, block: Block): string | undefined {
  return errorTextsOf(line, block)
    .map((text) => DENIALS.find(([, words]) => words.test(text))?.[0])
    .find((code) => code !== undefined);
}

/** Whether a result is an error that says one of the reasons, trimmed, for which the tool was denied, and nothing else. */
export function statesReason(line: TranscriptLine, block: Block, reasons: ReadonlySet<string>): boolean {
  return errorTextsOf(line, block).some((text) => reasons.has(text.replace(/^Error: /, '').trim()));
}

/** Why a result is none of a call, as a code; undefined where the tool was called. */
export function notCalledOf(line: TranscriptLine, block: Block): string | undefined {
  return errorTextsOf(line, block)
    .map((text) => {
      const own = /^(?:Error: )?<tool_use_error>/.exec(text)?.[0];
      return own === undefined
        ? undefined
        : NOT_CALLED.find(([, words]) => words.test(text.slice(own.length)))?.[0];
    })
    .find((code) => code !== undefined);
}

/** What a result that is an error says; none of one that is not. */
function errorTextsOf(line: TranscriptLine, { value }: Block): readonly string[] {
  if (valueAt(value, 'is_error') !== true) return [];
  const texts = [textAt(line.value, 'toolUseResult'), firstTextOf(valueAt(value, 'content'))];
  return texts.filter((text) => text !== undefined);
}

function firstTextOf(content: SourceValue | undefined): string | undefined {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? textAt(content[0] as SourceValue, 'text') : undefined;
}
