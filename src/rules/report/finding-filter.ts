/** Selects the findings to show. Checks, counts and the verdict do not depend on it. */

import { matchesPrincipalPattern } from '../../base/value/principal.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import type { Finding } from '../../format/finding/finding.js';

/** Conditions, all of which must hold. */
export interface FindingFilter {
  /** Of events that occurred at this timestamp or later. */
  readonly since?: string;
  /** Of events that occurred before this timestamp. */
  readonly until?: string;
  /** Of events of principals that this pattern matches. */
  readonly principal?: string;
  /** Of events under this grant, or of the grant itself; `sha-256:…`. */
  readonly grantId?: string;
}

/** Whether a finding is shown. One without the members that a condition needs, such as of an unreadable line, is. */
export function matchesFilter(finding: Finding, filter: FindingFilter): boolean {
  const { context, eventId } = finding;
  const { since, until, principal, grantId } = filter;
  const time =
    context.occurredAt !== undefined && isTimestamp(context.occurredAt) ? context.occurredAt : undefined;
  if (since !== undefined && time !== undefined && compareTimestamps(time, since) < 0) return false;
  if (until !== undefined && time !== undefined && compareTimestamps(time, until) >= 0) return false;
  if (principal !== undefined && context.principalId !== undefined) {
    if (!matchesPrincipalPattern(principal, context.principalId)) return false;
  }
  if (grantId === undefined || eventId === undefined) return true;
  return eventId === grantId || (context.grantIds?.includes(grantId) ?? false);
}
