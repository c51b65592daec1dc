/** The keys a ledger declares: to read signatures, not to trust them. */

import type { PublicKey } from '../../format/key/public-key.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { checkKey } from '../../format/schema/check.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readRecords } from './read-records.js';

/**
 * The keys of genesis and key events, by keyid, without verification; inconsistent entries are left out.
 * @throws NorthrootError when the source cannot be read; the signal's reason
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
