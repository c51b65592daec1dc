/** Well-formed UTF-8 (Unicode table 3-7, RFC 3629): no overlong forms, no surrogates, nothing past U+10FFFF. */

/** The length, 1 to 4, of the well-formed UTF-8 sequence in `bytes[at, end)`; 0 if there is none. */
export function utf8SequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at]!;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (at + length > end) return 0;
  const second = bytes[at + 1]!;
  // The second byte reveals overlong forms (E0, F0), surrogates (ED) and values past U+10FFFF (F4).
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return length;
}

/** The offset of the first byte in `[from, end)` that is not well-formed UTF-8, or -1. */
export function findInvalidUtf8(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end;) {
    const length = utf8SequenceLength(bytes, at, end);
    if (length === 0) return at;
    at += length;
  }
  return -1;
}

/** The length of the byte order mark of `bytes[start, end)`: 3, or 0 if there is none. */
export function byteOrderMarkLength(bytes: Uint8Array, start: number, end: number): 0 | 3 {
  return start + 3 <= end && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf
    ? 3
    : 0;
}
