/**
 * The keys that may sign in a ledger, and what each may sign (SPEC §7): the one place that says whether a key that made
 * a right signature was entitled to make it. Verifying and appending both ask here.
 */

import type { PublicKey } from '../key/public-key.js';
import { readWireKey } from '../key/wire-key.js';
import type { Key } from '../schema/generated/types.js';
import type { VerificationKey, Verifier } from '../signature/verifier.js';
import { matchesPrincipalPattern } from '../value/principal.js';
import { compareTimestamps } from '../value/timestamp.js';

/** What a key may be used for. */
export type Role = Key['roles'][number];

/** A key with its backend's prepared form. */
export interface RingKey {
  readonly key: Key;
  readonly publicKey: PublicKey;
  readonly verification: VerificationKey;
}

/** Why a key entry was refused; `pointer` is from the entry's root. */
export interface KeyProblem {
  readonly pointer: string;
  readonly expected: string;
  readonly actual: string;
}

/** Why a key is not entitled to a signature. */
export interface EntitlementProblem {
  readonly code: 'KEY_NOT_FOR_PRINCIPAL' | 'KEY_NOT_FOR_ROLE' | 'KEY_NOT_VALID_HERE';
  readonly expected: string;
  readonly actual: string;
}

/** The keys known at one position of a ledger, by keyid. */
export class Keyring {
  readonly #keys = new Map<string, RingKey>();
  readonly #verifier: Verifier;

  constructor(verifier: Verifier) {
    this.#verifier = verifier;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Adds a key entry of the right shape; returns why not, when its parts contradict each other or the ring. */
  add(key: Key): KeyProblem | undefined {
    const read = readWireKey(key);
    if ('pointer' in read) return read;
    if (this.#keys.has(key.keyid)) {
      return { pointer: '/keyid', expected: 'each key once', actual: `${key.keyid} again` };
    }
    const verification = this.#verifier.importKey(read.publicKey);
    this.#keys.set(key.keyid, { key, publicKey: read.publicKey, verification });
    return undefined;
  }

  /** The entries, in the order in which they were added. */
  list(): Key[] {
    return [...this.#keys.values()].map(({ key }) => key);
  }

  find(keyid: string): RingKey | undefined {
    return this.#keys.get(keyid);
  }
}

/**
 * The roles of which a key needs one to sign a record of this type. SPEC §3.4 demands `admin` for key events; the
 * other rows are northroot's choice: whoever keeps the ledger writes its genesis, checkpoints and attestations.
 */
export function rolesFor(eventType: string): readonly Role[] {
  switch (eventType) {
    case 'key':
      return ['admin'];
    case 'genesis':
      return ['admin', 'checkpoint', 'event'];
    case 'checkpoint':
    case 'attestation':
      return ['checkpoint', 'event'];
    default:
      return ['event'];
  }
}

/**
 * Why `key` may not sign an event at its position, or `undefined` when it may.
 *
 * @param instant - The timestamp that the position has for judging validity: the later of the event's own
 *   `occurred_at` and the latest genesis or checkpoint before it, so that back-dating does not revive an expired key.
 */
export function findEntitlementProblem(
  key: Key,
  event: { readonly event_type: string; readonly principal_id: string },
  instant: string,
): EntitlementProblem | undefined {
  const roles = rolesFor(event.event_type);
  if (!key.roles.some((role) => roles.includes(role))) {
    return { code: 'KEY_NOT_FOR_ROLE', expected: roles.join(' or '), actual: key.roles.join(', ') };
  }
  if (!key.principals.some((pattern) => matchesPrincipalPattern(pattern, event.principal_id))) {
    return {
      code: 'KEY_NOT_FOR_PRINCIPAL',
      expected: key.principals.join(' or '),
      actual: event.principal_id,
    };
  }
  if (key.valid_from !== undefined && compareTimestamps(instant, key.valid_from) < 0) {
    return { code: 'KEY_NOT_VALID_HERE', expected: `not before ${key.valid_from}`, actual: instant };
  }
  if (key.valid_until !== undefined && compareTimestamps(instant, key.valid_until) >= 0) {
    return { code: 'KEY_NOT_VALID_HERE', expected: `before ${key.valid_until}`, actual: instant };
  }
  return undefined;
}
