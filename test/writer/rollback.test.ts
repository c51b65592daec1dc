/** What was acknowledged must still be there: a store that went back to an earlier state is refused for good. */

import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { generatePrivateKey } from '../../src/key/private-key.js';
import { createSigner } from '../../src/signature/signer.js';
import type { LedgerStore } from '../../src/store/ledger-store.js';
import { MemoryStore } from '../../src/store/memory-store.js';
import { maintainIndex } from '../../src/view/maintain-index.js';
import { Ledger, type LedgerOptions } from '../../src/writer/ledger.js';
import { codeOf } from './support.js';

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
    const turn = await standby.acquire({ timeoutMs: 0 });
    await standby.appendIf({ size: 0, tip: EMPTY_TREE }, lines.slice(0, -lost));
    await turn.release();
    const other = await Ledger.open(standby, options);
    for (const each of others) await other.append(each);
    await other.close();
    promote(standby);
    expect(await codeOf(ledger.append(event(4)))).toBe('LEDGER_ROLLED_BACK');
    expect(await codeOf(ledger.append(event(5)))).toBe('LEDGER_ROLLED_BACK');
    const stored = (await linesOf(standby)).map((line) => Buffer.from(line).toString());
    expect(stored.some((line) => line.includes('"n":"4"'))).toBe(false);
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
  it('finds a ledger that was restored from a backup, and one whose end is another', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'northroot-rollback-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [path, position] = [join(folder, 'l.jsonl'), join(folder, 'kept')];
    const append = async (n: number, own: LedgerOptions = options): Promise<void> => {
      const ledger = await Ledger.open(path, { ...own, position });
      await ledger.append(event(n)).finally(() => ledger.close());
    };
    await append(1);
    copyFileSync(path, join(folder, 'backup'));
    await append(2);
    const whole = readFileSync(path);
    // Others who keep no position may go on from it.
    const other = await Ledger.open(path, options);
    await other.append(event(3));
    await other.close();
    await append(4);
    copyFileSync(join(folder, 'backup'), path);
    expect(await codeOf(append(5))).toBe('LEDGER_ROLLED_BACK');
    writeFileSync(path, whole);
    expect(await codeOf(append(5))).toBe('LEDGER_ROLLED_BACK');
    // A position of another ledger says nothing.
    rmSync(path);
    const anew = { ...options, create: { ...create, origin: 'example.com/anew' } };
    await append(1, anew);
    writeFileSync(position, '{}');
    expect(await codeOf(append(2, anew))).toBe('POSITION_MALFORMED');
    expect(existsSync(path)).toBe(true);
  });
});
