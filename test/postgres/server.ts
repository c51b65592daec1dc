/**
 * Real PostgreSQL servers for tests: a primary and its standbys, in temporary folders, on sockets and the loopback interface. They can be
 * killed, paused, promoted, and have their connections cut. Root runs them as another user, since PostgreSQL refuses root.
 */

import { execFileSync, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const DEBIAN = '/usr/lib/postgresql';

function findPrograms(): string | undefined {
  const named = process.env['NORTHROOT_POSTGRES_BIN'];
  if (named !== undefined) return existsSync(join(named, 'initdb')) ? named : undefined;
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const installed = versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => `${DEBIAN}/${version}/bin`);
  const folders = [...installed, ...(process.env['PATH'] ?? '').split(':')];
  return folders.find(
    (folder) =>
      folder !== '' &&
      ['initdb', 'postgres', 'pg_basebackup'].every((program) => existsSync(join(folder, program))),
  );
}

/** The folder of the programs; undefined where there is no PostgreSQL. */
export const postgresPrograms = findPrograms();

/** For `describe.skipIf`. */
export const hasNoPostgres = postgresPrograms === undefined;

export function userOfServers(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const user of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = ['-u', '-g'].map((flag) =>
        Number(execFileSync('id', [flag, user], { stdio: 'pipe' }).toString()),
      );
      return { uid, gid };
    } catch {
      // The next.
    }
  }
  throw new Error('no user to run PostgreSQL as');
}

const MAX_START_MS = 60_000;
const POSTMASTER_PID = 'postmaster.pid';

export interface ServerOptions {
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** One server, running until it is stopped. */
export class PostgresServer {
  readonly port: number;
  /** Holds the data and the socket. */
  readonly folder: string;
  readonly #programs: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
    this.#programs = postgresPrograms as string;
  }

  /** Makes and starts a primary. */
  static async start({ settings = {} }: ServerOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(makeFolder(), await freePort());
    server.#call('initdb', [
      '-D',
      server.#data,
      '-U',
      'postgres',
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--locale=C',
      '--no-sync',
    ]);
    // Replication too.
    writeFileSync(
      join(server.#data, 'pg_hba.conf'),
      'local all all trust\nhost all all 127.0.0.1/32 trust\nlocal replication all trust\nhost replication all 127.0.0.1/32 trust\n',
    );
    server.configure({ ...settings });
    await server.up();
    return server;
  }

  /**
   * Makes and starts a standby of this server.
   * @param name - Its name for `synchronous_standby_names`
   */
  async startStandby(name: string): Promise<PostgresServer> {
    const standby = new PostgresServer(makeFolder(), await freePort());
    standby.#call('pg_basebackup', [
      '-D',
      standby.#data,
      '-h',
      '127.0.0.1',
      '-p',
      `${this.port}`,
      '-U',
      'postgres',
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
    ]);
    standby.configure({
      primary_conninfo: `host=127.0.0.1 port=${this.port} user=postgres application_name=${name}`,
      synchronous_standby_names: '',
    });
    await standby.up();
    return standby;
  }

  get #data(): string {
    return join(this.folder, 'data');
  }

  /** A connection string. @param ledger - Becomes the fragment */
  url(
    ledger?: string,
    { user = 'postgres', port = this.port }: { user?: string; port?: number } = {},
  ): string {
    return `postgres://${user}@127.0.0.1:${port}/postgres${ledger === undefined ? '' : `#${ledger}`}`;
  }

  /** The same over the socket. */
  socketUrl(ledger: string): string {
    return `postgres://postgres@/postgres?host=${encodeURIComponent(this.folder)}&port=${this.port}#${ledger}`;
  }

  /** Sets what counts from the next start or `reload` on. */
  configure(settings: Readonly<Record<string, string>>): void {
    const lines = Object.entries(settings).map(
      ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
    );
    writeFileSync(join(this.#data, 'postgresql.auto.conf'), lines.join(''), { flag: 'a' });
  }

  /** Starts it again after it was killed or stopped. */
  async up(): Promise<void> {
    this.configure({
      port: `${this.port}`,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.folder,
      max_connections: '60',
      shared_buffers: '16MB',
      wal_level: 'replica',
      hot_standby: 'on',
      logging_collector: 'off',
      restart_after_crash: 'on',
    });
    const child = this.#spawn('postgres', ['-D', this.#data]);
    this.#process = child;
    const deadline = performance.now() + MAX_START_MS;
    for (;;) {
      try {
        await this.query('select 1');
        return;
      } catch (error) {
        if (child.exitCode !== null)
          throw new Error(`PostgreSQL did not start: ${this.log()}`, { cause: error });
        if (performance.now() > deadline) throw error;
      }
      await sleep(50);
    }
  }

  /** What it wrote to standard error. */
  log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8').slice(-4_000);
  }

  async query(
    text: string,
    values: unknown[] = [],
    database = 'postgres',
  ): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user: 'postgres',
      database,
      connectionTimeoutMillis: 5_000,
    });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(text, values)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  async reload(settings: Readonly<Record<string, string>>): Promise<void> {
    this.configure(settings);
    await this.query('select pg_reload_conf()');
  }

  /** Waits until so many standbys are in a state of `sync_state`. */
  async waitForStandbys(state: 'sync' | 'async' | 'quorum', count = 1): Promise<void> {
    const deadline = performance.now() + MAX_START_MS;
    while (performance.now() < deadline) {
      const rows = await this.query(
        `select from pg_stat_replication where sync_state = $1 and state = 'streaming'`,
        [state],
      );
      if (rows.length >= count) return;
      await sleep(50);
    }
    throw new Error(`no ${state} standby came`);
  }

  /** Ends it as a crash does: no process of it does anything more. */
  async kill(): Promise<void> {
    const pid = this.#pid();
    const children = pid === undefined ? [] : childrenOf(pid);
    for (const each of [pid, ...children]) signalTo(each, 'SIGKILL');
    await this.#gone([pid, ...children]);
    rmSync(join(this.#data, POSTMASTER_PID), { force: true });
  }

  /** Pauses or resumes the process of a standby that receives what the primary sends. */
  pauseReceiver(isPaused: boolean): void {
    const receivers = childrenOf(this.#pid() as number).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('walreceiver'),
    );
    if (receivers.length === 0) throw new Error('nothing is received');
    for (const pid of receivers) signalTo(pid, isPaused ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Pauses or resumes the whole server. */
  pause(isPaused: boolean): void {
    const pid = this.#pid() as number;
    for (const each of [pid, ...childrenOf(pid)]) signalTo(each, isPaused ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await this.query('select pg_promote(true, 60)');
    const deadline = performance.now() + MAX_START_MS;
    while ((await this.query('select pg_is_in_recovery() as is'))[0]?.['is'] !== false) {
      if (performance.now() > deadline) throw new Error('it was not promoted');
      await sleep(20);
    }
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    const pid = this.#pid();
    if (pid !== undefined) {
      for (const each of childrenOf(pid)) signalTo(each, 'SIGCONT');
      signalTo(pid, 'SIGQUIT');
      await this.#gone([pid]).catch(() => this.kill());
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Waits until they have ended. Until its end is known here, the server's number is taken, and its lock files keep another from starting. */
  async #gone(pids: readonly (number | undefined)[]): Promise<void> {
    const deadline = performance.now() + 10_000;
    const runs = (pid: number | undefined) => pid !== undefined && /^State:\s+[^ZX]/m.test(statusOf(pid));
    while (pids.some(runs) || (this.#process?.exitCode === null && this.#process.signalCode === null)) {
      if (performance.now() > deadline) throw new Error('the server does not end');
      await sleep(10);
    }
  }

  #pid(): number | undefined {
    const path = join(this.#data, POSTMASTER_PID);
    return existsSync(path) ? Number(readFileSync(path, 'utf8').split('\n')[0]) : undefined;
  }

  #call(program: string, args: readonly string[]): void {
    execFileSync(join(this.#programs, program), args, {
      stdio: 'pipe',
      cwd: this.folder,
      ...userOfServers(),
    });
  }

  #spawn(program: string, args: readonly string[]): ChildProcess {
    const options: SpawnOptions = {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: this.folder,
      ...userOfServers(),
    };
    const child = spawn(join(this.#programs, program), args, options);
    const path = join(this.folder, 'log');
    writeFileSync(path, '', { flag: 'a' });
    child.stderr?.on('data', (bytes: Buffer) => {
      if (existsSync(path)) writeFileSync(path, bytes, { flag: 'a' });
    });
    child.unref();
    (child.stderr as Socket | null)?.unref();
    return child;
  }
}

function makeFolder(): string {
  // Short: the path of a socket has at most 107 bytes.
  const folder = mkdtempSync('/tmp/nr-pg-');
  chmodSync(folder, 0o755);
  const user = userOfServers();
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  if (user !== undefined) chownSync(join(folder, 'data'), user.uid, user.gid);
  return folder;
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => new RegExp(`^PPid:\\s+${parent}$`, 'm').test(statusOf(pid)));
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

function signalTo(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** What a {@link CuttingProxy} does when a client sends something. */
export type Cut =
  /** Nothing reaches the server. */
  | 'before'
  /** The server gets it, and its answer is lost. */
  | 'after';

/** A proxy in front of a server that cuts connections, or leads to another server. */
export class CuttingProxy {
  /** How many connections it has cut. */
  cuts = 0;
  /** The server that new connections lead to. */
  target: number;
  /** Asked for what a client sends: cuts its connection, if it says how. */
  decide: (sent: Buffer) => Cut | undefined = () => undefined;
  #stall: { bytes: number; readonly ms: number } | undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer((client) => this.#serve(client));
  }

  static async start(target: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts all connections now. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Once clients have sent so many bytes more, what follows comes so much later. */
  stallAfter(bytes: number, ms: number): void {
    this.#stall = { bytes, ms };
  }

  async stop(): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #stallIfDue(client: Socket, bytes: number): void {
    if (this.#stall === undefined) return;
    this.#stall.bytes -= bytes;
    if (this.#stall.bytes > 0) return;
    client.pause();
    setTimeout(() => client.resume(), this.#stall.ms);
    this.#stall = undefined;
  }

  #serve(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    let isMute = false;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        if (!isMute) (socket === client ? server : client).destroy();
        else client.destroy();
      });
    }
    client.on('data', (bytes: Buffer) => {
      const cut = isMute ? undefined : this.decide(bytes);
      if (cut === undefined) {
        server.write(bytes);
        this.#stallIfDue(client, bytes.length);
        return;
      }
      this.cuts += 1;
      if (cut === 'before') {
        client.destroy();
        return;
      }
      isMute = true;
      server.write(bytes);
      // Long enough for the server to do it.
      server.once('data', () => {
        client.destroy();
        server.destroy();
      });
    });
    server.on('data', (bytes: Buffer) => {
      if (!isMute) client.write(bytes);
    });
  }
}
