/** The amounts' part of the fast step (rules 5 and 14): what an event reserves, returns and uses, and whether the caps allow it. */

import { type Rational, rationalOfDecimal } from '../base/value/rational.js';
import type { Account } from '../rules/bounds/grant.js';
import { type ActionRow, type ActionRows, MAX_ROW_UNITS } from '../rules/verify/action-rows.js';
import { foldOne } from '../rules/verify/line-findings.js';
import type { Links } from '../rules/verify/links.js';
import type { VerifyState } from '../rules/verify/state.js';
import type { BlockTexts } from './blocks/block-texts.js';
import {
  BoundsView,
  type Limit,
  MAX_SCALE,
  rescale,
  type ScaledAccount,
  type UnitBounds,
} from './scaled-account.js';
import * as row from './scan/row.js';
import { MeterReader, readDigits } from './scan/scanned-line.js';
import { LOW_DIGITS } from './scan/tables.js';

/** The factor of the higher part of an amount. */
const LOW_BASE = 10 ** LOW_DIGITS;
/** How many grants are remembered at once. */
const MAX_VIEWS = 1_024;

interface Amount {
  unit: string;
  value: number;
  scale: number;
}

interface Change {
  account: ScaledAccount;
  used: number;
  estimated: number;
  reserved: number;
}

export class FastAmounts {
  readonly #texts: BlockTexts;
  readonly #rows: ActionRows;
  readonly #grants: Links['grants'];
  readonly #meters = new MeterReader();
  readonly #accounts = new Map<Account, ScaledAccount>();
  /** By the number of the grant. */
  readonly #views = new Map<number, BoundsView>();
  /** The accounts that {@link FastAmounts.flush} writes. */
  readonly #changed: ScaledAccount[] = [];
  /** The amounts of the current event, and the changes that they make. The objects are used again. */
  readonly #amounts: Amount[] = [];
  #count = 0;
  readonly #changes: Change[] = [];
  #changeCount = 0;
  /** Undefined where the fast step may not fold findings. */
  readonly #folding: Pick<VerifyState, 'foldRoots'> | undefined;
  /** What the findings of the current event fold under, and the places of their amounts. */
  readonly #folded: string[] = [];
  readonly #foldedAt: number[] = [];
  #foldedCount = 0;
  /** The bounds of what is under no grant: none. */
  readonly unbounded = new BoundsView(undefined, this.#accounts);

  /** @param folding - Counts findings that only add to an earlier one. */
  constructor(
    grants: Links['grants'],
    rows: ActionRows,
    texts: BlockTexts,
    folding?: Pick<VerifyState, 'foldRoots'>,
  ) {
    this.#folding = folding;
    this.#grants = grants;
    this.#rows = rows;
    this.#texts = texts;
  }

  viewOf(index: number): BoundsView | undefined {
    const known = this.#views.get(index);
    if (known !== undefined) return known;
    const grant = this.#grants.at(index);
    if (grant?.decision !== 'allow') return undefined;
    if (this.#views.size >= MAX_VIEWS) {
      // New views read the accounts, so these must be up to date.
      this.flush();
      this.#views.clear();
      this.#accounts.clear();
    }
    const view = new BoundsView(grant, this.#accounts);
    this.#views.set(index, view);
    return view;
  }

  begin(): void {
    this.#count = 0;
    this.#changeCount = 0;
    this.#foldedCount = 0;
  }

  /** Reads the meters; false where one of them is too large or too fine. */
  read(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const listed = rows[base + row.METER_COUNT]!;
    if (listed > row.ROW_AMOUNTS) return this.#readMany(bytes, rows, base);
    for (let i = 0; i < listed; i += 1) {
      const at = base + row.AMOUNTS + i * row.AMOUNT_WIDTH;
      const high = rows[at + row.AMOUNT_HIGH]!;
      const scale = rows[at + row.AMOUNT_SCALE]!;
      if (high < 0 || scale > MAX_SCALE) return false;
      const unit = this.#texts.units.at(bytes, rows, at);
      this.#put(i, unit, high * LOW_BASE + rows[at + row.AMOUNT_LOW]!, scale);
    }
    this.#count = listed;
    return true;
  }

  #readMany(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const meters = this.#meters;
    let count = 0;
    meters.begin(bytes, rows, base);
    while (meters.next()) {
      const { unit, start, end, scale } = meters;
      const value = readDigits(bytes, start, end);
      if (Number.isNaN(value) || scale > MAX_SCALE) return false;
      this.#put(count, unit, value, scale);
      count += 1;
    }
    this.#count = count;
    return true;
  }

  #put(index: number, unit: string, value: number, scale: number): void {
    const amount = (this.#amounts[index] ??= { unit, value, scale });
    amount.unit = unit;
    amount.value = value;
    amount.scale = scale;
  }

  /** Copies the amounts into the row of an action; false where it has no room for them. */
  copyTo(draft: ActionRow): boolean {
    if (this.#count > MAX_ROW_UNITS) return false;
    for (let i = 0; i < this.#count; i += 1) {
      const amount = this.#amounts[i]!;
      draft.units[i] = amount.unit;
      draft.amounts[i] = amount.value;
      draft.scales[i] = amount.scale;
    }
    draft.unitCount = this.#count;
    return true;
  }

  /** The units of the event that no grant caps, and the places of their amounts. */
  get uncapped(): readonly { readonly unit: string; readonly place: number }[] {
    return this.#foldedAt
      .slice(0, this.#foldedCount)
      .map((place) => ({ unit: (this.#amounts[place] as Amount).unit, place }));
  }

  /** The amounts as the rules take them. */
  list(): { readonly unit: string; readonly amount: Rational }[] {
    return this.#amounts
      .slice(0, this.#count)
      .map(({ unit, value, scale }) => ({ unit, amount: rationalOfDecimal(value, scale) }));
  }

  /** Whether no rule of approval asks for one of an action with these amounts (rule 15). */
  actsWithin(rules: readonly (readonly Limit[])[]): boolean {
    for (let i = 0; i < rules.length; i += 1) {
      const limits = rules[i]!;
      for (let k = 0; k < limits.length; k += 1) {
        const limit = limits[k]!;
        const amount = this.#find(limit.unit);
        if (amount === undefined || !isAtMost(amount, limit.most, limit.scale)) return false;
      }
    }
    return true;
  }

  /** Likewise of an execution that used these amounts. */
  usesWithin(rules: readonly (readonly Limit[])[]): boolean {
    for (let i = 0; i < rules.length; i += 1) {
      const limits = rules[i]!;
      for (let k = 0; k < limits.length; k += 1) {
        const limit = limits[k]!;
        const amount = this.#find(limit.unit);
        if (amount !== undefined && !isAtMost(amount, limit.most, limit.scale)) return false;
      }
    }
    return true;
  }

  #find(unit: string): Amount | undefined {
    for (let i = 0; i < this.#count; i += 1) if (this.#amounts[i]!.unit === unit) return this.#amounts[i];
    return undefined;
  }

  /** Reserves the amounts of an action; false where a cap may not allow it. */
  reserve(view: BoundsView): boolean {
    for (let i = 0; i < this.#count; i += 1) {
      const amount = this.#amounts[i]!;
      if (amount.value === 0) continue;
      const bounds = view.unit(amount.unit);
      if (bounds === undefined || !isCapped(amount, bounds)) return false;
      if (bounds.uncapped !== undefined && !this.#fold(bounds.uncapped, i)) return false;
      for (const account of bounds.accounts) if (!this.#reserveIn(account, amount)) return false;
    }
    return true;
  }

  #reserveIn(account: ScaledAccount, { value, scale }: Amount): boolean {
    if (!account.reach(scale)) return false;
    const reserved = account.reserved + rescale(value, scale, account.scale);
    const total = account.used + reserved;
    if (!(total <= account.cap && total <= Number.MAX_SAFE_INTEGER)) return false;
    this.#change(account, account.used, account.estimated, reserved);
    return true;
  }

  /**
   * Returns what the action reserved, and counts what the execution used (rule 5); false where a cap may not allow it.
   *
   * @param action - The row of the action; -1 for none.
   * @param flags - Of the event's row: they say which amounts are estimated.
   */
  use(action: number, view: BoundsView, flags: number): boolean {
    const all = this.#rows;
    const reserved = action === -1 ? 0 : all.unitCount(action);
    for (let i = 0; i < this.#count; i += 1) {
      const amount = this.#amounts[i]!;
      const bounds = view.unit(amount.unit);
      if (bounds === undefined || !isCapped(amount, bounds)) return false;
      let place = 0;
      while (place < reserved && all.unit(action, place) !== amount.unit) place += 1;
      const isReserved = place < reserved;
      if (isReserved && !isAtMost(amount, all.amount(action, place), all.scale(action, place))) return false;
      const { uncapped } = bounds;
      const isFound = uncapped !== undefined && !isReserved && amount.value !== 0;
      if (isFound && !this.#fold(uncapped, i)) return false;
      const [back, backScale] = isReserved ? [all.amount(action, place), all.scale(action, place)] : [0, 0];
      const estimated =
        (flags & row.HAS_UNIT_BASES) === 0 ? row.IS_ESTIMATED : 1 << (row.FIRST_ESTIMATED + i);
      const isEstimated = (flags & estimated) !== 0;
      for (const account of bounds.accounts)
        if (!this.#useIn(account, amount, back, backScale, isEstimated)) return false;
    }
    // Amounts that were reserved and not stated count as used: that takes the slow path.
    for (let place = 0; place < reserved; place += 1)
      if (this.#find(all.unit(action, place)) === undefined && all.amount(action, place) !== 0) return false;
    return true;
  }

  /** Whether the finding of a unit without a cap only adds to an earlier one. */
  #fold(cause: string, place: number): boolean {
    if (this.#folding?.foldRoots.get(cause) === undefined) return false;
    this.#folded[this.#foldedCount] = cause;
    this.#foldedAt[this.#foldedCount++] = place;
    return true;
  }

  #useIn(
    account: ScaledAccount,
    amount: Amount,
    back: number,
    backScale: number,
    isEstimated: boolean,
  ): boolean {
    if (!account.reach(Math.max(amount.scale, backScale))) return false;
    const { scale, cap, used, estimated } = account;
    const value = rescale(amount.value, amount.scale, scale);
    const reserved = account.reserved - rescale(back, backScale, scale);
    const total = used + value + reserved;
    // False if any of them is not a safe integer.
    if (!(reserved >= 0 && total <= Number.MAX_SAFE_INTEGER)) return false;
    // A use within its own reservation counts even if the account is over its cap.
    if (value > 0 && (used + value > cap || (total > cap && value > rescale(back, backScale, scale))))
      return false;
    const nowEstimated = isEstimated ? estimated + value : estimated;
    if (nowEstimated > Number.MAX_SAFE_INTEGER) return false;
    this.#change(account, used + value, nowEstimated, reserved);
    return true;
  }

  #change(account: ScaledAccount, used: number, estimated: number, reserved: number): void {
    const change = (this.#changes[this.#changeCount] ??= { account, used, estimated, reserved });
    change.account = account;
    change.used = used;
    change.estimated = estimated;
    change.reserved = reserved;
    this.#changeCount += 1;
  }

  apply(): void {
    for (let i = 0; i < this.#changeCount; i += 1) {
      const { account, used, estimated, reserved } = this.#changes[i]!;
      account.used = used;
      account.estimated = estimated;
      account.reserved = reserved;
      if (!account.isChanged) this.#changed.push(account);
      account.isChanged = true;
    }
    for (let i = 0; i < this.#foldedCount; i += 1)
      foldOne(this.#folding as Pick<VerifyState, 'foldRoots'>, this.#folded[i]!);
  }

  flush(): void {
    for (const account of this.#changed) account.store();
    this.#changed.length = 0;
  }
}

function isAtMost({ value, scale }: Amount, limit: number, limitScale: number): boolean {
  const common = Math.max(scale, limitScale);
  return rescale(value, scale, common) <= rescale(limit, limitScale, common);
}

/** Rule 14. */
function isCapped(amount: Amount, { actionCap, capScale }: UnitBounds): boolean {
  return actionCap === undefined || isAtMost(amount, actionCap, capScale);
}
