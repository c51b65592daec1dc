/**
 * The leaves of a timeline: instants at which the overlap changes, in columns. Instants are multiples of a second, millisecond or
 * nanosecond after the first; overlaps are numerators over one denominator; the denominators of the leaf are numbered. An instant takes
 * from 2 to about 20 bytes.
 */

import { ChangeColumn } from './change-column.js';
import { commonOf, TOO_FINE } from './common-denominator.js';
import { commonScale, type Fraction, inScale } from './fraction.js';
import { IntColumn } from './int-column.js';
import type { Step } from './recent-intervals.js';

/** The maximum of instants in a leaf; likewise where overlaps are too long for doubles. */
export const MAX_LENGTH = 256;
const MAX_LONG_LENGTH = 32;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;

/** A leaf as plain data. */
export interface SavedLeaf {
  readonly id: number;
  readonly level: 0;
  readonly base: bigint;
  readonly unit: bigint;
  readonly keys: readonly (number | bigint)[];
  readonly scale: bigint;
  readonly values: readonly (number | bigint)[];
  /** The denominators of weights that begin; the first is 1, also for none. */
  readonly denominators: readonly bigint[];
  /** The number of each instant's denominator; empty where all are 1. */
  readonly starts: readonly (number | bigint)[];
}

export class Leaf {
  readonly level = 0;
  id = 0;
  isDirty = true;
  #base = 0n;
  #unit = UNITS[0] as bigint;
  #keys = new IntColumn();
  #scale = 1n;
  #values: IntColumn | ChangeColumn = new IntColumn();
  #denominators: bigint[] = ONLY_ONE;
  #starts: IntColumn | undefined;
  /** The common denominator of all. */
  #common = 1n;
  /** Undefined where not computed. */
  #max: Fraction | undefined;

  /** The leaves of these steps, at most as many as one leaf of short overlaps holds. Overlaps are multiples of 1/scale. */
  static of(steps: readonly Step[], scale: bigint): Leaf[] {
    const leaf = new Leaf();
    leaf.#scale = scale;
    const values = columnOf(steps.map(({ overlap }) => overlap));
    const denominators = steps.map(({ denominator }) => denominator);
    leaf.#fill(
      steps.map(({ at }) => at),
      values,
      denominators,
    );
    return [leaf, ...(leaf.length > leaf.#room() ? leaf.#cutInto(MAX_LONG_LENGTH) : [])];
  }

  static restore(saved: SavedLeaf): Leaf {
    const leaf = new Leaf();
    leaf.id = saved.id;
    leaf.isDirty = false;
    leaf.#base = saved.base;
    leaf.#unit = saved.unit;
    leaf.#keys = new IntColumn(saved.keys);
    leaf.#scale = saved.scale;
    leaf.#values = columnOf(saved.values);
    if (saved.starts.length === 0) return leaf;
    leaf.#denominators = [...saved.denominators];
    leaf.#starts = new IntColumn(saved.starts);
    leaf.#common = leaf.#commonOf(0, leaf.length);
    return leaf;
  }

  get length(): number {
    return this.#keys.length;
  }

  /** Its first instant; it has at least one. */
  get first(): bigint {
    return this.#keyAt(0);
  }

  get last(): bigint {
    return this.#keyAt(this.length - 1);
  }

  get max(): Fraction {
    return (this.#max ??= this.#maxOf(0, this.length));
  }

  get common(): bigint {
    return this.#common;
  }

  /** Every instant, with the overlap from there on and the denominator of the weights that begin there. */
  *steps(): Generator<{ readonly at: bigint; readonly value: Fraction; readonly denominator: bigint }, void> {
    for (const [i, value] of this.#values.list().entries()) {
      const fraction = { n: BigInt(value), d: this.#scale };
      yield { at: this.#keyAt(i), value: fraction, denominator: this.#denominatorAt(i) };
    }
  }

  peakWithin(from: bigint, to: bigint): Fraction {
    return this.#maxOf(Math.max(this.#search(from + 1n) - 1, 0), this.#search(to));
  }

  denominatorWithin(from: bigint, to: bigint): bigint {
    return this.#starts === undefined ? 1n : this.#commonOf(this.#search(from), this.#search(to));
  }

  lastFiner(
    from: bigint,
    to: bigint,
    common: bigint,
  ): { readonly at: bigint; readonly denominator: bigint } | undefined {
    if (this.#starts === undefined) return undefined;
    const divides = this.#denominators.map((each) => each !== TOO_FINE && common % each === 0n);
    const first = this.#search(from);
    for (let i = this.#search(to) - 1; i >= first; i -= 1) {
      if (divides[this.#starts.numberAt(i)] === true) continue;
      return { at: this.#keyAt(i), denominator: this.#denominatorAt(i) };
    }
    return undefined;
  }

  /**
   * Adds an instant at which a weight of this denominator begins. Overlaps stay the same.
   *
   * @returns Undefined where the instant was present.
   */
  ensure(key: bigint, denominator: bigint): Leaf[] | undefined {
    this.isDirty = true;
    const index = this.#search(key);
    if (index < this.length && this.#keyAt(index) === key) {
      this.#begin(index, denominator);
      return undefined;
    }
    this.#insertKey(index, key);
    this.#values.repeat(index);
    this.#starts?.insert(index, 0n);
    this.#begin(index, denominator);
    if (this.length <= this.#room()) return [];
    // Intervals in order fill each leaf.
    return [this.#cut(index === this.length - 1 ? index : this.length >>> 1)];
  }

  /** Removes an instant without a change. The first remains, so that the leaf is not empty. */
  drop(key: bigint): Leaf[] {
    const index = this.#search(key);
    const isIdle =
      index > 0 &&
      this.#values.repeats(index) &&
      (this.#starts === undefined || this.#starts.numberAt(index) === 0);
    if (!isIdle) return [];
    this.isDirty = true;
    this.#keys.remove(index);
    this.#values.remove(index);
    this.#starts?.remove(index);
    return [];
  }

  raiseWithin(from: bigint, to: bigint, weight: Fraction): Leaf[] {
    return this.raise(this.#search(from), this.#search(to), weight);
  }

  /** Adds a weight to the overlaps of the instants of these numbers. */
  raise(from: number, to: number, weight: Fraction): Leaf[] {
    if (from >= to || weight.n === 0n) return [];
    this.isDirty = true;
    const scale = commonScale(this.#scale, weight.d);
    if (scale !== this.#scale) {
      this.#values.multiply(scale / this.#scale);
      this.#scale = scale;
      this.#max = undefined;
    }
    const amount = inScale(weight, scale);
    this.#values.add(from, to, amount);
    if (this.#values instanceof IntColumn && this.#values.isLong)
      this.#values = columnOf(this.#values.list());
    // Overlaps only grow, so the maximum is the old one or among these.
    if (this.#max !== undefined) {
      const isWhole = from === 0 && to === this.length;
      const raised = isWhole ? this.#max.n + amount : this.#values.max(from, to);
      if (raised > this.#max.n) this.#max = { n: raised, d: scale };
    }
    return this.length <= this.#room() ? [] : this.#cutInto(MAX_LONG_LENGTH);
  }

  save(): SavedLeaf {
    return {
      id: this.id,
      level: 0,
      base: this.#base,
      unit: this.#unit,
      keys: this.#keys.list(),
      scale: this.#scale,
      values: this.#values.list(),
      denominators: [...this.#denominators],
      starts: this.#starts?.list() ?? [],
    };
  }

  #room(): number {
    return this.#values instanceof IntColumn ? MAX_LENGTH : MAX_LONG_LENGTH;
  }

  #keyAt(index: number): bigint {
    return this.#base + this.#keys.at(index) * this.#unit;
  }

  /** The first index whose instant is at least `key`. */
  #search(key: bigint): number {
    const offset = key - this.#base;
    return this.#keys.search(offset <= 0n ? 0n : (offset + this.#unit - 1n) / this.#unit);
  }

  #insertKey(index: number, key: bigint): void {
    const offset = key - this.#base;
    if (this.length > 0 && offset >= 0n && offset % this.#unit === 0n) {
      this.#keys.insert(index, offset / this.#unit);
      return;
    }
    const keys = Array.from({ length: this.length }, (_, i) => this.#keyAt(i));
    keys.splice(index, 0, key);
    this.#setKeys(keys);
  }

  #setKeys(keys: readonly bigint[]): void {
    const [first, last] = [keys[0] as bigint, keys.at(-1) as bigint];
    this.#unit = UNITS.find((unit) => keys.every((key) => (key - first) % unit === 0n)) as bigint;
    // For intervals backwards in time, room is left before them as well.
    this.#base = first < this.#base && keys.length > 1 ? first - (last - first) : first;
    this.#keys = new IntColumn(keys.map((key) => (key - this.#base) / this.#unit));
  }

  #maxOf(from: number, to: number): Fraction {
    return { n: this.#values.max(from, to), d: this.#scale };
  }

  #denominatorAt(index: number): bigint {
    return this.#denominators[this.#starts?.numberAt(index) ?? 0] as bigint;
  }

  #commonOf(from: number, to: number): bigint {
    let common = 1n;
    for (let i = from; i < to && common !== TOO_FINE; i += 1)
      common = commonOf(common, this.#denominatorAt(i));
    return common;
  }

  #begin(index: number, denominator: bigint): void {
    if (denominator === 1n) return;
    this.#common = commonOf(this.#common, denominator);
    const common = commonOf(this.#denominatorAt(index), denominator);
    let number = this.#denominators.indexOf(common);
    if (number === -1) {
      number = this.#denominators.length;
      this.#denominators = [...this.#denominators, common];
    }
    this.#starts ??= new IntColumn(Array.from({ length: this.length }, () => 0));
    this.#starts.set(index, BigInt(number));
  }

  #fill(keys: readonly bigint[], values: IntColumn | ChangeColumn, denominators: readonly bigint[]): void {
    this.#setKeys(keys);
    this.#values = values;
    this.#max = undefined;
    if (values instanceof ChangeColumn && this.max.n <= MAX_SAFE) this.#values = columnOf(values.list());
    this.#denominators = ONLY_ONE;
    this.#starts = undefined;
    this.#common = 1n;
    denominators.forEach((denominator, index) => {
      this.#begin(index, denominator);
    });
  }

  /** Keeps the instants before this index, and returns the others. */
  #cut(index: number): Leaf {
    const keys = Array.from({ length: this.length }, (_, i) => this.#keyAt(i));
    const denominators = this.#starts === undefined ? [] : keys.map((_, i) => this.#denominatorAt(i));
    const others = new Leaf();
    others.#scale = this.#scale;
    others.#fill(keys.slice(index), this.#values.cut(index), denominators.slice(index));
    this.#fill(keys.slice(0, index), this.#values, denominators.slice(0, index));
    return others;
  }

  #cutInto(length: number): Leaf[] {
    const pieces: Leaf[] = [];
    while (this.length > length) pieces.unshift(this.#cut((Math.ceil(this.length / length) - 1) * length));
    return pieces;
  }
}

function columnOf(values: readonly (number | bigint)[]): IntColumn | ChangeColumn {
  const column = new IntColumn(values);
  return column.isLong ? new ChangeColumn(values.map(BigInt)) : column;
}

/** Shared by the leaves whose denominators are all 1. It MUST NOT be changed. */
const ONLY_ONE: bigint[] = [1n];

/** Whether a value has the form of a leaf. */
export function isSavedLeaf(value: unknown): value is SavedLeaf {
  const { base, unit, keys, scale, values, denominators, starts } = (value ?? {}) as Partial<SavedLeaf>;
  const isWhole =
    typeof base === 'bigint' &&
    UNITS.includes(unit as (typeof UNITS)[number]) &&
    isColumn(keys) &&
    keys.length > 0 &&
    typeof scale === 'bigint' &&
    scale > 0n &&
    isColumn(values) &&
    values.length === keys.length &&
    Array.isArray(denominators) &&
    denominators[0] === 1n &&
    denominators.every((each) => typeof each === 'bigint' && each >= 0n) &&
    isColumn(starts) &&
    (starts.length === 0 || starts.length === keys.length);
  return isWhole && starts.every((number) => number < denominators.length);
}

function isColumn(value: unknown): value is readonly (number | bigint)[] {
  return (
    Array.isArray(value) &&
    value.every((each) => (typeof each === 'bigint' ? each >= 0n : Number.isSafeInteger(each) && each >= 0))
  );
}
