/** Opens the store of a ledger: its files, or its lines in a database. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { LedgerSource, Segment, SourceGrowth } from '../../rules/source/ledger-source.js';
import { isStoreUrl, placeName, placeUrl } from '../fs/place.js';
import { openScratchFile } from '../fs/scratch-file.js';
import { openLedgerSource } from '../fs/source.js';
import { FileStore, type FileStoreOptions } from './file-store.js';
import type { Durability, LedgerStore, StorePosition } from './ledger-store.js';

export { isStoreUrl } from '../fs/place.js';

export interface OpenStoreOptions extends FileStoreOptions {
  /** Refuse a database that gives less. Default `local`. */
  readonly requires?: Durability;
  /** Of a database: the place of its witness of positions, as for `PostgresStore.open`. */
  readonly positionWitness?: string;
  readonly signal?: AbortSignal;
}

export interface FollowStoreOptions {
  readonly signal: AbortSignal;
  readonly onCaughtUp?: (() => void) | undefined;
}

const NEWLINE = 0x0a;

/**
 * The store of a ledger at a path, or at a URL of PostgreSQL, `postgres://USER@HOST/DATABASE#NAME`, whose driver is loaded only then. The
 * store's name is the path, or the URL without password and options; in this process that name opens it again.
 * @throws NorthrootError `STORE_URL_INVALID`; `STORE_NOT_DURABLE` for files where `replicated` is required; `USAGE` for
 *   files where a witness of positions is named; as `FileStore.open` and `PostgresStore.open`
 */
export async function openStore(place: string, options: OpenStoreOptions = {}): Promise<LedgerStore> {
  const { requires, positionWitness: witness, signal, ...ofFiles } = options;
  if (!isStoreUrl(place)) {
    if (witness !== undefined) throw notWitnessed(place);
    if (requires === 'replicated') throw notReplicated(place);
    return FileStore.open(place, ofFiles);
  }
  placeName(place);
  const { PostgresStore } = await import('../postgres/postgres-store.js');
  const { create } = ofFiles;
  return PostgresStore.open(placeUrl(place), defined({ create, requires, witness, signal }));
}

/** For a store that keeps less than is required. */
export function notReplicated(name: string): NorthrootError {
  return new NorthrootError('STORE_NOT_DURABLE', `${printable(name)} keeps records on one machine`, {
    hint: 'require less, or keep the ledger in a database with a synchronous standby',
  });
}

function notWitnessed(name: string): NorthrootError {
  return new NorthrootError('USAGE', `${printable(name)} is no ledger in a database: it has no witness`, {
    hint: 'keep its position instead',
  });
}

/**
 * The lines of a ledger, to be verified. A database is opened when they are read, and closed after the last.
 * @throws NorthrootError as {@link openStore} for a URL, and `openLedgerSource` for a path
 */
export async function openStoreSource(place: string): Promise<LedgerSource> {
  if (!isStoreUrl(place)) return openLedgerSource(place);
  const store = await openStore(place);
  try {
    return new LateSource(place, await store.source()).toSource();
  } finally {
    await store.close();
  }
}

/** A source that opens its store when it is read; see {@link openStoreSource}. */
class LateSource {
  readonly #place: string;
  readonly #known: LedgerSource;
  #growth: SourceGrowth | undefined;

  constructor(place: string, known: LedgerSource) {
    this.#place = place;
    this.#known = known;
  }

  toSource(): LedgerSource {
    const { paths, size, readAfter } = this.#known;
    return {
      paths,
      size,
      segments: this.#read(),
      findGrowth: () => Promise.resolve(this.#growth),
      openScratch: openScratchFile,
      ...(readAfter && { readAfter: (prefix, signal) => this.#readAfter(prefix, signal) }),
    };
  }

  async *#read(): AsyncGenerator<Segment, void, void> {
    const store = await openStore(this.#place);
    try {
      const { segments, findGrowth } = await store.source();
      yield* segments;
      this.#growth = await findGrowth?.();
    } finally {
      await store.close();
    }
  }

  async #readAfter(
    ...given: Parameters<Required<LedgerSource>['readAfter']>
  ): ReturnType<Required<LedgerSource>['readAfter']> {
    const store = await openStore(this.#place);
    let isRead = false;
    try {
      const { readAfter, findGrowth } = await store.source();
      const rest = await readAfter?.(...given);
      if (rest === undefined) return undefined;
      isRead = true;
      const close = async (): Promise<void> => {
        try {
          await rest.close();
          this.#growth = await findGrowth?.();
        } finally {
          await store.close();
        }
      };
      return { ...rest, close };
    } finally {
      if (!isRead) await store.close();
    }
  }
}

/**
 * Follows a ledger in a database: its lines, then each new one, until the signal aborts.
 * @throws NorthrootError as {@link openStore}; while reading, `LEDGER_CONFLICT` when it was rolled back
 */
export async function followStore(place: string, options: FollowStoreOptions): Promise<LedgerSource> {
  const store = await openStore(place);
  const { name } = store;
  await store.close();
  const segment = { file: name, firstSeq: undefined, chunks: followLines(place, options) };
  return { paths: [name], size: undefined, segments: once(segment), openScratch: openScratchFile };
}

async function* followLines(
  place: string,
  { signal, onCaughtUp }: FollowStoreOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const store = await openStore(place, { signal });
  try {
    let at: StorePosition = { size: 0, tip: '', file: store.name, line: 1, byteOffset: 0 };
    let isNew = true;
    while (!signal.aborted) {
      for await (const stored of store.read(at.size === 0 ? undefined : at)) {
        if (signal.aborted) return;
        if (stored.kind !== 'lines') continue;
        const lines: Uint8Array[] = [];
        for (const { bytes } of stored.lines) lines.push(Uint8Array.from(bytes));
        const last = lines.at(-1);
        if (last === undefined) continue;
        const chunk = Buffer.concat(lines.flatMap((line) => [line, Uint8Array.of(NEWLINE)]));
        at = {
          size: at.size + lines.length,
          tip: hashToBase64url(leafHash(last)),
          file: stored.file,
          line: at.line + lines.length,
          byteOffset: at.byteOffset + chunk.length,
        };
        yield chunk;
      }
      if (isNew) onCaughtUp?.();
      isNew = false;
      await store.waitForMore(at, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await store.close();
  }
}

async function* once<T>(item: T): AsyncGenerator<T, void, void> {
  yield await Promise.resolve(item);
}
