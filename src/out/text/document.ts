/** A document for people, before it is text, Markdown or HTML: what is outside text in it is told apart from the project's own words. */

/** Words, or text from outside: from a ledger, a file's name, a command line. */
export type Piece = string | { readonly value: string };

export type Line = readonly Piece[];

/** A table's column. */
export interface Column {
  readonly head: string;
  readonly isNumber?: boolean;
}

export interface Table {
  readonly caption?: string;
  readonly columns: readonly Column[];
  readonly rows: readonly {
    readonly cells: readonly Line[];
    /** Whether it says that something is wrong. */
    readonly isBad?: boolean;
  }[];
  /** What the table leaves out, or how to read it. */
  readonly note?: string;
}

export interface Section {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly tables: readonly Table[];
}

export interface Document {
  readonly title: Line;
  readonly verdict: 'ok' | 'violation' | 'invalid' | 'undecided';
  /** What the verdict rests on. */
  readonly headline: Line;
  readonly summary: readonly Line[];
  readonly sections: readonly Section[];
  readonly footer: Line;
}

/** Outside text. */
export function outside(value: string): Piece {
  return { value };
}

/** Pieces with something between them. */
export function join(lines: readonly Line[], separator: string): Piece[] {
  return lines.flatMap((line, index) => (index === 0 ? [...line] : [separator, ...line]));
}
