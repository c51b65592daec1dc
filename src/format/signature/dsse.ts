/**
 * DSSE, the Dead Simple Signing Envelope (protocol v1.0.2): the signed bytes of an event (SPEC §4), and the JSON envelope of other tools.
 * Records have the same signatures in base64url, P-256 ones as r‖s where envelopes have DER; the conversion is lossless.
 */

import { allocateScratch } from '../../base/bytes/concat.js';
import { encodeBase64, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { KeyAlgorithm } from '../key/key-form.js';
import { tryEncodeEcdsaDer } from './ecdsa-der.js';

/** The DSSE payload type of an event's canonical bytes. */
export const PAYLOAD_TYPE = 'application/vnd.northroot.event+json';

/** A signature of a record (SPEC §4): the key's thumbprint, and the signature in base64url without padding. */
export interface EventSignature {
  readonly keyid: string;
  readonly sig: string;
}

/** The standard JSON envelope, in padded standard base64. */
export interface DsseEnvelope {
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: readonly EventSignature[];
}

/** The limit of a record's line (SPEC §4). */
export const MAX_PAYLOAD_BYTES = 65_535;
/** The limit of a record (SPEC §4). */
export const MAX_SIGNATURES = 16;

/** PAE(type, body) of DSSE: `DSSEv1 SP LEN(type) SP type SP LEN(body) SP body`, lengths in bytes of UTF-8. */
export function preAuthEncoding(payloadType: string, payload: Uint8Array): Uint8Array {
  const head = preAuthHead(payloadType, payload.length);
  const bytes = allocateScratch(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}

/** The PAE up to the body. */
export function preAuthHead(payloadType: string, payloadLength: number): Uint8Array {
  const typeLength = encodeUtf8(payloadType).length;
  return encodeUtf8(`DSSEv1 ${typeLength} ${payloadType} ${payloadLength} `);
}

/** The algorithm of the key with a keyid; `undefined` for an unknown key. */
export type FindAlgorithm = (keyid: string) => KeyAlgorithm | undefined;

/**
 * The standard DSSE envelope of an event and its signatures.
 *
 * @param algorithmOf - Signatures by P-256 keys become DER; those by unknown keys are copied.
 * @throws RangeError above {@link MAX_PAYLOAD_BYTES} or {@link MAX_SIGNATURES}, or if a `sig` is not base64url
 */
export function toDsseEnvelope(
  eventBytes: Uint8Array,
  signatures: readonly EventSignature[],
  algorithmOf: FindAlgorithm,
): DsseEnvelope {
  if (eventBytes.length > MAX_PAYLOAD_BYTES)
    throw new RangeError(`expected at most ${MAX_PAYLOAD_BYTES} bytes of event`);
  if (signatures.length > MAX_SIGNATURES)
    throw new RangeError(`expected at most ${MAX_SIGNATURES} signatures`);
  return {
    payload: encodeBase64(eventBytes),
    payloadType: PAYLOAD_TYPE,
    signatures: signatures.map(({ keyid, sig }) => {
      const bytes = tryDecodeBase64url(sig);
      if (bytes === undefined) throw new RangeError('expected sig in base64url');
      const der = algorithmOf(keyid) === 'p256' ? tryEncodeEcdsaDer(bytes) : undefined;
      return { keyid, sig: encodeBase64(der ?? bytes) };
    }),
  };
}
