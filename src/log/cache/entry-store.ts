/** Where an index keeps its entries: texts by keys, read at once and written together. */

/** An entry that is set, or removed where it has no value. */
export interface EntryChange {
  readonly key: string;
  readonly value: string | undefined;
}

/** Which keys are listed, in the order of their code units. */
export interface EntryRange {
  readonly prefix: string;
  /** From this key on; after it where `isAfter` says so. */
  readonly from?: string;
  readonly limit?: number;
}

/** See the head of this file. Keys are printable ASCII. */
export interface EntryStore {
  /** @throws IndexFault when what is stored is damaged */
  get(key: string): string | undefined;
  /** Of each key whether it has an entry, which may be a damaged one. @throws IndexFault when that cannot be read */
  has(keys: readonly string[]): Promise<readonly boolean[]>;
  list(range: EntryRange): AsyncIterable<readonly [key: string, value: string]>;
  /** All of the changes, or none: also when the process is killed. */
  write(changes: readonly EntryChange[]): Promise<void>;
  close(): Promise<void>;
}

/** Why an index is not believed: it is rebuilt. Never an error that a user sees. */
export class IndexFault extends Error {
  override readonly name = 'IndexFault';
}

/** An entry that is not as it was written. */
export class DamagedEntry extends IndexFault {
  /** What is stored, whatever that is. */
  readonly found: string;

  constructor(found: string) {
    super('an entry is damaged');
    this.found = found;
  }
}

/** What an index does not know, without being wrong: the ledger is asked. Never an error that a user sees. */
export class IndexGap extends Error {
  override readonly name = 'IndexGap';
}

/** Entries in memory. */
export class MemoryEntries implements EntryStore {
  readonly #entries = new Map<string, string>();

  get(key: string): string | undefined {
    return this.#entries.get(key);
  }

  has(keys: readonly string[]): Promise<boolean[]> {
    return Promise.resolve(keys.map((key) => this.#entries.has(key)));
  }

  async *list({
    prefix,
    from = prefix,
    limit = Infinity,
  }: EntryRange): AsyncGenerator<readonly [string, string]> {
    await Promise.resolve();
    const keys = [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && key >= from).sort();
    for (const key of keys.slice(0, limit)) yield [key, this.#entries.get(key) as string];
  }

  write(changes: readonly EntryChange[]): Promise<void> {
    for (const { key, value } of changes) {
      if (value === undefined) this.#entries.delete(key);
      else this.#entries.set(key, value);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
