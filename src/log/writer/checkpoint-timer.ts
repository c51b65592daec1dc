/** When the next checkpoint of a schedule is due, and the timer for one that is due by time alone. */

import { NorthrootError } from '../../base/error.js';
import type { ChainTip } from './chain-tip.js';
import { type CheckpointSchedule, timeToCheckpoint } from './checkpoint.js';
import { nowOf, type OpeningOptions } from './options.js';
import type { RunningVerification } from './running-verification.js';

/** The longest that Node's timers can wait; what is due later is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** See the head of this file. */
export class CheckpointTimer {
  readonly #options: OpeningOptions;
  readonly #running: RunningVerification;
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Set when a checkpoint that was due could not be made. */
  #isStopped = false;

  /** @param onDue - Called when a checkpoint is due by time. */
  constructor(options: OpeningOptions, running: RunningVerification, onDue: () => void) {
    this.#options = options;
    this.#running = running;
    this.#onDue = onDue;
  }

  /** Whether a checkpoint is due behind the records so far. */
  isDue(now: string): boolean {
    return this.#schedule !== undefined && this.#timeLeft(this.#running.tip, now) === 0;
  }

  /** Whether one may come to be due among so many records given at these times; rather once too often than not. */
  mayBeDue(times: readonly string[]): boolean {
    if (this.#schedule === undefined) return false;
    const { tip: now } = this.#running;
    const tip = { ...now, seq: now.seq + times.length };
    return times.some((time) => this.#timeLeft(tip, time) === 0);
  }

  /** Whether checkpoints are made by a schedule, still. */
  get isOn(): boolean {
    return this.#schedule !== undefined;
  }

  /** Sets the timer for the next one that is due by time alone. */
  set(): void {
    this.clear();
    if (this.#schedule === undefined) return;
    const wait = this.#timeLeft(this.#running.tip, nowOf(this.#options));
    if (wait === Infinity) return;
    // At once, and so before what is appended next: what a ledger looks like is no matter of chance.
    if (wait === 0) {
      this.#onDue();
      return;
    }
    const ring = (): void => {
      if (wait > MAX_TIMER_MS) this.set();
      else this.#onDue();
    };
    this.#timer = setTimeout(ring, Math.min(wait, MAX_TIMER_MS));
    // A timer alone keeps no process alive: at the end of its input the ledger is closed.
    this.#timer.unref();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  /**
   * One that was due could not be made: no more are tried.
   *
   * @returns The reason, the first time; it was told of as a notice.
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
