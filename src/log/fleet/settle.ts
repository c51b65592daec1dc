/**
 * Settling slices (SPEC §8 rule 17): the child's grants are stopped, what is open under them ends, a checkpoint seals that, and the parent
 * records what was used up to there. Each step is found done when it is repeated after a crash.
 */

import { setTimeout } from 'node:timers/promises';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { inGroups } from '../../base/in-groups.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { fromDigestText, sha256Digest, toDigestText } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { chainIds, type Grant } from '../../rules/bounds/grant.js';
import { sliceParamsDigest } from '../../rules/bounds/slice.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import { listOpenStarts, unstartedActions } from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { dateExecution, draftExecution, draftRelease, findPermission } from '../policy/record.js';
import { withdrawGrants } from '../policy/revoke.js';
import { type Abandonable, draftAbandoned, isOvertaken } from '../policy/sweep.js';
import type { Ledger } from '../writer/ledger.js';
import type { CheckpointResult } from '../writer/options.js';
import { listSliceGrants } from './grant-slice.js';

export interface SettleSlicesOptions {
  /** How long to wait for what was begun in the child, in milliseconds. Default 0: not at all. */
  readonly waitMs?: number | undefined;
  /** Records what was begun and does not end in time as `unknown`, charged as reserved. Default false: it is an error. */
  readonly abandon?: boolean | undefined;
  /** Who stops the child's grants and seals it. Default: who made the child. */
  readonly principalId?: string | undefined;
  /** Called while something is open in the child. */
  readonly onWaiting?: ((open: number) => void) | undefined;
  readonly now?: (() => string) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A slice under whose grant nothing more is done in the child, and what was used of it up to a checkpoint there. */
export interface ClosedSlice {
  /** The slice's action in the parent, `sha-256:…`. */
  readonly sliceId: string;
  readonly grantId: string;
  /** Of each unit that the grant caps. */
  readonly used: readonly Meter[];
  readonly checkpoint: Pick<CheckpointResult, 'eventId' | 'seq' | 'note' | 'treeSize'>;
}

/** What the parent is told of a slice. */
export type SliceSettlement = Pick<ClosedSlice, 'sliceId' | 'used'> & {
  /** Of the child's checkpoint. */
  readonly note: string;
};

export interface SettledSlice {
  /** The slice's action in the parent, `sha-256:…`. */
  readonly sliceId: string;
  /** The grant in the child; undefined for `ungranted`. */
  readonly grantId: string | undefined;
  /** What the child used, of each unit that its grant caps; undefined unless `appended`. */
  readonly used: readonly Meter[] | undefined;
  /** The checkpoint of the child by which it was settled; undefined unless `appended`. */
  readonly checkpoint: Pick<CheckpointResult, 'eventId' | 'seq' | 'note' | 'treeSize'> | undefined;
  /** The settlement in the parent; undefined unless `appended`. */
  readonly recorded: { readonly seq: number; readonly eventId: string } | undefined;
  /**
   * `exists`: it was settled before. `ungranted`: the child has no grant of it, which could be stopped; it stays open and counts as spent,
   * since the child may still take it up.
   */
  readonly status: 'appended' | 'exists' | 'ungranted';
}

const SETTLE_OPTIONS: OptionTypes<SettleSlicesOptions> = {
  waitMs: 'number',
  abandon: 'boolean',
  principalId: 'string',
  onWaiting: 'function',
  now: 'function',
  signal: 'signal',
};

const POLL_MS = 250;
/** How often a checkpoint is made anew where other records came before it. */
const MAX_SEALS = 8;
const REASON = 'SLICE_SETTLED';

/**
 * Settles all open slices of a child in its parent:
 * 1. revokes the child's grants of them, with `stop`;
 * 2. releases what was allowed under them and not begun; waits for what was begun, or records it as `unknown`;
 * 3. seals the child by a checkpoint;
 * 4. records in the parent what the child had used at that checkpoint.
 *
 * May be repeated after a failure at any step. What was settled before is `exists`; a slice that the child has no grant of is `ungranted`,
 * and keeps none of the others from being settled. Nor does one that cannot be closed: it is the error after all others are settled.
 * @param parent - Open for decisions; its signer signs for the slices' principal
 * @param child - Open for decisions and checkpoints; its signer may revoke the grants, release what is open under them, and seal
 * @throws NorthrootError `SLICE_NOT_FOUND` for no slice, or none that the child has a grant of; `SLICE_OPEN` for what does not end in time;
 *   `LEDGER_INVALID` for a ledger with broken evidence; as `Ledger.append`, `Ledger.checkpoint` and `Ledger.decide`
 * @throws TypeError, RangeError for a bad option
 */
export async function settleSlices(
  parent: Ledger,
  child: Ledger,
  options: SettleSlicesOptions = {},
): Promise<SettledSlice[]> {
  checkOptions('settleSlices', options, SETTLE_OPTIONS);
  const { waitMs = 0, signal, now = () => new Date().toISOString() } = options;
  if (!(waitMs >= 0 && waitMs < 2 ** 31))
    throw new RangeError('settleSlices: waitMs: expected at least 0 milliseconds');
  const taken = await child.inspect((_, state) => grantsOf(state, parent.genesisId), { signal });
  const open = await parent.inspect(async (_, state) => openSlices(state, child.genesisId), { signal });
  const ungranted = open.filter((id) => !taken.has(id));
  const [missing] = ungranted;
  if (missing !== undefined && taken.size === 0)
    throw new NorthrootError('SLICE_NOT_FOUND', `${child.path} has no grant of the slice ${missing}`, {
      hint: 'a slice is settled by the grant that spends it: grant it there first, then settle it',
    });
  if (open.length === 0 && taken.size === 0)
    throw new NorthrootError('SLICE_NOT_FOUND', `${parent.path} has no slice for ${child.genesisId}`, {
      hint: 'check which is the parent',
    });
  const isOpen = new Set(open);
  const before = [...taken]
    .filter(([id]) => !isOpen.has(id))
    .map(([sliceId, grantId]): SettledSlice => ({ ...NOTHING, sliceId, grantId }));
  const left = ungranted.map((sliceId): SettledSlice => ({
    ...NOTHING,
    sliceId,
    grantId: undefined,
    status: 'ungranted',
  }));
  if (open.length === left.length) return [...before, ...left];
  const settle = async (closed: ClosedSlice): Promise<SettledSlice> => {
    const { sliceId, grantId, used, checkpoint } = closed;
    const { note } = checkpoint;
    const recorded = await recordSettlement(parent, { sliceId, used, note }, { now, signal });
    return recorded === undefined
      ? { ...NOTHING, sliceId, grantId }
      : { ...closed, recorded, status: 'appended' };
  };
  const { closed, failure } = await closeEach(child, open, options);
  const settled = await inGroups(closed, settle, signal);
  if (failure !== undefined) throw failure;
  return [...before, ...settled, ...left];
}

/** Closes slices together; where one cannot be closed, each by itself: it keeps no other from being settled. */
async function closeEach(
  child: Ledger,
  sliceIds: readonly string[],
  options: SettleSlicesOptions,
): Promise<{ readonly closed: readonly ClosedSlice[]; readonly failure?: Error }> {
  try {
    return { closed: await closeSlices(child, sliceIds, options) };
  } catch (error) {
    if (sliceIds.length === 1 || !(error instanceof Error)) throw error;
    const closed: ClosedSlice[] = [];
    for (const id of sliceIds) {
      options.signal?.throwIfAborted();
      const waited = { ...options, waitMs: 0 };
      closed.push(...(await closeSlices(child, [id], waited).catch(() => [])));
    }
    return { closed, failure: error };
  }
}

/**
 * Closes slices in their child, steps 1 to 3 of {@link settleSlices}: from there on their grants allow nothing, whether or not the parent is
 * told. Those that the child has no grant of are left out.
 * @param sliceIds - Of their actions in the parent, `sha-256:…`
 * @throws NorthrootError `SLICE_OPEN` for what does not end in time; `LEDGER_INVALID` for broken evidence; as `Ledger.checkpoint` and
 *   `Ledger.decide`
 * @throws TypeError, RangeError for a bad option
 */
export async function closeSlices(
  child: Ledger,
  sliceIds: readonly string[],
  options: SettleSlicesOptions = {},
): Promise<ClosedSlice[]> {
  checkOptions('closeSlices', options, SETTLE_OPTIONS);
  const { waitMs = 0, signal, now = () => new Date().toISOString() } = options;
  const taken = await child.inspect((_, state) => grantsOf(state), { signal });
  const slices = sliceIds.filter((id) => taken.has(id));
  if (slices.length === 0) return [];
  const grantIds = slices.map((id) => taken.get(id) as string);
  await stop(child, grantIds, { ...options, now });
  await drain(child, grantIds, { ...options, waitMs, now });
  const { checkpoint, used } = await seal(child, grantIds, options);
  return slices.map((sliceId, index) => ({
    sliceId,
    grantId: grantIds[index] as string,
    used: used[index] as readonly Meter[],
    checkpoint,
  }));
}

const NOTHING = { used: undefined, checkpoint: undefined, recorded: undefined, status: 'exists' } as const;

/** The child's grant of each slice, by the slice; of one parent, if it is given. */
function grantsOf(state: VerifyState, parentId?: string): Map<string, string> {
  const grants = new Map<string, string>();
  for (const { slice, place } of listSliceGrants(state))
    if (slice !== undefined && (parentId === undefined || slice.ledgerId === fromDigestText(parentId))) {
      const id = toDigestText(slice.eventId);
      if (!grants.has(id)) grants.set(id, place.eventId);
    }
  return grants;
}

async function openSlices(state: VerifyState, childId: string): Promise<string[]> {
  const { actions } = state.links;
  await actions.load?.();
  const params = sliceParamsDigest(childId);
  return [...actions.open()]
    .filter(
      ({ toolName, eventId }) =>
        toolName === SLICE_TOOL && actions.get(fromDigestText(eventId))?.params === params,
    )
    .map(({ eventId }) => eventId);
}

type Timed = SettleSlicesOptions & { readonly now: () => string };

async function stop(
  child: Ledger,
  grantIds: readonly string[],
  { principalId, now, signal }: Timed,
): Promise<void> {
  const isStopped = ({ withdrawal }: Grant): boolean =>
    withdrawal?.effect === 'revoke' && withdrawal.stop !== undefined;
  const running = await child.inspect(
    (_, state) =>
      grantIds.filter((id) => {
        const grant = state.links.grants.get(fromDigestText(id));
        return grant === undefined || !isStopped(grant);
      }),
    { signal },
  );
  if (running.length === 0) return;
  const options = {
    effect: 'revoke',
    inFlight: 'stop',
    reason: REASON,
    principalId: principalId ?? child.principalId,
  } as const;
  await withdrawGrants(child, running, options, now, { signal });
}

/** Ends what is open under the grants. */
async function drain(
  child: Ledger,
  grantIds: readonly string[],
  { waitMs, abandon = false, onWaiting, now, signal }: Timed & { readonly waitMs: number },
): Promise<void> {
  const until = performance.now() + waitMs;
  for (;;) {
    const { unstarted, started } = await child.inspect(async (_, state) => openUnder(state, grantIds), {
      signal,
    });
    await inGroups(
      unstarted,
      (each) => settleOpen(child, (state) => draftRelease(state, each.authorizationId, now()), signal),
      signal,
    );
    const left = until - performance.now();
    if (started.length > 0 && left <= 0) {
      if (!abandon) throw stillOpen(child, started);
      await inGroups(
        started,
        (each) => settleOpen(child, (state) => draftAbandoned(state, each, now()), signal),
        signal,
      );
    }
    if (unstarted.length === 0 && started.length === 0) return;
    if (started.length === 0 || left <= 0) continue;
    onWaiting?.(started.length);
    await setTimeout(Math.min(POLL_MS, left), undefined, { ...(signal && { signal }) }).catch(
      () => undefined,
    );
    signal?.throwIfAborted();
  }
}

function stillOpen(child: Ledger, [first, ...others]: readonly Abandonable[]): NorthrootError {
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return new NorthrootError(
    'SLICE_OPEN',
    `${child.path}: ${first?.authorizationId} was begun and is not recorded${more}`,
    {
      hint: 'wait longer; or, if nothing will finish it, have it recorded as unknown, charged as reserved',
    },
  );
}

async function settleOpen(
  child: Ledger,
  makes: (state: VerifyState) => object,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    await child.decide((state) => ({ event: makes(state) }), { signal });
  } catch (error) {
    if (!isOvertaken(error)) throw error;
  }
}

interface Open {
  readonly unstarted: readonly Abandonable[];
  readonly started: readonly Abandonable[];
}

async function openUnder(state: VerifyState, grantIds: readonly string[]): Promise<Open> {
  await state.links.actions.load?.();
  const wanted = new Set(grantIds);
  const isUnder = ({ grantId }: { readonly grantId: string | undefined }): boolean =>
    grantId !== undefined &&
    chainIds(state.links.grants.get(fromDigestText(grantId))).some((id) => wanted.has(id));
  return {
    unstarted: [...unstartedActions(state)]
      .filter(isUnder)
      .map(({ eventId }) => ({ authorizationId: eventId, startId: undefined })),
    started: listOpenStarts(state)
      .filter(isUnder)
      .map(({ authorizationId, eventId }) => ({ authorizationId, startId: eventId })),
  };
}

interface Sealed {
  readonly checkpoint: CheckpointResult;
  /** What counts as used at it, for each grant. */
  readonly used: readonly (readonly Meter[])[];
}

/** A checkpoint, and what was used at it: no record came between the two. */
async function seal(
  child: Ledger,
  grantIds: readonly string[],
  { principalId, signal }: SettleSlicesOptions,
): Promise<Sealed> {
  for (let count = 0; count < MAX_SEALS; count += 1) {
    const { size, used, open } = await child.inspect(
      async (_, state) => {
        const { unstarted, started } = await openUnder(state, grantIds);
        return {
          size: state.records,
          used: grantIds.map((id) => usedUnder(state.links.grants.get(fromDigestText(id)))),
          open: [...unstarted, ...started],
        };
      },
      { signal },
    );
    if (open.length > 0) throw stillOpen(child, open);
    const checkpoint = await child.checkpoint(principalId, { signal });
    if (checkpoint.treeSize === size) return { checkpoint, used };
  }
  throw new NorthrootError('LEDGER_CHANGED', `${child.path} changes while it is sealed`, {
    hint: 'settle it again when less is recorded',
  });
}

function usedUnder(grant: Grant | undefined): Meter[] {
  return [...(grant?.accounts ?? [])].map(([unit, { used }]) => ({ unit, amount: sumQuantity(used) }));
}

/**
 * Records in the parent what was used of a slice, step 4 of {@link settleSlices}.
 * @returns Undefined where it was settled before
 * @throws as `findPermission` and `Ledger.decide`
 */
export async function recordSettlement(
  parent: Ledger,
  { sliceId, used, note }: SliceSettlement,
  { now = () => new Date().toISOString(), signal }: Pick<SettleSlicesOptions, 'now' | 'signal'> = {},
): Promise<{ readonly seq: number; readonly eventId: string } | undefined> {
  const outputDigest = sha256Digest(encodeUtf8(note));
  try {
    const { seq, eventId } = await parent.decide(
      (state) => {
        const time = now();
        const done = { endedAt: time, isRelease: false };
        const permission = findPermission(state, sliceId, { now: time, start: true, done, meterUsed: used });
        const startedAt = permission.started?.startedAt ?? time;
        const endedAt = compareTimestamps(time, startedAt) < 0 ? startedAt : time;
        const outcome = { startedAt, endedAt, meterUsed: used, outcome: 'success', outputDigest } as const;
        return {
          event: dateExecution(draftExecution(permission, { ...outcome, meterBasis: 'reported' }), time),
        };
      },
      { signal },
    );
    return { seq, eventId };
  } catch (error) {
    // By another process, meanwhile.
    if (error instanceof NorthrootError && error.code === 'AUTHORIZATION_REUSED') return undefined;
    throw error;
  }
}
