/** Ends a command before its heap is full. Node would abort with 134, which is not an exit status of SPEC §8; this ends with 2. */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { NorthrootError } from '../base/error.js';
import { CommandError } from './command-error.js';

const INTERVAL_MS = 50;
/** What must stay free to write the report, the larger of the two. V8's limit includes some 48 MiB for new objects. */
const RESERVED_SHARE = 0.5;
const RESERVED_BYTES = 96 * 1024 * 1024;
/** The largest share that is reserved of a small heap. */
const MOST_RESERVED = 0.65;

/**
 * Checks the heap periodically. Garbage does not count.
 *
 * @param onFull - Called once, with `OUT_OF_MEMORY`, if too little is free.
 * @returns stops the checks
 */
export function watchHeap(onFull: (error: NorthrootError) => void): () => void {
  let collect: (() => void) | undefined;
  const timer = setInterval(() => {
    if (!isFull()) return;
    collect ??= exposeCollector();
    collect();
    if (!isFull()) return;
    clearInterval(timer);
    const limit = Math.round(getHeapStatistics().heap_size_limit / 2 ** 20);
    onFull(
      new CommandError('OUT_OF_MEMORY', `${limit} MiB of memory are not enough for this ledger`, {
        hint: 'NODE_OPTIONS=--max-old-space-size=8192 gives 8 GiB',
      }),
    );
  }, INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function isFull(): boolean {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  const reserved = Math.max(limit * RESERVED_SHARE, Math.min(RESERVED_BYTES, limit * MOST_RESERVED));
  return used > limit - reserved;
}

/** V8 exposes its collector to contexts made after the flag is set. */
function exposeCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
