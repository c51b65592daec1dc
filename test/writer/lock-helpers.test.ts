/** The helper that takes the lock: where it is looked for, and what it may do wrong. */

import type * as ChildProcess from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Ledger } from '../../src/log/writer/ledger.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  holdLock,
  makeLedger,
  openLedger,
  temporaryFolder,
} from './support.js';

/** What is run instead of a helper; what is not here is run itself. Those that were asked for, in order. */
const helpers = vi.hoisted((): { instead: Map<string, string>; asked: string[] } => ({
  instead: new Map(),
  asked: [],
}));

vi.mock('node:child_process', async (importOriginal) => {
  const original = await importOriginal<typeof ChildProcess>();
  return {
    ...original,
    spawn: (command: string, args: string[], options: object) => {
      helpers.asked.push(command);
      return original.spawn(helpers.instead.get(command) ?? command, args, options);
    },
  };
});

const FLOCKS = ['/usr/bin/flock', '/bin/flock', 'flock'];
const PERLS = ['/usr/bin/perl', '/bin/perl', 'perl'];

afterEach(() => {
  helpers.instead.clear();
  helpers.asked = [];
});

function replace(commands: readonly string[], program: string): void {
  for (const command of commands) helpers.instead.set(command, program);
}

/** A program of these lines of shell. */
function script(...lines: string[]): string {
  const path = join(temporaryFolder(), 'helper');
  writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'));
  chmodSync(path, 0o755);
  return path;
}

async function newLedger(): Promise<string> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  await makeLedger(path, 1);
  helpers.asked = [];
  return path;
}

/** Opens, and holds that nothing was written where that fails. */
async function refusalOf(path: string, lockTimeoutMs = 0): Promise<unknown> {
  const before = readFileSync(path);
  const error = await errorOf(openLedger(path, { lockTimeoutMs }));
  expect(readFileSync(path)).toEqual(before);
  return error;
}

describe('a helper', () => {
  test('is looked for where systems keep it, and only then by PATH', async () => {
    const path = await newLedger();
    replace([...FLOCKS, ...PERLS], '/nowhere/helper');
    expect(await refusalOf(path)).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(helpers.asked).toEqual([
      '/usr/bin/flock',
      '/bin/flock',
      '/usr/bin/perl',
      '/bin/perl',
      'flock',
      'perl',
    ]);
  });

  test('may be perl, and keeps out one that has flock', async () => {
    const path = await newLedger();
    replace(FLOCKS, '/nowhere/flock');
    const release = await holdLock(path);
    expect(await codeOf(openLedger(path))).toBe('LEDGER_LOCKED');
    helpers.instead.clear();
    expect(await codeOf(openLedger(path))).toBe('LEDGER_LOCKED');
    await release();
    await makeLedger(path, 2);
    await (await openLedger(path)).close();
    await expectSound(path, 3);
  });

  test.each([
    ['as util-linux says it', ['echo "flock: 3: No locks available" >&2', 'exit 71'], 'No locks available'],
    ['as busybox says it', ['echo "flock: Operation not supported" >&2', 'exit 1'], 'not supported'],
    ['without a word', ['exit 65'], '65'],
    ['in too many words', ['yes no | head -c 100000 >&2', 'exit 65'], 'no'],
  ])('may find that the file system has no locks, %s', async (_what, lines, reason) => {
    const path = await newLedger();
    replace([...FLOCKS, ...PERLS], script(...lines));
    const error = await refusalOf(path, 10_000);
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((error as Error & { cause: Error }).cause.message).toContain(reason);
    expect((error as Error).message.length).toBeLessThan(1_000);
  });

  test('of perl tells a lock that is held from one that cannot be had', async () => {
    const path = await newLedger();
    replace(FLOCKS, '/nowhere/flock');
    // Perl gets no descriptor that could be locked.
    for (const perl of PERLS) helpers.instead.set(perl, script('exec /usr/bin/perl "$@" 3< /nowhere'));
    expect(await refusalOf(path)).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  test('that fails is followed by the next', async () => {
    const path = await newLedger();
    replace(FLOCKS, script('echo "flock: unknown option" >&2', 'exit 64'));
    const ledger: Ledger = await openLedger(path);
    await ledger.append({ event: draft(2) });
    await ledger.close();
    await expectSound(path, 3);
  });

  test('that hangs ends at the timeout', async () => {
    const path = await newLedger();
    replace([...FLOCKS, ...PERLS], script('exec sleep 600'));
    expect(await refusalOf(path, 100)).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  test('that hangs ends when the wait is given up', async () => {
    const path = await newLedger();
    const started = join(dirname(path), 'started');
    replace([...FLOCKS, ...PERLS], script(`touch '${started}'`, 'exec sleep 600'));
    const controller = new AbortController();
    const { signal } = controller;
    const opening = openLedger(path, { lockTimeoutMs: 600_000, signal });
    await vi.waitUntil(() => existsSync(started), { timeout: 60_000 });
    controller.abort(new Error('enough'));
    await expect(opening).rejects.toThrow('enough');
  });
});

describe.skipIf(!existsSync('/usr/bin/flock'))('waiting', () => {
  async function open(path: string, told: string[]): Promise<void> {
    const onNotice = ({ code }: { readonly code: string }): void => void told.push(code);
    const ledger = await openLedger(path, { lockTimeoutMs: 60_000, onNotice });
    await ledger.close();
  }

  test('is not said of a helper that is slow', async () => {
    const path = await newLedger();
    const told: string[] = [];
    replace(FLOCKS, script('sleep 1.5', 'exec /usr/bin/flock "$@"'));
    await open(path, told);
    expect(told).toEqual([]);
    await expectSound(path, 2);
  });

  test('is said of a lock that another holds, once', async () => {
    const path = await newLedger();
    const told: string[] = [];
    const release = await holdLock(path);
    const opening = open(path, told);
    await expect.poll(() => told, { timeout: 60_000 }).toEqual(['LEDGER_WAITING']);
    await release();
    await opening;
    expect(told).toEqual(['LEDGER_WAITING']);
  });

  test('leaves no helper behind that keeps the lock', async () => {
    const path = await newLedger();
    const release = await holdLock(path);
    helpers.asked = [];
    // The helper that need not wait is slow. Until it ends it has the writer's descriptor, and the lock with it.
    replace(FLOCKS, script('[ "$1" = -n ] && exec sleep 1.5', 'exec /usr/bin/flock "$@"'));
    const opening = open(path, []);
    await vi.waitUntil(() => helpers.asked.length === 2, { timeout: 60_000 });
    await release();
    await opening;
    helpers.instead.clear();
    await (await openLedger(path, { lockTimeoutMs: 0 })).close();
  });
});
