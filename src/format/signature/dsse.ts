/**
 * DSSE, the Dead Simple Signing Envelope (protocol v1.0.2): the bytes that a signature of an event covers (SPEC §4), and the
 * JSON envelope in which other tools carry such a signature. A record keeps the same signatures beside the event itself, in
 * base64url, and those of P-256 keys as r‖s where envelopes have DER; nothing is lost between the two.
 */

import { allocateScratch } from '../../base/bytes/concat.js';
import { encodeBase64, encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import type { KeyAlgorithm } from '../key/key-form.js';
import { tryDecodeEcdsaDer, tryEncodeEcdsaDer } from './ecdsa-der.js';

/** The DSSE payload type of an event's canonical bytes. */
export const PAYLOAD_TYPE = 'application/vnd.northroot.event+json';

/** A signature as a record carries it (SPEC §4): the key's thumbprint, and the signature in base64url without padding. */
export interface EventSignature {
  readonly keyid: string;
  readonly sig: string;
}

/** The standard JSON envelope, with base64 in its standard alphabet, padded. */
export interface DsseEnvelope {
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: readonly EventSignature[];
}

/** What {@link fromDsseEnvelope} reads. */
export interface SignedEvent {
  /** The bytes that were signed: not yet known to be an event, nor canonical. */
  readonly eventBytes: Uint8Array;
  /** In their order; `keyid` is empty where the envelope has none (DSSE: it is only a hint). */
  readonly signatures: readonly EventSignature[];
}

/** A record's line is no longer (SPEC §4), so neither is an event in it. */
export const MAX_PAYLOAD_BYTES = 65_535;
/** As many as a record has at most (SPEC §4). */
export const MAX_SIGNATURES = 16;
/** Both algorithms of SPEC §5 have 64 bytes, 88 characters; an envelope may hold others, which count as unverified. */
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

/** What the PAE of a body of so many bytes has before the body. */
export function preAuthHead(payloadType: string, payloadLength: number): Uint8Array {
  const typeLength = encodeUtf8(payloadType).length;
  return encodeUtf8(`DSSEv1 ${typeLength} ${payloadType} ${payloadLength} `);
}

/** The algorithm of the key with a keyid; `undefined` where the key is not known. */
export type FindAlgorithm = (keyid: string) => KeyAlgorithm | undefined;

/**
 * The standard DSSE envelope of an event and its signatures.
 *
 * @param algorithmOf - Tells the P-256 keys, whose signatures of 64 bytes become DER. Those by keys that it does not know stay as
 *   they are.
 * @throws RangeError above {@link MAX_PAYLOAD_BYTES} or {@link MAX_SIGNATURES}, or when a `sig` is not base64url
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
 * Reads an envelope, given as the value of its JSON, with base64 in either alphabet, padded or not. Members that are not
 * DSSE's are ignored, as it demands. No signature is verified.
 *
 * @param algorithmOf - Tells the P-256 keys, whose signatures must be DER, strictly, and become r‖s. Those by keys that it does not
 *   know stay as they are.
 * @throws NorthrootError `ENVELOPE_MALFORMED`; `ENVELOPE_UNSUPPORTED` for another payload type than {@link PAYLOAD_TYPE}
 */
export function fromDsseEnvelope(envelope: unknown, algorithmOf: FindAlgorithm): SignedEvent {
  if (!isObject(envelope)) throw refuse('an object', '');
  const { payload, payloadType, signatures } = envelope;
  if (typeof payloadType !== 'string') throw refuse('a string', '/payloadType');
  if (payloadType !== PAYLOAD_TYPE) {
    throw new NorthrootError(
      'ENVELOPE_UNSUPPORTED',
      `expected the payload type ${PAYLOAD_TYPE}, found another`,
    );
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

/** Decodes either alphabet of RFC 4648, but not a mixture, padded fully or not at all. */
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
