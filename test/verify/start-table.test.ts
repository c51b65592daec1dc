/** `start-table.ts`: what a Map of Maps would give, in its order, and who watches is told of each change. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sha256Digest, toDigestText } from '../../src/base/value/digest.js';
import type { OpenStart } from '../../src/rules/bounds/started.js';
import { StartTable } from '../../src/rules/verify/start-table.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const idOf = (n: number): string => sha256Digest(Buffer.from(String(n))).b64;

function startOf(n: number, more: Partial<OpenStart> = {}): OpenStart {
  return {
    place: { file: 'ledger.jsonl', line: n + 1, seq: n, eventId: toDigestText(idOf(n)) },
    toolName: 'fs.read',
    params: toDigestText(idOf(n + 1)),
    startedAt: '2026-03-01T12:00:00.123456789Z',
    recorder: 'recorder-000000000001',
    isStopped: false,
    meters: [{ unit: 'calls', amount: { t: 'int', v: '1' } }],
    ...more,
  };
}

const text = fc.oneof(fc.constantFrom('', 'a'), fc.string({ maxLength: 300, unit: 'binary' }));
const start = fc
  .record({
    n: fc.nat(40),
    file: text,
    toolName: text,
    params: fc.option(fc.oneof(text, fc.constant(toDigestText(idOf(1)))), { nil: undefined }),
    startedAt: fc.oneof(text, fc.constantFrom('2026-03-01T12:00:00Z', '2026-03-01T12:00:00.10Z')),
    recorder: text,
    isStopped: fc.boolean(),
    meters: fc.constantFrom<OpenStart['meters']>(
      [],
      [{ unit: 'usd', amount: { t: 'dec', m: '15', s: 2 } }],
      [
        { unit: 'é', amount: { t: 'rat', n: '1', d: '3' } },
        { unit: 'calls', amount: { t: 'int', v: '9'.repeat(300) } },
      ],
    ),
  })
  .map(({ n, file, ...members }): OpenStart => {
    const { place, ...usual } = startOf(n, members);
    return { ...usual, place: { ...place, file } };
  });
/** Ids of authorizations, and texts that are none. */
const key = fc.oneof(
  fc.nat(12).map(idOf),
  text,
  fc.constant('A'.repeat(43)),
  fc.constant(`${'A'.repeat(42)}B`),
);

test('is a Map, and tells of each change', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.array(start, { maxLength: 3 })), { maxLength: 80 }), (steps) => {
      const [table, map] = [new StartTable(), new Map<string, Map<string, OpenStart>>()];
      const told: string[] = [];
      const changed: string[] = [];
      const unwatch = table.watch((id) => told.push(id));
      for (const [id, starts] of steps) {
        expect(table.has(id)).toBe(map.has(id));
        const open = new Map(starts.map((each) => [each.place.eventId.slice('sha-256:'.length), each]));
        const isThere = map.has(id);
        if (starts.length === 0) expect(table.delete(id)).toBe(map.delete(id));
        else {
          table.set(id, new Map(open));
          map.set(id, open);
        }
        if (isThere || starts.length > 0) changed.push(id);
        expect(table.get(id)).toEqual(map.get(id));
      }
      expect([...table]).toEqual([...map]);
      expect([...(table.get(idOf(0)) ?? [])]).toEqual([...(map.get(idOf(0)) ?? [])]);
      expect(told).toEqual(changed);
      unwatch();
      table.set(idOf(0), new Map());
      expect(told).toEqual(changed);
    }),
    { numRuns: 100 },
  );
});

test('holds a start in less than 220 bytes', () => {
  const table = new StartTable();
  const bytes = (): number => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = bytes();
  const count = 30_000;
  for (let n = 0; n < count; n += 1) table.set(idOf(-n), new Map([[idOf(n), startOf(n)]]));
  expect((bytes() - before) / count).toBeLessThan(220);
  expect(table.size).toBe(count);
});
