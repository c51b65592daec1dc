/** Whether anything is missing from a ledger: by the checkpoints that the user holds, and by the chain. */

import type { ActivityReport, ReportJson } from '../../format/schema/generated/types.js';
import { type Line, outside } from './document.js';
import { count, grouped, longestAnchor } from './words.js';

interface HeldCheckpoint {
  readonly path: string;
  readonly tree_size: number;
  readonly relation: 'extends' | 'truncated' | 'forked' | 'other-origin';
}

/** What the answer depends on. */
export interface Completeness {
  readonly records: number;
  readonly verdict: ReportJson['verdict'];
  readonly anchors: readonly HeldCheckpoint[];
  /** Whether these are bare events, which have no chain. */
  readonly isBare: boolean;
  readonly countOf: (code: string) => number;
}

export interface MissingAnswer {
  readonly answer: 'yes' | 'changed' | 'no' | 'unknown' | 'not shown';
  /** Up to which record it is so. */
  readonly upTo?: number;
  readonly words: Line;
  /** The code whose findings show it. */
  readonly code?: string;
}

/** The answer to whether anything is missing. */
export function answerMissing(of: Completeness): MissingAnswer {
  return (
    findLoss(of) ??
    findDoubt(of) ?? {
      answer: 'not shown',
      words: [
        'the chain of these records has no gap, but nothing shows whether some were cut off at the end: no checkpoint kept elsewhere was given',
      ],
    }
  );
}

/** What shows that records are missing or were changed. */
function findLoss({ records, anchors, countOf }: Completeness): MissingAnswer | undefined {
  const shorter = longestAnchor(anchors, 'truncated');
  if (shorter !== undefined) {
    const lost = shorter.tree_size - records;
    return {
      answer: 'yes',
      words: [
        `at least ${count(lost, 'record')} ${lost === 1 ? 'is' : 'are'} missing at the end: the checkpoint `,
        outside(shorter.path),
        ` covers ${grouped(shorter.tree_size)}, and the ledger has ${grouped(records)}`,
      ],
    };
  }
  if (countOf('TILE_MISSING') > 0) return { answer: 'yes', words: ['files of the ledger are missing'] };
  const gaps = countOf('SEQ_GAP');
  if (gaps > 0) {
    const words = `the numbering of the records has ${count(gaps, 'gap')}`;
    return { answer: 'yes', words: [words], code: 'SEQ_GAP' };
  }
  const forked = longestAnchor(anchors, 'forked');
  if (forked !== undefined)
    return {
      answer: 'changed',
      words: [
        `the first ${count(forked.tree_size, 'record')} are not those that the checkpoint `,
        outside(forked.path),
        ' covers: some were changed, replaced or left out',
      ],
    };
  const breaks = countOf('PREV_MISMATCH');
  if (breaks > 0) {
    const words = `the chain of records is broken in ${count(breaks, 'place')}: there one was changed, replaced or left out`;
    return { answer: 'changed', words: [words], code: 'PREV_MISMATCH' };
  }
  if (countOf('LINE_TORN') === 0) return undefined;
  return { answer: 'yes', words: ['the last line is torn: it is not a whole record'] };
}

/** Why the answer is unknown; or up to where a held checkpoint shows that nothing is missing. */
function findDoubt({ verdict, records, anchors, isBare, countOf }: Completeness): MissingAnswer | undefined {
  if (verdict === 'undecided') return { answer: 'unknown', words: ['there is no record'] };
  const other = longestAnchor(anchors, 'other-origin');
  if (other !== undefined)
    return { answer: 'unknown', words: [outside(other.path), ' is a checkpoint of another ledger'] };
  if (isBare) return { answer: 'unknown', words: ['bare events have no chain and no order'] };
  const code = ['CHECKPOINT_ROOT_MISMATCH', 'CHECKPOINT_SIZE_MISMATCH'].find((each) => countOf(each) > 0);
  if (code !== undefined) {
    const words = 'a checkpoint does not match the records before it: they were changed, or it is wrong';
    return { answer: 'unknown', words: [words], code };
  }
  const held = longestAnchor(anchors, 'extends');
  if (held === undefined) return undefined;
  const after = records - held.tree_size;
  const rest = `. Of what came after them ${count(after, 'record')} ${after === 1 ? 'is' : 'are'} there, and nothing shows whether more were cut off`;
  return {
    answer: 'no',
    ...(after > 0 ? { upTo: held.tree_size - 1 } : {}),
    words: [
      `all ${count(held.tree_size, 'record')} that the checkpoint `,
      outside(held.path),
      ` covers are there, unchanged${after > 0 ? rest : ''}`,
    ],
  };
}

function completenessOf({ ledger, verdict, problems, not_checked: open }: ActivityReport): Completeness {
  const counts: Readonly<Record<string, number>> = {
    SEQ_GAP: ledger.seq_gaps,
    PREV_MISMATCH: ledger.chain_breaks,
  };
  return {
    records: ledger.records,
    verdict,
    anchors: ledger.anchors,
    isBare: open.some(({ code }) => code === 'CHAIN'),
    countOf: (code) => counts[code] ?? problems.find((problem) => problem.code === code)?.records ?? 0,
  };
}

/** What shows that records are missing or were changed, as a clause; undefined where nothing does. */
export function describeLoss(report: ActivityReport): Line | undefined {
  return findLoss(completenessOf(report))?.words;
}

const ANSWERS = {
  yes: 'YES: ',
  changed: 'YES, or changed: ',
  no: 'NO: ',
  unknown: 'That cannot be said: ',
  'not shown': 'That cannot be shown: ',
} as const;

/** The answer to whether anything is missing, as a sentence. */
export function describeMissing(report: ActivityReport): Line {
  const { answer, upTo, words } = answerMissing(completenessOf(report));
  return [upTo === undefined ? ANSWERS[answer] : `NO, up to seq ${grouped(upTo)}: `, ...words, '.'];
}

/** How the ledger relates to the held checkpoints, as a clause. */
export function describeEnd({ ledger, not_checked: open }: ActivityReport): Line {
  const { anchors } = ledger;
  const shorter = longestAnchor(anchors, 'truncated');
  if (shorter !== undefined)
    return [
      `the ledger is shorter than the checkpoint that you hold: ${grouped(ledger.records)} of at least ${count(shorter.tree_size, 'record')}`,
    ];
  if (anchors.some(({ relation }) => relation === 'forked'))
    return ['the ledger has another history than the checkpoint that you hold'];
  if (anchors.some(({ relation }) => relation === 'other-origin'))
    return ['the checkpoint that you hold is of another ledger'];
  // Bare events have no order that a checkpoint could match.
  const isOpen = open.some(({ code }) => code === 'TRUNCATION' || code === 'CHAIN');
  if (anchors.length > 0 && !isOpen) return ['the ledger extends the checkpoint that you hold'];
  return longestAnchor(anchors, 'extends') === undefined || open.some(({ code }) => code === 'CHAIN')
    ? ['nothing shows that no records were cut off at the end']
    : ['the ledger extends the checkpoint that you hold, and nothing shows that none were cut off after it'];
}
