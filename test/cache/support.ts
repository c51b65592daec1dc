/** Indexes in memory, of ledgers in memory. */

import { MemoryEntries } from './memory-entries.js';
import { IndexedState } from '../../src/log/cache/indexed-state.js';
import type { LineReader } from '../../src/log/cache/record-reader.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { LineSplitter, type RawLine } from '../../src/format/record/line-splitter.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';

export const FILE = 'ledger.jsonl';
export const NAMES = { toIndex: () => '', fromIndex: () => FILE };
export const SEGMENT = { file: FILE, firstSeq: undefined };

export function openIndex(store: MemoryEntries, trust?: TrustPolicy): Promise<IndexedState> {
  return IndexedState.open(store, '-:', NAMES, nodeBackend, trust);
}

export function linesOf(bytes: Uint8Array): RawLine[] {
  return [...new LineSplitter().push(bytes)].map((line) => ({ ...line, bytes: Uint8Array.from(line.bytes) }));
}

/** The index of a ledger, written and opened again after every `period` lines. */
export async function buildIndex(
  bytes: Uint8Array,
  period: number,
  trust?: TrustPolicy,
): Promise<{ store: MemoryEntries; indexed: IndexedState }> {
  const store = new MemoryEntries();
  let indexed = await openIndex(store, trust);
  for (const [i, line] of linesOf(bytes).entries()) {
    indexed.step(line, SEGMENT);
    if ((i + 1) % period > 0) continue;
    await store.write(indexed.takeChanges());
    indexed = await openIndex(store, trust);
  }
  await store.write(indexed.takeChanges());
  return { store, indexed: await openIndex(store, trust) };
}

/** The lines of one file. */
export function linesIn(bytes: Uint8Array): LineReader {
  const NEWLINE = 0x0a;
  return {
    readLine: ({ byteOffset, byteLength }) => {
      const end = byteOffset + byteLength;
      const isLine = (byteOffset === 0 || bytes[byteOffset - 1] === NEWLINE) && bytes[end] === NEWLINE;
      return Promise.resolve(isLine ? Uint8Array.from(bytes.subarray(byteOffset, end)) : undefined);
    },
  };
}

export function opener(bytes: Uint8Array): () => Promise<LedgerSource> {
  return () => Promise.resolve(bytesSource(bytes, FILE));
}
