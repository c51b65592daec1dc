import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/sequencer.js';

/** What a file system in memory must have free to be taken for temporary files: some tests write large ones. */
const ROOM_BYTES = 2 ** 30;

const MAX_TEST_MS = process.env['SLOW'] === '1' ? 3_600_000 : 600_000;

/** For what is waited for within a test: below its limit, so that it is said what did not come. */
const MAX_POLL_MS = 100_000;

/** Whether the core is tested without `src/fast`: `WITHOUT_FAST=1`. */
const isWithoutFast = process.env['WITHOUT_FAST'] === '1';

/** What has nothing to look at without it. */
const OF_THE_FAST_PATH = [
  'test/batch/**',
  'test/cache/index-in-blocks.test.ts',
  'test/ledger/{fast-line,scanned-line}.test.ts',
  'test/verify/{block-steps,differential,fast-path,fast-step,told-records}.test.ts',
  'test/writer/writer-fast-path.test.ts',
];

/** What is about bytes, files, notes, arithmetic and sizes: it takes no other path without it. */
const NOT_OF_RECORDS = [
  'test/bounds/{fraction,hostile,recent-intervals,timeline}.test.ts',
  'test/trust/**',
  'test/verify/{anchors,checkpoints,event-index,going-on,ids-away,resuming,same-report,sources}.test.ts',
  'test/verify/{action,packed,start}-table.test.ts',
];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const source = (path: string): string => file(`./src/${path}`);

/** Tests that replace modules or globals, or that flags of V8 matter to, share their process with no others. */
const ISOLATED = readdirSync(file('./test'), { recursive: true })
  .map((name) => `test/${String(name)}`)
  .filter(
    (name) =>
      name.endsWith('.test.ts') &&
      /\bvi\.(?:mock|doMock|stub|useFake)|setFlagsFromString|bin\/load/.test(
        readFileSync(file(name), 'utf8'),
      ),
  );

/** Tests call fsync many thousand times. On a file system in memory that takes no time, and means what it means elsewhere. */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= ROOM_BYTES ? memory : tmpdir();
}

/**
 * Where compiled sources are kept between runs: some are a third of the time that a few files of tests take. Vitest knows them by their
 * text and by this file, not by what the compiler is told.
 */
const COMPILED = file(
  `./node_modules/.experimental-vitest-cache/${createHash('sha256')
    .update(['tsconfig.json', 'test/tsconfig.json'].map((name) => readFileSync(file(`./${name}`))).join('\n'))
    .digest('hex')
    .slice(0, 16)}`,
);

const without = isWithoutFast ? [...OF_THE_FAST_PATH, ...NOT_OF_RECORDS] : [];

export default defineConfig({
  // Tests run from the sources, and `imports` of package.json names what is built.
  resolve: {
    alias: {
      '#platform': file('./test/platform/remembering.ts'),
      '#fast/line': source(isWithoutFast ? 'format/record/slow-line.ts' : 'fast/line.ts'),
      '#fast/step': source(isWithoutFast ? 'rules/verify/slow-step.ts' : 'fast/step.ts'),
    },
  },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...without, ...ISOLATED],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'isolated', include: ISOLATED, exclude: without } },
    ],
    // For tests that hang: how fast a machine is, and what else it does, decides nothing.
    testTimeout: MAX_TEST_MS,
    hookTimeout: MAX_TEST_MS,
    expect: { poll: { timeout: MAX_POLL_MS } },
    experimental: { fsModuleCache: true, fsModuleCachePath: COMPILED },
    setupFiles: ['./test/equal-bytes.ts'],
    pool: 'forks',
    // Two more than processors, for many wait for processes that they started, for threads or for timers.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    env: { TMPDIR: temporaryFolder() },
  },
});
