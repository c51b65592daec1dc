/** What shows single records counts them as verification does. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { buildEvent } from '../../src/format/event/build.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { findCheckpoint } from '../../src/log/read/find-checkpoint.js';
import {
  findEvents,
  findRecord,
  readDeclaredKeys,
  readRecords,
  replayTo,
} from '../../src/log/read/read-records.js';

const event = (n: number): string =>
  canonicalText(
    buildEvent({
      event_type: 'x.test',
      occurred_at: '2026-01-01T00:00:00Z',
      principal_id: 'agent:a1',
      n,
    }),
  );
const TOO_LONG = 'x'.repeat(65_536);

/** The numbers that each record's place gives it, plainly read and verified. */
async function numbersOf(open: () => LedgerSource): Promise<number[][]> {
  const lists: number[][] = [];
  for (const options of [{}, { verify: {} }]) {
    const numbers: number[] = [];
    for await (const { seq } of readRecords(open(), options)) numbers.push(seq);
    lists.push(numbers);
  }
  return lists;
}

test.each<[string, string, number[], number]>([
  ['a blank line takes no number', `${event(0)}\n\n${event(1)}\n`, [0, 1], 2],
  ['nor do several, and one at the beginning', `\n${event(0)}\n\n\n${event(1)}\n`, [0, 1], 2],
  ['a line that is too long takes one', `${event(0)}\n${TOO_LONG}\n${event(1)}\n`, [0, 2], 3],
  ['and so does one that is no JSON', `${event(0)}\n{\n${event(1)}\n`, [0, 2], 3],
])('of bare events %s', async (_what, text, numbers, records) => {
  const open = (): LedgerSource => bytesSource(Buffer.from(text), '-');
  expect(await numbersOf(open)).toEqual([numbers, numbers]);
  expect((await verifyLedger(open())).ledger.records).toBe(records);
  for (const [n, seq] of numbers.entries()) {
    expect((await findRecord(open(), String(seq))).event['n']).toBe(n);
    expect((await replayTo(open(), { seq })).records).toBe(seq + 1);
  }
});

test('a path in the place of a source is told of by name, whatever reads records', async () => {
  const path = 'ledger.jsonl' as unknown as LedgerSource;
  const reading = [
    () => findRecord(path, '3'),
    () => readRecords(path).next(),
    () => findCheckpoint(path),
    () => readDeclaredKeys(path),
    () => replayTo(path, 'end'),
  ];
  for (const read of reading) {
    const failed = (async () => read())();
    await expect(failed).rejects.toThrow(TypeError);
    await expect(failed).rejects.toThrow(/openLedger/);
  }
});

describe('a record that is found by its whole id', () => {
  const folder = join(import.meta.dirname, '../../fixtures/ledgers');
  const ledgers = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.jsonl'),
  );

  it('is the one that is found by reading all', async () => {
    let compared = 0;
    for (const name of ledgers) {
      const text = readFileSync(join(folder, name), 'utf8');
      // Also as no writer writes it: a digit of each id as an escape.
      const escaped = text.replace(/("b64":")(.)/g, (_, before: string, digit: string) => {
        const code = digit.charCodeAt(0).toString(16).padStart(4, '0');
        return `${before}\\u${code}`;
      });
      for (const bytes of [Buffer.from(text), Buffer.from(escaped)]) {
        const open = (): LedgerSource => bytesSource(bytes, '-');
        const all: { readonly seq: number; readonly eventId: string }[] = [];
        for await (const record of readRecords(open())) all.push(record);
        const ids = [...new Set(all.map(({ eventId }) => eventId))];
        for (const id of [...ids.slice(0, 5), `sha-256:${'A'.repeat(43)}`]) {
          const same = all.filter(({ eventId }) => eventId === id);
          const isOne = new Set(same.map(({ seq }) => seq)).size === 1;
          const found = findRecord(open(), id);
          if (isOne) expect((await found).seq).toBe(same[0]?.seq);
          else await expect(found).rejects.toThrow();
          compared += 1;
        }
        const some = ids.slice(0, 3);
        const found = await findEvents(open(), some);
        expect([...found].map(([id, { seq }]) => [id, seq]).sort()).toEqual(
          some.map((id) => [id, all.find(({ eventId }) => eventId === id)?.seq]).sort(),
        );
      }
    }
    expect(compared).toBeGreaterThan(ledgers.length);
  });
});
