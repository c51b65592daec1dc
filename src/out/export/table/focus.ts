/**
 * A verified ledger as cost rows of FOCUS 1.2 (FinOps Open Cost and Usage Specification). What a ledger does not know is null where
 * FOCUS allows that; `docs/reference/exports.md` lists the other values. Columns that begin with `x_` are northroot's.
 */

import type { ByteSink } from '../../../base/bytes/byte-sink.js';
import { checkOptions, type OptionTypes } from '../../../base/options.js';
import { toDigestText } from '../../../base/value/digest.js';
import { formatExactly } from '../../../base/value/format-rational.js';
import { isUnit } from '../../../base/value/meter.js';
import { toRational } from '../../../base/value/quantity.js';
import { type Rational, reduceRational, subtractRationals, ZERO } from '../../../base/value/rational.js';
import { formatInstant, parseTimestamp } from '../../../base/value/timestamp.js';
import { basisOf } from '../../../format/event/meter-basis.js';
import type { AdjustmentEvent, ExecutionEvent, Meter } from '../../../format/schema/generated/types.js';
import { countedAmounts, countedUse, isFirstOfItsId, unstatedUse } from '../../../log/read/counted.js';
import type { Party } from '../../../log/read/subject.js';
import type { LedgerInput } from '../../../log/read/verify-ledger.js';
import {
  EXPORT_OPTIONS,
  type ExportOptions,
  type ExportPass,
  writeRecords,
} from '../../../log/read/write-records.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { describeExport } from '../about.js';
import { verificationCsv } from './csv-tables.js';
import { csvRow } from './csv.js';
import { CURRENCIES, currencyOf } from './currencies.js';
import { codesOf } from './rows.js';

/** The columns of {@link exportFocus}, in order: all that FOCUS 1.2 demands of every dataset, some of the others, and northroot's. */
const FOCUS_COLUMNS = [
  'BilledCost',
  'BillingAccountId',
  'BillingAccountName',
  'BillingCurrency',
  'BillingPeriodEnd',
  'BillingPeriodStart',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargeFrequency',
  'ChargePeriodEnd',
  'ChargePeriodStart',
  'ConsumedQuantity',
  'ConsumedUnit',
  'ContractedCost',
  'EffectiveCost',
  'InvoiceIssuerName',
  'ListCost',
  'PricingQuantity',
  'PricingUnit',
  'ProviderName',
  'PublisherName',
  'ServiceCategory',
  'ServiceName',
  'SubAccountId',
  'x_FocusVersion',
  'x_EventId',
  'x_Seq',
  'x_RecordVerdict',
  'x_Findings',
  'x_Counted',
  'x_MeterUnit',
  'x_ExactAmount',
  'x_Rounded',
  'x_MeterBasis',
  'x_Estimated',
  'x_ProviderStated',
  'x_ToolName',
  'x_ModelId',
  'x_Outcome',
  'x_Reason',
  'x_StartedAt',
  'x_EndedAt',
  'x_GrantIds',
] as const;

const FOCUS_VERSION = '1.2';

type FocusRow = Readonly<Partial<Record<(typeof FOCUS_COLUMNS)[number], string | number | undefined>>>;

/** How a ledger is verified for {@link exportFocus}, and what in it is money. */
export interface FocusOptions extends ExportOptions {
  /** ISO 4217 codes by unit, such as `{ credits: 'USD' }`, beside each unit that is such a code in lower case. */
  readonly currencyUnits?: Readonly<Record<string, string>> | undefined;
}

/** Where {@link exportFocus} writes. */
export interface FocusSinks {
  readonly costs: ByteSink;
  /** What was verified, and what was not: names and values. */
  readonly verification: ByteSink;
}

export interface FocusExport extends ExportPass {
  readonly rows: number;
  /** Selected executions that name no amount in a currency: no row can say what they cost. */
  readonly withoutCost: number;
  /** Amounts that have no end as decimals, cut after 18 places; `x_Rounded` says which. */
  readonly rounded: number;
}

const OPTIONS: OptionTypes<FocusOptions> = { ...EXPORT_OPTIONS, currencyUnits: 'object' };
const DECIMAL_PLACES = 18;
const SECOND = 1_000_000_000n;

/**
 * Writes what the selected executions cost, and every adjustment that counts, as FOCUS cost rows in CSV: a row for each amount in a
 * currency, and one without cost for each other unit of the same execution.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; RangeError for currency units that are none; what a sink
 *   rejects with.
 */
export async function exportFocus(
  ledger: LedgerInput,
  { costs, verification }: FocusSinks,
  given: FocusOptions = {},
): Promise<FocusExport> {
  checkOptions('exportFocus', given, OPTIONS);
  const { currencyUnits, ...options } = given;
  const toCurrency = currencyLookup(currencyUnits);
  let count = 0;
  let withoutCost = 0;
  let rounded = 0;
  await costs.write(csvRow(FOCUS_COLUMNS));
  const pass = await writeRecords('exportFocus', ledger, options, (record, subject) => {
    const { examined } = record;
    if (examined?.wellFormed !== true || !isFirstOfItsId(record)) return undefined;
    let rows: FocusRow[] = [];
    if (examined.type === 'execution') {
      const event = examined.event();
      rows = usageRows(record, event, toCurrency);
    } else if (examined.type === 'adjustment') {
      rows = adjustmentRows(record, examined.event(), toCurrency, subject);
    }
    rows.push(...unstatedRows(record, toCurrency, subject));
    if (examined.type === 'execution' && rows.length === 0) withoutCost += 1;
    count += rows.length;
    rounded += rows.filter((row) => row.x_Rounded === 'true').length;
    const line = (row: FocusRow): string => csvRow(FOCUS_COLUMNS.map((name) => row[name] ?? ''));
    return rows.length === 0 ? undefined : costs.write(rows.map(line).join(''));
  });
  const about = describeExport(pass, options.selection);
  await verification.write(
    verificationCsv([
      ...about,
      ['focus_version', FOCUS_VERSION],
      ['focus_rows', String(count)],
      ['executions_without_cost', String(withoutCost)],
      ['rounded_amounts', String(rounded)],
    ]),
  );
  return { ...pass, rows: count, withoutCost, rounded };
}

type CurrencyLookup = (unit: string) => string | undefined;

function currencyLookup(given: FocusOptions['currencyUnits']): CurrencyLookup {
  if (given === undefined) return currencyOf;
  for (const [unit, code] of Object.entries(given)) {
    if (!isUnit(unit)) throw new RangeError('currencyUnits: expected units such as usd');
    if (!CURRENCIES.has(code)) throw new RangeError('currencyUnits: expected ISO 4217 codes such as USD');
  }
  return (unit) => (Object.hasOwn(given, unit) ? given[unit] : currencyOf(unit));
}

function usageRows(record: VerifiedRecord, event: ExecutionEvent, toCurrency: CurrencyLookup): FocusRow[] {
  const { meter_used: meters, provider, model_id: model, started_at: started, ended_at: ended } = event;
  const money = meters.filter(({ unit }) => toCurrency(unit) !== undefined);
  const [first] = money;
  if (first === undefined) return [];
  const common: FocusRow = {
    ...commonColumns(record, started ?? event.occurred_at, ended),
    ...partyColumns(record, provider ?? event.source?.system),
    ChargeCategory: 'Usage',
    ChargeDescription: `${event.tool_name} by ${event.principal_id}: ${event.outcome}`,
    ChargeFrequency: 'Usage-Based',
    ServiceCategory: categoryOf(model),
    ServiceName: model ?? event.tool_name,
    x_ToolName: event.tool_name,
    x_ModelId: model,
    x_Outcome: event.outcome,
    x_StartedAt: started,
    x_EndedAt: ended,
  };
  const counted = countedUse(record, event);
  const isCounted = (meter: Meter): string => String(counted[meters.indexOf(meter)]);
  const calls = meters.find(({ unit }) => unit === 'calls');
  const consumedCalls = calls === undefined ? '1' : toNumber(toRational(calls.amount)).text;
  const costs = money.map((meter, index): FocusRow => ({
    ...common,
    ...costColumns(meter.unit, toRational(meter.amount), toCurrency(meter.unit)),
    ...basisColumns(basisOf(event, meter.unit)),
    // One call is consumed, however many currencies it costs.
    ConsumedQuantity: index === 0 ? consumedCalls : '0',
    ConsumedUnit: 'Calls',
    x_Counted: isCounted(meter),
  }));
  const quantities = meters
    .filter(({ unit }) => unit !== 'calls' && toCurrency(unit) === undefined)
    .map((meter): FocusRow => {
      const { unit, amount } = meter;
      const exact = toRational(amount);
      const { text, isRounded } = toNumber(exact);
      return {
        ...common,
        BillingCurrency: toCurrency(first.unit),
        ...costsOf('0'),
        ConsumedQuantity: text,
        ConsumedUnit: unit,
        x_MeterUnit: unit,
        x_ExactAmount: formatExactly(exact),
        x_Rounded: String(isRounded),
        x_Counted: isCounted(meter),
        ...basisColumns(basisOf(event, unit)),
      };
    });
  return [...costs, ...quantities];
}

/** Use that counts and is not stated is an estimated cost. */
function unstatedRows(record: VerifiedRecord, toCurrency: CurrencyLookup, party: Party): FocusRow[] {
  const { modelId, toolName } = party;
  return unstatedUse(record).flatMap(({ unit, amount }): FocusRow[] => {
    const currency = toCurrency(unit);
    if (currency === undefined) return [];
    return [
      {
        ...partRow(record, party),
        ChargeCategory: 'Usage',
        ChargeDescription: `${unit} reserved for ${toolName ?? 'a call'} and not reported`,
        ChargeFrequency: 'Usage-Based',
        ServiceName: modelId ?? toolName ?? 'Other',
        ...costColumns(unit, amount, currency),
        // The call itself is counted where it says what it used.
        ConsumedQuantity: '0',
        ConsumedUnit: 'Calls',
        ...basisColumns('estimated'),
      },
    ];
  });
}

/** A refused adjustment is no charge. Others belong to the execution that they correct, so that charges and credits meet. */
function adjustmentRows(
  record: VerifiedRecord,
  event: AdjustmentEvent,
  toCurrency: CurrencyLookup,
  party: Party,
): FocusRow[] {
  const { modelId, toolName } = party;
  const counted = countedAmounts(record, event);
  const isCredit = event.direction === 'credit';
  return event.meters.flatMap(({ unit, amount }, index): FocusRow[] => {
    const currency = toCurrency(unit);
    if (currency === undefined || counted[index] !== true) return [];
    const exact = toRational(amount);
    return [
      {
        ...partRow(record, party),
        ChargeCategory: isCredit ? 'Credit' : 'Adjustment',
        ChargeDescription: `${event.direction} of ${unit} by ${event.principal_id}: ${event.reason}`,
        ChargeFrequency: 'One-Time',
        ServiceName: modelId ?? toolName ?? 'Adjustment',
        ...costColumns(unit, isCredit ? subtractRationals(ZERO, exact) : exact, currency),
        ...basisColumns(event.meter_basis),
        x_Reason: event.reason,
      },
    ];
  });
}

/** A row of a charge that counts for another execution's party. */
function partRow(record: VerifiedRecord, { principalId, toolName, modelId, provider }: Party): FocusRow {
  return {
    ...commonColumns(record, record.examined?.occurredAt ?? '', undefined),
    ...partyColumns(record, provider),
    SubAccountId: principalId,
    ServiceCategory: categoryOf(modelId),
    x_Counted: 'true',
    x_ToolName: toolName,
    x_ModelId: modelId,
  };
}

function categoryOf(model: string | undefined): string {
  return model === undefined ? 'Other' : 'AI and Machine Learning';
}

function commonColumns(record: VerifiedRecord, start: string, end: string | undefined): FocusRow {
  const { examined, verdict, grantIds, state } = record;
  const from = floorTo(parseTimestamp(start), SECOND);
  const last = end === undefined ? from : -floorTo(-parseTimestamp(end), SECOND);
  const until = last > from ? last : from + SECOND;
  const year = Number(formatInstant(from).slice(0, 4));
  const month = Number(formatInstant(from).slice(5, 7));
  return {
    BillingAccountId: accountOf(state),
    BillingPeriodStart: monthStart(year, month),
    BillingPeriodEnd: month === 12 ? monthStart(year + 1, 1) : monthStart(year, month + 1),
    ChargePeriodStart: formatInstant(from),
    ChargePeriodEnd: boundedInstant(until),
    SubAccountId: examined?.principalId,
    x_FocusVersion: FOCUS_VERSION,
    x_EventId: examined?.eventId === undefined ? undefined : toDigestText(examined.eventId),
    x_Seq: examined?.seq,
    x_RecordVerdict: verdict,
    x_Findings: codesOf(record),
    x_GrantIds: grantIds.join(' '),
  };
}

/** FOCUS wants all three to be named. Where the event names no provider it is the ledger, and `x_ProviderStated` says so. */
function partyColumns({ state }: VerifiedRecord, stated: string | undefined): FocusRow {
  const name = stated ?? accountOf(state);
  return {
    ProviderName: name,
    PublisherName: name,
    InvoiceIssuerName: name,
    x_ProviderStated: String(stated !== undefined),
  };
}

/** The ledger is the account that the costs were kept in: by its origin or, of bare events, by the id that they are bound to. */
function accountOf({ origin, ledgerId }: VerifiedRecord['state']): string {
  return origin ?? (ledgerId === undefined ? 'northroot' : toDigestText(ledgerId));
}

function costColumns(unit: string, exact: Rational, currency: string | undefined): FocusRow {
  const { text, isRounded } = toNumber(exact);
  return {
    BillingCurrency: currency,
    ...costsOf(text),
    x_MeterUnit: unit,
    x_ExactAmount: formatExactly(exact),
    x_Rounded: String(isRounded),
  };
}

/** Without unit prices, and without purchases ahead, the four are one. */
function costsOf(text: string): FocusRow {
  return { BilledCost: text, EffectiveCost: text, ListCost: text, ContractedCost: text };
}

function basisColumns(basis: string | undefined): FocusRow {
  return {
    x_MeterBasis: basis,
    x_Estimated: basis === undefined ? undefined : String(basis === 'estimated'),
  };
}

/** FOCUS has no fractions: what has no end as a decimal is cut, towards zero. */
function toNumber(exact: Rational): { readonly text: string; readonly isRounded: boolean } {
  const text = formatExactly(exact);
  if (!text.includes('/')) return { text, isRounded: false };
  const unit = 10n ** BigInt(DECIMAL_PLACES);
  const cut = (exact.n * unit) / exact.d;
  return { text: formatExactly(reduceRational(cut, unit)), isRounded: true };
}

function monthStart(year: number, month: number): string {
  // After the last year that a timestamp may have.
  if (year > 9999) return '9999-12-31T23:59:59Z';
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-01T00:00:00Z`;
}

function boundedInstant(instant: bigint): string {
  const last = parseTimestamp('9999-12-31T23:59:59Z');
  return formatInstant(instant > last ? last : instant);
}

function floorTo(value: bigint, step: bigint): bigint {
  const rest = value % step;
  return rest === 0n ? value : rest < 0n ? value - rest - step : value - rest;
}
