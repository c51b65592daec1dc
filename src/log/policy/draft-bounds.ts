/** Proposes bounds of a grant from calls that were made: the least that would have allowed them all. */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { checkOptions } from '../../base/options.js';
import { sha256Digest } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { fromRational, toRational } from '../../base/value/quantity.js';
import { addRationals, compareRationals, type Rational, ZERO } from '../../base/value/rational.js';
import { buildEvent } from '../../format/event/build.js';
import type { Bounds } from '../../format/schema/generated/types.js';
import { type MadeCall, usedByCall } from './simulate.js';

export interface DraftBoundsOptions {
  /** Two or more tools that are the same up to their first dot become a pattern: `fs.*`. Default false. */
  readonly prefixes?: boolean | undefined;
}

/** Tools that no pattern may allow by the way (SPEC §8). */
const RESERVED = 'northroot';

/**
 * The least bounds under which calls would have been allowed: the tools, the sum of each unit, and the most of it that one call used.
 * Nothing is said of rates, concurrency, resources and times, which stay open.
 *
 * @throws RangeError for no calls, or for a sum that no amount can state; TypeError for unknown options; EventError `SCHEMA` for more
 *   tools or units than a grant can name, and malformed calls
 */
export function draftBounds(calls: readonly MadeCall[], options: DraftBoundsOptions = {}): Bounds {
  checkOptions('draftBounds', options, { prefixes: 'boolean' });
  if (calls.length === 0) throw new RangeError('draftBounds: expected at least one call, found none');
  const sums = new Map<string, Rational>();
  const most = new Map<string, Rational>();
  for (const call of calls) {
    for (const { unit, amount } of usedByCall(call)) {
      const used = toRational(amount);
      sums.set(unit, addRationals(sums.get(unit) ?? ZERO, used));
      const largest = most.get(unit);
      if (largest === undefined || compareRationals(used, largest) > 0) most.set(unit, used);
    }
  }
  const tools = [...new Set(calls.map(({ toolName }) => toolName))].sort();
  return checkBounds({
    allowed_tools: options.prefixes === true ? withPrefixes(tools) : tools,
    meter_caps: vectorOf(sums),
    action_caps: vectorOf(most),
  });
}

/**
 * The bounds of a grant from outside: bounds, or a grant that has them, as an event, a draft of one, or a record.
 *
 * @param value - Parsed JSON
 * @throws EventError `SCHEMA` and others for what is none of these
 */
export function parseBounds(value: unknown): Bounds {
  const event = memberOf(value, 'event') ?? value;
  const authorization = memberOf(event, 'authorization');
  const bounds = authorization === undefined ? event : memberOf(authorization, 'bounds');
  return checkBounds(bounds);
}

function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return isObject ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

function checkBounds(bounds: unknown): Bounds {
  const policy = sha256Digest(canonicalBytes('bounds'));
  buildEvent({
    event_type: 'authorization',
    occurred_at: '2000-01-01T00:00:00Z',
    principal_id: 'agent:any',
    intents: { intent_digest: policy },
    policy_id: 'bounds',
    policy_digest: policy,
    decision: 'allow',
    decision_code: 'ALLOW',
    authorization: { kind: 'grant', bounds: bounds ?? null },
  });
  return bounds as Bounds;
}

function vectorOf(amounts: ReadonlyMap<string, Rational>): Meter[] {
  return [...amounts]
    .map(([unit, amount]) => ({ unit, amount: fromRational(amount) }))
    .sort((a, b) => (a.unit < b.unit ? -1 : 1));
}

function withPrefixes(tools: readonly string[]): string[] {
  const byPrefix = new Map<string, string[]>();
  for (const tool of tools) {
    const at = tool.indexOf('.');
    const prefix = tool.slice(0, at);
    // A pattern wants a character after the dot.
    const isCovered = at > 0 && at < tool.length - 1 && prefix !== RESERVED;
    const key = isCovered ? `${prefix}.*` : tool;
    byPrefix.set(key, [...(byPrefix.get(key) ?? []), tool]);
  }
  return [...byPrefix].map(([pattern, own]) => (own.length > 1 ? pattern : (own[0] as string))).sort();
}
