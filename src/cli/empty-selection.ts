/** Warnings about a selection that matches nothing. */

import { printable } from '../base/bytes/printable.js';
import type { UnmatchedName } from '../log/read/subject.js';
import { isWhole, type RecordSelection } from '../rules/selection.js';
import type { Terminal } from './terminal.js';

/** Warns of names that no record has, or else of an empty selection. */
export function warnOfNothing(
  terminal: Terminal,
  unmatched: readonly UnmatchedName[],
  selected: number,
  selection: RecordSelection,
): void {
  for (const { of, pattern, known } of unmatched) {
    const names = known.map((name) => printable(name)).join(', ');
    const has = names === '' ? `; it names no ${of}` : `; it has ${names}`;
    terminal.say(`warning: the ledger never names the ${of} ${printable(pattern)}${has}`);
  }
  if (selected > 0 || unmatched.length > 0 || isWhole(selection)) return;
  terminal.say('warning: no record is selected, so there is nothing of the ledger in what is written');
}
