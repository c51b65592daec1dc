/**
 * A ledger open for appending (SPEC §4). Several processes may have it open; each holds the write lock for a group, so every append rests
 * on all earlier records. An append is acknowledged when its record is on disk. See `group-commit.ts` for groups, `admission.ts` for rules,
 * `store/` for storage.
 * When a write or sync fails, or the path was replaced, the store is cut back and this ledger refuses further work: after a failed sync the
 * state of the disk is unknown, and a retry would not help.
 */

import { defined } from '../../base/defined.js';
import { toDigestText } from '../../base/value/digest.js';
import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { LedgerView, type ViewOptions } from '../read/ledger-view.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { closeParts, openParts, type OpenParts } from './open.js';
import {
  type Appended,
  assertLedgerOptions,
  type CheckpointResult,
  type Entry,
  nowOf,
  type OpeningOptions,
  willSeal,
} from './options.js';
import type { OtherRecord } from './running-verification.js';
import type { WatchedRecords, WatchOptions } from './watch.js';
import { ask, type AskOptions, type Decided, type DecideOptions } from './withdrawal.js';

export type { Appended, CheckpointResult, Entry, Notice } from './options.js';

export interface LedgerOptions extends OpeningOptions {
  /** Called with each new checkpoint once it is on disk; MAY call {@link Ledger.publishNote}. */
  readonly onCheckpoint?: ((checkpoint: CheckpointResult, ledger: Ledger) => void) | undefined;
}

/** A ledger open for appending; see the head of this file. */
export class Ledger {
  /** The path, or the store's name. */
  readonly path: string;
  readonly #options: LedgerOptions;
  readonly #parts: OpenParts;
  #closing: Promise<void> | undefined;

  private constructor(parts: OpenParts, options: LedgerOptions) {
    this.path = parts.store.name;
    this.#options = options;
    this.#parts = parts;
  }

  /**
   * Opens a file, a folder of segments, or a store, and verifies it. A torn tail is saved beside it and cut off, with a notice.
   * @throws TypeError, RangeError naming a bad option; EventError for malformed genesis options
   * @throws NorthrootError `FILE_NOT_FOUND`, `LEDGER_LOCKED` (by another writer), `LOCK_UNAVAILABLE`, `NOT_A_LEDGER`, `LEDGER_TAIL_INVALID`
   *   (the last record cannot be built on), `SEGMENT_MISSING`, `SEGMENT_MISPLACED`, or as the store does
   */
  static async open(place: string | LedgerStore, options: LedgerOptions = {}): Promise<Ledger> {
    assertLedgerOptions(options);
    const open: { as?: Ledger } = {};
    const parts = await openParts(place, options, (made) => options.onCheckpoint?.(made, open.as as Ledger));
    return (open.as = new Ledger(parts, options));
  }

  get origin(): string {
    return this.#parts.running.genesis.origin;
  }

  /** The keys of genesis and key events that are not revoked. */
  listKeys(): Promise<Key[]> {
    return this.inspect(() => this.#parts.rules.keys());
  }

  /** The genesis event's. */
  get principalId(): string {
    return this.#parts.running.genesis.principal_id;
  }

  /** The genesis event's id, `sha-256:…`. */
  get genesisId(): string {
    return toDigestText(this.#parts.running.genesis.event_id.b64);
  }

  /** Records known to be on disk. Other writers' are included after the next group, or by {@link Ledger.watch}. */
  get size(): number {
    return this.#parts.running.size;
  }

  /**
   * Passes the verification of all records, other writers' included, to `look`.
   * @param look - MUST NOT change or keep its arguments; MUST load a table before listing it (`await state.signers.load?.()`); MUST NOT
   *   wait for this ledger: other writers wait until its promise settles. Called again if an index turns out to be damaged. The second
   *   argument is what decisions rest on: the verification by the trust policy, if there is one.
   * @throws what `look` throws; as {@link Ledger.append}
   */
  inspect<T>(
    look: (state: VerifyState, deciding: VerifyState) => T | Promise<T>,
    options: AskOptions = {},
  ): Promise<T> {
    const { running, commits } = this.#parts;
    return ask<T>(options.signal, (promised) => {
      commits.assertOpen();
      const resolve = promised.resolve as (seen: unknown) => void;
      const sees = (): unknown => look(running.state, running.deciding);
      commits.add({ ...promised, kind: 'look', look: sees, givenAt: nowOf(this.#options), resolve });
    });
  }

  /** What is recorded, to be asked by record or by account, through this ledger's index. It MUST have been opened by its path. */
  view({ trust, signal }: Pick<ViewOptions, 'trust' | 'signal'> = {}): LedgerView {
    return new LedgerView(this.path, defined({ index: this.#options.index, trust, signal }));
  }

  /** The ledger as it is stored now, to be read from its beginning. @throws TypeError when closed; as the store does */
  async source(): Promise<LedgerSource> {
    const { commits, store } = this.#parts;
    commits.assertOpen();
    return store.source();
  }

  /**
   * Appends an event. The promise settles when the record is on disk, or certainly is not. Calls MAY overlap: those that wait together
   * share one write and one sync, in call order.
   * @returns The event's position, or that of the existing event
   * @throws EventError for an invalid event (its first fault's code); TypeError unless it is plain JSON
   * @throws NorthrootError `SIGNATURE_MISSING`, `SIGNATURE_INVALID`, `KEY_UNKNOWN`, `KEY_NOT_FOR_…` if the record would not verify;
   *   `CHECKPOINT_…`, `ORIGIN_MISMATCH` for a misfit checkpoint or attestation; `PREV_EVENT_NOT_FOUND`, `GENESIS_MISPLACED`,
   *   `LINE_TOO_LONG`; `LEDGER_LOCKED` by another writer, which may be retried; `LEDGER_FAILED` after a failed write or a replaced ledger
   */
  append(entry: Entry, options: AskOptions = {}): Promise<Appended> {
    const { commits, maker } = this.#parts;
    return ask<Appended>(options.signal, ({ withdrawal, resolve, reject }) => {
      commits.assertUsable();
      try {
        const prepared = maker.prepare(entry);
        const { givenAt } = prepared;
        commits.add({ kind: 'event', prepared, givenAt, withdrawal, resolve, reject });
      } catch (error) {
        commits.noteRefusal();
        throw error;
      }
    });
  }

  /**
   * Appends an event that depends on the ledger: nothing comes between the query and the record.
   * @param makes - Given the verification of all earlier records, returns the event synchronously. MUST NOT change the state. Called again
   *   after a conflict in a store without locks. If it throws, nothing is appended.
   * @param options - `before` and `after`: entries of the same group, so that all are on disk at once
   * @returns The event's position, and what `after` appended
   * @throws NorthrootError `LEDGER_INVALID` for broken evidence; as {@link Ledger.append}
   */
  decide(makes: (state: VerifyState) => Entry, options: DecideOptions = {}): Promise<Decided> {
    const { commits } = this.#parts;
    const { signal, before, after, mayWait, ignoresState, expects } = options;
    return ask<Decided>(signal, (promised) => {
      commits.assertUsable();
      const givenAt = nowOf(this.#options);
      const given = { makes, before, after, mayWait, ignoresState, expects, givenAt };
      commits.add({ ...promised, kind: 'decision', ...given });
    });
  }

  /**
   * Whether an event could be appended now, for callers that act before they record. MUST be called within {@link Ledger.decide} or {@link
   * Ledger.inspect}.
   * @throws as {@link Ledger.append}, except for what depends on the event's place
   */
  assertAdmissible(entry: Entry): void {
    const { commits, maker, rules } = this.#parts;
    commits.assertUsable();
    const prepared = maker.prepare(entry);
    if (!rules.has(prepared.line)) maker.assertAdmits(prepared);
  }

  /**
   * Appends a checkpoint of all earlier records, its note signed by `noteSigners`. Requires the option `checkpoints`. A ledger that does
   * not verify is not sealed.
   * @param principalId - Default: the ledger's
   * @throws NorthrootError `LEDGER_INVALID`; `SIGNATURE_MISSING` without a signer; `KEY_UNSUPPORTED`, `KEY_UNKNOWN`, `KEY_NOT_FOR_ROLE`, …;
   *   as {@link Ledger.append}. TypeError without the option.
   */
  checkpoint(principalId?: string, options: AskOptions = {}): Promise<CheckpointResult> {
    const { commits } = this.#parts;
    return ask<CheckpointResult>(options.signal, (promised) => {
      commits.assertUsable();
      if (!willSeal(this.#options)) throw new TypeError('the ledger was opened without checkpoints');
      commits.add({ ...promised, kind: 'checkpoint', givenAt: nowOf(this.#options), principalId });
    });
  }

  /**
   * Other writers' records from now on, in order, with their findings. A slow consumer misses some, and receives their number. Ends when
   * the ledger is closed; fails as {@link Ledger.append} does.
   */
  watch(options: WatchOptions = {}): WatchedRecords {
    const { commits, watchers } = this.#parts;
    commits.assertUsable();
    return watchers.watch(options);
  }

  /**
   * Subscribes to other writers' records, called synchronously in ledger order, before own records follow them. Unlike {@link Ledger.watch}
   * it does not poll, and misses none. The listener MUST NOT throw; it MAY withdraw requests by their signals. Returns an unsubscribe
   * function.
   */
  onOther(listener: (record: OtherRecord) => void): () => void {
    return this.#parts.watchers.listen(listener);
  }

  /**
   * Reads other writers' records, without the write lock, so that the next request need not. For who may have to decide at any time.
   * @throws as {@link Ledger.append}; what cannot be read is left to the next request
   */
  readOn(): Promise<void> {
    return this.#parts.commits.readOn();
  }

  /**
   * Publishes a checkpoint's note in a file, atomically and durably, in call order. A later checkpoint published by another process stays.
   * {@link Ledger.close} waits for it.
   * @param path - In an existing folder
   * @throws NorthrootError `LEDGER_FAILED`, writing nothing, if the ledger was replaced; `LEDGER_LOCKED`; as the file system does.
   *   TypeError when closed.
   */
  publishNote(path: string, note: string): Promise<void> {
    return this.#parts.publisher.publish(path, note);
  }

  /**
   * Judges one line of a checkpoint's note: `valid` if it counts, `invalid` if it names a declared key but does not count, else `unknown`.
   */
  checkCosignature(
    checkpoint: SignedCheckpoint,
    line: NoteSignature,
  ): Promise<'valid' | 'invalid' | 'unknown'> {
    const { rules } = this.#parts;
    return this.inspect(() => rules.judgeCosignature(checkpoint, line, nowOf(this.#options)));
  }

  /**
   * Waits for pending requests, and closes the ledger. @throws NorthrootError when closing fails; failed appends reject their own promises
   */
  close(): Promise<void> {
    return (this.#closing ??= closeParts(this.#parts));
  }
}
