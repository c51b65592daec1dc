/** The nodes of a timeline's tree. Inner nodes summarize each of their children. */

import { compareRationals, ZERO } from '../../base/value/rational.js';
import { commonOf } from './common-denominator.js';
import { type Fraction, sumOf } from './fraction.js';
import type { Step } from './recent-intervals.js';
import { isSavedLeaf, Leaf, MAX_LENGTH, type SavedLeaf } from './timeline-leaf.js';

/** The maximum of children. */
const MAX_CHILDREN = 16;

/** An inner node as plain data. Children are named by number, assigned when they are saved. */
interface SavedInner {
  readonly id: number;
  /** The height above the leaves. */
  readonly level: number;
  readonly children: readonly number[];
  /** For each child the first instant, the maximum overlap without the pending weight, that weight, and the common denominator. */
  readonly firsts: readonly bigint[];
  readonly max: readonly Fraction[];
  readonly pending: readonly Fraction[];
  readonly common: readonly bigint[];
}

/** A node as plain data. */
export type SavedNode = SavedInner | SavedLeaf;

/** Loads the node of a number, when it is first needed. */
export type NodeLoader = (id: number) => SavedNode;

export type Node = Inner | Leaf;

/** A node above leaves, or above others like it. */
export class Inner {
  readonly level: number;
  /** Its number where it was saved, else 0. */
  id = 0;
  /** Whether it differs from the saved one. */
  isDirty = true;
  /** A number is a node that is not loaded. */
  readonly children: (Node | number)[] = [];
  readonly firsts: bigint[] = [];
  /** Without pending weights, here and above. */
  readonly maxima: Fraction[] = [];
  readonly pending: Fraction[] = [];
  readonly commons: bigint[] = [];
  /** The maximum overlap of each child, with its pending weight: read far more often than changed. */
  readonly #tops: Fraction[] = [];
  /** Undefined where not computed. */
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

  /** The last instant below it. */
  get last(): bigint {
    return this.childAt(this.children.length - 1).last;
  }

  get max(): Fraction {
    return (this.#max ??= this.#tops.reduce(greater, ZERO));
  }

  /** The maximum overlap below a child, without pending weights above. */
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

  /** The child for a key: the last that begins at or before it, else the first. */
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

  /** Updates a changed child without a pending weight, and inserts the nodes split off it. */
  update(index: number, { first, max, common }: Node, others: readonly Node[]): void {
    this.firsts[index] = first;
    this.maxima[index] = max;
    this.#setTop(index, max);
    if (this.commons[index] !== common) this.#common = undefined;
    this.commons[index] = common;
    this.isDirty = true;
    this.insert(index + 1, others);
  }

  /** Adds a weight to everything below a child. */
  raiseChild(index: number, weight: Fraction): void {
    this.pending[index] = sumOf(this.pending[index] as Fraction, weight);
    this.#setTop(index, sumOf(this.topOf(index), weight));
    this.isDirty = true;
  }

  /** Overlaps only grow, except by a split, for which {@link insert} clears the cache. */
  #setTop(index: number, top: Fraction): void {
    this.#tops[index] = top;
    if (this.#max !== undefined) this.#max = greater(this.#max, top);
  }

  /** Pushes the pending weight down to a child, which may be split. */
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

  /** Splits off children beyond the maximum. */
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

/** @param level - The required level; -1 for any. */
export function loadNode(id: number, level: number, load: NodeLoader | undefined): Node {
  if (load === undefined) throw new TypeError('a saved timeline needs its nodes');
  const saved = load(id);
  // Levels decrease, so that there is no cycle.
  if (level !== -1 && saved.level !== level) throw contradiction();
  return 'children' in saved ? Inner.restore(saved, load) : Leaf.restore(saved);
}

export function contradiction(): RangeError {
  return new RangeError('the nodes of a timeline contradict each other');
}

/** Builds the tree of at least one step, in order of time. Overlaps are multiples of 1/scale. */
export function treeOf(steps: Iterable<Step>, scale: bigint): Node {
  const leaves: Node[] = [];
  let taken: Step[] = [];
  const take = (): void => {
    leaves.push(...Leaf.of(taken, scale));
    taken = [];
  };
  for (const step of steps) if (taken.push(step) === MAX_LENGTH) take();
  if (taken.length > 0) take();
  let nodes = leaves;
  while (nodes.length > 1) {
    const below = nodes;
    nodes = [];
    for (let i = 0; i < below.length; i += MAX_CHILDREN)
      nodes.push(Inner.of(below.slice(i, i + MAX_CHILDREN)));
  }
  return nodes[0] as Node;
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

/** The first of two that are the same. */
export function greater(a: Fraction, b: Fraction): Fraction {
  return compareRationals(a, b) < 0 ? b : a;
}
