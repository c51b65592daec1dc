/** The tree of authority: granter, grant, delegated grant, authorization, execution; loaded as it is opened. */

import type { Role } from '../../../../rules/trust/authority.js';
import type { GranterKey, GranterNode, Overview, Row } from '../../model/protocol.js';
import type { Client } from '../client.js';
import { type Child, count, grouped, h, listOf } from '../dom.js';
import { badge, recordLink } from '../icons.js';
import { moreList, muted, section } from '../parts.js';

/** Up to so many granters are open at first. */
const OPEN_GRANTERS = 4;

export function treeView({ report }: Overview, client: Client): HTMLElement {
  return section(
    'tree',
    'Who let whom act',
    muted(
      'Whose key granted; below it each grant, what was delegated from it, what was allowed under it, and what was done. ',
      report.trust.mode === 'policy'
        ? 'Keys that the trust policy names are marked; the others are the ledger’s own word.'
        : 'Names, keys and what they may do are the ledger’s own word.',
    ),
    h('div', { class: 'tree' }, grantersView(client)),
  );
}

function grantersView(client: Client): HTMLElement {
  return listView('granter', async (offset) => {
    const { total, granters } = await client.call('granters', { offset });
    return { total, items: granters.map((granter) => h('li', granterView(granter, client, total))) };
  });
}

function branchView(
  below: { readonly of: number } | { readonly granter: number },
  client: Client,
): HTMLElement {
  return listView('record', async (offset) => {
    const { total, rows } = await client.call('branch', { ...below, offset });
    return { total, items: rows.map((row) => h('li', nodeView(row, client))) };
  });
}

function listView(...[noun, load]: readonly [string, Parameters<typeof moreList>[2]]): HTMLElement {
  const { list, more } = moreList(h('ul'), noun, load);
  return h('div', { class: 'branch' }, list, more);
}

const ROLE_WORDS: Readonly<Record<Role, readonly string[]>> = {
  authority: ['grant', 'give budget back'],
  event: ['record events', 'delegate'],
  admin: ['change keys'],
  checkpoint: ['seal the ledger'],
  witness: ['cosign'],
};

function granterView(granter: GranterNode, client: Client, total: number): HTMLElement {
  const { number, kind, keys, grants, records } = granter;
  const others = records - grants;
  const what = listOf([
    ...(grants > 0 ? [count(grants, 'grant')] : []),
    ...(others > 0 ? [count(others, kind === 'nobody' ? 'record' : 'single action')] : []),
  ]);
  const name =
    kind === 'known'
      ? listOf(keys.map(keyName))
      : kind === 'unknown'
        ? 'Granter not known'
        : 'Under no authorization that is here';
  return foldView({
    class: `granter ${kind}`,
    words: [
      h('b', name),
      h('span', { class: 'muted' }, ` ${kind === 'known' ? 'signed ' : ''}${what}`),
      kind === 'unknown' && h('p', 'No key that is known here, and may do so, signed these.'),
      keys.map((key) => h('p', { class: 'key' }, keyWords(key))),
    ],
    label: `${what} of ${name}`,
    isOpen: total <= OPEN_GRANTERS,
    below: () => branchView({ granter: number }, client),
  });
}

function keyName({ keyid, name }: GranterKey): string {
  return name ?? `${keyid.slice(0, 12)}…`;
}

function keyWords(key: GranterKey): Child {
  const { keyid, roles, principals, principalsTotal: total, isPinned, isRevoked } = key;
  const whom = principals.map((pattern) => (pattern === '*' ? 'everybody' : pattern));
  if (total > whom.length) whom.push(`${grouped(total - whom.length)} more`);
  return [
    'key ',
    h('code', { title: keyid }, `${keyid.slice(0, 16)}…`),
    roles.length > 0 &&
      ` may ${listOf(
        roles.flatMap((role) => ROLE_WORDS[role]),
        8,
      )}`,
    whom.length > 0 && ` for ${listOf(whom, 13)}`,
    isPinned && '; the trust policy names it',
    isRevoked && [', and was ', h('strong', 'revoked'), ' later'],
  ];
}

/** A node with something below it, which is loaded when it is opened. */
function foldView({
  class: of,
  words,
  label,
  isOpen,
  below: load,
}: {
  readonly class: string;
  readonly words: Child;
  readonly label: string;
  readonly isOpen: boolean;
  readonly below: () => HTMLElement;
}): HTMLElement {
  let below: HTMLElement | undefined;
  const set = (open: boolean): void => {
    button.setAttribute('aria-expanded', String(open));
    if (open && below === undefined) node.append((below = load()));
    if (below !== undefined) below.hidden = !open;
  };
  const button = h('button', {
    type: 'button',
    class: 'toggle',
    'aria-expanded': 'false',
    'aria-label': label,
    click: () => set(button.getAttribute('aria-expanded') !== 'true'),
  });
  const node = h('div', { class: `node ${of}` }, button, words);
  if (isOpen) set(true);
  return node;
}

function nodeView(row: Row, client: Client): HTMLElement {
  const { ordinal, what, signers, verdict, children } = row;
  const words = [
    h('b', label(row)),
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
  return foldView({
    class: 'act',
    words: [...words, h('span', { class: 'muted' }, `; ${count(children, 'record')} under it`)],
    label: `${count(children, 'record')} under #${ordinal}`,
    isOpen: false,
    below: () => branchView({ of: ordinal }, client),
  });
}

function label({ kind, type, principal, tool, what }: Row): string {
  const denied = what.startsWith('denied: ') || what.startsWith('grant denied: ');
  switch (kind) {
    case 'grant':
      return denied ? `No grant to ${principal}` : `Grant to ${principal}`;
    case 'action':
      return `${principal} ${denied ? 'asked for' : 'may call'} ${tool}`;
    case 'execution':
      return `${principal} ran ${tool}`;
    case 'start':
      return `${principal} started ${tool}`;
    case 'approval':
      return `${principal} on ${tool}`;
    case 'revocation':
      return `${principal} withdrew`;
    case 'adjustment':
      return `${principal} adjusted`;
    default:
      return kind === 'other' ? type : kind;
  }
}
