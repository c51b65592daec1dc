/**
 * The accounts of a grant as integers below 2^53, in multiples of a power of ten: such sums are exact and allocate nothing. Anything else
 * is left to `judge.ts`, the definition.
 */

import { compareRationals, type Rational, rationalOfDecimal } from '../base/value/rational.js';
import { orderTimestamps } from '../base/value/timestamp.js';
import { isMeasuredUnit } from '../format/event/meter-basis.js';
import { CODE_PAGES } from '../format/finding/catalog.js';
import { type Account, type Amounts, type Grant, grantChain } from '../rules/bounds/grant.js';
import { uncappedCause } from '../rules/bounds/judgement.js';
import { allowsTool, matchesTool, SLICE_TOOL } from '../rules/bounds/tool-set.js';
import { foldCause } from '../rules/verify/line-findings.js';

/** Amounts are counted in multiples of at least 10^−15. */
export const MAX_SCALE = 15;
const POWERS = Array.from({ length: MAX_SCALE + 1 }, (_, scale) => 10 ** scale);

/** The multiple of 10^−`to` that `value` multiples of 10^−`from` are; NaN where that is no safe integer, or `to` less than `from`. */
export function rescale(value: number, from: number, to: number): number {
  if (from === to) return value;
  const scaled = value * (POWERS[to - from] ?? NaN);
  return scaled <= Number.MAX_SAFE_INTEGER ? scaled : NaN;
}

/** The least scale in which `r` is a whole multiple; undefined where there is none up to {@link MAX_SCALE}. */
function scaleOf({ d }: Rational): number | undefined {
  for (let scale = 0; scale <= MAX_SCALE; scale += 1)
    if (BigInt(POWERS[scale] as number) % d === 0n) return scale;
  return undefined;
}

/** `r` in multiples of 10^−`scale`; NaN where that is no safe integer. */
function toMultiple({ n, d }: Rational, scale: number): number {
  const multiple = Number((n * BigInt(POWERS[scale] as number)) / d);
  return multiple >= 0 && multiple <= Number.MAX_SAFE_INTEGER ? multiple : NaN;
}

/** The sums of one account. {@link ScaledAccount.store} writes them to it. */
export class ScaledAccount {
  /** The sums are multiples of 10^−`scale`. */
  scale = 0;
  /** Infinity if no sum of safe integers reaches it. */
  cap = 0;
  used = 0;
  estimated = 0;
  reserved = 0;
  /** Whether the account is out of date. */
  isChanged = false;
  readonly account: Account;
  /** The objects last read or stored: any other change of the account replaces them. */
  #used: Rational | undefined;
  #estimated: Rational | undefined;
  #reserved: Rational | undefined;

  constructor(account: Account) {
    this.account = account;
  }

  /**
   * Raises the scale to at least `scale`.
   *
   * @returns False where that is not possible: nothing was changed then.
   */
  reach(scale: number): boolean {
    const { account } = this;
    const isRead =
      this.#used === account.used &&
      this.#estimated === account.estimated &&
      this.#reserved === account.reserved;
    if (isRead && scale <= this.scale) return true;
    if (isRead) return this.#raise(scale);
    return this.#read(scale);
  }

  #raise(scale: number): boolean {
    const { used, estimated, reserved } = this;
    const from = this.scale;
    const largest = rescale(Math.max(used, estimated, reserved), from, scale);
    if (Number.isNaN(largest)) return false;
    this.scale = scale;
    this.used = rescale(used, from, scale);
    this.estimated = rescale(estimated, from, scale);
    this.reserved = rescale(reserved, from, scale);
    this.#setCap();
    return true;
  }

  #read(least: number): boolean {
    const { cap, used, estimated, reserved } = this.account;
    let scale = least;
    for (const each of [cap, used, estimated, reserved]) {
      const own = scaleOf(each);
      if (own === undefined) return false;
      scale = Math.max(scale, own);
    }
    const multiples = [used, estimated, reserved].map((each) => toMultiple(each, scale));
    if (multiples.some(Number.isNaN)) return false;
    [this.used, this.estimated, this.reserved] = multiples as [number, number, number];
    [this.#used, this.#estimated, this.#reserved] = [used, estimated, reserved];
    this.scale = scale;
    this.#setCap();
    return true;
  }

  #setCap(): void {
    const cap = toMultiple(this.account.cap, this.scale);
    this.cap = Number.isNaN(cap) ? Infinity : cap;
  }

  store(): void {
    if (!this.isChanged) return;
    this.isChanged = false;
    const { account, scale } = this;
    account.used = this.#used = rationalOfDecimal(this.used, scale);
    account.estimated = this.#estimated = rationalOfDecimal(this.estimated, scale);
    account.reserved = this.#reserved = rationalOfDecimal(this.reserved, scale);
  }
}

/** The bounds of one unit under a grant: its accounts along the chain, and the least cap of an action. */
export interface UnitBounds {
  readonly accounts: readonly ScaledAccount[];
  /** In multiples of 10^−`capScale`. */
  readonly actionCap: number | undefined;
  readonly capScale: number;
  /** Of a unit that the grant should cap, and no grant of the chain does: what its finding folds under. */
  readonly uncapped: string | undefined;
}

/** An amount of one unit, in multiples of 10^−`scale`. */
export interface Limit {
  readonly unit: string;
  readonly most: number;
  readonly scale: number;
}

function foldUncapped(unit: string, grant: Grant): string {
  return foldCause('METER_UNCAPPED', CODE_PAGES.METER_UNCAPPED.severity, uncappedCause(unit, grant));
}

const NO_LIMITS: readonly Limit[][] = [];

/** None where there are none, or one has no such form. */
function toLimits(above: Amounts | undefined): Limit[] {
  const limits: Limit[] = [];
  for (const [unit, amount] of above ?? []) {
    const scale = scaleOf(amount);
    const most = scale === undefined ? NaN : toMultiple(amount, scale);
    if (scale === undefined || Number.isNaN(most)) return [];
    limits.push({ unit, most, scale });
  }
  return limits;
}

const MAX_REMEMBERED = 1_000;

const EARLIEST = '0000-01-01T00:00:00Z';

/** The bounds of a grant and its ancestors, or of none, in this form. */
export class BoundsView {
  readonly grant: Grant | undefined;
  readonly chain: readonly Grant[];
  /** Whether rates or concurrency are limited. */
  readonly hasWindows: boolean;
  readonly limitsResources: boolean;
  readonly isDigestOnly: boolean;
  /** Whether there are rules of approval. */
  readonly hasApprovals: boolean;
  /** The latest `occurred_at`, the latest `not_before` and the earliest `expires_at` of the chain. */
  readonly latest: string;
  readonly notBefore: string | undefined;
  readonly expiresAt: string | undefined;
  readonly #tools = new Map<string, boolean>();
  readonly #limits = new Map<string, readonly Limit[][]>();
  readonly #units = new Map<string, UnitBounds | undefined>();
  readonly #accounts: Map<Account, ScaledAccount>;

  /** @param accounts - Shared by all views of a ledger. */
  constructor(grant: Grant | undefined, accounts: Map<Account, ScaledAccount>) {
    this.grant = grant;
    this.#accounts = accounts;
    this.chain = grantChain(grant);
    this.hasWindows = this.chain.some((each) => each.rates.length > 0 || each.concurrency !== undefined);
    this.limitsResources = this.chain.some(({ resources }) => resources !== undefined);
    this.hasApprovals = this.chain.some(({ approvals }) => approvals.length > 0);
    this.isDigestOnly = this.chain.some(({ outputMode }) => outputMode === 'digest_only');
    this.latest = this.chain.reduce((last, { occurredAt }) => later(last, occurredAt), EARLIEST);
    this.notBefore = this.chain.map((each) => each.notBefore).reduce(later, undefined);
    this.expiresAt = this.chain.map((each) => each.expiresAt).reduce(earlier, undefined);
  }

  /** Whether a tool is allowed, and no rule asks for more: approvals of any amount, or what applies to slices alone. */
  allowsTool(tool: string): boolean {
    let isAllowed = this.#tools.get(tool);
    if (isAllowed === undefined) {
      isAllowed =
        tool !== SLICE_TOOL &&
        this.chain.every(({ tools }) => allowsTool(tools, tool)) &&
        this.limitsOf(tool).every((limits) => limits.length > 0);
      if (this.#tools.size < MAX_REMEMBERED) this.#tools.set(tool, isAllowed);
    }
    return isAllowed;
  }

  /** Of each rule of approval for the tool: up to which amounts a call needs none. Empty for a rule that always asks. */
  limitsOf(tool: string): readonly (readonly Limit[])[] {
    if (!this.hasApprovals) return NO_LIMITS;
    let all = this.#limits.get(tool);
    if (all === undefined) {
      all = this.chain.flatMap(({ approvals }) =>
        approvals.filter(({ tools }) => matchesTool(tools, tool)).map(({ above }) => toLimits(above)),
      );
      if (this.#limits.size < MAX_REMEMBERED) this.#limits.set(tool, all);
    }
    return all;
  }

  /** The bounds of a unit; undefined where they have no such form. */
  unit(unit: string): UnitBounds | undefined {
    const known = this.#units.get(unit);
    if (known !== undefined || this.#units.has(unit)) return known;
    const bounds = this.#boundsOf(unit);
    if (this.#units.size < MAX_REMEMBERED) this.#units.set(unit, bounds);
    return bounds;
  }

  #boundsOf(unit: string): UnitBounds | undefined {
    const caps = this.chain.map(({ actionCaps }) => actionCaps.get(unit)).filter((cap) => cap !== undefined);
    const least = caps.reduce<Rational | undefined>(
      (a, b) => (a === undefined || compareRationals(b, a) < 0 ? b : a),
      undefined,
    );
    const capScale = least === undefined ? 0 : scaleOf(least);
    if (capScale === undefined) return undefined;
    const actionCap = least && toMultiple(least, capScale);
    if (Number.isNaN(actionCap)) return undefined;
    const accounts: ScaledAccount[] = [];
    for (const { accounts: own } of this.chain) {
      const account = own.get(unit);
      if (account === undefined) continue;
      let scaled = this.#accounts.get(account);
      if (scaled === undefined) {
        scaled = new ScaledAccount(account);
        this.#accounts.set(account, scaled);
      }
      accounts.push(scaled);
    }
    const isUncapped = accounts.length === 0 && !isMeasuredUnit(unit);
    const uncapped = isUncapped && this.grant ? foldUncapped(unit, this.grant) : undefined;
    return { accounts, actionCap, capScale, uncapped };
  }
}

function later(a: string | undefined, b: string): string;
function later(a: string | undefined, b: string | undefined): string | undefined;
function later(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return orderTimestamps(b, a) > 0 ? b : a;
}

function earlier(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return orderTimestamps(b, a) < 0 ? b : a;
}
