/**
 * The same way with programs that stay: an exploration asks a program that has just opened the ledger, this one those that have had it open
 * all along, with what they remember. Both must leave the same records and give the same answers.
 */

import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { HeldStore, type Lines } from './held-store.js';
import { A_DIGEST, type Node } from './ledgers.js';
import { type Answer, openLive, type Seen, take, TIMES, untilQuiet } from './programs.js';
import type { Act, State, World } from './world.js';

interface Program {
  readonly live: LiveLedger;
  /** What waits to be let through. */
  held: { readonly lines: readonly Uint8Array[]; readonly go: () => void } | undefined;
  /** What it is asked for, as text, and what will be answered. */
  asked: string | undefined;
  answering: Promise<Answer>;
  answer: Answer | undefined;
}

const OWNER = 2;

export class Alive {
  readonly #world: World;
  readonly #lines: Lines;
  readonly #deciders: (Program | undefined)[];
  #owner: Program | undefined;
  #time = 0;

  constructor(world: World, state: State) {
    this.#world = world;
    this.#lines = world.ledgers.linesOf(state.node);
    this.#deciders = Array.from({ length: world.options.deciders }, () => undefined);
  }

  /** The ledger, as the exploration knows it. */
  get node(): number {
    const { ledgers } = this.#world;
    let node: Node | undefined;
    const own = new Map<string, number>();
    for (const [seq, bytes] of this.#lines.entries()) {
      const text = Buffer.from(bytes).toString();
      // What names a record of this ledger names the same record of the other.
      const known = node === undefined ? [] : ledgers.recordsOf(node.number);
      const line = text.replace(A_DIGEST, (b64) => known[own.get(b64) ?? -1]?.line.event.event_id.b64 ?? b64);
      own.set((JSON.parse(text) as Node['line']).event.event_id.b64, seq);
      node = ledgers.add(node, Buffer.from(line));
    }
    return (node as Node).number;
  }

  /**
   * Does what leads from one state to the next.
   * @returns The answer of a program, where one is given now
   */
  async follow(state: State, next: State, act: Act | undefined): Promise<Answer | undefined> {
    this.#time = next.time;
    if (act === undefined) return undefined;
    if (act.kind === 'begin') return this.#begin(act);
    const program = this.#find(state, act.actor);
    switch (act.kind) {
      case 'write': {
        program.held?.go();
        program.held = undefined;
        program.answer = await untilQuiet(program.answering, () => program.held !== undefined);
        return undefined;
      }
      case 'answer':
        program.asked = undefined;
        return program.answer;
      case 'end': {
        this.#lines.push(...(program.held?.lines ?? []).slice(0, act.stored));
        this.#forget(program);
        return undefined;
      }
    }
  }

  async #begin({ actor, step }: Act & { readonly kind: 'begin' }): Promise<undefined> {
    const program = await this.#idle(actor);
    program.asked = JSON.stringify(step);
    program.answering = take(program.live, step, this.#seen(), () => TIMES[this.#time]);
    program.answer = await untilQuiet(program.answering, () => program.held !== undefined);
  }

  async #idle(actor: number): Promise<Program> {
    if (actor === OWNER) return (this.#owner ??= await this.#open());
    const index = this.#deciders.findIndex((each) => each?.asked === undefined);
    return (this.#deciders[index] ??= await this.#open());
  }

  async #open(): Promise<Program> {
    const own: { program?: Program } = {};
    const store = new HeldStore(this.#lines, (lines) => {
      return new Promise((go) => {
        if (own.program !== undefined) own.program.held = { lines, go };
      });
    });
    const live = await openLive(store, () => TIMES[this.#time]);
    const answering = Promise.resolve<Answer>({ told: [] });
    return (own.program = { live, held: undefined, asked: undefined, answering, answer: undefined });
  }

  /** Which of two deciders it is depends on what they have in hand alone. */
  #find(state: State, actor: number): Program {
    const asked = JSON.stringify(state.actors[actor]?.[1]);
    const all = actor === OWNER ? [this.#owner] : this.#deciders;
    const found = all.find((each) => each?.asked === asked);
    if (found === undefined) throw new Error(`nobody was asked for ${asked}`);
    return found;
  }

  #forget(program: Program): void {
    if (this.#owner === program) this.#owner = undefined;
    const index = this.#deciders.indexOf(program);
    if (index !== -1) this.#deciders[index] = undefined;
  }

  #seen(): Seen {
    const events = this.#lines.map((line) => {
      const { event } = JSON.parse(Buffer.from(line).toString()) as Node['line'];
      return event;
    });
    return {
      calls: this.#world.options.calls,
      idAt: (seq) => `sha-256:${events[seq]?.event_id.b64 ?? ''}`,
      startedAt: (seq) => events[seq]?.started_at ?? '',
    };
  }
}
