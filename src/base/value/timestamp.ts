/**
 * Timestamps, SPEC §2: `YYYY-MM-DDThh:mm:ss[.f{1,9}]Z`, a real date of the proleptic Gregorian calendar, without leap seconds.
 * They are compared as instants, not as strings: `…00Z` equals `…00.0Z`. An instant is a bigint of nanoseconds since
 * 1970-01-01T00:00:00Z: 2^53 nanoseconds are only 104 days.
 */

const NANOS_PER_SECOND = 1_000_000_000n;
const SECONDS_PER_DAY = 86_400;
/** The length of `YYYY-MM-DDThh:mm:ss`. */
export const WHOLE_LENGTH = 19;
const MAX_FRACTION_DIGITS = 9;
/** 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds. */
const MIN_SECOND = -62_167_219_200n;
const MAX_SECOND = 253_402_300_799n;

/** Whether `text` is a timestamp of SPEC §2. Allocates nothing: it runs for every event. */
export function isTimestamp(text: string): boolean {
  const { length } = text;
  if (
    length < WHOLE_LENGTH + 1 ||
    length > WHOLE_LENGTH + 2 + MAX_FRACTION_DIGITS ||
    length === WHOLE_LENGTH + 2
  )
    return false;
  if (
    text.charCodeAt(4) !== 0x2d ||
    text.charCodeAt(7) !== 0x2d ||
    text.charCodeAt(10) !== 0x54 ||
    text.charCodeAt(13) !== 0x3a ||
    text.charCodeAt(16) !== 0x3a ||
    text.charCodeAt(length - 1) !== 0x5a
  )
    return false;
  if (length > WHOLE_LENGTH + 1) {
    if (text.charCodeAt(WHOLE_LENGTH) !== 0x2e) return false;
    for (let i = WHOLE_LENGTH + 1; i < length - 1; i++) if (digitAt(text, i) < 0) return false;
  }
  const century = twoDigits(text, 0);
  const yearOfCentury = twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  if (century < 0 || yearOfCentury < 0 || month < 1 || month > 12 || day < 1) return false;
  if (day > 28 && day > daysInMonth(century * 100 + yearOfCentury, month)) return false;
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const second = twoDigits(text, 17);
  return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 59;
}

/** The instant of a timestamp, negative before 1970. @throws RangeError for other text. */
export function parseTimestamp(text: string): bigint {
  assertTimestamp(text);
  const days = daysFromCivil(
    twoDigits(text, 0) * 100 + twoDigits(text, 2),
    twoDigits(text, 5),
    twoDigits(text, 8),
  );
  const seconds =
    days * SECONDS_PER_DAY + twoDigits(text, 11) * 3600 + twoDigits(text, 14) * 60 + twoDigits(text, 17);
  const fraction = text.slice(WHOLE_LENGTH + 1, -1);
  const nanos = fraction === '' ? 0n : BigInt(fraction.padEnd(MAX_FRACTION_DIGITS, '0'));
  return BigInt(seconds) * NANOS_PER_SECOND + nanos;
}

/** Compares two timestamps as instants. @throws RangeError for other text. */
export function compareTimestamps(a: string, b: string): -1 | 0 | 1 {
  assertTimestamp(a);
  assertTimestamp(b);
  return orderTimestamps(a, b);
}

/** {@link compareTimestamps} without the checks: both MUST be timestamps. */
export function orderTimestamps(a: string, b: string): -1 | 0 | 1 {
  if (a.length === b.length) return a < b ? -1 : a > b ? 1 : 0;
  // Fields have fixed widths, and a missing digit of the fraction is a 0.
  for (let i = 0; i < WHOLE_LENGTH; i++) {
    const difference = a.charCodeAt(i) - b.charCodeAt(i);
    if (difference !== 0) return difference < 0 ? -1 : 1;
  }
  const end = Math.max(a.length, b.length) - 1;
  for (let i = WHOLE_LENGTH + 1; i < end; i++) {
    const difference = fractionDigit(a, i) - fractionDigit(b, i);
    if (difference !== 0) return difference < 0 ? -1 : 1;
  }
  return 0;
}

/** The shortest timestamp of an instant. @throws RangeError outside the years 0000 to 9999. */
export function formatInstant(instant: bigint): string {
  let seconds = instant / NANOS_PER_SECOND;
  let nanos = instant % NANOS_PER_SECOND;
  if (nanos < 0n) {
    nanos += NANOS_PER_SECOND;
    seconds -= 1n;
  }
  if (seconds < MIN_SECOND || seconds > MAX_SECOND)
    throw new RangeError('expected an instant in the years 0000 to 9999');
  const whole = formatSecond(Number(seconds));
  if (nanos === 0n) return `${whole}Z`;
  return `${whole}.${nanos.toString().padStart(MAX_FRACTION_DIGITS, '0').replace(/0+$/, '')}Z`;
}

let lastSecond = NaN;
let lastWhole = '';

/** Most instants are in the same second as the one before. */
function formatSecond(second: number): string {
  if (second !== lastSecond) {
    // Within these years Date writes exactly `YYYY-MM-DDThh:mm:ss.sssZ`.
    lastWhole = new Date(second * 1000).toISOString().slice(0, WHOLE_LENGTH);
    lastSecond = second;
  }
  return lastWhole;
}

function assertTimestamp(text: string): void {
  if (!isTimestamp(text)) throw new RangeError('expected a timestamp YYYY-MM-DDThh:mm:ss[.fffffffff]Z');
}

/** -1 if there is no digit at `index`. */
function digitAt(text: string, index: number): number {
  const digit = text.charCodeAt(index) - 0x30;
  return digit >= 0 && digit <= 9 ? digit : -1;
}

/** -1 unless both characters at `index` are digits. */
function twoDigits(text: string, index: number): number {
  const tens = digitAt(text, index);
  const ones = digitAt(text, index + 1);
  return tens < 0 || ones < 0 ? -1 : tens * 10 + ones;
}

function fractionDigit(text: string, index: number): number {
  return index < text.length - 1 ? text.charCodeAt(index) : 0x30;
}

/** The days of a month, 1 to 12. */
export function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Days since 1970-01-01. Years begin in March, so that the leap day is the last. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return y * 365 + leapDays + dayOfYear - 719_468;
}
