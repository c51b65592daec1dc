/** Looks at every state of a world, breadth first, so that what breaks an invariant is reached by the fewest steps. */

import { createHash } from 'node:crypto';
import type { Broken, InvariantName } from '../invariants.js';
import type { State, Successor, World } from './world.js';

export interface Found {
  /** What leads there: the numbers of the choices, as {@link replay} takes them. */
  readonly trace: string;
  /** The same in words. */
  readonly steps: readonly string[];
  readonly broken: Broken;
}

export interface Exploration {
  readonly states: number;
  /** Steps from one state to another, those to known states included. */
  readonly steps: number;
  /** The longest of the shortest ways to a state. */
  readonly depth: number;
  readonly ledgers: number;
  /** How often real programs ran. */
  readonly runs: number;
  /** What programs were answered by the real code, and how often: `ask allow`, `begin GRANT_REVOKED`. */
  readonly answers: Readonly<Record<string, number>>;
  /** Whether there are no more states. */
  readonly isWhole: boolean;
  readonly found: Found | undefined;
}

export interface ExploreOptions {
  /** Goes on until this is broken. Default: anything. */
  readonly until?: InvariantName;
  /** Default: no limit. */
  readonly maxStates?: number;
  readonly onProgress?: (states: number, depth: number) => void;
}

/** The name of a state: 53 bits of SHA-256. Two of 10^6 states have one name with a probability of 1 in 10^4. */
function nameOf(text: string): number {
  const hash = createHash('sha256').update(text).digest();
  return hash.readUIntBE(0, 6) * 32 + ((hash[6] ?? 0) >> 3);
}

export async function explore(world: World, options: ExploreOptions = {}): Promise<Exploration> {
  const { maxStates = Infinity, until, onProgress } = options;
  const first = await world.begin();
  const seen = new Set([nameOf(JSON.stringify(first))]);
  /** Of each state: the one that it was reached from, and by which choice. */
  const parents: number[] = [-1];
  const choices: number[] = [0];
  let level: (readonly [number: number, text: string])[] = [[0, JSON.stringify(first)]];
  let [steps, depth] = [0, 0];
  const end = (isWhole: boolean, found?: Found): Exploration => {
    const { nodes, runs, answers } = world.ledgers;
    return { states: parents.length, steps, depth, ledgers: nodes.length, runs, answers, isWhole, found };
  };
  const traceTo = (number: number): number[] => {
    const trace: number[] = [];
    for (let at = number; at > 0; at = parents[at]) trace.push(choices[at]);
    return trace.reverse();
  };
  while (level.length > 0) {
    const next: typeof level = [];
    for (const [number, text] of level) {
      const successors = await world.successorsOf(JSON.parse(text) as State);
      for (const [choice, { state }] of successors.entries()) {
        steps += 1;
        const reached = JSON.stringify(state);
        const name = nameOf(reached);
        if (seen.has(name)) continue;
        seen.add(name);
        const own = parents.length;
        parents.push(number);
        choices.push(choice);
        next.push([own, reached]);
        const broken = await world.brokenOf(state);
        if (until === undefined ? Object.keys(broken).length > 0 : broken[until] !== undefined) {
          const trace = traceTo(own);
          return end(false, { trace: trace.join('.'), steps: await wordsOf(world, trace), broken });
        }
        if (own % 10_000 === 0) onProgress?.(own, depth + 1);
        if (parents.length >= maxStates) return end(false);
      }
    }
    level = next;
    if (next.length > 0) depth += 1;
  }
  return end(true);
}

/** The labels of the choices of a trace. */
export async function wordsOf(world: World, trace: readonly number[]): Promise<string[]> {
  let state = await world.begin();
  const words: string[] = [];
  for (const choice of trace) {
    const taken = (await world.successorsOf(state))[choice];
    if (taken === undefined) throw new RangeError(`no choice ${choice} after: ${words.join('; ')}`);
    words.push(taken.label);
    ({ state } = taken);
  }
  return words;
}

/** What a trace leads to. @throws RangeError for a choice that there is not */
export async function replay(world: World, trace: string): Promise<Found> {
  const choices = trace
    .split('.')
    .filter((each) => each !== '')
    .map(Number);
  let state = await world.begin();
  for (const choice of choices) {
    const taken = (await world.successorsOf(state))[choice];
    if (taken === undefined) throw new RangeError(`no choice ${choice} in ${trace}`);
    ({ state } = taken);
  }
  return { trace, steps: await wordsOf(world, choices), broken: await world.brokenOf(state) };
}

export interface Walked {
  readonly trace: readonly number[];
  /** What is broken on the way, first. */
  readonly found: Found | undefined;
}

/**
 * One way through a world, drawn by a seed, of at most so many steps; every state on it is looked at.
 * @param onStep - Called with each step
 */
export async function walk(
  world: World,
  seed: number,
  length: number,
  onStep?: (from: State, taken: Successor) => Promise<void>,
): Promise<Walked> {
  let drawn = seed;
  const draw = (below: number): number => {
    // A linear congruential generator is enough to choose by.
    drawn = (Math.imul(drawn, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((drawn / 2 ** 32) * below);
  };
  let state = await world.begin();
  const trace: number[] = [];
  for (let count = 0; count < length; count += 1) {
    const successors = await world.successorsOf(state);
    const choice = draw(successors.length);
    const taken = successors[choice];
    if (taken === undefined) break;
    trace.push(choice);
    await onStep?.(state, taken);
    ({ state } = taken);
    const broken = await world.brokenOf(state);
    if (Object.keys(broken).length > 0)
      return { trace, found: { trace: trace.join('.'), steps: await wordsOf(world, trace), broken } };
  }
  return { trace, found: undefined };
}
