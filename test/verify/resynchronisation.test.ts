/**
 * After a break in the chain the verifier finds its way back at once: lines that were dropped, exchanged, doubled or put in
 * give a finding where the break is, and none for what follows it in order.
 */

import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
const lines = linesOf(fixtureBytes('ledgers/pipeline-1000.jsonl')).slice(0, 40);

/** The chain's findings, as `code@line`, in the order of the lines; authorizations that are missed are not its affair. */
async function breaksOf(parts: readonly Uint8Array[]): Promise<string[]> {
  const { findings } = await verifyLedger(ledgerOf(parts), { backend });
  return findings
    .filter(({ code }) => code === 'SEQ_GAP' || code === 'PREV_MISMATCH' || code === 'EVENT_DUPLICATE')
    .map(({ code, at }) => `${code}@${at.line}`);
}

const gapAt = (line: number): string[] => [`PREV_MISMATCH@${line}`, `SEQ_GAP@${line}`];
const line = (index: number): Buffer => lines[index];

describe('one break', () => {
  test('a line dropped', async () => {
    expect(await breaksOf(lines.toSpliced(10, 1))).toEqual(gapAt(11));
  });

  test('thirty lines dropped: no more than for one', async () => {
    expect(await breaksOf(lines.toSpliced(5, 30))).toEqual(gapAt(6));
  });

  test('a line doubled: what follows is chained to either', async () => {
    expect(await breaksOf(lines.toSpliced(10, 0, line(9)))).toEqual([...gapAt(11), 'EVENT_DUPLICATE@11']);
  });

  test('three lines doubled: one break, and each duplicate', async () => {
    expect(await breaksOf(lines.toSpliced(10, 0, line(7), line(8), line(9)))).toEqual([
      ...gapAt(11),
      'EVENT_DUPLICATE@11',
      'EVENT_DUPLICATE@12',
      'EVENT_DUPLICATE@13',
    ]);
  });

  test('two neighbours exchanged: neither has its number, and three do not have theirs before them', async () => {
    const swapped = lines.with(10, line(11)).with(11, line(10));
    expect(await breaksOf(swapped)).toEqual([...gapAt(11), ...gapAt(12), 'PREV_MISMATCH@13']);
  });

  test('two lines exchanged that stand apart', async () => {
    const swapped = lines.with(10, line(20)).with(20, line(10));
    expect(await breaksOf(swapped)).toEqual([
      ...gapAt(11),
      'PREV_MISMATCH@12',
      ...gapAt(21),
      'PREV_MISMATCH@22',
    ]);
  });

  test('a line that is nothing: its place is taken, and the next one says that it was another', async () => {
    expect(await breaksOf(lines.with(10, Buffer.from('nothing')))).toEqual(['PREV_MISMATCH@12']);
  });

  test('a line put in', async () => {
    expect(await breaksOf(lines.toSpliced(10, 0, Buffer.from('{}')))).toEqual(gapAt(12));
  });

  test('blank lines do not count', async () => {
    const blank = Buffer.alloc(0);
    expect(await breaksOf(lines.toSpliced(10, 0, blank, blank))).toEqual([]);
  });
});

describe('several breaks', () => {
  test('are reported one by one', async () => {
    const broken = lines.toSpliced(30, 1).toSpliced(20, 2).toSpliced(10, 1);
    expect(await breaksOf(broken)).toEqual([...gapAt(11), ...gapAt(20), ...gapAt(28)]);
  });

  test('in neighbouring lines', async () => {
    expect(await breaksOf(lines.filter((_, index) => index !== 10 && index !== 12))).toEqual([
      ...gapAt(11),
      ...gapAt(12),
    ]);
  });

  test('a number of its own in each of two records in a row does not disturb the third', async () => {
    const renumbered = (index: number, seq: number): Buffer =>
      Buffer.from(line(index).toString().replace(`"seq":${index},`, `"seq":${seq},`));
    const odd = lines.with(10, renumbered(10, 900)).with(11, renumbered(11, 70));
    expect(await breaksOf(odd)).toEqual(['SEQ_GAP@11', ...gapAt(12), 'PREV_MISMATCH@13']);
  });

  test('after two numbers in a row the chain continues from the second, and the earlier position is forgotten', async () => {
    let prev = hash('sha256', '', 'base64url');
    const numbered = [0, 1, 7, 8, 4].map((seq, index) => {
      const text = line(index)
        .toString()
        .replace(/"prev":\{"alg":"sha-256","b64":"[^"]*"\}/, `"prev":{"alg":"sha-256","b64":"${prev}"}`)
        .replace(`"seq":${index},`, `"seq":${seq},`);
      prev = hash('sha256', `\0${text}`, 'base64url');
      return Buffer.from(text);
    });
    expect(await breaksOf(numbered)).toEqual(['SEQ_GAP@3', 'SEQ_GAP@5']);
  });
});

test('a ledger cut in pieces and put together in another order breaks where the pieces meet', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 2, max: lines.length - 1 }), { minLength: 1, maxLength: 5 }),
      fc.nat(),
      async (cuts, seed) => {
        const ends = [...cuts].sort((a, b) => a - b);
        const pieces = [0, ...ends].map((from, index) => lines.slice(from, ends[index] ?? lines.length));
        const [head, ...rest] = pieces as [Buffer[], ...Buffer[][]];
        const turned = [...rest.slice(seed % rest.length), ...rest.slice(0, seed % rest.length)];
        let at = head.length;
        const seams = new Set<number>();
        for (const piece of turned) {
          seams.add(at + 1);
          at += piece.length;
        }
        const breaks = await breaksOf([head, ...turned].flat());
        const places = new Set(breaks.map((text) => Number(text.split('@')[1])));
        for (const place of places) expect(seams).toContain(place);
        expect(breaks.length).toBeLessThanOrEqual(2 * seams.size);
      },
    ),
    { numRuns: 40 },
  );
});
