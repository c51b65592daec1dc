/** What all hosts judge alike, in one place. */

import type { HostFinding } from './host.js';

/**
 * A tool ran, and nothing in the files says that somebody let it: evidence is missing, as AUTH_NOT_FOUND says of the ledger that is made of
 * it. Where a ledger has the decision, a reconciliation does not count it.
 */
export const RAN_UNDECIDED = {
  severity: 'error',
  class: 'invalid',
  lacks: 'decision',
} as const satisfies Pick<HostFinding, 'severity' | 'class' | 'lacks'>;
