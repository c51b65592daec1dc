/** The exit status of a failed command (SPEC §8), by the error's code: 1 if evidence is invalid or refused, 2 if nothing was decided. */

import type { NorthrootError } from '../base/error.js';
import { isFindingCode } from '../format/finding/catalog.js';
import { CommandError } from './command-error.js';

/** Codes of refused evidence that are not codes of findings. All other such codes mean 2. */
const REFUSED: ReadonlySet<string> = new Set([
  // JSON that was given
  'DUPLICATE_KEYS',
  'NEGATIVE_ZERO',
  'NON_FINITE_NUMBER',
  'NUMBER_COERCED',
  'NUMBER_INEXACT',
  'UNSAFE_INTEGER',
  // ledgers
  'LEDGER_INVALID',
  'LEDGER_ROLLED_BACK',
  'LEDGER_TAIL_INVALID',
  'NOT_REACHED',
  'SEGMENT_MISPLACED',
  'SEGMENT_MISSING',
  // journals
  'JOURNAL_EVENT_TOO_LARGE',
  'JOURNAL_FOREIGN',
  'JOURNAL_MALFORMED',
  'JOURNAL_TORN',
  // proofs, envelopes and bundles
  'BUNDLE_DIGEST_MISMATCH',
  'BUNDLE_MALFORMED',
  'ENVELOPE_MALFORMED',
  'ENVELOPE_UNSUPPORTED',
  'PROOF_MALFORMED',
  // what may not be executed
  'AUTHORIZATION_AMBIGUOUS',
  'AUTHORIZATION_STARTED',
  'GRANT_UNSOUND',
  'IMPORTED_AUTHORITY',
  'REQUEST_CONFLICT',
  'SLICE_BEGUN',
  'STARTS_UNSETTLED',
  'START_AMBIGUOUS',
  'START_NOT_FOUND',
]);

/** Codes of findings that, as errors, mean that a command lacks a key, a checkpoint or witnesses. */
const LACKING: ReadonlySet<string> = new Set(['CHECKPOINT_MISSING', 'SIGNATURE_MISSING', 'WITNESS_QUORUM']);

/** The exit status of a command that ends with an error. */
export function exitStatusFor(error: NorthrootError): 1 | 2 {
  const { code } = error;
  if (error instanceof CommandError && error.exitStatus !== undefined) return error.exitStatus;
  if (LACKING.has(code)) return 2;
  return isFindingCode(code) || REFUSED.has(code) ? 1 : 2;
}

/** The same for a refused event: one that attests a missing checkpoint is itself invalid. */
export function exitStatusForRefusal(error: NorthrootError): 1 | 2 {
  return error.code === 'CHECKPOINT_MISSING' ? 1 : exitStatusFor(error);
}
