/**
 * The policy interface: evaluated before an action, it answers allow or deny. The built-in evaluator applies a ledger's own grants by the
 * rules of verification.
 */

import { defined } from '../../base/defined.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { HygieneReport } from '../../base/json/hygiene.js';
import { CANONICAL_PROFILE_ID } from '../../base/json/profile.js';
import {
  type Digest,
  digestFromBase64url,
  formatDigest,
  fromDigestText,
  isSha256Text,
  parseDigest,
  sha256Digest,
} from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { compareQuantities, toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  compareRationals,
  type Rational,
  subtractRationals,
} from '../../base/value/rational.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import { outlineAction } from '../../format/event/outline.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { checkEvent } from '../../format/schema/check.js';
import type { ApprovalRule, AuthorizationEvent, ResourceRef } from '../../format/schema/generated/types.js';
import { type Balance, balancesOf, sumQuantity } from '../../rules/bounds/balance.js';
import {
  type Action,
  amountsOf,
  digestKey,
  type Grant,
  grantChain,
  makeAction,
  makeApprovalRule,
} from '../../rules/bounds/grant.js';
import { judgeAction, judgeExecution } from '../../rules/bounds/judge.js';
import type { AdvisedRule } from '../../rules/verify/approval-tables.js';
import { APPROVAL_REQUIRED, checksOfRule } from '../../rules/verify/approvals.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { type ApprovalNeed, chooseApprovals, findNeed, toDenial } from './choose-approvals.js';
import {
  boundOf,
  type DecidingBound,
  type Denial,
  type DenialCode,
  dryRun,
  judgeImported,
  judgeOverdraft,
  judgeSoundness,
} from './deciding-bound.js';
import { heldGrants } from './running-starts.js';

/** May this principal call this tool with these parameters now, using at most this much? */
export interface AuthorizationRequest {
  readonly principalId: string;
  readonly toolName: string;
  readonly paramsDigest: Digest;
  readonly intentDigest: Digest;
  /** The user's request; filled in where the intent is not the grant's (SPEC §8 rule 13). */
  readonly userIntentDigest?: Digest;
  /** The most the action may use, reserved when allowed. */
  readonly meters?: MeterVector;
  readonly resources?: readonly ResourceRef[];
  /** A timestamp of SPEC §2. */
  readonly now: string;
  /** It must begin before this timestamp, which is after `now`; otherwise the next decision releases it. */
  readonly expiresAt?: string;
  /** The grant to act under, `sha-256:…`. Default: the principal's grants are tried in ledger order. */
  readonly grantId?: string;
  readonly contextDigest?: Digest;
  readonly hygiene?: HygieneReport;
  /** The caller's name for this request (SPEC §8 rule 18): 1 to 128 characters of `[A-Za-z0-9._:/+=@-]`. */
  readonly requestKey?: string;
  /** The approvals to use, `sha-256:…`. Default: sound ones for exactly this call are found. */
  readonly approvalIds?: readonly string[];
  readonly advice?: Advice;
}

/** What others said of a request before the grants decide. It is recorded, and can only narrow what they allow. */
export interface Advice {
  /** For `policy_id` and `policy_digest`, instead of the evaluator's. Default, with `denial` or `approval`: `northroot/gate/1`. */
  readonly policyId?: string;
  readonly policyDigest?: Digest;
  /**
   * Recorded before the evaluator's own; at most 32. Where none of them fails with a `denial`, or is of an adviser (`adviser:NAME`) with an
   * `approval`, one named `advice` is recorded besides.
   */
  readonly checks: readonly PolicyCheck[];
  /** For `decision_code` of what is allowed. Default `ALLOW`. */
  readonly code?: string;
  /** Denies, whatever the grants say. */
  readonly denial?: { readonly code: string; readonly reason: string };
  /** A rule of approval besides those of the grants: patterns of principals, and how many must approve. Default 1. */
  readonly approval?: { readonly approvers: readonly string[]; readonly count?: number };
}

/** Whose imported authority counts. */
export interface HonourOptions {
  /** Systems, as in `source.system` of events. Default: none (SPEC §8, "Imported authority"). */
  readonly honourImported?: readonly string[] | undefined;
}

/** A check of a decision, as events have it (SPEC §3.1). */
export interface PolicyCheck {
  readonly check: string;
  readonly result: 'pass' | 'fail';
  readonly code?: string;
}

export interface AuthorizationDecision {
  readonly decision: 'allow' | 'deny';
  /** `ALLOW` or the code that others gave, or the code of the first failed check. */
  readonly decisionCode: string;
  /** The checks made; without a usable grant, fewer. */
  readonly checks: readonly PolicyCheck[];
  /** For a denial, in words. Not recorded. */
  readonly reason?: string;
  /** For a denial by a bound. Not recorded. */
  readonly bound?: DecidingBound;
  readonly grantId: string | undefined;
  /** The intent that links the action to its grant (SPEC §8 rule 13), if not its own. */
  readonly userIntentDigest?: Digest;
  /** The approvals that the action uses up, `sha-256:…`. */
  readonly approvalIds?: readonly string[];
  /** For `APPROVAL_REQUIRED`: who may approve. Not recorded. */
  readonly need?: ApprovalNeed;
  /** For a denial what was asked for, if it is `APPROVAL_REQUIRED`, else empty. */
  readonly reservation: MeterVector;
  /** The grant's accounts after the reservation; started work counts as reserved. */
  readonly remaining: readonly Balance[];
}

export interface PolicyEvaluator {
  /** For `policy_id`: 1 to 256 characters. */
  readonly policyId: string;
  /** For `policy_digest`. */
  readonly policyDigest: Digest;
  /** @throws TypeError, RangeError for a malformed request */
  evaluate(request: AuthorizationRequest): AuthorizationDecision;
}

/** The `policy_id` of what the grants alone decided. */
export const GRANTS_POLICY_ID = 'northroot/grants/1';

/** The `policy_id` of decisions that advisers took part in. */
export const GATE_POLICY_ID = 'northroot/gate/1';

export const GRANTS_POLICY = {
  policyId: GRANTS_POLICY_ID,
  policyDigest: sha256Digest(canonicalBytes({ policy_id: GRANTS_POLICY_ID })),
} as const;

/** What is recorded where advice decided, or asked for an approval, and names no policy of its own. */
const ADVISED = {
  policyId: GATE_POLICY_ID,
  policyDigest: sha256Digest(canonicalBytes({ policy_id: GATE_POLICY_ID })),
} as const;

/** The check of advice that has none which says what it did. */
const ADVICE = 'advice';

/** Before the base64url of the id of a grant that was asked for and is not there. */
const ASKED_GRANT = 'grant:';

type Check = readonly [check: string, codes: readonly DenialCode[]];

/** In listed order, with the codes that fail each. */
const CHECKS: readonly Check[] = [
  ['grant', ['GRANT_NOT_FOUND', 'GRANT_DENIED', 'GRANT_UNSOUND', 'IMPORTED_AUTHORITY', 'GRANT_REVOKED']],
  ['hygiene', ['HYGIENE_NOT_OK']],
];

const CHECKS_OF_GRANT: readonly Check[] = [
  ['principal', ['PRINCIPAL_MISMATCH']],
  ['intent', ['INTENT_MISMATCH']],
  ['tool', ['TOOL_NOT_ALLOWED']],
  [
    'time',
    [
      'AUTHORIZATION_BEFORE_GRANT',
      'EXECUTION_BEFORE_AUTHORIZATION',
      'GRANT_NOT_YET_VALID',
      'GRANT_EXPIRED',
      'ACTION_EXPIRED',
    ],
  ],
  ['spend', ['ACTION_CAP_EXCEEDED', 'RESERVATION_OVER_CAP', 'METER_CAP_EXCEEDED', 'QUANTITY_INVALID']],
  ['rate', ['RATE_LIMIT_EXCEEDED']],
  ['concurrency', ['CONCURRENCY_EXCEEDED']],
  ['resource', ['RESOURCE_NOT_GRANTED']],
];

const indexOfCheck = (name: string): number =>
  [...CHECKS, ...CHECKS_OF_GRANT].findIndex(([check]) => check === name);
const [GRANT_CHECK, TIME_CHECK, SPEND_CHECK] = ['grant', 'time', 'spend'].map(indexOfCheck) as [
  number,
  number,
  number,
];

/** Last: nobody is asked to approve what could not be done. */
const CHECKS_OF_APPROVAL: readonly Check[] = [
  [
    'approval',
    [
      'APPROVAL_NOT_FOUND',
      'APPROVAL_NOT_AN_APPROVAL',
      'APPROVAL_REUSED',
      'APPROVAL_EXCEEDED',
      'APPROVAL_REQUIRED',
    ],
  ],
];

const ALL_CHECKS: readonly Check[] = [...CHECKS, ...CHECKS_OF_GRANT, ...CHECKS_OF_APPROVAL];

/** The checks that the grants make; others in a record are of advisers. */
export const OWN_CHECKS: ReadonlySet<string> = new Set(ALL_CHECKS.map(([check]) => check));

/** The codes with which the grants deny. */
export const OWN_CODES: ReadonlySet<string> = new Set(ALL_CHECKS.flatMap(([, codes]) => codes));

/** Whether a check of a record is one by which advice can ask for an approval. */
export function isAdvice({ check }: Pick<PolicyCheck, 'check'>): boolean {
  return check === ADVICE || check.startsWith('adviser:');
}

/** The grant that was asked for in vain, as base64url, if a check says so. */
export function askedGrantOf({ check, code }: Pick<PolicyCheck, 'check' | 'code'>): string | undefined {
  if (code !== 'GRANT_NOT_FOUND' || !check.startsWith(ASKED_GRANT)) return undefined;
  const b64 = check.slice(ASKED_GRANT.length);
  return isSha256Text(b64) ? b64 : undefined;
}

/**
 * Decides by the grants of a verified ledger: allows an action that, recorded and executed at once with all that it requests, breaks no
 * bound. Started work counts as reserved, past and running. Nothing is allowed under an invalid, violating or overdrawn grant. Of several
 * grants that deny, the one that came nearest to allowing it is told.
 */
export class GrantEvaluator implements PolicyEvaluator {
  readonly policyId = GRANTS_POLICY.policyId;
  readonly policyDigest = GRANTS_POLICY.policyDigest;
  readonly #state: VerifyState;
  readonly #honoured: readonly string[];

  /**
   * @param state - Read at each request, never changed
   * @param options - `honourImported`: systems whose imported grants and credits count
   */
  constructor(state: VerifyState, { honourImported = [] }: HonourOptions = {}) {
    this.#state = state;
    this.#honoured = honourImported;
  }

  evaluate(request: AuthorizationRequest): AuthorizationDecision {
    return this.#answer(request, toEvent(request));
  }

  /** {@link GrantEvaluator.evaluate} of a request that was found well-formed: an event that allows it was made. */
  evaluateWellFormed(request: AuthorizationRequest): AuthorizationDecision {
    return this.#answer(request, draftAllowed(request));
  }

  #answer(request: AuthorizationRequest, event: AuthorizationEvent): AuthorizationDecision {
    const { denial } = request.advice ?? {};
    if (denial !== undefined) return denyAs(denial);
    const grants = this.#candidates(request);
    const hold = heldGrants(this.#state);
    const decide = (grant: Grant): AuthorizationDecision =>
      this.#decide(request, event, withAdvisedRule(hold(grant), request.toolName, request.advice?.approval));
    const answers: (AuthorizationDecision | undefined)[] = [];
    // A principal may have thousands of grants that are used up or over: none of them allows anything.
    const over: { readonly index: number; readonly most: number }[] = [];
    const amounts = grants.length > 1 ? [...amountsOf(request.meters ?? [])] : [];
    for (const [index, grant] of grants.entries()) {
      const most = grants.length > 1 ? mostChecked(grant, request.now, amounts) : undefined;
      if (most !== undefined) {
        over.push({ index, most });
        continue;
      }
      const answer = decide(grant);
      if (answer.decision === 'allow') return answer;
      answers[index] = answer;
    }
    let furthest = -1;
    for (const answer of answers) if (answer !== undefined) furthest = Math.max(furthest, reachOf(answer));
    // Which of those that deny came nearest is told: who could not come as near as another is not looked at.
    for (const { index, most } of over.sort((a, b) => b.most - a.most)) {
      if (most < furthest) break;
      const answer = (answers[index] = decide(grants[index] as Grant));
      furthest = Math.max(furthest, reachOf(answer));
    }
    let denied: AuthorizationDecision | undefined;
    for (const answer of answers)
      if (answer !== undefined && (denied === undefined || isNearer(answer, denied))) denied = answer;
    if (denied !== undefined) return denied;
    const expected = request.grantId === undefined ? `a grant of ${request.principalId}` : 'a grant';
    const missing = { code: 'GRANT_NOT_FOUND', expected, actual: request.grantId ?? 'none' } as const;
    return deny(undefined, CHECKS, [missing, ...judgeHygiene(request)]);
  }

  #candidates({ grantId, principalId }: AuthorizationRequest): readonly Grant[] {
    const { grants } = this.#state.links;
    if (grantId === undefined) return [...grants.allowedTo(principalId)];
    const grant = grants.get(fromDigestText(grantId));
    return grant === undefined ? [] : [grant];
  }

  #decide(request: AuthorizationRequest, event: AuthorizationEvent, grant: Grant): AuthorizationDecision {
    const { eventId } = grant.place;
    const broken: Denial[] = judgeHygiene(request);
    if (grant.decision === 'deny') {
      const expected = 'a grant that was allowed';
      return deny(eventId, CHECKS, [{ code: 'GRANT_DENIED', expected, actual: eventId }, ...broken]);
    }
    broken.push(...judgeSoundness(grant), ...judgeImported(grant, undefined, this.#honoured));
    const { principalId: expected } = grant;
    const { principalId: actual } = request;
    if (expected !== actual) broken.push({ code: 'PRINCIPAL_MISMATCH', expected, actual });
    const userIntent = linkIntent(request, grant);
    // It would be the next record.
    const place = { ...grant.place, seq: this.#state.records };
    const action = {
      ...makeAction(outlineAction(event), place, grant),
      userIntent: userIntent && digestKey(userIntent),
    };
    const { ids, approved, denials } = chooseApprovals(
      this.#state,
      action,
      request.approvalIds,
      this.#honoured,
    );
    broken.push(...denials, ...judgeAction(action, approved).findings.map(toDenial));
    broken.push(...judgeAtOnce(request, action), ...judgeOverdraft(grant));
    const asksApproval =
      request.approvalIds !== undefined || grantChain(grant).some(({ approvals }) => approvals.length > 0);
    const checks = [...CHECKS, ...CHECKS_OF_GRANT, ...(asksApproval ? CHECKS_OF_APPROVAL : [])];
    if (broken.some(({ code }) => checks.some(([, codes]) => codes.includes(code))))
      return withNeed(deny(eventId, checks, broken), request, findNeed(action, approved));
    return {
      decision: 'allow',
      decisionCode: request.advice?.code ?? 'ALLOW',
      checks: listChecks(checks, []),
      grantId: eventId,
      ...defined({ userIntentDigest: userIntent }),
      ...(ids.length === 0 ? {} : { approvalIds: ids }),
      reservation: request.meters ?? [],
      remaining: remainingOf(request, grant),
    };
  }
}

/**
 * As {@link GrantEvaluator} where the ledger has a grant, whoever's. Where it has none, what another policy said decides (`policyId` of its
 * advice): the ledger then records, and bounds nothing.
 */
export class OptionalGrantEvaluator extends GrantEvaluator {
  readonly #hasGrants: boolean;

  /** @param state - As of {@link GrantEvaluator} */
  constructor(state: VerifyState, options: HonourOptions = {}) {
    super(state, options);
    this.#hasGrants = state.links.grants.size > 0;
  }

  override evaluate(request: AuthorizationRequest): AuthorizationDecision {
    const decided = super.evaluate(request);
    const { advice, grantId, meters = [] } = request;
    const isLeft = decided.decisionCode === 'GRANT_NOT_FOUND' && !this.#hasGrants && grantId === undefined;
    // An approval is always of a grant.
    if (
      !isLeft ||
      advice?.policyId === undefined ||
      advice.denial !== undefined ||
      advice.approval !== undefined
    )
      return decided;
    const nothing = { checks: [], grantId: undefined, remaining: [] } as const;
    return { decision: 'allow', decisionCode: advice.code ?? 'ALLOW', ...nothing, reservation: meters };
  }
}

/** How far a denied request got: whether the grant allows the tool at all, and which check was the first to fail. */
function progressOf({
  checks,
  decisionCode,
}: AuthorizationDecision): readonly [tool: number, failed: number] {
  const isFor = checks.some(({ check, result }) => check === 'tool' && result === 'pass');
  return [isFor ? 1 : 0, checks.findIndex(({ code }) => code === decisionCode)];
}

/** Which check of a grant that allows the tool was the first to fail; -1 of one that does not. */
function reachOf(denied: AuthorizationDecision): number {
  const [tool, failed] = progressOf(denied);
  return tool === 1 ? failed : -1;
}

/**
 * Where a grant certainly denies: the last check that can be the first to fail. Undefined where that is not certain.
 * @param amounts - What is asked for, by unit
 */
function mostChecked(
  grant: Grant,
  now: string,
  amounts: readonly (readonly [unit: string, amount: Rational])[],
): number | undefined {
  let most: number | undefined;
  for (const { withdrawal, expiresAt, accounts } of grantChain(grant)) {
    if (withdrawal !== undefined) return GRANT_CHECK;
    if (expiresAt !== undefined && orderTimestamps(now, expiresAt) >= 0) most = TIME_CHECK;
    if (most !== undefined) continue;
    for (const [unit, amount] of amounts) {
      const account = accounts.get(unit);
      if (account === undefined || amount.n === 0n) continue;
      const total = addRationals(addRationals(account.used, account.reserved), amount);
      if (compareRationals(total, account.cap) > 0) most = SPEND_CHECK;
    }
  }
  return most;
}

/** Whether a grant came nearer to allowing a request than another did; of two that lack the same unit, the one with more left. */
function isNearer(one: AuthorizationDecision, other: AuthorizationDecision): boolean {
  const [[tool, failed], [otherTool, otherFailed]] = [progressOf(one), progressOf(other)];
  if (tool !== otherTool) return tool > otherTool;
  if (failed !== otherFailed) return failed > otherFailed;
  const [left, otherLeft] = [one.bound?.left, other.bound?.left];
  if (left === undefined || otherLeft === undefined || one.bound?.unit !== other.bound?.unit) return false;
  return compareQuantities(left, otherLeft) > 0;
}

/** The grant with the rule of approval that advice adds. */
export function withAdvisedRule(
  grant: Grant,
  toolName: string,
  advised: Advice['approval'] | AdvisedRule,
): Grant {
  // Of a rule that was recorded without its approvers nothing is known.
  if (advised === undefined || advised.approvers.length === 0) return grant;
  const { approvers, count = 1 } = advised;
  const rule = makeApprovalRule({ tools: [toolName], approvers, count } as ApprovalRule);
  return { ...grant, approvals: [...grant.approvals, rule] };
}

function denyAs({ code, reason }: { readonly code: string; readonly reason: string }): AuthorizationDecision {
  const nothing = { grantId: undefined, reservation: [], remaining: [] } as const;
  return { decision: 'deny', decisionCode: code, checks: [], reason, ...nothing };
}

/** A denial that an approver can lift says who that is, and what for. */
function withNeed(
  denied: AuthorizationDecision,
  { meters = [] }: AuthorizationRequest,
  need: ApprovalNeed | undefined,
): AuthorizationDecision {
  if (denied.decisionCode !== APPROVAL_REQUIRED || need === undefined) return denied;
  return { ...denied, need, reservation: meters };
}

function remainingOf(request: AuthorizationRequest, grant: Grant): Balance[] {
  const asked = new Map((request.meters ?? []).map(({ unit, amount }) => [unit, toRational(amount)]));
  return balancesOf(grant).map((balance) => {
    const amount = asked.get(balance.unit);
    if (amount === undefined) return balance;
    return {
      ...balance,
      reserved: sumQuantity(addRationals(toRational(balance.reserved), amount)),
      left: sumQuantity(subtractRationals(toRational(balance.left), amount)),
    };
  });
}

/** SPEC §8 rule 13: an action with another intent names its grant's. */
function linkIntent(
  { intentDigest, userIntentDigest }: AuthorizationRequest,
  grant: Grant,
): Digest | undefined {
  if (userIntentDigest !== undefined) return userIntentDigest;
  return digestKey(intentDigest) === grant.intent ? undefined : parseDigest(grant.userIntent ?? grant.intent);
}

/** The bounds an immediate execution would break, such as rates and concurrency. */
function judgeAtOnce(request: AuthorizationRequest, action: Action): readonly RuleFinding[] {
  const { toolName, now, meters = [], resources = [] } = request;
  const facts = { ...dryRun(toolName, now, meters, action.place.seq), resources };
  // With no reservation to release, the whole use is new to every account.
  const unreserved = { ...action, reservation: new Map() };
  return judgeExecution(facts, unreserved, action.grant).findings;
}

function judgeHygiene({ hygiene }: AuthorizationRequest): Denial[] {
  return hygiene?.status === 'Invalid'
    ? [{ code: 'HYGIENE_NOT_OK', expected: 'clean input', actual: hygiene.status }]
    : [];
}

function listChecks(checks: readonly Check[], broken: readonly Denial[]): PolicyCheck[] {
  return checks.map(([check, codes]) => {
    const code = broken.find((finding) => codes.includes(finding.code))?.code;
    return code === undefined ? { check, result: 'pass' } : { check, result: 'fail', code };
  });
}

function deny(
  grantId: string | undefined,
  made: readonly Check[],
  broken: readonly Denial[],
): AuthorizationDecision {
  const checks = listChecks(made, broken);
  const decisionCode = checks.find(({ code }) => code !== undefined)?.code as string;
  const first = broken.find(({ code }) => code === decisionCode);
  const reason = `expected ${first?.expected}, found ${first?.actual}`;
  const bound = first && boundOf(first, grantId);
  return {
    decision: 'deny',
    decisionCode,
    checks,
    reason,
    ...defined({ bound }),
    grantId,
    reservation: [],
    remaining: [],
  };
}

const ANY_DIGEST = { alg: 'sha-256', b64: 'A'.repeat(43) } as const;
const ANY_ID = formatDigest(ANY_DIGEST);

/** The authorization event of a decision, without its envelope. */
export function draftDecision(
  request: AuthorizationRequest,
  answer: Partial<AuthorizationDecision>,
  { policyId, policyDigest }: Pick<PolicyEvaluator, 'policyId' | 'policyDigest'>,
): object {
  const { decision, grantId, reservation = [] } = answer;
  const { advice } = request;
  // A denial says what was asked for, so that it can be decided again. It reserves nothing.
  const amounts = decision === 'deny' ? (request.meters ?? []) : reservation;
  const checks = [
    ...(advice === undefined ? [] : checksOfAdvice(advice, decision)),
    ...(advice?.approval !== undefined && answer.decisionCode === APPROVAL_REQUIRED
      ? checksOfRule({ count: 1, ...advice.approval })
      : []),
    ...(answer.checks ?? []),
    ...askedInVain(request, answer),
  ];
  const policy = policyOf(advice, { policyId, policyDigest });
  return {
    event_type: 'authorization',
    principal_id: request.principalId,
    occurred_at: request.now,
    intents: defined({
      intent_digest: request.intentDigest,
      user_intent_digest: answer.userIntentDigest ?? request.userIntentDigest,
    }),
    policy_id: policy.policyId,
    policy_digest: policy.policyDigest,
    decision,
    decision_code: answer.decisionCode,
    ...defined({
      checks: answer.checks === undefined && checks.length === 0 ? undefined : checks,
      hygiene: request.hygiene,
      context_digest: request.contextDigest,
    }),
    authorization: {
      kind: 'action',
      ...(grantId === undefined ? {} : { grant_event_id: { alg: 'sha-256', b64: fromDigestText(grantId) } }),
      action: defined({
        tool_name: request.toolName,
        tool_params_digest: request.paramsDigest,
        meter_reservation: amounts.length === 0 ? undefined : amounts,
        expires_at: decision === 'deny' ? undefined : request.expiresAt,
        approval_event_ids: decision === 'deny' ? undefined : answer.approvalIds?.map(toEventId),
        request_key: request.requestKey,
      }),
    },
  };
}

/** A grant that was asked for and is not there, as a check: a link to it would be a broken one. */
function askedInVain(
  { grantId }: AuthorizationRequest,
  { decisionCode, grantId: found }: Partial<AuthorizationDecision>,
): PolicyCheck[] {
  if (decisionCode !== 'GRANT_NOT_FOUND' || grantId === undefined || found !== undefined) return [];
  return [{ check: `${ASKED_GRANT}${fromDigestText(grantId)}`, result: 'fail', code: decisionCode }];
}

/** What advice checked, and that it decided or asked, where that does not show it. */
function checksOfAdvice(
  { checks, denial, approval }: Advice,
  decision: 'allow' | 'deny' | undefined,
): readonly PolicyCheck[] {
  if (denial !== undefined && decision === 'deny') {
    const isShown = checks.some(({ result }) => result === 'fail');
    return isShown ? checks : [...checks, { check: ADVICE, result: 'fail', code: denial.code }];
  }
  if (approval === undefined || checks.some(isAdvice)) return checks;
  // An allow has no check that failed: who approves makes good what was asked.
  return [...checks, { check: ADVICE, result: 'pass', code: 'APPROVAL_ASKED' }];
}

/** The policy that is recorded: that of the grants alone is not the one that decided where advice narrows it. */
function policyOf(
  advice: Advice | undefined,
  own: Pick<PolicyEvaluator, 'policyId' | 'policyDigest'>,
): Pick<PolicyEvaluator, 'policyId' | 'policyDigest'> {
  const isNarrowed = advice?.denial !== undefined || advice?.approval !== undefined;
  const usual = isNarrowed && own.policyId === GRANTS_POLICY_ID ? ADVISED : own;
  return {
    policyId: advice?.policyId ?? usual.policyId,
    policyDigest: advice?.policyDigest ?? usual.policyDigest,
  };
}

function toEventId(id: string): Digest {
  return digestFromBase64url(fromDigestText(id));
}

/** The action as it would be recorded: the event schemas check requests too. @throws TypeError, RangeError */
function toEvent(request: AuthorizationRequest): AuthorizationEvent {
  const event = draftAllowed(request);
  const [fault] = checkEvent(event);
  if (fault === undefined) return event;
  const { code, pointer, expected, actual } = fault;
  const message = `${pointer}: expected ${expected}, found ${actual}`;
  throw code === 'SCHEMA' || code === 'TIMESTAMP_INVALID' ? new TypeError(message) : new RangeError(message);
}

/** @throws TypeError for malformed resources, which no event has */
function draftAllowed(request: AuthorizationRequest): AuthorizationEvent {
  const { grantId = ANY_ID, meters = [] } = request;
  assertResources(request.resources);
  const { approvalIds } = request;
  const allowed = {
    decision: 'allow',
    decisionCode: 'ALLOW',
    grantId,
    reservation: meters,
    ...defined({ approvalIds }),
  } as const;
  return {
    event_version: '1',
    event_id: ANY_DIGEST,
    payload_digest: ANY_DIGEST,
    canonical_profile_id: CANONICAL_PROFILE_ID,
    ...draftDecision(request, allowed, { policyId: GRANTS_POLICY_ID, policyDigest: ANY_DIGEST }),
  } as unknown as AuthorizationEvent;
}

/** @throws TypeError unless resources are pairs of text */
function assertResources(resources: unknown): void {
  if (resources === undefined) return;
  const isResource = (each: unknown): boolean => {
    const { kind, reference } = (each ?? {}) as Readonly<Record<string, unknown>>;
    return typeof kind === 'string' && typeof reference === 'string';
  };
  if (!Array.isArray(resources) || !resources.every(isResource))
    throw new TypeError('resources: expected a list of {kind, reference}');
}
