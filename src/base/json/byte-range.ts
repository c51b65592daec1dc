/** The scanner keeps offsets as 32-bit integers. */
const MAX_OFFSET = 0x7fffffff;

/** @throws TypeError if `bytes` is no Uint8Array; RangeError if `[start, end)` is not a range of it or ends beyond 2 GiB */
export function assertByteRange(bytes: Uint8Array, start: number, end: number): void {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`expected a Uint8Array, found ${typeof bytes}`);
  const limit = Math.min(bytes.length, MAX_OFFSET);
  if (!(start >= 0 && start <= end && end <= limit))
    throw new RangeError(`expected a range within 0..${limit}, found ${start}..${end}`);
}
