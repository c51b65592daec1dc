/** Errors of a strict writer. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { Finding } from '../../format/finding/finding.js';

/** A strict ledger refused an event; `code` is that of the first finding that would make it invalid. */
export class StrictError extends NorthrootError {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    const fault = findings.find((finding) => finding.class === 'invalid');
    const { expected, actual } = fault ?? {};
    const found = expected === undefined ? '' : `: expected ${expected}, found ${actual ?? 'none'}`;
    super(fault?.code ?? 'LEDGER_INVALID', `the event would make the ledger invalid${printable(found)}`, {
      hint: 'without strict it is recorded as it is',
    });
    this.name = 'StrictError';
    this.findings = findings;
  }
}
