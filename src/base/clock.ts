/** The one clock, with its timers, of what decides and writes: another one makes time pass as a test wants. */

/** Cleared by the clock that made it. */
export interface Timer {
  /** From now on it does not keep the process alive. */
  unref(): unknown;
}

/** A clock and its timers. All lengths of time are in milliseconds. */
export interface Clock {
  /** Since 1970. May be set back. */
  now(): number;
  /** Since any instant. Never goes back. */
  ticks(): number;
  /** @param ms - At most 2^31 − 1 */
  setTimeout(run: () => void, ms: number): Timer;
  setInterval(run: () => void, ms: number): Timer;
  clear(timer: Timer | undefined): void;
}

/** The machine's. */
export const systemClock: Clock = {
  now: () => Date.now(),
  ticks: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  setInterval: (run, ms) => setInterval(run, ms),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
};

let lastMs = NaN;
let lastText = '';

/** The present as a timestamp of SPEC §2; formatted again only when the clock has moved, for it is read with every append. */
export function presentTime(clock: Clock = systemClock): string {
  const ms = clock.now();
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}

/** Resolves after `ms`, or when the signal aborts: who minds asks it. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      clock.clear(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
