/**
 * Columns of numbers that grow by one at a time and are never copied to do so: they are made of pieces. A piece that only says what
 * can be computed takes no room.
 */

const PIECE_BITS = 12;
const PIECE = 1 << PIECE_BITS;

/** Some numbers that stand together. */
export interface CountingPiece {
  readonly first: number;
  cells: Float64Array | undefined;
}

/** Numbers each of which is usually one more than that before it. */
export class CountingColumn {
  /** Of each piece its first number, and its numbers where they do not go on from that. */
  readonly #pieces: CountingPiece[] = [];
  #length = 0;

  at(index: number): number {
    const piece = this.#pieces[index >>> PIECE_BITS];
    if (piece === undefined) throw new RangeError('no such number');
    const offset = index % PIECE;
    return piece.cells === undefined ? piece.first + offset : (piece.cells[offset] as number);
  }

  push(value: number): void {
    const offset = this.#length % PIECE;
    if (offset === 0) this.#pieces.push({ first: value, cells: undefined });
    this.#length += 1;
    const piece = this.#pieces.at(-1) as CountingPiece;
    if (piece.cells === undefined) {
      if (value === piece.first + offset) return;
      piece.cells = Float64Array.from({ length: PIECE }, (_, i) => piece.first + i);
    }
    piece.cells[offset] = value;
  }

  /** Its pieces, as plain data. */
  save(): CountingPiece[] {
    return [...this.#pieces];
  }

  /** Takes the place of an empty column. @param pieces - As {@link CountingColumn.save} gave them, of so many numbers. */
  restore(pieces: readonly CountingPiece[], length: number): void {
    for (const { first, cells } of pieces) this.#pieces.push({ first, cells: cells?.slice() });
    this.#length = length;
  }
}

/** Numbers of at least -1, small ones in a byte; pieces of which all are -1 take no room. */
export class SparseColumn {
  /** The numbers + 1. */
  readonly #pieces: (Uint8Array | Int32Array | undefined)[] = [];

  at(index: number): number {
    return (this.#pieces[index >>> PIECE_BITS]?.[index % PIECE] ?? 0) - 1;
  }

  set(index: number, value: number): void {
    const number = index >>> PIECE_BITS;
    let piece = this.#pieces[number];
    if (piece === undefined && value === -1) return;
    piece ??= new Uint8Array(PIECE);
    if (value > 0xfe && piece instanceof Uint8Array) piece = Int32Array.from(piece);
    piece[index % PIECE] = value + 1;
    this.#pieces[number] = piece;
  }

  /** Its pieces, as plain data. */
  save(): (Uint8Array | Int32Array | undefined)[] {
    return [...this.#pieces];
  }

  /** Takes the place of an empty column. @param pieces - As {@link SparseColumn.save} gave them. */
  restore(pieces: readonly (Uint8Array | Int32Array | undefined)[]): void {
    for (const piece of pieces) this.#pieces.push(piece?.slice());
  }
}

/** Numbers below 256; 0 where none was set. */
export class ByteColumn {
  readonly #pieces: Uint8Array[] = [];

  at(index: number): number {
    return this.#pieces[index >>> PIECE_BITS]?.[index % PIECE] ?? 0;
  }

  set(index: number, value: number): void {
    const number = index >>> PIECE_BITS;
    while (this.#pieces.length <= number) this.#pieces.push(new Uint8Array(PIECE));
    (this.#pieces[number] as Uint8Array)[index % PIECE] = value;
  }

  /** Its pieces, as plain data. */
  save(): Uint8Array[] {
    return [...this.#pieces];
  }

  /** Takes the place of an empty column. @param pieces - As {@link ByteColumn.save} gave them. */
  restore(pieces: readonly Uint8Array[]): void {
    for (const piece of pieces) this.#pieces.push(piece.slice());
  }
}
