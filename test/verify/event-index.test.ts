/** `event-index.ts` against a Map of what was added. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { EventIndex, type EventKind, type IndexedEvent } from '../../src/rules/verify/event-index.js';

const idOf = (n: number): string => sha256Digest(Buffer.from(String(n))).b64;
const KINDS: readonly EventKind[] = ['other', 'grant', 'action', 'malformed', 'execution'];

/** Runs of events of one file, whose numbers count on from any; long enough for several pieces of a column. */
const run = fc.record({
  length: fc.oneof(fc.nat(20), fc.constantFrom(4_095, 4_096, 4_097)),
  line: fc.nat(1_000_000),
  seq: fc.oneof(fc.nat(1_000_000), fc.constant(Number.MAX_SAFE_INTEGER - 100)),
  step: fc.constantFrom(1, 1, 1, 0, 2),
  file: fc.constantFrom('a.jsonl', 'b.jsonl', 'c.jsonl'),
  kind: fc.constantFrom(...KINDS),
  grant: fc.constantFrom(-1, -1, 0, 70_000),
});

test('finds what was added, where it was said to stand, also once it was saved', () => {
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 6 }), fc.nat(50_000), (runs, spent) => {
      let index = new EventIndex();
      const expected = new Map<string, IndexedEvent>();
      for (const { length, line, seq, step, file, kind, grant } of runs) {
        for (let n = 0; n < length; n += 1) {
          const id = idOf(expected.size);
          const at = { file, line: line + n * step, seq: Math.min(seq + n, Number.MAX_SAFE_INTEGER) };
          if (index.find(id) !== undefined) expect.fail('found before it was added');
          index.add(id, at, kind, grant);
          expected.set(id, { ...at, kind, grant });
        }
      }
      const id = idOf(spent);
      const was = expected.get(id);
      if (was !== undefined) {
        index.spend(id, 5);
        expected.set(id, { ...was, kind: 'spent', grant: 5 });
      }
      for (let round = 0; round < 2; round += 1) {
        expect(index.size).toBe(expected.size);
        // Comparing each by itself would take most of the test's time.
        expect([...expected.keys()].map((each) => index.find(each))).toEqual([...expected.values()]);
        index = new EventIndex(index.save());
      }
    }),
    { numRuns: 4 },
  );
});
