/**
 * Over an index, verification says what it says in memory: line by line, whenever what was changed is written and the state is opened
 * again, and so does the state that is left.
 */

import { describe, expect, it } from 'vitest';
import { MemoryEntries } from './memory-entries.js';
import { IndexedState } from '../../src/log/cache/indexed-state.js';
import { RANKS, rankOf, type Finding } from '../../src/format/finding/finding.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { LineSplitter } from '../../src/format/record/line-splitter.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { finishVerification } from '../../src/rules/verify/ending.js';
import { saveHead } from '../../src/rules/verify/state-form.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import {
  listGrants,
  listKeys,
  listOpenAuthorizations,
  listOpenStarts,
} from '../../src/rules/report/accounts.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample, times } from '../slow.js';

const NAMES = { toIndex: () => '', fromIndex: () => 'ledger.jsonl' };
/** In records. */
const LONG = 200;
const SEGMENT = { file: 'ledger.jsonl', firstSeq: undefined };

function toJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** What can be asked of a state at its end. */
function tell(state: VerifyState): unknown {
  const plain = JSON.stringify(
    {
      head: saveHead(state),
      grants: listGrants(state),
      open: listOpenAuthorizations(state),
      starts: listOpenStarts(state),
      approvals: [...state.links.approvals.values()],
      revocations: [...state.links.revocations],
      keys: listKeys(state),
      end: finishVerification(state),
    },
    (_key, value: unknown) =>
      typeof value === 'bigint' ? `${value}n` : value instanceof Map ? [...value] : value,
  );
  return JSON.parse(plain);
}

/** Reads all, written after every `period` lines; then the state is opened again, or goes on without what it has in memory. */
async function readIndexed(
  bytes: Uint8Array,
  period: number,
  trust: TrustPolicy | undefined,
  isReopened = true,
): Promise<{ told: unknown; results: unknown[] }> {
  const store = new MemoryEntries();
  const open = (): Promise<IndexedState> => IndexedState.open(store, '', NAMES, nodeBackend, trust);
  let indexed = await open();
  const results: unknown[] = [];
  const splitter = new LineSplitter();
  let count = 0;
  const lines = [...splitter.push(bytes)].map((line) => ({ ...line, bytes: Uint8Array.from(line.bytes) }));
  for (const line of lines) {
    const { findings, verdict, signatures } = verifyLine(indexed.state, line, SEGMENT);
    // What folds under them later is told at the end.
    results.push(toJson({ findings, verdict, signatures }));
    count += 1;
    if (count % period > 0) continue;
    await store.write(indexed.takeChanges());
    indexed.trim(0);
    if (isReopened) indexed = await open();
  }
  await store.write(indexed.takeChanges());
  indexed = await open();
  await indexed.loadAll();
  const told = [tell(indexed.state), toJson(indexed.firstFindings())];
  return { told, results };
}

function readInMemory(
  bytes: Uint8Array,
  trust: TrustPolicy | undefined,
): { told: unknown; results: unknown[] } {
  const state = startVerification(trust, nodeBackend);
  const results: unknown[] = [];
  const all: Finding[] = [];
  for (const line of new LineSplitter().push(bytes)) {
    const { findings, verdict, signatures } = verifyLine(state, line, SEGMENT);
    all.push(...findings);
    // What folds under them later is told at the end.
    results.push(toJson({ findings, verdict, signatures }));
  }
  const first = RANKS.flatMap((rank) => all.find((finding) => rankOf(finding) === rank) ?? []);
  return { told: [tell(state), toJson(first)], results };
}

describe('a state over an index', () => {
  it.each(
    sample(
      FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length > 0),
      120,
    ).map((fixture) => [fixture.ledger, fixture] as const),
  )('verifies %s alike', async (_name, fixture) => {
    const bytes = fixtureBytes(fixture.ledger);
    const { trust } = optionsOf(fixture);
    const expected = readInMemory(bytes, trust);
    // Opening takes time by what is there: of a long ledger it would be quadratic.
    const length = expected.results.length > LONG ? times(20, 1) : 1;
    for (const period of sample([2, 1, 3, 7], 1))
      expect(await readIndexed(bytes, period * length, trust)).toEqual(expected);
    expect(await readIndexed(bytes, 2 * length, trust, false)).toEqual(expected);
  });
});
