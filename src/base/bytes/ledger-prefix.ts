/**
 * The first bytes of a ledger as one SHA-256, so that a prefix verified once is recognised without parsing lines. The hash covers, for
 * each file, its bytes and their number (8 bytes, big-endian): the same bytes divided otherwise have another hash.
 */

import { createSha256, type Hasher } from './sha256.js';

/** A prefix of a ledger that ends at the end of a line. */
export interface LedgerPrefix {
  /** A binary string. */
  readonly hash: string;
  /** The number of files it covers, the last perhaps in part; at least one. */
  readonly files: number;
  /** Its bytes in the last of these files. */
  readonly bytes: number;
}

const LENGTH_BYTES = 8;
const NEWLINE = 0x0a;

export class PrefixHasher {
  readonly #running: Hasher = createSha256();
  #files = 0;
  #bytes = 0;
  #isWithinLine = false;

  beginFile(): void {
    if (this.#files > 0) this.#running.update(lengthOf(this.#bytes));
    this.#files += 1;
    this.#bytes = 0;
    this.#isWithinLine = false;
  }

  update(bytes: Uint8Array): void {
    this.#running.update(bytes);
    this.#bytes += bytes.length;
    if (bytes.length > 0) this.#isWithinLine = bytes.at(-1) !== NEWLINE;
  }

  /** The prefix hashed so far; undefined before the first file and within a line. */
  prefix(): LedgerPrefix | undefined {
    if (this.#files === 0 || this.#isWithinLine) return undefined;
    const hash = this.#running.copy().update(lengthOf(this.#bytes)).digestLatin1();
    return { hash, files: this.#files, bytes: this.#bytes };
  }
}

function lengthOf(bytes: number): Uint8Array {
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setBigUint64(0, BigInt(bytes));
  return length;
}
