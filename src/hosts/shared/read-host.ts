/** Reading a host's files with what is said beside them of all hosts: the zone of times without an offset. */

import type { Checker, Host, HostFile, HostFinding, HostOptions, HostReading } from './host.js';
import { type LocalTimes, parseTimeZone, readingLocalTimes } from './local-time.js';

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
  const found = findingsOf(times, zone?.name ?? 'UTC').map((finding) => ({ ...finding, at: { file } }));
  return found.length === 0 ? value : { ...value, findings: [...found, ...value.findings] };
}

function findingsOf({ unread, skipped, twice }: LocalTimes, zone: string): Omit<HostFinding, 'at'>[] {
  const tell = (
    texts: ReadonlySet<string>,
    finding: Pick<HostFinding, 'code' | 'severity' | 'class' | 'expected'>,
    actual: string,
  ): Omit<HostFinding, 'at'>[] => {
    const [first] = texts;
    if (first === undefined) return [];
    return [{ rule: 'INPUT', ...finding, actual: `${texts.size} ${actual}, the first ${first}` }];
  };
  return [
    ...tell(
      unread,
      {
        code: 'TIME_ZONE_NOT_STATED',
        severity: 'error',
        class: 'invalid',
        expected: 'times with an offset, or a word on the time zone that they are of',
      },
      'different times without one',
    ),
    ...tell(
      skipped,
      {
        code: 'TIME_SKIPPED',
        severity: 'error',
        class: 'invalid',
        expected: `times that clocks of ${zone} showed`,
      },
      'that they were put forward over',
    ),
    ...tell(
      twice,
      {
        code: 'TIME_AMBIGUOUS',
        severity: 'warning',
        class: 'none',
        expected: `times that clocks of ${zone} showed once`,
      },
      'that they showed twice; the earlier was taken',
    ),
  ];
}
