/** What an index says of a record is what reading the ledger says, however the index was built; or it says that it does not know. */

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { IndexGap } from '../../src/log/cache/entry-store.js';
import { MemoryEntries } from './memory-entries.js';
import type { RecordReader } from '../../src/log/cache/record-reader.js';
import { NorthrootError } from '../../src/base/error.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { findCheckpoint } from '../../src/log/read/find-checkpoint.js';
import { findRecord, type ReadRecord, readRecords } from '../../src/log/read/read-records.js';
import { explainIndexedEvent, explainEvent } from '../../src/log/read/event-history.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { parseRecordName } from '../../src/base/value/record-name.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { makeSequence } from '../bounds/sequences.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample, times } from '../slow.js';
import { SEGMENT, buildIndex, linesIn, linesOf, openIndex, opener } from './support.js';

/** What something gives, or the error that a user would see. */
async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    const { code, message, hint } = error;
    return { code, message, hint };
  }
}

async function listRecords(bytes: Uint8Array): Promise<ReadRecord[]> {
  const records: ReadRecord[] = [];
  for await (const record of readRecords(await opener(bytes)())) records.push(record);
  return records;
}

/** In every spelling, whole and short. */
function spellingsOf({ seq, eventId }: ReadRecord): string[] {
  const b64 = eventId.slice('sha-256:'.length);
  const hex = Buffer.from(b64, 'base64url').toString('hex');
  const hexes = [1, 2, 3, 7, 12].map((length) => hex.slice(0, length));
  return [String(seq), eventId, b64, hex, eventId.slice(0, 9), b64.slice(0, 2), b64.slice(0, 20), ...hexes];
}

let answered = 0;

/** Holds every answer of the index to the ledger's; counts those that it has. */
async function compare(
  bytes: Uint8Array,
  reader: RecordReader,
  state: VerifyState,
  record: ReadRecord,
  trust?: TrustPolicy,
): Promise<void> {
  const open = opener(bytes);
  for (const wanted of spellingsOf(record)) {
    const found = await outcomeOf(reader.find(wanted));
    if (found === undefined) continue;
    expect(found).toEqual(await outcomeOf(findRecord(await open(), wanted)));
    answered += 1;
  }
  const history = await ofIndex(explainIndexedEvent(reader, state, record.seq));
  if (history === undefined) return;
  expect(history).toEqual(await explainEvent(open, record, trust));
  answered += 1;
}

/** What the index knows; undefined where it says that it does not. */
async function ofIndex<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof IndexGap) return undefined;
    throw error;
  });
}

describe('an index tells of a record what the ledger does', () => {
  it.each(
    sample(
      FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length > 0).map(
        (fixture) => [fixture.ledger, fixture] as const,
      ),
      25,
    ),
  )('in %s', async (name, fixture) => {
    const bytes = fixtureBytes(fixture.ledger);
    const { trust } = optionsOf(fixture);
    const isLong = name.includes('1000');
    const { indexed } = await buildIndex(bytes, isLong ? 300 : 2, trust);
    const { state } = indexed;
    const reader = indexed.records(linesIn(bytes));
    if (reader.isRegular) expect({ ...reader.checkpoint }).toEqual(await checkpointOf(bytes));
    for (const record of sample(await listRecords(bytes), isLong ? 2 : 3))
      await compare(bytes, reader, state, record, trust);
  });

  test('in random ledgers', async () => {
    const seeds = fc.array(fc.nat(0xffff_ffff), { minLength: 1, maxLength: 30, size: 'max' });
    const runs = times(15, 4_000);
    answered = 0;
    await fc.assert(
      fc.asyncProperty(seeds, fc.integer({ min: 1, max: 31 }), fc.nat(), async (list, period, pick) => {
        const events = new Map(makeSequence(list).map(({ event }) => [event.event_id.b64, event]));
        const bytes = Buffer.concat(
          [...events.values()].flatMap((event) => [canonicalBytes(event), Buffer.from('\n')]),
        );
        const records = await listRecords(bytes);
        const record = records[pick % records.length];
        if (record === undefined) return;
        const { indexed } = await buildIndex(bytes, period);
        await compare(bytes, indexed.records(linesIn(bytes)), indexed.state, record);
        // Also while some of it is not written yet.
        const { state } = await openIndex(new MemoryEntries());
        const inMemory = startVerification(undefined, nodeBackend);
        for (const line of linesOf(bytes)) {
          verifyLine(state, line, SEGMENT);
          verifyLine(inMemory, line, SEGMENT);
        }
        for (const wanted of spellingsOf(record)) {
          const name = parseRecordName(wanted);
          const expected = await inMemory.events.match(name);
          expect(await indexed.state.events.match(name)).toEqual(expected);
          expect(await state.events.match(name)).toEqual(expected);
        }
      }),
      { numRuns: runs },
    );
    expect(answered).toBeGreaterThan(8 * runs);
  });
});

async function checkpointOf(bytes: Uint8Array): Promise<object> {
  const { note, eventId, seq, attestations } = (await findCheckpoint(await opener(bytes)())) ?? {};
  return note === undefined ? {} : { note, eventId, seq, attestations };
}
