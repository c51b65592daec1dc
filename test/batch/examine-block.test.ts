/** What `examineBlock` says of the lines of a block besides what it says of each: which record follows upon which, what they have in common. */

import { describe, expect, test } from 'vitest';
import { examineBlock, makeExaminer, type ExaminedBlock } from '../../src/fast/blocks/examine-block.js';
import { MeterReader, keyidAt } from '../../src/fast/scan/scanned-line.js';
import * as row from '../../src/fast/scan/row.js';
import { FLAGS, IS_CHAINED, ROW_WIDTH } from '../../src/fast/scan/scan.js';
import { B64_IN_DIGEST } from '../../src/fast/scan/tables.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { WHOLE_EVENTS, lineOf, recordOf } from '../ledger/scan-kit.js';

function examine(lines: readonly string[]): ExaminedBlock {
  return examineBlock(Buffer.from(`${lines.join('\n')}\n`), makeExaminer(nodeBackend), 'all');
}

function isUsual({ rowAt }: ExaminedBlock, line: number): boolean {
  return (rowAt[line] ?? -1) !== -1;
}

function isChained(block: ExaminedBlock, line: number): boolean {
  return (
    isUsual(block, line) &&
    ((block.rows[(block.rowAt[line] ?? 0) * ROW_WIDTH + FLAGS] ?? 0) & IS_CHAINED) !== 0
  );
}

/** A scannable record that stands behind the line `before`. */
function recordBehind(before: string, seq: number, changes: Record<string, unknown> = {}): string {
  const prev = { alg: 'sha-256', b64: hashToBase64url(leafHash(Buffer.from(before))) };
  const members = Object.entries({ ...WHOLE_EVENTS[seq % WHOLE_EVENTS.length], ...changes });
  const event = Object.fromEntries(members.filter(([, value]) => value !== undefined));
  return lineOf(recordOf(event, true, { prev, seq })).toString('utf8');
}

test('of very many short lines that are no records only the first are kept as they were examined', () => {
  const { lines, examined } = examine(Array.from({ length: 5_000 }, () => '{}'));
  expect([lines, examined.size]).toEqual([5_000, 2_048]);
});

describe('what rows have in common', () => {
  const bytes = Buffer.from(fixtureBytes('ledgers/pipeline-1000.jsonl'));
  const { rows } = examineBlock(bytes, makeExaminer(nodeBackend), 'all');
  const count = rows.length / ROW_WIDTH;
  const numberAt = (at: number, place: number): number => rows[at * ROW_WIDTH + place] ?? -1;
  const textAt = (at: number, place: number): string =>
    bytes.toString('latin1', numberAt(at, place), numberAt(at, place + 1));
  const b64At = (start: number): string => bytes.toString('latin1', start, start + 43);
  const each = Array.from({ length: count }, (_, at) => at);

  test('of the texts, the first row that has the same', () => {
    const texts: [same: number, text: (at: number) => string][] = [
      [row.SAME_PRINCIPAL, (at) => textAt(at, row.PRINCIPAL)],
      [row.SAME_TOOL, (at) => textAt(at, row.TOOL)],
      [row.SAME_LINK, (at) => b64At(numberAt(at, row.LINK))],
      [row.SAME_KEYID, (at) => b64At(keyidAt(bytes, rows, at * ROW_WIDTH, 0))],
    ];
    const needed = [row.PRINCIPAL, row.TOOL, row.LINK, row.SIGNATURE_COUNT];
    for (const [index, [same, text]] of texts.entries()) {
      const having = each.filter((at) => numberAt(at, needed[index] ?? 0) !== 0);
      const firsts = having.map((at) => numberAt(at, same));
      expect(having.filter((at, i) => (firsts[i] ?? at + 1) > at)).toEqual([]);
      expect(firsts.map(text)).toEqual(having.map(text));
      expect(firsts.filter((first) => numberAt(first, same) !== first)).toEqual([]);
      // Most have been there.
      expect(new Set(firsts).size).toBeLessThan(count);
    }
  });

  test('of the units, the first meter that has the same; of amounts, their digits', () => {
    const meters = new MeterReader();
    let seen = 0;
    for (const at of each) {
      meters.begin(bytes, rows, at * ROW_WIDTH);
      for (let i = 0; i < row.ROW_AMOUNTS && meters.next(); i += 1) {
        const amount = at * ROW_WIDTH + row.AMOUNTS + i * row.AMOUNT_WIDTH;
        const unitAt = (from: number): string =>
          bytes.toString('latin1', rows[from + row.UNIT], rows[from + row.UNIT + 1]);
        const first = rows[amount + row.SAME_UNIT] ?? NaN;
        expect(first).toBeLessThanOrEqual(at * row.ROW_AMOUNTS + i);
        const firstRow = Math.floor(first / row.ROW_AMOUNTS);
        const place = row.AMOUNTS + (first % row.ROW_AMOUNTS) * row.AMOUNT_WIDTH;
        expect([unitAt(amount), unitAt(firstRow * ROW_WIDTH + place)]).toEqual([meters.unit, meters.unit]);
        const value = (rows[amount + row.AMOUNT_HIGH] ?? NaN) * 1e8 + (rows[amount + row.AMOUNT_LOW] ?? NaN);
        expect(value).toBe(Number(bytes.toString('latin1', meters.start, meters.end)));
        expect(rows[amount + row.AMOUNT_SCALE]).toBe(meters.scale);
        seen += 1;
      }
    }
    expect(seen).toBeGreaterThan(1_500);
  });

  test.each(['0', '9', '12345678', '123456789', '999999999999999', '1000000000000000'])(
    'an amount of %s',
    (v) => {
      const usage = WHOLE_EVENTS.findIndex((event) => 'meter_used' in event);
      const used = [{ unit: 'usd', amount: { t: 'int', v } }];
      const block = examine([
        recordBehind('', usage, { meter_used: used, meter_basis_by_unit: { usd: 'estimated' } }),
      ]);
      const [high = NaN, low = NaN] = block.rows.slice(row.AMOUNTS + row.AMOUNT_HIGH);
      expect(isUsual(block, 0)).toBe(true);
      expect(high === -1 ? 'too long' : high * 1e8 + low).toBe(v.length > 15 ? 'too long' : Number(v));
    },
  );

  test('of keyids, all characters', () => {
    const sig = `${'A'.repeat(42)}E${'A'.repeat(43)}`;
    const signedBy = (keyid: string): string =>
      lineOf(recordOf(WHOLE_EVENTS[0] ?? {}, true, { signatures: [{ keyid, sig }] })).toString('utf8');
    const keyids = ['E', 'I', 'E', 'M', 'I'].map((last) => `${'A'.repeat(42)}${last}`);
    const block = examine(keyids.map(signedBy));
    const same = keyids.map((_, at) => block.rows[at * ROW_WIDTH + row.SAME_KEYID]);
    expect(block.rowAt.slice(0, 5)).toEqual(Int32Array.of(0, 1, 2, 3, 4));
    // Those for whom there was no place are first themselves.
    same.forEach((first = NaN, at) => {
      expect(first).toBeLessThanOrEqual(at);
      expect(keyids[first]).toBe(keyids[at]);
    });
  });

  test('and nothing of another block', () => {
    const [first, second] = [recordBehind('', 5), recordBehind('', 6, { principal_id: 'agent:other' })];
    examine([first, second]);
    // The same text in the same place, where it is the first row's.
    const { rows: others, rowAt } = examine(['x'.repeat(Buffer.byteLength(first)), second]);
    expect([...rowAt.slice(0, 2)]).toEqual([-1, 0]);
    expect(others[row.SAME_PRINCIPAL]).toBe(0);
  });

  const b64Of = (at: number, words: number): string => {
    const from = at * ROW_WIDTH + words;
    return Buffer.from(rows.slice(from, from + 8).buffer).toString('base64url');
  };

  test('the bytes of ids and links', () => {
    expect(each.map((at) => b64Of(at, row.ID_WORDS))).toEqual(
      each.map((at) => b64At(numberAt(at, row.EVENT_ID))),
    );
    const linked = each.filter((at) => numberAt(at, row.LINK) !== 0);
    expect(linked.length).toBeGreaterThan(500);
    expect(linked.map((at) => b64Of(at, row.LINK_WORDS))).toEqual(
      linked.map((at) => b64At(numberAt(at, row.LINK))),
    );
  });

  test.each([
    ['intents', row.INTENT, row.INTENT_WORDS],
    ['parameters', row.PARAMS, row.PARAMS_WORDS],
    ['intents of users', row.USER_INTENT, row.USER_INTENT_WORDS],
  ])('the bytes of digests of %s', (_, member, words) => {
    const having = each.filter((at) => numberAt(at, member) !== 0);
    expect(having.length).toBeGreaterThan(200);
    expect(having.map((at) => b64Of(at, words))).toEqual(
      having.map((at) => b64At(numberAt(at, member) + B64_IN_DIGEST)),
    );
  });

  test.each([
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:02Z', '2026-01-01T00:00:03Z', true],
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:01Z', '2026-01-01T00:00:01Z', true],
    // When an execution ended is not held against when it was recorded.
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:03Z', '2026-01-01T00:00:02Z', true],
    ['2026-01-01T00:00:02Z', '2026-01-01T00:00:01Z', '2026-01-01T00:00:03Z', false],
    ['2026-01-01T00:00:02Z', '2026-01-01T00:00:03Z', '2026-01-01T00:00:01Z', false],
  ])('from %s to %s, recorded %s: sound %s', (started, ended, occurred, expected) => {
    const usage = WHOLE_EVENTS.findIndex((event) => 'meter_used' in event);
    const times = { started_at: started, ended_at: ended, occurred_at: occurred };
    const block = examine([recordBehind('', usage, times)]);
    expect(isUsual(block, 0)).toBe(true);
    expect(((block.rows[FLAGS] ?? 0) & row.HAS_SOUND_TIMES) !== 0).toBe(expected);
  });

  test.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', true],
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z', true],
    ['2026-01-01T00:00:59Z', '2026-01-01T00:01:00Z', true],
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:00Z', false],
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z', false],
    ['2026-01-01T00:00:00.5Z', '2026-01-01T00:00:00.4Z', false],
  ])('%s, then %s: in order %s', (before, after, expected) => {
    const first = recordBehind('', 5, { occurred_at: before });
    const block = examine([first, recordBehind(first, 6, { occurred_at: after })]);
    expect(isUsual(block, 1)).toBe(true);
    expect(((block.rows[ROW_WIDTH + FLAGS] ?? 0) & row.IS_IN_ORDER) !== 0).toBe(expected);
    expect((block.rows[FLAGS] ?? 0) & row.IS_IN_ORDER).toBe(0);
  });
});

describe('a record is chained', () => {
  const first = recordBehind('', 5);
  const second = recordBehind(first, 6);
  const third = recordBehind(second, 7);
  const unbound = recordBehind('', 5, { ledger_id: undefined });
  const foreign = recordBehind('', 5, { ledger_id: { alg: 'sha-256', b64: `${'A'.repeat(42)}E` } });

  test('where it follows upon a scannable record', () => {
    const block = examine([first, second, third, 'x', second, third]);
    expect([0, 1, 2, 3, 4, 5].map((i) => isChained(block, i))).toEqual([
      false,
      true,
      true,
      false,
      false,
      true,
    ]);
  });

  test('where neither is bound to a ledger', () => {
    expect(isChained(examine([unbound, recordBehind(unbound, 6, { ledger_id: undefined })]), 1)).toBe(true);
  });

  test.each([
    ['prev is the hash of another line', [first, third]],
    ['prev is the hash of nearly this line', [first, recordBehind(`${first} `, 6)]],
    ['seq is two more', [first, recordBehind(first, 7)]],
    ['seq is the same', [first, recordBehind(first, 5)]],
    ['seq is 2^30 more than it should', [first, recordBehind(first, 6 + 2 ** 30)]],
    ['a blank line is between them', [first, '', second]],
    ['the line before has another ledger_id', [foreign, recordBehind(foreign, 6)]],
    ['the line before has no ledger_id', [unbound, recordBehind(unbound, 6)]],
    ['the line has no ledger_id', [first, recordBehind(first, 6, { ledger_id: undefined })]],
  ])('not where %s', (_, lines) => {
    const block = examine(lines);
    expect(isUsual(block, 0) && isUsual(block, lines.length - 1)).toBe(true);
    expect(isChained(block, lines.length - 1)).toBe(false);
  });

  test('beyond 2^30 too', () => {
    const before = recordBehind('', 2 ** 30 - 1);
    const isBehind = (seq: number): boolean => isChained(examine([before, recordBehind(before, seq)]), 1);
    expect([2 ** 30, 2 ** 31, 0].map(isBehind)).toEqual([true, false, false]);
  });
});
