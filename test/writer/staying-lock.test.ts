/** The helper that stays: one process for any number of turns, which may die or be stopped, and never keeps a dead writer's lock. */

import type * as ChildProcess from 'node:child_process';
import { type ChildProcess as Child, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { MemoryStore } from '../store/memory-store.js';
import {
  codeOf,
  draft,
  expectSound,
  makeLedger,
  openLedger,
  openUnsigned,
  temporaryFolder,
} from './support.js';

/** The processes that were started, in order. */
const started = vi.hoisted((): { children: { command: string; child: Child }[] } => ({ children: [] }));

vi.mock('node:child_process', async (importOriginal) => {
  const original = await importOriginal<typeof ChildProcess>();
  return {
    ...original,
    spawn: (command: string, args: string[], options: object) => {
      const child = original.spawn(command, args, options);
      started.children.push({ command, child });
      return child;
    },
  };
});

const TURNS = fileURLToPath(new URL('children/turns.js', import.meta.url));
const canStay =
  process.platform === 'linux' && existsSync('/usr/bin/perl') && ['x64', 'arm64'].includes(process.arch);
const APART = { lingerMs: 0, lockTimeoutMs: 60_000 };

beforeEach(() => {
  started.children = [];
});

function newPath(): string {
  return join(temporaryFolder(), 'ledger.jsonl');
}

async function appendInTurn(ledger: Ledger, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n += 1)
    expect(await ledger.append({ event: draft(n) })).toMatchObject({ status: 'appended' });
}

function helper(): Child {
  return started.children.at(-1)?.child as Child;
}

/** Whether a process is there, and not only its entry. */
function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}

/** A process that took five turns, and what it then said. */
async function takeTurns(path: string, then: 'end' | 'hold'): Promise<{ child: Child; helpers: number[] }> {
  const child = spawn(process.execPath, [TURNS, JSON.stringify({ path, then })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit').then(() => '{"children":[]}');
  const said = once(child.stdout, 'data').then(([line]) => String(line));
  const { children } = JSON.parse(await Promise.race([said, ended])) as { children: number[] };
  return { child, helpers: children };
}

describe.skipIf(!canStay)('the helper that stays', () => {
  test.each(['file.jsonl', 'folder/'])('is one for all turns, and ends with the ledger: %s', async (name) => {
    const path = join(temporaryFolder(), name);
    const ledger = await openLedger(path, APART);
    await appendInTurn(ledger, 1, 4);
    const before = started.children.length;
    const { pid } = helper();
    await appendInTurn(ledger, 5, 30);
    expect(started.children).toHaveLength(before);
    expect(started.children.at(-1)?.command).toBe('/usr/bin/perl');
    await ledger.close();
    expect(isRunning(pid as number)).toBe(false);
    await expectSound(path, 31);
  });

  test('gives the lock back after each turn', async () => {
    const path = newPath();
    const [one, other] = [await openLedger(path, APART), await openLedger(path, APART)];
    for (let n = 1; n <= 20; n += 1) {
      await appendInTurn(n % 2 === 0 ? one : other, n, n);
      await (await openLedger(path, APART)).close();
    }
    await Promise.all([one.close(), other.close()]);
    await expectSound(path, 21);
  });

  test('waits for another; who gives up gets a later turn', async () => {
    const path = newPath();
    const one = await openLedger(path, APART);
    const other = await openLedger(path, { ...APART, lockTimeoutMs: 50 });
    await appendInTurn(one, 1, 4);
    await appendInTurn(other, 5, 8);
    let end: (() => void) | undefined;
    const held = one.inspect(() => new Promise<void>((resolve) => (end = resolve)));
    await expect.poll(() => end).toBeDefined();
    expect(await codeOf(other.append({ event: draft(9) }))).toBe('LEDGER_LOCKED');
    end?.();
    await held;
    await appendInTurn(other, 10, 14);
    await Promise.all([one.close(), other.close()]);
    await expectSound(path, 14);
  });

  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    'may get %s: the writer goes on, and keeps no lock',
    async (signal) => {
      const path = newPath();
      const ledger = await openLedger(path, APART);
      await appendInTurn(ledger, 1, 4);
      helper().kill(signal);
      if (signal === 'SIGKILL') await once(helper(), 'exit');
      await appendInTurn(ledger, 5, 9);
      await makeLedger(path, 10, { lockTimeoutMs: 10_000 });
      await ledger.close();
      await expectSound(path, 11);
    },
  );

  test('that is stopped while the lock is held gives it back all the same', async () => {
    const path = newPath();
    const ledger = await openLedger(path, APART);
    await appendInTurn(ledger, 1, 4);
    await ledger.inspect(() => void helper().kill('SIGSTOP'));
    await makeLedger(path, 5, { lockTimeoutMs: 10_000 });
    await ledger.close();
    await expectSound(path, 6);
  });

  test('does not outlive a writer that is killed, though it be stopped', async () => {
    const path = newPath();
    const { child, helpers } = await takeTurns(path, 'hold');
    expect(helpers).toHaveLength(1);
    expect(await codeOf(openUnsigned(path))).toBe('LEDGER_LOCKED');
    for (const pid of helpers) process.kill(pid, 'SIGSTOP');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const ledger = await openUnsigned(path, { lockTimeoutMs: 10_000 });
    await appendInTurn(ledger, 1, 1);
    await ledger.close();
    expect(helpers.filter(isRunning)).toEqual([]);
    await expectSound(path, 7);
  });

  test('does not keep a process from ending that closes nothing', async () => {
    const path = newPath();
    const { child, helpers } = await takeTurns(path, 'end');
    const [code] = child.exitCode === null ? ((await once(child, 'exit')) as [number]) : [child.exitCode];
    expect(code).toBe(0);
    expect(helpers).toHaveLength(1);
    await vi.waitUntil(() => !helpers.some(isRunning), { timeout: 60_000 });
  });

  test('a writer that is stopped while it holds the lock keeps others out until it goes on', async () => {
    const path = newPath();
    const { child } = await takeTurns(path, 'hold');
    child.kill('SIGSTOP');
    const before = readFileSync(path);
    expect(await codeOf(openUnsigned(path, { lockTimeoutMs: 200 }))).toBe('LEDGER_LOCKED');
    expect(readFileSync(path)).toEqual(before);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const ledger = await openUnsigned(path, { lockTimeoutMs: 10_000 });
    await appendInTurn(ledger, 1, 2);
    await ledger.close();
    await expectSound(path, 8);
  });
});

test.each([true, false])(
  'a lock is kept for the next append, unless another waits for it: %s',
  async (isWanted) => {
    const store = new MemoryStore().open();
    const acquire = store.acquire.bind(store);
    let isHeld = false;
    store.acquire = async (options) => {
      const lock = await acquire(options);
      isHeld = true;
      return {
        isWanted: () => Promise.resolve(isWanted),
        release: async () => {
          await lock.release();
          isHeld = false;
        },
      };
    };
    const ledger = await openLedger(store, { lingerMs: 1_000 });
    const seen: boolean[] = [];
    for (let n = 1; n <= 5; n += 1) {
      await ledger.append({ event: draft(n) });
      // What is asked beside the append is answered.
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(isHeld);
    }
    await ledger.close();
    expect(seen.includes(true)).toBe(!isWanted);
  },
);
