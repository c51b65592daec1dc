/** Each operation on files fails, each time that it is called; whatever happens, what was acknowledged is there. */

import { appendFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { repairLedger } from '../../src/log/writer/repair.js';
import type { Appended, Ledger } from '../../src/log/writer/ledger.js';
import { times } from '../slow.js';
import { FaultyFileSystem, OPERATIONS, soundFileSystem, type Fault } from './file-systems.js';
import {
  draft,
  errorOf,
  expectSound,
  judge,
  lastFile,
  openLedger,
  readBytes,
  readRecords,
  temporaryFolder,
} from './support.js';

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

/** Fails the test instead of waiting for ever. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('a promise stays unsettled')), 60_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Appends three events at once. Those that fail do so because the ledger failed, and so does all that follows. */
async function appendGroup(ledger: Ledger, first: number, acknowledged: Appended[]): Promise<void> {
  const calls = [0, 1, 2].map((n) => ledger.append({ event: draft(first + n) }));
  const outcomes = await settled(Promise.allSettled(calls));
  for (const outcome of outcomes) if (outcome.status === 'fulfilled') acknowledged.push(outcome.value);
  const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
  if (failed.length === 0) return;
  // The others shared no write with those: they came before.
  expect(outcomes.slice(-failed.length)).toEqual(failed);
  for (const { reason } of failed) expect(reason).toMatchObject({ code: 'LEDGER_FAILED' });
  expect(failed[0].reason).toHaveProperty('cause');
  for (let again = 0; again < 2; again += 1) {
    const error = await errorOf(settled(ledger.append({ event: draft(first) })));
    expect(error).toMatchObject({ code: 'LEDGER_FAILED' });
  }
}

/** Makes or takes up a ledger and appends groups, as far as that goes. */
async function work(
  path: string,
  fileSystem: FaultyFileSystem,
  groups: number,
  from: number,
): Promise<Appended[]> {
  const acknowledged: Appended[] = [];
  let ledger: Ledger;
  try {
    ledger = await settled(openLedger(path, { fileSystem, segmentBytes: 2_000 }));
  } catch (error) {
    expectCause(error);
    return acknowledged;
  }
  for (let group = 0; group < groups; group += 1) await appendGroup(ledger, from + 3 * group, acknowledged);
  await settled(ledger.close()).catch(expectCause);
  return acknowledged;
}

/** Whatever goes wrong is told as what the fault was. */
function expectCause(error: unknown): void {
  const { code } = error as { code?: unknown };
  expect(['IO_FAILED', 'DISK_FULL', 'ACCESS_DENIED', 'EIO', 'ENOSPC', 'EACCES']).toContain(code);
}

/** Whether there is a file, or a folder with something in it. */
function isThere(path: string): boolean {
  return existsSync(path) && (!path.endsWith('/') || readdirSync(path).length > 0);
}

/** What is on disk is a ledger, perhaps torn, or none yet. */
async function expectNotWorse(path: string, acknowledged: readonly Appended[]): Promise<void> {
  if (!isThere(path)) {
    expect(acknowledged).toEqual([]);
    return;
  }
  const { verdict, codes } = await judge(path);
  if (verdict === 'undecided') expect(acknowledged).toEqual([]);
  else if (verdict === 'invalid') expect(codes).toEqual(['LINE_TORN']);
  else expect([verdict, codes]).toEqual(['ok', []]);
  const records = readRecords(path);
  for (const { seq, eventId } of acknowledged) {
    expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(eventId);
  }
}

/** Leaves half a record at the end of a ledger that has a whole one. */
function tear(path: string): void {
  if (isThere(path) && readBytes(path).length > 0) appendFileSync(lastFile(path), '{"event":{"canon');
}

/** The scenario: a new ledger, appends, a crash, a torn tail, appends again, all with one fault somewhere. */
async function runScenario(path: string, fault: Fault): Promise<boolean> {
  const fileSystem = new FaultyFileSystem(fault);
  const acknowledged = await work(path, fileSystem, times(2, 3), 0);
  await expectNotWorse(path, acknowledged);
  tear(path);
  acknowledged.push(...(await work(path, fileSystem, times(1, 2), 9)));
  await expectNotWorse(path, acknowledged);

  const healthy = await openLedger(path, { segmentBytes: 2_000, fileSystem: soundFileSystem });
  acknowledged.push(await healthy.append({ event: draft(100) }));
  const { size } = healthy;
  await healthy.close();
  await expectSound(path, size);
  await expectNotWorse(path, acknowledged);
  return fileSystem.fired;
}

function countDescriptors(): number {
  return existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0;
}

type Kind = Pick<Fault, 'operation' | 'errno' | 'mode' | 'then'>;

const kinds: Kind[] = [
  ...OPERATIONS.map((operation) => ({ operation, errno: 'EIO', mode: 'once' }) as const),
  { operation: 'write', errno: 'ENOSPC', mode: 'short' },
  { operation: 'write', errno: 'ENOSPC', mode: 'short', then: ['truncate'] },
  { operation: 'write', errno: 'ENOSPC', mode: 'on' },
  { operation: 'write', errno: 'ENOSPC', mode: 'short', then: ['truncate', 'remove', 'close'] },
  { operation: 'datasync', errno: 'EIO', mode: 'once', then: ['truncate'] },
  { operation: 'datasync', errno: 'EIO', mode: 'on' },
  { operation: 'open', errno: 'EACCES', mode: 'on' },
];

/** Operations that change nothing: each fourth call of them fails. */
const ONLY_LOOKING = ['kindOf', 'list', 'size', 'read', 'isInPlace'];

/** Operations that a healthy scenario never comes to: they follow a failure only. */
const ON_FAILURE_ONLY = ['remove'];

describe.each([
  ['a file', 'ledger.jsonl'],
  ['a folder of segments', 'ledger/'],
])('%s', (_layout, name) => {
  const label = ({ operation, errno, mode, then = [] }: Kind): string =>
    [`${operation} fails (${errno}, ${mode})`, ...then].join(', then ');
  test.each(kinds.map((kind) => [label(kind), kind] as const))('%s: nothing is lost', async (_name, kind) => {
    const folder = temporaryFolder();
    const descriptors = countDescriptors();
    const step = times(ONLY_LOOKING.includes(kind.operation) ? 8 : 1, 1);
    let nth = 1;
    for (let isRaw = false; ; nth += step, isRaw = !isRaw) {
      const path = join(folder, `${nth}-${name}`);
      if (!(await runScenario(path, { ...kind, nth, raw: isRaw }))) break;
    }
    const isFolderOnly = ['list', 'makeFolder'].includes(kind.operation);
    const never = ON_FAILURE_ONLY.includes(kind.operation) || (isFolderOnly && !name.endsWith('/'));
    if (never) expect(nth).toBe(1);
    else expect(nth).toBeGreaterThan(1);
    expect(countDescriptors()).toBeLessThanOrEqual(descriptors + 1);
  });
});

describe('a failed write', () => {
  const open = async (fault: Omit<Fault, 'operation' | 'errno' | 'mode'> & Partial<Fault>) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const fileSystem = new FaultyFileSystem({ operation: 'write', errno: 'ENOSPC', mode: 'once', ...fault });
    return { path, ledger: await openLedger(path, { fileSystem }) };
  };

  test('is cut back to where the ledger was', async () => {
    const { path, ledger } = await open({ nth: 3, mode: 'short' });
    await ledger.append({ event: draft(1) });
    const { size } = statSync(path);
    const error = await errorOf(ledger.append({ event: draft(2) }));
    expect(error).toBeInstanceOf(NorthrootError);
    expect(error).toMatchObject({ code: 'LEDGER_FAILED', cause: { code: 'DISK_FULL' } });
    expect(statSync(path).size).toBe(size);
    expect(ledger.size).toBe(2);
    await ledger.close();
    await expectSound(path, 2);
  });

  test('fails what waits behind it, an event that it should have written among them', async () => {
    const { path, ledger } = await open({ nth: 2 });
    const calls = Array.from({ length: 2_500 }, (_, n) => ledger.append({ event: draft(n % 1_200) }));
    const outcomes = await settled(Promise.allSettled(calls));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LEDGER_FAILED' } });
    }
    await ledger.close();
    await expectSound(path, 1);
  });

  test('is not what a write is that takes a part at a time', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const fileSystem = new (class extends FaultyFileSystem {
      protected override write(file: Parameters<FaultyFileSystem['write']>[0], bytes: Uint8Array) {
        return file.write(bytes.subarray(0, 7));
      }
    })({ operation: 'write', nth: Infinity, errno: 'EIO', mode: 'once' });
    const ledger = await openLedger(path, { fileSystem });
    await Promise.all([1, 2, 3].map((n) => ledger.append({ event: draft(n) })));
    await ledger.close();
    await expectSound(path, 4);
  });
});

describe('a ledger that cannot be made', () => {
  test.each<[string, Partial<Fault>, string]>([
    ['for want of space', { operation: 'write', errno: 'ENOSPC' }, 'DISK_FULL'],
    ['since its first bytes cannot be synced', { operation: 'datasync' }, 'IO_FAILED'],
    ['since it may not be opened', { operation: 'open', errno: 'EACCES' }, 'ACCESS_DENIED'],
  ])('%s leaves no file', async (_name, fault, code) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const fileSystem = new FaultyFileSystem({
      operation: 'write',
      errno: 'EIO',
      mode: 'once',
      nth: 1,
      ...fault,
    });
    expect(await errorOf(openLedger(path, { fileSystem }))).toMatchObject({ code });
    expect(existsSync(path)).toBe(false);
  });
});

describe('repair', () => {
  test.each(OPERATIONS)('loses nothing when %s fails', async (operation) => {
    const folder = temporaryFolder();
    for (let nth = 1; ; nth += 1) {
      const path = join(folder, `${nth}.jsonl`);
      await (await openLedger(path, { fileSystem: soundFileSystem })).close();
      const tail = '{"event":{"torn';
      appendFileSync(path, tail);
      const fileSystem = new FaultyFileSystem({
        operation,
        nth,
        errno: 'EIO',
        mode: 'once',
        raw: nth % 2 === 0,
      });
      await settled(repairLedger(path, { fileSystem, lockTimeoutMs: 0 })).catch(expectCause);
      const { codes, records } = await judge(path);
      expect(records).toBe(1);
      const saved = readdirSync(folder).filter((name) => name.startsWith(`${nth}.jsonl.torn-`));
      // The tail is in the ledger, or beside it, or both; half a copy is nowhere.
      if (codes.length === 0) expect(saved).toHaveLength(1);
      else expect(codes).toEqual(['LINE_TORN']);
      for (const name of saved) expect(statSync(join(folder, name)).size).toBe(tail.length);
      await repairLedger(path, { fileSystem: soundFileSystem, lockTimeoutMs: 0 });
      await expectSound(path, 1);
      if (!fileSystem.fired) break;
    }
  });
});
