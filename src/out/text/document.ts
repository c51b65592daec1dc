/** A document before it is text, Markdown or HTML. Outside text is marked. */

/** Words, or text from outside: from a ledger, a file's name, a command line. */
type Piece = string | { readonly value: string };

export type Line = readonly Piece[];

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

interface Place {
  readonly file: string;
  readonly line?: number;
  readonly pointer?: string;
}

export function outside(value: string): Piece {
  return { value };
}

/** Pieces with something between them. */
export function join(lines: readonly Line[], separator: string): Piece[] {
  return lines.flatMap((line, index) => (index === 0 ? [...line] : [separator, ...line]));
}

export function tableSection(
  title: string,
  columns: readonly Column[],
  rows: Table['rows'],
  note = '',
): Section {
  return { title, lines: [], tables: [{ columns, rows, ...(note === '' ? {} : { note }) }] };
}

export function placeText({ file, line, pointer = '' }: Place): string {
  return `${file}${line === undefined ? '' : `:${line}`}${pointer === '' ? '' : ` ${pointer}`}`;
}

/** Texts from outside, with commas between them. */
export function names(values: readonly string[]): Piece[] {
  return join(
    values.map((value) => [outside(value)]),
    ', ',
  );
}

export function texts(...heads: readonly string[]): Column[] {
  return heads.map((head) => ({ head }));
}

export function numbers(...heads: readonly string[]): Column[] {
  return heads.map((head) => ({ head, isNumber: true }));
}
