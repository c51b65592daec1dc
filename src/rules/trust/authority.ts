/**
 * Who may sign what (SPEC §7): a key needs one of some combinations of role and principals for its signature of an event to count.
 * Authority lets a principal act. Once a key with the role `authority` is known, only such keys sign root grants, actions without a grant
 * and credits.
 */

import { type AnyTypeOfEvent, typeEvent, type TypeName } from '../../format/event/typed-event.js';
import type { Key } from '../../format/schema/generated/types.js';

export type Role = Key['roles'][number];

/** A role, and the principals that the key's patterns must cover. */
export interface Entitlement {
  readonly role: Role;
  readonly principals: readonly string[];
}

export interface SigningRule {
  /** One of these is enough. */
  readonly anyOf: readonly Entitlement[];
  /** Whether the event lets a principal act, or returns budget: it must then be signed. */
  readonly needsAuthority: boolean;
  /** Whether a passkey may sign: approvals alone. Absent: no. */
  readonly allowsPasskeys?: boolean;
}

/** Whether a rule takes signatures by a key of this kind, whatever its roles. */
export function admitsKey({ webauthn }: Pick<Key, 'webauthn'>, { allowsPasskeys }: SigningRule): boolean {
  return webauthn === undefined || allowsPasskeys === true;
}

/** The context of a rule, beside the event. */
interface AuthorityContext {
  /** Whether some key known at this record has, or had, the role `authority`. */
  readonly hasAuthority: boolean;
  /**
   * An earlier allowed grant, by its id in base64url; undefined for none. Omitted where earlier grants are not known, as for the proof of
   * one event: the grant's principal is then not checked.
   */
  readonly grantOf?: (grantId: string) => SignedGrant | undefined;
}

/** An allowed grant for the rule. */
export interface SignedGrant {
  readonly principalId: string;
  /** The principals of the grants above it. Where they are not known, a revocation by one of them counts as by a stranger. */
  readonly above?: readonly string[];
  /** Whether it is suspended, and a key with the role `authority` signed that. */
  readonly isSuspendedByAuthority?: boolean;
}

/** An event for the rule. */
export interface SignedAct {
  readonly type: TypeName;
  readonly principalId: string;
  /** Of an authorization. */
  readonly isAllow?: boolean;
  /** Of an authorization: an action rather than a grant. */
  readonly isAction?: boolean;
  /** Of an adjustment. */
  readonly isCredit?: boolean;
  /** Of a revocation. */
  readonly isResume?: boolean;
  /** The grant that it names, base64url. */
  readonly grantId?: string | undefined;
}

/** The rule for a well-formed event. */
export function signingRuleFor(event: AnyTypeOfEvent, context: AuthorityContext): SigningRule {
  const typed = typeEvent(event);
  const { type } = typed;
  const principalId = event.principal_id as string;
  if (typed.type === 'authorization') {
    const { decision, authorization } = typed.event;
    const { kind, grant_event_id: grantId } = authorization;
    const [isAllow, isAction] = [decision === 'allow', kind === 'action'];
    return signingRuleOf({ type, principalId, isAllow, isAction, grantId: grantId?.b64 }, context);
  }
  if (typed.type === 'adjustment') {
    const { direction, grant_event_id: grantId } = typed.event;
    return signingRuleOf(
      { type, principalId, isCredit: direction === 'credit', grantId: grantId.b64 },
      context,
    );
  }
  if (typed.type === 'revocation') {
    const { effect, grant_event_id: grantId } = typed.event;
    return signingRuleOf({ type, principalId, isResume: effect === 'resume', grantId: grantId.b64 }, context);
  }
  return signingRuleOf({ type, principalId }, context);
}

/** The rule for an act. For most, only type and principal matter. */
export function signingRuleOf(act: SignedAct, context: AuthorityContext): SigningRule {
  switch (act.type) {
    case 'authorization':
      return ruleForAuthorization(act, context);
    case 'adjustment':
      return ruleForAdjustment(act, context);
    case 'approval':
      return ruleForApproval(act, context);
    case 'revocation':
      return ruleForRevocation(act, context);
    // The ledger's writer signs genesis, checkpoints and attestations.
    case 'key':
      return ordinaryRule(ADMIN, act.principalId);
    case 'genesis':
      return ordinaryRule(KEEPER_AT_FIRST, act.principalId);
    case 'checkpoint':
    case 'attestation':
      return ordinaryRule(KEEPER, act.principalId);
    default:
      return ordinaryRule(PRODUCER, act.principalId);
  }
}

/** Roles of which one is enough, with a cache of rules by principal. */
interface Roles {
  readonly names: readonly Role[];
  readonly rules: Map<string, SigningRule>;
}

const MAX_RULES = 1_024;

function anyOf(...names: readonly Role[]): Roles {
  return { names, rules: new Map() };
}

const ADMIN = anyOf('admin');
const KEEPER_AT_FIRST = anyOf('admin', 'checkpoint', 'event');
const KEEPER = anyOf('checkpoint', 'event');
const PRODUCER = anyOf('event');
const PRODUCER_OR_AUTHORITY = anyOf('event', 'authority');

/** The rule for events without authority. */
function ordinaryRule({ names, rules }: Roles, principalId: string): SigningRule {
  const known = rules.get(principalId);
  if (known !== undefined) return known;
  const principals = [principalId];
  const rule = { anyOf: names.map((role) => ({ role, principals })), needsAuthority: false };
  if (rules.size >= MAX_RULES) rules.clear();
  rules.set(principalId, rule);
  return rule;
}

function ruleForAuthorization(act: SignedAct, context: AuthorityContext): SigningRule {
  const { principalId: principal, grantId } = act;
  const { hasAuthority } = context;
  if (act.isAllow !== true || (act.isAction === true && grantId !== undefined))
    return ordinaryRule(hasAuthority ? PRODUCER_OR_AUTHORITY : PRODUCER, principal);
  const own: Entitlement = { role: 'event', principals: [principal] };
  const authority: Entitlement = { role: 'authority', principals: [principal] };
  const delegator = grantId === undefined ? undefined : principalsOf(grantId, context);
  // Without one it is signed as a root grant.
  if (delegator === undefined) return { anyOf: hasAuthority ? [authority] : [own], needsAuthority: true };
  const byDelegator: Entitlement = { role: 'event', principals: delegator };
  if (!hasAuthority) return { anyOf: [own, byDelegator], needsAuthority: true };
  const byAuthority: Entitlement = { role: 'authority', principals: [principal, ...delegator] };
  return { anyOf: [byAuthority, byDelegator], needsAuthority: true };
}

function ruleForAdjustment(act: SignedAct, context: AuthorityContext): SigningRule {
  const { principalId: principal, grantId } = act;
  const { hasAuthority } = context;
  if (act.isCredit !== true) return ordinaryRule(hasAuthority ? PRODUCER_OR_AUTHORITY : PRODUCER, principal);
  if (!hasAuthority) return { anyOf: [{ role: 'event', principals: [principal] }], needsAuthority: true };
  const grantee = principalsOf(grantId as string, context) ?? [];
  return { anyOf: [{ role: 'authority', principals: [principal, ...grantee] }], needsAuthority: true };
}

function ruleForApproval({ principalId }: SignedAct, { hasAuthority }: AuthorityContext): SigningRule {
  const { anyOf } = ordinaryRule(hasAuthority ? PRODUCER_OR_AUTHORITY : PRODUCER, principalId);
  return { anyOf, needsAuthority: true, allowsPasskeys: true };
}

/**
 * Who holds the grant, or one above it, may take it back; who holds one above it may end a suspension that no authority signed. Everything
 * else takes authority over the grantee.
 */
function ruleForRevocation(act: SignedAct, context: AuthorityContext): SigningRule {
  const { principalId: principal, grantId } = act;
  const { hasAuthority, grantOf } = context;
  const principals = [principal];
  if (!hasAuthority) return { anyOf: [{ role: 'event', principals }], needsAuthority: true };
  const byEither: Entitlement[] = [
    { role: 'event', principals },
    { role: 'authority', principals },
  ];
  if (grantOf === undefined) return { anyOf: byEither, needsAuthority: true };
  const grant = grantOf(grantId as string);
  const grantee = grant?.principalId;
  const byAuthority: Entitlement = {
    role: 'authority',
    principals: grantee === undefined ? principals : [principal, grantee],
  };
  const isAbove = grant?.above?.includes(principal) === true;
  const isOwn =
    act.isResume === true
      ? isAbove && principal !== grantee && grant?.isSuspendedByAuthority !== true
      : isAbove || principal === grantee;
  return { anyOf: isOwn ? [byAuthority, ...byEither] : [byAuthority], needsAuthority: true };
}

/**
 * The principal of the grant, where checked; undefined without an allowed grant of that id: then there is neither delegator nor grantee.
 * The link has its own finding.
 */
function principalsOf(grantId: string, { grantOf }: AuthorityContext): string[] | undefined {
  if (grantOf === undefined) return [];
  const grant = grantOf(grantId);
  return grant === undefined ? undefined : [grant.principalId];
}
