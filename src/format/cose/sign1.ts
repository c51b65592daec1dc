/**
 * Strict COSE_Sign1 (RFC 9052 §4.2) with Ed25519 (EdDSA, -8) and P-256 (ES256, -7): deterministic CBOR, tag 18 or none, the key's
 * algorithm among the protected headers, no label twice, and no critical header that is not understood. Other unprotected headers,
 * countersignatures included, are ignored.
 */

import { decodeCbor, encodeCbor } from '../../base/cbor/codec.js';
import { type CborKey, type CborMap, type CborValue, TaggedCbor } from '../../base/cbor/value.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import type { KeyAlgorithm } from '../key/key-form.js';
import type { VerificationKey } from '../signature/backend.js';
import type { Signer } from '../signature/signer.js';

export const COSE_SIGN1_TAG = 18;

/** Header labels (RFC 9052 §3.1). */
export const COSE_HEADER = { alg: 1, crit: 2, contentType: 3, kid: 4 } as const;

/** Algorithms (RFC 9053 §2). */
const COSE_ALGORITHM = { ES256: -7, EdDSA: -8 } as const;

/** A decoded COSE_Sign1; its signature is not verified. */
export interface CoseSign1 {
  /** The protected headers as signed. */
  readonly protectedBytes: Uint8Array;
  readonly protectedHeaders: CborMap;
  readonly unprotectedHeaders: CborMap;
  /** Undefined if detached. */
  readonly payload: Uint8Array | undefined;
  readonly signature: Uint8Array;
  /** Among the protected headers. */
  readonly alg: number;
}

type CoseFault = Fault<'COSE_MALFORMED'>;
type CoseDecoded = Result<CoseSign1, CoseFault>;

interface CoseSignOptions {
  /** Protected headers beside the algorithm. */
  readonly protectedHeaders?: CborMap;
  readonly unprotectedHeaders?: CborMap;
  /** Leaves the payload out of the message; the verifier must have it. */
  readonly detached?: boolean;
  /** Signed, but not in the message. */
  readonly externalAad?: Uint8Array;
}

/** Signed data that is not in the message. */
interface CoseVerifyOptions {
  readonly payload?: Uint8Array;
  readonly externalAad?: Uint8Array;
}

const TAGS: ReadonlySet<number> = new Set([COSE_SIGN1_TAG]);
const NOTHING = new Uint8Array();

/**
 * Signs a payload.
 *
 * @param signer - With an Ed25519 or P-256 key.
 * @throws RangeError for an ML-DSA-44 key, and for headers with `alg` or a duplicate label
 */
export function signCoseSign1(
  payload: Uint8Array,
  signer: Signer,
  options: CoseSignOptions = {},
): Uint8Array {
  const alg = algorithmOf(signer.publicKey.alg);
  if (alg === undefined) throw new RangeError('expected an ed25519 or p256 key to sign COSE');
  const { protectedHeaders = new Map(), unprotectedHeaders = new Map(), detached = false } = options;
  const all = [COSE_HEADER.alg, ...protectedHeaders.keys(), ...unprotectedHeaders.keys()];
  if (new Set<CborKey>(all).size < all.length) throw new RangeError('expected each COSE header once');
  const headers: CborMap = new Map<CborKey, CborValue>([[COSE_HEADER.alg, alg], ...protectedHeaders]);
  const protectedBytes = encodeCbor(headers);
  const signature = signer.sign(toBeSigned(protectedBytes, payload, options.externalAad));
  return encodeCbor(
    new TaggedCbor(COSE_SIGN1_TAG, [
      protectedBytes,
      unprotectedHeaders,
      detached ? null : payload,
      signature,
    ]),
  );
}

/**
 * Decodes a COSE_Sign1, tagged or not.
 *
 * @param understood - Labels that may be critical, beside those of {@link COSE_HEADER}.
 */
export function decodeCoseSign1(
  bytes: Uint8Array,
  understood: ReadonlySet<CborKey> = new Set(),
): CoseDecoded {
  const decoded = decodeCbor(bytes, TAGS);
  if (!decoded.ok) return fail({ ...decoded.fault, code: 'COSE_MALFORMED' });
  return decodeCoseValue(decoded.value, understood);
}

/** {@link decodeCoseSign1} of a decoded value. */
export function decodeCoseValue(value: CborValue, understood: ReadonlySet<CborKey> = new Set()): CoseDecoded {
  const parts = value instanceof TaggedCbor ? value.value : value;
  if (!isArray(parts) || parts.length !== 4) return malformed('an array of four', 'another item');
  const [protectedBytes, unprotectedHeaders, payload, signature] = parts;
  if (!(protectedBytes instanceof Uint8Array)) return malformed('protected headers as bytes', 'another item');
  if (!(unprotectedHeaders instanceof Map)) return malformed('a map of unprotected headers', 'another item');
  if (payload !== null && !(payload instanceof Uint8Array))
    return malformed('a payload as bytes, or null', 'another item');
  if (!(signature instanceof Uint8Array)) return malformed('a signature as bytes', 'another item');
  const inside = protectedBytes.length === 0 ? succeed<CborValue>(new Map()) : decodeCbor(protectedBytes);
  if (!inside.ok) {
    const { expected, actual, offset } = inside.fault;
    return malformed(`${expected} in the protected headers`, `${actual} at byte ${offset} of them`);
  }
  if (!(inside.value instanceof Map)) return malformed('a map of protected headers', 'another item');
  const headers = {
    protectedHeaders: inside.value as CborMap,
    unprotectedHeaders: unprotectedHeaders as CborMap,
  };
  const fault = checkHeaders(headers.protectedHeaders, headers.unprotectedHeaders, understood);
  if (fault !== undefined) return fail(fault);
  return succeed({
    protectedBytes,
    ...headers,
    payload: payload ?? undefined,
    signature,
    alg: headers.protectedHeaders.get(COSE_HEADER.alg) as number,
  });
}

/**
 * Whether the signature is valid by the key. The message MUST name the key's algorithm.
 *
 * @throws RangeError if the payload is both given and in the message, or neither
 */
export function verifyCoseSign1(
  message: CoseSign1,
  key: VerificationKey,
  { payload, externalAad }: CoseVerifyOptions = {},
): boolean {
  const signed = payload ?? message.payload;
  if (signed === undefined || (payload !== undefined && message.payload !== undefined))
    throw new RangeError('expected the payload in the COSE message or beside it');
  if (message.alg !== algorithmOf(key.publicKey.alg)) return false;
  return key.verify(toBeSigned(message.protectedBytes, signed, externalAad), message.signature);
}

/** Undefined for keys that do not sign COSE. */
function algorithmOf(alg: KeyAlgorithm): number | undefined {
  if (alg === 'ed25519') return COSE_ALGORITHM.EdDSA;
  return alg === 'p256' ? COSE_ALGORITHM.ES256 : undefined;
}

/** Sig_structure, RFC 9052 §4.4. An empty map of headers is signed as no bytes. */
function toBeSigned(
  protectedBytes: Uint8Array,
  payload: Uint8Array,
  externalAad: Uint8Array = NOTHING,
): Uint8Array {
  return encodeCbor(['Signature1', protectedBytes, externalAad, payload]);
}

function checkHeaders(
  protectedHeaders: CborMap,
  unprotectedHeaders: CborMap,
  understood: ReadonlySet<CborKey>,
): CoseFault | undefined {
  const twice = [...protectedHeaders.keys()].find((label) => unprotectedHeaders.has(label));
  if (twice !== undefined) return toFault('each header once', `${twice} in both maps`);
  const alg = protectedHeaders.get(COSE_HEADER.alg);
  if (typeof alg !== 'number') {
    const actual = alg === undefined ? 'none' : 'another item';
    return toFault('the number of an algorithm among the protected headers', actual);
  }
  if (unprotectedHeaders.has(COSE_HEADER.crit))
    return toFault('critical headers named among the protected ones', 'among the others');
  const critical = protectedHeaders.get(COSE_HEADER.crit);
  if (critical === undefined) return undefined;
  const known = new Set<unknown>([...Object.values(COSE_HEADER), ...understood]);
  const isUnderstood = isArray(critical) && critical.length > 0 && critical.every(isKnown);
  function isKnown(label: CborValue): boolean {
    return known.has(label) && protectedHeaders.has(label as CborKey);
  }
  return isUnderstood ? undefined : toFault('critical headers that are understood', 'others');
}

function malformed(expected: string, actual: string): { readonly ok: false; readonly fault: CoseFault } {
  return fail(toFault(expected, actual));
}

function toFault(expected: string, actual: string): CoseFault {
  return { code: 'COSE_MALFORMED', expected, actual };
}

function isArray(value: CborValue | undefined): value is readonly CborValue[] {
  return Array.isArray(value);
}
