/**
 * Columns of numbers that grow by one number at a time. They are made of pieces, so growing copies nothing. A piece whose numbers can be
 * computed takes no memory.
 */

const PIECE_BITS = 12;
const PIECE = 1 << PIECE_BITS;

/** Some numbers that stand together. */
export interface CountingPiece {
  readonly first: number;
  cells: Float64Array | undefined;
}

/** Numbers, each usually one more than the one before. */
export class CountingColumn {
  /** The first number of each piece, and its numbers where they do not count up from it. */
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

  /** Fills an empty column. @param pieces - From {@link CountingColumn.save}, of so many numbers. */
  restore(pieces: readonly CountingPiece[], length: number): void {
    for (const { first, cells } of pieces) this.#pieces.push({ first, cells: cells?.slice() });
    this.#length = length;
  }
}

/** Numbers of at least -1, small ones in a byte. A piece of only -1 takes no memory. */
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

  /** Fills an empty column. @param pieces - From {@link SparseColumn.save}. */
  restore(pieces: readonly (Uint8Array | Int32Array | undefined)[]): void {
    for (const piece of pieces) this.#pieces.push(piece?.slice());
  }
}

/** Numbers below 256; 0 by default. */
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

  /** Fills an empty column. @param pieces - From {@link ByteColumn.save}. */
  restore(pieces: readonly Uint8Array[]): void {
    for (const piece of pieces) this.#pieces.push(piece.slice());
  }
}
