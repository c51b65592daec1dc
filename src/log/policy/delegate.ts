/** Hands a part of a grant on. */

import { defined } from '../../base/defined.js';
import { CANONICAL_PROFILE_ID } from '../../base/json/profile.js';
import type { JsonValue } from '../../base/json/value.js';
import { digestFromBase64url, fromDigestText, parseDigest } from '../../base/value/digest.js';
import type { AmountsByUnit, MeterVector } from '../../base/value/meter.js';
import type { Rational } from '../../base/value/rational.js';
import type { Draft } from '../../format/event/build.js';
import type { AuthorizationEvent, Bounds, ResourceRef } from '../../format/schema/generated/types.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { judgeDelegation } from '../../rules/bounds/delegation.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { draftGrant, type GrantOptions } from './draft-grant.js';
import { refuse } from './record.js';
import { findGrants } from './revoke.js';

/** A part of a grant. What is not stated is taken over from the parent. */
export interface DelegateOptions {
  readonly to: string;
  /** The grant: a seq, an id (`sha-256:…`), or an unambiguous prefix. */
  readonly parent: string;
  /** The total per unit: `{ usd: '1' }`. */
  readonly caps?: AmountsByUnit | undefined;
  /** Tool patterns. */
  readonly tools?: readonly string[] | undefined;
  /** A timestamp of SPEC §2. */
  readonly expires?: string | undefined;
  /** The purpose, any JSON. */
  readonly intent?: JsonValue | undefined;
}

/**
 * Drafts a delegated grant, for `Ledger.append`. A key of the parent grant's principal, or one with the role `authority`, signs it.
 * @throws NorthrootError, OptionsError as `findParent` and `draftGrant`
 */
export function draftDelegation(
  state: VerifyState,
  { to, parent, caps, tools, expires, intent }: DelegateOptions,
  occurredAt: string,
): Draft<AuthorizationEvent> {
  const grant = findParent(state, parent, occurredAt);
  const options: GrantOptions = {
    principalId: to,
    parent: eventOf(grant),
    occurredAt,
    ...defined({ meterCaps: caps, allowedTools: tools, expiresAt: expires, intent }),
  };
  return draftGrant(options);
}

/**
 * A grant of which a part may be handed on now.
 * @throws NorthrootError `GRANT_REVOKED` where it or a grant above it is withdrawn; `GRANT_EXPIRED`; `DELEGATION_EXCEEDED` at a depth below
 *   which none is allowed; as `findGrants`
 */
export function findParent(state: VerifyState, wanted: string, occurredAt: string): Grant {
  const [grant] = findGrants(state, [wanted]) as [Grant];
  // One with the same bounds: what is left to find is the place where it would hang.
  const [misplaced] = judgeDelegation({ ...grant, depth: grant.depth + 1, occurredAt }, [], grant);
  if (misplaced !== undefined)
    throw refuse(
      misplaced.code,
      `expected ${misplaced.expected ?? 'another parent'}, found ${misplaced.actual ?? 'this one'}`,
    );
  const { expiresAt, place } = grant;
  if (expiresAt !== undefined && orderTimestamps(occurredAt, expiresAt) >= 0)
    throw refuse('GRANT_EXPIRED', `${place.eventId} expired at ${expiresAt}`);
  return grant;
}

/** The event that a grant was made of, as far as a grant below it depends on it. */
function eventOf(grant: Grant): AuthorizationEvent {
  const { place, principalId, occurredAt, intent, userIntent } = grant;
  const id = digestFromBase64url(fromDigestText(place.eventId));
  return {
    event_type: 'authorization',
    event_version: '1',
    event_id: id,
    payload_digest: id,
    canonical_profile_id: CANONICAL_PROFILE_ID,
    occurred_at: occurredAt,
    principal_id: principalId,
    intents: {
      intent_digest: parseDigest(intent),
      ...(userIntent === undefined ? {} : { user_intent_digest: parseDigest(userIntent) }),
    },
    policy_id: 'delegated',
    policy_digest: id,
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: { kind: 'grant', bounds: boundsOf(grant) },
  };
}

function boundsOf({ tools, accounts, actionCaps, rates, concurrency, resources, ...grant }: Grant): Bounds {
  const each = amounts(actionCaps);
  return {
    allowed_tools: [...tools.names, ...[...tools.prefixes].map((prefix) => `${prefix}*`)],
    meter_caps: [...accounts].map(([unit, { cap }]) => ({ unit, amount: sumQuantity(cap) })),
    ...(each.length === 0 ? {} : { action_caps: each }),
    ...(rates.length === 0
      ? {}
      : { rate_limits: rates.map(({ unit, limit }) => ({ unit, amount: sumQuantity(limit) })) }),
    ...(concurrency === undefined ? {} : { concurrency_limit: { t: 'int', v: String(concurrency.limit.n) } }),
    ...(resources === undefined ? {} : { resources: [...resources].map(readResource) }),
    ...defined({
      not_before: grant.notBefore,
      expires_at: grant.expiresAt,
      max_delegation_depth: grant.maxDelegationDepth,
      output_mode: grant.outputMode,
    }),
  };
}

function amounts(vector: ReadonlyMap<string, Rational>): MeterVector {
  return [...vector].map(([unit, amount]) => ({ unit, amount: sumQuantity(amount) }));
}

function readResource(key: string): ResourceRef {
  const [kind, reference] = JSON.parse(key) as [string, string];
  return { kind, reference };
}
