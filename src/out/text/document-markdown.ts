/** A document as Markdown. Outside text is in code spans, in which nothing is markup and no host links anything. */

import type { Document, Line, Table } from './document.js';
import { escapeMarkdown, markdownCode } from './markdown.js';

export function documentMarkdown({ title, verdict, headline, summary, sections, footer }: Document): string {
  return [
    `# ${markdownLine(title)}`,
    `**${verdict}**: ${markdownLine(headline)}.`,
    ...summary.map(markdownLine),
    ...sections.flatMap(({ title: name, lines, tables }) => [
      `## ${escapeMarkdown(name)}`,
      ...lines.map(markdownLine),
      ...tables.flatMap(renderTable),
    ]),
    '---',
    markdownLine(footer),
  ]
    .map((block) => `${block}\n`)
    .join('\n');
}

function renderTable({ caption, columns, rows, note }: Table): string[] {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    ...(caption === undefined ? [] : [`${escapeMarkdown(caption)}:`]),
    [
      row(columns.map(({ head }) => escapeMarkdown(head))),
      row(columns.map(({ isNumber }) => (isNumber === true ? '---:' : '---'))),
      ...rows.map(({ cells, isBad }) =>
        row(
          cells.map((cell, index) =>
            isBad === true && index === 0 ? `⚠ ${markdownLine(cell)}` : markdownLine(cell),
          ),
        ),
      ),
    ].join('\n'),
    ...(note === undefined ? [] : [escapeMarkdown(note)]),
  ];
}

function markdownLine(line: Line): string {
  return line
    .map((piece) => (typeof piece === 'string' ? escapeMarkdown(piece) : markdownCode(piece.value, 1_000)))
    .join('');
}
