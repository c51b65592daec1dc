/** Reading a host's files with what is said beside them of all hosts: the zone of times without an offset. */

import type { Checker, Host, HostFile, HostFinding, HostOptions, HostPlace, HostReading } from './host.js';
import { type LocalTimes, parseTimeZone, readingLocalTimes } from './local-time.js';
import { findingsOf } from './findings.js';

/** What may be said beside the files of any host. */
export interface HostReadOptions extends HostOptions {
  /**
   * Of which zone dates and times are that state no offset: `UTC`, `+02:00`, `Europe/Berlin`. Without it they are not read, unless the
   * host's schema says which: LiteLLM's are of UTC.
   */
  readonly timeZone?: string | undefined;
}

/** {@link Host.read}, with {@link HostReadOptions}. @throws TypeError, RangeError for bad options */
export function readHost(host: Host, files: readonly HostFile[], options: HostReadOptions = {}): HostReading {
  const { timeZone, ...hostOptions } = options;
  return withTimes(files, timeZone, () => host.read(files, hostOptions));
}

/** {@link Checker.check}, with {@link HostReadOptions}. @throws TypeError, RangeError for bad options */
export function checkHost(
  checker: Checker,
  files: readonly HostFile[],
  options: HostReadOptions = {},
): ReturnType<Checker['check']> {
  const { timeZone, ...hostOptions } = options;
  return withTimes(files, timeZone, () => checker.check(files, hostOptions));
}

function withTimes<T extends Pick<HostReading, 'findings'>>(
  files: readonly HostFile[],
  timeZone: string | undefined,
  read: () => T,
): T {
  if (timeZone !== undefined && typeof timeZone !== 'string')
    throw new TypeError('timeZone must be a string');
  const zone = timeZone === undefined ? undefined : parseTimeZone(timeZone);
  const { value, times } = readingLocalTimes(zone, read);
  const file = files[0]?.name ?? '';
  const findings = found(times, zone?.name ?? 'UTC', { file });
  return findings.length === 0 ? value : { ...value, findings: [...findings, ...value.findings] };
}

const finding = findingsOf({
  TIME_ZONE_NOT_STATED: [
    'INPUT',
    'invalid',
    'times with an offset, or a word on the time zone that they are of',
  ],
  TIME_SKIPPED: ['INPUT', 'invalid'],
  TIME_AMBIGUOUS: ['INPUT', 'warning'],
});

/** What is found of times without an offset: each kind once, with the first of them. */
function found({ unread, skipped, twice }: LocalTimes, zone: string, at: HostPlace): HostFinding[] {
  const shown = `times that clocks of ${zone} showed`;
  return [
    {
      code: 'TIME_ZONE_NOT_STATED',
      texts: unread,
      expected: undefined,
      actual: 'different times without one',
    },
    { code: 'TIME_SKIPPED', texts: skipped, expected: shown, actual: 'that they were put forward over' },
    {
      code: 'TIME_AMBIGUOUS',
      texts: twice,
      expected: `${shown} once`,
      actual: 'that they showed twice; the earlier was taken',
    },
  ].flatMap(({ code, texts, expected, actual }) => {
    const [first] = texts;
    if (first === undefined) return [];
    const details = { expected, actual: `${texts.size} ${actual}, the first ${first}` };
    return finding(code as Parameters<typeof finding>[0], at, details);
  });
}
