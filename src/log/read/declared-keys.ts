/** The public keys that a ledger declares, as it claims them: for reading signatures, never for believing them. */

import type { PublicKey } from '../../format/key/public-key.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { checkKey } from '../../format/schema/check.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readRecords } from './read-records.js';

/**
 * The keys in genesis and in key events, by keyid, whoever signed these. Nothing is verified; entries that contradict themselves
 * are left out.
 *
 * @param signal - Aborting ends the reading with its reason.
 * @throws NorthrootError when the source cannot be read
 */
export async function readDeclaredKeys(
  source: LedgerSource,
  signal?: AbortSignal,
): Promise<Map<string, PublicKey>> {
  const found = new Map<string, PublicKey>();
  for await (const { event } of readRecords(source, { signal })) {
    for (const entry of entriesOf(event)) {
      if (checkKey(entry).length > 0) continue;
      const decoded = decodeWireKey(entry as Key);
      if (decoded.ok) found.set(decoded.value.keyid, decoded.value);
    }
  }
  return found;
}

function entriesOf(event: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { event_type: type, keys, key } = event;
  if (type === 'genesis') return Array.isArray(keys) ? keys : [];
  return type === 'key' ? [key] : [];
}
