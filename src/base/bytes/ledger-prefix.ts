/**
 * The bytes at the beginning of a ledger as one SHA-256, so that whoever has verified them once knows them again without looking at
 * lines. Each file is cut into pieces, which can be hashed in any order and by anybody; the hash is over the SHA-256 of each piece of
 * a file, and then the number of its bytes, 8 bytes, big-endian, for each file in turn. Read from its end, that says which files there
 * were: the same bytes divided otherwise have another hash.
 */

import { PIECE_BYTES, PIECE_HASH_BYTES } from './ledger-piece.js';
import { createSha256, type Hasher } from './sha256.js';
import { encodeLatin1 } from './text.js';

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
  /** Over the hashes of pieces, and lengths. */
  readonly #running: Hasher = createSha256();
  /** The piece that was begun: there is one wherever a file does not end with a whole piece. */
  #piece: Hasher = createSha256();
  #files = 0;
  #bytes = 0;
  #isWithinLine = false;

  /** What follows belongs to the next file. */
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
   * Takes whole pieces that somebody else hashed. More of their file has to follow: how it ends is not known of them.
   *
   * @param hashes - Of 32 bytes each, one behind the other. The pieces begin where one ends.
   */
  addPieces(hashes: Uint8Array): void {
    if (this.#bytes % PIECE_BYTES !== 0) throw new RangeError('the last piece is not whole');
    this.#running.update(hashes);
    this.#bytes += (hashes.length / PIECE_HASH_BYTES) * PIECE_BYTES;
    if (hashes.length > 0) this.#isWithinLine = true;
  }

  /** What was hashed so far; undefined where there was no file yet, or the last line has no end. */
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
