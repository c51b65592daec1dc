/**
 * Drives the step function over a source: splits it into lines, keeps the worst findings, tells of progress. All that is
 * asynchronous about verification is here.
 */

import type { Finding } from '../finding/finding.js';
import type { LedgerSource } from '../fs/source.js';
import { LineSplitter } from '../ledger/line-splitter.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import type { Verifier } from '../signature/verifier.js';
import { startVerification, type VerifyState } from './state.js';
import { finishVerification, verifyLine } from './verify-line.js';

/** How many findings a report lists unless told otherwise (SPEC §9). */
export const DEFAULT_MAX_FINDINGS = 1_000;

/** What to verify against, and whom to tell. */
export interface VerifyOptions {
  /** The keys, origins and requirements that the user pins; without it the ledger's own keys count, and the report says so. */
  readonly trust?: TrustPolicy;
  /** The signature backend; node:crypto unless given. */
  readonly verifier?: Verifier;
  /** At most so many findings are kept for the report, the worst ones. Default 1,000. */
  readonly maxFindings?: number;
  /** Called with each finding as it is found, in ledger order, however many there are. Its `folded` may grow later. */
  readonly onFinding?: (finding: Finding) => void;
  /** Called after each chunk with the bytes verified so far, and the size in bytes where it is known. */
  readonly onProgress?: (bytes: number, size: number | undefined) => void;
  /** Aborting makes verification end with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** The end of a verification. */
export interface VerificationResult {
  readonly state: VerifyState;
  readonly paths: readonly string[];
  /** Worst first, then in ledger order. */
  readonly findings: readonly Finding[];
}

/** The order in which findings are listed. */
const RANKS = ['invalid', 'violation', 'warning', 'info'] as const;

/**
 * Verifies a whole source.
 *
 * @throws NorthrootError when the source cannot be read to its end; RangeError for a bad option.
 */
export async function runVerification(
  source: LedgerSource,
  options: VerifyOptions = {},
): Promise<VerificationResult> {
  const maxFindings = options.maxFindings ?? DEFAULT_MAX_FINDINGS;
  if (!Number.isSafeInteger(maxFindings) || maxFindings < 0) {
    throw new RangeError('maxFindings must be an integer of at least 0');
  }
  const state = startVerification(options.trust, options.verifier ?? nodeVerifier);
  const kept = new Map<string, Finding[]>(RANKS.map((rank) => [rank, []]));
  const take = (findings: readonly Finding[]): void => {
    for (const finding of findings) {
      const rank = finding.severity === 'error' ? finding.class : finding.severity;
      const list = kept.get(rank) as Finding[];
      if (list.length < maxFindings) list.push(finding);
      options.onFinding?.(finding);
    }
  };
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      options.signal?.throwIfAborted();
      for (const line of splitter.push(chunk)) take(verifyLine(state, line, segment).findings);
      options.onProgress?.(state.bytes, source.size);
    }
    const torn = splitter.finish();
    if (torn !== undefined) take(verifyLine(state, torn, segment).findings);
  }
  take(finishVerification(state));
  const findings = RANKS.flatMap((rank) => kept.get(rank) as Finding[]).slice(0, maxFindings);
  return { state, paths: source.paths, findings };
}
