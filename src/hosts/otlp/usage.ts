/**
 * Usage of spans that lie in one another: a framework, a client, a provider's library each write a span of one call, and agents one with
 * the sum of all below. What is counted is what the innermost state; an outer one counts where nothing below it states the same unit.
 */

import { addTo } from '../shared/values.js';
import { compareQuantities, type Quantity } from '../../base/value/quantity.js';
import { excessOf, type StatedAmounts, sumOf } from '../shared/usage.js';
interface UsageSpan {
  readonly isAgent: boolean;
  readonly amounts: StatedAmounts;
}
interface CountedUsage<T> {
  readonly span: T;
  /** Amounts that no span below states. */
  readonly counted: StatedAmounts;
  /** The spans with usage below it that no other span with usage is between. */
  readonly below: readonly T[];
  /** Where it states something else than those below it together. */
  readonly differences: readonly {
    readonly name: string;
    readonly own: Quantity;
    readonly below: Quantity | undefined;
    readonly rest: Quantity | undefined;
  }[];
}

/**
 * @param spans - Those with usage.
 * @param above - The nearest of these above each; the nearest agent above each, with or without usage.
 */
export function countUsage<T extends UsageSpan>(
  spans: readonly T[],
  above: (span: T) => T | undefined,
  agentAbove: (span: T) => unknown,
): ReadonlyMap<T, CountedUsage<T>> {
  const parents = withoutCircles(spans, above);
  const children = new Map<T, T[]>();
  for (const [span, parent] of parents) addTo(children, parent, span);
  const order = spans.filter((span) => !parents.has(span));
  for (let next = 0; next < order.length; next++)
    for (const child of children.get(order[next]!) ?? []) order.push(child);
  const totals = new Map<T, StatedAmounts>();
  const result = new Map<T, CountedUsage<T>>();
  // What is below comes first.
  for (const span of order.reverse()) {
    const below = children.get(span) ?? [];
    const { counted, total, differences } = countOf(span, below, totals, agentAbove);
    totals.set(span, total);
    result.set(span, { span, counted, below, differences });
  }
  return result;
}

function countOf<T extends UsageSpan>(
  span: T,
  below: readonly T[],
  totals: ReadonlyMap<T, StatedAmounts>,
  agentAbove: (span: T) => unknown,
): Pick<CountedUsage<T>, 'counted' | 'differences'> & { readonly total: StatedAmounts } {
  const counted: Record<string, Quantity> = {};
  const total: Record<string, Quantity> = {};
  const differences: CountedUsage<T>['differences'][number][] = [];
  const sumBelow = (name: string, spans: readonly T[]): Quantity | undefined =>
    sumOf(spans.map((each) => totals.get(each)?.[name]));
  const names = new Set([span, ...below].flatMap((each) => Object.keys(totals.get(each) ?? each.amounts)));
  for (const name of names) {
    const own = span.amounts[name];
    const isBelow = below.some((each) => totals.get(each)?.[name] !== undefined);
    const sum = isBelow ? sumBelow(name, below) : undefined;
    if (own === undefined) {
      if (sum !== undefined) total[name] = sum;
      continue;
    }
    if (!isBelow) {
      counted[name] = total[name] = own;
      continue;
    }
    const order = sum === undefined ? 1 : compareQuantities(own, sum);
    total[name] = order > 0 || sum === undefined ? own : sum;
    if (order === 0) continue;
    // An agent may leave out what the agents below it used.
    const near = span.isAgent ? below.filter((each) => agentAbove(each) === span) : below;
    const nearSum = near.length < below.length ? sumBelow(name, near) : undefined;
    if (nearSum !== undefined && compareQuantities(own, nearSum) === 0) continue;
    const rest = sum === undefined ? own : excessOf(own, sum);
    differences.push({ name, own, below: sum, rest });
  }
  return { counted, total, differences };
}

/** Which is above which; of a circle one link is left out, so that each is in a tree. */
function withoutCircles<T>(spans: readonly T[], above: (span: T) => T | undefined): ReadonlyMap<T, T> {
  const parents = new Map<T, T>();
  const rounds = new Map<T, number>();
  for (const [round, span] of spans.entries()) {
    for (let at: T | undefined = span; at !== undefined && !rounds.has(at);) {
      rounds.set(at, round);
      const parent = above(at);
      // Met in this very round: the circle would be closed here.
      if (parent === undefined || rounds.get(parent) === round) break;
      parents.set(at, parent);
      at = parent;
    }
  }
  return parents;
}
