/**
 * Signatures by passkeys (docs/spec/passkeys.md): a WebAuthn assertion whose challenge is the message's hash. The rule is in the key's
 * `webauthn`, never in the message. Counters and extensions are not judged: a ledger does not see an authenticator's other uses.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { printable } from '../../base/bytes/printable.js';
import { sha256, sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonValue } from '../../base/json/value.js';
import {
  ATTESTED,
  BACKED_UP,
  BACKUP_ELIGIBLE,
  EXTENDED,
  FIXED_BYTES,
  RP_ID_HASH_BYTES,
  USER_PRESENT,
  USER_VERIFIED,
} from '../key/authenticator-data.js';
import type { Webauthn } from '../schema/generated/types.js';
import type { VerificationKey } from './backend.js';

/** The limits of an assertion's parts, in bytes. */
export const MAX_AUTHENTICATOR_DATA_BYTES = 512;
export const MAX_CLIENT_DATA_BYTES = 2_048;

const SIGNATURE_BYTES = 64;
const LENGTH_BYTES = 2;

/** An assertion by its parts; `signature` is 64 bytes, r ‖ s for ES256. */
export interface Assertion {
  readonly signature: Uint8Array;
  readonly authenticatorData: Uint8Array;
  readonly clientData: Uint8Array;
}

export interface AssertionFault {
  readonly expected: string;
  readonly actual: string;
}

export interface PasskeyVerification extends VerificationKey {
  /** The first fault of a signature; undefined if it is valid. */
  explain(message: Uint8Array, signature: Uint8Array): AssertionFault | undefined;
}

/** The challenge of an assertion of a message: base64url of its SHA-256. */
export function challengeOf(message: Uint8Array): string {
  return sha256Base64url(message);
}

/** The bytes of `sig`: signature ‖ the length of authenticatorData in two bytes, big-endian ‖ authenticatorData ‖ clientDataJSON. */
export function packAssertion({ signature, authenticatorData, clientData }: Assertion): Uint8Array {
  const { length } = authenticatorData;
  return concatBytes([signature, Uint8Array.of(length >> 8, length & 0xff), authenticatorData, clientData]);
}

function unpackAssertion(bytes: Uint8Array): Assertion | undefined {
  const start = SIGNATURE_BYTES + LENGTH_BYTES;
  if (bytes.length < start) return undefined;
  const end = start + (bytes[SIGNATURE_BYTES] as number) * 256 + (bytes[SIGNATURE_BYTES + 1] as number);
  const isBounded =
    end - start <= MAX_AUTHENTICATOR_DATA_BYTES &&
    bytes.length > end &&
    bytes.length - end <= MAX_CLIENT_DATA_BYTES;
  if (!isBounded) return undefined;
  return {
    signature: bytes.subarray(0, SIGNATURE_BYTES),
    authenticatorData: bytes.subarray(start, end),
    clientData: bytes.subarray(end),
  };
}

/** Prepares a passkey: what it verifies are assertions alone. @param key - The same public key as any other. */
export function importPasskey(pins: Webauthn, key: VerificationKey): PasskeyVerification {
  const explain: PasskeyVerification['explain'] = (message, bytes) => {
    const assertion = unpackAssertion(bytes);
    if (assertion === undefined) return fault('a WebAuthn assertion', `${bytes.length} other bytes`);
    const { signature, authenticatorData, clientData } = assertion;
    const problem =
      findClientDataFault(clientData, challengeOf(message), pins) ??
      findAuthenticatorFault(authenticatorData, pins);
    if (problem !== undefined) return problem;
    const signed = concatBytes([authenticatorData, sha256(clientData)]);
    return key.verify(signed, signature)
      ? undefined
      : fault(`an assertion by ${key.publicKey.keyid}`, 'one that it did not sign');
  };
  return {
    publicKey: key.publicKey,
    get usable() {
      return key.usable;
    },
    verify: (message, signature) => explain(message, signature) === undefined,
    explain,
  };
}

function findClientDataFault(
  bytes: Uint8Array,
  challenge: string,
  { origins, top_origins: topOrigins }: Webauthn,
): AssertionFault | undefined {
  const { value, report } = ingestJson(bytes);
  if (report.status !== 'Ok' || !isJsonObject(value))
    return fault('client data that is one JSON object', report.warnings.join(', ') || 'another value');
  const data = value as Readonly<Record<string, JsonValue>>;
  const { type, origin, crossOrigin = false, topOrigin } = data;
  if (type !== 'webauthn.get') return fault('client data of the type webauthn.get', shown(type));
  if (data['challenge'] !== challenge)
    return fault(`the challenge ${challenge}, the hash of this event`, shown(data['challenge']));
  if (typeof origin !== 'string' || !origins.includes(origin))
    return fault(`the origin ${origins.join(' or ')}`, shown(origin));
  const isFramed =
    topOrigins !== undefined &&
    crossOrigin === true &&
    typeof topOrigin === 'string' &&
    topOrigins.includes(topOrigin);
  if (isFramed || (crossOrigin === false && topOrigin === undefined)) return undefined;
  return fault(
    `no other page around it${topOrigins === undefined ? '' : ` than of ${topOrigins.join(' or ')}`}`,
    `crossOrigin ${shown(crossOrigin)}, topOrigin ${shown(topOrigin)}`,
  );
}

function findAuthenticatorFault(
  bytes: Uint8Array,
  { rp_id: rpId, user_verification: demand }: Webauthn,
): AssertionFault | undefined {
  if (bytes.length < FIXED_BYTES)
    return fault(`authenticator data of at least ${FIXED_BYTES} bytes`, `${bytes.length}`);
  if (!equalBytes(bytes.subarray(0, RP_ID_HASH_BYTES), sha256(encodeUtf8(rpId))))
    return fault(`the hash of the RP id ${rpId}`, 'another hash');
  const flags = bytes[RP_ID_HASH_BYTES] as number;
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const actual = `the flags 0x${flags.toString(16).padStart(2, '0')}`;
  if (!has(USER_PRESENT)) return fault('a user who was present (UP)', actual);
  if (!has(USER_VERIFIED) && demand !== 'optional') return fault('a user who was verified (UV)', actual);
  if (has(BACKED_UP) && !has(BACKUP_ELIGIBLE)) return fault('no BS without BE', actual);
  if (has(ATTESTED)) return fault('no attested data in an assertion (AT)', actual);
  // What extensions said is signed too, and changes nothing.
  if (has(EXTENDED) === bytes.length > FIXED_BYTES) return undefined;
  return fault('extensions where the flag ED says so, and nowhere else', `${actual}, ${bytes.length} bytes`);
}

function shown(value: JsonValue | undefined): string {
  return value === undefined
    ? 'absent'
    : printable(typeof value === 'string' ? value : JSON.stringify(value));
}

function fault(expected: string, actual: string): AssertionFault {
  return { expected, actual };
}
