/**
 * Drafts a trust policy from a ledger's own claims (SPEC §7). Its fingerprints must be compared with another source: pinning unseen keys is
 * believing the ledger.
 */

import { encodeBase64, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { formatPublicKeyAs, type PublicKey } from '../../format/key/public-key.js';
import { isKeyName } from '../../format/key/vkey.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import type { GenesisEvent, Key, TrustPolicy } from '../../format/schema/generated/types.js';
import type { SavedKey } from './keyring.js';

/** The fingerprints of a key, for people to compare. */
interface Fingerprints {
  /** SPEC §4, §7. */
  readonly keyid: string;
  /** As `ssh-keygen -l` shows it: `SHA256:…`; none for ML-DSA-44. */
  readonly openssh: string | undefined;
  /** For a key that signs checkpoints under the log's origin, or cosigns under its own name. */
  readonly vkey: string | undefined;
}

/** Options of {@link draftTrustPolicy}. */
export interface DraftOptions {
  /** The ledger's keys, from `listKeys`; without it no key is known to be revoked. */
  readonly keys?: readonly SavedKey[] | undefined;
  /** Keyids of revoked keys to pin anyway: what they signed before still counts. */
  readonly includeRevoked?: readonly string[] | undefined;
}

/**
 * Drafts a policy that pins the origin and the keys of genesis with their roles, and requires the signatures that genesis promises. Later
 * keys and revocations by the ledger's admins follow from these. Revoked keys are pinned only on request, and keys that cannot cosign are
 * not pinned as witnesses.
 */
export function draftTrustPolicy(
  genesis: GenesisEvent,
  { keys = [], includeRevoked = [] }: DraftOptions = {},
): TrustPolicy {
  const revoked = new Set(
    keys.filter(({ revokedBy }) => revokedBy !== undefined).map(({ key }) => key.keyid),
  );
  const isPinned = ({ keyid }: Key): boolean => !revoked.has(keyid) || includeRevoked.includes(keyid);
  return {
    trust_version: '1',
    origins: [genesis.origin],
    keys: genesis.keys
      .filter(isPinned)
      .map((key) =>
        canCosign(key) ? key : { ...key, roles: key.roles.filter((role) => role !== 'witness') },
      ),
    require: { event_signatures: genesis.signing.events, checkpoints: genesis.signing.checkpoints },
  };
}

function canCosign({ name, public_key: text }: Key): boolean {
  return name !== undefined && isKeyName(name) && !text.startsWith('p256:');
}

/**
 * The names that other tools give a key.
 *
 * @param key - The key.
 * @param origin - The log whose checkpoints the key signs, if it is known.
 * @returns The fingerprints; `undefined` for a key that cannot be decoded.
 */
export function fingerprintsOf(key: Key, origin: string | undefined): Fingerprints | undefined {
  const decoded = decodeWireKey(key);
  if (!decoded.ok) return undefined;
  const publicKey = decoded.value;
  return {
    keyid: key.keyid,
    openssh: publicKey.alg === 'ml-dsa-44' ? undefined : opensshFingerprint(publicKey),
    vkey: vkeyOf(key, publicKey, origin),
  };
}

function opensshFingerprint(publicKey: PublicKey): string {
  const [, blob = ''] = formatPublicKeyAs(publicKey, 'openssh').split(' ');
  const digest = encodeBase64(sha256(tryDecodeBase64(blob) ?? new Uint8Array()));
  return `SHA256:${digest.replace(/=+$/, '')}`;
}

function vkeyOf({ roles, name }: Key, publicKey: PublicKey, origin: string | undefined): string | undefined {
  if (publicKey.alg === 'p256') return undefined;
  if (roles.includes('witness') && name !== undefined && isKeyName(name))
    return formatPublicKeyAs(publicKey, 'cosigner', name);
  const isLog = roles.includes('checkpoint') && origin !== undefined && isKeyName(origin);
  return isLog ? formatPublicKeyAs(publicKey, 'vkey', origin) : undefined;
}
