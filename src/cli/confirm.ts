/** Asks the user before something is done that cannot be taken back. */

import { createInterface } from 'node:readline/promises';
import { CommandError } from './command-error.js';

/** Whether there is somebody to ask. */
export function canAsk(): boolean {
  return process.stdin.isTTY;
}

/**
 * Asks on the terminal; anything but `y` or `yes` is a no.
 * @throws NorthrootError `NOT_CONFIRMED`; the signal's reason
 */
export async function confirm(question: string, signal: AbortSignal, hint: string): Promise<void> {
  const line = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await line.question(`${question} [y/N] `, { signal });
    if (/^y(?:es)?$/i.test(answer.trim())) return;
  } finally {
    line.close();
  }
  throw new CommandError('NOT_CONFIRMED', 'nothing was written', { hint });
}
