/** Rows of CSV (RFC 4180): fields in quotes where they hold commas, quotes or line breaks. Lines may end in LF alone. */

const MAX_ROW_LENGTH = 65_536;

const MAX_FIELDS = 256;

export interface CsvRow {
  readonly fields: readonly string[];
  /** Where it begins, from 1. */
  readonly line: number;
}

export class CsvError extends Error {
  readonly expected: string;
  readonly found: string;

  constructor(expected: string, found: string) {
    super(`expected ${expected}, found ${found}`);
    this.expected = expected;
    this.found = found;
  }
}

/**
 * Reads CSV row by row, in linear time; empty lines are passed over.
 * @throws CsvError for what is no UTF-8, a row without the heading's number of fields, a quote that does not end, and longer rows
 */
export function* readCsv(bytes: Uint8Array): Generator<CsvRow, void, void> {
  const text = decode(bytes);
  let width: number | undefined;
  let line = 1;
  for (let at = 0; at < text.length;) {
    const row = readRow(text, at, line);
    const isEmpty = row.fields.length === 1 && row.fields[0] === '';
    if (!isEmpty) {
      width ??= row.fields.length;
      if (row.fields.length !== width)
        throw new CsvError(`line ${line}: ${width} fields, as in the heading`, `${row.fields.length}`);
      yield { fields: row.fields, line };
    }
    line += row.lines;
    at = row.end;
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new CsvError('JSON or CSV in UTF-8', 'other bytes');
  }
}

function readRow(text: string, from: number, line: number): { fields: string[]; end: number; lines: number } {
  const fields: string[] = [];
  let at = from;
  let lines = 1;
  for (;;) {
    if (fields.length >= MAX_FIELDS) throw new CsvError(`line ${line}: at most ${MAX_FIELDS} fields`, 'more');
    let field = '';
    if (text[at] === '"') {
      for (at += 1; ;) {
        const end = text.indexOf('"', at);
        if (end === -1 || end - from > MAX_ROW_LENGTH)
          throw new CsvError(`line ${line}: a quote that ends within ${MAX_ROW_LENGTH} characters`, 'none');
        field += text.slice(at, end);
        at = end + 1;
        if (text[at] !== '"') break;
        field += '"';
        at += 1;
      }
      lines += field.split('\n').length - 1;
    } else {
      const begin = at;
      while (at < text.length && text[at] !== ',' && text[at] !== '\n' && text[at] !== '"') at += 1;
      field = text.slice(begin, at);
      if (text[at] === '\n' || at === text.length) field = field.replace(/\r$/, '');
    }
    if (at - from > MAX_ROW_LENGTH)
      throw new CsvError(`line ${line}: at most ${MAX_ROW_LENGTH} characters`, 'more');
    fields.push(field);
    if (text[at] === ',') {
      at += 1;
      continue;
    }
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    if (at < text.length && text[at] !== '\n')
      throw new CsvError(`line ${line}: a comma or the end of the line after a field`, 'something else');
    return { fields, end: at + 1, lines };
  }
}
