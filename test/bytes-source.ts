import { streamSource } from '../src/log/fs/source.js';
import type { LedgerSource } from '../src/rules/source/ledger-source.js';

/** A ledger in memory, as one chunk. */
export function bytesSource(bytes: Uint8Array, name: string): LedgerSource {
  return { ...streamSource(once(bytes), name), size: bytes.length };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield await Promise.resolve(bytes);
}
