/** Rule 11 of SPEC §8: corrections of what counts as used. */

import { formatRational } from '../../base/value/format-rational.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
} from '../../base/value/rational.js';
import type { UnitAmounts } from '../../format/event/outline.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { addSystem, type Amounts, type Grant, grantChain } from './grant.js';
import { exceedsPrecision, type Judgement, overCap, uncapped } from './judgement.js';

/** An adjustment as the rules of bounds see it. */
interface AdjustmentFacts {
  readonly direction: 'credit' | 'debit';
  readonly principalId: string;
  readonly amounts: UnitAmounts;
  /** Whether the amounts are estimated. */
  readonly isEstimated: boolean;
  /** The foreign system that it was taken over from. */
  readonly system: string | undefined;
}

/** Judges an adjustment of an allowed grant. A refused credit has no effect. */
export function judgeAdjustment(facts: AdjustmentFacts, grant: Grant): Judgement {
  return facts.direction === 'credit' ? judgeCredit(facts, grant) : judgeDebit(facts, grant);
}

function judgeCredit({ principalId, amounts, system }: AdjustmentFacts, grant: Grant): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  const chain = grantChain(grant);
  const own = chain.find((each) => each.principalId === principalId);
  if (own !== undefined)
    findings.push({
      code: 'SELF_CREDIT',
      pointer: '/principal_id',
      expected: `another principal than that of ${own.place.eventId}`,
      actual: principalId,
      related: [own.place],
    });
  let isRefused = own !== undefined;
  for (const { unit, amount, pointer } of listAmounts(amounts, grant, findings)) {
    const accounts = chain.flatMap((each) => {
      const account = each.accounts.get(unit);
      return account === undefined ? [] : [{ each, account, used: subtractRationals(account.used, amount) }];
    });
    const short = accounts.find(({ account }) => compareRationals(amount, account.used) > 0);
    if (short !== undefined) {
      const over = formatRational(subtractRationals(amount, short.account.used));
      const { eventId } = short.each.place;
      isRefused = true;
      findings.push({
        code: 'ADJUSTMENT_EXCEEDED',
        pointer,
        expected: `${unit} at most ${formatRational(short.account.used)}, which counts as used under ${eventId}`,
        actual: `${formatRational(amount)}, ${over} over`,
        related: [short.each.place],
      });
      continue;
    }
    for (const { each, account, used } of accounts) {
      if (exceedsPrecision(used, pointer, findings)) isRefused = true;
      updates.push(() => {
        account.used = used;
        // Nothing rests on a credit of nothing.
        if (system !== undefined && amount.n !== 0n) addSystem(each.systems, system);
      });
    }
  }
  return { findings, apply: () => isRefused || updates.forEach((update) => update()) };
}

function judgeDebit({ amounts, isEstimated }: AdjustmentFacts, grant: Grant): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  for (const each of listAmounts(amounts, grant, findings))
    judgeRise(each, isEstimated, grant, findings, updates);
  return { findings, apply: () => updates.forEach((update) => update()) };
}

/** Judges estimated use without a reservation, in each unit that the grant or an ancestor caps. */
export function judgeUse(amounts: Amounts, pointer: string, grant: Grant | undefined): Judgement {
  const findings: RuleFinding[] = [];
  const updates: (() => void)[] = [];
  for (const [unit, amount] of amounts) judgeRise({ unit, amount, pointer }, true, grant, findings, updates);
  return {
    findings,
    unstated: [...amounts].map(([unit, amount]) => ({ unit, amount })),
    apply: () => updates.forEach((update) => update()),
  };
}

/** Raises the use of one unit. */
function judgeRise(
  { unit, amount, pointer }: PlacedAmount,
  isEstimated: boolean,
  grant: Grant | undefined,
  findings: RuleFinding[],
  updates: (() => void)[],
): void {
  if (amount.n === 0n) return;
  for (const each of grantChain(grant)) {
    const account = each.accounts.get(unit);
    if (account === undefined) continue;
    const used = addRationals(account.used, amount);
    const estimated = isEstimated ? addRationals(account.estimated, amount) : account.estimated;
    if (exceedsPrecision(exceedsDenominatorLimit(estimated) ? estimated : used, pointer, findings)) continue;
    const total = addRationals(used, account.reserved);
    if (compareRationals(total, account.cap) > 0)
      findings.push(overCap('METER_CAP_EXCEEDED', pointer, each, unit, account, amount, total));
    updates.push(() => {
      account.used = used;
      account.estimated = estimated;
    });
  }
}

interface PlacedAmount {
  readonly unit: string;
  readonly amount: Rational;
  readonly pointer: string;
}

/** The amounts of the units that the grant caps; the others get a finding. */
function listAmounts(amounts: UnitAmounts, grant: Grant, findings: RuleFinding[]): PlacedAmount[] {
  return amounts.flatMap(({ unit, amount }, index) => {
    const pointer = `/meters/${index}/amount`;
    if (grant.accounts.has(unit)) return { unit, amount, pointer };
    findings.push(uncapped(unit, pointer, grant));
    return [];
  });
}
