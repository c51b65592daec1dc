/** Runs blocking work that signal listeners could not interrupt. */

import type { Context } from './context.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Raw listeners: those added with `once` stay such. */
type Listener = (...args: unknown[]) => void;

/**
 * Runs work during which a signal ends the process at once. It MUST NOT be used while a file is half written.
 *
 * @throws the reason of the context's signal where that is aborted already
 */
export async function interruptible<T>(
  { signal }: Pick<Context, 'signal'>,
  work: () => T | Promise<T>,
): Promise<T> {
  // Deliver pending signals first: the event loop polls for them between two immediates.
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
