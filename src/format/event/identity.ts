/** The identity of an event that is a value, not bytes in a line (SPEC §3): its payload, `payload_digest` and `event_id`. */

import { concatBytes } from '../../base/bytes/concat.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { takeScratch } from '../../base/bytes/slab.js';
import { encodeLatin1, writeLatin1 } from '../../base/bytes/text.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { listNames, PlainWriter, type Replace, sortNames, NOT_PLAIN } from '../../base/json/plain-writer.js';
import { type Digest, digestFromBase64url } from '../../base/value/digest.js';

/** The prefix of the payload in the hash that is the event id: 19 bytes. */
export const EVENT_ID_PREFIX = 'northroot:event:v1\0';

/** The two ids of one event, as 43 characters of base64url. */
export interface EventIdentity {
  readonly payloadDigest: string;
  readonly eventId: string;
}

/**
 * Both ids of an event or a payload; the members `event_id` and `payload_digest` are ignored.
 *
 * @throws NorthrootError, TypeError as `canonicalBytes` for what is not canonical JSON.
 */
export function identifyEvent(event: object): EventIdentity {
  return identifyPayload(canonicalBytes(payloadOf(event)));
}

/** Both ids of a payload's canonical bytes. */
export function identifyPayload(payload: Uint8Array): EventIdentity {
  const prefixed = concatBytes([encodeLatin1(EVENT_ID_PREFIX), payload]);
  return { payloadDigest: sha256Base64url(payload), eventId: sha256Base64url(prefixed) };
}

export interface CompleteEvent {
  readonly identity: EventIdentity;
  /** Its canonical bytes, ids included. */
  readonly bytes: Uint8Array;
  /** `bytes` with the {@link Room} around them, which is uninitialised. */
  readonly whole: Uint8Array;
  /** Its nesting; undefined if unknown. */
  readonly depth: number | undefined;
}

/** The bytes reserved before and after an event. */
export interface Room {
  readonly before: number;
  readonly after: number;
}

interface PayloadParts {
  /** `event_id` and `payload_digest` are ignored. */
  readonly members: object;
  /** Used for names that `members` lacks. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly replace?: Replace | undefined;
}

const NO_ROOM: Room = { before: 0, after: 0 };
const writer = new PlainWriter(encodeLatin1(EVENT_ID_PREFIX));
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;

/**
 * Both ids of a payload, and the event with them: written once, and hashed in place.
 *
 * @param payloadOfAny - Gives the payload if its parts are not plain.
 * @throws NorthrootError, TypeError as `canonicalBytes` for what is not canonical JSON.
 */
export function completePayload(
  parts: PayloadParts,
  payloadOfAny: () => object,
  room: Room = NO_ROOM,
): CompleteEvent {
  const complete = writer.use(() => completePlain(parts, room), parts.replace);
  return complete === NOT_PLAIN ? completeAny(payloadOfAny(), room) : complete;
}

function completePlain(
  { members, defaults = {} }: PayloadParts,
  room: Room,
): CompleteEvent | typeof NOT_PLAIN {
  const names = listNames(members);
  if (names === undefined) return NOT_PLAIN;
  const added = Object.keys(defaults).filter((name) => !names.includes(name));
  if (added.length > 0) {
    names.push(...added);
    sortNames(names);
  }
  let idAt = -1;
  let digestAt = -1;
  const start = writer.at;
  writer.byte(OPEN);
  for (const name of names) {
    if (name === 'event_id' || name === 'payload_digest') continue;
    // Each id goes before the first member that sorts after it.
    if (idAt < 0 && name > 'event_id') idAt = writer.at;
    if (digestAt < 0 && name > 'payload_digest') digestAt = writer.at;
    if (writer.at > start + 1) writer.byte(COMMA);
    const isUsual = added.includes(name)
      ? writer.named(name, defaults[name], 1)
      : writer.member(members, name, 1);
    if (!isUsual) return NOT_PLAIN;
  }
  if (writer.at === start + 1) return NOT_PLAIN;
  if (idAt < 0) idAt = writer.at;
  if (digestAt < 0) digestAt = writer.at;
  writer.byte(CLOSE);
  const { bytes: prefixed } = writer;
  const identity = {
    payloadDigest: sha256Base64url(prefixed.subarray(start)),
    eventId: sha256Base64url(prefixed),
  };
  const whole = insertIds(prefixed, start, idAt, digestAt, identity, room);
  const bytes = whole.subarray(room.before, whole.length - room.after);
  // The ids are two deep.
  return { identity, bytes, whole, depth: Math.max(2, writer.deepest) };
}

/** `source` from `start` on with both ids inserted, and with room around it. */
function insertIds(
  source: Uint8Array,
  start: number,
  idAt: number,
  digestAt: number,
  { eventId, payloadDigest }: EventIdentity,
  { before, after }: Room,
): Uint8Array {
  const first = start + 1;
  const id = besideOthers(memberText('event_id', eventId), idAt === first);
  const digest = besideOthers(memberText('payload_digest', payloadDigest), digestAt === first);
  const whole = takeScratch(before + source.length - start + id.length + digest.length + after);
  let to = before;
  whole.set(source.subarray(start, idAt), to);
  to += idAt - start;
  writeLatin1(whole, id, to);
  to += id.length;
  whole.set(source.subarray(idAt, digestAt), to);
  to += digestAt - idAt;
  writeLatin1(whole, digest, to);
  to += digest.length;
  whole.set(source.subarray(digestAt), to);
  return whole;
}

function memberText(name: string, b64: string): string {
  return `"${name}":{"alg":"sha-256","b64":"${b64}"}`;
}

function besideOthers(member: string, isFirst: boolean): string {
  return isFirst ? `${member},` : `,${member}`;
}

/** {@link completePlain} of any payload. */
function completeAny(payload: object, { before, after }: Room): CompleteEvent {
  const identity = identifyPayload(canonicalBytes(payload));
  const event = canonicalBytes({
    ...payload,
    event_id: digestFromBase64url(identity.eventId),
    payload_digest: digestFromBase64url(identity.payloadDigest),
  });
  const whole = takeScratch(before + event.length + after);
  whole.set(event, before);
  return { identity, bytes: whole.subarray(before, before + event.length), whole, depth: undefined };
}

/** The `event_id` of an event's content: SHA-256(`northroot:event:v1\0` ‖ canonical payload). */
export function eventId(event: object): Digest {
  return digestFromBase64url(identifyEvent(event).eventId);
}

/** The event without `event_id` and `payload_digest`. */
export function payloadOf(event: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).filter(([name]) => name !== 'event_id' && name !== 'payload_digest'),
  );
}
