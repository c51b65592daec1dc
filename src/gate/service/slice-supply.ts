/**
 * Keeps a gate supplied with slices (SPEC §8 rule 17): when little is left under the grants of those that it has, it asks for the next one,
 * and decides within what it has until that comes. What it does not need it gives back.
 */

import { type Clock, sleep, type Timer } from '../../base/clock.js';
import { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import {
  addRationals,
  compareRationals,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { formatInstant, orderTimestamps, parseTimestamp } from '../../base/value/timestamp.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import { countSlices, listSliceGrants } from '../../log/fleet/grant-slice.js';
import { grantNextSlice, wholeSlice } from '../../log/fleet/next-slice.js';
import { closeSlices, type SliceSettlement } from '../../log/fleet/settle.js';
import type { GivenSlice } from '../../log/fleet/slice.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';

/** Where slices come from: a parent ledger, as a rule behind its service. */
export interface SliceSource {
  /** A slice as an earlier one, or what is left where that is less; a repeated request gets the slice that it has. */
  next(request: {
    readonly childId: string;
    readonly after: string;
    readonly number: number;
  }): Promise<GivenSlice>;
  /** Takes slices back. What was settled before is passed over. */
  settle(childId: string, settlements: readonly SliceSettlement[]): Promise<void>;
}

export interface SliceSupplyOptions {
  /** The child, with a signer of the role `authority`. Asked for anew each time, since it may be opened anew. */
  readonly ledger: () => LiveLedger;
  readonly source: SliceSource;
  /** Whether this process decides now. Default: always. */
  readonly decides?: (() => boolean) | undefined;
  readonly onEvent?: ((event: SupplyEvent) => void) | undefined;
  readonly clock: Clock;
}

export interface SupplyEvent {
  readonly event: 'slice_taken' | 'slice_refused' | 'slices_returned';
  /** Of the slice's action in the parent. */
  readonly slice?: string | undefined;
  readonly code?: string | undefined;
}

/** How often it looks, in milliseconds. */
const LOOK_MS = 200;
/** How long a call waits for a slice. */
const WAIT_MS = 2_000;
/** Pauses after a refusal. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** Of the time of a slice, the last part in which the next one is asked for. */
const LAST_PART = 5n;

export class SliceSupply {
  readonly #options: SliceSupplyOptions;
  readonly #timer: Timer;
  readonly #closed = new AbortController();
  #running: Promise<void> | undefined;
  /** Whether nothing is left, as the look that is under way finds. */
  #isOut: Promise<boolean> = Promise.resolve(false);
  #pauseMs = 0;
  #pausedUntil = -Infinity;

  constructor(options: SliceSupplyOptions) {
    this.#options = options;
    this.#timer = options.clock.setInterval(() => void this.look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Asks for the next slice, if little is left. Never rejects. */
  look(): Promise<void> {
    const { decides, clock } = this.#options;
    if (this.#closed.signal.aborted || decides?.() === false || clock.ticks() < this.#pausedUntil)
      return this.#running ?? Promise.resolve();
    return (this.#running ??= this.#supply().finally(() => (this.#running = undefined)));
  }

  /** Waits for the slice that is being asked for, if nothing is left without it. Never rejects. */
  async ready(signal: AbortSignal): Promise<void> {
    const running = this.#running;
    if (running === undefined || !(await this.#isOut)) return;
    await Promise.race([running, sleep(this.#options.clock, WAIT_MS, signal)]);
  }

  /** Ends it. @param givesBack - Closes the grants of its slices, and has the parent take back what is left */
  async close(givesBack: boolean): Promise<void> {
    this.#closed.abort();
    this.#options.clock.clear(this.#timer);
    await this.#running;
    if (givesBack) await this.#giveBack();
  }

  async #supply(): Promise<void> {
    const { ledger, source } = this.#options;
    try {
      const child = ledger();
      const now = child.now();
      const seen = child.use((writer) => writer.inspect((_, state) => needOf(state, now)));
      this.#isOut = seen.then(
        (found) => found?.isOut === true,
        () => false,
      );
      const need = await seen;
      if (need === undefined) return;
      const { after, number } = need;
      const slice = await source.next({ childId: child.genesisId, after, number });
      if (slice.childId !== child.genesisId || slice.ledgerId !== need.parentId)
        throw new NorthrootError('PEER_ANSWER_INVALID', 'the slice is of another ledger, or for another one');
      await child.use((writer) => grantNextSlice(writer, slice, { now: () => child.now() }));
      this.#pauseMs = 0;
      this.#tell({ event: 'slice_taken', slice: slice.eventId });
    } catch (error) {
      this.#pause(error);
    }
  }

  #pause(error: unknown): void {
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS);
    this.#pausedUntil = this.#options.clock.ticks() + this.#pauseMs;
    this.#tell({ event: 'slice_refused', code: codeOf(error) });
  }

  async #giveBack(): Promise<void> {
    const { ledger, source, clock } = this.#options;
    try {
      const child = ledger();
      const now = child.now();
      const open = await child.use((writer) => writer.inspect((_, state) => unclosed(state)));
      if (open.length === 0) return;
      const closed = await child.use((writer) => closeSlices(writer, open, { now: () => now }));
      const settlements = closed.map(({ sliceId, used, checkpoint: { note } }) => ({ sliceId, used, note }));
      for (let pause = MIN_PAUSE_MS; ; pause *= 2) {
        try {
          await source.settle(child.genesisId, settlements);
          return this.#tell({ event: 'slices_returned' });
        } catch (error) {
          if (pause > 4 * MIN_PAUSE_MS) throw error;
        }
        await sleep(clock, pause);
      }
    } catch (error) {
      this.#tell({ event: 'slice_refused', code: codeOf(error) });
    }
  }

  #tell(event: SupplyEvent): void {
    this.#options.onEvent?.(event);
  }
}

function codeOf(error: unknown): string {
  return error instanceof NorthrootError ? error.code : 'INTERNAL_ERROR';
}

interface Need {
  /** The slice that the next one is to be like, `sha-256:…`. */
  readonly after: string;
  readonly parentId: string;
  readonly number: number;
  /** Whether nothing is left of a unit. */
  readonly isOut: boolean;
}

/** What to ask for; undefined while enough is left, and where there was no slice yet. */
function needOf(state: VerifyState, now: string): Need | undefined {
  const all = listSliceGrants(state);
  const newest = all.at(-1);
  if (newest?.slice === undefined) return undefined;
  const usable = all.filter((grant) => grant.withdrawal === undefined && !isEnding(grant, now));
  let [isShort, isOut] = [false, false];
  const parent = newest.slice.ledgerId;
  const whole = wholeSlice(all.filter(({ slice }) => slice?.ledgerId === parent)) ?? newest;
  for (const [unit, { cap }] of whole.accounts) {
    if (compareRationals(cap, ZERO) <= 0) continue;
    const left = usable.reduce((sum, grant) => addRationals(sum, leftOf(grant, unit)), ZERO);
    isShort ||= compareRationals(addRationals(left, left), cap) < 0;
    isOut ||= compareRationals(left, ZERO) <= 0;
  }
  if (!isShort) return undefined;
  const parentId = toDigestText(parent);
  return {
    parentId,
    after: toDigestText((whole.slice ?? newest.slice).eventId),
    number: countSlices(state, parentId) + 1,
    isOut,
  };
}

function leftOf({ accounts }: Grant, unit: string): Rational {
  const account = accounts.get(unit);
  if (account === undefined) return ZERO;
  const left = subtractRationals(subtractRationals(account.cap, account.used), account.reserved);
  return compareRationals(left, ZERO) < 0 ? ZERO : left;
}

/** Whether most of a grant's time is over. */
function isEnding({ expiresAt, occurredAt }: Grant, now: string): boolean {
  if (expiresAt === undefined) return false;
  const [begin, end] = [parseTimestamp(occurredAt), parseTimestamp(expiresAt)];
  return orderTimestamps(now, formatInstant(end - (end - begin) / LAST_PART)) >= 0;
}

/** The slices whose grants are not closed, `sha-256:…`. */
function unclosed(state: VerifyState): string[] {
  return listSliceGrants(state).flatMap(({ slice, withdrawal }) =>
    slice !== undefined && withdrawal?.stop === undefined ? toDigestText(slice.eventId) : [],
  );
}
