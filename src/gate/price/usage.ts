/** The usage of a call as it is given: checked, and counted by unit. */

import { checkString, describeValue } from '../../base/options.js';
import type { Meter } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { ModelCall, ModelUsage } from '../../log/agent/model-usage.js';
import { ALL_PARTS, type CountedPart, INPUT_PARTS, OUTPUT_PARTS, PRICE_UNITS } from './units.js';

/** The most of a unit in one call, so that no cost has more than 39 digits. */
export const MAX_COUNT = 1_000_000_000;

/** The longest name of a model or provider that is asked for. */
export const MAX_NAME_LENGTH = 256;

const KNOWN_UNITS: ReadonlySet<string> = new Set(PRICE_UNITS);

const MEMBERS: ReadonlySet<string> = new Set(['input', 'output', ...ALL_PARTS.map(({ member }) => member)]);

/**
 * @param also - Members besides those of a usage
 * @throws TypeError for a member that is missing, unknown or no number; RangeError for one that is no whole number from 0 to 10^9, and for
 *   parts that are more than their whole
 */
export function checkUsage(where: string, usage: ModelUsage, also: readonly string[] = []): void {
  const given: unknown = usage;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new TypeError(`${where}: expected a usage, found ${describeValue(given)}`);
  for (const [name, value] of Object.entries(given)) {
    if (also.includes(name)) continue;
    if (!MEMBERS.has(name))
      throw new TypeError(`${where}: a usage has no member ${JSON.stringify(name.slice(0, 80))}`);
    if (value !== undefined) checkCount(where, name, value);
  }
  for (const name of ['input', 'output'] as const)
    if (usage[name] === undefined) throw new TypeError(`${where}: expected ${name}, found none`);
  restOf(where, 'input', usage, INPUT_PARTS);
  restOf(where, 'output', usage, OUTPUT_PARTS);
}

/** @throws TypeError, RangeError unless it is a whole number from 0 to 10^9 */
export function checkCount(where: string, name: string, value: unknown): asserts value is number {
  if (typeof value !== 'number')
    throw new TypeError(`${where}: expected ${name} to be a number, found ${describeValue(value)}`);
  if (!Number.isInteger(value) || value < 0 || value > MAX_COUNT)
    throw new RangeError(`${where}: ${name}: expected a whole number from 0 to ${MAX_COUNT}, found ${value}`);
}

/** What of the whole is in no part. @throws RangeError where the parts are more than the whole */
export function restOf(
  where: string,
  whole: 'input' | 'output',
  usage: ModelUsage,
  parts: readonly CountedPart[],
): number {
  const rest = parts.reduce((left, { member }) => left - (usage[member] ?? 0), usage[whole]);
  if (rest >= 0) return rest;
  throw new RangeError(
    `${where}: expected the parts of ${whole} within it, found ${-rest} more than its ${usage[whole]}`,
  );
}

/** @throws TypeError, RangeError unless it is a call with a usage */
export function checkCall(where: string, call: ModelCall): void {
  checkUsage(where, call, ['model', 'provider', 'at']);
  checkNames(where, call);
}

/** @throws TypeError, RangeError unless these name a model */
export function checkNames(
  where: string,
  { model, provider, at }: Pick<ModelCall, 'model' | 'provider' | 'at'>,
): void {
  checkName(where, 'model', model);
  if (provider !== undefined) checkName(where, 'provider', provider);
  if (at === undefined) return;
  checkString(where, 'at', at);
  if (!isTimestamp(at))
    throw new RangeError(`${where}: at: expected a timestamp such as 2026-03-01T12:00:00Z`);
}

function checkName(where: string, name: string, text: unknown): void {
  checkString(where, name, text);
  if (text === '' || text.length > MAX_NAME_LENGTH || /\p{Surrogate}/u.test(text))
    throw new RangeError(`${where}: ${name}: expected 1 to ${MAX_NAME_LENGTH} characters of Unicode text`);
}

/** What a call used, by unit; each unit has what its parts have. A part that is not stated has no meter. */
export function countUsage(usage: ModelUsage): Meter[] {
  const counts = new Map<string, number>([
    ['tokens.input', usage.input],
    ['tokens.output', usage.output],
  ]);
  for (const { member, unit } of ALL_PARTS) {
    const count = usage[member];
    if (count === undefined) continue;
    for (const each of [unit, ...aboveOf(unit)]) counts.set(each, (counts.get(each) ?? 0) + count);
  }
  return [...counts].map(([unit, count]) => ({ unit, amount: { t: 'int', v: String(count) } }));
}

/**
 * The usage that {@link countUsage} counted; undefined where a count is no whole number from 0 to 10^9, all input or all output is not
 * among the meters, or parts are more than their whole.
 */
export function usageOf(meters: readonly Meter[]): ModelUsage | undefined {
  const counts = new Map<string, number>();
  for (const { unit, amount } of meters) {
    if (!KNOWN_UNITS.has(unit)) continue;
    const { n, d } = toRational(amount);
    if (d !== 1n || n > BigInt(MAX_COUNT)) return undefined;
    counts.set(unit, Number(n));
  }
  const [input, output] = [counts.get('tokens.input'), counts.get('tokens.output')];
  if (input === undefined || output === undefined) return undefined;
  const usage: Record<string, number> = { input, output };
  for (const { member, unit } of ALL_PARTS) {
    const count = counts.get(unit);
    if (count === undefined) continue;
    const within = ALL_PARTS.filter((each) => aboveOf(each.unit).at(-1) === unit);
    const rest = within.reduce((left, each) => left - (counts.get(each.unit) ?? 0), count);
    if (rest < 0) return undefined;
    usage[member] = rest;
  }
  const isWithin = (whole: 'input' | 'output', parts: readonly CountedPart[]): boolean =>
    parts.reduce((sum, { member }) => sum + (usage[member] ?? 0), 0) <= (usage[whole] as number);
  if (!isWithin('input', INPUT_PARTS) || !isWithin('output', OUTPUT_PARTS)) return undefined;
  return usage as unknown as ModelUsage;
}

/** The parts that a unit is within, up to all input or output, which are stated by themselves. */
function aboveOf(unit: string): string[] {
  const names = unit.split('.');
  return names.slice(3).map((_, index) => names.slice(0, 3 + index).join('.'));
}
