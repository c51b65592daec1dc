/**
 * Starts (SPEC §3.8): `x.northroot.start` records that an execution begins; the execution names it by `prev_event_id`. A start that does
 * not count is no finding. Open ones are remembered: a started action cannot be released, and live decisions count what runs.
 */

import { fromDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { compareRationals } from '../../base/value/rational.js';
import type { ExecutionOutline } from '../../format/event/outline.js';
import { typeEvent } from '../../format/event/typed-event.js';
import { checkEvent } from '../../format/schema/check.js';
import type { EventEnvelope } from '../../format/schema/generated/types.js';
import { type Action, digestKey, type EventPlace, type Grant, grantChain } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import { findStop } from '../bounds/withdrawal.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

export const START_TYPE = 'x.northroot.start';

/** The maximum of open starts of one grant; further ones do not count. */
export const MAX_OPEN_STARTS = 1_000;

const RECORDER = /^[A-Za-z0-9_-]{16,128}$/;

interface TakenStart {
  readonly start: OpenStart;
  readonly action: Action | undefined;
  readonly grant: Grant | undefined;
}

/**
 * Remembers a start that counts: a valid record of the right form, by the principal of an allowed grant or of an allowed action not yet
 * executed. Anything else has no effect.
 *
 * @returns The start that it takes over, if any.
 */
export function noteStart(
  state: VerifyState,
  event: EventEnvelope,
  place: EventPlace,
  findings: LineFindings,
): TakenStart | undefined {
  if (findings.invalid) return undefined;
  const read = readStart(event, place);
  if (read === undefined) return undefined;
  const { authorizationId: id, start } = read;
  const { actions, grants, starts, expiring } = state.links;
  const action = actions.get(id);
  const authorization = action ?? grants.get(id);
  if (authorization?.decision !== 'allow' || authorization.principalId !== event.principal_id)
    return undefined;
  if (action !== undefined && (action.toolName !== start.toolName || action.params !== start.params))
    return undefined;
  const open = starts.get(id) ?? new Map<string, OpenStart>();
  // It takes over the start that it follows.
  const taken = open.get(event.prev_event_id?.b64 ?? '');
  if (taken === undefined && open.size >= maxOpenStarts(action, grants.get(id))) return undefined;
  if (taken !== undefined) open.delete(fromDigestText(taken.place.eventId));
  const isStopped =
    action !== undefined && findStop(grantChain(action.grant), action.place.seq) !== undefined;
  open.set(fromDigestText(place.eventId), { ...start, isStopped });
  starts.set(id, open);
  if (expiring.has(id)) expiring.delete(id);
  state.sliceWatch?.begin(id, state.records);
  return taken && { start: taken, action, grant: action === undefined ? grants.get(id) : action.grant };
}

/** The maximum of open starts of one authorization. */
function maxOpenStarts(action: Action | undefined, grant: Grant | undefined): number {
  if (action !== undefined) return 1;
  const limit = grant?.concurrency?.limit;
  const isLower = limit !== undefined && compareRationals(limit, { n: BigInt(MAX_OPEN_STARTS), d: 1n }) < 0;
  return isLower ? Number(limit.n) : MAX_OPEN_STARTS;
}

/** The first of the open starts of an authorization, by its id, base64url. */
export function findOpenStart({ links: { starts } }: VerifyState, id: string): OpenStart | undefined {
  return starts.get(id)?.values().next().value;
}

/** An open start of an authorization; both ids base64url. */
export function findStartOf(
  { links: { starts } }: VerifyState,
  authorizationId: string,
  id: string,
): OpenStart | undefined {
  return starts.get(authorizationId)?.get(id);
}

/** The open start of its authorization, principal and tool that an execution names. */
export function findNamedStart(
  { links }: VerifyState,
  { authorizationId: id, previousId, principalId, toolName }: ExecutionOutline,
): OpenStart | undefined {
  const start = previousId === undefined ? undefined : links.starts.get(id)?.get(previousId);
  if (start?.toolName !== toolName) return undefined;
  const authorization = links.actions.get(id) ?? links.grants.get(id);
  return authorization?.principalId === principalId ? start : undefined;
}

/** Removes the start that an execution completes: the one that it names, or any of its action. */
export function closeStart(
  { links: { starts } }: VerifyState,
  event: ExecutionOutline,
  spends: boolean,
): void {
  if (starts.size === 0) return;
  const id = event.authorizationId;
  const open = starts.get(id);
  if (open === undefined) return;
  if (event.previousId !== undefined && open.delete(event.previousId)) starts.set(id, open);
  if (spends || open.size === 0) starts.delete(id);
}

/** A start has the members that an execution has before it ends. */
function readStart(
  event: EventEnvelope,
  place: EventPlace,
): { readonly authorizationId: string; readonly start: Omit<OpenStart, 'isStopped'> } | undefined {
  const { meter_known: meters, recorder, started_at: startedAt, tool_params_digest: params } = event;
  const asExecution = {
    event_type: 'execution',
    event_version: event['event_version'],
    event_id: event['event_id'],
    occurred_at: event['occurred_at'],
    principal_id: event['principal_id'],
    canonical_profile_id: event['canonical_profile_id'],
    payload_digest: event['payload_digest'],
    intents: event['intents'],
    auth_event_id: event['auth_event_id'],
    tool_name: event['tool_name'],
    ...(params === undefined ? {} : { tool_params_digest: params }),
    started_at: startedAt,
    meter_used: meters,
    outcome: 'unknown',
  };
  if (typeof recorder !== 'string' || !RECORDER.test(recorder)) return undefined;
  // Required here, unlike in an execution.
  if (typeof startedAt !== 'string') return undefined;
  if (checkEvent(asExecution).length > 0) return undefined;
  const typed = typeEvent(asExecution);
  if (typed.type !== 'execution') return undefined;
  const execution = typed.event;
  return {
    authorizationId: execution.auth_event_id.b64,
    start: {
      place,
      toolName: execution.tool_name,
      params: execution.tool_params_digest && digestKey(execution.tool_params_digest),
      startedAt,
      recorder,
      meters: shareMeters(execution.meter_used),
    },
  };
}

let lastMeters: MeterVector = [];

/** Many starts that are open at once say the same: they share it. */
function shareMeters(meters: MeterVector): MeterVector {
  if (JSON.stringify(meters) !== JSON.stringify(lastMeters)) lastMeters = meters;
  return lastMeters;
}
