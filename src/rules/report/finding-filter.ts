/** Which findings to show. What is checked, counted and decided never depends on it. */

import { matchesPrincipalPattern } from '../../base/value/principal.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import type { Finding } from '../../format/finding/finding.js';

/** What the findings to be shown have in common; everything that is given must hold. */
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

/** Whether a finding is to be shown. One whose event does not say what is asked for (a line that cannot be read) is. */
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
