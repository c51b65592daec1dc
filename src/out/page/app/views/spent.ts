/** Who spent what: the sums of the activity report, by principal and unit. */

import { printable } from '../../../../base/bytes/printable.js';
import type { ActivityMeter, ActivityTotals } from '../../../../format/schema/generated/types.js';
import { deniedOf, groupDigits, ranOf } from '../../../text/words.js';
import type { Overview } from '../../model/protocol.js';
import { count, grouped, h } from '../dom.js';
import { muted, scroll, section, tableHead } from '../parts.js';

const UNITS_SHOWN = 8;
const MORE_UNITS_SHOWN = 40;
const PRINCIPALS_SHOWN = 50;
/** The most characters of a sum; longer ones end in `…`. */
const MAX_AMOUNT = 4_000;

interface Spender {
  readonly principal: string;
  readonly totals: ActivityTotals;
}

/** An exact amount, with thousands separators. */
export function amountText(exact: string): string {
  return printable(groupDigits(exact), MAX_AMOUNT);
}

/** The units with any use: money first, then calls, then the rest by name. */
export function listSpent(meters: readonly ActivityMeter[]): ActivityMeter[] {
  const rank = ({ unit }: ActivityMeter): number => (/^[a-z]{3}$/.test(unit) ? 0 : unit === 'calls' ? 1 : 2);
  return meters
    .filter(({ used, debited, credited }) => used !== '0' || debited !== '0' || credited !== '0')
    .sort((a, b) => rank(a) - rank(b) || (a.unit < b.unit ? -1 : 1));
}

/** The principals that did something, those that did most first. */
export function listSpenders({ groups = [] }: Overview['activity']): Spender[] {
  return groups
    .filter(({ totals }) => {
      const asked = totals.executions.blocked + deniedOf(totals);
      return ranOf(totals) + asked + listSpent(totals.meters).length > 0;
    })
    .sort((a, b) => ranOf(b.totals) - ranOf(a.totals))
    .map(({ key, totals }) => ({ principal: key === null ? 'no principal' : printable(key), totals }));
}

export function spentView({ activity, report }: Overview): HTMLElement {
  const { meters, amounts_left_out: leftOut = 0 } = activity.totals;
  const spent = listSpent(meters);
  const all = listSpenders(activity);
  const spenders = all.slice(0, PRINCIPALS_SHOWN);
  const units = spent.slice(0, UNITS_SHOWN);
  return section(
    'spent',
    'What was spent, and by whom',
    muted(
      'Exact sums of what executions say that they used, with credits and debits. The basis says where an amount comes from: measured, reported by a provider, billed, or only estimated.',
      report.counts.by_verdict.invalid > 0 &&
        ' What invalid records say counts too, and is shown separately.',
      leftOut > 0 &&
        ` ${count(leftOut, 'amount')} could not be added, and ${leftOut === 1 ? 'is' : 'are'} in no sum.`,
    ),
    spenders.length === 0
      ? h('p', 'Nothing was spent.')
      : scroll(
          'Table: who spent what',
          h(
            'table',
            tableHead(
              ['Principal', 'Executions', 'Failed', 'Denied', ...units.map(({ unit }) => printable(unit))],
              (index) => index > 0,
            ),
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
                  units.map((unit) => h('td', { class: 'number' }, amountText(unit.spent))),
                ),
              ),
          ),
        ),
    all.length > spenders.length &&
      muted(`and ${count(all.length - spenders.length, 'more principal')}; the sums are of all.`),
    spent.length > units.length &&
      muted(
        `Further units: ${spent
          .slice(UNITS_SHOWN, MORE_UNITS_SHOWN)
          .map(({ unit, spent: sum }) => `${amountText(sum)} ${printable(unit)}`)
          .join(', ')}.`,
      ),
  );
}

function spenderRow({ principal, totals }: Spender, shown: readonly ActivityMeter[]): HTMLElement {
  const { blocked, failure } = totals.executions;
  const cell = (n: number, note?: string): HTMLElement =>
    h('td', { class: 'number' }, grouped(n), note !== undefined && h('small', note));
  return h(
    'tr',
    h('th', { scope: 'row' }, principal),
    cell(ranOf(totals)),
    cell(failure),
    cell(deniedOf(totals), blocked > 0 ? `${grouped(blocked)} blocked` : undefined),
    shown.map(({ unit }) => {
      const own = listSpent(totals.meters).find((each) => each.unit === unit);
      return h(
        'td',
        { class: 'number' },
        own && [amountText(own.spent), notesOn(own).map((note) => h('small', note))],
      );
    }),
  );
}

function notesOn({ used, debited, credited, basis, ...parts }: ActivityMeter): string[] {
  const added = debited === '0' ? '' : `, debited ${amountText(debited)}`;
  const taken = credited === '0' ? '' : `, credited ${amountText(credited)}`;
  const notes = [
    [parts.unauthorized, 'authorized by nothing'],
    [parts.in_violation, 'by records in violation'],
    [parts.in_invalid, 'by invalid records'],
    [basis.unstated, 'basis not stated'],
    [basis.estimated, 'estimated'],
  ] as const;
  return [
    ...(added + taken === '' ? [] : [`used ${amountText(used)}${added}${taken}`]),
    ...notes.flatMap(([sum, words]) => (sum === undefined ? [] : [`${amountText(sum)} ${words}`])),
  ];
}
