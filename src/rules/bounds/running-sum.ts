/**
 * Amounts at instants, sorted, with prefix sums: the sum of a span of time takes two lookups. Amounts must come nearly in order of time;
 * others are declined. An amount takes 16 bytes while all sums are exact as doubles.
 */

/** The amounts that may be later than a new one; likewise where sums are too long for doubles. */
const MAX_LATER = 4_096;
const MAX_LATER_LONG = 64;
const FIRST_ROOM = 16;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

export class RunningSum {
  #instants = new BigInt64Array(FIRST_ROOM);
  /** As long as the instants, or as the amounts. */
  #sums: Float64Array | bigint[] = new Float64Array(FIRST_ROOM);
  #length = 0;
  /** The last position searched: questions move on with time. */
  #last = 0;

  get length(): number {
    return this.#length;
  }

  instantAt(index: number): bigint {
    return this.#instants[index]!;
  }

  /** The sum of the first amounts. */
  sumOf(count: number): bigint {
    return count === 0 ? 0n : BigInt(this.#sums[count - 1]!);
  }

  amountAt(index: number): bigint {
    return this.sumOf(index + 1) - this.sumOf(index);
  }

  /** The sum of the amounts at and before an instant. */
  upTo(instant: bigint): bigint {
    return this.sumOf(this.countUpTo(instant));
  }

  /** How many amounts there are at and before an instant. */
  countUpTo(instant: bigint): number {
    const instants = this.#instants;
    const length = this.#length;
    if (length === 0 || instants[length - 1]! <= instant) return length;
    // Gallops from the last position.
    let low = Math.min(this.#last, length - 1);
    let high = low;
    if (instants[low]! <= instant) {
      for (let stride = 1; high < length && instants[high]! <= instant; stride *= 2) {
        low = high + 1;
        high = Math.min(high + stride, length);
      }
    } else {
      for (let stride = 1; low > 0 && instants[low]! > instant; stride *= 2) {
        high = low;
        low = Math.max(low - stride, 0);
      }
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (instants[middle]! <= instant) low = middle + 1;
      else high = middle;
    }
    this.#last = low;
    return low;
  }

  /** Whether an amount at this instant can be added: it fits 64 bits, and few are after it. */
  takes(instant: bigint): boolean {
    const later = this.#length - this.countUpTo(instant);
    return (
      later <= (Array.isArray(this.#sums) ? MAX_LATER_LONG : MAX_LATER) &&
      BigInt.asIntN(64, instant) === instant
    );
  }

  /**
   * Adds an amount, after others at the same instant.
   *
   * @returns The number of the amount.
   */
  add(instant: bigint, amount: bigint): number {
    const length = this.#length;
    const index = this.countUpTo(instant);
    if (length === this.#instants.length) this.#grow();
    this.#instants.copyWithin(index + 1, index, length);
    this.#instants[index] = instant;
    this.#fit(this.sumOf(length) + amount);
    const sums = this.#sums;
    if (Array.isArray(sums)) {
      sums.splice(index, 0, this.sumOf(index));
      for (let i = index; i <= length; i += 1) sums[i]! += amount;
    } else {
      const addend = Number(amount);
      for (let i = length; i > index; i -= 1) sums[i] = sums[i - 1]! + addend;
      sums[index] = (index === 0 ? 0 : sums[index - 1]!) + addend;
    }
    this.#length = length + 1;
    return index;
  }

  /** Refines the scale by a factor. */
  multiply(factor: bigint): void {
    this.#fit(this.sumOf(this.#length) * factor);
    const sums = this.#sums;
    for (let i = 0; i < this.#length; i += 1) {
      if (Array.isArray(sums)) sums[i]! *= factor;
      else sums[i]! *= Number(factor);
    }
  }

  /** Makes room for a sum that is too long for doubles. */
  #fit(sum: bigint): void {
    if (sum <= MAX_SAFE || Array.isArray(this.#sums)) return;
    this.#sums = Array.from(this.#sums.subarray(0, this.#length), BigInt);
  }

  #grow(): void {
    const room = Math.ceil(this.#length * 1.5);
    const [instants, sums] = [this.#instants, this.#sums];
    this.#instants = new BigInt64Array(room);
    this.#instants.set(instants);
    if (Array.isArray(sums)) return;
    this.#sums = new Float64Array(room);
    this.#sums.set(sums);
  }
}
