/**
 * Asking a ledger about single records, its accounts and its tree: by its index, where it has one, else by reading it. What is answered
 * is the same. What an index does not know, and what it says is wrong, is asked of the ledger; an index that contradicts the ledger is
 * rebuilt.
 */

import { join } from 'node:path';
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
import { type IndexNotice, isIndexed, LedgerIndex } from '../cache/ledger-index.js';
import type { RecordReader } from '../cache/record-reader.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { FileStore } from '../store/file-store.js';
import { openLedger } from '../tile/open-ledger.js';
import { readDeclaredKeys } from './declared-keys.js';
import { type EventHistory, explainEvent, explainIndexedEvent } from './event-history.js';
import { findRecord } from './find-record.js';
import type { ReadRecord } from './read-records.js';
import { replayTo } from './replay.js';
import { type LedgerStatus, type LedgerStatusOptions, readLedgerStatus, toLedgerStatus } from './status.js';

/** How a {@link LedgerView} looks. */
export interface ViewOptions {
  /** Whether the index beside a large ledger is used. Default: true. Without it the ledger is read for each question. */
  readonly index?: boolean | undefined;
  /** The trust policy by which the ledger is verified. Default: none, the keys that it declares count. */
  readonly trust?: TrustPolicy | undefined;
  /** Opens the ledger to be read, where that is not simply its path. */
  readonly open?: OpenLedger | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told when an index is rebuilt, and why. */
  readonly onNotice?: ((notice: IndexNotice) => void) | undefined;
}

/** What {@link LedgerView.inspect} looks for. */
export interface InspectOptions {
  /** Whether open actions and links that wait are listed, of which there may be many. Default: true. */
  readonly lists?: boolean | undefined;
}

/** How {@link LedgerView.readStatus} reads: what the view does not say already. */
export type StatusOptions = Omit<LedgerStatusOptions, 'trust' | 'signal'>;

interface Asked {
  readonly view: IndexedState;
  readonly records: RecordReader;
  /** Whether something follows the last whole line. */
  readonly isTorn: boolean;
}

/** Whether an index that is not there is made: for questions for which the whole ledger has to be verified otherwise. */
type Making = 'make' | 'use';

const STATUS_OPTIONS: OptionTypes<StatusOptions> = {
  checkpoints: 'array',
  now: 'string',
  onProgress: 'function',
};

/** What is so however much of a ledger is looked at. */
const CERTAIN = new Set(['RECORD_AMBIGUOUS', 'USAGE']);

/** A ledger that is asked; see the head of this file. Nothing is open between two questions. */
export class LedgerView {
  readonly path: string;
  readonly #options: ViewOptions;
  readonly #open: OpenLedger;

  /** @param path - The ledger's file or folder. */
  constructor(path: string, options: ViewOptions = {}) {
    this.path = path;
    this.#options = options;
    this.#open = options.open ?? (() => openLedger(path));
  }

  /**
   * The one record that is meant.
   *
   * @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix of one.
   * @throws NorthrootError as `findRecord`.
   */
  findRecord(wanted: string): Promise<ReadRecord> {
    return this.#ask(
      'use',
      async ({ records }) => (await records.find(wanted)) ?? unknown(),
      async () => findRecord(await this.#open(), wanted, this.#options.signal),
    );
  }

  /**
   * Public keys that the ledger declares, by keyid: those of `keyids` that it has, and perhaps others. Nothing is verified: what is
   * there is the ledger's own claim. Without an index, or where it does not have them all, the ledger is read.
   *
   * @throws NorthrootError as `readDeclaredKeys`.
   */
  findDeclaredKeys(keyids: readonly string[]): Promise<Map<string, PublicKey>> {
    return this.#ask(
      'use',
      ({ view }) => {
        const keys = keyids.map((keyid) => view.state.keyring.find(keyid)?.publicKey);
        const found = keys.filter((key) => key !== undefined);
        // What no admin signed for is declared all the same.
        if (found.length < keys.length) throw new IndexGap();
        return Promise.resolve(new Map(found.map((key) => [key.keyid, key])));
      },
      async () => readDeclaredKeys(await this.#open(), this.#options.signal),
    );
  }

  /** The history of one event, by what names its record. @throws NorthrootError as `findRecord` and `explainEvent`. */
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

  /**
   * The last records, in order.
   *
   * @param count - At most so many.
   * @returns undefined where it takes reading the ledger to find them.
   */
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
   * Looks at what verification says of the whole ledger.
   *
   * @param look - Called once, or again where an index turns out to be damaged; it changes nothing and keeps nothing.
   * @throws what `look` throws; NorthrootError when the ledger cannot be read.
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
   * How the ledger stands, as `readLedgerStatus` tells it. With checkpoints that the user holds the ledger is read.
   *
   * @throws NorthrootError when it cannot be read. TypeError, RangeError for a bad option.
   */
  async readStatus(options: StatusOptions = {}): Promise<LedgerStatus> {
    checkOptions('LedgerView.readStatus', options, STATUS_OPTIONS);
    const { trust, signal } = this.#options;
    const { now = new Date().toISOString(), checkpoints = [], onProgress } = options;
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
        return toLedgerStatus(result, { first: first?.bytes, last: last?.bytes }, now);
      },
      read,
      onProgress,
    );
  }

  /**
   * Asks for records and hashes of the tree, as proofs do.
   *
   * @param ofIndex - May throw an IndexGap for what the index does not know: then the ledger is asked.
   */
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

  /** Undefined where there is no index, or where it is wrong. */
  async #askIndex<T>(
    making: Making,
    ofIndex: (asked: Asked) => Promise<T>,
    onProgress: ((bytes: number, size: number | undefined) => void) | undefined,
  ): Promise<{ readonly value: T } | undefined> {
    const { index: isUsed = true, trust, signal, onNotice } = this.#options;
    const path = await namedLikeSource(this.path);
    if (!isUsed || path === undefined || !(await isIndexed(path))) return undefined;
    const store = await FileStore.open(path);
    let index: LedgerIndex | undefined;
    try {
      index = await LedgerIndex.open(path, { create: making === 'make', onNotice });
      if (index === undefined) return undefined;
      const view = await index.view(store, trust, signal);
      const { isTorn } = await index.catchUp(view, store, {
        signal,
        onProgress: (bytes) => onProgress?.(bytes, undefined),
      });
      const records = view.records(nodeFileSystem);
      try {
        return { value: await ofIndex({ view, records, isTorn }) };
      } finally {
        await records.close();
      }
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

/** The path under which an index names files as reading the ledger does; undefined where it cannot. */
async function namedLikeSource(path: string): Promise<string | undefined> {
  const kind = await nodeFileSystem.kindOf(path);
  if (kind === 'file') return path;
  if (kind !== 'folder') return undefined;
  const folder = join(path).replace(/\/+$/, '');
  return join(folder, 'name') === `${folder}/name` ? folder : undefined;
}

/** What follows the last whole line is something to be said, and the index does not have it. */
function assertWhole({ isTorn, view }: Asked): void {
  const { files, segment } = view.state.damage;
  if (isTorn || files > 0 || segment !== undefined) throw new IndexGap();
}

function unknown(): never {
  throw new IndexGap();
}
