/** Errors in the words of the command line. */

import { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

interface CommandErrorOptions extends NorthrootErrorOptions {
  /** Overrides the exit status of the code. */
  readonly exitStatus?: 1 | 2 | undefined;
}

/** An error of a command; its hint is shown verbatim. */
export class CommandError extends NorthrootError {
  readonly exitStatus: 1 | 2 | undefined;

  constructor(code: string, message: string, options: CommandErrorOptions = {}) {
    super(code, message, options);
    this.name = 'CommandError';
    this.exitStatus = options.exitStatus;
  }
}

/** A wrong use of a command: its code is `USAGE`. */
export function usageError(message: string, hint?: string): CommandError {
  return new CommandError('USAGE', message, { hint });
}
