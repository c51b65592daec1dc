/** Indexes in memory, of ledgers in memory. */

import { MemoryEntries } from './memory-entries.js';
import { IndexedState } from '../../src/log/cache/indexed-state.js';
import type { FileSystem, OpenFile } from '../../src/log/fs/file-system.js';
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

/** A file system that has one file, and reads it. */
export function fileSystemOf(bytes: Uint8Array): FileSystem {
  const file: Partial<OpenFile> = {
    path: FILE,
    read: (buffer, position) => {
      const part = bytes.subarray(position, position + buffer.length);
      buffer.set(part);
      return Promise.resolve(part.length);
    },
    close: () => Promise.resolve(),
  };
  return { open: () => Promise.resolve(file) } as unknown as FileSystem;
}

export function opener(bytes: Uint8Array): () => Promise<LedgerSource> {
  return () => Promise.resolve(bytesSource(bytes, FILE));
}
