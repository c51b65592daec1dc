/** What a ledger says of single calls, for `reconcile`: its records as far as they are about calls, and what of them is one call. */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { type Digest, formatDigest, isDigest, toDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { basisOf } from '../../format/event/meter-basis.js';
import type { AuthorizationEvent, ExecutionEvent } from '../../format/schema/generated/types.js';
import { isSelected, type RecordSelection } from '../../rules/selection.js';
import { hasFormOfRelease } from '../../rules/verify/authorizations.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { notStated } from './claims.js';
import { isUsedUp } from '../../rules/verify/event-index.js';

/** A record of a ledger that is about one call: an action, or an execution. */
export interface LedgerEntry {
  readonly seq: number;
  readonly eventId: string;
  readonly kind: 'action' | 'execution';
  /** Of an execution: the event that it names as its authorization, `sha-256:…`. */
  readonly authorizationId?: string | undefined;
  readonly source?: { readonly system: string; readonly id: string; readonly digest?: string } | undefined;
  /** Of an action that was decided live: the asker's own name for the call, with its session's before a colon. */
  readonly requestKey?: string | undefined;
  /** Ids of the call in the record's `meta`, which no digest and no signature covers. */
  readonly metaIds: readonly string[];
  readonly tool: string;
  /** Absent where the event says that its source states none. */
  readonly paramsDigest?: Digest | undefined;
  /** Of an execution: that of what it names. */
  readonly decision?: 'allow' | 'deny' | undefined;
  /** Of an execution. An attempt that was blocked, a release, and what a host says that it did not run did nothing: these have none. */
  readonly outcome?: 'success' | 'failure' | 'unknown' | undefined;
  readonly meters: MeterVector;
  /** The units whose amounts are only estimated. */
  readonly estimated: readonly string[];
  readonly occurredAt: string;
  readonly verdict: EventVerdict;
  /** Whether a selection takes it. */
  readonly isMeant: boolean;
}

/**
 * Keys of `meta` whose values are ids of calls, as `snake_case` has them: the last words say of what.
 * A trace, a session or a run has many calls, so that their ids are none of these.
 */
const META_ID =
  /(?:^|_)(?:call|tool_use|request|response|completion|span|proposal|decision|reservation|receipt)_id$/;

/** Ids of one record's `meta` that are taken. */
const MAX_META_IDS = 16;

/** What a verified record says of a call; undefined of one that is about none, or cannot be read. */
export function ledgerEntryOf(
  record: VerifiedRecord,
  selection: RecordSelection = {},
): LedgerEntry | undefined {
  const { examined, ordinal, verdict, findings, state } = record;
  if (examined?.wellFormed !== true) return undefined;
  if (findings.some(({ code }) => code === 'EVENT_DUPLICATE')) return undefined;
  const base = {
    seq: ordinal,
    eventId: toDigestText(examined.eventId),
    occurredAt: examined.occurredAt,
    verdict,
    metaIds: metaIdsOf(record),
    isMeant: isSelected(record, selection),
  };
  if (examined.type === 'execution') return { ...base, ...ofExecution(examined.event(), state, verdict) };
  if (examined.type !== 'authorization') return undefined;
  const event = examined.event();
  return event.authorization.kind === 'action' ? { ...base, ...ofAction(event) } : undefined;
}

/** What a record that is evidence of another system was made from; undefined of any other, and of one that is invalid. */
export function evidenceSourceOf({
  examined,
  verdict,
}: VerifiedRecord): { readonly system: string; readonly digest: string } | undefined {
  if (examined?.wellFormed !== true || verdict === 'invalid' || !examined.eventType.startsWith('x.'))
    return undefined;
  const { source } = examined.event() as { readonly source?: unknown };
  const { system, digest } = (source ?? {}) as { readonly system?: unknown; readonly digest?: unknown };
  return typeof system === 'string' && isDigest(digest)
    ? { system, digest: formatDigest(digest) }
    : undefined;
}

type Part = Omit<LedgerEntry, 'seq' | 'eventId' | 'occurredAt' | 'verdict' | 'metaIds' | 'isMeant'>;

function ofAction(event: AuthorizationEvent): Part {
  const { action } = event.authorization as Extract<AuthorizationEvent['authorization'], { kind: 'action' }>;
  return {
    kind: 'action',
    source: sourceOf(event),
    tool: action.tool_name,
    paramsDigest: statedParams(action.tool_params_digest, event),
    requestKey: action.request_key,
    decision: event.decision,
    meters: [],
    estimated: [],
  };
}

function ofExecution(event: ExecutionEvent, state: VerifyState, verdict: EventVerdict): Part {
  const id = event.auth_event_id.b64;
  const known = state.links.actions.get(id) ?? state.links.grants.get(id);
  const isSpent = known === undefined && isUsedUp(state.events.find(id)?.kind);
  const didNothing = verdict === 'denied' || hasFormOfRelease(event) || saysNothingRan(event);
  return {
    kind: 'execution',
    authorizationId: toDigestText(id),
    source: sourceOf(event),
    tool: event.tool_name,
    paramsDigest: statedParams(event.tool_params_digest, event),
    decision: known?.decision ?? (isSpent ? 'allow' : undefined),
    outcome: didNothing ? undefined : event.outcome,
    meters: event.meter_used,
    estimated: event.meter_used
      .map(({ unit }) => unit)
      .filter((unit) => basisOf(event, unit) === 'estimated'),
  };
}

/** What hosts report of a call that was begun for the ledger, and then given up or refused by somebody else. */
const NOT_RUN = /^(?:ABORTED|NOT_RUN|OPENCLAW_BLOCKED(?:_\w+)?)$/;

function saysNothingRan({
  outcome,
  error_code: code,
  output_digest: output,
  source,
}: ExecutionEvent): boolean {
  return outcome === 'failure' && output === undefined && source === undefined && NOT_RUN.test(code ?? '');
}

function sourceOf({ source }: AuthorizationEvent | ExecutionEvent): LedgerEntry['source'] {
  if (source === undefined) return undefined;
  const { system, id, digest } = source;
  return { system, id, ...(digest === undefined ? {} : { digest: formatDigest(digest) }) };
}

/** The digest that stands for none is none. */
function statedParams(
  digest: Digest | undefined,
  { source }: AuthorizationEvent | ExecutionEvent,
): Digest | undefined {
  if (digest === undefined || source === undefined) return digest;
  return formatDigest(digest) === formatDigest(notStated(source.system, 'params')) ? undefined : digest;
}

function metaIdsOf({ bytes, examined }: VerifiedRecord): string[] {
  if (bytes === undefined || examined?.layout !== 'records') return [];
  const { start = 0, end = 0 } = examined.span ?? {};
  // Members are in the order of their names: `meta` follows the event.
  const rest = bytes.subarray(end);
  if (start === 0 || !META_MEMBER.every((byte, index) => rest[index] === byte)) return [];
  const { meta } = JSON.parse(decodeUtf8(bytes)) as { readonly meta: unknown };
  if (typeof meta !== 'object' || meta === null) return [];
  const ids = Object.entries(meta).flatMap(([key, value]) =>
    typeof value === 'string' && value !== '' && META_ID.test(toSnakeCase(key)) ? [value] : [],
  );
  return [...new Set(ids)].slice(0, MAX_META_IDS);
}

const META_MEMBER = [...',"meta":'].map((character) => character.charCodeAt(0));

function toSnakeCase(key: string): string {
  return key
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase();
}

/** What a ledger says of one call: an action with its execution, an action without one, or an execution of no action. */
export interface LedgerCall {
  readonly entries: readonly LedgerEntry[];
  readonly tool: string;
  readonly paramsDigest: Digest | undefined;
  readonly decision: 'allow' | 'deny' | undefined;
  /** Absent where it was not executed. */
  readonly outcome: LedgerEntry['outcome'];
  readonly meters: MeterVector;
  readonly estimated: LedgerEntry['estimated'];
  readonly occurredAt: string;
  readonly isInvalid: boolean;
  readonly isMeant: boolean;
}

/** Puts entries together to calls. It holds the actions that have no execution yet, as verification does. */
export class CallAssembly {
  readonly #actions = new Map<string, LedgerEntry>();

  /** The call that is complete with this entry, if one is. */
  take(entry: LedgerEntry): LedgerCall | undefined {
    if (entry.kind === 'action') {
      this.#actions.set(entry.eventId, entry);
      return undefined;
    }
    const action = this.#actions.get(entry.authorizationId ?? '');
    if (action !== undefined) this.#actions.delete(action.eventId);
    return toCall(action, entry);
  }

  /** The actions of which the ledger has no execution. */
  *rest(): Generator<LedgerCall, void, void> {
    for (const action of this.#actions.values()) yield toCall(action, undefined);
    this.#actions.clear();
  }
}

function toCall(action: LedgerEntry | undefined, execution: LedgerEntry | undefined): LedgerCall {
  const entries = [action, execution].filter((entry) => entry !== undefined);
  const last = (execution ?? action) as LedgerEntry;
  return {
    entries,
    tool: last.tool,
    paramsDigest: execution?.paramsDigest ?? action?.paramsDigest,
    decision: action?.decision ?? execution?.decision,
    outcome: execution?.outcome,
    meters: execution?.meters ?? [],
    estimated: execution?.estimated ?? [],
    occurredAt: last.occurredAt,
    isInvalid: entries.some(({ verdict }) => verdict === 'invalid'),
    isMeant: entries.some(({ isMeant }) => isMeant),
  };
}
