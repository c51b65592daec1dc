/** A thread that dies, hangs or fails is an internal error: never a verdict, and never waited for without end. */

import { afterEach, expect, test, vi } from 'vitest';
import { readBlocks } from '../../src/fast/blocks/read-blocks.js';
import { WorkerPool } from '../../src/fast/blocks/worker-pool.js';
import { bytesSource } from '../bytes-source.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { testThread, type TestThread } from './threads.js';

afterEach(() => {
  vi.useRealTimers();
});

const room = (text: string): [SharedArrayBuffer, number, 'all'] => {
  const bytes = new SharedArrayBuffer(text.length);
  new Uint8Array(bytes).set(Buffer.from(text));
  return [bytes, text.length, 'all'];
};

test('each gets the block that has the least to do', async () => {
  const pool = new WorkerPool([testThread(), testThread()], []);
  const facts = await Promise.all([pool.examine(...room('a\n')), pool.examine(...room('b\nc\n'))]);
  expect(facts.map(({ lines }) => lines)).toEqual([1, 2]);
  await pool.close();
});

test.each([
  ['dies', (thread: TestThread) => thread.die(), undefined],
  ['hangs', () => vi.advanceTimersByTime(4_000), 'silence'],
  ['fails', () => undefined, { error: 'surprised' }],
] as const)('one that %s ends all that waits, and all that comes', async (_, happens, answer) => {
  if (answer === 'silence') vi.useFakeTimers();
  const thread = testThread(answer);
  const pool = new WorkerPool([thread], [], 3);
  const waiting = pool.examine(...room('a\n'));
  happens(thread);
  await expect(waiting).rejects.toThrow(/thread of the verifier/);
  await expect(pool.examine(...room('b\n'))).rejects.toThrow(/thread of the verifier/);
  await pool.close();
  expect(thread.isStopped()).toBe(true);
});

test('one that has nothing to do may be silent', async () => {
  vi.useFakeTimers();
  const pool = new WorkerPool([testThread('silence')], [], 3);
  vi.advanceTimersByTime(60_000);
  const waiting = pool.examine(...room('a\n'));
  vi.advanceTimersByTime(2_000);
  expect(await Promise.race([waiting, Promise.resolve('waits')])).toBe('waits');
  waiting.catch(() => undefined);
  await pool.close();
});

test('what reads blocks throws it, and stops the others', async () => {
  const good = testThread();
  const threads: TestThread[] = [testThread({ error: 'surprised' }), good];
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  const blocks = readBlocks(bytesSource(bytes, '-'), {
    backend: nodeBackend,
    keys: [],
    threads: 3,
    worthwhileBytes: 0,
    blockBytes: 65_536,
    start: () => threads.shift(),
  });
  await expect(
    (async () => {
      for await (const block of blocks) void block;
    })(),
  ).rejects.toThrow(/surprised/);
  expect(good.isStopped()).toBe(true);
});
