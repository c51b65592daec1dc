/** The words for a writer's notices. */

import { printable } from '../../base/bytes/printable.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type { Notice } from '../../log/writer/options.js';

/** What a record that was appended has against it, as one line for standard error. */
export function describeAppended(finding: Finding): string {
  const { code, severity } = finding;
  return `${severity === 'info' ? 'note' : 'warning'}: ${code}: ${describeFinding(finding)}`;
}

/** One line for standard error. */
export function describeNotice(notice: Notice): string {
  switch (notice.code) {
    case 'LEDGER_CREATED':
      return `created ${printable(notice.path)}, origin ${printable(notice.origin)}`;
    case 'TORN_TAIL_SAVED':
      return `${printable(notice.path)} ended in ${notice.length} torn bytes at byte ${notice.offset}, left by a crash and never acknowledged: saved to ${printable(notice.savedTo)} and cut off`;
    case 'LEDGER_WAITING':
      return `waiting for another process that is appending to ${printable(notice.path)}`;
    case 'INDEX_REBUILT':
      return `the index ${printable(notice.path)} is made anew: ${printable(notice.reason)}`;
    case 'INDEX_UNUSABLE':
      return `warning: the index ${printable(notice.path)} is not used: ${printable(notice.reason)}`;
    case 'POSITION_NOT_KEPT':
      return `warning: what is acknowledged is not remembered in ${printable(notice.path)} (${notice.error.code}): a ledger that is put back to an earlier state will not be noticed`;
    case 'CHECKPOINT_FAILED':
      return `warning: a checkpoint of ${printable(notice.path)} was due and could not be made: ${notice.error.code}`;
    case 'LEDGER_DAMAGED':
      return `warning: ${notice.lines} lines of ${printable(notice.path)} are no records; run northroot verify`;
  }
}
