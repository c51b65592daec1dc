/** What every command is given. */

import type { Terminal } from './terminal.js';

/** A command's surroundings. */
export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** An exit status of SPEC §8. A command that runs until it is stopped ends with `'stopped'` instead, which is a success. */
export type ExitStatus = 0 | 1 | 2 | 3;
