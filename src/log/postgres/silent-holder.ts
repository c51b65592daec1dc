/**
 * A writer that stops while it holds the lock, such as a paused process, keeps its session and with it the lock: its machine still answers
 * for it. Who waits looks whether the session that holds the lock does anything. A writer that is busy tells its server something once a
 * second; one that is seen silent for longer, by the clock of who waits, has its session ended. That is safe at any moment: lines are
 * appended only behind the expected end, and a writer that goes on without its session begins anew.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from './postgres-error.js';
import { LOCK_SPACE } from './schema.js';
import type { Session } from './session.js';

/** How often the holder of a lock tells its server something, in milliseconds. */
const BEAT_MS = 1_000;
/** A holder that is seen silent for so long is gone. */
const SILENT_MS = 3_000;
/** One that does not take an answer may be far away. */
const UNREAD_MS = 30_000;
/** How often who waits looks. */
const LOOK_MS = 500;
/** The first time: most waits end before. */
const FIRST_LOOK_MS = 250;

/** Another session may have its number by now, or on another server. */
const LEAVE = `select pg_terminate_backend(pid) from pg_locks
where locktype = 'advisory' and classid = $1 and objid = $2 and not granted and pid = $3
  and database = (select oid from pg_database where datname = current_database())`;

/** The session that holds a ledger's lock, while its server waits for it. What the role may not see is null. */
const WAITED_FOR = `from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = $1 and l.objid = $2 and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database())
  and a.application_name in ('northroot', current_setting('application_name'))
  and a.wait_event_type = 'Client'`;
const FIND = `select l.pid, a.usename as role, a.state_change::text as since, a.state = 'active' as is_unread ${WAITED_FOR}`;
const END = `select pg_terminate_backend(l.pid) as ended ${WAITED_FOR} and l.pid = $3 and a.state_change::text = $4`;

/** A session that has gone silent, and that this role may not end. */
export interface SilentHolder {
  readonly pid: number;
  readonly role: string;
}

/** Tells the server now and then that who holds the lock is there. Returns what stops it. */
export function beat(session: Session): () => void {
  const timer = setInterval(() => {
    if (session.isIdle) session.ask('select 1', []).catch(() => undefined);
  }, BEAT_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Ends a session that waits for a ledger's lock. @throws as the session does */
export async function endWaiting(session: Session, number: number, pid: number): Promise<void> {
  await session.ask(LEAVE, [LOCK_SPACE, number, pid]);
}

/** Ends silent holders of a ledger's lock. What it has seen of them lasts from one wait to the next, which may be shorter. */
export class SilentHolders {
  readonly #number: number;
  readonly #reading: () => Promise<Session>;
  /** What the server told of a session last, and when by the clock of this process: the server's may be set. */
  #seen: { readonly pid: number; readonly since: string; readonly at: number } | undefined;

  /**
   * @param number - The ledger's, the second key of its lock
   * @param reading - A session of the server that has the lock
   */
  constructor(number: number, reading: () => Promise<Session>) {
    this.#number = number;
    this.#reading = reading;
  }

  /**
   * Ends them until the signal aborts.
   * @param onDenied - Told of one that this role may not end
   */
  async end(onDenied: (holder: SilentHolder) => void, signal: AbortSignal): Promise<void> {
    for (let pause = FIRST_LOOK_MS; !signal.aborted; pause = LOOK_MS) {
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.#look(await this.#reading(), onDenied);
      } catch {
        // Whoever waits for the lock reports what is wrong with the server.
      }
    }
  }

  async #look(session: Session, onDenied: (holder: SilentHolder) => void): Promise<void> {
    const asked = performance.now();
    const [row] = (await session.ask(FIND, [LOCK_SPACE, this.#number])).rows;
    const seen = this.#seen;
    this.#seen = undefined;
    const { pid, role, since, is_unread: isUnread } = row ?? {};
    if (typeof pid !== 'number' || typeof role !== 'string' || typeof since !== 'string') return;
    const isSame = seen?.pid === pid && seen.since === since;
    // An answer may be late: it was so from here on.
    this.#seen = isSame ? seen : { pid, since, at: performance.now() };
    if (asked - this.#seen.at < (isUnread === true ? UNREAD_MS : SILENT_MS)) return;
    await session.ask(END, [LOCK_SPACE, this.#number, pid, since]).catch((error: unknown) => {
      if (codeOf(error) === '42501') onDenied({ pid, role });
    });
  }
}
