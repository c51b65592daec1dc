/** The error for a ledger of which there are no files, and whether they could be made. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { MAKE_FOLDER } from '../fs/io-error.js';

/** `FILE_NOT_FOUND`. */
export class NoLedgerError extends NorthrootError {
  readonly path: string;
  /** Whether its folder is there. */
  readonly hasFolder: boolean;

  constructor(path: string, hasFolder: boolean) {
    super('FILE_NOT_FOUND', `there is no ledger ${printable(path)}`, {
      hint: hasFolder ? 'make it first' : MAKE_FOLDER,
    });
    this.name = 'NoLedgerError';
    this.path = path;
    this.hasFolder = hasFolder;
  }
}
