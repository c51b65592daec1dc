import { existsSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What a file system in memory must have free to be taken for temporary files: some tests write large ones. */
const ROOM_BYTES = 2 ** 30;

const MAX_TEST_MS = process.env['SLOW'] === '1' ? 3_600_000 : 300_000;

/** Tests call fsync many thousand times. On a file system in memory that takes no time, and means what it means elsewhere. */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= ROOM_BYTES ? memory : tmpdir();
}

export default defineConfig({
  // Tests run from the sources, and `imports` of package.json names what is built.
  resolve: { alias: { '#platform': fileURLToPath(new URL('./src/base/platform/node.ts', import.meta.url)) } },
  test: {
    include: ['test/**/*.test.ts'],
    // For tests that hang: how fast a machine is, and what else it does, decides nothing.
    testTimeout: MAX_TEST_MS,
    hookTimeout: MAX_TEST_MS,
    pool: 'forks',
    // Not one less, for what hands out the files has little to do.
    maxWorkers: availableParallelism(),
    env: { TMPDIR: temporaryFolder() },
  },
});
