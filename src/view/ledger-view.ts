/**
 * Asking a ledger about single records, its accounts and its tree: by its index, where it has one, else by reading it. What is answered
 * is the same. What an index does not know, and what it says is wrong, is asked of the ledger; an index that contradicts the ledger is
 * rebuilt.
 */

import { join } from 'node:path';
import { IndexFault, IndexGap } from '../cache/entry-store.js';
import type { IndexedState } from '../cache/indexed-state.js';
import { LedgerIndex, isIndexed, positionOf, type IndexNotice } from '../cache/ledger-index.js';
import type { RecordReader } from '../cache/record-reader.js';
import { NorthrootError } from '../error.js';
import { nodeFileSystem } from '../fs/file-system.js';
import type { OpenLedger } from '../ledger/read-lines.js';
import {
  makeConsistencyProof,
  makeProof,
  type MadeConsistencyProof,
  type MadeProof,
  type ProofOptions,
  type RecordProofOptions,
} from '../proof/make-proof.js';
import { indexBasis } from '../proof/proof-basis.js';
import { findRecord } from '../reader/find-record.js';
import type { ReadRecord } from '../reader/read-records.js';
import { replayTo } from '../reader/replay.js';
import { explainIndexedEvent, explainEvent, type EventHistory } from '../report/event-history.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { FileStore } from '../store/file-store.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { openLedger } from '../tile/open-ledger.js';
import type { VerifyState } from '../verify/state.js';

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

interface Asked {
  readonly view: IndexedState;
  readonly records: RecordReader;
  readonly store: LedgerStore;
}

/** Whether an index that is not there is made: for questions for which the whole ledger has to be verified otherwise. */
type Making = 'make' | 'use';

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

  /** Proves that a record stands in the ledger. @throws NorthrootError as `makeProof`. */
  makeProof(wanted: string, options: RecordProofOptions = {}): Promise<MadeProof> {
    return this.#ask(
      'use',
      ({ records }) => makeProof(indexBasis(records), wanted, options),
      () => makeProof(this.#open, wanted, options),
    );
  }

  /** Proves that the ledger extends an older checkpoint. @throws NorthrootError as `makeConsistencyProof`. */
  makeConsistencyProof(oldNote: Uint8Array, options: ProofOptions = {}): Promise<MadeConsistencyProof> {
    return this.#ask(
      'use',
      ({ records }) => makeConsistencyProof(indexBasis(records), oldNote, options),
      () => makeConsistencyProof(this.#open, oldNote, options),
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
        await assertWhole(asked);
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
        await assertWhole(asked);
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

  async #ask<T>(
    making: Making,
    ofIndex: (asked: Asked) => Promise<T>,
    ofLedger: () => Promise<T>,
  ): Promise<T> {
    try {
      const answer = await this.#askIndex(making, ofIndex);
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
  ): Promise<{ readonly value: T } | undefined> {
    const { index: isUsed = true, trust, signal, onNotice } = this.#options;
    const path = await namedLikeSource(this.path);
    if (!isUsed || path === undefined || !(await isIndexed(path))) return undefined;
    const store = await FileStore.open(path);
    let index: LedgerIndex | undefined;
    try {
      index = await LedgerIndex.open(path, { create: making === 'make', onNotice });
      if (index === undefined) return undefined;
      const view = await index.view(store, trust);
      await index.catchUp(view, store, signal);
      const records = view.records(nodeFileSystem);
      try {
        return { value: await ofIndex({ view, records, store }) };
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
async function assertWhole({ view, store }: Asked): Promise<void> {
  for await (const stored of store.read(positionOf(view.state))) {
    if (stored.kind === 'torn') throw new IndexGap();
    // What others have just written is not asked for; but the store has to come to the end.
    if (stored.kind === 'lines') for (const line of stored.lines) void line;
  }
}

function unknown(): never {
  throw new IndexGap();
}
