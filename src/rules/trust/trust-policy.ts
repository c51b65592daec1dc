/**
 * The trust policy of `--trust` (SPEC §7): which origins, which keys, what must be signed. A policy with anything that this version does not
 * enforce is refused.
 */

import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isKeyName } from '../../format/key/vkey.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { checkTrustPolicy } from '../../format/schema/check.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';

/** The largest policy file, in bytes. */
export const MAX_TRUST_POLICY_BYTES = 1024 * 1024;

/**
 * Reads a trust policy from JSON text (any layout, no duplicate keys).
 *
 * @throws NorthrootError `TRUST_POLICY_INVALID`
 */
export function parseTrustPolicy(bytes: Uint8Array): TrustPolicy {
  if (bytes.length > MAX_TRUST_POLICY_BYTES)
    throw refuse('', `at most ${MAX_TRUST_POLICY_BYTES} bytes`, `${bytes.length} bytes`);
  const { value, issues } = ingestJson(bytes);
  if (value === undefined) {
    const [issue] = issues;
    throw refuse(issue?.pointer ?? '', 'JSON without faults', `${issue?.code} at byte ${issue?.offset}`);
  }
  const [fault] = checkTrustPolicy(value);
  if (fault !== undefined) throw refuse(fault.pointer, fault.expected, fault.actual);
  const policy = value as unknown as TrustPolicy;
  const seen = new Set<string>();
  for (const [index, key] of policy.keys.entries()) {
    const decoded = decodeWireKey(key);
    if (!decoded.ok) {
      const { pointer, expected, actual } = decoded.fault;
      throw refuse(`/keys/${index}${pointer}`, expected, actual);
    }
    if (seen.has(key.keyid)) throw refuse(`/keys/${index}/keyid`, 'each key once', `${key.keyid} again`);
    seen.add(key.keyid);
  }
  assertCanBeMet(policy);
  return policy;
}

/** Refuses a policy that no ledger can meet. */
function assertCanBeMet({ keys, require = {} }: TrustPolicy): void {
  for (const [index, { roles, name, public_key: text }] of keys.entries()) {
    if (!roles.includes('witness')) continue;
    const pointer = `/keys/${index}`;
    if (name === undefined || !isKeyName(name))
      throw refuse(
        `${pointer}/name`,
        'the name that the witness cosigns under, without spaces and +',
        `${name}`,
      );
    if (text.startsWith('p256:'))
      throw refuse(`${pointer}/public_key`, 'an ed25519 or ml-dsa-44 key for a witness', text);
  }
  const { witness_threshold: threshold = 0, checkpoint_quorum: quorum = 0 } = require;
  // Counted as in verification: keys of one name are one witness, and a key pinned for the log counts for the log only.
  const witnesses = new Set(
    keys
      .filter(({ roles }) => roles.includes('witness') && !roles.includes('checkpoint'))
      .map(({ name }) => name),
  );
  if (threshold > witnesses.size) {
    const expected = `at most ${witnesses.size}, the names with the role witness, and without the role checkpoint`;
    throw refuse('/require/witness_threshold', expected, `${threshold}`);
  }
  const signers = keys.filter(
    ({ roles, public_key: text }) => roles.includes('checkpoint') && !text.startsWith('p256:'),
  ).length;
  if (quorum > signers)
    throw refuse(
      '/require/checkpoint_quorum',
      `at most ${signers}, the ed25519 and ml-dsa-44 keys with the role checkpoint`,
      `${quorum}`,
    );
}

function refuse(pointer: string, expected: string, actual: string): NorthrootError {
  return new NorthrootError(
    'TRUST_POLICY_INVALID',
    `the trust policy is not valid at ${pointer === '' ? 'its root' : pointer}: expected ${expected}, found ${actual}`,
    { hint: 'the schema trust-policy shows the form' },
  );
}
