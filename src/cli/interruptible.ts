/** Work that never gives way, or that waits for somebody else: no listener could end it on a signal. */

import type { Context } from './context.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Listeners as they were added: those that are called once stay such. */
type Listener = (...args: unknown[]) => void;

/**
 * Does what may take long, during which a signal ends the process at once, as it does where nobody listens. To be used
 * only where nothing is being written that would be left half done.
 *
 * @throws the reason of the context's signal where that is aborted already
 */
export async function interruptible<T>(
  { signal }: Pick<Context, 'signal'>,
  work: () => T | Promise<T>,
): Promise<T> {
  // What has come until now is told of before the listeners are gone: between two immediates the event loop looks for signals.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  signal.throwIfAborted();
  const held = SIGNALS.map((name) => [name, process.rawListeners(name) as Listener[]] as const);
  for (const [name] of held) process.removeAllListeners(name);
  try {
    return await work();
  } finally {
    for (const [name, listeners] of held) for (const listener of listeners) process.on(name, listener);
  }
}
