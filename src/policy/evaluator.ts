/**
 * The hook for policies: something that is asked before an action and answers allow or deny. northroot prescribes no policy
 * engine; the one evaluator that it brings asks a ledger's own grants, through the very rules that verification applies.
 */

import { makeAction, type Action, type Grant } from '../bounds/grant.js';
import { judgeAction, judgeExecution } from '../bounds/judge.js';
import type { FindingCode } from '../finding/catalog.js';
import type { RuleFinding } from '../finding/rule-finding.js';
import type { HygieneReport } from '../json/hygiene.js';
import { canonicalBytes } from '../json/canonicalize.js';
import { CANONICAL_PROFILE_ID } from '../json/profile.js';
import { findBalance, sumQuantity, type Balance } from '../report/accounts.js';
import { checkEvent } from '../schema/check.js';
import type { AuthorizationEvent } from '../schema/generated/types.js';
import { sha256Digest, type Digest } from '../value/digest.js';
import type { MeterVector } from '../value/meter.js';
import { toRational } from '../value/quantity.js';
import { addRationals, subtractRationals } from '../value/rational.js';
import type { VerifyState } from '../verify/state.js';
import { executeAtOnce } from './at-once.js';

/** What is asked: may this principal call this tool with these parameters, now, using so much at most? */
export interface AuthorizationRequest {
  readonly principalId: string;
  readonly toolName: string;
  readonly paramsDigest: Digest;
  readonly intentDigest: Digest;
  /** What the action may use at most; it is reserved when allowed. */
  readonly meters?: MeterVector;
  /** A timestamp of SPEC §2. */
  readonly now: string;
  /** The grant to act under, `sha-256:…`; without it the principal's grants are tried in ledger order. */
  readonly grantId?: string;
  readonly contextDigest?: Digest;
  readonly hygiene?: HygieneReport;
}

/** One check that a decision rests on; as events have it (SPEC §3.1). */
export interface PolicyCheck {
  readonly check: string;
  readonly result: 'pass' | 'fail';
  readonly code?: string;
}

/** The answer. */
export interface AuthorizationDecision {
  readonly decision: 'allow' | 'deny';
  /** `ALLOW`, or the code of the first check that failed. */
  readonly decisionCode: string;
  /** Those that were made: without a grant that allows anything there is nothing to hold the rest against. */
  readonly checks: readonly PolicyCheck[];
  /** Of a deny: what was expected and found, for people. It is not recorded. */
  readonly reason?: string;
  /** The grant that the decision was made under. */
  readonly grantId: string | undefined;
  /** What is to be reserved; empty for a deny. */
  readonly reservation: MeterVector;
  /** The grant's accounts once the reservation is made. */
  readonly remaining: readonly Balance[];
}

/** A policy. */
export interface PolicyEvaluator {
  /** 1..256 characters, for `policy_id`. */
  readonly policyId: string;
  /** Of whatever the policy is, for `policy_digest`. */
  readonly policyDigest: Digest;
  /** @throws TypeError, RangeError when the request is not of its form. */
  evaluate(request: AuthorizationRequest): AuthorizationDecision;
}

const POLICY_ID = 'northroot/grants/1';

type Check = readonly [check: string, codes: readonly FindingCode[]];

/** The checks in the order in which they are listed, and the codes that make each fail. */
const CHECKS: readonly Check[] = [
  ['grant', ['GRANT_NOT_FOUND', 'GRANT_DENIED']],
  ['hygiene', ['HYGIENE_NOT_OK']],
];

/** Those that need a grant. */
const CHECKS_OF_GRANT: readonly Check[] = [
  ['principal', ['PRINCIPAL_MISMATCH']],
  ['tool', ['TOOL_NOT_ALLOWED']],
  [
    'time',
    ['AUTHORIZATION_BEFORE_GRANT', 'EXECUTION_BEFORE_AUTHORIZATION', 'GRANT_NOT_YET_VALID', 'GRANT_EXPIRED'],
  ],
  ['spend', ['ACTION_CAP_EXCEEDED', 'RESERVATION_OVER_CAP', 'METER_CAP_EXCEEDED', 'QUANTITY_INVALID']],
  ['rate', ['RATE_LIMIT_EXCEEDED']],
  ['concurrency', ['CONCURRENCY_EXCEEDED']],
];

/**
 * Answers by the grants of a verified ledger: it allows exactly what, recorded as an action and executed at once with all that
 * was asked for, breaks no bound. Of executions that run but are not recorded yet it cannot know.
 */
export class GrantEvaluator implements PolicyEvaluator {
  readonly policyId = POLICY_ID;
  readonly policyDigest = sha256Digest(canonicalBytes({ policy_id: POLICY_ID }));
  readonly #state: VerifyState;

  /** @param state - As verification left it; it is read at each question, and never changed. */
  constructor(state: VerifyState) {
    this.#state = state;
  }

  evaluate(request: AuthorizationRequest): AuthorizationDecision {
    const event = toEvent(request);
    const grants = this.#candidates(request);
    let denied: AuthorizationDecision | undefined;
    for (const grant of grants) {
      const answer = this.#decide(request, event, grant);
      if (answer.decision === 'allow') return answer;
      denied ??= answer;
    }
    if (denied !== undefined) return denied;
    const expected = request.grantId === undefined ? `a grant of ${request.principalId}` : 'a grant';
    const missing = { code: 'GRANT_NOT_FOUND', expected, actual: request.grantId ?? 'none' } as const;
    return deny(undefined, CHECKS, [missing, ...judgeHygiene(request)]);
  }

  #candidates({ grantId, principalId }: AuthorizationRequest): readonly Grant[] {
    const { grants, grantList } = this.#state.links;
    if (grantId === undefined) {
      return grantList.filter((grant) => grant.decision === 'allow' && grant.principalId === principalId);
    }
    const grant = grants.get(grantId.replace(/^sha-256:/, ''));
    return grant === undefined ? [] : [grant];
  }

  #decide(request: AuthorizationRequest, event: AuthorizationEvent, grant: Grant): AuthorizationDecision {
    const { eventId } = grant.place;
    const broken = judgeHygiene(request);
    if (grant.decision === 'deny') {
      const expected = 'a grant that was allowed';
      return deny(eventId, CHECKS, [{ code: 'GRANT_DENIED', expected, actual: eventId }, ...broken]);
    }
    const { principalId: expected } = grant;
    const { principalId: actual } = request;
    if (expected !== actual) broken.push({ code: 'PRINCIPAL_MISMATCH', expected, actual });
    const action = makeAction(event, grant.place, grant);
    broken.push(...judgeAction(action).findings, ...judgeAtOnce(request, action));
    const checks = [...CHECKS, ...CHECKS_OF_GRANT];
    if (broken.some(({ code }) => checks.some(([, codes]) => codes.includes(code))))
      return deny(eventId, checks, broken);
    return {
      decision: 'allow',
      decisionCode: 'ALLOW',
      checks: listChecks(checks, []),
      grantId: eventId,
      reservation: request.meters ?? [],
      remaining: this.#remaining(request, grant),
    };
  }

  #remaining(request: AuthorizationRequest, grant: Grant): Balance[] {
    const asked = new Map((request.meters ?? []).map(({ unit, amount }) => [unit, toRational(amount)]));
    return [...grant.accounts.keys()].map((unit) => {
      const balance = findBalance(this.#state, grant.place.eventId, unit) as Balance;
      const amount = asked.get(unit);
      if (amount === undefined) return balance;
      return {
        ...balance,
        reserved: sumQuantity(addRationals(toRational(balance.reserved), amount)),
        left: sumQuantity(subtractRationals(toRational(balance.left), amount)),
      };
    });
  }
}

/** What the action would break if it were executed at once: its rates and its concurrency above all. */
function judgeAtOnce(request: AuthorizationRequest, action: Action): readonly RuleFinding[] {
  const facts = executeAtOnce(request.toolName, request.now, request.meters ?? []);
  // Nothing is reserved yet, so nothing is given back: the whole use is new to every account.
  const unreserved = { ...action, reservation: new Map() };
  return judgeExecution(facts, unreserved, action.grant).findings;
}

function judgeHygiene({ hygiene }: AuthorizationRequest): RuleFinding[] {
  return hygiene?.status === 'Invalid'
    ? [{ code: 'HYGIENE_NOT_OK', expected: 'clean input', actual: hygiene.status }]
    : [];
}

function listChecks(checks: readonly Check[], broken: readonly RuleFinding[]): PolicyCheck[] {
  return checks.map(([check, codes]) => {
    const code = broken.find((finding) => codes.includes(finding.code))?.code;
    return code === undefined ? { check, result: 'pass' } : { check, result: 'fail', code };
  });
}

/** One of the checks made fails by one of the findings. */
function deny(
  grantId: string | undefined,
  made: readonly Check[],
  broken: readonly RuleFinding[],
): AuthorizationDecision {
  const checks = listChecks(made, broken);
  const decisionCode = checks.find(({ code }) => code !== undefined)?.code as string;
  const first = broken.find(({ code }) => code === decisionCode);
  const reason = `expected ${first?.expected}, found ${first?.actual}`;
  return { decision: 'deny', decisionCode, checks, reason, grantId, reservation: [], remaining: [] };
}

const ANY_DIGEST = { alg: 'sha-256', b64: 'A'.repeat(43) } as const;

/**
 * The action as it would be recorded. What events may hold, requests may: the schemas say it for both.
 *
 * @throws TypeError, RangeError when they do not.
 */
function toEvent(request: AuthorizationRequest): AuthorizationEvent {
  const { principalId, toolName, paramsDigest, intentDigest, meters, now, grantId, contextDigest, hygiene } =
    request;
  const event = {
    event_type: 'authorization',
    event_version: '1',
    event_id: ANY_DIGEST,
    payload_digest: ANY_DIGEST,
    canonical_profile_id: CANONICAL_PROFILE_ID,
    occurred_at: now,
    principal_id: principalId,
    ...(contextDigest === undefined ? {} : { context_digest: contextDigest }),
    intents: { intent_digest: intentDigest },
    policy_id: POLICY_ID,
    policy_digest: ANY_DIGEST,
    decision: 'allow',
    decision_code: 'ALLOW',
    ...(hygiene === undefined ? {} : { hygiene }),
    authorization: {
      kind: 'action',
      grant_event_id:
        grantId === undefined ? ANY_DIGEST : { alg: 'sha-256', b64: grantId.replace(/^sha-256:/, '') },
      action: { tool_name: toolName, tool_params_digest: paramsDigest, meter_reservation: meters ?? [] },
    },
  };
  const [issue] = checkEvent(event);
  if (issue === undefined) return event as unknown as AuthorizationEvent;
  const { code, pointer, expected, actual } = issue;
  const message = `${pointer}: expected ${expected}, found ${actual}`;
  throw code === 'SCHEMA' || code === 'TIMESTAMP_INVALID' ? new TypeError(message) : new RangeError(message);
}
