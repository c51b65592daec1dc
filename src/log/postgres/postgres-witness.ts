/** A witness in another database than the ledger's: a row of its table `witness`, by the ledger's name. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { StoredEnd } from '../store/ledger-store.js';
import { isSameEnd, toEnd } from './head.js';
import { notDurable, readPromises } from './durability.js';
import { malformed, toStoreError, unreachable } from './postgres-error.js';
import { parsePostgresUrl, type PostgresPlace } from './postgres-url.js';
import { migrate } from './schema.js';
import { type Answer, Session } from './session.js';
import type { PositionWitness } from './witness.js';

/** How long a lost answer is pursued, and the pause between, in milliseconds. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 200;

const READ = 'select size, tip from northroot.witness where name = $1';
const FIRST =
  'insert into northroot.witness (name, size, tip) values ($1, $2, $3) on conflict (name) do nothing';
const NEXT = 'update northroot.witness set size = $2, tip = $3 where name = $1 and size = $4 and tip = $5';

/** Keeps the acknowledged position of one ledger in another database than the ledger's: its writers share it. */
export class PostgresWitness implements PositionWitness {
  readonly name: string;
  readonly #place: PostgresPlace;
  readonly #closed = new AbortController();
  #session: Promise<Session> | undefined;

  private constructor(place: PostgresPlace) {
    this.name = place.name;
    this.#place = place;
  }

  /**
   * Opens a witness, and makes the tables where they are missing.
   * @param url - As for {@link PostgresStore.open}, of a database elsewhere
   * @throws NorthrootError as {@link PostgresStore.open} does
   */
  static async open(url: string): Promise<PostgresWitness> {
    const witness = new PostgresWitness(parsePostgresUrl(url));
    try {
      await migrate(await witness.#connected());
      return witness;
    } catch (error) {
      await witness.close();
      throw toStoreError(error, witness.name);
    }
  }

  async read(): Promise<StoredEnd | undefined> {
    return this.#pursue(async (session) => {
      const { rows } = await session.ask(READ, [this.#place.ledger]);
      if (rows[0] === undefined) return undefined;
      const end = toEnd(rows[0]);
      if (end === undefined) throw malformed(this.name, 'its position is none');
      return end;
    });
  }

  async advance(from: StoredEnd | undefined, to: StoredEnd): Promise<boolean> {
    const { ledger } = this.#place;
    // Its table has no such row, and who opened it may write there.
    if (to.size === 0) return (await this.read()) === undefined;
    let isUnsure = false;
    return this.#pursue(async (session) => {
      const values = [ledger, to.size, to.tip];
      const was = isUnsure;
      isUnsure = true;
      const answer = await (from === undefined
        ? session.ask(FIRST, values)
        : session.ask(NEXT, [...values, from.size, from.tip]));
      this.#assertCertain(answer);
      isUnsure = false;
      if (answer.count > 0) return true;
      if (!was) return false;
      // The first attempt may have done it; one more commit makes sure that it lasts.
      this.#assertCertain(await session.ask(NEXT, [...values, to.size, to.tip]));
      const end = toEnd((await session.ask(READ, [ledger])).rows[0] ?? {});
      return end !== undefined && isSameEnd(end, to);
    });
  }

  hintToBegin({ size, tip }: StoredEnd): string {
    const row = `('${this.#place.ledger}', ${size}, '${tip}')`;
    return `check which database ${this.name} is; where it is to begin now: insert into northroot.witness (name, size, tip) values ${row}`;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#session?.then((session) => session.close()).catch(() => undefined);
  }

  #assertCertain({ isUncertain }: Answer): void {
    if (isUncertain) throw unreachable(this.name, 'its standby did not answer');
  }

  async #pursue<T>(act: (session: Session) => Promise<T>): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await act(await this.#connected());
      } catch (error) {
        const isOver = this.#closed.signal.aborted || performance.now() > deadline;
        const failure = toStoreError(error, this.name);
        if (isOver || failure.code !== 'STORE_UNREACHABLE') throw failure;
      }
      await sleep(PAUSE_MS);
    }
  }

  /** @throws NorthrootError `STORE_NOT_DURABLE` where a failover could make the witness forget */
  #connected(): Promise<Session> {
    const place = this.#place;
    const opening = (this.#session ??= (async () => {
      const session = await Session.connect({ place, kind: 'writer', signal: this.#closed.signal });
      try {
        if (!(await readPromises(session)).isAsynchronous) return session;
        throw notDurable(this.name, 'a failover would lose positions', 'set synchronous_standby_names');
      } catch (error) {
        session.drop();
        throw error;
      }
    })());
    const forget = (): void => {
      if (this.#session === opening) this.#session = undefined;
    };
    opening.then((session) => session.onLost(forget), forget);
    return opening;
  }
}
