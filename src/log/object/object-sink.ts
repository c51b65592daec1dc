/**
 * Where a tile tree is published: objects under keys such as `tile/0/000`, each written once, and one, the checkpoint, that is replaced.
 * Two publishers at once, and one that dies at any point, leave a tree that is whole:
 *
 *     putNew      never changes what is there: the same bytes are fine, others are an error
 *     replaceIf   changes only what was read, so that no checkpoint is lost or goes back
 *
 * A folder (`folder-sink.ts`) and an S3 bucket (`s3-sink.ts`) are such places.
 */

import { NorthrootError } from '../../base/error.js';

export interface StoredObject {
  /** Whole; undefined if they are more than were asked for, or if it is no plain file. */
  readonly bytes: Uint8Array | undefined;
  /** Names this state of the object, as an ETag does; empty where a lock makes it needless. */
  readonly tag: string;
}

/** Keys have no empty part, no `.` and no `..`. */
export interface ObjectSink {
  /** For messages: printable, without secrets. */
  readonly name: string;
  /** Where each read is a request: what a published checkpoint covers is then not compared unless that is asked for. */
  readonly isRemote: boolean;
  /** How many `putNew` may run at once. */
  readonly concurrency: number;
  /** The place of an object, for messages. */
  nameOf(key: string): string;
  /**
   * Reads an object of at most `limit` bytes; undefined if it seems missing, which proves nothing: it may have been written just now.
   * @throws NorthrootError as the place does
   */
  get(key: string, limit: number, signal?: AbortSignal): Promise<StoredObject | undefined>;
  /**
   * Makes ready for writing; called once, before anything is written.
   * @throws NorthrootError `TREE_LOCKED`, `NOT_A_TILE_TREE` (the folder is a ledger), `OBJECT_STORE_UNFIT` (the store does not keep the
   *   conditions that are relied on)
   */
  begin(signal?: AbortSignal): Promise<void>;
  /**
   * Writes an object unless there is one. Durable after {@link flush}.
   * @returns `kept` if these very bytes were there before
   * @throws NorthrootError `TILE_MISMATCH` if other bytes are there
   */
  putNew(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'written' | 'kept'>;
  /** Makes what `putNew` wrote durable. */
  flush(): Promise<void>;
  /**
   * Replaces the object that was read as `expected`, or writes the first one if that is undefined; durable on return.
   * @throws NorthrootError `FILE_CHANGED` if there is another one by now
   */
  replaceIf(
    key: string,
    bytes: Uint8Array,
    expected: StoredObject | undefined,
    signal?: AbortSignal,
  ): Promise<void>;
  /** Removes the objects right below a key whose last part is `isOwn`; returns how many. A place that cannot list lacks this. */
  prune?(below: string, isOwn: (name: string) => boolean): Promise<number>;
  /** Gives back what {@link begin} took. */
  close(): Promise<void>;
}

export function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;
}

export function tileMismatch(name: string): NorthrootError {
  return new NorthrootError('TILE_MISMATCH', `${name} is not what the ledger's tree has there`, {
    hint: 'what was published is not changed: find out what did, or write the tree to another place',
  });
}

export function changedMeanwhile(name = ''): NorthrootError {
  return new NorthrootError('FILE_CHANGED', `${name} was changed while the tiles were written`, {
    hint: 'run the command again; if it happens again, find out what changes it',
  });
}
