/** Builders of events (SPEC §3): they complete a draft with the envelope and both ids, and check the result. They read no clock. */

import { equalBytes } from '../../base/bytes/compare.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { CANONICAL_PROFILE_ID } from '../../base/json/profile.js';
import type { JsonObject } from '../../base/json/value.js';
import { checkOptions, describeValue } from '../../base/options.js';
import { digestFromBase64url, fromDigestText } from '../../base/value/digest.js';
import { checkEvent } from '../schema/check.js';
import type { CheckpointEvent, GenesisEvent } from '../schema/generated/types.js';
import { type CompleteEvent, completePayload, payloadOf, type Room } from './identity.js';
import { digestReader, readDigestTexts } from './references.js';
import { assertEvent, assertShape } from './validate.js';

/** The members that a builder adds: always the ids, the others if the draft lacks them. */
type Added = 'event_id' | 'payload_digest';
type Defaulted = 'event_type' | 'event_version' | 'canonical_profile_id' | 'occurred_at' | 'principal_id';

/** A value in which a digest may be its text, `sha-256:…`. */
type WithDigestTexts<T> = T extends { readonly alg: unknown; readonly b64: unknown }
  ? T | string
  : T extends object
    ? { [K in keyof T]: WithDigestTexts<T[K]> }
    : T;

/** An event without its ids, and perhaps without the members that a builder defaults; its digests may be texts. */
export type Draft<T> = T extends unknown
  ? WithDigestTexts<Omit<T, Added | Defaulted> & Partial<Pick<T, Extract<keyof T, Defaulted>>>>
  : never;

export interface EventDefaults {
  /** For `occurred_at`: a timestamp of SPEC §2. */
  readonly occurredAt?: string | undefined;
  /** For `principal_id`. */
  readonly principalId?: string | undefined;
  /** For `ledger_id` of any event but a genesis: the event_id of the ledger's genesis, `sha-256:…` or its base64url. */
  readonly ledgerId?: string | undefined;
}

export interface AnyEvent {
  readonly event_type: string;
  readonly event_id: { readonly alg: 'sha-256'; readonly b64: string };
  readonly payload_digest: { readonly alg: 'sha-256'; readonly b64: string };
  readonly principal_id: string;
  readonly occurred_at: string;
  readonly [member: string]: unknown;
}

/**
 * Completes a draft of any type.
 *
 * @param draft - The event without `event_id` and `payload_digest`; only `event_type` is required of the envelope. Digests may be
 *   texts, `sha-256:…`: all of them in the types of SPEC §3, those of the envelope in others.
 * @throws EventError with the code of the first fault; TypeError for what is not plain JSON.
 * @example
 * buildEvent({ event_type: 'x.build', commit: 'abc' }, { principalId: 'service:ci', occurredAt: '2026-01-01T00:00:00Z' });
 */
export function buildEvent(draft: object, defaults: EventDefaults = {}): AnyEvent {
  checkOptions('buildEvent', defaults, { occurredAt: 'string', principalId: 'string', ledgerId: 'string' });
  if (typeof (draft as unknown) !== 'object' || (draft as unknown) === null)
    throw new TypeError(`buildEvent: expected a draft, an object, found ${describeValue(draft)}`);
  return completeDraft(draft, defaults).event;
}

/** A complete and valid event, parsed from its own bytes: it shares no object with the draft. */
interface CompleteDraft extends CompleteEvent {
  readonly event: AnyEvent;
}

/** {@link buildEvent} with the event's bytes and ids. */
export function completeDraft(draft: object, defaults: EventDefaults): CompleteDraft {
  const complete = writeDraft(draft, defaults);
  return { ...complete, event: readWritten(complete) };
}

/** Completes a draft without checking its form. @throws TypeError, NorthrootError for what is not plain JSON. */
export function writeDraft(draft: object, defaults: EventDefaults, room?: Room): CompleteEvent {
  const { event_type: type } = draft as { readonly event_type?: unknown };
  const parts = {
    members: draft,
    defaults: defaultMembers(type, defaults),
    replace: digestReader(type),
  };
  return completePayload(parts, () => fillDraft(draft, defaults), room);
}

/** Parses and checks a written event. @throws EventError if its shape or values are invalid. */
export function readWritten({ bytes }: CompleteEvent): AnyEvent {
  const event = JSON.parse(decodeUtf8(bytes)) as JsonObject;
  assertShape(event);
  return event as unknown as AnyEvent;
}

/** {@link completeDraft} of an event that has its ids. @throws EventError if it or its ids are invalid; TypeError for no plain JSON. */
export function completeWhole(event: object, room?: Room): CompleteDraft {
  const complete = completePayload({ members: event }, () => payloadOf(event), room);
  const { identity, bytes } = complete;
  const copy = JSON.parse(decodeUtf8(bytes)) as JsonObject;
  const claimed = event as Readonly<Record<string, { readonly b64?: unknown } | null | undefined>>;
  const isSound =
    claimed['event_id']?.b64 === identity.eventId &&
    claimed['payload_digest']?.b64 === identity.payloadDigest &&
    checkEvent(copy).length === 0 &&
    equalBytes(canonicalBytes(event), bytes);
  if (!isSound) {
    assertEvent(event);
    assertShape(copy);
  }
  return { ...complete, event: copy as unknown as AnyEvent };
}

function fillDraft(draft: object, defaults: EventDefaults): Record<string, unknown> {
  const { event_type: type } = draft as { readonly event_type?: unknown };
  return { ...defaultMembers(type, defaults), ...readDigestTexts(payloadOf(draft)) };
}

function defaultMembers(
  type: unknown,
  { occurredAt, principalId, ledgerId }: EventDefaults,
): Record<string, unknown> {
  const members: Record<string, unknown> = {
    event_version: '1',
    canonical_profile_id: CANONICAL_PROFILE_ID,
  };
  if (occurredAt !== undefined) members['occurred_at'] = occurredAt;
  if (principalId !== undefined) members['principal_id'] = principalId;
  // Other events are bound to the genesis.
  if (ledgerId !== undefined && type !== 'genesis')
    members['ledger_id'] = digestFromBase64url(fromDigestText(ledgerId));
  return members;
}

type Builder<T> = (draft: Draft<T>, defaults?: EventDefaults) => T;

function builderOf<T>(type: string): Builder<T> {
  return (draft, defaults) =>
    buildEvent({ ...(draft as object), event_type: type }, defaults) as unknown as T;
}

/** Completes a genesis (SPEC §3.3). @throws EventError, TypeError as {@link buildEvent}. */
export const buildGenesis: Builder<GenesisEvent> = builderOf('genesis');

/** Completes a checkpoint (SPEC §3.4). @throws EventError, TypeError as {@link buildEvent}. */
export const buildCheckpoint: Builder<CheckpointEvent> = builderOf('checkpoint');
