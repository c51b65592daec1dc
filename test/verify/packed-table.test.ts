/** `packed-table.ts`, `approval-tables.ts`: what a Map would give, in its order; and every entry as it was put in. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sha256Digest, toDigestText } from '../../src/base/value/digest.js';
import { approvalTables, callName } from '../../src/rules/verify/approval-tables.js';
import { PackedTable } from '../../src/rules/verify/packed-table.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const idOf = (n: number): string => sha256Digest(Buffer.from(String(n))).b64;
const textOf = (n: number): string => toDigestText(idOf(n));

/** Texts of which those with an `o` are kept as objects. */
const texts = (): PackedTable<{ readonly text: string }> =>
  new PackedTable({
    writeKey: (writer, key) => writer.text(key),
    readKey: (reader) => reader.text(),
    write: (writer, { text }) => {
      writer.text(text);
      return !text.includes('o');
    },
    read: (reader) => ({ text: reader.text() }),
  });

const key = fc.oneof(fc.nat(8), fc.nat(2_000)).map((n) => `key ${n}`);
const value = fc.oneof(
  fc.constantFrom('', 'a', 'o', 'oo', 'b'.repeat(20_000), 'c'.repeat(16_000)),
  fc.string({ maxLength: 300, unit: 'binary' }),
);
const step = fc.oneof(
  fc.record({ key, value: fc.option(value, { nil: undefined }) }),
  fc.record({ key, value }),
);

test('is a Map', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const [table, map] = [texts(), new Map<string, { text: string }>()];
      for (const { key: name, value: text } of steps) {
        expect(table.has(name)).toBe(map.has(name));
        if (text === undefined) expect(table.delete(name)).toBe(map.delete(name));
        else {
          table.set(name, { text });
          map.set(name, { text });
        }
        expect(table.get(name)).toEqual(map.get(name));
      }
      expect([...table]).toEqual([...map]);
      expect([...table.values()]).toEqual([...map.values()]);
      expect(table.size).toBe(map.size);
    }),
    { numRuns: 60 },
  );
});

test('frees what entries leave that go, or outgrow their place', async () => {
  const table = texts();
  for (let n = 0; n < 50_000; n += 1) {
    table.set(`key ${n}`, { text: 'a'.repeat(n % 2_000) });
    if (n >= 100) table.delete(`key ${n - 100}`);
  }
  expect([...table].map(([name]) => name)).toEqual(
    Array.from({ length: 100 }, (_, n) => `key ${49_900 + n}`),
  );
  // 50 MB went through it. The collector frees buffers in its own time.
  await expect
    .poll(() => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers;
    })
    .toBeLessThan(20e6);
  expect(table.size).toBe(100);
});

describe('the tables of approvals', () => {
  const digest = fc.oneof(
    fc.nat(50).map(textOf),
    fc.constantFrom('blake3:00ff', 'sha-512:AAAA', `sha-256:${'-'.repeat(43)}`),
  );
  const time = fc.constantFrom(
    '2026-01-01T00:00:00Z',
    '2026-12-31T23:59:59.000Z',
    '0000-01-01T00:00:00.000000001Z',
    '9999-12-31T23:59:59.999999999Z',
    '2024-02-29T12:00:00.10Z',
  );
  const count = fc.nat({ max: Number.MAX_SAFE_INTEGER });
  const place = fc.record({ file: fc.string(), line: count, seq: count, eventId: fc.nat(50).map(textOf) });
  const amount = fc.record({ n: fc.bigInt(0n, 10n ** 60n), d: fc.bigInt(1n, 10n ** 40n) });
  const amounts = fc
    .array(fc.tuple(fc.constantFrom('usd', 'calls', 'tokens.input'), amount), { maxLength: 3 })
    .map((list) => new Map(list));
  const principalId = fc.constantFrom('human:ada', 'agent:a~1', `human:${'x'.repeat(254)}`);
  const toolName = fc.constantFrom('fs.read', 'a/b:c@d+e=f#g~', 'x'.repeat(128));
  const call = fc.record({ principalId, grant: fc.nat(), toolName, params: digest });
  const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    fc.option(arbitrary, { nil: undefined });

  test('give every approval as it was put in', () => {
    const approval = fc.record({
      place,
      call,
      occurredAt: time,
      limit: maybe(amounts),
      expiresAt: maybe(time),
      signers: fc.array(fc.nat(9).map(idOf), { maxLength: 16 }),
      system: maybe(fc.string({ minLength: 1, maxLength: 64 })),
      usedBy: maybe(fc.nat(50).map(textOf)),
    });
    fc.assert(
      fc.property(approval, maybe(fc.nat(50).map(textOf)), ({ call: of, ...rest }, later) => {
        const { approvals } = approvalTables();
        const made = { ...rest, ...of };
        const id = made.place.eventId.slice('sha-256:'.length);
        approvals.set(id, made);
        expect([...approvals]).toEqual([[id, made]]);
        approvals.set(id, { ...made, usedBy: later });
        expect(approvals.get(id)).toEqual({ ...made, usedBy: later });
      }),
    );
  });

  test('give all that was said of a call as it was put in', () => {
    const said = fc.record({
      call,
      approvals: fc.array(fc.nat(50).map(idOf), { maxLength: 64 }),
      rejected: maybe(fc.record({ place, principalId })),
      usedAt: maybe(fc.nat(2 ** 40)),
      awaiting: fc.record({
        place,
        occurredAt: time,
        reservation: amounts,
        advised: maybe(
          fc.record({
            approvers: fc.array(fc.constantFrom('human:*', 'agent:a'), { maxLength: 16 }),
            count: fc.integer({ min: 1, max: 8 }),
          }),
        ),
      }),
      approved: fc.record({
        ids: fc.array(fc.nat(50).map(idOf), { maxLength: 32 }),
        limits: amounts,
        instant: time,
        hasAuthority: fc.boolean(),
      }),
    });
    fc.assert(
      fc.property(said, ({ call: of, approvals, rejected, usedAt, awaiting, approved }) => {
        const tables = approvalTables();
        const name = callName(of.grant, of.toolName, of.params);
        const own = `${of.principalId} ${name}`;
        tables.calls.set(name, { approvals, rejected, usedAt });
        tables.rejects.set(own, { seq: awaiting.place.seq });
        tables.awaiting.set(own, { ...awaiting, ...of });
        tables.approved.set(idOf(1), approved);
        expect([...tables.calls]).toEqual([[name, { approvals, rejected, usedAt }]]);
        expect([...tables.rejects]).toEqual([[own, { seq: awaiting.place.seq }]]);
        expect([...tables.awaiting]).toEqual([[own, { ...awaiting, ...of }]]);
        expect([...tables.approved]).toEqual([[idOf(1), approved]]);
        expect(tables.calls.get(callName(of.grant + 1, of.toolName, of.params))).toBeUndefined();
      }),
    );
  });
});
