/** Step 11 of SPEC §8, the link to a grant: that of an authorization, an adjustment, an approval or a revocation. */

import { toDigestText } from '../../base/value/digest.js';
import type { EventPlace, Grant } from '../bounds/grant.js';
import type { IndexedEvent } from './event-index.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** The grant that an event names, if usable; findings if not. */
export function resolveGrant(
  state: VerifyState,
  id: string | undefined,
  mustBeAllowed: boolean,
  findings: LineFindings,
  pointer: string,
): Grant | undefined {
  if (id === undefined) return undefined;
  const grant = state.links.grants.get(id);
  if (grant?.decision === 'allow') return grant;
  const named = toDigestText(id);
  if (grant === undefined) {
    const indexed = state.events.find(id);
    if (indexed === undefined) {
      const expected = 'the id of an earlier grant';
      findings.addToEvent({ code: 'GRANT_NOT_FOUND', pointer, expected, actual: named, cause: named });
      return undefined;
    }
    const what = indexed.kind === 'malformed' ? 'an authorization that is not well-formed' : 'another event';
    const related = [placeOf(indexed, named)];
    findings.addToEvent({
      code: 'GRANT_NOT_A_GRANT',
      pointer,
      expected: 'a grant',
      actual: `${named}, ${what}`,
      related,
      cause: named,
    });
    return undefined;
  }
  if (mustBeAllowed) {
    const related = [grant.place];
    findings.addToEvent({
      code: 'GRANT_DENIED',
      pointer,
      expected: 'a grant that was allowed',
      actual: `${named}, denied`,
      related,
    });
  }
  return undefined;
}

/** The place of an event of the index. */
export function placeOf(indexed: IndexedEvent, eventId: string): EventPlace {
  return { file: indexed.file, line: indexed.line, seq: indexed.seq, eventId };
}
