/**
 * The interface of a store: lines and positions, without events. It returns a ledger's lines in order, and appends lines only *if the last
 * stored line is the one that the caller expects*, so no ledger can fork. `writer/` works over it and knows no files. A new store MUST pass
 * `test/store/`.
 */

import { NorthrootError } from '../../base/error.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';

/** What acknowledged records survive: a crash of the machine that keeps them, or also the loss of that machine. */
export type Durability = 'local' | 'replicated';

export interface StoredEnd {
  /** Whole lines. */
  readonly size: number;
  /** base64url leaf hash (RFC 6962) of the last line, or the empty tree's. */
  readonly tip: string;
}

/** A reading position, after a whole line or before the first. Plain data, which may be saved. */
export interface StorePosition extends StoredEnd {
  /** The last line's file; empty before the first. */
  readonly file: string;
  /** The next line's number in that file, from 1, and its offset. */
  readonly line: number;
  readonly byteOffset: number;
}

export type NextPlace = Pick<StorePosition, 'file' | 'line' | 'byteOffset'>;

export interface LinePlace {
  /** From 0, in the order of the ledger. */
  readonly ordinal: number;
  readonly file: string;
  readonly byteOffset: number;
  /** Without its `\n`. */
  readonly byteLength: number;
}

/** What reading yields, in order. */
export type Stored =
  /** A file begins. `firstSeq`: the number in a segment's name. */
  | { readonly kind: 'file'; readonly file: string; readonly firstSeq: number | undefined }
  /** Whole lines. Each MUST be used before the next is taken, and all before reading continues. */
  | {
      readonly kind: 'lines';
      readonly file: string;
      readonly firstSeq: number | undefined;
      readonly lines: Iterable<RawLine>;
    }
  /** A file ends within a line: the last one after a crash or during a write; any other is damaged. `start`: at most its first 64 bytes. */
  | {
      readonly kind: 'torn';
      readonly file: string;
      readonly isLast: boolean;
      readonly offset: number;
      readonly start: Uint8Array;
    };

export interface SavedTail {
  readonly path: string;
  /** The path of the copy. */
  readonly savedTo: string;
  /** In bytes: the file's new size. */
  readonly offset: number;
  readonly length: number;
}

export interface AcquireOptions {
  /** In milliseconds; 0 does not wait. */
  readonly timeoutMs: number;
  /** Aborting ends the wait with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called once, when the wait exceeds a second. */
  readonly onWait?: (() => void) | undefined;
}

/** The write lock: exclusive until released. */
export interface WriteLock {
  /** Does not wait for operations of the store. Idempotent. */
  release(): Promise<void>;
  /** Whether another writer waits for the lock, as far as can be told. Asked while the lock is in use. */
  isWanted?(): Promise<boolean>;
}

/** A store serves one writer; several writers of a ledger have a store each. */
export interface LedgerStore {
  /** For messages; the path of files. */
  readonly name: string;

  readonly durability: Durability;

  /**
   * Stored lines from a position, or from the beginning. Without the write lock the end may still change: see `confirm`.
   * @throws NorthrootError `LEDGER_CONFLICT` if the line before the position is another one; as the store does
   */
  read(from?: StorePosition): AsyncIterable<Stored>;

  /** A line without its `\n`; undefined if no line is exactly there. @throws as the store does */
  readLine(place: LinePlace): Promise<Uint8Array | undefined>;

  /** The ledger as it is now, to be verified. @throws as the store does */
  source(): Promise<LedgerSource>;

  /** Requires the write lock. A store of several files may begin one, named by `seq`, the next record's number. */
  nextPlace(seq: number): Promise<NextPlace>;

  /**
   * Requires the write lock. Appends lines, each with its `\n`, durably: all of them, or none as far as is known.
   * @param onWritten - A store whose stamp differs after lines are appended SHOULD call it when they are written, before they are durable,
   *   and wait for it. It never rejects.
   * @throws NorthrootError `LEDGER_CONFLICT` unless the last line is as `expected`, writing nothing; as the store does, if writing failed
   *   or its success is unknown
   */
  appendIf(expected: StoredEnd, lines: readonly Uint8Array[], onWritten?: () => Promise<void>): Promise<void>;

  /**
   * Acquires the write lock, about first come, first served. A store without locks returns at once and relies on `appendIf`.
   * @throws NorthrootError `LEDGER_LOCKED` after the timeout; as the store does
   */
  acquire(options: AcquireOptions): Promise<WriteLock>;

  /**
   * Confirms that the store is still the named one, and makes durable all that was read.
   * @throws NorthrootError `FILE_CHANGED`; as the store does
   */
  confirm(): Promise<void>;

  /** Requires the write lock, and that all was read. Saves a torn tail and cuts it off; undefined if there is none. */
  settleTornTail(): Promise<SavedTail | undefined>;

  /** Resolves when there is more after a position, when the store has changed, or is closed. @throws the signal's reason */
  waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void>;

  /** A text that differs after any change of stored lines, and MAY differ after lines are appended; undefined if unknown. */
  stamp?(): Promise<string | undefined>;

  /** The same, if only this store has changed anything since `stamp`; else undefined. */
  ownStamp?(): Promise<string | undefined>;

  /** Requires the write lock. Removes what opening created, if nothing was appended. */
  discard(): Promise<void>;

  close(): Promise<void>;
}

/** For a ledger that has diverged from the expected end. */
export function conflict(name: string): NorthrootError {
  return new NorthrootError(
    'LEDGER_CONFLICT',
    `${name} does not end as expected: someone else appended to it`,
    {
      hint: 'read on from where the ledger is known, and try again',
    },
  );
}

/** For misuse: the write lock is not held. */
export function needsLock(): TypeError {
  return new TypeError('the store is not locked: acquire it first');
}
