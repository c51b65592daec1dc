/** The exporter's report, until this browser has verified the ledger: a print before then is true too. */

import { printable } from '../../../../base/bytes/printable.js';
import type { ReportJson } from '../../../../format/schema/generated/types.js';
import { count, h } from '../dom.js';
import { missingAnswer } from './missing.js';
import { verdictSentence } from './summary.js';

const SHOWN = 10;

/** Undefined for a report that cannot be read: the page may have been changed. */
export function exportedView(report: ReportJson): HTMLElement | undefined {
  try {
    return viewOf(report);
  } catch {
    return undefined;
  }
}

function viewOf(report: ReportJson): HTMLElement {
  const { verdict, findings = [], findings_total: total, not_checked: open, tool } = report;
  const errors = findings.filter(({ severity }) => severity === 'error');
  return h(
    'section',
    { class: 'exported', 'aria-labelledby': 'exported' },
    h('h2', { id: 'exported' }, 'As exported, not yet verified in this browser'),
    h(
      'p',
      'The report that came with this page says ',
      h('strong', printable(String(verdict), 20)),
      ': ',
      h('q', verdictSentence({ report })),
      ` Made by ${printable(tool.name, 50)} ${printable(tool.version, 50)}. It is not confirmed until the verification above is done.`,
    ),
    errors.length > 0 && [
      h('p', `${count(total, 'finding')}, the worst first:`),
      h(
        'ul',
        errors.slice(0, SHOWN).map(({ code, seq, message }) => {
          const place = seq === null ? '' : ` #${seq}`;
          return h('li', h('code', printable(code, 80)), `${place}: ${printable(message, 500)}`);
        }),
      ),
    ],
    h('h3', 'Is anything missing?'),
    missingAnswer(report),
    open.length > 0 && [
      h('h3', 'What was not checked'),
      h(
        'ul',
        open.slice(0, SHOWN).map(({ message }) => h('li', printable(message, 500))),
      ),
    ],
  );
}
