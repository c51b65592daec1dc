/** Whether anything is missing from a ledger, as the activity report answers it: by the checkpoints that the user holds, and by the chain. */

import type { ActivityReport } from '../../format/schema/generated/types.js';
import { type Line, outside } from './document.js';
import { count, grouped, longestAnchor } from './words.js';

/** What shows that records are missing, or that some were changed. */
interface Loss {
  readonly words: Line;
  /** Whether something is missing for certain, rather than changed or missing. */
  readonly isCertain: boolean;
}

/** What shows that records are missing or were changed, as a clause; undefined where nothing does. */
export function describeLoss(report: ActivityReport): Line | undefined {
  return findLoss(report)?.words;
}

function findLoss({ ledger, problems }: ActivityReport): Loss | undefined {
  const { records, anchors, seq_gaps: gaps, chain_breaks: breaks } = ledger;
  const shorter = longestAnchor(anchors, 'truncated');
  if (shorter !== undefined) {
    const lost = shorter.tree_size - records;
    return {
      words: [
        `at least ${count(lost, 'record')} ${lost === 1 ? 'is' : 'are'} missing: `,
        outside(shorter.path),
        ` covers ${grouped(shorter.tree_size)}, and the ledger has ${grouped(records)}`,
      ],
      isCertain: true,
    };
  }
  const has = (code: string): boolean => problems.some((problem) => problem.code === code);
  if (has('TILE_MISSING')) return { words: ['files of the ledger are missing'], isCertain: true };
  if (gaps > 0) {
    return { words: [`the numbering of the records has ${count(gaps, 'gap')}`], isCertain: true };
  }
  const forked = longestAnchor(anchors, 'forked');
  if (forked !== undefined) {
    return {
      words: [
        `the first ${count(forked.tree_size, 'record')} are not those that `,
        outside(forked.path),
        ' covers: some were changed, replaced or left out',
      ],
      isCertain: false,
    };
  }
  if (breaks > 0) {
    const words = `the chain of records is broken in ${count(breaks, 'place')}: there one was changed, replaced or left out`;
    return { words: [words], isCertain: false };
  }
  if (!has('LINE_TORN')) return undefined;
  return { words: ['the last line is torn: it is not a whole record'], isCertain: true };
}

/** The answer to whether anything is missing. */
export function describeMissing(report: ActivityReport): Line {
  const { ledger, verdict } = report;
  const loss = findLoss(report);
  if (loss !== undefined) return [loss.isCertain ? 'YES: ' : 'YES, or changed: ', ...loss.words, '.'];
  if (verdict === 'undecided') return ['That cannot be said: there is no record.'];
  const other = longestAnchor(ledger.anchors, 'other-origin');
  if (other !== undefined) {
    return ['That cannot be said: ', outside(other.path), ' is a checkpoint of another ledger.'];
  }
  if (report.not_checked.some(({ code }) => code === 'CHAIN')) {
    return ['That cannot be said: bare events have no chain and no order.'];
  }
  const held = longestAnchor(ledger.anchors, 'extends');
  if (held === undefined) {
    return [
      'That cannot be shown. The chain of these records has no gap, but nothing shows whether some were cut off at the end: no checkpoint kept elsewhere was given.',
    ];
  }
  const after = ledger.records - held.tree_size;
  const whole = `all ${count(held.tree_size, 'record')} that `;
  return after > 0
    ? [
        `NO, up to seq ${grouped(held.tree_size - 1)}: ${whole}`,
        outside(held.path),
        ` covers are there, unchanged. Of what came after them ${count(after, 'record')} ${after === 1 ? 'is' : 'are'} there, and nothing shows whether more were cut off.`,
      ]
    : [`NO: ${whole}`, outside(held.path), ' covers are there, unchanged.'];
}

/** How the ledger relates to the held checkpoints, as a clause. */
export function describeEnd({ ledger, not_checked: open }: ActivityReport): Line {
  const { anchors } = ledger;
  const shorter = longestAnchor(anchors, 'truncated');
  if (shorter !== undefined) {
    return [
      `the ledger is shorter than the checkpoint that you hold: ${grouped(ledger.records)} of at least ${count(shorter.tree_size, 'record')}`,
    ];
  }
  if (anchors.some(({ relation }) => relation === 'forked')) {
    return ['the ledger has another history than the checkpoint that you hold'];
  }
  if (anchors.some(({ relation }) => relation === 'other-origin')) {
    return ['the checkpoint that you hold is of another ledger'];
  }
  // Bare events have no order that a checkpoint could match.
  const isOpen = open.some(({ code }) => code === 'TRUNCATION' || code === 'CHAIN');
  if (anchors.length > 0 && !isOpen) return ['the ledger extends the checkpoint that you hold'];
  return longestAnchor(anchors, 'extends') === undefined || open.some(({ code }) => code === 'CHAIN')
    ? ['nothing shows that no records were cut off at the end']
    : ['the ledger extends the checkpoint that you hold, and nothing shows that none were cut off after it'];
}
