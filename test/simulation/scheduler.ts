/** Time that passes only when all that can happen has happened, and chance that a seed repeats. */

import type { Clock, Timer } from '../../src/base/clock.js';

/** Numbers of a seed (mulberry32). */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** From 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end);
  }

  /** A whole number from `least` to `most`. */
  within(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  is(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }

  /** Another, that what is drawn here later does not change. */
  fork(): Chance {
    return new Chance(this.below(2 ** 32));
  }
}

interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  isCleared: boolean;
}

const START_MS = Date.UTC(2026, 0, 1, 12);

/** Runs what is due, in the order of virtual time; see the head of this file. */
export class Scheduler {
  /** Milliseconds since the beginning. */
  ms = 0;
  /** How many things have happened. */
  steps = 0;
  readonly #chance: Chance;
  readonly #heap: Due[] = [];
  #order = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** The present, in milliseconds since 1970. */
  get now(): number {
    return START_MS + this.ms;
  }

  /** Timers ring a little late, by chance. */
  after(ms: number, run: () => void): Due {
    const late = this.#chance.is(0.3) ? this.#chance.below(4) : 0;
    const due = {
      at: this.ms + Math.max(0, Math.ceil(ms)) + late,
      order: this.#order++,
      run,
      isCleared: false,
    };
    this.#push(due);
    return due;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Runs until `isOver`, or nothing more is due, or `limitMs` have passed. Returns whether it was over. */
  async run(isOver: () => boolean, limitMs: number): Promise<boolean> {
    await turn();
    while (!isOver()) {
      const due = this.#pop();
      if (due === undefined || due.at > limitMs) return false;
      if (due.isCleared) continue;
      this.ms = Math.max(this.ms, due.at);
      this.steps += 1;
      due.run();
      await turn();
    }
    return true;
  }

  #push(due: Due): void {
    const heap = this.#heap;
    let at = heap.push(due) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!isBefore(due, heap[up])) break;
      heap[at] = heap[up];
      at = up;
    }
    heap[at] = due;
  }

  #pop(): Due | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && isBefore(heap[down + 1], heap[down])) down += 1;
      if (!isBefore(heap[down], last)) break;
      heap[at] = heap[down];
      at = down;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Due, other: Due): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** Lets everything happen that waits for nothing but promises. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A program that runs: what it waits for comes late while it is paused, and never once it is dead. */
export class Life {
  readonly name: string;
  readonly scheduler: Scheduler;
  isDead = false;
  #pausedUntil = 0;
  readonly clock: Clock;

  /** @param shift - How far its machine's clock is ahead */
  constructor(name: string, scheduler: Scheduler, shift: () => number = () => 0) {
    this.name = name;
    this.scheduler = scheduler;
    const timers = new WeakMap<Timer, { due: Due }>();
    const set = (run: () => void, ms: number, isRepeated: boolean): Timer => {
      const timer: Timer = { unref: () => undefined };
      const ring = (): void => {
        if (isRepeated) own.due = this.after(ms, ring);
        run();
      };
      const own = { due: this.after(ms, ring) };
      timers.set(timer, own);
      return timer;
    };
    this.clock = {
      now: () => scheduler.now + shift(),
      ticks: () => scheduler.ms,
      setTimeout: (run, ms) => set(run, ms, false),
      setInterval: (run, ms) => set(run, ms, true),
      clear: (timer) => {
        const own = timer && timers.get(timer);
        if (own !== undefined) own.due.isCleared = true;
      },
    };
  }

  after(ms: number, run: () => void): Due {
    const due = this.scheduler.after(ms, () => {
      if (this.isDead || due.isCleared) return;
      const left = this.#pausedUntil - this.scheduler.ms;
      if (left <= 0) run();
      else
        this.scheduler.after(left, () => {
          if (!due.isCleared && !this.isDead) run();
        });
    });
    return due;
  }

  /** A step of a disk or a network. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.scheduler.ms + ms);
  }

  kill(): void {
    this.isDead = true;
  }
}
