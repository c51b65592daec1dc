/**
 * All ways to verify a ledger give one report, byte for byte: by tables or by the backend, a block or a line at a time, in chunks of
 * any size, from a file, in other threads, and gone on from anywhere. Ledgers are long enough that keys have tables and that the rooms
 * of waiting signatures are used again.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type * as Blocks from '../../src/batch/read-blocks.js';
import type { KnownLine, KnownLines, ReadBlocksOptions } from '../../src/batch/read-blocks.js';
import type { LedgerSource } from '../../src/fs/source.js';
import { LineSplitter } from '../../src/ledger/line-splitter.js';
import { useQuickPath } from '../../src/ledger/quick-line.js';
import { buildReport, type Report } from '../../src/report/report.js';
import { toChunkSource, verifyChunks } from '../../src/report/verify-chunks.js';
import { verifyLedger } from '../../src/report/verify-ledger.js';
import { runVerification } from '../../src/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/verify/saved-state.js';
import { testThread } from '../batch/threads.js';
import { makeRandom } from '../ledger/quick-kit.js';
import { times } from '../slow.js';
import { makeLedger, type MadeLedger } from './differential-kit.js';
import { inChunks } from './support.js';

const SEED = Number(process.env['SEED'] ?? 20_261_125);
const BY_HAND = process.env['DIFFERENTIAL_RUNS'];
const RUNS = Number(BY_HAND ?? times(120, 10_000));
/** One of so many ledgers is long. */
const LONG = 4;
const OPTIONS = { now: '2026-11-22T00:00:00Z', maxFindings: 100_000 } as const;

/** How blocks are read in place of the usual way. */
const reading = vi.hoisted(() => ({
  blocks: undefined as Partial<ReadBlocksOptions> | 'lines' | undefined,
}));

vi.mock('../../src/batch/read-blocks.js', async (load) => {
  const real = await load<typeof Blocks>();
  return {
    ...real,
    readBlocks: (source: LedgerSource, options: ReadBlocksOptions) =>
      reading.blocks === 'lines'
        ? linesOneByOne(source)
        : real.readBlocks(source, { ...options, ...reading.blocks }),
  };
});

const folder = mkdtempSync(join(tmpdir(), 'northroot-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  reading.blocks = undefined;
  useQuickPath(true);
});

/** Lines of which nothing is known: `verifyLine` finds out all that it says, each signature by the backend. */
async function* linesOneByOne(source: LedgerSource): AsyncGenerator<KnownLines, void, void> {
  let ordinal = 0;
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    const asKnown = (line: ReturnType<LineSplitter['finish']> & object): KnownLine => {
      const takesPlace = line.terminated && line.length > 0;
      const known: KnownLine = { line, segment, ordinal, takesPlace, known: undefined };
      if (takesPlace) ordinal += 1;
      return known;
    };
    for await (const chunk of segment.chunks)
      for (const line of splitter.push(chunk)) yield new OneLine(asKnown(line));
    const last = splitter.finish();
    if (last !== undefined) yield new OneLine(asKnown(last));
  }
}

class OneLine implements KnownLines {
  readonly line: KnownLine;
  readonly usual = undefined;
  #isPassed = false;

  constructor(line: KnownLine) {
    this.line = line;
  }

  next(): boolean {
    if (this.#isPassed) return false;
    this.#isPassed = true;
    return true;
  }
}

/** The report without the source's name, which is the only thing that may differ. */
function formOf(report: Report, name = '-'): string {
  return JSON.stringify(report).replaceAll(JSON.stringify(name).slice(1, -1), '-');
}

async function lineByLine(bytes: Buffer): Promise<string> {
  reading.blocks = 'lines';
  useQuickPath(false);
  try {
    return formOf(await verifyChunks(bytes, { ...OPTIONS, threads: 1 }));
  } finally {
    reading.blocks = undefined;
    useQuickPath(true);
  }
}

async function inBlocks(bytes: Buffer, threads: number, blocks: Partial<ReadBlocksOptions>): Promise<string> {
  reading.blocks = blocks;
  try {
    return formOf(await verifyChunks(bytes, { ...OPTIONS, threads }));
  } finally {
    reading.blocks = undefined;
  }
}

/** Verified up to the first of these places, saved, restored, gone on from up to the next, and so on. */
async function goingOn(bytes: Buffer, ends: readonly number[]): Promise<string> {
  let saved: Uint8Array | undefined;
  for (const end of ends) {
    const from = saved === undefined ? {} : { from: restoreVerification(saved) };
    const result = await runVerification(toChunkSource(bytes.subarray(0, end), '-'), { ...OPTIONS, ...from });
    saved = saveVerification({ state: result.state, findings: result.kept });
  }
  const from = saved === undefined ? {} : { from: restoreVerification(saved) };
  return formOf(buildReport(await runVerification(toChunkSource(bytes, '-'), { ...OPTIONS, ...from })));
}

async function fromFile(bytes: Buffer): Promise<string> {
  const path = join(folder, 'ledger.jsonl');
  writeFileSync(path, bytes);
  return formOf(await verifyLedger(path, OPTIONS), path);
}

type Way = readonly [name: string, report: () => Promise<string>];

/** All ways; those that take long are tried in turn. */
function waysOf({ bytes }: MadeLedger, n: number, random: () => number): Way[] {
  const below = (end: number): number => Math.floor(random() * end);
  const chunks = (...sizes: number[]): Way => [
    `chunks of ${sizes.join(', ')}`,
    async () => formOf(await verifyChunks(inChunks(bytes, ...sizes), { ...OPTIONS, threads: 1 })),
  ];
  const cuts = Array.from({ length: 1 + below(8) }, () => 1 + below(random() < 0.5 ? 2_000 : 120_000));
  const lineEnds = [...bytes.keys()].filter((at) => bytes[at] === 0x0a).map((at) => at + 1);
  const ends = Array.from({ length: 1 + below(3) }, () => lineEnds[below(lineEnds.length)] ?? 0).sort(
    (a, b) => a - b,
  );
  const blockBytes = 70_000 + below(450_000);
  const tiny = 70_000 + below(8_000);
  const inTurn: Way[] = [
    chunks(65_535, 65_536, 65_537),
    ['a file', () => fromFile(bytes)],
    chunks(4_096),
    [`blocks of ${blockBytes}`, () => inBlocks(bytes, 1, { blockBytes })],
    chunks(bytes.length || 1),
    chunks(7),
    chunks(1),
  ];
  return [
    ['line by line', () => lineByLine(bytes)],
    chunks(...cuts),
    [
      `2 threads, blocks of ${tiny}`,
      () => inBlocks(bytes, 2, { blockBytes: tiny, worthwhileBytes: 0, start: () => testThread() }),
    ],
    [`gone on from ${ends.join(', ')}`, () => goingOn(bytes, ends)],
    // Seven of them: long ledgers, which are every fourth, meet each.
    ...inTurn.filter((_, index) => index === n % inTurn.length),
  ];
}

test('all ways to verify a ledger give one report', { timeout: times(300_000, 7_200_000) }, async () => {
  const seen = { lines: 0, refused: 0, ok: 0, comparisons: 0, codes: new Set<string>() };
  for (let n = 0; n < RUNS; n += 1) {
    // Each ledger has its own seed, so that one can be made again alone.
    const own = SEED + n;
    const random = makeRandom(own);
    const made = makeLedger(
      random,
      own % LONG === 0 ? 300 + Math.floor(random() * 400) : 1 + Math.floor(random() * 40),
    );
    const whole = await verifyChunks([made.bytes], { ...OPTIONS, threads: 1 });
    const expected = formOf(whole);
    for (const [name, report] of waysOf(made, own, random)) {
      seen.comparisons += 1;
      const found = await report();
      if (found !== expected) {
        console.error(`differs from one chunk: ${name}, with SEED=${own} DIFFERENTIAL_RUNS=1`);
        expect(JSON.parse(found), `${name}, seed ${own}`).toEqual(JSON.parse(expected));
        expect(found, `${name}, seed ${own}`).toBe(expected);
      }
    }
    seen.lines += made.lines;
    seen.refused += made.refused;
    seen.ok += whole.verdict === 'ok' ? 1 : 0;
    for (const { code } of whole.findings) seen.codes.add(code);
  }
  if (BY_HAND !== undefined || process.env['SLOW'] === '1')
    console.log(`seeds ${SEED} to ${SEED + RUNS - 1}:`, { ...seen, codes: [...seen.codes].sort().join(' ') });
  if (RUNS < 50) return;
  expect(seen.codes).toContain('SIGNATURE_INVALID');
  expect(seen.refused).toBeGreaterThan(RUNS);
});
