/** Whether two byte strings are equal. Not constant-time: nothing compared in northroot is secret. */
export { equalBytes } from '#platform';

/** Whether `length` bytes at two places are the same. For a few bytes, which a loop compares at less cost than a call. */
export function hasSameBytes(a: Uint8Array, at: number, b: Uint8Array, bAt: number, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (a[at + i] !== b[bAt + i]) return false;
  return true;
}

/** Whether `text`, ASCII, stands at a place; of a text its characters from `from` on. */
export function isTextAt(bytes: Uint8Array, at: number, text: string, from = 0): boolean {
  for (let i = from; i < text.length; i += 1) if (bytes[at + i - from] !== text.charCodeAt(i)) return false;
  return true;
}
