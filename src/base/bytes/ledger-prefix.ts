/**
 * The first bytes of a ledger as one SHA-256, so that a prefix verified once is recognised without parsing lines. Files are cut into
 * pieces, which any thread can hash in any order. The hash covers, for each file, the SHA-256 of each piece and the file's length
 * (8 bytes, big-endian): the same bytes divided otherwise have another hash.
 */

import { PIECE_BYTES, PIECE_HASH_BYTES } from './ledger-piece.js';
import { createSha256, type Hasher } from './sha256.js';
import { encodeLatin1 } from './text.js';

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

/** Hashes the files of a ledger sequentially. */
export class PrefixHasher {
  readonly #running: Hasher = createSha256();
  #piece: Hasher = createSha256();
  #files = 0;
  #bytes = 0;
  #isWithinLine = false;

  /** Starts the next file. */
  beginFile(): void {
    if (this.#files > 0) this.#endFile(this.#running);
    this.#piece = createSha256();
    this.#files += 1;
    this.#bytes = 0;
    this.#isWithinLine = false;
  }

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + PIECE_BYTES - (this.#bytes % PIECE_BYTES));
      this.#piece.update(part);
      this.#bytes += part.length;
      at += part.length;
      if (this.#bytes % PIECE_BYTES === 0) {
        this.#running.update(encodeLatin1(this.#piece.digestLatin1()));
        this.#piece = createSha256();
      }
    }
    if (bytes.length > 0) this.#isWithinLine = bytes.at(-1) !== NEWLINE;
  }

  /**
   * Adds whole pieces hashed elsewhere. More bytes of their file MUST follow, since their last byte is unknown here.
   *
   * @param hashes - 32 bytes each, concatenated.
   * @throws RangeError if the last piece is not whole
   */
  addPieces(hashes: Uint8Array): void {
    if (this.#bytes % PIECE_BYTES !== 0) throw new RangeError('the last piece is not whole');
    this.#running.update(hashes);
    this.#bytes += (hashes.length / PIECE_HASH_BYTES) * PIECE_BYTES;
    if (hashes.length > 0) this.#isWithinLine = true;
  }

  /** The prefix hashed so far; undefined before the first file and within a line. */
  prefix(): LedgerPrefix | undefined {
    if (this.#files === 0 || this.#isWithinLine) return undefined;
    const running = this.#running.copy();
    this.#endFile(running);
    return { hash: running.digestLatin1(), files: this.#files, bytes: this.#bytes };
  }

  #endFile(running: Hasher): void {
    if (this.#bytes % PIECE_BYTES !== 0) running.update(encodeLatin1(this.#piece.copy().digestLatin1()));
    running.update(lengthOf(this.#bytes));
  }
}

function lengthOf(bytes: number): Uint8Array {
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setBigUint64(0, BigInt(bytes));
  return length;
}
