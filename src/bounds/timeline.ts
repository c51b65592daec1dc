/**
 * Exact weighted overlaps of half-open intervals of time, added in any order: the one structure behind rate limits and
 * concurrency limits (SPEC §8 rules 6 and 7).
 *
 * A rate is an overlap too: with each execution at t as the interval [t, t + window), the overlap at any instant x is the sum
 * over (x − window, x]. It only rises at executions' own instants, so its peak is a peak at one of them.
 *
 * A treap over the intervals' ends: each node holds the overlap from its instant to the next node's. Adding and asking cost
 * O(log n). Its shape is random, what it answers is not. It is saved node by node, and read again as far as it is asked.
 *
 * What is added up at any node, and what waits there to be added, are weights of intervals that overlap. So numbers stay as
 * short as {@link fitsWindows} keeps the common denominator of each window.
 */

import {
  DENOMINATOR_LIMIT,
  ZERO,
  addRationals,
  compareRationals,
  greatestCommonDivisor,
  type Rational,
} from '../value/rational.js';

/** A node as plain data. Children are named by their numbers, which a timeline's nodes get when they are saved; 0 is none. */
export interface SavedNode {
  readonly id: number;
  readonly key: bigint;
  readonly priority: number;
  readonly value: Rational;
  readonly max: Rational;
  readonly pending: Rational;
  readonly denominator: bigint;
  readonly common: bigint;
  readonly left: number;
  readonly right: number;
}

/** Gives the node of a number; nodes are asked for when a question first leads to them. */
export type NodeLoader = (id: number) => SavedNode;

class Node {
  readonly key: bigint;
  readonly priority: number;
  /** The overlap in [key, next key), without what the ancestors still have to add. */
  value: Rational;
  /** The greatest value in the subtree, likewise. */
  max: Rational;
  /** What is still to be added to both subtrees. */
  pending: Rational;
  /** The common denominator of the weights of the intervals that begin here. */
  denominator: bigint;
  /** That of the whole subtree; 0 where it is beyond the limit. */
  common: bigint;
  /** Its number where it was saved, else 0. */
  id: number;
  /** Whether it is not saved as it is. */
  isDirty: boolean;
  readonly #load: NodeLoader | undefined;
  /** A number stands for a node that was not asked for yet. */
  #left: Node | number | undefined;
  #right: Node | number | undefined;

  constructor(key: bigint, value: Rational, saved?: SavedNode, load?: NodeLoader) {
    this.key = key;
    this.value = value;
    this.priority = saved?.priority ?? Math.random();
    this.max = saved?.max ?? value;
    this.pending = saved?.pending ?? ZERO;
    this.denominator = saved?.denominator ?? 1n;
    this.common = saved?.common ?? 1n;
    this.id = saved?.id ?? 0;
    this.isDirty = saved === undefined;
    this.#load = load;
    this.#left = saved === undefined || saved.left === 0 ? undefined : saved.left;
    this.#right = saved === undefined || saved.right === 0 ? undefined : saved.right;
  }

  get left(): Node | undefined {
    if (typeof this.#left === 'number') this.#left = loadNode(this.#left, this.#load);
    return this.#left;
  }

  set left(node: Node | undefined) {
    this.#left = node;
    this.isDirty = true;
  }

  get right(): Node | undefined {
    if (typeof this.#right === 'number') this.#right = loadNode(this.#right, this.#load);
    return this.#right;
  }

  set right(node: Node | undefined) {
    this.#right = node;
    this.isDirty = true;
  }

  /** The children as far as they were asked for or made. */
  known(): Node[] {
    return [this.#left, this.#right].filter((child) => child instanceof Node);
  }

  save(): SavedNode {
    const { id, key, priority, value, max, pending, denominator, common } = this;
    const numberOf = (child: Node | number | undefined): number =>
      typeof child === 'object' ? child.id : (child ?? 0);
    const [left, right] = [numberOf(this.#left), numberOf(this.#right)];
    return { id, key, priority, value, max, pending, denominator, common, left, right };
  }
}

function loadNode(id: number, load: NodeLoader | undefined): Node {
  if (load === undefined) throw new TypeError('a saved timeline needs its nodes');
  const saved = load(id);
  return new Node(saved.key, saved.value, saved, load);
}

/** Intervals of instants in nanoseconds. */
export interface Timeline {
  root: Node | undefined;
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
  const nodes: Node[] = [];
  // Whatever is changed below a node changes the node: what is clean has nothing to be saved under it.
  const isMeant = ({ isDirty }: Node): boolean => scope === 'all' || isDirty;
  const stack = timeline.root !== undefined && isMeant(timeline.root) ? [timeline.root] : [];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.id === 0) node.id = timeline.saved += 1;
    if (scope === 'changes') node.isDirty = false;
    nodes.push(node);
    const children = scope === 'all' ? [node.left, node.right] : node.known();
    stack.push(...children.filter((child) => child !== undefined).filter(isMeant));
  }
  for (const node of nodes) put(node.save());
  return { root: timeline.root?.id ?? 0, saved: timeline.saved };
}

/** The timeline that {@link saveTimeline} saved. */
export function restoreTimeline({ root, saved }: SavedTimeline, load: NodeLoader): Timeline {
  return { root: root === 0 ? undefined : loadNode(root, load), saved };
}

/** From an instant on, to the next one: how much overlaps, and the common denominator of the weights of what begins there. */
export interface TimelineStep {
  readonly at: bigint;
  readonly overlap: Rational;
  readonly denominator: bigint;
}

interface Visit {
  readonly node: SavedNode;
  /** What those above it still have to add. */
  readonly above: Rational;
  /** What is below it has keys before this one. */
  readonly before: bigint | undefined;
}

/**
 * What a saved timeline says, in the order of time: the same for the same intervals, whatever shape chance has given its tree.
 *
 * @throws RangeError when its nodes contradict each other
 */
export function* readTimeline(
  { root, saved }: SavedTimeline,
  load: NodeLoader,
): Generator<TimelineStep, void> {
  const stack: Visit[] = [];
  let count = 0;
  const descend = (
    id: number,
    above: Rational,
    after: bigint | undefined,
    before: bigint | undefined,
  ): void => {
    // Keys that lie ever closer together keep this from going round in a circle.
    for (let next = id, end = before; next !== 0;) {
      const node = load(next);
      const { key } = node;
      const isInPlace = (after === undefined || after < key) && (end === undefined || key < end);
      if (!isInPlace || !isSound(node, load))
        throw new RangeError('the nodes of a timeline contradict each other');
      stack.push({ node, above, before: end });
      above = plus(above, node.pending);
      end = key;
      next = node.left;
    }
  };
  descend(root, ZERO, undefined, undefined);
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { node, above, before } = visit;
    count += 1;
    yield { at: node.key, overlap: plus(node.value, above), denominator: node.denominator };
    descend(node.right, plus(above, node.pending), node.key, before);
  }
  if (count !== saved) throw new RangeError('a timeline has other nodes than it says');
}

/** Whether a node says of those below it what they say. */
function isSound(node: SavedNode, load: NodeLoader): boolean {
  let { value: max, denominator: common } = node;
  for (const id of [node.left, node.right]) {
    if (id === 0) continue;
    const child = load(id);
    max = greater(max, plus(child.max, node.pending));
    common = commonOf(common, child.common);
    if (child.priority > node.priority) return false;
  }
  return compareRationals(max, node.max) === 0 && common === node.common;
}

/** A timeline without intervals. */
export function emptyTimeline(): Timeline {
  return { root: undefined, saved: 0 };
}

/**
 * Whether, with one more interval [at, at + window) of this weight, the weights of the intervals that begin within any one window
 * still have a common denominator within the limit of SPEC §2. All intervals of the timeline are that long.
 *
 * Nearly always all that begin within a window's length of `at` have one. Else the windows are tried from `at` backwards: each
 * step takes in a weight that makes the denominator longer, so there are few.
 */
export function fitsWindows({ root }: Timeline, at: bigint, window: bigint, { d }: Rational): boolean {
  if (commonOf(d, denominatorWithin(root, at - window + 1n, at + window)) !== TOO_FINE) return true;
  let common = d;
  for (let from = at; ;) {
    if (commonOf(common, denominatorWithin(root, at, from + window)) === TOO_FINE) return false;
    const finer = lastFiner(root, at - window + 1n, from, common);
    if (finer === undefined) return true;
    common = commonOf(common, finer.denominator);
    from = finer.key;
    if (common === TOO_FINE) return false;
  }
}

const TOO_FINE = 0n;

/** The least common multiple of two denominators, {@link TOO_FINE} where it or one of them is beyond the limit. */
function commonOf(a: bigint, b: bigint): bigint {
  if (a === b || b === 1n || a === TOO_FINE) return a;
  if (a === 1n || b === TOO_FINE) return b;
  const common = (a / greatestCommonDivisor(a, b)) * b;
  return common >= DENOMINATOR_LIMIT ? TOO_FINE : common;
}

/** The common denominator of the weights of the intervals that begin in [from, to). */
function denominatorWithin(node: Node | undefined, from: bigint, to: bigint): bigint {
  if (node === undefined) return 1n;
  if (node.key < from) return denominatorWithin(node.right, from, to);
  if (node.key >= to) return denominatorWithin(node.left, from, to);
  let common = node.denominator;
  for (let each = node.left; each !== undefined && common !== TOO_FINE;) {
    const isWithin = each.key >= from;
    if (isWithin) common = commonOf(commonOf(common, each.denominator), each.right?.common ?? 1n);
    each = isWithin ? each.left : each.right;
  }
  for (let each = node.right; each !== undefined && common !== TOO_FINE;) {
    const isWithin = each.key < to;
    if (isWithin) common = commonOf(commonOf(common, each.denominator), each.left?.common ?? 1n);
    each = isWithin ? each.right : each.left;
  }
  return common;
}

/** The last node in [from, to) whose own denominator does not divide `common`. */
function lastFiner(node: Node | undefined, from: bigint, to: bigint, common: bigint): Node | undefined {
  if (node === undefined || (node.common !== TOO_FINE && common % node.common === 0n)) return undefined;
  if (node.key >= to) return lastFiner(node.left, from, to, common);
  if (node.key < from) return lastFiner(node.right, from, to, common);
  const after = lastFiner(node.right, from, to, common);
  if (after !== undefined) return after;
  return common % node.denominator === 0n ? lastFiner(node.left, from, to, common) : node;
}

/** The greatest overlap at any instant in [from, to); zero for an empty interval. */
export function peakOverlap(timeline: Timeline, from: bigint, to: bigint): Rational {
  if (from >= to) return ZERO;
  return greater(overlapAt(timeline.root, from), maxWithin(timeline.root, from, to) ?? ZERO);
}

/** Adds the interval [from, to) with a weight; an empty interval adds nothing. */
export function addInterval(timeline: Timeline, from: bigint, to: bigint, weight: Rational): void {
  if (from >= to) return;
  const [before, rest] = split(timeline.root, from);
  const [within, after] = split(rest, to);
  const raised = startingAt(within, from, overlapAt(before, from));
  const others = startingAt(after, to, overlapAt(raised, to));
  raise(raised, weight);
  begin(raised, from, weight.d);
  timeline.root = merge(merge(before, raised), others);
}

/** The nodes with one at `key`, where no node is before it: from there on the overlap may change. */
function startingAt(nodes: Node | undefined, key: bigint, value: Rational): Node {
  if (nodes !== undefined && leftmost(nodes).key === key) return nodes;
  const node = new Node(key, value);
  return merge(node, nodes) ?? node;
}

/** The overlap at an instant: the value of the last node at or before it. */
function overlapAt(root: Node | undefined, key: bigint): Rational {
  let value = ZERO;
  let pending = ZERO;
  for (let node = root; node !== undefined;) {
    const goesRight = node.key <= key;
    if (goesRight) value = plus(node.value, pending);
    pending = plus(pending, node.pending);
    node = goesRight ? node.right : node.left;
  }
  return value;
}

/** The greatest value of the nodes in [from, to). */
function maxWithin(node: Node | undefined, from: bigint, to: bigint): Rational | undefined {
  if (node === undefined) return undefined;
  if (node.key < from) return lift(maxWithin(node.right, from, to), node.pending);
  if (node.key >= to) return lift(maxWithin(node.left, from, to), node.pending);
  let max = node.value;
  const left = lift(maxFrom(node.left, from), node.pending);
  const right = lift(maxBefore(node.right, to), node.pending);
  if (left !== undefined) max = greater(max, left);
  if (right !== undefined) max = greater(max, right);
  return max;
}

function maxFrom(node: Node | undefined, from: bigint): Rational | undefined {
  if (node === undefined) return undefined;
  if (node.key < from) return lift(maxFrom(node.right, from), node.pending);
  const left = lift(maxFrom(node.left, from), node.pending);
  let max = left === undefined ? node.value : greater(node.value, left);
  if (node.right !== undefined) max = greater(max, plus(node.right.max, node.pending));
  return max;
}

function maxBefore(node: Node | undefined, to: bigint): Rational | undefined {
  if (node === undefined) return undefined;
  if (node.key >= to) return lift(maxBefore(node.left, to), node.pending);
  const right = lift(maxBefore(node.right, to), node.pending);
  let max = right === undefined ? node.value : greater(node.value, right);
  if (node.left !== undefined) max = greater(max, plus(node.left.max, node.pending));
  return max;
}

/** Nodes before `key`, and the others. */
function split(node: Node | undefined, key: bigint): [Node | undefined, Node | undefined] {
  if (node === undefined) return [undefined, undefined];
  pushDown(node);
  if (node.key < key) {
    const [left, right] = split(node.right, key);
    node.right = left;
    pullUp(node);
    return [node, right];
  }
  const [left, right] = split(node.left, key);
  node.left = right;
  pullUp(node);
  return [left, node];
}

function merge(left: Node | undefined, right: Node | undefined): Node | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  if (left.priority > right.priority) {
    pushDown(left);
    left.right = merge(left.right, right);
    pullUp(left);
    return left;
  }
  pushDown(right);
  right.left = merge(left, right.left);
  pullUp(right);
  return right;
}

/** Notes at the first node, which is at `key`, that an interval begins there. */
function begin(node: Node, key: bigint, denominator: bigint): void {
  if (node.key === key) node.denominator = commonOf(node.denominator, denominator);
  else if (node.left !== undefined) begin(node.left, key, denominator);
  node.common = commonOf(node.common, denominator);
  node.isDirty = true;
}

function leftmost(node: Node): Node {
  let first = node;
  while (first.left !== undefined) first = first.left;
  return first;
}

function raise(node: Node, weight: Rational): void {
  node.value = plus(node.value, weight);
  node.max = plus(node.max, weight);
  node.pending = plus(node.pending, weight);
  node.isDirty = true;
}

function pushDown(node: Node): void {
  if (node.pending.n === 0n) return;
  if (node.left !== undefined) raise(node.left, node.pending);
  if (node.right !== undefined) raise(node.right, node.pending);
  node.pending = ZERO;
  node.isDirty = true;
}

/** Call with nothing pending. */
function pullUp(node: Node): void {
  let { value: max, denominator: common } = node;
  for (const child of [node.left, node.right]) {
    if (child === undefined) continue;
    max = greater(max, child.max);
    common = commonOf(common, child.common);
  }
  node.max = max;
  node.common = common;
  node.isDirty = true;
}

function plus(a: Rational, b: Rational): Rational {
  if (b.n === 0n) return a;
  return a.n === 0n ? b : addRationals(a, b);
}

function lift(value: Rational | undefined, pending: Rational): Rational | undefined {
  return value === undefined ? undefined : plus(value, pending);
}

function greater(a: Rational, b: Rational): Rational {
  return compareRationals(a, b) < 0 ? b : a;
}
