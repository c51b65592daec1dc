/**
 * A ledger open for appending (SPEC §4): what a program holds. Any number of processes may have the same ledger open; each takes the
 * turn for a group and gives it back, so that whoever appends stands on what all others wrote. An append is acknowledged when its
 * record is on disk. How it comes about is `group-commit.ts`; what may be written, `admission.ts`; where it is kept, `store/`.
 *
 * When a write or a sync fails, or the path names another file by then, the store is cut back to where it was and this ledger refuses
 * all further work: after a failed sync nobody knows what is on disk, and trying again would only pretend to.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { closeParts, openParts, type OpenParts } from './open.js';
import {
  type Appended,
  assertLedgerOptions,
  type CheckpointResult,
  type Entry,
  nowOf,
  type OpeningOptions,
} from './options.js';
import type { OtherRecord } from './running-verification.js';
import type { WatchedRecords, WatchOptions } from './watch.js';
import type { AskOptions, DecideOptions } from './withdrawal.js';

export type { Appended, CheckpointResult, Entry, Notice } from './options.js';

/** How a ledger is opened for appending. */
export interface LedgerOptions extends OpeningOptions {
  /** Called with each checkpoint that was made, once it is on disk; it may call {@link Ledger.publishNote}. */
  readonly onCheckpoint?: ((checkpoint: CheckpointResult, ledger: Ledger) => void) | undefined;
}

/** See the head of this file. */
export class Ledger {
  /** The file or folder, or what the store is called. */
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
   * Opens a ledger: a file, a folder of segments, or a store. What is there is verified; a torn tail is saved beside it and cut off,
   * with a notice.
   *
   * @throws TypeError, RangeError for an option that is none, by its name.
   * @throws NorthrootError `FILE_NOT_FOUND`, `LEDGER_LOCKED` (another writer kept the turn), `LOCK_UNAVAILABLE`, `NOT_A_LEDGER`,
   *   `LEDGER_TAIL_INVALID` (the last record cannot be built on), `SEGMENT_MISSING`, `SEGMENT_MISPLACED`, or as the store does.
   * @throws EventError when the genesis options are not of the right form.
   */
  static async open(place: string | LedgerStore, options: LedgerOptions = {}): Promise<Ledger> {
    assertLedgerOptions(options);
    const open: { as?: Ledger } = {};
    const parts = await openParts(place, options, (made) => options.onCheckpoint?.(made, open.as as Ledger));
    return (open.as = new Ledger(parts, options));
  }

  /** The log's unique name. */
  get origin(): string {
    return this.#parts.running.genesis.origin;
  }

  /** The keys that count for the next record: those of genesis and of key events, without those that were revoked. */
  listKeys(): Promise<Key[]> {
    return this.inspect(() => this.#parts.rules.keys());
  }

  /** Who made the ledger, as its genesis says. */
  get principalId(): string {
    return this.#parts.running.genesis.principal_id;
  }

  /** The id of the ledger's genesis event, `sha-256:…`. */
  get genesisId(): string {
    return toDigestText(this.#parts.running.genesis.event_id.b64);
  }

  /** How many records the ledger is known to have on disk. What others append is known after the next group, or by {@link Ledger.watch}. */
  get size(): number {
    return this.#parts.running.size;
  }

  /**
   * Looks at what verification says of all records so far, by the keys that the ledger declares; what others wrote by then is among
   * them.
   *
   * @param look - Called once, or again where an index turns out to be damaged; it changes nothing of what it is given, and keeps
   *   nothing of it. Nobody else writes until a promise that it gives is settled, which must not wait for this ledger itself.
   *   Where it lists what a table holds it loads that first, `await state.signers.load?.()`: over an index little is in memory.
   *   Its second argument is what decisions rest on: the verification by the trust policy, where the ledger was opened with one, and
   *   else the same.
   * @throws what `look` throws; as {@link Ledger.append}.
   */
  inspect<T>(
    look: (state: VerifyState, deciding: VerifyState) => T | Promise<T>,
    options: AskOptions = {},
  ): Promise<T> {
    return this.#parts.requests.inspect(look, options);
  }

  /**
   * Appends an event. The promise settles when the record is on disk, or when it is certain that it is not; calls need
   * not wait for each other, and those that wait together share one write and one sync, in the order of the calls.
   *
   * @returns The event's position; of an event that the ledger has already, its existing one.
   * @throws EventError when the event is not valid (the code of its first fault); TypeError when it is not plain JSON.
   * @throws NorthrootError `SIGNATURE_MISSING`, `SIGNATURE_INVALID`, `KEY_UNKNOWN`, `KEY_NOT_FOR_…` when the record would
   *   not verify; `CHECKPOINT_…` and `ORIGIN_MISMATCH` for a checkpoint or attestation that does not fit; `PREV_EVENT_NOT_FOUND`,
   *   `GENESIS_MISPLACED`, `LINE_TOO_LONG`; `LEDGER_LOCKED` when another writer kept the turn, and then it may be tried again;
   *   `LEDGER_FAILED` after a failed write, and when the ledger was replaced, renamed or removed.
   */
  append(entry: Entry, options: AskOptions = {}): Promise<Appended> {
    return this.#parts.requests.append(entry, options);
  }

  /**
   * Appends an event that depends on what the ledger says: nothing comes between the question and the record, of no process.
   *
   * @param makes - Called with the verification of every record before the event; it makes the event at once, and changes
   *   nothing of what it is given. It is called again where the store has no lock and another writer came first. What it throws is
   *   what the promise is rejected with, and nothing is appended.
   * @throws NorthrootError `LEDGER_INVALID` when the ledger's evidence is broken; as {@link Ledger.append}.
   */
  decide(makes: (state: VerifyState) => Entry, options: DecideOptions = {}): Promise<Appended> {
    return this.#parts.requests.decide(makes, options);
  }

  /**
   * Asks whether an event could be appended now, and writes nothing: for whoever must know before acting on it. To be asked within
   * {@link Ledger.decide} or {@link Ledger.inspect}.
   *
   * @throws what {@link Ledger.append} would reject with, as far as it does not depend on the event's place.
   */
  assertAdmissible(entry: Entry): void {
    const { commits, maker, rules } = this.#parts;
    commits.assertUsable();
    const prepared = maker.prepare(entry);
    if (!rules.has(prepared.line)) maker.admit(prepared);
  }

  /**
   * Appends a checkpoint of all records before it, its record signed by the ledger's signer and its note by `noteSigners`. The ledger
   * was opened with `checkpoints`. Nothing is sealed that does not verify.
   *
   * @param principalId - Who makes it; the maker of the ledger unless given.
   * @throws NorthrootError `LEDGER_INVALID` when the ledger's evidence is broken; `SIGNATURE_MISSING` without a signer;
   *   `KEY_UNSUPPORTED`, `KEY_UNKNOWN`, `KEY_NOT_FOR_ROLE`, … when its key may not; as {@link Ledger.append}. TypeError when the ledger
   *   was opened without `checkpoints`.
   */
  checkpoint(principalId?: string, options: AskOptions = {}): Promise<CheckpointResult> {
    return this.#parts.requests.checkpoint(principalId, options);
  }

  /**
   * Each record that others append from now on, in order, with what verification says of it. Those who do not take them in time miss
   * some, and are told how many. Ends when the ledger is closed; fails as {@link Ledger.append} does.
   */
  watch(options: WatchOptions = {}): WatchedRecords {
    const { commits, watchers } = this.#parts;
    commits.assertUsable();
    return watchers.watch(options);
  }

  /**
   * Tells of each record that others append from now on, when this ledger comes to know of it: before anything of its own is appended
   * behind that record. Unlike {@link Ledger.watch} it looks for none, and leaves none out.
   *
   * @param listener - Must not throw. What it withdraws by a signal is not appended any more.
   * @returns Ends it.
   */
  onOther(listener: (record: OtherRecord) => void): () => void {
    return this.#parts.watchers.listen(listener);
  }

  /**
   * Writes the note of a checkpoint of this ledger to a file, replacing it in one step: on disk when the promise settles. Several
   * are written in the order of the calls, and a later one that another process has published stays; {@link Ledger.close} waits for
   * them.
   *
   * @param path - The file, in a folder that is there.
   * @throws NorthrootError `LEDGER_FAILED`, nothing written, when the ledger's path no longer leads to this ledger; `LEDGER_LOCKED`
   *   when another writer kept the turn; as the file system does. TypeError when the ledger is closed.
   */
  publishNote(path: string, note: string): Promise<void> {
    return this.#parts.publisher.publish(path, note);
  }

  /**
   * What a line on one of this ledger's checkpoints is worth by the keys that the ledger declares: `valid` where it counts,
   * `invalid` where it names a key of the ledger's and does not count, `unknown` where no key of the ledger's has its name.
   */
  checkCosignature(
    checkpoint: SignedCheckpoint,
    line: NoteSignature,
  ): Promise<'valid' | 'invalid' | 'unknown'> {
    const { rules } = this.#parts;
    return this.inspect(() => rules.judgeCosignature(checkpoint, line, nowOf(this.#options)));
  }

  /**
   * Waits for what was appended, then gives the ledger up.
   *
   * @throws NorthrootError when closing fails. Failed appends are told to their callers, not here.
   */
  close(): Promise<void> {
    return (this.#closing ??= closeParts(this.#parts));
  }
}
