/** The signatures of a block, verified together: many of one key at a time take a part of what each takes alone. */

import { tryDecodeBase64url } from '../bytes/encoding.js';
import { BatchVerifier } from '../signature/batch-verifier.js';
import type { VerificationKey } from '../signature/backend.js';
import { eventMessage, isValidSignature } from '../signature/event-signature.js';
import { INVALID, NOT_COMPUTED, VALID } from './verdicts.js';

/** What the tables of all threads take together, in bytes, where there are not so many that each would have less than the other. */
const TABLE_BYTES = 64 * 1024 * 1024;
const MIN_TABLE_BYTES_OF_THREAD = 8 * 1024 * 1024;

/** A verdict, and where it belongs. */
export interface PlacedVerdict {
  readonly place: number;
  readonly verdict: number;
}

/** Signatures whose verdicts are waited for. */
export class SignatureQueue {
  readonly #verifier: BatchVerifier | undefined;
  #places: number[] = [];

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
    if (signature === undefined) return INVALID;
    this.#verifier.add(key, event, signature);
    this.#places.push(place);
    return NOT_COMPUTED;
  }

  /** The verdicts that were not given at once. @throws Error, an internal one, where two ways to compute one differ. */
  flush(): PlacedVerdict[] {
    const verdicts = this.#verifier?.flush() ?? [];
    const places = this.#places;
    this.#places = [];
    return places.map((place, index) => ({ place, verdict: verdicts[index] === 1 ? VALID : INVALID }));
  }
}
