/** Times as people write them (with an offset, as a date, relative to now) to timestamps of SPEC §2. */

import { printable } from '../bytes/printable.js';
import { formatInstant, isTimestamp, parseTimestamp } from './timestamp.js';

const SECOND = 1_000_000_000n;
const LENGTHS: Readonly<Record<string, bigint>> = {
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
  d: 86_400n * SECOND,
  w: 604_800n * SECOND,
};

const SPAN = /^([1-9][0-9]{0,7})([smhdw])$/;
const OFFSET = /^(.{16,29})([+-])([01][0-9]|2[0-3]):([0-5][0-9])$/;

/**
 * The timestamp of a date (its first instant, UTC) or of a time with `Z` or an offset, seconds optional; `undefined` for other
 * text and outside the years 0000 to 9999.
 */
export function tryReadTime(text: string): string | undefined {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return realTime(`${text}T00:00:00Z`);
  const [, local = '', sign, hours, minutes] = OFFSET.exec(text) ?? [];
  if (sign === undefined) return realTime(withSeconds(text.replace(/Z$/, ''), text.endsWith('Z')));
  const utc = realTime(withSeconds(local, true));
  if (utc === undefined) return undefined;
  const offset = BigInt(Number(hours) * 60 + Number(minutes)) * 60n * SECOND;
  return tryFormat(parseTimestamp(utc) + (sign === '+' ? -offset : offset));
}

/**
 * The timestamp of a time such as `2026-03-01T14:00:00+02:00` or `2026-03-01`, or of a span from `now`: `90s`, `30m`, `2h`,
 * `7d`, `4w`.
 *
 * @param now - A timestamp of SPEC §2.
 * @throws RangeError for other text.
 */
export function resolveTime(text: string, now: string): string {
  const found = tryResolve(text, now, 1n);
  if (found !== undefined) return found;
  throw new RangeError(
    `expected a time from now such as 30m, 2h or 7d, or one such as 2026-03-01T14:00:00Z or 2026-03-01T14:00:00+02:00, found ${printable(text, 80)}`,
  );
}

/** {@link resolveTime} with spans before `now`: `7d` is seven days ago. */
export function resolvePastTime(text: string, now: string): string {
  const found = tryResolve(text, now, -1n);
  if (found !== undefined) return found;
  throw new RangeError(
    `expected a time ago such as 30m, 2h or 7d, or one such as 2026-03-01, 2026-03-01T14:00:00Z or 2026-03-01T14:00:00+02:00, found ${printable(text, 80)}`,
  );
}

function tryResolve(text: string, now: string, sign: bigint): string | undefined {
  const [, count = '', letter = ''] = SPAN.exec(text) ?? [];
  const length = LENGTHS[letter];
  if (length === undefined) return tryReadTime(text);
  return tryFormat(parseTimestamp(now) + sign * BigInt(count) * length);
}

function withSeconds(local: string, isZoned: boolean): string {
  const full = /T\d{2}:\d{2}$/.test(local) ? `${local}:00` : local;
  return isZoned ? `${full}Z` : full;
}

function realTime(text: string): string | undefined {
  return isTimestamp(text) ? text : undefined;
}

function tryFormat(instant: bigint): string | undefined {
  try {
    return formatInstant(instant);
  } catch {
    return undefined;
  }
}
