/** Verifies the signatures of a block in batches: many of one key together cost a fraction of each alone. */

import { decodeSignatureAt, SIGNATURE_BYTES, SIGNATURE_CHARACTERS } from '../../base/bytes/base64url-at.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import type { VerificationKey } from '../../format/signature/backend.js';
import { eventMessage, isValidSignature } from '../../format/signature/event-signature.js';
import { BatchVerifier, MAX_WAITING } from '../signature/batch-verifier.js';
import { INVALID, NOT_COMPUTED, VALID } from './verdicts.js';

/** The memory for the tables of all threads together, in bytes; each has at least a minimum. */
const TABLE_BYTES = 64 * 1024 * 1024;
const MIN_TABLE_BYTES_OF_THREAD = 8 * 1024 * 1024;

export class SignatureQueue {
  readonly #verifier: BatchVerifier | undefined;
  /** Emptied by each flush. */
  readonly #places: number[] = [];
  #count = 0;
  /**
   * A ring with room for the maximum of pending signatures. A place is free when its signature is decided, at the latest when
   * `MAX_WAITING` others are pending: only a pending signature may take the next place.
   */
  readonly #room: Uint8Array[] = [];
  #next = 0;

  /**
   * @param usesTables - Whether to verify by tables and batches instead of the backend, with the same verdicts.
   * @param threads - How many threads of the process do so.
   * @param expected - How many signatures are to come, as far as is known.
   */
  constructor(usesTables: boolean, threads: number, expected = 0) {
    const tableBytes = Math.max(Math.floor(TABLE_BYTES / threads), MIN_TABLE_BYTES_OF_THREAD);
    this.#verifier = usesTables ? new BatchVerifier({ tableBytes, expected }) : undefined;
  }

  /**
   * @param event - The event's bytes. They MUST NOT change until the flush.
   * @param sig - base64url; any other text is no valid signature.
   * @param place - The index of the verdict.
   * @returns The verdict, or NOT_COMPUTED where {@link SignatureQueue.flush} writes it.
   */
  add(key: VerificationKey, event: Uint8Array, sig: string, place: number): number {
    if (this.#verifier === undefined)
      return isValidSignature(eventMessage(event), sig, key) ? VALID : INVALID;
    const signature = tryDecodeBase64url(sig);
    return signature === undefined ? INVALID : this.#enqueue(this.#verifier, key, event, signature, place);
  }

  /** The same for a signature whose text is `bytes[at, end)`. */
  addAt(
    key: VerificationKey,
    event: Uint8Array,
    bytes: Uint8Array,
    at: number,
    end: number,
    place: number,
  ): number {
    if (this.#verifier === undefined || end - at !== SIGNATURE_CHARACTERS)
      return this.add(key, event, decodeLatin1(bytes, at, end), place);
    const signature = (this.#room[this.#next] ??= new Uint8Array(SIGNATURE_BYTES));
    if (!decodeSignatureAt(bytes, at, signature)) return INVALID;
    this.#next = (this.#next + 1) % MAX_WAITING;
    return this.#enqueue(this.#verifier, key, event, signature, place);
  }

  #enqueue(
    verifier: BatchVerifier,
    key: VerificationKey,
    event: Uint8Array,
    signature: Uint8Array,
    place: number,
  ): number {
    verifier.add(key, event, signature);
    this.#places[this.#count] = place;
    this.#count += 1;
    return NOT_COMPUTED;
  }

  /**
   * Writes the pending verdicts.
   *
   * @throws Error, an internal one, where two ways to verify a signature differ.
   */
  flush(verdicts: number[]): void {
    if (this.#verifier === undefined) return;
    const given = this.#verifier.flush();
    for (let i = 0; i < this.#count; i += 1)
      verdicts[this.#places[i] as number] = given[i] === 1 ? VALID : INVALID;
    this.#count = 0;
  }
}
