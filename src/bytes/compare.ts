/** Whether two byte strings are equal. Not constant-time: nothing compared in northroot is secret. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}
