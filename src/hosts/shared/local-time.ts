/**
 * Dates and times without an offset. Which zone they are of is never guessed: somebody says so, beside the files or, for all of a host's
 * times, its own schema. Reading files is synchronous, so that what was said holds for one reading and ends with it.
 */

export interface TimeZone {
  /** As it was given: `Europe/Berlin`, `+02:00`, `UTC`. */
  readonly name: string;
  /** Milliseconds that its clocks are ahead of UTC at an instant. */
  offsetAt(instant: number): number;
}

/** What became of times without an offset in one reading. Each text is counted once. */
export interface LocalTimes {
  /** No zone was said. */
  readonly unread: ReadonlySet<string>;
  /** Clocks were put forward over it, so that it never was. */
  readonly skipped: ReadonlySet<string>;
  /** Clocks were put back, so that it was twice; the earlier is taken. */
  readonly twice: ReadonlySet<string>;
}

interface Reading {
  readonly zone: TimeZone | undefined;
  readonly unread: Set<string>;
  readonly skipped: Set<string>;
  readonly twice: Set<string>;
}

/** Different texts that are counted; more are not kept. */
const MAX_COUNTED = 1_000_000;

let reading: Reading | undefined;

/** Reads, while `work` runs, times without an offset as of the zone, and says what became of them. */
export function readingLocalTimes<T>(
  zone: TimeZone | undefined,
  work: () => T,
): { readonly value: T; readonly times: LocalTimes } {
  const before = reading;
  const own: Reading = { zone, unread: new Set(), skipped: new Set(), twice: new Set() };
  reading = own;
  try {
    return { value: work(), times: own };
  } finally {
    reading = before;
  }
}

const OFFSET = /^([+-])(\d\d):([0-5]\d)$/;
const UTC: TimeZone = { name: 'UTC', offsetAt: () => 0 };

/**
 * Parses the name of a time zone.
 *
 * @param name - `UTC`, an offset such as `+02:00`, or a name of the IANA database such as `Europe/Berlin`.
 * @throws RangeError for anything else.
 */
export function parseTimeZone(name: string): TimeZone {
  if (/^(?:utc|z)$/i.test(name)) return UTC;
  const [, sign, hours = '', minutes = ''] = OFFSET.exec(name) ?? [];
  if (sign !== undefined && Number(hours) < 24) {
    const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
    return { name, offsetAt: () => offset };
  }
  const refusal = new RangeError(
    'a time zone must be UTC, an offset such as +02:00, or a name of the IANA database such as Europe/Berlin',
  );
  // A sign begins only offsets.
  if (!/^[A-Za-z][\w+-]*(?:\/[\w+-]+)*$/.test(name)) throw refusal;
  try {
    return namedZone(name);
  } catch (error) {
    if (error instanceof RangeError) throw refusal;
    throw error;
  }
}

const QUARTER = 900_000;
/** Before, offsets could change at any second. */
const SINCE_QUARTERS = Date.UTC(1972, 0);
const MAX_CACHED = 10_000;

function namedZone(name: string): TimeZone {
  const format = new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
    era: 'short',
  });
  const known = new Map<number, number>();
  const compute = (instant: number): number => {
    const parts: Record<string, string> = {};
    for (const { type, value } of format.formatToParts(instant)) parts[type] = value;
    const of = (type: string): number => Number(parts[type] ?? 0);
    const shown = new Date(0);
    // Years below 100 are years, and the year before 1 is 0.
    shown.setUTCFullYear(
      parts['era']?.startsWith('B') === true ? 1 - of('year') : of('year'),
      of('month') - 1,
      of('day'),
    );
    shown.setUTCHours(of('hour'), of('minute'), of('second'));
    return shown.getTime() - Math.floor(instant / 1000) * 1000;
  };
  return {
    name,
    offsetAt: (instant) => {
      if (instant < SINCE_QUARTERS) return compute(instant);
      const quarter = Math.floor(instant / QUARTER);
      const found = known.get(quarter) ?? compute(quarter * QUARTER);
      if (known.size >= MAX_CACHED) known.clear();
      known.set(quarter, found);
      return found;
    },
  };
}

const DAY = 86_400_000;

/**
 * The instant of a date and time without an offset, in milliseconds since 1970; undefined where nobody said of which zone it is, and
 * where there it never was.
 *
 * @param local - What the clock showed, as if it were UTC.
 * @param text - As the source writes it.
 * @param ofSchema - The zone that the source's own schema says all such times are of; what was said beside the files goes before it.
 */
export function instantOfLocal(local: number, text: string, ofSchema?: 'UTC'): number | undefined {
  const zone = reading?.zone ?? (ofSchema === undefined ? undefined : UTC);
  if (zone === undefined) {
    count(reading?.unread, text);
    return undefined;
  }
  const offsets = new Set([zone.offsetAt(local - DAY), zone.offsetAt(local + DAY)]);
  const instants = [...offsets]
    .map((offset) => local - offset)
    .filter((instant) => zone.offsetAt(instant) === local - instant)
    .sort((a, b) => a - b);
  if (instants.length === 0) count(reading?.skipped, text);
  if (instants.length > 1) count(reading?.twice, text);
  return instants[0];
}

function count(texts: Set<string> | undefined, text: string): void {
  if (texts !== undefined && texts.size < MAX_COUNTED) texts.add(text);
}
