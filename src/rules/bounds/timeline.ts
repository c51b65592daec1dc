/**
 * Exact weighted overlaps of half-open intervals of time, added in any order, for rate and concurrency limits (SPEC §8 rules 6 and 7).
 *
 * A rate is an overlap too: with each execution at t as the interval [t, t + window), the overlap at an instant x is the sum over
 * (x − window, x]. It rises only at executions, so its peak is at one of them.
 *
 * The overlap is a step function of time: a list of instants, each with the overlap from there on. Leaves hold about a hundred of them in
 * columns of small integers (`timeline-leaf.ts`). Inner nodes hold the maximum overlap and the pending weight of each child, so that
 * adding and querying cost O(log n). Events may be dated back without limit, so no instant is too old to keep; an instant where as much
 * begins as ends is dropped. Nodes are saved separately, and loaded when needed.
 *
 * Most intervals come in order of time. They are kept as plain sums (`recent-intervals.ts`) beside the tree, and moved into it for queries
 * and saves that need the tree.
 *
 * Sums are whole multiples of one of few scales (`fraction.ts`): numbers have at most some thousand bits, and none is reduced. They are
 * exact as long as {@link fitsWindows} holds for every addition.
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

/** Each query of the tree requires so many more recent intervals before a late one is put among them. */
const FEW = 16;

/** Intervals in nanoseconds: each is in the tree, or among the recent ones. */
export interface Timeline {
  /** The length of all intervals, if it is the same. */
  readonly length: bigint | undefined;
  /** A number is a root that is not loaded. */
  root: Node | number | undefined;
  /** An instant after which none in the tree begins; undefined where not computed. */
  latest: bigint | undefined;
  recent: RecentIntervals;
  /** How many queries needed the tree. */
  forced: number;
  readonly load: NodeLoader | undefined;
  /** How many nodes have a number. */
  saved: number;
}

/** A timeline as plain data without its nodes: the number of its root, 0 for none, and how many nodes have a number. */
export interface SavedTimeline {
  readonly root: number;
  readonly saved: number;
}

/** What to save: everything, or the changes since the last save. */
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
  // A change below a node marks the node: nothing below a clean one needs saving.
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

/** The overlap from an instant to the next, and the common denominator of the weights that begin there. */
export interface TimelineStep {
  readonly at: bigint;
  readonly overlap: Rational;
  readonly denominator: bigint;
}

/**
 * The steps of a saved timeline in order of time. They do not depend on the order of additions.
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
        // The first instant of a node is kept even without a change.
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
 * @param length - The length of all intervals, if it is the same.
 */
export function emptyTimeline(length?: bigint): Timeline {
  const recent = new RecentIntervals(length);
  return { length, root: undefined, latest: undefined, recent, forced: 0, load: undefined, saved: 0 };
}

function rootOf(timeline: Timeline): Node | undefined {
  if (typeof timeline.root === 'number') timeline.root = loadNode(timeline.root, -1, timeline.load);
  return timeline.root;
}

/** Moves the recent intervals into the tree. */
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
  // The tree does not tell beginnings from ends, but its last instant is an end.
  timeline.latest ??= root.last - (timeline.length ?? 0n);
  return timeline.latest <= instant;
}

/**
 * Whether, with one more interval [at, at + window) of this weight, the weights of the intervals that begin within any one window
 * still have a common denominator within the limit of SPEC §2. All intervals of the timeline are that long.
 *
 * Nearly always all weights have one. Else the windows are tried from `at` backwards: each step adds a weight that lengthens the
 * denominator, so there are few.
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

/** The value of an earlier overlap of a timeline. */
export function exactOverlap(timeline: Timeline, overlap: Fraction): Rational {
  return exactValue(overlap, commonWeight(timeline));
}

/** The same as a fraction: finding its value may be far slower than comparing it. */
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
 * The greatest overlap at any instant in [from, to), as a fraction, if it is too much; else undefined.
 *
 * @param isEnough - Whether an overlap is not too much. MUST be monotonic.
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

/** Whether no interval begins after an instant: the overlap only falls then. */
function isFallingFrom(timeline: Timeline, from: bigint): boolean {
  const { latest } = timeline.recent;
  return (latest === undefined || latest <= from) && treeBeginsBy(timeline, from);
}

function peakOfTree(timeline: Timeline, from: bigint, to: bigint): Fraction {
  const root = rootOf(timeline);
  return root === undefined ? ZERO : peakWithin(root, from, to);
}

/** A fast upper bound of the overlap at any instant in [from, to). */
function mostOverlap(timeline: Timeline, from: bigint, to: bigint): Fraction {
  return sumOf(peakOfTree(timeline, from, to), timeline.recent.within(from, to));
}

/** The greatest overlap below a node at `from` or at an instant in [from, to). */
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
 * @param fraction - The weight from `fractionOf`, if known.
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
  // After many queries of the tree, late intervals go there at once.
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
  // An instant without a beginning or end before.
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

/** Changes the leaf for a key, and inserts the nodes split off it. */
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

/** Adds a weight to the range [from, to); `from` is present. */
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
