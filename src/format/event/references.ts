/**
 * Digests in drafts. An event has objects, reports and commands print `sha-256:…`; a draft may have either. It may also name another
 * event of its ledger by its seq or the beginning of its id, which {@link resolveReferences} replaces.
 */

import { type Digest, tryParseDigest } from '../../base/value/digest.js';
import { isKnownEventType } from '../schema/check.js';

/** The members that are digests, or lists of digests, in the events of SPEC §3, at any depth. */
const DIGEST_NAMES: ReadonlySet<string> = new Set([
  'approval_event_ids',
  'auth_event_id',
  'chain_tip_event_id',
  'checkpoint_event_id',
  'context_digest',
  'digest',
  'execution_event_id',
  'grant_event_id',
  'hygiene_digest',
  'intent_digest',
  'ledger_id',
  'output_digest',
  'policy_digest',
  'prev_event_id',
  'pricing_snapshot_digest',
  'reason_digest',
  'request_event_id',
  'root',
  'tool_params_digest',
  'user_intent_digest',
]);

/** The digests of the envelope, in any event. */
const ENVELOPE_NAMES: ReadonlySet<string> = new Set(['context_digest', 'ledger_id', 'prev_event_id']);

/** The members that name another event of the ledger. */
const EVENT_NAME = /_event_ids?$/;

/** Deeper than any digest in an event. */
const MAX_DEPTH = 8;

/** The draft with each digest text replaced by its object; other values are unchanged. */
export function readDigestTexts(draft: Record<string, unknown>): Record<string, unknown> {
  return mapDigests(draft, (value) => (typeof value === 'string' ? tryParseDigest(value) : undefined));
}

/** {@link readDigestTexts} for one text at a time, while a draft of this type is written. */
export function digestReader(
  type: unknown,
): (text: string, name: string, depth: number) => Digest | undefined {
  return isKnownType(type) ? readAnywhere : readInEnvelope;
}

function readAnywhere(text: string, name: string, depth: number): Digest | undefined {
  // The draft is the first container.
  return depth <= MAX_DEPTH + 1 && DIGEST_NAMES.has(name) ? tryParseDigest(text) : undefined;
}

function readInEnvelope(text: string, name: string, depth: number): Digest | undefined {
  return depth === 1 && ENVELOPE_NAMES.has(name) ? tryParseDigest(text) : undefined;
}

function isKnownType(type: unknown): boolean {
  return typeof type === 'string' && isKnownEventType(type);
}

/**
 * The draft with each event named by seq (a number, or its text) or by the beginning of an id replaced by its id.
 *
 * @param find - Returns the id, `sha-256:…`, of a named event; its errors are passed on.
 * @example
 * await resolveReferences({ event_type: 'execution', auth_event_id: 17, … }, async (wanted) => (await findRecord(await open(), wanted)).eventId);
 */
export async function resolveReferences(
  draft: object,
  find: (wanted: string) => Promise<string>,
): Promise<Record<string, unknown>> {
  const given = { ...draft } as Record<string, unknown>;
  const found = new Map<string, string>();
  mapDigests(given, (value, name) => {
    const wanted = referenceOf(value, name);
    if (wanted !== undefined) found.set(wanted, '');
    return undefined;
  });
  for (const wanted of found.keys()) found.set(wanted, await find(wanted));
  if (found.size === 0) return given;
  return mapDigests(given, (value, name) => {
    const wanted = referenceOf(value, name);
    return wanted === undefined ? undefined : tryParseDigest(found.get(wanted) as string);
  });
}

function referenceOf(value: unknown, name: string): string | undefined {
  if (!EVENT_NAME.test(name)) return undefined;
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined;
  return typeof value === 'string' && tryParseDigest(value) === undefined ? value : undefined;
}

function mapDigests(
  draft: Record<string, unknown>,
  toDigest: (value: unknown, name: string) => Digest | undefined,
): Record<string, unknown> {
  const isKnown = isKnownType(draft['event_type']);
  const names = isKnown ? DIGEST_NAMES : ENVELOPE_NAMES;
  const map = (value: unknown, depth: number, name = ''): unknown => {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
    if (Array.isArray(value)) {
      const list = value as readonly unknown[];
      const read = (item: unknown): unknown => (names.has(name) ? toDigest(item, name) : undefined);
      const items = list.map((item) => read(item) ?? map(item, depth + 1, name));
      return items.some((item, index) => item !== list[index]) ? items : list;
    }
    let changed: Record<string, unknown> | undefined;
    for (const [name, member] of Object.entries(value as Readonly<Record<string, unknown>>)) {
      const digest = names.has(name) ? toDigest(member, name) : undefined;
      const mapped = digest ?? (isKnown ? map(member, depth + 1, name) : member);
      if (mapped === member) continue;
      changed ??= Object.fromEntries(Object.entries(value));
      changed[name] = mapped;
    }
    return changed ?? value;
  };
  return map(draft, 0) as Record<string, unknown>;
}
