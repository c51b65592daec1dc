/**
 * The accounts of a verified ledger (SPEC §9): the caps of each grant, what is used, reserved and left, and the open actions, as a gateway
 * needs them before the next call.
 */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { formatExactly } from '../../base/value/format-rational.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { type Quantity, toRational } from '../../base/value/quantity.js';
import type { GrantWithdrawn, MeterDecimals } from '../../format/schema/generated/types.js';
import { type Balance, balancesOf, sumQuantity, toBalance } from '../bounds/balance.js';
import { chainIds, type Grant } from '../bounds/grant.js';
import { holdStarted, type Running, runningByGrant } from '../bounds/started.js';
import { findWithdrawal } from '../bounds/withdrawal.js';
import type { SavedKey } from '../trust/keyring.js';
import type { VerifyState } from '../verify/state.js';

export interface GrantAccount {
  /** `sha-256:…` */
  readonly eventId: string;
  readonly seq: number;
  readonly principalId: string;
  readonly expiresAt: string | undefined;
  readonly parentId: string | undefined;
  /** By the grant's own revocation, or one above it. */
  readonly withdrawn: GrantWithdrawn | undefined;
  /** Keyids of the grant's valid signatures. */
  readonly signers: readonly string[];
  /** Under it and its descendants. */
  readonly executions: number;
  readonly balances: readonly Balance[];
  /** The maximum that an action may reserve and an execution may use. */
  readonly actionCaps: readonly Meter[];
}

/** An action that was allowed and not executed. */
export interface OpenAuthorization {
  readonly eventId: string;
  readonly seq: number;
  readonly toolName: string;
}

/** Every allowed grant, in ledger order. */
export function listGrants(state: VerifyState): GrantAccount[] {
  return [...grantAccounts(state)];
}

/** The same, one by one, to save memory. */
export function* grantAccounts({ links }: VerifyState): Generator<GrantAccount, void, void> {
  for (const grant of links.grants.values()) if (grant.decision === 'allow') yield toAccount(grant);
}

/** How many allowed grants there are. */
export function countGrants({ links }: VerifyState): number {
  let count = 0;
  for (const { decision } of links.grants.values()) if (decision === 'allow') count += 1;
  return count;
}

/** One grant's account, by `sha-256:…`; undefined for an unknown one. */
export function findGrant(state: VerifyState, grantId: string): GrantAccount | undefined {
  const grant = state.links.grants.get(fromDigestText(grantId));
  return grant && toAccount(grant);
}

/**
 * The balance of one unit under one grant.
 *
 * @param grantId - `sha-256:…`
 * @returns Undefined for an unknown grant, or a unit that it does not cap.
 */
export function findBalance(state: VerifyState, grantId: string, unit: string): Balance | undefined {
  const account = state.links.grants.get(fromDigestText(grantId))?.accounts.get(unit);
  return account && toBalance(unit, account);
}

/** Every action that was allowed and not executed yet, in ledger order. */
export function listOpenAuthorizations(state: VerifyState): OpenAuthorization[] {
  return [...openAuthorizations(state)];
}

/** The same, one by one, to save memory. */
export function openAuthorizations({ links }: VerifyState): Iterable<OpenAuthorization> {
  return links.actions.open();
}

/** How many there are. */
export function countOpenAuthorizations({ links }: VerifyState): number {
  return links.actions.countOpen();
}

/** An allowed action that was neither started nor executed: its reservation is held. */
export interface UnstartedAction extends OpenAuthorization {
  /** Undefined for an action without a grant. */
  readonly grantId: string | undefined;
  readonly principalId: string;
  readonly occurredAt: string;
  /** Until when it may be begun. */
  readonly expiresAt: string | undefined;
  readonly reservation: readonly Meter[];
}

/** Every action that was allowed and neither started nor executed, in ledger order. Over an index only after its actions were loaded. */
export function* unstartedActions({ links }: VerifyState): Generator<UnstartedAction, void, void> {
  for (const { eventId, seq, toolName } of links.actions.open()) {
    const id = fromDigestText(eventId);
    const action = links.starts.has(id) ? undefined : links.actions.get(id);
    if (action === undefined) continue;
    const { grant, principalId, occurredAt, expiresAt } = action;
    const reservation = [...action.reservation].map(([unit, amount]) => ({
      unit,
      amount: sumQuantity(amount),
    }));
    const grantId = grant?.place.eventId;
    yield { eventId, seq, toolName, grantId, principalId, occurredAt, expiresAt, reservation };
  }
}

export interface StartedAuthorization {
  /** Of the start. */
  readonly eventId: string;
  readonly seq: number;
  /** Its authorization: an action or a grant. */
  readonly authorizationId: string;
  /** The grant that it runs under, by the action or directly; undefined for an action without one. */
  readonly grantId: string | undefined;
  readonly principalId: string;
  readonly toolName: string;
  /** Of its action: until when it may be begun. */
  readonly expiresAt: string | undefined;
  readonly startedAt: string;
  /** The name that its recorder chose. */
  readonly recorder: string;
  /** Its known use when it started. */
  readonly meters: MeterVector;
}

/** Every started execution (`x.northroot.start`) that is not recorded, in ledger order. */
export function listOpenStarts({ links }: VerifyState): StartedAuthorization[] {
  const open = [...links.starts].flatMap(([id, starts]) => {
    const action = links.actions.get(id);
    const grant = action === undefined ? links.grants.get(id) : action.grant;
    const principalId = (action ?? grant)?.principalId ?? '';
    return [...starts.values()].map(({ place, toolName, startedAt, recorder, meters }) => ({
      eventId: place.eventId,
      seq: place.seq,
      authorizationId: toDigestText(id),
      grantId: grant?.place.eventId,
      principalId,
      toolName,
      expiresAt: action?.expiresAt,
      startedAt,
      recorder,
      meters,
    }));
  });
  return open.sort((a, b) => a.seq - b.seq);
}

/** The started executions that are not recorded, except that of one start (base64url). */
export function listRunning({ links }: VerifyState, except?: string): Running[] {
  return [...links.starts].flatMap(([id, starts]) => {
    const action = links.actions.get(id);
    const grant = action === undefined ? links.grants.get(id) : action.grant;
    if (grant === undefined) return [];
    return [...starts].filter(([own]) => own !== except).map(([, start]) => ({ start, grant, action }));
  });
}

/**
 * The account of a grant with running executions counted as reserved, as for a decision. Without any it is the account itself.
 */
export function reserveStarted(state: VerifyState, account: GrantAccount): GrantAccount {
  const [reserved = account] = reserveAllStarted(state, [account]);
  return reserved;
}

/** {@link reserveStarted} for many accounts, in one pass. */
export function* reserveAllStarted(
  state: VerifyState,
  accounts: Iterable<GrantAccount>,
): Generator<GrantAccount, void, void> {
  const byGrant = runningByGrant(listRunning(state));
  for (const account of accounts) {
    const grant = state.links.grants.get(fromDigestText(account.eventId));
    const running = grant && byGrant.get(grant);
    yield grant === undefined || running === undefined
      ? account
      : { ...account, balances: balancesOf({ accounts: holdStarted(grant.accounts, running) }) };
  }
}

/**
 * Whether a grant is another one or its descendant.
 *
 * @param grantId - `sha-256:…`; false for undefined and unknown ones.
 * @param other - `sha-256:…`
 */
export function isGrantUnder(state: VerifyState, grantId: string | undefined, other: string): boolean {
  const grant = grantId === undefined ? undefined : state.links.grants.get(fromDigestText(grantId));
  return chainIds(grant).includes(other);
}

/** Every key of the ledger, in order: who added it and where; where, why and by whom it was revoked. */
export function listKeys({ keyring }: VerifyState): SavedKey[] {
  return keyring.save();
}

/** The name in a key's entry: its own claim, unless a trust policy pins the key. */
export function nameOfKey({ keyring }: VerifyState, keyid: string): string | undefined {
  return keyring.find(keyid)?.key.name;
}

export function toAccount(grant: Grant): GrantAccount {
  return {
    eventId: grant.place.eventId,
    seq: grant.place.seq,
    principalId: grant.principalId,
    expiresAt: grant.expiresAt,
    parentId: grant.parent?.place.eventId,
    withdrawn: toWithdrawn(grant),
    signers: grant.signers,
    executions: grant.executions,
    balances: balancesOf(grant),
    actionCaps: [...grant.actionCaps].map(([unit, amount]) => ({ unit, amount: sumQuantity(amount) })),
  };
}

function toWithdrawn(grant: Grant): GrantWithdrawn | undefined {
  const { effect, place } = findWithdrawal(grant) ?? {};
  if (effect === undefined || place === undefined) return undefined;
  return { effect, seq: place.seq, event_id: place.eventId };
}

/**
 * The amounts of an account by unit, as exact decimals; `n/d` where there is none.
 *
 * @param actionCaps - Their units need not be among those of `meters`.
 */
export function decimalsOf(
  meters: readonly Balance[],
  actionCaps: readonly Meter[] = [],
): Record<string, MeterDecimals> {
  const byUnit: Record<string, MeterDecimals> = {};
  const text = (amount: Quantity): string => formatExactly(toRational(amount));
  for (const { unit, cap, used, estimated, reserved, left } of meters)
    byUnit[unit] = {
      cap: text(cap),
      used: text(used),
      ...(estimated === undefined ? {} : { estimated: text(estimated) }),
      reserved: text(reserved),
      left: text(left),
    };
  for (const { unit, amount } of actionCaps) byUnit[unit] = { ...byUnit[unit], action_cap: text(amount) };
  return byUnit;
}
