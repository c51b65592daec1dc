/**
 * The accounts of a ledger after verification (SPEC §9): what each grant caps, what was used and reserved of it and what is
 * left, and which actions are still open. What a gateway would ask before the next call.
 */

import type { Account, Grant } from '../bounds/grant.js';
import type { SavedKey } from '../trust/keyring.js';
import { fromRational, type Quantity } from '../value/quantity.js';
import { compareRationals, subtractRationals, type Rational } from '../value/rational.js';
import type { VerifyState } from '../verify/state.js';

/** One capped unit of a grant. */
export interface Balance {
  readonly unit: string;
  readonly cap: Quantity;
  readonly used: Quantity;
  /** How much of `used` is only estimated; absent where nothing is. */
  readonly estimated?: Quantity;
  readonly reserved: Quantity;
  /** cap − used − reserved; negative where a bound was broken. */
  readonly left: Quantity;
}

/** One allowed grant. */
export interface GrantAccount {
  /** `sha-256:…` */
  readonly eventId: string;
  readonly seq: number;
  readonly principalId: string;
  readonly expiresAt: string | undefined;
  /** The grant that it was delegated from. */
  readonly parentId: string | undefined;
  /** Keyids whose signatures of the grant count. */
  readonly signers: readonly string[];
  /** Under it and the grants delegated from it. */
  readonly executions: number;
  readonly balances: readonly Balance[];
}

/** An action that was allowed and not executed. */
export interface OpenAuthorization {
  readonly eventId: string;
  readonly seq: number;
  readonly toolName: string;
}

/** Every allowed grant, in ledger order. */
export function listGrants(state: VerifyState): GrantAccount[] {
  return state.links.grantList.filter(({ decision }) => decision === 'allow').map(toAccount);
}

/** One grant's account, `sha-256:…`; undefined where there is no such grant. */
export function findGrant(state: VerifyState, grantId: string): GrantAccount | undefined {
  const grant = state.links.grants.get(grantId.replace(/^sha-256:/, ''));
  return grant && toAccount(grant);
}

/**
 * What is left of one unit under one grant.
 *
 * @param grantId - `sha-256:…`
 * @returns undefined where there is no such grant, or it does not cap the unit.
 */
export function findBalance(state: VerifyState, grantId: string, unit: string): Balance | undefined {
  const account = state.links.grants.get(grantId.replace(/^sha-256:/, ''))?.accounts.get(unit);
  return account && toBalance(unit, account);
}

/** Every action that was allowed and not executed yet, in ledger order. */
export function listOpenAuthorizations(state: VerifyState): OpenAuthorization[] {
  return [...state.links.actions.values()]
    .filter(({ decision }) => decision === 'allow')
    .map(({ place, toolName }) => ({ eventId: place.eventId, seq: place.seq, toolName }));
}

/** Every key that was known in the ledger, in the order in which it came: who added it and where; where, why and by whom it was revoked. */
export function listKeys({ keyring }: VerifyState): SavedKey[] {
  return keyring.save();
}

/** What the entry of a known key calls it; its own claim, unless a trust policy pins the key. */
export function nameOfKey({ keyring }: VerifyState, keyid: string): string | undefined {
  return keyring.find(keyid)?.key.name;
}

function toAccount(grant: Grant): GrantAccount {
  return {
    eventId: grant.place.eventId,
    seq: grant.place.seq,
    principalId: grant.principalId,
    expiresAt: grant.expiresAt,
    parentId: grant.parent?.place.eventId,
    signers: grant.signers,
    executions: grant.executions,
    balances: [...grant.accounts].map(([unit, account]) => toBalance(unit, account)),
  };
}

function toBalance(unit: string, { cap, used, estimated, reserved }: Account): Balance {
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

/** A sum may have more digits than an amount; it is then written as an int or rat that is longer than events may have. */
export function sumQuantity(r: Rational): Quantity {
  try {
    return fromRational(r);
  } catch {
    return r.d === 1n ? { t: 'int', v: r.n.toString() } : { t: 'rat', n: r.n.toString(), d: r.d.toString() };
  }
}
