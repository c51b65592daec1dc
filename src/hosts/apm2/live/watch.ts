/** How long an agent may take: to begin, between two signs of life, and in all. */

export interface WatchOptions {
  /** In milliseconds; 0 or undefined is no limit. */
  readonly startupMs: number;
  readonly stallMs: number;
  /** How many stalls are borne. */
  readonly maxStalls: number;
  readonly wallMs: number | undefined;
  readonly onEnd: (code: 'STARTUP_TIMEOUT' | 'STALLED' | 'WALL_CLOCK_EXCEEDED') => void;
}

/** The longest timer of the platform, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Watch {
  readonly #options: WatchOptions;
  readonly #wall: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;
  #stalls = 0;
  /** How many calls the kernel works on: then it is not the agent that is silent. */
  #busy = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    const { wallMs } = options;
    if (wallMs !== undefined)
      this.#wall = setTimeout(() => options.onEnd('WALL_CLOCK_EXCEEDED'), Math.min(wallMs, MAX_TIMER_MS));
    this.#arm();
  }

  /** The agent has written something. */
  touch(): void {
    this.#hasBegun = true;
    this.#arm();
  }

  /** Runs work of the kernel's own. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
      this.#arm();
    }
  }

  end(): void {
    clearTimeout(this.#wall);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const { startupMs, stallMs } = this.#options;
    const limit = this.#hasBegun ? stallMs : startupMs || stallMs;
    if (limit > 0) this.#timer = setTimeout(() => this.#stall(), Math.min(limit, MAX_TIMER_MS));
  }

  #stall(): void {
    if (this.#busy > 0) return this.#arm();
    if (!this.#hasBegun) return this.#options.onEnd('STARTUP_TIMEOUT');
    this.#stalls += 1;
    if (this.#stalls > this.#options.maxStalls) return this.#options.onEnd('STALLED');
    this.#arm();
  }
}
