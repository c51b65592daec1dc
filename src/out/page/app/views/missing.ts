/** Whether anything is missing, and what is sealed or open. */

import { printable } from '../../../../base/bytes/printable.js';
import type { ReportJson } from '../../../../format/schema/generated/types.js';
import { answerMissing, type MissingAnswer } from '../../../text/missing.js';
import { type Child, count, grouped, h } from '../dom.js';
import { recordLink } from '../icons.js';

const CHAIN_BREAKS = ['SEQ_GAP', 'PREV_MISMATCH', 'LINE_TORN', 'TILE_MISSING'];
const MAX_NAME = 200;
const OPEN_SHOWN = 5;
const PLACES_SHOWN = 3;

const ANSWERS: Readonly<Record<MissingAnswer['answer'], string>> = {
  yes: 'Yes.',
  changed: 'Yes, or changed.',
  no: 'No.',
  unknown: 'That cannot be said.',
  'not shown': 'That cannot be shown.',
};

export function missingAnswer(report: ReportJson): Child[] {
  const { findings = [], checkpoints, ledger, verdict, open_authorizations: open } = report;
  const isBare = report.not_checked.some(({ code }) => code === 'CHAIN');
  const countOf = (wanted: string): number => findings.filter(({ code }) => code === wanted).length;
  const anchors = checkpoints.anchors ?? [];
  const { answer, upTo, words, code } = answerMissing({
    records: ledger.records,
    verdict,
    anchors,
    isBare,
    countOf,
  });
  const word = upTo === undefined ? ANSWERS[answer] : `Up to seq ${grouped(upTo)}: No.`;
  const text = words
    .map((piece) => (typeof piece === 'string' ? piece : printable(piece.value, MAX_NAME)))
    .join('');
  const places = findings.filter((finding) => finding.code === code && finding.seq !== null);
  const isChained =
    code === undefined &&
    answer !== 'not shown' &&
    !isBare &&
    CHAIN_BREAKS.every((each) => countOf(each) === 0);
  return [
    h(
      'p',
      h('strong', `${word} `),
      `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`,
      places.slice(0, PLACES_SHOWN).map(({ seq }) => [' ', recordLink(seq ?? 0)]),
      places.length > PLACES_SHOWN ? ' and more.' : '.',
      isChained &&
        anchors.some(({ relation }) => relation !== 'extends') &&
        ' The chain of the records that are there has no gap.',
    ),
    !isBare && verdict !== 'undecided' && sealView(report),
    open.length > 0 &&
      h(
        'p',
        `${count(open.length, 'allowed action')} ${open.length === 1 ? 'is' : 'are'} open, without an execution:`,
        open.slice(0, OPEN_SHOWN).map(({ seq }) => [' ', recordLink(seq)]),
        open.length > OPEN_SHOWN ? ` and ${grouped(open.length - OPEN_SHOWN)} more.` : '.',
      ),
  ];
}

/** A checkpoint's own record is not in the tree that it seals; it does not count as unsealed. */
function sealView({ checkpoints }: ReportJson): HTMLElement {
  const { unsealed, last_tree_size: sealed } = checkpoints;
  if (sealed === null) return h('p', 'No checkpoint that a known key signed seals these records.');
  const rest = unsealed > 0 ? `; nothing seals the ${grouped(unsealed)} after it` : '';
  return h('p', `The last checkpoint seals the ${count(sealed, 'record')} before it${rest}.`);
}
