/** Revocations (SPEC §3.7, §8 rule 16): a grant is taken back, or suspended and resumed. */

import type { WellFormedLine } from '../../format/record/examine-line.js';
import { addSystem, type EventPlace, type Grant } from '../bounds/grant.js';
import { type Revocation, withdraw } from '../bounds/withdrawal.js';
import { resolveGrant } from './grant-link.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** A revocation whose record may still turn out to be invalid. */
export interface MadeRevocation {
  readonly grant: Grant;
  readonly revocation: Revocation;
  /** The foreign system that it was taken over from. */
  readonly system: string | undefined;
}

/** Checks the link of a revocation. @returns It, where its grant is one; {@link settleRevocation} MUST be called with its verdict. */
export function checkRevocation(
  state: VerifyState,
  line: WellFormedLine<'revocation'>,
  place: EventPlace,
  findings: LineFindings,
): MadeRevocation | undefined {
  const event = line.event();
  const grant = resolveGrant(state, event.grant_event_id.b64, true, findings, '/grant_event_id');
  findings.setGrant(grant);
  if (grant === undefined) return undefined;
  const { signers } = findings;
  const revocation = {
    place,
    grantId: grant.place.eventId,
    principalId: event.principal_id,
    effect: event.effect,
    inFlight: event.in_flight,
    byAuthority: signers.some((keyid) => state.keyring.find(keyid)?.key.roles.includes('authority') === true),
    signers,
  };
  return { grant, revocation, system: event.source?.system };
}

/** Applies a revocation that is not invalid. */
export function settleRevocation(
  { links }: VerifyState,
  { grant, revocation, system }: MadeRevocation,
  isInvalid: boolean,
): void {
  if (isInvalid) return;
  const isEnded = revocation.effect === 'resume' && grant.withdrawal?.effect === 'suspend';
  withdraw(grant, revocation);
  if (isEnded && system !== undefined) addSystem(grant.systems, system);
  links.revocations.push(revocation);
  links.grants.touch(grant);
}
