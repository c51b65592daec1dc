/**
 * A verified ledger as two tables: one row for each record, and one for each amount that a record names. The same columns are
 * written as CSV and as Parquet.
 */

import { type Digest, toDigestText } from '../../../base/value/digest.js';
import { formatExactly } from '../../../base/value/format-rational.js';
import { toRational } from '../../../base/value/quantity.js';
import { type Rational, reduceRational } from '../../../base/value/rational.js';
import { isTimestamp, parseTimestamp } from '../../../base/value/timestamp.js';
import { basisOf } from '../../../format/event/meter-basis.js';
import type { ExecutionEvent, Meter } from '../../../format/schema/generated/types.js';
import { countedAmounts, countedUse, unstatedUse } from '../../../log/read/counted.js';
import type { Party } from '../../../log/read/subject.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';

/**
 * What a column holds: text; a whole number below 2^53; true or false; an exact decimal, as a bigint that is so many
 * 10^−{@link DECIMAL_SCALE}; an instant, as a bigint of microseconds since 1970. A value that a decimal or an instant cannot hold
 * exactly is left out of it, and is in the column of text beside it.
 */
export type ColumnKind = 'text' | 'integer' | 'boolean' | 'decimal' | 'instant';

/** A value, or nothing. */
export type Cell = string | number | boolean | bigint | undefined;

/** The columns of a table by name, in order. */
export type Columns = Readonly<Record<string, ColumnKind>>;

/** A row of a table; what it has no value for is left out. */
export type Row<C extends Columns> = { readonly [K in keyof C]?: Cell };

export const EVENT_COLUMNS = {
  place: 'integer',
  seq: 'integer',
  event_id: 'text',
  event_type: 'text',
  verdict: 'text',
  findings: 'text',
  occurred_at: 'text',
  occurred_at_utc: 'instant',
  principal_id: 'text',
  kind: 'text',
  decision: 'text',
  decision_code: 'text',
  policy_id: 'text',
  policy_digest: 'text',
  grant_event_id: 'text',
  auth_event_id: 'text',
  grants_above: 'text',
  tool_name: 'text',
  tool_params_digest: 'text',
  outcome: 'text',
  error_code: 'text',
  started_at: 'text',
  started_at_utc: 'instant',
  ended_at: 'text',
  ended_at_utc: 'instant',
  not_before: 'text',
  not_before_utc: 'instant',
  expires_at: 'text',
  expires_at_utc: 'instant',
  model_id: 'text',
  provider: 'text',
  meter_basis: 'text',
  meter_basis_by_unit: 'text',
  direction: 'text',
  effect: 'text',
  in_flight: 'text',
  reason: 'text',
  approval_event_ids: 'text',
  execution_event_id: 'text',
  intent_digest: 'text',
  user_intent_digest: 'text',
  output_digest: 'text',
  prev_event_id: 'text',
  source_system: 'text',
  source_id: 'text',
  source_digest: 'text',
  signers: 'text',
  signatures_valid: 'integer',
  signatures_invalid: 'integer',
  signatures_unverified: 'integer',
} as const satisfies Columns;

export const METER_COLUMNS = {
  place: 'integer',
  seq: 'integer',
  event_id: 'text',
  event_type: 'text',
  verdict: 'text',
  occurred_at: 'text',
  occurred_at_utc: 'instant',
  principal_id: 'text',
  decision: 'text',
  tool_name: 'text',
  grants_above: 'text',
  role: 'text',
  unit: 'text',
  amount: 'text',
  amount_decimal: 'decimal',
  basis: 'text',
  estimated: 'boolean',
  counted: 'boolean',
} as const satisfies Columns;

/** Decimals have 38 digits, so many of them after the point: what most readers of Parquet can add up exactly. */
export const DECIMAL_PRECISION = 38;
export const DECIMAL_SCALE = 18;
const DECIMAL_UNIT = 10n ** BigInt(DECIMAL_SCALE);
const DECIMAL_LIMIT = 10n ** BigInt(DECIMAL_PRECISION);

/** What a meter's amount is to the ledger. */
type MeterRole = 'used' | 'unstated' | 'reserved' | 'cap' | 'action_cap' | 'rate' | 'credit' | 'debit';

/** `r` in units of 10^−{@link DECIMAL_SCALE}; undefined where that is not exact, or has more than 38 digits. */
export function toDecimal({ n, d }: Rational): bigint | undefined {
  const scaled = n * DECIMAL_UNIT;
  if (scaled % d !== 0n) return undefined;
  const value = scaled / d;
  return value < DECIMAL_LIMIT && value > -DECIMAL_LIMIT ? value : undefined;
}

/** The text of what {@link toDecimal} gives. */
export function decimalText(value: bigint): string {
  return formatExactly(reduceRational(value, DECIMAL_UNIT));
}

/** The row of a record, whatever it is; of one that cannot be read it has what can be said. */
export function eventRow(record: VerifiedRecord): Row<typeof EVENT_COLUMNS> {
  const { ordinal, examined, verdict, grantIds, signatures } = record;
  const authorized = examined?.type === 'authorization' ? examined.event() : undefined;
  const executed = examined?.type === 'execution' ? examined.event() : undefined;
  const adjusted = examined?.type === 'adjustment' ? examined.event() : undefined;
  const approved = examined?.type === 'approval' ? examined.event() : undefined;
  const withdrawn = examined?.type === 'revocation' ? examined.event() : undefined;
  const event = authorized ?? executed ?? adjusted ?? approved ?? withdrawn;
  const ofGrant = adjusted ?? approved ?? withdrawn;
  const authorization = authorized?.authorization;
  const action = authorization?.kind === 'action' ? authorization.action : undefined;
  const bounds = authorization?.kind === 'grant' ? authorization.bounds : undefined;
  const intents = (authorized ?? executed)?.intents;
  const count = (outcome: string): number => signatures.filter((each) => each.outcome === outcome).length;
  // One literal: put together from parts it would take several times as long.
  return {
    place: ordinal,
    seq: examined?.seq,
    event_id: idText(examined?.eventId),
    event_type: examined?.eventType,
    verdict,
    findings: codesOf(record),
    occurred_at: examined?.occurredAt,
    occurred_at_utc: toMicroseconds(examined?.occurredAt),
    principal_id: examined?.principalId,
    kind: authorization?.kind,
    decision: (authorized ?? approved)?.decision,
    decision_code: (authorized ?? approved)?.decision_code,
    policy_id: authorized?.policy_id,
    policy_digest: digestText(authorized?.policy_digest),
    grant_event_id: digestText(authorization?.grant_event_id ?? ofGrant?.grant_event_id),
    auth_event_id: digestText(executed?.auth_event_id),
    grants_above: grantIds.join(' ') || undefined,
    tool_name: examined?.toolName,
    tool_params_digest: digestText((action ?? executed ?? approved)?.tool_params_digest),
    outcome: executed?.outcome,
    error_code: executed?.error_code,
    started_at: executed?.started_at,
    started_at_utc: toMicroseconds(executed?.started_at),
    ended_at: executed?.ended_at,
    ended_at_utc: toMicroseconds(executed?.ended_at),
    not_before: bounds?.not_before,
    not_before_utc: toMicroseconds(bounds?.not_before),
    expires_at: (bounds ?? approved)?.expires_at,
    expires_at_utc: toMicroseconds((bounds ?? approved)?.expires_at),
    model_id: executed?.model_id,
    provider: executed?.provider,
    meter_basis: (executed ?? adjusted)?.meter_basis,
    meter_basis_by_unit: basesText(executed?.meter_basis_by_unit),
    direction: adjusted?.direction,
    effect: withdrawn?.effect,
    in_flight: withdrawn?.in_flight,
    reason: (adjusted ?? withdrawn)?.reason,
    approval_event_ids: action?.approval_event_ids?.map(digestText).join(' '),
    execution_event_id: digestText(adjusted?.execution_event_id),
    intent_digest: digestText(intents?.intent_digest),
    user_intent_digest: digestText(intents?.user_intent_digest),
    output_digest: digestText(executed?.output_digest),
    prev_event_id: idText(examined?.previousId),
    source_system: event?.source?.system,
    source_id: event?.source?.id,
    source_digest: digestText(event?.source?.digest),
    signers: signersOf(record).join(' ') || undefined,
    signatures_valid: count('valid'),
    signatures_invalid: count('invalid'),
    signatures_unverified: count('unverified'),
  };
}

/** What the rows of a record's amounts have in common, beside what the record itself says. */
interface AmountCells {
  readonly decision?: string;
  readonly basisOf?: (unit: string) => string | undefined;
  readonly principalId?: string | undefined;
  readonly toolName?: string | undefined;
}

/**
 * A row for each amount of a record; none for one whose event is not well-formed.
 *
 * @param whose - The party of the execution that an adjustment corrects. Default: its own.
 */
export function meterRows(record: VerifiedRecord, whose?: Party): Row<typeof METER_COLUMNS>[] {
  const { examined, ordinal, verdict, grantIds } = record;
  if (examined?.wellFormed !== true) return [];
  const { seq, eventType, occurredAt } = examined;
  const eventId = idText(examined.eventId);
  const occurred = toMicroseconds(occurredAt);
  const above = grantIds.join(' ') || undefined;
  const rows = (
    role: MeterRole,
    meters: readonly { readonly unit: string; readonly amount: Rational }[],
    counted: (index: number) => boolean | undefined,
    { decision, basisOf: toBasis, principalId, toolName }: AmountCells,
  ): Row<typeof METER_COLUMNS>[] =>
    meters.map(({ unit, amount }, index) => {
      const basis = toBasis?.(unit);
      return {
        place: ordinal,
        seq,
        event_id: eventId,
        event_type: eventType,
        verdict,
        occurred_at: occurredAt,
        occurred_at_utc: occurred,
        principal_id: principalId,
        decision,
        tool_name: toolName,
        grants_above: above,
        role,
        unit,
        amount: formatExactly(amount),
        amount_decimal: toDecimal(amount),
        basis,
        estimated: basis === undefined ? undefined : basis === 'estimated',
        counted: counted(index),
      };
    });
  const { principalId, toolName } = examined;
  const unstated = rows('unstated', unstatedUse(record), () => true, {
    basisOf: () => 'estimated',
    principalId,
    toolName,
  });
  if (examined.type === 'execution') {
    const event = examined.event();
    const counted = countedUse(record, event);
    const cells = { basisOf: (unit: string) => basisOf(event, unit), principalId, toolName };
    return [...rows('used', exactly(event.meter_used), (index) => counted[index], cells), ...unstated];
  }
  if (examined.type === 'adjustment') {
    const event = examined.event();
    const counted = countedAmounts(record, event);
    return rows(event.direction, exactly(event.meters), (index) => counted[index], {
      basisOf: () => event.meter_basis,
      ...(whose ?? { principalId, toolName }),
    });
  }
  if (examined.type === 'authorization') {
    const { authorization, decision } = examined.event();
    const none = (): undefined => undefined;
    const cells = { decision, principalId, toolName };
    if (authorization.kind === 'action')
      return rows('reserved', exactly(authorization.action.meter_reservation), none, cells);
    const { bounds } = authorization;
    return [
      ...rows('cap', exactly(bounds?.meter_caps), none, cells),
      ...rows('action_cap', exactly(bounds?.action_caps), none, cells),
      ...rows('rate', exactly(bounds?.rate_limits), none, cells),
    ];
  }
  return unstated;
}

function exactly(meters: readonly Meter[] = []): { readonly unit: string; readonly amount: Rational }[] {
  return meters.map(({ unit, amount }) => ({ unit, amount: toRational(amount) }));
}

/** The keys with valid signatures, each once. */
export function signersOf({ signatures }: Pick<VerifiedRecord, 'signatures'>): string[] {
  const valid = signatures.filter(({ outcome }) => outcome === 'valid').map(({ keyid }) => keyid);
  return [...new Set(valid)];
}

/** The codes of a record's findings, each once, as they came. */
export function codesOf({ findings }: VerifiedRecord): string | undefined {
  return [...new Set(findings.map(({ code }) => code))].join(' ') || undefined;
}

function toMicroseconds(text: string | undefined): bigint | undefined {
  if (text === undefined || !isTimestamp(text)) return undefined;
  const nanoseconds = parseTimestamp(text);
  return nanoseconds % 1000n === 0n ? nanoseconds / 1000n : undefined;
}

/** As an opaque digest is written, of whatever algorithm. */
function digestText(digest: Digest | undefined): string | undefined {
  return digest === undefined ? undefined : `${digest.alg}:${digest.b64}`;
}

/** `usd=estimated tokens.input=reported`, in the order of the units. */
function basesText(bases: ExecutionEvent['meter_basis_by_unit']): string | undefined {
  return bases === undefined
    ? undefined
    : Object.entries(bases)
        .map(([unit, basis]) => `${unit}=${basis}`)
        .join(' ');
}

function idText(b64: string | undefined): string | undefined {
  return b64 === undefined ? undefined : toDigestText(b64);
}
