/** Decisions that ignore the state are made ahead of their turn, and are what they would be in it. */

import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Entry } from '../../src/log/writer/ledger.js';
import { draft, errorOf, judge, openLedger, readRecords, temporaryFolder } from './support.js';

const FREE = { ignoresState: true } as const;

it('are dated and stand in the order of their requests, among others', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, { decides: true });
  let made = 0;
  const makes = (): Entry => {
    made += 1;
    const occurredAt = new Date(Date.UTC(2026, 0, 2) + 1_000 * made).toISOString();
    return { event: draft(made, { occurred_at: occurredAt }) };
  };
  const kinds = ['free', 'free', 'bound', 'free', 'bound', 'bound', ...Array<string>(44).fill('free')];
  const decided = await Promise.all(kinds.map((kind) => ledger.decide(makes, kind === 'free' ? FREE : {})));
  expect(decided.map(({ seq }) => seq)).toEqual(decided.map((_, index) => index + 1));
  expect(decided.flatMap(({ findings }) => findings)).toEqual([]);
  await ledger.close();
  expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 51, codes: [] });
  const times = readRecords(path).map(({ event }) => event.occurred_at);
  expect(times.slice(1)).toEqual(times.slice(1).sort());
});

it('are refused alone, and only what can be made is written', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, { decides: true });
  const asked = [
    ledger.decide(() => ({ event: draft(1) }), FREE),
    ledger.decide(() => {
      throw new Error('no');
    }, FREE),
    ledger.decide(() => ({ event: draft(2) }), FREE),
    ledger.decide(() => ({ event: { event_type: 'execution' } }), FREE),
    ledger.decide(() => ({ event: draft(1) }), FREE),
    ledger.decide(() => ({ event: draft(3) }), FREE),
  ];
  expect(await errorOf(asked[1])).toMatchObject({ message: 'no' });
  expect(await errorOf(asked[3])).toMatchObject({ name: 'EventError' });
  expect(await asked[4]).toMatchObject({ seq: 1, status: 'exists' });
  expect(await Promise.all([asked[0], asked[2], asked[5]])).toMatchObject([
    { seq: 1 },
    { seq: 2 },
    { seq: 3 },
  ]);
  await ledger.close();
  expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 4 });
});

it('are made in their turn with entries before or after them', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, { decides: true });
  const seen: number[] = [];
  const ask = (n: number, more: object): Promise<unknown> =>
    ledger.decide(
      (state) => {
        seen.push(state.records);
        return { event: draft(n) };
      },
      { ...FREE, ...more },
    );
  await Promise.all([
    ask(1, { before: () => [{ event: draft(10) }] }),
    ask(2, { after: () => [{ event: draft(20) }] }),
    ask(3, { before: () => [{ event: draft(30) }] }),
  ]);
  expect(seen).toEqual([2, 3, 6]);
  await ledger.close();
  expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 7 });
});
