/** The stores that there are, held to what every store must do; and what only files can come to. */

import { appendFileSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FileStore } from '../../src/log/store/file-store.js';
import { MemoryStore } from './memory-store.js';
import { FaultyFileSystem, soundFileSystem, VolatileFileSystem, type Fault } from '../writer/file-systems.js';
import { readBytes, temporaryFolder } from '../writer/support.js';
import { append, codeOf, describeStore, inTurn, lineOf, readFrom } from './conformance.js';

describeStore(
  'a file',
  () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    return { open: () => FileStore.open(path, { create: true }) };
  },
  { hasLocks: true },
);

describeStore('a store in memory', () => openMemory(new MemoryStore()), { hasLocks: true });

describeStore('a store in memory without locks', () => openMemory(new MemoryStore({ hasLocks: false })), {
  hasLocks: false,
});

function openMemory(memory: MemoryStore) {
  return { open: () => Promise.resolve(memory.open()) };
}

const START = {
  size: 0,
  tip: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: '',
  line: 1,
  byteOffset: 0,
};

test('a folder begins a segment when the last one has its size, named by the number it is given', async () => {
  const path = join(temporaryFolder(), 'ledger/');
  const open = () => FileStore.open(path, { create: true, segmentBytes: 8 });
  const [store, other] = [await open(), await open()];
  let end = START;
  for (const [n, text] of ['one', 'two', 'three', 'four'].entries()) {
    // In turns, each behind what the other has stored.
    end = await append(n % 2 === 0 ? store : other, end, [text]);
  }
  expect(end).toMatchObject({ size: 4, file: `${path}00000000000000000002.jsonl`, line: 3, byteOffset: 11 });
  expect((await inTurn(store, () => readFrom(store))).lines).toEqual(['one', 'two', 'three', 'four']);
  await Promise.all([store.close(), other.close()]);
});

describe.each([
  ['a file', 'ledger.jsonl'],
  ['a folder of segments', 'ledger/'],
])('%s', (_what, name) => {
  test('whose writer dies at any operation has all that was appended, and no half line that stays', async () => {
    const folder = temporaryFolder();
    for (let lifetime = 0, isDone = false; !isDone; lifetime += 1) {
      const path = join(folder, `${lifetime}-${name}`);
      const fileSystem = new VolatileFileSystem();
      fileSystem.startProcess(lifetime);
      const kept: string[] = [];
      try {
        const store = await FileStore.open(path, { create: true, segmentBytes: 8, fileSystem });
        let end = START;
        for (const text of ['one', 'two', 'three']) {
          end = await append(store, end, [text, `${text}!`]);
          kept.push(text, `${text}!`);
        }
        isDone = true;
        await store.close();
      } catch {
        // It is dead.
      }
      fileSystem.failPower(() => 0);
      const next = await FileStore.open(path, {
        create: true,
        segmentBytes: 8,
        fileSystem: soundFileSystem,
      });
      const turn = await next.acquire({ timeoutMs: 0 });
      await readFrom(next);
      await next.settleTornTail();
      const { lines, position } = await readFrom(next);
      expect(lines.slice(0, kept.length)).toEqual(kept);
      await next.nextPlace(position.size);
      await next.appendIf(position, [lineOf('last')]);
      await turn.release();
      await next.close();
      expect(readBytes(path).toString().endsWith('last\n')).toBe(true);
    }
  });

  test('tells what others changed from what it has', async () => {
    const path = join(temporaryFolder(), name);
    const store = await FileStore.open(path, { create: true, segmentBytes: 8 });
    let end = await append(store, START, ['one']);
    const first = await store.stamp();
    expect([typeof first, await store.ownStamp()]).toEqual(['string', first]);
    // In a folder another segment begins.
    for (const text of ['two', 'three', 'four']) end = await append(store, end, [text]);
    const own = await store.ownStamp();
    expect(own).toBeDefined();
    expect(own).not.toBe(first);
    const file = name.endsWith('/') ? join(path, '00000000000000000000.jsonl') : path;
    const { atime, mtime } = statSync(file);
    // The clock by which files are dated ticks every few milliseconds.
    await sleep(20);
    writeFileSync(file, readFileSync(file, 'utf8').replace('one', 'uno'));
    utimesSync(file, atime, mtime);
    expect(await store.ownStamp()).toBeUndefined();
    await append(store, end, ['five']);
    expect(await store.ownStamp()).toBeUndefined();
    expect([typeof (await store.stamp()), await store.ownStamp()]).toEqual(['string', await store.stamp()]);
    await store.close();
  });

  test.each<[string, Partial<Fault>]>([
    ['a write that fails', { operation: 'write' }],
    ['a short write', { operation: 'write', mode: 'short' }],
    ['a sync that fails', { operation: 'datasync' }],
  ])('cuts %s back to what was there', async (_fault, fault) => {
    const path = join(temporaryFolder(), name);
    const fileSystem = new FaultyFileSystem({
      operation: 'write',
      nth: 2,
      errno: 'EIO',
      mode: 'once',
      ...fault,
    });
    const store = await FileStore.open(path, { create: true, fileSystem });
    const end = await append(store, START, ['one']);
    expect(await codeOf(append(store, end, ['two']))).toBe('IO_FAILED');
    expect(readBytes(path).toString()).toBe('one\n');
    await append(store, end, ['three']);
    expect(readBytes(path).toString()).toBe('one\nthree\n');
    await store.close();
  });
});

test('a torn tail is saved beside the file, and cut off', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const store = await FileStore.open(path, { create: true });
  const end = await append(store, START, ['one']);
  appendFileSync(path, 'tw');
  await inTurn(store, async () => {
    expect((await readFrom(store, end)).lines).toEqual([]);
    expect(await store.settleTornTail()).toMatchObject({ offset: 4, length: 2, savedTo: `${path}.torn-4` });
    await store.appendIf(end, [lineOf('two')]);
  });
  await store.close();
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
  expect(readFileSync(`${path}.torn-4`, 'utf8')).toBe('tw');
});

test('a file that grew since it was read takes nothing in that turn, and the next one reads on', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const store = await FileStore.open(path, { create: true });
  const end = await append(store, START, ['one']);
  await inTurn(store, async () => {
    expect((await readFrom(store, end)).lines).toEqual([]);
    // By a program that does not ask for the lock.
    appendFileSync(path, 'two\n');
    expect(await codeOf(store.appendIf(end, [lineOf('three')]))).toBe('LEDGER_CONFLICT');
  });
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
  const { lines, position } = await inTurn(store, () => readFrom(store, end));
  expect(lines).toEqual(['two']);
  await append(store, position, ['three']);
  await store.close();
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n');
});

test('a file is synced before what another left in it is acknowledged, whoever wrote to it before', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const fileSystem = new VolatileFileSystem();
  const store = await FileStore.open(path, { create: true, fileSystem });
  const end = await append(store, START, ['one']);
  // By a writer that was killed before it had synced.
  const file = await fileSystem.open(path, 'append');
  await file.write(lineOf('two'));
  await file.close();
  await inTurn(store, async () => {
    expect((await readFrom(store, end)).lines).toEqual(['two']);
    await store.confirm();
  });
  await store.close();
  fileSystem.failPower(() => 0);
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
});

test('a full segment is synced before a line is appended behind it, whoever filled it', async () => {
  const path = join(temporaryFolder(), 'ledger/');
  const fileSystem = new VolatileFileSystem();
  const store = await FileStore.open(path, { create: true, segmentBytes: 8, fileSystem });
  const end = await append(store, START, ['one']);
  // By a writer that was killed before it had synced.
  const file = await fileSystem.open(end.file, 'append');
  await file.write(lineOf('two'));
  await file.close();
  await inTurn(store, async () => {
    const { position } = await readFrom(store, end);
    await store.nextPlace(position.size);
    await store.appendIf(position, [lineOf('three')]);
  });
  await store.close();
  fileSystem.failPower(() => 0);
  expect(readFileSync(end.file, 'utf8')).toBe('one\ntwo\n');
  expect(readFileSync(`${path}00000000000000000002.jsonl`, 'utf8')).toBe('three\n');
});
