/** The order of claims of sources that keep none: pages with the newest first, spans by their end, several files of one session. */

import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Claim, HostReading } from './host.js';

/** The reading with its claims by time, those of one time as they were, and none before the authorization that it names. */
export function inTimeOrder(reading: HostReading): HostReading {
  const sorted = [...reading.claims].sort((a, b) => compareTimestamps(a.occurredAt, b.occurredAt));
  const authorizations = new Map(
    sorted.flatMap((claim) => (claim.kind === 'action' ? [[claim.id, claim]] : [])),
  );
  const claims = new Set<Claim>();
  for (const claim of sorted) {
    const authorization =
      claim.kind === 'execution' && claim.authorization !== undefined
        ? authorizations.get(claim.authorization)
        : undefined;
    if (authorization !== undefined) claims.add(authorization);
    claims.add(claim);
  }
  return { ...reading, claims: [...claims] };
}
