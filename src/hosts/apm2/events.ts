/**
 * Kernel events of apm2 as JSON: the protobuf's JSON form, serde's, or flat objects with a type; names in snake_case or camelCase; hashes
 * in hexadecimal, base64 or as arrays of numbers.
 */

import { encodeHex, tryDecodeBase64, tryDecodeBase64url, tryDecodeHex } from '../../base/bytes/encoding.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { numberAt, timeOf, timeOfText } from '../shared/values.js';
import { bytesOf } from './receipt.js';

/** An event's members, the innermost object that has a name first. */
export class Fields {
  readonly #layers: readonly SourceObject[];

  constructor(layers: readonly SourceObject[]) {
    this.#layers = layers;
  }

  /** The same, with further objects to look in before or after. */
  with(inner: readonly SourceObject[], outer: readonly SourceObject[] = []): Fields {
    return new Fields([...inner, ...this.#layers, ...outer]);
  }

  /** The member of that name, in snake_case as here or in camelCase. */
  value(name: string): SourceValue | undefined {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    for (const layer of this.#layers) {
      const value = layer.get(name) ?? layer.get(camel);
      if (value !== undefined && value !== null) return value;
    }
    return undefined;
  }

  /** A text; undefined for an empty one, which is what protobuf has for none. */
  text(name: string): string | undefined {
    const value = this.value(name);
    return typeof value === 'string' && value !== '' ? value : undefined;
  }

  /** The text of a whole number without sign, from a number or a text: protobuf's JSON writes 64 bits as texts. */
  count(name: string): string | undefined {
    const value = this.value(name);
    const text = value instanceof SourceNumber ? value.text : value;
    return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text.replace(/^0+(?=\d)/, '') : undefined;
  }

  /** 32 bytes, as 64 hexadecimal digits. */
  hash(name: string): string | undefined {
    return hashOf(this.value(name));
  }

  /** A Timestamp, from whichever of the members there is that state one. */
  time(): string | undefined {
    for (const name of ['timestamp_ns', 'observed_at_ns', 'occurred_at_ns', 'ts_ns', 'recorded_at_ns']) {
      const time = timeOf(this.count(name), 'ns');
      if (time !== undefined) return time;
    }
    for (const name of ['timestamp', 'occurred_at', 'observed_at', 'recorded_at']) {
      const value = this.value(name);
      if (typeof value === 'string') {
        const time = timeOfText(value) ?? (/^\d{1,20}$/.test(value) ? timeOf(value, 'ns') : undefined);
        if (time !== undefined) return time;
      }
      const seconds = countText(value, 'seconds');
      if (seconds !== undefined) {
        const nanos = (countText(value, 'nanos') ?? '0').padStart(9, '0');
        const time = timeOf(`${seconds}${nanos}`, 'ns');
        if (time !== undefined) return time;
      }
      if (value instanceof SourceNumber) {
        // Seconds, milliseconds and nanoseconds of this century differ by their digits.
        const whole = value.text.replace(/\..*$/, '').length;
        const time = timeOf(value.text, whole > 16 ? 'ns' : whole > 11 ? 'ms' : 's');
        if (time !== undefined) return time;
      }
    }
    return undefined;
  }
}

function countText(value: SourceValue | undefined, name: string): string | undefined {
  const text = numberAt(value, name) ?? (value instanceof SourceObject ? value.get(name) : undefined);
  return typeof text === 'string' && /^\d{1,12}$/.test(text) ? text : undefined;
}

const PREFIXED = /^(?:blake3|b3-256|b3|hash):/;

/** 32 bytes as 64 hexadecimal digits, from whatever form JSON has them in. */
export function hashOf(value: SourceValue | undefined): string | undefined {
  if (typeof value === 'string') {
    const text = value.replace(PREFIXED, '');
    if (text.length > 80) return undefined;
    if (/^[0-9a-fA-F]{64}$/.test(text)) return text.toLowerCase();
    const bytes = tryDecodeBase64(text) ?? tryDecodeBase64url(text);
    return bytes?.length === 32 ? encodeHex(bytes) : undefined;
  }
  const bytes = bytesOf(value);
  return bytes?.length === 32 ? encodeHex(bytes) : undefined;
}

/** Bytes of any length in hexadecimal, base64 or as an array of numbers. */
export function anyBytesOf(value: SourceValue | undefined): Uint8Array | undefined {
  if (typeof value !== 'string') return bytesOf(value);
  if (value === '') return undefined;
  return tryDecodeHex(value) ?? tryDecodeBase64(value) ?? tryDecodeBase64url(value);
}

export interface KernelEvent {
  readonly kind: EventKind;
  readonly type: string;
  readonly fields: Fields;
}

/** Kinds by name, without whatever is neither letter nor digit. */
const KINDS = {
  toolrequested: 'requested',
  toolrequest: 'requested',
  tooldecided: 'decided',
  tooldecision: 'decided',
  toolexecuted: 'executed',
  toolexecution: 'executed',
  budgetexceeded: 'budget_exceeded',
  policybudgetexceeded: 'budget_exceeded',
  episoderunattributed: 'attributed',
  kerneltoolactuation: 'actuation',
  episodespawned: 'spawned',
  episodespawn: 'spawned',
  sessionterminated: 'terminated',
  episodeterminated: 'terminated',
  reviewreceiptrecorded: 'review_receipt',
  reviewblockedrecorded: 'review_blocked',
} as const;

/** What events say that is checked against rules or mapped; everything else is `other`. */
export type EventKind = (typeof KINDS)[keyof typeof KINDS] | 'other';

/** The kind of a name; undefined of any other. */
function knownKind(name: string): EventKind | undefined {
  return Object.hasOwn(KINDS, name) ? KINDS[name as keyof typeof KINDS] : undefined;
}

/** Names of members that hold an event under a shorter name: `tool: {decided: {…}}`. */
const WRAPPERS: Readonly<Record<string, string>> = {
  tool: 'tool',
  toolevent: 'tool',
  policy: 'policy',
  policyevent: 'policy',
  session: 'session',
  sessionevent: 'session',
  payload: '',
  event: '',
  data: '',
  body: '',
};
const MAX_WRAPPERS = 5;

function nameOf(text: string): string {
  return text
    .slice(0, 200)
    .toLowerCase()
    .replace(/^apm2\.event\./, '')
    .replace(/^kernel:/, '')
    .replace(/[^a-z0-9]/g, '');
}

/** What kind of event a type names. */
export function kindOf(type: string): EventKind {
  return knownKind(nameOf(type)) ?? 'other';
}

/** The event that an object is or holds; undefined where it is none. */
export function kernelEventOf(value: SourceObject): KernelEvent | undefined {
  return unwrap(value, '', [], 0) ?? byShape(value);
}

function unwrap(
  value: SourceObject,
  prefix: string,
  outer: readonly SourceObject[],
  depth: number,
): KernelEvent | undefined {
  if (depth > MAX_WRAPPERS) return undefined;
  const layers = [value, ...outer];
  for (const tag of ['event_type', 'eventType', 'type', 'event_kind', 'kind', 'event']) {
    const type = value.get(tag);
    if (typeof type !== 'string' || type === '') continue;
    const payload = ['payload', 'data', 'body', 'fields'].map((name) => value.get(name));
    const inner = payload.filter((member) => member instanceof SourceObject);
    return { kind: kindOf(type), type, fields: new Fields([...inner, ...layers]) };
  }
  for (const [name, member] of value.entries()) {
    if (!(member instanceof SourceObject)) continue;
    const known = nameOf(name);
    const kind = knownKind(`${prefix}${known}`) ?? knownKind(known);
    if (kind !== undefined) {
      const inner = [...member.entries()].flatMap(([, each]) => (each instanceof SourceObject ? [each] : []));
      return { kind, type: snakeOf(kind), fields: new Fields([member, ...inner, ...layers]) };
    }
    if (Object.hasOwn(WRAPPERS, known)) {
      const found = unwrap(member, `${prefix}${WRAPPERS[known]!}`, layers, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The type of an event whose wrapping names it. */
function snakeOf(kind: EventKind): string {
  return kind === 'requested' || kind === 'decided' || kind === 'executed' ? `tool_${kind}` : kind;
}

/** Messages without any name are told by their members. */
function byShape(value: SourceObject): KernelEvent | undefined {
  const fields = new Fields([value]);
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => fields.value(name) !== undefined);
  const made = (kind: EventKind): KernelEvent => ({ kind, type: snakeOf(kind), fields });
  if (has('request_id', 'tool_name') && (has('tool_args_hash') || has('dedupe_key')))
    return made('requested');
  if (has('request_id', 'decision') && (has('rule_id') || has('policy_hash') || has('rationale_code')))
    return made('decided');
  if (has('request_id', 'outcome') && (has('result_hash') || has('duration_ms'))) return made('executed');
  if (has('budget_type', 'limit', 'consumed')) return made('budget_exceeded');
  if (has('episode_id', 'adapter_profile_hash')) return made('attributed');
  if (has('episode_id', 'spawn_time_ns')) return made('spawned');
  if (has('artifact_bundle_hash', 'reviewer_actor_id')) return made('review_receipt');
  if (has('blocked_id', 'reason_code')) return made('review_blocked');
  return undefined;
}
