/** What the rules of bounds share: what a judgement is, and the findings that several of them give. */

import type { RuleFinding } from '../finding/rule-finding.js';
import { formatRational } from '../value/format-rational.js';
import {
  ZERO,
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  subtractRationals,
  type Rational,
} from '../value/rational.js';
import { orderTimestamps } from '../value/timestamp.js';
import type { Account, Action, Grant } from './grant.js';

/** What was found, and what to do to the accounts once the event counts. Pointers are from the event's root. */
export interface Judgement {
  readonly findings: readonly RuleFinding[];
  readonly apply: () => void;
}

/** Rules 3 and 13: an action or a delegated grant against the grant that it was allowed under. */
export function checkOrigin(authorized: Action | Grant, grant: Grant, findings: RuleFinding[]): void {
  if (orderTimestamps(authorized.occurredAt, grant.occurredAt) < 0) {
    findings.push({
      code: 'AUTHORIZATION_BEFORE_GRANT',
      pointer: '/occurred_at',
      expected: `at ${grant.occurredAt} or later, when its grant was given`,
      actual: authorized.occurredAt,
      related: [grant.place],
    });
  }
  const { intent, userIntent } = authorized;
  const wanted = grant.userIntent ?? grant.intent;
  if (intent === grant.intent || userIntent === wanted) return;
  findings.push({
    code: userIntent === undefined ? 'INTENT_UNLINKED' : 'INTENT_MISMATCH',
    pointer: '/intents/user_intent_digest',
    expected: `${wanted}, the intent of its grant`,
    actual: userIntent ?? 'absent',
    related: [grant.place],
    // Whoever links nothing does so in every step.
    ...(userIntent === undefined ? { cause: grant.place.eventId } : {}),
  });
}

/** Rule 14, of one unit: the grant and every ancestor that caps it, each with a finding. */
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
    const over = formatRational(subtractRationals(amount, cap));
    findings.push({
      code: 'ACTION_CAP_EXCEEDED',
      limit: { unit, limit: cap, used: ZERO },
      pointer: pointer(),
      expected: `${unit} at most ${formatRational(cap)} for one action under ${grant.place.eventId}`,
      actual: `${formatRational(amount)}, ${over} over`,
      related: [grant.place],
    });
  }
}

/** A unit that nothing caps: told once for a grant and unit. */
export function uncapped(unit: string, pointer: string, grant: Grant): RuleFinding {
  return {
    code: 'METER_UNCAPPED',
    pointer,
    expected: 'a unit that the grant caps',
    actual: unit,
    related: [grant.place],
    cause: `${grant.place.eventId} ${unit}`,
  };
}

/** A sum of so many digits does not count (SPEC §2): it would let an event make every later one slow. */
export function exceedsPrecision(sum: Rational, pointer: string, findings: RuleFinding[]): boolean {
  if (!exceedsDenominatorLimit(sum)) return false;
  const expected = 'an amount that keeps the sum to a denominator of at most 400 digits';
  findings.push({ code: 'QUANTITY_INVALID', pointer, expected, actual: `${sum.d.toString().length} digits` });
  return true;
}

/** Says the unit, the cap, what was used before, and by how much it is over. */
export function overCap(
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
    limit: { unit, limit: before.cap, used: addRationals(before.used, before.reserved) },
    pointer,
    expected: `${unit} at most ${formatRational(before.cap)} under ${grant.place.eventId}`,
    actual: `${formatRational(before.used)} used before${reserved}, ${formatRational(amount)} by this event: ${over} over`,
    related: [grant.place],
  };
}
