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
 * What is added up are whole multiples of one of few scales (`fraction.ts`), so that no number is longer than some thousand bits, and
 * none is ever reduced. They stand for exact sums as long as {@link fitsWindows} holds of whatever is added.
 */

import { ZERO, compareRationals, type Rational } from '../value/rational.js';
import { TOO_FINE, commonOf } from './common-denominator.js';
import { exactValue, fractionOf, sumOf, type Fraction } from './fraction.js';
import { Leaf, isSavedLeaf, type SavedLeaf } from './timeline-leaf.js';

/** How many children a node may have. */
const MAX_CHILDREN = 16;

/** An inner node as plain data. Children are named by their numbers, which a timeline's nodes get when they are saved. */
export interface SavedInner {
  readonly id: number;
  /** How far above the leaves it is. */
  readonly level: number;
  readonly children: readonly number[];
  /** Of each child the first instant, the greatest overlap without what is still to be added below it, that, and the common denominator. */
  readonly firsts: readonly bigint[];
  readonly max: readonly Fraction[];
  readonly pending: readonly Fraction[];
  readonly common: readonly bigint[];
}

/** A node as plain data. */
export type SavedNode = SavedInner | SavedLeaf;

/** Gives the node of a number; nodes are asked for when a question first leads to them. */
export type NodeLoader = (id: number) => SavedNode;

type Node = Inner | Leaf;

class Inner {
  readonly level: number;
  /** Its number where it was saved, else 0. */
  id = 0;
  /** Whether it is not saved as it is. */
  isDirty = true;
  /** A number stands for a node that was not asked for yet. */
  readonly children: (Node | number)[] = [];
  readonly firsts: bigint[] = [];
  /** Without what is pending, or what those above still have to add. */
  readonly maxima: Fraction[] = [];
  readonly pending: Fraction[] = [];
  readonly commons: bigint[] = [];
  /** Of each child the greatest overlap with what is pending: asked far more often than it changes. */
  readonly #tops: Fraction[] = [];
  /** Undefined where they must be looked for. */
  #max: Fraction | undefined;
  #common: bigint | undefined;
  readonly #load: NodeLoader | undefined;

  constructor(level: number, load?: NodeLoader) {
    this.level = level;
    this.#load = load;
  }

  static of(children: readonly Node[]): Inner {
    const inner = new Inner((children[0]?.level ?? 0) + 1);
    inner.insert(0, children);
    return inner;
  }

  static restore({ id, level, children, firsts, max, pending, common }: SavedInner, load: NodeLoader): Inner {
    const inner = new Inner(level, load);
    inner.id = id;
    inner.isDirty = false;
    inner.children.push(...children);
    inner.firsts.push(...firsts);
    inner.maxima.push(...max);
    inner.pending.push(...pending);
    inner.commons.push(...common);
    inner.#tops.push(...max.map((own, index) => sumOf(own, pending[index] as Fraction)));
    return inner;
  }

  get first(): bigint {
    return this.firsts[0] as bigint;
  }

  get max(): Fraction {
    return (this.#max ??= this.#tops.reduce(greater, ZERO));
  }

  /** The greatest overlap below a child, but for what those above still have to add. */
  topOf(index: number): Fraction {
    return this.#tops[index] as Fraction;
  }

  get common(): bigint {
    return (this.#common ??= this.commons.reduce(commonOf, 1n));
  }

  childAt(index: number): Node {
    const child = this.children[index] as Node | number;
    if (typeof child !== 'number') return child;
    const node = loadNode(child, this.level - 1, this.#load);
    this.children[index] = node;
    return node;
  }

  /** The child in which a key stands or would stand: the last that begins at or before it, else the first. */
  route(key: bigint): number {
    let low = 1;
    let high = this.firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.firsts[middle] as bigint) <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  insert(index: number, nodes: readonly Node[]): void {
    if (nodes.length === 0) return;
    this.children.splice(index, 0, ...nodes);
    this.firsts.splice(index, 0, ...nodes.map(({ first }) => first));
    this.maxima.splice(index, 0, ...nodes.map(({ max }) => max));
    this.#tops.splice(index, 0, ...nodes.map(({ max }) => max));
    this.pending.splice(index, 0, ...nodes.map(() => ZERO));
    this.commons.splice(index, 0, ...nodes.map(({ common }) => common));
    this.#forget();
  }

  /** Notes what became of a child to which nothing is still to be added, and the nodes that were split off it. */
  update(index: number, { first, max, common }: Node, others: readonly Node[]): void {
    this.firsts[index] = first;
    if (this.maxima[index] !== max) this.#max = undefined;
    this.maxima[index] = max;
    this.#tops[index] = max;
    if (this.commons[index] !== common) this.#common = undefined;
    this.commons[index] = common;
    this.isDirty = true;
    this.insert(index + 1, others);
  }

  /** Adds a weight to everything below a child. */
  raiseChild(index: number, weight: Fraction): void {
    this.pending[index] = sumOf(this.pending[index] as Fraction, weight);
    this.#tops[index] = sumOf(this.topOf(index), weight);
    this.#max = undefined;
    this.isDirty = true;
  }

  /** Adds to a child what is still to be added below it; the child may be split. */
  pushDown(index: number): void {
    const pending = this.pending[index] as Fraction;
    if (pending.n === 0n) return;
    const child = this.childAt(index);
    this.pending[index] = ZERO;
    if (child instanceof Leaf) {
      this.update(index, child, child.raise(0, child.length, pending));
      return;
    }
    for (let i = 0; i < child.children.length; i += 1) child.raiseChild(i, pending);
    this.update(index, child, []);
  }

  /** What is too much for one node, in nodes of its own. */
  split(): Inner[] {
    const nodes: Inner[] = [];
    while (this.children.length > MAX_CHILDREN) {
      const keep = Math.max(this.children.length - MAX_CHILDREN, this.children.length >>> 1);
      const node = new Inner(this.level, this.#load);
      node.children.push(...this.children.splice(keep));
      node.firsts.push(...this.firsts.splice(keep));
      node.maxima.push(...this.maxima.splice(keep));
      node.pending.push(...this.pending.splice(keep));
      node.#tops.push(...this.#tops.splice(keep));
      node.commons.push(...this.commons.splice(keep));
      nodes.unshift(node);
      this.#forget();
    }
    return nodes;
  }

  #forget(): void {
    this.#max = undefined;
    this.#common = undefined;
    this.isDirty = true;
  }

  save(): SavedInner {
    const children = this.children.map((child) => (typeof child === 'number' ? child : child.id));
    return {
      id: this.id,
      level: this.level,
      children,
      firsts: [...this.firsts],
      max: [...this.maxima],
      pending: [...this.pending],
      common: [...this.commons],
    };
  }
}

function loadNode(id: number, level: number, load: NodeLoader | undefined): Node {
  if (load === undefined) throw new TypeError('a saved timeline needs its nodes');
  const saved = load(id);
  // Each level is below the last, so that nothing goes round in a circle.
  if (level !== -1 && saved.level !== level) throw contradiction();
  return 'children' in saved ? Inner.restore(saved, load) : Leaf.restore(saved);
}

function contradiction(): RangeError {
  return new RangeError('the nodes of a timeline contradict each other');
}

/** Whether a value has the form of a node. */
export function isSavedNode(value: unknown): value is SavedNode {
  const { id, level, children, firsts, max, pending, common } = (value ?? {}) as Partial<SavedInner>;
  if (!isNumber(id) || !isNumber(level)) return false;
  if (level === 0) return isSavedLeaf(value);
  const lists: readonly unknown[] = [children, firsts, max, pending, common];
  const isWhole =
    lists.every((list) => Array.isArray(list) && list.length > 0 && list.length === children?.length) &&
    children?.every(isNumber) === true &&
    [firsts, common].every((list) => list?.every((each) => typeof each === 'bigint')) &&
    [max, pending].every((list) => list?.every((each) => typeof each.n === 'bigint' && each.d > 0n));
  return isWhole;
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Intervals of instants in nanoseconds. */
export interface Timeline {
  /** A number stands for a root that was not asked for yet. */
  root: Node | number | undefined;
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
export function restoreTimeline({ root, saved }: SavedTimeline, load: NodeLoader): Timeline {
  return { root: root === 0 ? undefined : root, load, saved };
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

/** A timeline without intervals. */
export function emptyTimeline(): Timeline {
  return { root: undefined, load: undefined, saved: 0 };
}

function rootOf(timeline: Timeline): Node | undefined {
  if (typeof timeline.root === 'number') timeline.root = loadNode(timeline.root, -1, timeline.load);
  return timeline.root;
}

/**
 * Whether, with one more interval [at, at + window) of this weight, the weights of the intervals that begin within any one window
 * still have a common denominator within the limit of SPEC §2. All intervals of the timeline are that long.
 *
 * Nearly always all that there are have one. Else the windows are tried from `at` backwards: each step takes in a weight that makes
 * the denominator longer, so there are few.
 */
export function fitsWindows(timeline: Timeline, at: bigint, window: bigint, { d }: Rational): boolean {
  const root = rootOf(timeline);
  if (root === undefined || commonOf(root.common, d) !== TOO_FINE) return true;
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
  return exactOverlap(timeline, peakFraction(timeline, from, to));
}

/** The value of an overlap that a timeline had once. */
export function exactOverlap(timeline: Timeline, overlap: Fraction): Rational {
  return exactValue(overlap, rootOf(timeline)?.common);
}

/** The same as it is kept: to find its value may cost far more than to compare it. */
export function peakFraction(timeline: Timeline, from: bigint, to: bigint): Fraction {
  const root = rootOf(timeline);
  return root === undefined || from >= to ? ZERO : peakWithin(root, from, to);
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
    peak = greater(peak, isWithin ? max : sumOf(peakWithin(node.childAt(i), from, to), pending));
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

/** The first of two that are the same. */
function greater(a: Fraction, b: Fraction): Fraction {
  return compareRationals(a, b) < 0 ? b : a;
}
