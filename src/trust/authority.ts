/**
 * Who may sign what (SPEC §7): the roles and principals of which a key needs one combination for its signature of an event to
 * count. Authority is what lets somebody act, and nobody gives it to themselves: once a key with the role `authority` is known,
 * grants, actions without a grant and credits are theirs to sign.
 */

import { typeEvent, type AnyTypeOfEvent } from '../event/typed-event.js';
import type { AdjustmentEvent, AuthorizationEvent, Key } from '../schema/generated/types.js';

/** What a key may be used for. */
export type Role = Key['roles'][number];

/** A role, and the principals that the key's patterns must cover. */
export interface Entitlement {
  readonly role: Role;
  readonly principals: readonly string[];
}

/** What entitles a key to sign one event. */
export interface SigningRule {
  /** One of these is enough. */
  readonly anyOf: readonly Entitlement[];
  /** Whether the event lets somebody act, or gives budget back: by the rules of authority it must be signed. */
  readonly needsAuthority: boolean;
}

/** What the rule depends on beside the event. */
export interface AuthorityContext {
  /** Whether some key known at this record has, or had, the role `authority`. */
  readonly hasAuthority: boolean;
  /**
   * The principal of an earlier grant, by its id in base64url; undefined when there is no such grant. Where earlier grants are not at
   * hand at all, as for the proof of one event, it is left out: whom the grant is of is then not asked.
   */
  readonly principalOf?: (grantId: string) => string | undefined;
}

/** The rule for a well-formed event. */
export function signingRuleFor(event: AnyTypeOfEvent, context: AuthorityContext): SigningRule {
  const principals = [event.principal_id as string];
  const roles = (...names: readonly Role[]): SigningRule => ({
    anyOf: names.map((role) => ({ role, principals })),
    needsAuthority: false,
  });
  const typed = typeEvent(event);
  switch (typed.type) {
    case 'authorization':
      return ruleForAuthorization(typed.event, context);
    case 'adjustment':
      return ruleForAdjustment(typed.event, context);
    // Whoever keeps the ledger writes its genesis, checkpoints and attestations.
    case 'key':
      return roles('admin');
    case 'genesis':
      return roles('admin', 'checkpoint', 'event');
    case 'checkpoint':
    case 'attestation':
      return roles('checkpoint', 'event');
    default:
      return roles('event');
  }
}

function ruleForAuthorization(event: AuthorizationEvent, context: AuthorityContext): SigningRule {
  const { principal_id: principal, decision, authorization } = event;
  const { kind, grant_event_id: grantId } = authorization;
  const { hasAuthority } = context;
  const own: Entitlement = { role: 'event', principals: [principal] };
  const authority: Entitlement = { role: 'authority', principals: [principal] };
  if (decision === 'deny' || (kind === 'action' && grantId !== undefined)) {
    return { anyOf: hasAuthority ? [own, authority] : [own], needsAuthority: false };
  }
  if (grantId === undefined) return { anyOf: hasAuthority ? [authority] : [own], needsAuthority: true };
  const delegator = principalsOf(grantId.b64, principal, context);
  const byDelegator: Entitlement = { role: 'event', principals: delegator };
  if (!hasAuthority) return { anyOf: [own, byDelegator], needsAuthority: true };
  const byAuthority: Entitlement = { role: 'authority', principals: [principal, ...delegator] };
  return { anyOf: [byAuthority, byDelegator], needsAuthority: true };
}

function ruleForAdjustment(event: AdjustmentEvent, context: AuthorityContext): SigningRule {
  const { principal_id: principal, direction, grant_event_id: grantId } = event;
  const { hasAuthority } = context;
  const own: Entitlement = { role: 'event', principals: [principal] };
  if (direction === 'debit') {
    const authority: Entitlement = { role: 'authority', principals: [principal] };
    return { anyOf: hasAuthority ? [own, authority] : [own], needsAuthority: false };
  }
  if (!hasAuthority) return { anyOf: [own], needsAuthority: true };
  const grantee = principalsOf(grantId.b64, principal, context);
  return { anyOf: [{ role: 'authority', principals: [principal, ...grantee] }], needsAuthority: true };
}

/** Of a grant that is not there nobody can be the principal but who names it; the link has its own finding. */
function principalsOf(grantId: string, otherwise: string, { principalOf }: AuthorityContext): string[] {
  return principalOf === undefined ? [] : [principalOf(grantId) ?? otherwise];
}
