/** An index that is damaged says so: never another record, another story or another proof than the ledger's. */

import { expect, test } from 'vitest';
import { IndexFault, IndexGap } from '../../src/log/cache/entry-store.js';
import type { MemoryEntries } from './memory-entries.js';
import { makeProof } from '../../src/proof/make-proof.js';
import { indexBasis } from '../../src/proof/proof-basis.js';
import { findRecord } from '../../src/log/read/read-records.js';
import { explainIndexedEvent, explainEvent } from '../../src/log/read/event-history.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { buildIndex, linesIn, openIndex, opener } from './support.js';

const BYTES = fixtureBytes('ledgers/checkpoints.jsonl');
/** Records that a checkpoint covers. */
const SEQ = 2;

async function entriesOf(store: MemoryEntries): Promise<(readonly [string, string])[]> {
  const entries: (readonly [string, string])[] = [];
  for await (const entry of store.list({ prefix: '' })) entries.push(entry);
  return entries;
}

/** What the index answers; undefined where it says that it is wrong, or does not know. */
async function ask(store: MemoryEntries, bytes: Uint8Array, seq: number): Promise<unknown[] | undefined> {
  try {
    const indexed = await openIndex(store);
    const reader = indexed.records(linesIn(bytes));
    const record = await reader.find(String(seq));
    if (record === undefined) return undefined;
    const proof = await makeProof(indexBasis(reader), String(seq));
    return [record, await explainIndexedEvent(reader, indexed.state, seq), proof];
  } catch (error) {
    if (error instanceof IndexFault || error instanceof IndexGap) return undefined;
    throw error;
  }
}

test('whichever of the entries of a record, of the tree and of all is missing', async () => {
  const open = opener(BYTES);
  const { store: whole } = await buildIndex(BYTES, 5);
  const record = await findRecord(await open(), String(SEQ));
  const expected = [record, await explainEvent(open, record), await makeProof(open, String(SEQ))];
  expect(await ask(whole, BYTES, SEQ)).toEqual(expected);
  let faults = 0;
  for (const [key] of (await entriesOf(whole)).filter(([key]) => /^-:[rTRh]/.test(key))) {
    const { store } = await buildIndex(BYTES, 1_000);
    await store.write([{ key, value: undefined }]);
    const answer = await ask(store, BYTES, SEQ);
    if (answer === undefined) faults += 1;
    else expect(answer, key).toEqual(expected);
  }
  // The head, what there is of all, and the entry of the records.
  expect(faults).toBeGreaterThanOrEqual(3);
});

test('a ledger that was changed since, though not in length', async () => {
  const { store } = await buildIndex(BYTES, 1_000);
  let faults = 0;
  for (let at = 0; at < BYTES.length; at += 997) {
    const bytes = Buffer.from(BYTES);
    bytes[at] = bytes[at] ^ 1;
    const seq = BYTES.subarray(0, at).toString('latin1').split('\n').length - 1;
    expect(await ask(store, bytes, seq)).toBeUndefined();
    faults += 1;
  }
  expect(faults).toBeGreaterThan(5);
});
