/** Schedules checkpoints, with a timer for those due by time alone. */

import { type Clock, systemClock, type Timer } from '../../base/clock.js';
import { NorthrootError } from '../../base/error.js';
import { type ChainTip, type CheckpointSchedule, timeToCheckpoint } from './checkpoint.js';
import { nowOf, type OpeningOptions } from './options.js';
import type { RunningVerification } from './running-verification.js';

/** The longest timer that Node supports. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class CheckpointTimer {
  readonly #options: OpeningOptions;
  readonly #running: RunningVerification;
  readonly #onDue: () => void;
  readonly #clock: Clock;
  #timer: Timer | undefined;
  /** Set when a due checkpoint failed. */
  #isStopped = false;

  /** @param onDue - Called when a checkpoint is due by time */
  constructor(options: OpeningOptions, running: RunningVerification, onDue: () => void) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#running = running;
    this.#onDue = onDue;
  }

  /** Whether a checkpoint is due after the current tip. */
  isDue(now: string): boolean {
    return this.#schedule !== undefined && this.#timeLeft(this.#running.tip, now) === 0;
  }

  /** Whether one may become due after records of these times; may overestimate. */
  mayBeDue(times: readonly string[]): boolean {
    if (this.#schedule === undefined) return false;
    const { tip: now } = this.#running;
    const tip = { ...now, seq: now.seq + times.length };
    return times.some((time) => this.#timeLeft(tip, time) === 0);
  }

  /** Whether a schedule is active. */
  get isOn(): boolean {
    return this.#schedule !== undefined;
  }

  set(): void {
    this.clear();
    if (this.#schedule === undefined) return;
    const wait = this.#timeLeft(this.#running.tip, nowOf(this.#options));
    if (wait === Infinity) return;
    // Before the next append, so that the outcome does not depend on timing.
    if (wait === 0) {
      this.#onDue();
      return;
    }
    const ring = (): void => {
      if (wait > MAX_TIMER_MS) this.set();
      else this.#onDue();
    };
    this.#timer = this.#clock.setTimeout(ring, Math.min(wait, MAX_TIMER_MS));
    // A timer MUST NOT keep the process alive: the ledger is closed at the end of its input.
    this.#timer.unref();
  }

  clear(): void {
    this.#clock.clear(this.#timer);
  }

  /**
   * Stops the schedule after a failure.
   * @returns The reason, the first time, which was also reported as a notice
   */
  stop(error: unknown, path: string): NorthrootError | undefined {
    if (this.#isStopped) return undefined;
    this.#isStopped = true;
    const reason = error instanceof NorthrootError ? error : failed(error);
    this.#options.onNotice?.({ code: 'CHECKPOINT_FAILED', path, error: reason });
    return reason;
  }

  get #schedule(): CheckpointSchedule | undefined {
    return this.#isStopped ? undefined : this.#options.checkpointEvery;
  }

  #timeLeft(tip: ChainTip, now: string): number {
    const { genesis } = this.#running;
    return timeToCheckpoint(tip, this.#schedule ?? {}, genesis.occurred_at, now);
  }
}

/** Why a writer refuses all further work. */
export function failed(cause: unknown): NorthrootError {
  const reason = cause instanceof NorthrootError ? cause.message : String(cause);
  return new NorthrootError('LEDGER_FAILED', `the ledger could not be written: ${reason}`, {
    cause,
    hint: 'nothing that was not acknowledged counts; open the ledger again when the cause is gone',
  });
}
