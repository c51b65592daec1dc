/** Work that would go on for minutes or hours if its cost grew faster than its input: it is ended, and fails, instead of hanging. */

import { runInNewContext } from 'node:vm';

/** Far more than any of it takes, on a busy machine too. Nothing is measured. */
const LIMIT_MS = 240_000;

/** What `work`, which is synchronous, returns. Throws where it does not end; also a regular expression is interrupted. */
export function inTime<T>(work: () => T): T {
  return runInNewContext('work()', { work }, { timeout: LIMIT_MS }) as T;
}
