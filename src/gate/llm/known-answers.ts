/** Which answers passed here: later requests name turns that the provider keeps, and it adds them to their input. */

import { MAX_COUNT } from '../price/usage.js';

/** What naming items of one answer brings at most, however many of them are named, each once. */
export interface KnownOutput {
  /** Of all items together. */
  readonly tokens: number;
}

/** What one client may name. What did not pass here, or was of another model, is undefined. */
export interface NamedAnswers {
  /** What naming a response brings at most, in tokens: its input, with all that it named, and its output. */
  response(model: string, id: string): number | undefined;
  /** The same object for all items of an answer. */
  item(model: string, id: string): KnownOutput | undefined;
}

/** An answer that came to its end. */
export interface PassedAnswer {
  readonly model: string;
  /** A bound of what was read; undefined where there is none: then its response is not known, its items are. */
  readonly inputTokens: number | undefined;
  /** A bound of what was made, reasoning that is not shown included. */
  readonly outputTokens: number;
  readonly responseId: string | undefined;
  readonly itemIds: readonly string[];
}

/** The most ids that are known, of all clients together. */
const MAX_IDS = 20_000;
/** Printable ASCII, of at most 128 characters. */
const ID = /^[\x21-\x7e]{1,128}$/;

/**
 * In bounded memory: of the client that has most, the id that was not used for longest is forgotten first. A bound is that of one model, since
 * another may count the same reasoning and images otherwise.
 */
export class KnownAnswers {
  readonly #most: number;
  readonly #clients = new Map<string, Map<string, KnownOutput>>();
  #size = 0;

  constructor(most: number = MAX_IDS) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** What this principal may name: nobody else's. */
  of(principal: string): NamedAnswers {
    return {
      response: (model, id) => this.#find(principal, keyOf('response', model, id))?.tokens,
      item: (model, id) => this.#find(principal, keyOf('item', model, id)),
    };
  }

  add(principal: string, answer: PassedAnswer): void {
    const { model, inputTokens, outputTokens, responseId, itemIds } = answer;
    const output = { tokens: atMost(outputTokens) };
    if (responseId !== undefined && inputTokens !== undefined)
      this.#put(principal, 'response', model, responseId, { tokens: atMost(inputTokens + outputTokens) });
    for (const id of itemIds) this.#put(principal, 'item', model, id, output);
  }

  #find(principal: string, key: string): KnownOutput | undefined {
    const known = this.#clients.get(principal);
    const found = known?.get(key);
    if (known === undefined || found === undefined) return undefined;
    known.delete(key);
    known.set(key, found);
    return found;
  }

  #put(principal: string, kind: Kind, model: string, id: string, output: KnownOutput): void {
    if (!ID.test(id)) return;
    const key = keyOf(kind, model, id);
    const known = this.#clients.get(principal) ?? new Map<string, KnownOutput>();
    this.#clients.set(principal, known);
    const before = known.get(key);
    // An id that comes twice is no good name: the greater bound holds.
    const kept = before !== undefined && before.tokens > output.tokens ? before : output;
    if (!known.delete(key)) this.#size += 1;
    known.set(key, kept);
    if (this.#size > this.#most) this.#forget();
  }

  #forget(): void {
    let [longest, most] = ['', new Map<string, KnownOutput>()];
    for (const [principal, known] of this.#clients)
      if (known.size > most.size) [longest, most] = [principal, known];
    const [oldest] = most.keys();
    if (oldest === undefined) return;
    most.delete(oldest);
    this.#size -= 1;
    if (most.size === 0) this.#clients.delete(longest);
  }
}

type Kind = 'response' | 'item';

/** Ids have no spaces, names of models may. */
function keyOf(kind: Kind, model: string, id: string): string {
  return `${kind} ${id} ${model}`;
}

/** More, no price takes; no model reads as much. */
function atMost(tokens: number): number {
  return Math.min(MAX_COUNT, tokens);
}
