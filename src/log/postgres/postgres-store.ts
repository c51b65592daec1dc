/**
 * A ledger in PostgreSQL. The write lock is an advisory lock of a session of its own, and a courtesy: what keeps two writers apart is that
 * lines are appended only behind the expected size and tip, in one statement. One append:
 *
 *     pg_try_advisory_lock, else pg_advisory_lock     the server's queue is first come, first served
 *     select … from head                              where does the ledger end?
 *     [select … from line]                            what others appended, in pages
 *     update head where size and tip; insert lines    one statement, one commit
 *     [the witness moves on]
 *     pg_advisory_unlock
 *     notify                                          beside it, in a transaction of its own: it would make all commits wait for one another
 *
 * After a lost answer the same lines are sent again under the same condition until it is known what became of them.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { LineSplitter } from '../../format/record/line-splitter.js';
import type { LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import {
  type AcquireOptions,
  conflict,
  type Durability,
  type LedgerStore,
  type LinePlace,
  needsLock,
  type NextPlace,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from '../store/ledger-store.js';
import { type Group, groupOf, lockKeys, sendGroup, touch } from './append-lines.js';
import { notDurable, readPromises, readSettings, UnwitnessedError } from './durability.js';
import { type Head, headQuery, isSameEnd, NO_LINES, readHead, toHead } from './head.js';
import { assertReadable, readPages, readStoredLine, stands } from './lines.js';
import { openWitness } from './open-witness.js';
import { Notices } from './notices.js';
import { AbsentError, codeOf, outcomeOf, toStoreError, unreachable } from './postgres-error.js';
import { numberOf, parsePostgresUrl, type PostgresPlace } from './postgres-url.js';
import { migrate, readVersion } from './schema.js';
import { ANSWER_MS, Session, type SessionKind } from './session.js';
import { beat, endWaiting, type SilentHolder, SilentHolders } from './silent-holder.js';
import { readStamp } from './stamp.js';
import { rolledBack, type Vigil, vigilOf } from './vigil.js';
import type { PositionWitness } from './witness.js';

export interface PostgresStoreOptions {
  /** Makes the tables and the ledger, where they are missing. */
  readonly create?: boolean;
  /** Refuses a server that keeps less. */
  readonly requires?: Durability;
  /** A file for the position that this writer last acknowledged: a ledger that lacks it when it is opened has lost records. */
  readonly positionFile?: string;
  /**
   * Told each position before it is acknowledged. Required where standbys follow that no commit waits for. A text is the place of one that
   * the store opens and closes: a file; a folder, existing or ending in `/`, with a file for each ledger; or the URL of another database.
   */
  readonly witness?: PositionWitness | string;
  /** How long an append whose answer was lost is pursued, in milliseconds. Default 60,000. */
  readonly patienceMs?: number;
  /** Aborting ends opening with its reason. */
  readonly signal?: AbortSignal;
}

const DEFAULT_PATIENCE_MS = 60_000;
/** Pauses between attempts to connect, in milliseconds. */
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** For opening. */
const OPENING_MS = 10_000;
/** After this long the caller is told that it waits. */
const SILENT_MS = 1_000;
const MAX_WAIT_MS = 2 ** 31 - 1 - ANSWER_MS;
/** How long giving back the lock may take before the session is ended, which gives it back too. */
const RELEASE_MS = 5_000;
const MAX_GROUP_BYTES = 32 * 1024 * 1024;
/** An answer about waiting writers holds for so long, in milliseconds. */
const WANTED_MS = 10;

interface OpenedOptions extends Omit<PostgresStoreOptions, 'witness'> {
  readonly witness?: PositionWitness;
  /** The witness, if this store opened it. */
  readonly owned?: PositionWitness;
}

interface Turn {
  readonly session: Session;
  /** Where the ledger ends; undefined after an append that failed. */
  head: Head | undefined;
  readonly endBeat: () => void;
}

/** The store of a ledger in PostgreSQL; see the head of this file. It has at most two connections. */
export class PostgresStore implements LedgerStore {
  readonly name: string;
  readonly #place: PostgresPlace;
  readonly #options: OpenedOptions;
  readonly #vigil: Vigil;
  readonly #closed = new AbortController();
  readonly #notices: Notices;
  readonly #silent: SilentHolders;
  #durability: Durability = 'local';
  /** Of the server that is written to, when it was asked what it keeps. */
  #settings = '';
  #writer: Session | undefined;
  #reader: Promise<Session> | undefined;
  #turn: Turn | undefined;
  #isAcquiring = false;
  /** The end that this store has committed, or has made sure of. */
  #vouched: StoredEnd | undefined;
  #wanted: { readonly at: number; readonly answer: Promise<boolean> } | undefined;

  private constructor(place: PostgresPlace, options: OpenedOptions) {
    this.name = place.name;
    this.#place = place;
    this.#options = options;
    this.#vigil = vigilOf(place.name, options);
    this.#notices = new Notices(numberOf(place.ledger), () => this.#reading());
    this.#silent = new SilentHolders(numberOf(place.ledger), () => this.#readingPrimary());
  }

  /**
   * Opens a ledger in PostgreSQL.
   * @param url - `postgres://USER@HOST/DATABASE#NAME`; several hosts are separated by commas
   * @throws NorthrootError `STORE_URL_INVALID`, `PACKAGE_MISSING`; `STORE_UNREACHABLE`; `ACCESS_DENIED`; `FILE_NOT_FOUND` for no such
   *   ledger; `STORE_UNSUPPORTED` for tables of a later version or a pooler that shares sessions; `STORE_NOT_DURABLE` if the server keeps
   *   less than is required; `LEDGER_ROLLED_BACK` if it lacks what was acknowledged
   */
  static async open(url: string, options: PostgresStoreOptions = {}): Promise<PostgresStore> {
    const place = parsePostgresUrl(url);
    const { signal, witness: named, ...others } = options;
    signal?.throwIfAborted();
    const owned = typeof named === 'string' ? await openWitness(named, place.ledger) : undefined;
    const witness = owned ?? (typeof named === 'string' ? undefined : named);
    const store = new PostgresStore(place, { ...others, ...defined({ signal, witness, owned }) });
    const abort = (): void => store.#closed.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    try {
      await store.#open();
      return store;
    } catch (error) {
      await store.close().catch(() => undefined);
      signal?.throwIfAborted();
      throw toStoreError(error, store.name);
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  get durability(): Durability {
    return this.#durability;
  }

  async *read(from?: StorePosition): AsyncGenerator<Stored, void, void> {
    const turn = this.#turn;
    const start = from !== undefined && from.size > 0 ? from : undefined;
    try {
      const session = turn === undefined ? await this.#reading() : turn.session;
      const head = turn?.head ?? (await readHead(session, this.#place.ledger));
      if (turn !== undefined && turn === this.#turn) turn.head = head;
      if (start !== undefined) {
        if (isSameEnd(head, start) && head.endOffset === start.byteOffset) return;
        await assertReadable(session, head, start);
      }
      const [file, firstSeq] = [this.name, undefined];
      if (start === undefined) yield { kind: 'file', file, firstSeq };
      const at = { size: start?.size ?? 0, byteOffset: start?.byteOffset ?? 0 };
      const splitter = new LineSplitter({ offset: at.byteOffset, lines: at.size });
      for await (const page of readPages(session, head, at, this.#closed.signal))
        yield { kind: 'lines', file, firstSeq, lines: splitter.push(page) };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async readLine({ ordinal, byteOffset, byteLength }: LinePlace): Promise<Uint8Array | undefined> {
    const turn = this.#turn;
    try {
      const session = turn === undefined ? await this.#reading() : turn.session;
      const head = turn?.head ?? (await readHead(session, this.#place.ledger));
      const line = await readStoredLine(session, head, ordinal);
      if (line === undefined || line.bytes.length !== byteLength + 1) return undefined;
      return line.endOffset === byteOffset + line.bytes.length ? line.bytes.subarray(0, -1) : undefined;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async source(): Promise<LedgerSource> {
    try {
      const session = await this.#reading();
      const head = await readHead(session, this.#place.ledger);
      const file = this.name;
      const chunks = this.#chunks(session, head);
      return { paths: [file], size: head.endOffset, segments: oneOf({ file, firstSeq: undefined, chunks }) };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async nextPlace(_seq: number): Promise<NextPlace> {
    const { size, endOffset } = await this.#end(this.#assertLocked());
    return { file: this.name, line: size + 1, byteOffset: endOffset };
  }

  async appendIf(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void> {
    const turn = this.#assertLocked();
    const head = await this.#end(turn);
    if (!isSameEnd(head, expected)) throw conflict(this.name);
    if (lines.length === 0) return;
    const group = groupOf(head, lines);
    if (group.endOffset - head.endOffset > MAX_GROUP_BYTES)
      throw new RangeError(`expected at most ${MAX_GROUP_BYTES} bytes at once`);
    turn.head = undefined;
    const written = await this.#write(turn, group);
    try {
      await this.#acknowledge(turn.session, written, head);
    } catch (error) {
      if (error instanceof NorthrootError && error.code === 'LEDGER_ROLLED_BACK') throw error;
      throw this.#uncertain(error);
    }
    // The first group's row has a number that is not known yet.
    if (written.id !== undefined) turn.head = written;
    this.#notices.tell();
  }

  async acquire(options: AcquireOptions): Promise<WriteLock> {
    if (this.#turn !== undefined || this.#isAcquiring) throw new TypeError('the store is acquired already');
    this.#isAcquiring = true;
    try {
      const turn = await this.#acquire(options);
      this.#turn = turn;
      return { release: () => this.#release(turn), isWanted: () => this.#isWanted() };
    } catch (error) {
      options.signal?.throwIfAborted();
      throw toStoreError(error, this.name);
    } finally {
      this.#isAcquiring = false;
    }
  }

  async confirm(): Promise<void> {
    const turn = this.#assertLocked();
    const head = await this.#end(turn);
    if (head.size === 0 || (this.#vouched !== undefined && isSameEnd(head, this.#vouched))) return;
    try {
      const { count, isUncertain } = await touch(turn.session, this.#place.ledger, head, this.#settings);
      if (count === 0) throw await this.#refused(turn.session);
      if (isUncertain) throw unreachable(this.name, 'its standby did not answer');
    } catch (error) {
      throw this.#failed(error);
    }
    await this.#acknowledge(turn.session, head, head);
  }

  settleTornTail(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void> {
    const closed = this.#closed.signal;
    const either = signal === undefined ? closed : AbortSignal.any([closed, signal]);
    signal?.throwIfAborted();
    const hasMore = async (): Promise<boolean> => {
      const session = await this.#reading();
      return !isSameEnd(await readHead(session, this.#place.ledger), from);
    };
    while (!either.aborted) {
      // The next reading reports what is wrong.
      if (await hasMore().catch(() => false)) return;
      await this.#notices.wait(either);
    }
    signal?.throwIfAborted();
  }

  /** Undefined where it cannot be known: then an index hashes all lines again. */
  async stamp(): Promise<string | undefined> {
    try {
      return await readStamp(this.#turn?.session ?? (await this.#reading()), this.#place.ledger);
    } catch {
      return undefined;
    }
  }

  /** Appending leaves it the same. */
  ownStamp(): Promise<string | undefined> {
    return this.stamp();
  }

  /** A ledger without lines is not in the database. */
  discard(): Promise<void> {
    this.#assertLocked();
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const reader = this.#reader;
    const [writer, turn] = [this.#writer, this.#turn];
    [this.#writer, this.#reader, this.#turn] = [undefined, undefined, undefined];
    turn?.endBeat();
    await this.#notices.close();
    await Promise.allSettled([
      writer?.close(),
      turn?.session.close(),
      reader?.then((session) => session.close()),
    ]);
    await this.#vigil.close();
    await this.#options.owned?.close?.();
  }

  async #open(): Promise<void> {
    const { create = false, requires, witness, positionFile } = this.#options;
    const deadline = performance.now() + OPENING_MS;
    const reader = await this.#reach(deadline, () => this.#reading(), { isFirst: true });
    if (create && !reader.isStandby) await migrate(reader);
    const version = await readVersion(reader);
    const head = version === 0 ? NO_LINES : await readHead(reader, this.#place.ledger);
    if (head.size === 0 && !create)
      throw new NorthrootError('FILE_NOT_FOUND', `there is no ledger ${this.name}`, {
        hint: 'make it first',
      });
    ({ durability: this.#durability } = await readPromises(reader));
    const isForWriting =
      create || requires !== undefined || witness !== undefined || positionFile !== undefined;
    if (isForWriting && !reader.isStandby) await this.#reach(deadline, () => this.#writing());
  }

  /** Tries again while the server cannot be reached; the first time, not where there is none. */
  async #reach<T>(
    deadline: number,
    act: () => Promise<T>,
    {
      signal,
      isFirst = false,
    }: { readonly signal?: AbortSignal | undefined; readonly isFirst?: boolean } = {},
  ): Promise<T> {
    for (let pause = MIN_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        return await act();
      } catch (error) {
        const isLate = performance.now() + pause >= deadline;
        const mayCome =
          error instanceof NorthrootError
            ? error.code === 'STORE_UNREACHABLE'
            : outcomeOf(error) === 'unknown';
        signal?.throwIfAborted();
        if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
        if (!mayCome || isLate || (isFirst && error instanceof AbsentError)) throw error;
      }
      const either =
        signal === undefined ? this.#closed.signal : AbortSignal.any([this.#closed.signal, signal]);
      await sleep(pause, undefined, { signal: either }).catch(() => undefined);
    }
  }

  async #connect(kind: SessionKind): Promise<Session> {
    return Session.connect({ place: this.#place, kind, signal: this.#closed.signal });
  }

  #reading(): Promise<Session> {
    const opening = (this.#reader ??= this.#connect('reader').then((session) => {
      session.onLost(() => {
        if (this.#reader === opening) this.#reader = undefined;
      });
      if (this.#closed.signal.aborted) session.drop();
      this.#notices.listen(session);
      return session;
    }));
    opening.catch(() => {
      if (this.#reader === opening) this.#reader = undefined;
    });
    return opening;
  }

  /** A standby knows of no locks. */
  async #readingPrimary(): Promise<Session> {
    const session = await this.#reading();
    if (!session.isStandby) return session;
    session.drop();
    return this.#reading();
  }

  /** The session for writing, which has been asked what it keeps. */
  async #writing(): Promise<Session> {
    if (this.#writer?.isLost === false) return this.#writer;
    const session = await this.#connect('writer');
    try {
      // What it was connected to may be another server now.
      if (this.#writer !== undefined) (await this.#reader?.catch(() => undefined))?.drop();
      await this.#assertKeeps(session);
      if ((await readVersion(session)) > 0)
        await this.#vigil.assertStands(session, await readHead(session, this.#place.ledger));
      if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
      this.#vouched = undefined;
      return (this.#writer = session);
    } catch (error) {
      session.drop();
      throw error;
    }
  }

  /** @throws NorthrootError `STORE_NOT_DURABLE` */
  async #assertKeeps(session: Session): Promise<void> {
    const { requires, witness } = this.#options;
    const { durability, isAsynchronous, settings } = await readPromises(session);
    [this.#durability, this.#settings] = [durability, settings];
    if (requires === 'replicated' && durability !== 'replicated')
      throw notDurable(
        this.name,
        'no synchronous standby has what is committed',
        'set synchronous_standby_names, and see that such a standby follows',
      );
    if (isAsynchronous && witness === undefined) throw new UnwitnessedError(this.name);
  }

  async #acquire({ timeoutMs, signal, onWait }: AcquireOptions): Promise<Turn> {
    let tell = onWait;
    const deadline = performance.now() + timeoutMs;
    const { ledger } = this.#place;
    const keys = lockKeys(numberOf(ledger));
    const act = async (): Promise<Turn> => {
      signal?.throwIfAborted();
      const session = await this.#writing();
      const [tried, found] = await session.run(
        `select pg_try_advisory_lock(${keys}) as has, pg_backend_pid() as pid; ${headQuery(ledger)}`,
      );
      const row = tried?.rows[0];
      if (row?.['pid'] !== session.pid) {
        session.drop();
        throw unreachable(this.name, 'its session was given to another');
      }
      if (row['has'] === true && found !== undefined) return this.#begin(session, toHead(found, this.name));
      const left = Math.min(Math.floor(deadline - performance.now()), MAX_WAIT_MS);
      if (left <= 0) throw locked(this.name);
      // Not of a server that is waited for: nobody appends there.
      const telling = setTimeout(() => {
        tell?.();
        tell = undefined;
      }, SILENT_MS);
      try {
        return this.#begin(session, await this.#waitForLock(session, keys, left, signal));
      } finally {
        clearTimeout(telling);
      }
    };
    return this.#reach(deadline, act, { signal });
  }

  async #waitForLock(
    session: Session,
    keys: string,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Head> {
    const abort = (): void => void this.#leaveQueue(session);
    signal?.addEventListener('abort', abort);
    let silent: SilentHolder | undefined;
    const over = new AbortController();
    const watching = this.#silent.end((holder) => (silent = holder), over.signal);
    try {
      const results = await session.run(
        `set statement_timeout = 0; set lock_timeout = ${waitMs}; select pg_advisory_lock(${keys}); ` +
          `set lock_timeout = 0; set statement_timeout = 30000; ${headQuery(this.#place.ledger)}`,
        waitMs + ANSWER_MS,
      );
      signal?.throwIfAborted();
      const found = results.at(-1);
      if (found === undefined) throw unreachable(this.name, 'it does not answer');
      return toHead(found, this.name);
    } catch (error) {
      if (signal?.aborted === true) session.drop();
      signal?.throwIfAborted();
      if (codeOf(error) === '55P03') throw locked(this.name, silent);
      throw error;
    } finally {
      over.abort();
      await watching;
      signal?.removeEventListener('abort', abort);
    }
  }

  /** A process that waits for a lock does not see that its client is gone. */
  async #leaveQueue(session: Session): Promise<void> {
    const { pid } = session;
    session.drop();
    await this.#readingPrimary()
      .then((reader) => endWaiting(reader, numberOf(this.#place.ledger), pid))
      .catch(() => undefined);
  }

  #begin(session: Session, head: Head): Turn {
    const { acknowledged } = this.#vigil;
    if (acknowledged !== undefined && head.size < acknowledged.size) {
      session.drop();
      throw rolledBack(this.name, acknowledged.size);
    }
    return { session, head, endBeat: beat(session) };
  }

  async #release(turn: Turn): Promise<void> {
    if (this.#turn !== turn) return;
    this.#turn = undefined;
    const { session } = turn;
    turn.endBeat();
    if (session.isLost) return;
    try {
      await session.run(`select pg_advisory_unlock(${lockKeys(numberOf(this.#place.ledger))})`, RELEASE_MS);
    } catch {
      // The lock goes with its session.
      session.drop();
    }
  }

  #isWanted(): Promise<boolean> {
    const now = performance.now();
    if (this.#wanted === undefined || now - this.#wanted.at > WANTED_MS)
      this.#wanted = { at: now, answer: this.#askWanted() };
    return this.#wanted.answer;
  }

  async #askWanted(): Promise<boolean> {
    const session = await this.#readingPrimary();
    const [space, number] = lockKeys(numberOf(this.#place.ledger)).split(', ').map(Number);
    const { rows } = await session.ask(
      `select exists (select from pg_locks where locktype = 'advisory' and classid = $1 and objid = $2 and not granted
        and database = (select oid from pg_database where datname = current_database())) as wanted`,
      [space, number],
      'northroot-wanted',
    );
    return rows[0]?.['wanted'] === true;
  }

  #assertLocked(): Turn {
    if (this.#turn === undefined) throw needsLock();
    return this.#turn;
  }

  /** @throws NorthrootError `STORE_UNREACHABLE` once the lock is lost */
  async #end(turn: Turn): Promise<Head> {
    if (turn.session.isLost) throw unreachable(this.name, 'the session that holds the write lock has ended');
    try {
      return (turn.head ??= await readHead(turn.session, this.#place.ledger));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Writes a group, or makes sure that it is not written. */
  async #write(turn: Turn, group: Group): Promise<Head> {
    const { ledger } = this.#place;
    try {
      const { count, isUncertain } = await sendGroup(turn.session, ledger, group, this.#settings);
      if (count === 0) throw await this.#refused(turn.session);
      if (!isUncertain) return headOf(group);
    } catch (error) {
      if (error instanceof NorthrootError) throw error;
      if (outcomeOf(error) === 'refused') throw toStoreError(error, this.name);
    }
    return this.#pursue(group);
  }

  /** Why nothing was written. A server with other settings is to be asked again what it keeps. */
  async #refused(session: Session): Promise<NorthrootError> {
    if ((await readSettings(session)) === this.#settings) return conflict(this.name);
    session.drop();
    return unreachable(this.name, 'it does not promise what it did');
  }

  /** After a lost answer: sends the same lines until it is known whether they stand. */
  async #pursue(group: Group): Promise<Head> {
    const { patienceMs = DEFAULT_PATIENCE_MS } = this.#options;
    const deadline = performance.now() + patienceMs;
    const { ledger } = this.#place;
    for (let pause = MIN_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        const session = await this.#writing();
        const head = await readHead(session, ledger);
        if (head.size >= group.size) {
          if (!(await stands(session, head, group))) throw conflict(this.name);
          // It may stand on this server alone, until a later commit is where it is to be.
          const { count, isUncertain } = await touch(session, ledger, head, this.#settings);
          if (count > 0 && !isUncertain) return headOf(group);
          if (count === 0) await this.#refused(session);
        } else if (!isSameEnd(head, group.expected)) throw conflict(this.name);
        else {
          const { count, isUncertain } = await sendGroup(session, ledger, group, this.#settings);
          if (count > 0 && !isUncertain) return headOf(group);
          if (count === 0) await this.#refused(session);
        }
      } catch (error) {
        if (error instanceof NorthrootError && ['LEDGER_CONFLICT', 'LEDGER_ROLLED_BACK'].includes(error.code))
          throw error;
        if (this.#closed.signal.aborted || performance.now() > deadline) throw this.#uncertain(error);
      }
      if (performance.now() > deadline) throw this.#uncertain(undefined);
      await sleep(pause, undefined, { signal: this.#closed.signal }).catch(() => undefined);
    }
  }

  #uncertain(error: unknown): NorthrootError {
    const cause = error === undefined ? undefined : toStoreError(error, this.name);
    const why = cause === undefined ? '' : `: ${cause.message}`;
    return new NorthrootError(
      'STORE_UNCERTAIN',
      `it is not known whether ${this.name} has the last records${why}`,
      {
        ...defined({ cause }),
        hint: 'open the ledger again when the database, and its witness, answer, and look what it has',
      },
    );
  }

  async #acknowledge(session: Session, head: Head, base: StoredEnd): Promise<void> {
    const deadline = performance.now() + (this.#options.patienceMs ?? DEFAULT_PATIENCE_MS);
    await this.#vigil.acknowledge(head, base, (end) =>
      this.#reach(deadline, async () => {
        const at = session.isLost ? await this.#writing() : session;
        return stands(at, await readHead(at, this.#place.ledger), end);
      }),
    );
    this.#vouched = head;
  }

  async *#chunks(session: Session, head: Head): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* readPages(session, head, { size: 0, byteOffset: 0 }, this.#closed.signal);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(error: unknown): unknown {
    if (error instanceof TypeError) return error;
    return toStoreError(error, this.name);
  }
}

function headOf({ expected, size, tip, endOffset }: Group): Head {
  return { id: expected.id, size, tip, endOffset };
}

async function* oneOf(segment: Segment): AsyncGenerator<Segment, void, void> {
  yield await Promise.resolve(segment);
}

function locked(name: string, silent?: SilentHolder): NorthrootError {
  if (silent === undefined)
    return new NorthrootError('LEDGER_LOCKED', `another writer is appending to ${name}`, {
      hint: 'wait until it has finished, or wait longer for it',
    });
  const { pid, role } = silent;
  const why = `this role may not end session ${pid} of ${printable(role, 64)}`;
  return new NorthrootError(
    'LEDGER_LOCKED',
    `a writer that has gone silent holds the lock of ${name}, and ${why}`,
    {
      cause: new Error(why),
      hint: `end its process, or select pg_terminate_backend(${pid}) as an administrator; writers of one role, or with pg_signal_backend, end such sessions themselves`,
    },
  );
}
