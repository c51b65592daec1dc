/** The grant that an event names, whatever the rules say of it. */

import { type JsonValue, membersOf } from '../../base/json/value.js';
import { fromDigestText, isDigest, SHA256, toDigestText } from '../../base/value/digest.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { Grant } from '../bounds/grant.js';
import { isUsedUp } from './event-index.js';
import type { VerifyState } from './state.js';

/** The id that an execution names as its authorization, or an authorization or adjustment as its grant: `sha-256:…`. */
export function findNamed(line: ExaminedLine): string | undefined {
  // Only a well-formed event has a type, and it has no members of other types.
  switch (line.type) {
    case 'execution':
      return toDigestText(line.outline().authorizationId);
    case 'authorization': {
      const { grantId } = line.terms();
      return grantId === undefined ? undefined : toDigestText(grantId);
    }
    case 'adjustment':
      return toDigestText(line.outline().grantId);
    case 'approval':
    case 'revocation':
      return toDigestText(line.event().grant_event_id.b64);
    default: {
      const {
        auth_event_id: authorization,
        authorization: own,
        grant_event_id: adjusted,
      } = line.json() ?? {};
      return (
        readEventId(authorization) ?? readEventId(membersOf(own)['grant_event_id']) ?? readEventId(adjusted)
      );
    }
  }
}

/** The nearest grant above an event, before the event's own line has changed the state. */
export function findGrantAbove(state: VerifyState, line: ExaminedLine): Grant | undefined {
  const { grants, actions } = state.links;
  const named = findNamed(line);
  if (named === undefined) return undefined;
  const id = fromDigestText(named);
  // An id is that of one event; an execution usually names an action.
  const found = line.type === 'execution' ? actions.get(id)?.grant : undefined;
  return found ?? grants.get(id) ?? actions.get(id)?.grant ?? grantOfUsedUp(state, id);
}

/** The grant of an action that was executed or given back. Nothing is under the grant of another event that it names. */
function grantOfUsedUp({ events, links }: VerifyState, id: string): Grant | undefined {
  const event = events.find(id);
  return event !== undefined && isUsedUp(event.kind) ? links.grants.at(event.grant) : undefined;
}

/**
 * The id that a member of an event names, `sha-256:…`; undefined for anything else, also another spelling of the same bytes.
 */
export function readEventId(value: JsonValue | undefined): string | undefined {
  return isDigest(value) && value.alg === SHA256 ? toDigestText(value.b64) : undefined;
}
