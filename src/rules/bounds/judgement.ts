/** Judgements, and the findings that several rules of bounds share. */

import { formatRational } from '../../base/value/format-rational.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import type { UnitAmounts } from '../../format/event/outline.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { Account, Action, Grant } from './grant.js';

/** The findings, and the changes of the accounts if the event counts. Pointers are from the event's root. */
export interface Judgement {
  readonly findings: readonly RuleFinding[];
  /** The use that counts without being stated. */
  readonly unstated?: UnitAmounts;
  readonly apply: () => void;
}

/** Rules 3 and 13: an action or a delegated grant against the grant that it was allowed under. */
export function checkOrigin(authorized: Action | Grant, grant: Grant, findings: RuleFinding[]): void {
  if (orderTimestamps(authorized.occurredAt, grant.occurredAt) < 0)
    findings.push({
      code: 'AUTHORIZATION_BEFORE_GRANT',
      pointer: '/occurred_at',
      expected: `at ${grant.occurredAt} or later, when its grant was given`,
      actual: authorized.occurredAt,
      related: [grant.place],
    });
  const { intent, userIntent } = authorized;
  const wanted = grant.userIntent ?? grant.intent;
  if (intent === grant.intent || userIntent === wanted) return;
  findings.push({
    code: userIntent === undefined ? 'INTENT_UNLINKED' : 'INTENT_MISMATCH',
    pointer: '/intents/user_intent_digest',
    expected: `${wanted}, the intent of its grant`,
    actual: userIntent ?? 'absent',
    related: [grant.place],
    // A writer without such a link omits it in every step.
    ...(userIntent === undefined ? { cause: grant.place.eventId } : {}),
  });
}

/** Rule 14 for one unit: a finding for each grant of the chain whose cap is exceeded. */
export function checkActionCaps(
  unit: string,
  amount: Rational,
  pointer: () => string,
  chain: readonly Grant[],
  findings: RuleFinding[],
): void {
  for (const grant of chain) {
    const cap = grant.actionCaps.get(unit);
    if (cap === undefined || compareRationals(amount, cap) <= 0) continue;
    const finding = { code: 'ACTION_CAP_EXCEEDED', pointer: pointer(), related: [grant.place] } as const;
    const words = (): LimitWords => ({
      limit: { unit, limit: cap, used: ZERO },
      expected: `${unit} at most ${formatRational(cap)} for one action under ${grant.place.eventId}`,
      actual: `${formatRational(amount)}, ${formatRational(subtractRationals(amount, cap))} over`,
    });
    findings.push(overLimit(finding, isLong(amount), words));
  }
}

/** A unit without a cap: reported once for a grant and unit. */
export function uncapped(unit: string, pointer: string, grant: Grant): RuleFinding {
  return {
    code: 'METER_UNCAPPED',
    pointer,
    expected: 'a unit that the grant caps',
    actual: unit,
    related: [grant.place],
    cause: uncappedCause(unit, grant),
  };
}

/** What all those of a grant and unit fold under. */
export function uncappedCause(unit: string, { place }: Grant): string {
  return `${place.eventId} ${unit}`;
}

/** A sum with too long a denominator does not count (SPEC §2): one event could make every later one slow. */
export function exceedsPrecision(sum: Rational, pointer: string, findings: RuleFinding[]): boolean {
  if (!exceedsDenominatorLimit(sum)) return false;
  const expected = 'an amount that keeps the sum to a denominator of at most 400 digits';
  findings.push({ code: 'QUANTITY_INVALID', pointer, expected, actual: `${sum.d.toString().length} digits` });
  return true;
}

/** The words of a finding on a limit. */
type LimitWords = Required<Pick<RuleFinding, 'expected' | 'actual' | 'limit'>>;

/**
 * A finding on a limit. An event may break thousands of limits, and few findings are listed: where writing the amounts is slow, the words
 * are made when they are read.
 *
 * @param words - MUST return the same at each call.
 */
export function overLimit(
  finding: Required<Pick<RuleFinding, 'code' | 'pointer' | 'related'>>,
  isCostly: boolean,
  words: () => LimitWords,
): RuleFinding {
  const { code, pointer, related } = finding;
  if (!isCostly) {
    const { limit, expected, actual } = words();
    return { code, pointer, related, limit, expected, actual };
  }
  let found: LimitWords | undefined;
  const recall = (): LimitWords => (found ??= words());
  return {
    code,
    pointer,
    related,
    isWordedLate: true,
    get limit() {
      return recall().limit;
    },
    get expected() {
      return recall().expected;
    },
    get actual() {
      return recall().actual;
    },
  };
}

/** From this size on writing a number as a decimal is far slower than comparing it. */
const LONG = 1n << 64n;

function isLong({ n, d }: Rational): boolean {
  return n >= LONG || d >= LONG;
}

/** A finding with the unit, the cap, the use before, and the excess. */
export function overCap(
  code: 'METER_CAP_EXCEEDED' | 'RESERVATION_OVER_CAP',
  pointer: string,
  grant: Grant,
  unit: string,
  { cap, used, reserved }: Account,
  amount: Rational,
  total: Rational,
): RuleFinding {
  return overLimit({ code, pointer, related: [grant.place] }, isLong(total), () => {
    const over = formatRational(subtractRationals(total, cap));
    const held = reserved.n === 0n ? '' : `, ${formatRational(reserved)} reserved`;
    return {
      limit: { unit, limit: cap, used: addRationals(used, reserved) },
      expected: `${unit} at most ${formatRational(cap)} under ${grant.place.eventId}`,
      actual: `${formatRational(used)} used before${held}, ${formatRational(amount)} by this event: ${over} over`,
    };
  });
}
