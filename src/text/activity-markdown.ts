/** A document as Markdown, for a comment, a job summary or a file. */

import type { ActivityReport } from '../schema/generated/types.js';
import { describeActivity } from './activity-document.js';
import type { Line, Table } from './document.js';
import type { Guide } from './guide.js';
import { escapeMarkdown, markdownCode } from './markdown.js';

/** The activity report as Markdown. Outside text stands in spans of code, in which nothing is markup and no host links anything. */
export function renderActivityMarkdown(report: ActivityReport, guide: Guide = {}): string {
  const { title, verdict, headline, summary, sections, footer } = describeActivity(report, guide);
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
