/** Transcripts: what the model proposed, what came of it, and what its messages used. */

import type { JsonObject } from '../../base/json/value.js';
import { compareQuantities, type Quantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { HostPlace, ItemFate } from '../shared/host.js';
import { factText, toolOf } from '../shared/names.js';
import { amountFacts, callMeters, differ, metersOf, type StatedAmounts, sumOf } from '../shared/usage.js';
import { amountOf, countIn, jcsDigest, numberAt, numberTextOf, textAt, valueAt } from '../shared/values.js';
import { proposalOf } from './calls.js';
import { Copies } from './copies.js';
import { type Block, blocksOf, denialOf, notCalledOf, statesReason, type TranscriptLine } from './lines.js';
import type { Recorder } from './recorder.js';

/** Lines that Claude Code itself wrote in the place of an answer of a model. */
const NO_MODEL = '<synthetic>';

interface Message {
  readonly at: HostPlace;
  readonly callIds: readonly string[];
  readonly amounts: StatedAmounts;
  readonly occurredAt: string;
}

export class TranscriptReader {
  readonly #recorder: Recorder;
  readonly #seen = new Set<string>();
  readonly #messages = new Map<string, Message>();
  #copies = new Copies([]);

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  read(lines: readonly TranscriptLine[]): void {
    this.#copies = new Copies(lines);
    for (const line of lines) this.#line(line);
    for (const [, { at, callIds, amounts, occurredAt }] of this.#messages) {
      this.#recorder.reading.observe({
        at,
        callIds,
        outcome: 'success',
        meters: metersOf({
          // The cache's tokens are beside those of the input here, and among them elsewhere.
          'tokens.input': sumOf([
            amounts['input_tokens'],
            amounts['cache_read_input_tokens'],
            amounts['cache_creation_input_tokens'],
          ]),
          'tokens.output': amounts['output_tokens'],
          'tokens.input.cache_read': amounts['cache_read_input_tokens'],
          'tokens.input.cache_creation': amounts['cache_creation_input_tokens'],
        }),
        occurredAt,
      });
    }
  }

  #line(line: TranscriptLine): void {
    const { item, type, uuid } = line;
    const { reading } = this.#recorder;
    if (uuid === undefined) {
      const isMessage = type === 'assistant' || type === 'user';
      if (isMessage) this.#recorder.find('ID_NOT_STATED', item.at, { expected: 'uuid' });
      reading.drop(item.at, factText(type), isMessage ? 'ID_NOT_STATED' : 'NOT_A_MESSAGE');
      return;
    }
    if (this.#isRepeated(line, uuid)) return;
    this.#checkParent(line, uuid);
    if (type !== 'assistant' && type !== 'user' && type !== 'system') {
      reading.drop(item.at, factText(type), 'NOT_A_MESSAGE');
      return;
    }
    const occurredAt = this.#recorder.timeOf(item, factText(type), line.time, uuid);
    if (occurredAt === undefined) return;
    if (type === 'assistant') this.#assistant(line, uuid, occurredAt);
    else this.#user(line, uuid, occurredAt);
  }

  /** Sessions that continue from others begin with their lines, under a session of their own. */
  #isRepeated(line: TranscriptLine, uuid: string): boolean {
    const { item, type } = line;
    this.#seen.add(uuid);
    const original = this.#copies.of(line);
    if (original === undefined) return false;
    const { isSame } = original;
    if (!isSame) this.#recorder.find('DUPLICATE_UUID', item.at, { about: uuid, related: [original.at] });
    const reason = isSame ? 'LINE_REPEATED' : 'DUPLICATE_UUID';
    this.#recorder.reading.item({ at: item.at, type: factText(type), fate: 'repeated', reason });
    return true;
  }

  #checkParent({ item: { at }, parent }: TranscriptLine, uuid: string): void {
    if (parent === undefined || (this.#seen.has(parent) && parent !== uuid)) return;
    const isLater = this.#copies.has(parent);
    const code = isLater ? 'PARENT_AFTER_CHILD' : 'PARENT_NOT_FOUND';
    this.#recorder.find(code, at, {
      about: uuid,
      expected: `line ${parent} before it`,
      actual: isLater ? 'it is not before it' : 'none',
    });
  }

  #assistant(line: TranscriptLine, uuid: string, occurredAt: string): void {
    const { item } = line;
    const isNew = this.#message(line, uuid, occurredAt);
    const uses = blocksOf(line, 'tool_use').filter((block) => this.#toolUse(line, block, occurredAt));
    this.#recorder.reading.item({
      at: item.at,
      type: 'assistant',
      ...(isNew || uses.length > 0 ? { fate: 'evidence' } : { fate: 'repeated', reason: 'MESSAGE_REPEATED' }),
    });
  }

  /** Whether the line says something new of its message: a message has a line for each of its parts, and its output grows. */
  #message(line: TranscriptLine, uuid: string, occurredAt: string): boolean {
    const { item, session, value } = line;
    const id = textAt(value, 'message', 'id') ?? uuid;
    const amounts = this.#usage(line, id);
    const before = this.#messages.get(id);
    if (before !== undefined) {
      this.#checkUsage(line, id, before, amounts);
      if (AMOUNTS.every((name) => !differ(before.amounts[name], amounts[name]))) return false;
    }
    const model = textAt(value, 'message', 'model');
    const request = textAt(value, 'requestId');
    if (model !== NO_MODEL) {
      const callIds = request === undefined ? [id] : [id, request];
      this.#messages.set(id, { at: item.at, callIds, amounts, occurredAt });
    }
    const stopped = textAt(value, 'message', 'stop_reason');
    this.#keep(line, occurredAt, `message:${uuid}`, 'message', {
      message_id: factText(id),
      session_id: factText(session),
      ...(request === undefined ? {} : { request_id: factText(request) }),
      ...(model === undefined ? {} : { model: factText(model) }),
      ...(stopped === undefined ? {} : { stop_reason: factText(stopped) }),
      amounts: amountFacts(amounts),
    });
    return true;
  }

  #usage({ item: { at }, value }: TranscriptLine, id: string): StatedAmounts {
    const amounts: Record<string, Quantity | undefined> = {};
    for (const name of AMOUNTS) {
      const stated = valueAt(value, 'message', 'usage', name);
      if (stated === undefined || stated === null) continue;
      amounts[name] = countIn(stated);
      if (amounts[name] !== undefined) continue;
      const expected = `${name}, a whole number that is not negative`;
      this.#recorder.find('AMOUNT_INVALID', at, { about: id, expected, actual: numberTextOf(stated) });
    }
    return amounts;
  }

  #checkUsage({ item: { at } }: TranscriptLine, id: string, before: Message, now: StatedAmounts): void {
    const changed = AMOUNTS.find((name) => {
      const [was, is] = [before.amounts[name], now[name]];
      if (name !== 'output_tokens') return differ(was, is);
      return was !== undefined && is !== undefined && compareQuantities(is, was) < 0;
    });
    if (changed === undefined) return;
    this.#recorder.find('USAGE_DISAGREES', at, {
      about: id,
      expected: `${changed} as before`,
      related: [before.at],
    });
  }

  #toolUse(line: TranscriptLine, { id, value }: Block, occurredAt: string): boolean {
    const { item, session } = line;
    const { calls } = this.#recorder;
    const tool = textAt(value, 'name') ?? '';
    const paramsDigest = jcsDigest(valueAt(value, 'input'));
    const call = calls.of(id, line);
    const before = call.proposals.find(({ from }) => from === 'transcript');
    if (before !== undefined) {
      if (before.tool !== tool || before.paramsDigest?.b64 !== paramsDigest?.b64)
        this.#recorder.find('DUPLICATE_TOOL_USE', item.at, { about: id, related: [before.at] });
      return false;
    }
    calls.propose(call, { from: 'transcript', tool, paramsDigest, at: item.at, occurredAt });
    this.#keep(line, occurredAt, `tool_use:${id}`, 'tool_use', {
      tool_use_id: factText(id),
      session_id: factText(session),
      tool_name: toolOf(tool),
      ...(paramsDigest === undefined ? {} : { params_digest: { ...paramsDigest } }),
    });
    return true;
  }

  #user(line: TranscriptLine, uuid: string, occurredAt: string): void {
    const { item, type, session, value } = line;
    const results = type === 'user' ? blocksOf(line, 'tool_result') : [];
    const fates = results.map((block) => this.#result(line, block, results.length === 1, occurredAt));
    let fate: ItemFate = 'evidence';
    if (fates.includes('mapped')) fate = 'mapped';
    else if (fates.length > 0 && fates.every((each) => each === 'repeated')) fate = 'repeated';
    if (fate === 'evidence') {
      const mode = textAt(value, 'permissionMode');
      const subtype = textAt(value, 'subtype');
      this.#keep(line, occurredAt, `${type}:${uuid}`, type, {
        uuid: factText(uuid),
        session_id: factText(session),
        ...(mode === undefined ? {} : { permission_mode: factText(mode) }),
        ...(subtype === undefined ? {} : { subtype: factText(subtype) }),
      });
    }
    this.#recorder.reading.item({
      at: item.at,
      type,
      fate,
      ...(fate === 'repeated' ? { reason: 'RESULT_REPEATED' } : {}),
    });
  }

  #result(line: TranscriptLine, block: Block, isOnly: boolean, occurredAt: string): ItemFate {
    const { item, value } = line;
    const { at } = item;
    const call = this.#recorder.calls.get(block.id);
    const proposal = call === undefined ? undefined : proposalOf(call);
    if (call === undefined || proposal === undefined) {
      this.#recorder.find('RESULT_WITHOUT_USE', at, { about: block.id, expected: 'a tool use before it' });
      return 'evidence';
    }
    const asked = call.proposals.find(({ from }) => from === 'transcript');
    if (asked !== undefined && compareTimestamps(occurredAt, asked.occurredAt) < 0)
      this.#recorder.find('RESULT_BEFORE_USE', at, {
        about: call.id,
        expected: `from ${asked.occurredAt}`,
        actual: occurredAt,
        related: [asked.at],
      });
    const { tool } = proposal;
    if (statesReason(line, block, call.decisions.reasons)) return 'repeated';
    const denial = denialOf(line, block);
    if (denial !== undefined) {
      const { paramsDigest } = proposal;
      const name = 'rejection';
      const said = { decision: 'deny', code: denial, paramsDigest, name, tool, occurredAt } as const;
      return this.#recorder.decide(call, item, said) ? 'mapped' : 'repeated';
    }
    const notCalled = call.ending === undefined ? notCalledOf(line, block) : undefined;
    if (notCalled !== undefined) {
      if (!call.isNotCalled)
        this.#keep(line, occurredAt, `not_called:${call.id}`, 'not_called', {
          tool_use_id: factText(call.id),
          session_id: factText(line.session),
          tool_name: toolOf(tool),
          reason: notCalled,
        });
      call.isNotCalled = true;
      return 'evidence';
    }
    const allowed = call.decisions.final;
    const isInterrupted = isOnly && valueAt(value, 'toolUseResult', 'interrupted') === true;
    const duration = isOnly ? amountOf(numberAt(value, 'toolUseResult', 'durationMs')) : undefined;
    const isNew = this.#recorder.end(call, item, {
      from: 'transcript',
      tool,
      outcome: valueAt(block.value, 'is_error') === true || isInterrupted ? 'failure' : 'success',
      errorCode: isInterrupted ? 'INTERRUPTED' : undefined,
      paramsDigest: allowed?.paramsDigest ?? proposal.paramsDigest,
      outputDigest: jcsDigest(valueAt(block.value, 'content') ?? undefined),
      meters: callMeters(duration),
      occurredAt,
    });
    return isNew ? 'mapped' : 'repeated';
  }

  #keep(line: TranscriptLine, occurredAt: string, id: string, type: string, facts: JsonObject): void {
    const { at, bytes } = line.item;
    const principalId = this.#recorder.agentOf(line);
    this.#recorder.reading.claim({ kind: 'evidence', id, type, facts, at, bytes, occurredAt, principalId });
  }
}

const AMOUNTS = [
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
] as const;
