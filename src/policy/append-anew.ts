/** Appending what has to be a record of its own, even where another says the same. */

import { digestFromBase64url } from '../value/digest.js';
import type { Appended, Ledger } from '../writer/ledger.js';

/**
 * Appends a draft. The same content has the same id (SPEC §3), and appending it again would be a no-op: two askers would then
 * share one authorization, and two runs of a command would count once. So an event that the ledger has already is followed,
 * by `prev_event_id`, by another one.
 *
 * @throws as `Ledger.append`.
 */
export async function appendAnew(ledger: Ledger, draft: object): Promise<Appended> {
  let appended = await ledger.append({ event: draft });
  while (appended.status === 'exists') {
    const previous = digestFromBase64url(appended.eventId.slice('sha-256:'.length));
    appended = await ledger.append({ event: { ...draft, prev_event_id: previous } });
  }
  return appended;
}
