/** Entry bundles (https://c2sp.org/tlog-tiles): up to 256 entries, each a line without `\n` after its length as a big-endian uint16. */

import type { Fault } from '../../base/fault.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import { TILE_WIDTH } from './tile-path.js';

const LENGTH_BYTES = 2;
const NEWLINE = 0x0a;

export function maxBundleBytes(width: number): number {
  return width * (LENGTH_BYTES + MAX_LINE_BYTES);
}

export class BundleBuilder {
  #bytes = Buffer.alloc(64 * 1024);
  #length = 0;
  #width = 0;

  get width(): number {
    return this.#width;
  }

  /** @throws RangeError for an entry of more than 65,535 bytes, or a full bundle */
  add(entry: Uint8Array): void {
    if (entry.length > MAX_LINE_BYTES) throw new RangeError(`an entry has at most ${MAX_LINE_BYTES} bytes`);
    if (this.#width === TILE_WIDTH) throw new RangeError('the bundle is full');
    const end = this.#length + LENGTH_BYTES + entry.length;
    if (end > this.#bytes.length) {
      const grown = Buffer.alloc(2 * end);
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#bytes.writeUInt16BE(entry.length, this.#length);
    this.#bytes.set(entry, this.#length + LENGTH_BYTES);
    this.#length = end;
    this.#width += 1;
  }

  /** Valid until the next call. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    this.#width = 0;
  }
}

export interface DecodedBundle {
  /** Views into the bundle. */
  readonly entries: readonly Uint8Array[];
  /** The offset after each entry. */
  readonly ends: readonly number[];
  /** Why the bundle does not have exactly the requested entries. */
  readonly fault?: Fault<'TILE_MISMATCH'>;
}

/** Decodes `width` entries. @param mayGoOn - Whether more may follow, as in a full bundle read for a partial one */
export function decodeBundle(bytes: Uint8Array, width: number, mayGoOn = false): DecodedBundle {
  const entries: Uint8Array[] = [];
  const ends: number[] = [];
  const stop = (expected: string, actual: string): DecodedBundle => ({
    entries,
    ends,
    fault: { code: 'TILE_MISMATCH', expected, actual },
  });
  let at = 0;
  while (entries.length < width) {
    const rest = bytes.length - at;
    if (rest === 0) return stop(`${width} entries`, String(entries.length));
    if (rest < LENGTH_BYTES) return stop(`the length of entry ${entries.length} in 2 bytes`, `${rest} byte`);
    const length = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
    const start = at + LENGTH_BYTES;
    if (length === 0) return stop(`a line in entry ${entries.length}`, 'nothing');
    if (start + length > bytes.length)
      return stop(`${length} bytes of entry ${entries.length}`, `${bytes.length - start}`);
    const entry = bytes.subarray(start, start + length);
    // As lines it would be two, neither of which is in the tree.
    if (entry.includes(NEWLINE)) return stop(`one line in entry ${entries.length}`, 'a newline inside it');
    entries.push(entry);
    at = start + length;
    ends.push(at);
  }
  if (!mayGoOn && at < bytes.length) return stop(`${width} entries`, `${bytes.length - at} bytes more`);
  return { entries, ends };
}
