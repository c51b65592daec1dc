/**
 * What a command that fails ends with (SPEC §8), by the error's code: 1 where something that was given as evidence was judged and
 * is invalid or was refused, 2 where nothing could be decided.
 */

import type { NorthrootError } from '../base/error.js';
import { isFindingCode } from '../format/finding/catalog.js';
import { CommandError } from './command-error.js';

/** Codes of evidence that are no codes of findings. Every other code that is no finding's is of what could not be decided. */
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
  'STARTS_UNSETTLED',
  'START_AMBIGUOUS',
  'START_NOT_FOUND',
]);

/** Codes of findings, and to a command that was to make something: a key, a checkpoint or witnesses that it needs are not there. */
const LACKING: ReadonlySet<string> = new Set(['CHECKPOINT_MISSING', 'SIGNATURE_MISSING', 'WITNESS_QUORUM']);

/** The exit status of a command that ends with an error. */
export function exitStatusFor(error: NorthrootError): 1 | 2 {
  const { code } = error;
  if (error instanceof CommandError && error.exitStatus !== undefined) return error.exitStatus;
  if (LACKING.has(code)) return 2;
  return isFindingCode(code) || REFUSED.has(code) ? 1 : 2;
}

/** The same for an event that a ledger refuses: one that attests a checkpoint that is not there is itself invalid. */
export function exitStatusForRefusal(error: NorthrootError): 1 | 2 {
  return error.code === 'CHECKPOINT_MISSING' ? 1 : exitStatusFor(error);
}
