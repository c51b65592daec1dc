import { existsSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What a file system in memory must have free to be taken for temporary files: some tests write large ones. */
const ROOM_BYTES = 2 ** 30;

const MAX_TEST_MS = process.env['SLOW'] === '1' ? 3_600_000 : 300_000;

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

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** Tests call fsync many thousand times. On a file system in memory that takes no time, and means what it means elsewhere. */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= ROOM_BYTES ? memory : tmpdir();
}

export default defineConfig({
  // Tests run from the sources, and `imports` of package.json names what is built.
  resolve: {
    alias: {
      '#platform': source('base/platform/node.ts'),
      '#fast/line': source(isWithoutFast ? 'format/record/slow-line.ts' : 'fast/line.ts'),
      '#fast/step': source(isWithoutFast ? 'rules/verify/slow-step.ts' : 'fast/step.ts'),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: isWithoutFast ? OF_THE_FAST_PATH : [],
    // For tests that hang: how fast a machine is, and what else it does, decides nothing.
    testTimeout: MAX_TEST_MS,
    hookTimeout: MAX_TEST_MS,
    pool: 'forks',
    // Not one less, for what hands out the files has little to do.
    maxWorkers: availableParallelism(),
    env: { TMPDIR: temporaryFolder() },
  },
});
