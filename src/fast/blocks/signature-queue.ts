/** The signatures of a block, verified together: many of one key at a time take a part of what each takes alone. */

import { decodeSignatureAt, SIGNATURE_BYTES, SIGNATURE_CHARACTERS } from '../../base/bytes/base64url-at.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import type { VerificationKey } from '../../format/signature/backend.js';
import { eventMessage, isValidSignature } from '../../format/signature/event-signature.js';
import { BatchVerifier, MAX_WAITING } from '../signature/batch-verifier.js';
import { INVALID, NOT_COMPUTED, VALID } from './verdicts.js';

/** What the tables of all threads take together, in bytes, where there are not so many that each would have less than the other. */
const TABLE_BYTES = 64 * 1024 * 1024;
const MIN_TABLE_BYTES_OF_THREAD = 8 * 1024 * 1024;

/** Signatures whose verdicts are waited for. */
export class SignatureQueue {
  readonly #verifier: BatchVerifier | undefined;
  /** Free at each flush. */
  readonly #places: number[] = [];
  #count = 0;
  /**
   * Room for as many signatures as wait at most, used in turn. A place is free again when the signature in it is decided: at the
   * latest when `MAX_WAITING` others wait, so only a signature that waits may take the next one.
   */
  readonly #room: Uint8Array[] = [];
  #next = 0;

  /**
   * @param usesTables - Whether they may be verified otherwise than by the backend of their keys, to the same verdict.
   * @param threads - How many there are that do so, in one process.
   */
  constructor(usesTables: boolean, threads: number) {
    const tableBytes = Math.max(Math.floor(TABLE_BYTES / threads), MIN_TABLE_BYTES_OF_THREAD);
    this.#verifier = usesTables ? new BatchVerifier({ tableBytes }) : undefined;
  }

  /**
   * @param event - The event's bytes, unchanged until the flush.
   * @param sig - base64url; any other text is no valid signature.
   * @param place - Where the verdict belongs.
   * @returns The verdict, or NOT_COMPUTED where {@link SignatureQueue.flush} gives it.
   */
  add(key: VerificationKey, event: Uint8Array, sig: string, place: number): number {
    if (this.#verifier === undefined) {
      return isValidSignature(eventMessage(event), sig, key) ? VALID : INVALID;
    }
    const signature = tryDecodeBase64url(sig);
    return signature === undefined ? INVALID : this.#enqueue(this.#verifier, key, event, signature, place);
  }

  /** The same of a signature whose text stands at `bytes[at, end)`. */
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
   * Puts the verdicts that were not given at once into their places.
   *
   * @throws Error, an internal one, where two ways to compute one differ.
   */
  flush(verdicts: number[]): void {
    if (this.#verifier === undefined) return;
    const given = this.#verifier.flush();
    for (let i = 0; i < this.#count; i += 1)
      verdicts[this.#places[i] as number] = given[i] === 1 ? VALID : INVALID;
    this.#count = 0;
  }
}
