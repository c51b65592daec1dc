/** What was acknowledged must still be there: a store that went back to an earlier state is refused for good. */

import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { nodeFileSystem, type FileSystem } from '../../src/log/fs/file-system.js';
import { toIoError } from '../../src/log/fs/io-error.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { MemoryStore } from '../store/memory-store.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { Ledger, type LedgerOptions } from '../../src/log/writer/ledger.js';
import { codeOf, noticeBoard } from './support.js';

/** The hash of the empty tree. */
const EMPTY_TREE = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU';

const signer = createSigner(generatePrivateKey());
const create = { origin: 'example.com/rollback', principalId: 'service:a' };
const options = {
  signer,
  create,
  principalId: 'service:a',
  lingerMs: 0,
  index: false,
} satisfies LedgerOptions;
const event = (n: number): { readonly event: object } => ({ event: { event_type: 'x.test', n: `${n}` } });

/** A store that answers as another one does, which is put in its place: a standby that was promoted. */
function promotable(first: LedgerStore): { store: LedgerStore; promote: (standby: LedgerStore) => void } {
  let current = first;
  const store = new Proxy(first, {
    get: (_, name) => {
      const value: unknown = Reflect.get(current, name);
      return typeof value === 'function' ? (value.bind(current) as unknown) : value;
    },
  });
  return { store, promote: (standby) => void (current = standby) };
}

async function linesOf(store: LedgerStore): Promise<Uint8Array[]> {
  const lines: Uint8Array[] = [];
  for await (const stored of store.read())
    if (stored.kind === 'lines')
      for (const { bytes } of stored.lines) lines.push(Buffer.concat([bytes, Buffer.from('\n')]));
  return lines;
}

/** A ledger of four records, and a standby that lacks the last `lost` of them: it is promoted when next something is appended. */
async function replicated(lost: number): Promise<{
  ledger: Ledger;
  standby: LedgerStore;
  promoteAtAppend: () => void;
}> {
  const primary = new MemoryStore({ hasLocks: false }).open();
  const standby = new MemoryStore({ hasLocks: false }).open();
  const { store, promote } = promotable(primary);
  const ledger = await Ledger.open(store, options);
  for (const n of [1, 2, 3]) await ledger.append(event(n));
  const turn = await standby.acquire({ timeoutMs: 0 });
  const lines = await linesOf(primary);
  await standby.appendIf({ size: 0, tip: EMPTY_TREE }, lines.slice(0, lines.length - lost));
  await turn.release();
  const promoteAtAppend = (): void => {
    primary.appendIf = async (end, added) => {
      promote(standby);
      const taken = await standby.acquire({ timeoutMs: 0 });
      return standby.appendIf(end, added).finally(() => taken.release());
    };
  };
  return { ledger, standby, promoteAtAppend };
}

describe('a store that lost what was acknowledged', () => {
  it.each([
    ['the last line', 1, []],
    ['two lines, and has another', 2, [event(7)]],
  ])('is refused for good: %s', async (_, lost, others) => {
    const primary = new MemoryStore().open();
    const { store, promote } = promotable(primary);
    const ledger = await Ledger.open(store, options);
    for (const n of [1, 2, 3]) await ledger.append(event(n));
    const lines = await linesOf(primary);
    const standby = new MemoryStore().open();
    const lock = await standby.acquire({ timeoutMs: 0 });
    await standby.appendIf({ size: 0, tip: EMPTY_TREE }, lines.slice(0, -lost));
    await lock.release();
    const other = await Ledger.open(standby, options);
    for (const each of others) await other.append(each);
    await other.close();
    promote(standby);
    expect(await codeOf(ledger.append(event(4)))).toBe('LEDGER_ROLLED_BACK');
    expect(await codeOf(ledger.append(event(5)))).toBe('LEDGER_ROLLED_BACK');
    const stored = (await linesOf(standby)).map((line) => Buffer.from(line).toString());
    expect(stored.some((line) => line.includes('"n":"4"'))).toBe(false);
  });

  it.each([
    ['one line', 1, 1],
    ['one line, under several that wait', 1, 4],
    ['all but genesis', 3, 1],
  ])('is refused where it is lost between reading and appending: %s', async (_, lost, waiting) => {
    const { ledger, standby, promoteAtAppend } = await replicated(lost);
    promoteAtAppend();
    const codes = Array.from({ length: waiting }, (_each, n) => codeOf(ledger.append(event(10 + n))));
    expect(new Set(await Promise.all(codes))).toEqual(new Set(['LEDGER_ROLLED_BACK']));
    expect(await codeOf(ledger.append(event(50)))).toBe('LEDGER_ROLLED_BACK');
    expect(await linesOf(standby)).toHaveLength(4 - lost);
  });

  it('is appended to where, between reading and appending, another writer only added to it', async () => {
    const { ledger, standby, promoteAtAppend } = await replicated(0);
    const other = await Ledger.open(standby, options);
    await other.append(event(4));
    await other.close();
    promoteAtAppend();
    expect(await ledger.append(event(5))).toMatchObject({ seq: 5 });
  });

  it('goes on where another writer only added to it', async () => {
    const store = new MemoryStore();
    const ledger = await Ledger.open(store.open(), options);
    await ledger.append(event(1));
    const other = await Ledger.open(store.open(), options);
    await other.append(event(2));
    expect(await ledger.append(event(3))).toMatchObject({ seq: 3 });
  });
});

/** A ledger in a file that is gone when the test is. */
function temporaryLedger(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-rollback-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'l.jsonl');
}

describe('a file that was cut back under its writer, and written on by another', () => {
  it.each([
    ['with more than it had, without an index', false, [4, 5, 6]],
    ['with less than it had, without an index', false, [4]],
    ['with more than it had, and the index made anew', true, [4, 5, 6]],
    ['with as much as it had, and the index made anew', true, [4, 5]],
    ['with less than it had, and the index made anew', true, [4]],
  ])('is refused for good: %s', async (_, index, others) => {
    const path = temporaryLedger();
    const own = { ...options, index };
    const first = await Ledger.open(path, own);
    await first.append(event(1));
    const { size } = statSync(path);
    await first.close();
    if (index) await maintainIndex(path);
    const ledger = await Ledger.open(path, own);
    onTestFinished(() => ledger.close());
    for (const n of [2, 3]) await ledger.append(event(n));
    truncateSync(path, size);
    const other = await Ledger.open(path, own);
    for (const n of others) await other.append(event(n));
    await other.close();
    expect(await codeOf(ledger.append(event(7)))).toBe('LEDGER_ROLLED_BACK');
    expect(await codeOf(ledger.append(event(8)))).toBe('LEDGER_ROLLED_BACK');
    expect(readFileSync(path, 'utf8')).not.toMatch(/"n":"[78]"/);
  });
});

describe('the position that is kept over restarts', () => {
  const keeps = async (
    path: string,
    position: string,
    n: number,
    own: LedgerOptions = options,
  ): Promise<void> => {
    const ledger = await Ledger.open(path, { ...own, position });
    await ledger.append(event(n)).finally(() => ledger.close());
  };
  const sizes = (position: string): unknown[] =>
    readFileSync(position, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { size: unknown }).size);

  it('finds a ledger that was restored from a backup, and one whose end is another', async () => {
    const path = temporaryLedger();
    const position = `${path}.kept`;
    await keeps(path, position, 1);
    copyFileSync(path, `${path}.backup`);
    await keeps(path, position, 2);
    const whole = readFileSync(path);
    // Others who keep no position may go on from it.
    const other = await Ledger.open(path, options);
    await other.append(event(3));
    await other.close();
    await keeps(path, position, 4);
    copyFileSync(`${path}.backup`, path);
    expect(await codeOf(keeps(path, position, 5))).toBe('LEDGER_ROLLED_BACK');
    writeFileSync(path, whole);
    expect(await codeOf(keeps(path, position, 5))).toBe('LEDGER_ROLLED_BACK');
  });

  it('is found by the end of a segment, too', async () => {
    const path = temporaryLedger();
    const [position, own] = [`${path}.kept`, { ...options, segmentBytes: 1 }];
    await keeps(`${path}/`, position, 1, own);
    const [first] = readdirSync(path);
    await keeps(`${path}/`, position, 2, own);
    for (const name of readdirSync(path)) if (name !== first) rmSync(join(path, name));
    expect(await codeOf(keeps(path, position, 3, own))).toBe('LEDGER_ROLLED_BACK');
  });

  it('refuses a ledger that was emptied, or is another, until the position is removed', async () => {
    const path = temporaryLedger();
    const position = `${path}.kept`;
    await keeps(path, position, 1);
    truncateSync(path, 0);
    const anew = { ...options, create: { ...create, origin: 'example.com/anew' } };
    expect(await codeOf(keeps(path, position, 1, anew))).toBe('LEDGER_ROLLED_BACK');
    expect(statSync(path).size).toBe(0);
    await (await Ledger.open(path, anew)).close();
    expect(await codeOf(keeps(path, position, 1, anew))).toBe('LEDGER_ROLLED_BACK');
    rmSync(position);
    await keeps(path, position, 1, anew);
    expect(sizes(position)).toEqual([1, 2]);
  });

  it.each(['{}\n', 'x', '', '{"size":1}\n'])('refuses a file that keeps none: %j', async (text) => {
    const path = temporaryLedger();
    await (await Ledger.open(path, options)).close();
    writeFileSync(`${path}.kept`, text);
    expect(await codeOf(keeps(path, `${path}.kept`, 2))).toBe('POSITION_MALFORMED');
  });

  it('takes the line that is furthest along, and none that was torn', async () => {
    const path = temporaryLedger();
    const position = `${path}.kept`;
    await keeps(path, position, 1);
    const [first = '', second = ''] = readFileSync(position, 'utf8').split('\n');
    writeFileSync(position, `${second}\n${first}\n${first.slice(0, 20)}`);
    await keeps(path, position, 2);
    expect(sizes(position)).toEqual([3]);
  });

  it('is one of what is on disk, however many writers share it', async () => {
    const path = temporaryLedger();
    const own = { ...options, position: `${path}.kept` };
    const ledgers = await Promise.all([1, 2, 3].map(() => Ledger.open(path, own)));
    for (let n = 0; n < 6; n += 1) {
      const { seq } = await ledgers[n % 3].append(event(n));
      expect(sizes(own.position).at(-1)).toBe(seq + 1);
    }
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    expect(sizes(own.position)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('is kept in the file that has its name, which another writer may have put there', async () => {
    const path = temporaryLedger();
    const own = { ...options, position: `${path}.kept` };
    const ledger = await Ledger.open(path, own);
    await ledger.append(event(1));
    const kept = readFileSync(own.position);
    rmSync(own.position);
    writeFileSync(own.position, kept);
    await ledger.append(event(2));
    await ledger.close();
    expect(sizes(own.position)).toEqual([1, 2, 3]);
  });

  it('is written anew before it grows large', async () => {
    const path = temporaryLedger();
    const position = `${path}.kept`;
    await keeps(path, position, 1);
    const [line = ''] = readFileSync(position, 'utf8').split('\n');
    writeFileSync(position, `${line}\n`.repeat(Math.ceil(70_000 / line.length)));
    await keeps(path, position, 2);
    expect(sizes(position)).toEqual([2, 3]);
  });

  it('has a file of its own for each ledger in a folder', async () => {
    const [one, two] = [temporaryLedger(), temporaryLedger()];
    const folder = join(dirname(one), 'positions/');
    for (const path of [one, two, one]) await keeps(path, folder, 1);
    expect(readdirSync(folder)).toHaveLength(2);
    truncateSync(one, statSync(one).size - 1);
    expect(await codeOf(keeps(one, folder, 2))).toBe('LEDGER_ROLLED_BACK');
  });

  it('is kept beside a ledger that decides, and not of another, nor where it is not wanted', async () => {
    const path = temporaryLedger();
    await (await Ledger.open(path, options)).close();
    await (await Ledger.open(path, { ...options, decides: true, position: false })).close();
    expect(existsSync(`${path}.position`)).toBe(false);
    await (await LiveLedger.open(path, options)).close();
    expect(sizes(`${path}.position`)).toEqual([1]);
    await expect(Ledger.open(path, { position: '' })).rejects.toThrow(RangeError);
  });

  it('is done without by default where it cannot be written, and not where it was asked for', async () => {
    const path = temporaryLedger();
    await (await Ledger.open(path, options)).close();
    const board = noticeBoard();
    const denied = Object.assign(new Error('denied'), { code: 'EACCES' });
    const fileSystem: FileSystem = {
      ...nodeFileSystem,
      open: (name, ...rest) =>
        name.includes('.position')
          ? Promise.reject(toIoError(denied, 'write', name))
          : nodeFileSystem.open(name, ...rest),
    };
    const own = { ...options, fileSystem, decides: true, onNotice: board.onNotice };
    const ledger = await Ledger.open(path, own);
    await ledger.append(event(1));
    await ledger.close();
    expect(board.notices.map(({ code }) => code)).toEqual(['POSITION_NOT_KEPT']);
    expect(await codeOf(Ledger.open(path, { ...own, position: `${path}.position` }))).toBe('ACCESS_DENIED');
  });
});
