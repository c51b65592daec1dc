/**
 * A ledger on a server behind a network, over the store in memory: what is sent comes late, twice, or not at all, answers are lost, sessions
 * end while their holder believes in its lock, and a standby that is promoted may lack the last records. Appends are sent again until their
 * end is known, as a store MUST do that has no other way to tell.
 */

import { NorthrootError } from '../../src/base/error.js';
import {
  type AcquireOptions,
  type Durability,
  type LedgerStore,
  type LinePlace,
  needsLock,
  type NextPlace,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from '../../src/log/store/ledger-store.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { MemoryStore } from '../store/memory-store.js';
import type { Chance, Life, Scheduler } from './scheduler.js';

/** How likely each fault is, of each message; 0 for none. */
export interface NetworkFaults {
  readonly lostBefore: number;
  readonly lostAfter: number;
  /** It arrives twice. */
  readonly twice: number;
  /** It arrives when its sender has given it up. */
  readonly late: number;
  /** The sender's session ends, and its lock with it. */
  readonly sessionLost: number;
  /** The longest delay, in milliseconds. */
  readonly delayMs: number;
}

export const NO_FAULTS: NetworkFaults = {
  lostBefore: 0,
  lostAfter: 0,
  twice: 0,
  late: 0,
  sessionLost: 0,
  delayMs: 4,
};

/** What a store is made to do wrongly, to see that it is found. */
export type Weakness =
  /** Appends whatever is expected. */
  | 'no-compare'
  /** Says that something is appended when it was only sent. */
  | 'answers-early'
  /** Takes a lost answer for success. */
  | 'believes-in-success'
  /** Sends again what was lost without a condition. */
  | 'resends-blindly';

const GIVE_UP_MS = 400;
const KEEPALIVE_MS = 3_000;
const LATE_MS = 4_000;
const SILENT_MS = 1_000;

interface Session {
  readonly name: string;
}

interface Waiter {
  readonly session: Session;
  readonly grant: () => void;
}

/** The server, and who has its lock. */
export class SimServer {
  readonly memory: MemoryStore;
  readonly view: LedgerStore;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly note: (text: string) => void;
  weakness: Weakness | undefined;
  faults: NetworkFaults = NO_FAULTS;
  /** Ids of all events that were ever stored, base64url. */
  readonly everStored = new Set<string>();
  /** Counts promotions: what was sent before one does not arrive. */
  epoch = 0;
  #holder: Session | undefined;
  #waiters: Waiter[] = [];

  constructor(life: Life, chance: Chance, note: (text: string) => void) {
    this.scheduler = life.scheduler;
    this.chance = chance;
    this.note = note;
    this.memory = new MemoryStore({ name: 'sim', hasLocks: false, clock: life.clock });
    this.view = this.memory.open();
  }

  /** Its own session, under which all is done. */
  async begin(): Promise<void> {
    await this.view.acquire({ timeoutMs: 0 });
  }

  async append(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void> {
    await this.view.appendIf(this.weakness === 'no-compare' ? this.#end() : expected, lines);
    this.#keep(lines);
  }

  async appendBlindly(lines: readonly Uint8Array[]): Promise<void> {
    await this.view.appendIf(this.#end(), lines);
    this.#keep(lines);
  }

  #keep(lines: readonly Uint8Array[]): void {
    for (const line of lines) {
      const [, id] = /"event_id":\{"alg":"sha-256","b64":"([^"]+)"/.exec(Buffer.from(line).toString()) ?? [];
      this.everStored.add(id ?? '');
    }
  }

  #end(): StoredEnd {
    return this.memory.end();
  }

  /** The lines from one on, if there are as many. */
  linesFrom(size: number, count: number): readonly Uint8Array[] | undefined {
    return this.memory.linesFrom(size, count);
  }

  /** A standby takes over: sessions end, and with an asynchronous one the last lines may be gone. */
  promote(size: number): void {
    this.epoch += 1;
    this.note(`promote ${this.memory.size} -> ${size}`);
    if (size < this.memory.size) this.memory.rollBack(size);
    this.#holder = undefined;
    this.#next();
  }

  isWanted(): boolean {
    return this.#waiters.length > 0;
  }

  take(session: Session, granted: () => void): void {
    if (this.#holder === session) {
      granted();
      return;
    }
    this.#waiters.push({ session, grant: granted });
    this.#next();
  }

  leave(session: Session): void {
    this.#waiters = this.#waiters.filter((waiter) => waiter.session !== session);
    if (this.#holder !== session) return;
    this.#holder = undefined;
    this.#next();
  }

  #next(): void {
    if (this.#holder !== undefined) return;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) return;
    this.#holder = waiter.session;
    waiter.grant();
  }
}

/** One program's store. */
export class SimStore implements LedgerStore {
  readonly name = 'sim';
  readonly durability: Durability = 'replicated';
  readonly #server: SimServer;
  readonly #life: Life;
  readonly #chance: Chance;
  readonly #closed = new AbortController();
  /** Of the lock; a new one with each. */
  #session: Session | undefined;
  /** All that the server may have heard of and not the end of. */
  readonly #sessions = new Set<Session>();

  constructor(server: SimServer, life: Life) {
    this.#server = server;
    this.#life = life;
    this.#chance = server.chance.fork();
  }

  async *read(from?: StorePosition): AsyncGenerator<Stored, void, void> {
    const all = await this.#again('read', async () => {
      const found: Stored[] = [];
      for await (const stored of this.#server.view.read(from))
        found.push(stored.kind === 'lines' ? { ...stored, lines: [...stored.lines] } : stored);
      return found;
    });
    yield* all;
  }

  readLine(place: LinePlace): Promise<Uint8Array | undefined> {
    return this.#again('line', () => this.#server.view.readLine(place));
  }

  source(): Promise<LedgerSource> {
    return this.#again('source', () => this.#server.view.source());
  }

  async nextPlace(seq: number): Promise<NextPlace> {
    if (this.#session === undefined) throw needsLock();
    return this.#again('place', () => this.#server.view.nextPlace(seq));
  }

  async appendIf(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void> {
    if (this.#session === undefined) throw needsLock();
    const server = this.#server;
    const what = `append ${expected.size}+${lines.length}`;
    if (server.weakness === 'answers-early') {
      void this.#send(what, () => server.append(expected, lines)).catch(() => undefined);
      return this.#life.sleep(1);
    }
    let isAgain = false;
    for (;;) {
      const isBlind = isAgain && server.weakness === 'resends-blindly';
      try {
        return await this.#send(what, () =>
          isBlind ? server.appendBlindly(lines) : server.append(expected, lines),
        );
      } catch (error) {
        if (error instanceof Lost) {
          if (server.weakness === 'believes-in-success') return;
          isAgain = true;
          continue;
        }
        // An earlier copy of them may be what has come first.
        if (!isAgain || !(await this.#isThere(expected, lines))) throw error;
        return;
      }
    }
  }

  async #isThere({ size }: StoredEnd, lines: readonly Uint8Array[]): Promise<boolean> {
    const found = await this.#again('look', () =>
      Promise.resolve(this.#server.linesFrom(size, lines.length)),
    );
    return found !== undefined && found.every((line, index) => Buffer.from(line).equals(lines[index] ?? []));
  }

  async acquire({ timeoutMs, signal, onWait }: AcquireOptions): Promise<WriteLock> {
    if (this.#session !== undefined) throw new TypeError('the store is acquired already');
    signal?.throwIfAborted();
    const session: Session = { name: this.#life.name };
    this.#sessions.add(session);
    await this.#wait(session, timeoutMs, signal, onWait);
    this.#session = session;
    let isReleased = false;
    return {
      release: async () => {
        if (isReleased) return;
        isReleased = true;
        if (this.#session === session) this.#session = undefined;
        await this.#end(session);
      },
      isWanted: () => this.#again('wanted', () => Promise.resolve(this.#server.isWanted())),
    };
  }

  confirm(): Promise<void> {
    return this.#again('confirm', () => Promise.resolve());
  }

  settleTornTail(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void> {
    while (signal?.aborted !== true && !this.#closed.signal.aborted && this.#server.memory.size <= from.size)
      await this.#life.sleep(100);
    signal?.throwIfAborted();
  }

  discard(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const session = this.#session;
    this.#session = undefined;
    if (session !== undefined) await this.#end(session);
  }

  /** The program is gone: the server finds that its session is. */
  abandon(): void {
    for (const session of this.#sessions)
      this.#server.scheduler.after(this.#chance.within(1, KEEPALIVE_MS), () => this.#server.leave(session));
  }

  /** The session ends, and its holder does not know. */
  loseSession(): void {
    if (this.#session === undefined) return;
    this.#server.note(`${this.#life.name}: session lost`);
    this.#server.leave(this.#session);
  }

  async #end(session: Session): Promise<void> {
    // What does not arrive is found by the keepalive.
    const ms = this.#chance.is(this.#server.faults.lostBefore) ? KEEPALIVE_MS : this.#delay();
    this.#server.scheduler.after(ms, () => {
      this.#sessions.delete(session);
      this.#server.leave(session);
    });
    await this.#life.sleep(1);
  }

  #wait(
    session: Session,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    onWait: (() => void) | undefined,
  ): Promise<void> {
    const { clock } = this.#life;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void): void => {
        if (isOver) return;
        isOver = true;
        for (const timer of [late, telling]) clock.clear(timer);
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const leave = (error: Error): void =>
        end(() => {
          this.#sessions.delete(session);
          server.leave(session);
          reject(error);
        });
      const abort = (): void => leave(signal?.reason as Error);
      const locked = (): void =>
        leave(new NorthrootError('LEDGER_LOCKED', 'another writer is appending to sim'));
      const late = clock.setTimeout(locked, Math.min(timeoutMs, 2 ** 31 - 1));
      const telling = clock.setTimeout(() => onWait?.(), SILENT_MS);
      signal?.addEventListener('abort', abort);
      server.scheduler.after(this.#delay(), () => {
        if (isOver) return;
        server.take(session, () => {
          // Nobody may be there any more to hear of it.
          if (isOver || this.#life.isDead) server.scheduler.after(KEEPALIVE_MS, () => server.leave(session));
          else this.#life.after(this.#delay(), () => end(resolve));
        });
      });
    });
  }

  #delay(): number {
    return this.#chance.within(0, this.#server.faults.delayMs);
  }

  /** Asks until there is an answer. */
  async #again<T>(what: string, run: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#send(what, run);
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
      }
    }
  }

  /** @throws Lost where no answer comes */
  #send<T>(what: string, run: () => Promise<T>): Promise<T> {
    const server = this.#server;
    const { faults, scheduler, epoch } = server;
    const chance = this.#chance;
    if (chance.is(faults.sessionLost)) this.loseSession();
    const fate = this.#drawFate(faults);
    if (fate !== 'ok') server.note(`${this.#life.name}: ${what}: ${fate}`);
    return new Promise<T>((resolve, reject) => {
      const hear = (settle: () => void): void => void this.#life.after(this.#delay(), settle);
      const arrive = (isHeard: boolean): void => {
        // A server that is no more does nothing.
        if (server.epoch !== epoch && fate !== 'late') {
          if (isHeard) this.#life.after(GIVE_UP_MS, () => reject(new Lost()));
          return;
        }
        run().then(
          (result) => {
            if (isHeard) hear(() => resolve(result));
          },
          (error: Error) => {
            if (isHeard) hear(() => reject(error));
          },
        );
      };
      const isHeard = fate === 'ok' || fate === 'twice';
      if (!isHeard) this.#life.after(GIVE_UP_MS, () => reject(new Lost()));
      const arriveAfter = (ms: number, heard: boolean): void => void scheduler.after(ms, () => arrive(heard));
      if (fate === 'late') arriveAfter(GIVE_UP_MS + chance.below(LATE_MS), false);
      else if (fate !== 'lost before') arriveAfter(this.#delay(), isHeard);
      if (fate === 'twice') arriveAfter(this.#delay() + chance.below(50), false);
    });
  }

  #drawFate(faults: NetworkFaults): 'ok' | 'lost before' | 'lost after' | 'twice' | 'late' {
    const drawn = this.#chance.fraction();
    let sum = 0;
    const kinds = [
      ['lost before', faults.lostBefore],
      ['lost after', faults.lostAfter],
      ['twice', faults.twice],
      ['late', faults.late],
    ] as const;
    for (const [kind, probability] of kinds) {
      sum += probability;
      if (drawn < sum) return kind;
    }
    return 'ok';
  }
}

/** No answer came. */
class Lost extends Error {
  constructor() {
    super('no answer came');
  }
}
