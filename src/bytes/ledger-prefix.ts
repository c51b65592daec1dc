/**
 * The bytes at the beginning of a ledger as one SHA-256, so that whoever has verified them once knows them again without looking at
 * lines. It is over the bytes of each file followed by their number, 8 bytes, big-endian: the same bytes divided otherwise into files
 * have another hash.
 */

import { createSha256, type Hasher } from './sha256.js';

/** The beginning of a ledger, up to the end of a line. */
export interface LedgerPrefix {
  /** A binary string, see the head of this file. */
  readonly hash: string;
  /** How many files it reaches into; at least one. */
  readonly files: number;
  /** How many bytes of the last of these belong to it. */
  readonly bytes: number;
}

const LENGTH_BYTES = 8;
const NEWLINE = 0x0a;

/** Hashes the files of a ledger, one after the other. */
export class PrefixHasher {
  readonly #running: Hasher = createSha256();
  #files = 0;
  #bytes = 0;
  #isWithinLine = false;

  /** What follows belongs to the next file. */
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

  /** What was hashed so far; undefined where there was no file yet, or the last line has no end. */
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
