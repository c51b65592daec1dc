/** Public keys as Clasper's files have them: JSON Web Keys with the name of an algorithm beside them. */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { NorthrootError } from '../../base/error.js';
import type { SourceObject, SourceValue } from '../../base/json/source-json.js';
import { parsePublicKey, type PublicKey } from '../../format/key/public-key.js';
import type { VerificationKey } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { tryDecodeEcdsaDer } from '../../format/signature/ecdsa-der.js';
import { stableText } from '../shared/forms/stable.js';
import { objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';

export interface TelemetryKey {
  readonly adapterId: string;
  /** Of the adapter, as it registered; undefined for any. */
  readonly adapterVersion: string | undefined;
  readonly keyId: string | undefined;
  /** As the host wrote it: `ed25519`; anything else it takes for ES256. */
  readonly alg: string;
  /** Undefined where the key cannot be read, or is of another kind than `alg` says. */
  readonly publicKey: PublicKey | undefined;
  /** From then on it signs nothing: a Timestamp, or `always` where the host's text is no time. */
  readonly revokedAt: string | undefined;
}

/** A registered adapter's key (`telemetry_…`), or a member of public_keys.json; undefined where there is none. */
export function readTelemetryKey(object: SourceObject): TelemetryKey | undefined {
  const prefix = object.has('telemetry_public_jwk') ? 'telemetry_' : '';
  const jwk = objectAt(object, `${prefix}public_jwk`);
  const alg = textAt(object, prefix === '' ? 'alg' : 'telemetry_key_alg') ?? textAt(object, 'key_alg');
  const adapterId = textAt(object, 'adapter_id');
  if (jwk === undefined || alg === undefined || adapterId === undefined) return undefined;
  const publicKey = tryReadJwk(jwk);
  const revoked = valueAt(object, prefix === '' ? 'revoked_at' : 'telemetry_key_revoked_at');
  return {
    adapterId,
    adapterVersion: textAt(object, prefix === '' ? 'adapter_version' : 'version'),
    keyId: textAt(object, prefix === '' ? 'key_id' : 'telemetry_key_id'),
    alg,
    publicKey: publicKey?.alg === (alg === 'ed25519' ? 'ed25519' : 'p256') ? publicKey : undefined,
    revokedAt: revoked === undefined || revoked === null ? undefined : (timeOfAny(revoked) ?? 'always'),
  };
}

function timeOfAny(value: SourceValue): string | undefined {
  return typeof value === 'string' ? timeOfText(value) : undefined;
}

/** The key of a JWK; undefined where it is none that can be used. */
export function tryReadJwk(jwk: SourceObject): PublicKey | undefined {
  try {
    return parsePublicKey(stableText(jwk));
  } catch (error) {
    if (error instanceof NorthrootError) return undefined;
    throw error;
  }
}

/** Whether `text` is a signature of `message`: base64 or base64url, padded or not; of P-256 in DER. */
export function verifiesText(key: PublicKey, message: Uint8Array, text: string): boolean {
  const bytes = decodeSignature(text);
  const signature = bytes === undefined || key.alg !== 'p256' ? bytes : tryDecodeEcdsaDer(bytes);
  if (signature === undefined) return false;
  const prepared = PREPARED.get(key) ?? defaultBackend.importKey(key);
  PREPARED.set(key, prepared);
  return prepared.verify(message, signature);
}

/** Preparing a key takes longer than verifying with it. */
const PREPARED = new WeakMap<PublicKey, VerificationKey>();

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** As Node decodes it: unused bits of the last character are passed over. */
function decodeSignature(text: string): Uint8Array | undefined {
  if (text.length > 1024 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined;
  const plain = text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  const unused = { 0: 0, 2: 4, 3: 2 }[plain.length % 4];
  if (unused === undefined) return undefined;
  const last = (ALPHABET.indexOf(plain.at(-1)!) >> unused) << unused;
  return tryDecodeBase64url(plain.slice(0, -1) + ALPHABET[last]!);
}
