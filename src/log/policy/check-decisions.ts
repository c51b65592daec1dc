/**
 * Decides denied actions again: each at its place, by the grants as they were there. What the grants allow and somebody denied is no fault of
 * the ledger, but a question to who denied it. Allowed actions need no second look: verification judges them by the same rules.
 */

import { defined } from '../../base/defined.js';
import type { HygieneReport } from '../../base/json/hygiene.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { AuthorizationEvent, DecisionsCheckJson } from '../../format/schema/generated/types.js';
import { type Grant, grantChain, systemsOf } from '../../rules/bounds/grant.js';
import { APPROVAL_REQUIRED } from '../../rules/verify/approvals.js';
import type { GrantTable } from '../../rules/verify/grant-table.js';
import type { RecordCheck } from '../../rules/verify/record-check.js';
import type { VerifyState } from '../../rules/verify/state.js';
import {
  askedGrantOf,
  type AuthorizationDecision,
  type AuthorizationRequest,
  GATE_POLICY_ID,
  GrantEvaluator,
  GRANTS_POLICY_ID,
  isAdvice,
  OWN_CHECKS,
  OWN_CODES,
} from './evaluator.js';
import { isHeldAtOnce } from './running-starts.js';

/** The most grants that are tried for a denial that names none. */
const MAX_TRIED_GRANTS = 32;

/** The most units of which a finding says what was left. */
const MAX_UNITS_TOLD = 4;

/** What a denial depends on and the ledger does not say, in words. */
const MISSING = {
  amounts: 'the amounts asked for',
  resources: 'the resources asked for',
  approvals: 'the approvals named',
  hygiene: 'the hygiene of the input',
  expiry: 'until when it was to begin',
  grant: 'the grant asked for',
  many: `which of more than ${MAX_TRIED_GRANTS} grants was asked for`,
  running: 'sums of what ran, which have too long denominators',
} as const;

type Missing = keyof typeof MISSING;

/** Codes that depend on what a denial may not record. */
const DEPENDS_ON: Readonly<Record<string, Missing>> = {
  ACTION_CAP_EXCEEDED: 'amounts',
  RESERVATION_OVER_CAP: 'amounts',
  METER_CAP_EXCEEDED: 'amounts',
  QUANTITY_INVALID: 'amounts',
  RATE_LIMIT_EXCEEDED: 'amounts',
  RESOURCE_NOT_GRANTED: 'resources',
  APPROVAL_NOT_FOUND: 'approvals',
  APPROVAL_NOT_AN_APPROVAL: 'approvals',
  APPROVAL_REUSED: 'approvals',
  APPROVAL_EXCEEDED: 'approvals',
  HYGIENE_NOT_OK: 'hygiene',
  ACTION_EXPIRED: 'expiry',
};

const POLICIES: ReadonlySet<string> = new Set([GRANTS_POLICY_ID, GATE_POLICY_ID]);

type Outcome =
  | { readonly is: 'founded' | 'by_others' }
  | { readonly is: 'undecided'; readonly missing: Missing }
  | { readonly is: 'unfounded'; readonly by: Grant; readonly answer: AuthorizationDecision };

/**
 * A check of denied actions, for `checks` of one verification. `DENIAL_UNFOUNDED` is told of each whose code is one that the grants give,
 * which the grants of that place do not give. Where a denial depends on what it does not record (amounts, resources), that is said in
 * `not_checked` (DECISIONS). Memory: a number for each grant; time for a denial: that of a decision, of at most 32 where it names no grant.
 * @example
 * ```ts
 * const report = await verifyLedger('ledger.jsonl', { checks: [checkDecisions()] });
 * console.log(report.decisions, report.findings.filter(({ code }) => code === 'DENIAL_UNFOUNDED'));
 * ```
 */
export function checkDecisions(): RecordCheck {
  return new DecisionCheck();
}

class DecisionCheck implements RecordCheck {
  readonly #counts: DecisionsCheckJson = { denials: 0, founded: 0, unfounded: 0, by_others: 0, undecided: 0 };
  readonly #missing = new Map<Missing, number>();
  readonly #grants = new GrantsByPrincipal();
  #deniedGrants = 0;

  wants(verdict: string): boolean {
    return verdict === 'denied';
  }

  check({ examined, state }: Parameters<RecordCheck['check']>[0]): RuleFinding[] {
    if (examined?.wellFormed !== true || examined.type !== 'authorization') return [];
    const event = examined.event();
    if (event.authorization.kind === 'grant') {
      this.#deniedGrants += 1;
      return [];
    }
    const outcome = this.#decide(state, event);
    this.#counts.denials += 1;
    this.#counts[outcome.is] += 1;
    if (outcome.is === 'undecided')
      this.#missing.set(outcome.missing, (this.#missing.get(outcome.missing) ?? 0) + 1);
    if (outcome.is !== 'unfounded') return [];
    const { by, answer } = outcome;
    return [
      {
        code: 'DENIAL_UNFOUNDED',
        pointer: '/decision',
        expected: `allow, as ${by.place.eventId} allows it${wordsOfLeft(answer)}`,
        actual: `deny with ${event.decision_code}`,
        related: [by.place],
      },
    ];
  }

  finish(): ReturnType<RecordCheck['finish']> {
    const { undecided } = this.#counts;
    const reasons = [...this.#missing].map(([missing, count]) => `${MISSING[missing]} (${count})`);
    const gaps = [
      ...(undecided === 0
        ? []
        : [`denied actions that could not be decided again: ${undecided}; not known: ${reasons.join(', ')}`]),
      ...(this.#deniedGrants === 0
        ? []
        : [`denied grants, which are not decided again: ${this.#deniedGrants}`]),
    ];
    return {
      notChecked: gaps.length === 0 ? [] : [{ code: 'DECISIONS', message: gaps.join('; ') }],
      report: { decisions: { ...this.#counts } },
    };
  }

  #decide(state: VerifyState, event: AuthorizationEvent): Outcome {
    const asked = readDenial(event);
    if (asked.isByOthers) return { is: 'by_others' };
    const { grantId } = asked.request;
    if (grantId !== undefined)
      return decideUnder(state, asked, state.links.grants.get(fromDigestText(grantId)));
    const { grants, isCut } = this.#grants.of(state.links.grants, event.principal_id);
    if (isCut) return { is: 'undecided', missing: 'many' };
    for (const grant of grants) {
      const outcome = decideUnder(state, asked, grant);
      if (outcome.is === 'founded') continue;
      // Another grant, which there is not, may have been asked for.
      return asked.codes.includes('GRANT_NOT_FOUND') ? { is: 'undecided', missing: 'grant' } : outcome;
    }
    return { is: 'founded' };
  }
}

interface Denied {
  readonly request: AuthorizationRequest;
  /** Its code, and those of the grants' checks that failed. */
  readonly codes: readonly string[];
  /** Whether the record says that it was not the grants that denied it. */
  readonly isByOthers: boolean;
  /** Whether an adviser was asked, or advice asked for an approval. */
  readonly isAdvised: boolean;
}

function readDenial(event: AuthorizationEvent): Denied {
  const { authorization, checks = [], intents, hygiene, decision_code: code, policy_id: policy } = event;
  const { action, grant_event_id: grant } = authorization as Extract<
    typeof authorization,
    { kind: 'action' }
  >;
  const failed = checks.filter(({ result }) => result === 'fail');
  const asked = failed.map(askedGrantOf).find((b64) => b64 !== undefined);
  const isOwn = (each: (typeof checks)[number]): boolean =>
    OWN_CHECKS.has(each.check) || askedGrantOf(each) !== undefined;
  const isByOthers = !POLICIES.has(policy) || !OWN_CODES.has(code) || !failed.every(isOwn);
  return {
    request: {
      principalId: event.principal_id,
      toolName: action.tool_name,
      paramsDigest: action.tool_params_digest,
      intentDigest: intents.intent_digest,
      meters: action.meter_reservation ?? [],
      now: event.occurred_at,
      ...defined({
        userIntentDigest: intents.user_intent_digest,
        // Only its status decides.
        hygiene: hygiene as HygieneReport | undefined,
        grantId: grant === undefined ? asked && toDigestText(asked) : toDigestText(grant.b64),
      }),
    },
    codes: [code, ...failed.flatMap((each) => each.code ?? [])],
    isByOthers,
    isAdvised: checks.some(isAdvice),
  };
}

/** @param grant - Undefined where there is none of that id. */
function decideUnder(
  state: VerifyState,
  { request, codes, isAdvised }: Denied,
  grant: Grant | undefined,
): Outcome {
  if (grant === undefined) return { is: 'founded' };
  if (!isHeldAtOnce(state, grant)) return { is: 'undecided', missing: 'running' };
  // Whose imported authority its owner honoured is not known: all of it, unless that was the reason.
  const honourImported = codes.includes('IMPORTED_AUTHORITY') ? [] : systemsOf(grant);
  const answer = new GrantEvaluator(state, { honourImported }).evaluate({
    ...request,
    grantId: grant.place.eventId,
  });
  const [code = ''] = codes;
  const hasAmounts = (request.meters ?? []).length > 0;
  if (answer.decision === 'deny') {
    // Which rules ask for approval can depend on the amounts.
    const isMeant = answer.decisionCode !== APPROVAL_REQUIRED || hasAmounts || code === APPROVAL_REQUIRED;
    return isMeant ? { is: 'founded' } : { is: 'undecided', missing: 'amounts' };
  }
  if (code === APPROVAL_REQUIRED) {
    if (isAdvised) return { is: 'by_others' };
    if (answer.approvalIds !== undefined) return { is: 'undecided', missing: 'approvals' };
  }
  for (const each of codes) {
    const missing = missingOf(each, grant, hasAmounts);
    if (missing !== undefined) return { is: 'undecided', missing };
  }
  return { is: 'unfounded', by: grant, answer };
}

/** What a code depends on that the record does not have; undefined where the grant has no such bound. */
function missingOf(code: string, grant: Grant, hasAmounts: boolean): Missing | undefined {
  const missing = Object.hasOwn(DEPENDS_ON, code) ? DEPENDS_ON[code] : undefined;
  if (missing === 'amounts' && hasAmounts) return undefined;
  const chain = grantChain(grant);
  if (code === 'ACTION_CAP_EXCEEDED' && chain.every(({ actionCaps }) => actionCaps.size === 0))
    return undefined;
  if (code === 'RESOURCE_NOT_GRANTED' && chain.every(({ resources }) => resources === undefined))
    return undefined;
  if (
    code === 'RATE_LIMIT_EXCEEDED' &&
    chain.every(({ rates }) => rates.every(({ meter }) => meter === 'calls'))
  )
    return undefined;
  return missing;
}

function wordsOfLeft({ remaining }: AuthorizationDecision): string {
  if (remaining.length === 0) return '';
  const told = remaining
    .slice(0, MAX_UNITS_TOLD)
    .map(({ unit, left, cap }) => `${formatQuantity(left)} of ${formatQuantity(cap)} ${unit}`);
  const more = remaining.length - told.length;
  return `, with ${told.join(', ')}${more > 0 ? ` and ${more} more` : ''} left`;
}

class GrantsByPrincipal {
  readonly #byPrincipal = new Map<string, { readonly grants: Grant[]; isCut: boolean }>();
  #read = 0;

  of(table: GrantTable, principalId: string): { readonly grants: readonly Grant[]; readonly isCut: boolean } {
    for (; this.#read < table.size; this.#read += 1) {
      const grant = table.at(this.#read);
      if (grant?.decision !== 'allow') continue;
      const own = this.#byPrincipal.get(grant.principalId);
      if (own === undefined) this.#byPrincipal.set(grant.principalId, { grants: [grant], isCut: false });
      else if (own.grants.length < MAX_TRIED_GRANTS) own.grants.push(grant);
      else own.isCut = true;
    }
    return this.#byPrincipal.get(principalId) ?? { grants: [], isCut: false };
  }
}
