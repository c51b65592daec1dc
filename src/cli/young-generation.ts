/** Limits V8's space for short-lived objects. */

import { setFlagsFromString } from 'node:v8';

const INTERVAL_MS = 20;
/** Smaller inputs are read before the space grows much. */
const MIN_BYTES = 8 * 1024 * 1024;
/** The last release of V8 known to have the flag; V8 reports unknown flags on standard error. */
const MAX_VERSION = 13;

/**
 * Keeps this thread's space for new objects from growing: V8 would double it, up to 48 MB, though the fast path makes few objects. Other
 * threads have a limit (`base/platform/node.ts`). V8 resets the flag whenever a thread starts, so it is set repeatedly.
 *
 * @param size - The size of the input in bytes, if known.
 * @returns stops that
 */
export function holdYoungGeneration(size = Infinity): () => void {
  if (size < MIN_BYTES || Number.parseInt(process.versions.v8, 10) > MAX_VERSION) return () => undefined;
  const timer = setInterval(() => setFlagsFromString('--semi-space-growth-factor=1'), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
