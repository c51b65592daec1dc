/**
 * DSSE, the Dead Simple Signing Envelope (protocol v1.0.2): the signed bytes of an event (SPEC §4), and the JSON envelope of other tools.
 * Records have the same signatures in base64url, P-256 ones as r‖s where envelopes have DER; the conversion is lossless.
 */

import { allocateScratch } from '../../base/bytes/concat.js';
import { encodeBase64, encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import type { KeyAlgorithm } from '../key/key-form.js';
import { tryDecodeEcdsaDer, tryEncodeEcdsaDer } from './ecdsa-der.js';

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

/** The result of {@link fromDsseEnvelope}. */
export interface SignedEvent {
  /** The signed bytes: not checked to be an event or canonical. */
  readonly eventBytes: Uint8Array;
  /** In order; `keyid`, a hint in DSSE, is empty if the envelope has none. */
  readonly signatures: readonly EventSignature[];
}

/** The limit of a record's line (SPEC §4). */
export const MAX_PAYLOAD_BYTES = 65_535;
/** The limit of a record (SPEC §4). */
export const MAX_SIGNATURES = 16;
/** The algorithms of SPEC §5 have 88 characters; signatures of others count as unverified. */
const MAX_SIGNATURE_TEXT = 8_192;
const MAX_KEYID_TEXT = 1_024;

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

/**
 * Reads the parsed JSON of an envelope, with base64 in either alphabet, padded or not. Unknown members are ignored, as DSSE requires.
 * No signature is verified.
 *
 * @param algorithmOf - Signatures by P-256 keys MUST be strict DER and become r‖s; those by unknown keys are copied.
 * @throws NorthrootError `ENVELOPE_MALFORMED`; `ENVELOPE_UNSUPPORTED` for another payload type than {@link PAYLOAD_TYPE}
 */
export function fromDsseEnvelope(envelope: unknown, algorithmOf: FindAlgorithm): SignedEvent {
  if (!isObject(envelope)) throw refuse('an object', '');
  const { payload, payloadType, signatures } = envelope;
  if (typeof payloadType !== 'string') throw refuse('a string', '/payloadType');
  if (payloadType !== PAYLOAD_TYPE) {
    const message = `expected the payload type ${PAYLOAD_TYPE}, found another`;
    throw new NorthrootError('ENVELOPE_UNSUPPORTED', message);
  }
  const eventBytes = readBase64(payload, Math.ceil(MAX_PAYLOAD_BYTES / 3) * 4);
  if (eventBytes === undefined) throw refuse(`base64 of at most ${MAX_PAYLOAD_BYTES} bytes`, '/payload');
  if (!Array.isArray(signatures) || signatures.length > MAX_SIGNATURES) {
    throw refuse(`an array of at most ${MAX_SIGNATURES} signatures`, '/signatures');
  }
  return { eventBytes, signatures: signatures.map((each, index) => readSignature(each, index, algorithmOf)) };
}

function readSignature(signature: unknown, index: number, algorithmOf: FindAlgorithm): EventSignature {
  const pointer = `/signatures/${index}`;
  if (!isObject(signature)) throw refuse('an object', pointer);
  const { keyid = '', sig } = signature;
  if (typeof keyid !== 'string' || keyid.length > MAX_KEYID_TEXT)
    throw refuse('a short string', `${pointer}/keyid`);
  const bytes = readBase64(sig, MAX_SIGNATURE_TEXT);
  if (bytes === undefined) throw refuse('base64', `${pointer}/sig`);
  if (algorithmOf(keyid) !== 'p256') return { keyid, sig: encodeBase64url(bytes) };
  const pair = tryDecodeEcdsaDer(bytes);
  if (pair === undefined) throw refuse('the DER of an ECDSA signature', `${pointer}/sig`);
  return { keyid, sig: encodeBase64url(pair) };
}

/** Decodes either alphabet of RFC 4648, unmixed, padded fully or not at all. */
function readBase64(text: unknown, limit: number): Uint8Array | undefined {
  if (typeof text !== 'string' || text.length > limit) return undefined;
  if (/[+/]/.test(text) && /[-_]/.test(text)) return undefined;
  const bare = text.replace(/={1,2}$/, '');
  if (bare.length !== text.length && text.length % 4 !== 0) return undefined;
  return tryDecodeBase64url(bare.replaceAll('+', '-').replaceAll('/', '_'));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(expected: string, pointer: string): NorthrootError {
  const place = pointer === '' ? 'as a DSSE envelope' : `at ${pointer} of a DSSE envelope`;
  return new NorthrootError('ENVELOPE_MALFORMED', `expected ${expected} ${place}, found other`);
}
