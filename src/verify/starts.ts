/**
 * Starts: `x.northroot.start`, northroot's own extension event (docs/format.md). Whoever executes something says so, durably, before
 * it begins; the execution then names the start by `prev_event_id`. Verification gives no finding on starts, as on no `x.…` event: it
 * only remembers which are open, for those who decide live.
 */

import { digestKey, type EventPlace } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import type { ExecutionOutline } from '../event/outline.js';
import { typeEvent } from '../event/typed-event.js';
import { checkEvent } from '../schema/check.js';
import type { EventEnvelope } from '../schema/generated/types.js';
import { fromDigestText } from '../value/digest.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** The event type of a start. */
export const START_TYPE = 'x.northroot.start';

/** The most starts that are open under one grant at a time; further ones are not remembered. */
export const MAX_OPEN_STARTS = 1_000;

const RECORDER = /^[A-Za-z0-9_-]{16,128}$/;

/**
 * Remembers a start that counts: of the form of one, of an allowed grant or an allowed action that is not executed, by its principal, and
 * signed by an entitled key where the ledger asks for signatures. Anything else holds nobody up.
 */
export function noteStart(
  state: VerifyState,
  event: EventEnvelope,
  place: EventPlace,
  findings: LineFindings,
): void {
  if (findings.invalid || (state.signaturesRequired && findings.signers.length === 0)) return;
  const read = readStart(event, place);
  if (read === undefined) return;
  const { authorizationId: id, start } = read;
  const { actions, grants, starts } = state.links;
  const action = actions.get(id);
  const authorization = action ?? grants.get(id);
  if (authorization?.decision !== 'allow' || authorization.principalId !== event.principal_id) return;
  if (action !== undefined && (action.toolName !== start.toolName || action.params !== start.params)) return;
  const open = starts.get(id) ?? new Map<string, OpenStart>();
  // It takes over the start that it follows.
  const taken = event.prev_event_id?.b64;
  if (taken !== undefined) open.delete(taken);
  if (open.size >= (action === undefined ? MAX_OPEN_STARTS : 1)) return;
  open.set(fromDigestText(place.eventId), start);
  starts.set(id, open);
}

/** Forgets the start that an execution settles: the one that it names, or any of the action that it spends. */
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

/** A start's members are those that an execution has before it ends. */
function readStart(
  event: EventEnvelope,
  place: EventPlace,
): { readonly authorizationId: string; readonly start: OpenStart } | undefined {
  const { meter_known: meters, recorder, tool_params_digest: params } = event;
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
    started_at: event['started_at'],
    meter_used: meters,
    outcome: 'unknown',
  };
  if (typeof recorder !== 'string' || !RECORDER.test(recorder)) return undefined;
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
      startedAt: execution.started_at as string,
      recorder,
      meters: execution.meter_used,
    },
  };
}
