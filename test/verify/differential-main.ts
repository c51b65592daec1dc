/**
 * Makes ledgers, and holds all ways to verify each against each other. Bundled by `differential-bundle.ts`, run as
 * `node PROGRAM RUNS SEED LONG FOLDER HOW`: so many ledgers, with the seeds from this one on; so many long ones besides; where the
 * verifier as it is bundled for browsers is; and whether what takes long is done `often`, or `seldom`, as where ledgers are many. Says
 * what was seen as JSON, on the last line of standard output.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Report } from '../../src/rules/report/report.js';
import type { VerifyChunksOptions } from '../../src/rules/report/verify-chunks.js';
import { CommandServer } from '../cli/command-server.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { CHROMIUM, Page } from '../platform/chromium.js';
import { makeLedger } from './differential-kit.js';
import {
  byDefinition,
  folder,
  formOf,
  OPTIONS,
  removeFolder,
  Ways,
  type SlowWays,
} from './differential-ways.js';

const [RUNS = NaN, SEED = NaN, MORE = NaN] = process.argv.slice(2).map(Number);
const [BUNDLES = '', HOW = ''] = process.argv.slice(5);
const isSeldom = HOW === 'seldom';

/** One of so many ledgers is long, and one of some others has so many lines that keys come to have tables. */
const LONG = 500;
const MEDIUM = 50;
/** Ways that take long are gone with one of so many ledgers. */
const SHARES = isSeldom
  ? { browser: 50, index: 500, process: 2_000, chromium: 500 }
  : { browser: 25, index: 100, process: 200, chromium: RUNS === 1 ? 1 : 0 };

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
  await opened.evaluate(
    `${readFileSync(join(BUNDLES, 'verify.js'), 'utf8')};globalThis.northroot = northroot;undefined`,
  );
  const decode = '((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))';
  const chromium = async (bytes: Buffer): Promise<string> => {
    const blob = `new Blob([${decode}("${bytes.toString('base64')}")])`;
    const call = `northroot.verifyChunks(${blob}, ${JSON.stringify(OPTIONS)}).then(JSON.stringify)`;
    return formOf(JSON.parse((await opened.evaluate(call)) as string) as Report);
  };
  return { ...ways, chromium };
}

async function compareAll(slow: SlowWays): Promise<Seen> {
  const next = Math.ceil((SEED + RUNS) / LONG) * LONG;
  // Each ledger has its own seed, so that one can be made again alone.
  const seeds = Array.from({ length: RUNS + MORE }, (_, n) =>
    n < RUNS ? SEED + n : next + (n - RUNS) * LONG,
  );
  const seen = { ledgers: seeds.length, lines: 0, refused: 0, ok: 0, comparisons: 0 };
  const codes = new Set<string>();
  const gone = new Map<string, number>();
  const differences: string[] = [];
  for (const [n, seed] of seeds.entries()) {
    const random = makeRandom(seed);
    const below = (end: number): number => Math.floor(random() * end);
    const isLong = seed % LONG === 0;
    const isMedium = seed % MEDIUM === 1;
    const made = makeLedger(random, isLong ? 340 + below(300) : isMedium ? 30 + below(60) : 1 + below(9));
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
      differences.push(`SEED=${seed} DIFFERENTIAL_RUNS=1: ${name}: ${what}`);
      console.error(`DIFFERS: ${differences.at(-1)}`);
    }
    seen.lines += made.lines;
    seen.refused += made.refused.length;
    seen.ok += definition.verdict === 'ok' ? 1 : 0;
    for (const { code } of definition.findings) codes.add(code);
    if (isSeldom && (n + 1) % 1_000 === 0)
      console.error(`${new Date().toISOString()} ${n + 1} ledgers, ${differences.length} differences`);
  }
  return { ...seen, codes: [...codes].sort(), ways: Object.fromEntries(gone), differences };
}

/** Where the two reports part. */
function describeDifference(found: string, wanted: string): string {
  let at = 0;
  while (found[at] === wanted[at]) at += 1;
  const from = Math.max(0, at - 100);
  return `says …${found.slice(from, at + 100)}…, not …${wanted.slice(from, at + 100)}…`;
}

function describeError(error: unknown): string {
  return error instanceof Error
    ? (error.stack ?? error.message) + (error.cause ? `; ${describeError(error.cause)}` : '')
    : String(error);
}
