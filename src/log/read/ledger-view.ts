/**
 * Answers questions about records, accounts and the tree, from the index if there is one, else from the ledger; answers are the same. What
 * the index lacks or gets wrong is read from the ledger; a wrong index is rebuilt.
 */

import { join } from 'node:path';
import { presentTime } from '../../base/clock.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { OpenLedger } from '../../rules/source/read-lines.js';
import { endVerification } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { IndexFault, IndexGap } from '../cache/entry-store.js';
import type { IndexedState } from '../cache/indexed-state.js';
import { indexFolder, type IndexNotice, isIndexed, LedgerIndex } from '../cache/ledger-index.js';
import type { RecordReader } from '../cache/record-reader.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { isStoreUrl, placeName } from '../fs/place.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { openStore } from '../store/open-store.js';
import { openLedger } from '../tile/tile-tree.js';
import { findEvents, findRecord, readDeclaredKeys, type ReadRecord, replayTo } from './read-records.js';
import { type EventHistory, explainEvent, explainIndexedEvent } from './event-history.js';
import { type LedgerStatus, type LedgerStatusOptions, readLedgerStatus, toLedgerStatus } from './status.js';

export interface ViewOptions {
  /**
   * The folder of the ledger's index, a copy that this machine keeps. true: beside a large ledger in files, else none; false: none.
   * Default true.
   */
  readonly index?: string | boolean | undefined;
  /** Default: none; the keys that the ledger declares count. */
  readonly trust?: TrustPolicy | undefined;
  /** Opens the ledger, if not by its path. */
  readonly open?: OpenLedger | undefined;
  /** Opens its store, if not by its path, for an index in a named folder. It is closed after each use. */
  readonly openStore?: (() => Promise<LedgerStore>) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when an index is rebuilt. */
  readonly onNotice?: ((notice: IndexNotice) => void) | undefined;
}

export interface InspectOptions {
  /** Load open actions and waiting links, of which there may be many. Default true. */
  readonly lists?: boolean | undefined;
}

type StatusOptions = Omit<LedgerStatusOptions, 'trust' | 'signal'>;

interface Asked {
  readonly view: IndexedState;
  readonly records: RecordReader;
  /** A file ends within a line. */
  readonly isTorn: boolean;
}

/** Whether to create a missing index, where the whole ledger would be verified otherwise. */
type Making = 'make' | 'use';

const STATUS_OPTIONS: OptionTypes<StatusOptions> = {
  checkpoints: 'array',
  now: 'string',
  onProgress: 'function',
};

/** Errors that no further reading can change. */
const CERTAIN = new Set(['RECORD_AMBIGUOUS', 'USAGE']);

/** A ledger to query; see the head of this file. Nothing stays open between calls. */
export class LedgerView {
  /** The path; of a URL its name, without password and options. */
  readonly path: string;
  readonly #options: ViewOptions;
  readonly #open: OpenLedger;

  /**
   * @param path - A file or folder, or the URL of a database
   * @throws NorthrootError `STORE_URL_INVALID`
   */
  constructor(path: string, options: ViewOptions = {}) {
    this.path = placeName(path);
    this.#options = options;
    this.#open = options.open ?? (() => openLedger(path));
  }

  /** @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix. @throws NorthrootError as `findRecord` */
  findRecord(wanted: string): Promise<ReadRecord> {
    return this.#ask(
      'use',
      async ({ records }) => (await records.find(wanted)) ?? unknown(),
      async () => findRecord(await this.#open(), wanted, this.#options.signal),
    );
  }

  /**
   * The first record of each of some events, by its id: the index is opened, or the ledger read, once.
   * @param eventIds - `sha-256:…`
   * @throws NorthrootError as `findEvents`
   */
  findEvents(eventIds: readonly string[]): Promise<Map<string, ReadRecord>> {
    return this.#ask(
      'use',
      async ({ records }) => {
        const found = new Map<string, ReadRecord>();
        for (const eventId of eventIds) {
          this.#options.signal?.throwIfAborted();
          found.set(eventId, (await records.find(eventId)) ?? unknown());
        }
        return found;
      },
      async () => findEvents(await this.#open(), eventIds, this.#options.signal),
    );
  }

  /**
   * Declared keys by keyid: at least those of `keyids` that exist. Unverified. The ledger is read if the index lacks one.
   * @throws NorthrootError as `readDeclaredKeys`
   */
  findDeclaredKeys(keyids: readonly string[]): Promise<Map<string, PublicKey>> {
    return this.#ask(
      'use',
      ({ view }) => {
        const keys = keyids.map((keyid) => view.state.keyring.find(keyid)?.publicKey);
        const found = keys.filter((key) => key !== undefined);
        // A key that no admin signed for is declared, but not in the keyring.
        if (found.length < keys.length) throw new IndexGap();
        return Promise.resolve(new Map(found.map((key) => [key.keyid, key])));
      },
      async () => readDeclaredKeys(await this.#open(), this.#options.signal),
    );
  }

  /** The history of an event's record. @throws NorthrootError as `findRecord` and `explainEvent` */
  explainEvent(wanted: string): Promise<EventHistory> {
    const { trust, signal } = this.#options;
    return this.#ask(
      'make',
      async ({ view, records }) => {
        const record = (await records.find(wanted)) ?? unknown();
        return explainIndexedEvent(records, view.state, record.seq);
      },
      async () => {
        const record = await findRecord(await this.#open(), wanted, signal);
        return explainEvent(this.#open, record, trust, signal);
      },
    );
  }

  /** At most `count` last records, in order; undefined if the ledger must be read. */
  async listLast(count: number): Promise<readonly ReadRecord[] | undefined> {
    return this.#ask<readonly ReadRecord[] | undefined>(
      'use',
      async (asked) => {
        const { records } = asked;
        assertWhole(asked);
        if (!records.isReadable) throw new IndexGap();
        const list: ReadRecord[] = [];
        for (let at = Math.max(0, records.size - count); at < records.size; at += 1)
          list.push((await records.read(at)) ?? unknown());
        return list;
      },
      () => Promise.resolve(undefined),
    );
  }

  /**
   * Passes the verification state of the whole ledger to `look`, which MUST NOT change or keep it, and is called again if an index turns
   * out to be damaged.
   * @throws what `look` throws; NorthrootError when the ledger cannot be read
   */
  async inspect<T>(
    look: (state: VerifyState) => T | Promise<T>,
    { lists = true }: InspectOptions = {},
  ): Promise<T> {
    const { trust, signal } = this.#options;
    let thrown: { readonly error: unknown } | undefined;
    const seen = await this.#ask(
      'make',
      async (asked) => {
        const { view } = asked;
        assertWhole(asked);
        if (lists) await view.loadAll();
        try {
          return await look(view.state);
        } catch (error) {
          if (error instanceof IndexFault) throw error;
          thrown = { error };
          return undefined;
        }
      },
      async () => look(await replayTo(await this.#open(), 'end', trust, signal)),
    );
    if (thrown !== undefined) throw thrown.error;
    return seen as T;
  }

  /**
   * As `readLedgerStatus`. With `checkpoints` the ledger is read.
   * @throws NorthrootError when it cannot be read; TypeError, RangeError for a bad option
   */
  async readStatus(options: StatusOptions = {}): Promise<LedgerStatus> {
    checkOptions('LedgerView.readStatus', options, STATUS_OPTIONS);
    const { trust, signal } = this.#options;
    const { now = presentTime(), checkpoints = [], onProgress } = options;
    const read = async (): Promise<LedgerStatus> =>
      readLedgerStatus(await this.#open(), { ...options, now, trust, signal });
    if (checkpoints.length > 0 || !isTimestamp(now)) return read();
    return this.#ask(
      'make',
      async (asked) => {
        const { view, records } = asked;
        assertWhole(asked);
        if (!records.isReadable) throw new IndexGap();
        await view.loadAll();
        const result = endVerification(view.state, view.firstFindings(), [this.path], now);
        const [first, last] =
          records.size === 0 ? [] : [await records.read(0), await records.read(records.size - 1)];
        return toLedgerStatus(result, [first?.event['occurred_at'], last?.event['occurred_at']], now);
      },
      read,
      onProgress,
    );
  }

  /** Queries records and tree hashes, for proofs. `ofIndex` MAY throw IndexGap to have the ledger read. */
  askRecords<T>(
    ofIndex: (asked: Pick<Asked, 'view' | 'records'>) => Promise<T>,
    ofLedger: (open: OpenLedger) => Promise<T>,
  ): Promise<T> {
    return this.#ask('use', ofIndex, () => ofLedger(this.#open));
  }

  async #ask<T>(
    making: Making,
    ofIndex: (asked: Asked) => Promise<T>,
    ofLedger: () => Promise<T>,
    onProgress?: (bytes: number, size: number | undefined) => void,
  ): Promise<T> {
    try {
      const answer = await this.#askIndex(making, ofIndex, onProgress);
      if (answer !== undefined) return answer.value;
    } catch (error) {
      if (this.#options.signal?.aborted === true) throw error;
      const isDoubtful = error instanceof NorthrootError && !CERTAIN.has(error.code);
      if (!isDoubtful && !(error instanceof IndexGap)) throw error;
    }
    return ofLedger();
  }

  /** The store whose lines the index has; undefined where there is to be no index. */
  async #openIndexed(folder: string | undefined): Promise<LedgerStore | undefined> {
    const { index = true, openStore: open } = this.#options;
    if (index === false) return undefined;
    if (open !== undefined) return folder === undefined ? undefined : open();
    if (isStoreUrl(this.path)) return folder === undefined ? undefined : openStore(this.path);
    const path = await namedLikeSource(this.path);
    const hasIndex = path !== undefined && (folder !== undefined || (await isIndexed(path)));
    return hasIndex ? openStore(path) : undefined;
  }

  /** Undefined without an index, or with a damaged one. */
  async #askIndex<T>(
    making: Making,
    ofIndex: (asked: Asked) => Promise<T>,
    onProgress: ((bytes: number, size: number | undefined) => void) | undefined,
  ): Promise<{ readonly value: T } | undefined> {
    const { trust, signal, onNotice } = this.#options;
    const folder = indexFolder(this.#options.index);
    const store = await this.#openIndexed(folder);
    if (store === undefined) return undefined;
    let index: LedgerIndex | undefined;
    try {
      index = await LedgerIndex.open(store.name, { folder, create: making === 'make', onNotice });
      if (index === undefined) return undefined;
      const view = await index.view(store, trust, signal);
      const { isTorn } = await index.catchUp(view, store, {
        signal,
        onProgress: (bytes) => onProgress?.(bytes, undefined),
      });
      return { value: await ofIndex({ view, records: view.records(store), isTorn }) };
    } catch (error) {
      if (!(error instanceof IndexFault)) throw error;
      await index?.rebuild(error.message);
      return undefined;
    } finally {
      await index?.close();
      await store.close();
    }
  }
}

/** The path by which the index names files as a source does; undefined if it cannot. */
async function namedLikeSource(path: string): Promise<string | undefined> {
  const kind = await nodeFileSystem.kindOf(path);
  if (kind === 'file') return path;
  if (kind !== 'folder') return undefined;
  const folder = join(path).replace(/\/+$/, '');
  return join(folder, 'name') === `${folder}/name` ? folder : undefined;
}

/** Torn lines are findings that the index does not have. */
function assertWhole({ isTorn, view }: Asked): void {
  const { files, segment } = view.state.damage;
  if (isTorn || files > 0 || segment !== undefined) throw new IndexGap();
}

function unknown(): never {
  throw new IndexGap();
}
