/** Who let whom act: granter, grant, delegated grant, authorization, execution; each opened when it is asked for. */

import type { Client } from '../client.js';
import type { Overview, Row } from '../../model/protocol.js';
import { h } from '../dom.js';
import { badge, recordLink } from '../icons.js';
import { count, listOf } from '../words.js';
import { granterWords } from './summary.js';

export function treeView({ granters }: Overview, client: Client): HTMLElement {
  return h(
    'section',
    { 'aria-labelledby': 'tree' },
    h('h2', { id: 'tree' }, 'Who let whom act'),
    granters.length > 0 &&
      h(
        'p',
        {},
        granters.slice(0, 6).map((granter, index) => [index > 0 && ' ', granterWords(granter), '.']),
      ),
    h('div', { class: 'tree' }, branchView(undefined, client)),
  );
}

/** What hangs below a record; loaded now, further rows when they are asked for. */
export function branchView(of: number | undefined, client: Client): HTMLElement {
  const list = h('ul', {});
  const more = h('p', {});
  const load = async (offset: number): Promise<void> => {
    const { total, rows } = await client.call('branch', { of, offset });
    list.append(...rows.map((row) => h('li', {}, nodeView(row, client))));
    more.replaceChildren();
    const rest = total - offset - rows.length;
    if (offset === 0 && total === 0) more.append('None.');
    if (rest > 0)
      more.append(
        h(
          'button',
          { type: 'button', click: () => void load(offset + rows.length) },
          `Show more: ${count(rest, 'record')} left`,
        ),
      );
  };
  void load(0);
  return h('div', { class: 'branch' }, list, more);
}

function nodeView(row: Row, client: Client): HTMLElement {
  const { ordinal, what, signers, verdict, children } = row;
  const words = [
    h('b', {}, label(row)),
    ' ',
    recordLink(ordinal),
    ' ',
    what,
    h(
      'span',
      { class: 'muted' },
      signers.length > 0 ? ` signed by ${listOf(signers, 3)}` : ' not signed by a known key',
    ),
    verdict !== 'ok' && [' ', badge(verdict)],
  ];
  if (children === 0) return h('div', { class: 'node leaf' }, words);
  let below: HTMLElement | undefined;
  const button = h('button', {
    type: 'button',
    class: 'toggle',
    'aria-expanded': 'false',
    'aria-label': `${count(children, 'record')} under #${ordinal}`,
    click: () => {
      const isOpen = button.getAttribute('aria-expanded') === 'true';
      button.setAttribute('aria-expanded', String(!isOpen));
      if (below === undefined) node.append((below = branchView(ordinal, client)));
      below.hidden = isOpen;
    },
  });
  const node = h('div', { class: 'node' }, button, words, h('span', { class: 'muted' }, ` (${children})`));
  return node;
}

function label({ kind, type, principal, tool, what }: Row): string {
  const refused = what.startsWith('refused') || what.startsWith('grant refused');
  switch (kind) {
    case 'grant':
      return refused ? `No grant to ${principal}` : `Grant to ${principal}`;
    case 'action':
      return `${principal} ${refused ? 'asked for' : 'may call'} ${tool}`;
    case 'execution':
      return `${principal} ran ${tool}`;
    case 'adjustment':
      return `${principal} adjusted`;
    default:
      return kind === 'other' ? type : kind;
  }
}
