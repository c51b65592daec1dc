/**
 * Which call of a ledger is which call of a source. Ids come first. What ids do not tell apart is told apart by tool and parameters; what
 * has no id in common is found by these alone, where it is the only one on both sides within a window of time. Nothing is guessed.
 */

import { parseTimestamp } from '../../base/value/timestamp.js';
import type { LedgerCall } from './ledger-calls.js';
import { isCompatible, isOneCall } from './reconcile-compare.js';
import { contentKey, type FoundBy, type IndexedSource, type Seen } from './reconcile-sources.js';

/** Calls of the ledger under one id that are told apart; further ones make all of them ambiguous. */
const MAX_CALLS_PER_ID = 64;
/** The same of one tool and parameters, for each observation of these and besides. */
const MAX_CALLS_PER_CONTENT = 4;
const MORE_CALLS_PER_CONTENT = 64;

export type Found =
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'found'; readonly by: FoundBy; readonly seen: readonly Seen[] };

/** A call of the ledger, and where each source has it, in the order of the sources. */
export interface MatchedCall {
  readonly call: LedgerCall;
  readonly found: readonly Found[];
}

/** An observation that no call of the ledger was found to be. */
export interface Unclaimed {
  readonly source: IndexedSource;
  readonly seen: Seen;
  /** Whether it could be one of several. */
  readonly isAmbiguous: boolean;
}

const NONE: Found = { kind: 'none' };
const AMBIGUOUS: Found = { kind: 'ambiguous' };

interface Held {
  readonly call: LedgerCall;
  readonly found: Found[];
}

/** Takes the calls of a ledger one by one; it keeps those that a source may have. */
export class Matcher {
  readonly #sources: readonly SourceMatcher[];
  readonly #held: Held[] = [];

  /** @param window - How far apart the times of what is found by content may be, in nanoseconds. */
  constructor(sources: readonly IndexedSource[], window: bigint) {
    this.#sources = sources.map((source) => new SourceMatcher(source, window));
  }

  /** What became of the call, where that is known at once; else it is among those of {@link finish}. */
  take(call: LedgerCall): MatchedCall | undefined {
    const held: Held = { call, found: this.#sources.map(() => NONE) };
    const kept = this.#sources.map((source, index) => source.take(held, index));
    if (kept.every((each) => !each)) return held;
    this.#held.push(held);
    return undefined;
  }

  finish(): { readonly calls: readonly MatchedCall[]; readonly unclaimed: readonly Unclaimed[] } {
    const unclaimed = this.#sources.flatMap((source, index) => source.settle(index));
    return { calls: this.#held, unclaimed };
  }
}

class SourceMatcher {
  readonly #source: IndexedSource;
  readonly #window: bigint;
  readonly #byId: {
    readonly held: Held;
    readonly by: FoundBy;
    readonly rank: number;
    readonly at: readonly number[];
  }[] = [];
  /** How many calls each observation may be, by the rank of their names and the first that a call was found at. */
  readonly #load = new Map<string, number>();
  /** Observations of too many calls: the best rank of names that so many have. */
  readonly #crowded = new Map<number, number>();
  readonly #byContent = new Map<
    string,
    { readonly at: readonly number[]; readonly held: Held[]; isFull: boolean }
  >();

  constructor(source: IndexedSource, window: bigint) {
    this.#source = source;
    this.#window = window;
  }

  /** Whether what becomes of the call is known at the end only. */
  take(held: Held, index: number): boolean {
    const { call } = held;
    const hit = this.#source.find(call);
    if (hit !== undefined) {
      const { by, rank, at } = hit;
      const place = `${rank} ${at[0] ?? -1}`;
      const load = (this.#load.get(place) ?? 0) + 1;
      this.#load.set(place, load);
      if (!hit.isMany && load <= MAX_CALLS_PER_ID) {
        this.#byId.push({ held, by, rank, at });
        return true;
      }
      for (const each of at) this.#crowded.set(each, Math.min(rank, this.#crowded.get(each) ?? rank));
      held.found[index] = AMBIGUOUS;
      return false;
    }
    const at = this.#source.alike(call);
    if (at.length === 0 || call.paramsDigest === undefined) return false;
    const key = contentKey(call.tool, call.paramsDigest);
    let group = this.#byContent.get(key);
    if (group === undefined) {
      group = { at, held: [], isFull: false };
      this.#byContent.set(key, group);
    }
    if (group.held.length >= MAX_CALLS_PER_CONTENT * at.length + MORE_CALLS_PER_CONTENT) {
      group.isFull = true;
      held.found[index] = AMBIGUOUS;
      return false;
    }
    group.held.push(held);
    return true;
  }

  settle(index: number): Unclaimed[] {
    const claimed = new Set<number>();
    const ambiguous = new Set<number>(this.#crowded.keys());
    this.#settleIds(index, claimed, ambiguous);
    for (const { at, held, isFull } of this.#byContent.values()) {
      const free = at.filter((each) => !claimed.has(each) && !ambiguous.has(each));
      this.#settleContent(index, free, held, isFull, claimed, ambiguous);
    }
    const { seen } = this.#source;
    return seen
      .filter((each) => !claimed.has(each.index))
      .map((each) => ({ source: this.#source, seen: each, isAmbiguous: ambiguous.has(each.index) }));
  }

  #settleIds(index: number, claimed: Set<number>, ambiguous: Set<number>): void {
    const claims = new Map<number, Map<string, Claim>>();
    const chosen: { held: Held; by: FoundBy; rank: number; group: readonly Seen[] }[] = [];
    for (const { held, by, rank, at } of this.#byId) {
      const group = this.#choose(held.call, at);
      if (group === undefined) {
        held.found[index] = AMBIGUOUS;
        for (const each of at) ambiguous.add(each);
        continue;
      }
      chosen.push({ held, by, rank, group });
      for (const seen of group) {
        const systems = claims.get(seen.index) ?? new Map<string, Claim>();
        claims.set(seen.index, systems);
        const system = systemOf(held.call);
        const claim = systems.get(system) ?? new Claim();
        systems.set(system, claim);
        claim.add(held.call, seen, rank);
      }
    }
    for (const { held, by, rank, group } of chosen) {
      const { call } = held;
      const won: Seen[] = [];
      let isUnclear = false;
      for (const seen of group) {
        const winner = claims.get(seen.index)?.get(systemOf(call))?.winner;
        if ((this.#crowded.get(seen.index) ?? Infinity) <= rank || winner === undefined) isUnclear = true;
        else if (winner === call) won.push(seen);
      }
      if (isUnclear) {
        held.found[index] = AMBIGUOUS;
        for (const seen of group) ambiguous.add(seen.index);
      } else if (won.length > 0) {
        held.found[index] = { kind: 'found', by, seen: won };
        for (const seen of won) claimed.add(seen.index);
      }
    }
  }

  /** The observations of a call; undefined where it could be several. */
  #choose(call: LedgerCall, at: readonly number[]): readonly Seen[] | undefined {
    const all = at.map((each) => this.#source.seen[each] as Seen);
    if (all.length === 1) return all;
    const fitting = all.filter((seen) => isCompatible(call, seen));
    return fitting.length > 0 && isOneCall(fitting) ? fitting : undefined;
  }

  #settleContent(
    index: number,
    at: readonly number[],
    held: readonly Held[],
    isFull: boolean,
    claimed: Set<number>,
    ambiguous: Set<number>,
  ): void {
    const { seen } = this.#source;
    const observed = at
      .map((each) => seen[each] as Seen)
      .filter((each): each is Seen & { readonly instant: bigint } => each.instant !== undefined)
      .sort((a, b) => (a.instant < b.instant ? -1 : a.instant > b.instant ? 1 : a.index - b.index));
    const calls = held
      .map((each) => ({ held: each, instant: parseTimestamp(each.call.occurredAt) }))
      .sort((a, b) => (a.instant < b.instant ? -1 : a.instant > b.instant ? 1 : 0));
    const near = within(calls, observed, this.#window);
    const back = within(observed, calls, this.#window);
    for (const [i, call] of calls.entries()) {
      const [from, to] = near[i] as Span;
      if (from === to) continue;
      const other = observed[from] as Seen;
      const [backFrom, backTo] = back[from] as Span;
      if (!isFull && to - from === 1 && backTo - backFrom === 1) {
        call.held.found[index] = { kind: 'found', by: 'content', seen: [other] };
        claimed.add(other.index);
        continue;
      }
      call.held.found[index] = AMBIGUOUS;
      // Of one that has many, the others say so themselves when they are asked.
      ambiguous.add(other.index);
    }
    for (const [i, each] of observed.entries()) {
      const [from, to] = back[i] as Span;
      if (to > from && !claimed.has(each.index)) ambiguous.add(each.index);
    }
  }
}

/**
 * The calls of one system that may be an observation: as many as the ledger has, so that they are only counted. Those that it has a better
 * name for leave the others behind: `r1` of its own session is not `r1` of another.
 */
class Claim {
  #rank = Infinity;
  #first: LedgerCall | undefined;
  #isRivalled = false;
  #fitting: LedgerCall | undefined;
  #fit = 0;

  add(call: LedgerCall, seen: Seen, rank: number): void {
    if (rank > this.#rank) return;
    if (rank < this.#rank) {
      this.#rank = rank;
      this.#first = undefined;
      this.#isRivalled = false;
      this.#fit = 0;
    }
    if (this.#first === undefined) this.#first = call;
    else this.#isRivalled = true;
    if (!isCompatible(call, seen)) return;
    this.#fitting = call;
    this.#fit += 1;
  }

  /** The only one; of several the only one that fits. */
  get winner(): LedgerCall | undefined {
    if (!this.#isRivalled) return this.#first;
    return this.#fit === 1 ? this.#fitting : undefined;
  }
}

type Span = readonly [from: number, to: number];

/** Of each of `of` which of `among` are at most `window` away; both are in the order of time. */
function within(
  of: readonly { readonly instant: bigint }[],
  among: readonly { readonly instant: bigint }[],
  window: bigint,
): Span[] {
  let from = 0;
  let to = 0;
  return of.map(({ instant }) => {
    while (from < among.length && (among[from]?.instant ?? 0n) < instant - window) from += 1;
    while (to < among.length && (among[to]?.instant ?? 0n) <= instant + window) to += 1;
    return [from, Math.max(from, to)];
  });
}

/** Accounts of one call that a ledger took over from different systems do not rival each other. */
function systemOf({ entries }: LedgerCall): string {
  return entries.find(({ source }) => source !== undefined)?.source?.system ?? '';
}
