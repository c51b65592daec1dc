/** Transcripts of sessions: a tree of entries, of which none is a decision. They keep what the model requested, not what ran. */

import { addTo, jcsDigest, listAt, numberAt, textAt, timeOf, timeOfText, valueAt } from '../shared/values.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { HostPlace } from '../shared/host.js';
import { principalOf } from '../shared/names.js';
import type { Calls } from './calls.js';
import { type ClaimBase, type Context, factsOf, hexOf, SYSTEM } from './context.js';
import type { Entry } from './entries.js';
import type { ModelCalls } from './model-calls.js';

interface Asked {
  readonly at: HostPlace;
  readonly args: SourceValue | undefined;
  readonly tool: string | undefined;
  readonly isStopped: boolean;
}

export class Transcript {
  readonly #context: Context;
  readonly #calls: Calls;
  readonly #models: ModelCalls;
  readonly #entries = new Map<string, HostPlace>();
  readonly #open = new Map<string, Asked[]>();
  /** By session and id, of all transcripts that are read. */
  readonly #known: Map<string, string>;
  #session: string | undefined;
  #hasAsked = false;

  /** @param known - Of all transcripts of one reading: a session's may be there several times. */
  constructor(context: Context, calls: Calls, models: ModelCalls, known: Map<string, string>) {
    this.#context = context;
    this.#calls = calls;
    this.#models = models;
    this.#known = known;
  }

  read(entry: Entry): void {
    const { value, at } = entry;
    const context = this.#context;
    const type = textAt(value, 'type') ?? '';
    const stated =
      timeOfText(textAt(value, 'timestamp')) ?? timeOf(numberAt(value, 'message', 'timestamp'), 'ms');
    const base = context.base(entry, stated, principalOf('agent', SYSTEM));
    if (base === undefined) {
      this.#models.leaveOut(at, 'TIME_NOT_STATED', valueAt(value, 'message'));
      return;
    }
    const isAgain = type !== 'session' && this.#entries.has(textAt(value, 'id') ?? '');
    if (type === 'session') this.#session = textAt(value, 'id');
    else this.#checkTree(entry);
    const scope = this.#session ?? '~';
    const message = valueAt(value, 'message');
    const role = type === 'message' ? textAt(message, 'role') : undefined;
    if (this.#isCopy(entry, scope)) {
      // What it asks for may be answered by an entry that only this copy has.
      if (role === 'assistant' && !isAgain) this.#ask(at, message);
      if (role === 'toolResult' && !isAgain) this.#answer(textAt(message, 'toolCallId'));
      context.fate(entry, 'repeated', 'SAME_ITEM');
      return;
    }
    if (role === 'user') {
      this.#checkOpen(false);
      this.#models.startTurn(scope);
    }
    if (role === 'toolResult' && message instanceof SourceObject) {
      this.#result(entry, base, scope, message);
      return;
    }
    if (role === 'assistant') {
      this.#checkOpen(false);
      this.#ask(at, message);
      const done = this.#models.message(entry, base, scope, message, 'transcript');
      if (done !== 'none') {
        context.fate(
          entry,
          done === 'claimed' ? 'mapped' : 'repeated',
          done === 'claimed' ? undefined : 'SAME_MODEL_CALL',
        );
        return;
      }
    }
    const id = textAt(value, 'id') ?? `~${jcsDigest(value)?.b64 ?? ''}`;
    const facts = factsOf({
      session: this.#session,
      entry: type,
      role,
      provider: textAt(value, 'provider'),
      model: textAt(value, 'modelId'),
      digest: jcsDigest(value),
    });
    context.evidence(
      entry,
      base,
      `transcript:${scope}/${type === 'session' ? 'header' : id}`,
      'transcript',
      facts,
    );
  }

  finish(): void {
    this.#checkOpen(true);
  }

  #isCopy({ value, bytes }: Entry, scope: string): boolean {
    const id = textAt(value, 'type') === 'session' ? '' : textAt(value, 'id');
    if (id === undefined) return false;
    const [key, digest] = [`${scope}\n${id}`, hexOf(bytes)];
    const known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, digest);
    return known === digest;
  }

  #answer(callId: string | undefined): Asked | undefined {
    const open = callId === undefined ? undefined : this.#open.get(callId);
    const asked = open?.shift();
    if (open?.length === 0) this.#open.delete(callId!);
    return asked;
  }

  #checkTree({ at, value }: Entry): void {
    const context = this.#context;
    const id = textAt(value, 'id');
    const parent = textAt(value, 'parentId');
    if (id === undefined) context.find('ENTRY_ID_MISSING', at);
    else if (this.#entries.has(id))
      context.find('ENTRY_ID_REUSED', at, { about: id, related: [this.#entries.get(id)!] });
    const isFirst = this.#entries.size === 0;
    if (parent !== undefined ? !this.#entries.has(parent) : !isFirst) {
      // A file without a header may be the rest of a transcript.
      const isCut = isFirst && this.#session === undefined;
      context.find('PARENT_MISSING', at, {
        about: id,
        actual: parent ?? 'none',
        weight: isCut ? 'warning' : 'invalid',
      });
    }
    if (id !== undefined) this.#entries.set(id, at);
  }

  #ask(at: HostPlace, message: SourceValue | undefined): void {
    this.#hasAsked = true;
    // What a model was stopped in nobody answers.
    const isStopped = ['aborted', 'error'].includes(textAt(message, 'stopReason') ?? '');
    for (const block of listAt(message, 'content') ?? []) {
      const callId = textAt(block, 'type') === 'toolCall' ? textAt(block, 'id') : undefined;
      if (callId === undefined) continue;
      const asked = { at, args: valueAt(block, 'arguments'), tool: textAt(block, 'name'), isStopped };
      addTo(this.#open, callId, asked);
    }
  }

  /** Calls without a result: a model does not continue without them, but a transcript may end there. */
  #checkOpen(isEnd: boolean): void {
    for (const [callId, all] of this.#open) {
      for (const asked of all)
        this.#context.find('CALL_WITHOUT_RESULT', asked.at, {
          about: `${this.#session ?? '~'}/${callId}`,
          weight: isEnd || asked.isStopped ? 'warning' : 'invalid',
        });
    }
    this.#open.clear();
  }

  #result(entry: Entry, base: ClaimBase, scope: string, message: SourceObject): void {
    const context = this.#context;
    const callId = textAt(message, 'toolCallId');
    const asked = this.#answer(callId);
    if (asked === undefined) {
      // A file without a header may be the rest of a transcript.
      const isCut = this.#session === undefined && !this.#hasAsked;
      context.find('RESULT_WITHOUT_CALL', entry.at, {
        about: `${scope}/${callId ?? '~'}`,
        weight: isCut ? 'warning' : 'invalid',
      });
    }
    if (callId === undefined) {
      const facts = factsOf({ session: this.#session, role: 'toolResult', digest: jcsDigest(message) });
      context.evidence(
        entry,
        base,
        `transcript:${scope}/${textAt(entry.value, 'id') ?? '~'}`,
        'transcript',
        facts,
      );
      return;
    }
    this.#calls.report(entry, base, {
      source: 'transcript',
      scope,
      runId: undefined,
      callId,
      tool: textAt(message, 'toolName') ?? asked?.tool,
      args: asked?.args,
      result: message,
      isError: valueAt(message, 'isError') === true,
    });
  }
}
