/** The keys of a ledger for people. */

import { printable } from '../../base/bytes/printable.js';
import type { Webauthn } from '../../format/schema/generated/types.js';
import { listPasskeyGaps, type PasskeyGap } from '../../rules/trust/passkey-gaps.js';
import type { KeyList, ListedKey } from '../../rules/report/key-list.js';

export function renderKeyList({ keys }: KeyList): string {
  if (keys.length === 0) return 'no keys: the ledger declares none\n';
  const current = keys.flatMap(({ key, revoked }) => (revoked === undefined ? key : []));
  const gaps = new Map(listPasskeyGaps(current).map((gap) => [gap.keyid, gap]));
  return keys.map((each) => renderKey(each, gaps.get(each.key.keyid))).join('\n');
}

function renderKey({ key, since, addedBy, revoked }: ListedKey, gap: PasskeyGap | undefined): string {
  const { keyid, roles, principals, name, webauthn, valid_from: from, valid_until: until } = key;
  const origin = since === undefined ? 'pinned by the trust policy' : `since seq ${since.seq}`;
  const by = addedBy.length === 0 ? '' : `, added by ${addedBy.map((each) => printable(each)).join(', ')}`;
  const rows: (readonly [string, string] | undefined)[] = [
    ['roles', roles.join(', ')],
    ['signs for', principals.map((pattern) => printable(pattern)).join(', ')],
    name === undefined ? undefined : ['name', printable(name)],
    ...passkeyRows(webauthn),
    gap && ['not alone', `key ${gap.other} may approve as ${printable(gap.principal)} too`],
    from === undefined ? undefined : ['not before', from],
    until === undefined ? undefined : ['until', until],
    revoked && ['revoked', `at seq ${revoked.seq}${why(revoked.reason)}`],
  ];
  const lines = rows
    .filter((row) => row !== undefined)
    .map(([label, text]) => `  ${label.padEnd(11)}${text}`);
  return `${[`${printable(keyid)}  ${origin}${by}`, ...lines].join('\n')}\n`;
}

/** What a passkey is pinned to, as labels with their texts; none for another key. */
export function passkeyRows(webauthn: Webauthn | undefined): (readonly [string, string])[] {
  if (webauthn === undefined) return [];
  const { rp_id: rpId, origins, top_origins: tops, user_verification: demand } = webauthn;
  return [
    ['passkey', `of ${listed(origins)}, RP id ${printable(rpId)}, approvals alone`],
    ...(tops === undefined ? [] : [['shown in', `pages of ${listed(tops)} too`] as const]),
    ['user', demand === 'optional' ? 'present, and verified or not' : 'present and verified'],
  ];
}

function listed(origins: readonly string[]): string {
  return origins.map((origin) => printable(origin)).join(' or ');
}

function why(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${printable(reason)}`;
}
