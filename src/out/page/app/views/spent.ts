/** Who spent what: exact sums by principal and unit. */

import type { Overview, Spender } from '../../model/protocol.js';
import { h } from '../dom.js';
import { count, grouped } from '../words.js';

export function spentView({ spent, spenders, spendersTotal, amountsLeftOut, report }: Overview): HTMLElement {
  const units = spent.map(({ unit }) => unit).slice(0, 8);
  const invalid = report.counts.by_verdict.invalid;
  return h(
    'section',
    { 'aria-labelledby': 'spent' },
    h('h2', { id: 'spent' }, 'What was spent, and by whom'),
    h(
      'p',
      { class: 'muted' },
      'Exact sums of what executions say that they used, with credits and debits. The basis says where an amount comes from: measured, reported by a provider, billed, or only estimated.',
      invalid > 0 && ' What invalid records say counts too, and is told apart.',
      amountsLeftOut > 0 &&
        ` ${count(amountsLeftOut, 'amount')} could not be added, and ${amountsLeftOut === 1 ? 'is' : 'are'} in no sum.`,
    ),
    spenders.length === 0
      ? h('p', {}, 'Nobody spent anything.')
      : h(
          'div',
          { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table: who spent what' },
          h(
            'table',
            {},
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                h('th', { scope: 'col' }, 'Principal'),
                h('th', { scope: 'col', class: 'number' }, 'Executions'),
                h('th', { scope: 'col', class: 'number' }, 'Failed'),
                h('th', { scope: 'col', class: 'number' }, 'Denied'),
                units.map((unit) => h('th', { scope: 'col', class: 'number' }, unit)),
              ),
            ),
            h(
              'tbody',
              {},
              spenders.map((spender) => spenderRow(spender, units)),
            ),
            spenders.length > 1 &&
              h(
                'tfoot',
                {},
                h(
                  'tr',
                  {},
                  h('th', { scope: 'row', colspan: '4' }, 'All together'),
                  units.map((unit) =>
                    h('td', { class: 'number' }, spent.find((each) => each.unit === unit)?.total ?? ''),
                  ),
                ),
              ),
          ),
        ),
    spendersTotal > spenders.length &&
      h(
        'p',
        { class: 'muted' },
        `and ${count(spendersTotal - spenders.length, 'more principal')}; the sums are of all.`,
      ),
    spent.length > units.length &&
      h(
        'p',
        { class: 'muted' },
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
    {},
    h('th', { scope: 'row' }, principal),
    h('td', { class: 'number' }, grouped(executions)),
    h('td', { class: 'number' }, grouped(failures)),
    h(
      'td',
      { class: 'number' },
      grouped(refused),
      blocked > 0 && h('small', {}, `${grouped(blocked)} blocked`),
    ),
    shown.map((name) => {
      const unit = units.find((each) => each.unit === name);
      return h(
        'td',
        { class: 'number' },
        unit?.total ?? '',
        (unit?.debited !== undefined || unit?.credited !== undefined) &&
          h(
            'small',
            {},
            `used ${unit.used}`,
            unit.debited !== undefined && `, debited ${unit.debited}`,
            unit.credited !== undefined && `, credited ${unit.credited}`,
          ),
        unit?.unauthorized !== undefined && h('small', {}, `${unit.unauthorized} authorized by nothing`),
        unit?.violation !== undefined && h('small', {}, `${unit.violation} by records in violation`),
        unit?.invalid !== undefined && h('small', {}, `${unit.invalid} by invalid records`),
        unit?.unstated !== undefined && h('small', {}, `${unit.unstated} basis not stated`),
        unit?.estimated !== undefined && h('small', {}, `${unit.estimated} estimated`),
      );
    }),
  );
}
