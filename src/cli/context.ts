/** What every command gets. */

import type { Terminal } from './terminal.js';

export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Standard input, if it was read before the command line was loaded. */
  readonly input?: Uint8Array | undefined;
  /**
   * Called by a command that ends by itself after a signal: it is then not killed after a grace period.
   * @param holds - Asked whether that is so now. Default: always
   */
  endsInItsTime(holds?: () => boolean): void;
}

/** An exit status of SPEC §8. */
export type ExitStatus = 0 | 1 | 2 | 3;

/** How a command ends. For one that runs until it is stopped, a signal is no interruption. */
export type Outcome = ExitStatus | { readonly stopped: ExitStatus };

/** Runs what a command does, in its surroundings. */
export type Run = (action: (context: Context) => Promise<Outcome>) => Promise<void>;
