/** A document as one HTML file: no script, nothing loaded from elsewhere, readable on paper and in the dark. */

import type { ActivityReport } from '../../format/schema/generated/types.js';
import { describeActivity } from './activity-document.js';
import type { Line, Table } from './document.js';
import type { Guide } from './guide.js';
import { escapeHtml } from './html.js';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
p { max-width: 48rem; }
.verdict { font-size: 1.1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .75rem 0; }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: bottom; overflow-wrap: break-word; max-width: 24rem; }
td { vertical-align: top; } .n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; }
tr.bad td:first-child::before { content: "\\26A0\\00A0"; }
bdi { unicode-bidi: isolate; } footer { margin-top: 2rem; overflow-wrap: anywhere; }
.note, footer { color: #595959; } .ok { color: #17692c; } .violation, .invalid, tr.bad td { color: #b3261e; } .undecided { color: #7a5a00; }
@media screen and (prefers-color-scheme: dark) {
.note, footer { color: #b5b5b5; } .ok { color: #7ddc93; } .violation, .invalid, tr.bad td { color: #ff9a92; } .undecided { color: #f0c661; }
}
@media print { body { margin: 0; max-width: none; font-size: 9pt; } .scroll { overflow: visible; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
`;

/** The activity report as a whole HTML file. All outside text is escaped, made printable and isolated. */
export function renderActivityHtml(report: ActivityReport, guide: Guide = {}): string {
  const { title, verdict, headline, summary, sections, footer } = describeActivity(report, guide);
  const plainTitle = title.map((piece) => (typeof piece === 'string' ? piece : piece.value)).join('');
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${escapeHtml(plainTitle, 200)}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    '<main>',
    `<h1>${htmlLine(title)}</h1>`,
    `<p class="verdict"><strong class="${verdict}">${verdict}</strong>: ${htmlLine(headline)}.</p>`,
    ...summary.map((line) => `<p>${htmlLine(line)}</p>`),
    ...sections.flatMap(({ title: name, lines, tables }) => [
      '<section>',
      `<h2>${escapeHtml(name)}</h2>`,
      ...lines.map((line) => `<p>${htmlLine(line)}</p>`),
      ...tables.flatMap(renderTable),
      '</section>',
    ]),
    '</main>',
    `<footer>${htmlLine(footer)}</footer>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function renderTable({ caption, columns, rows, note }: Table): string[] {
  const of = (index: number): string => (columns[index]?.isNumber === true ? ' class="n"' : '');
  return [
    '<div class="scroll"><table>',
    ...(caption === undefined ? [] : [`<caption>${escapeHtml(caption)}</caption>`]),
    `<thead><tr>${columns.map(({ head }, index) => `<th scope="col"${of(index)}>${escapeHtml(head)}</th>`).join('')}</tr></thead>`,
    '<tbody>',
    ...rows.map(
      ({ cells, isBad }) =>
        `<tr${isBad === true ? ' class="bad"' : ''}>${cells.map((cell, index) => `<td${of(index)}>${htmlLine(cell)}</td>`).join('')}</tr>`,
    ),
    '</tbody>',
    '</table></div>',
    ...(note === undefined ? [] : [`<p class="note">${escapeHtml(note)}</p>`]),
  ];
}

function htmlLine(line: Line): string {
  return line
    .map((piece) =>
      typeof piece === 'string' ? escapeHtml(piece) : `<bdi>${escapeHtml(piece.value, 1_000)}</bdi>`,
    )
    .join('');
}
