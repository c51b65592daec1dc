/** Whether two byte strings are equal. Not constant-time: nothing compared in northroot is secret. */
export { equalBytes } from '#platform';

/** Whether `length` bytes at two offsets are equal. For few bytes, where a loop costs less than a native call. */
export function hasSameBytes(a: Uint8Array, at: number, b: Uint8Array, bAt: number, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (a[at + i] !== b[bAt + i]) return false;
  return true;
}

/** Whether `text.slice(from)`, ASCII, is at `at`. */
export function isTextAt(bytes: Uint8Array, at: number, text: string, from = 0): boolean {
  for (let i = from; i < text.length; i += 1) if (bytes[at + i - from] !== text.charCodeAt(i)) return false;
  return true;
}
