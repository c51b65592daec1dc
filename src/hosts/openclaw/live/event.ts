/** Events of the canonical pipeline: plain JSON, copied once and frozen, so that no handler changes what another sees. */

import { decodeUtf8, encodeUtf8 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';
import { MAX_DEPTH } from '../../../base/json/scan.js';
import { canonicalBytesWithout } from '../../../base/json/omit-undefined.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json/value.js';
import { describeValue } from '../../../base/options.js';
import { printable } from '../../../base/bytes/printable.js';
import { formatDigest, sha256Digest } from '../../../base/value/digest.js';
import { timeOf, timeOfText } from '../../shared/values.js';
import { ENVELOPE, type MemberKind } from '../families.js';

/** JSON that nobody can change. */
export type FrozenJson =
  | null
  | boolean
  | number
  | string
  | readonly FrozenJson[]
  | { readonly [member: string]: FrozenJson };

/** A JSON object that nobody can change. */
export type FrozenObject = Readonly<Record<string, FrozenJson>>;

/** An account, a conversation, a message: an id, or an object. */
export type Reference = string | FrozenObject | null;

/** An event of the pipeline: deeply frozen. */
export interface PipelineEvent {
  readonly eventId: string;
  readonly family: string;
  /** A timestamp with an offset, or milliseconds since 1970. */
  readonly occurredAt: string | number;
  readonly workspaceId: string | null;
  readonly agentId: string | null;
  readonly sessionId: string | null;
  readonly accountRef: Reference;
  readonly conversationRef: Reference;
  readonly threadRef: Reference;
  readonly messageRef: Reference;
  readonly sourceContributionId: string | null;
  /** What the events of one run have in common. */
  readonly correlationId: string | null;
  readonly payload: FrozenJson;
  readonly metadata: FrozenObject | null;
  readonly providerMetadata: FrozenObject | null;
  readonly hotPath: boolean;
}

/** What an event is made of: its family, and what is known of the rest. */
export type EventInit = { readonly family: string } & { readonly [K in keyof PipelineEvent]?: unknown };

/** An event's canonical form, in bytes, is at most this long. */
export const MAX_EVENT_BYTES = 16_777_216;

/** Events that were made here, with their digest. */
const made = new WeakMap<PipelineEvent, string>();

/**
 * An event with all 16 members: `eventId` is a random UUID, `occurredAt` now, and the rest `null`, `{}` (payload) and `false` where they are
 * not given. It is a copy, deeply frozen.
 *
 * @throws NorthrootError `EVENT_INVALID`: a member is unknown or of another type, a value is no JSON that has a canonical form (as
 *   `canonicalBytes`), or all is longer than 16 MiB
 */
export function createEvent(init: EventInit): PipelineEvent {
  if (made.has(init as PipelineEvent)) return init as PipelineEvent;
  const given = copied(init);
  if (!isJsonObject(given)) throw invalid(`expected an object, found ${describeValue(given)}`);
  for (const member of Object.keys(given))
    if (!Object.hasOwn(ENVELOPE, member)) throw invalid(`there is no member ${printable(member, 80)}`);
  const event: JsonObject = {};
  for (const [member, kind] of Object.entries(ENVELOPE)) {
    const value = given[member] ?? defaultOf(member, kind);
    if (!IS_RIGHT[kind](value)) throw invalid(`${member}: expected ${WORDS[kind]}`);
    event[member] = value;
  }
  const frozen = deepFreeze(event) as unknown as PipelineEvent;
  made.set(frozen, formatDigest(sha256Digest(canonicalBytesWithout(event))));
  return frozen;
}

/** The digest of an event that was made here. */
export function digestOfEvent(event: PipelineEvent): string {
  return made.get(event) ?? '';
}

/** The longest id that is remembered as it is. */
const MAX_KEPT_LENGTH = 256;

/** What stands for an id where many are remembered: models and channels choose how long ids are. */
export function keyOfId(id: string): string {
  return id.length <= MAX_KEPT_LENGTH ? id : formatDigest(sha256Digest(encodeUtf8(id)));
}

/** What an event is about, within its correlation: a call, a message. */
export function subjectOfEvent({ payload, messageRef }: PipelineEvent): string | undefined {
  const call = memberOf(payload, 'toolCallId');
  const subject = typeof call === 'string' ? call : messageRef;
  return typeof subject === 'string' ? keyOfId(subject) : undefined;
}

/** A member of an object; undefined of anything else. */
export function memberOf(value: FrozenJson | undefined, name: string): FrozenJson | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as FrozenObject)[name] : undefined;
}

/** A member that is a text that is not empty. */
export function textOf(value: FrozenJson | undefined, name: string): string | undefined {
  const member = memberOf(value, name);
  return typeof member === 'string' && member !== '' ? member : undefined;
}

/**
 * A copy of plain JSON, without undefined members. It calls no code of the value but a proxy's.
 * @param maxDepth - The most levels of nesting
 * @throws as `canonicalBytes`; NorthrootError `NESTING_TOO_DEEP`
 * @returns The copy, and its length in bytes
 */
export function copyJson(
  value: unknown,
  maxDepth = MAX_DEPTH,
): { readonly copy: JsonValue; readonly length: number } {
  const bytes = canonicalBytesWithout(value);
  const copy = JSON.parse(decodeUtf8(bytes)) as JsonValue;
  if (maxDepth < MAX_DEPTH) checkDepth(copy, maxDepth);
  return { copy, length: bytes.length };
}

function checkDepth(value: JsonValue, left: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (left === 0) throw new NorthrootError('NESTING_TOO_DEEP', 'nested too deep for a trace of its stage');
  for (const each of Object.values(value)) checkDepth(each, left - 1);
}

/** Freezes JSON and all in it. */
export function deepFreeze(value: JsonValue): FrozenJson {
  if (typeof value !== 'object' || value === null) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}

function copied(init: EventInit): JsonValue {
  const { copy, length } = (() => {
    try {
      return copyJson(init);
    } catch (cause) {
      throw new NorthrootError('EVENT_INVALID', 'the event has no canonical form', { cause });
    }
  })();
  if (length > MAX_EVENT_BYTES) throw invalid(`expected at most ${MAX_EVENT_BYTES} bytes, found ${length}`);
  return copy;
}

function defaultOf(member: string, kind: MemberKind): JsonValue {
  if (member === 'eventId') return crypto.randomUUID();
  if (kind === 'time') return new Date().toISOString();
  if (kind === 'any') return {};
  return kind === 'boolean' ? false : null;
}

const isName = (value: JsonValue): boolean => value === null || (typeof value === 'string' && value !== '');

const IS_RIGHT: Readonly<Record<MemberKind, (value: JsonValue) => boolean>> = {
  text: (value) => typeof value === 'string' && value !== '',
  name: isName,
  ref: (value) => isName(value) || isJsonObject(value),
  time: (value) =>
    typeof value === 'number'
      ? timeOf(JSON.stringify(value), 'ms') !== undefined
      : typeof value === 'string' && timeOfText(value) !== undefined,
  any: () => true,
  object: (value) => value === null || isJsonObject(value),
  boolean: (value) => typeof value === 'boolean',
};

const WORDS: Readonly<Record<MemberKind, string>> = {
  text: 'a text',
  name: 'a text or null',
  ref: 'a text, an object or null',
  time: 'a timestamp with an offset, or milliseconds',
  any: 'JSON',
  object: 'an object or null',
  boolean: 'true or false',
};

function invalid(message: string): NorthrootError {
  return new NorthrootError('EVENT_INVALID', message);
}
