/** Passkeys that protect nobody: another key may approve in the same name. No verdict rests on it; whoever relies on a passkey must know. */

import type { Key } from '../../format/schema/generated/types.js';

/** A passkey, one of its principals, and a key that may approve in that name without it. */
export interface PasskeyGap {
  readonly keyid: string;
  /** A principal pattern of the passkey (SPEC §7). */
  readonly principal: string;
  /** The keyid of the other key. */
  readonly other: string;
}

/**
 * The passkeys beside which a plain key with the role `event` or `authority` covers a principal of theirs, each with the first such principal and
 * one such key; empty where every passkey is the only way to approve in its principals' names. Times of validity are not looked at.
 *
 * @param keys - The current keys, without revoked ones, as `Ledger.listKeys` gives them.
 */
export function listPasskeyGaps(keys: readonly Key[]): PasskeyGap[] {
  const exact = new Map<string, string>();
  const prefixes = new Map<string, string>();
  for (const { keyid, roles, principals, webauthn } of keys) {
    if (webauthn !== undefined || !roles.some((role) => role === 'event' || role === 'authority')) continue;
    for (const pattern of principals) {
      const [patterns, text] = pattern.endsWith('*') ? [prefixes, pattern.slice(0, -1)] : [exact, pattern];
      if (!patterns.has(text)) patterns.set(text, keyid);
    }
  }
  const sorted = [...prefixes, ...exact].sort(([a], [b]) => (a < b ? -1 : 1));
  const otherOf = (pattern: string): string | undefined => {
    const isPrefix = pattern.endsWith('*');
    const text = isPrefix ? pattern.slice(0, -1) : pattern;
    for (let length = 0; length <= text.length; length++) {
      const keyid = prefixes.get(text.slice(0, length));
      if (keyid !== undefined) return keyid;
    }
    if (!isPrefix) return exact.get(text);
    // Whatever begins with a text follows it at once.
    let [from, end] = [0, sorted.length];
    while (from < end) {
      const middle = (from + end) >> 1;
      if (sorted[middle]![0] < text) from = middle + 1;
      else end = middle;
    }
    const [principal, keyid] = sorted[from] ?? [];
    return principal?.startsWith(text) === true ? keyid : undefined;
  };
  return keys.flatMap(({ keyid, principals, webauthn }) => {
    if (webauthn === undefined) return [];
    for (const principal of principals) {
      const other = otherOf(principal);
      if (other !== undefined) return [{ keyid, principal, other }];
    }
    return [];
  });
}
