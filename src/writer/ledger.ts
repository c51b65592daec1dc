/**
 * The writer of a ledger (SPEC §4). One process at a time holds it, under a lock that dies with the process. An append
 * is acknowledged when its record is on disk; records that wait together are written together:
 *
 *     flock → read all → [sign, chain] → one write(2) → fdatasync(2) → is it still the file of that name? → acknowledge
 *
 * When a write or a sync fails, or the path names another file by then, the file is cut back to where it was and the writer refuses all further work: after a
 * failed sync nobody knows what is on disk, and trying again would only pretend to.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { completeDraft, type AnyEvent } from '../event/build.js';
import { payloadOf } from '../event/identity.js';
import { EventError, assertEvent } from '../event/validate.js';
import { nodeFileSystem, replaceFile, type FileSystem, type OpenFile } from '../fs/file-system.js';
import { canonicalText } from '../json/canonicalize.js';
import { examineLine, type SignatureEntry } from '../ledger/examine-line.js';
import { MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import { formatRecord } from '../ledger/record.js';
import { checkRecord } from '../schema/check.js';
import type {
  AttestationEvent,
  CheckpointEvent,
  GenesisEvent,
  Key,
  KeyEvent,
  TrustPolicy,
} from '../schema/generated/types.js';
import type { SignedCheckpoint } from '../note/checkpoint.js';
import type { NoteSignature } from '../note/signed-note.js';
import { assertSignsRecords, signEvent, type Signer } from '../signature/signer.js';
import type { Finding } from '../finding/finding.js';
import { readWireKey } from '../key/wire-key.js';
import { digestFromBase64url } from '../value/digest.js';
import type { EventVerdict, VerifyState } from '../verify/state.js';
import type { ChainTip } from './chain-tip.js';
import {
  assertAttests,
  assertFits,
  assertSchedule,
  makeCheckpoint,
  timeToCheckpoint,
  type CheckpointSchedule,
} from './checkpoint.js';
import { makeGenesis, type GenesisOptions } from './genesis.js';
import {
  assertInPlace,
  closeLedgerFiles,
  joinPath,
  misplacedSegment,
  openLedgerFiles,
  segmentName,
  type LedgerFiles,
} from './ledger-files.js';
import { RunningVerification, type Judged, type MadeLine } from './running-verification.js';
import { SignatureGuard } from './signature-guard.js';
import type { Survey } from './survey.js';
import { readGenesis, settleTornTail, type SavedTail } from './torn-tail.js';

/** Something that the user should hear of, though it is no failure. */
export type Notice =
  | { readonly code: 'LEDGER_CREATED'; readonly path: string; readonly origin: string }
  | ({ readonly code: 'TORN_TAIL_SAVED' } & SavedTail)
  | { readonly code: 'LEDGER_WAITING'; readonly path: string }
  | { readonly code: 'LEDGER_DAMAGED'; readonly path: string; readonly lines: number }
  | { readonly code: 'CHECKPOINT_FAILED'; readonly path: string; readonly error: NorthrootError };

/** How a ledger is opened for appending. */
export interface LedgerOptions {
  /** Signs every event appended. Without it events go in with the signatures that they bring. */
  readonly signer?: Signer;
  /** Makes the ledger when it is not there (or is empty), with this genesis; without it that is an error. */
  readonly create?: GenesisOptions;
  /** How long to wait for another writer, in milliseconds. Default 10,000. */
  readonly lockTimeoutMs?: number;
  /** Aborting ends the wait for another writer, and the verification before a checkpoint, with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * Whether nothing is appended after an event that was refused: those that were given after it are refused too, as
   * `NOT_REACHED`. For streams, whose sender mends the event and goes on from it.
   */
  readonly stopsAtRefusal?: boolean;
  /**
   * Whether an event is refused that would make the ledger invalid, such as an execution of an authorization that is not there.
   * Evidence of a broken bound is taken all the same: that is what a ledger is for.
   */
  readonly strict?: boolean;
  /** For `occurred_at` where a draft has none: the present as a timestamp of SPEC §2. */
  readonly now?: () => string;
  /** For `principal_id` where a draft has none. */
  readonly principalId?: string;
  /** In a folder, a segment of at least so many bytes is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number;
  /** Whether {@link Ledger.checkpoint} will be asked for: opening then verifies every signature. */
  readonly checkpoints?: boolean;
  /** Whether {@link Ledger.decide} will be asked for: opening then verifies every signature. */
  readonly decides?: boolean;
  /** Decisions rest on what this policy says of the ledger; without it, on the keys that the ledger declares. */
  readonly trust?: TrustPolicy;
  /** Makes checkpoints by itself, when they are due; the signer's key must be one that may. */
  readonly checkpointEvery?: CheckpointSchedule;
  /**
   * The keys that sign the notes of checkpoints, Ed25519 or ML-DSA-44, each once: with one of either kind a note is hybrid. Records
   * are signed by `signer` all the same. Default: `signer`.
   */
  readonly noteSigners?: readonly Signer[];
  /** Told of each checkpoint that was made, once it is on disk; {@link Ledger.publishNote} may be called from it. */
  readonly onCheckpoint?: (checkpoint: Checkpointed, ledger: Ledger) => void;
  readonly onNotice?: (notice: Notice) => void;
  /** For tests: every operation on files goes through it. */
  readonly fileSystem?: FileSystem;
}

/** What is appended: an event, and what travels beside it. */
export interface Entry {
  /** A draft (without ids, see `buildEvent`), or a whole event, which is checked. */
  readonly event: object;
  /** At most 4,096 bytes, strings only; outside every digest of the event. */
  readonly meta?: Readonly<Record<string, string>>;
  /** Signatures made before; the ledger's signer adds its own. */
  readonly signatures?: readonly SignatureEntry[];
  /**
   * Whether it has to be a record of its own, even where another says the same: the same content has the same id (SPEC §3), and
   * appending it again would be a no-op. A draft that the ledger has already is then followed, by `prev_event_id`, by another one.
   */
  readonly isAnew?: boolean;
  /** Whether it is refused, as `EVENT_DUPLICATE`, where the ledger has it already: that is no no-op then. */
  readonly refusesExisting?: boolean;
}

/** Where an event stands, on disk, when an append is acknowledged. */
export interface Appended {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  /** `exists`: the ledger had the event already, and nothing was written. */
  readonly status: 'appended' | 'exists';
  /** What verification says of the record, by the ledger's own keys; nothing of one that was there already. */
  readonly findings: readonly Finding[];
  /** Of a record that was appended. */
  readonly verdict: EventVerdict | undefined;
}

/** A checkpoint that was made. */
export interface Checkpointed extends Appended {
  /** The signed note, as it stands in the record: to be published, or kept elsewhere. */
  readonly note: string;
  readonly treeSize: number;
}

/** An entry that is complete, and of the right form. */
interface Prepared {
  readonly event: AnyEvent;
  readonly eventText: string;
  readonly meta: Entry['meta'];
  /** The signatures that it brings. */
  readonly given: readonly SignatureEntry[];
  readonly isAnew: boolean;
  readonly refusesExisting: boolean;
  /** When it was given: the time of a checkpoint that becomes due by it. */
  readonly givenAt: string;
}

interface Pending extends Prepared {
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/** A checkpoint that is asked for, made when its place is known. */
interface PendingCheckpoint {
  readonly givenAt: string;
  readonly principalId: string | undefined;
  /** Whether it is left out when records before it made one already. */
  readonly onlyWhenDue?: boolean;
  readonly resolve: (checkpoint: Checkpointed) => void;
  readonly reject: (error: unknown) => void;
}

/** An event that is made when its place is known. */
interface PendingDecision {
  readonly makes: (state: VerifyState) => Entry;
  readonly givenAt: string;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

type Waiting = Pending | PendingCheckpoint | PendingDecision;

const DEFAULT_LOCK_TIMEOUT_MS = 10_000;
const DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024;
/** One write and one sync take at most so much. */
const MAX_GROUP_RECORDS = 1_000;
/** The longest that Node's timers can wait; what is due later is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const MAX_GROUP_BYTES = 8 * 1024 * 1024;

/** A ledger open for appending. */
export class Ledger {
  readonly path: string;
  readonly #options: LedgerOptions;
  readonly #files: LedgerFiles;
  readonly #fileSystem: FileSystem;
  #genesis: GenesisEvent | undefined;
  /** Everything that was written, and what waits in the group that is being written. */
  #running: RunningVerification;
  #guard: SignatureGuard;
  /** Records on disk. */
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The size that the file appended to has, unless someone else writes to it. */
  #end: number;
  #queue: Waiting[] = [];
  #commits: Promise<void> | undefined;
  #failure: NorthrootError | undefined;
  /** Set when an event was refused and none may be given after it. */
  #stopped: NorthrootError | undefined;
  /** Set when that event stood in the queue: those behind it in the queue were given after it. */
  #cut: NorthrootError | undefined;
  /** Set when a checkpoint that was due could not be made. */
  #cannotSeal = false;
  #closing: Promise<void> | undefined;
  #publications: Promise<void> = Promise.resolve();
  /** Set when the files are closed, or about to be. */
  #isReleased = false;

  private constructor(
    files: LedgerFiles,
    options: LedgerOptions,
    survey: Survey,
    running: RunningVerification,
  ) {
    this.path = files.path;
    this.#options = options;
    this.#files = files;
    this.#fileSystem = options.fileSystem ?? nodeFileSystem;
    this.#running = running;
    this.#guard = new SignatureGuard(running.state);
    this.#end = survey.end;
  }

  /**
   * Opens a ledger, a file or a folder of segments, and holds it until {@link Ledger.close}. A torn tail is saved beside
   * it and cut off, with a notice.
   *
   * @throws NorthrootError `FILE_NOT_FOUND`, `LEDGER_LOCKED`, `LOCK_UNAVAILABLE`, `NOT_A_LEDGER`, `LEDGER_TAIL_INVALID`
   *   (the last record cannot be built on), `SEGMENT_MISSING`, `SEGMENT_MISPLACED`, or as the file system does.
   * @throws EventError when the genesis options are not of the right form.
   */
  static async open(path: string, options: LedgerOptions = {}): Promise<Ledger> {
    const fileSystem = options.fileSystem ?? nodeFileSystem;
    const { segmentBytes = DEFAULT_SEGMENT_BYTES, lockTimeoutMs = DEFAULT_LOCK_TIMEOUT_MS } = options;
    if (!(segmentBytes > 0)) throw new RangeError('segmentBytes must be above 0');
    if (!(lockTimeoutMs >= 0)) throw new RangeError('lockTimeoutMs must be at least 0');
    if (options.signer !== undefined) assertSignsRecords(options.signer.publicKey);
    if (options.checkpointEvery !== undefined) assertSchedule(options.checkpointEvery);
    const create = options.create !== undefined;
    // Made before anything is touched: a bad option leaves no empty file behind.
    const genesis = options.create && makeGenesis(options.create, options.signer?.publicKey, nowOf(options));
    const files = await openLedgerFiles(path, {
      fileSystem,
      create,
      lockTimeoutMs,
      signal: options.signal,
      onWait: () => options.onNotice?.({ code: 'LEDGER_WAITING', path }),
    });
    try {
      const { trust, signal } = options;
      const isAsked = options.decides === true && trust === undefined;
      const depth = willSeal(options) || isAsked ? 'all' : 'deciding';
      const { running, survey } = await RunningVerification.read(fileSystem, files, depth, trust, signal);
      const { misplaced } = survey;
      if (misplaced !== undefined) throw misplacedSegment(misplaced.path, misplaced.expected);
      const ledger = new Ledger(files, options, survey, running);
      const saved = await settleTornTail(fileSystem, files, survey);
      if (saved !== undefined) options.onNotice?.({ code: 'TORN_TAIL_SAVED', ...saved });
      if (survey.lines > 0) await ledger.#continue(survey);
      else await ledger.#begin(genesis);
      if (options.checkpointEvery !== undefined) ledger.#assertNoteSigners();
      ledger.#schedule();
      return ledger;
    } catch (error) {
      await abandon(fileSystem, files);
      throw error;
    }
  }

  /** The log's unique name. */
  get origin(): string {
    return this.#opened(this.#genesis).origin;
  }

  /** The keys that count for the next record: those of genesis and of key events, without those that were revoked. */
  get keys(): Key[] {
    return this.#guard.keys();
  }

  /** Who made the ledger, as its genesis says. */
  get principalId(): string {
    return this.#opened(this.#genesis).principal_id;
  }

  /** The id of the ledger's genesis event, `sha-256:…`. */
  get genesisId(): string {
    return `sha-256:${this.#opened(this.#genesis).event_id.b64}`;
  }

  /** How many records the ledger has on disk: the next one's `seq`. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends an event. The promise settles when the record is on disk, or when it is certain that it is not; calls need
   * not wait for each other, and those that wait together share one write and one sync, in the order of the calls.
   *
   * @returns The event's position; of an event that the ledger has already, its existing one.
   * @throws EventError when the event is not valid (the code of its first fault); TypeError when it is not plain JSON.
   * @throws NorthrootError `SIGNATURE_MISSING`, `SIGNATURE_INVALID`, `KEY_UNKNOWN`, `KEY_NOT_FOR_…` when the record would
   *   not verify; `CHECKPOINT_…` and `ORIGIN_MISMATCH` for a checkpoint or attestation that does not fit; `PREV_EVENT_NOT_FOUND`, `GENESIS_MISPLACED`, `LINE_TOO_LONG`; `LEDGER_FAILED` after a failed
   *   write, and when the ledger was replaced, renamed or removed.
   */
  append(entry: Entry): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#assertUsable();
      try {
        this.#queue.push({ ...this.#prepare(entry), resolve, reject });
      } catch (error) {
        this.#stopAfterRefusal();
        throw error;
      }
      this.#commits ??= this.#commitAll();
    });
  }

  /**
   * Appends an event that depends on what the ledger says: nothing comes between the question and the record.
   *
   * @param makes - Called with the verification of every record before the event, once; it makes the event at once, and changes
   *   nothing of what it is given. What it throws is what the promise is rejected with, and nothing is appended.
   * @throws NorthrootError `LEDGER_INVALID` (exit status 1) when the ledger's evidence is broken; as {@link Ledger.append}.
   */
  decide(makes: (state: VerifyState) => Entry): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#assertUsable();
      this.#queue.push({ makes, givenAt: nowOf(this.#options), resolve, reject });
      this.#commits ??= this.#commitAll();
    });
  }

  /** What verification says of all records so far, by the keys that the ledger declares; it goes on with the ledger, and is not to be changed. */
  get state(): VerifyState {
    return this.#running.state;
  }

  /**
   * Asks whether an event could be appended now, and writes nothing: for whoever must know before acting on it.
   *
   * @throws what {@link Ledger.append} would reject with, as far as it does not depend on the event's place.
   */
  assertAdmissible(entry: Entry): void {
    this.#assertUsable();
    const { event, eventText, given } = this.#prepare(entry);
    if (!this.#has(event)) this.#admit(event, eventText, given);
  }

  /**
   * Appends a checkpoint of all records before it, its record signed by the ledger's signer and its note by `noteSigners`. The ledger
   * was opened with `checkpoints`. Nothing is sealed that does not verify.
   *
   * @param principalId - Who makes it; the maker of the ledger unless given.
   * @throws NorthrootError `LEDGER_INVALID` (exit status 1) when the ledger's evidence is broken; `SIGNATURE_MISSING` without a signer; `KEY_UNSUPPORTED`, `KEY_UNKNOWN`, `KEY_NOT_FOR_ROLE`, … when
   *   its key may not; TypeError when the ledger was opened without `checkpoints`.
   */
  checkpoint(principalId?: string): Promise<Checkpointed> {
    return new Promise((resolve, reject) => {
      this.#assertUsable();
      if (!willSeal(this.#options)) throw new TypeError('the ledger was opened without checkpoints');
      this.#assertNoteSigners();
      this.#queue.push({ givenAt: nowOf(this.#options), principalId, resolve, reject });
      this.#commits ??= this.#commitAll();
    });
  }

  /**
   * Writes the note of a checkpoint of this ledger to a file, replacing it in one step: on disk when the promise settles. Several
   * are written in the order of the calls; {@link Ledger.close} waits for them.
   *
   * @param path - The file, in a folder that is there; `path` with `.new` appended is used on the way.
   * @throws NorthrootError `LEDGER_FAILED`, nothing written, when the ledger's path no longer leads to this ledger; as the file
   *   system does. TypeError when the ledger is closed.
   */
  async publishNote(path: string, note: string): Promise<void> {
    if (this.#isReleased) throw new TypeError('the ledger is closed');
    const confirm = async (): Promise<void> => {
      try {
        await assertInPlace(this.#files);
      } catch (error) {
        throw this.#fail(error);
      }
    };
    const fileSystem = this.#fileSystem;
    const published = this.#publications.then(() =>
      replaceFile(path, Buffer.from(note), { temporary: `${path}.new`, confirm, fileSystem }),
    );
    this.#publications = published.catch(() => undefined);
    await published;
  }

  /**
   * What a line on one of this ledger's checkpoints is worth by the keys that the ledger declares: `valid` where it counts,
   * `invalid` where it names a key of the ledger's and does not count, `unknown` where no key of the ledger's has its name.
   */
  checkCosignature(checkpoint: SignedCheckpoint, line: NoteSignature): 'valid' | 'invalid' | 'unknown' {
    const note = { ...checkpoint, signatures: [line] };
    const { counted, unknown } = this.#guard.judgeNote(note, nowOf(this.#options));
    if (unknown > 0) return 'unknown';
    return counted.length > 0 ? 'valid' : 'invalid';
  }

  #prepare(entry: Entry): Prepared {
    const { event, eventText } = this.#completeEvent(entry.event);
    if (event.event_type === 'genesis' && !this.#has(event)) {
      throw new NorthrootError(
        'GENESIS_MISPLACED',
        'only the first record of a ledger may be a genesis event',
        { exitStatus: 1 },
      );
    }
    const { meta, given } = this.#readCompanions(entry, event);
    // As it is now: what its owner does with it before it is written is no matter.
    const kept = JSON.parse(eventText) as AnyEvent;
    const isAnew = entry.isAnew === true;
    const refusesExisting = entry.refusesExisting === true;
    return { event: kept, eventText, meta, given, isAnew, refusesExisting, givenAt: nowOf(this.#options) };
  }

  #has({ event_id: { b64 } }: AnyEvent): boolean {
    return this.#running.state.events.find(b64) !== undefined;
  }

  #assertNoteSigners(): readonly Signer[] {
    const { signer, noteSigners = signer === undefined ? [] : [signer] } = this.#options;
    if (noteSigners.length === 0) {
      throw new NorthrootError('SIGNATURE_MISSING', 'a checkpoint must be signed, and there is no key', {
        hint: 'give the key with --key',
      });
    }
    const now = nowOf(this.#options);
    for (const { publicKey } of noteSigners) this.#guard.assertCheckpointKey(publicKey, now);
    return [...new Map(noteSigners.map((each) => [each.publicKey.keyid, each])).values()];
  }

  /**
   * Waits for what was appended, then gives the ledger up.
   *
   * @throws NorthrootError when closing fails. Failed appends are told to their callers, not here.
   */
  close(): Promise<void> {
    this.#closing ??= this.#giveUp();
    return this.#closing;
  }

  async #giveUp(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#commits;
    // What was committed may have set it again.
    clearTimeout(this.#timer);
    await this.#publications;
    this.#isReleased = true;
    await closeLedgerFiles(this.#files);
  }

  #completeEvent(event: object): { event: AnyEvent; eventText: string } {
    const isWhole = Object.hasOwn(event, 'event_id') || Object.hasOwn(event, 'payload_digest');
    if (isWhole) {
      assertEvent(event);
      return { event: event as AnyEvent, eventText: canonicalText(event) };
    }
    const { principalId } = this.#options;
    return completeDraft(event, {
      occurredAt: nowOf(this.#options),
      ...(principalId === undefined ? {} : { principalId }),
      ledgerId: this.genesisId,
    });
  }

  /** The meta and the signatures that an entry brings, as they are now: what its owner does with them later is no matter. */
  #readCompanions(entry: Entry, event: AnyEvent): { meta: Entry['meta']; given: readonly SignatureEntry[] } {
    const { meta, signatures = [] } = entry;
    if (meta === undefined && entry.signatures === undefined) return { meta, given: [] };
    const prev = { alg: 'sha-256', b64: this.#running.tip.prev };
    const [issue] = checkRecord({ event, ...(meta === undefined ? {} : { meta }), prev, seq: 0, signatures });
    if (issue !== undefined) throw new EventError([issue]);
    return { meta: meta && { ...meta }, given: signatures.map(({ keyid, sig }) => ({ keyid, sig })) };
  }

  /** The signatures that a new event goes in with, its signer's among them, when they are such as the ledger demands. */
  #admit(event: AnyEvent, eventText: string, given: readonly SignatureEntry[]): readonly SignatureEntry[] {
    if (event.event_type !== 'genesis') this.#guard.assertBound(event);
    const signatures = this.#sign(event, eventText, given);
    if (event.event_type === 'key') this.#guard.assertNews(event as unknown as KeyEvent);
    return signatures;
  }

  #sign(event: AnyEvent, eventText: string, given: readonly SignatureEntry[]): readonly SignatureEntry[] {
    const { signer } = this.#options;
    const bytes = Buffer.from(eventText);
    const isNew = signer !== undefined && !given.some(({ keyid }) => keyid === signer.publicKey.keyid);
    this.#guard.check(event, bytes, given, isNew ? signer.publicKey : undefined);
    return isNew ? [...given, signEvent(bytes, signer)] : given;
  }

  /** Runs until the queue is empty; what is appended meanwhile makes the next group. */
  async #commitAll(): Promise<void> {
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, MAX_GROUP_RECORDS);
      await this.#commit(group);
    }
    this.#commits = undefined;
    this.#schedule();
  }

  /** Sets the timer for the next checkpoint that is due by time alone. */
  #schedule(): void {
    const { checkpointEvery } = this.#options;
    clearTimeout(this.#timer);
    if (checkpointEvery === undefined || this.#cannotSeal) return;
    if (this.#closing !== undefined || this.#failure !== undefined) return;
    const wait = timeToCheckpoint(this.#running.tip, checkpointEvery, this.#since(), nowOf(this.#options));
    if (wait === Infinity) return;
    // At once, and so before what is appended next: what a ledger looks like is no matter of chance.
    if (wait === 0) {
      this.#makeWhenDue();
      return;
    }
    const make = (): void => {
      if (wait > MAX_TIMER_MS) this.#schedule();
      else this.#makeWhenDue();
    };
    this.#timer = setTimeout(make, Math.min(wait, MAX_TIMER_MS));
    // A timer alone keeps no process alive: at the end of its input the ledger is closed.
    this.#timer.unref();
  }

  /** Where the checkpoint cannot be made, the next append says why. */
  #makeWhenDue(): void {
    const stop = (error: unknown): void => this.#stop(error);
    const givenAt = nowOf(this.#options);
    this.#queue.push({
      givenAt,
      principalId: undefined,
      onlyWhenDue: true,
      resolve: () => undefined,
      reject: stop,
    });
    this.#commits ??= this.#commitAll();
  }

  #since(): string {
    return this.#opened(this.#genesis).occurred_at;
  }

  #stop(error: unknown): void {
    if (this.#cannotSeal) return;
    this.#cannotSeal = true;
    const reason = error instanceof NorthrootError ? error : this.#fail(error);
    this.#stopped ??= reason;
    this.#options.onNotice?.({ code: 'CHECKPOINT_FAILED', path: this.path, error: reason });
  }

  /** Chains, writes and syncs a group; gives what does not fit back to the queue. */
  async #commit(group: Waiting[]): Promise<void> {
    if (this.#failure !== undefined) {
      for (const pending of group) pending.reject(this.#failure);
      return;
    }
    const lines: Uint8Array[] = [];
    const outcomes: (() => void)[] = [];
    const made: Checkpointed[] = [];
    let bytes = 0;
    /** Set when an event was judged that is not to be written: what was learnt from it is forgotten. */
    let isAhead = false;
    try {
      if (this.#running.depth !== 'all' && (this.#needsAll(group) || this.#mayCheckpoint(group)))
        await this.#readAgain('all');
      await this.#beginSegmentIfFull();
    } catch (error) {
      this.#failure = this.#fail(error);
      for (const pending of group) pending.reject(this.#failure);
      return;
    }
    /** Adds a line to the group. */
    const put = (line: MadeLine): Judged => {
      const judged = this.#running.add(line, this.#pathOfNext());
      lines.push(line.bytes);
      bytes += line.bytes.length;
      return judged;
    };
    const putCheckpoint = (givenAt: string, principalId?: string): Checkpointed => {
      this.#running.assertSound();
      const { event, line } = this.#makeCheckpointLine(givenAt, principalId);
      const { seq } = this.#running.tip;
      const judged = put(line);
      const { note, tree_size: treeSize } = event;
      const eventId = `sha-256:${event.event_id.b64}`;
      const checkpoint = { seq, eventId, status: 'appended', note, treeSize, ...judged } as const;
      made.push(checkpoint);
      return checkpoint;
    };
    for (const [index, pending] of group.entries()) {
      if (bytes >= MAX_GROUP_BYTES || isAhead) {
        this.#queue.unshift(...group.splice(index));
        break;
      }
      const cut = this.#cut;
      if (cut !== undefined) {
        outcomes.push(() => pending.reject(cut));
        continue;
      }
      try {
        if ('principalId' in pending) {
          if (pending.onlyWhenDue === true && !this.#isCheckpointDue(pending.givenAt)) continue;
          const checkpoint = putCheckpoint(pending.givenAt, pending.principalId);
          outcomes.push(() => pending.resolve(checkpoint));
          continue;
        }
        const entry = this.#makeDistinct('makes' in pending ? this.#makeDecided(pending) : pending);
        const { b64 } = entry.event.event_id;
        const eventId = `sha-256:${b64}`;
        const existing = this.#running.state.events.find(b64);
        if (existing !== undefined) {
          const { seq } = existing;
          if (entry.refusesExisting) throw duplicate(eventId, seq);
          outcomes.push(() =>
            pending.resolve({ seq, eventId, status: 'exists', findings: [], verdict: undefined }),
          );
          continue;
        }
        const { seq } = this.#running.tip;
        const line = this.#makeAdmittedLine(entry);
        const judged = put(line);
        if (this.#options.strict === true && judged.verdict === 'invalid') {
          lines.pop();
          bytes -= line.bytes.length;
          isAhead = true;
          throw wouldInvalidate(judged.findings);
        }
        outcomes.push(() => pending.resolve({ seq, eventId, status: 'appended', ...judged }));
      } catch (error) {
        if ('principalId' in pending && pending.onlyWhenDue === true) {
          this.#stop(error);
          continue;
        }
        // A question that is not answered is no event that was refused.
        if (!('makes' in pending)) {
          this.#stopAfterRefusal();
          this.#cut = this.#stopped;
        }
        outcomes.push(() => pending.reject(error));
        continue;
      }
      if (this.#isCheckpointDue(pending.givenAt)) {
        try {
          putCheckpoint(pending.givenAt);
        } catch (error) {
          this.#stop(error);
        }
      }
    }
    try {
      if (lines.length > 0) await this.#write(Buffer.concat(lines));
      // That an event is there already is acknowledged too.
      else await assertInPlace(this.#files);
      this.#size += lines.length;
      if (isAhead) await this.#readAgain(this.#running.depth);
    } catch (error) {
      this.#failure = this.#fail(error);
      for (const pending of group) pending.reject(this.#failure);
      return;
    }
    for (const outcome of outcomes) outcome();
    // On its own: what the listener throws is none of the ledger's.
    for (const checkpoint of made) queueMicrotask(() => this.#options.onCheckpoint?.(checkpoint, this));
  }

  /** Verifies what is on disk from the beginning. */
  async #readAgain(depth: RunningVerification['depth']): Promise<void> {
    const { signal, trust } = this.#options;
    const { running } = await RunningVerification.read(this.#fileSystem, this.#files, depth, trust, signal);
    this.#running = running;
    this.#guard = new SignatureGuard(running.state);
  }

  /** Whether something of a group is decided by the keys that the ledger declares. */
  #needsAll(group: readonly Waiting[]): boolean {
    return this.#options.trust === undefined && group.some((pending) => 'makes' in pending);
  }

  /** Has an event made for its place. */
  #makeDecided({ makes }: PendingDecision): Prepared {
    this.#running.assertDecidable();
    return this.#prepare(makes(this.#running.deciding));
  }

  /** Of an event that has to be a record of its own: another that follows those that are there. */
  #makeDistinct(prepared: Prepared): Prepared {
    let { event, eventText } = prepared;
    while (prepared.isAnew && this.#has(event)) {
      const previous = digestFromBase64url(event.event_id.b64);
      ({ event, eventText } = completeDraft({ ...payloadOf(event), prev_event_id: previous }, {}));
    }
    return { ...prepared, event, eventText };
  }

  /** Whether a checkpoint may come to be made among the records of a group; rather once too often than not. */
  #mayCheckpoint(group: readonly Waiting[]): boolean {
    const { checkpointEvery } = this.#options;
    if (group.some((pending) => 'principalId' in pending)) return true;
    if (checkpointEvery === undefined || this.#cannotSeal) return false;
    // One that somebody gives may be dated back, and so make the next one due.
    if (group.some((pending) => 'event' in pending && pending.event.event_type === 'checkpoint')) return true;
    const { tip: now } = this.#running;
    const tip = { ...now, seq: now.seq + group.length };
    return group.some(({ givenAt }) => timeToCheckpoint(tip, checkpointEvery, this.#since(), givenAt) === 0);
  }

  #assertFits(event: CheckpointEvent): void {
    const guard = this.#guard;
    assertFits(this.#running.tip, event, this.origin, (note) => guard.judgeNote(note, event.occurred_at));
  }

  #isCheckpointDue(now: string): boolean {
    const { checkpointEvery } = this.#options;
    if (checkpointEvery === undefined || this.#cannotSeal) return false;
    return timeToCheckpoint(this.#running.tip, checkpointEvery, this.#since(), now) === 0;
  }

  /** The checkpoint of what stands before the tip, as a line. */
  #makeCheckpointLine(
    occurredAt: string,
    principalId: string | undefined,
  ): { readonly event: CheckpointEvent; readonly line: MadeLine } {
    const genesis = this.#opened(this.#genesis);
    const { tip } = this.#running;
    const event = makeCheckpoint(tip, {
      origin: genesis.origin,
      principalId: principalId ?? genesis.principal_id,
      occurredAt,
      noteSigners: this.#assertNoteSigners(),
      ledgerId: this.genesisId,
    });
    const eventText = canonicalText(event);
    const signatures = this.#sign(event as unknown as AnyEvent, eventText, []);
    return { event, line: makeLine({ eventText, meta: undefined, signatures }, tip) };
  }

  /** The line of an event in its place, when it may stand there. */
  #makeAdmittedLine({
    event,
    eventText,
    meta,
    given,
  }: Pick<Pending, 'event' | 'eventText' | 'meta' | 'given'>): MadeLine {
    const previousId = (event['prev_event_id'] as { b64: string } | undefined)?.b64;
    if (previousId !== undefined && this.#running.state.events.find(previousId) === undefined) {
      const message = `prev_event_id sha-256:${previousId} is not in the ledger`;
      throw new NorthrootError('PREV_EVENT_NOT_FOUND', message, {
        exitStatus: 1,
        hint: 'append the event that it names first',
      });
    }
    const signatures = this.#admit(event, eventText, given);
    if (event.event_type === 'checkpoint') this.#assertFits(event as unknown as CheckpointEvent);
    if (event.event_type === 'attestation') {
      const { known } = this.#running.state.seals;
      assertAttests(event as unknown as AttestationEvent, (id) => {
        const checkpoint = known.get(id);
        return checkpoint && (checkpoint.textHash ?? null);
      });
    }
    return makeLine({ eventText, meta, signatures }, this.#running.tip);
  }

  /** One write, one sync; on failure the file is cut back to what it was, as far as that can be done. */
  async #write(bytes: Uint8Array): Promise<void> {
    const file = await this.#currentFile();
    const before = await file.size();
    if (before !== this.#end) {
      throw new NorthrootError('FILE_CHANGED', `${printable(file.path)} was changed by someone else`, {
        hint: 'let nothing but northroot write to a ledger; northroot verify says whether it is still whole',
      });
    }
    try {
      const written = await file.write(bytes);
      // A short write is what a full disk looks like before it says so: the rest tells.
      for (let done = written; done < bytes.length;) done += await file.write(bytes.subarray(done));
      await file.datasync();
      await assertInPlace(this.#files);
    } catch (error) {
      await file.truncate(before).catch(() => undefined);
      throw error;
    }
    this.#end = before + bytes.length;
  }

  /** In a folder, leaves a segment that is full: the next write makes another. */
  async #beginSegmentIfFull(): Promise<void> {
    const files = this.#files;
    const { last } = files;
    const { segmentBytes = DEFAULT_SEGMENT_BYTES } = this.#options;
    if (!files.isFolder || last === undefined || (await last.size()) < segmentBytes) return;
    files.last = undefined;
    files.earlier.push(last.path);
    this.#running.beginFile();
    await last.close();
  }

  /** The file that the next record is written to. */
  #pathOfNext(): string {
    return this.#files.last?.path ?? joinPath(this.#files.path, segmentName(this.#size));
  }

  async #currentFile(): Promise<OpenFile> {
    const files = this.#files;
    const { last } = files;
    if (last !== undefined) {
      // Whoever made an empty segment may not have lived to see its name on disk.
      if (files.isFolder && (await last.size()) === 0) await this.#fileSystem.syncFolderOf(last.path);
      return last;
    }
    const next = await this.#fileSystem.open(this.#pathOfNext(), 'new');
    files.last = next;
    this.#end = 0;
    await this.#fileSystem.syncFolderOf(next.path);
    return next;
  }

  /** Takes up an existing ledger at its last record. */
  async #continue(survey: Survey): Promise<void> {
    const genesis = readGenesis(this.path, survey.firstLine as Uint8Array);
    const { lastLine } = survey;
    const last = lastLine.length === 0 ? undefined : examineLine(lastLine, 'records');
    if (last?.seq === undefined || last.eventId === undefined || last.issues.length > 0) {
      throw new NorthrootError(
        'LEDGER_TAIL_INVALID',
        `the last record of ${printable(this.path)} is not valid`,
        {
          hint: `northroot verify ${printable(this.path)} says what is wrong with it`,
          exitStatus: 1,
        },
      );
    }
    const damaged = this.#running.unreadable + survey.damaged;
    if (damaged > 0) this.#options.onNotice?.({ code: 'LEDGER_DAMAGED', path: this.path, lines: damaged });
    assertKeys(genesis);
    this.#genesis = genesis;
    this.#size = this.#running.tip.seq;
    // From here on we answer for what is there; a writer that was killed may have left it in memory only.
    await this.#files.last?.datasync();
    if (survey.lines === 1) await this.#fileSystem.syncFolderOf(this.path);
  }

  /** Writes the genesis record of a new ledger. */
  async #begin(genesis: GenesisEvent | undefined): Promise<void> {
    if (genesis === undefined) {
      throw new NorthrootError('LEDGER_EMPTY', `${printable(this.path)} has no records`, {
        hint: 'northroot init makes a ledger of it',
      });
    }
    assertKeys(genesis);
    this.#genesis = genesis;
    const event = genesis as unknown as AnyEvent;
    const eventText = canonicalText(genesis);
    const { signer } = this.#options;
    const signatures = signer === undefined ? [] : [signEvent(Buffer.from(eventText), signer)];
    const line = makeLine({ eventText, meta: undefined, signatures }, this.#running.tip);
    this.#running.add(line, this.#pathOfNext());
    this.#guard.check(event, Buffer.from(eventText), signatures, undefined);
    await this.#write(line.bytes);
    await this.#fileSystem.syncFolderOf(this.path);
    this.#size = 1;
    this.#options.onNotice?.({ code: 'LEDGER_CREATED', path: this.path, origin: genesis.origin });
  }

  #fail(cause: unknown): NorthrootError {
    const reason = cause instanceof NorthrootError ? cause.message : String(cause);
    return new NorthrootError('LEDGER_FAILED', `the ledger could not be written: ${reason}`, {
      cause,
      hint: 'nothing that was not acknowledged counts; open the ledger again when the cause is gone',
    });
  }

  #stopAfterRefusal(): void {
    if (this.#options.stopsAtRefusal !== true) return;
    this.#stopped ??= notReached();
  }

  #assertUsable(): void {
    if (this.#closing !== undefined) throw new TypeError('the ledger is closed');
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#stopped !== undefined) throw this.#stopped;
  }

  #opened<T>(value: T | undefined): T {
    if (value === undefined) throw new TypeError('the ledger is not open');
    return value;
  }
}

function notReached(): NorthrootError {
  return new NorthrootError('NOT_REACHED', 'an event before this one was refused', {
    exitStatus: 1,
    hint: 'mend the event that was refused, then append from it on',
  });
}

/** The line of a record at the tip, when it is of the right form. */
function makeLine(
  {
    eventText,
    meta,
    signatures,
  }: Pick<Pending, 'eventText' | 'meta'> & { signatures: readonly SignatureEntry[] },
  { prev, seq }: ChainTip,
): MadeLine {
  const bytes = formatRecord({ eventText, meta, signatures, prev, seq });
  if (bytes.length - 1 > MAX_LINE_BYTES) {
    const message = `the record has ${bytes.length - 1} bytes, more than ${MAX_LINE_BYTES}`;
    throw new NorthrootError('LINE_TOO_LONG', message, {
      exitStatus: 1,
      hint: 'refer to large content by its digest',
    });
  }
  const examined = examineLine(bytes.subarray(0, -1), 'records');
  const [issue] = examined.issues;
  if (issue === undefined) return { bytes, examined };
  const { code, pointer = '', expected = '', actual = '' } = issue;
  if (code === 'SCHEMA') throw new EventError([{ code, pointer, expected, actual }]);
  throw new NorthrootError(code, `the record at ${pointer}: expected ${expected}, found ${actual}`, {
    exitStatus: 1,
  });
}

/** @throws NorthrootError `KEY_MALFORMED` when a key entry of genesis contradicts itself, or stands there twice. */
function assertKeys({ keys }: GenesisEvent): void {
  const seen = new Set<string>();
  for (const key of keys) {
    const read = readWireKey(key);
    const problem =
      'pointer' in read
        ? read
        : seen.has(key.keyid)
          ? { pointer: '/keyid', expected: 'each key once', actual: `${key.keyid} again` }
          : undefined;
    seen.add(key.keyid);
    if (problem === undefined) continue;
    const { pointer, expected, actual } = problem;
    throw new NorthrootError(
      'KEY_MALFORMED',
      `genesis key ${pointer}: expected ${expected}, found ${actual}`,
    );
  }
}

/** Why a strict writer takes no event that would make the ledger invalid. */
function wouldInvalidate(findings: readonly Finding[]): NorthrootError {
  const fault = findings.find((finding) => finding.class === 'invalid');
  const { expected, actual } = fault ?? {};
  const found = expected === undefined ? '' : `: expected ${expected}, found ${actual ?? 'none'}`;
  return new NorthrootError(
    fault?.code ?? 'LEDGER_INVALID',
    `the event would make the ledger invalid${printable(found)}`,
    { exitStatus: 1, hint: 'without strict it is recorded as it is' },
  );
}

/** Whether checkpoints will be asked for. */
function willSeal({ checkpoints = false, checkpointEvery }: LedgerOptions): boolean {
  return checkpoints || checkpointEvery !== undefined;
}

function nowOf(options: LedgerOptions): string {
  return options.now?.() ?? new Date().toISOString();
}

/** Gives up on opening; files that were made for it and got no record are taken away again. */
async function abandon(fileSystem: FileSystem, files: LedgerFiles): Promise<void> {
  try {
    const { isFolder, isNew, last, path } = files;
    if (isNew && last !== undefined && (await last.size()) === 0 && (await last.isInPlace())) {
      await fileSystem.remove(last.path);
    }
    // One that is not empty stays.
    if (isNew && isFolder) await fileSystem.removeFolder(path);
  } catch {
    // The error that led here says more.
  }
  await closeLedgerFiles(files).catch(() => undefined);
}

function duplicate(eventId: string, seq: number): NorthrootError {
  return new NorthrootError(
    'EVENT_DUPLICATE',
    `the ledger has this event already, at seq ${seq}: ${eventId}`,
    {
      exitStatus: 1,
    },
  );
}
