/**
 * File systems that fail: {@link FaultyFileSystem} lets one chosen operation fail, {@link VolatileFileSystem} loses
 * power. Both do their work on the machine's own, so that what is left can be looked at by others. Their locks are known to this
 * process only: flock(2) takes a helper process each time, and tests of its own.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sha256Base64url } from '../../src/base/bytes/sha256.js';
import { NorthrootError } from '../../src/base/error.js';
import { nodeFileSystem, type FileSystem, type OpenFile } from '../../src/log/fs/file-system.js';
import { toIoError } from '../../src/log/fs/io-error.js';

export const OPERATIONS = [
  'kindOf',
  'open',
  'list',
  'makeFolder',
  'remove',
  'renameNew',
  'syncFolderOf',
  'size',
  'read',
  'write',
  'datasync',
  'truncate',
  'close',
  'isInPlace',
] as const;
/** Those of a ledger's writer, and those that only the writer of a tile tree makes. */
export type Operation = (typeof OPERATIONS)[number] | 'removeFolder' | 'rename' | 'modifiedAt' | 'stampOf';

/** Who holds a lock, by path; each settles when its lock is released. */
const held = new Map<string, Promise<void>>();

/** The lock of one open file, as flock(2) but between the file systems of this process. */
export class ProcessLock {
  #release: () => void = () => undefined;

  /** @throws NorthrootError `LEDGER_LOCKED` */
  async acquire(path: string, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (let other = held.get(path); other !== undefined; other = held.get(path)) {
      signal?.throwIfAborted();
      const left = deadline - performance.now();
      if (left <= 0) throw new NorthrootError('LEDGER_LOCKED', `another writer has ${path}`);
      const stop = new AbortController();
      await Promise.race([other, sleep(left, undefined, stop).catch(() => undefined)]);
      stop.abort();
    }
    const released = new Promise<void>((resolve) => {
      this.#release = () => {
        if (held.get(path) === released) held.delete(path);
        resolve();
      };
    });
    held.set(path, released);
  }

  release(): void {
    this.#release();
  }
}

/** Hands every operation to `around`, which may run it or not. */
abstract class HookedFileSystem implements FileSystem {
  protected abstract around<T>(operation: Operation, path: string, run: () => Promise<T>): Promise<T>;

  protected write(file: OpenFile, bytes: Uint8Array): Promise<number> {
    return this.around('write', file.path, () => file.write(bytes));
  }

  kindOf: FileSystem['kindOf'] = (path) => this.around('kindOf', path, () => nodeFileSystem.kindOf(path));
  list: FileSystem['list'] = (path) => this.around('list', path, () => nodeFileSystem.list(path));
  makeFolder: FileSystem['makeFolder'] = (path, permissions) =>
    this.around('makeFolder', path, () => nodeFileSystem.makeFolder(path, permissions));
  remove: FileSystem['remove'] = (path) => this.around('remove', path, () => nodeFileSystem.remove(path));
  removeFolder: FileSystem['removeFolder'] = (path) =>
    this.around('removeFolder', path, () => nodeFileSystem.removeFolder(path));
  rename: FileSystem['rename'] = (from, to) =>
    this.around('rename', to, () => nodeFileSystem.rename(from, to));
  renameNew: FileSystem['renameNew'] = (from, to) =>
    this.around('renameNew', to, () => nodeFileSystem.renameNew(from, to));
  followLinks: FileSystem['followLinks'] = (path) => nodeFileSystem.followLinks(path);
  stampOf: FileSystem['stampOf'] = (path) => this.around('stampOf', path, () => nodeFileSystem.stampOf(path));
  modifiedAt: FileSystem['modifiedAt'] = (path) =>
    this.around('modifiedAt', path, () => nodeFileSystem.modifiedAt(path));
  syncFolderOf: FileSystem['syncFolderOf'] = (path) =>
    this.around('syncFolderOf', path, () => nodeFileSystem.syncFolderOf(path));

  open: FileSystem['open'] = async (path, mode, permissions) => {
    const file = await this.around('open', path, () => nodeFileSystem.open(path, mode, permissions));
    const lock = new ProcessLock();
    return {
      path,
      lock: (timeoutMs, signal) => lock.acquire(path, timeoutMs, signal),
      size: () => this.around('size', path, () => file.size()),
      read: (buffer, position) => this.around('read', path, () => file.read(buffer, position)),
      write: (bytes) => this.write(file, bytes),
      datasync: () => this.around('datasync', path, () => file.datasync()),
      truncate: (size) => this.around('truncate', path, () => file.truncate(size)),
      // Whatever close(2) says, the descriptor is gone, and the lock with it.
      close: async () => {
        await file.close();
        lock.release();
        await this.around('close', path, () => Promise.resolve());
      },
      isInPlace: () => this.around('isInPlace', path, () => file.isInPlace()),
    };
  };
}

/** Fails in nothing. */
class SoundFileSystem extends HookedFileSystem {
  protected around<T>(_operation: Operation, _path: string, run: () => Promise<T>): Promise<T> {
    return run();
  }
}

/** The machine's own, with the locks of the failing ones: who comes next sees a lock that one of them kept. */
export const soundFileSystem: FileSystem = new SoundFileSystem();

/** What fails. */
export interface Fault {
  readonly operation: Operation;
  /** The how manieth call of it, from 1. */
  readonly nth: number;
  readonly errno: 'EIO' | 'ENOSPC' | 'EACCES';
  /** `once`; `on`: from then on; `short` (of a write): half is written, and the next write fails. */
  readonly mode: 'once' | 'on' | 'short';
  /** Operations of which the next call fails too. */
  readonly then?: readonly Operation[];
  /** Whether the error is the operating system's own, and not yet a NorthrootError. */
  readonly raw?: boolean;
}

/** Lets one operation fail. */
export class FaultyFileSystem extends HookedFileSystem {
  /** Whether it has come to the fault. */
  fired = false;
  readonly #fault: Fault;
  readonly #next = new Set<Operation>();
  #calls = 0;

  constructor(fault: Fault) {
    super();
    this.#fault = fault;
  }

  protected async around<T>(operation: Operation, path: string, run: () => Promise<T>): Promise<T> {
    const { mode, nth } = this.#fault;
    if (this.#next.delete(operation)) throw this.#error(operation, path);
    if (operation !== this.#fault.operation) return run();
    this.#calls += 1;
    if (this.#calls < nth || (this.#calls > nth && mode !== 'on')) return run();
    this.#fire();
    throw this.#error(operation, path);
  }

  protected override async write(file: OpenFile, bytes: Uint8Array): Promise<number> {
    if (this.#fault.mode !== 'short') return super.write(file, bytes);
    this.#calls += 1;
    if (this.#calls < this.#fault.nth || this.#calls > this.#fault.nth + 1) return file.write(bytes);
    if (this.#calls === this.#fault.nth + 1) throw this.#error('write', file.path);
    this.#fire();
    return file.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  }

  #fire(): void {
    this.fired = true;
    for (const operation of this.#fault.then ?? []) this.#next.add(operation);
  }

  #error(operation: Operation, path: string): Error {
    const { errno, raw } = this.#fault;
    const error = Object.assign(new Error(`${errno}: made to fail, ${operation} '${path}'`), { code: errno });
    return raw ? error : toIoError(error, operation, path);
  }
}

/** Counts how often a path was synced. */
export class CountingFileSystem extends HookedFileSystem {
  readonly #syncs = new Map<string, number>();

  syncsOf(path: string): number {
    return this.#syncs.get(path) ?? 0;
  }

  protected async around<T>(operation: Operation, path: string, run: () => Promise<T>): Promise<T> {
    if (operation === 'datasync') this.#syncs.set(path, this.syncsOf(path) + 1);
    return run();
  }
}

/**
 * A process that stops amid its work, as one that is killed. It counts what it reads of a file. Stamps are digests of the content, so that
 * a copy of what such a process leaves has them too.
 */
export class StoppingFileSystem extends HookedFileSystem {
  bytesRead = 0;
  readonly #path: string;
  #left = Infinity;
  #stop: (before: Operation) => void = () => undefined;
  readonly #stopped: (() => void)[] = [];

  constructor(path: string) {
    super();
    this.#path = path;
  }

  /** Stops before one of the next operations on the file. @returns when it has, before which */
  stopAfter(operations: number): Promise<Operation> {
    this.#left = operations;
    return new Promise((resolve) => (this.#stop = resolve));
  }

  /** What was left is looked at: nothing more is done to the file. A process that has not stopped does not stop. */
  end(): void {
    this.#left = this.#stopped.length > 0 ? -1 : Infinity;
    for (const go of this.#stopped) go();
  }

  protected async around<T>(operation: Operation, path: string, run: () => Promise<T>): Promise<T> {
    if (path !== this.#path) return run();
    if (this.#left === 0) {
      this.#stop(operation);
      await new Promise<void>((resolve) => this.#stopped.push(resolve));
    }
    if (this.#left < 0) throw new Error('the process is dead');
    this.#left -= 1;
    if (operation === 'stampOf') return sha256Base64url(readFileSync(path)) as T;
    const result = await run();
    if (operation === 'read') this.bytesRead += result as number;
    return result;
  }
}

interface Traces {
  /** What is on disk for certain. */
  durable: Buffer;
  /** Whether the name is. */
  named: boolean;
}

/**
 * A machine whose processes can be killed and whose power can fail. What a process wrote outlives it, but only what was
 * synced outlives the power.
 */
export class VolatileFileSystem extends HookedFileSystem {
  /** Operations made since the last {@link VolatileFileSystem.startProcess}. */
  operations = 0;
  #lifetime = Infinity;
  readonly #files = new Map<string, Traces>();

  /** Begins a process that is dead after so many operations: all later ones fail. */
  startProcess(lifetime: number): void {
    this.operations = 0;
    this.#lifetime = lifetime;
  }

  /** Leaves of each file what is on disk for certain, and of the rest what `chance` (from 0 up to 1) says. */
  failPower(chance: () => number): void {
    for (const [path, { durable, named }] of this.#files) {
      if (!existsSync(path)) continue;
      if (!named && chance() < 0.7) rmSync(path);
      else writeFileSync(path, remains(durable, readFileSync(path), chance));
    }
    this.#files.clear();
  }

  override renameNew: FileSystem['renameNew'] = (from, to) =>
    this.around('renameNew', to, async () => {
      await nodeFileSystem.renameNew(from, to);
      const traces = this.#files.get(from);
      if (traces === undefined) return;
      this.#files.delete(from);
      this.#files.set(to, { ...traces, named: false });
    });

  /** Another operation of the same process, on what is not a file. */
  async operate<T>(run: () => Promise<T>): Promise<T> {
    this.#live();
    return run();
  }

  #live(): void {
    this.operations += 1;
    if (this.operations > this.#lifetime) throw new Error('the process is dead');
  }

  protected async around<T>(operation: Operation, path: string, run: () => Promise<T>): Promise<T> {
    this.#live();
    const isNew = operation === 'open' && !existsSync(path);
    const result = await run();
    switch (operation) {
      case 'open':
        if (isNew) this.#files.set(path, { durable: Buffer.alloc(0), named: false });
        break;
      case 'datasync':
        this.#trace(path).durable = readFileSync(path);
        break;
      case 'syncFolderOf':
        for (const [name, traces] of this.#files) if (dirname(name) === dirname(path)) traces.named = true;
        break;
      case 'remove':
        this.#files.delete(path);
        break;
      case 'write':
      case 'truncate':
        this.#trace(path);
        break;
      default:
    }
    return result;
  }

  protected override write(file: OpenFile, bytes: Uint8Array): Promise<number> {
    if (!this.#files.has(file.path)) {
      this.#files.set(file.path, { durable: readFileSync(file.path), named: true });
    }
    return super.write(file, bytes);
  }

  #trace(path: string): Traces {
    const traces = this.#files.get(path) ?? { durable: readFileSync(path), named: true };
    this.#files.set(path, traces);
    return traces;
  }
}

/** A file after a power failure: its certain bytes, then a part of the others, then perhaps room that was never filled. */
function remains(durable: Buffer, volatile: Buffer, chance: () => number): Buffer {
  if (!volatile.subarray(0, durable.length).equals(durable)) return chance() < 0.5 ? durable : volatile;
  const written = Math.floor(chance() * (volatile.length - durable.length + 1));
  const kept = volatile.subarray(0, durable.length + written);
  return chance() < 0.5 ? kept : Buffer.concat([kept, Buffer.alloc(volatile.length - kept.length)]);
}
