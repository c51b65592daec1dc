/**
 * Whether a signature of an event is valid (SPEC §4, §5): a question of the event's bytes, the signature and the key's bytes, which can
 * be answered anywhere and in any order. Whether the key may sign there is another one, for `trust/` and the verification in order.
 */

import { tryDecodeBase64url } from '../bytes/encoding.js';
import { PAYLOAD_TYPE, preAuthEncoding } from './dsse.js';
import type { VerificationKey } from './backend.js';

/** The message that signatures of an event are of. @param eventBytes - The event's canonical bytes, ids included. */
export function eventMessage(eventBytes: Uint8Array): Uint8Array {
  return preAuthEncoding(PAYLOAD_TYPE, eventBytes);
}

/**
 * Whether a signature is valid.
 *
 * @param message - See {@link eventMessage}.
 * @param sig - base64url; any other text is no valid signature.
 */
export function isValidSignature(message: Uint8Array, sig: string, key: VerificationKey): boolean {
  const signature = tryDecodeBase64url(sig);
  return signature !== undefined && key.verify(message, signature);
}
