/**
 * kill -9 at any moment of a stream of appends, creation included, loses no acknowledged record. `KILLS` says how many; half of
 * them are made beside another half, and on each ledger several, one after the other.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { times } from '../slow.js';
import { seedPem } from '../key/key-samples.js';
import { Writer, type Said } from './processes.js';
import { expectSound, judge, openLedger, readRecords, temporaryFolder } from './support.js';

const KILLS = Number(process.env['KILLS'] ?? times(8, 200));
const LANES = 2;
const KILLS_PER_LEDGER = 5;
const MORE_LEDGERS = 20;
const GROUP_SIZES = [20, 1, 200];
const KEY = seedPem(Buffer.alloc(32, 1));

/** What the kills met with, so that a test that never kills at the right moment is found out. */
interface Tally {
  kills: number;
  acknowledged: number;
  beforeGenesis: number;
  /** Kills between the write of a record, or of a part of it, and its acknowledgement. */
  midway: number;
}

async function killAgainAndAgain(path: string, kills: number, tally: Tally): Promise<void> {
  const acknowledged: { seq: number; eventId: string }[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const groupSize = GROUP_SIZES[kill % GROUP_SIZES.length];
    const writer = new Writer({
      path,
      tag: `w${kill}`,
      key: KEY,
      groups: null,
      groupSize,
      text: 'a'.repeat(2_000),
      options: { create: { origin: 'example.com/tests/kill' }, segmentBytes: 100_000, lockTimeoutMs: 60_000 },
    });
    // Half of the kills come while the ledger is opened or made, half while it is appended to; the first before there is one.
    const moment = kill === 0 || Math.random() < 0.4 ? 'open' : 'append';
    await writer.until(({ doing, error }) => doing === moment || error !== undefined);
    // However slow the machine is, some come behind what was acknowledged.
    const known = moment === 'open' ? 0 : Math.floor(Math.random() * 2 * groupSize);
    const isBehind = ({ seq, error }: Said): boolean => error !== undefined || (seq ?? 0) > 0;
    if (known > 0) await writer.until(isBehind, known);
    // At once: while what was written is being acknowledged.
    if (kill > 0 && Math.random() < 0.5) await sleep(Math.random() * 30);
    await writer.kill();
    expect(writer.errors).toEqual([]);
    acknowledged.push(...writer.acknowledged);
    tally.kills += 1;
    tally.acknowledged += writer.acknowledged.length;
    await expectKept(path, acknowledged, tally);
  }
  // The ledger is still one: whoever comes next goes on with it.
  const ledger = await openLedger(path, { lockTimeoutMs: 60_000 });
  await ledger.append({ event: { event_type: 'x.last' } });
  const { size } = ledger;
  await ledger.close();
  expect(size).toBeGreaterThan(acknowledged.length);
  await expectSound(path, size);
}

async function expectKept(
  path: string,
  acknowledged: readonly { seq: number; eventId: string }[],
  tally: Tally,
): Promise<void> {
  const { verdict, codes, records: count } = await judgeIfThere(path);
  if (count === 0) {
    tally.beforeGenesis += 1;
    expect(acknowledged).toEqual([]);
    return;
  }
  expect([verdict, codes]).toEqual(codes.length === 0 ? ['ok', []] : ['invalid', ['LINE_TORN']]);
  const records = readRecords(path);
  for (const { seq, eventId } of acknowledged) {
    expect(`sha-256:${records[seq]?.event.event_id.b64}`).toBe(eventId);
  }
  if (codes.length > 0 || count > acknowledged.length + 1) tally.midway += 1;
}

/** A folder may be there before its first segment is. */
function judgeIfThere(path: string): ReturnType<typeof judge> {
  return judge(path).catch((error: { code?: string }) => {
    expect(['FILE_NOT_FOUND', 'NOT_A_LEDGER']).toContain(error.code);
    return { verdict: 'undecided', codes: [], records: 0 };
  });
}

test(`${KILLS} times kill -9 loses nothing that was acknowledged`, async () => {
  const folder = temporaryFolder();
  const tally: Tally = { kills: 0, acknowledged: 0, beforeGenesis: 0, midway: 0 };
  let ledgers = 0;
  let planned = 0;
  const lane = async (): Promise<void> => {
    while (planned < KILLS) {
      const kills = Math.min(KILLS_PER_LEDGER, KILLS - planned);
      planned += kills;
      ledgers += 1;
      await killAgainAndAgain(join(folder, `${ledgers}${ledgers % 3 === 0 ? '/' : '.jsonl'}`), kills, tally);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  expect(tally.kills).toBe(KILLS);
  if (KILLS < 20) return;
  // Which moment a kill meets is for the machine to say: it goes on until one was between a write and its acknowledgement.
  for (let more = 0; tally.midway === 0 && more < MORE_LEDGERS; more += 1)
    await killAgainAndAgain(join(folder, `more-${more}.jsonl`), KILLS_PER_LEDGER, tally);
  expect(tally.acknowledged).toBeGreaterThan(KILLS);
  expect(tally.beforeGenesis).toBeGreaterThan(0);
  expect(tally.midway).toBeGreaterThan(0);
});
