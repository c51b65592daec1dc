/** Rule 16 of SPEC §8: a grant is revoked, or suspended and resumed, and with it all that hangs below it. */

import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { type EventPlace, type Grant, grantChain, type Withdrawal } from './grant.js';
import type { OpenStart } from './started.js';

/** A revocation whose record is not invalid. */
interface RevocationFacts {
  readonly place: EventPlace;
  readonly effect: 'revoke' | 'suspend' | 'resume';
  readonly inFlight: 'finish' | 'stop' | undefined;
  readonly byAuthority: boolean;
}

export interface Revocation extends RevocationFacts {
  /** The id of the grant, `sha-256:…`. */
  readonly grantId: string;
  readonly principalId: string;
  /** Keyids whose signatures of its record count. */
  readonly signers: readonly string[];
}

/** Applies a revocation to the grant that it names. */
export function withdraw(grant: Grant, { place, effect, inFlight, byAuthority }: RevocationFacts): void {
  const now = grant.withdrawal;
  if (effect === 'resume') {
    if (now?.effect !== 'suspend') return;
    if (now.stop !== undefined) grant.stopped = { place: now.stop, end: place.seq };
    grant.withdrawal = undefined;
    return;
  }
  const stop = now?.stop ?? (inFlight === 'stop' ? place : undefined);
  grant.withdrawal = {
    effect: now?.effect === 'revoke' ? 'revoke' : effect,
    place: now?.place ?? place,
    stop,
    byAuthority: now?.byAuthority === true || byAuthority,
  };
}

/** Why a grant is out of force, by its own withdrawal or one above it: a revocation before a suspension. */
export function findWithdrawal(grant: Grant): Withdrawal | undefined {
  const all = grantChain(grant).flatMap(({ withdrawal }) => withdrawal ?? []);
  return all.find(({ effect }) => effect === 'revoke') ?? all[0];
}

/** An action or a delegated grant under a grant that is withdrawn, or whose slice is settled. */
export function checkWithdrawn(chain: readonly Grant[], findings: RuleFinding[]): void {
  const place = chain.find(({ withdrawal }) => withdrawal !== undefined)?.withdrawal?.place;
  if (place !== undefined) findings.push(revoked('/authorization/grant_event_id', place));
  else checkSettled(chain, '/authorization/grant_event_id', findings);
}

/** The event that stops an action recorded at `seq`; undefined for none. */
export function findStop(chain: readonly Grant[], seq: number): EventPlace | undefined {
  for (const { withdrawal, stopped } of chain) {
    if (withdrawal?.stop !== undefined) return withdrawal.stop;
    if (stopped !== undefined && seq < stopped.end) return stopped.place;
  }
  return undefined;
}

/**
 * An execution that was not begun before it was stopped.
 *
 * @param actionSeq - The `seq` of its action; undefined where it names a grant.
 * @param start - The open start that it names.
 */
export function checkStopped(
  chain: readonly Grant[],
  actionSeq: number | undefined,
  start: OpenStart | undefined,
  findings: RuleFinding[],
): void {
  const place =
    actionSeq === undefined ? findWithdrawalBefore(chain, start) : findStopOf(chain, actionSeq, start);
  if (place !== undefined) findings.push(revoked('/auth_event_id', place));
  else checkSettled(chain, '/auth_event_id', findings);
}

/** Rule 17: what is done under a grant after its slice was settled, started before or not. */
export function checkSettled(chain: readonly Grant[], pointer: string, findings: RuleFinding[]): void {
  const place = chain.find(({ settled }) => settled !== undefined)?.settled;
  if (place === undefined) return;
  findings.push({
    code: 'GRANT_REVOKED',
    pointer,
    expected: 'nothing under a grant whose slice was settled',
    actual: `settled up to ${place.eventId}`,
    related: [place],
  });
}

function findStopOf(
  chain: readonly Grant[],
  seq: number,
  start: OpenStart | undefined,
): EventPlace | undefined {
  return start?.isStopped === false ? undefined : findStop(chain, seq);
}

function findWithdrawalBefore(chain: readonly Grant[], start: OpenStart | undefined): EventPlace | undefined {
  const begun = start?.place.seq ?? Infinity;
  return chain.find(({ withdrawal }) => withdrawal !== undefined && begun > withdrawal.place.seq)?.withdrawal
    ?.place;
}

function revoked(pointer: string, place: EventPlace): RuleFinding {
  return {
    code: 'GRANT_REVOKED',
    pointer,
    expected: 'a grant that is in force, with those above it',
    actual: `withdrawn by ${place.eventId}`,
    related: [place],
  };
}
