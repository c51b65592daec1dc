/** Key entries as genesis, key events and trust policies list them (SPEC §7), and which of a ledger's keys may sign an event. */

import type { JsonObject } from '../../base/json/value.js';
import { matchesPrincipalPattern } from '../../base/value/principal.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { formatPublicKey, type PublicKey } from '../../format/key/public-key.js';
import type { Key, Webauthn } from '../../format/schema/generated/types.js';
import { admitsKey, type Role, type SigningRule, signingRuleFor } from './authority.js';

export interface KeyEntryOptions {
  /** Default: `event`; `checkpoint` for ML-DSA-44, which signs no records. */
  readonly roles?: readonly Role[] | undefined;
  /** Patterns of principals that it signs for. Default: all. */
  readonly principals?: readonly string[] | undefined;
  /** The name under which a witness cosigns; required for one. */
  readonly name?: string | undefined;
  /** Timestamps of SPEC §2: inclusive, and exclusive. */
  readonly validFrom?: string | undefined;
  readonly validUntil?: string | undefined;
  /** Makes it a passkey, see `parsePasskey`. */
  readonly webauthn?: Webauthn | undefined;
}

/** The entry of a key. */
export function makeKeyEntry(publicKey: PublicKey, options: KeyEntryOptions = {}): Key {
  const { roles = [], principals = [], name, validFrom, validUntil, webauthn } = options;
  return {
    keyid: publicKey.keyid,
    public_key: formatPublicKey(publicKey),
    roles:
      roles.length === 0 ? [publicKey.alg === 'ml-dsa-44' ? 'checkpoint' : 'event'] : [...new Set(roles)],
    principals: principals.length === 0 ? ['*'] : [...new Set(principals)],
    ...(name === undefined ? {} : { name }),
    ...(webauthn === undefined ? {} : { webauthn }),
    ...(validFrom === undefined ? {} : { valid_from: validFrom }),
    ...(validUntil === undefined ? {} : { valid_until: validUntil }),
  };
}

interface SigningContext {
  /** The principal of the grant that the event names, if any. */
  readonly grantPrincipalId?: string;
  /** The time of signing: a timestamp of SPEC §2. */
  readonly at: string;
}

/**
 * The keys of a ledger that may sign an event (SPEC §7).
 *
 * @param keys - The current keys, from `Ledger.listKeys`.
 * @param event - A well-formed event, or a draft with a principal.
 */
export function findEntitledKeys(keys: readonly Key[], event: object, context: SigningContext): Key[] {
  const rule = ruleFor(keys, event, context);
  return keys.filter((key) => isValidAt(key, context.at) && isEntitled(key, rule));
}

function ruleFor(keys: readonly Key[], event: object, { grantPrincipalId }: SigningContext): SigningRule {
  const hasAuthority = keys.some(({ roles }) => roles.includes('authority'));
  return signingRuleFor(event as JsonObject, {
    hasAuthority,
    grantOf: () => (grantPrincipalId === undefined ? undefined : { principalId: grantPrincipalId }),
  });
}

function isEntitled(key: Key, rule: SigningRule): boolean {
  const { roles, principals: patterns } = key;
  const covers = (principal: string): boolean =>
    patterns.some((pattern) => matchesPrincipalPattern(pattern, principal));
  const { anyOf } = rule;
  return (
    admitsKey(key, rule) &&
    anyOf.some(({ role, principals }) => roles.includes(role) && principals.every(covers))
  );
}

function isValidAt({ valid_from: from, valid_until: until }: Key, at: string): boolean {
  if (from !== undefined && compareTimestamps(at, from) < 0) return false;
  return until === undefined || compareTimestamps(at, until) < 0;
}
