/** Grants: a bar for each capped unit, the rest over time, and the delegated grants inside. */

import type { GrantMeter, GrantView, Overview } from '../../model/protocol.js';
import type { Client } from '../client.js';
import { count, h, listOf, s, timeText } from '../dom.js';
import { badge, icon, recordLink } from '../icons.js';
import { moreList, muted, scroll, section } from '../parts.js';

const CURVE = { width: 120, height: 28 };

export function grantsView({ grants, timeline }: Overview, client: Client): HTMLElement {
  const { list, more } = moreList(h('div', { class: 'grants' }), 'grant', async (offset) => {
    const page = offset === 0 ? grants : await client.call('grants', { offset });
    return { total: page.total, items: page.grants.map((grant) => grantView(grant, 3)) };
  });
  return section(
    'grants',
    'Grants: what was allowed, and what is left',
    grants.total === 0
      ? h('p', 'There are no grants.')
      : [
          h(
            'p',
            { class: 'muted legend' },
            swatch('used', 'used'),
            swatch('reserved', 'reserved'),
            swatch('left', 'left'),
            swatch('over', 'over the cap'),
            h(
              'span',
              timeline.isByTime
                ? `The curves show what was left from ${timeText(timeline.from)} to ${timeText(timeline.to)} UTC.`
                : 'The curves show what was left, record by record.',
            ),
          ),
          list,
          more,
        ],
  );
}

function swatch(kind: string, words: string): HTMLElement {
  return h(
    'span',
    { class: 'swatch' },
    s(
      'svg',
      { viewBox: '0 0 12 12', class: 'box', 'aria-hidden': 'true' },
      s('rect', { width: 12, height: 12, class: `bar-${kind}` }),
    ),
    words,
  );
}

function grantView(grant: GrantView, level: 3 | 4 | 5 | 6): HTMLElement {
  const { ordinal, principal, tools, expiresAt, signers, executions, delegated, delegatedTotal, verdict } =
    grant;
  const { withdrawn, approvalRules } = grant;
  const heading = `h${level}` as const;
  const hasActionCaps = grant.meters.some(({ perAction }) => perAction !== undefined);
  const columns = ['Unit', 'Account', 'Used', 'Reserved', 'Left', 'Cap'];
  if (hasActionCaps) columns.push('At most in one action');
  const below = Math.min(level + 1, 6) as 4 | 5 | 6;
  return h(
    'article',
    { class: 'grant' },
    h(heading, principal, ' ', recordLink(ordinal), verdict !== 'ok' && [' ', badge(verdict)]),
    withdrawn !== undefined &&
      h(
        'p',
        { class: 'withdrawn' },
        icon('denied'),
        h('strong', withdrawn.isRevoked ? 'Revoked' : 'Suspended'),
        ': out of force since ',
        recordLink(withdrawn.ordinal),
        '.',
      ),
    approvalRules.length > 0 && muted(`Needs approval: ${listOf(approvalRules)}.`),
    muted(
      `${signers.length === 0 ? 'Not signed by a known key' : `Signed by ${listOf(signers, 3)}`}; ${count(executions, 'execution')}; tools ${listOf(tools, 6)}${expiresAt === undefined ? '' : `; until ${timeText(expiresAt)} UTC`}${grant.otherActionCaps.length === 0 ? '' : `; one action at most ${listOf(grant.otherActionCaps)}`}.`,
      delegated.length > 0 &&
        ' What was used and reserved here includes that of the grants delegated from it, which stand below.',
    ),
    scroll(
      `Accounts of the grant #${ordinal} to ${principal}`,
      h(
        'table',
        { class: 'meters' },
        h(
          'thead',
          h(
            'tr',
            columns.map((name, index) =>
              h('th', { scope: 'col', class: index > 1 ? 'number' : undefined }, name),
            ),
            h('th', { scope: 'col', class: 'curve' }, 'Left over time'),
          ),
        ),
        h(
          'tbody',
          grant.meters.map((meter) => meterRow(meter, hasActionCaps)),
        ),
      ),
    ),
    delegated.length > 0 &&
      h(
        'div',
        { class: 'delegated' },
        delegated.map((each) => grantView(each, below)),
        delegatedTotal > delegated.length &&
          muted(
            `and ${count(delegatedTotal - delegated.length, 'more delegated grant')}: `,
            h('a', { href: '#tree' }, 'see the tree'),
          ),
      ),
  );
}

/** On a narrow screen cells are stacked, each with its column's name. */
const named = (name: string, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  'data-column': name,
  ...more,
});

function meterRow(meter: GrantMeter, hasActionCaps: boolean): HTMLElement {
  const { unit, cap, used, estimated, reserved, left, isOver } = meter;
  const number = (name: string, of = 'number'): Record<string, string> => named(name, { class: of });
  return h(
    'tr',
    h('th', { scope: 'row' }, unit),
    h('td', { class: 'bar' }, bar(meter)),
    h('td', number('Used'), used, estimated !== undefined && h('small', `${estimated} estimated`)),
    h('td', number('Reserved'), reserved),
    h(
      'td',
      number('Left', `number${isOver ? ' over' : ''}`),
      isOver && icon('violation'),
      left,
      isOver && h('small', 'over the cap'),
    ),
    h('td', number('Cap'), cap),
    hasActionCaps && h('td', number('At most in one action'), meter.perAction ?? ''),
    h('td', named('Left over time', { class: 'curve' }), curve(meter)),
  );
}

function bar({ unit, used, reserved, left, cap, usedShare, reservedShare, isOver }: GrantMeter): SVGElement {
  const whole = Math.max(1, usedShare + reservedShare);
  const percent = (share: number): string => `${((100 * Math.max(0, share)) / whole).toFixed(2)}%`;
  return s(
    'svg',
    {
      class: 'meter',
      role: 'img',
      'aria-label': `${unit}: ${used} used and ${reserved} reserved of ${cap}, ${left} left${isOver ? ', over the cap' : ''}`,
    },
    s('rect', { width: '100%', height: '100%', class: 'bar-left' }),
    s('rect', { width: percent(usedShare), height: '100%', class: 'bar-used' }),
    s('rect', {
      x: percent(usedShare),
      width: percent(reservedShare),
      height: '100%',
      class: 'bar-reserved',
    }),
    isOver && s('rect', { x: percent(1), width: percent(whole - 1), height: '100%', class: 'bar-over' }),
    isOver && s('line', { x1: percent(1), x2: percent(1), y1: 0, y2: '100%', class: 'cap' }),
  );
}

function curve({ unit, burnDown, left }: GrantMeter): SVGElement {
  const { width, height } = CURVE;
  const least = Math.min(0, ...burnDown.map(([, share]) => share));
  const y = (share: number): string => (((1 - share) / (1 - least)) * (height - 2) + 1).toFixed(1);
  const x = (position: number): string => (position * width).toFixed(1);
  const [first] = burnDown;
  let path = first === undefined ? '' : `M${x(first[0])} ${y(first[1])}`;
  for (const [position, share] of burnDown.slice(1)) path += `H${x(position)}V${y(share)}`;
  if (path !== '') path += `H${width}`;
  return s(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      class: 'burn',
      role: 'img',
      'aria-label': `${unit}: what was left over time, ${left} at the end`,
    },
    s('line', { x1: 0, x2: width, y1: y(0), y2: y(0), class: 'axis' }),
    s('path', { d: path, class: 'line' }),
  );
}
