/**
 * The queue of appends, written in groups: what waits when a group begins gets one write and one sync, in call order. The life of a group:
 *
 *     lock → catch up with other writers → judge, sign, chain → append if → notify → save the state → unlock
 *
 * Groups that share a lock share the last two steps.
 */

import { type Clock, systemClock, type Timer } from '../../base/clock.js';
import { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { IndexFault } from '../cache/entry-store.js';
import type { LedgerStore, StorePosition } from '../store/ledger-store.js';
import { StrictError } from './admission.js';
import { type CheckpointTimer, failed } from './checkpoint-timer.js';
import type { PositionKeeper } from './kept-position.js';
import { type Appended, type CheckpointResult, type Entry, nowOf, type OpeningOptions } from './options.js';
import type { Prepared, RecordMaker } from './record-maker.js';
import type { RunningVerification } from './running-verification.js';
import type { SigningThreads } from './signing-threads.js';
import type { StateCache } from './state-cache.js';
import type { LockKeeper } from './lock-keeper.js';
import type { Decided, DecideOptions, Promised } from './withdrawal.js';

interface GroupParts {
  readonly store: LedgerStore;
  readonly options: OpeningOptions;
  readonly running: RunningVerification;
  readonly maker: RecordMaker;
  readonly signing: SigningThreads | undefined;
  readonly locks: LockKeeper;
  readonly cache: StateCache;
  readonly timer: CheckpointTimer;
  readonly kept: PositionKeeper | undefined;
  readonly onCheckpoint: (made: CheckpointResult) => void;
}

/** Bounds of one write and sync. */
const MAX_GROUP_RECORDS = 1_000;
const MAX_GROUP_BYTES = 8 * 1024 * 1024;
/** Events signed ahead at once. */
const SIGNED_AT_ONCE = 64;
/** Decisions made ahead at once, some of two events: more would be lost where a group ends by its time. */
const MADE_AT_ONCE = 32;
/** Consecutive conflicts with another writer, without locks. */
const MAX_CONFLICTS = 100;
/** How long requests that may wait do, in milliseconds. */
const PATIENCE_MS = 10;
/** Lines that groups may leave unsaved while they share a lock: saving them takes some milliseconds of this thread, at once. */
const MAX_UNSAVED_LINES = 64;
/** Consecutive faults of an index. */
const MAX_FAULTS = 3;
/** Faults of the stored ledger, not of storing. */
const REFUSALS = new Set([
  'LEDGER_ROLLED_BACK',
  'NOT_A_LEDGER',
  'LEDGER_TAIL_INVALID',
  'SEGMENT_MISSING',
  'SEGMENT_MISPLACED',
]);
/** The lock was not had, for now. */
const PASSING = new Set(['LEDGER_LOCKED', 'LOCK_UNAVAILABLE', 'STORE_UNREACHABLE', 'STORE_NOT_DURABLE']);

/** The queue of appends; see the head of this file. */
export class GroupCommit {
  readonly #parts: GroupParts;
  readonly #clock: Clock;
  #queue: Job[] = [];
  #running: Promise<void> | undefined;
  /** Set while jobs that may wait do. */
  #patience: Timer | undefined;
  #isPatienceOver = false;
  #early: Early | undefined;
  /** Whether to read on, once nothing else is to be done. */
  #readsOn = false;
  #isClosing = false;
  #failure: NorthrootError | undefined;
  /** Set when an event was refused and later ones MUST NOT follow it. */
  #stopped: NorthrootError | undefined;
  /** Set when that event was in the queue: the jobs behind it are refused. */
  #rejectAfter: NorthrootError | undefined;
  #conflicts = 0;

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.#clock = parts.options.clock ?? systemClock;
  }

  /** @throws what keeps the ledger from accepting requests */
  assertUsable(): void {
    this.assertOpen();
    if (this.#stopped !== undefined) throw this.#stopped;
  }

  /** @throws what keeps the ledger from being read */
  assertOpen(): void {
    if (this.#isClosing) throw new TypeError('the ledger is closed');
    if (this.#failure !== undefined) throw this.#failure;
  }

  add(job: Job): void {
    this.#parts.locks.noteRequest();
    if (job.kind === 'event') this.#parts.signing?.expect(job.prepared.bytes);
    this.#queue.push(job);
    this.#begin();
  }

  /** Queues a checkpoint due by time. If it fails, the next append reports why. */
  addDue(givenAt: string): void {
    this.add({ kind: 'due', givenAt });
  }

  /** Runs `act` under the write lock, after all earlier requests. */
  act(act: () => Promise<void>): Promise<void> {
    const givenAt = nowOf(this.#parts.options);
    return new Promise((resolve, reject) => this.add({ kind: 'act', act, givenAt, resolve, reject }));
  }

  /**
   * Reads what other writers added, beside no group and without the lock, so that the next group has less to read.
   * @throws as {@link GroupCommit.assertOpen}
   */
  async readOn(): Promise<void> {
    this.assertOpen();
    this.#readsOn = true;
    await (this.#running ??= this.#commitAll());
  }

  /** A request was refused before it was queued. */
  noteRefusal(): void {
    if (this.#parts.options.stopsAtRefusal !== true) return;
    this.#stopped ??= notReached();
  }

  /** Accepts nothing more; resolves when all jobs are settled and the lock is released. */
  async close(): Promise<void> {
    const { timer, locks } = this.#parts;
    this.#isClosing = true;
    timer.clear();
    this.#begin();
    await this.#running;
    // The last group may have set it again.
    timer.clear();
    await locks.release();
  }

  #begin(): void {
    if (this.#queue.length === 0) return;
    if (this.#isUrgent) this.#running ??= this.#commitAll();
    else
      this.#patience ??= this.#clock.setTimeout(() => {
        this.#isPatienceOver = true;
        this.#running ??= this.#commitAll();
      }, PATIENCE_MS);
    // When what is being sent has gone out.
    if (this.#patience !== undefined) setImmediate(() => this.#makeEarly());
  }

  /** Makes the first event that waits, so that the request that it waits for need not wait for it. */
  #makeEarly(): void {
    const { maker, running, locks } = this.#parts;
    const [job] = this.#queue;
    const isIdle = this.#running === undefined && this.#early === undefined && locks.isHeld;
    if (!isIdle || job?.kind !== 'decision' || job.before !== undefined || !mayWait(job)) return;
    try {
      running.assertDecidable();
      const { deciding, position } = running;
      const prepared = maker.prepare(job.makes(deciding));
      maker.signAhead([prepared]);
      this.#early = { job, prepared, state: deciding, position };
    } catch {
      // Its turn shows why.
    }
  }

  /** Runs until nothing is queued that does not wait; appends in the meantime form the next group. */
  async #commitAll(): Promise<void> {
    await Promise.resolve();
    while (this.#isUrgent || this.#readsOn) {
      if (this.#isUrgent) await this.#commit(this.#takeJobs());
      else await this.#parts.running.readMore();
      this.#readsOn = false;
    }
    this.#running = undefined;
    this.#begin();
    if (!this.#isClosing && this.#failure === undefined) this.#parts.timer.set();
  }

  get #isUrgent(): boolean {
    if (this.#isClosing || this.#isPatienceOver) return this.#queue.length > 0;
    return this.#queue.some((job) => !mayWait(job));
  }

  /** What waits goes with what is written. A query does not wait for it, nor for its sync. */
  #takeJobs(): Job[] {
    const isWritten = this.#queue.some((job) => !mayWait(job) && job.kind !== 'look');
    if (!isWritten && !this.#isClosing && !this.#isPatienceOver) {
      const looks = this.#queue.filter((job) => !mayWait(job));
      this.#queue = this.#queue.filter(mayWait);
      return looks;
    }
    this.#clock.clear(this.#patience);
    this.#patience = undefined;
    this.#isPatienceOver = false;
    return this.#queue.splice(0, MAX_GROUP_RECORDS);
  }

  async #commit(jobs: Job[]): Promise<void> {
    const { store, running, signing, locks, kept } = this.#parts;
    if (this.#failure !== undefined) {
      rejectAll(jobs, this.#failure);
      return;
    }
    // Before the lock, so that other writers need not wait for threads.
    await signing?.ready(eventsOf(jobs).map(({ bytes }) => bytes));
    try {
      await locks.acquire();
    } catch (error) {
      await this.#rejectUnlocked(jobs, error);
      return;
    }
    const group = new Group(this.#parts);
    try {
      if ((await running.catchUp()) > 0) locks.noteOthers();
      if (this.#needsAll(jobs)) await running.deepen();
      await running.begin();
      await running.lookAhead(eventsOf(jobs).map(({ line }) => line.eventId));
      const { position } = running;
      this.#takeEarly(group, jobs, position);
      await this.#fill(group, jobs);
      if (group.lines.length > 0) {
        await store.appendIf(position, group.lines, () => running.noteWritten());
        group.isStored = true;
      }
      // An existing event is acknowledged too.
      else await store.confirm();
      this.#conflicts = 0;
      await running.committed(group.lines.length, group.isAhead);
      await kept?.keep(running.position);
    } catch (error) {
      await this.#give(jobs, group, error);
      return;
    }
    // Who waits goes on meanwhile: a state that is not saved costs a reading, not a record.
    if (group.lines.length > 0) {
      group.tell();
      // Their calls go out before the index is written, which takes this thread.
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Otherwise before the lock is released: most of what saving one group takes is the same for several.
    if (group.acts.length > 0 || running.unsavedLines >= MAX_UNSAVED_LINES) await running.save();
    for (const job of group.acts)
      await job.act().then(
        () => group.outcomes.push(() => job.resolve()),
        (error: unknown) => this.#endAct(job, group, error),
      );
    await locks.endGroup(this.#isUrgent);
    group.tell();
    // A listener's errors must not reach the ledger.
    for (const checkpoint of group.made) queueMicrotask(() => this.#parts.onCheckpoint(checkpoint));
  }

  /** What was made early is what would be made now, if nothing was added since. */
  #takeEarly(group: Group, [first]: readonly Job[], { size, tip }: StorePosition): void {
    const early = this.#early;
    this.#early = undefined;
    if (early === undefined || early.job !== first || early.state !== this.#parts.running.deciding) return;
    const { job, prepared, position } = early;
    if (position.size === size && position.tip === tip) group.ahead.set(job, prepared);
  }

  /** Settles a failed act; if an index was wrong, it is repeated from the ledger. */
  async #endAct(job: ActJob, group: Group, error: unknown): Promise<void> {
    if (!(error instanceof IndexFault) || this.#conflicts >= MAX_FAULTS) {
      group.outcomes.push(() => job.reject(error));
      return;
    }
    this.#conflicts += 1;
    await this.#parts.cache.discard?.(error.message).catch(() => undefined);
    this.#parts.running.reset();
    this.#queue.unshift(job);
  }

  /** Makes the lines of a group; the rest goes back to the queue. */
  async #fill(group: Group, jobs: Job[]): Promise<void> {
    const { timer, locks } = this.#parts;
    const end = this.#clock.ticks() + locks.groupMs;
    let aheadUntil = 0;
    for (const [index, job] of jobs.entries()) {
      const isFull = group.bytes >= MAX_GROUP_BYTES || (group.lines.length > 0 && this.#clock.ticks() > end);
      if (isFull || group.isAhead) {
        this.#queue.unshift(...jobs.splice(index));
        return;
      }
      const refusal = this.#rejectAfter;
      if (refusal !== undefined && job.kind !== 'look') {
        group.outcomes.push(() => rejectAll([job], refusal));
        continue;
      }
      try {
        if (index % SIGNED_AT_ONCE === 0)
          this.#parts.maker.signAhead(eventsOf(jobs.slice(index, index + SIGNED_AT_ONCE)));
        if (index >= aheadUntil) aheadUntil = this.#makeAhead(jobs, index, group.ahead);
        const looking = group.add(job);
        if (looking !== undefined) await looking;
      } catch (error) {
        if (error instanceof IndexFault) throw error;
        if (job.kind === 'due') {
          this.#stop(error);
          continue;
        }
        // A failed query refuses no event.
        if (job.kind === 'event' || job.kind === 'checkpoint') this.#rejectAfterRefusal();
        group.outcomes.push(() => rejectAll([job], error));
        continue;
      }
      if (job.kind === 'look' || job.kind === 'act' || !timer.isDue(job.givenAt)) continue;
      try {
        group.addCheckpoint(job.givenAt);
      } catch (error) {
        this.#stop(error);
      }
    }
  }

  /**
   * Makes and signs what the jobs from here on need no state for, or expect. What cannot be made is tried again in its turn.
   * @returns The first job that it did not look at
   */
  #makeAhead(jobs: readonly Job[], from: number, made: Map<Job | Entry, Prepared>): number {
    const { maker, running } = this.#parts;
    const row: Prepared[] = [];
    const complete = (entry: Entry, as: Job | Entry = entry): string => {
      const prepared = maker.prepare(entry);
      made.set(as, prepared);
      row.push(prepared);
      return toDigestText(prepared.line.eventId);
    };
    let at = from;
    // Up to the first that can only be made in its turn: the times of records are in their order.
    for (let isMade = true; isMade && at < jobs.length && at - from < MADE_AT_ONCE; at += 1) {
      const job = jobs[at] as Job;
      const before = row.length;
      if (job.kind === 'decision') {
        try {
          if (job.expects !== undefined) job.expects((entry) => complete(entry));
          else if (isFree(job)) complete(job.makes(running.deciding), job);
        } catch {
          // Its turn shows why.
        }
      }
      isMade = row.length > before;
    }
    maker.signAhead(row);
    return at;
  }

  /** A group was not written, or may not have been. */
  async #give(jobs: Job[], group: Group, error: unknown): Promise<void> {
    const { running, locks } = this.#parts;
    running.reset();
    const isLate =
      error instanceof NorthrootError && error.code === 'LEDGER_CONFLICT' && group.lines.length > 0;
    // An index was wrong: the ledger is read.
    const isMisled = error instanceof IndexFault;
    // The lock went with its connection before anything was written.
    const isAway = error instanceof NorthrootError && error.code === 'STORE_UNREACHABLE' && !group.isStored;
    if ((isLate || isMisled || isAway) && this.#conflicts < (isMisled ? MAX_FAULTS : MAX_CONFLICTS)) {
      if (isMisled) await this.#parts.cache.discard?.(error.message).catch(() => undefined);
      // Another writer came first: the group is made again, after its records.
      this.#conflicts += 1;
      this.#rejectAfter = undefined;
      this.#queue.unshift(...jobs);
      await locks.release();
      return;
    }
    this.#failure = asFailure(error);
    await locks.release();
    rejectAll(jobs, this.#failure);
  }

  /** The lock was not acquired: nothing was written, and it may be retried. */
  async #rejectUnlocked(jobs: Job[], error: unknown): Promise<void> {
    const { signal } = this.#parts.options;
    const mayComeAgain =
      (signal?.aborted === true && error === signal.reason) ||
      (error instanceof NorthrootError && PASSING.has(error.code));
    if (!mayComeAgain) this.#failure = asFailure(error);
    await this.#parts.locks.release();
    const isStream = this.#parts.options.stopsAtRefusal === true;
    // Nothing may follow an event that was not appended.
    const waiting = isStream && mayComeAgain ? this.#queue.splice(0) : [];
    if (isStream) this.#rejectAfterRefusal();
    rejectAll(jobs, this.#failure ?? error);
    rejectAll(waiting, notReached());
  }

  /** Whether a group depends on every signature. */
  #needsAll(jobs: readonly Job[]): boolean {
    const { options, timer } = this.#parts;
    if (jobs.some(({ kind }) => kind === 'checkpoint')) return true;
    if (options.trust === undefined && jobs.some(({ kind }) => kind === 'decision')) return true;
    if (!timer.isOn) return false;
    // A given checkpoint may be backdated, which makes the next one due.
    const isGiven = (job: Job): boolean => job.kind === 'event' && job.prepared.line.type === 'checkpoint';
    return (
      jobs.some((job) => job.kind === 'due' || isGiven(job)) || timer.mayBeDue(jobs.map((job) => job.givenAt))
    );
  }

  #rejectAfterRefusal(): void {
    this.noteRefusal();
    this.#rejectAfter = this.#stopped;
  }

  #stop(error: unknown): void {
    const { timer, store } = this.#parts;
    const reason = timer.stop(error, store.name);
    if (reason !== undefined) this.#stopped ??= reason;
  }
}

/** The lines of one group, and the outcomes to report once they are on disk. */
class Group {
  readonly lines: Uint8Array[] = [];
  readonly outcomes: (() => void)[] = [];
  readonly made: CheckpointResult[] = [];
  /** Run when the lines are on disk. */
  readonly acts: ActJob[] = [];
  /** What was made ahead: the events of jobs that need no state, and entries that were expected. */
  readonly ahead = new Map<Job | Entry, Prepared>();
  bytes = 0;
  /** Set when an event was judged but not written: the state MUST be discarded. */
  isAhead = false;
  isStored = false;
  readonly #parts: GroupParts;

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  /**
   * Makes a job's record.
   * @returns A promise only for an asynchronous query
   * @throws what the job is rejected with
   */
  add(job: Job): Promise<void> | undefined {
    if (job.kind !== 'due') job.withdrawal?.take();
    switch (job.kind) {
      case 'look': {
        const see = (seen: unknown): void => void this.outcomes.push(() => job.resolve(seen));
        const seen = job.look();
        if (seen instanceof Promise) return seen.then(see);
        see(seen);
        return undefined;
      }
      case 'act':
        this.acts.push(job);
        return undefined;
      case 'due':
        if (this.#parts.timer.isDue(job.givenAt)) this.addCheckpoint(job.givenAt);
        return undefined;
      case 'checkpoint': {
        const checkpoint = this.addCheckpoint(job.givenAt, job.principalId);
        this.outcomes.push(() => job.resolve(checkpoint));
        return undefined;
      }
      case 'decision': {
        const { running, maker } = this.#parts;
        running.assertDecidable();
        for (const entry of job.before?.(running.deciding) ?? []) this.#addEvent(maker.prepare(entry));
        const made = this.ahead.get(job) ?? this.#prepare(job.makes(running.deciding));
        const appended = this.#addEvent(made);
        const decided = job.after === undefined ? appended : this.#follow(appended, job.after);
        this.outcomes.push(() => job.resolve(decided));
        return undefined;
      }
      case 'event': {
        const appended = this.#addEvent(job.prepared);
        this.outcomes.push(() => job.resolve(appended));
        return undefined;
      }
    }
  }

  /** Adds what follows a decision. The decision stands whatever becomes of it. */
  #follow(appended: Appended, after: NonNullable<DecideOptions['after']>): Decided {
    const { running } = this.#parts;
    const followers: Appended[] = [];
    try {
      for (const entry of after(running.deciding, appended))
        followers.push(this.#addEvent(this.#prepare(entry)));
    } catch (refusal) {
      if (refusal instanceof IndexFault) throw refusal;
      return { ...appended, followers, refusal };
    }
    return { ...appended, followers };
  }

  #prepare(entry: Entry): Prepared {
    return this.ahead.get(entry) ?? this.#parts.maker.prepare(entry);
  }

  tell(): void {
    for (const outcome of this.outcomes.splice(0)) outcome();
  }

  addCheckpoint(givenAt: string, principalId?: string): CheckpointResult {
    const { running, maker } = this.#parts;
    running.assertSound();
    const { seq } = running.tip;
    const date = this.#dateOf(givenAt, running.state.links.latest);
    const { event, line } = maker.makeCheckpointLine(date, principalId);
    const judged = running.add(line);
    this.#put(line.bytes);
    const { note, tree_size: treeSize } = event;
    const eventId = toDigestText(event.event_id.b64);
    const checkpoint = { seq, eventId, status: 'appended', note, treeSize, ...judged } as const;
    this.made.push(checkpoint);
    return checkpoint;
  }

  /**
   * Not before the records that it seals, which other writers may have appended since the request, and otherwise as early as possible,
   * since later events of the group may be dated already.
   */
  #dateOf(givenAt: string, latest: string | undefined): string {
    if (latest === undefined || !isLater(latest, givenAt)) return givenAt;
    const now = nowOf(this.#parts.options);
    const bound = isLater(latest, now) ? now : latest;
    return isLater(bound, givenAt) ? bound : givenAt;
  }

  #addEvent(prepared: Prepared): Appended {
    const { running, maker, options } = this.#parts;
    const entry = maker.makeDistinct(prepared);
    const eventId = toDigestText(entry.line.eventId);
    const existing = running.stateOfIds.events.find(entry.line.eventId);
    if (existing !== undefined) {
      if (entry.refusesExisting) throw duplicate(eventId, existing.seq);
      return { seq: existing.seq, eventId, status: 'exists', findings: [], verdict: undefined };
    }
    const { seq } = running.nextLink;
    const line = maker.makeLine(entry);
    const judged = running.add(line);
    if (options.strict === true && judged.verdict === 'invalid') {
      this.isAhead = true;
      throw new StrictError(judged.findings);
    }
    this.#put(line.bytes);
    return { seq, eventId, status: 'appended', ...judged };
  }

  #put(line: Uint8Array): void {
    this.lines.push(line);
    this.bytes += line.length;
  }
}

function eventsOf(jobs: readonly Job[]): Prepared[] {
  return jobs.flatMap((job) => (job.kind === 'event' ? [job.prepared] : []));
}

function mayWait(job: Job): boolean {
  return job.kind === 'decision' && job.mayWait === true;
}

/** Whether a job's event may be made ahead. */
function isFree(job: Job): job is DecisionJob {
  if (job.kind !== 'decision' || job.ignoresState !== true) return false;
  return job.before === undefined && job.after === undefined;
}

function isLater(one: string, other: string): boolean {
  return compareTimestamps(one, other) > 0;
}

function asFailure(error: unknown): NorthrootError {
  return error instanceof NorthrootError && REFUSALS.has(error.code) ? error : failed(error);
}

function rejectAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) if (job.kind !== 'due') job.reject(error);
}

function notReached(): NorthrootError {
  return new NorthrootError('NOT_REACHED', 'an event before this one was refused', {
    hint: 'mend the event that was refused, then append from it on',
  });
}

function duplicate(eventId: string, seq: number): NorthrootError {
  const message = `the ledger has this event already, at seq ${seq}: ${eventId}`;
  return new NorthrootError('EVENT_DUPLICATE', message);
}

interface EventJob extends Promised<Appended> {
  readonly kind: 'event';
  readonly prepared: Prepared;
  readonly givenAt: string;
}

/** A requested checkpoint, made when its place is known. */
interface CheckpointJob extends Promised<CheckpointResult> {
  readonly kind: 'checkpoint';
  readonly givenAt: string;
  readonly principalId: string | undefined;
}

interface DueJob {
  readonly kind: 'due';
  readonly givenAt: string;
}

/** An event made when its place is known. */
interface DecisionJob
  extends
    Promised<Decided>,
    Pick<DecideOptions, 'before' | 'after' | 'mayWait' | 'ignoresState' | 'expects'> {
  readonly kind: 'decision';
  readonly makes: (state: VerifyState) => Entry;
  readonly givenAt: string;
}

/** An event that was made before its group began, and what it was made with. */
interface Early {
  readonly job: DecisionJob;
  readonly prepared: Prepared;
  readonly state: VerifyState;
  readonly position: StorePosition;
}

/** A query, other writers' records included. */
interface LookJob extends Promised<unknown> {
  readonly kind: 'look';
  /** Called under the write lock, which is held until a promise settles. */
  readonly look: () => unknown;
  readonly givenAt: string;
}

/** An action under the write lock, after the group is on disk. */
interface ActJob extends Promised<void> {
  readonly kind: 'act';
  readonly act: () => Promise<void>;
  readonly givenAt: string;
}

type Job = EventJob | CheckpointJob | DueJob | DecisionJob | LookJob | ActJob;
