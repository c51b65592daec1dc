/** What a guarded function uses, summed exactly while it runs. */

import { printable } from '../../base/bytes/printable.js';
import { type AmountsByUnit, MAX_METERS, type Meter, meters } from '../../base/value/meter.js';
import { fromRational, type Quantity, toRational } from '../../base/value/quantity.js';
import { addRationals, type Rational } from '../../base/value/rational.js';
import type { MeterBasis } from '../../format/schema/generated/types.js';
import type { ExecutionDetails } from '../policy/record.js';
import type { CallPricing, ModelCall } from './model-usage.js';

const MEASURED = ['calls', 'time.ms'];
const MAX_UNITS = MAX_METERS - MEASURED.length;

/** Collects amounts by unit, exactly: `0.1` and `0.2` are `0.3`. */
export class UsageMeter {
  readonly #sums = new Map<string, Rational>();
  readonly #problems: string[] = [];
  readonly #unsure = new Set<string>();
  readonly #bases: Record<string, MeterBasis> = {};
  readonly #pricing: CallPricing | undefined;
  #details: ExecutionDetails = {};
  #isClosed = false;

  /** @param pricing - What {@link UsageMeter.addUsage} prices calls by */
  constructor(pricing?: CallPricing) {
    this.#pricing = pricing;
  }

  /**
   * Adds use: `meter.add('usd', '0.25')`. The work is done by then, so a bad amount does not throw: it is reported, and the unit's
   * reservation is charged.
   * @param unit - Such as `usd` or `tokens.input`; at most 62 besides `calls` and `time.ms`
   * @param amount - Not negative; a text, number, bigint or quantity. A number counts as its shortest decimal, rounded up to 38 decimals.
   * @throws TypeError when the use is already recorded
   */
  add(unit: string, amount: bigint | number | string | Quantity): void;
  /** Adds amounts by unit: `meter.add({ usd: '0.25', 'tokens.input': 1042 })`. */
  add(amounts: AmountsByUnit): void;
  add(given: string | AmountsByUnit, amount?: bigint | number | string | Quantity): void {
    if (this.#isClosed) throw new TypeError('the use is recorded already');
    const amounts = typeof given === 'string' ? { [given]: amount } : given;
    for (const [unit, each] of Object.entries(amounts ?? {})) this.#addOne(unit, each);
  }

  /**
   * Adds what a call of a model used, its tokens as reported and its price in `usd` as estimated; and names the model, its provider and the
   * price file in the execution (of several calls, those of the last). What cannot be priced is not free: its reservation is charged, also
   * where the error is caught.
   * @throws NorthrootError `MODEL_UNKNOWN`, `MODEL_AMBIGUOUS`, `PRICE_UNKNOWN`; TypeError, RangeError for a malformed call, for a guard without
   *   `prices`, and when the use is already recorded
   */
  addUsage(call: ModelCall): void {
    if (this.#isClosed) throw new TypeError('the use is recorded already');
    const pricing = this.#pricing;
    if (pricing === undefined) {
      this.#unsure.add(USD);
      throw new TypeError('addUsage: expected prices, of the guard or of the ledger');
    }
    let unsure = pricing.units;
    try {
      for (const { unit, amount } of pricing.count(call)) this.#addOne(unit, amount, 'reported');
      const { model: modelId, provider } = call;
      this.#details = { ...this.#details, modelId, provider };
      unsure = [USD];
      const priced = pricing.charge(call);
      this.#addOne(priced.usd.unit, priced.usd.amount, 'estimated');
      const { pricingSnapshotDigest } = priced;
      this.#details = { ...this.#details, provider: priced.provider, pricingSnapshotDigest };
    } catch (error) {
      for (const unit of unsure) this.#unsure.add(unit);
      this.#tell(
        `a call of a model was not metered: ${error instanceof Error ? error.message : String(error)}`,
      );
      throw error;
    }
  }

  #addOne(unit: string, amount: unknown, basis?: MeterBasis): void {
    try {
      const exact = (typeof amount === 'number' ? decimalOf(amount) : amount) as string;
      const [meter] = meters({ [unit]: exact }) as [Meter];
      const before = this.#sums.get(unit);
      const own = toRational(meter.amount);
      const sum = before === undefined ? own : addRationals(before, own);
      // Throws if no event may carry the sum.
      fromRational(sum);
      const units = new Set([...this.#sums.keys(), unit]);
      for (const each of MEASURED) units.delete(each);
      if (units.size > MAX_UNITS) throw new RangeError(`expected at most ${MAX_UNITS} units`);
      this.#sums.set(unit, sum);
      if (basis !== undefined) this.#bases[unit] = basis;
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
      this.#unsure.add(unit);
      this.#tell(`an amount of ${printable(unit, 80)} was not metered: ${error.message}`);
    }
  }

  #tell(problem: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(problem);
  }

  /** Whether the guard or the ledger has `prices`: without them {@link UsageMeter.addUsage} throws. */
  get isPriced(): boolean {
    return this.#pricing !== undefined;
  }

  /** The sums, ordered by unit. */
  read(): Meter[] {
    return [...this.#sums]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([unit, sum]) => ({ unit, amount: fromRational(sum) }));
  }

  /** What could not be added, in words; the first 100. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** The units of amounts that could not be added. */
  get unsure(): ReadonlySet<string> {
    return this.#unsure;
  }

  /** The basis of each unit that {@link UsageMeter.addUsage} added to. */
  get bases(): Readonly<Record<string, MeterBasis>> {
    return this.#bases;
  }

  /** What {@link UsageMeter.addUsage} knows of the execution. */
  get details(): ExecutionDetails {
    return this.#details;
  }

  close(): void {
    this.#isClosed = true;
  }
}

const MAX_PROBLEMS = 100;
const USD = 'usd';
const MAX_DECIMALS = 38;
const EXPONENT_FORM = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/;

/** A number's shortest decimal, without exponent; rounded up to 38 decimals. */
function decimalOf(value: number): string {
  const text = String(value);
  const match = EXPONENT_FORM.exec(text);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match ?? [];
  if (match === null) return text;
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  if (scale <= 0) return `${sign}${digits * 10n ** BigInt(-scale)}`;
  const excess = 10n ** BigInt(Math.max(0, scale - MAX_DECIMALS));
  const kept = ((digits + excess - 1n) / excess).toString();
  const places = Math.min(scale, MAX_DECIMALS);
  const padded = kept.padStart(places + 1, '0');
  return `${sign}${padded.slice(0, -places)}.${padded.slice(-places)}`;
}
