/** Who spent what: exact sums by principal and unit. */

import type { Overview, Spender, SpentUnit } from '../../model/protocol.js';
import { h } from '../dom.js';
import { muted, scroll, section, tableHead } from '../parts.js';
import { count, grouped } from '../words.js';

export function spentView({ spent, spenders, spendersTotal, amountsLeftOut, report }: Overview): HTMLElement {
  const units = spent.map(({ unit }) => unit).slice(0, 8);
  const invalid = report.counts.by_verdict.invalid;
  return section(
    'spent',
    'What was spent, and by whom',
    muted(
      'Exact sums of what executions say that they used, with credits and debits. The basis says where an amount comes from: measured, reported by a provider, billed, or only estimated.',
      invalid > 0 && ' What invalid records say counts too, and is told apart.',
      amountsLeftOut > 0 &&
        ` ${count(amountsLeftOut, 'amount')} could not be added, and ${amountsLeftOut === 1 ? 'is' : 'are'} in no sum.`,
    ),
    spenders.length === 0
      ? h('p', 'Nobody spent anything.')
      : scroll(
          'Table: who spent what',
          h(
            'table',
            tableHead(['Principal', 'Executions', 'Failed', 'Denied', ...units], (index) => index > 0),
            h(
              'tbody',
              spenders.map((spender) => spenderRow(spender, units)),
            ),
            spenders.length > 1 &&
              h(
                'tfoot',
                h(
                  'tr',
                  h('th', { scope: 'row', colspan: '4' }, 'All together'),
                  units.map((unit) =>
                    h('td', { class: 'number' }, spent.find((each) => each.unit === unit)?.total ?? ''),
                  ),
                ),
              ),
          ),
        ),
    spendersTotal > spenders.length &&
      muted(`and ${count(spendersTotal - spenders.length, 'more principal')}; the sums are of all.`),
    spent.length > units.length &&
      muted(
        `Further units: ${spent
          .slice(8, 40)
          .map(({ unit, total }) => `${total} ${unit}`)
          .join(', ')}.`,
      ),
  );
}

function spenderRow(
  { principal, executions, failures, refused, blocked, units }: Spender,
  shown: readonly string[],
): HTMLElement {
  return h(
    'tr',
    h('th', { scope: 'row' }, principal),
    h('td', { class: 'number' }, grouped(executions)),
    h('td', { class: 'number' }, grouped(failures)),
    h('td', { class: 'number' }, grouped(refused), blocked > 0 && h('small', `${grouped(blocked)} blocked`)),
    shown.map((name) => {
      const unit = units.find((each) => each.unit === name);
      return h(
        'td',
        { class: 'number' },
        unit?.total ?? '',
        unit && notesOn(unit).map((note) => h('small', note)),
      );
    }),
  );
}

function notesOn(unit: SpentUnit): string[] {
  const { used, debited, credited } = unit;
  const added = debited === undefined ? '' : `, debited ${debited}`;
  const taken = credited === undefined ? '' : `, credited ${credited}`;
  const parts = [
    [unit.unauthorized, 'authorized by nothing'],
    [unit.violation, 'by records in violation'],
    [unit.invalid, 'by invalid records'],
    [unit.unstated, 'basis not stated'],
    [unit.estimated, 'estimated'],
  ] as const;
  return [
    ...(added + taken === '' ? [] : [`used ${used}${added}${taken}`]),
    ...parts.flatMap(([amount, words]) => (amount === undefined ? [] : [`${amount} ${words}`])),
  ];
}
