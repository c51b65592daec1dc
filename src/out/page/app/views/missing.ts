/** Whether anything is missing: by the checkpoints that were kept elsewhere, and by the chain; as the activity report answers it. */

import { printable } from '../../../../base/bytes/printable.js';
import type { AnchorJson, ReportJson } from '../../../../format/schema/generated/types.js';
import { longestAnchor } from '../../../text/words.js';
import { type Child, h } from '../dom.js';
import { recordLink } from '../icons.js';
import { count, grouped } from '../words.js';

/** The answer's first word, and why it is that. */
interface Answer {
  readonly word: string;
  readonly why: readonly Child[];
}

const CHAIN_BREAKS = ['SEQ_GAP', 'PREV_MISMATCH', 'LINE_TORN', 'TILE_MISSING'];
const MAX_NAME = 200;
const OPEN_SHOWN = 5;

export function missingAnswer(report: ReportJson): Child[] {
  const { word, why } = answerOf(report);
  const open = report.open_authorizations;
  return [
    h('p', h('strong', `${word} `), ...why),
    sealWords(report),
    open.length > 0 &&
      h(
        'p',
        `${count(open.length, 'allowed action')} ${open.length === 1 ? 'is' : 'are'} open, without an execution:`,
        open.slice(0, OPEN_SHOWN).map(({ seq }) => [' ', recordLink(seq)]),
        open.length > OPEN_SHOWN ? ` and ${grouped(open.length - OPEN_SHOWN)} more.` : '.',
      ),
  ];
}

function answerOf(report: ReportJson): Answer {
  return (
    lossOf(report) ??
    doubtOf(report) ?? {
      word: 'That cannot be shown.',
      why: [
        'The chain of these records has no gap, but nothing shows whether some were cut off at the end: no checkpoint kept elsewhere was given.',
      ],
    }
  );
}

function lossOf(report: ReportJson): Answer | undefined {
  const { records } = report.ledger;
  const yes = (...why: readonly Child[]): Answer => ({ word: 'Yes.', why });
  const changed = (...why: readonly Child[]): Answer => ({ word: 'Yes, or changed.', why });
  const shorter = longestOf(report, 'truncated');
  if (shorter !== undefined) {
    const lost = shorter.tree_size - records;
    return yes(
      `At least ${count(lost, 'record')} ${lost === 1 ? 'is' : 'are'} missing at the end: the checkpoint ${nameOf(shorter)} covers ${grouped(shorter.tree_size)}, and the ledger has ${grouped(records)}.`,
      chainWords(report),
    );
  }
  if (has(report, 'TILE_MISSING')) return yes('Files of the ledger are missing.');
  if (has(report, 'SEQ_GAP')) {
    return yes('The numbering of the records has a gap', ...linksTo(report, 'SEQ_GAP'));
  }
  const forked = longestOf(report, 'forked');
  if (forked !== undefined) {
    return changed(
      `The first ${count(forked.tree_size, 'record')} are not those that the checkpoint ${nameOf(forked)} covers: some were changed, replaced or left out.`,
      chainWords(report),
    );
  }
  if (has(report, 'PREV_MISMATCH')) {
    return changed(
      'The chain of records is broken: there one was changed, replaced or left out',
      ...linksTo(report, 'PREV_MISMATCH'),
    );
  }
  if (has(report, 'LINE_TORN')) return yes('The last line is torn: it is not a whole record.');
  return undefined;
}

/** Why nothing can be said; or up to where a checkpoint shows that nothing is missing. */
function doubtOf(report: ReportJson): Answer | undefined {
  const unsaid = (...why: readonly Child[]): Answer => ({ word: 'That cannot be said.', why });
  if (report.verdict === 'undecided') return unsaid('There is no record here.');
  const other = longestOf(report, 'other-origin');
  if (other !== undefined) {
    return unsaid(`${nameOf(other)} is a checkpoint of another ledger.`, chainWords(report));
  }
  if (isBare(report)) return unsaid('These are bare events: they have no chain and no order.');
  const wrong = ['CHECKPOINT_ROOT_MISMATCH', 'CHECKPOINT_SIZE_MISMATCH'].find((code) => has(report, code));
  if (wrong !== undefined) {
    return unsaid(
      'A checkpoint does not match the records before it: they were changed, or it is wrong',
      ...linksTo(report, wrong),
    );
  }
  const held = longestOf(report, 'extends');
  if (held === undefined) return undefined;
  const after = report.ledger.records - held.tree_size;
  return {
    word: `${after > 0 ? `Up to seq ${grouped(held.tree_size - 1)}: ` : ''}No.`,
    why: [
      `All ${count(held.tree_size, 'record')} that the checkpoint ${nameOf(held)} covers are there, unchanged.`,
      after > 0 &&
        ` Of what came after them ${count(after, 'record')} ${after === 1 ? 'is' : 'are'} there, and nothing shows whether more were cut off.`,
    ],
  };
}

function chainWords(report: ReportJson): string {
  if (isBare(report) || CHAIN_BREAKS.some((code) => has(report, code))) return '';
  return ' The chain of the records that are there has no gap.';
}

/** A checkpoint's own record is not in the tree that it seals; it does not count as unsealed. */
function sealWords(report: ReportJson): Child {
  const { unsealed, last_tree_size: sealed } = report.checkpoints;
  if (report.verdict === 'undecided' || isBare(report)) return undefined;
  if (sealed === null) return h('p', 'No checkpoint among these records that a known key signed seals them.');
  return h(
    'p',
    `The last checkpoint seals the ${count(sealed, 'record')} before it${unsealed > 0 ? `; nothing seals the ${grouped(unsealed)} after it` : ''}.`,
  );
}

function isBare(report: ReportJson): boolean {
  return report.not_checked.some(({ code }) => code === 'CHAIN');
}

function has({ findings = [] }: ReportJson, wanted: string): boolean {
  return findings.some(({ code }) => code === wanted);
}

function linksTo({ findings = [] }: ReportJson, wanted: string): Child[] {
  const places = findings.filter(({ code, seq }) => code === wanted && seq !== null);
  return [
    places.slice(0, 3).map(({ seq }) => [' ', recordLink(seq ?? 0)]),
    places.length > 3 ? ' and more.' : '.',
  ];
}

function longestOf({ checkpoints }: ReportJson, relation: AnchorJson['relation']): AnchorJson | undefined {
  return longestAnchor(checkpoints.anchors ?? [], relation);
}

function nameOf({ path }: AnchorJson): string {
  return printable(path, MAX_NAME);
}
