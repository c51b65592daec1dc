/**
 * The parts of an event that the rules of verification need. The fast path reads them from the bytes (`fast/scan/scanned-line.ts`), the
 * slow path from the parsed event; the rules see no difference. Ids are base64url, other digests texts, `alg:b64`.
 */

import { formatDigest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import type { Rational } from '../../base/value/rational.js';
import type {
  AdjustmentEvent,
  AuthorizationEvent,
  ExecutionEvent,
  MeterBasisByUnit,
  ResourceRef,
} from '../schema/generated/types.js';
import type { EventTypes, TypeName } from './typed-event.js';

export interface UnitAmount {
  readonly unit: string;
  readonly amount: Rational;
}

/** A meter vector; each unit is in it once. */
export type UnitAmounts = readonly UnitAmount[];

/** A grant, without its bounds, which are read from the event. */
interface GrantOutline {
  readonly kind: 'grant';
  readonly decision: 'allow' | 'deny';
  readonly grantId: string | undefined;
  /** Whether one of its checks failed, or its hygiene is not Ok. */
  readonly hasDoubts: boolean;
}

export interface ActionOutline {
  readonly kind: 'action';
  readonly decision: 'allow' | 'deny';
  readonly grantId: string | undefined;
  readonly hasDoubts: boolean;
  readonly principalId: string;
  readonly occurredAt: string;
  readonly intent: string;
  readonly userIntent: string | undefined;
  readonly toolName: string;
  readonly params: string;
  readonly reservation: UnitAmounts;
  /** The latest start. */
  readonly expiresAt: string | undefined;
  /** The ids of approvals that it names, base64url. */
  readonly approvalIds: readonly string[];
  /** The requester's name for the request. */
  readonly requestKey: string | undefined;
  /** The foreign system that it was imported from. */
  readonly system: string | undefined;
  /** The index of the first amount that is a double; -1 for none. */
  readonly firstDouble: number;
}

/** The kind, decision and grant of an authorization: cheaper than its outline. */
export type AuthorizationTerms = Pick<ActionOutline | GrantOutline, 'kind' | 'decision' | 'grantId'>;

export interface ExecutionOutline {
  readonly principalId: string;
  readonly occurredAt: string;
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
  readonly authorizationId: string;
  readonly previousId: string | undefined;
  readonly intent: string;
  readonly toolName: string;
  readonly params: string | undefined;
  readonly used: UnitAmounts;
  /** The index of the first amount that is a double; -1 for none. */
  readonly firstDouble: number;
  readonly isEstimated: boolean;
  /** By unit; undefined if no unit has its own basis. */
  readonly isUnitEstimated: ReadonlyMap<string, boolean> | undefined;
  readonly isFailure: boolean;
  readonly isUnknown: boolean;
  /** Whether its `error_code` is `ABANDONED`. */
  readonly isAbandoned: boolean;
  readonly hasOutputDigest: boolean;
  readonly hasOutputRef: boolean;
  readonly resources: readonly ResourceRef[];
}

export interface AdjustmentOutline {
  readonly principalId: string;
  readonly direction: 'credit' | 'debit';
  readonly grantId: string;
  readonly executionId: string | undefined;
  readonly amounts: UnitAmounts;
  /** The foreign system that it was imported from. */
  readonly system: string | undefined;
  /** The index of the first amount that is a double; -1 for none. */
  readonly firstDouble: number;
  readonly isEstimated: boolean;
}

/** The outlines by type; for other types the rules read the event. */
interface Outlines {
  readonly authorization: GrantOutline | ActionOutline;
  readonly execution: ExecutionOutline;
  readonly adjustment: AdjustmentOutline;
}

export type OutlineOf<T extends TypeName> = T extends keyof Outlines ? Outlines[T] : undefined;

/** The outline of a well-formed event. */
export function outlineEvent(type: TypeName, event: EventTypes[TypeName]): OutlineOf<TypeName> {
  if (type === 'execution') return outlineExecution(event as ExecutionEvent);
  if (type === 'adjustment') return outlineAdjustment(event as AdjustmentEvent);
  return type === 'authorization' ? outlineAuthorization(event as AuthorizationEvent) : undefined;
}

function outlineAuthorization(event: AuthorizationEvent): GrantOutline | ActionOutline {
  const { authorization, intents, decision, checks, hygiene } = event;
  const grantId = authorization.grant_event_id?.b64;
  const hasDoubts =
    (hygiene !== undefined && hygiene.status !== 'Ok') ||
    checks?.some(({ result }) => result === 'fail') === true;
  if (authorization.kind === 'grant') return { kind: 'grant', decision, grantId, hasDoubts };
  const {
    tool_name: toolName,
    tool_params_digest: params,
    meter_reservation: meters = [],
    expires_at: expiresAt,
    approval_event_ids: approvals = [],
    request_key: requestKey,
  } = authorization.action;
  return {
    kind: 'action',
    decision,
    grantId,
    hasDoubts,
    principalId: event.principal_id,
    occurredAt: event.occurred_at,
    intent: formatDigest(intents.intent_digest),
    userIntent: intents.user_intent_digest && formatDigest(intents.user_intent_digest),
    toolName,
    params: formatDigest(params),
    reservation: readAmounts(meters),
    expiresAt,
    approvalIds: approvals.map(({ b64 }) => b64),
    requestKey,
    system: event.source?.system,
    firstDouble: findDouble(meters),
  };
}

/** @throws TypeError if the authorization is a grant. */
export function outlineAction(event: AuthorizationEvent): ActionOutline {
  const outline = outlineAuthorization(event);
  if (outline.kind !== 'action') throw new TypeError('expected an action');
  return outline;
}

export function outlineExecution(event: ExecutionEvent): ExecutionOutline {
  const { tool_params_digest: params, meter_used: meters } = event;
  return {
    principalId: event.principal_id,
    occurredAt: event.occurred_at,
    startedAt: event.started_at,
    endedAt: event.ended_at,
    authorizationId: event.auth_event_id.b64,
    previousId: event.prev_event_id?.b64,
    intent: formatDigest(event.intents.intent_digest),
    toolName: event.tool_name,
    params: params && formatDigest(params),
    used: readAmounts(meters),
    firstDouble: findDouble(meters),
    isEstimated: event.meter_basis === 'estimated',
    isUnitEstimated: event.meter_basis_by_unit && estimatedUnits(event.meter_basis_by_unit),
    isFailure: event.outcome === 'failure',
    isUnknown: event.outcome === 'unknown',
    isAbandoned: event.error_code === 'ABANDONED',
    hasOutputDigest: event.output_digest !== undefined,
    hasOutputRef: event.output_ref !== undefined,
    resources: event.resources_touched ?? [],
  };
}

/** Whether each unit with a basis of its own is estimated. */
export function estimatedUnits(bases: MeterBasisByUnit): ReadonlyMap<string, boolean> {
  return new Map(Object.entries(bases).map(([unit, basis]) => [unit, basis === 'estimated']));
}

function outlineAdjustment(event: AdjustmentEvent): AdjustmentOutline {
  return {
    principalId: event.principal_id,
    direction: event.direction,
    grantId: event.grant_event_id.b64,
    executionId: event.execution_event_id?.b64,
    amounts: readAmounts(event.meters),
    system: event.source?.system,
    firstDouble: findDouble(event.meters),
    isEstimated: event.meter_basis === 'estimated',
  };
}

/** The amounts of a vector of the right shape. */
export function readAmounts(vector: MeterVector): UnitAmount[] {
  return vector.map(({ unit, amount }) => ({ unit, amount: toRational(amount) }));
}

function findDouble(vector: MeterVector): number {
  return vector.findIndex(({ amount }) => amount.t === 'f64');
}
