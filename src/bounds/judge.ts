/**
 * The rules of bounds (SPEC §8, rules 3 to 9): what an action, an execution or a delegated grant breaks, given what was
 * used before. Judging changes nothing; what it returns can then be applied. So the same code answers "did this break a
 * bound?" when a ledger is verified and "would it?" when a gateway asks before it acts.
 */

import type { RuleFinding } from '../finding/rule-finding.js';
import { formatRational } from '../value/format-rational.js';
import type { MeterVector } from '../value/meter.js';
import {
  ZERO,
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  subtractRationals,
  type Rational,
} from '../value/rational.js';
import { compareTimestamps, parseTimestamp } from '../value/timestamp.js';
import {
  MAX_GRANT_DEPTH,
  OUTPUT_MODES,
  amountsOf,
  grantChain,
  resourceKey,
  type Account,
  type Action,
  type Amounts,
  type Grant,
  type RateLimit,
} from './grant.js';
import { addInterval, commonDenominator, peakOverlap } from './timeline.js';
import { allowsTool, coversPattern } from './tool-set.js';

/** What was found, and what to do to the accounts once the event counts. Pointers are from the event's root. */
export interface Judgement {
  readonly findings: readonly RuleFinding[];
  readonly apply: () => void;
}

/** An execution as the rules of bounds see it. */
export interface ExecutionFacts {
  readonly toolName: string;
  readonly occurredAt: string;
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
  readonly meterUsed: MeterVector;
  readonly hasOutputRef: boolean;
  readonly resources: readonly { readonly kind: string; readonly reference: string }[];
  /** Whether it only gives a reservation back (rule 8): it then did not happen in time. */
  readonly isRelease: boolean;
}

const ONE: Rational = { n: 1n, d: 1n };

/** Judges an allowed action under its grant, if it has one: tools, expiry, reservation. */
export function judgeAction(action: Action): Judgement {
  const findings: RuleFinding[] = [];
  const chain = [...grantChain(action.grant)];
  checkTool(chain, action.toolName, '/authorization/action/tool_name', findings);
  checkExpiry(chain, action.occurredAt, '/occurred_at', findings);
  const updates: (() => void)[] = [];
  let index = 0;
  for (const [unit, amount] of action.reservation) {
    const pointer = `/authorization/action/meter_reservation/${index++}/amount`;
    if (amount.n === 0n) continue;
    const sums = chain.flatMap((grant) => {
      const account = grant.accounts.get(unit);
      return account === undefined
        ? []
        : { grant, account, reserved: addRationals(account.reserved, amount) };
    });
    if (sums.some(({ reserved }) => isTooFine(reserved, pointer, findings))) {
      // What is reserved nowhere must not be given back later.
      updates.push(() => action.reservation.delete(unit));
      continue;
    }
    for (const { grant, account, reserved } of sums) {
      const total = addRationals(account.used, reserved);
      if (compareRationals(total, account.cap) > 0) {
        findings.push(overCap('RESERVATION_OVER_CAP', pointer, grant, unit, account, amount, total));
      }
      updates.push(() => {
        account.reserved = reserved;
      });
    }
  }
  return { findings, apply: () => updates.forEach((update) => update()) };
}

/**
 * Judges an execution that was allowed: by an action, by a grant, or by an action that is spent already (`action` undefined,
 * its `grant` given).
 */
export function judgeExecution(
  facts: ExecutionFacts,
  action: Action | undefined,
  grant: Grant | undefined,
  authorizedAt: string | undefined,
): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  const chain = [...grantChain(grant)];
  const instant = facts.startedAt ?? facts.occurredAt;
  const instantPointer = facts.startedAt === undefined ? '/occurred_at' : '/started_at';
  checkTool(chain, facts.toolName, '/tool_name', findings);
  if (authorizedAt !== undefined && compareTimestamps(instant, authorizedAt) < 0) {
    const authorization = action ?? grant;
    findings.push({
      code: 'EXECUTION_BEFORE_AUTHORIZATION',
      pointer: instantPointer,
      expected: `at ${authorizedAt} or later, when it was authorized`,
      actual: instant,
      ...(authorization === undefined ? {} : { related: [authorization.place] }),
    });
  }
  if (!facts.isRelease) checkExpiry(chain, instant, instantPointer, findings);
  judgeMeters(facts, action, chain, findings, updates);
  if (!facts.isRelease) {
    judgeRates(facts, instant, instantPointer, chain, findings, updates);
    judgeConcurrency(facts, chain, findings, updates);
    updates.push(() => {
      for (const each of chain) each.executions += 1;
    });
  }
  checkOutput(facts, chain, findings);
  checkResources(facts, chain, findings);
  return { findings, apply: () => updates.forEach((update) => update()) };
}

/** Judges a delegated grant against its parent (rule 9). */
export function judgeDelegation(grant: Grant, patterns: readonly string[], parent: Grant): RuleFinding[] {
  const findings: RuleFinding[] = [];
  const related = [parent.place];
  const exceed = (pointer: string, expected: string, actual: string): void => {
    findings.push({
      code: 'DELEGATION_EXCEEDED',
      pointer,
      expected: `${expected}, as its parent`,
      actual,
      related,
    });
  };
  if (grant.depth > MAX_GRANT_DEPTH) {
    exceed(
      '/authorization/grant_event_id',
      `at most ${MAX_GRANT_DEPTH} grants deep`,
      `${grant.depth} grants deep`,
    );
  }
  const uncovered = patterns.findIndex((pattern) => !coversPattern(parent.tools, pattern));
  if (uncovered !== -1) {
    const pointer = `/authorization/bounds/allowed_tools/${uncovered}`;
    exceed(pointer, 'tools that one pattern of the parent covers', patterns[uncovered] as string);
  }
  for (const [unit, { cap }] of parent.accounts) {
    const own = grant.accounts.get(unit)?.cap;
    if (own !== undefined && compareRationals(own, cap) <= 0) continue;
    exceed(
      '/authorization/bounds/meter_caps',
      `${unit} capped at ${formatRational(cap)} or less`,
      amountOr(own, 'no cap'),
    );
  }
  if (parent.expiresAt !== undefined) {
    if (grant.expiresAt === undefined || compareTimestamps(grant.expiresAt, parent.expiresAt) > 0) {
      exceed(
        '/authorization/bounds/expires_at',
        `${parent.expiresAt} or earlier`,
        grant.expiresAt ?? 'no expiry',
      );
    }
  }
  for (const { unit, limit } of parent.rates) {
    const own = grant.rates.find((rate) => rate.unit === unit)?.limit;
    if (own !== undefined && compareRationals(own, limit) <= 0) continue;
    exceed(
      '/authorization/bounds/rate_limits',
      `${unit} at most ${formatRational(limit)}`,
      amountOr(own, 'no limit'),
    );
  }
  if (parent.concurrency !== undefined) {
    const own = grant.concurrency?.limit;
    const { limit } = parent.concurrency;
    if (own === undefined || compareRationals(own, limit) > 0) {
      exceed(
        '/authorization/bounds/concurrency_limit',
        `at most ${formatRational(limit)}`,
        amountOr(own, 'no limit'),
      );
    }
  }
  if (parent.outputMode !== undefined) {
    const strictness = OUTPUT_MODES.indexOf(parent.outputMode);
    if (grant.outputMode === undefined || OUTPUT_MODES.indexOf(grant.outputMode) > strictness) {
      exceed(
        '/authorization/bounds/output_mode',
        `${parent.outputMode} or stricter`,
        grant.outputMode ?? 'no mode',
      );
    }
  }
  for (const resource of grant.resources ?? []) {
    if (parent.resources === undefined || parent.resources.has(resource)) continue;
    const pointer = '/authorization/bounds/resources';
    findings.push({
      code: 'RESOURCE_NOT_GRANTED',
      pointer,
      expected: 'a resource of its parent',
      actual: resource,
      related,
    });
    break;
  }
  return findings;
}

function checkTool(chain: readonly Grant[], tool: string, pointer: string, findings: RuleFinding[]): void {
  const grant = chain.find((each) => !allowsTool(each.tools, tool));
  if (grant === undefined) return;
  const expected = `a tool that ${grant.place.eventId} allows`;
  findings.push({ code: 'TOOL_NOT_ALLOWED', pointer, expected, actual: tool, related: [grant.place] });
}

function checkExpiry(
  chain: readonly Grant[],
  instant: string,
  pointer: string,
  findings: RuleFinding[],
): void {
  const grant = chain.find(
    ({ expiresAt }) => expiresAt !== undefined && compareTimestamps(instant, expiresAt) >= 0,
  );
  if (grant?.expiresAt === undefined) return;
  const expected = `before ${grant.expiresAt}, when ${grant.place.eventId} expires`;
  findings.push({ code: 'GRANT_EXPIRED', pointer, expected, actual: instant, related: [grant.place] });
}

/** Rule 5: the reservation that the action made is given back, what was used is counted, in every grant of the chain. */
function judgeMeters(
  facts: ExecutionFacts,
  action: Action | undefined,
  chain: readonly Grant[],
  findings: RuleFinding[],
  updates: (() => void)[],
): void {
  const used = amountsOf(facts.meterUsed);
  const reservation: Amounts = action?.reservation ?? new Map<string, Rational>();
  let index = 0;
  for (const [unit, amount] of used) {
    const pointer = `/meter_used/${index++}/amount`;
    const reserved = reservation.get(unit);
    if (reserved !== undefined && compareRationals(amount, reserved) > 0) {
      const over = formatRational(subtractRationals(amount, reserved));
      findings.push({
        code: 'RESERVATION_EXCEEDED',
        pointer,
        expected: `${unit} at most ${formatRational(reserved)}, as reserved`,
        actual: `${formatRational(amount)}, ${over} over`,
        ...(action === undefined ? {} : { related: [action.place] }),
      });
    }
    if (reserved === undefined && amount.n > 0n && !chain.some(({ accounts }) => accounts.has(unit))) {
      const expected = 'a unit that the reservation or a grant caps';
      findings.push({ code: 'METER_UNCAPPED', pointer, expected, actual: unit });
    }
  }
  const units = new Map([...reservation.keys()].map((unit) => [unit, '/meter_used']));
  for (const [position, unit] of [...used.keys()].entries())
    units.set(unit, `/meter_used/${position}/amount`);
  for (const grant of chain) {
    for (const [unit, pointer] of units) {
      const account = grant.accounts.get(unit);
      if (account === undefined) continue;
      const back = reservation.get(unit) ?? ZERO;
      const amount = used.get(unit) ?? ZERO;
      // Taking an amount off a sum can make it finer, just as adding one.
      const reservedAfter = subtractRationals(account.reserved, back);
      const nowReserved = isTooFine(reservedAfter, pointer, findings) ? account.reserved : reservedAfter;
      const nowUsed = addRationals(account.used, amount);
      const counts = amount.n > 0n && !isTooFine(nowUsed, pointer, findings);
      if (counts) {
        const total = addRationals(nowUsed, nowReserved);
        const grew = compareRationals(amount, back) > 0;
        const isOver =
          compareRationals(nowUsed, account.cap) > 0 || (grew && compareRationals(total, account.cap) > 0);
        if (isOver) {
          const before = { ...account, reserved: nowReserved };
          findings.push(overCap('METER_CAP_EXCEEDED', pointer, grant, unit, before, amount, total));
        }
      }
      updates.push(() => {
        account.reserved = nowReserved;
        if (counts) account.used = nowUsed;
      });
    }
  }
}

/** Rule 6, for events recorded in any order: the event whose recording makes some window too full gets the finding. */
function judgeRates(
  facts: ExecutionFacts,
  instant: string,
  pointer: string,
  chain: readonly Grant[],
  findings: RuleFinding[],
  updates: (() => void)[],
): void {
  if (chain.every(({ rates }) => rates.length === 0)) return;
  const from = parseTimestamp(instant);
  const used = amountsOf(facts.meterUsed);
  for (const grant of chain) {
    for (const rate of grant.rates) {
      const amount = rate.meter === 'calls' ? ONE : used.get(rate.meter);
      if (amount === undefined || amount.n === 0n) continue;
      const to = from + rate.window;
      // No window's sum is finer than this, whichever of the amounts are in it.
      if (isTooFine({ n: 1n, d: commonDenominator(rate.timeline, amount) }, pointer, findings)) continue;
      const peak = addRationals(peakOverlap(rate.timeline, from, to), amount);
      if (compareRationals(peak, rate.limit) > 0) findings.push(overRate(pointer, grant, rate, peak));
      updates.push(() => addInterval(rate.timeline, from, to, amount));
    }
  }
}

/** Rule 7, likewise. */
function judgeConcurrency(
  facts: ExecutionFacts,
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
  const to = parseTimestamp(facts.endedAt);
  for (const grant of chain) {
    if (grant.concurrency === undefined || from >= to) continue;
    const { limit, timeline } = grant.concurrency;
    const peak = addRationals(peakOverlap(timeline, from, to), ONE);
    if (compareRationals(peak, limit) > 0) {
      findings.push({
        code: 'CONCURRENCY_EXCEEDED',
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

/** A sum of so many digits does not count (SPEC §2): it would let an event make every later one slow. */
function isTooFine(sum: Rational, pointer: string, findings: RuleFinding[]): boolean {
  if (!exceedsDenominatorLimit(sum)) return false;
  const expected = 'an amount that keeps the sum to a denominator of at most 400 digits';
  findings.push({ code: 'QUANTITY_INVALID', pointer, expected, actual: `${sum.d.toString().length} digits` });
  return true;
}

function overCap(
  code: 'METER_CAP_EXCEEDED' | 'RESERVATION_OVER_CAP',
  pointer: string,
  grant: Grant,
  unit: string,
  before: Account,
  amount: Rational,
  total: Rational,
): RuleFinding {
  const over = formatRational(subtractRationals(total, before.cap));
  const reserved = before.reserved.n === 0n ? '' : `, ${formatRational(before.reserved)} reserved`;
  return {
    code,
    pointer,
    expected: `${unit} at most ${formatRational(before.cap)} under ${grant.place.eventId}`,
    actual: `${formatRational(before.used)} used before${reserved}, ${formatRational(amount)} by this event: ${over} over`,
    related: [grant.place],
  };
}

function overRate(pointer: string, grant: Grant, rate: RateLimit, peak: Rational): RuleFinding {
  const over = formatRational(subtractRationals(peak, rate.limit));
  return {
    code: 'RATE_LIMIT_EXCEEDED',
    pointer,
    expected: `${rate.unit} at most ${formatRational(rate.limit)} under ${grant.place.eventId}`,
    actual: `${formatRational(peak)} within one window: ${over} over`,
    related: [grant.place],
  };
}

function amountOr(amount: Rational | undefined, otherwise: string): string {
  return amount === undefined ? otherwise : formatRational(amount);
}
