/**
 * Exact weighted overlaps of half-open intervals of time, added in any order: the one structure behind rate limits and
 * concurrency limits (SPEC §8 rules 6 and 7).
 *
 * A rate is an overlap too: with each execution at t as the interval [t, t + window), the overlap at any instant x is the sum
 * over (x − window, x]. It only rises at executions' own instants, so its peak is a peak at one of them.
 *
 * The overlap is a step function of time: a list of the instants at which it changes, each with the overlap from there on. Leaves hold
 * up to some hundred of them in columns of small integers (`timeline-leaf.ts`), inner nodes say the greatest overlap below each of their children
 * and what is still to be added there, so that adding and asking cost O(log n). An event may be dated as far back as it likes, so
 * nothing is ever too old to matter; but where what begins at an instant is as much as what ends there, nothing changes, and nothing
 * is kept. What is saved is saved node by node, and read again as far as it is asked.
 *
 * Most intervals come in the order of their times. Those are kept as plain sums at first (`recent-intervals.ts`), beside the tree, and are put into it
 * when something is asked or saved that takes the tree.
 *
 * What is added up are whole multiples of one of few scales (`fraction.ts`), so that no number is longer than some thousand bits, and
 * none is ever reduced. They stand for exact sums as long as {@link fitsWindows} holds of whatever is added.
 */

import { compareRationals, type Rational, ZERO } from '../../base/value/rational.js';
import { commonOf, TOO_FINE } from './common-denominator.js';
import { exactValue, type Fraction, fractionOf, sumOf } from './fraction.js';
import { RecentIntervals } from './recent-intervals.js';
import { Leaf } from './timeline-leaf.js';
import {
  contradiction,
  greater,
  Inner,
  loadNode,
  type Node,
  type NodeLoader,
  type SavedNode,
  treeOf,
} from './timeline-node.js';

/** Each question that took the tree asks for so many recent intervals more before one that comes late is put among them. */
const FEW = 16;

/** Intervals of instants in nanoseconds: each is in the tree, or among the recent ones. */
export interface Timeline {
  /** How long each is, where all have one length. */
  readonly length: bigint | undefined;
  /** A number stands for a root that was not asked for yet. */
  root: Node | number | undefined;
  /** An instant after which none of those in the tree begins; undefined where that must be looked for. */
  latest: bigint | undefined;
  recent: RecentIntervals;
  /** How often a question was one that only the tree can answer. */
  forced: number;
  readonly load: NodeLoader | undefined;
  /** How many of its nodes have a number. */
  saved: number;
}

/** A timeline as plain data, but for its nodes: the number of its root, 0 for none, and how many have a number. */
export interface SavedTimeline {
  readonly root: number;
  readonly saved: number;
}

/** What of a timeline is saved: all of it, or what was changed since its changes were saved before. */
export type SavingScope = 'all' | 'changes';

/**
 * Saves a timeline's nodes. Each keeps the number that it is given.
 *
 * @param put - Called with each node of the scope.
 */
export function saveTimeline(
  timeline: Timeline,
  scope: SavingScope,
  put: (node: SavedNode) => void,
): SavedTimeline {
  settle(timeline);
  const root = scope === 'all' ? rootOf(timeline) : timeline.root;
  const nodes: Node[] = [];
  // Whatever is changed below a node changes the node: what is clean has nothing to be saved under it.
  const isMeant = ({ isDirty }: Node): boolean => scope === 'all' || isDirty;
  const stack = typeof root === 'object' && isMeant(root) ? [root] : [];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.id === 0) node.id = timeline.saved += 1;
    if (scope === 'changes') node.isDirty = false;
    nodes.push(node);
    if (node instanceof Leaf) continue;
    for (let index = 0; index < node.children.length; index += 1) {
      const child = scope === 'all' ? node.childAt(index) : node.children[index];
      if (typeof child === 'object' && isMeant(child)) stack.push(child);
    }
  }
  for (const node of nodes) put(node.save());
  return { root: typeof root === 'object' ? root.id : (root ?? 0), saved: timeline.saved };
}

/** The timeline that {@link saveTimeline} saved. */
export function restoreTimeline({ root, saved }: SavedTimeline, load: NodeLoader, length?: bigint): Timeline {
  return { ...emptyTimeline(length), root: root === 0 ? undefined : root, load, saved };
}

/** From an instant on, to the next one: how much overlaps, and the common denominator of the weights of what begins there. */
export interface TimelineStep {
  readonly at: bigint;
  readonly overlap: Rational;
  readonly denominator: bigint;
}

/**
 * What a saved timeline says, in the order of time: the same for the same intervals, in whatever order they came.
 *
 * @throws RangeError when its nodes contradict each other
 */
export function* readTimeline(
  { root, saved }: SavedTimeline,
  load: NodeLoader,
): Generator<TimelineStep, void> {
  if (root === 0) {
    if (saved !== 0) throw contradiction();
    return;
  }
  let count = 0;
  let before: TimelineStep | undefined;
  const stack: { readonly node: Node; readonly above: Fraction }[] = [];
  const push = (node: Node, above: Fraction): void => {
    stack.push({ node, above });
  };
  push(loadNode(root, -1, load), ZERO);
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { node, above } = visit;
    count += 1;
    if (node instanceof Leaf) {
      for (const { at, value, denominator } of node.steps()) {
        if (before !== undefined && at <= before.at) throw contradiction();
        const sum = sumOf(value, above);
        const step = { at, overlap: exactValue(sum), denominator };
        // What is the first of a node is kept even where nothing changes.
        const isChange = compareRationals(before?.overlap ?? ZERO, step.overlap) !== 0;
        before = step;
        if (isChange || denominator !== 1n) yield step;
      }
      continue;
    }
    for (let index = node.children.length - 1; index >= 0; index -= 1) {
      const child = node.childAt(index);
      const pending = node.pending[index] as Fraction;
      const isSound =
        child.first === node.firsts[index] &&
        compareRationals(child.max, node.maxima[index] as Fraction) === 0 &&
        child.common === node.commons[index];
      if (!isSound) throw contradiction();
      push(child, sumOf(above, pending));
    }
  }
  if (count !== saved) throw new RangeError('a timeline has other nodes than it says');
}

/**
 * A timeline without intervals.
 *
 * @param length - How long all of them will be, where they have one length.
 */
export function emptyTimeline(length?: bigint): Timeline {
  const recent = new RecentIntervals(length);
  return { length, root: undefined, latest: undefined, recent, forced: 0, load: undefined, saved: 0 };
}

function rootOf(timeline: Timeline): Node | undefined {
  if (typeof timeline.root === 'number') timeline.root = loadNode(timeline.root, -1, timeline.load);
  return timeline.root;
}

/** Puts the recent intervals into the tree. */
function settle(timeline: Timeline): void {
  const { recent, length } = timeline;
  if (recent.count === 0) return;
  timeline.recent = new RecentIntervals(length);
  if (timeline.root === undefined) {
    timeline.root = treeOf(recent.steps(), recent.scale);
    timeline.latest = recent.latest;
    return;
  }
  for (const { from, to, weight } of recent.list()) addToTree(timeline, from, to, weight, fractionOf(weight));
}

/** Whether none of the intervals in the tree begins after an instant. */
function treeBeginsBy(timeline: Timeline, instant: bigint): boolean {
  const root = rootOf(timeline);
  if (root === undefined) return true;
  // Which of its instants are beginnings a tree does not say, but the last one is an end.
  timeline.latest ??= root.last - (timeline.length ?? 0n);
  return timeline.latest <= instant;
}

/**
 * Whether, with one more interval [at, at + window) of this weight, the weights of the intervals that begin within any one window
 * still have a common denominator within the limit of SPEC §2. All intervals of the timeline are that long.
 *
 * Nearly always all that there are have one. Else the windows are tried from `at` backwards: each step takes in a weight that makes
 * the denominator longer, so there are few.
 */
export function fitsWindows(timeline: Timeline, at: bigint, window: bigint, { d }: Rational): boolean {
  if (commonOf(commonWeight(timeline), d) !== TOO_FINE) return true;
  timeline.forced += 1;
  settle(timeline);
  const root = rootOf(timeline) as Node;
  const first = at - window + 1n;
  const before = commonOf(d, denominatorWithin(root, first, at + 1n));
  const after = commonOf(d, denominatorWithin(root, at, at + window));
  if (before === TOO_FINE || after === TOO_FINE) return false;
  if (commonOf(before, after) !== TOO_FINE) return true;
  let common = d;
  for (let from = at; ;) {
    if (commonOf(common, denominatorWithin(root, at, from + window)) === TOO_FINE) return false;
    const finer = lastFiner(root, first, from, common);
    if (finer === undefined) return true;
    common = commonOf(common, finer.denominator);
    from = finer.at;
  }
}

/** The common denominator of all weights. */
function commonWeight(timeline: Timeline): bigint {
  return commonOf(rootOf(timeline)?.common ?? 1n, timeline.recent.common);
}

/** The common denominator of the weights of the intervals that begin in [from, to). */
function denominatorWithin(node: Node, from: bigint, to: bigint): bigint {
  if (node instanceof Leaf) return node.denominatorWithin(from, to);
  let common = 1n;
  const { firsts } = node;
  for (let i = node.route(from); i < firsts.length && common !== TOO_FINE; i += 1) {
    const begin = firsts[i] as bigint;
    if (begin >= to) break;
    const end = firsts[i + 1];
    const isWithin = begin >= from && end !== undefined && end <= to;
    const own = node.commons[i] as bigint;
    if (own !== TOO_FINE && common % own === 0n) continue;
    common = commonOf(common, isWithin ? own : denominatorWithin(node.childAt(i), from, to));
  }
  return common;
}

/** The last instant in [from, to) at which an interval begins whose denominator does not divide `common`. */
function lastFiner(
  node: Node,
  from: bigint,
  to: bigint,
  common: bigint,
): { readonly at: bigint; readonly denominator: bigint } | undefined {
  if (node instanceof Leaf) return node.lastFiner(from, to, common);
  for (let i = node.route(to); i >= 0; i -= 1) {
    const own = node.commons[i] as bigint;
    if (own !== TOO_FINE && common % own === 0n) continue;
    const found = lastFiner(node.childAt(i), from, to, common);
    if (found !== undefined) return found;
    if ((node.firsts[i] as bigint) < from) return undefined;
  }
  return undefined;
}

/** The greatest overlap at any instant in [from, to); zero for an empty interval. */
export function peakOverlap(timeline: Timeline, from: bigint, to: bigint): Rational {
  return from >= to ? ZERO : exactOverlap(timeline, peakFraction(timeline, from, to));
}

/** The value of an overlap that a timeline had once. */
export function exactOverlap(timeline: Timeline, overlap: Fraction): Rational {
  return exactValue(overlap, commonWeight(timeline));
}

/** The same as it is kept: to find its value may cost far more than to compare it. */
function peakFraction(timeline: Timeline, from: bigint, to: bigint): Fraction {
  if (isFallingFrom(timeline, from)) return mostOverlap(timeline, from, to);
  if (peakOfTree(timeline, from, to).n === 0n) {
    const peak = timeline.recent.peak(from, to);
    if (peak !== undefined) return peak;
  }
  timeline.forced += 1;
  settle(timeline);
  return peakOfTree(timeline, from, to);
}

/**
 * The greatest overlap at any instant in [from, to), as it is kept, where that is too much; else undefined.
 *
 * @param isEnough - Says whether an overlap is not too much; none that is less than one that is not.
 */
export function findExcess(
  timeline: Timeline,
  from: bigint,
  to: bigint,
  isEnough: (overlap: Fraction) => boolean,
): Fraction | undefined {
  if (from >= to) return undefined;
  const most = mostOverlap(timeline, from, to);
  if (isEnough(most)) return undefined;
  const isPeak = timeline.recent.count === 0 || isFallingFrom(timeline, from);
  const peak = isPeak ? most : peakFraction(timeline, from, to);
  return isEnough(peak) ? undefined : peak;
}

/** Whether no interval begins after an instant: everything only becomes less then. */
function isFallingFrom(timeline: Timeline, from: bigint): boolean {
  const { latest } = timeline.recent;
  return (latest === undefined || latest <= from) && treeBeginsBy(timeline, from);
}

function peakOfTree(timeline: Timeline, from: bigint, to: bigint): Fraction {
  const root = rootOf(timeline);
  return root === undefined ? ZERO : peakWithin(root, from, to);
}

/** At least the greatest overlap at any instant in [from, to), for less. */
function mostOverlap(timeline: Timeline, from: bigint, to: bigint): Fraction {
  return sumOf(peakOfTree(timeline, from, to), timeline.recent.within(from, to));
}

/** Of those below a node: the greatest of what is there at `from`, and begins in [from, to). */
function peakWithin(node: Node, from: bigint, to: bigint): Fraction {
  if (node instanceof Leaf) return node.peakWithin(from, to);
  let peak: Fraction = ZERO;
  const { firsts } = node;
  for (let i = node.route(from); i < firsts.length; i += 1) {
    const begin = firsts[i] as bigint;
    if (begin >= to) break;
    const end = firsts[i + 1];
    const pending = node.pending[i] as Fraction;
    const max = node.topOf(i);
    if (compareRationals(max, peak) <= 0) continue;
    const isWithin = begin >= from && end !== undefined && end <= to;
    peak = isWithin ? max : greater(peak, sumOf(peakWithin(node.childAt(i), from, to), pending));
  }
  return peak;
}

/**
 * Adds the interval [from, to) with a weight of at least 0; an empty interval adds nothing.
 *
 * @param fraction - The weight as `fractionOf` gives it, for whoever has that already.
 */
export function addInterval(
  timeline: Timeline,
  from: bigint,
  to: bigint,
  weight: Rational,
  fraction = fractionOf(weight),
): void {
  if (from >= to || weight.n === 0n) return;
  const { recent, forced } = timeline;
  // Where questions took the tree again and again, what comes late is put there at once.
  const isWelcome =
    rootOf(timeline)?.common !== TOO_FINE && (recent.count >= forced * FEW || isFallingFrom(timeline, from));
  if (isWelcome && recent.add({ from, to, weight }, fraction)) return;
  addToTree(timeline, from, to, weight, fraction);
}

function addToTree(timeline: Timeline, from: bigint, to: bigint, weight: Rational, fraction: Fraction): void {
  if (treeBeginsBy(timeline, from)) timeline.latest = from;
  const isKnownFrom = ensureAt(timeline, from, weight.d);
  const isKnownTo = ensureAt(timeline, to, 1n);
  const root = rootOf(timeline) as Node;
  grow(timeline, root, raise(root, from, to, fraction));
  // Where nothing began or ended before, something changes now.
  if (isKnownFrom) changeAt(timeline, from, (leaf) => leaf.drop(from));
  if (isKnownTo) changeAt(timeline, to, (leaf) => leaf.drop(to));
}

/** @returns Whether something began or ended at that instant before. */
function ensureAt(timeline: Timeline, key: bigint, denominator: bigint): boolean {
  let isKnown = false;
  changeAt(timeline, key, (leaf) => {
    const others = leaf.ensure(key, denominator);
    isKnown = others === undefined;
    return others ?? [];
  });
  return isKnown;
}

/** Changes the leaf in which a key stands or would stand; what is split off it is taken up. */
function changeAt(timeline: Timeline, key: bigint, change: (leaf: Leaf) => Leaf[]): void {
  const root = rootOf(timeline) ?? new Leaf();
  grow(timeline, root, changeBelow(root, key, change));
}

function changeBelow(node: Node, key: bigint, change: (leaf: Leaf) => Leaf[]): Node[] {
  if (node instanceof Leaf) return change(node);
  node.pushDown(node.route(key));
  const index = node.route(key);
  const child = node.childAt(index);
  node.update(index, child, changeBelow(child, key, change));
  return node.split();
}

/** Adds a weight to what is in [from, to), two keys of which the first is there. */
function raise(node: Node, from: bigint, to: bigint, weight: Fraction): Node[] {
  if (node instanceof Leaf) return node.raiseWithin(from, to, weight);
  const { firsts } = node;
  for (let i = node.route(from); i < firsts.length; i += 1) {
    const begin = firsts[i] as bigint;
    if (begin >= to) break;
    const end = firsts[i + 1];
    if (begin >= from && end !== undefined && end <= to) {
      node.raiseChild(i, weight);
      continue;
    }
    const count = firsts.length;
    node.pushDown(i);
    if (firsts.length > count) {
      i -= 1;
      continue;
    }
    const child = node.childAt(i);
    const others = raise(child, from, to, weight);
    node.update(i, child, others);
    i += others.length;
  }
  return node.split();
}

function grow(timeline: Timeline, root: Node, others: readonly Node[]): void {
  let nodes: readonly Node[] = [root, ...others];
  while (nodes.length > 1) {
    const above = Inner.of(nodes);
    nodes = [above, ...above.split()];
  }
  timeline.root = nodes[0];
}
