/** The balance of a capped unit (SPEC §8 rule 5, §9): used, reserved and left. */

import { fromRational, type Quantity } from '../../base/value/quantity.js';
import { compareRationals, type Rational, subtractRationals } from '../../base/value/rational.js';
import type { Account, Grant } from './grant.js';

/** One capped unit of a grant. */
export interface Balance {
  readonly unit: string;
  readonly cap: Quantity;
  readonly used: Quantity;
  /** The estimated part of `used`; absent for none. */
  readonly estimated?: Quantity;
  readonly reserved: Quantity;
  /** cap − used − reserved; negative where a bound was broken. */
  readonly left: Quantity;
}

/** The balance of each unit that a grant caps. */
export function balancesOf({ accounts }: Pick<Grant, 'accounts'>): Balance[] {
  return [...accounts].map(([unit, account]) => toBalance(unit, account));
}

/** The balance of one unit. */
export function toBalance(unit: string, { cap, used, estimated, reserved }: Account): Balance {
  const guessed = compareRationals(estimated, used) > 0 ? used : estimated;
  const left = subtractRationals(subtractRationals(cap, used), reserved);
  return {
    unit,
    cap: sumQuantity(cap),
    used: sumQuantity(used),
    ...(guessed.n === 0n ? {} : { estimated: sumQuantity(guessed) }),
    reserved: sumQuantity(reserved),
    left: sumQuantity(left),
  };
}

/** A sum may have more digits than an amount may: it is then written as a longer int or rat. */
export function sumQuantity(r: Rational): Quantity {
  try {
    return fromRational(r);
  } catch {
    return r.d === 1n ? { t: 'int', v: r.n.toString() } : { t: 'rat', n: r.n.toString(), d: r.d.toString() };
  }
}
