/** Revocations (SPEC §3.7): withdraws grants, and ends suspensions. */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { printable } from '../../base/bytes/printable.js';
import { digestFromBase64url, fromDigestText, toDigestText } from '../../base/value/digest.js';
import { parseRecordName } from '../../base/value/record-name.js';
import type { Draft } from '../../format/event/build.js';
import type { RevocationEvent } from '../../format/schema/generated/types.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Ledger } from '../writer/ledger.js';
import type { AskOptions } from '../writer/withdrawal.js';
import { OptionReader } from './option-problems.js';

export interface RevocationOptions {
  readonly effect: RevocationEvent['effect'];
  /** What was allowed before and has not begun: `finish` may still be done, `stop` may not. Default: `finish`. Not with `resume`. */
  readonly inFlight?: RevocationEvent['in_flight'] | undefined;
  /** 1 to 64 of `A-Z 0-9 _`, such as `INCIDENT`. */
  readonly reason: string;
  /** Who withdraws. Default: the ledger's `principalId`. */
  readonly principalId?: string | undefined;
  /** SPEC §2. Default: when it is appended. */
  readonly occurredAt?: string | undefined;
}

/** Drafts a revocation of an allowed grant, for `Ledger.append`. @param grantId - `sha-256:…` @throws OptionsError (a RangeError) */
export function draftRevocation(grantId: string, options: RevocationOptions): Draft<RevocationEvent> {
  const reader = new OptionReader(options);
  const isOneOf =
    <T extends string>(...names: readonly T[]) =>
    (value: unknown): value is T =>
      (names as readonly unknown[]).includes(value);
  const effect = reader.read(
    'effect',
    'revoke, suspend or resume',
    isOneOf<RevocationEvent['effect']>('revoke', 'suspend', 'resume'),
    true,
  );
  const inFlight = reader.read('inFlight', 'finish or stop', isOneOf<'finish' | 'stop'>('finish', 'stop'));
  if (effect === 'resume' && inFlight !== undefined) reader.refuse('inFlight', 'not with resume');
  const isCode = (text: string): boolean => /^[A-Z0-9_]{1,64}$/.test(text);
  const reason = reader.text('reason', 'up to 64 of A-Z, 0-9 and _, such as INCIDENT', isCode, true);
  const principalId = reader.principal('principalId');
  const occurredAt = reader.timestamp('occurredAt');
  reader.end();
  return {
    event_type: 'revocation',
    ...defined({ principal_id: principalId, occurred_at: occurredAt }),
    grant_event_id: digestFromBase64url(fromDigestText(grantId)),
    effect: effect as RevocationEvent['effect'],
    ...(effect === 'resume' ? {} : { in_flight: inFlight ?? 'finish' }),
    reason: reason as string,
  };
}

/**
 * The allowed grants that are named, each once.
 * @param wanted - Seqs, ids (`sha-256:…`, base64url or hex), or unambiguous prefixes; over an index whole ids
 * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_NOT_A_GRANT`, `GRANT_DENIED`, `GRANT_AMBIGUOUS`
 */
export function findGrants(state: VerifyState, wanted: readonly string[]): Grant[] {
  return [...new Set(wanted.map((each) => findGrant(state, each)))];
}

function findGrant(state: VerifyState, wanted: string): Grant {
  const named = state.events.matchNow(parseRecordName(wanted)) ?? [];
  const grants = named.flatMap(({ eventId }) => state.links.grants.get(fromDigestText(eventId)) ?? []);
  const [grant, other] = grants;
  const shown = printable(wanted, 80);
  if (grant === undefined) {
    const [event] = named;
    throw event === undefined
      ? refuse('GRANT_NOT_FOUND', `no grant ${shown}`)
      : refuse('GRANT_NOT_A_GRANT', `${event.eventId} is not a grant`);
  }
  if (other !== undefined) throw refuse('GRANT_AMBIGUOUS', `${shown} names ${grants.length} grants`);
  if (grant.decision === 'deny') throw refuse('GRANT_DENIED', `${grant.place.eventId} was denied`);
  return grant;
}

/** The allowed root grants that a revocation would change, in ledger order. */
export function rootGrants(state: VerifyState, { effect }: Pick<RevocationOptions, 'effect'>): Grant[] {
  return [...state.links.grants.values()].filter(
    (grant) =>
      grant.decision !== 'deny' && grant.parent === undefined && grant.depth <= 1 && isChanged(grant, effect),
  );
}

/** Whether a grant is suspended, for a resumption; whether it is not revoked, for all else (SPEC §8 rule 16). */
export function isChanged({ withdrawal }: Grant, effect: RevocationOptions['effect']): boolean {
  return effect === 'resume' ? withdrawal?.effect === 'suspend' : withdrawal?.effect !== 'revoke';
}

/**
 * Appends a revocation of each grant. They share a group, as they are asked for together.
 * @param wanted - As {@link findGrants} takes them; `'all'`: see {@link rootGrants}
 * @param now - The clock
 * @throws NorthrootError as {@link findGrants}, before anything is appended; as `Ledger.append`
 */
export async function withdrawGrants(
  ledger: Ledger,
  wanted: string | readonly string[],
  options: RevocationOptions,
  now: () => string,
  ask: AskOptions = {},
): Promise<Appended[]> {
  draftRevocation(ANY_ID, options);
  const ids = await ledger.inspect((_, state) => {
    const names = typeof wanted === 'string' ? [wanted] : wanted;
    const grants = wanted === 'all' ? rootGrants(state, options) : findGrants(state, names);
    return grants.map(({ place }) => place.eventId);
  }, ask);
  // Not as decisions: a ledger with broken evidence MUST be stoppable too.
  const draft = (id: string): object => draftRevocation(id, { ...options, occurredAt: now() });
  return Promise.all(ids.map((id) => ledger.append({ event: draft(id), isAnew: true }, ask)));
}

const ANY_ID = toDigestText('A'.repeat(43));

function refuse(code: string, message: string): NorthrootError {
  return new NorthrootError(code, message, { hint: 'name an allowed grant of the ledger' });
}
