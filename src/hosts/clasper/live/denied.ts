/** How a denial reaches the caller. */

import { printable } from '../../../base/bytes/printable.js';
import { NorthrootError } from '../../../base/error.js';

/** Clasper or the ledger does not allow it; nothing ran. `code` is that of the recorded decision. */
export class ClasperDeniedError extends NorthrootError {
  readonly executionId: string;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;

  constructor(code: string, what: string, executionId: string, authorization: string, reason = '') {
    super(
      code,
      `${printable(what, 128)} is not allowed${reason === '' ? '' : `: ${printable(reason, 400)}`}`,
      {
        hint: 'the recorded decision says why',
      },
    );
    this.name = 'ClasperDeniedError';
    this.executionId = executionId;
    this.authorization = authorization;
  }
}
