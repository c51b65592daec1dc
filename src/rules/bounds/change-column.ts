/**
 * A list of long integers of at least 0 whose neighbours differ by few amounts, kept as differences: adding to a range changes two entries,
 * and the differences are mostly amounts, which all lists share.
 */
export class ChangeColumn {
  #changes: bigint[] = [];

  constructor(values: readonly bigint[]) {
    let before = 0n;
    for (const value of values) {
      this.#changes.push(value - before);
      before = value;
    }
  }

  get length(): number {
    return this.#changes.length;
  }

  at(index: number): bigint {
    let sum = 0n;
    for (let i = 0; i <= index; i += 1) sum += this.#changes[i] as bigint;
    return sum;
  }

  /** Whether an entry is the same as the one before it. */
  repeats(index: number): boolean {
    return this.#changes[index] === 0n;
  }

  /** Inserts an entry that is the same as the one before it; 0 where there is none. */
  repeat(index: number): void {
    this.#changes.splice(index, 0, 0n);
  }

  remove(index: number): void {
    const [change = 0n] = this.#changes.splice(index, 1);
    this.#change(index, change);
  }

  /** Keeps the entries before this one, and returns the others, which share the differences. */
  cut(index: number): ChangeColumn {
    const others = new ChangeColumn([]);
    others.#changes = this.#changes.slice(index);
    if (others.length > 0) others.#changes[0] = this.at(index);
    this.#changes = this.#changes.slice(0, index);
    return others;
  }

  /** Adds to the entries in [from, to). */
  add(from: number, to: number, amount: bigint): void {
    if (from >= to) return;
    this.#change(from, amount);
    if (to < this.length) this.#change(to, negate(amount));
  }

  #change(index: number, amount: bigint): void {
    const change = this.#changes[index];
    if (change !== undefined) this.#changes[index] = change === 0n ? amount : change + amount;
  }

  multiply(factor: bigint): void {
    for (let i = 0; i < this.length; i += 1) this.#changes[i] = (this.#changes[i] as bigint) * factor;
  }

  /** The greatest entry in [from, to); 0 for none. */
  max(from: number, to: number): bigint {
    let sum = 0n;
    let max = 0n;
    for (let i = 0; i < to; i += 1) {
      const change = this.#changes[i] as bigint;
      if (change !== 0n) sum += change;
      if (i >= from && sum > max) max = sum;
    }
    return max;
  }

  list(): bigint[] {
    let sum = 0n;
    return this.#changes.map((change) => (sum += change));
  }
}

let last = 0n;
let negated = 0n;

/** All lists share negated amounts too: the limits of a chain have the same amounts in sequence. */
function negate(amount: bigint): bigint {
  if (amount !== last) [last, negated] = [amount, -amount];
  return negated;
}
