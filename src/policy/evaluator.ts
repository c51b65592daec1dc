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
import { findBalance, sumQuantity, type Balance } from '../report/accounts.js';
import type { AuthorizationEvent } from '../schema/generated/types.js';
import { sha256Digest, type Digest } from '../value/digest.js';
import { isUnit, type MeterVector } from '../value/meter.js';
import { isPrincipalId } from '../value/principal.js';
import { isNegativeQuantity, toRational } from '../value/quantity.js';
import { addRationals, subtractRationals } from '../value/rational.js';
import { formatInstant, isTimestamp, parseTimestamp } from '../value/timestamp.js';
import { isToolName } from '../value/tool.js';
import type { VerifyState } from '../verify/state.js';

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
  readonly checks: readonly PolicyCheck[];
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

/** The checks in the order in which they are listed, and the codes that make each fail. */
const CHECKS: readonly (readonly [check: string, codes: readonly FindingCode[]])[] = [
  ['grant', ['GRANT_NOT_FOUND', 'GRANT_DENIED']],
  ['hygiene', ['HYGIENE_NOT_OK']],
  ['principal', ['PRINCIPAL_MISMATCH']],
  ['tool', ['TOOL_NOT_ALLOWED']],
  ['time', ['GRANT_EXPIRED']],
  ['spend', ['RESERVATION_OVER_CAP', 'METER_CAP_EXCEEDED', 'QUANTITY_INVALID']],
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
    assertRequest(request);
    const grants = this.#candidates(request);
    let denied: AuthorizationDecision | undefined;
    for (const grant of grants) {
      const answer = this.#decide(request, grant);
      if (answer.decision === 'allow') return answer;
      denied ??= answer;
    }
    return denied ?? toDecision(request, undefined, ['GRANT_NOT_FOUND'], []);
  }

  #candidates({ grantId, principalId }: AuthorizationRequest): readonly Grant[] {
    const { grants, grantList } = this.#state.links;
    if (grantId === undefined) {
      return grantList.filter((grant) => grant.decision === 'allow' && grant.principalId === principalId);
    }
    const grant = grants.get(grantId.replace(/^sha-256:/, ''));
    return grant === undefined ? [] : [grant];
  }

  #decide(request: AuthorizationRequest, grant: Grant): AuthorizationDecision {
    const codes: FindingCode[] = [];
    if (grant.decision === 'deny') codes.push('GRANT_DENIED');
    if (request.hygiene?.status === 'Invalid') codes.push('HYGIENE_NOT_OK');
    if (request.principalId !== grant.principalId) codes.push('PRINCIPAL_MISMATCH');
    const action = actionOf(request, grant);
    const findings = [...judgeAction(action).findings, ...judgeAtOnce(request, action)];
    codes.push(...findings.filter(isBreach).map(({ code }) => code));
    return toDecision(request, grant.place.eventId, codes, this.#remaining(request, grant));
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

/** The action as it would be recorded. */
function actionOf(request: AuthorizationRequest, grant: Grant): Action {
  const event = {
    decision: 'allow',
    principal_id: request.principalId,
    occurred_at: request.now,
    intents: { intent_digest: request.intentDigest },
    authorization: {
      kind: 'action',
      action: {
        tool_name: request.toolName,
        tool_params_digest: request.paramsDigest,
        meter_reservation: request.meters ?? [],
      },
    },
  };
  return makeAction(event as unknown as AuthorizationEvent, grant.place, grant);
}

/** What the action would break if it were executed at once: its rates and its concurrency above all. */
function judgeAtOnce(request: AuthorizationRequest, action: Action): readonly RuleFinding[] {
  const endedAt = formatInstant(parseTimestamp(request.now) + 1n);
  const facts = {
    toolName: request.toolName,
    occurredAt: request.now,
    startedAt: request.now,
    endedAt,
    meterUsed: request.meters ?? [],
    hasOutputRef: false,
    resources: [],
    isRelease: false,
  };
  // Nothing is reserved yet, so nothing is given back: the whole use is new to every account.
  const unreserved = { ...action, reservation: new Map() };
  return judgeExecution(facts, unreserved, action.grant, undefined).findings;
}

function isBreach({ code }: RuleFinding): boolean {
  return CHECKS.some(([, codes]) => codes.includes(code));
}

function toDecision(
  request: AuthorizationRequest,
  grantId: string | undefined,
  failed: readonly FindingCode[],
  remaining: readonly Balance[],
): AuthorizationDecision {
  const checks: PolicyCheck[] = CHECKS.map(([check, codes]) => {
    const code = failed.find((each) => codes.includes(each));
    return code === undefined ? { check, result: 'pass' } : { check, result: 'fail', code };
  });
  const first = checks.find(({ result }) => result === 'fail')?.code;
  return first === undefined
    ? {
        decision: 'allow',
        decisionCode: 'ALLOW',
        checks,
        grantId,
        reservation: request.meters ?? [],
        remaining,
      }
    : { decision: 'deny', decisionCode: first, checks, grantId, reservation: [], remaining: [] };
}

function assertRequest({ principalId, toolName, meters = [], now }: AuthorizationRequest): void {
  if (!isPrincipalId(principalId)) throw new TypeError(`expected a principal id, found ${principalId}`);
  if (!isToolName(toolName)) throw new TypeError(`expected a tool name, found ${toolName}`);
  if (!isTimestamp(now)) throw new TypeError(`expected a timestamp, found ${now}`);
  const units = new Set<string>();
  for (const { unit, amount } of meters) {
    if (!isUnit(unit) || units.has(unit)) throw new TypeError(`expected each unit once, found ${unit}`);
    if (isNegativeQuantity(amount)) throw new RangeError(`expected an amount of at least 0 for ${unit}`);
    units.add(unit);
  }
}
