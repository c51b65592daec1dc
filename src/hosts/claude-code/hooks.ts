/** Hook logs: what hooks were told, and what they answered. */

import type { JsonObject } from '../../base/json/value.js';
import { sha256Digest, toDigestText } from '../../base/value/digest.js';
import { factText, factTexts, toolOf } from '../shared/names.js';
import { amountOf, jcsDigest, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import type { Call } from './calls.js';
import type { AnswerLine, HookAnswer, HookLine } from './lines.js';
import type { Recorder } from './recorder.js';
import { callMeters } from '../shared/usage.js';

interface ToolEvent {
  readonly line: HookLine;
  readonly tool: string;
  readonly call: Call;
  readonly occurredAt: string;
  readonly paramsDigest: ReturnType<typeof jcsDigest>;
}

export class HookReader {
  readonly #recorder: Recorder;
  /** How often a line that is about no tool was there, by file. */
  readonly #counts = new Map<string, Map<string, number>>();
  readonly #largest = new Map<string, number>();
  readonly #kept = new Set<string>();
  #hasPreToolUse = false;
  /** The tool use of the last line that was about one. */
  #asking: Call | undefined;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  read(lines: readonly (HookLine | AnswerLine)[]): void {
    this.#hasPreToolUse ||= lines.some((line) => line.kind === 'hook' && line.event === 'PreToolUse');
    let last: HookLine | undefined;
    for (const line of lines) {
      if (line.kind === 'hook') {
        this.#hook(line);
        last = line;
      } else {
        this.#answerLine(line, last);
      }
    }
  }

  /** An answer by itself is that of the input before it in its file. */
  #answerLine(line: AnswerLine, asked: HookLine | undefined): void {
    const { item, event, answer, time } = line;
    const isIts =
      asked !== undefined && asked.item.at.file === item.at.file && (event ?? asked.event) === asked.event;
    const about = isIts ? this.#toolEvent({ ...asked, item, time: time ?? asked.time }, true) : undefined;
    if (about === undefined) {
      this.#recorder.reading.drop(item.at, 'answer', isIts ? 'NOT_ABOUT_A_TOOL' : 'INPUT_NOT_FOUND');
      return;
    }
    const isAsked = DECIDING.includes(about.line.event);
    if (!isAsked || !this.#decide(about, answer))
      this.#keep(about.line, about.occurredAt, `answer:${about.call.id}:${contentOf(line)}`, 'answer');
  }

  #hook(line: HookLine): void {
    const { event } = line;
    if (!TOOL_EVENTS.includes(event)) {
      this.#other(line);
      return;
    }
    const about = this.#toolEvent(line);
    if (about === undefined) return;
    if (event === 'PostToolUse' || event === 'PostToolUseFailure') this.#ended(about);
    else if (event === 'PermissionDenied') this.#denied(about);
    else this.#asked(about);
  }

  /** What an event of a tool is about; undefined where it is dropped. */
  #toolEvent(line: HookLine, isAnswer = false): ToolEvent | undefined {
    const { item, event, session, input } = line;
    const { calls, reading } = this.#recorder;
    const tool = textAt(input, 'tool_name');
    if (tool === undefined || (isAnswer && !TOOL_EVENTS.includes(event))) {
      if (!isAnswer) reading.drop(item.at, event, 'TOOL_NOT_STATED');
      return undefined;
    }
    const paramsDigest = jcsDigest(valueAt(input, 'tool_input'));
    const id = textAt(input, 'tool_use_id');
    let call = id === undefined ? undefined : calls.of(id, line);
    if (call === undefined && isAnswer) call = this.#asking;
    else if (call === undefined && event !== 'PermissionRequest')
      call = calls.open(session, tool, paramsDigest);
    else if (call === undefined)
      call =
        calls.request(session, tool, paramsDigest) ?? calls.of(`unnamed:${contentOf(line)}`, line, false);
    this.#asking = call;
    if (call === undefined) {
      if (!isAnswer) {
        this.#recorder.find('ID_NOT_STATED', item.at, { expected: 'tool_use_id' });
        reading.drop(item.at, event, 'ID_NOT_STATED');
      }
      return undefined;
    }
    const occurredAt = this.#recorder.timeOf(item, event, line.time, call.id);
    return occurredAt === undefined ? undefined : { line, tool, call, occurredAt, paramsDigest };
  }

  /** PreToolUse and PermissionRequest: a tool is to run, and a hook may say whether it may. */
  #asked(about: ToolEvent): void {
    const { line, tool, call, occurredAt, paramsDigest } = about;
    const { calls, reading } = this.#recorder;
    const { at } = line.item;
    const before = call.proposals.find(({ from }) => from === 'hook');
    const isNew = before === undefined && (line.event === 'PreToolUse' || !call.isNamed);
    if (isNew) calls.propose(call, { from: 'hook', tool, paramsDigest, at, occurredAt });
    else if (before !== undefined && (before.tool !== tool || before.paramsDigest?.b64 !== paramsDigest?.b64))
      this.#recorder.find('DUPLICATE_TOOL_USE', at, { about: call.id, related: [before.at] });
    if (this.#decide(about, line.answer)) return;
    const name = snakeCase(line.event);
    const isKept = isNew || line.event === 'PermissionRequest';
    if (isKept) this.#keep(line, occurredAt, `${name}:${call.id}`, name);
    else reading.item({ at, type: line.event, fate: 'repeated', reason: 'TOOL_USE_REPEATED' });
  }

  /** Whether an answer decided: then the line is accounted for. */
  #decide(
    { line, tool, call, occurredAt, paramsDigest }: ToolEvent,
    answer: HookAnswer | undefined,
  ): boolean {
    const { event, item } = line;
    if (answer !== undefined && !answer.isKnown)
      this.#recorder.find('DECISION_UNKNOWN', item.at, { about: call.id, actual: answer.stated });
    if (answer?.decision === undefined) return false;
    const { updatedInput } = answer;
    const isNew = this.#recorder.decide(call, item, {
      decision: answer.decision,
      code: `${event === 'PermissionRequest' ? 'PERMISSION' : 'HOOK'}_${answer.decision.toUpperCase()}`,
      paramsDigest: updatedInput === undefined ? paramsDigest : jcsDigest(updatedInput),
      name: `${snakeCase(event)}_decision`,
      reason: answer.reason,
      tool,
      occurredAt,
    });
    this.#account(line, isNew, 'DECISION_REPEATED');
    return true;
  }

  #denied({ line, tool, call, occurredAt, paramsDigest }: ToolEvent): void {
    const isNew = this.#recorder.decide(call, line.item, {
      decision: 'deny',
      code: 'PERMISSION_DENIED',
      paramsDigest,
      name: 'permission_denied',
      reason: textAt(line.input, 'reason'),
      tool,
      occurredAt,
    });
    this.#account(line, isNew, 'DECISION_REPEATED');
  }

  #ended({ line, tool, call, occurredAt, paramsDigest }: ToolEvent): void {
    const { event, input, item } = line;
    this.#recorder.calls.adopt(call, tool, paramsDigest);
    const before = call.proposals.find(({ from }) => from === 'hook');
    if (before === undefined && this.#hasPreToolUse)
      this.#recorder.find('RESULT_WITHOUT_USE', item.at, {
        about: call.id,
        expected: 'PreToolUse before it',
        weight: 'warning',
      });
    const response = valueAt(input, 'tool_response') ?? valueAt(input, 'error');
    const isInterrupted =
      valueAt(input, 'is_interrupt') === true || valueAt(input, 'tool_response', 'interrupted') === true;
    const hasFailed =
      event === 'PostToolUseFailure' ||
      isInterrupted ||
      valueAt(input, 'tool_response', 'success') === false ||
      valueAt(input, 'tool_response', 'is_error') === true ||
      valueAt(input, 'tool_response', 'isError') === true;
    const isNew = this.#recorder.end(call, item, {
      from: 'hook',
      tool,
      outcome: hasFailed ? 'failure' : this.#recorder.host.hooksKnowOutcomes ? 'success' : 'unknown',
      errorCode: isInterrupted ? 'INTERRUPTED' : undefined,
      paramsDigest,
      outputDigest: jcsDigest(response ?? undefined),
      meters: callMeters(amountOf(numberAt(input, 'duration_ms'))),
      occurredAt,
    });
    this.#account(line, isNew, 'RESULT_REPEATED');
  }

  #account({ item: { at }, event }: HookLine, isNew: boolean, reason: string): void {
    this.#recorder.reading.item({
      at,
      type: event,
      ...(isNew ? { fate: 'mapped' } : { fate: 'repeated', reason }),
    });
  }

  /** A line that is about no tool. Such lines have no id: it is what they say, and which of those that say it they are in their file. */
  #other(line: HookLine): void {
    const { item, event } = line;
    const { reading } = this.#recorder;
    const content = contentOf(line);
    const counts = this.#counts.get(item.at.file) ?? new Map<string, number>();
    this.#counts.set(item.at.file, counts);
    const nth = (counts.get(content) ?? 0) + 1;
    counts.set(content, nth);
    if (nth <= (this.#largest.get(content) ?? 0)) {
      reading.item({ at: item.at, type: event, fate: 'repeated', reason: 'LINE_REPEATED' });
      return;
    }
    this.#largest.set(content, nth);
    const occurredAt = this.#recorder.timeOf(item, event, line.time);
    if (occurredAt === undefined) return;
    this.#keep(line, occurredAt, `hook:${content}${nth === 1 ? '' : `:${nth}`}`, snakeCase(event));
  }

  #keep(line: HookLine, occurredAt: string, id: string, type: string): void {
    const { at, bytes } = line.item;
    const { reading } = this.#recorder;
    if (this.#kept.has(id)) {
      reading.item({ at, type: line.event, fate: 'repeated', reason: 'LINE_REPEATED' });
      return;
    }
    this.#kept.add(id);
    reading.claim({
      kind: 'evidence',
      id,
      type,
      facts: factsOf(line),
      at,
      bytes,
      occurredAt,
      principalId: this.#recorder.agentOf(line),
    });
    reading.item({ at, type: line.event, fate: 'evidence' });
  }
}

/** Events whose answer says whether a tool may run; that of the others says what is thought of what was done. */
const DECIDING: readonly string[] = ['PreToolUse', 'PermissionRequest'];

const TOOL_EVENTS: readonly string[] = [
  'PreToolUse',
  'PermissionRequest',
  'PermissionDenied',
  'PostToolUse',
  'PostToolUseFailure',
];

const FACTS = [
  'session_id',
  'tool_use_id',
  'permission_mode',
  'agent_id',
  'agent_type',
  'source',
  'trigger',
] as const;

function factsOf({ event, input, answer }: HookLine): JsonObject {
  const digest = jcsDigest(objectAt(input, 'tool_input'));
  const tool = textAt(input, 'tool_name');
  return {
    hook_event_name: factText(event),
    ...factTexts(FACTS, (name) => textAt(input, name)),
    ...(tool === undefined ? {} : { tool_name: toolOf(tool) }),
    ...(digest === undefined ? {} : { params_digest: { ...digest } }),
    ...(answer === undefined ? {} : { answer: factText(answer.stated) }),
  };
}

function contentOf({ item }: HookLine | AnswerLine): string {
  return toDigestText(sha256Digest(item.bytes).b64);
}

function snakeCase(name: string): string {
  const snake = name.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_');
  return snake === '' ? 'hook' : snake.toLowerCase().slice(0, 64);
}
