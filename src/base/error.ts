/**
 * The error for failures of the outside world: a missing file, a malformed key, a full disk. Misuse of the API throws TypeError or
 * RangeError. Faults *inside* a ledger are findings (`finding/`), never thrown. Exit statuses and flags are in `cli/`.
 */

export interface NorthrootErrorOptions {
  /** One line: what to do about it. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** An expected failure of I/O or of input, with a stable `code` (`^[A-Z0-9_]{1,64}$`), a cause and a hint. */
export class NorthrootError extends Error {
  readonly code: string;
  /** What to do about it, for a program that uses the library; MUST NOT name flags or commands. */
  readonly hint: string | undefined;

  constructor(code: string, message: string, options: NorthrootErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NorthrootError';
    this.code = code;
    this.hint = options.hint;
  }
}
