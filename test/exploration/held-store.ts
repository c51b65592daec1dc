/**
 * A ledger in memory whose appends wait to be let through: what happens between reading and appending is for the exploration to choose.
 * There is no lock, as over a database: writers meet in `appendIf` alone.
 */

import {
  conflict,
  type LedgerStore,
  type NextPlace,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from '../../src/log/store/ledger-store.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';

const FILE = 'world';
const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));

/** The lines, each with its `\n`. */
export type Lines = Uint8Array[];

/** Lets an append through, when its time has come; never, for who is no more. */
export type Hold = (lines: readonly Uint8Array[]) => Promise<void>;

export class HeldStore implements LedgerStore {
  readonly name = FILE;
  readonly durability = 'local';
  readonly #lines: Lines;
  readonly #hold: Hold | undefined;

  /** @param lines - Shared with the other writers of this ledger */
  constructor(lines: Lines, hold?: Hold) {
    this.#lines = lines;
    this.#hold = hold;
  }

  async *read(from?: StorePosition): AsyncGenerator<Stored, void, void> {
    const { size = 0, tip = EMPTY_TIP, byteOffset = 0 } = from ?? {};
    this.#assertEnd({ size, tip }, size);
    let offset = byteOffset;
    const lines = this.#lines.slice(size).map((line, index) => {
      const raw = { bytes: line.subarray(0, -1), length: line.length - 1, offset, number: size + index + 1 };
      offset += line.length;
      return { ...raw, terminated: true, longLeafHash: undefined };
    });
    if (size === 0) yield { kind: 'file', file: FILE, firstSeq: undefined };
    yield await Promise.resolve({ kind: 'lines', file: FILE, firstSeq: undefined, lines });
  }

  async appendIf(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void> {
    const own = lines.map((line) => Uint8Array.from(line));
    await this.#hold?.(own);
    this.#assertEnd(expected, this.#lines.length);
    this.#lines.push(...own);
  }

  nextPlace(): Promise<NextPlace> {
    const byteOffset = this.#lines.reduce((sum, { length }) => sum + length, 0);
    return Promise.resolve({ file: FILE, line: this.#lines.length + 1, byteOffset });
  }

  acquire(): Promise<WriteLock> {
    return Promise.resolve({ release: () => Promise.resolve() });
  }

  readLine(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  source(): Promise<LedgerSource> {
    return Promise.reject(new TypeError('nothing here reads it whole'));
  }

  confirm(): Promise<void> {
    return Promise.resolve();
  }

  settleTornTail(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  waitForMore(): Promise<void> {
    return Promise.resolve();
  }

  discard(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #assertEnd({ size, tip }: StoredEnd, at: number): void {
    const last = this.#lines[size - 1];
    const own = size === 0 ? EMPTY_TIP : last && hashToBase64url(leafHash(last.subarray(0, -1)));
    if (size !== at || own !== tip) throw conflict(FILE);
  }
}
