/**
 * Signals made of others. They hold on to all that they need: what `AbortSignal.any` and `AbortSignal.timeout` make together may be
 * collected, and then never aborts (Node.js 20).
 */

/** A signal for work that ends. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** To be called when the work has ended. */
  readonly clear: () => void;
}

type Given = readonly (AbortSignal | undefined)[];

/** A signal that is aborted with any of the others, for its reason. */
export function joinSignals(others: Given): Deadline {
  const own = new AbortController();
  return { signal: own.signal, clear: follow(own, others, ({ reason }): unknown => reason) };
}

/** A signal that is aborted after `ms`, with a `TimeoutError`, or with any of the others, with an `AbortError`. */
export function startDeadline(ms: number, others: Given = []): Deadline {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new DOMException('the time is over', 'TimeoutError')), ms);
  const leave = follow(own, others, () => new DOMException('it is cancelled', 'AbortError'));
  return {
    signal: own.signal,
    clear: () => {
      clearTimeout(timer);
      leave();
    },
  };
}

/** What another one waits for, to who may leave before. @throws the signal's reason; as `answer` */
export async function untilAborted<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return answer;
  let leave = (): void => undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason as Error);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave);
  });
  return Promise.race([answer, left]).finally(() => signal.removeEventListener('abort', leave));
}

/** Why work ended whose signal is aborted. */
export function abortCode(signal: AbortSignal): 'TIMEOUT' | 'CANCELLED' {
  return (signal.reason as Error | undefined)?.name === 'TimeoutError' ? 'TIMEOUT' : 'CANCELLED';
}

/** @returns What ends it */
function follow(own: AbortController, others: Given, reasonOf: (from: AbortSignal) => unknown): () => void {
  const ends = others.flatMap((each) => {
    if (each === undefined) return [];
    const stop = (): void => own.abort(reasonOf(each));
    each.addEventListener('abort', stop, { once: true });
    if (each.aborted) stop();
    return [(): void => each.removeEventListener('abort', stop)];
  });
  return () => {
    for (const end of ends) end();
  };
}
