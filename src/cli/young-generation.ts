/** Memory that V8 would keep for objects that live shortly. */

import { setFlagsFromString } from 'node:v8';

const INTERVAL_MS = 20;
/** To read less takes too little time for much to become of it. */
const MIN_BYTES = 8 * 1024 * 1024;
/** The last release of V8 that is known to have the flag: of one that it does not know, V8 complains on standard error. */
const MAX_VERSION = 13;

/**
 * Keeps the space for new objects of this thread as it is. To verify usual records makes few of them, but V8 doubles that space, up to
 * 48 MB, whenever it was filled a few times. Other threads have a limit of their own (`base/platform/node.ts`); for this one there is only the
 * flag, which V8 reads whenever the space may grow, and sets back whenever a thread begins: so it is set again and again.
 *
 * @param size - Of what is read, in bytes; undefined where nobody knows.
 * @returns Ends that.
 */
export function holdYoungGeneration(size = Infinity): () => void {
  if (size < MIN_BYTES || Number.parseInt(process.versions.v8, 10) > MAX_VERSION) return () => undefined;
  const timer = setInterval(() => setFlagsFromString('--semi-space-growth-factor=1'), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
