/** One request for approval with all that its approver has to know (SPEC §3.6, §8 rule 15): as data; commands put it into words. */

import { presentTime } from '../../base/clock.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { checkOptions } from '../../base/options.js';
import { fromDigestText, parseDigest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { formatInstant, isTimestamp, orderTimestamps, parseTimestamp } from '../../base/value/timestamp.js';
import type { AuthorizationEvent } from '../../format/schema/generated/types.js';
import { type Approval, asksToAct, findApprovalsOf } from '../../rules/bounds/approval.js';
import { type Action, type ApprovalRule, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { findGrant, type GrantAccount, reserveStarted } from '../../rules/report/accounts.js';
import { APPROVAL_REQUIRED, approvalsFor, readAdvisedRule } from '../../rules/verify/approvals.js';
import { type RequestedApproval, requestOfCall } from '../../rules/verify/approval-tables.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { contentFile, readContent } from '../contents/content-folder.js';
import type { KeptContent } from '../contents/content-store.js';
import { LedgerView } from '../read/ledger-view.js';
import {
  findRequest,
  listGiven,
  listPossible,
  needOfAdviser,
  type PendingApproval,
  statusOf,
  toAction,
  toMeters,
  usedSince,
} from './approve.js';
import { type ApprovalNeed, findNeed, findReject, isUsable } from './choose-approvals.js';
import {
  type AuthorizationDecision,
  GrantEvaluator,
  type HonourOptions,
  withAdvisedRule,
} from './evaluator.js';

export interface RequestRule {
  /** The grant that has it, `sha-256:…`; undefined for an adviser's. */
  readonly grantId: string | undefined;
  readonly tools: readonly string[];
  /** It asks where more than this is reserved, or one of these units is not; undefined: of every call. */
  readonly above: MeterVector | undefined;
  /** Patterns of principals. */
  readonly approvers: readonly string[];
  /** How many of them must approve. */
  readonly count: number;
  /** How old an approval may be. */
  readonly maxAgeSeconds: number | undefined;
  /** The approvals that count for it so far, `sha-256:…`. */
  readonly approvalIds: readonly string[];
}

export interface RequestApproval {
  /** `sha-256:…` */
  readonly eventId: string;
  readonly seq: number;
  readonly principalId: string;
  readonly occurredAt: string;
  readonly expiresAt: string | undefined;
  /** The most that it allows; undefined: as much as is asked for. */
  readonly limit: MeterVector | undefined;
  /** Keyids. */
  readonly signers: readonly string[];
  /** Whether some rule that asks counts it: it may have expired, be withdrawn, be by who acts, or allow less than is asked for. */
  readonly counts: boolean;
}

export interface ExplainedRequest extends Omit<PendingApproval, 'status' | 'approvals'> {
  /** As of {@link PendingApproval}; `closed`: the same call was allowed since; `refused`: it was denied for something that no approval lifts. */
  readonly status: PendingApproval['status'] | 'closed' | 'refused';
  /** Of the denial. */
  readonly decisionCode: string;
  /** The rules that ask, from the grant's own up. */
  readonly rules: readonly RequestRule[];
  readonly approvals: readonly RequestApproval[];
  /** Who rejected it since it was asked for. */
  readonly rejected: { readonly eventId: string; readonly principalId: string } | undefined;
  /** The grant and those above it, nearest first. What is started and not recorded counts as reserved. */
  readonly grants: readonly GrantAccount[];
  /** When the first of these grants expires, and the request with it; undefined: not by itself. */
  readonly expiresAt: string | undefined;
  /** What the same call would be answered now. */
  readonly answer: Pick<AuthorizationDecision, 'decision' | 'decisionCode' | 'reason'>;
  /** What one more approval, given now, would allow at most: this call, once. */
  readonly wouldAllow: {
    readonly limit: MeterVector;
    /** By the grants and the rules; undefined: no end. */
    readonly until: string | undefined;
  };
}

/** The parameters of a request, as they are kept beside the ledger. */
export type RequestContent = (
  | KeptContent
  | { readonly status: 'unreadable'; readonly error: NorthrootError }
) & {
  /** Where they are, or would be; undefined for a digest that is not of SHA-256. */
  readonly file: string | undefined;
};

export interface RequestView extends ExplainedRequest {
  readonly content: RequestContent;
  /** Whether some record of the ledger is invalid. */
  readonly hasInvalid: boolean;
}

export interface ReadRequestOptions extends HonourOptions {
  /** A timestamp of SPEC §2. Default: now. */
  readonly now?: string | undefined;
}

/** Where a request is read: a `LedgerView`, or a ledger that is open and verified already. */
export interface RequestSource extends Pick<LedgerView, 'path' | 'findRecord'> {
  readonly inspect: <T>(look: (state: VerifyState) => T) => Promise<T>;
}

/**
 * Reads one request for approval from a verified ledger, with the parameters that `attach` kept: what to show to who decides on it.
 * @param ledger - A file or folder, or a view of it, whose trust policy and index count
 * @param wanted - The denied action: its seq, its id (`sha-256:…`), or an unambiguous prefix
 * @throws NorthrootError as `findRecord`; `AUTH_NOT_AN_AUTHORIZATION`, `REQUEST_ALLOWED`; TypeError, RangeError for a bad option.
 *   Parameters that cannot be read are a status, no error.
 */
export async function readRequest(
  ledger: string | RequestSource,
  wanted: string,
  options: ReadRequestOptions = {},
): Promise<RequestView> {
  checkOptions('readRequest', options, { now: 'string', honourImported: 'array' });
  const { now = presentTime(), honourImported } = options;
  if (!isTimestamp(now)) throw new RangeError('readRequest: now: expected a timestamp');
  const view = typeof ledger === 'string' ? new LedgerView(ledger) : ledger;
  const { event, eventId } = await view.findRecord(wanted);
  const { explained, hasInvalid } = await view.inspect((state) => ({
    explained: explainRequest(state, eventId, event, { now, honourImported }),
    hasInvalid: state.hasInvalid,
  }));
  return { ...explained, content: await lookAtContent(view.path, explained.paramsDigest), hasInvalid };
}

async function lookAtContent(ledger: string, paramsDigest: string): Promise<RequestContent> {
  const digest = parseDigest(paramsDigest);
  const file = contentFile(ledger, digest);
  try {
    return { ...(await readContent(ledger, digest)), file };
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    return { status: 'unreadable', error, file };
  }
}

/** @param event - The event of the denied action, as its record has it */
function explainRequest(
  state: VerifyState,
  eventId: string,
  event: JsonObject,
  { now, honourImported }: { readonly now: string } & HonourOptions,
): ExplainedRequest {
  const { grant: own, ...asked } = findRequest(state, eventId);
  const { decision_code: decisionCode, checks = [] } = event as unknown as AuthorizationEvent;
  const first = state.links.awaiting.get(
    requestOfCall(asked.principalId, own.index, asked.toolName, asked.params),
  );
  // It is known as it was last asked.
  const advised = first === undefined ? readAdvisedRule(checks) : first.advised;
  const grant = withAdvisedRule(own, asked.toolName, advised);
  const action = toAction({ ...asked, grant }, now);
  const chain = grantChain(grant);
  const rules = chain.flatMap((each, depth) =>
    each.approvals.filter((rule) => asksToAct(rule, action)).map((rule) => ({ rule, depth, grant: each })),
  );
  const given = listGiven(state, action);
  const usable = given.filter((approval) => isUsable(state, action, approval, honourImported ?? []));
  const approved = approvalsFor(
    state,
    action,
    usable.map(({ place }) => fromDigestText(place.eventId)),
  );
  const explained = rules.map(({ rule, depth, grant: owner }) =>
    explainRule(
      rule,
      owner !== grant || own.approvals.includes(rule) ? owner.place.eventId : undefined,
      findApprovalsOf(chain, depth, rule, approved),
    ),
  );
  // Where an adviser asked, it knows which count.
  const counting = new Set(
    rules.length === 0
      ? listPossible(state, action, honourImported).map(({ place }) => place.eventId)
      : explained.flatMap(({ approvalIds }) => approvalIds),
  );
  const need = findNeed(action, approved) ?? needOfAdviser(action, advised);
  const { place, principalId, occurredAt, toolName, params } = asked;
  const reservation = toMeters(asked.reservation);
  const evaluated = new GrantEvaluator(state, { honourImported }).evaluate({
    principalId,
    toolName,
    paramsDigest: parseDigest(params),
    intentDigest: parseDigest(asked.intent),
    ...(asked.userIntent === undefined ? {} : { userIntentDigest: parseDigest(asked.userIntent) }),
    meters: reservation,
    now,
    grantId: grant.place.eventId,
  });
  const { decision, decisionCode: code, reason } = evaluated;
  const rejected = findReject(
    state,
    action,
    { approvers: explained.flatMap(({ approvers }) => approvers) },
    place.seq,
  );
  return {
    eventId,
    seq: place.seq,
    principalId,
    occurredAt,
    toolName,
    paramsDigest: params,
    reservation,
    grantId: grant.place.eventId,
    status: findStatus(state, action, decisionCode, first, need, now),
    decisionCode,
    need,
    rules: explained,
    approvals: given.map((approval) => explainApproval(approval, counting)),
    rejected,
    grants: chain.flatMap((each) => {
      const account = findGrant(state, each.place.eventId);
      return account === undefined ? [] : [reserveStarted(state, account)];
    }),
    expiresAt: earliest(endsOf(chain)),
    answer: { decision, decisionCode: code, ...defined({ reason }) },
    wouldAllow: {
      limit: reservation,
      until: endOfApproval(
        chain,
        rules.map(({ rule }) => rule),
        now,
      ),
    },
  };
}

/** A request of a call is remembered until something allows the call. */
function findStatus(
  state: VerifyState,
  action: Action & { readonly grant: Grant },
  decisionCode: string,
  first: RequestedApproval | undefined,
  need: ApprovalNeed | undefined,
  now: string,
): ExplainedRequest['status'] {
  if (decisionCode !== APPROVAL_REQUIRED) return 'refused';
  const { grant, place } = action;
  if (first === undefined || usedSince(state, { ...action, seq: place.seq }) !== undefined) return 'closed';
  return statusOf(state, action, grant, need, place.seq, now);
}

function explainRule(
  { tools, above, words, count, maxAge }: ApprovalRule,
  grantId: string | undefined,
  approvals: readonly Approval[],
): RequestRule {
  return {
    grantId,
    tools: [...tools.names, ...[...tools.prefixes].map((prefix) => `${prefix}*`)],
    above: above && toMeters(above),
    approvers: words.split(' or '),
    count,
    maxAgeSeconds: maxAge === undefined ? undefined : Number(maxAge / NANOSECONDS),
    approvalIds: approvals.map((approval) => approval.place.eventId),
  };
}

const NANOSECONDS = 1_000_000_000n;

function explainApproval(approval: Approval, counting: ReadonlySet<string>): RequestApproval {
  const { place, principalId, occurredAt, expiresAt, limit, signers } = approval;
  return {
    eventId: place.eventId,
    seq: place.seq,
    principalId,
    occurredAt,
    expiresAt,
    limit: limit && toMeters(limit),
    signers,
    counts: counting.has(place.eventId),
  };
}

/** When an approval given `now` ends of itself at the latest; undefined where nothing ends it. */
function endOfApproval(
  chain: readonly Grant[],
  rules: readonly ApprovalRule[],
  now: string,
): string | undefined {
  const ages = rules.flatMap(({ maxAge }) => (maxAge === undefined ? [] : [endOfAge(now, maxAge)]));
  return earliest([...endsOf(chain), ...ages]);
}

function endsOf(chain: readonly Grant[]): string[] {
  return chain.flatMap(({ expiresAt }) => expiresAt ?? []);
}

function earliest(times: readonly string[]): string | undefined {
  return [...times].sort(orderTimestamps)[0];
}

const LAST_INSTANT = '9999-12-31T23:59:59.999999999Z';

function endOfAge(now: string, age: bigint): string {
  const last = parseTimestamp(LAST_INSTANT);
  const end = parseTimestamp(now) + age;
  return end > last ? LAST_INSTANT : formatInstant(end);
}
