/** Columns of numbers that grow, and texts by number: what a table of many records is kept in. */

type Numbers = Float64Array | Int32Array | Uint8Array;

const FIRST_ROOM = 1_024;

export class Column<T extends Numbers> {
  #values: T;
  readonly #make: (length: number) => T;
  length = 0;

  constructor(make: (length: number) => T) {
    this.#make = make;
    this.#values = make(FIRST_ROOM);
  }

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = this.#make(this.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.length] = value;
    this.length += 1;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }

  set(index: number, value: number): void {
    this.#values[index] = value;
  }
}

/** Each text once, by number. */
export class Texts {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    this.#numbers.set(text, number);
    this.#texts.push(text);
    return number;
  }

  at(number: number): string {
    return this.#texts[number] ?? '';
  }

  /** In the order in which they came. */
  all(): readonly string[] {
    return this.#texts;
  }
}

export class Children {
  readonly #starts: Int32Array;
  readonly #children: Int32Array;
  /** Entries without a parent. */
  readonly roots: number[] = [];

  /** @param parentOf - The parent of each entry; -1 for none. */
  constructor(length: number, parentOf: (index: number) => number) {
    this.#starts = new Int32Array(length + 1);
    for (let i = 0; i < length; i++) {
      const parent = parentOf(i);
      if (parent < 0) this.roots.push(i);
      else this.#starts[parent + 1] = (this.#starts[parent + 1] ?? 0) + 1;
    }
    for (let i = 0; i < length; i++)
      this.#starts[i + 1] = (this.#starts[i + 1] ?? 0) + (this.#starts[i] ?? 0);
    const next = this.#starts.slice();
    this.#children = new Int32Array(length - this.roots.length);
    for (let i = 0; i < length; i++) {
      const parent = parentOf(i);
      if (parent < 0) continue;
      const at = next[parent] ?? 0;
      this.#children[at] = i;
      next[parent] = at + 1;
    }
  }

  count(index: number): number {
    return (this.#starts[index + 1] ?? 0) - (this.#starts[index] ?? 0);
  }

  of(index: number): Int32Array {
    return this.#children.subarray(this.#starts[index] ?? 0, this.#starts[index + 1] ?? 0);
  }
}
