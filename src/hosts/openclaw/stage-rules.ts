/**
 * What comes of a stage: the rules that the runner acts by and the validator checks by. They hold for values of either, plain JSON and
 * values of source texts: both have lists as arrays, `null`, and members by name.
 */

import { DOWNSTREAM, type HandlerClass } from './families.js';

/** What the member `trace` of a stage's trace says. */
export const STAGE_TRACE = 'openclaw.stage.v1';

/** At most this many handlers has a stage. */
export const MAX_HANDLERS = 1_000;

export const RESULTS = {
  add: 'augmenter',
  patch: 'mutator',
  decision: 'veto',
  candidates: 'resolver',
} as const satisfies Readonly<Record<string, HandlerClass>>;

type IsSame<V> = (a: V | undefined, b: V | undefined) => boolean;

interface Placed<P> {
  readonly priority: P;
  readonly extension: string;
  readonly contribution: string;
}

/** Below 0 where `a` runs before `b`: by priority descending, then by the code units of both ids. */
export function comparePlaces<P>(a: Placed<P>, b: Placed<P>, isLess: (a: P, b: P) => boolean): number {
  if (isLess(b.priority, a.priority)) return -1;
  if (isLess(a.priority, b.priority)) return 1;
  if (a.extension !== b.extension) return a.extension < b.extension ? -1 : 1;
  return a.contribution < b.contribution ? -1 : a.contribution > b.contribution ? 1 : 0;
}

/** Whether an error of the handler cancels the stage. Observers fail open; what changes credentials or identity fails closed. */
export function failsClosed(
  kind: HandlerClass | undefined,
  declared: boolean | undefined,
  purpose: string | undefined,
  isStageClosed: boolean,
): boolean {
  if (declared !== undefined) return declared;
  if (kind === 'observer') return false;
  return isStageClosed || (kind === 'mutator' && (purpose === 'credential' || purpose === 'auth'));
}

/** Whether the field chooses a route where none may be chosen. */
export function choosesRoute(stage: string, field: string): boolean {
  return stage === 'ingress.normalized' && field === 'route';
}

/** Whether only trusted mutators may set the field. */
export function needsTrust(stage: string, field: string): boolean {
  return stage === 'agent.prompt.building' && field === 'systemPrompt';
}

/** Adds what an augmenter gave. False where it would replace what may not be replaced: the first stays. */
export function addField<V>(
  context: Map<string, V>,
  field: string,
  value: V,
  isReplaceable: boolean,
  isSame: IsSame<V>,
): boolean {
  const had = context.get(field);
  if (Array.isArray(had)) context.set(field, append(had, value));
  else if (had === undefined || isReplaceable || isSame(had, value)) context.set(field, value);
  else return false;
  return true;
}

/**
 * The working object with a patch of a mutator.
 *
 * @param overridden - The overrides of the model so far: the first of each field wins.
 */
export function patchFields<V>(
  stage: string,
  working: ReadonlyMap<string, V>,
  patch: Iterable<readonly [string, V]>,
  overridden: Set<string>,
): Map<string, V> {
  const patched = new Map(working);
  for (const [field, value] of patch) {
    if (stage === 'agent.model.resolving') {
      if (overridden.has(field) || value === null) continue;
      overridden.add(field);
    }
    const had = patched.get(field);
    const composes = stage === 'agent.prompt.building' && Array.isArray(had);
    patched.set(field, composes ? append(had, value) : value);
  }
  return patched;
}

/** The candidate that is to be selected: an explicit one, else that of the highest rank; of several the first. */
export function bestOf<R, C extends { readonly isExplicit: boolean; readonly rank: R }>(
  candidates: Iterable<C>,
  isLess: (a: R, b: R) => boolean,
): C | undefined {
  let best: C | undefined;
  for (const candidate of candidates) {
    const isBetter =
      best === undefined ||
      (candidate.isExplicit !== best.isExplicit
        ? candidate.isExplicit
        : !candidate.isExplicit && isLess(best.rank, candidate.rank));
    if (isBetter) best = candidate;
  }
  return best;
}

/** Whether no valid provider remains where a stage chooses one: of the model what the working object has, else what was selected. */
export function lacksBackend<V>(
  stage: string,
  chosen: { readonly provider: V | undefined; readonly selected: V | undefined },
  providers: readonly V[] | undefined,
  isSame: IsSame<V>,
): boolean {
  if (stage !== 'agent.model.resolving') return chosen.selected === undefined;
  const { provider } = chosen;
  if (provider === undefined || provider === null) return true;
  return providers !== undefined && !providers.some((each) => isSame(each, provider));
}

function append<V>(list: V & readonly unknown[], value: V): V {
  return (Array.isArray(value) ? [...list, ...(value as unknown[])] : [...list, value]) as V;
}

/** What stages let through, of one correlation and one family that follows. */
interface Passed<P> {
  /** So many that were let through are still to follow. */
  let: number;
  cancelledAt: P | undefined;
  /** By the id of the call or the message: where it was cancelled, undefined where it was let through. */
  readonly bySubject: Map<string, P | undefined>;
}

/**
 * What may follow stages (OC-9.15). A run's events have one correlation, so that of several calls with it those that were not cancelled
 * may follow: by the id of the call or the message where events state one, else as many as were let through.
 */
export class Followers<P> {
  readonly #passed = new Map<string, Passed<P>>();
  readonly #most: number;

  /** @param most - At most so many correlations and families are remembered, the last ones. */
  constructor(most = Infinity) {
    this.#most = most;
  }

  ended(stage: string, correlation: string, subject: string | undefined, at: P, isCancelled: boolean): void {
    for (const family of DOWNSTREAM.get(stage) ?? []) {
      const key = `${family}\n${correlation}`;
      const state: Passed<P> = this.#passed.get(key) ?? {
        let: 0,
        cancelledAt: undefined,
        bySubject: new Map(),
      };
      this.#passed.delete(key);
      this.#passed.set(key, state);
      if (subject !== undefined) state.bySubject.set(subject, isCancelled ? at : undefined);
      if (isCancelled) state.cancelledAt = at;
      else state.let++;
      forgetOldest(state.bySubject, this.#most);
      forgetOldest(this.#passed, this.#most);
    }
  }

  /** Where the stage was cancelled that an event follows although it must not. */
  follow(
    family: string,
    correlation: string,
    subject: string | undefined,
  ): { readonly cancelledAt: P } | undefined {
    const state = this.#passed.get(`${family}\n${correlation}`);
    if (state === undefined) return undefined;
    const isKnown = subject !== undefined && state.bySubject.has(subject);
    const by = isKnown ? state.bySubject.get(subject) : state.let > 0 ? undefined : state.cancelledAt;
    if (by !== undefined) return { cancelledAt: by };
    state.let--;
    return undefined;
  }
}

/** Keeps the last `most` entries of a map. */
export function forgetOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
