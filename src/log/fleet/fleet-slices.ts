/** The slices of a fleet: what each ledger sets aside and spends, and the sums of both. */

import { toDigestText } from '../../base/value/digest.js';
import { toRational } from '../../base/value/quantity.js';
import { addRationals, type Rational, subtractRationals, ZERO } from '../../base/value/rational.js';
import type { FleetCap, FleetSlice } from '../../format/schema/generated/types.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { type Amounts, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { sliceParamsDigest } from '../../rules/bounds/slice.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { listSliceGrants } from './grant-slice.js';

interface OwnSlice {
  /** `sha-256:…` */
  readonly eventId: string;
  /** The grants above it, nearest first, `sha-256:…`. */
  readonly grantIds: readonly string[];
  readonly principalId: string;
  /** Which ledger it is for: the digest of the action's parameters, as text. */
  readonly params: string;
  readonly reservation: Amounts;
  readonly state: FleetSlice['state'];
  /** What its settlement says; undefined for none. */
  readonly used: Amounts | undefined;
}

/** A grant with slices under it, as it stands at the end. */
interface OwnGrant {
  readonly principalId: string;
  readonly accounts: ReadonlyMap<
    string,
    { readonly cap: Rational; readonly used: Rational; readonly reserved: Rational }
  >;
}

export interface SetAside {
  readonly slices: readonly OwnSlice[];
  /** By id, in ledger order. */
  readonly grants: ReadonlyMap<string, OwnGrant>;
}

/** A slice that a ledger spends. Ids are `sha-256:…`. */
export interface SpentSlice {
  readonly ledgerId: string;
  readonly sliceId: string;
  readonly grantId: string;
  readonly used: Amounts;
}

/** The slices that a verification noted. */
export function listSetAside(state: VerifyState): SetAside {
  const { actions, grants } = state.links;
  const above = new Map<string, Grant>();
  const slices = [...(state.sliceWatch?.slices ?? [])].map(([id, slice]): OwnSlice => {
    const action = actions.get(id);
    const chain = grantChain(
      action === undefined ? grants.at(state.events.find(id)?.grant ?? -1) : action.grant,
    );
    for (const grant of chain) above.set(grant.place.eventId, grant);
    const { eventId, principalId, params, reservation, settlement, isBegun } = slice;
    // One that was begun is never given back: until it is settled it counts as spent.
    const isOpen = action !== undefined || isBegun;
    return {
      eventId,
      grantIds: chain.map(({ place }) => place.eventId),
      principalId,
      params,
      reservation,
      state: settlement !== undefined ? 'settled' : isOpen ? 'open' : 'released',
      used: settlement?.used,
    };
  });
  const inOrder = [...above.values()].sort((a, b) => a.index - b.index);
  return {
    slices,
    grants: new Map(
      inOrder.map(({ place, principalId, accounts }) => [
        place.eventId,
        { principalId, accounts: new Map([...accounts].map(([unit, account]) => [unit, { ...account }])) },
      ]),
    ),
  };
}

/** The slices that the grants of a ledger spend, and what counts as used under each; one that is named twice as its first grant says. */
export function listSpent(state: VerifyState): SpentSlice[] {
  const spent = new Map<string, SpentSlice>();
  for (const { slice, place, accounts } of listSliceGrants(state)) {
    if (slice === undefined) continue;
    const key = `${slice.ledgerId} ${slice.eventId}`;
    if (spent.has(key)) continue;
    spent.set(key, {
      ledgerId: toDigestText(slice.ledgerId),
      sliceId: toDigestText(slice.eventId),
      grantId: place.eventId,
      used: new Map([...accounts].map(([unit, { used }]) => [unit, used])),
    });
  }
  return [...spent.values()];
}

export interface FleetPart {
  readonly path: string;
  /** `sha-256:…` */
  readonly ledgerId: string;
  readonly setAside: SetAside;
  readonly spent: readonly SpentSlice[];
}

/** Joins what ledgers set aside with what others spend of it. @param parts - Each ledger once */
export function joinSlices(parts: readonly FleetPart[]): {
  readonly caps: FleetCap[];
  readonly slices: FleetSlice[];
} {
  const byParams = new Map(parts.map((part) => [sliceParamsDigest(part.ledgerId), part]));
  const spent = new Map(
    parts.flatMap((part) => part.spent.map((each) => [nameOf(part, each.ledgerId, each.sliceId), each])),
  );
  const joined = parts.map((part) => {
    const slices = part.setAside.slices.map((slice) => {
      const child = byParams.get(slice.params);
      const own = child && spent.get(nameOf(child, part.ledgerId, slice.eventId));
      return { slice, json: joinSlice(part, slice, child, own) };
    });
    const under = new Map<string, Joined[]>([...part.setAside.grants.keys()].map((id) => [id, []]));
    for (const each of slices) for (const id of each.slice.grantIds) under.get(id)?.push(each);
    return { part, slices, under };
  });
  return {
    slices: joined.flatMap(({ slices }) => slices.map(({ json }) => json)),
    caps: joined.flatMap(({ part, under }) =>
      [...part.setAside.grants].map(([id, grant]) => capOf(part, id, grant, under.get(id) ?? [])),
    ),
  };
}

/** What a child spends, by itself and its parent's slice. */
function nameOf({ ledgerId }: FleetPart, parentId: string, sliceId: string): string {
  return `${ledgerId} ${parentId} ${sliceId}`;
}

function joinSlice(
  parent: FleetPart,
  slice: OwnSlice,
  child: FleetPart | undefined,
  spent: SpentSlice | undefined,
): FleetSlice {
  const { eventId, grantIds, principalId, reservation, state, used } = slice;
  // A child without a grant of it has used nothing so far.
  const known =
    used ?? (state === 'released' ? NOTHING : child === undefined ? undefined : (spent?.used ?? NOTHING));
  return {
    path: parent.path,
    ledger_id: parent.ledgerId,
    event_id: eventId,
    grant_event_id: grantIds[0] ?? null,
    principal_id: principalId,
    state,
    child:
      child === undefined
        ? null
        : { path: child.path, ledger_id: child.ledgerId, grant_event_id: spent?.grantId ?? null },
    meters: [...reservation].map(([unit, amount]) => ({
      unit,
      amount: sumQuantity(amount),
      used: known === undefined ? null : sumQuantity(known.get(unit) ?? ZERO),
    })),
  };
}

const NOTHING: Amounts = new Map();

interface Joined {
  readonly slice: OwnSlice;
  readonly json: FleetSlice;
}

function capOf({ path, ledgerId }: FleetPart, id: string, grant: OwnGrant, all: readonly Joined[]): FleetCap {
  const of = (state: FleetSlice['state']): Joined[] => all.filter(({ slice }) => slice.state === state);
  const open = of('open');
  const settled = of('settled');
  const missing = open.filter(({ json }) => json.child === null);
  const reserved = (some: readonly Joined[], unit: string): Rational =>
    sum(some.map(({ slice }) => slice.reservation.get(unit)));
  return {
    path,
    ledger_id: ledgerId,
    grant_event_id: id,
    principal_id: grant.principalId,
    slices: {
      settled: settled.length,
      open: open.length,
      missing: missing.length,
      released: of('released').length,
    },
    meters: [...grant.accounts].map(([unit, account]) => ({
      unit,
      cap: sumQuantity(account.cap),
      used: sumQuantity(account.used),
      reserved: sumQuantity(account.reserved),
      left: sumQuantity(subtractRationals(subtractRationals(account.cap, account.used), account.reserved)),
      set_aside: sumQuantity(reserved(all, unit)),
      settled: sumQuantity(sum(settled.map(({ slice }) => slice.used?.get(unit)))),
      open: sumQuantity(reserved(open, unit)),
      open_used: sumQuantity(sum(open.map(({ json }) => usedOf(json, unit)))),
      missing: sumQuantity(reserved(missing, unit)),
    })),
  };
}

function sum(amounts: readonly (Rational | undefined)[]): Rational {
  return amounts.reduce<Rational>(
    (total, amount) => (amount === undefined ? total : addRationals(total, amount)),
    ZERO,
  );
}

function usedOf({ meters }: FleetSlice, unit: string): Rational | undefined {
  const used = meters.find((meter) => meter.unit === unit)?.used ?? undefined;
  return used && toRational(used);
}
