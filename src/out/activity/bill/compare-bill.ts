/** How much of a bill the executions of a ledger explain: by day, model and unit, and in all. */

import { formatExactly } from '../../../base/value/format-rational.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../../base/value/rational.js';
import { toRational } from '../../../base/value/quantity.js';
import { formatInstant, parseTimestamp } from '../../../base/value/timestamp.js';
import type { ActivityBill } from '../../../format/schema/generated/types.js';
import { isFirstOfItsId } from '../../../log/read/counted.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { type Bill, undatedModel } from './read-bill.js';

/** The most rows that are listed; all are in the sums. */
const MAX_BILL_LISTED = 1_000;

/** The most rows of executions that the bill does not have. */
const MAX_UNBILLED = 10_000;

interface Row {
  readonly day: string;
  readonly model: string | null;
  readonly unit: string;
  billed: Rational;
  explained: Rational;
}

/** Compares a bill with the records of a verification. */
export class BillComparison {
  readonly #bill: Bill;
  readonly #provider: string | undefined;
  readonly #rows = new Map<string, Row>();
  readonly #units: ReadonlySet<string>;
  readonly #first: string;
  readonly #last: string;
  #unbilled = 0;
  #leftOut = 0;

  /** @param provider - Only executions of this provider explain something. Default: of all. */
  constructor(bill: Bill, provider?: string) {
    this.#bill = bill;
    this.#provider = provider;
    this.#units = new Set(bill.amounts.map(({ unit }) => unit));
    const days = bill.amounts.map(({ day }) => day);
    this.#first = days[0] ?? '';
    this.#last = days.at(-1) ?? '';
    for (const { day, model, unit, amount } of bill.amounts)
      this.#rows.set(keyOf(day, model, unit), { day, model, unit, billed: amount, explained: ZERO });
  }

  /** To be called with every record. Executions whose own record is invalid explain nothing. */
  take(record: VerifiedRecord): void {
    const { examined, verdict } = record;
    if (examined?.wellFormed !== true || examined.type !== 'execution') return;
    if (verdict === 'invalid' || !isFirstOfItsId(record)) return;
    const event = examined.event();
    const { model_id: name, provider, started_at: startedAt, occurred_at: occurredAt } = event;
    if (name === undefined || (this.#provider !== undefined && provider !== this.#provider)) return;
    // The form of a timestamp begins with its day, and is in UTC.
    const day = (startedAt ?? occurredAt).slice(0, 10);
    if (day < this.#first || day > this.#last) return;
    for (const { unit, amount } of event.meter_used)
      if (this.#units.has(unit)) this.#explain(day, undatedModel(name), unit, toRational(amount));
  }

  #explain(day: string, model: string, unit: string, amount: Rational): void {
    if (amount.n === 0n) return;
    // What the bill does not give by model explains what it has of no model.
    const row = this.#rows.get(keyOf(day, model, unit)) ?? this.#rows.get(keyOf(day, null, unit));
    const sum = addRationals(row?.explained ?? ZERO, amount);
    if (exceedsDenominatorLimit(sum)) {
      this.#leftOut += 1;
      return;
    }
    if (row !== undefined) {
      row.explained = sum;
      return;
    }
    if (this.#unbilled >= MAX_UNBILLED) {
      this.#leftOut += 1;
      return;
    }
    this.#unbilled += 1;
    this.#rows.set(keyOf(day, model, unit), { day, model, unit, billed: ZERO, explained: amount });
  }

  finish(): ActivityBill {
    const rows = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
    const { kinds, lines, hasMore } = this.#bill;
    return {
      kinds: [...kinds],
      lines,
      from: this.#first,
      until: nextDay(this.#last),
      ...(this.#provider === undefined ? {} : { provider: this.#provider }),
      ...(hasMore ? { has_more: true as const } : {}),
      sums: [...this.#units].sort().map((unit) => sumOf(unit, rows)),
      rows: rows.slice(0, MAX_BILL_LISTED).map(toRow),
      rows_total: rows.length,
      left_out: this.#leftOut,
    };
  }
}

function toRow({ day, model, unit, billed, explained }: Row): ActivityBill['rows'][number] {
  return {
    day,
    model,
    unit,
    billed: formatExactly(billed),
    explained: formatExactly(explained),
    rest: formatExactly(subtractRationals(billed, explained)),
  };
}

function sumOf(unit: string, rows: readonly Row[]): ActivityBill['sums'][number] {
  let [billed, charged, explained, covered] = [ZERO, ZERO, ZERO, ZERO];
  for (const row of rows) {
    if (row.unit !== unit) continue;
    billed = addRationals(billed, row.billed);
    if (row.billed.n > 0n) charged = addRationals(charged, row.billed);
    explained = addRationals(explained, row.explained);
    const lesser = compareRationals(row.billed, row.explained) < 0 ? row.billed : row.explained;
    if (lesser.n > 0n) covered = addRationals(covered, lesser);
  }
  return {
    unit,
    billed: formatExactly(billed),
    explained: formatExactly(explained),
    rest: formatExactly(subtractRationals(billed, explained)),
    covered: formatExactly(covered),
    // A credit explains nothing: of the sum less credits, the share would be too large.
    ...(charged.n <= 0n ? {} : { covered_percent: percentOf(covered, charged) }),
  };
}

/** Rounded down to a tenth: what is not all is never 100. */
function percentOf(part: Rational, whole: Rational): string {
  const tenths = (part.n * whole.d * 1_000n) / (part.d * whole.n);
  return `${tenths / 10n}.${tenths % 10n}`;
}

function nextDay(day: string): string {
  return formatInstant(parseTimestamp(`${day}T00:00:00Z`) + 86_400_000_000_000n).slice(0, 10);
}

/** Text that sorts by day, model and unit. */
function keyOf(day: string, model: string | null, unit: string): string {
  return `${day}\n${model ?? ''}\n${unit}`;
}
