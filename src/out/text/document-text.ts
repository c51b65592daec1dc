/** A document as lines of text, for terminals. Everything outside is made printable. */

import { printable } from '../../base/bytes/printable.js';
import type { Document, Line, Table } from './document.js';
import type { Paint } from './guide.js';
import { VERDICT_STYLES } from './report.js';

/** Where sentences break. */
const WIDTH = 100;
/** Characters of a piece of outside text in a sentence, and in a cell. */
const MAX_VALUE = 1_000;
const MAX_CELL = 60;

/** The document as lines, each ending in `\n`. */
export function documentText(document: Document, paint: Paint): string {
  return documentLines(document, paint)
    .map((line) => `${line}\n`)
    .join('');
}

function documentLines(document: Document, paint: Paint): string[] {
  const { verdict } = document;
  return [
    paint('bold', lineText(document.title, MAX_VALUE)),
    `${paint('bold', paint(VERDICT_STYLES[verdict], verdict))}  ${lineText(document.headline, MAX_VALUE)}`,
    ...document.summary.flatMap((line) => ['', ...wrap(lineText(line, MAX_VALUE))]),
    ...document.sections.flatMap(({ title, lines, tables }) => [
      '',
      paint('bold', title),
      ...lines.flatMap((line) => wrap(lineText(line, MAX_VALUE), '  ')),
      ...tables.flatMap((table, index) => [
        ...(index === 0 && lines.length === 0 ? [] : ['']),
        ...renderTable(table, paint),
      ]),
    ]),
    '',
    ...wrap(lineText(document.footer, MAX_VALUE)).map((line) => paint('dim', line)),
  ];
}

function renderTable({ caption, columns, rows, note }: Table, paint: Paint): string[] {
  const isProse = columns.length === 2 && columns.every(({ isNumber }) => isNumber !== true);
  const cells = rows.map((row) => row.cells.map((cell) => lineText(cell, MAX_CELL)));
  const widths = columns.map(({ head }, column) =>
    Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const layOut = (texts: readonly string[]): string =>
    `  ${texts
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return columns[column]?.isNumber === true ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')}`.trimEnd();
  const body = isProse
    ? rows.flatMap(({ cells: [name = [], words = []] }) => {
        const [first = '', ...more] = wrap(lineText(words, MAX_VALUE), ' '.repeat((widths[0] ?? 0) + 4));
        return [
          `  ${paint('yellow', lineText(name, MAX_CELL).padEnd(widths[0] ?? 0))}  ${first.trimStart()}`,
          ...more,
        ];
      })
    : [
        paint('dim', layOut(columns.map(({ head }) => head))),
        ...rows.map(({ isBad }, index) => {
          const line = layOut(cells[index] ?? []);
          return isBad === true ? paint('red', line) : line;
        }),
      ];
  return [
    ...(caption === undefined ? [] : [`  ${caption}:`]),
    ...body,
    ...(note === undefined ? [] : [`  … ${note}`]),
  ];
}

function lineText(line: Line, limit: number): string {
  return line.map((piece) => (typeof piece === 'string' ? piece : printable(piece.value, limit))).join('');
}

function wrap(text: string, indent = ''): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(`${indent}${line}`);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, `${indent}${line}`];
}
