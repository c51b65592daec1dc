/** What `examineBlock` says of the lines of a block besides what it says of each: which record follows upon which. */

import { describe, expect, test } from 'vitest';
import { examineBlock, makeExaminer, type ExaminedBlock } from '../../src/batch/examine-block.js';
import { FLAGS, IS_CHAINED, ROW_WIDTH } from '../../src/ledger/quick-scan.js';
import { nodeBackend } from '../../src/signature/node-backend.js';
import { hashToBase64url, leafHash } from '../../src/tree/compact-range.js';
import { WHOLE_EVENTS, lineOf, recordOf } from '../ledger/quick-kit.js';

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

/** A usual record that stands behind the line `before`. */
function recordBehind(before: string, seq: number, changes: Record<string, unknown> = {}): string {
  const prev = { alg: 'sha-256', b64: hashToBase64url(leafHash(Buffer.from(before))) };
  const members = Object.entries({ ...WHOLE_EVENTS[seq % WHOLE_EVENTS.length], ...changes });
  const event = Object.fromEntries(members.filter(([, value]) => value !== undefined));
  return lineOf(recordOf(event, true, { prev, seq })).toString('utf8');
}

describe('a record is chained', () => {
  const first = recordBehind('', 5);
  const second = recordBehind(first, 6);
  const third = recordBehind(second, 7);
  const unbound = recordBehind('', 5, { ledger_id: undefined });
  const foreign = recordBehind('', 5, { ledger_id: { alg: 'sha-256', b64: `${'A'.repeat(42)}E` } });

  test('where it follows upon a usual record', () => {
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
