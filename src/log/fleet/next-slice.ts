/**
 * The next slice of a child: as an earlier one in all but its time, or the rest where the parent has less left. Who asks for it names the earlier one, so that a child gets no more at
 * once, no longer and under no other grant than its owner set aside before.
 */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, formatDigest, toDigestText } from '../../base/value/digest.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import { compareQuantities, formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { compareRationals, ZERO as NONE } from '../../base/value/rational.js';
import { compareTimestamps, formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import type { Draft } from '../../format/event/build.js';
import type { AuthorizationEvent } from '../../format/schema/generated/types.js';
import type { Grant } from '../../rules/bounds/grant.js';
import { sliceParamsDigest } from '../../rules/bounds/slice.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import type { Appended, Ledger } from '../writer/ledger.js';
import { appendSliceGrant, exceeded, listSliceGrants } from './grant-slice.js';
import { endOfGrant, type GivenSlice, openSlice, type OpenedSlice, readLedgerId, sliceKey } from './slice.js';

export interface NextSliceOptions {
  /** The child ledger, `sha-256:…`. */
  readonly childId: string;
  /** The action of an earlier slice of this child, settled or not, `sha-256:…`. */
  readonly after: string;
  /** How many slices of this parent the child has, and one: a repeated request gets the slice that it has. */
  readonly number: number;
  /** Whether slices may be taken for this principal. Default: for all. */
  readonly mayTake?: ((principalId: string) => boolean) | undefined;
  readonly now?: (() => string) | undefined;
  readonly honourImported?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

const MAX_NUMBER = 1_000_000;
const ZERO: Quantity = { t: 'int', v: '0' };

/**
 * Sets aside in a parent what an earlier slice of a child had, or what is left where that is less, under the same grant, for as long.
 * @param parent - Open for decisions, by its path
 * @throws DeniedError where the parent's grants deny it; it is recorded
 * @throws NorthrootError `SLICE_NOT_FOUND` unless `after` is a slice of this child; `NOT_ALLOWED` for another principal; as `openSlice`
 * @throws RangeError for a malformed option
 */
export async function openNextSlice(parent: Ledger, options: NextSliceOptions): Promise<OpenedSlice> {
  const { number, mayTake = () => true, honourImported, signal } = options;
  const now = options.now ?? ((): string => new Date().toISOString());
  const childId = readLedgerId('openNextSlice: childId', options.childId);
  const after = readLedgerId('openNextSlice: after', options.after);
  if (!(Number.isSafeInteger(number) && number >= 1 && number <= MAX_NUMBER))
    throw new RangeError(`openNextSlice: number: expected 1 to ${MAX_NUMBER}`);
  const event = await readEvent(parent, after, signal);
  const { authorization, decision, occurred_at: begun, principal_id: principalId } = event ?? {};
  const action = authorization?.kind === 'action' ? authorization.action : undefined;
  const grant = authorization?.grant_event_id;
  if (
    action?.tool_name !== SLICE_TOOL ||
    decision !== 'allow' ||
    grant === undefined ||
    formatDigest(action.tool_params_digest) !== sliceParamsDigest(childId)
  )
    throw new NorthrootError('SLICE_NOT_FOUND', `${after} is no slice for ${childId}`, {
      hint: 'name a slice that this child has',
    });
  if (principalId === undefined || !mayTake(principalId))
    throw new NorthrootError('NOT_ALLOWED', `no slices may be taken here for ${principalId ?? 'nobody'}`);
  const grantId = toDigestText(grant.b64);
  const until = await parent.inspect((_, state) => endOfGrant(state, grantId), { signal });
  const { expires_at: end } = action;
  const wanted =
    end === undefined
      ? undefined
      : formatInstant(parseTimestamp(now()) + parseTimestamp(end) - parseTimestamp(begun as string));
  const expiresAt =
    wanted !== undefined && until !== undefined && compareTimestamps(wanted, until) > 0 ? until : wanted;
  const caps: AmountsByUnit = Object.fromEntries(
    (action.meter_reservation ?? []).map(({ unit, amount }) => [unit, amount]),
  );
  const requestKey = sliceKey(childId, number);
  return openSlice(parent, {
    grantId,
    childId,
    caps,
    orLess: true,
    requestKey,
    honourImported,
    now,
    signal,
    ...defined({ expiresAt }),
  });
}

/**
 * Appends the child's grant of a next slice, once: as its newest grant of this parent's slices, but for the slice, its amounts and its end.
 * @param child - Open for decisions, by its path, with a signer of the role `authority`
 * @throws NorthrootError `SLICE_NOT_FOUND` for a child without such a grant; `SLICE_EXCEEDED` where the slice has nothing of a unit that this grant has; as
 *   `grantSlice`
 */
export async function grantNextSlice(
  child: Ledger,
  slice: GivenSlice,
  { now = () => new Date().toISOString(), signal }: Pick<NextSliceOptions, 'now' | 'signal'> = {},
): Promise<Appended> {
  const ledgerId = fromDigestText(slice.ledgerId);
  const [newest, whole] = await child.inspect(
    (_, state) => {
      const all = listSliceGrants(state).filter(({ slice: own }) => own?.ledgerId === ledgerId);
      return [all.at(-1)?.place.eventId, wholeSlice(all)?.place.eventId];
    },
    { signal },
  );
  const event = newest === undefined ? undefined : await readGrant(child, newest, signal);
  const sized = whole === newest || whole === undefined ? event : await readGrant(child, whole, signal);
  if (event === undefined || sized === undefined)
    throw new NorthrootError(
      'SLICE_NOT_FOUND',
      `${child.path} has no grant of a slice of ${slice.ledgerId}`,
      {
        hint: 'grant its first slice, which says what may be done with the next ones',
      },
    );
  const { intents, policy_id, policy_digest, decision_code, canonical_profile_id } = event;
  const caps = (sized.bounds.meter_caps ?? []).map(({ unit, amount }) => {
    const most = slice.caps.find((each) => each.unit === unit)?.amount ?? ZERO;
    if (compareQuantities(amount, most) <= 0) return { unit, amount };
    if (compareQuantities(most, ZERO) <= 0)
      throw exceeded(`at most ${formatQuantity(most)} ${unit}`, `${formatQuantity(amount)} ${unit}`);
    return { unit, amount: most };
  });
  const draft = (): Draft<AuthorizationEvent> => ({
    ...{ event_type: 'authorization', principal_id: slice.principalId, occurred_at: now() },
    ...{ canonical_profile_id, intents, policy_id, policy_digest, decision: 'allow', decision_code },
    authorization: {
      kind: 'grant',
      bounds: defined({
        ...event.bounds,
        meter_caps: caps.length === 0 ? undefined : caps,
        expires_at: slice.expiresAt,
      }),
      slice: {
        ledger_id: { alg: 'sha-256', b64: ledgerId },
        event_id: { alg: 'sha-256', b64: fromDigestText(slice.eventId) },
      },
    },
  });
  return appendSliceGrant(child, slice, draft, { signal });
}

/**
 * The newest grant of a slice that is not cut short: a later one of the same units that has no more of any, and less of one, is a rest.
 * @param all - In ledger order
 */
export function wholeSlice(all: readonly Grant[]): Grant | undefined {
  let whole = all.at(-1);
  for (const each of all.toReversed()) if (whole !== undefined && isMore(each, whole)) whole = each;
  return whole;
}

function isMore({ accounts: more }: Grant, { accounts: less }: Grant): boolean {
  if (more.size !== less.size) return false;
  let isOneMore = false;
  for (const [unit, { cap }] of less) {
    const order = compareRationals(more.get(unit)?.cap ?? NONE, cap);
    if (order < 0) return false;
    isOneMore ||= order > 0;
  }
  return isOneMore;
}

async function readGrant(ledger: Ledger, eventId: string, signal: AbortSignal | undefined) {
  const event = await readEvent(ledger, eventId, signal);
  return event?.authorization.kind === 'grant' && event.authorization.bounds !== undefined
    ? { ...event, bounds: event.authorization.bounds }
    : undefined;
}

/** An authorization of a ledger; undefined if the record is another. */
async function readEvent(
  ledger: Ledger,
  eventId: string,
  signal: AbortSignal | undefined,
): Promise<AuthorizationEvent | undefined> {
  const { event } = await ledger.view({ signal }).findRecord(eventId);
  return event['event_type'] === 'authorization' ? (event as unknown as AuthorizationEvent) : undefined;
}
