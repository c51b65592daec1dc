/**
 * Verifies signatures of events (SPEC §4, §5) from the event's bytes, the signature and the key alone, in any order. Whether the key may
 * sign is decided by `rules/trust/` and the verification in order.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeLatin1, writeLatin1 } from '../../base/bytes/text.js';
import type { VerificationKey } from './backend.js';
import { PAYLOAD_TYPE, preAuthEncoding } from './dsse.js';

/** The signed message of an event's canonical bytes, ids included. */
export function eventMessage(eventBytes: Uint8Array): Uint8Array {
  return preAuthEncoding(PAYLOAD_TYPE, eventBytes);
}

const HEAD_START = encodeLatin1(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} `);
const MAX_LENGTH_DIGITS = 16;
/** The most bytes by which a message is longer than its event. */
export const MAX_HEAD_BYTES = HEAD_START.length + MAX_LENGTH_DIGITS + 1;
let scratch = allocateBytes(0);

/** {@link eventMessage}, in memory that the next call overwrites. */
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

/** Whether `sig`, base64url, is a valid signature of an {@link eventMessage}; other text is not. */
export function isValidSignature(message: Uint8Array, sig: string, key: VerificationKey): boolean {
  const signature = tryDecodeBase64url(sig);
  return signature !== undefined && key.verify(message, signature);
}
