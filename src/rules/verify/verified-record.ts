/** A record as verification left it, for whoever follows one record by record: exports, summaries, selections. */

import type { Finding } from '../../format/finding/finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { EventVerdict, SignatureOutcome } from './line-result.js';
import type { VerifyState } from './state.js';

/** See the head of this file. */
export interface VerifiedRecord {
  /** Its place in the ledger, counted from 0: the `seq` that it has, or should have. */
  readonly ordinal: number;
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Where the line begins, and how long it is without its newline. */
  readonly byteOffset: number;
  readonly byteLength: number;
  /** The line without its newline, until the call returns: copy what is kept. Undefined for one that is too long to be read. */
  readonly bytes: Uint8Array | undefined;
  /** What the line says; undefined for one that is too long to be read. */
  readonly examined: ExaminedLine | undefined;
  /** The verdict here. What only the end shows (a revoked key's record that nothing covers) may still make it invalid. */
  readonly verdict: EventVerdict;
  /** All that was found of it, listed in the report or folded under an earlier finding. */
  readonly findings: readonly Finding[];
  /** What became of each signature, in the record's order. */
  readonly signatures: readonly SignatureOutcome[];
  /** The grants above it, nearest first, `sha-256:…`, by what it names. */
  readonly grantIds: readonly string[];
  /** The state after it: to be asked, not changed. It goes on with the next record. */
  readonly state: VerifyState;
}
