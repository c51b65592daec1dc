/**
 * Exact weighted overlaps of half-open intervals of time, added in any order: the one structure behind rate limits and
 * concurrency limits (SPEC §8 rules 6 and 7).
 *
 * A rate is an overlap too: with each execution at t as the interval [t, t + window), the overlap at any instant x is the sum
 * over (x − window, x]. It only rises at executions' own instants, so its peak is a peak at one of them.
 *
 * A treap over the intervals' ends: each node holds the overlap from its instant to the next node's. Adding and asking cost
 * O(log n). Its shape is random, what it answers is not. Plain data: it can be saved.
 */

import {
  ZERO,
  addRationals,
  compareRationals,
  greatestCommonDivisor,
  type Rational,
} from '../value/rational.js';

interface Node {
  readonly key: bigint;
  readonly priority: number;
  /** The overlap in [key, next key), without what the ancestors still have to add. */
  value: Rational;
  /** The greatest value in the subtree, likewise. */
  max: Rational;
  /** What is still to be added to both subtrees. */
  pending: Rational;
  left: Node | undefined;
  right: Node | undefined;
}

/** Intervals of instants in nanoseconds. */
export interface Timeline {
  root: Node | undefined;
  /** The common denominator of all weights: every overlap is a multiple of its inverse. */
  denominator: bigint;
}

/** A timeline without intervals. */
export function emptyTimeline(): Timeline {
  return { root: undefined, denominator: 1n };
}

/** The common denominator that the timeline would have with one more weight. */
export function commonDenominator({ denominator }: Timeline, { d }: Rational): bigint {
  return denominator % d === 0n ? denominator : (denominator / greatestCommonDivisor(denominator, d)) * d;
}

/** The greatest overlap at any instant in [from, to); zero for an empty interval. */
export function peakOverlap(timeline: Timeline, from: bigint, to: bigint): Rational {
  if (from >= to) return ZERO;
  return greater(overlapAt(timeline.root, from), maxWithin(timeline.root, from, to) ?? ZERO);
}

/** Adds the interval [from, to) with a weight; an empty interval adds nothing. */
export function addInterval(timeline: Timeline, from: bigint, to: bigint, weight: Rational): void {
  if (from >= to) return;
  timeline.denominator = commonDenominator(timeline, weight);
  const [before, rest] = split(timeline.root, from);
  const [within, after] = split(rest, to);
  const raised = startingAt(within, from, overlapAt(before, from));
  const others = startingAt(after, to, overlapAt(raised, to));
  raise(raised, weight);
  timeline.root = merge(merge(before, raised), others);
}

/** The nodes with one at `key`, where no node is before it: from there on the overlap may change. */
function startingAt(nodes: Node | undefined, key: bigint, value: Rational): Node {
  if (nodes !== undefined && leftmost(nodes).key === key) return nodes;
  const node: Node = {
    key,
    priority: Math.random(),
    value,
    max: value,
    pending: ZERO,
    left: undefined,
    right: undefined,
  };
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

function leftmost(node: Node): Node {
  let first = node;
  while (first.left !== undefined) first = first.left;
  return first;
}

function raise(node: Node, weight: Rational): void {
  node.value = plus(node.value, weight);
  node.max = plus(node.max, weight);
  node.pending = plus(node.pending, weight);
}

function pushDown(node: Node): void {
  if (node.pending.n === 0n) return;
  if (node.left !== undefined) raise(node.left, node.pending);
  if (node.right !== undefined) raise(node.right, node.pending);
  node.pending = ZERO;
}

/** Call with nothing pending. */
function pullUp(node: Node): void {
  let { value: max } = node;
  if (node.left !== undefined) max = greater(max, node.left.max);
  if (node.right !== undefined) max = greater(max, node.right.max);
  node.max = max;
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
