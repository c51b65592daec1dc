/**
 * A verified ledger as OpenTelemetry spans: one ExportTraceServiceRequest in the JSON encoding of OTLP, with attributes of the GenAI
 * conventions and northroot's own.
 */

import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import { encodeHex } from '../../../base/bytes/encoding.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { type Digest, fromDigestText, toDigestText } from '../../../base/value/digest.js';
import { parseTimestamp } from '../../../base/value/timestamp.js';
import { VERSION } from '../../../base/version.js';
import { basisOf } from '../../../format/event/meter-basis.js';
import type { ExecutionEvent } from '../../../format/schema/generated/types.js';
import { isFirstOfItsId } from '../../../log/read/counted.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import { type ExportOptions, type ExportPass, writeRecords } from '../../../log/read/write-records.js';
import { chainIds } from '../../../rules/bounds/grant.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { describeExport } from '../about.js';
import { meterRows, signersOf } from '../table/rows.js';
import { safeJson } from './safe-json.js';

/** What {@link exportOtlp} wrote. */
export interface OtlpExport extends ExportPass {
  readonly spans: number;
  /** Selected records of other types than spans are made of, or of which OTLP can hold no span. */
  readonly skipped: number;
}

const KIND_INTERNAL = 1;
const STATUS = { unset: 0, ok: 1, error: 2 } as const;
const MAX_NANOSECONDS = 2n ** 64n - 1n;
const MAX_INT64 = 2n ** 63n - 1n;

interface Span {
  /** `sha-256:…`. */
  readonly id: string;
  readonly parent: string | undefined;
  readonly name: string;
  readonly start: bigint;
  readonly end: bigint;
  /** Whether a beginning and an end were recorded. */
  readonly isTimed: boolean;
  readonly status: keyof typeof STATUS;
  readonly statusMessage?: string | undefined;
  readonly attributes: Attributes;
}

type Attributes = Readonly<
  Record<string, string | number | bigint | boolean | readonly string[] | undefined>
>;

/**
 * Writes the selected authorizations, executions, adjustments, approvals and revocations as spans. A root grant and all that is under it is one trace; the
 * parent of a span is what its event names. Ids are made of event ids, so the same ledger gives the same spans.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what `sink` rejects with.
 */
export async function exportOtlp(
  ledger: LedgerInput,
  sink: ByteSink,
  options: ExportOptions = {},
): Promise<OtlpExport> {
  let spans = 0;
  let skipped = 0;
  const scope = safeJson({ name: 'northroot', version: VERSION });
  await sink.write(`{"resourceSpans":[{"scopeSpans":[{"scope":${scope},"spans":[`);
  const pass = await writeRecords('exportOtlp', ledger, options, (record) => {
    const span = isFirstOfItsId(record) ? spanOf(record) : undefined;
    if (span === undefined || span.start < 0n || span.end > MAX_NANOSECONDS) {
      skipped += 1;
      return undefined;
    }
    const separator = spans === 0 ? '\n' : ',\n';
    spans += 1;
    return sink.write(`${separator}${safeJson(toJson(record, span))}`);
  });
  // What was verified is known at the end; members of JSON objects have no order.
  const resource = toAttributes({
    'service.name': 'northroot',
    'service.version': VERSION,
    ...Object.fromEntries(
      describeExport(pass, options.selection).map(([name, value]) => [`northroot.${name}`, value]),
    ),
    'northroot.spans': spans,
    'northroot.left_out': skipped,
  });
  await sink.write(`\n]}],"resource":${safeJson({ attributes: resource })}}]}\n`);
  return { ...pass, spans, skipped };
}

function spanOf(record: VerifiedRecord): Span | undefined {
  const { examined } = record;
  if (examined?.type === 'execution') return executionSpan(record, examined.event());
  if (examined?.type === 'authorization') {
    const { authorization, ...event } = examined.event();
    const isGrant = authorization.kind === 'grant';
    const name = isGrant ? 'grant' : `authorize ${authorization.action.tool_name}`;
    return instantSpan(event, name, authorization.grant_event_id, {
      'northroot.kind': authorization.kind,
      'northroot.grant_event_id': textOf(authorization.grant_event_id),
      'northroot.decision': event.decision,
      'northroot.decision_code': event.decision_code,
      'northroot.policy_id': event.policy_id,
      'northroot.policy_digest': textOf(event.policy_digest),
      ...(isGrant ? {} : { 'gen_ai.tool.name': authorization.action.tool_name }),
    });
  }
  if (examined?.type === 'approval') {
    const event = examined.event();
    return instantSpan(event, `${event.decision} ${event.tool_name}`, event.grant_event_id, {
      'northroot.grant_event_id': textOf(event.grant_event_id),
      'northroot.decision': event.decision,
      'northroot.decision_code': event.decision_code,
      'northroot.request_event_id': textOf(event.request_event_id),
      'gen_ai.tool.name': event.tool_name,
    });
  }
  if (examined?.type === 'revocation') {
    const event = examined.event();
    return instantSpan(event, event.effect, event.grant_event_id, {
      'northroot.grant_event_id': textOf(event.grant_event_id),
      'northroot.in_flight': event.in_flight,
      'northroot.reason': event.reason,
    });
  }
  if (examined?.type !== 'adjustment') return undefined;
  const event = examined.event();
  return instantSpan(event, event.direction, event.grant_event_id, {
    'northroot.grant_event_id': textOf(event.grant_event_id),
    'northroot.reason': event.reason,
    'northroot.execution_event_id': textOf(event.execution_event_id),
    'northroot.meter_basis': event.meter_basis,
  });
}

function instantSpan(
  event: { readonly event_id: Digest; readonly occurred_at: string },
  name: string,
  grant: Digest | undefined,
  attributes: Attributes,
): Span {
  const at = parseTimestamp(event.occurred_at);
  return {
    id: toDigestText(event.event_id.b64),
    parent: textOf(grant),
    name,
    start: at,
    end: at,
    isTimed: false,
    status: 'unset',
    attributes,
  };
}

function executionSpan(record: VerifiedRecord, event: ExecutionEvent): Span {
  const { started_at: started, ended_at: ended, meter_used: meters } = event;
  const start = parseTimestamp(started ?? event.occurred_at);
  const last = started === undefined || ended === undefined ? undefined : parseTimestamp(ended);
  const isTimed = last !== undefined && last >= start;
  const tokens = (unit: string): bigint | undefined => {
    const amount = meters.find((meter) => meter.unit === unit)?.amount;
    if (amount?.t !== 'int') return undefined;
    const value = BigInt(amount.v);
    return value <= MAX_INT64 ? value : undefined;
  };
  return {
    id: toDigestText(event.event_id.b64),
    parent: textOf(event.auth_event_id),
    name: `execute_tool ${event.tool_name}`,
    start,
    end: isTimed ? last : start,
    isTimed,
    status: event.outcome === 'success' ? 'ok' : event.outcome === 'failure' ? 'error' : 'unset',
    statusMessage: event.error_code,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': event.tool_name,
      'gen_ai.provider.name': event.provider,
      'gen_ai.request.model': event.model_id,
      'gen_ai.usage.input_tokens': tokens('tokens.input'),
      'gen_ai.usage.output_tokens': tokens('tokens.output'),
      'error.type': event.outcome === 'failure' ? event.error_code : undefined,
      'northroot.error_code': event.error_code,
      'northroot.outcome': event.outcome,
      'northroot.auth_event_id': textOf(event.auth_event_id),
      'northroot.meter_basis': event.meter_basis,
      ...Object.fromEntries(
        Object.entries(event.meter_basis_by_unit ?? {}).map(([unit, basis]) => [
          `northroot.meter_basis.${unit}`,
          basis,
        ]),
      ),
      'northroot.estimated': isEstimated(event),
      'northroot.resources': event.resources_touched?.map(({ kind, reference }) => `${kind}:${reference}`),
    },
  };
}

/** Whether any amount is only estimated; undefined where none is, and of one nothing is said. */
function isEstimated(event: ExecutionEvent): boolean | undefined {
  const bases = event.meter_used.map(({ unit }) => basisOf(event, unit));
  if (bases.length === 0) bases.push(event.meter_basis);
  return bases.includes('estimated') || (bases.includes(undefined) ? undefined : false);
}

function toJson(record: VerifiedRecord, span: Span): object {
  const { examined, verdict, findings, grantIds, state } = record;
  const principal = examined?.principalId ?? '';
  const isBroken = verdict === 'violation' || verdict === 'invalid';
  const codes = [...new Set(findings.map(({ code }) => code))];
  // What has no grant above it begins a trace of its own, with what it names.
  const trace = grantIds.at(-1) ?? (examined?.type === 'execution' ? span.parent : undefined) ?? span.id;
  // A parent is of the same trace. What names a grant that it does not count under is only linked to it.
  const { parent } = span;
  const isWithin = parent !== undefined && (examined?.type === 'execution' || grantIds.includes(parent));
  const linked =
    parent === undefined || isWithin ? undefined : state.links.grants.get(fromDigestText(parent));
  const message = isBroken ? `${verdict}: ${codes.join(' ')}` : span.statusMessage;
  const code = isBroken ? STATUS.error : STATUS[span.status];
  const meters = meterRows(record).map(
    ({ role, unit, amount }) => [`northroot.meter.${String(role)}.${String(unit)}`, amount] as const,
  );
  return {
    traceId: idOf(trace, 16),
    spanId: idOf(span.id, 8),
    ...(isWithin ? { parentSpanId: idOf(parent, 8) } : {}),
    name: span.name,
    kind: KIND_INTERNAL,
    startTimeUnixNano: span.start.toString(),
    endTimeUnixNano: span.end.toString(),
    attributes: toAttributes({
      ...span.attributes,
      ...(principal.startsWith('agent:')
        ? { 'gen_ai.agent.id': principal, 'gen_ai.agent.name': principal.slice('agent:'.length) }
        : {}),
      'northroot.event_id': span.id,
      'northroot.event_type': examined?.eventType,
      'northroot.seq': examined?.seq,
      'northroot.principal_id': principal,
      'northroot.occurred_at': examined?.occurredAt,
      'northroot.zero_length': span.isTimed ? undefined : true,
      'northroot.verdict': verdict,
      'northroot.findings': codes.length === 0 ? undefined : codes,
      'northroot.grants_above': grantIds.length === 0 ? undefined : grantIds,
      'northroot.signers': signersOf(record),
      ...Object.fromEntries(meters),
    }),
    ...(linked === undefined
      ? {}
      : {
          links: [
            {
              traceId: idOf(chainIds(linked).at(-1) ?? linked.place.eventId, 16),
              spanId: idOf(linked.place.eventId, 8),
            },
          ],
        }),
    status: {
      code,
      // OpenTelemetry has a description of errors alone.
      ...(message === undefined || code !== STATUS.error ? {} : { message }),
    },
  };
}

function toAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: toAnyValue(value) }],
  );
}

function toAnyValue(value: NonNullable<Attributes[string]>): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'object')
    return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
  return { intValue: value.toString() };
}

/** The first bytes of the SHA-256 of an event's id as text, in hex. */
function idOf(eventId: string, bytes: number): string {
  return encodeHex(sha256(encodeUtf8(eventId)).subarray(0, bytes));
}

function textOf(digest: Digest | undefined): string | undefined {
  return digest === undefined ? undefined : `${digest.alg}:${digest.b64}`;
}
