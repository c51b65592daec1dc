/** Parsers of option values; each refuses with the words that commander shows after the option's name. */

import { InvalidArgumentError, Option } from 'commander';
import { printable } from '../base/bytes/printable.js';
import { MAX_METERS, type Meter, readAmounts } from '../base/value/meter.js';
import { isPrincipalId, isPrincipalPattern } from '../base/value/principal.js';
import { compareTimestamps } from '../base/value/timestamp.js';
import { isToolName, isToolPattern } from '../base/value/tool.js';
import { resolvePastTime, tryReadTime } from '../base/value/when.js';
import type { ResourceRef } from '../format/schema/generated/types.js';
import { parseTimeZone } from '../hosts/shared/local-time.js';
import type { CheckpointSchedule } from '../log/writer/checkpoint.js';
import { MAX_WAIT_MS } from '../log/policy/authorize.js';
import { usageError } from './command-error.js';

export const SINCE = 'only events at this time or later: 2026-03-01, a time with Z or an offset, or 7d (ago)';

/** Where an amount comes from (`meter_basis`). */
export const BASES = ['measured', 'reported', 'estimated', 'billed'] as const;

/** A whole number of at least `least`. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`Expected a whole number ${range}.`);
  };
}

/** A place: a path or a URL. */
export function somewhere(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('Expected a path.');
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
  if (digits === '')
    throw new InvalidArgumentError(
      'Expected a number of records such as 1000, or a time such as 30s, 15m, 1h or 1d.',
    );
  const scale = UNIT_MS[unit];
  return scale === undefined ? { records: Number(digits) } : { milliseconds: Number(digits) * scale };
}

/** A span of time such as 90s, 30m, 2h or 7d, to milliseconds. */
export function spanMs(text: string): number {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,7})([smhd])$/.exec(text) ?? [];
  const scale = UNIT_MS[unit];
  if (scale !== undefined) return Number(digits) * scale;
  throw new InvalidArgumentError('Expected a span of time such as 90s, 30m, 2h or 7d.');
}

/** The same, of at most what a timer takes. */
export function waitSpan(text: string): number {
  const span = spanMs(text);
  if (span <= MAX_WAIT_MS) return span;
  throw new InvalidArgumentError('Expected a span of time of at most 24d.');
}

/** The same, or `never`: Infinity. */
export function spanOrNever(text: string): number {
  if (text === 'never') return Infinity;
  try {
    return spanMs(text);
  } catch {
    throw new InvalidArgumentError('Expected never, or a span of time such as 90s, 30m, 2h or 7d.');
  }
}

/** A time with Z or an offset, or a date that stands for its first instant in UTC. */
export function instant(text: string): string {
  const found = tryReadTime(text);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(
    'Expected a date such as 2026-03-01 or a time such as 2026-03-01T12:00:00Z or 2026-03-01T14:00:00+02:00.',
  );
}

/** A time zone, as it was given. */
export function timeZone(text: string): string {
  try {
    return parseTimeZone(text).name;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidArgumentError(
      'Expected UTC, an offset such as +02:00, or a name such as Europe/Berlin.',
    );
  }
}

/** The same, or a time ago: 90s, 30m, 2h, 7d, 4w. */
export function pastInstant(text: string): string {
  try {
    return resolvePastTime(text, new Date().toISOString());
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Commander says what was found.
    throw new InvalidArgumentError(`E${error.message.slice(1).replace(/, found .*$/s, '')}.`);
  }
}

/** @throws NorthrootError `USAGE` for a span of time that ends before it begins. */
export function assertSpan(since: string | undefined, until: string | undefined): void {
  if (since === undefined || until === undefined || compareTimestamps(since, until) <= 0) return;
  throw usageError(`--since is after --until: ${since} and ${until}`);
}

/** @throws NorthrootError `USAGE` for a pattern of principals or of tools that is not valid. */
export function assertPatterns({
  principal,
  tool,
}: {
  readonly principal?: string | undefined;
  readonly tool?: string | undefined;
}): void {
  if (principal !== undefined && !isPrincipalPattern(principal))
    throw usageError(
      `${printable(principal)} is not a valid principal pattern`,
      'such as agent:a1, agent:* or *',
    );
  if (tool !== undefined && !isToolPattern(tool))
    throw usageError(`${printable(tool)} is not a valid tool pattern`, "such as fs.read, 'fs.*' or '*'");
}

/** `HOST:PORT`. */
export function listenAddress(text: string): { host: string; port: number } {
  const [, address, name, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = address ?? name;
  const port = Number(digits);
  if (host !== undefined && port <= 65_535) return { host, port };
  throw new InvalidArgumentError('Expected HOST:PORT, such as 127.0.0.1:8787 or [::1]:0.');
}

function textThat(isValid: (text: string) => boolean, expected: string): (text: string) => string {
  return (text) => {
    if (isValid(text)) return text;
    throw new InvalidArgumentError(`Expected ${expected}.`);
  };
}

export const principalId = textThat(
  isPrincipalId,
  'human:, service:, agent: or org: and a name, such as agent:a1',
);
export const toolName = textThat(isToolName, 'a tool name such as fs.read');
export const extensionType = textThat(
  (text) => /^x\.[A-Za-z0-9_.:/-]{1,126}$/.test(text),
  'a type that begins with x. such as x.journal',
);
export const requestKey = textThat(
  (text) => /^[A-Za-z0-9._:/+=@-]{1,128}$/.test(text),
  '1 to 128 letters, digits and . _ : / + = @ -, such as job-17/3',
);
export const code = textThat(
  (text) => /^[A-Z0-9_]{1,64}$/.test(text),
  'up to 64 capital letters, digits and _, such as TIMEOUT',
);

/** Collects `unit=amount[,unit=amount…]`, however often the option is given. */
export function meterList(text: string, previous: readonly Meter[] = []): Meter[] {
  const list = [...previous];
  for (const part of text.split(',')) {
    const { unit, amount, problem } = readPair(part);
    if (problem !== undefined) throw new InvalidArgumentError(`Expected ${problem}.`);
    if (list.some((meter) => meter.unit === unit))
      throw new InvalidArgumentError(`Expected each unit once, found ${unit} twice.`);
    const { vector, problems } = readAmounts({ [unit]: amount });
    const [wrong] = problems;
    if (wrong !== undefined) throw new InvalidArgumentError(`${wrong.message}.`);
    list.push(...vector);
  }
  if (list.length > MAX_METERS) throw new InvalidArgumentError(`Expected at most ${MAX_METERS} units.`);
  return list;
}

/** `unit=amount`, or what is wrong with it. */
function readPair(part: string): {
  readonly unit: string;
  readonly amount: string;
  readonly problem: string | undefined;
} {
  const [, unit = '', amount = ''] = /^([^=]+)=([^=]*)$/.exec(part.trim()) ?? [];
  const problem = unit === '' ? `unit=amount, such as usd=0.25, found ${shown(part)}` : undefined;
  return { unit: unit.trim(), amount: amount.trim(), problem };
}

/**
 * Amounts by unit, as the exported builders take them, from `unit=amount[,unit=amount…]` of an option that may be given again.
 *
 * @param refuse - Told of each that cannot be read; whether units and amounts are right is the builder's to say.
 */
export function amountsOf(
  texts: readonly string[],
  refuse: (problem: string) => void,
): Readonly<Record<string, string>> {
  const amounts = new Map<string, string>();
  for (const part of texts.flatMap((text) => text.split(','))) {
    const { unit, amount, problem } = readPair(part);
    if (problem !== undefined) refuse(`expected ${problem}`);
    else if (amounts.has(unit)) refuse(`expected each unit once, found ${shown(unit)} twice`);
    else amounts.set(unit, amount);
  }
  return Object.fromEntries(amounts);
}

function shown(text: string): string {
  return text === '' ? 'nothing' : printable(text, 80);
}

/** Collects `kind=reference`, a resource, however often the option is given. */
export function resourceList(text: string, previous: readonly ResourceRef[] = []): ResourceRef[] {
  const [, kind = '', reference = ''] = /^([^=]{1,256})=(.{1,1024})$/su.exec(text) ?? [];
  if (kind !== '') return [...previous, { kind, reference }];
  throw new InvalidArgumentError('Expected kind=reference, such as file=/etc/hosts.');
}

/** An option that may be repeated: its values are collected. */
export function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description} (repeatable)`).argParser(collect);
}

export function textOrJson(description = 'output format'): Option {
  return new Option('--format <format>', description).choices(['text', 'json']).default('text');
}

/** Collects the values of an option that may be given again. */
export function collect(text: string, previous: readonly string[] = []): string[] {
  return [...previous, text];
}
