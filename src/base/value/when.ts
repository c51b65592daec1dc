/** Times as people give them, made timestamps of SPEC §2: with an offset, as a date, or as a time from now. */

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
 * The timestamp that a date (its first instant, in UTC) or a time with `Z` or an offset names; `undefined` where `text` is
 * neither, or lies outside the years 0000 to 9999. Seconds may be left out.
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
 * The timestamp that people mean by a time such as `2026-03-01T14:00:00+02:00` or `2026-03-01`, or by a time from now on:
 * `90s`, `30m`, `2h`, `7d`, `4w`.
 *
 * @param now - A timestamp of SPEC §2.
 * @throws RangeError when `text` is none of these.
 */
export function resolveTime(text: string, now: string): string {
  const [, count = '', letter = ''] = SPAN.exec(text) ?? [];
  const length = LENGTHS[letter];
  const found =
    length === undefined ? tryReadTime(text) : tryFormat(parseTimestamp(now) + BigInt(count) * length);
  if (found !== undefined) return found;
  throw new RangeError(
    `expected a time from now such as 30m, 2h or 7d, or one such as 2026-03-01T14:00:00Z or 2026-03-01T14:00:00+02:00, found ${printable(text, 80)}`,
  );
}

/**
 * The same for times that are past: `7d` is seven days ago.
 *
 * @param now - A timestamp of SPEC §2.
 * @throws RangeError when `text` is neither a time nor a span such as `90s`, `30m`, `2h`, `7d`, `4w`.
 */
export function resolvePastTime(text: string, now: string): string {
  const [, count = '', letter = ''] = SPAN.exec(text) ?? [];
  const length = LENGTHS[letter];
  const found =
    length === undefined ? tryReadTime(text) : tryFormat(parseTimestamp(now) - BigInt(count) * length);
  if (found !== undefined) return found;
  throw new RangeError(
    `expected a time ago such as 30m, 2h or 7d, or one such as 2026-03-01, 2026-03-01T14:00:00Z or 2026-03-01T14:00:00+02:00, found ${printable(text, 80)}`,
  );
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
