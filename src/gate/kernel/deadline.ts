/** A signal for work that has a deadline. */

export interface Deadline {
  readonly signal: AbortSignal;
  /** To be called when the work has ended. */
  readonly clear: () => void;
}

/**
 * A signal that is aborted after `ms`, with a `TimeoutError`, or with any of the others. Holds on to all that it needs: what
 * `AbortSignal.timeout` and `AbortSignal.any` make together may be collected, and then never aborts.
 */
export function startDeadline(ms: number, others: readonly (AbortSignal | undefined)[] = []): Deadline {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new DOMException('the time is over', 'TimeoutError')), ms);
  const given = others.filter((each) => each !== undefined);
  const stop = (): void => own.abort(new DOMException('it is cancelled', 'AbortError'));
  for (const each of given) {
    each.addEventListener('abort', stop, { once: true });
    if (each.aborted) stop();
  }
  return {
    signal: own.signal,
    clear: () => {
      clearTimeout(timer);
      for (const each of given) each.removeEventListener('abort', stop);
    },
  };
}

/** Why an aborted act ended. */
export function abortCode(signal: AbortSignal): 'TIMEOUT' | 'CANCELLED' {
  return (signal.reason as Error | undefined)?.name === 'TimeoutError' ? 'TIMEOUT' : 'CANCELLED';
}
