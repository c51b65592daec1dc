/** Collects garbage over and over while work goes on: what only a collected object would do is not done. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export async function collectingGarbage<T>(work: Promise<T>): Promise<T> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const timer = setInterval(collect, 20);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
