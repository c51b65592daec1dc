import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What a file system in memory must have free to be taken for temporary files: some tests write large ones. */
const ROOM_BYTES = 2 ** 30;

/** Tests call fsync many thousand times. On a file system in memory that takes no time, and means what it means elsewhere. */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= ROOM_BYTES ? memory : tmpdir();
}

export default defineConfig({
  // Tests run from the sources, and `imports` of package.json names what is built.
  resolve: { alias: { '#platform': fileURLToPath(new URL('./src/platform/node.ts', import.meta.url)) } },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 120_000,
    pool: 'forks',
    env: { TMPDIR: temporaryFolder() },
  },
});
