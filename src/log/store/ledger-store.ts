/**
 * Where a ledger is kept: bytes and places, nothing of events. A store gives the lines of one ledger in order, and appends further
 * ones *if what is stored last is still what the caller believes*: whatever else goes wrong, no ledger forks. What sequences
 * (`writer/`) works over this and knows no files.
 *
 * `test/store/` holds what every store must do; a new one has to pass it.
 */

import { NorthrootError } from '../../base/error.js';
import type { RawLine } from '../../format/record/line-splitter.js';

/** What is stored last. */
export interface StoredEnd {
  /** Whole lines before the end. */
  readonly size: number;
  /** base64url leaf hash (RFC 6962) of the last line; without one the empty tree's hash. */
  readonly tip: string;
}

/** Where reading has come to: right after a whole line, or before the first. Plain data, which may be kept and gone on from later. */
export interface StorePosition extends StoredEnd {
  /** The file of the last line; empty before the first. */
  readonly file: string;
  /** In that file, from 1, the number of the line that comes next; and where it begins, in bytes. */
  readonly line: number;
  readonly byteOffset: number;
}

/** Where the next line will stand. */
export type NextPlace = Pick<StorePosition, 'file' | 'line' | 'byteOffset'>;

/** What reading comes across, in order. */
export type Stored =
  /** A file begins. `firstSeq`: the number of its first record, as its name promises it, where the store has more than one file. */
  | { readonly kind: 'file'; readonly file: string; readonly firstSeq: number | undefined }
  /** Whole lines of that file. Each must be used up before the next is taken, and all before reading goes on. */
  | {
      readonly kind: 'lines';
      readonly file: string;
      readonly firstSeq: number | undefined;
      readonly lines: Iterable<RawLine>;
    }
  /**
   * A file ends within a line: in the last one a crash has left it, or a writer is in the midst of a write; in another one it is
   * damage. `start`: at most its first 64 bytes.
   */
  | {
      readonly kind: 'torn';
      readonly file: string;
      readonly isLast: boolean;
      readonly offset: number;
      readonly start: Uint8Array;
    };

/** A torn tail that was saved and cut off. */
export interface SavedTail {
  /** The ledger's file. */
  readonly path: string;
  /** Where the bytes are now. */
  readonly savedTo: string;
  /** Where they began, in bytes: the file's size from now on. */
  readonly offset: number;
  readonly length: number;
}

/** How {@link LedgerStore.acquire} waits. */
export interface AcquireOptions {
  /** For how long, in milliseconds; 0: not at all. */
  readonly timeoutMs: number;
  /** Aborting ends the wait with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called once, when the wait takes longer than a second. */
  readonly onWait?: (() => void) | undefined;
}

/** The right to append: nobody else has it until it is released. */
export interface Turn {
  /** Gives it back; what is done with the store until then is not waited for. Again, it does nothing. */
  release(): Promise<void>;
}

/** See the head of this file. A store is used by one writer; several writers have several, of the same ledger. */
export interface LedgerStore {
  /** What messages call it: for files the path. */
  readonly name: string;

  /**
   * What is stored, from a position on, or from the beginning. Without a turn the end of it may still change: see `confirm`.
   *
   * @throws NorthrootError `LEDGER_CONFLICT` when what stands before the position is not what stood there; as the store does.
   */
  read(from?: StorePosition): AsyncIterable<Stored>;

  /**
   * Where the next line will stand, with the turn held. A store of several files may begin one.
   *
   * @param seq - The number of the record that comes next, for the name of a file.
   */
  nextPlace(seq: number): Promise<NextPlace>;

  /**
   * Appends lines, each with its `\n`, and brings them to the disk: all, or none as far as that can be said.
   *
   * @param expected - What the caller takes for stored last.
   * @throws NorthrootError `LEDGER_CONFLICT` when something else is stored last; nothing is written then. As the store does, when
   *   they could not be written or it is not certain that they were.
   */
  appendIf(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void>;

  /**
   * Waits for the right to append, first come, first served as far as it goes. A store that has no locks gives it at once, and
   * leaves the rest to `appendIf`.
   *
   * @throws NorthrootError `LEDGER_LOCKED` when it could not be had in time; as the store does.
   */
  acquire(options: AcquireOptions): Promise<Turn>;

  /**
   * That the store still is what its name leads to, and all that was read of it is there to stay.
   *
   * @throws NorthrootError `FILE_CHANGED`; as the store does.
   */
  confirm(): Promise<void>;

  /** With the turn held, and all read: saves a torn tail and cuts it off. Undefined where there is none. */
  settleTornTail(): Promise<SavedTail | undefined>;

  /**
   * Waits until there is more after a position, or until the store is not what it was.
   *
   * @throws the signal's reason when it is aborted. Settles, too, when the store is closed.
   */
  waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void>;

  /** Text that is another one once anybody has changed what is stored; undefined where that cannot be told. */
  stamp?(): Promise<string | undefined>;

  /** The same text, where nobody but this store has changed anything since `stamp` was asked for; undefined otherwise. */
  ownStamp?(): Promise<string | undefined>;

  /** With the turn held: takes away what opening made, when nothing was appended to it. */
  discard(): Promise<void>;

  /** Gives up everything. */
  close(): Promise<void>;
}

/** What {@link LedgerStore.appendIf} and {@link LedgerStore.read} say of a ledger that has gone another way. */
export function conflict(name: string): NorthrootError {
  return new NorthrootError(
    'LEDGER_CONFLICT',
    `${name} does not end as expected: someone else appended to it`,
    {
      hint: 'read on from where the ledger is known, and try again',
    },
  );
}

/** Misuse: what needs the turn was asked for without it. */
export function needsTurn(): TypeError {
  return new TypeError('the store was not acquired: this needs the turn');
}
