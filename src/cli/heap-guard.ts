/**
 * Ends a command while there is still room to say so. When V8's heap is used up Node aborts with 134, which is no exit status of
 * northroot's (SPEC §8): what needs more memory than there is could not be decided.
 */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { NorthrootError } from '../base/error.js';
import { CommandError } from './command-error.js';

const INTERVAL_MS = 50;
/**
 * What must stay free, for the report of it all is still to be made: the more of the two. V8's limit counts some 48 MiB for what is new, which
 * what stays cannot use.
 */
const RESERVED_SHARE = 0.5;
const RESERVED_BYTES = 96 * 1024 * 1024;
/** Of a heap so small that little but this is left. */
const MOST_RESERVED = 0.65;

/**
 * Looks at the heap from time to time, while the command waits for its input. What is garbage does not count.
 *
 * @param onFull - Called once, with `OUT_OF_MEMORY`, when what is in use leaves too little.
 * @returns Ends the watch.
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

/** The collector is a function that V8 gives to contexts made after the flag is set. */
function exposeCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
