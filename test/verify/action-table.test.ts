/** `action-table.ts`: what is taken out is what was put in, at a few hundred bytes each. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeGrant as grantOf, type Action, type Grant } from '../../src/rules/bounds/grant.js';
import type { AuthorizationEvent } from '../../src/format/schema/generated/types.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { reduceRational, type Rational } from '../../src/base/value/rational.js';
import { ActionTable } from '../../src/rules/verify/action-table.js';
import { makeGrant } from '../bounds/support.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const place = { file: 'a.jsonl', line: 1, seq: 0, eventId: 'sha-256:grant' };
const grants: Grant[] = [0, 1].map((index) =>
  grantOf(makeGrant() as unknown as AuthorizationEvent, place, undefined, index),
);
const table = (): ActionTable => new ActionTable({ at: (index) => grants[index] });

const idOf = (n: number): string => sha256Digest(Buffer.from(String(n))).b64;
const digestText = fc.oneof(
  fc.nat(50).map((n) => `sha-256:${idOf(n)}`),
  fc.constantFrom('blake3:00ff', 'sha-256:short', `sha-256:${'-'.repeat(43)}`, 'sha-512:é\u{1f600}'),
);
const amount = fc
  .tuple(fc.oneof(fc.bigInt(0n, 2n ** 33n), fc.bigInt(0n, 10n ** 60n)), fc.bigInt(1n, 10n ** 40n))
  .map(([n, d]): Rational => reduceRational(n, d));
const name = fc.oneof(fc.constantFrom('agent:a1', 'llm.chat', 'usd'), fc.string({ maxLength: 300 }));
const action: fc.Arbitrary<Action> = fc.record({
  place: fc.record({
    file: name,
    line: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    seq: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    eventId: fc.constantFrom(`sha-256:${idOf(1)}`, `sha-256:${idOf(2)}`),
  }),
  decision: fc.constantFrom('allow', 'deny'),
  principalId: name,
  occurredAt: fc.constantFrom('2026-01-01T00:00:00Z', '0000-01-01T00:00:00.000000000Z'),
  intent: digestText,
  userIntent: fc.option(digestText, { nil: undefined }),
  grant: fc.constantFrom(undefined, ...grants),
  toolName: name,
  params: digestText,
  reservation: fc.array(fc.tuple(name, amount), { maxLength: 70 }).map((list) => new Map(list)),
  expiresAt: fc.constantFrom(undefined, '2026-01-01T00:00:00.5Z'),
  system: fc.option(fc.string({ minLength: 1, maxLength: 64 }), { nil: undefined }),
});

test('gives every action as it was put in, and in that order', () => {
  fc.assert(
    fc.property(fc.array(action, { minLength: 1, maxLength: 8 }), (list) => {
      const actions = table();
      list.forEach((each, n) => void actions.set(idOf(n), each));
      list.forEach((each, n) => {
        const found = actions.get(idOf(n));
        expect(found).toEqual(each);
        expect(found?.grant).toBe(each.grant);
        expect([...(found?.reservation.keys() ?? [])]).toEqual([...each.reservation.keys()]);
      });
      expect(actions.delete(idOf(0))).toBe(true);
      expect([actions.has(idOf(0)), actions.get(idOf(0)), actions.delete(idOf(0))]).toEqual([
        false,
        undefined,
        false,
      ]);
      expect([...actions.values()]).toEqual(list.slice(1));
    }),
    { numRuns: 200 },
  );
});

test('counts what is open under each root grant as it comes and goes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(5), fc.option(action, { nil: undefined })), { maxLength: 30 }),
      (steps) => {
        const actions = table();
        for (const [n, set] of steps) {
          if (set === undefined) actions.delete(idOf(n));
          else actions.set(idOf(n), set);
          const open = [...actions.values()].filter(({ decision }) => decision === 'allow');
          for (const root of [0, 1])
            expect(actions.countUnder(root)).toBe(
              open.filter(({ grant }) => grant?.rootIndex === root).length,
            );
        }
      },
    ),
    { numRuns: 100 },
  );
});

test('keeps at most so many names, and the others with their actions', () => {
  const actions = table();
  const make = (n: number): Action => ({
    place: { file: 'a.jsonl', line: n, seq: n, eventId: `sha-256:${idOf(n)}` },
    decision: 'allow',
    principalId: `agent:a${n}`,
    occurredAt: '2026-01-01T00:00:00Z',
    intent: `sha-256:${idOf(n)}`,
    userIntent: undefined,
    grant: grants[1],
    toolName: `tool.${n}`,
    params: `sha-256:${idOf(-n)}`,
    reservation: new Map([['usd', { n: 1n, d: 80n }]]),
    expiresAt: undefined,
    system: undefined,
  });
  for (let n = 0; n < 5_000; n += 1) actions.set(idOf(n), make(n));
  for (const n of [0, 1, 2_047, 2_048, 2_049, 4_096, 4_999]) expect(actions.get(idOf(n))).toEqual(make(n));
});

test('an action costs at most 300 bytes', () => {
  const held = (): number => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const actions = table();
  const before = held();
  const count = 20_000;
  for (let n = 0; n < count; n += 1) {
    actions.set(idOf(n), {
      place: { file: 'a.jsonl', line: n, seq: n, eventId: `sha-256:${idOf(n)}` },
      decision: 'allow',
      principalId: 'agent:bench/worker-1',
      occurredAt: '2026-01-01T00:00:00.123Z',
      intent: `sha-256:${idOf(n + count)}`,
      userIntent: undefined,
      grant: grants[0],
      toolName: 'llm.chat',
      params: `sha-256:${idOf(n + 2 * count)}`,
      reservation: new Map(['calls', 'usd', 'tokens.input'].map((unit) => [unit, { n: 1042n, d: 80n }])),
      expiresAt: undefined,
      system: undefined,
    });
  }
  expect((held() - before) / count).toBeLessThan(300);
  expect(actions.size).toBe(count);
});
