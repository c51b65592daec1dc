/**
 * What runs under each grant, kept up to date with the state: a decision beside many open starts costs what one beside few does.
 * `withStarted` over `listRunning` is the definition; this declines what it is not sure of.
 */

import {
  addRationals,
  compareRationals,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import { commonOf, TOO_FINE } from '../../rules/bounds/common-denominator.js';
import {
  type Account,
  type Action,
  type Amounts,
  type Grant,
  amountsOf,
  grantChain,
} from '../../rules/bounds/grant.js';
import { type OpenStart, withStarted } from '../../rules/bounds/started.js';
import { listRunning } from '../../rules/report/accounts.js';
import type { Links } from '../../rules/verify/links.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { RunningTimes, type TimedStart } from './running-times.js';

/** With more changes between two decisions everything is read again. */
const MAX_CHANGED = 100_000;

const ONE: Rational = { n: 1n, d: 1n };
const NOTHING: Amounts = new Map();
const NOT_TIMED: readonly undefined[] = [];

const known = new WeakMap<Links['starts'], RunningStarts>();

/**
 * Grants of a state with what runs counted as reserved, in the rate windows, and as concurrent with what begins now: as `withStarted` over
 * `listRunning`. Valid until the state changes.
 */
export function heldGrants(state: VerifyState): (grant: Grant) => Grant {
  let running: ReturnType<typeof listRunning> | undefined;
  return (grant) =>
    RunningStarts.of(state).hold(grant) ?? withStarted(grant, (running ??= listRunning(state)));
}

/** The most open starts that a decision looks at one by one. */
const MAX_LISTED = 1_000;

/** Whether {@link heldGrants} takes a time that does not grow with what is open. */
export function isHeldAtOnce(state: VerifyState, grant: Grant): boolean {
  return state.links.starts.size <= MAX_LISTED || RunningStarts.of(state).hold(grant) !== undefined;
}

interface Counted {
  /** Undefined for one that counts no more than its action's reservation: such starts share what is known of them. */
  readonly id: string | undefined;
  /** Its grants, nearest first, and what it is in the times of each. */
  readonly under: readonly Under[];
  readonly timed: readonly (TimedStart | undefined)[];
  /** What it may use of each unit beyond its reservation. */
  readonly beyond: Amounts;
}

class RunningStarts {
  readonly #links: Links;
  readonly #unwatch: () => void;
  /** By the number of the grant. */
  readonly #under = new Map<number, Under>();
  /** By the id of the authorization. */
  readonly #counted = new Map<string, readonly Counted[]>();
  /** Authorizations whose starts changed since the last decision. */
  readonly #changed: Set<string>;

  private constructor(links: Links) {
    this.#links = links;
    this.#changed = new Set([...links.starts].map(([id]) => id));
    this.#unwatch = links.starts.watch((id) => {
      this.#changed.add(id);
      if (this.#changed.size > MAX_CHANGED) this.#forget();
    });
  }

  static of({ links }: VerifyState): RunningStarts {
    let running = known.get(links.starts);
    if (running === undefined) known.set(links.starts, (running = new RunningStarts(links)));
    return running;
  }

  hold(grant: Grant): Grant | undefined {
    this.#follow();
    if (this.#under.size === 0) return grant;
    let parent: Grant | undefined;
    for (const own of grantChain(grant).reverse()) {
      const under = this.#under.get(own.index);
      const held = under === undefined ? own : under.hold(own);
      if (held === undefined) return undefined;
      parent = held.parent === parent ? held : { ...held, parent };
    }
    return parent;
  }

  #follow(): void {
    if (this.#changed.size === 0) return;
    try {
      for (const id of this.#changed) this.#recount(id);
    } catch (error) {
      // Of an index that is damaged.
      this.#forget();
      throw error;
    }
    this.#changed.clear();
  }

  #forget(): void {
    this.#unwatch();
    known.delete(this.#links.starts);
  }

  #recount(id: string): void {
    const open = this.#links.starts.get(id);
    const before = this.#counted.get(id) ?? [];
    // An id is that of one start.
    const kept = before.filter(({ id: own }) => own !== undefined && open?.has(own) === true);
    for (const each of before) if (!kept.includes(each)) this.#remove(each);
    if (open === undefined || open.size === 0) {
      this.#counted.delete(id);
      return;
    }
    const isKept = new Set(kept.map((each) => each.id));
    const action = this.#links.actions.get(id);
    const grant = action === undefined ? this.#links.grants.get(id) : action.grant;
    const added: Counted[] = [];
    if (grant !== undefined)
      for (const [own, start] of open) if (!isKept.has(own)) added.push(this.#add(own, start, grant, action));
    const [first] = added;
    const isPlain = first?.timed === NOT_TIMED && first.beyond === NOTHING && open.size === 1;
    this.#counted.set(id, isPlain ? (first.under[0] as Under).listPlain(first.under) : kept.concat(added));
  }

  #add(id: string, start: OpenStart, grant: Grant, action: Action | undefined): Counted {
    const under = this.#chainOf(grant);
    const known = amountsOf(start.meters);
    const beyond = beyondReserved(known, action);
    const isTimed = under.some(({ times }) => times !== undefined);
    const from = isTimed ? parseTimestamp(start.startedAt) : 0n;
    const weightOf = (unit: string): Rational =>
      greater(known.get(unit) ?? ZERO, action?.reservation.get(unit) ?? ZERO);
    const timed = isTimed ? under.map((each) => each.addTime(from, weightOf)) : NOT_TIMED;
    for (const each of under) each.add(beyond);
    return { id, under, timed, beyond };
  }

  #remove({ under, timed, beyond }: Counted): void {
    for (const [index, each] of under.entries()) {
      each.remove(beyond, timed[index]);
      if (each.count === 0) this.#under.delete(each.index);
    }
  }

  /** The same list for all starts of a grant, which remember it. */
  #chainOf(grant: Grant): readonly Under[] {
    const own = this.#underOf(grant);
    const isKnown = own.chain.length > 0 && own.chain.every((each) => this.#under.get(each.index) === each);
    if (!isKnown) own.chain = grantChain(grant).map((each) => this.#underOf(each));
    return own.chain;
  }

  #underOf(grant: Grant): Under {
    let under = this.#under.get(grant.index);
    if (under === undefined) this.#under.set(grant.index, (under = new Under(grant)));
    return under;
  }
}

/** The sum of what is held beyond reservations, of one unit. */
interface Held {
  count: number;
  sum: Rational;
  /** A common denominator of all that it was the sum of. */
  common: bigint;
}

class Under {
  readonly index: number;
  count = 0;
  /** See `RunningStarts`. */
  chain: readonly Under[] = [];
  /** Undefined without limits of rates and concurrency. */
  readonly times: RunningTimes | undefined;
  readonly #meters: readonly string[];
  #plain: readonly Counted[] = [];
  readonly #held = new Map<string, Held>();

  constructor({ index, rates, concurrency }: Grant) {
    this.index = index;
    this.#meters = rates.map(({ meter }) => meter);
    if (rates.length > 0 || concurrency !== undefined)
      this.times = new RunningTimes(rates.map(({ window }) => window));
  }

  /** One start of which nothing is known but the chain of its grant. */
  listPlain(chain: readonly Under[]): readonly Counted[] {
    if (this.#plain[0]?.under !== chain)
      this.#plain = [{ id: undefined, under: chain, timed: NOT_TIMED, beyond: NOTHING }];
    return this.#plain;
  }

  add(beyond: Amounts): void {
    this.count += 1;
    for (const [unit, { n, d }] of beyond) {
      const held = this.#held.get(unit) ?? { count: 0, sum: ZERO, common: 1n };
      held.count += 1;
      held.common = commonOf(held.common, d);
      if (held.common !== TOO_FINE) held.sum = addRationals(held.sum, { n, d });
      this.#held.set(unit, held);
    }
  }

  /** @param weightOf - What it counts of a unit */
  addTime(from: bigint, weightOf: (unit: string) => Rational): TimedStart | undefined {
    return this.times?.add(
      from,
      this.#meters.map((meter) => (meter === 'calls' ? ONE : weightOf(meter))),
    );
  }

  remove(beyond: Amounts, timed: TimedStart | undefined): void {
    this.count -= 1;
    for (const [unit, amount] of beyond) {
      const held = this.#held.get(unit) as Held;
      held.count -= 1;
      if (held.common !== TOO_FINE) held.sum = subtractRationals(held.sum, amount);
      if (held.count === 0) this.#held.delete(unit);
    }
    if (timed !== undefined) this.times?.remove(timed);
  }

  /** The grant with it counted; undefined where sums could be beyond the limit of SPEC §2, and so depend on their order. */
  hold(grant: Grant): Grant | undefined {
    const { times } = this;
    if (times?.isTooFine === true) return undefined;
    let accounts: Map<string, Account> | undefined;
    for (const [unit, { sum, common }] of this.#held) {
      const account = grant.accounts.get(unit);
      if (account === undefined) continue;
      if (commonOf(common, account.reserved.d) === TOO_FINE) return undefined;
      accounts ??= new Map(grant.accounts);
      accounts.set(unit, { ...account, reserved: addRationals(account.reserved, sum) });
    }
    if (times === undefined) return accounts === undefined ? grant : { ...grant, accounts };
    const { rates, concurrency } = grant;
    return {
      ...grant,
      accounts: accounts ?? grant.accounts,
      rates: rates.map((rate, index) => ({ ...rate, started: times.workOf(index) })),
      concurrency: concurrency && { ...concurrency, started: times.goingOn },
    };
  }
}

/** What a start may use beyond its action's reservation, which is counted already; shared where that is nothing. */
function beyondReserved(known: Amounts, action: Action | undefined): Amounts {
  let beyond: Map<string, Rational> | undefined;
  for (const [unit, amount] of known) {
    const reserved = action?.reservation.get(unit) ?? ZERO;
    if (compareRationals(amount, reserved) <= 0) continue;
    beyond ??= new Map();
    beyond.set(unit, subtractRationals(amount, reserved));
  }
  return beyond ?? NOTHING;
}

function greater(a: Rational, b: Rational): Rational {
  return compareRationals(a, b) > 0 ? a : b;
}
