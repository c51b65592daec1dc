/** Reading on while a ledger grows: everything once and in order, until the reader stops. */

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { followLedger, type FollowOptions } from '../../src/api/index.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-follow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HEAD = '{"event":{}}\n';

/** Follows a path: what was read so far, and a way to wait for it. */
class Reading {
  text = '';
  caughtUpAt: string | undefined;
  readonly #end = new AbortController();
  readonly done: Promise<void>;

  constructor(path: string, options: Partial<FollowOptions> = {}) {
    const onCaughtUp = (): void => void (this.caughtUpAt = this.text);
    this.done = (async () => {
      const source = await followLedger(path, {
        signal: this.#end.signal,
        onCaughtUp,
        pollMs: 1,
        ...options,
      });
      for await (const segment of source.segments) {
        for await (const chunk of segment.chunks) this.text += Buffer.from(chunk).toString('utf8');
      }
    })();
    this.done.catch(() => undefined);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.done;
  }
}

describe('following a file', () => {
  it('gives what is there, says so once, and then what is added, until it is stopped', async () => {
    const path = join(folder, 'one.jsonl');
    writeFileSync(path, HEAD);
    const reading = new Reading(path);
    await reading.until(() => reading.caughtUpAt !== undefined);
    expect(reading.caughtUpAt).toBe(HEAD);
    for (const part of ['a', 'b\n', 'c\n']) {
      appendFileSync(path, part);
      await reading.until(() => reading.text.endsWith(part));
    }
    await reading.stop();
    expect(reading.text).toBe(`${HEAD}ab\nc\n`);
    expect(reading.caughtUpAt).toBe(HEAD);
  });

  it('of which whole lines are wanted ends with one, also where it is stopped before it has caught up', async () => {
    const path = join(folder, 'long.jsonl');
    writeFileSync(path, `${'x'.repeat(1_000)}\n`.repeat(1_000));
    const end = new AbortController();
    const source = await followLedger(path, { signal: end.signal, wholeLines: true });
    let text = '';
    for await (const { chunks } of source.segments) {
      for await (const chunk of chunks) {
        text += Buffer.from(chunk).toString();
        end.abort();
      }
    }
    expect([text.length > 0, text.length < 1_001_000, text.endsWith('\n')]).toEqual([true, true, true]);
    expect(await source.findGrowth?.()).toEqual({ file: path, byteOffset: text.length });
  });

  it('refuses what is neither a file nor a folder', async () => {
    const { signal } = new AbortController();
    await expect(followLedger('/dev/null', { signal })).rejects.toMatchObject({ code: 'NOT_A_LEDGER' });
  });

  it.each<readonly [string, (path: string) => void]>([
    ['is cut off', (path) => truncateSync(path, 1)],
    [
      'is replaced',
      (path) => {
        writeFileSync(`${path}.new`, `${HEAD}${HEAD}`);
        renameSync(`${path}.new`, path);
      },
    ],
  ])('ends with an error when it %s', async (what, change) => {
    const path = join(folder, `${what.replaceAll(' ', '-')}.jsonl`);
    writeFileSync(path, HEAD);
    const reading = new Reading(path);
    await reading.until(() => reading.caughtUpAt !== undefined);
    change(path);
    await expect(reading.done).rejects.toMatchObject({ code: 'FILE_CHANGED' });
  });
});

it('following a folder goes from segment to segment, and loses nothing between', async () => {
  const path = join(folder, 'segments');
  mkdirSync(path);
  const name = (seq: number): string => join(path, `${String(seq).padStart(20, '0')}.jsonl`);
  writeFileSync(name(0), 'a\n');
  const reading = new Reading(path);
  await reading.until(() => reading.caughtUpAt !== undefined);
  appendFileSync(name(0), 'b\n');
  writeFileSync(name(2), 'c\n');
  await reading.until(() => reading.text.endsWith('c\n'));
  appendFileSync(name(2), 'd\n');
  await reading.until(() => reading.text.endsWith('d\n'));
  await reading.stop();
  expect(reading.text).toBe('a\nb\nc\nd\n');
});

it('following a folder of many segments costs what their number does', async () => {
  const path = join(folder, 'many-segments');
  mkdirSync(path);
  const count = 6_000;
  for (let seq = 0; seq < count; seq += 1)
    writeFileSync(join(path, `${String(seq).padStart(20, '0')}.jsonl`), seq === count - 1 ? 'a\n' : '');
  const reading = new Reading(path);
  await reading.until(() => reading.caughtUpAt !== undefined);
  await reading.stop();
  expect(reading.text).toBe('a\n');
});

it('refuses what is missing, what is no ledger, and options that it does not know', async () => {
  const { signal } = new AbortController();
  await expect(followLedger(join(folder, 'none'), { signal })).rejects.toMatchObject({
    code: 'FILE_NOT_FOUND',
  });
  writeFileSync(join(folder, 'key'), '-----BEGIN PRIVATE KEY-----\n');
  const reading = new Reading(join(folder, 'key'));
  await expect(reading.done).rejects.toMatchObject({ code: 'NOT_A_LEDGER' });
  await expect(followLedger(folder, { signal, poll: 1 } as FollowOptions)).rejects.toThrow(TypeError);
  await expect(followLedger(folder, { signal, pollMs: 0 })).rejects.toThrow(RangeError);
});
