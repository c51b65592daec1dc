/**
 * Makes ledgers, and holds all ways to verify each against each other. Bundled by `differential-bundle.ts`, run as
 * `node PROGRAM RUNS SEED FOLDER MODE`: `FOLDER` has the verifier as it is bundled for browsers; mode `long` is for runs by hand. The last line on standard output
 * says as JSON what was seen.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Report } from '../../src/report/report.js';
import { verifyChunks, type VerifyChunksOptions } from '../../src/report/verify-chunks.js';
import { CommandServer } from '../cli/command-server.js';
import { makeRandom } from '../ledger/quick-kit.js';
import { CHROMIUM, Page } from '../platform/chromium.js';
import { makeLedger } from './differential-kit.js';
import { byDefinition, folder, formOf, OPTIONS, removeFolder, Ways, type SlowWays } from './differential-ways.js';

const [RUNS = NaN, SEED = NaN] = process.argv.slice(2).map(Number);
const [BUNDLES = '', MODE = ''] = process.argv.slice(4);
const isByHand = MODE === 'long';

/** One of so many ledgers is long, and one of some others has so many lines that keys come to have tables. */
const LONG = isByHand ? 500 : 25;
const MEDIUM = isByHand ? 50 : 20;
/** What takes long is done with one of so many ledgers, in a long run more seldom: there are more of them. */
const SHARES = isByHand
  ? { browser: 50, index: 500, process: 2_000, chromium: 500 }
  : { browser: 25, index: 100, process: 150, chromium: 0 };

/** What was seen. */
export interface Seen {
  readonly ledgers: number;
  readonly lines: number;
  /** Records of which a signature was meant to be refused. */
  readonly refused: number;
  readonly ok: number;
  readonly comparisons: number;
  readonly codes: readonly string[];
  /** How often each way was gone. */
  readonly ways: Readonly<Record<string, number>>;
  /** By which way, and how to make the ledger again. */
  readonly differences: readonly string[];
}

const server = new CommandServer();
let page: Page | undefined;
try {
  const slow = await openSlowWays();
  console.log(JSON.stringify(await compareAll(slow)));
} finally {
  server.close();
  await page?.close();
  removeFolder();
}

async function openSlowWays(): Promise<SlowWays> {
  const run = (args: readonly string[], input: Uint8Array = new Uint8Array()): string => {
    const { PATH, HOME } = process.env;
    const { stdout, stderr } = server.run({ args, input, cwd: folder, env: { PATH, HOME } });
    if (stdout === '' && args.includes('json')) throw new Error(stderr);
    return stdout;
  };
  const { verifyChunks: verify } = (await import(pathToFileURL(join(BUNDLES, 'verify.mjs')).href)) as {
    readonly verifyChunks: (bytes: Uint8Array, options: VerifyChunksOptions) => Promise<Report>;
  };
  const ways: SlowWays = { run, browser: async (bytes) => formOf(await verify(bytes, OPTIONS)) };
  if (SHARES.chromium === 0 || !existsSync(CHROMIUM)) return ways;
  const opened = await Page.open();
  page = opened;
  await opened.evaluate(`${readFileSync(join(BUNDLES, 'verify.js'), 'utf8')};globalThis.northroot = northroot;undefined`);
  const decode = '((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))';
  const chromium = async (bytes: Buffer): Promise<string> => {
    const blob = `new Blob([${decode}("${bytes.toString('base64')}")])`;
    const call = `northroot.verifyChunks(${blob}, ${JSON.stringify(OPTIONS)}).then(JSON.stringify)`;
    return formOf(JSON.parse((await opened.evaluate(call)) as string) as Report);
  };
  return { ...ways, chromium };
}

async function compareAll(slow: SlowWays): Promise<Seen> {
  const seen = { ledgers: RUNS, lines: 0, refused: 0, ok: 0, comparisons: 0 };
  const codes = new Set<string>();
  const gone = new Map<string, number>();
  const differences: string[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    // Each ledger has its own seed, so that one can be made again alone.
    const seed = SEED + n;
    const random = makeRandom(seed);
    const below = (end: number): number => Math.floor(random() * end);
    const isLong = seed % LONG === 0;
    const made = makeLedger(random, isLong ? 258 + below(300) : seed % MEDIUM === 1 ? 30 + below(60) : 1 + below(9));
    const definition = await byDefinition(made.bytes);
    const report = formOf(definition);
    const ways = new Ways(made, definition, below, slow);
    for (const { kind, name, report: find, expected } of ways.list(seed, isLong, SHARES)) {
      const found = await find().catch((error: unknown) => ({ error }));
      if (found === undefined) continue;
      seen.comparisons += 1;
      gone.set(kind, (gone.get(kind) ?? 0) + 1);
      const wanted = expected === undefined ? report : await expected();
      if (found === wanted) continue;
      const what = typeof found === 'string' ? describeDifference(found, wanted) : describeError(found.error);
      const again = `SEED=${seed} DIFFERENTIAL_RUNS=1${isByHand ? '' : ' DIFFERENTIAL_MODE=short'}`;
      differences.push(`${again}: ${name}: ${what}`);
      console.log(`DIFFERS: ${differences.at(-1)}`);
    }
    seen.lines += made.lines;
    seen.refused += made.refused.length;
    seen.ok += definition.verdict === 'ok' ? 1 : 0;
    for (const { code } of definition.findings) codes.add(code);
    if (isByHand && (n + 1) % 1_000 === 0)
      console.log(`${new Date().toISOString()} ${n + 1} ledgers, ${differences.length} differences`);
  }
  return { ...seen, codes: [...codes].sort(), ways: Object.fromEntries([...gone].sort()), differences };
}

/** Where the two reports part. */
function describeDifference(found: string, wanted: string): string {
  let at = 0;
  while (found[at] === wanted[at]) at += 1;
  const from = Math.max(0, at - 100);
  return `says …${found.slice(from, at + 100)}…, not …${wanted.slice(from, at + 100)}…`;
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
