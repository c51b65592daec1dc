/**
 * Drafts grants (SPEC §3.1) from amounts as people write them. A delegated grant inherits from its parent what it does not state (SPEC §8
 * rule 9).
 */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { JsonValue } from '../../base/json/value.js';
import {
  type Digest,
  formatDigest,
  isDigest,
  SHA256,
  sha256Digest,
  tryParseDigest,
} from '../../base/value/digest.js';
import type { AmountsByUnit, Meter } from '../../base/value/meter.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { isRateUnit, tryParseRateUnit } from '../../base/value/rate.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { isToolPattern } from '../../base/value/tool.js';
import type { Draft } from '../../format/event/build.js';
import { CODE_PAGES } from '../../format/finding/catalog.js';
import { checkEvent } from '../../format/schema/check.js';
import type {
  ApprovalRule,
  AuthorizationEvent,
  Bounds,
  Intents,
  ResourceRef,
  SliceReference,
  Source,
} from '../../format/schema/generated/types.js';
import { judgeDelegation } from '../../rules/bounds/delegation.js';
import { type EventPlace, makeGrant } from '../../rules/bounds/grant.js';
import { OptionReader, OptionsError, type UnitRule } from './option-problems.js';

export interface GrantOptions {
  /** The grantee. */
  readonly principalId: string;
  /** Tool patterns, at most 1,024. Default in a delegated grant: the parent's. */
  readonly allowedTools?: readonly string[] | undefined;
  /** The total per unit: `{ usd: '5', calls: 100 }`. A delegated grant inherits the parent's other units. */
  readonly meterCaps?: AmountsByUnit | undefined;
  /** The most per unit that one action may reserve, and one execution use. */
  readonly actionCaps?: AmountsByUnit | undefined;
  /** At most 16: `{ 'usd.per_5h': '1' }`. */
  readonly rateLimits?: AmountsByUnit | undefined;
  /** SPEC §2, inclusive. */
  readonly notBefore?: string | undefined;
  /** SPEC §2, exclusive. */
  readonly expiresAt?: string | undefined;
  /** How many executions may run at a time, at least 1. */
  readonly concurrencyLimit?: number | undefined;
  /** How many levels of delegation may follow, 0 to 31. */
  readonly maxDelegationDepth?: number | undefined;
  readonly outputMode?: NonNullable<Bounds['output_mode']> | undefined;
  readonly resources?: readonly ResourceRef[] | undefined;
  /** Which calls need approval, and whose: at most 16 rules. They hold for delegated grants too, which inherit them without stating them. */
  readonly approvals?: readonly ApprovalRuleOptions[] | undefined;
  /** The recorded grant to delegate from. */
  readonly parent?: AuthorizationEvent | undefined;
  /**
   * The slice of another ledger that a root grant spends (SPEC §8 rule 17): that ledger's id and the slice's event id, `sha-256:…` or as in
   * events. Its caps and expiry have to lie within the slice.
   */
  readonly slice?: SliceOptions | undefined;
  /** The purpose, any JSON; its digest is recorded. Default: the parent's; for a root grant, its bounds. */
  readonly intent?: JsonValue | undefined;
  /** Instead of `intent`: `sha-256:…`, or as in events. */
  readonly intentDigest?: string | Digest | undefined;
  /** The user's request that the intent refines. Default in a delegated grant: the parent's. */
  readonly userIntent?: JsonValue | undefined;
  readonly userIntentDigest?: string | Digest | undefined;
  /** 1 to 256 characters. Default `manual`. */
  readonly policyId?: string | undefined;
  /** Default: the digest of `policyId`'s canonical JSON. */
  readonly policyDigest?: string | Digest | undefined;
  readonly source?: Source | undefined;
  /** SPEC §2. Default: when it is appended. */
  readonly occurredAt?: string | undefined;
}

/** The action of another ledger that sets amounts aside for this one. */
export interface SliceOptions {
  /** `sha-256:…`, or as in events. */
  readonly ledgerId: string | Digest;
  /** `sha-256:…`, or as in events. */
  readonly eventId: string | Digest;
}

/** Calls that need approval (SPEC §8 rule 15). */
export interface ApprovalRuleOptions {
  /** Tool patterns, at most 64. */
  readonly tools: readonly string[];
  /** Who may approve: patterns of principals such as `human:*`, at most 16. */
  readonly approvers: readonly string[];
  /** A call that reserves all of these units, and no more of each, needs no approval. */
  readonly above?: AmountsByUnit | undefined;
  /** How many principals must approve, 1 to 8. Default 1. */
  readonly count?: number | undefined;
  /** How old an approval may be, in seconds. */
  readonly maxAgeSeconds?: number | undefined;
}

const MAX_TOOLS = 1_024;
const MAX_RATE_LIMITS = 16;
const MAX_DELEGATION_DEPTH = 31;
const RATES: UnitRule = { isKnown: isRateUnit, example: 'usd.per_hour or usd.per_5h' };
const OUTPUT_MODES: readonly unknown[] = ['digest_only', 'allow_contentref', 'allow_inline'];

/** The digest of an intent's canonical JSON, as `northroot digest --json` gives it. @throws TypeError unless it is plain JSON */
export function digestIntent(intent: JsonValue): Digest {
  return sha256Digest(canonicalBytes(intent));
}

/**
 * Drafts an allowed grant for `Ledger.append`. It counts when a key with the role `authority` signs it, or, if delegated, a key of the
 * parent grant's principal (SPEC §7).
 * @throws OptionsError (a RangeError) listing all problems; TypeError for an intent that is not plain JSON
 * @throws NorthrootError `GRANT_NOT_A_GRANT`, `GRANT_DENIED` for an unusable parent; `DELEGATION_EXCEEDED`, `AUTHORIZATION_BEFORE_GRANT`
 *   for a grant beyond its parent
 * @example
 * await ledger.append({
 *   event: draftGrant({ principalId: 'agent:a1', allowedTools: ['fs.*'], meterCaps: { usd: '5', calls: 100 } }),
 * });
 */
export function draftGrant(options: GrantOptions): Draft<AuthorizationEvent> {
  const reader = new OptionReader(options);
  const parent = reader.has('parent') ? readParent(options.parent as AuthorizationEvent) : undefined;
  const principalId = reader.principal('principalId', true);
  const own = readBounds(reader, options);
  const bounds = parent === undefined ? own : within(own, parent.bounds);
  if (bounds.allowed_tools === undefined && !reader.has('allowedTools'))
    reader.refuse('allowedTools', 'expected at least one tool or pattern such as fs.*, found none');
  if (bounds.meter_caps === undefined && !reader.has('meterCaps'))
    reader.refuse('meterCaps', 'expected at least one unit and what may be used of it at most, found none');
  const policyId = reader.text('policyId', '1 to 256 characters', (text) => /^.{1,256}$/su.test(text));
  const policyDigest = reader.digest('policyDigest');
  const intents = readIntents(reader, options, bounds, parent?.event.intents);
  const source = reader.source('source');
  const slice = readSlice(reader);
  if (slice !== undefined && parent !== undefined)
    reader.refuse('slice', 'expected no parent: a slice is spent by a root grant');
  const occurredAt = reader.timestamp('occurredAt');
  checkTimes(reader, bounds, occurredAt);
  reader.end();
  const draft = {
    event_type: 'authorization',
    principal_id: principalId as string,
    ...(occurredAt === undefined ? {} : { occurred_at: occurredAt }),
    intents,
    policy_id: policyId ?? MANUAL,
    policy_digest: policyDigest ?? sha256Digest(canonicalBytes(policyId ?? MANUAL)),
    decision: 'allow',
    decision_code: 'ALLOW',
    ...(source === undefined ? {} : { source }),
    authorization: {
      kind: 'grant',
      bounds,
      ...(parent === undefined ? {} : { grant_event_id: parent.event.event_id }),
      ...defined({ slice }),
    },
  } as const;
  if (parent !== undefined) assertWithin(draft, parent.event);
  return draft;
}

/** Checks the parent alone; the ledger checks the grants above it. */
function assertWithin(draft: Draft<AuthorizationEvent>, parent: AuthorizationEvent): void {
  const place = (eventId: string): EventPlace => ({ file: '', line: 0, seq: 0, eventId });
  const above = makeGrant(parent, place(formatDigest(parent.event_id)), undefined, 0);
  const event = { ...draft, occurred_at: draft.occurred_at ?? parent.occurred_at } as AuthorizationEvent;
  const grant = makeGrant(event, place(''), above, 1);
  const { authorization } = draft;
  const tools = (authorization.kind === 'grant' && authorization.bounds?.allowed_tools) || [];
  const broken = judgeDelegation(grant, tools, above).filter(
    ({ code }) => CODE_PAGES[code].severity === 'error',
  );
  const [first] = broken;
  if (first === undefined) return;
  const message = broken.map(({ expected, actual }) => `expected ${expected}, found ${actual}`).join('; ');
  throw new NorthrootError(first.code, message, {
    hint: 'a delegated grant lies within its parent; what it does not say it takes over from there',
  });
}

const MANUAL = 'manual';

interface Parent {
  readonly event: AuthorizationEvent;
  readonly bounds: Bounds;
}

function readParent(event: AuthorizationEvent): Parent {
  const [fault] = checkEvent(event);
  if (fault !== undefined)
    throw refuse(
      'GRANT_NOT_A_GRANT',
      `the parent is not valid: at ${fault.pointer} expected ${fault.expected}`,
    );
  const { authorization, decision } = event;
  const isGrant = (event.event_type as string) === 'authorization' && authorization.kind === 'grant';
  if (!isGrant) throw refuse('GRANT_NOT_A_GRANT', 'the parent is not a grant');
  if (decision === 'deny') throw refuse('GRANT_DENIED', 'the parent is a grant that was denied');
  return { event, bounds: authorization.bounds ?? {} };
}

function readSlice(reader: OptionReader): SliceReference | undefined {
  const readId = (value: unknown): Digest | undefined => {
    const digest = typeof value === 'string' ? tryParseDigest(value) : isDigest(value) ? value : undefined;
    return digest?.alg === SHA256 ? { alg: digest.alg, b64: digest.b64 } : undefined;
  };
  const isSlice = (value: unknown): value is SliceOptions => {
    const { ledgerId, eventId } = (value ?? {}) as Partial<Record<keyof SliceOptions, unknown>>;
    return readId(ledgerId) !== undefined && readId(eventId) !== undefined;
  };
  const slice = reader.read('slice', 'ledgerId and eventId, each a digest such as sha-256:…', isSlice);
  if (slice === undefined) return undefined;
  return { ledger_id: readId(slice.ledgerId) as Digest, event_id: readId(slice.eventId) as Digest };
}

function readBounds(reader: OptionReader, options: GrantOptions): Bounds {
  const tools = reader.texts(
    'allowedTools',
    'a tool such as fs.read, or a pattern such as fs.*',
    MAX_TOOLS,
    isToolPattern,
  );
  const caps = reader.amounts('meterCaps');
  if (caps.length === 0 && isEmptyObject(options.meterCaps))
    reader.refuse('meterCaps', 'expected at least one unit, found none');
  const actionCaps = reader.amounts('actionCaps');
  const rates = readRates(reader);
  const notBefore = reader.timestamp('notBefore');
  const expiresAt = reader.timestamp('expiresAt');
  const concurrency = wholeNumber(reader, 'concurrencyLimit', 1, Number.MAX_SAFE_INTEGER);
  const depth = wholeNumber(reader, 'maxDelegationDepth', 0, MAX_DELEGATION_DEPTH);
  const outputMode = reader.read(
    'outputMode',
    OUTPUT_MODES.join(' or '),
    (value): value is NonNullable<Bounds['output_mode']> => OUTPUT_MODES.includes(value),
  );
  const resources = readResources(reader);
  const approvals = readApprovals(reader, options);
  return {
    ...(tools.length === 0 ? {} : { allowed_tools: tools }),
    ...(caps.length === 0 ? {} : { meter_caps: caps }),
    ...(actionCaps.length === 0 ? {} : { action_caps: actionCaps }),
    ...(rates.length === 0 ? {} : { rate_limits: rates }),
    ...(concurrency === undefined ? {} : { concurrency_limit: { t: 'int', v: `${concurrency}` } }),
    ...(resources.length === 0 ? {} : { resources }),
    ...(approvals.length === 0 ? {} : { approvals }),
    ...defined({
      not_before: notBefore,
      expires_at: expiresAt,
      max_delegation_depth: depth,
      output_mode: outputMode,
    }),
  };
}

function readRates(reader: OptionReader): Meter[] {
  const rates = reader.amounts('rateLimits', RATES);
  if (rates.length > MAX_RATE_LIMITS)
    reader.refuse('rateLimits', `expected at most ${MAX_RATE_LIMITS}, found ${rates.length}`);
  const seen = new Map<string, string>();
  for (const { unit } of rates) {
    const other = seen.get(rateKey(unit));
    if (other !== undefined)
      reader.refuse('rateLimits', `expected each window of a unit once, found ${other} and ${unit}`);
    seen.set(rateKey(unit), unit);
  }
  return rates;
}

function readResources(reader: OptionReader): ResourceRef[] {
  const hasLength = (text: unknown, max: number): boolean =>
    typeof text === 'string' && text.length > 0 && Array.from(text).length <= max;
  const isResource = (value: unknown): boolean => {
    const { kind, reference } = (value ?? {}) as Partial<Record<keyof ResourceRef, unknown>>;
    return hasLength(kind, 256) && hasLength(reference, 1_024);
  };
  const isList = (value: unknown): value is ResourceRef[] => Array.isArray(value) && value.every(isResource);
  const resources = reader.read(
    'resources',
    'a list of resources with a kind of 1 to 256 characters and a reference of 1 to 1,024',
    isList,
  );
  return (resources ?? []).map(({ kind, reference }) => ({ kind, reference }));
}

const MAX_APPROVAL_RULES = 16;
const MAX_RULE_TOOLS = 64;
const MAX_APPROVERS = 16;
const MAX_APPROVALS = 8;
const MAX_AGE_SECONDS = 31_536_000;

function readApprovals(reader: OptionReader, { approvals }: GrantOptions): ApprovalRule[] {
  const isList = (value: unknown): value is readonly ApprovalRuleOptions[] =>
    Array.isArray(value) && value.length >= 1 && value.length <= MAX_APPROVAL_RULES;
  reader.read('approvals', `a list of 1 to ${MAX_APPROVAL_RULES} rules`, isList);
  if (!isList(approvals)) return [];
  return approvals.flatMap((options, index) => {
    const rule = new OptionReader(options);
    const made = readApprovalRule(rule);
    try {
      rule.end();
      return [made];
    } catch (error) {
      if (!(error instanceof OptionsError)) throw error;
      for (const { option, message } of error.problems)
        reader.refuse(
          `approvals.${option}`,
          `${approvals.length === 1 ? '' : `rule ${index + 1}: `}${message}`,
        );
      return [];
    }
  });
}

function readApprovalRule(rule: OptionReader): ApprovalRule {
  const tools = rule.texts(
    'tools',
    'a tool such as fs.read, or a pattern such as fs.*',
    MAX_RULE_TOOLS,
    isToolPattern,
  );
  const approvers = rule.texts(
    'approvers',
    'a principal, or a pattern such as human:*',
    MAX_APPROVERS,
    isPrincipalPattern,
  );
  if (!rule.has('tools')) rule.refuse('tools', 'expected at least one tool or pattern, found none');
  if (!rule.has('approvers'))
    rule.refuse('approvers', 'expected at least one who may approve, such as human:*, found none');
  const above = rule.amounts('above');
  const count = wholeNumber(rule, 'count', 1, MAX_APPROVALS);
  const age = wholeNumber(rule, 'maxAgeSeconds', 1, MAX_AGE_SECONDS);
  return {
    tools,
    approvers,
    ...(above.length === 0 ? {} : { above }),
    ...(count === undefined ? {} : { count }),
    ...(age === undefined ? {} : { max_age_s: age }),
  };
}

function wholeNumber(reader: OptionReader, option: string, least: number, most: number): number | undefined {
  const isWhole = (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
  const expected =
    most === Number.MAX_SAFE_INTEGER
      ? `a whole number of at least ${least}`
      : `a whole number from ${least} to ${most}`;
  return reader.read(option, expected, isWhole);
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Merges own bounds over the parent's; own values count even where they are looser. */
function within(own: Bounds, parent: Bounds): Bounds {
  const inherited = { ...parent };
  // The parent's depth counts levels below the parent.
  delete inherited.max_delegation_depth;
  // The parent's rules hold below it.
  delete inherited.approvals;
  const merged: Bounds = { ...inherited, ...own };
  for (const [member, keyOf] of MERGED) {
    const vector = mergeMeters(own[member] ?? [], parent[member] ?? [], keyOf);
    if (vector.length > 0) merged[member] = vector;
  }
  return merged;
}

const unitOf = (unit: string): string => unit;
const MERGED = [
  ['meter_caps', unitOf],
  ['action_caps', unitOf],
  ['rate_limits', rateKey],
] as const;

function mergeMeters(
  own: readonly Meter[],
  parent: readonly Meter[],
  keyOf: (unit: string) => string,
): Meter[] {
  const said = new Set(own.map(({ unit }) => keyOf(unit)));
  const others = parent.filter(({ unit }) => !said.has(keyOf(unit)));
  return [...own, ...others].sort((a, b) => (a.unit < b.unit ? -1 : 1));
}

/** Windows compare by length, however they are spelled. */
function rateKey(unit: string): string {
  const rate = tryParseRateUnit(unit);
  return rate === undefined ? unit : `${rate.meter}.per_${rate.window}`;
}

/** A grant that could never be used is a mistake. */
function checkTimes(
  reader: OptionReader,
  { not_before: from, expires_at: until }: Bounds,
  occurredAt: string | undefined,
): void {
  if (until === undefined) return;
  for (const [start, what] of [
    [from, 'when it begins'],
    [occurredAt, 'when it is granted'],
  ] as const) {
    if (start === undefined || compareTimestamps(start, until) < 0) continue;
    reader.refuse('expiresAt', `expected a time after ${start}, ${what}, found ${until}`);
    return;
  }
}

function readIntents(
  reader: OptionReader,
  options: GrantOptions,
  bounds: Bounds,
  parent: Intents | undefined,
): Intents {
  for (const option of ['intent', 'userIntent'] as const)
    if (reader.has(option) && reader.has(`${option}Digest`))
      reader.refuse(option, `expected it or ${option}Digest, found both`);
  const given = reader.digest('intentDigest') ?? maybeDigest(options.intent);
  const user = reader.digest('userIntentDigest') ?? maybeDigest(options.userIntent);
  const isParents = given === undefined || (parent !== undefined && isSame(given, parent.intent_digest));
  if (parent !== undefined && isParents && user === undefined) return parent;
  const linked = parent && (parent.user_intent_digest ?? parent.intent_digest);
  if (user !== undefined && linked !== undefined && !isParents && !isSame(user, linked))
    reader.refuse('userIntent', "expected the parent grant's, which is taken over, found another");
  const intent = given ?? parent?.intent_digest ?? digestIntent(bounds as unknown as JsonValue);
  const userIntent = user ?? linked;
  return { intent_digest: intent, ...defined({ user_intent_digest: userIntent }) };
}

function maybeDigest(intent: JsonValue | undefined): Digest | undefined {
  return intent === undefined ? undefined : digestIntent(intent);
}

function isSame(a: Digest, b: Digest): boolean {
  return a.alg === b.alg && a.b64 === b.b64;
}

function refuse(code: string, message: string): NorthrootError {
  return new NorthrootError(code, message, { hint: 'name a grant of the ledger that was allowed' });
}
