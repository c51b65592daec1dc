/**
 * The rules of bounds (SPEC §8, rules 3 to 8 and 14 to 17): which bounds an action or execution breaks. Judging changes nothing; its result can
 * be applied. So the same code verifies a ledger and answers a gateway that asks before it acts.
 */

import { formatRational } from '../../base/value/format-rational.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  MAX_DENOMINATOR_DIGITS,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { orderTimestamps, parseTimestamp } from '../../base/value/timestamp.js';
import { isMeasuredUnit } from '../../format/event/meter-basis.js';
import type { UnitAmount, UnitAmounts } from '../../format/event/outline.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { type ApprovedBy, asksToAct, asksToUse, checkApprovals, checkApproved } from './approval.js';
import { type Fraction, fractionOf, isLong, sumOf } from './fraction.js';
import {
  type Account,
  type Action,
  type ApprovalRule,
  type Grant,
  grantChain,
  type RateLimit,
  resourceKey,
} from './grant.js';
import {
  checkActionCaps,
  checkOrigin,
  exceedsPrecision,
  type Judgement,
  overCap,
  overLimit,
  uncapped,
} from './judgement.js';
import type { OpenStart } from './started.js';
import { addInterval, exactOverlap, findExcess, fitsWindows, peakOverlap } from './timeline.js';
import { allowsTool, SLICE_TOOL } from './tool-set.js';
import { checkSettled, checkStopped, checkWithdrawn } from './withdrawal.js';

/** An execution for the rules of rates and concurrency. */
interface TimedUse {
  readonly occurredAt: string;
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
  /** Each unit once. */
  readonly used: UnitAmounts;
}

/** An execution for the rules of bounds. */
export interface ExecutionFacts extends TimedUse {
  readonly toolName: string;
  /** Whether `used` is estimated. */
  readonly isEstimated?: boolean;
  /** The same for single units, where that differs. */
  readonly isUnitEstimated?: ReadonlyMap<string, boolean> | undefined;
  /** Whether reserved units that `used` omits count as used (rules 5 and 8). */
  readonly countsSilence?: boolean;
  readonly hasOutputRef: boolean;
  readonly resources: readonly { readonly kind: string; readonly reference: string }[];
  /** Whether it only releases a reservation (rule 8): rates and concurrency then do not apply. */
  readonly isRelease: boolean;
  /** The `seq` of its action, executed before or not; undefined where it names a grant. */
  readonly actionSeq: number | undefined;
  /** The open start of the same authorization and tool that it names. */
  readonly start: OpenStart | undefined;
}

const ONE: Rational = { n: 1n, d: 1n };

/**
 * Judges an allowed action under its grant, if any: times, intent, tool, reservation, approvals.
 *
 * @param approved - The approvals that it names, where some count.
 */
export function judgeAction(action: Action, approved?: ApprovedBy): Judgement {
  const findings: RuleFinding[] = [];
  const { grant: own } = action;
  const chain = grantChain(own);
  if (own !== undefined) checkOrigin(action, own, findings);
  checkTool(chain, action.toolName, '/authorization/action/tool_name', findings);
  checkStart(chain, action.occurredAt, '/occurred_at', findings);
  checkExpiry(chain, action.occurredAt, '/occurred_at', findings);
  const changes: AccountChange[] = [];
  let dropped: string[] | undefined;
  let index = 0;
  for (const [unit, amount] of action.reservation) {
    const place = index++;
    if (amount.n === 0n) continue;
    const pointer = (): string => `/authorization/action/meter_reservation/${place}/amount`;
    checkActionCaps(unit, amount, pointer, chain, findings);
    const first = changes.length;
    let isCapped = false;
    let isTooFine = false;
    for (const grant of chain) {
      const account = grant.accounts.get(unit);
      if (account === undefined) continue;
      isCapped = true;
      const reserved = addRationals(account.reserved, amount);
      if (exceedsDenominatorLimit(reserved)) {
        if (!isTooFine) exceedsPrecision(reserved, pointer(), findings);
        isTooFine = true;
      }
      const { used, estimated } = account;
      changes.push({ grant, account, used, estimated, reserved });
    }
    if (own !== undefined && !isCapped && !isMeasuredUnit(unit))
      findings.push(uncapped(unit, pointer(), own));
    if (isTooFine) {
      // It is reserved nowhere, so it must not be returned later.
      (dropped ??= []).push(unit);
      changes.length = first;
      continue;
    }
    for (let i = first; i < changes.length; i += 1) {
      const { grant, account, reserved } = changes[i] as AccountChange;
      const total = addRationals(account.used, reserved);
      if (compareRationals(total, account.cap) > 0)
        findings.push(overCap('RESERVATION_OVER_CAP', pointer(), grant, unit, account, amount, total));
    }
  }
  for (const [place, [unit, amount]] of [...action.reservation].entries()) {
    const pointer = (): string => `/authorization/action/meter_reservation/${place}/amount`;
    checkApproved(unit, amount, pointer, approved?.limits, findings);
  }
  const asks = (rule: ApprovalRule): boolean => asksToAct(rule, action);
  checkApprovals(chain, asks, approved, '/authorization/action/approval_event_ids', findings);
  checkWithdrawn(chain, findings);
  return {
    findings,
    apply: () => {
      applyChanges(changes);
      for (const unit of dropped ?? []) action.reservation.delete(unit);
    },
  };
}

/** The sums of an account after the event. */
interface AccountChange {
  readonly grant: Grant;
  readonly account: Account;
  readonly used: Rational;
  readonly estimated: Rational;
  readonly reserved: Rational;
}

function applyChanges(changes: readonly AccountChange[]): void {
  for (const { account, used, estimated, reserved } of changes) {
    account.used = used;
    account.estimated = estimated;
    account.reserved = reserved;
  }
}

/**
 * Judges an execution that was allowed: by an action, by a grant, or by an action that is spent already (`action` undefined,
 * its `grant` given).
 *
 * @param approved - The approvals of the action.
 */
export function judgeExecution(
  facts: ExecutionFacts,
  action: Action | undefined,
  grant: Grant | undefined,
  approved?: ApprovedBy,
): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  const chain = grantChain(grant);
  const instant = facts.startedAt ?? facts.occurredAt;
  const instantPointer = facts.startedAt === undefined ? '/occurred_at' : '/started_at';
  checkTool(chain, facts.toolName, '/tool_name', findings);
  checkOrder(action, chain, instant, instantPointer, findings);
  checkStart(chain, instant, instantPointer, findings);
  // Both only give back, and may come late.
  const isSettlement = facts.isRelease || action?.toolName === SLICE_TOOL;
  if (!isSettlement) checkExpiry(chain, instant, instantPointer, findings);
  if (!isSettlement) checkActionExpiry(action, instant, instantPointer, findings);
  const silent = facts.countsSilence === true ? silentUse(facts, action) : [];
  const changes = judgeMeters(facts, action, chain, silent, findings);
  if (!facts.isRelease) reportSilence(silent, action, chain, findings);
  if (!isSettlement) {
    judgeRates(
      { ...facts, used: [...facts.used, ...silent] },
      instant,
      instantPointer,
      chain,
      findings,
      updates,
    );
    judgeConcurrency(facts, chain, findings, updates);
  }
  checkOutput(facts, chain, findings);
  checkResources(facts, chain, findings);
  if (!facts.isRelease) judgeApprovals(facts, action, chain, approved, findings);
  if (!isSettlement) checkStopped(chain, facts.actionSeq, facts.start, findings);
  else if (!facts.isRelease) checkSettled(chain, '/auth_event_id', findings);
  return {
    findings,
    unstated: silent,
    apply: () => {
      applyChanges(changes);
      for (const update of updates) update();
      if (!facts.isRelease) for (const each of chain) each.executions += 1;
    },
  };
}

/** Rule 15: a rule that the action asked for has its finding there. */
function judgeApprovals(
  { toolName, used, actionSeq }: ExecutionFacts,
  action: Action | undefined,
  chain: readonly Grant[],
  approved: ApprovedBy | undefined,
  findings: RuleFinding[],
): void {
  // A second execution is held against nothing of its action.
  if (action === undefined && actionSeq !== undefined) return;
  for (const [index, { unit, amount }] of used.entries())
    checkApproved(unit, amount, () => `/meter_used/${index}/amount`, approved?.limits, findings);
  const asks = (rule: ApprovalRule): boolean =>
    asksToUse(rule, toolName, used) && (action === undefined || !asksToAct(rule, action));
  checkApprovals(chain, asks, approved, '/auth_event_id', findings);
}

function checkOrder(
  action: Action | undefined,
  chain: readonly Grant[],
  instant: string,
  pointer: string,
  findings: RuleFinding[],
): void {
  const isBefore = ({ occurredAt }: Action | Grant): boolean => orderTimestamps(instant, occurredAt) < 0;
  const later = action !== undefined && isBefore(action) ? action : chain.find(isBefore);
  if (later === undefined) return;
  findings.push({
    code: 'EXECUTION_BEFORE_AUTHORIZATION',
    pointer,
    expected: `at ${later.occurredAt} or later, when ${later.place.eventId} allowed it`,
    actual: instant,
    related: [later.place],
  });
}

function checkTool(chain: readonly Grant[], tool: string, pointer: string, findings: RuleFinding[]): void {
  const grant = chain.find((each) => !allowsTool(each.tools, tool));
  if (grant === undefined) return;
  const expected = `a tool that ${grant.place.eventId} allows`;
  findings.push({ code: 'TOOL_NOT_ALLOWED', pointer, expected, actual: tool, related: [grant.place] });
}

function checkStart(
  chain: readonly Grant[],
  instant: string,
  pointer: string,
  findings: RuleFinding[],
): void {
  const grant = chain.find(
    ({ notBefore }) => notBefore !== undefined && orderTimestamps(instant, notBefore) < 0,
  );
  if (grant?.notBefore === undefined) return;
  const expected = `at ${grant.notBefore} or later, from when ${grant.place.eventId} is valid`;
  findings.push({ code: 'GRANT_NOT_YET_VALID', pointer, expected, actual: instant, related: [grant.place] });
}

function checkExpiry(
  chain: readonly Grant[],
  instant: string,
  pointer: string,
  findings: RuleFinding[],
): void {
  const grant = chain.find(
    ({ expiresAt }) => expiresAt !== undefined && orderTimestamps(instant, expiresAt) >= 0,
  );
  if (grant?.expiresAt === undefined) return;
  const expected = `before ${grant.expiresAt}, when ${grant.place.eventId} expires`;
  findings.push({ code: 'GRANT_EXPIRED', pointer, expected, actual: instant, related: [grant.place] });
}

function checkActionExpiry(
  action: Action | undefined,
  instant: string,
  pointer: string,
  findings: RuleFinding[],
): void {
  if (action?.expiresAt === undefined || orderTimestamps(instant, action.expiresAt) < 0) return;
  const expected = `before ${action.expiresAt}, when ${action.place.eventId} expires`;
  findings.push({ code: 'ACTION_EXPIRED', pointer, expected, actual: instant, related: [action.place] });
}

/** The reserved units that the execution omits. */
function silentUse({ used }: ExecutionFacts, action: Action | undefined): UnitAmount[] {
  return [...(action?.reservation ?? NOTHING)].flatMap(([unit, amount]) =>
    amount.n === 0n || placeOf(used, unit) !== -1 ? [] : [{ unit, amount }],
  );
}

/** Once for a grant and unit; without a grant once for a unit. */
function reportSilence(
  silent: UnitAmounts,
  action: Action | undefined,
  [nearest]: readonly Grant[],
  findings: RuleFinding[],
): void {
  for (const { unit, amount } of silent) {
    if (isMeasuredUnit(unit)) continue;
    findings.push({
      code: 'METER_UNREPORTED',
      pointer: '/meter_used',
      expected: `${unit}, of which ${formatRational(amount)} was reserved`,
      actual: 'absent',
      ...(action === undefined ? {} : { related: [action.place] }),
      cause: `${nearest?.place.eventId ?? ''} ${unit}`,
    });
  }
}

/** Rule 5: in every grant of the chain the reservation is returned and the use is counted. */
function judgeMeters(
  { used, isEstimated = false, isUnitEstimated }: ExecutionFacts,
  action: Action | undefined,
  chain: readonly Grant[],
  silent: UnitAmounts,
  findings: RuleFinding[],
): AccountChange[] {
  const [nearest] = chain;
  const isGuess = (unit: string): boolean => isUnitEstimated?.get(unit) ?? isEstimated;
  for (const [index, { unit, amount }] of used.entries()) {
    const pointer = (): string => `/meter_used/${index}/amount`;
    const reserved = action?.reservation.get(unit);
    if (reserved !== undefined && compareRationals(amount, reserved) > 0) {
      const over = formatRational(subtractRationals(amount, reserved));
      findings.push({
        code: 'RESERVATION_EXCEEDED',
        limit: { unit, limit: reserved, used: ZERO },
        pointer: pointer(),
        expected: `${unit} at most ${formatRational(reserved)}, as reserved`,
        actual: `${formatRational(amount)}, ${over} over`,
        ...(action === undefined ? {} : { related: [action.place] }),
      });
    }
    checkActionCaps(unit, amount, pointer, chain, findings);
    if (nearest === undefined || reserved !== undefined || amount.n === 0n || isMeasuredUnit(unit)) continue;
    if (!chain.some(({ accounts }) => accounts.has(unit))) findings.push(uncapped(unit, pointer(), nearest));
  }
  const changes: AccountChange[] = [];
  for (const grant of chain) {
    // Reserved units first, in the order of the reservation, then the others.
    for (const [unit, back] of action?.reservation ?? NOTHING) {
      const index = placeOf(used, unit);
      const isSilent = placeOf(silent, unit) !== -1;
      const amount = isSilent ? back : (used[index]?.amount ?? ZERO);
      settle(grant, unit, amount, back, index, isSilent || isGuess(unit), findings, changes);
    }
    for (const [index, { unit, amount }] of used.entries()) {
      if (action?.reservation.has(unit) === true) continue;
      settle(grant, unit, amount, ZERO, index, isGuess(unit), findings, changes);
    }
  }
  return changes;
}

const NOTHING: ReadonlyMap<string, Rational> = new Map();

function placeOf(amounts: UnitAmounts, unit: string): number {
  for (let i = 0; i < amounts.length; i += 1) if (amounts[i]?.unit === unit) return i;
  return -1;
}

/** The same in one account. */
function settle(
  grant: Grant,
  unit: string,
  amount: Rational,
  back: Rational,
  index: number,
  isEstimated: boolean,
  findings: RuleFinding[],
  changes: AccountChange[],
): void {
  const account = grant.accounts.get(unit);
  if (account === undefined) return;
  const pointer = (): string => (index === -1 ? '/meter_used' : `/meter_used/${index}/amount`);
  // A difference can need a larger denominator, just as a sum.
  const reservedAfter = subtractRationals(account.reserved, back);
  const isTooFine = exceedsDenominatorLimit(reservedAfter);
  if (isTooFine) exceedsPrecision(reservedAfter, pointer(), findings);
  const reserved = isTooFine ? account.reserved : reservedAfter;
  let { used, estimated } = account;
  const nowUsed = addRationals(used, amount);
  const nowEstimated = isEstimated ? addRationals(estimated, amount) : estimated;
  const finest = exceedsDenominatorLimit(nowEstimated) ? nowEstimated : nowUsed;
  if (amount.n > 0n && !(exceedsDenominatorLimit(finest) && exceedsPrecision(finest, pointer(), findings))) {
    const total = addRationals(nowUsed, reserved);
    const isOver =
      compareRationals(nowUsed, account.cap) > 0 ||
      (compareRationals(total, account.cap) > 0 && compareRationals(amount, back) > 0);
    if (isOver) {
      const before = { ...account, reserved };
      findings.push(overCap('METER_CAP_EXCEEDED', pointer(), grant, unit, before, amount, total));
    }
    used = nowUsed;
    estimated = nowEstimated;
  }
  changes.push({ grant, account, used, estimated, reserved });
}

/** The part of {@link judgeExecution} for rates and concurrency. */
export function judgeWindows(facts: TimedUse, chain: readonly Grant[]): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  const pointer = facts.startedAt === undefined ? '/occurred_at' : '/started_at';
  judgeRates(facts, facts.startedAt ?? facts.occurredAt, pointer, chain, findings, updates);
  judgeConcurrency(facts, chain, findings, updates);
  return {
    findings,
    apply: () => {
      for (const update of updates) update();
    },
  };
}

/** Rule 6, for events in any order of time: the event that makes a window too full gets the finding. */
function judgeRates(
  facts: TimedUse,
  instant: string,
  pointer: string,
  chain: readonly Grant[],
  findings: RuleFinding[],
  updates: (() => void)[],
): void {
  if (chain.every(({ rates }) => rates.length === 0)) return;
  const from = parseTimestamp(instant);
  // The limits of a chain count the same few amounts.
  const weights = new Map<Rational, Fraction>();
  for (const grant of chain) {
    for (const rate of grant.rates) {
      const amount = rate.meter === 'calls' ? ONE : facts.used[placeOf(facts.used, rate.meter)]?.amount;
      if (amount === undefined || amount.n === 0n) continue;
      let weight = weights.get(amount);
      if (weight === undefined) weights.set(amount, (weight = fractionOf(amount)));
      const counted = weight;
      const to = from + rate.window;
      if (!fitsWindows(rate.timeline, from, rate.window, amount)) {
        findings.push({
          code: 'QUANTITY_INVALID',
          pointer,
          expected: `amounts of ${rate.meter} that have, within each window, a common denominator of at most ${MAX_DENOMINATOR_DIGITS} digits`,
          actual: 'a longer one',
          related: [grant.place],
        });
        continue;
      }
      const before = findOver(rate, from, to, amount, counted);
      if (before !== undefined) findings.push(overRate(pointer, grant, rate, before, amount));
      updates.push(() => addInterval(rate.timeline, from, to, amount, counted));
    }
  }
}

/** Rule 7, likewise. */
function judgeConcurrency(
  facts: TimedUse,
  chain: readonly Grant[],
  findings: RuleFinding[],
  updates: (() => void)[],
): void {
  const limiting = chain.find(({ concurrency }) => concurrency !== undefined);
  if (limiting === undefined) return;
  if (facts.startedAt === undefined || facts.endedAt === undefined) {
    findings.push({
      code: 'EVIDENCE_MISSING',
      pointer: facts.startedAt === undefined ? '/started_at' : '/ended_at',
      expected: 'present, as concurrency is limited',
      actual: 'absent',
      related: [limiting.place],
    });
    return;
  }
  const from = parseTimestamp(facts.startedAt);
  const end = parseTimestamp(facts.endedAt);
  // Times are whole nanoseconds: an instant lasts until the next.
  const to = end === from ? from + 1n : end;
  for (const grant of chain) {
    if (grant.concurrency === undefined || from >= to) continue;
    const { limit, timeline } = grant.concurrency;
    const over = findOver(grant.concurrency, from, to, ONE, ONE);
    if (over !== undefined) {
      const before = over.value();
      const peak = addRationals(before, ONE);
      findings.push({
        code: 'CONCURRENCY_EXCEEDED',
        limit: { unit: 'concurrency', limit, used: before },
        pointer: '/started_at',
        expected: `at most ${formatRational(limit)} at once under ${grant.place.eventId}`,
        actual: `${formatRational(peak)} at once`,
        related: [grant.place],
      });
    }
    updates.push(() => addInterval(timeline, from, to, ONE));
  }
}

function checkOutput(facts: ExecutionFacts, chain: readonly Grant[], findings: RuleFinding[]): void {
  const grant = chain.find(({ outputMode }) => outputMode === 'digest_only');
  if (grant === undefined || !facts.hasOutputRef) return;
  findings.push({
    code: 'OUTPUT_MODE_EXCEEDED',
    pointer: '/output_ref',
    expected: `no output_ref, as ${grant.place.eventId} allows digests only`,
    actual: 'an output_ref',
    related: [grant.place],
  });
}

function checkResources(facts: ExecutionFacts, chain: readonly Grant[], findings: RuleFinding[]): void {
  for (const [index, resource] of facts.resources.entries()) {
    const grant = chain.find(
      ({ resources }) => resources !== undefined && !resources.has(resourceKey(resource)),
    );
    if (grant === undefined) continue;
    findings.push({
      code: 'RESOURCE_NOT_GRANTED',
      pointer: `/resources_touched/${index}`,
      expected: `a resource of ${grant.place.eventId}`,
      actual: resourceKey(resource),
      related: [grant.place],
    });
  }
}

/** The content of a window before an amount makes it too full. */
interface Fullness {
  readonly value: () => Rational;
  /** Whether finding the value is far slower than comparing it. */
  readonly isCostly: boolean;
}

/**
 * Undefined where no window becomes too full. Started executions may peak at another instant: the result is then an upper bound.
 */
function findOver(
  { timeline, started, limit }: Pick<RateLimit, 'timeline' | 'started' | 'limit'>,
  from: bigint,
  to: bigint,
  amount: Rational,
  weight: Fraction,
): Fullness | undefined {
  if (started === undefined) {
    const isEnough = (overlap: Fraction): boolean => compareRationals(sumOf(overlap, weight), limit) <= 0;
    const peak = findExcess(timeline, from, to, isEnough);
    return peak && { value: () => exactOverlap(timeline, peak), isCostly: isLong(peak) };
  }
  const before = addRationals(peakOverlap(timeline, from, to), started.peak(from, to));
  if (compareRationals(addRationals(before, amount), limit) <= 0) return undefined;
  return { value: () => before, isCostly: false };
}

function overRate(
  pointer: string,
  grant: Grant,
  rate: RateLimit,
  { value, isCostly }: Fullness,
  amount: Rational,
): RuleFinding {
  const finding = { code: 'RATE_LIMIT_EXCEEDED', pointer, related: [grant.place] } as const;
  return overLimit(finding, isCostly, () => {
    const before = value();
    const peak = addRationals(before, amount);
    const over = formatRational(subtractRationals(peak, rate.limit));
    return {
      limit: { unit: rate.unit, limit: rate.limit, used: before },
      expected: `${rate.unit} at most ${formatRational(rate.limit)} under ${grant.place.eventId}`,
      actual: `${formatRational(peak)} within one window: ${over} over`,
    };
  });
}
