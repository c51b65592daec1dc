/** A verified record, for exports, summaries and selections. */

import type { Finding } from '../../format/finding/finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { EventVerdict, SignatureOutcome } from './line-result.js';
import type { VerifyState } from './state.js';

export interface VerifiedRecord {
  /** Its leaf index: the `seq` that it has, or should have. */
  readonly ordinal: number;
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** The line's offset, and its length without its newline. */
  readonly byteOffset: number;
  readonly byteLength: number;
  /** The line without its newline, valid until the call returns. Undefined for one too long to be read. */
  readonly bytes: Uint8Array | undefined;
  /** Undefined for a line too long to be read. */
  readonly examined: ExaminedLine | undefined;
  /** The verdict so far. The end may still make it invalid: a revoked key's record that no checkpoint covers. */
  readonly verdict: EventVerdict;
  /** All its findings, listed in the report or folded under an earlier one. */
  readonly findings: readonly Finding[];
  /** The outcome of each signature, in order. */
  readonly signatures: readonly SignatureOutcome[];
  /** The grants above it, nearest first, `sha-256:…`, as it names them. */
  readonly grantIds: readonly string[];
  /** The state after it. It MUST NOT be changed, and moves on with the next record. */
  readonly state: VerifyState;
}
