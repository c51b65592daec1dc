/**
 * Events as journals hold them. A journal's `event_id` is the hash of the event without `event_id` alone; a ledger's leaves out
 * `payload_digest` too. So an event of a ledger is written without its `payload_digest`: it has the same id by both rules, and the digest
 * is computed again when it is read.
 */

import { NorthrootError } from '../../../base/error.js';
import { canonicalBytes } from '../../../base/json/canonicalize.js';
import { ingestJson } from '../../../base/json/ingest.js';
import { CANONICAL_PROFILE_ID } from '../../../base/json/profile.js';
import { isJsonObject, type JsonObject } from '../../../base/json/value.js';
import { digestFromBase64url, isDigest } from '../../../base/value/digest.js';
import { identifyEvent, identifyPayload } from '../../../format/event/identity.js';

/** An event that a journal holds; its id is right by the journal's rule. */
interface JournalEvent {
  readonly event: JsonObject;
  /** 43 characters of base64url. */
  readonly eventId: string;
  /**
   * The same event as a ledger has it, ids included; undefined where that is not the same event: it has another canonicalization
   * profile, or a `payload_digest` under its id.
   */
  readonly own: JsonObject | undefined;
}

/** The payload of a frame for an event of a ledger: canonical JSON, without `payload_digest`. */
export function toJournalPayload(event: object): Uint8Array {
  const payload = { ...(event as JsonObject) };
  delete payload['payload_digest'];
  return canonicalBytes(payload);
}

/**
 * Reads the event in a frame, and holds its id against it.
 *
 * @throws NorthrootError `JOURNAL_MALFORMED` for what is not one JSON object without duplicate keys, with numbers that canonical JSON has
 *   and an `event_id` that is a digest; `EVENT_ID_MISMATCH`
 */
export function parseJournalEvent(payload: Uint8Array): JournalEvent {
  const { value, issues } = ingestJson(payload);
  if (value === undefined || !isJsonObject(value)) {
    const found = issues[0]?.code ?? 'another JSON value';
    throw new NorthrootError('JOURNAL_MALFORMED', `expected an event as one JSON object, found ${found}`);
  }
  const { event_id: claimed, ...content } = value;
  if (!isDigest(claimed) || claimed.alg !== 'sha-256')
    throw new NorthrootError(
      'JOURNAL_MALFORMED',
      'expected a sha-256 digest as the event_id of a journal event',
    );
  const { eventId } = identifyPayload(canonicalBytes(content));
  if (claimed.b64 !== eventId)
    throw new NorthrootError(
      'EVENT_ID_MISMATCH',
      `expected event_id ${eventId} by the rule of journals, found ${claimed.b64}`,
    );
  const isOwn =
    value['canonical_profile_id'] === CANONICAL_PROFILE_ID && !Object.hasOwn(value, 'payload_digest');
  if (!isOwn) return { event: value, eventId, own: undefined };
  const digest = digestFromBase64url(identifyEvent(value).payloadDigest);
  return { event: value, eventId, own: { ...value, payload_digest: { ...digest } } };
}
