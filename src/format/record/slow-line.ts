/** `#fast/line` in a build without `fast/`: both functions decline, so that every line is examined fully. */

import type { ScannedFacts } from './examine-line.js';

export function glanceAt(_line: Uint8Array): ScannedFacts | undefined {
  return undefined;
}

export function readScannedLine(_line: Uint8Array): ScannedFacts | undefined {
  return undefined;
}
