/** Grants and actions in a state (SPEC §3.1): what was allowed, and what was used of it so far. */

import type { MeterVector } from '../../base/value/meter.js';
import { makePrincipalSet, type PrincipalSet } from '../../base/value/principal-set.js';
import { toRational } from '../../base/value/quantity.js';
import { type RateUnit, tryParseRateUnit } from '../../base/value/rate.js';
import { type Rational, ZERO } from '../../base/value/rational.js';
import type { ActionOutline } from '../../format/event/outline.js';
import type {
  ApprovalRule as ApprovalRuleJson,
  AuthorizationEvent,
} from '../../format/schema/generated/types.js';
import { emptyTimeline, type Timeline } from './timeline.js';
import { makeToolSet, type ToolSet } from './tool-set.js';

export type Amounts = ReadonlyMap<string, Rational>;

/** The place of an event, for findings about another one. */
export interface EventPlace {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

/** One capped unit of a grant. */
export interface Account {
  readonly cap: Rational;
  used: Rational;
  /** The estimated part of use and debits (`meter_basis`); credits do not lower it. */
  estimated: Rational;
  reserved: Rational;
}

/** Executions that were started and did not finish, as overlaps of intervals, for live decisions. */
export interface StartedWork {
  /** The greatest overlap at any instant in [from, to). */
  readonly peak: (from: bigint, to: bigint) => Rational;
}

export interface RateLimit {
  /** As the grant names it, such as `usd.per_min`. */
  readonly unit: string;
  /** The unit that is limited; `calls` counts executions. */
  readonly meter: string;
  /** Nanoseconds. */
  readonly window: bigint;
  readonly limit: Rational;
  readonly timeline: Timeline;
  readonly started?: StartedWork;
}

/** A rule of a grant: which calls under it need approvals, and whose. */
export interface ApprovalRule {
  readonly tools: ToolSet;
  readonly approvers: PrincipalSet;
  /** The patterns of approvers, for findings. */
  readonly words: string;
  /** A call that reserves all of these units at no more than this needs none. */
  readonly above: Amounts | undefined;
  /** How many principals must approve. */
  readonly count: number;
  /** Nanoseconds. */
  readonly maxAge: bigint | undefined;
}

/** The state of a grant that is revoked or suspended. */
export interface Withdrawal {
  readonly effect: 'revoke' | 'suspend';
  readonly place: EventPlace;
  /** The event from which it also stops what was allowed before; undefined while that may finish. */
  readonly stop: EventPlace | undefined;
  /** Whether a key with the role `authority` signed it: only such a key ends it then. */
  readonly byAuthority: boolean;
}

/** A stop that has ended. What was allowed before its end stays stopped. */
export interface PastStop {
  readonly place: EventPlace;
  /** The `seq` of the event that ended it. */
  readonly end: number;
}

/** An action of another ledger; both ids base64url. */
export interface SliceName {
  readonly ledgerId: string;
  readonly eventId: string;
}

/** How far content may go into a ledger's surroundings, from the strictest on. */
export const OUTPUT_MODES = ['digest_only', 'allow_contentref', 'allow_inline'] as const;

type OutputMode = (typeof OUTPUT_MODES)[number];

/** Common members of actions and grants. */
interface Authorized {
  readonly place: EventPlace;
  readonly decision: 'allow' | 'deny';
  readonly principalId: string;
  readonly occurredAt: string;
  /** The intent's digest as text. */
  readonly intent: string;
  /** The digest of the user's intent as text. */
  readonly userIntent: string | undefined;
}

/** A grant. A denied one has no bounds that count. */
export interface Grant extends Authorized {
  /** How many grants came before it. */
  readonly index: number;
  /** Keyids whose signatures of its record count. */
  readonly signers: readonly string[];
  /** The grant that it was delegated from; undefined also where that is broken, denied or unreachable. */
  readonly parent: Grant | undefined;
  /** 1 for a grant that was not delegated. */
  readonly depth: number;
  readonly tools: ToolSet;
  readonly notBefore: string | undefined;
  readonly expiresAt: string | undefined;
  /** The maximum that an action may reserve and an execution may use, by unit. */
  readonly actionCaps: Amounts;
  /** The maximum depth of delegations below it. */
  readonly maxDelegationDepth: number | undefined;
  readonly accounts: ReadonlyMap<string, Account>;
  readonly rates: readonly RateLimit[];
  readonly concurrency:
    | { readonly limit: Rational; readonly timeline: Timeline; readonly started?: StartedWork }
    | undefined;
  readonly outputMode: OutputMode | undefined;
  readonly resources: ReadonlySet<string> | undefined;
  readonly approvals: readonly ApprovalRule[];
  /** The number of the grant at the top of its chain. */
  readonly rootIndex: number;
  /**
   * The foreign systems from which its record, or a credit to it or below it, was taken over (SPEC §8, "Imported authority"). Its ancestors have
   * their own.
   */
  readonly systems: Set<string>;
  /** Executions under it and its descendants. */
  executions: number;
  withdrawal: Withdrawal | undefined;
  /** The last stop of it that has ended. */
  stopped: PastStop | undefined;
  /** The slice of another ledger that it spends (SPEC §8 rule 17). */
  readonly slice: SliceName | undefined;
  /** The checkpoint up to which the parent that was given settled that slice: nothing is done under it after that. */
  settled: EventPlace | undefined;
  /** Whether its own record is neither invalid nor in violation; true until the record's verdict is known. */
  isSound: boolean;
}

/** The approvals of an allowed action, as they were at its place. */
export interface Approved {
  /** The ids, base64url, of those that it uses up and that were not withdrawn. */
  readonly ids: readonly string[];
  /** The least limit of all that it uses up, by unit. */
  readonly limits: Amounts;
  /** The later of the action's time and the ledger's clock. */
  readonly instant: string;
  /** Whether some key known there had, or has, the role `authority`. */
  readonly hasAuthority: boolean;
}

/** An action that was allowed and not yet executed, or one that was denied. */
export interface Action extends Authorized {
  readonly grant: Grant | undefined;
  readonly toolName: string;
  /** The parameters' digest as text. */
  readonly params: string;
  readonly reservation: Map<string, Rational>;
  /** Until when it may be begun. */
  readonly expiresAt: string | undefined;
  /** The foreign system that it was taken over from. */
  readonly system: string | undefined;
}

/** The maximum depth of a grant (SPEC §8 rule 9). Beyond it use counts against the nearest grants only. */
export const MAX_GRANT_DEPTH = 32;

/** The grant that a well-formed event makes. */
export function makeGrant(
  event: AuthorizationEvent,
  place: EventPlace,
  parent: Grant | undefined,
  index: number,
  signers: readonly string[] = [],
): Grant {
  const { authorization } = event;
  const bounds = (authorization.kind === 'grant' && event.decision === 'allow' && authorization.bounds) || {};
  const { allowed_tools: tools = [], meter_caps: caps = [], rate_limits: rates = [] } = bounds;
  const { action_caps: actionCaps = [] } = bounds;
  return {
    ...authorizedBy(event, place),
    index,
    signers,
    parent,
    depth: (parent?.depth ?? 0) + 1,
    tools: makeToolSet(tools),
    notBefore: bounds.not_before,
    expiresAt: bounds.expires_at,
    actionCaps: amountsOf(actionCaps),
    maxDelegationDepth: bounds.max_delegation_depth,
    accounts: new Map(caps.map(({ unit, amount }) => [unit, openAccount(toRational(amount))])),
    rates: rates.map(({ unit, amount }) => {
      const { meter, window } = tryParseRateUnit(unit) as RateUnit;
      return { unit, meter, window, limit: toRational(amount), timeline: emptyTimeline(window) };
    }),
    concurrency:
      bounds.concurrency_limit === undefined
        ? undefined
        : { limit: toRational(bounds.concurrency_limit), timeline: emptyTimeline() },
    outputMode: bounds.output_mode,
    resources: bounds.resources && new Set(bounds.resources.map(resourceKey)),
    approvals: (bounds.approvals ?? []).map(makeApprovalRule),
    rootIndex: parent?.rootIndex ?? index,
    systems: new Set(event.source === undefined ? [] : [event.source.system]),
    executions: 0,
    withdrawal: undefined,
    stopped: undefined,
    slice: sliceNameOf(authorization),
    settled: undefined,
    isSound: true,
  };
}

function sliceNameOf(authorization: AuthorizationEvent['authorization']): SliceName | undefined {
  const slice = authorization.kind === 'grant' ? authorization.slice : undefined;
  return slice && { ledgerId: slice.ledger_id.b64, eventId: slice.event_id.b64 };
}

const NANOSECONDS = 1_000_000_000n;

/** The rule that a grant's bounds have. */
export function makeApprovalRule({
  tools,
  approvers,
  above,
  count = 1,
  max_age_s: age,
}: ApprovalRuleJson): ApprovalRule {
  return {
    tools: makeToolSet(tools),
    approvers: makePrincipalSet(approvers),
    words: approvers.join(' or '),
    above: above && amountsOf(above),
    count,
    maxAge: age === undefined ? undefined : BigInt(age) * NANOSECONDS,
  };
}

function openAccount(cap: Rational): Account {
  return { cap, used: ZERO, estimated: ZERO, reserved: ZERO };
}

/** The action that an event makes. */
export function makeAction(outline: ActionOutline, place: EventPlace, grant: Grant | undefined): Action {
  const { decision, principalId, occurredAt, intent, userIntent, toolName, params } = outline;
  const { expiresAt, system } = outline;
  const reservation = new Map<string, Rational>();
  for (const { unit, amount } of outline.reservation) reservation.set(unit, amount);
  return {
    place,
    decision,
    principalId,
    occurredAt,
    intent,
    userIntent,
    grant,
    toolName,
    params,
    reservation,
    expiresAt,
    system,
  };
}

/** A grant and those that it was delegated from, nearest first; at most {@link MAX_GRANT_DEPTH}. */
export function grantChain(grant: Grant | undefined): Grant[] {
  const chain: Grant[] = [];
  for (let each = grant; each !== undefined && chain.length < MAX_GRANT_DEPTH; each = each.parent)
    chain.push(each);
  return chain;
}

/**
 * The nearest of a grant and its ancestors whose own record is invalid or in violation (SPEC §8 rule 12); undefined for none. Live
 * decisions MUST NOT allow anything under such a grant.
 */
export function findUnsound(grant: Grant | undefined): Grant | undefined {
  let each = grant;
  while (each?.isSound === true) each = each.parent;
  return each;
}

/** The systems remembered of one grant, and of a ledger. */
export const MAX_SYSTEMS = 64;

/** All systems beyond {@link MAX_SYSTEMS}. No system has this name, so no policy accepts it. */
export const OTHER_SYSTEMS = '';

/** Adds a system, or {@link OTHER_SYSTEMS} beyond the limit. */
export function addSystem(systems: Set<string>, system: string): void {
  if (!systems.has(system)) systems.add(systems.size < MAX_SYSTEMS ? system : OTHER_SYSTEMS);
}

/** The foreign systems of a grant's chain and of an action, sorted. */
export function systemsOf(grant: Grant | undefined, action?: Pick<Action, 'system'>): string[] {
  const systems = new Set(action?.system === undefined ? [] : [action.system]);
  for (const each of grantChain(grant)) for (const system of each.systems) systems.add(system);
  return [...systems].sort();
}

/** The ids of a grant and of those that it was delegated from, nearest first. */
export function chainIds(grant: Grant | undefined): string[] {
  return grantChain(grant).map(({ place }) => place.eventId);
}

/** A meter vector's amounts by unit. */
export function amountsOf(vector: MeterVector): Map<string, Rational> {
  return new Map(vector.map(({ unit, amount }) => [unit, toRational(amount)]));
}

/** A digest as text, by which digests are compared. */
export function digestKey(digest: { readonly alg: string; readonly b64: string }): string {
  return `${digest.alg}:${digest.b64}`;
}

/** A resource as text. Both parts are opaque, and compared byte by byte. */
export function resourceKey(resource: { readonly kind: string; readonly reference: string }): string {
  return JSON.stringify([resource.kind, resource.reference]);
}

function authorizedBy(event: AuthorizationEvent, place: EventPlace): Authorized {
  return {
    place,
    decision: event.decision,
    principalId: event.principal_id,
    occurredAt: event.occurred_at,
    intent: digestKey(event.intents.intent_digest),
    userIntent: event.intents.user_intent_digest && digestKey(event.intents.user_intent_digest),
  };
}
