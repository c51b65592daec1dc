/** The keys of a ledger for people. */

import { printable } from '../../base/bytes/printable.js';
import type { KeyList, ListedKey } from '../../rules/report/key-list.js';

export function renderKeyList({ keys }: KeyList): string {
  if (keys.length === 0) return 'no keys: the ledger declares none\n';
  return keys.map(renderKey).join('\n');
}

function renderKey({ key, since, addedBy, revoked }: ListedKey): string {
  const { keyid, roles, principals, name, webauthn, valid_from: from, valid_until: until } = key;
  const origin = since === undefined ? 'pinned by the trust policy' : `since seq ${since.seq}`;
  const by = addedBy.length === 0 ? '' : `, added by ${addedBy.map((each) => printable(each)).join(', ')}`;
  const rows: (readonly [string, string] | undefined)[] = [
    ['roles', roles.join(', ')],
    ['signs for', principals.map((pattern) => printable(pattern)).join(', ')],
    name === undefined ? undefined : ['name', printable(name)],
    webauthn && ['passkey', `of ${webauthn.origins.join(' or ')}, approvals alone`],
    from === undefined ? undefined : ['not before', from],
    until === undefined ? undefined : ['until', until],
    revoked && ['revoked', `at seq ${revoked.seq}${why(revoked.reason)}`],
  ];
  const lines = rows
    .filter((row) => row !== undefined)
    .map(([label, text]) => `  ${label.padEnd(11)}${text}`);
  return `${[`${printable(keyid)}  ${origin}${by}`, ...lines].join('\n')}\n`;
}

function why(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${printable(reason)}`;
}
