/** Where an index keeps its entries: texts by key, read synchronously and written in batches. */

/** A set entry, or a removed one if it has no value. */
export interface EntryChange {
  readonly key: string;
  readonly value: string | undefined;
}

/** A range of keys, in code unit order. */
export interface EntryRange {
  readonly prefix: string;
  /** Inclusive. */
  readonly from?: string;
  readonly limit?: number;
}

/** Keys are printable ASCII. */
export interface EntryStore {
  /** @throws IndexFault when the store is damaged */
  get(key: string): string | undefined;
  /** Whether each key has an entry, damaged or not. @throws IndexFault */
  has(keys: readonly string[]): Promise<readonly boolean[]>;
  list(range: EntryRange): AsyncIterable<readonly [key: string, value: string]>;
  /** Atomic, also when the process is killed. */
  write(changes: readonly EntryChange[]): Promise<void>;
  close(): Promise<void>;
}

/** An index is damaged: it is rebuilt. Never shown to a user. */
export class IndexFault extends Error {
  override readonly name = 'IndexFault';
}

/** An entry fails its checksum. */
export class DamagedEntry extends IndexFault {
  /** The stored bytes. */
  readonly found: string;

  constructor(found: string) {
    super('an entry is damaged');
    this.found = found;
  }
}

/** An index lacks the answer: the ledger is read. Never shown to a user. */
export class IndexGap extends Error {
  override readonly name = 'IndexGap';
}
