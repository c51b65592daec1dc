/**
 * Slices (SPEC §8 rule 17): a parent ledger sets amounts aside, and a child ledger spends them under a root grant of its own that names
 * where they were set aside.
 */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { checkOptions, checkString, describeValue, type OptionTypes } from '../../base/options.js';
import { fromDigestText, parseDigest, sha256Digest, tryParseDigest } from '../../base/value/digest.js';
import { type AmountsByUnit, MAX_METERS, type Meter, meters } from '../../base/value/meter.js';
import { compareQuantities, fromRational, type Quantity, toRational } from '../../base/value/quantity.js';
import {
  compareRationals,
  type Rational,
  subtractRationals,
  ZERO as RATIONAL_ZERO,
} from '../../base/value/rational.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { type Grant, grantChain } from '../../rules/bounds/grant.js';
import { sliceParamsDigest } from '../../rules/bounds/slice.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { DeniedError } from '../agent/errors.js';
import { authorizeAndStart } from '../policy/authorize.js';
import { reservedBy } from '../policy/record.js';
import { findGrants } from '../policy/revoke.js';
import type { Ledger } from '../writer/ledger.js';

export interface GivenSlice {
  /** The parent ledger, `sha-256:…`. */
  readonly ledgerId: string;
  /** The action in the parent that sets it aside, `sha-256:…`. */
  readonly eventId: string;
  /** The ledger that may spend it, `sha-256:…`. */
  readonly childId: string;
  /** The principal of the parent's grant, and of the child's. */
  readonly principalId: string;
  /** What the child may spend, of every unit that it must cap: 0 of those that the parent caps and that nothing was set aside of. */
  readonly caps: readonly Meter[];
  /** Until when the child may spend it. */
  readonly expiresAt: string | undefined;
}

/** A slice, and whether it was set aside now, or by an earlier request of the same key. */
export interface OpenedSlice extends GivenSlice {
  readonly status: 'appended' | 'exists';
  /** Of the action. */
  readonly seq: number;
}

export interface OpenSliceOptions {
  /** The parent's grant: its seq, id (`sha-256:…`) or unambiguous prefix; over an index its id. */
  readonly grantId: string;
  /** The child ledger: the id of its genesis event, `sha-256:…`. */
  readonly childId: string;
  /** What the child may spend: `{ usd: '10' }`. */
  readonly caps: AmountsByUnit;
  /** Sets aside what is left under the grant where that is less, but of no unit nothing; a repeated request gets the slice that it has. */
  readonly orLess?: boolean | undefined;
  /** Until when, a timestamp of SPEC §2. Default: as long as the parent's grant and those above it. */
  readonly expiresAt?: string | undefined;
  /**
   * The name of this request (SPEC §8 rule 18): a repeated one gets the slice that it has. Default {@link sliceKey} of the child's first
   * slice, so that a second one takes a key of its own.
   */
  readonly requestKey?: string | undefined;
  /** Systems whose imported authority counts. Default: none. */
  readonly honourImported?: readonly string[] | undefined;
  /** Default: the present. */
  readonly now?: (() => string) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const SLICE_OPTIONS: OptionTypes<OpenSliceOptions> = {
  grantId: 'string',
  childId: 'string',
  caps: 'object',
  orLess: 'boolean',
  expiresAt: 'string',
  requestKey: 'string',
  honourImported: 'array',
  now: 'function',
  signal: 'signal',
};

/** The request key of a child's slice. @param number - From 1 */
export function sliceKey(childId: string, number = 1): string {
  return `slice/${fromDigestText(childId)}/${number}`;
}

/**
 * Sets amounts aside in a parent ledger for a child: an allowed action `northroot.slice` and its start, durable at once. From then on they
 * count as spent in the parent until the slice is settled. The ledger's signer signs both, for the grant's principal.
 * @param parent - Open for decisions
 * @throws DeniedError where the parent's grants deny it; it is recorded
 * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_NOT_A_GRANT`, `GRANT_DENIED`; `SLICE_EXCEEDED` for an end after that of the parent's
 *   grant; `REQUEST_CONFLICT` where the key has a slice of other amounts; as `startExecution` and `Ledger.decide`
 * @throws TypeError, RangeError for a bad option
 */
export async function openSlice(parent: Ledger, options: OpenSliceOptions): Promise<OpenedSlice> {
  checkOptions('openSlice', options, SLICE_OPTIONS);
  checkString('openSlice', 'grantId', options.grantId);
  const { caps, orLess = false, requestKey, signal, honourImported, now } = options;
  const childId = readLedgerId('openSlice: childId', options.childId);
  if (childId === parent.genesisId)
    throw new RangeError('openSlice: childId: expected another ledger than the parent');
  const asked = meters(caps);
  if (asked.length === 0) throw new RangeError('openSlice: caps: expected at least one unit, found none');
  const found = await parent.inspect((_, state) => describeGrant(state, options.grantId), { signal });
  const reservation = orLess ? atMost(asked, found.left) : asked;
  const expiresAt = options.expiresAt ?? found.until;
  if (found.until !== undefined && expiresAt !== undefined && compareTimestamps(expiresAt, found.until) > 0)
    throw new NorthrootError(
      'SLICE_EXCEEDED',
      `expected an end by ${found.until}, that of the grant, found ${expiresAt}`,
      {
        hint: 'a slice ends with its grant, or before it',
      },
    );
  const params = parseDigest(sliceParamsDigest(childId));
  const decided = await authorizeAndStart(
    parent,
    {
      principalId: found.principalId,
      toolName: SLICE_TOOL,
      paramsDigest: params,
      intentDigest: sha256Digest(
        canonicalBytes({ tool_name: SLICE_TOOL, tool_params_digest: { alg: params.alg, b64: params.b64 } }),
      ),
      meters: reservation,
      grantId: found.grantId,
      requestKey: requestKey ?? sliceKey(childId),
      ...defined({ expiresAt }),
    },
    { meterUsed: [], ...defined({ now }) },
    { signal, honourImported, ...defined({ now }) },
  );
  if (decided.decision === 'deny') throw new DeniedError(SLICE_TOOL, decided);
  // Asked for again, it has begun.
  const { refusal } = decided;
  if (refusal !== undefined && !isBegun(refusal))
    throw refusal instanceof Error ? refusal : new TypeError(describeValue(refusal));
  const { eventId, seq, status } = decided.recorded;
  const slice = await parent.inspect((_, state) => readSlice(state, parent.genesisId, eventId, childId), {
    signal,
  });
  if (status === 'appended' || isSame(slice, asked) || (orLess && isWithin(slice, asked)))
    return { ...slice, status, seq };
  throw new NorthrootError('REQUEST_CONFLICT', `the slice ${eventId} was set aside with other amounts`, {
    hint: 'take it as it is: ask for its amounts; or ask for a further one by a request key of its own',
  });
}

function isBegun(error: unknown): boolean {
  return error instanceof NorthrootError && error.code === 'AUTHORIZATION_STARTED';
}

/** The earliest end of a grant and those above it. @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_NOT_A_GRANT`, `GRANT_DENIED` */
export function endOfGrant(state: VerifyState, grantId: string): string | undefined {
  return describeGrant(state, grantId).until;
}

interface ParentGrant {
  readonly grantId: string;
  readonly principalId: string;
  /** The earliest end of the grant and those above it. */
  readonly until: string | undefined;
  /** The least that is left of each unit under the grant and those above it. */
  readonly left: ReadonlyMap<string, Rational>;
}

function describeGrant(state: VerifyState, wanted: string): ParentGrant {
  const [grant] = findGrants(state, [wanted]);
  const { place, principalId } = grant as Grant;
  const chain = grantChain(grant);
  const left = new Map<string, Rational>();
  for (const { accounts } of chain)
    for (const [unit, { cap, used, reserved }] of accounts) {
      const here = subtractRationals(subtractRationals(cap, used), reserved);
      const least = left.get(unit);
      if (least === undefined || compareRationals(here, least) < 0) left.set(unit, here);
    }
  const ends = chain.flatMap(({ expiresAt }) => expiresAt ?? []).sort(compareTimestamps);
  return { grantId: place.eventId, principalId, until: ends[0], left };
}

/** What is asked for, or what is left where that is less; as it is asked for where of a unit nothing is left, so that it is denied. */
function atMost(asked: readonly Meter[], left: ReadonlyMap<string, Rational>): readonly Meter[] {
  const fitting: Meter[] = [];
  for (const meter of asked) {
    const most = left.get(meter.unit);
    const isLess = most !== undefined && compareRationals(most, toRational(meter.amount)) < 0;
    const amount = isLess ? amountOf(most) : meter.amount;
    if (amount === undefined) return asked;
    fitting.push({ unit: meter.unit, amount });
  }
  return fitting;
}

/** Undefined for what is no amount to set aside. */
function amountOf(left: Rational): Quantity | undefined {
  if (compareRationals(left, RATIONAL_ZERO) <= 0) return undefined;
  try {
    return fromRational(left);
  } catch {
    return undefined;
  }
}

/**
 * The slice of an open action of a parent. Over an index, its id is whole.
 * @throws NorthrootError `SLICE_NOT_FOUND` unless it is an open slice
 */
function readSlice(state: VerifyState, ledgerId: string, eventId: string, childId: string): GivenSlice {
  const action = state.links.actions.get(fromDigestText(eventId));
  if (action === undefined)
    throw new NorthrootError('SLICE_NOT_FOUND', `${eventId} is no open slice: it was settled meanwhile`, {
      hint: 'ask for a further slice by a request key of its own',
    });
  const caps = new Map<string, Quantity>();
  for (const { accounts } of grantChain(action.grant))
    for (const unit of accounts.keys()) caps.set(unit, ZERO);
  for (const { unit, amount } of reservedBy(action)) caps.set(unit, amount);
  if (caps.size > MAX_METERS)
    throw new NorthrootError(
      'SLICE_EXCEEDED',
      `expected at most ${MAX_METERS} units to cap, found ${caps.size}`,
      {
        hint: 'slice under a grant that caps fewer units',
      },
    );
  return {
    ledgerId,
    eventId,
    childId,
    principalId: action.principalId,
    caps: [...caps].map(([unit, amount]) => ({ unit, amount })).sort((a, b) => (a.unit < b.unit ? -1 : 1)),
    expiresAt: action.expiresAt,
  };
}

const ZERO: Quantity = { t: 'int', v: '0' };

/** Whether a slice has the amounts that are asked for. Its end stays what it was: most are told as so long from now. */
function isSame({ caps }: GivenSlice, asked: readonly Meter[]): boolean {
  const has = ({ unit, amount }: Meter): boolean =>
    compareQuantities(caps.find((cap) => cap.unit === unit)?.amount ?? ZERO, amount) === 0;
  const isMore = ({ unit, amount }: Meter): boolean =>
    compareQuantities(amount, ZERO) > 0 && !asked.some((each) => each.unit === unit);
  return asked.every(has) && !caps.some(isMore);
}

/** Whether a slice has no more than is asked for. */
function isWithin({ caps }: GivenSlice, asked: readonly Meter[]): boolean {
  const most = new Map(asked.map(({ unit, amount }) => [unit, amount]));
  return caps.every(({ unit, amount }) => compareQuantities(amount, most.get(unit) ?? ZERO) <= 0);
}

/** A ledger's id. @throws RangeError naming `where` */
export function readLedgerId(where: string, text: string): string {
  checkString(where, 'the id of a ledger', text);
  if (tryParseDigest(text)?.alg === 'sha-256') return text;
  throw new RangeError(`${where}: expected the id of a ledger, sha-256:…, found ${printable(text, 80)}`);
}
