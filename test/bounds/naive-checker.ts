/**
 * The rules of SPEC §8 on linkage and bounds, a second time: slow, from the text, with lists and filters only. It shares no code
 * with the verifier. For each event it looks at all the others; nothing is kept up to date, everything is counted again.
 *
 * What the SPEC leaves open is marked CHOICE. Left out: sums with denominators of more than 400 digits, and ledgers that are
 * more than bare events: so there are no signers, and no clock, which moves by records only.
 */

import type {
  AdjustmentEvent,
  ApprovalEvent,
  AuthorizationEvent,
  Bounds,
  ExecutionEvent,
  Intents,
  RevocationEvent,
} from '../../src/format/schema/generated/types.js';
import type { Quantity } from '../../src/base/value/quantity.js';

/** An event as it stands in the ledger. */
export interface Entry {
  readonly event: { readonly event_type: string; readonly event_id: { readonly b64: string } };
  /** It does not have the shape that its type must have. */
  readonly malformed: boolean;
}

/** One finding: of which event, on which of its parts, and by which other event. Events are named by their place in the list. */
export interface NaiveFinding {
  readonly code: string;
  readonly at: number;
  /** The unit, for findings on amounts and limits; the bound, for delegation. */
  readonly part?: string | undefined;
  /** The grant that was broken, or the other event of a link. */
  readonly about?: number | undefined;
  /** Findings of one code with the same cause are listed once, at the first, with the number of the others. */
  readonly cause?: string;
}

export interface NaiveReport {
  readonly verdicts: readonly string[];
  readonly findings: readonly (NaiveFinding & { readonly folded: number })[];
  readonly grants: readonly {
    readonly at: number;
    readonly executions: number;
    readonly meters: readonly {
      readonly unit: string;
      readonly cap: Fraction;
      readonly used: Fraction;
      readonly estimated: Fraction;
      readonly reserved: Fraction;
    }[];
  }[];
  /** The allowed actions that were not executed. */
  readonly open: readonly number[];
  /** The starts that count and are open. */
  readonly running: readonly number[];
  /** The starts that took another over. */
  readonly retries: readonly number[];
  /** The approvals that were used up, each with the action that did. */
  readonly approvals: readonly { readonly at: number; readonly usedBy: number }[];
  /** The revocations whose records are not invalid. */
  readonly revocations: readonly number[];
  /** What counts as used and no execution states. */
  readonly unstated: Meters;
}

/** n/d with d > 0, not reduced. */
export type Fraction = readonly [n: bigint, d: bigint];

type Meters = readonly { readonly unit: string; readonly amount: Quantity }[];

/** An execution that counts: it names an authorization that was allowed. */
interface Use {
  readonly at: number;
  readonly event: ExecutionEvent;
  /** The grants that it counts against. */
  readonly chain: readonly number[];
  /** The action that it executes as the first; undefined under a grant and for a second execution. */
  readonly action: number | undefined;
  readonly isRelease: boolean;
  /** It settles a slice. */
  readonly isSettlement: boolean;
  /** What counts as used: what it states, and what its action reserved and it does not state. */
  readonly counted: Meters;
  /** The units of that which are only estimated. */
  readonly estimated: readonly string[];
}

/** An `x.northroot.start`, as far as it may be trusted to look like one. */
interface StartEvent {
  readonly principal_id: string;
  readonly auth_event_id: { readonly b64: string };
  readonly prev_event_id?: { readonly b64: string };
  readonly tool_name?: string;
  readonly tool_params_digest?: object;
  readonly started_at?: string;
  readonly meter_known?: Meters;
  readonly recorder?: string;
}

/** A start that counts. */
interface Start {
  readonly at: number;
  readonly event: StartEvent;
  /** What it starts: an action or a grant. */
  readonly of: number;
}

/** A start that took another over, and what counts as used by that. */
interface Retry {
  readonly at: number;
  readonly chain: readonly number[];
  readonly counted: Meters;
}

/** A rule of a grant on approvals. */
type ApprovalRule = NonNullable<Bounds['approvals']>[number];

/** From which place on, and up to which, a grant is revoked or suspended. */
interface Period {
  readonly from: number;
  readonly to: number;
}

/** An adjustment that was applied. */
interface Correction {
  readonly at: number;
  readonly event: AdjustmentEvent;
  readonly chain: readonly number[];
}

const INVALID = [
  ['SCHEMA', 'TIMESTAMP_INVALID', 'EVENT_DUPLICATE', 'PREV_EVENT_NOT_FOUND'],
  ['AUTH_NOT_FOUND', 'AUTH_NOT_AN_AUTHORIZATION', 'AUTH_AFTER_EXECUTION'],
  ['GRANT_NOT_FOUND', 'GRANT_NOT_A_GRANT', 'INTENT_MISMATCH', 'TOOL_MISMATCH', 'TOOL_PARAMS_MISMATCH'],
  ['EVIDENCE_MISSING', 'EXECUTION_NOT_FOUND', 'EXECUTION_NOT_UNDER_GRANT'],
  ['APPROVAL_NOT_FOUND', 'APPROVAL_NOT_AN_APPROVAL'],
].flat();

/** The tool of an action that sets amounts aside for another ledger. */
const SLICE = 'northroot.slice';

/** What every recorder measures. */
const MEASURED = ['calls', 'time.ms'];

const VIOLATION = [
  ['PRINCIPAL_MISMATCH', 'TOOL_NOT_ALLOWED', 'EXECUTION_UNDER_DENY', 'GRANT_DENIED', 'AUTHORIZATION_REUSED'],
  ['EXECUTION_BEFORE_AUTHORIZATION', 'GRANT_EXPIRED', 'DELEGATION_EXCEEDED', 'METER_CAP_EXCEEDED'],
  ['RESERVATION_EXCEEDED', 'RESERVATION_OVER_CAP', 'RATE_LIMIT_EXCEEDED', 'CONCURRENCY_EXCEEDED'],
  ['OUTPUT_MODE_EXCEEDED', 'ALLOW_WITH_FAILED_CHECK', 'HYGIENE_NOT_OK', 'AUTHORIZATION_BEFORE_GRANT'],
  ['GRANT_NOT_YET_VALID', 'ACTION_CAP_EXCEEDED', 'ADJUSTMENT_EXCEEDED', 'SELF_CREDIT'],
  ['ACTION_EXPIRED', 'REQUEST_REPEATED', 'GRANT_REVOKED', 'SLICE_REUSED'],
  ['APPROVAL_MISSING', 'APPROVAL_REUSED', 'APPROVAL_EXCEEDED'],
].flat();

/** Judges a whole ledger. */
export function judgeNaively(entries: readonly Entry[]): NaiveReport {
  const all: NaiveFinding[] = [];
  const uses: Use[] = [];
  const corrections: Correction[] = [];
  const starts: Start[] = [];
  const retries: Retry[] = [];
  const blocked: number[] = [];

  const idAt = (at: number): string => entries[at].event.event_id.b64;
  const places = entries.map((_, at) => at);
  /** The event of this id that stands first before `at`. */
  const before = (at: number, id: string): number | undefined =>
    places.find((other) => other < at && idAt(other) === id);
  const isDuplicate = (at: number): boolean => before(at, idAt(at)) !== undefined;
  const takesPart = (at: number): boolean => !entries[at].malformed && !isDuplicate(at);
  const typeOf = (at: number): string => entries[at].event.event_type;
  const authorizationAt = (at: number): AuthorizationEvent | undefined =>
    typeOf(at) === 'authorization' && takesPart(at)
      ? (entries[at].event as unknown as AuthorizationEvent)
      : undefined;
  const kindAt = (at: number): 'grant' | 'action' | undefined => authorizationAt(at)?.authorization.kind;
  const isAllow = (at: number): boolean => authorizationAt(at)?.decision === 'allow';
  const grantNamedBy = (at: number): number | undefined => {
    const id = authorizationAt(at)?.authorization.grant_event_id?.b64;
    return id === undefined ? undefined : before(at, id);
  };
  /**
   * The grant under which an allow stands. CHOICE: an allow whose link is broken, or whose grant was denied, stands under
   * none; what is denied stands under none either.
   */
  const parentOf = (at: number): number | undefined => {
    const named = grantNamedBy(at);
    return isAllow(at) && named !== undefined && kindAt(named) === 'grant' && isAllow(named)
      ? named
      : undefined;
  };
  /** The grants that an allowed authorization counts against, nearest first. CHOICE: of a longer chain the nearest 32. */
  const chainOf = (at: number): number[] => {
    const chain: number[] = [];
    let grant = kindAt(at) === 'grant' ? at : parentOf(at);
    for (; grant !== undefined; grant = parentOf(grant)) chain.push(grant);
    return chain.slice(0, 32);
  };
  const rootOf = (at: number): number | undefined => {
    const above = parentOf(at);
    if (above === undefined) return kindAt(at) === 'grant' ? at : undefined;
    return rootOf(above);
  };
  const depthOf = (at: number): number =>
    1 + (parentOf(at) === undefined ? 0 : depthOf(parentOf(at) as number));
  const boundsOf = (grant: number): Bounds => {
    const { authorization } = authorizationAt(grant) as AuthorizationEvent;
    return authorization.kind === 'grant' ? (authorization.bounds ?? {}) : {};
  };
  const approvalAt = (at: number): ApprovalEvent | undefined =>
    typeOf(at) === 'approval' && takesPart(at) ? (entries[at].event as unknown as ApprovalEvent) : undefined;
  const revocationAt = (at: number): RevocationEvent | undefined =>
    typeOf(at) === 'revocation' && takesPart(at)
      ? (entries[at].event as unknown as RevocationEvent)
      : undefined;
  /** What is found at a record's own place. */
  const isInvalid = (at: number): boolean => codesAt(at).some((code) => INVALID.includes(code));
  const actionOf = (at: number) => {
    const { authorization } = authorizationAt(at) as AuthorizationEvent;
    if (authorization.kind !== 'action') throw new Error('no action');
    return authorization.action;
  };

  const correctedBefore = (at: number, grant: number, unit: string): AdjustmentEvent[] =>
    corrections
      .filter((each) => each.at < at && each.chain.includes(grant))
      // CHOICE: what the named grant does not cap changes nothing under its ancestors either.
      .filter((each) => capOf(boundsOf(each.chain[0]), unit) !== undefined)
      .map(({ event }) => event);
  const usedBefore = (at: number, grant: number, unit: string): Fraction =>
    add(
      sum(
        [...uses, ...retries]
          .filter((use) => use.at < at && use.chain.includes(grant))
          .map((use) => amountOf(use.counted, unit)),
      ),
      sum(
        correctedBefore(at, grant, unit).map(({ direction, meters }) =>
          direction === 'debit' ? amountOf(meters, unit) : subtract([0n, 1n], amountOf(meters, unit)),
        ),
      ),
    );
  /** CHOICE: what was used or debited by a guess, but not more than counts as used. */
  const estimatedBefore = (at: number, grant: number, unit: string): Fraction => {
    const guesses = uses
      .filter((use) => use.at < at && use.chain.includes(grant) && use.estimated.includes(unit))
      .map((use) => amountOf(use.counted, unit));
    const again = retries
      .filter((retry) => retry.at < at && retry.chain.includes(grant))
      .map((retry) => amountOf(retry.counted, unit));
    const debits = correctedBefore(at, grant, unit)
      .filter((each) => each.direction === 'debit' && each.meter_basis === 'estimated')
      .map(({ meters }) => amountOf(meters, unit));
    const estimated = sum([...guesses, ...again, ...debits]);
    const used = usedBefore(at, grant, unit);
    return isMore(estimated, used) ? used : estimated;
  };
  const isOpen = (action: number, at: number): boolean =>
    kindAt(action) === 'action' &&
    isAllow(action) &&
    !uses.some((use) => use.at < at && use.action === action);
  /** The starts of an authorization that no execution has settled, and no other start has taken over. */
  const openStarts = (of: number, at: number): Start[] =>
    starts.filter((start) => {
      const names = (event: { readonly prev_event_id?: { readonly b64: string } }): boolean =>
        event.prev_event_id?.b64 === idAt(start.at);
      const isSettled = uses.some(
        (use) =>
          use.at > start.at &&
          use.at < at &&
          use.event.auth_event_id.b64 === idAt(of) &&
          (use.action === of || names(use.event)),
      );
      const isTaken = starts.some(
        (other) => other.at > start.at && other.at < at && other.of === of && names(other.event),
      );
      return start.of === of && start.at < at && !isSettled && !isTaken;
    });
  const reservedBefore = (at: number, grant: number, unit: string): Fraction =>
    sum(
      places
        .filter((action) => action < at && isOpen(action, at) && chainOf(action).includes(grant))
        .map((action) => amountOf(actionOf(action).meter_reservation, unit)),
    );

  for (const at of places) {
    const find = (code: string, more: Omit<NaiveFinding, 'code' | 'at'> = {}): void => {
      all.push({ code, at, ...more });
    };
    if (entries[at].malformed) find('SCHEMA');
    if (!/^(authorization|execution|adjustment|approval|revocation|x\..*)$/.test(typeOf(at)))
      find('EVENT_TYPE_UNKNOWN', { cause: typeOf(at) });
    const previous = (entries[at].event as unknown as ExecutionEvent).prev_event_id?.b64;
    if (!entries[at].malformed && previous !== undefined && before(at, previous) === undefined) {
      find('PREV_EVENT_NOT_FOUND');
    }
    if (isDuplicate(at)) find('EVENT_DUPLICATE', { about: before(at, idAt(at)) });
    if (!takesPart(at)) continue;
    const timeOf = (place: number): bigint =>
      instantOf((entries[place].event as unknown as ExecutionEvent).occurred_at);
    if (places.some((other) => other < at && takesPart(other) && timeOf(other) > timeOf(at))) {
      // CHOICE: the first event that goes back in time is listed, with the number of the others.
      find('TIME_REGRESSION', { cause: '' });
    }
    const authorization = authorizationAt(at);
    if (authorization !== undefined) judgeAuthorization(at, authorization, find);
    if (typeOf(at) === 'execution') judgeExecution(at, entries[at].event as unknown as ExecutionEvent, find);
    if (typeOf(at) === 'adjustment')
      judgeAdjustment(at, entries[at].event as unknown as AdjustmentEvent, find);
    if (typeOf(at) === 'approval') judgeApproval(at, entries[at].event as unknown as ApprovalEvent, find);
    if (typeOf(at) === 'revocation') findGrant(at, revocationAt(at) as RevocationEvent, find);
    if (typeOf(at) === 'x.northroot.start') judgeStart(at, entries[at].event as unknown as StartEvent, find);
  }

  /** Rule 17. CHOICE: the first grant that names a slice is the one that spends it, its own record invalid or not. */
  function judgeSlice(at: number, find: Find): void {
    const sliceOf = (grant: number): string | undefined => {
      const { authorization } = authorizationAt(grant) as AuthorizationEvent;
      return authorization.kind === 'grant' && isAllow(grant) && authorization.slice
        ? JSON.stringify(authorization.slice)
        : undefined;
    };
    const slice = sliceOf(at);
    if (slice === undefined) return;
    const about = places.find((other) => other < at && kindAt(other) === 'grant' && sliceOf(other) === slice);
    if (about !== undefined) find('SLICE_REUSED', { about });
  }

  function judgeAuthorization(at: number, event: AuthorizationEvent, find: Find): void {
    const { authorization } = event;
    if (isAllow(at) && event.checks?.some(({ result }) => result === 'fail')) find('ALLOW_WITH_FAILED_CHECK');
    const status = event.hygiene?.status;
    if (isAllow(at) && status === 'Invalid') find('HYGIENE_NOT_OK');
    // CHOICE: also of a deny.
    if (status === 'Lossy' || status === 'Ambiguous') find('HYGIENE_LOSSY');
    const named = grantNamedBy(at);
    const reference = authorization.grant_event_id?.b64;
    // Rule 1: bounds are not held against a deny; that its link names an earlier grant is.
    if (reference !== undefined && named === undefined) find('GRANT_NOT_FOUND', { cause: reference });
    if (named !== undefined && kindAt(named) !== 'grant') {
      find('GRANT_NOT_A_GRANT', { about: named, cause: reference as string });
    }
    if (named !== undefined && kindAt(named) === 'grant' && isAllow(at) && !isAllow(named)) {
      find('GRANT_DENIED', { about: named });
    }
    if (authorization.kind === 'grant') {
      const { meter_caps: caps, action_caps: each, rate_limits: rates } = authorization.bounds ?? {};
      // CHOICE: once for each vector.
      for (const vector of [caps, each, rates]) if (hasDouble(vector)) find('QUANTITY_LOSSY');
      for (const { above } of authorization.bounds?.approvals ?? [])
        if (hasDouble(above)) find('QUANTITY_LOSSY');
      judgeSlice(at, find);
      const parent = parentOf(at);
      if (parent === undefined) return;
      judgeOrigin(event, parent, find);
      judgeDelegation(at, parent, find);
      const about = findWithdrawal(chainOf(parent), at);
      if (about !== undefined) find('GRANT_REVOKED', { about });
      return;
    }
    if (hasDouble(authorization.action.meter_reservation)) find('QUANTITY_LOSSY');
    judgeApprovalLinks(at, find);
    if (!isAllow(at)) return;
    const chain = chainOf(at);
    const withdrawal = findWithdrawal(chain, at);
    if (withdrawal !== undefined) find('GRANT_REVOKED', { about: withdrawal });
    judgeApprovals(at, chain, find);
    const key = authorization.action.request_key;
    // Rule 18. What the record of an earlier action itself is found to be shows in what was found at it.
    const earlier = places.find(
      (place) =>
        key !== undefined &&
        place < at &&
        kindAt(place) === 'action' &&
        isAllow(place) &&
        actionOf(place).request_key === key &&
        authorizationAt(place)?.principal_id === event.principal_id &&
        rootOf(place) === rootOf(at) &&
        !isInvalid(place),
    );
    if (earlier !== undefined) find('REQUEST_REPEATED', { about: earlier });
    const [grant] = chain;
    if (grant !== undefined && event.principal_id !== authorizationAt(grant)?.principal_id) {
      find('PRINCIPAL_MISMATCH', { about: grant });
    }
    if (grant !== undefined) judgeOrigin(event, grant, find);
    judgeTool(authorization.action.tool_name, chain, find);
    judgeTime(instantOf(event.occurred_at), chain, false, find);
    for (const { unit, amount } of authorization.action.meter_reservation ?? []) {
      judgeActionCaps(unit, amount, chain, find);
      // CHOICE: what reserves nothing is no reserved unit.
      if (isPositive(valueOf(amount))) judgeUncapped(unit, chain, find);
      for (const each of chain) {
        const cap = capOf(boundsOf(each), unit);
        const total = add(add(usedBefore(at, each, unit), reservedBefore(at, each, unit)), valueOf(amount));
        // CHOICE: whoever reserves nothing does not go over.
        if (cap !== undefined && isPositive(valueOf(amount)) && isMore(total, cap)) {
          find('RESERVATION_OVER_CAP', { part: unit, about: each });
        }
      }
    }
  }

  /** Rules 3 and 13, of allowed events. */
  function judgeOrigin(event: AuthorizationEvent, grant: number, find: Find): void {
    const above = authorizationAt(grant) as AuthorizationEvent;
    if (instantOf(event.occurred_at) < instantOf(above.occurred_at)) {
      find('AUTHORIZATION_BEFORE_GRANT', { about: grant });
    }
    const ours: Intents = event.intents;
    const theirs: Intents = above.intents;
    if (isSame(ours.intent_digest, theirs.intent_digest)) return;
    if (ours.user_intent_digest === undefined) find('INTENT_UNLINKED', { about: grant, cause: `${grant}` });
    else if (!isSame(ours.user_intent_digest, theirs.user_intent_digest ?? theirs.intent_digest)) {
      find('INTENT_MISMATCH', { about: grant });
    }
  }

  /** Rule 14. */
  function judgeActionCaps(unit: string, amount: Quantity, chain: readonly number[], find: Find): void {
    for (const grant of chain) {
      const cap = boundsOf(grant).action_caps?.find((meter) => meter.unit === unit);
      if (cap !== undefined && isMore(valueOf(amount), valueOf(cap.amount))) {
        find('ACTION_CAP_EXCEEDED', { part: unit, about: grant });
      }
    }
  }

  /** Rule 5, of a unit that no reservation holds: once for the nearest grant and the unit. */
  function judgeUncapped(unit: string, chain: readonly number[], find: Find): void {
    if (MEASURED.includes(unit)) return;
    if (chain.length === 0 || chain.some((grant) => capOf(boundsOf(grant), unit) !== undefined)) return;
    find('METER_UNCAPPED', { part: unit, about: chain[0], cause: `${chain[0]} ${unit}` });
  }

  /** The allowed grant that an adjustment, an approval or a revocation names. */
  function findGrant(
    at: number,
    event: { readonly grant_event_id: { readonly b64: string } },
    find: Find,
  ): number | undefined {
    const reference = event.grant_event_id.b64;
    const named = before(at, reference);
    if (named === undefined) find('GRANT_NOT_FOUND', { cause: reference });
    else if (kindAt(named) !== 'grant') find('GRANT_NOT_A_GRANT', { about: named, cause: reference });
    else if (!isAllow(named)) find('GRANT_DENIED', { about: named });
    else return named;
    return undefined;
  }

  /** §3.6. */
  function judgeApproval(at: number, event: ApprovalEvent, find: Find): void {
    if (hasDouble(event.meter_limit)) find('QUANTITY_LOSSY');
    findGrant(at, event, find);
    const reference = event.request_event_id?.b64;
    if (reference === undefined) return;
    const request = before(at, reference);
    if (request === undefined) find('AUTH_NOT_FOUND', { cause: reference });
    else if (authorizationAt(request) === undefined) {
      find('AUTH_NOT_AN_AUTHORIZATION', { about: request, cause: reference });
    }
  }

  /** The approvals, and rejects, that an action names. */
  function approvalsNamedBy(action: number): number[] {
    return (actionOf(action).approval_event_ids ?? [])
      .map(({ b64 }) => before(action, b64))
      .filter((at) => at !== undefined)
      .filter((at) => approvalAt(at) !== undefined);
  }

  function isForAction(approval: number, action: number): boolean {
    const event = approvalAt(approval) as ApprovalEvent;
    const { tool_name: tool, tool_params_digest: params } = actionOf(action);
    const grant = before(approval, event.grant_event_id.b64);
    return (
      event.decision === 'approve' &&
      !isInvalid(approval) &&
      grant !== undefined &&
      chainOf(action).includes(grant) &&
      event.tool_name === tool &&
      isSame(event.tool_params_digest, params)
    );
  }

  /** The action that uses an approval up. */
  function userOf(approval: number): number | undefined {
    return places.find(
      (action) =>
        kindAt(action) === 'action' &&
        isAllow(action) &&
        approvalsNamedBy(action).includes(approval) &&
        isForAction(approval, action),
    );
  }

  function usedUpBy(action: number): number[] {
    return approvalsNamedBy(action).filter((approval) => userOf(approval) === action);
  }

  /** Nothing is withdrawn that was used up before: but that is asked only of who uses it up. */
  function isWithdrawn(approval: number, at: number): boolean {
    const given = approvalAt(approval) as ApprovalEvent;
    return places.some((other) => {
      const event = approvalAt(other);
      return (
        approval < other &&
        other < at &&
        event?.decision === 'reject' &&
        !isInvalid(other) &&
        event.principal_id === given.principal_id &&
        isSame(event.grant_event_id, given.grant_event_id) &&
        event.tool_name === given.tool_name &&
        isSame(event.tool_params_digest, given.tool_params_digest)
      );
    });
  }

  /** Of the approvals that an action uses up: whether one is of a rule of this grant. */
  function isOfRule(approval: number, action: number, rule: ApprovalRule, grant: number): boolean {
    const event = approvalAt(approval) as ApprovalEvent;
    const chain = chainOf(action);
    const between = chain.slice(0, chain.indexOf(grant) + 1);
    const now = instantOf((authorizationAt(action) as AuthorizationEvent).occurred_at);
    const given = instantOf(event.occurred_at);
    const age = now > given ? now - given : given - now;
    return (
      !isWithdrawn(approval, action) &&
      between.includes(before(approval, event.grant_event_id.b64) as number) &&
      // CHOICE: the final `*` of a principal pattern stands for one or more characters, as in tool patterns.
      rule.approvers.some((pattern) => matches(pattern, event.principal_id)) &&
      !between.some((each) => authorizationAt(each)?.principal_id === event.principal_id) &&
      (event.expires_at === undefined || now < instantOf(event.expires_at)) &&
      (rule.max_age_s === undefined || age < BigInt(rule.max_age_s) * 1_000_000_000n)
    );
  }

  function hasApprovals(action: number, rule: ApprovalRule, grant: number): boolean {
    const approvers = usedUpBy(action)
      .filter((approval) => isOfRule(approval, action, rule, grant))
      .map((approval) => approvalAt(approval)?.principal_id);
    return new Set(approvers).size >= (rule.count ?? 1);
  }

  function isAskedByAction(action: number, rule: ApprovalRule): boolean {
    const { tool_name: tool, meter_reservation: reservation = [] } = actionOf(action);
    const isWithin = rule.above?.every(({ unit, amount }) =>
      reservation.some((meter) => meter.unit === unit && !isMore(valueOf(meter.amount), valueOf(amount))),
    );
    return rule.tools.some((pattern) => isAskedOf(pattern, tool)) && isWithin !== true;
  }

  function isAskedByExecution(event: ExecutionEvent, rule: ApprovalRule): boolean {
    const isAbove = rule.above?.some(({ unit, amount }) =>
      isMore(amountOf(event.meter_used, unit), valueOf(amount)),
    );
    return rule.tools.some((pattern) => isAskedOf(pattern, event.tool_name)) && isAbove !== false;
  }

  /** Rule 15. CHOICE: of several rules the first of the nearest grant is named. */
  function judgeMissing(
    chain: readonly number[],
    isMissing: (rule: ApprovalRule, grant: number) => boolean,
    find: Find,
  ): void {
    const grant = chain.find((each) => boundsOf(each).approvals?.some((rule) => isMissing(rule, each)));
    if (grant !== undefined) find('APPROVAL_MISSING', { about: grant });
  }

  /** Rule 15. A unit that a limit does not name is not limited. */
  function judgeLimits(action: number, amounts: Meters, find: Find): void {
    for (const { unit, amount } of amounts) {
      const exceeded = usedUpBy(action).some((approval) =>
        approvalAt(approval)?.meter_limit?.some(
          (limit) => limit.unit === unit && isMore(valueOf(amount), valueOf(limit.amount)),
        ),
      );
      if (exceeded) find('APPROVAL_EXCEEDED', { part: unit });
    }
  }

  /** Rule 15, of the links of an action; those of a denied one are looked at too. */
  function judgeApprovalLinks(at: number, find: Find): void {
    for (const { b64: reference } of actionOf(at).approval_event_ids ?? []) {
      const named = before(at, reference);
      if (named === undefined) find('APPROVAL_NOT_FOUND', { cause: reference });
      else if (approvalAt(named) === undefined) {
        find('APPROVAL_NOT_AN_APPROVAL', { about: named, cause: reference });
      }
    }
  }

  /** Rule 15, of an allowed action. */
  function judgeApprovals(at: number, chain: readonly number[], find: Find): void {
    for (const approval of approvalsNamedBy(at)) {
      const user = isForAction(approval, at) ? userOf(approval) : at;
      if (user !== at) find('APPROVAL_REUSED', { about: user });
    }
    judgeLimits(at, actionOf(at).meter_reservation ?? [], find);
    judgeMissing(chain, (rule, grant) => isAskedByAction(at, rule) && !hasApprovals(at, rule, grant), find);
  }

  /**
   * Rule 16: from where to where a grant is revoked or suspended, as of `at`, and from where to where that is a `stop`. The end of
   * what has no end is that of the ledger.
   */
  function withdrawals(grant: number, at: number): { readonly all: Period[]; readonly stops: Period[] } {
    const all: Period[] = [];
    const stops: Period[] = [];
    let since: number | undefined;
    let stoppedSince: number | undefined;
    let isFinal = false;
    const close = (to: number): void => {
      if (since !== undefined) all.push({ from: since, to });
      if (stoppedSince !== undefined) stops.push({ from: stoppedSince, to });
      since = undefined;
      stoppedSince = undefined;
    };
    for (const place of places) {
      const event = place < at ? revocationAt(place) : undefined;
      if (event === undefined || isInvalid(place) || before(place, event.grant_event_id.b64) !== grant)
        continue;
      if (event.effect === 'resume') {
        if (!isFinal) close(place);
        continue;
      }
      since ??= place;
      if (event.in_flight === 'stop') stoppedSince ??= place;
      isFinal ||= event.effect === 'revoke';
    }
    close(entries.length);
    return { all, stops };
  }

  /**
   * Rule 16, of an allowed action, of a delegated grant, and of an execution that names a grant: the revocation that it is
   * under. CHOICE: that of the nearest grant.
   */
  function findWithdrawal(chain: readonly number[], at: number, started = at): number | undefined {
    return chain
      .flatMap((grant) => withdrawals(grant, at).all)
      .find(({ from, to }) => to === entries.length && started >= from)?.from;
  }

  /**
   * Rule 16, of an execution of an action. CHOICE: the last stop of the nearest grant that stops it, even if the start that the
   * execution names exempts it from that one and not from an earlier one.
   */
  function findStop(action: number, at: number, started = at): number | undefined {
    return chainOf(action)
      .map((grant) => withdrawals(grant, at).stops.filter(({ to }) => action < to))
      .find((stops) => stops.some(({ from }) => started >= from))
      ?.at(-1)?.from;
  }

  /** Rule 11. */
  function judgeAdjustment(at: number, event: AdjustmentEvent, find: Find): void {
    if (hasDouble(event.meters)) find('QUANTITY_LOSSY');
    const grant = findGrant(at, event, find);
    if (event.execution_event_id !== undefined) {
      const execution = before(at, event.execution_event_id.b64);
      if (execution === undefined || typeOf(execution) !== 'execution' || !takesPart(execution)) {
        find('EXECUTION_NOT_FOUND', { about: execution });
      } else if (
        // CHOICE: not asked where there is no grant to ask it of.
        grant !== undefined &&
        !uses.some((use) => use.at === execution && use.chain.includes(grant))
      ) {
        find('EXECUTION_NOT_UNDER_GRANT', { about: execution });
      }
    }
    if (grant === undefined) return;
    const chain = chainOf(grant);
    const isCredit = event.direction === 'credit';
    const own = chain.find((each) => authorizationAt(each)?.principal_id === event.principal_id);
    if (isCredit && own !== undefined) find('SELF_CREDIT', { about: own });
    let isRefused = own !== undefined;
    for (const { unit, amount } of event.meters) {
      if (capOf(boundsOf(grant), unit) === undefined) {
        find('METER_UNCAPPED', { part: unit, about: grant, cause: `${grant} ${unit}` });
        continue;
      }
      const capping = chain.filter((each) => capOf(boundsOf(each), unit) !== undefined);
      if (isCredit) {
        // CHOICE: one finding a unit, for the nearest.
        const short = capping.find((each) => isMore(valueOf(amount), usedBefore(at, each, unit)));
        if (short !== undefined) find('ADJUSTMENT_EXCEEDED', { part: unit, about: short });
        isRefused ||= short !== undefined;
        continue;
      }
      for (const each of capping) {
        const total = add(add(usedBefore(at, each, unit), reservedBefore(at, each, unit)), valueOf(amount));
        if (isPositive(valueOf(amount)) && isMore(total, capOf(boundsOf(each), unit) as Fraction)) {
          find('METER_CAP_EXCEEDED', { part: unit, about: each });
        }
      }
    }
    // CHOICE: no credit by a record whose evidence is broken.
    if (isCredit && (isRefused || codesAt(at).some((code) => INVALID.includes(code)))) return;
    corrections.push({ at, event, chain });
  }

  /** §3.8. A start that does not count is no finding. */
  function judgeStart(at: number, event: StartEvent, find: Find): void {
    const of = before(at, event.auth_event_id.b64);
    if (!hasFormOfStart(event) || isInvalid(at)) return;
    if (of === undefined || !isAllow(of) || authorizationAt(of)?.principal_id !== event.principal_id) return;
    const isAction = kindAt(of) === 'action';
    if (isAction) {
      const { tool_name: tool, tool_params_digest: params } = actionOf(of);
      const isAlike = event.tool_params_digest !== undefined && isSame(event.tool_params_digest, params);
      if (!isOpen(of, at) || event.tool_name !== tool || !isAlike) return;
    }
    const open = openStarts(of, at);
    const taken = open.find((start) => idAt(start.at) === event.prev_event_id?.b64);
    const limit = isAction ? undefined : boundsOf(of).concurrency_limit;
    const most = isAction ? 1 : limit === undefined ? 1_000 : Math.min(Number(valueOf(limit)[0]), 1_000);
    if (taken === undefined && open.length >= most) return;
    starts.push({ at, event, of });
    if (taken === undefined) return;
    const again = isAction ? actionOf(of).meter_reservation : taken.event.meter_known;
    const counted = (again ?? []).filter(({ amount }) => isPositive(valueOf(amount)));
    const chain = chainOf(of);
    for (const { unit, amount } of counted) {
      for (const grant of chain) {
        const cap = capOf(boundsOf(grant), unit);
        const held = add(usedBefore(at, grant, unit), reservedBefore(at, grant, unit));
        if (cap !== undefined && isMore(add(held, valueOf(amount)), cap))
          find('METER_CAP_EXCEEDED', { about: grant });
      }
    }
    retries.push({ at, chain, counted });
  }

  /** Rule 9. CHOICE: a bound that the parent has and its child has not is looser, whatever the parent's is. */
  function judgeDelegation(at: number, parent: number, find: Find): void {
    const own = boundsOf(at);
    const bounds = boundsOf(parent);
    const exceed = (part: string): void => find('DELEGATION_EXCEEDED', { part, about: parent });
    if (depthOf(at) > 32) exceed('grant_event_id');
    // CHOICE: once, for the nearest ancestor that does not allow it.
    const shallow = chainOf(parent).find((ancestor, above) => {
      const { max_delegation_depth: depth } = boundsOf(ancestor);
      return depth !== undefined && above + 1 > depth;
    });
    if (shallow !== undefined) find('DELEGATION_EXCEEDED', { part: 'grant_event_id', about: shallow });
    const covered = (pattern: string): boolean =>
      (bounds.allowed_tools ?? []).some((other) => covers(other, pattern));
    if (!(own.allowed_tools ?? []).every(covered)) exceed('allowed_tools');
    for (const name of ['meter_caps', 'action_caps', 'rate_limits'] as const) {
      const keyOf = (unit: string): string =>
        name === 'rate_limits' ? rateOf(unit).unit + String(rateOf(unit).window) : unit;
      for (const { unit, amount } of bounds[name] ?? []) {
        const ours = (own[name] ?? []).find((meter) => keyOf(meter.unit) === keyOf(unit));
        if (ours === undefined || isMore(valueOf(ours.amount), valueOf(amount))) exceed(`${name} ${unit}`);
      }
    }
    if (bounds.not_before !== undefined) {
      const isEarlier =
        own.not_before === undefined || instantOf(own.not_before) < instantOf(bounds.not_before);
      if (isEarlier) exceed('not_before');
    }
    if (bounds.expires_at !== undefined) {
      const isLater =
        own.expires_at === undefined || instantOf(own.expires_at) > instantOf(bounds.expires_at);
      if (isLater) exceed('expires_at');
    }
    if (bounds.concurrency_limit !== undefined) {
      const isLooser =
        own.concurrency_limit === undefined ||
        isMore(valueOf(own.concurrency_limit), valueOf(bounds.concurrency_limit));
      if (isLooser) exceed('concurrency_limit');
    }
    if (bounds.output_mode !== undefined) {
      // CHOICE: from strict to loose.
      const modes = ['digest_only', 'allow_contentref', 'allow_inline'];
      const isLooser =
        own.output_mode === undefined || modes.indexOf(own.output_mode) > modes.indexOf(bounds.output_mode);
      if (isLooser) exceed('output_mode');
    }
    // CHOICE: once, and only of resources that the child names.
    const isNamed = (resource: object): boolean =>
      (bounds.resources ?? []).some((other) => isSame(other, resource));
    if ((bounds.resources ?? []).length > 0 && !(own.resources ?? []).every(isNamed)) {
      find('RESOURCE_NOT_GRANTED', { about: parent });
    }
  }

  /** Rule 4. CHOICE: of several grants that are broken the nearest is named. */
  function judgeTool(tool: string, chain: readonly number[], find: Find): void {
    const closed = chain.find((grant) => !boundsOf(grant).allowed_tools?.some((each) => allows(each, tool)));
    if (closed !== undefined) find('TOOL_NOT_ALLOWED', { about: closed });
  }

  /** Rule 3, likewise. */
  function judgeTime(instant: bigint, chain: readonly number[], mayBeLate: boolean, find: Find): void {
    const unborn = chain.find((grant) => {
      const { not_before: begin } = boundsOf(grant);
      return begin !== undefined && instant < instantOf(begin);
    });
    if (unborn !== undefined) find('GRANT_NOT_YET_VALID', { about: unborn });
    const expired = chain.find((grant) => {
      const { expires_at: end } = boundsOf(grant);
      return end !== undefined && instant >= instantOf(end);
    });
    if (expired !== undefined && !mayBeLate) find('GRANT_EXPIRED', { about: expired });
  }

  function judgeExecution(at: number, event: ExecutionEvent, find: Find): void {
    if (hasDouble(event.meter_used)) find('QUANTITY_LOSSY');
    const [started, ended] = [event.started_at, event.ended_at].map((text) => text && instantOf(text)) as [
      bigint | undefined,
      bigint | undefined,
    ];
    // CHOICE: the code for ended_at before started_at.
    if (started !== undefined && ended !== undefined && ended < started) find('TIMESTAMP_INVALID');
    if (started !== undefined && started > instantOf(event.occurred_at)) find('TIME_INCONSISTENT');
    const reference = event.auth_event_id.b64;
    const named = before(at, reference);
    if (named === undefined) {
      const later = places.find((other) => other > at && idAt(other) === reference);
      const isComing = (place: number): boolean => typeOf(place) === 'authorization';
      const cause = `${reference} to come`;
      if (later === undefined) find('AUTH_NOT_FOUND', { cause });
      else if (isComing(later)) find('AUTH_AFTER_EXECUTION', { about: later, cause });
      else find('AUTH_NOT_AN_AUTHORIZATION', { about: later, cause });
      return;
    }
    const authorization = authorizationAt(named);
    if (authorization === undefined) {
      find('AUTH_NOT_AN_AUTHORIZATION', { about: named, cause: reference });
      return;
    }
    const instant = started ?? instantOf(event.occurred_at);
    const left = [event.output_digest, event.output_ref, ...(event.resources_touched ?? [])];
    const leftNothing = left.every((each) => each === undefined);
    const isReuse = isAllow(named) && kindAt(named) === 'action' && !isOpen(named, at);
    const isRelease =
      isOpen(named, at) &&
      event.outcome === 'failure' &&
      event.error_code === 'ABANDONED' &&
      event.meter_used.length === 0 &&
      leftNothing &&
      (ended === undefined || ended === started);
    const usedNothing = event.meter_used.every(({ amount }) => !isPositive(valueOf(amount)));
    const isBlocked = !isAllow(named) && event.outcome === 'failure' && usedNothing && leftNothing;
    if (isReuse) {
      // CHOICE: a second execution is compared with the action in nothing; it counts against the action's grants.
      find('AUTHORIZATION_REUSED', { about: named, cause: reference });
    } else {
      if (event.principal_id !== authorization.principal_id) find('PRINCIPAL_MISMATCH', { about: named });
      if (!isSame(event.intents.intent_digest, authorization.intents.intent_digest)) {
        find('INTENT_MISMATCH', { about: named });
      }
      if (authorization.authorization.kind === 'action') {
        const { tool_name: tool, tool_params_digest: params } = authorization.authorization.action;
        if (event.tool_name !== tool) find('TOOL_MISMATCH', { about: named });
        if (event.tool_params_digest === undefined) {
          if (!isBlocked && !isRelease) find('EVIDENCE_MISSING', { about: named });
        } else if (!isSame(event.tool_params_digest, params)) {
          find('TOOL_PARAMS_MISMATCH', { about: named });
        }
      }
      if (!isAllow(named)) {
        if (isBlocked) blocked.push(at);
        else find('EXECUTION_UNDER_DENY', { about: named });
        // CHOICE: its time is not held against an attempt that a deny blocked, nor against one that it did not.
        return;
      }
    }
    const chain = chainOf(named);
    const action = kindAt(named) === 'action' && !isReuse ? named : undefined;
    judgeTool(event.tool_name, chain, find);
    // CHOICE: one finding, for the nearest.
    const later = [...(action === undefined ? [] : [action]), ...chain].find(
      (each) => instant < instantOf((authorizationAt(each) as AuthorizationEvent).occurred_at),
    );
    if (later !== undefined) find('EXECUTION_BEFORE_AUTHORIZATION', { about: later });
    const isSettlement = action !== undefined && !isRelease && actionOf(action).tool_name === SLICE;
    const mayBeLate = isRelease || isSettlement;
    judgeTime(instant, chain, mayBeLate, find);
    const start = openStarts(named, at).find(
      (each) =>
        idAt(each.at) === event.prev_event_id?.b64 &&
        each.event.principal_id === event.principal_id &&
        each.event.tool_name === event.tool_name,
    );
    const revocation =
      kindAt(named) === 'action' ? findStop(named, at, start?.at) : findWithdrawal(chain, at, start?.at);
    if (revocation !== undefined && !mayBeLate) {
      find('GRANT_REVOKED', { about: revocation });
    }
    if (action !== undefined) judgeLimits(action, event.meter_used, find);
    // Rule 2: a second execution is not held against the approvals of its action.
    if (!isRelease && !isReuse) {
      const isMissing = (rule: ApprovalRule, grant: number): boolean =>
        isAskedByExecution(event, rule) &&
        (action === undefined || (!isAskedByAction(action, rule) && !hasApprovals(action, rule, grant)));
      judgeMissing(chain, isMissing, find);
    }
    const expiry = action === undefined ? undefined : actionOf(action).expires_at;
    if (expiry !== undefined && !mayBeLate && instant >= instantOf(expiry))
      find('ACTION_EXPIRED', { about: action });
    const begun = isRelease ? openStarts(named, at).at(0) : undefined;
    if (begun !== undefined) find('RELEASE_OF_STARTED', { about: begun.at });
    // A failure that left nothing is not held to what it does not state, unless it gives back what was started.
    const mayBeSilent =
      action === undefined || (event.outcome === 'failure' && leftNothing && begun === undefined);
    const reserved = mayBeSilent ? [] : (actionOf(action).meter_reservation ?? []);
    const silent = reserved.filter(
      ({ unit, amount }) =>
        isPositive(valueOf(amount)) && !event.meter_used.some((meter) => meter.unit === unit),
    );
    judgeMeters(at, event, action, chain, silent, find);
    for (const { unit } of silent) {
      if (MEASURED.includes(unit) || isRelease) continue;
      find('METER_UNREPORTED', { about: action, cause: `${chain[0] ?? ''} ${unit}` });
    }
    const counted = [...event.meter_used, ...silent];
    const basis = (unit: string): string | undefined =>
      event.meter_basis_by_unit?.[unit] ?? event.meter_basis;
    const estimated = [...event.meter_used.filter(({ unit }) => basis(unit) === 'estimated'), ...silent].map(
      ({ unit }) => unit,
    );
    uses.push({ at, event, chain, action, isRelease, isSettlement, counted, estimated });
    if (!mayBeLate) {
      judgeRates(event, instant, chain, find);
      judgeConcurrency(event, started, ended, chain, find);
    }
    const strict = chain.find((grant) => boundsOf(grant).output_mode === 'digest_only');
    if (strict !== undefined && event.output_ref !== undefined)
      find('OUTPUT_MODE_EXCEEDED', { about: strict });
    for (const resource of event.resources_touched ?? []) {
      const closed = chain.find((grant) => {
        const { resources } = boundsOf(grant);
        return resources !== undefined && !resources.some((other) => isSame(other, resource));
      });
      if (closed !== undefined) find('RESOURCE_NOT_GRANTED', { about: closed });
    }
  }

  /** Rule 5. */
  function judgeMeters(
    at: number,
    event: ExecutionEvent,
    action: number | undefined,
    chain: readonly number[],
    silent: Meters,
    find: Find,
  ): void {
    const reservation = action === undefined ? [] : (actionOf(action).meter_reservation ?? []);
    for (const { unit, amount } of event.meter_used) {
      const own = valueOf(amount);
      const given = reservation.find((meter) => meter.unit === unit);
      if (given !== undefined && isMore(own, valueOf(given.amount))) {
        find('RESERVATION_EXCEEDED', { part: unit, about: action });
      }
      judgeActionCaps(unit, amount, chain, find);
      // CHOICE: a unit of which nothing was used is not a used unit.
      if (given === undefined && isPositive(own)) judgeUncapped(unit, chain, find);
    }
    for (const meter of [...event.meter_used, ...silent]) {
      const { unit, amount } = meter;
      const own = valueOf(amount);
      for (const grant of chain) {
        const cap = capOf(boundsOf(grant), unit);
        if (cap === undefined) continue;
        const back = amountOf(reservation, unit);
        const used = add(usedBefore(at, grant, unit), own);
        const reserved = subtract(reservedBefore(at, grant, unit), back);
        // CHOICE: an execution goes over when it used something and either use alone is over now, or use and reservations
        // are over now and it used more than it had reserved: else it was the reservation that went over.
        const isOver = isMore(used, cap) || (isMore(add(used, reserved), cap) && isMore(own, back));
        // CHOICE: what is not stated has no place of its own.
        const part = silent.includes(meter) ? undefined : unit;
        if (isPositive(own) && isOver) find('METER_CAP_EXCEEDED', { part, about: grant });
      }
    }
  }

  /** The executions that happened under a grant, in time; the one that is being judged is the last of them. */
  function happened(grant: number): ExecutionEvent[] {
    return uses
      .filter(({ chain, isRelease, isSettlement }) => chain.includes(grant) && !isRelease && !isSettlement)
      .map(({ event }) => event);
  }

  /**
   * Rule 6. CHOICE: executions may be recorded in any order; the one with whose recording a window that contains it is too
   * full breaks the limit, provided that it adds to it.
   */
  function judgeRates(event: ExecutionEvent, instant: bigint, chain: readonly number[], find: Find): void {
    for (const grant of chain) {
      for (const { unit: limited, amount: limit } of boundsOf(grant).rate_limits ?? []) {
        const { unit, window } = rateOf(limited);
        const part = (execution: ExecutionEvent): Fraction =>
          unit === 'calls'
            ? [1n, 1n]
            : amountOf(uses.find((use) => use.event === execution)?.counted ?? [], unit);
        const isWithin = (x: bigint, t: bigint): boolean => t - window < x && x <= t;
        const tooFull = happened(grant)
          .map(instantOfExecution)
          .some((t) => {
            if (!isWithin(instant, t)) return false;
            const inWindow = happened(grant).filter((other) => isWithin(instantOfExecution(other), t));
            return isMore(sum(inWindow.map(part)), valueOf(limit));
          });
        if (tooFull && isPositive(part(event))) find('RATE_LIMIT_EXCEEDED', { part: limited, about: grant });
      }
    }
  }

  /** Rule 7. An execution that takes no time is there at its instant. */
  function judgeConcurrency(
    event: ExecutionEvent,
    started: bigint | undefined,
    ended: bigint | undefined,
    chain: readonly number[],
    find: Find,
  ): void {
    const limiting = chain.filter((grant) => boundsOf(grant).concurrency_limit !== undefined);
    if (limiting.length > 0 && (started === undefined || ended === undefined)) {
      find('EVIDENCE_MISSING', { about: limiting[0] });
      return;
    }
    const runsAt = (execution: ExecutionEvent, x: bigint): boolean =>
      execution.started_at !== undefined &&
      execution.ended_at !== undefined &&
      (instantOf(execution.started_at) === instantOf(execution.ended_at)
        ? x === instantOf(execution.started_at)
        : instantOf(execution.started_at) <= x && x < instantOf(execution.ended_at));
    for (const grant of limiting) {
      const limit = valueOf(boundsOf(grant).concurrency_limit as Quantity);
      const tooMany = happened(grant)
        .map(({ started_at: text }) => text && instantOf(text))
        .some((x) => {
          if (x === undefined || x === '' || !runsAt(event, x)) return false;
          return isMore([BigInt(happened(grant).filter((other) => runsAt(other, x)).length), 1n], limit);
        });
      if (tooMany) find('CONCURRENCY_EXCEEDED', { about: grant });
    }
  }

  function codesAt(at: number): string[] {
    return all.filter((finding) => finding.at === at).map(({ code }) => code);
  }
  const end = entries.length;
  return {
    verdicts: places.map((at) => {
      if (isInvalid(at)) return 'invalid';
      if (codesAt(at).some((code) => VIOLATION.includes(code))) return 'violation';
      const isDeny = authorizationAt(at)?.decision === 'deny';
      return isDeny || blocked.includes(at) ? 'denied' : 'ok';
    }),
    findings: all.flatMap((finding, index) => {
      const isAlike = (other: NaiveFinding): boolean =>
        other.cause !== undefined && other.code === finding.code && other.cause === finding.cause;
      if (all.slice(0, index).some(isAlike)) return [];
      return { ...finding, folded: all.slice(index + 1).filter(isAlike).length };
    }),
    grants: places
      .filter((at) => kindAt(at) === 'grant' && isAllow(at))
      .map((at) => ({
        at,
        // CHOICE: with the settlements of slices, which count in no rate.
        executions: uses.filter(({ chain, isRelease }) => chain.includes(at) && !isRelease).length,
        meters: (boundsOf(at).meter_caps ?? []).map(({ unit, amount }) => ({
          unit,
          cap: valueOf(amount),
          used: usedBefore(end, at, unit),
          estimated: estimatedBefore(end, at, unit),
          reserved: reservedBefore(end, at, unit),
        })),
      })),
    open: places.filter((at) => isOpen(at, end)),
    running: places.filter((at) =>
      starts.some((each) => each.at === at && openStarts(each.of, end).includes(each)),
    ),
    retries: retries.map(({ at }) => at),
    approvals: places.flatMap((at) => {
      const usedBy = approvalAt(at) === undefined ? undefined : userOf(at);
      return usedBy === undefined ? [] : [{ at, usedBy }];
    }),
    // CHOICE: one of a denied grant withdraws nothing.
    revocations: places.filter(
      (at) => revocationAt(at) !== undefined && !isInvalid(at) && !codesAt(at).includes('GRANT_DENIED'),
    ),
    unstated: [
      ...uses.flatMap(({ event, counted }) => counted.slice(event.meter_used.length)),
      ...retries.flatMap(({ counted }) => counted),
    ],
  };
}

type Find = (code: string, more?: Omit<NaiveFinding, 'code' | 'at'>) => void;

function instantOfExecution(event: ExecutionEvent): bigint {
  return instantOf(event.started_at ?? event.occurred_at);
}

/** Nanoseconds since 1970. */
function instantOf(text: string): bigint {
  const [whole, fraction = ''] = text.slice(0, -1).split('.');
  return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** What a rate unit limits, and over how many nanoseconds. */
function rateOf(limited: string): { readonly unit: string; readonly window: bigint } {
  const [, unit, per] = /^(.*)\.per_([0-9a-z]*)$/.exec(limited) as unknown as string[];
  const seconds: Record<string, number> = { sec: 1, min: 60, hour: 3_600, day: 86_400, week: 604_800 };
  const letters: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
  const length = seconds[per] ?? Number(per.slice(0, -1)) * letters[per.slice(-1)];
  return { unit, window: BigInt(length) * 1_000_000_000n };
}

function matches(pattern: string, tool: string): boolean {
  const prefix = pattern.slice(0, -1);
  return pattern.endsWith('*') ? tool.startsWith(prefix) && tool !== prefix : tool === pattern;
}

/** Rule 4: no wildcard allows a slice. */
function allows(pattern: string, tool: string): boolean {
  return tool === SLICE ? pattern === tool : matches(pattern, tool);
}

/** Rule 15. */
function isAskedOf(pattern: string, tool: string): boolean {
  return matches(pattern, tool);
}

function covers(parent: string, child: string): boolean {
  if (!child.endsWith('*')) return allows(parent, child);
  return parent.endsWith('*') && child.slice(0, -1).startsWith(parent.slice(0, -1));
}

/** Of members that it does not need nothing is asked. */
function hasFormOfStart({
  recorder,
  started_at: started,
  tool_name: tool,
  meter_known: known,
}: StartEvent): boolean {
  const units = known?.map(({ unit }) => unit);
  return (
    recorder !== undefined &&
    /^[A-Za-z0-9_-]{16,128}$/.test(recorder) &&
    started !== undefined &&
    tool !== undefined &&
    units !== undefined &&
    new Set(units).size === units.length
  );
}

function isSame(a: object, b: object): boolean {
  const inOrder = (value: object): string => JSON.stringify(Object.entries(value).sort());
  return inOrder(a) === inOrder(b);
}

function hasDouble(vector: Meters | undefined): boolean {
  return vector?.some(({ amount }) => amount.t === 'f64') ?? false;
}

function amountOf(vector: Meters | undefined, unit: string): Fraction {
  const meter = vector?.find((each) => each.unit === unit);
  return meter === undefined ? [0n, 1n] : valueOf(meter.amount);
}

function capOf({ meter_caps: caps = [] }: Bounds, unit: string): Fraction | undefined {
  return caps.some((meter) => meter.unit === unit) ? amountOf(caps, unit) : undefined;
}

export function valueOf(quantity: Quantity): Fraction {
  switch (quantity.t) {
    case 'int':
      return [BigInt(quantity.v), 1n];
    case 'dec':
      return [BigInt(quantity.m), 10n ** BigInt(quantity.s)];
    case 'rat':
      return [BigInt(quantity.n), BigInt(quantity.d)];
    case 'f64': {
      let double = Buffer.from(quantity.bits, 'hex').readDoubleBE();
      let d = 1n;
      for (; !Number.isInteger(double); double *= 2) d *= 2n;
      return [BigInt(double), d];
    }
  }
}

export function add([an, ad]: Fraction, [bn, bd]: Fraction): Fraction {
  return [an * bd + bn * ad, ad * bd];
}

export function subtract(a: Fraction, [n, d]: Fraction): Fraction {
  return add(a, [-n, d]);
}

function sum(fractions: readonly Fraction[]): Fraction {
  return fractions.reduce(add, [0n, 1n]);
}

export function isMore([an, ad]: Fraction, [bn, bd]: Fraction): boolean {
  return an * bd > bn * ad;
}

function isPositive([n]: Fraction): boolean {
  return n > 0n;
}
