/** Allocation: zeroed, uninitialised, and concatenated bytes. */
export { allocateBytes, allocateScratch } from '#platform';

/** The parts as one array. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
