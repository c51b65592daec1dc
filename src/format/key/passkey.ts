/**
 * Passkeys as browsers register them (docs/spec/passkeys.md): the JSON of a WebAuthn `PublicKeyCredential`. Attestation is not verified:
 * whoever pins the key compares its keyid.
 */

import { encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { equalBytes } from '../../base/bytes/compare.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { decodeCbor } from '../../base/cbor/codec.js';
import { ingestJson } from '../../base/json/ingest.js';
import { type JsonObject, membersOf } from '../../base/json/value.js';
import type { Webauthn } from '../schema/generated/types.js';
import { checkPublicKey, describeKeyFault, makePublicKey, type PublicKey } from './public-key.js';
import { ATTESTED, EXTENDED, RP_ID_HASH_BYTES, USER_PRESENT, USER_VERIFIED } from './authenticator-data.js';
import { keyError, malformed, type RawPublicKey, readKeyText } from './key-form.js';

/** A passkey's public key, and what its assertions must meet. */
export interface Passkey {
  readonly publicKey: PublicKey;
  /** For the key's entry, see `makeKeyEntry`. */
  readonly webauthn: Webauthn;
}

const FORM = 'the JSON of a WebAuthn registration';
const HINT = 'write JSON.stringify(credential), where credential is what navigator.credentials.create gave';
const ID_LENGTH = 53;
const ID = 55;
const MAX_ID_BYTES = 750;

/** COSE keys up to their coordinates: `{1: 2, 3: -7, -1: 1, -2: x, -3: y}` and `{1: 1, 3: -8, -1: 6, -2: x}`, as CTAP2 writes them. */
const ES256 = [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
const ES256_Y = [0x22, 0x58, 0x20];
const EDDSA = [0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20];
const COORDINATE = 32;

/** Whether the text of a key file is meant as a registration, right or wrong. */
export function looksLikePasskey(input: string | Uint8Array): boolean {
  const text = typeof input === 'string' ? input : new TextDecoder().decode(input);
  return /^\s*\{/.test(text) && /"(?:attestationObject|clientDataJSON)"\s*:/.test(text);
}

/**
 * Reads a registration: `JSON.stringify` of what `navigator.credentials.create` gave. The RP id is the origin's host, or a domain above it,
 * whose hash the authenticator states; user verification is required if it took place.
 *
 * @throws NorthrootError `KEY_MALFORMED`; `KEY_UNSUPPORTED` for another algorithm than ES256 and EdDSA
 * @throws TypeError if `input` is neither a string nor bytes
 */
export function parsePasskey(input: string | Uint8Array): Passkey {
  const credential = readObject(encodeUtf8(readKeyText(input)));
  const response = membersOf(credential['response']);
  const { origin, host } = readClientData(bytesOf(response, 'clientDataJSON'));
  const data = readAuthenticatorData(bytesOf(response, 'attestationObject'));
  const flags = data[RP_ID_HASH_BYTES] ?? 0;
  if ((flags & USER_PRESENT) === 0) throw malformed('a registration by a user who was present', 'none');
  if ((flags & ATTESTED) === 0) throw malformed('a registration with a key', 'none');
  const idLength = (data[ID_LENGTH] ?? 0) * 256 + (data[ID_LENGTH + 1] ?? 0);
  const id = data.subarray(ID, ID + idLength);
  if (id.length !== idLength || idLength === 0 || idLength > MAX_ID_BYTES)
    throw malformed(`a credential id of 1 to ${MAX_ID_BYTES} bytes`, 'another');
  const key = readCoseKey(data.subarray(ID + idLength), (flags & EXTENDED) !== 0);
  const fault = checkPublicKey(key);
  if (fault !== 'ok') throw malformed(`a usable ${key.alg} public key`, describeKeyFault(fault));
  const rpId = domainsOf(host).find((domain) =>
    equalBytes(sha256(encodeUtf8(domain)), data.subarray(0, RP_ID_HASH_BYTES)),
  );
  if (rpId === undefined)
    throw malformed(`the hash of an RP id that is ${host}, or above it`, 'another hash', HINT);
  return {
    publicKey: makePublicKey(key.alg, key.bytes),
    webauthn: {
      rp_id: rpId,
      origins: [origin],
      ...((flags & USER_VERIFIED) === 0 ? { user_verification: 'optional' } : {}),
      credential_id: encodeBase64url(id),
    },
  };
}

function readObject(bytes: Uint8Array): JsonObject {
  const { value } = ingestJson(bytes, { numbers: 'double' });
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(FORM, 'text that is no JSON object, or has a name twice', HINT);
  return value;
}

function bytesOf(members: JsonObject, name: string): Uint8Array {
  const value = members[name];
  const bytes = typeof value === 'string' ? tryDecodeBase64url(value) : undefined;
  if (bytes === undefined) throw malformed(`${FORM} with response.${name} in base64url`, 'none', HINT);
  return bytes;
}

function readClientData(bytes: Uint8Array): { readonly origin: string; readonly host: string } {
  const { type, origin, crossOrigin = false } = readObject(bytes);
  if (type !== 'webauthn.create') throw malformed('client data of the type webauthn.create', 'another type');
  if (crossOrigin !== false)
    throw malformed('a registration on a page of its own', 'one within another page');
  // An origin is compared as text, and so is the one that is pinned.
  const url = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined || url.origin !== origin)
    throw malformed('the origin of a page, such as https://approve.example.com', 'another');
  return { origin: url.origin, host: url.hostname };
}

function readAuthenticatorData(attestation: Uint8Array): Uint8Array {
  const decoded = decodeCbor(attestation);
  const data =
    decoded.ok && decoded.value instanceof Map ? (decoded.value as Map<unknown, unknown>) : undefined;
  const bytes = data?.get('authData');
  if (bytes instanceof Uint8Array) return bytes;
  throw malformed('an attestation object in CBOR, with authData', 'another');
}

function readCoseKey(bytes: Uint8Array, mayGoOn: boolean): RawPublicKey {
  const begins = (at: number, head: readonly number[]): boolean =>
    head.every((byte, index) => bytes[at + index] === byte);
  const x = bytes.subarray(ES256.length, ES256.length + COORDINATE);
  const ends = (length: number): boolean => bytes.length === length || (mayGoOn && bytes.length > length);
  const middle = ES256.length + COORDINATE;
  const end = middle + ES256_Y.length + COORDINATE;
  if (begins(0, ES256) && begins(middle, ES256_Y) && ends(end))
    return { alg: 'p256', bytes: Uint8Array.of(4, ...x, ...bytes.subarray(middle + ES256_Y.length, end)) };
  if (begins(0, EDDSA) && ends(middle)) return { alg: 'ed25519', bytes: new Uint8Array(x) };
  throw keyError(
    'KEY_UNSUPPORTED',
    'expected a COSE key of ES256 or EdDSA, found another',
    'ask for pubKeyCredParams with alg -7, or -8',
  );
}

/** A host and the domains above it, down to two labels. */
function domainsOf(host: string): string[] {
  const labels = host.split('.');
  const above = labels.slice(1, -1).map((_, index) => labels.slice(index + 1).join('.'));
  return [host, ...above];
}
