/** The identity of an event that is a value, not bytes in a line (SPEC §3): its payload, `payload_digest` and `event_id`. */

import { concatBytes } from '../bytes/concat.js';
import { sha256Base64url } from '../bytes/sha256.js';
import { decodeUtf8, encodeLatin1 } from '../bytes/text.js';
import { canonicalBytes } from '../json/canonicalize.js';
import { MemberMarks, scanCanonical } from '../json/scan.js';
import { digestFromBase64url, type Digest } from '../value/digest.js';

/** What stands before the payload's canonical bytes when an event id is made: 19 bytes. */
export const EVENT_ID_PREFIX = 'northroot:event:v1\0';

/** The two ids of one event, as 43 characters of base64url. */
export interface EventIdentity {
  readonly payloadDigest: string;
  readonly eventId: string;
}

/**
 * Both ids of an event, or of a payload: the members `event_id` and `payload_digest` are left out if they are there.
 *
 * @throws NorthrootError, TypeError as `canonicalBytes` for what is not canonical JSON.
 */
export function identifyEvent(event: object): EventIdentity {
  return identifyPayload(canonicalBytes(payloadOf(event)));
}

/** Both ids of a payload given as its canonical bytes. */
export function identifyPayload(payload: Uint8Array): EventIdentity {
  const prefixed = concatBytes([encodeLatin1(EVENT_ID_PREFIX), payload]);
  return { payloadDigest: sha256Base64url(payload), eventId: sha256Base64url(prefixed) };
}

const ROW = 5;
const marks = new MemberMarks();

/**
 * Both ids of a payload, and the canonical text of the event that it makes with them: the payload's own members and two
 * more, so that nothing is serialised twice.
 */
export function completePayload(payload: object): { identity: EventIdentity; eventText: string } {
  const bytes = canonicalBytes(payload);
  const identity = identifyPayload(bytes);
  if (scanCanonical(bytes, 0, bytes.length, marks) !== -1) throw new Error('canonical bytes are refused');
  const members = new Map([
    ['event_id', `"event_id":{"alg":"sha-256","b64":"${identity.eventId}"}`],
    ['payload_digest', `"payload_digest":{"alg":"sha-256","b64":"${identity.payloadDigest}"}`],
  ]);
  const names = Object.keys(payload).sort();
  for (let row = 0, index = 0; row < marks.count * ROW; row += ROW) {
    if (marks.rows[row] !== 1) continue;
    members.set(names[index++] as string, decodeUtf8(bytes, marks.rows[row + 1], marks.rows[row + 4]));
  }
  const sorted = [...members.keys()].sort().map((name) => members.get(name));
  return { identity, eventText: `{${sorted.join(',')}}` };
}

/** The `event_id` that an event's content has: SHA-256(`northroot:event:v1\0` ‖ canonical payload). */
export function eventId(event: object): Digest {
  return digestFromBase64url(identifyEvent(event).eventId);
}

/** The `payload_digest` that an event's content has: SHA-256 of its canonical payload. */
export function payloadDigest(event: object): Digest {
  return digestFromBase64url(identifyEvent(event).payloadDigest);
}

/** The event without the two members that its identity leaves out. */
export function payloadOf(event: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).filter(([name]) => name !== 'event_id' && name !== 'payload_digest'),
  );
}
