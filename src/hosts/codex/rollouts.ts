/** Rollouts: what the model proposed, what came of it, and what its answers used. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { decodeSourceJson, type SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import type { Quantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { type Call, proposalOf } from '../claude-code/calls.js';
import type { Recorder } from '../claude-code/recorder.js';
import type { HostPlace, ItemFate } from '../shared/host.js';
import { factText, factTexts, toolOf } from '../shared/names.js';
import { amountFacts, callMeters, metersOf } from '../shared/usage.js';
import { amountOf, jcsDigest, listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import type { RolloutLine } from './lines.js';
import { type Outcome, outcomeOf, outcomeOfEvent } from './outcomes.js';
import type { Session } from './sessions.js';
import { type Tokens, UsageCount, type UsageFault } from './usage.js';

/** Kinds that nobody knows are named one by one, up to so many. */
const MAX_KINDS = 100;

interface Reading {
  readonly session: Session;
  readonly usage: UsageCount;
  /** What was told of the end of a call beside its output. */
  readonly ends: ReadonlyMap<string, SourceObject>;
  model: string | undefined;
  turn: string | undefined;
}

export class RolloutReader {
  readonly #recorder: Recorder;
  readonly #kinds = new Map<string, { readonly at: HostPlace; count: number }>();
  /** How many lines of a session were kept, over all of its files. */
  readonly #kept = new Map<string, number>();
  readonly #used = new Map<string, UsageCount>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  read(sessions: readonly Session[]): void {
    for (const session of sessions) this.#session(session);
    for (const [kind, { at, count }] of this.#kinds)
      this.#recorder.find('KIND_UNKNOWN', at, { about: kind, actual: `${kind} on ${count} lines` });
  }

  #session(session: Session): void {
    const { id, lines, copies, isFork } = session;
    const ends = new Map<string, SourceObject>();
    for (const line of lines) {
      const call = copies.has(line) ? undefined : textAt(line.payload, 'call_id');
      if (call === undefined) continue;
      if (ENDS.includes(line.type ?? '')) ends.set(call, line.payload);
    }
    const usage = this.#used.get(id) ?? new UsageCount(isFork);
    this.#used.set(id, usage);
    const reading: Reading = { session, usage, ends, model: undefined, turn: undefined };
    for (const line of lines) {
      const reason = copies.get(line);
      if (reason === undefined) {
        this.#line(reading, line);
        continue;
      }
      const info = objectAt(line.payload, 'info');
      if (line.type === 'token_count' && info !== undefined && reason === 'HISTORY_COPIED') usage.skip(info);
      const { at } = line.item;
      this.#recorder.reading.item({ at, type: kindOf(line), fate: 'repeated', reason });
    }
  }

  #line(reading: Reading, line: RolloutLine): void {
    const { record, type = '' } = line;
    if (record === 'response_item') this.#responseItem(reading, line, type);
    else if (record === 'event_msg') this.#event(reading, line, type);
    else if (record === 'session_meta' || record === 'turn_context' || record === 'compacted') {
      if (record === 'turn_context') {
        reading.model = textAt(line.payload, 'model');
        reading.turn = textAt(line.payload, 'turn_id');
      }
      this.#evidence(reading, line, record);
    } else this.#unknown(line);
  }

  #responseItem(reading: Reading, line: RolloutLine, type: string): void {
    if (type === 'message') this.#evidence(reading, line, 'message');
    else if (USES.includes(type)) this.#use(reading, line, type);
    else if (OUTPUTS.includes(type)) this.#output(reading, line);
    else if (OWN_USES.has(type)) this.#ownUse(reading, line, OWN_USES.get(type) as string);
    else if (NO_ACTIONS.includes(type)) this.#drop(line, 'NOT_AN_ACTION');
    else this.#unknown(line);
  }

  #event(reading: Reading, line: RolloutLine, type: string): void {
    const { at } = line.item;
    if (type === 'token_count') this.#tokens(reading, line);
    else if (ENDS.includes(type)) this.#end(reading, line, type);
    else if (MIRRORS.includes(type))
      this.#recorder.reading.item({ at, type: kindOf(line), fate: 'repeated', reason: 'MESSAGE_REPEATED' });
    else if (TOLD_EVENTS.includes(type)) this.#evidence(reading, line, type);
    else if (NO_EVENTS.test(type)) this.#drop(line, 'NOT_AN_ACTION');
    else this.#unknown(line);
  }

  #unknown(line: RolloutLine): void {
    const name = kindOf(line);
    const kind = this.#kinds.has(name) || this.#kinds.size < MAX_KINDS ? name : 'others';
    const { at, count } = this.#kinds.get(kind) ?? { at: line.item.at, count: 0 };
    this.#kinds.set(kind, { at, count: count + 1 });
    this.#drop(line, 'KIND_UNKNOWN');
  }

  #drop(line: RolloutLine, reason: string): void {
    this.#recorder.reading.drop(line.item.at, kindOf(line), reason);
  }

  /** The call that a line names, and its time; undefined where the line is dropped. */
  #callOf(
    reading: Reading,
    line: RolloutLine,
    id = textAt(line.payload, 'call_id') ?? textAt(line.payload, 'id'),
  ): { readonly call: Call; readonly occurredAt: string } | undefined {
    const { item } = line;
    if (id === undefined || id === '') {
      this.#recorder.find('ID_NOT_STATED', item.at, { expected: 'call_id' });
      this.#drop(line, 'ID_NOT_STATED');
      return undefined;
    }
    const occurredAt = this.#recorder.timeOf(item, kindOf(line), line.time, id);
    if (occurredAt === undefined) return undefined;
    return { call: this.#recorder.calls.of(id, reading.session.actor), occurredAt };
  }

  #use(reading: Reading, line: RolloutLine, type: string): void {
    const found = this.#callOf(reading, line);
    if (found === undefined) return;
    const { at } = line.item;
    const { call, occurredAt } = found;
    const tool = toolName(line.payload, type);
    const paramsDigest = jcsDigest(paramsOf(line.payload));
    const before = call.proposals.find(({ from }) => from === 'transcript');
    if (before !== undefined) {
      const isSame = before.tool === tool && before.paramsDigest?.b64 === paramsDigest?.b64;
      if (!isSame) this.#recorder.find('DUPLICATE_TOOL_USE', at, { about: call.id, related: [before.at] });
      this.#recorder.reading.item({ at, type: kindOf(line), fate: 'repeated', reason: 'TOOL_USE_REPEATED' });
      return;
    }
    this.#recorder.calls.propose(call, { from: 'transcript', tool, paramsDigest, at, occurredAt });
    this.#keep(reading, line, occurredAt, `tool_use:${call.id}`, 'tool_use', {
      ...this.#context(reading),
      call_id: factText(call.callId),
      tool_name: toolOf(tool),
      ...(paramsDigest === undefined ? {} : { params_digest: { ...paramsDigest } }),
    });
    this.#recorder.reading.item({ at, type: kindOf(line), fate: 'evidence' });
  }

  /** What the provider's own tools did is one item, with no output beside it. */
  #ownUse(reading: Reading, line: RolloutLine, tool: string): void {
    const nth = (this.#kept.get(reading.session.id) ?? 0) + 1;
    const found = this.#callOf(reading, line, textAt(line.payload, 'id') ?? `${tool}-${nth}`);
    if (found === undefined) return;
    this.#kept.set(reading.session.id, nth);
    const { call, occurredAt } = found;
    const paramsDigest = jcsDigest(valueAt(line.payload, 'action') ?? undefined);
    this.#recorder.calls.propose(call, {
      from: 'transcript',
      tool,
      paramsDigest,
      at: line.item.at,
      occurredAt,
    });
    const status = textAt(line.payload, 'status');
    const outcome = status === 'completed' ? 'success' : status === 'failed' ? 'failure' : 'unknown';
    this.#account(line, this.#ended(line, call, tool, { outcome }, undefined, occurredAt));
  }

  #output(reading: Reading, line: RolloutLine): void {
    const found = this.#callOf(reading, line, textAt(line.payload, 'call_id') ?? '');
    if (found === undefined) return;
    const { call, occurredAt } = found;
    const { at } = line.item;
    const proposal = proposalOf(call);
    if (proposal === undefined) {
      this.#recorder.find('RESULT_WITHOUT_USE', at, { about: call.id, expected: 'a call before it' });
      this.#evidence(reading, line, 'output');
      return;
    }
    if (compareTimestamps(occurredAt, proposal.occurredAt) < 0 && proposal.from === 'transcript')
      this.#recorder.find('RESULT_BEFORE_USE', at, {
        about: call.id,
        expected: `from ${proposal.occurredAt}`,
        actual: occurredAt,
        related: [proposal.at],
      });
    // What was told of its end before it is the end.
    if (call.ending !== undefined && reading.ends.has(call.callId)) {
      this.#account(line, false);
      return;
    }
    const output = valueAt(line.payload, 'output') ?? valueAt(line.payload, 'tools');
    const outcome = outcomeOf(output, reading.ends.get(call.callId));
    this.#conclude(reading, line, call, proposal.tool, outcome, output, occurredAt);
  }

  /** An event about the end of a call is the end where it says how, and no output before it was. */
  #end(reading: Reading, line: RolloutLine, type: string): void {
    const id = textAt(line.payload, 'call_id');
    const isOfPerson = /^user_?shell$/i.test(textAt(line.payload, 'source') ?? '');
    const known = id === undefined ? undefined : this.#recorder.calls.find(id, reading.session.actor);
    const outcome = outcomeOfEvent(line.payload);
    const isOpen = outcome.outcome === 'unknown' && outcome.denial === undefined;
    if (id === undefined || isOpen || isOfPerson || known?.ending !== undefined) {
      this.#evidence(reading, line, type);
      return;
    }
    const found = this.#callOf(reading, line, id);
    if (found === undefined) return;
    const { call, occurredAt } = found;
    if (proposalOf(call) === undefined) {
      const { tool, params } = invocationOf(line.payload, type);
      const paramsDigest = jcsDigest(params);
      const { at } = line.item;
      this.#recorder.calls.propose(call, { from: 'transcript', tool, paramsDigest, at, occurredAt });
    }
    const tool = proposalOf(call)?.tool ?? '';
    const output = ['aggregated_output', 'result', 'stdout']
      .map((name) => valueAt(line.payload, name))
      .find((each) => each !== undefined);
    this.#conclude(reading, line, call, tool, outcome, output, occurredAt);
  }

  #conclude(
    reading: Reading,
    line: RolloutLine,
    call: Call,
    tool: string,
    outcome: Outcome,
    output: SourceValue | undefined,
    occurredAt: string,
  ): void {
    if (outcome.denial !== undefined) {
      const said = { decision: 'deny', code: outcome.denial, name: 'rejection', tool, occurredAt } as const;
      const paramsDigest = proposalOf(call)?.paramsDigest;
      this.#account(line, this.#recorder.decide(call, line.item, { ...said, paramsDigest }));
      return;
    }
    if (outcome.notCalled !== undefined && call.ending === undefined) {
      if (!call.isNotCalled)
        this.#keep(reading, line, occurredAt, `not_called:${call.id}`, 'not_called', {
          ...this.#context(reading),
          call_id: factText(call.callId),
          tool_name: toolOf(tool),
          reason: outcome.notCalled,
        });
      const isNew = !call.isNotCalled;
      call.isNotCalled = true;
      this.#account(line, isNew, 'evidence');
      return;
    }
    this.#account(line, this.#ended(line, call, tool, outcome, output, occurredAt));
  }

  #ended(
    { item }: RolloutLine,
    call: Call,
    tool: string,
    { outcome, errorCode, duration }: Outcome,
    output: SourceValue | undefined,
    occurredAt: string,
  ): boolean {
    return this.#recorder.end(call, item, {
      from: 'transcript',
      ...{ tool, outcome, errorCode, meters: callMeters(duration), occurredAt },
      paramsDigest: call.decisions.final?.paramsDigest ?? proposalOf(call)?.paramsDigest,
      outputDigest: jcsDigest(output ?? undefined),
    });
  }

  #account(line: RolloutLine, isNew: boolean, fate: ItemFate = 'mapped'): void {
    this.#recorder.reading.item({
      at: line.item.at,
      type: kindOf(line),
      ...(isNew ? { fate } : { fate: 'repeated', reason: 'RESULT_REPEATED' }),
    });
  }

  #tokens(reading: Reading, line: RolloutLine): void {
    const { item } = line;
    const { at } = item;
    const info = objectAt(line.payload, 'info');
    if (info === undefined) {
      this.#drop(line, 'USAGE_NOT_STATED');
      return;
    }
    const occurredAt = this.#recorder.timeOf(item, kindOf(line), line.time);
    if (occurredAt === undefined) return;
    const faults: UsageFault[] = [];
    const tokens = reading.usage.add(info, faults);
    for (const { code, expected, actual } of faults)
      this.#recorder.find(code, at, { about: reading.session.id, expected, actual });
    if (tokens === undefined) {
      if (faults.some(({ code }) => code === 'AMOUNT_INVALID')) this.#drop(line, 'AMOUNT_INVALID');
      else
        this.#recorder.reading.item({ at, type: kindOf(line), fate: 'repeated', reason: 'USAGE_REPEATED' });
      return;
    }
    const amounts = quantitiesOf(tokens);
    const { model } = reading;
    this.#evidence(reading, line, 'usage', {
      ...(model === undefined ? {} : { model: factText(model) }),
      amounts: amountFacts(amounts),
    });
    this.#recorder.reading.observe({
      at,
      callIds: [],
      outcome: 'success',
      meters: metersOf({
        'tokens.input': amounts['input_tokens'],
        'tokens.output': amounts['output_tokens'],
        'tokens.input.cache_read': amounts['cached_input_tokens'],
        'tokens.input.cache_creation': amounts['cache_write_input_tokens'],
        'tokens.output.reasoning': amounts['reasoning_output_tokens'],
      }),
      occurredAt,
    });
  }

  #context({ session, turn }: Reading): JsonObject {
    return { session_id: factText(session.id), ...(turn === undefined ? {} : { turn_id: factText(turn) }) };
  }

  /** A line that is kept as it is. Most have no id: it is which of its session it is. */
  #evidence(reading: Reading, line: RolloutLine, type: string, more: JsonObject = {}): void {
    const { item } = line;
    const occurredAt = this.#recorder.timeOf(item, kindOf(line), line.time);
    if (occurredAt === undefined) return;
    const { id } = reading.session;
    const nth = (this.#kept.get(id) ?? 0) + 1;
    this.#kept.set(id, nth);
    const facts = { ...this.#context(reading), ...factsOf(line.payload), ...more };
    this.#keep(reading, line, occurredAt, `${type}:${id}/${nth}`, type, facts);
    this.#recorder.reading.item({ at: item.at, type: kindOf(line), fate: 'evidence' });
  }

  #keep(
    { session }: Reading,
    { item: { at, bytes } }: RolloutLine,
    occurredAt: string,
    id: string,
    type: string,
    facts: JsonObject,
  ): void {
    const principalId = this.#recorder.agentOf(session.actor);
    this.#recorder.reading.claim({ kind: 'evidence', id, type, facts, at, bytes, occurredAt, principalId });
  }
}

const USES: readonly string[] = ['function_call', 'custom_tool_call', 'local_shell_call', 'tool_search_call'];
const OUTPUTS: readonly string[] = [
  'function_call_output',
  'custom_tool_call_output',
  'mcp_tool_call_output',
  'tool_search_output',
];
/** Tools that the provider of the model runs. */
const OWN_USES: ReadonlyMap<string, string> = new Map([
  ['web_search_call', 'web_search'],
  ['image_generation_call', 'image_generation'],
]);
const NO_ACTIONS: readonly string[] = [
  'reasoning',
  'agent_message',
  'additional_tools',
  'ghost_snapshot',
  'compaction',
  'compaction_summary',
  'compaction_trigger',
  'context_compaction',
  'other',
];
const ENDS: readonly string[] = [
  'exec_command_end',
  'patch_apply_end',
  'mcp_tool_call_end',
  'dynamic_tool_call_response',
];
/** Events for the screen of what is an item of the response, too. */
const MIRRORS: readonly string[] = [
  'user_message',
  'agent_message',
  'agent_reasoning',
  'agent_reasoning_raw_content',
  'raw_response_item',
  'web_search_end',
  'image_generation_end',
];
const TOLD_EVENTS: readonly string[] = [
  'task_started',
  'turn_started',
  'task_complete',
  'turn_complete',
  'turn_aborted',
  'error',
  'warning',
  'stream_error',
  'context_compacted',
  'thread_rolled_back',
  'entered_review_mode',
  'exited_review_mode',
  'exec_approval_request',
  'apply_patch_approval_request',
  'request_permissions',
  'elicitation_request',
  'guardian_assessment',
  'hook_completed',
  'model_reroute',
  'sub_agent_activity',
  'collab_agent_spawn_end',
  'collab_agent_interaction_end',
  'collab_close_end',
  'collab_resume_end',
  'collab_waiting_end',
];
const NO_EVENTS =
  /(?:_begin|_delta|_section_break|_updated?|_started|_response)$|^(?:background_event|session_configured|turn_diff|item_completed|thread_settings_applied|view_image_tool_call|terminal_interaction|mcp_startup_complete|deprecation_notice|dynamic_tool_call_request|request_user_input|shutdown_complete|undo_completed|model_verification)$/;

const TEXTS = [
  'type',
  'role',
  'phase',
  'model',
  'turn_id',
  'call_id',
  'status',
  'reason',
  'originator',
  'cli_version',
  'model_provider',
  'forked_from_id',
  'agent_role',
  'cwd',
  'approval_policy',
  'effort',
  'codex_error_info',
  'risk_level',
] as const;
const NUMBERS = ['exit_code', 'duration_ms', 'num_turns'] as const;

/** What is kept of a line: no texts of persons, models and tools. */
function factsOf(payload: SourceObject): JsonObject {
  const sandbox = textAt(payload, 'sandbox_policy', 'type') ?? textAt(payload, 'sandbox_policy', 'mode');
  const replaced = listAt(payload, 'replacement_history')?.length;
  return {
    ...factTexts(TEXTS, (name) => {
      const text = textAt(payload, name);
      // A reason is a word where a turn was aborted, and a sentence where approval was requested.
      return name === 'reason' && !/^[a-z_]{1,64}$/.test(text ?? '') ? undefined : text;
    }),
    ...amountFacts(Object.fromEntries(NUMBERS.map((name) => [name, amountOf(numberAt(payload, name))]))),
    ...(sandbox === undefined ? {} : { sandbox: factText(sandbox) }),
    ...(replaced === undefined ? {} : { replaced: { t: 'int', v: String(replaced) } }),
  };
}

function kindOf({ record, type }: RolloutLine): string {
  return factText(type === undefined ? record : `${record}/${type}`);
}

function toolName(payload: SourceObject, type: string): string {
  if (type === 'local_shell_call') return 'local_shell';
  if (type === 'tool_search_call') return 'tool_search';
  const name = textAt(payload, 'name') ?? '';
  const namespace = textAt(payload, 'namespace') ?? '';
  return namespace === '' ? name : `${namespace.replace(/_+$/, '')}__${name}`;
}

/** Arguments are the text of JSON; input is a text of its own. */
function paramsOf(payload: SourceObject): SourceValue | undefined {
  const stated = valueAt(payload, 'arguments') ?? valueAt(payload, 'input') ?? valueAt(payload, 'action');
  if (typeof stated !== 'string' || textAt(payload, 'arguments') === undefined) return stated ?? undefined;
  const decoded = decodeSourceJson(encodeUtf8(stated));
  return decoded.ok ? decoded.value : stated;
}

/** What an event says was called, of a call that no item of the response names. */
function invocationOf(
  payload: SourceObject,
  type: string,
): { readonly tool: string; readonly params: SourceValue | undefined } {
  if (type === 'mcp_tool_call_end') {
    const [server, tool] = [textAt(payload, 'invocation', 'server'), textAt(payload, 'invocation', 'tool')];
    return {
      tool: `mcp__${server ?? ''}__${tool ?? ''}`,
      params: valueAt(payload, 'invocation', 'arguments'),
    };
  }
  if (type === 'patch_apply_end') return { tool: 'apply_patch', params: valueAt(payload, 'changes') };
  if (type === 'exec_command_end') return { tool: 'exec_command', params: valueAt(payload, 'command') };
  return { tool: textAt(payload, 'tool') ?? '', params: valueAt(payload, 'arguments') };
}

function quantitiesOf(tokens: Tokens): Record<string, Quantity> {
  return Object.fromEntries(
    Object.entries(tokens).map(([name, amount]) => [name, { t: 'int', v: String(amount) }]),
  );
}
