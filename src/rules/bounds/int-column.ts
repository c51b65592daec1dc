/**
 * A compact list of integers of at least 0: 1, 2, 4 or 8 bytes each in a typed array while all are exact as doubles, else bigints. It has
 * spare room, so that growing does not copy it each time.
 */

type Cells = Uint8Array | Uint16Array | Uint32Array | Float64Array;

const WIDTHS: readonly { readonly make: (length: number) => Cells; readonly max: number }[] = [
  { make: (length) => new Uint8Array(length), max: 0xff },
  { make: (length) => new Uint16Array(length), max: 0xffff },
  { make: (length) => new Uint32Array(length), max: 0xffff_ffff },
  { make: (length) => new Float64Array(length), max: Number.MAX_SAFE_INTEGER },
];
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
/** The spare room, in entries. */
const ROOM = 16;

export class IntColumn {
  #cells: Cells | bigint[] = new Uint8Array(0);
  #length = 0;
  /** The maximum of an entry; -1 for bigints, which have none. */
  #max = 0xff;

  constructor(values: readonly (number | bigint)[] = []) {
    const greatest = values.reduce((a, b) => (a < b ? b : a), 0);
    this.#allocate(values.length, greatest);
    const cells = this.#cells;
    values.forEach((value, index) => {
      if (Array.isArray(cells)) cells[index] = BigInt(value);
      else cells[index] = Number(value);
    });
    this.#length = values.length;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether its entries are bigints. */
  get isLong(): boolean {
    return this.#max === -1;
  }

  at(index: number): bigint {
    return BigInt(this.#cells[index] as number | bigint);
  }

  /** An entry that is known to be exact as a double. */
  numberAt(index: number): number {
    return Number(this.#cells[index]);
  }

  /** The first index whose entry is at least `value`, in a column that rises. */
  search(value: bigint): number {
    const cells = this.#cells;
    // Every entry of typed cells is exact as a double; a value beyond them stays beyond them when it is rounded.
    const wanted = Array.isArray(cells) ? value : Number(value);
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((cells[middle] as number | bigint) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  insert(index: number, value: bigint): void {
    this.#fit(value);
    const cells = this.#cells;
    if (Array.isArray(cells)) {
      cells.splice(index, 0, value);
    } else {
      const grown = cells.length > this.#length ? cells : this.#copy(this.#length + 1);
      grown.copyWithin(index + 1, index, this.#length);
      grown[index] = Number(value);
    }
    this.#length += 1;
  }

  set(index: number, value: bigint): void {
    this.#fit(value);
    if (Array.isArray(this.#cells)) this.#cells[index] = value;
    else this.#cells[index] = Number(value);
  }

  /** Whether an entry is the same as the one before it. */
  repeats(index: number): boolean {
    return this.#cells[index] === (index === 0 ? 0 : this.#cells[index - 1]);
  }

  /** Inserts an entry that is the same as the one before it; 0 where there is none. */
  repeat(index: number): void {
    this.insert(index, index === 0 ? 0n : this.at(index - 1));
  }

  remove(index: number): void {
    const cells = this.#cells;
    if (Array.isArray(cells)) cells.splice(index, 1);
    else cells.copyWithin(index, index + 1, this.#length);
    this.#length -= 1;
    if (!Array.isArray(cells) && cells.length > this.#length + 2 * ROOM) this.#copy(this.#length);
  }

  /** Keeps the entries before this one, and returns the others; both compact. */
  cut(index: number): IntColumn {
    const values = this.list();
    const others = new IntColumn(values.slice(index));
    const kept = new IntColumn(values.slice(0, index));
    [this.#cells, this.#length, this.#max] = [kept.#cells, kept.#length, kept.#max];
    return others;
  }

  /** Adds to the entries in [from, to). */
  add(from: number, to: number, amount: bigint): void {
    if (from >= to || amount === 0n) return;
    this.#fit(this.max(from, to) + amount);
    const cells = this.#cells;
    if (Array.isArray(cells)) {
      for (let i = from; i < to; i += 1) cells[i] = (cells[i] as bigint) + amount;
    } else {
      const addend = Number(amount);
      for (let i = from; i < to; i += 1) cells[i] = (cells[i] as number) + addend;
    }
  }

  multiply(factor: bigint): void {
    const max = this.max(0, this.#length);
    if (max === 0n) return;
    this.#fit(max * factor);
    const cells = this.#cells;
    for (let i = 0; i < this.#length; i += 1) {
      if (Array.isArray(cells)) cells[i] = (cells[i] as bigint) * factor;
      else cells[i] = (cells[i] as number) * Number(factor);
    }
  }

  /** The greatest entry in [from, to); 0 for none. */
  max(from: number, to: number): bigint {
    const cells = this.#cells;
    if (Array.isArray(cells)) {
      let longest = 0n;
      for (let i = from; i < to; i += 1) if ((cells[i] as bigint) > longest) longest = cells[i] as bigint;
      return longest;
    }
    let max = 0;
    for (let i = from; i < to; i += 1) if ((cells[i] as number) > max) max = cells[i] as number;
    return BigInt(max);
  }

  /** Its entries, those beyond 2^53 as bigints. */
  list(): (number | bigint)[] {
    const values = [...this.#cells.slice(0, this.#length)] as (number | bigint)[];
    return values.map((value) => (value > MAX_SAFE ? value : Number(value)));
  }

  /** Makes the cells wide enough for a value. */
  #fit(value: bigint): void {
    if (this.#max === -1 || value <= this.#max) return;
    const was = this.#cells;
    this.#allocate(this.#length, value);
    const cells = this.#cells;
    for (let i = 0; i < this.#length; i += 1) {
      if (Array.isArray(cells)) cells[i] = BigInt(was[i] as number);
      else cells[i] = was[i] as number;
    }
  }

  #allocate(length: number, greatest: number | bigint): void {
    const width = WIDTHS.find(({ max }) => greatest <= max);
    this.#max = width?.max ?? -1;
    this.#cells = width === undefined ? [] : width.make(length === 0 ? 0 : length + ROOM);
  }

  /** The same cells with room for a few more. */
  #copy(length: number): Cells {
    const cells = this.#cells as Cells;
    const copy = (WIDTHS.find(({ max }) => max === this.#max) as (typeof WIDTHS)[number]).make(length + ROOM);
    copy.set(cells.length > copy.length ? cells.subarray(0, copy.length) : cells);
    this.#cells = copy;
    return copy;
  }
}
