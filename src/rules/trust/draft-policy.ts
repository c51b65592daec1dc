/**
 * A first trust policy from what a ledger says of itself (SPEC §7). It is worth as much as the comparison of its fingerprints with
 * what was learnt elsewhere: pinning keys unseen is believing the ledger.
 */

import { encodeBase64, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { formatPublicKeyAs, type PublicKey } from '../../format/key/public-key.js';
import { isKeyName } from '../../format/key/vkey.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import type { GenesisEvent, Key, TrustPolicy } from '../../format/schema/generated/types.js';
import type { SavedKey } from './keyring.js';

/** A key in the forms in which people compare keys. */
interface Fingerprints {
  /** SPEC §4, §7. */
  readonly keyid: string;
  /** As `ssh-keygen -l` shows it: `SHA256:…`; of ML-DSA-44 there is none. */
  readonly openssh: string | undefined;
  /** For a key that signs checkpoints of a log under its origin; or cosigns under its own name. */
  readonly vkey: string | undefined;
}

/** What {@link draftTrustPolicy} goes by beside genesis. */
export interface DraftOptions {
  /** What became of the ledger's keys, as `listKeys` says; without it no key is known to have been revoked. */
  readonly keys?: readonly SavedKey[] | undefined;
  /** Keyids of revoked keys to be pinned all the same: what they signed before then counts as before. */
  readonly includeRevoked?: readonly string[] | undefined;
}

/**
 * A policy that pins the origin and the keys of genesis with their roles, and asks of signatures what genesis promises. Keys that the
 * ledger's admins added later follow from these; so do revocations. A key that was revoked is not pinned without being asked for, and
 * a key is not pinned as a witness when it could not cosign.
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
  if (roles.includes('witness') && name !== undefined && isKeyName(name)) {
    return formatPublicKeyAs(publicKey, 'cosigner', name);
  }
  const isLog = roles.includes('checkpoint') && origin !== undefined && isKeyName(origin);
  return isLog ? formatPublicKeyAs(publicKey, 'vkey', origin) : undefined;
}
