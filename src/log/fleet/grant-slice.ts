/** The root grant in a child ledger that spends a slice (SPEC §3.1, §8 rule 17). */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText } from '../../base/value/digest.js';
import { amountsByUnit } from '../../base/value/meter.js';
import { compareQuantities, formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Draft } from '../../format/event/build.js';
import type { AuthorizationEvent } from '../../format/schema/generated/types.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { draftGrant, type GrantOptions } from '../policy/draft-grant.js';
import type { Appended, Ledger } from '../writer/ledger.js';
import type { AskOptions } from '../writer/withdrawal.js';
import type { GivenSlice } from './slice.js';

/** What the child's grant allows; `meterCaps` and `expiresAt` only to lower what the slice has. */
export type SliceGrantOptions = Omit<GrantOptions, 'principalId' | 'parent' | 'slice'>;

/**
 * Drafts the child's grant of a slice, for `Ledger.append`: for the slice's principal, with its caps and its end. A key with the role
 * `authority` of the child signs it.
 * @throws NorthrootError `SLICE_EXCEEDED` for a cap or an end beyond the slice
 * @throws OptionsError (a RangeError) as `draftGrant`
 */
export function draftSliceGrant(slice: GivenSlice, options: SliceGrantOptions): Draft<AuthorizationEvent> {
  const { meterCaps, expiresAt, ...rest } = options;
  const own = draftGrant({
    ...rest,
    principalId: slice.principalId,
    meterCaps: { ...amountsByUnit(slice.caps), ...meterCaps },
    slice: { ledgerId: slice.ledgerId, eventId: slice.eventId },
    ...defined({ expiresAt: expiresAt ?? slice.expiresAt }),
  });
  const { authorization } = own;
  const { meter_caps: caps = [], expires_at: until } =
    (authorization.kind === 'grant' ? authorization.bounds : undefined) ?? {};
  for (const { unit, amount } of caps) {
    const most = slice.caps.find((each) => each.unit === unit)?.amount ?? ZERO;
    if (compareQuantities(amount, most) > 0)
      throw exceeded(`at most ${formatQuantity(most)} ${unit}`, `${formatQuantity(amount)} ${unit}`);
  }
  const { expiresAt: end } = slice;
  if (end !== undefined && until !== undefined && compareTimestamps(until, end) > 0)
    throw exceeded(`an end by ${end}`, until);
  return own;
}

const ZERO: Quantity = { t: 'int', v: '0' };

export function exceeded(expected: string, actual: string): NorthrootError {
  return new NorthrootError('SLICE_EXCEEDED', `the slice has ${expected}, found ${actual}`, {
    hint: 'a grant of a slice spends no more than what was set aside, and ends no later',
  });
}

/**
 * Appends the child's grant of a slice, once: where an allowed grant of the child names the slice already, that one is returned (`exists`).
 * @param child - Open for decisions, with a signer of the role `authority`
 * @throws NorthrootError `LEDGER_MISMATCH` for a slice that was set aside for another ledger; as {@link draftSliceGrant} and
 *   `Ledger.decide`
 */
export async function grantSlice(
  child: Ledger,
  slice: GivenSlice,
  options: SliceGrantOptions & { readonly now?: (() => string) | undefined },
  ask: AskOptions = {},
): Promise<Appended> {
  const { now = () => new Date().toISOString(), ...bounds } = options;
  return appendSliceGrant(child, slice, () => draftSliceGrant(slice, { occurredAt: now(), ...bounds }), ask);
}

/** Appends a drafted grant of a slice, once. @throws as {@link grantSlice} */
export async function appendSliceGrant(
  child: Ledger,
  slice: GivenSlice,
  draft: () => Draft<AuthorizationEvent>,
  ask: AskOptions = {},
): Promise<Appended> {
  if (slice.childId !== child.genesisId)
    throw new NorthrootError(
      'LEDGER_MISMATCH',
      `expected a slice for ${child.genesisId}, found one for ${slice.childId}`,
      {
        hint: 'a slice is spent in the ledger that it was set aside for',
      },
    );
  const ledgerId = fromDigestText(slice.ledgerId);
  const sliceId = fromDigestText(slice.eventId);
  const isSlice = ({ slice: own }: Grant): boolean => own?.ledgerId === ledgerId && own.eventId === sliceId;
  try {
    return await child.decide((state) => {
      const known = listSliceGrants(state).find(isSlice);
      if (known !== undefined) throw new Known(known);
      return { event: draft(), isAnew: true };
    }, ask);
  } catch (error) {
    if (!(error instanceof Known)) throw error;
    const { seq, eventId } = error.grant.place;
    return { seq, eventId, status: 'exists', findings: [], verdict: undefined };
  }
}

/** The allowed root grants that spend slices, in ledger order. */
export function listSliceGrants({ links: { grants } }: VerifyState): Grant[] {
  return [...grants.values()].filter(({ decision, slice }) => decision === 'allow' && slice !== undefined);
}

/** How many slices of a parent a child has taken up; the next one has the next number. */
export function countSlices(state: VerifyState, parentId: string): number {
  const ledgerId = fromDigestText(parentId);
  const taken = listSliceGrants(state).flatMap(({ slice }) =>
    slice?.ledgerId === ledgerId ? slice.eventId : [],
  );
  return new Set(taken).size;
}

/** Ends a decision that records nothing. */
class Known extends Error {
  readonly grant: Grant;

  constructor(grant: Grant) {
    super('the slice has its grant');
    this.grant = grant;
  }
}
