/** What every command is given. */

import type { Terminal } from './terminal.js';

/** A command's surroundings. */
export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** To be called where a signal is answered by going on to an end: what waits after it is then not given up. */
  endsInItsTime(): void;
}

/** An exit status of SPEC §8. */
export type ExitStatus = 0 | 1 | 2 | 3;

/** How a command ends. One that runs until it is stopped was not interrupted by that: it ends with a status all the same. */
export type Outcome = ExitStatus | { readonly stopped: ExitStatus };

/** Runs what a command does, in its surroundings. */
export type Run = (action: (context: Context) => Promise<Outcome>) => Promise<void>;
