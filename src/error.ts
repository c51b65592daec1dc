/**
 * The one class of error that northroot throws for what the outside world does wrong: a file that is not there,
 * a key that is not one, a disk that is full. Misuse of the API throws TypeError or RangeError instead, and what
 * is wrong *inside* a ledger is never thrown: it is a finding (`finding/`).
 */

/** Options of {@link NorthrootError}. */
export interface NorthrootErrorOptions {
  /** One line saying what to do about it. */
  readonly hint?: string | undefined;
  /** The error that led to this one. */
  readonly cause?: unknown;
  /** Exit status the CLI ends with, SPEC §8: 1 = invalid input evidence, 2 = could not decide. Default 2. */
  readonly exitStatus?: 1 | 2 | undefined;
}

/** An expected failure of I/O or of input, with a stable `code` (`^[A-Z0-9_]{1,64}$`), a cause and a hint. */
export class NorthrootError extends Error {
  readonly code: string;
  readonly hint: string | undefined;
  readonly exitStatus: 1 | 2;

  constructor(code: string, message: string, options: NorthrootErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NorthrootError';
    this.code = code;
    this.hint = options.hint;
    this.exitStatus = options.exitStatus ?? 2;
  }
}
