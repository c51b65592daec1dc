/** Garbage that is collected when a test says so. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/** What is still used after a collection, in bytes. */
export function keptBytes(): number {
  collector()();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Collects over and over while work goes on: what only a collected object would do is not done. */
export async function collectingGarbage<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(collector(), 20);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
