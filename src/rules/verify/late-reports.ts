/** Late reports: what was reported of a call after it was settled as unknown. A state remembers both; no rule reads them. */

import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { type Digest, isDigest, sha256Digest } from '../../base/value/digest.js';
import type { WellFormedLine } from '../../format/record/examine-line.js';
import type { EventEnvelope } from '../../format/schema/generated/types.js';
import type { Action } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import { SLICE_TOOL } from '../bounds/tool-set.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** The event type of a late report: members of an execution, `prev_event_id` names the settlement. */
export const LATE_REPORT_TYPE = 'x.northroot.late_report';
/** The reason of the debit for what a late report says beyond the charge; its `prev_event_id` names the action. */
export const LATE_REPORT_REASON = 'LATE_REPORT';

/** Remembers a call whose end is unknown. One whose execution has a code was reported. A slice is settled by its own ledger. */
export function noteLost(
  state: VerifyState,
  id: string,
  action: Action,
  { startedAt }: OpenStart,
  line: WellFormedLine<'execution'>,
): void {
  if (action.toolName === SLICE_TOOL || line.event().error_code !== undefined) return;
  const { principalId, toolName, params, intent, reservation } = action;
  const used = new Map(line.outline().used.map(({ unit, amount }) => [unit, amount]));
  state.unreported += 1;
  state.links.lost.set(id, {
    ...{ principalId, toolName, params, intent, startedAt, reservation, used },
    settlement: line.eventId,
    reported: undefined,
    isDebited: false,
  });
}

/** Remembers the first report of a call, by its own principal. */
export function noteLateReport(state: VerifyState, event: EventEnvelope, findings: LineFindings): void {
  const { links } = state;
  const named = event['auth_event_id'];
  if (findings.invalid || !isSha256Digest(named)) return;
  const call = links.lost.get(named.b64);
  if (call === undefined || call.reported !== undefined) return;
  if (event.principal_id !== call.principalId || event.prev_event_id?.b64 !== call.settlement) return;
  state.unreported -= 1;
  links.lost.set(named.b64, { ...call, reported: digestReport(event) });
}

/** Remembers that a late report was debited. */
export function noteLateDebit(
  { links }: VerifyState,
  line: WellFormedLine<'adjustment'>,
  findings: LineFindings,
): void {
  const { previousId: id } = line;
  const call = id === undefined || findings.invalid ? undefined : links.lost.get(id);
  if (id === undefined || call === undefined || line.outline().executionId !== call.settlement) return;
  const { reason, direction } = line.event();
  if (reason === LATE_REPORT_REASON && direction === 'debit')
    links.lost.set(id, { ...call, isDebited: true });
}

/** What a report says, without when and how long: who reports again says the same. base64url. */
export function digestReport(event: object): string {
  const said = event as Readonly<Record<string, unknown>>;
  const meters = said['meter_used'];
  const isTime = (each: unknown): boolean => (each as { readonly unit?: unknown } | null)?.unit === 'time.ms';
  const names = ['outcome', 'error_code', 'output_digest', 'tool_params_digest', 'model_id', 'provider'];
  return sha256Digest(
    canonicalBytesWithout([
      ...names.map((name) => said[name] ?? null),
      Array.isArray(meters) ? meters.filter((each) => !isTime(each)) : null,
    ]),
  ).b64;
}

function isSha256Digest(value: unknown): value is Digest {
  return isDigest(value) && value.alg === 'sha-256';
}
