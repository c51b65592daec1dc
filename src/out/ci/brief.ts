/** A report as one line, for logs and chats. */

import type { LazyReport } from '../../rules/report/report.js';
import { nameOf, notCheckedOf, pointOf, summaryOf } from './ci-words.js';
import { shown } from './escape.js';

/** The longest line, in columns of a terminal. */
export const MAX_BRIEF_COLUMNS = 200;

/** A path is cut from its beginning, where it says least. */
const MAX_PATH_COLUMNS = 60;

/** One line of at most {@link MAX_BRIEF_COLUMNS} columns, ending in `\n`: verdict, records, the worst finding, what was not checked. */
export function renderBrief(report: LazyReport): string {
  const { verdict, ledger, findings } = report;
  // They are listed worst first.
  const worst = findings[0]?.severity === 'error' ? findings[0] : undefined;
  const path = cutStart(shown(ledger.paths.map(nameOf).join(', ')), MAX_PATH_COLUMNS);
  const parts = [
    `${path}: ${summaryOf(report).slice(verdict.length + 2)}`,
    ...(worst === undefined
      ? []
      : [`worst ${worst.seq === null ? `line ${pointOf(worst).line}` : `seq ${worst.seq}`} ${worst.code}`]),
    ...notCheckedOf(report).map((words) => words.replaceAll(', ', ' ')),
  ];
  return `${cutEnd(`${verdict}  ${parts.join('; ')}`, MAX_BRIEF_COLUMNS)}\n`;
}

/** Whatever is not ASCII may take two columns. */
function columnsOf(character: string): number {
  return /^[ -~]$/.test(character) ? 1 : 2;
}

function cutEnd(text: string, columns: number): string {
  const kept = takeColumns([...text], columns);
  return kept.length === [...text].length ? text : `${takeColumns(kept, columns - 2).join('')}…`;
}

function cutStart(text: string, columns: number): string {
  const reversed = [...text].reverse();
  const kept = takeColumns(reversed, columns);
  if (kept.length === reversed.length) return text;
  return `…${takeColumns(kept, columns - 2)
    .reverse()
    .join('')}`;
}

function takeColumns(characters: readonly string[], columns: number): string[] {
  let used = 0;
  const end = characters.findIndex((character) => (used += columnsOf(character)) > columns);
  return characters.slice(0, end === -1 ? characters.length : end);
}
