/** The outbox of clients: kept on disk, sent in order, by one process at a time, whatever dies or fails. */

import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Delivery, Outbox, type OutboxOptions } from '../../../src/hosts/shared/live/outbox.js';
import { CircuitBreaker } from '../../../src/hosts/shared/live/circuit-breaker.js';
import { nodeFileSystem } from '../../../src/log/fs/file-system.js';
import { NorthrootError } from '../../../src/base/error.js';
import { temporaryFolder } from '../../writer/support.js';

interface Peer extends OutboxOptions {
  readonly sent: number[];
  readonly refused: (number | undefined)[];
  answer: (n: number) => Delivery | Promise<Delivery>;
}

function peer(answer: (n: number) => Delivery | Promise<Delivery> = () => 'taken'): Peer {
  const sent: number[] = [];
  const refused: (number | undefined)[] = [];
  const own: Peer = {
    ...{ sent, refused, answer },
    send: async (_, { n }) => {
      sent.push(n as number);
      return own.answer(n as number);
    },
    onRefused: (_, body) => refused.push(body?.['n'] as number | undefined),
  };
  return own;
}

async function open(path: string, options: OutboxOptions): Promise<Outbox> {
  const outbox = await Outbox.open(path, options);
  onTestFinished(() => outbox.close());
  return outbox;
}

const entriesIn = (path: string): string[] => readdirSync(path).filter((name) => name.endsWith('.json'));
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe('an outbox', () => {
  it('sends in order, each once, and keeps nothing of it', async () => {
    const path = temporaryFolder();
    const to = peer();
    const outbox = await open(path, to);
    await Promise.all(numbers(50).map((n) => outbox.put('x', { n })));
    expect(await outbox.flush()).toBe(0);
    expect(to.sent).toEqual(numbers(50));
    expect(entriesIn(path)).toEqual([]);
  });

  it('stops at what is not taken, and goes on with it after a start', async () => {
    const path = temporaryFolder();
    const to = peer((n) => (n < 3 ? 'taken' : 'later'));
    const outbox = await Outbox.open(path, to);
    for (const n of numbers(6)) await outbox.put('x', { n });
    expect(await outbox.flush()).toBe(3);
    await outbox.close();
    expect(new Set(to.sent)).toEqual(new Set([0, 1, 2, 3]));
    const next = peer();
    expect(await (await open(path, next)).flush()).toBe(0);
    expect(next.sent).toEqual([3, 4, 5]);
  });

  it('what throws is sent again; what is refused is given up; what fails is given up after 20 times', async () => {
    const to = peer((n) => {
      if (n === 1) return 'refused';
      if (n === 2) return 'failed';
      return 'taken';
    });
    let isThrown = false;
    to.answer = ((answer) => (n: number) => {
      if (n === 0 && !isThrown) {
        isThrown = true;
        throw new Error('no');
      }
      return answer(n);
    })(to.answer);
    const outbox = await open(temporaryFolder(), to);
    for (const n of numbers(4)) await outbox.put('x', { n });
    let left = 4;
    for (let tries = 0; left > 0 && tries < 30; tries += 1) left = await outbox.flush();
    expect(left).toBe(0);
    expect(to.refused).toEqual([1, 2]);
    expect(to.sent.filter((n) => n === 2)).toHaveLength(20);
    expect(to.sent.at(-1)).toBe(3);
  });

  it('takes no more than it may hold, and takes more when some is sent', async () => {
    const to = peer(() => 'later');
    const outbox = await open(temporaryFolder(), { ...to, maxEntries: 2 });
    await outbox.put('x', { n: 0 });
    await outbox.put('x', { n: 1 });
    await expect(outbox.put('x', { n: 2 })).rejects.toMatchObject({ code: 'OUTBOX_FULL' });
    to.answer = () => 'taken';
    expect(await outbox.flush()).toBe(0);
    await outbox.put('x', { n: 3 });
    await expect(outbox.put('x', { n: 4, long: 'x'.repeat(5_000_000) })).rejects.toMatchObject({
      code: 'OUTBOX_FULL',
    });
  });

  it('flushed while an entry is being sent, tries again what is not taken then', async () => {
    let answer = (_: Delivery): void => undefined;
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const to = peer(() => new Promise<Delivery>((resolve) => ((answer = resolve), asked())));
    const outbox = await open(temporaryFolder(), to);
    await outbox.put('x', { n: 0 });
    await isAsked;
    const flushed = outbox.flush();
    to.answer = () => 'taken';
    answer('later');
    expect(await flushed).toBe(0);
    expect(to.sent).toEqual([0, 0]);
  });

  it('gives up an entry that is torn or no entry, and sends the rest', async () => {
    const path = temporaryFolder();
    const outbox = await Outbox.open(
      path,
      peer(() => 'later'),
    );
    for (const n of numbers(3)) await outbox.put('x', { n });
    await outbox.close();
    const [first, second] = entriesIn(path);
    truncateSync(join(path, first), 10);
    writeFileSync(join(path, second), '[]');
    writeFileSync(join(path, 'notes.txt'), 'not an entry');
    writeFileSync(join(path, '00000000000000001-0123456789abcdef.json.new-0123456789abcdef'), '{"kin');
    const to = peer();
    expect(await (await open(path, to)).flush()).toBe(0);
    expect(to.refused).toEqual([undefined, undefined]);
    expect(to.sent).toEqual([2]);
  });

  it('fails to keep what the disk does not take, and says so', async () => {
    let isFull = false;
    const fileSystem = {
      ...nodeFileSystem,
      open: (...given: Parameters<typeof nodeFileSystem.open>) =>
        isFull && given[1] === 'new'
          ? Promise.reject(new NorthrootError('DISK_FULL', 'full'))
          : nodeFileSystem.open(...given),
    };
    const to = peer();
    const path = temporaryFolder();
    const outbox = await open(path, { ...to, fileSystem });
    isFull = true;
    await expect(outbox.put('x', { n: 0 })).rejects.toMatchObject({ code: 'DISK_FULL' });
    isFull = false;
    await outbox.put('x', { n: 1 });
    expect(await outbox.flush()).toBe(0);
    expect(to.sent).toEqual([1]);
    expect(entriesIn(path)).toEqual([]);
  });

  it('in two places sends each entry once, by one of them at a time', async () => {
    const path = temporaryFolder();
    let sending = 0;
    const most: number[] = [];
    const slow = async (): Promise<Delivery> => {
      sending += 1;
      most.push(sending);
      await new Promise((resolve) => setTimeout(resolve, 2));
      sending -= 1;
      return 'taken';
    };
    const [one, two] = [peer(slow), peer(slow)];
    const [a, b] = [await open(path, one), await open(path, two)];
    for (const n of numbers(20)) await (n % 2 === 0 ? a : b).put('x', { n });
    await vi.waitFor(
      async () => {
        await Promise.all([a.flush(), b.flush()]);
        expect(entriesIn(path)).toEqual([]);
      },
      { timeout: 60_000 },
    );
    expect([...one.sent, ...two.sent].sort((x, y) => x - y)).toEqual(numbers(20));
    expect(Math.max(...most)).toBe(1);
  });

  it('survives kill -9 at any time: what was kept is sent by the next one', async () => {
    const path = temporaryFolder();
    const kept: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const child = spawn(process.execPath, [CHILD, path, String(round * 1000)]);
      onTestFinished(() => void child.kill('SIGKILL'));
      kept.push(...(await killAfter(child, 5 + round * 7)));
    }
    const to = peer();
    expect(await (await open(path, to)).flush()).toBe(0);
    // Of what was not acknowledged, the last of each process may be there.
    for (const n of kept) expect(to.sent).toContain(n);
    expect(to.sent.length - kept.length).toBeLessThanOrEqual(3);
    expect(to.refused).toEqual([]);
    expect(to.sent).toEqual([...to.sent].sort((x, y) => x - y));
  });
});

const CHILD = fileURLToPath(new URL('children/fill-outbox.js', import.meta.url));

/** The numbers that a process says it has kept, until it is killed after so many. */
function killAfter(child: ChildProcess, count: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    let errors = '';
    child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split('\n').length > count) child.kill('SIGKILL');
    });
    child.on('close', () => {
      const lines = text.split('\n').slice(0, -1);
      if (lines.length < count) reject(new Error(errors));
      else resolve(lines.map(Number));
    });
  });
}

describe('a circuit breaker', () => {
  const down = (error: unknown): boolean | undefined =>
    ({ down: true, up: false })[(error as Error).message as 'down'];
  const fails = (message: string) => () => Promise.reject(new Error(message));

  it('opens after failures in a row, lets one probe pass, and closes with it', async () => {
    let now = 0;
    const circuit = new CircuitBreaker({ failures: 2, coolDownMs: 100 }, () => now);
    await expect(circuit.run(fails('down'), down)).rejects.toThrow('down');
    await expect(circuit.run(fails('up'), down)).rejects.toThrow('up');
    await expect(circuit.run(fails('down'), down)).rejects.toThrow('down');
    expect(circuit.state).toBe('closed');
    await expect(circuit.run(fails('down'), down)).rejects.toThrow('down');
    expect(circuit.state).toBe('open');
    let asked = 0;
    const ask = (): Promise<number> => Promise.resolve((asked += 1));
    await expect(circuit.run(ask, down)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    now = 100;
    expect(circuit.state).toBe('half_open');
    let fail: (error: Error) => void = () => undefined;
    const probe = circuit.run(() => new Promise((_, reject) => (fail = reject)), down);
    await expect(circuit.run(ask, down)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    fail(new Error('down'));
    await expect(probe).rejects.toThrow('down');
    expect(circuit.state).toBe('open');
    now = 200;
    // One that is withdrawn says nothing.
    await expect(circuit.run(fails('withdrawn'), down)).rejects.toThrow('withdrawn');
    expect(circuit.state).toBe('half_open');
    expect(await circuit.run(ask, down)).toBe(1);
    expect(circuit.state).toBe('closed');
  });

  it.each([{ failures: 0 }, { failures: 1.5 }, { coolDownMs: -1 }])('refuses %j', (options) => {
    expect(() => new CircuitBreaker(options)).toThrow(RangeError);
  });
});
