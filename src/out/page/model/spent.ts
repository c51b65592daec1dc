/** What the activity report sums, as the page shows it: the numbers are those of `northroot report`. */

import { printable } from '../../../base/bytes/printable.js';
import type { ActivityGroup, ActivityMeter, ActivityReport } from '../../../format/schema/generated/types.js';
import type { Refusal, Spender, SpentUnit } from './protocol.js';
import { groupDigits } from './words.js';

/** The most characters of a sum; longer ones end in `…`. */
const MAX_AMOUNT = 4_000;

/** Money first, then what was called, then the rest by name. */
export function listSpent(meters: readonly ActivityMeter[]): SpentUnit[] {
  const rank = ({ unit }: ActivityMeter): number => (/^[a-z]{3}$/.test(unit) ? 0 : unit === 'calls' ? 1 : 2);
  return [...meters]
    .filter(({ used, debited, credited }) => used !== '0' || debited !== '0' || credited !== '0')
    .sort((a, b) => rank(a) - rank(b) || (a.unit < b.unit ? -1 : 1))
    .map(
      ({
        unit,
        spent,
        used,
        debited,
        credited,
        basis,
        unauthorized,
        in_invalid: invalid,
        in_violation: violation,
      }) => ({
        unit: printable(unit),
        total: amount(spent),
        used: amount(used),
        debited: debited === '0' ? undefined : amount(debited),
        credited: credited === '0' ? undefined : amount(credited),
        estimated: basis.estimated && amount(basis.estimated),
        unstated: basis.unstated && amount(basis.unstated),
        unauthorized: unauthorized && amount(unauthorized),
        invalid: invalid && amount(invalid),
        violation: violation && amount(violation),
      }),
    );
}

/** Those that did something, and those that did most first. */
export function listSpenders(groups: readonly ActivityGroup[]): Spender[] {
  return groups
    .map(({ key, totals: { executions, actions, grants, meters } }) => ({
      principal: key === null ? 'nobody that is named' : printable(key),
      executions: executions.success + executions.failure + executions.unknown,
      failures: executions.failure,
      blocked: executions.blocked,
      refused: actions.denied + grants.denied,
      units: listSpent(meters),
    }))
    .filter(({ executions, blocked, refused, units }) => executions + blocked + refused + units.length > 0)
    .sort((a, b) => b.executions - a.executions);
}

/** Why something was refused, most often first. */
export function listRefusals(decisions: ActivityReport['decisions']): Refusal[] {
  const counts = new Map<string, number>();
  for (const { decision, decision_code: code, count } of decisions) {
    if (decision === 'deny') counts.set(code, (counts.get(code) ?? 0) + count);
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([code, count]) => ({ code: printable(code), count }));
}

function amount(exact: string): string {
  return printable(groupDigits(exact), MAX_AMOUNT);
}
