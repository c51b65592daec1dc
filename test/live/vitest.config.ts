import { defineConfig } from 'vitest/config';

/** One agent at a time: each takes a processor, and a port where it cannot have a network of its own. */
export default defineConfig({
  test: {
    include: ['test/live/*.live.ts'],
    testTimeout: 900_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
