/** Parsers of option values; each refuses with the words that commander shows after the option's name. */

import { InvalidArgumentError } from 'commander';
import { NorthrootError } from '../error.js';
import { isPrincipalId } from '../value/principal.js';
import { MAX_METERS, isUnit, type Meter } from '../value/meter.js';
import { quantityFromNumberText, type Quantity } from '../value/quantity.js';
import { compareTimestamps, isTimestamp } from '../value/timestamp.js';
import { isToolName } from '../value/tool.js';
import type { CheckpointSchedule } from '../writer/checkpoint.js';

/** A whole number of at least `least`. */
export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,15}$/.test(text) && value >= least) return value;
    throw new InvalidArgumentError(`Expected a whole number of at least ${least}.`);
  };
}

/** Seconds, with decimals. */
export function seconds(text: string): number {
  if (/^\d{1,6}(?:\.\d{1,3})?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected seconds, such as 10 or 0.5.');
}

/** A size such as 65536, 64KiB, 64MiB or 1GiB, to bytes. */
export function byteSize(text: string): number {
  const match = /^(\d{1,12})(KiB|MiB|GiB)?$/.exec(text);
  const [, digits, unit] = match ?? [];
  const size = Number(digits) * 1024 ** ['', 'KiB', 'MiB', 'GiB'].indexOf(unit ?? '');
  if (Number.isSafeInteger(size) && size > 0) return size;
  throw new InvalidArgumentError('Expected a size such as 65536, 64KiB, 64MiB or 1GiB.');
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** How often checkpoints are made: a number of records, or a time such as 30s, 15m, 1h or 1d. */
export function checkpointSchedule(text: string): CheckpointSchedule {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,9})([smhd]?)$/.exec(text) ?? [];
  if (digits === '') {
    throw new InvalidArgumentError(
      'Expected a number of records such as 1000, or a time such as 30s, 15m, 1h or 1d.',
    );
  }
  const scale = UNIT_MS[unit];
  return scale === undefined ? { records: Number(digits) } : { milliseconds: Number(digits) * scale };
}

/** A timestamp, or a date that stands for its first instant. */
export function instant(text: string): string {
  const full = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text;
  if (isTimestamp(full)) return full;
  throw new InvalidArgumentError(
    'Expected a date such as 2026-03-01 or a time such as 2026-03-01T12:00:00Z.',
  );
}

/** @throws NorthrootError `USAGE` for a span of time that ends before it begins. */
export function assertSpan(since: string | undefined, until: string | undefined): void {
  if (since === undefined || until === undefined || compareTimestamps(since, until) <= 0) return;
  throw new NorthrootError('USAGE', `--since is after --until: ${since} and ${until}`);
}

/** A principal. */
export function principalId(text: string): string {
  if (isPrincipalId(text)) return text;
  throw new InvalidArgumentError('Expected human:, service:, agent: or org: and a name, such as agent:a1.');
}

/** A tool's name. */
export function toolName(text: string): string {
  if (isToolName(text)) return text;
  throw new InvalidArgumentError('Expected a tool name such as fs.read.');
}

/** A code, as events have it. */
export function code(text: string): string {
  if (/^[A-Z0-9_]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError('Expected up to 64 capital letters, digits and _, such as TIMEOUT.');
}

/** Collects `unit=amount[,unit=amount…]`, however often the option is given. */
export function meterList(text: string, previous: readonly Meter[] = []): Meter[] {
  const list = [...previous];
  for (const part of text.split(',')) {
    const [, unit = '', amount = ''] = /^([^=]+)=(.+)$/.exec(part) ?? [];
    if (!isUnit(unit) || list.some((meter) => meter.unit === unit)) {
      throw new InvalidArgumentError('Expected unit=amount, each unit once, such as usd=0.25,calls=1.');
    }
    list.push({ unit, amount: amountOf(amount) });
  }
  if (list.length > MAX_METERS) throw new InvalidArgumentError(`Expected at most ${MAX_METERS} units.`);
  return list;
}

function amountOf(text: string): Quantity {
  const amount = text.startsWith('-') ? undefined : tryQuantity(text);
  if (amount !== undefined) return amount;
  throw new InvalidArgumentError(`Expected an amount such as 0.25, found ${text}.`);
}

function tryQuantity(text: string): Quantity | undefined {
  try {
    return quantityFromNumberText(text);
  } catch {
    return undefined;
  }
}

/** Collects the values of an option that may be given again. */
export function collect(text: string, previous: readonly string[]): string[] {
  return [...previous, text];
}
