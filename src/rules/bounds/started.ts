/**
 * Executions that were started and are not recorded yet. Live decisions count them, so that a running execution is not allowed twice;
 * verification counts those that another start has taken over.
 */

import type { MeterVector } from '../../base/value/meter.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import { judgeUse } from './adjustment.js';
import { type Account, type Action, amountsOf, type EventPlace, type Grant, grantChain } from './grant.js';
import type { Judgement } from './judgement.js';
import { addInterval, emptyTimeline, fitsWindows, peakOverlap } from './timeline.js';

/** A start without a recorded execution. */
export interface OpenStart {
  readonly place: EventPlace;
  readonly toolName: string;
  /** The parameters' digest as text. */
  readonly params: string | undefined;
  readonly startedAt: string;
  /** The random name of the process that runs it. */
  readonly recorder: string;
  /** Whether a stop had met its action before it (SPEC §8 rule 16). */
  readonly isStopped: boolean;
  /** Its known use when it started. */
  readonly meters: MeterVector;
}

export interface Running {
  readonly start: OpenStart;
  /** The grant that it runs under, directly or by an action. */
  readonly grant: Grant;
  readonly action: Action | undefined;
}

const ONE: Rational = { n: 1n, d: 1n };

/**
 * A copy of a grant and its ancestors, with running executions counted as reserved, in the rate windows, and as concurrent. Without
 * any it is the grant itself. It is for what begins now: with that all that runs is concurrent, also what began later by another clock.
 */
export function withStarted(grant: Grant, running: readonly Running[]): Grant {
  if (running.length === 0) return grant;
  const chains = running.map((each) => ({ each, chain: new Set(grantChain(each.grant)) }));
  return grantChain(grant)
    .reverse()
    .reduce<Grant | undefined>((parent, own) => {
      const under = chains.filter(({ chain }) => chain.has(own)).map(({ each }) => each);
      return { ...(under.length === 0 ? own : addStarted(own, under)), parent };
    }, undefined) as Grant;
}

/**
 * Judges a start that takes another over (SPEC §3.8): the other's reservation, or its known use under a grant, counts once more, as
 * estimated use.
 */
export function judgeTakeover(
  { meters }: OpenStart,
  action: Action | undefined,
  grant: Grant | undefined,
): Judgement {
  return judgeUse(action?.reservation ?? amountsOf(meters), '/prev_event_id', grant);
}

/** Running executions by each grant of their chain. */
export function runningByGrant(running: readonly Running[]): ReadonlyMap<Grant, readonly Running[]> {
  const byGrant = new Map<Grant, Running[]>();
  for (const each of running) {
    for (const grant of grantChain(each.grant)) {
      const under = byGrant.get(grant);
      if (under === undefined) byGrant.set(grant, [each]);
      else under.push(each);
    }
  }
  return byGrant;
}

/** The accounts of a grant, with running executions counted as reserved. */
export function holdStarted(
  accounts: ReadonlyMap<string, Account>,
  running: readonly Running[],
): Map<string, Account> {
  return new Map([...accounts].map(([unit, account]) => [unit, hold(unit, account, running)]));
}

function addStarted(grant: Grant, running: readonly Running[]): Grant {
  const { accounts, rates, concurrency } = grant;
  return {
    ...grant,
    accounts: holdStarted(accounts, running),
    rates: rates.map((rate) => {
      const started = emptyTimeline(rate.window);
      for (const each of running) {
        const from = parseTimestamp(each.start.startedAt);
        const amount = rate.meter === 'calls' ? ONE : mayUse(rate.meter, each);
        if (amount.n === 0n || !fitsWindows(started, from, rate.window, amount)) continue;
        addInterval(started, from, from + rate.window, amount);
      }
      return { ...rate, started: { peak: (begin, end) => peakOverlap(started, begin, end) } };
    }),
    concurrency: concurrency && {
      ...concurrency,
      started: { peak: () => ({ n: BigInt(running.length), d: 1n }) },
    },
  };
}

/** An action's reservation is counted already. */
function hold(unit: string, account: Account, running: readonly Running[]): Account {
  let { reserved } = account;
  for (const each of running) {
    const own = each.action?.reservation.get(unit) ?? ZERO;
    const sum = addRationals(reserved, subtractRationals(mayUse(unit, each), own));
    if (!exceedsDenominatorLimit(sum)) reserved = sum;
  }
  return { ...account, reserved };
}

/** The known use, or the reservation if that is more. */
function mayUse(unit: string, { start, action }: Running): Rational {
  const known = amountsOf(start.meters).get(unit) ?? ZERO;
  const reserved = action?.reservation.get(unit) ?? ZERO;
  return compareRationals(known, reserved) > 0 ? known : reserved;
}
