/**
 * A program that acts is stopped at each operation on files and on its index, or one of them fails: what was acknowledged is there,
 * what ran was claimed before, no reservation is lost or counted twice, and whoever comes next settles the rest.
 */

import { spawn } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { formatPrivateKey } from '../../src/format/key/private-key.js';
import { nodeFileSystem, type FileSystem } from '../../src/log/fs/file-system.js';
import { FileStore } from '../../src/log/store/file-store.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { IndexCache } from '../../src/log/writer/index-cache.js';
import type { StateCache } from '../../src/log/writer/state-cache.js';
import { ed25519Key } from '../key/key-samples.js';
import { samplePositions, times } from '../slow.js';
import { FaultyFileSystem, soundFileSystem, VolatileFileSystem, type Fault } from '../writer/file-systems.js';
import { temporaryFolder } from '../writer/support.js';
import { act, CAP, expectKept, expectSettled, nothingTold, type Told } from './acting-program.js';
import { AGENT, filePlace, grant, openLive } from './support.js';

const LANES = 3;
const SCRIPT = fileURLToPath(new URL('children/acting.js', import.meta.url));
const KEY = formatPrivateKey(ed25519Key(Buffer.alloc(32, 1)), 'pem');

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', onUnhandled);
});

afterEach(async () => {
  await new Promise(setImmediate);
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
});

/** A ledger with a grant that nobody has open, of which copies are made. */
async function granted(hasIndex = false): Promise<{ copy: (name: string) => string; grantId: string }> {
  const place = filePlace();
  if (hasIndex) mkdirSync(`${place.path}.index`);
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: CAP });
  await ledger.close();
  const folder = temporaryFolder();
  const copy = (name: string): string => {
    const path = join(folder, `${name}.jsonl`);
    copyFileSync(place.path, path);
    if (hasIndex) cpSync(`${place.path}.index`, `${path}.index`, { recursive: true });
    return path;
  };
  return { copy, grantId };
}

async function expectRight(
  path: string,
  grantId: string,
  told: Told,
  fileSystem: FileSystem = soundFileSystem,
): Promise<void> {
  await expectKept(path, told);
  await expectSettled(path, grantId, told, { fileSystem });
  if (!existsSync(`${path}.index`)) return;
  expect((await maintainIndex(path, { check: true })).differences).toEqual([]);
}

/** Does something for each of them, a few at a time. */
async function inLanes<T>(all: readonly T[], does: (each: T) => Promise<void>): Promise<void> {
  const rest = all.values();
  const lane = async (): Promise<void> => {
    for (const each of rest) await does(each);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** The index of a program that may be dead. */
function mortalCache(path: string, store: FileStore, fileSystem: VolatileFileSystem): StateCache {
  const cache = new IndexCache(path, store, { fileSystem });
  return {
    prepare: (view) => fileSystem.operate(() => cache.prepare(view)),
    load: (view, current) => fileSystem.operate(() => cache.load(view, current)),
    discard: (reason) => fileSystem.operate(() => cache.discard(reason)),
    save: (view, state) => fileSystem.operate(() => cache.save(view, state)),
    // Of a process that is gone nothing is open.
    release: async () => {
      await cache.release();
      await fileSystem.operate(() => Promise.resolve());
    },
  };
}

/** Acts, and is dead after so many operations. @returns how many it wanted to make */
async function actFor(lifetime: number, path: string, told: Told, chance?: () => number): Promise<number> {
  const fileSystem = new VolatileFileSystem();
  fileSystem.startProcess(lifetime);
  if (existsSync(`${path}.index`)) {
    const store = await FileStore.open(path, { fileSystem }).catch(() => undefined);
    const options = store && { fileSystem, stateCache: mortalCache(path, store, fileSystem) };
    if (store !== undefined) await act(store, told, { ...options });
  } else {
    await act(path, told, { fileSystem });
  }
  const { operations } = fileSystem;
  if (chance !== undefined) fileSystem.failPower(chance);
  return operations;
}

describe.each([
  ['without an index', false, 16],
  ['with an index', true, 8],
])('a program that acts, %s', (_name, hasIndex, count) => {
  test('is stopped at each operation, and the power fails or not', async () => {
    const { copy, grantId } = await granted(hasIndex);
    const whole = nothingTold();
    const all = await actFor(Infinity, copy('whole'), whole);
    expect(whole).toMatchObject({ errors: [], unrecorded: [] });
    expect([whole.acknowledged.length, whole.ran.length]).toEqual([9, 2]);
    let random = 1;
    const chance = (): number => (random = (random * 16_807) % 2_147_483_647) / 2_147_483_647;
    let unrecorded = 0;
    const acknowledged = new Set<number>();
    const lifetimes = samplePositions(all, count);
    await inLanes(lifetimes, async (lifetime) => {
      const path = copy(String(lifetime));
      const told = nothingTold();
      const operations = await actFor(lifetime, path, told, lifetime % 2 === 0 ? chance : undefined);
      // How often the turn is taken depends on time: one that comes to its end had no fault.
      if (operations <= lifetime) expect(told.errors).toEqual([]);
      await expectRight(path, grantId, told);
      unrecorded += told.unrecorded.length;
      acknowledged.add(told.acknowledged.length);
    });
    // Programs died before, between and after their records; in how many groups these are written depends on time.
    expect(Math.min(...acknowledged)).toBe(0);
    expect(acknowledged.size).toBeGreaterThan(2);
    // A sample may miss the few operations between a function and its record.
    if (lifetimes.length === all) expect(unrecorded).toBeGreaterThan(0);
  });
});

type Kind = Pick<Fault, 'operation' | 'errno' | 'mode' | 'then'>;

const KINDS: readonly Kind[] = [
  ...(['open', 'size', 'read', 'write', 'datasync', 'close', 'isInPlace', 'kindOf'] as const).map(
    (operation) => ({ operation, errno: 'EIO', mode: 'once' }) as const,
  ),
  { operation: 'write', errno: 'ENOSPC', mode: 'short' },
  { operation: 'write', errno: 'ENOSPC', mode: 'short', then: ['truncate'] },
  { operation: 'datasync', errno: 'EIO', mode: 'on' },
];

test('a program that acts goes on after an operation that fails', async () => {
  const { copy, grantId } = await granted();
  let unrecorded = 0;
  await inLanes(KINDS, async (kind) => {
    // What only looks fails at every twelfth place; of what writes, every second is the position that is kept.
    const step = times(['write', 'datasync'].includes(kind.operation) ? 5 : 40, 1);
    for (let nth = 1; ; nth += step) {
      const path = copy(`${KINDS.indexOf(kind)}-${nth}`);
      const fileSystem = new FaultyFileSystem({ ...kind, nth, raw: nth % 2 === 0 });
      const told = nothingTold();
      await act(path, told, { fileSystem });
      for (const error of told.errors) {
        const { code } = error as { readonly code?: string };
        expect(['LEDGER_FAILED', 'IO_FAILED', 'DISK_FULL', 'EIO', 'ENOSPC']).toContain(code);
      }
      await expectRight(path, grantId, told);
      unrecorded += told.unrecorded.length;
      if (!fileSystem.fired) {
        expect(nth).toBeGreaterThan(1);
        expect(told.errors).toEqual([]);
        return;
      }
    }
  });
  expect(unrecorded).toBeGreaterThan(0);
});

/** A process that acts, until it kills itself. @returns how many operations it made, where it came to its end */
async function runChild(task: object, told: Told): Promise<number | undefined> {
  const argument = JSON.stringify({ key: KEY, principalId: AGENT, ...task });
  const child = spawn(process.execPath, [SCRIPT, argument], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let operations: number | undefined;
  createInterface(child.stdout).on('line', (line) => {
    const said = JSON.parse(line) as {
      acknowledged?: Told['acknowledged'][number];
      ran?: string;
      operations?: number;
    };
    if (said.acknowledged !== undefined) told.acknowledged.push(said.acknowledged);
    if (said.ran !== undefined) told.ran.push(said.ran);
    operations ??= said.operations;
  });
  const [status, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once('close', (...ended) => resolve(ended)),
  );
  expect([status, signal]).toEqual(operations === undefined ? [null, 'SIGKILL'] : [0, null]);
  return operations;
}

test('a process that acts is killed at, or in the midst of, an operation', async () => {
  for (const hasIndex of [false, true]) {
    const { copy, grantId } = await granted(hasIndex);
    const whole = nothingTold();
    const all = await runChild({ path: copy('whole'), killAt: null }, whole);
    expect([whole.acknowledged.length, whole.ran.length]).toEqual([9, 2]);
    let [ran, killed] = [0, 0];
    await inLanes(samplePositions(all!, 4), async (at) => {
      const path = copy(String(at));
      const told = nothingTold();
      const manner = at % 2 === 0 ? 'before' : 'during';
      // How often the turn is taken depends on time: the last operations may not come.
      if ((await runChild({ path, killAt: at + 1, manner }, told)) === undefined) killed += 1;
      await expectRight(path, grantId, told, nodeFileSystem);
      ran += told.ran.length;
    });
    expect(ran).toBeGreaterThan(0);
    expect(killed).toBeGreaterThan(2);
  }
});
