/** Values of foreign JSON as northroot has them, exactly, from their text. */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { parseDecimal } from '../../base/json/decimal.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { JsonValue } from '../../base/json/value.js';
import { type Digest, sha256Digest } from '../../base/value/digest.js';
import { isNegativeQuantity, type Quantity, quantityFromNumberText } from '../../base/value/quantity.js';
import { formatInstant, isTimestamp } from '../../base/value/timestamp.js';
import { instantOfLocal } from './local-time.js';

const MAX_NUMBER_LENGTH = 400;

/** The text at `path` below `value`. */
export function textAt(value: SourceValue | undefined, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, ...path);
  return typeof found === 'string' ? found : undefined;
}

/** The object at `path` below `value`. */
export function objectAt(
  value: SourceValue | undefined,
  ...path: readonly string[]
): SourceObject | undefined {
  const found = valueAt(value, ...path);
  return found instanceof SourceObject ? found : undefined;
}

/** The array at `path` below `value`. */
export function listAt(
  value: SourceValue | undefined,
  ...path: readonly string[]
): readonly SourceValue[] | undefined {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? (found as readonly SourceValue[]) : undefined;
}

/** The text of the number at `path` below `value`. */
export function numberAt(value: SourceValue | undefined, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, ...path);
  return found instanceof SourceNumber ? found.text : undefined;
}

/** The value at `path` below `value`; undefined where a member is missing. */
export function valueAt(value: SourceValue | undefined, ...path: readonly string[]): SourceValue | undefined {
  let at = value;
  for (const name of path) at = at instanceof SourceObject ? at.get(name) : undefined;
  return at;
}

/** The amount that a number's text says, exactly; undefined for a negative one, and for one that no int or dec holds. */
export function amountOf(text: string | undefined): Quantity | undefined {
  if (text === undefined || text.length > MAX_NUMBER_LENGTH) return undefined;
  try {
    const amount = quantityFromNumberText(text);
    return isNegativeQuantity(amount) ? undefined : amount;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The amount that a value states as a whole number; undefined of anything else. */
export function countIn(value: SourceValue | undefined): Extract<Quantity, { t: 'int' }> | undefined {
  const amount = value instanceof SourceNumber ? amountOf(value.text) : undefined;
  return amount?.t === 'int' ? amount : undefined;
}

/** What a value is that should be an amount: the text of a number, or that it is none. */
export function numberTextOf(value: SourceValue | undefined): string {
  return value instanceof SourceNumber ? value.text : 'no number';
}

/** Decimal places of a second that the unit of a count is at. */
const PLACES = { s: 0, ms: 3, us: 6, ns: 9 } as const;

/**
 * The Timestamp of a count since 1970-01-01T00:00:00Z, from its text: `1795291446.384348` seconds, `1795292352754` milliseconds. Digits
 * beyond nanoseconds are cut off. Undefined for what lies outside the years 0000 to 9999.
 */
export function timeOf(count: string | undefined, unit: keyof typeof PLACES): string | undefined {
  if (count === undefined || count.length > MAX_NUMBER_LENGTH) return undefined;
  const { negative, digits, exponent } = parseDecimal(count);
  const power = exponent + 9 - PLACES[unit];
  if (digits.length + power > 20) return undefined;
  const whole = power >= 0 ? digits + '0'.repeat(power) : digits.slice(0, power);
  const nanos = BigInt(whole === '' ? '0' : whole);
  try {
    return formatInstant(negative ? -nanos : nanos);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** RFC 3339 with any offset, or none, and any number of decimals, as a Timestamp; digits beyond nanoseconds are cut off. */
const DATE_TIME = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(?:([Zz])|([+-])(\d\d):?(\d\d))?$/;

/**
 * The Timestamp of a date and time as other systems write it; undefined where the text is none, or has no offset and nobody says of which
 * zone it is.
 *
 * @param ofSchema - The zone that all such times without an offset are of, by the source's own schema.
 */
export function timeOfText(text: string | undefined, ofSchema?: 'UTC'): string | undefined {
  const match = DATE_TIME.exec(text ?? '');
  if (match === null) return undefined;
  const [all, date, time, fraction = '', zulu, sign, hours = '00', minutes = '00'] = match;
  const decimals = fraction.slice(0, 9).replace(/0+$/, '');
  const local = `${date}T${time}${decimals === '' ? '' : `.${decimals}`}Z`;
  if (!isTimestamp(local) || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  if (zulu !== undefined) return local;
  const shown = Date.parse(`${date}T${time}Z`);
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? 1 : -1);
  const instant = sign === undefined ? instantOfLocal(shown, all, ofSchema) : shown + offset;
  if (instant === undefined) return undefined;
  const shifted = new Date(instant);
  const year = shifted.getUTCFullYear();
  if (year < 0 || year > 9999) return undefined;
  return `${shifted.toISOString().slice(0, 19)}${decimals === '' ? '' : `.${decimals}`}Z`;
}

/**
 * The value as JSON that has a canonical form; undefined where it has none: a number that no double holds exactly, a lone surrogate.
 */
export function plainJson(value: SourceValue): JsonValue | undefined {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') return isWellFormed(value) ? value : undefined;
  if (value instanceof SourceNumber) {
    const number = Number(value.text);
    if (!Number.isFinite(number) || (Number.isInteger(number) && !Number.isSafeInteger(number)))
      return undefined;
    const [said, held] = [parseDecimal(value.text), parseDecimal(String(number))];
    const isExact = said.digits === held.digits && said.exponent === held.exponent;
    return isExact ? number + 0 : undefined;
  }
  if (value instanceof SourceObject) {
    const object: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
    for (const [name, member] of value.entries()) {
      const plain = plainJson(member);
      if (plain === undefined || !isWellFormed(name)) return undefined;
      object[name] = plain;
    }
    return object;
  }
  const list: JsonValue[] = [];
  for (const element of value) {
    const plain = plainJson(element);
    if (plain === undefined) return undefined;
    list.push(plain);
  }
  return list;
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** The SHA-256 of the value's canonical form (RFC 8785); undefined without a value, or where it has none. */
export function jcsDigest(value: SourceValue | undefined): Digest | undefined {
  const plain = value === undefined ? undefined : plainJson(value);
  return plain === undefined ? undefined : sha256Digest(canonicalBytes(plain));
}

/** Appends a value to the list of a key. */
export function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
