/** Spares a system that does not answer: after some failures in a row it is not asked for a while, then once, to see whether it is back. */

import { NorthrootError } from '../../../base/error.js';
import type { HttpAnswer } from '../../../gate/json-client.js';

export interface CircuitOptions {
  /** Failures in a row that open it, at least 1. Default 3. */
  readonly failures?: number | undefined;
  /** How long it stays open, in milliseconds. Default 2,000. */
  readonly coolDownMs?: number | undefined;
}

const DEFAULT_FAILURES = 3;
const DEFAULT_COOL_DOWN_MS = 2_000;

export class CircuitBreaker {
  readonly #most: number;
  readonly #coolDownMs: number;
  readonly #ticks: () => number;
  #failures = 0;
  #openedAt: number | undefined;
  #isProbing = false;

  /**
   * @param ticks - A monotonic clock, in milliseconds
   * @throws RangeError for options out of range
   */
  constructor(
    { failures = DEFAULT_FAILURES, coolDownMs = DEFAULT_COOL_DOWN_MS }: CircuitOptions = {},
    ticks: () => number = () => performance.now(),
  ) {
    if (!(Number.isSafeInteger(failures) && failures >= 1))
      throw new RangeError('circuit: failures: expected a whole number, at least 1');
    if (!(coolDownMs >= 0)) throw new RangeError('circuit: coolDownMs: expected milliseconds, at least 0');
    this.#most = failures;
    this.#coolDownMs = coolDownMs;
    this.#ticks = ticks;
  }

  /** `half_open`: the next request finds out. */
  get state(): 'closed' | 'open' | 'half_open' {
    if (this.#openedAt === undefined) return 'closed';
    return this.#ticks() - this.#openedAt >= this.#coolDownMs ? 'half_open' : 'open';
  }

  /**
   * Sends a request, unless the circuit is open. An answer that is no good is one; a withdrawn request says nothing of the system.
   * @throws NorthrootError `CIRCUIT_OPEN`: nothing was asked; `PEER_UNREACHABLE`: a proxy answered; what the request throws
   */
  send(request: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
    const ask = async (): Promise<HttpAnswer> => {
      const answer = await request();
      if (isOfGateway(answer))
        throw new NorthrootError('PEER_UNREACHABLE', `answered with status ${answer.status}`);
      return answer;
    };
    return this.run(ask, isNoAnswer);
  }

  /**
   * Runs a request, unless the circuit is open.
   * @param isFailure - Whether an error says that the system does not answer; undefined for one that says nothing of it
   * @throws NorthrootError `CIRCUIT_OPEN`: nothing was asked; what the request throws
   */
  async run<T>(request: () => Promise<T>, isFailure: (error: unknown) => boolean | undefined): Promise<T> {
    const isProbe = this.#enter();
    try {
      const result = await request();
      this.#close();
      return result;
    } catch (error) {
      const failed = isFailure(error);
      if (failed === true) this.#fail(isProbe);
      else if (failed === false) this.#close();
      throw error;
    } finally {
      if (isProbe) this.#isProbing = false;
    }
  }

  #enter(): boolean {
    const { state } = this;
    if (state === 'closed') return false;
    if (state === 'open' || this.#isProbing)
      throw new NorthrootError('CIRCUIT_OPEN', 'it did not answer before, and is not asked now');
    this.#isProbing = true;
    return true;
  }

  #close(): void {
    this.#failures = 0;
    this.#openedAt = undefined;
  }

  #fail(isProbe: boolean): void {
    this.#failures += 1;
    if (isProbe || this.#failures >= this.#most) this.#openedAt = this.#ticks();
  }
}

const GATEWAY: readonly number[] = [502, 503, 504];

/** A proxy says so that it does not reach the system. */
export function isOfGateway({ status }: Pick<HttpAnswer, 'status'>): boolean {
  return GATEWAY.includes(status);
}

function isNoAnswer(error: unknown): boolean | undefined {
  if (!(error instanceof NorthrootError)) return undefined;
  return error.code === 'PEER_TIMEOUT' || error.code === 'PEER_UNREACHABLE';
}
