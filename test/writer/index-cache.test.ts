/**
 * Writers over an index: what one has verified another goes on from, in this process and in others, and whatever becomes of the index
 * costs no record. A folder that is there already makes a small ledger have one.
 */

import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Level } from 'level';
import { expect, test, vi } from 'vitest';
import { LedgerIndex, sizeOf } from '../../src/log/cache/ledger-index.js';
import { nodeFileSystem } from '../../src/log/fs/file-system.js';
import type { NorthrootError } from '../../src/base/error.js';
import { meters } from '../../src/base/value/meter.js';
import { findGrant } from '../../src/rules/report/accounts.js';
import { FileStore } from '../../src/log/store/file-store.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { times } from '../slow.js';
import { seedPem } from '../key/key-samples.js';
import { Writer } from './processes.js';
import {
  codeOf,
  draft,
  expectSound,
  judge,
  makeLedger,
  noticeBoard,
  openLedger,
  temporaryFolder,
} from './support.js';

const KEY = seedPem(Buffer.alloc(32, 1));
const DIGEST = { alg: 'sha-256', b64: 'A'.repeat(43) };
const DECIDED = {
  event_type: 'authorization',
  intents: { intent_digest: DIGEST },
  policy_id: 'p',
  policy_digest: DIGEST,
  decision: 'allow',
  decision_code: 'ALLOW',
};
const idOf = (eventId: string): object => ({ alg: 'sha-256', b64: eventId.slice('sha-256:'.length) });

const GRANT = {
  ...DECIDED,
  authorization: { kind: 'grant', bounds: { allowed_tools: ['*'], meter_caps: meters({ usd: 5n }) } },
};

function action(grantId: string): object {
  const call = { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: meters({ usd: 1n }) };
  return { ...DECIDED, authorization: { kind: 'action', grant_event_id: idOf(grantId), action: call } };
}

function execution(actionId: string): object {
  return {
    event_type: 'execution',
    intents: { intent_digest: DIGEST },
    auth_event_id: idOf(actionId),
    tool_name: 'fs.read',
    tool_params_digest: DIGEST,
    meter_used: meters({ usd: 1n }),
    outcome: 'success',
  };
}

function newPath(): string {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  mkdirSync(`${path}.index`);
  return path;
}

/** Holds every entry of the index against what the ledger gives. */
async function expectRight(path: string, records: number): Promise<void> {
  const { records: found, differences } = await maintainIndex(path, { check: true });
  expect({ found, differences }).toEqual({ found: records, differences: [] });
  await expectSound(path, records);
}

test('go on from each other, with an index and without', async () => {
  const path = newPath();
  const { notices, onNotice } = noticeBoard();
  const writers = [
    await openLedger(path, { onNotice, lockTimeoutMs: 10_000 }),
    await openLedger(path, { onNotice, lockTimeoutMs: 10_000 }),
    await openLedger(path, { onNotice, lockTimeoutMs: 10_000, index: false }),
  ];
  const seqs: number[] = [];
  for (let n = 0; n < 12; n += 1) {
    const { seq } = await writers[(n * 7) % writers.length].append({ event: draft(n) });
    seqs.push(seq);
  }
  expect(seqs).toEqual(Array.from({ length: 12 }, (_, n) => n + 1));
  // What another has appended is there already, and named by its seq.
  for (const writer of writers)
    expect(await writer.append({ event: draft(3) })).toMatchObject({ seq: 4, status: 'exists' });
  await Promise.all(writers.map((writer) => writer.close()));
  expect(notices.map(({ code }) => code)).toEqual(['LEDGER_CREATED']);
  await expectRight(path, 13);
});

test('keep nothing of an event that was judged and refused', async () => {
  const path = newPath();
  const ledger = await openLedger(path, { strict: true });
  const grant = await ledger.append({ event: GRANT });
  const unknown = execution(`sha-256:${'A'.repeat(43)}`);
  expect(await codeOf(ledger.append({ event: unknown }))).toBe('AUTH_NOT_FOUND');
  const allowed = await ledger.append({ event: action(grant.eventId) });
  await ledger.append({ event: execution(allowed.eventId) });
  expect(await ledger.inspect((state) => findGrant(state, grant.eventId)?.executions)).toBe(1);
  await ledger.close();
  await expectRight(path, 4);
});

/** What becomes of opening a ledger and appending to it, and what is told of it. */
async function outcomeOf(path: string, index: boolean): Promise<unknown> {
  rmSync(`${path}.index`, { recursive: true, force: true });
  mkdirSync(`${path}.index`);
  const { notices, onNotice } = noticeBoard();
  const append = async (): Promise<number> => {
    const ledger = await openLedger(path, { index, onNotice });
    try {
      return (await ledger.append({ event: draft(100) })).seq;
    } finally {
      await ledger.close();
    }
  };
  const outcome = await append().catch((error: unknown) => (error as NorthrootError).code);
  return { outcome, notices: notices.map(({ code }) => code) };
}

test('refuse what writers without an index refuse, and tell what they tell', async () => {
  const path = newPath();
  await makeLedger(path, 3);
  const sound = readFileSync(path);
  const [first = '', second = '', ...others] = sound.toString().split('\n').slice(0, -1);
  const ledgers: Readonly<Record<string, string>> = {
    'no JSON at the end': `${sound.toString()}no JSON\n`,
    'no record at the end': `${sound.toString()}{}\n`,
    'a blank line at the end': `${sound.toString()}\n`,
    'a line that is too long at the end': `${sound.toString()}${'x'.repeat(70_000)}\n`,
    'no JSON before a torn line': `${sound.toString()}no JSON\ntorn`,
    'no JSON among the records': [first, 'no JSON', second, ...others, ''].join('\n'),
    'a blank line among the records': [first, '', second, ...others, ''].join('\n'),
    'a gap': [first, ...others, ''].join('\n'),
    'a record twice': [first, second, second, ...others, ''].join('\n'),
  };
  const outcomes = new Set<string>();
  for (const [name, text] of Object.entries(ledgers)) {
    writeFileSync(path, text);
    const expected = await outcomeOf(path, false);
    writeFileSync(path, text);
    expect(await outcomeOf(path, true), name).toEqual(expected);
    outcomes.add(JSON.stringify(expected));
  }
  expect([...outcomes].join()).toMatch(/LEDGER_TAIL_INVALID.*LEDGER_DAMAGED/);
});

test('refuse folders whose segments are not all there, as writers without an index do', async () => {
  const names = (path: string): string[] => readdirSync(path).sort();
  const harms: Readonly<Record<string, (path: string) => void>> = {
    'one is gone': (path) => rmSync(join(path, names(path)[1])),
    'one is empty': (path) => writeFileSync(join(path, names(path)[1]), ''),
    'one has another number': (path) =>
      renameSync(join(path, names(path)[1]), join(path, `${'7'.padStart(20, '0')}.jsonl`)),
    'one ends in no JSON': (path) => appendFileSync(join(path, names(path)[0]), 'no JSON\n'),
  };
  for (const [name, harm] of Object.entries(harms)) {
    const outcomes: unknown[] = [];
    for (const index of [false, true]) {
      const path = join(temporaryFolder(), 'ledger');
      mkdirSync(path);
      await makeLedger(path, 8, { segmentBytes: 1_500, index: false });
      harm(path);
      outcomes.push(await outcomeOf(path, index));
    }
    expect(outcomes[1], name).toEqual(outcomes[0]);
    expect(JSON.stringify(outcomes[0]), name).toMatch(/SEGMENT_MISSING|LEDGER_DAMAGED/);
  }
});

test('do not go on behind what another has appended and indexed, and is no record', async () => {
  const path = newPath();
  await makeLedger(path, 3);
  const ledger = await openLedger(path);
  appendFileSync(path, 'no JSON\n');
  await maintainIndex(path);
  expect(await codeOf(ledger.append({ event: draft(100) }))).toBe('LEDGER_TAIL_INVALID');
  await ledger.close();
});

test('hold all that an index knows against a ledger that was changed between two looks at it', async () => {
  const path = newPath();
  await makeLedger(path, 5);
  const store = await FileStore.open(path);
  const index = (await LedgerIndex.open(path)) as LedgerIndex;
  const view = await index.view(store);
  await index.catchUp(view, store);
  await sleep(20);
  const changed = readFileSync(path, 'latin1').split('\n');
  changed[2] = changed[2].replace(
    /"sig":"(.)/,
    (_all, first: string) => `"sig":"${first === 'A' ? 'B' : 'A'}`,
  );
  writeFileSync(path, changed.join('\n'), 'latin1');
  // Another view is asked for, of which nothing is kept yet, and then the first is kept.
  await index.view(store, { trust_version: '1', keys: [] });
  await index.save(view, store);
  await index.close();
  const notices: string[] = [];
  const anew = (await LedgerIndex.open(path, { onNotice: ({ code }) => notices.push(code) })) as LedgerIndex;
  await anew.view(store);
  expect(notices).toEqual(['INDEX_REBUILT']);
  await anew.close();
  await store.close();
});

test('make an index anew that is of another ledger, of a longer one, or damaged', async () => {
  const path = newPath();
  await makeLedger(path, 5);
  const other = newPath();
  await makeLedger(other, 9);
  const longer = join(temporaryFolder(), 'copy');
  copyFileSync(path, longer);

  const reopen = async (n: number): Promise<string[]> => {
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { onNotice });
    await ledger.append({ event: draft(n) });
    await ledger.close();
    return notices.map(({ code }) => code);
  };
  expect(await reopen(100)).toEqual([]);

  rmSync(`${path}.index`, { recursive: true });
  cpSync(`${other}.index`, `${path}.index`, { recursive: true });
  expect(await reopen(101)).toEqual(['INDEX_REBUILT']);
  await expectRight(path, 8);

  // Restored from a copy, the ledger is shorter than what its index knows.
  copyFileSync(longer, path);
  expect(await reopen(102)).toEqual(['INDEX_REBUILT']);
  await expectRight(path, 7);

  const level = new Level(`${path}.index`);
  await level.open();
  await level.put('-:h', 'not what anybody wrote');
  await level.close();
  expect(await reopen(103)).toEqual(['INDEX_REBUILT']);
  await expectRight(path, 8);
});

test('find out in the midst of a group that an entry is missing, and lose nothing', async () => {
  const path = newPath();
  const first = await openLedger(path);
  const grant = await first.append({ event: GRANT });
  const allowed = await first.append({ event: action(grant.eventId) });
  await first.close();
  const level = new Level(`${path}.index`);
  await level.open();
  const keys = (await level.keys().all()).filter((key) => key.startsWith('-:g:'));
  expect(keys).toHaveLength(1);
  await level.del(keys[0]);
  await level.close();
  const { notices, onNotice } = noticeBoard();
  const second = await openLedger(path, { onNotice });
  expect(await second.append({ event: execution(allowed.eventId) })).toMatchObject({
    seq: 3,
    verdict: 'ok',
  });
  await second.close();
  expect(notices.map(({ code }) => code)).toEqual(['INDEX_REBUILT']);
  await expectRight(path, 4);
});

test('say once that a named folder is no index, and go on without it', async () => {
  const path = newPath();
  await makeLedger(path, 3);
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, 'mine');
  const others = temporaryFolder();
  writeFileSync(join(others, 'notes'), 'mine');
  for (const index of [file, others, '/sys/northroot-index']) {
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { index, onNotice });
    for (const n of [1, 2]) await ledger.append({ event: draft(n) });
    await ledger.close();
    expect(notices).toMatchObject([{ code: 'INDEX_UNUSABLE', path: index }]);
    await expect(maintainIndex(path, { folder: index })).rejects.toMatchObject({ code: 'INDEX_UNUSABLE' });
  }
  expect(readFileSync(file, 'utf8')).toBe('mine');
  expect(readdirSync(others)).toEqual(['notes']);
});

test('have a size, whatever LevelDB removes while it is counted', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'b'), 'four');
  const list = async (path: string): Promise<string[]> => ['a', ...(await nodeFileSystem.list(path)), 'c'];
  expect(await sizeOf(folder, { ...nodeFileSystem, list })).toBe(4);
});

test('give the index to who says that it waits, and not to a wish that was left', async () => {
  const path = newPath();
  const ledger = await openLedger(path);
  await ledger.append({ event: draft(1) });
  await ledger.close();
  const wish = join(`${path}.index`, 'WANTED');
  writeFileSync(wish, 'of a process that died\n');
  const index = (await LedgerIndex.open(path)) as LedgerIndex;
  expect(index.isWanted).toBe(false);
  const other = LedgerIndex.open(path, { waitMs: 60_000 });
  await vi.waitFor(() => expect(index.isWanted).toBe(true), { timeout: 30_000 });
  await index.close();
  const opened = await other;
  expect(opened).toBeDefined();
  expect(existsSync(wish)).toBe(false);
  await opened?.close();
});

test('that never pause let in who waits', async () => {
  const path = newPath();
  const ledger = await openLedger(path, { lingerMs: 1_000 });
  let isOver = false;
  const busy = (async () => {
    let n = 0;
    while (!isOver) await ledger.append({ event: draft((n += 1)) });
    return n;
  })();
  for (let n = 0; n < 3; n += 1) {
    const index = await LedgerIndex.open(path, { waitMs: 60_000 });
    expect(index).toBeDefined();
    await index?.close();
  }
  isOver = true;
  const appended = await busy;
  await ledger.close();
  await expectSound(path, appended + 1);
});

test('leave an index alone that anybody can write', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  mkdirSync(`${path}.index`, { mode: 0o777 });
  const { chmodSync } = await import('node:fs');
  chmodSync(`${path}.index`, 0o777);
  await makeLedger(path, 3);
  expect(existsSync(join(`${path}.index`, 'CURRENT'))).toBe(false);
  await expectSound(path, 4);
});

test('that are killed leave an index that is gone on from', async () => {
  const path = newPath();
  const acknowledged: { seq: number; eventId: string }[] = [];
  const kills = times(6, 60);
  for (let kill = 0; kill < kills; kill += 1) {
    const writer = new Writer({
      path,
      tag: `k${kill}`,
      key: KEY,
      groups: null,
      groupSize: [1, 20, 200][kill % 3],
      options: { create: { origin: 'example.com/tests/kill' }, lockTimeoutMs: 60_000 },
    });
    const enough = acknowledged.length + 1 + Math.floor(Math.random() * 20);
    await writer.until(
      ({ error }) => error !== undefined || writer.acknowledged.length >= enough - acknowledged.length,
    );
    await writer.kill();
    expect(writer.errors).toEqual([]);
    acknowledged.push(...writer.acknowledged);
  }
  const ids = readFileSync(path, 'utf8');
  for (const { eventId } of acknowledged) expect(ids).toContain(eventId.slice('sha-256:'.length));
  const { notices, onNotice } = noticeBoard();
  const ledger = await openLedger(path, { onNotice });
  await ledger.append({ event: draft(1) });
  const { size } = ledger;
  await ledger.close();
  expect(notices.filter(({ code }) => code === 'INDEX_REBUILT')).toEqual([]);
  await expectRight(path, size);
  expect((await judge(path)).verdict).toBe('ok');
});
