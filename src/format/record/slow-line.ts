/** `#fast/line` in a build without `fast/`: no line is scanned, so that every line is examined fully. */

import type { ScannedFacts } from './examine-line.js';

/** Declines. */
export function glanceAt(_line: Uint8Array): ScannedFacts | undefined {
  return undefined;
}

/** Declines. */
export function readScannedLine(_line: Uint8Array): ScannedFacts | undefined {
  return undefined;
}
