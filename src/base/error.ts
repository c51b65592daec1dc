/**
 * The one class of error that northroot throws for what the outside world does wrong: a file that is not there,
 * a key that is not one, a disk that is full. Misuse of the API throws TypeError or RangeError instead, and what
 * is wrong *inside* a ledger is never thrown: it is a finding (`finding/`). What a code is to the command line, its exit
 * status and the flags that help, is the command line's own (`cli/exit-status.ts`, `cli/hints.ts`).
 */

/** Options of {@link NorthrootError}. */
export interface NorthrootErrorOptions {
  /** One line saying what to do about it. */
  readonly hint?: string | undefined;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

/** An expected failure of I/O or of input, with a stable `code` (`^[A-Z0-9_]{1,64}$`), a cause and a hint. */
export class NorthrootError extends Error {
  readonly code: string;
  /** What to do about it, for a program that uses the library: it names no flags and no commands. */
  readonly hint: string | undefined;

  constructor(code: string, message: string, options: NorthrootErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NorthrootError';
    this.code = code;
    this.hint = options.hint;
  }
}
