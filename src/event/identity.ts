/** The identity of an event that is a value, not bytes in a line (SPEC §3): its payload, `payload_digest` and `event_id`. */

import { allocateScratch, concatBytes } from '../bytes/concat.js';
import { sha256Base64url } from '../bytes/sha256.js';
import { encodeLatin1, encodeUtf8, writeLatin1 } from '../bytes/text.js';
import { canonicalBytes, canonicalText } from '../json/canonicalize.js';
import { listNames, PlainWriter, UNUSUAL } from '../json/plain-writer.js';
import type { JsonObject } from '../json/value.js';
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

/** An event whose ids were made. */
export interface CompleteEvent {
  readonly identity: EventIdentity;
  /** Its canonical bytes, ids included. */
  readonly bytes: Uint8Array;
  /** A copy, as reading these bytes gives it. */
  readonly event: JsonObject;
  /** How many containers are open at most in it; undefined where that was not seen. */
  readonly depth: number | undefined;
}

const writer = new PlainWriter(encodeLatin1(EVENT_ID_PREFIX));
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;

/**
 * Both ids of a payload, and the event that it makes with them: written once, hashed where it lies, and copied together.
 *
 * @param payload - Without `event_id` and `payload_digest`.
 * @throws NorthrootError, TypeError as `canonicalBytes` for what is not canonical JSON.
 */
export function completePayload(payload: object): CompleteEvent {
  const complete = writer.use(() => completeUsual(payload));
  return complete === UNUSUAL ? completeAny(payload) : complete;
}

function completeUsual(payload: object): CompleteEvent | typeof UNUSUAL {
  const names = listNames(payload);
  if (names === undefined || names.length === 0) return UNUSUAL;
  const event: JsonObject = {};
  let idAt = -1;
  let digestAt = -1;
  const start = writer.at;
  writer.byte(OPEN);
  for (const name of names) {
    // The two members go before the first that comes after them.
    if (idAt < 0 && name >= 'event_id') {
      idAt = writer.at;
      event['event_id'] = null;
    }
    if (digestAt < 0 && name >= 'payload_digest') {
      digestAt = writer.at;
      event['payload_digest'] = null;
    }
    if (name === 'event_id' || name === 'payload_digest') return UNUSUAL;
    if (writer.at > start + 1) writer.byte(COMMA);
    const value = writer.member(payload, name, 1);
    if (value === UNUSUAL) return UNUSUAL;
    event[name] = value;
  }
  if (idAt < 0) idAt = writer.at;
  if (digestAt < 0) digestAt = writer.at;
  writer.byte(CLOSE);
  const { bytes: prefixed } = writer;
  const payloadDigest = sha256Base64url(prefixed.subarray(start));
  const eventId = sha256Base64url(prefixed);
  event['event_id'] = { alg: 'sha-256', b64: eventId };
  event['payload_digest'] = { alg: 'sha-256', b64: payloadDigest };
  const first = start + 1;
  const bytes = insertTexts(prefixed, start, [
    { at: idAt, text: besideOthers(memberText('event_id', eventId), idAt === first) },
    { at: digestAt, text: besideOthers(memberText('payload_digest', payloadDigest), digestAt === first) },
  ]);
  // The ids are two deep themselves.
  return { identity: { payloadDigest, eventId }, bytes, event, depth: Math.max(2, writer.deepest) };
}

function memberText(name: string, b64: string): string {
  return `"${name}":{"alg":"sha-256","b64":"${b64}"}`;
}

function besideOthers(member: string, isFirst: boolean): string {
  return isFirst ? `${member},` : `,${member}`;
}

/** `source` from `start` on with texts of ASCII put in, in their order. */
function insertTexts(
  source: Uint8Array,
  start: number,
  inserts: readonly { readonly at: number; readonly text: string }[],
): Uint8Array {
  const length = inserts.reduce((sum, { text }) => sum + text.length, source.length - start);
  const bytes = allocateScratch(length);
  let from = start;
  let to = 0;
  for (const { at, text } of inserts) {
    bytes.set(source.subarray(from, at), to);
    to += at - from;
    writeLatin1(bytes, text, to);
    to += text.length;
    from = at;
  }
  bytes.set(source.subarray(from), to);
  return bytes;
}

/** The same of any payload. */
function completeAny(payload: object): CompleteEvent {
  const identity = identifyPayload(canonicalBytes(payload));
  const whole = {
    ...payload,
    event_id: digestFromBase64url(identity.eventId),
    payload_digest: digestFromBase64url(identity.payloadDigest),
  };
  const text = canonicalText(whole);
  return { identity, bytes: encodeUtf8(text), event: JSON.parse(text) as JsonObject, depth: undefined };
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
