/**
 * All ways to verify a ledger give one report, byte for byte (but for what the way itself adds). What a block was read into, and what was
 * said of it, is overwritten as soon as it is given back: whoever points into it for longer gives another report. Long ledgers have
 * enough signatures for tables, and for rooms that are used in turn; of most a line fills a block.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL, fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type * as Scanners from '../../src/batch/line-scanner.js';
import type * as Blocks from '../../src/batch/read-blocks.js';
import type { KnownLine, KnownLines, ReadBlocksOptions, UsualLine } from '../../src/batch/read-blocks.js';
import type { LedgerSource } from '../../src/fs/source.js';
import { LineSplitter } from '../../src/ledger/line-splitter.js';
import { useQuickPath } from '../../src/ledger/quick-line.js';
import { verifyChunks } from '../../src/report/verify-chunks.js';
import type { VerifyChunksOptions } from '../../src/report/verify-chunks.js';
import type { Report } from '../../src/report/report.js';
import type * as Batches from '../../src/signature/batch-verifier.js';
import { Workshop } from '../cli/runner.js';
import { makeRandom } from '../ledger/quick-kit.js';
import { CHROMIUM, Page } from '../platform/chromium.js';
import { times } from '../slow.js';
import { makeLedger } from './differential-kit.js';
import type { Examining } from './differential-mocks.js';
import { byDefinition, folder, formOf, OPTIONS, removeFolder, Ways, type SlowWays } from './differential-ways.js';

const SEED = Number(process.env['SEED'] ?? 20_261_125);
const BY_HAND = process.env['DIFFERENTIAL_RUNS'];
const RUNS = Number(BY_HAND ?? times(300, 10_000));
/** One of so many ledgers is long. */
const LONG = BY_HAND === undefined ? 20 : 40;
/** What takes long is done with one of so many ledgers; in a run by hand more seldom, since there are more of them. */
const SHARES =
  BY_HAND === undefined
    ? { browser: 25, index: 75, process: 150, chromium: 0 }
    : { browser: 25, index: 100, process: 1_000, chromium: 500 };
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const isBuilt = existsSync(`${ROOT}dist/verify.js`);
const command = new Workshop({ ownProcesses: false });

const examining = vi.hoisted((): Examining => ({
  blocks: undefined,
  scanner: undefined,
  tables: undefined,
  reset() {
    this.blocks = undefined;
    this.scanner = undefined;
    this.tables = undefined;
  },
}));

vi.mock('../../src/batch/read-blocks.js', async (load) => {
  const real = await load<typeof Blocks>();
  return {
    ...real,
    readBlocks: (source: LedgerSource, options: ReadBlocksOptions) =>
      examining.blocks === 'lines'
        ? linesOneByOne(source)
        : wiped(real.readBlocks(source, { ...options, ...examining.blocks })),
  };
});

vi.mock('../../src/batch/line-scanner.js', async (load) => {
  const real = await load<typeof Scanners>();
  const wasm = real.makeWasmScanner();
  const plain = real.makePlainScanner();
  return {
    ...real,
    scannerFor: (length: number) =>
      examining.scanner === undefined
        ? real.scannerFor(length)
        : examining.scanner === 'wasm' && wasm !== undefined
          ? wasm
          : plain,
  };
});

vi.mock('../../src/signature/batch-verifier.js', async (load) => {
  const real = await load<typeof Batches>();
  class BatchVerifier extends real.BatchVerifier {
    constructor(options: Batches.BatchVerifierOptions = {}) {
      super(examining.tables === undefined ? options : { ...options, uses: 0, sample: 1 });
    }
  }
  return { ...real, BatchVerifier };
});

const NOT_MEANT = 0x58;

/** What is known of a block is good until the next is asked for: then all of it is overwritten. */
async function* wiped(blocks: AsyncIterable<KnownLines>): AsyncGenerator<KnownLines, void, void> {
  for await (const lines of blocks) {
    yield lines;
    const { bytes, facts } = lines as unknown as Partial<UsualLine>;
    // Of a line that is longer than a block there is nothing.
    if (bytes === undefined || facts === undefined) continue;
    bytes.fill(NOT_MEANT);
    for (const numbers of [facts.ends, facts.rowAt, facts.rows, facts.verdictsAt]) numbers.fill(NOT_MEANT);
    for (const hashes of [facts.leaves, facts.nodes, facts.verdicts]) hashes.fill(NOT_MEANT);
  }
}

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

let slow: SlowWays = {};
let page: Page | undefined;

beforeAll(async () => {
  if (!isBuilt) return;
  const run = (args: readonly string[], input: Uint8Array = new Uint8Array()): string => {
    const { stdout, stderr } = command.run(args, { input });
    if (stdout === '' && args.includes('json')) throw new Error(stderr);
    return stdout;
  };
  const [browser, inPage] = await Promise.all([bundled('esm'), bundled('iife')]);
  const path = join(folder, 'verify.mjs');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(path, browser);
  const { verifyChunks: verify } = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as {
    readonly verifyChunks: (bytes: Uint8Array, options: VerifyChunksOptions) => Promise<Report>;
  };
  slow = { run, browser: async (bytes) => formOf(await verify(bytes, OPTIONS)) };
  if (SHARES.chromium === 0 || !existsSync(CHROMIUM)) return;
  const opened = await Page.open();
  page = opened;
  await opened.evaluate(`${inPage};undefined`);
  const decode = '((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))';
  slow = {
    ...slow,
    chromium: async (bytes) =>
      formOf(
        JSON.parse(
          (await opened.evaluate(
            `northroot.verifyChunks(new Blob([${decode}("${bytes.toString('base64')}")]), ${JSON.stringify(OPTIONS)}).then(JSON.stringify)`,
          )) as string,
        ) as Report,
      ),
  };
});

afterAll(async () => {
  await page?.close();
  removeFolder();
});
afterEach(() => {
  examining.reset();
  useQuickPath(true);
});

/** The verifier as a page would bundle it. */
async function bundled(format: 'esm' | 'iife'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: "export { verifyChunks } from 'northroot/verify';", resolveDir: ROOT },
    bundle: true,
    format,
    globalName: 'northroot',
    platform: 'browser',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0].text;
}

test('all ways to verify a ledger give one report', { timeout: times(300_000, 7_200_000) }, async () => {
  const seen = { lines: 0, refused: 0, ok: 0, comparisons: 0, codes: new Set<string>() };
  const byWay = new Map<string, number>();
  const differing: string[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    // Each ledger has its own seed, so that one can be made again alone.
    const own = SEED + n;
    const random = makeRandom(own);
    const below = (end: number): number => Math.floor(random() * end);
    const isLong = own % LONG === 0;
    const made = makeLedger(random, isLong ? 258 + below(300) : 1 + below(24));
    const definition = await byDefinition(made.bytes, examining);
    const report = formOf(definition);
    const ways = new Ways(made, definition, below, examining, slow);
    for (const { name, report: find, expected } of [
      { name: 'one chunk', report: async () => formOf(await verifyChunks([made.bytes], { ...OPTIONS, threads: 1 })) },
      ...ways.list(own, isLong, SHARES),
    ] as ReturnType<Ways['list']>) {
      const isOneOfMany = BY_HAND !== undefined && RUNS > 1;
      const found = await find().catch((error: unknown) => {
        if (!isOneOfMany) throw error;
        return String(error);
      });
      if (found === undefined) continue;
      seen.comparisons += 1;
      const kind = name.replace(/ at \d+|[ ,]*\d[\d, ]*.*/, '');
      byWay.set(kind, (byWay.get(kind) ?? 0) + 1);
      const wanted = expected === undefined ? report : await expected();
      if (found === wanted) continue;
      differing.push(`${name}, with SEED=${own} DIFFERENTIAL_RUNS=1`);
      console.error(`differs from the definition: ${differing.at(-1)}`);
      if (isOneOfMany) continue;
      expect(JSON.parse(found), `${name}, seed ${own}`).toEqual(JSON.parse(wanted));
      expect(found, `${name}, seed ${own}`).toBe(wanted);
    }
    seen.lines += made.lines;
    seen.refused += made.refused.length;
    seen.ok += definition.verdict === 'ok' ? 1 : 0;
    for (const { code } of definition.findings) seen.codes.add(code);
    if (BY_HAND !== undefined && (n + 1) % 1_000 === 0)
      console.log(`${new Date().toISOString()} ${n + 1} ledgers, ${differing.length} differences`);
  }
  if (BY_HAND !== undefined || process.env['SLOW'] === '1')
    console.log(`seeds ${SEED} to ${SEED + RUNS - 1}:`, {
      ...seen,
      codes: [...seen.codes].sort().join(' '),
      ways: Object.fromEntries(byWay),
      differing,
    });
  expect(differing).toEqual([]);
  if (RUNS < 50) return;
  expect(seen.codes).toContain('SIGNATURE_INVALID');
  expect(seen.refused).toBeGreaterThan(RUNS);
});
