/**
 * One connection to PostgreSQL. Statements follow one another; answers are bounded in size and time, after which the connection is ended.
 * The session is set up so that nothing depends on the defaults of the server, the database or the role.
 */

import type pg from 'pg';
import type { Client, CustomTypesConfig, QueryResult } from 'pg';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import {
  AbsentError,
  codeOf,
  malformed,
  notConnected,
  outcomeOf,
  toStoreError,
  unreachable,
} from './postgres-error.js';
import type { PostgresPlace } from './postgres-url.js';

export type Row = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly rows: readonly Row[];
  readonly count: number;
  /** Whether the server warned that what was committed may not be everywhere that it was asked to be. */
  readonly isUncertain: boolean;
}

/** A writer needs the primary. A reader takes what there is. */
export type SessionKind = 'writer' | 'reader';

export interface ConnectOptions {
  readonly place: PostgresPlace;
  readonly kind: SessionKind;
  readonly signal?: AbortSignal | undefined;
}

/** For connecting to one server, in milliseconds. */
const CONNECT_MS = 5_000;
/** How long the other servers are waited for once one is connected to that is the primary, in milliseconds. */
const OTHERS_MS = 1_000;
/** For one statement, in milliseconds, by the server's clock. */
const STATEMENT_MS = 30_000;
/** A connection that is silent for so long after a statement is ended. */
export const ANSWER_MS: number = STATEMENT_MS + 5_000;
/** For taking leave of a server, in milliseconds. */
const FAREWELL_MS = 1_000;
/** Of one answer, in bytes: a page of lines takes at most a tenth of it. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** A lost peer is noticed after about so many seconds: two probes, one a second. */
const KEEPALIVE_SECONDS = 3;
const OLDEST_SERVER = 120_000;

const SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: `${STATEMENT_MS}`,
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '60000',
  bytea_output: 'hex',
  default_transaction_isolation: 'read committed',
  search_path: 'pg_catalog',
  // A cancelled wait for the standby is told by a warning alone.
  client_min_messages: 'warning',
  standard_conforming_strings: 'on',
  tcp_keepalives_idle: `${KEEPALIVE_SECONDS}`,
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '2',
};

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

/** What a session knows of its server. */
type Introduced = Pick<Session, 'pid' | 'isStandby'>;

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

  private constructor(client: Client, name: string, { pid, isStandby }: Introduced) {
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
    streamOf(client).on('data', (bytes: Buffer) => {
      this.#received += bytes.length;
      if (this.#received > this.#limit) this.drop();
    });
  }

  /**
   * Connects to the primary, or else for reading to a standby. Of several servers that take themselves for the primary, the one that was
   * promoted last is it: another one was given up, and came back.
   * @throws NorthrootError `PACKAGE_MISSING`, `STORE_UNREACHABLE`, `ACCESS_DENIED`, `FILE_NOT_FOUND`, `STORE_UNSUPPORTED`
   */
  static async connect({ place, kind, signal }: ConnectOptions): Promise<Session> {
    const { name, servers } = place;
    const tries = await connectToAll(servers, name, signal);
    const sessions = tries.flatMap(({ session }) => session ?? []);
    const primaries = sessions.filter(({ isStandby }) => !isStandby);
    const chosen = (await lastPromoted(primaries)) ?? (kind === 'reader' ? sessions[0] : undefined);
    for (const session of sessions) if (session !== chosen) session.drop();
    if (signal?.aborted === true) chosen?.drop();
    signal?.throwIfAborted();
    if (chosen !== undefined) return chosen;
    let first: unknown;
    for (const { session, error = unreachable(name, 'it is a standby, and takes no records') } of tries)
      // A server that is there and does not take us says more than one that is not.
      if (session !== undefined || !(error instanceof AbsentError)) first ??= error;
    throw first ?? tries[0]?.error;
  }

  static open(client: Client, name: string, of: Introduced): Session {
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
    return this.#next(ANSWER_MS, async () => toAnswer(await this.#client.query<Row>(query)));
  }

  /**
   * Statements without values, one after the other; together one transaction, unless they say otherwise.
   * @param limitMs - Of the answer
   */
  run(text: string, limitMs: number = ANSWER_MS): Promise<Answer[]> {
    return this.#next(limitMs, async () => {
      const results = (await this.#client.query<Row>({ text, types: COLUMNS })) as
        | QueryResult<Row>
        | QueryResult<Row>[];
      return (Array.isArray(results) ? results : [results]).map(toAnswer);
    });
  }

  /** Ends the connection at once: what runs may or may not be done. */
  drop(): void {
    this.#isLost = true;
    streamOf(this.#client).destroy();
    for (const listener of [...this.#onLost]) listener();
    this.#onLost.clear();
  }

  async close(): Promise<void> {
    if (this.#isLost) return;
    this.#isLost = true;
    await farewell(this.#client);
    this.drop();
  }

  #next<T extends Answer | Answer[]>(limitMs: number, act: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const turn = this.#queue.then(async () => {
      if (this.#isLost) throw lost();
      const before = this.#warnings;
      this.#received = 0;
      const timer = setTimeout(() => this.drop(), limitMs);
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

/** What the driver speaks through; after a handshake another one. */
function streamOf(client: Client): Duplex {
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream;
}

/** Takes leave of the server, and ends the connection whether it answers or not. */
async function farewell(client: Client): Promise<void> {
  await Promise.race([client.end(), sleep(FAREWELL_MS, undefined, { ref: false })]).catch(() => undefined);
  streamOf(client).destroy();
}

/** How often a server was promoted, and those that it was copied of: ascending texts. */
const TIMELINE = 'select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline';

/** Of several primaries; the first, where that cannot be told. */
async function lastPromoted(primaries: readonly Session[]): Promise<Session | undefined> {
  if (primaries.length < 2) return primaries[0];
  const timelines = await Promise.all(
    primaries.map((session) =>
      session.ask(TIMELINE, []).then(
        ({ rows }) => String(rows[0]?.['timeline']),
        () => '',
      ),
    ),
  );
  const last = timelines.reduce((most, each) => (each > most ? each : most), '');
  return primaries[timelines.indexOf(last)];
}

interface Try {
  readonly session?: Session;
  readonly error?: unknown;
}

/** All that can be had of some servers; where one is a primary, of those that answer soon. */
async function connectToAll(
  servers: readonly string[],
  name: string,
  signal: AbortSignal | undefined,
): Promise<Try[]> {
  const tries = servers.map((): Try => ({}));
  const over = new AbortController();
  const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  let tellPrimary = (): void => undefined;
  const hasPrimary = new Promise<void>((resolve) => (tellPrimary = resolve));
  const connecting = servers.map(async (server, at) => {
    try {
      const session = await connectTo(server, name, either);
      if (over.signal.aborted) session.drop();
      else tries[at] = { session };
      if (!session.isStandby) tellPrimary();
    } catch (error) {
      tries[at] = { error };
    }
  });
  const soon = hasPrimary.then(() =>
    sleep(OTHERS_MS, undefined, { signal: over.signal }).catch(() => undefined),
  );
  await Promise.race([Promise.all(connecting), soon]);
  const found = [...tries];
  over.abort();
  return found;
}

/** @throws what the signal was aborted with, at once, whatever the server does */
async function connectTo(server: string, name: string, signal: AbortSignal | undefined): Promise<Session> {
  const begun = performance.now();
  const ignore = (): void => undefined;
  const clients: Client[] = [];
  const connect = async (): Promise<Client> => {
    const client = await makeClient(server, name);
    signal?.throwIfAborted();
    clients.push(client);
    client.on('error', ignore);
    await client.connect();
    return client;
  };
  const introduce = async (client: Client, pid: number): Promise<Row | undefined> => {
    const timer = setTimeout(() => streamOf(client).destroy(), ANSWER_MS);
    try {
      return await firstRow(client, hello(pid));
    } finally {
      clearTimeout(timer);
    }
  };
  const make = async (): Promise<Session> => {
    const client = await connect();
    // A pooler has numbers of its own. What is shared is not to be changed.
    const { processID: told } = client as unknown as { readonly processID: number | null };
    const { pid, standby, version } = (await introduce(client, told ?? 0)) ?? {};
    if (!Number.isSafeInteger(pid) || typeof standby !== 'boolean' || typeof version !== 'number')
      throw malformed(name, 'it does not say what it is');
    if (version < OLDEST_SERVER)
      throw new NorthrootError('STORE_UNSUPPORTED', `${name} is PostgreSQL ${Math.floor(version / 10_000)}`, {
        hint: 'use PostgreSQL 12 or later',
      });
    if (pid !== told) {
      await assertOwnSession(client, await connect(), pid as number, name);
      await introduce(client, pid as number);
    }
    const session = Session.open(client, name, { pid: pid as number, isStandby: standby });
    client.off('error', ignore);
    // From version 14 on, where its system can: a server that waits notices that its client is gone.
    if (version >= 140_000) await session.run('set client_connection_check_interval = 2000').catch(ignore);
    for (const other of clients.slice(1)) void farewell(other);
    return session;
  };
  let abort = ignore;
  // The driver leaves who waits for a connection waiting for ever, if it is ended before it stands.
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      for (const client of clients) streamOf(client).destroy();
      reject(signal?.reason as Error);
    };
  });
  signal?.addEventListener('abort', abort);
  try {
    return await Promise.race([make(), aborted]);
  } catch (error) {
    for (const client of clients) void farewell(client);
    signal?.throwIfAborted();
    const isSilent = performance.now() - begun >= CONNECT_MS;
    throw outcomeOf(error) === 'unknown' && !(error instanceof NorthrootError)
      ? notConnected(name, error, isSilent ? CONNECT_MS : undefined)
      : toStoreError(error, name);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

async function makeClient(server: string, name: string): Promise<Client> {
  const { default: driver } = await loadDriver();
  try {
    return new driver.Client({
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
}

/** Asks what a server is, and sets up the session, if it is that one. */
function hello(pid: number): string {
  const settings = Object.entries(SETTINGS).map(([name, value]) => `('${name}', '${value}')`);
  // `local` and `off`, which a database may have as a default, would lose records.
  const durable = `case when current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply' else 'on' end`;
  return `select pg_catalog.count(pg_catalog.set_config(name, value, false))
    from (values ${settings.join(', ')}, ('synchronous_commit', ${durable})) as settings(name, value)
    where pg_catalog.pg_backend_pid() = ${pid};
    select pg_catalog.pg_backend_pid() as pid, pg_catalog.pg_is_in_recovery() as standby,
      pg_catalog.current_setting('server_version_num')::int as version`;
}

async function firstRow(client: Client, text: string): Promise<Row | undefined> {
  const results = (await client.query<Row>({ text, types: COLUMNS })) as
    | QueryResult<Row>
    | QueryResult<Row>[];
  return [results].flat().at(-1)?.rows[0];
}

/** How often two connections are compared: a pooler may give its sessions out in turn. */
const COMPARISONS = 3;

/**
 * Whether a pooler leaves a connection its session while another is in a transaction.
 * @throws NorthrootError `STORE_UNSUPPORTED` where it gives one session to several, or has too few
 */
async function assertOwnSession(client: Client, other: Client, pid: number, name: string): Promise<void> {
  const ASK = 'select pg_catalog.pg_backend_pid() as pid';
  const shared = new NorthrootError(
    'STORE_UNSUPPORTED',
    `${name} is behind a pooler that shares sessions, or has too few`,
    {
      hint: 'connect to the server itself, or to a pooler in session mode: the write lock belongs to a session',
    },
  );
  for (let n = 0; n < COMPARISONS; n += 1) {
    const compare = async (): Promise<boolean> => {
      const taken = (await firstRow(other, `begin; ${ASK}`))?.['pid'];
      const own = (await firstRow(client, ASK))?.['pid'];
      await firstRow(other, 'rollback');
      return own === pid && taken !== pid;
    };
    const late = sleep(CONNECT_MS, false, { ref: false });
    const isOwn = await Promise.race([compare(), late]).catch((error: unknown) => {
      // It takes no transactions.
      if (codeOf(error) === '08P01') return false;
      throw error;
    });
    if (!isOwn) throw shared;
  }
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
