/**
 * Whether a signature of an event is valid (SPEC §4, §5): a question of the event's bytes, the signature and the key's bytes, which can
 * be answered anywhere and in any order. Whether the key may sign there is another one, for `trust/` and the verification in order.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeLatin1, writeLatin1 } from '../../base/bytes/text.js';
import type { VerificationKey } from './backend.js';
import { PAYLOAD_TYPE, preAuthEncoding } from './dsse.js';

/** The message that signatures of an event are of. @param eventBytes - The event's canonical bytes, ids included. */
export function eventMessage(eventBytes: Uint8Array): Uint8Array {
  return preAuthEncoding(PAYLOAD_TYPE, eventBytes);
}

const HEAD_START = encodeLatin1(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} `);
const MAX_LENGTH_DIGITS = 16;
/** So much longer than its event a message is at most. */
export const MAX_HEAD_BYTES = HEAD_START.length + MAX_LENGTH_DIGITS + 1;
/** Free when the next message is written. */
let scratch = allocateBytes(0);

/** The same, in memory that the next message is written to. */
export function writeEventMessage(eventBytes: Uint8Array): Uint8Array {
  const room = MAX_HEAD_BYTES + eventBytes.length;
  if (scratch.length < room) {
    scratch = allocateBytes(Math.max(room, 8_192));
    scratch.set(HEAD_START);
  }
  const length = `${eventBytes.length} `;
  const start = HEAD_START.length + length.length;
  writeLatin1(scratch, length, HEAD_START.length);
  scratch.set(eventBytes, start);
  return scratch.subarray(0, start + eventBytes.length);
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
