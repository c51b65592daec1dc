/**
 * One connection to PostgreSQL. Statements follow one another; answers are bounded in size and time, after which the connection is ended.
 * The session is set up so that nothing depends on the defaults of the server, the database or the role.
 */

import type pg from 'pg';
import type { Client, CustomTypesConfig, QueryResult } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import {
  AbsentError,
  malformed,
  notConnected,
  outcomeOf,
  toStoreError,
  unreachable,
} from './postgres-error.js';
import type { PostgresPlace } from './postgres-url.js';

export type Row = Readonly<Record<string, unknown>>;

/** What a statement answers. */
export interface Answer {
  readonly rows: readonly Row[];
  readonly count: number;
  /** Whether the server warned that what was committed may not be everywhere that it was asked to be. */
  readonly isUncertain: boolean;
}

/** A writer needs the primary, and commits durably. A reader takes what there is, and what it commits need not last. */
export type SessionKind = 'writer' | 'reader';

export interface ConnectOptions {
  readonly place: PostgresPlace;
  readonly kind: SessionKind;
  readonly signal?: AbortSignal | undefined;
}

/** For connecting to one server, in milliseconds. */
const CONNECT_MS = 5_000;
/** For one statement, in milliseconds, by the server's clock; a connection that is silent for longer is ended. */
const STATEMENT_MS = 30_000;
const GRACE_MS = 5_000;
/** Of one answer, in bytes: a page of lines takes at most a tenth of it. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** A lost peer is noticed after about so many seconds: two probes, one a second. */
const KEEPALIVE_SECONDS = 3;
const OLDEST_SERVER = 120_000;

const SETTINGS: readonly string[] = [
  `set statement_timeout = ${STATEMENT_MS}`,
  'set lock_timeout = 0',
  'set idle_in_transaction_session_timeout = 60000',
  'set bytea_output = hex',
  `set default_transaction_isolation = 'read committed'`,
  'set search_path = pg_catalog',
  // A cancelled wait for the standby is told by a warning alone.
  'set client_min_messages = warning',
  'set standard_conforming_strings = on',
  `set tcp_keepalives_idle = ${KEEPALIVE_SECONDS}`,
  'set tcp_keepalives_interval = 1',
  'set tcp_keepalives_count = 2',
];

/** How columns are read, whatever a program has set for others: by the number of their type. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [16, (text) => text === 't'],
  [17, (text) => (text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex') : undefined)],
  [20, Number],
  [23, Number],
]);
const COLUMNS: CustomTypesConfig = {
  getTypeParser: (type: number): ((text: string) => unknown) => PARSERS.get(type) ?? ((text) => text),
};

export class Session {
  readonly name: string;
  /** Of the process that serves this session. */
  readonly pid: number;
  readonly isStandby: boolean;
  readonly #client: Client;
  #queue: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isLost = false;
  #warnings = 0;
  #received = 0;
  #limit = MAX_ANSWER_BYTES;
  readonly #onLost = new Set<() => void>();

  private constructor(client: Client, name: string, { pid, isStandby }: { pid: number; isStandby: boolean }) {
    this.#client = client;
    this.name = name;
    this.pid = pid;
    this.isStandby = isStandby;
    const lose = (): void => {
      this.#isLost = true;
      for (const listener of [...this.#onLost]) listener();
      this.#onLost.clear();
    };
    client.on('error', lose);
    client.on('end', lose);
    client.on('notice', ({ severity }) => {
      if (severity !== 'NOTICE') this.#warnings += 1;
    });
    const { stream } = (
      client as unknown as { readonly connection: { readonly stream: NodeJS.ReadableStream } }
    ).connection;
    stream.on('data', (bytes: Buffer) => {
      this.#received += bytes.length;
      if (this.#received > this.#limit) this.drop();
    });
  }

  /** @throws NorthrootError `PACKAGE_MISSING`, `STORE_UNREACHABLE`, `ACCESS_DENIED`, `FILE_NOT_FOUND`, `STORE_UNSUPPORTED` */
  static async connect({ place, kind, signal }: ConnectOptions): Promise<Session> {
    const { name, servers } = place;
    let first: unknown;
    let standby: Session | undefined;
    for (const server of servers) {
      signal?.throwIfAborted();
      try {
        const session = await connectTo(server, name, kind, signal);
        if (!session.isStandby) {
          standby?.drop();
          return session;
        }
        if (kind === 'writer' || standby !== undefined) session.drop();
        else standby = session;
        if (kind === 'writer' && (first === undefined || first instanceof AbsentError))
          first = unreachable(name, 'it is a standby, and takes no records');
      } catch (error) {
        signal?.throwIfAborted();
        // A server that is there and does not take us says more than one that is not.
        if (first === undefined || first instanceof AbsentError) first = error;
      }
    }
    if (standby !== undefined) return standby;
    throw first;
  }

  static open(client: Client, name: string, of: { pid: number; isStandby: boolean }): Session {
    return new Session(client, name, of);
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether nothing is asked now. */
  get isIdle(): boolean {
    return !this.#isLost && this.#waiting === 0;
  }

  /** Calls once when the connection is gone. Returns what takes the listener back. */
  onLost(listener: () => void): () => void {
    if (this.#isLost) listener();
    else this.#onLost.add(listener);
    return () => void this.#onLost.delete(listener);
  }

  onNotification(listener: (channel: string) => void): void {
    this.#client.on('notification', ({ channel }) => listener(channel));
  }

  /** A statement with values. @throws the driver's errors; see `outcomeOf` */
  ask(text: string, values: readonly unknown[], name?: string): Promise<Answer> {
    const query = { text, values: [...values], types: COLUMNS, ...(name === undefined ? {} : { name }) };
    return this.#next(STATEMENT_MS + GRACE_MS, async () => toAnswer(await this.#client.query<Row>(query)));
  }

  /**
   * Statements without values, one after the other; together one transaction, unless they say otherwise.
   * @param limitMs - Of the answer; undefined waits as long as the connection stands
   */
  run(text: string, limitMs: number | undefined = STATEMENT_MS + GRACE_MS): Promise<Answer[]> {
    return this.#next(limitMs, async () => {
      const results = (await this.#client.query<Row>({ text, types: COLUMNS })) as
        QueryResult<Row> | QueryResult<Row>[];
      return (Array.isArray(results) ? results : [results]).map(toAnswer);
    });
  }

  /** Ends the connection at once: what runs may or may not be done. */
  drop(): void {
    this.#isLost = true;
    const { stream } = (
      this.#client as unknown as {
        readonly connection: { readonly stream: { destroy(error?: Error): void } };
      }
    ).connection;
    stream.destroy();
    for (const listener of [...this.#onLost]) listener();
    this.#onLost.clear();
  }

  async close(): Promise<void> {
    if (this.#isLost) return;
    this.#isLost = true;
    await Promise.race([this.#client.end(), sleep(1_000, undefined, { ref: false })]).catch(() => undefined);
    this.drop();
  }

  #next<T extends Answer | Answer[]>(limitMs: number | undefined, act: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const turn = this.#queue.then(async () => {
      if (this.#isLost) throw lost();
      const before = this.#warnings;
      this.#received = 0;
      const timer = limitMs === undefined ? undefined : setTimeout(() => this.drop(), limitMs);
      let stop = (): void => undefined;
      const gone = new Promise<never>((_, reject) => {
        stop = this.onLost(() => reject(lost()));
      });
      try {
        const result = await Promise.race([act(), gone]);
        return this.#warnings === before ? result : uncertain(result);
      } finally {
        clearTimeout(timer);
        stop();
      }
    });
    const end = (): void => void (this.#waiting -= 1);
    this.#queue = turn.then(end, end);
    return turn;
  }
}

/** Without a SQLSTATE: nothing is known. */
function lost(): Error {
  return new Error('the connection ended');
}

function toAnswer({ rows, rowCount }: QueryResult<Row>): Answer {
  return { rows: rows ?? [], count: rowCount ?? 0, isUncertain: false };
}

function uncertain<T extends Answer | Answer[]>(result: T): T {
  return (
    Array.isArray(result)
      ? result.map((each) => ({ ...each, isUncertain: true }))
      : { ...result, isUncertain: true }
  ) as T;
}

async function connectTo(
  server: string,
  name: string,
  kind: SessionKind,
  signal: AbortSignal | undefined,
): Promise<Session> {
  const { default: driver } = await loadDriver();
  let client: Client;
  try {
    client = new driver.Client({
      connectionString: server,
      application_name: 'northroot',
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_SECONDS * 1_000,
    });
  } catch (error) {
    const why = error instanceof TypeError ? 'it cannot be read' : printable((error as Error).message);
    throw new NorthrootError('STORE_URL_INVALID', `the URL of ${name} is malformed: ${why}`, {
      hint: 'write postgres://USER@HOST/DATABASE#NAME',
    });
  }
  const ignore = (): void => undefined;
  client.on('error', ignore);
  const abort = (): void => void client.end().catch(ignore);
  const begun = performance.now();
  signal?.addEventListener('abort', abort);
  try {
    await client.connect();
    const settings = [...SETTINGS, synchronousCommit(kind)];
    const text = `${settings.join('; ')}; select pg_backend_pid() as pid, pg_is_in_recovery() as standby,
      current_setting('server_version_num')::int as version`;
    const results = (await client.query<Row>({ text, types: COLUMNS })) as unknown as QueryResult<Row>[];
    const { pid, standby, version } = results.at(-1)?.rows[0] ?? {};
    if (!Number.isSafeInteger(pid) || typeof standby !== 'boolean' || typeof version !== 'number')
      throw malformed(name, 'it does not say what it is');
    if (version < OLDEST_SERVER) {
      throw new NorthrootError('STORE_UNSUPPORTED', `${name} is PostgreSQL ${Math.floor(version / 10_000)}`, {
        hint: 'use PostgreSQL 12 or later',
      });
    }
    // From version 14 on, where its system can: a server that waits notices that its client is gone.
    if (version >= 140_000) await client.query('set client_connection_check_interval = 2000').catch(ignore);
    const session = Session.open(client, name, { pid: pid as number, isStandby: standby });
    client.off('error', ignore);
    return session;
  } catch (error) {
    void client.end().catch(ignore);
    signal?.throwIfAborted();
    throw outcomeOf(error) === 'unknown' && !(error instanceof NorthrootError)
      ? notConnected(name, error, performance.now() - begun >= CONNECT_MS ? CONNECT_MS : undefined)
      : toStoreError(error, name);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** `local` and `off`, which a database may have as a default, would lose records. */
function synchronousCommit(kind: SessionKind): string {
  if (kind === 'reader') return 'set synchronous_commit = off';
  return (
    `select set_config('synchronous_commit',` +
    ` case when current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply' else 'on' end, false)`
  );
}

async function loadDriver(): Promise<{ readonly default: Pick<typeof pg, 'Client'> }> {
  try {
    return await import('pg');
  } catch (error) {
    throw new NorthrootError('PACKAGE_MISSING', 'the package pg cannot be loaded', {
      cause: error,
      hint: 'install it beside northroot: npm install pg',
    });
  }
}
