/** What verification found, worst first. */

import { printable } from '../../../../base/bytes/printable.js';
import type { FindingJson } from '../../../../format/schema/generated/types.js';
import type { Overview, Remedies } from '../../model/protocol.js';
import { count, h } from '../dom.js';
import { icon, recordLink, type Shape } from '../icons.js';
import { moreList, muted, section } from '../parts.js';
import { excessWords, signersIn, type SignersOf, whoseWords } from './excess.js';

const SHOWN = 50;

export function findingsView({ report, remedies }: Overview): HTMLElement {
  const { findings, findings_total: total } = report;
  const signersOf = signersIn(report);
  const { list, more } = moreList(h('ol', { class: 'findings' }), 'finding', (offset) => {
    const items = findings
      .slice(offset, offset + SHOWN)
      .map((finding) => h('li', findingView(finding, remedies, signersOf)));
    return Promise.resolve({ total: findings.length, items });
  });
  const unlisted = total - findings.length;
  return section(
    'findings',
    'Findings',
    total === 0
      ? h('p', 'None: nothing is wrong with any record.')
      : [
          muted(`${count(total, 'finding')}, worst first.`),
          list,
          more,
          unlisted > 0 &&
            h('p', `and ${count(unlisted, 'more finding')}, which the report counts and does not list.`),
        ],
  );
}

/** One finding: its code, where it is, what was expected and found; of what went over a bound, by how much. */
export function findingView(
  finding: FindingJson,
  remedies: Remedies,
  signersOf: SignersOf,
  isLinked = true,
): HTMLElement {
  const { code, severity, class: of, at, seq, message, folded } = finding;
  const excess = excessWords(finding, signersOf);
  const whose = whoseWords(finding);
  const shape: Shape =
    severity === 'error'
      ? of === 'violation'
        ? 'violation'
        : 'invalid'
      : severity === 'warning'
        ? 'violation'
        : 'undecided';
  const kind = severity === 'error' ? (of === 'violation' ? 'violation' : 'invalid') : severity;
  const hint = remedies[code]?.remedy;
  return h(
    'div',
    { class: `finding ${kind}` },
    h(
      'p',
      h('span', { class: `badge ${kind}` }, icon(shape), kind),
      ' ',
      h('code', code),
      isLinked && seq !== null && [' ', recordLink(seq)],
      isLinked && seq === null && h('span', { class: 'muted' }, ` ${printable(at.file)}:${at.line}`),
    ),
    excess === undefined
      ? h('p', message)
      : [
          h('p', whose !== '' && `${whose}: `, excess, '.'),
          h('details', h('summary', 'As the report words it'), h('p', message)),
        ],
    folded !== undefined && muted(`and ${count(folded, 'more record')} of the same cause.`),
    hint !== undefined && muted(hint),
  );
}
