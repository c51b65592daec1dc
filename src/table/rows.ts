/**
 * A verified ledger as two tables: one row for each record, and one for each amount that a record names. The same columns are
 * written as CSV and as Parquet.
 */

import { countedAmounts, countedUse } from '../export/counted.js';
import type { Party } from '../export/subject.js';
import type { AuthorizationEvent, ExecutionEvent, Meter, Source } from '../schema/generated/types.js';
import { toDigestText, type Digest } from '../value/digest.js';
import { formatExactly } from '../value/format-rational.js';
import { toRational } from '../value/quantity.js';
import { reduceRational, type Rational } from '../value/rational.js';
import { isTimestamp, parseTimestamp } from '../value/timestamp.js';
import type { VerifiedRecord } from '../verify/verified-record.js';

/**
 * What a column holds: text; a whole number below 2^53; true or false; an exact decimal, as a bigint that is so many
 * 10^−{@link DECIMAL_SCALE}; an instant, as a bigint of microseconds since 1970. A value that a decimal or an instant cannot hold
 * exactly is left out of it, and stands in the column of text beside it.
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
  direction: 'text',
  reason: 'text',
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
export type MeterRole = 'used' | 'reserved' | 'cap' | 'action_cap' | 'rate' | 'credit' | 'debit';

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
  const { examined, signatures } = record;
  const count = (outcome: string): number => signatures.filter((each) => each.outcome === outcome).length;
  return {
    ...commonCells(record),
    findings: codesOf(record),
    prev_event_id: idText(examined?.previousId),
    ...detailCells(record),
    signers: signersOf(record).join(' ') || undefined,
    signatures_valid: count('valid'),
    signatures_invalid: count('invalid'),
    signatures_unverified: count('unverified'),
  };
}

/**
 * A row for each amount of a record; none for one whose event is not well-formed.
 *
 * @param whose - Who ran what an adjustment corrects; default: who made it.
 */
export function meterRows(record: VerifiedRecord, whose?: Party): Row<typeof METER_COLUMNS>[] {
  const { examined } = record;
  if (examined?.wellFormed !== true) return [];
  const common = commonCells(record);
  const rows = (
    role: MeterRole,
    meters: readonly Meter[] | undefined,
    counted: (index: number) => boolean | undefined,
    cells: Row<typeof METER_COLUMNS> = {},
  ): Row<typeof METER_COLUMNS>[] =>
    (meters ?? []).map(({ unit, amount: quantity }, index) => {
      const amount = toRational(quantity);
      return {
        ...common,
        role,
        unit,
        amount: formatExactly(amount),
        amount_decimal: toDecimal(amount),
        counted: counted(index),
        ...cells,
      };
    });
  if (examined.type === 'execution') {
    const event = examined.event();
    const counted = countedUse(record, event);
    return rows('used', event.meter_used, (index) => counted[index], basisCells(event.meter_basis));
  }
  if (examined.type === 'adjustment') {
    const event = examined.event();
    const counted = countedAmounts(record, event);
    const of = whose === undefined ? {} : { principal_id: whose.principalId, tool_name: whose.toolName };
    return rows(event.direction, event.meters, (index) => counted[index], {
      ...basisCells(event.meter_basis),
      ...of,
    });
  }
  if (examined.type === 'authorization') {
    const { authorization, decision } = examined.event();
    const none = (): undefined => undefined;
    if (authorization.kind === 'action')
      return rows('reserved', authorization.action.meter_reservation, none, { decision });
    const { bounds } = authorization;
    return [
      ...rows('cap', bounds?.meter_caps, none, { decision }),
      ...rows('action_cap', bounds?.action_caps, none, { decision }),
      ...rows('rate', bounds?.rate_limits, none, { decision }),
    ];
  }
  return [];
}

/** The keys whose signatures are right, each once. */
export function signersOf({ signatures }: VerifiedRecord): string[] {
  const valid = signatures.filter(({ outcome }) => outcome === 'valid').map(({ keyid }) => keyid);
  return [...new Set(valid)];
}

/** The codes of a record's findings, each once, as they came. */
export function codesOf({ findings }: VerifiedRecord): string | undefined {
  return [...new Set(findings.map(({ code }) => code))].join(' ') || undefined;
}

function commonCells(record: VerifiedRecord) {
  const { ordinal, examined, verdict, grantIds } = record;
  return {
    place: ordinal,
    seq: examined?.seq,
    event_id: idText(examined?.eventId),
    event_type: examined?.eventType,
    verdict,
    ...timeCells('occurred_at', examined?.occurredAt),
    principal_id: examined?.principalId,
    tool_name: examined?.toolName,
    grants_above: grantIds.join(' ') || undefined,
  };
}

function detailCells({ examined }: VerifiedRecord): Row<typeof EVENT_COLUMNS> {
  if (examined?.type === 'authorization') return authorizationCells(examined.event());
  if (examined?.type === 'execution') return executionCells(examined.event());
  if (examined?.type === 'adjustment') {
    const event = examined.event();
    return {
      direction: event.direction,
      reason: event.reason,
      grant_event_id: digestText(event.grant_event_id),
      execution_event_id: digestText(event.execution_event_id),
      meter_basis: event.meter_basis,
      ...sourceCells(event.source),
    };
  }
  return {};
}

function authorizationCells(event: AuthorizationEvent): Row<typeof EVENT_COLUMNS> {
  const { authorization, intents } = event;
  const bounds = authorization.kind === 'grant' ? authorization.bounds : undefined;
  return {
    kind: authorization.kind,
    decision: event.decision,
    decision_code: event.decision_code,
    policy_id: event.policy_id,
    policy_digest: digestText(event.policy_digest),
    grant_event_id: digestText(authorization.grant_event_id),
    tool_params_digest:
      authorization.kind === 'action' ? digestText(authorization.action.tool_params_digest) : undefined,
    ...timeCells('not_before', bounds?.not_before),
    ...timeCells('expires_at', bounds?.expires_at),
    intent_digest: digestText(intents.intent_digest),
    user_intent_digest: digestText(intents.user_intent_digest),
    ...sourceCells(event.source),
  };
}

function executionCells(event: ExecutionEvent): Row<typeof EVENT_COLUMNS> {
  return {
    auth_event_id: digestText(event.auth_event_id),
    tool_params_digest: digestText(event.tool_params_digest),
    outcome: event.outcome,
    error_code: event.error_code,
    ...timeCells('started_at', event.started_at),
    ...timeCells('ended_at', event.ended_at),
    model_id: event.model_id,
    provider: event.provider,
    meter_basis: event.meter_basis,
    intent_digest: digestText(event.intents.intent_digest),
    user_intent_digest: digestText(event.intents.user_intent_digest),
    output_digest: digestText(event.output_digest),
    ...sourceCells(event.source),
  };
}

function sourceCells(source: Source | undefined): Row<typeof EVENT_COLUMNS> {
  return {
    source_system: source?.system,
    source_id: source?.id,
    source_digest: digestText(source?.digest),
  };
}

function basisCells(basis: string | undefined): Row<typeof METER_COLUMNS> {
  return { basis, estimated: basis === undefined ? undefined : basis === 'estimated' };
}

/** A timestamp's text, and its instant where microseconds hold it. */
function timeCells<N extends string>(
  name: N,
  text: string | undefined,
): Readonly<Record<N | `${N}_utc`, Cell>> {
  return { [name]: text, [`${name}_utc`]: toMicroseconds(text) } as Record<N | `${N}_utc`, Cell>;
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

function idText(b64: string | undefined): string | undefined {
  return b64 === undefined ? undefined : toDigestText(b64);
}
