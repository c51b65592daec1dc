/** Claims as events of a ledger. Where the source does not state what an event must have, the event says so and nothing is made up. */

import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { JsonObject } from '../../base/json/value.js';
import { type Digest, sha256Digest, toDigestText } from '../../base/value/digest.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { type AnyEvent, buildEvent } from '../../format/event/build.js';
import type { Claim, ForeignDigest, HostPlace } from './host.js';
import { sourceIdOf, toolOf } from './names.js';
import { ONE_CALL } from './usage.js';
import { authorityOf } from './order.js';

export interface ClaimedEvent {
  readonly event: AnyEvent;
  /** `source.id` */
  readonly sourceId: string;
  readonly kind: Claim['kind'] | 'digests';
  readonly at: HostPlace;
  /** `source.id` of what the event names: without that it would say something else. */
  readonly restsOn?: string | undefined;
  /** `source.id` of what other sources of the host say of the same. */
  readonly sameAs: readonly string[];
}

/** A claim that no event can carry: an amount with too many digits, facts that are too long. */
interface UnfitClaim {
  readonly at: HostPlace;
  readonly id: string;
  readonly error: NorthrootError;
}
interface ClaimContext {
  /** {@link Host.name} */
  readonly system: string;
  /** The ledger that the events are for, `sha-256:…`; without it they are bound to none. */
  readonly ledgerId?: string | undefined;
  /** Ids of events that a ledger has already, by `source.id`. */
  readonly known?: ReadonlyMap<string, string> | undefined;
}

/**
 * The digest that stands where an event must have one and the source states none: that of canonical
 * `{"not_stated":"policy","system":"cgf"}`. Anyone can compute it, so anyone can tell it from a digest of something.
 */
export function notStated(system: string, what: 'policy' | 'intent' | 'params' | 'authorization'): Digest {
  return sha256Digest(canonicalBytes({ not_stated: what, system }));
}

/** The events of `claims`, in order; each may name those before it. */
export function eventsOfClaims(
  claims: readonly Claim[],
  context: ClaimContext,
): { readonly events: readonly ClaimedEvent[]; readonly unfit: readonly UnfitClaim[] } {
  const maker = new EventMaker(context, new Set(claims.map(({ id }) => id)));
  const events: ClaimedEvent[] = [];
  const unfit: UnfitClaim[] = [];
  for (const claim of claims) {
    try {
      events.push(...maker.make(claim));
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      unfit.push({ at: claim.at, id: claim.id, error });
    }
  }
  return { events, unfit };
}

class EventMaker {
  readonly #context: ClaimContext;
  readonly #claimed: ReadonlySet<string>;
  readonly #ids = new Map<string, Digest | string>();
  /** `intents` of authorizations, by the id of their claim: an execution has those of what authorizes it. */
  readonly #intents = new Map<string, JsonObject>();

  /** @param claimed - Ids of all claims, also of those still to be made. */
  constructor(context: ClaimContext, claimed: ReadonlySet<string>) {
    this.#context = context;
    this.#claimed = claimed;
  }

  *make(claim: Claim): Generator<ClaimedEvent, void, void> {
    const sourceId = sourceIdOf(claim.id);
    const sameAs = (claim.sameAs ?? []).map(sourceIdOf);
    const draft = this.#draft(claim, sourceId);
    const event = this.#build(draft);
    // What a ledger has of it stands, whatever the files say by now.
    const { known } = this.#context;
    const stands = [sourceId, ...sameAs].find((id) => known?.has(id) === true);
    this.#ids.set(claim.id, (stands === undefined ? undefined : known?.get(stands)) ?? event.event_id);
    yield { event, sourceId, kind: claim.kind, at: claim.at, restsOn: restsOn(claim), sameAs };
    const { foreignDigests = [] } = claim;
    if (foreignDigests.length === 0) return;
    const digests = this.#build(this.#digestsDraft(claim, foreignDigests, event.event_id));
    const { at } = claim;
    yield {
      event: digests,
      sourceId: sourceIdOf(digestsId(claim.id)),
      kind: 'digests',
      at,
      restsOn: sourceId,
      sameAs: [],
    };
  }

  #build(draft: object): AnyEvent {
    const { ledgerId } = this.#context;
    return buildEvent(draft, ledgerId === undefined ? {} : { ledgerId });
  }

  #draft(claim: Claim, sourceId: string): object {
    const { system } = this.#context;
    const envelope = {
      occurred_at: claim.occurredAt,
      principal_id: claim.principalId,
      source: { system, id: sourceId, digest: sha256Digest(claim.bytes) },
    };
    if (claim.kind === 'evidence')
      return { ...envelope, ...claim.facts, event_type: `x.${system}.${claim.type}` };
    if (claim.kind === 'execution') return { ...envelope, ...this.#execution(claim) };
    const intents = { intent_digest: { ...(claim.intentDigest ?? notStated(system, 'intent')) } };
    this.#intents.set(claim.id, intents);
    const { decision, decisionCode, checks = [] } = claim;
    return {
      ...envelope,
      event_type: 'authorization',
      intents,
      policy_id: claim.policyId ?? `${system}:not-stated`,
      policy_digest: claim.policyDigest ?? notStated(system, 'policy'),
      decision,
      decision_code: decisionCode,
      ...(checks.length === 0 ? {} : { checks }),
      authorization: claim.kind === 'grant' ? this.#grant(claim) : this.#action(claim),
    };
  }

  #grant(claim: Extract<Claim, { kind: 'grant' }>): object {
    return { kind: 'grant', bounds: claim.bounds ?? {}, ...this.#under(claim.grant) };
  }

  #action(claim: Extract<Claim, { kind: 'action' }>): object {
    const { tool, paramsDigest = notStated(this.#context.system, 'params'), reservation = [] } = claim;
    return {
      kind: 'action',
      ...this.#under(claim.grant),
      action: {
        tool_name: toolOf(tool),
        tool_params_digest: paramsDigest,
        ...(claim.decision === 'allow' ? { meter_reservation: withOneCall(reservation) } : {}),
      },
    };
  }

  #under(grant: string | undefined): object {
    return grant === undefined ? {} : { grant_event_id: this.#idOf(grant) };
  }

  #execution(claim: Extract<Claim, { kind: 'execution' }>): object {
    const { system } = this.#context;
    const { authorization, tool, outcome, errorCode = 'FAILED', meters, resources = [] } = claim;
    const intents = authorization === undefined ? undefined : this.#intents.get(authorization);
    return {
      event_type: 'execution',
      intents: intents ?? { intent_digest: claim.intentDigest ?? notStated(system, 'intent') },
      auth_event_id:
        authorization === undefined ? notStated(system, 'authorization') : this.#idOf(authorization),
      tool_name: toolOf(tool),
      meter_used: sorted(meters),
      outcome,
      ...(outcome === 'failure' ? { error_code: errorCode } : {}),
      ...present('tool_params_digest', claim.paramsDigest),
      ...present('started_at', claim.startedAt),
      ...present('ended_at', claim.endedAt),
      ...present('output_digest', claim.outputDigest),
      ...(resources.length === 0 ? {} : { resources_touched: resources }),
      ...present('model_id', claim.modelId),
      ...present('provider', claim.provider),
      ...present('meter_basis', claim.meterBasis),
    };
  }

  /**
   * A claim names only claims before it; a ledger may know those that were imported before. One after it is not known yet, and is not
   * the next time that the same files are imported either.
   */
  #idOf(id: string): Digest | string {
    const made = this.#ids.get(id);
    if (made !== undefined) return made;
    const known = this.#claimed.has(id) ? undefined : this.#context.known?.get(sourceIdOf(id));
    return known ?? notStated(this.#context.system, 'authorization');
  }

  #digestsDraft(claim: Claim, digests: readonly ForeignDigest[], about: Digest): object {
    const { system } = this.#context;
    return {
      event_type: `x.${system}.digests`,
      occurred_at: claim.occurredAt,
      principal_id: claim.principalId,
      source: { system, id: sourceIdOf(digestsId(claim.id)), digest: sha256Digest(claim.bytes) },
      about: toDigestText(about.b64),
      digests: digests.map(({ of, form, stated, check }) => ({ of, form, stated, check })),
    };
  }
}

function restsOn(claim: Claim): string | undefined {
  const id = authorityOf(claim);
  return id === undefined ? undefined : sourceIdOf(id);
}

function digestsId(id: string): string {
  return `digests:${id}`;
}

/** An action authorizes one call, whatever else it reserves. */
function withOneCall(reservation: MeterVector): readonly Meter[] {
  const hasCalls = reservation.some(({ unit }) => unit === 'calls');
  return sorted(hasCalls ? reservation : [...reservation, ONE_CALL]);
}

function sorted(vector: MeterVector): readonly Meter[] {
  return [...vector].sort((a, b) => (a.unit < b.unit ? -1 : 1));
}

function present(name: string, value: unknown): object {
  return value === undefined ? {} : { [name]: value };
}
