/**
 * The state of a verification as plain data, for `verify --state` and for indexes. Grants name their parents by number, actions their
 * grants, and nodes of timelines are separate, so that each part can be read alone.
 */

import { fromDigestText } from '../../base/value/digest.js';
import type { Rational } from '../../base/value/rational.js';
import type { Action, Grant, RateLimit } from '../bounds/grant.js';
import type { SavedNode } from '../bounds/timeline-node.js';
import { restoreTimeline, type SavedTimeline, saveTimeline, type SavingScope } from '../bounds/timeline.js';
import type { CheckpointTally, Seals } from './seals.js';
import type { VerifyState } from './state.js';

/** A grant without its ancestors and the nodes of its timelines. */
export interface GrantForm extends Omit<Grant, 'parent' | 'rates' | 'concurrency'> {
  readonly parent: number | undefined;
  readonly rates: readonly (Omit<RateLimit, 'timeline' | 'started'> & { readonly timeline: SavedTimeline })[];
  readonly concurrency: { readonly limit: Rational; readonly timeline: SavedTimeline } | undefined;
}

/** An action that names its grant by number. */
export interface ActionForm extends Omit<Action, 'grant'> {
  readonly grant: number | undefined;
}

type ApartFromHead =
  | 'policy'
  | 'witnessPolicy'
  | 'requirements'
  | 'keyring'
  | 'events'
  | 'links'
  | 'seals'
  | 'signers'
  | 'foldRoots'
  | 'assumedSignatures'
  | 'observer'
  | 'parents'
  | 'sliceWatch';

/** The single values of a state. */
export interface HeadForm extends Omit<VerifyState, ApartFromHead> {
  readonly latest: string | undefined;
  readonly seals: Pick<Seals, 'intervalStart' | 'lastSigners' | 'unknown' | 'attestations'> & {
    /** Ids of checkpoints. */
    readonly signed: string | undefined;
    readonly sealing: string | undefined;
    readonly tallies: readonly CheckpointTally[];
  };
}

/** The number of a limit of a grant: its rates come first, then its concurrency. */
type LimitNumber = number;

/** @param putNode - Called with the nodes of its timelines, see `saveTimeline`. */
export function saveGrant(
  grant: Grant,
  scope: SavingScope,
  putNode: (limit: LimitNumber, node: SavedNode) => void,
): GrantForm {
  const { parent, rates, concurrency, ...plain } = grant;
  return {
    ...plain,
    parent: parent?.index,
    rates: rates.map(({ unit, meter, window, limit, timeline }, number) => ({
      unit,
      meter,
      window,
      limit,
      timeline: saveTimeline(timeline, scope, (node) => putNode(number, node)),
    })),
    concurrency: concurrency && {
      limit: concurrency.limit,
      timeline: saveTimeline(concurrency.timeline, scope, (node) => putNode(rates.length, node)),
    },
  };
}

/** The grant from {@link saveGrant}. Its parent is loaded on request. */
export function restoreGrant(
  { parent, rates, concurrency, ...plain }: GrantForm,
  grantAt: (index: number) => Grant | undefined,
  loadNode: (limit: LimitNumber, id: number) => SavedNode,
): Grant {
  const grant = {
    ...plain,
    rates: rates.map((rate, number) => ({
      ...rate,
      timeline: restoreTimeline(rate.timeline, (id) => loadNode(number, id), rate.window),
    })),
    concurrency: concurrency && {
      limit: concurrency.limit,
      timeline: restoreTimeline(concurrency.timeline, (id) => loadNode(rates.length, id)),
    },
  };
  return withReference(grant, 'parent', parent, grantAt);
}

export function saveAction({ grant, ...plain }: Action): ActionForm {
  return { ...plain, grant: grant?.index };
}

/** The action from {@link saveAction}, likewise. */
export function restoreAction(
  { grant, ...plain }: ActionForm,
  grantAt: (index: number) => Grant | undefined,
): Action {
  return withReference(plain, 'grant', grant, grantAt);
}

function withReference<T extends object, K extends string>(
  value: T,
  name: K,
  index: number | undefined,
  grantAt: (index: number) => Grant | undefined,
): T & Record<K, Grant | undefined> {
  const get = (): Grant | undefined => (index === undefined ? undefined : grantAt(index));
  return Object.defineProperty(value, name, { enumerable: true, get }) as T & Record<K, Grant | undefined>;
}

export function saveHead(state: VerifyState): HeadForm {
  const { policy, witnessPolicy, requirements, keyring, events, links, seals, ...rest } = state;
  void [policy, witnessPolicy, requirements, keyring, events];
  const { signers, foldRoots, assumedSignatures, observer, parents, sliceWatch, ...plain } = rest;
  void [signers, foldRoots, assumedSignatures, observer, parents, sliceWatch];
  const { intervalStart, lastSigners, unknown, attestations, signed, sealing, tallies } = seals;
  const idOf = (checkpoint: Seals['signed']): string | undefined =>
    checkpoint && fromDigestText(checkpoint.place.eventId);
  return {
    ...plain,
    latest: links.latest,
    seals: {
      intervalStart,
      lastSigners,
      unknown,
      attestations,
      signed: idOf(signed),
      sealing: idOf(sealing),
      tallies: [...tallies.values()],
    },
  };
}

/** Sets the single values of a state, after its tables. */
export function restoreHead(state: VerifyState, head: HeadForm): void {
  const { latest, seals, ...plain } = head;
  Object.assign(state, plain);
  state.links.latest = latest;
  const { signed, sealing, tallies, ...rest } = seals;
  Object.assign(state.seals, rest);
  state.seals.signed = signed === undefined ? undefined : state.seals.known.get(signed);
  state.seals.sealing = sealing === undefined ? undefined : state.seals.known.get(sealing);
  for (const tally of tallies) state.seals.tallies.set(`${tally.role} ${tally.keyid}`, tally);
}
