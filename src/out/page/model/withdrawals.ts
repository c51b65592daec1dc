/** What still ran under a grant after it was revoked or suspended, as far as the revocation was in force. */

import { fromDigestText } from '../../../base/value/digest.js';
import { grantChain } from '../../../rules/bounds/grant.js';
import { hasFormOfRelease } from '../../../rules/verify/authorizations.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';

/** The most records that are named of one revocation. */
const MAX_NAMED = 3;

interface Ran {
  total: number;
  readonly first: number[];
}

const NOTHING: Ran = { total: 0, first: [] };

export class Withdrawals {
  readonly #ran = new Map<string, Ran>();

  /** MUST be called with each record, in order. */
  take({ examined, grantIds: [nearest], state }: VerifiedRecord, ordinal: number): void {
    if (examined?.type !== 'execution' || nearest === undefined) return;
    const grant = state.links.grants.get(fromDigestText(nearest));
    const places = new Set(grantChain(grant).flatMap(({ withdrawal }) => withdrawal?.place.eventId ?? []));
    if (places.size === 0 || hasFormOfRelease(examined.event())) return;
    for (const id of places) {
      const ran = this.#ran.get(id) ?? { total: 0, first: [] };
      ran.total += 1;
      if (ran.first.length < MAX_NAMED) ran.first.push(ordinal);
      this.#ran.set(id, ran);
    }
  }

  /** Executions recorded while the revocation was in force. @param id - Of its event, `sha-256:…` */
  ranAfter(id: string): { readonly total: number; readonly first: readonly number[] } {
    return this.#ran.get(id) ?? NOTHING;
  }
}
