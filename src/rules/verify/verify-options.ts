/** What a verification is run with, and the check of it. */

import { defaultThreads } from '#fast/step';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { Finding } from '../../format/finding/finding.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import type { LedgerSource } from '../source/ledger-source.js';
import type { WitnessPolicy } from '../trust/witness-policy.js';
import type { Anchor, EarlierAnchor } from './anchors.js';
import type { ParentLedger } from './parents.js';
import type { RecordCheck } from './record-check.js';
import type { SavedVerification } from './verified-prefix.js';
import type { VerifiedRecord } from './verified-record.js';

/** How many findings a report lists by default (SPEC §9). */
export const DEFAULT_MAX_FINDINGS = 1_000;

export const MAX_THREADS = 256;

/** The default of `maxMemory`: enough for two million events. */
const DEFAULT_MAX_MEMORY = 96 * 1024 * 1024;

export const MIN_MAX_MEMORY = 64 * 1024;

/** Options of `runVerification`. */
export interface VerifyOptions {
  /** The keys, origins and requirements that the user pins. Default: the ledger's own keys, which the report says. */
  readonly trust?: TrustPolicy | undefined;
  /** The logs, witnesses and quorum by which checkpoints are judged. */
  readonly witnessPolicy?: WitnessPolicy | undefined;
  /** Checkpoints that the user holds: the ledger must extend each. */
  readonly checkpoints?: readonly Anchor[] | undefined;
  /** Earlier ones, of which the report lists those that the ledger does not extend. */
  readonly earlierCheckpoints?: readonly EarlierAnchor[] | undefined;
  /** The ledger that this one continues: its genesis says where that one ended. */
  readonly predecessor?: LedgerSource | undefined;
  /**
   * The ledgers whose slices this one spends (SPEC §8 rule 17), each once: sources, which are verified first, as ledgers of their own under the
   * same `trust` and `witnessPolicy`; or results of `verifyParent`. Not with `from`.
   */
  readonly parents?: readonly (LedgerSource | ParentLedger)[] | undefined;
  /** The time of verification, for policies that bound the age of checkpoints. Default: the present. */
  readonly now?: string | undefined;
  /** Default: the platform's own. */
  readonly backend?: SignatureBackend | undefined;
  /** How many findings the result lists at most, the worst ones. Default 1,000. */
  readonly maxFindings?: number | undefined;
  /**
   * Selects the findings to list and to give to `onFinding`; all are counted. Default: all. Where a finding is not selected, the first
   * selected one that folds under it is listed instead, and later ones fold under that. This does not apply to findings that folded
   * before `from` was saved.
   */
  readonly show?: ((finding: Finding) => boolean) | undefined;
  /**
   * Called once per finding, in ledger order, but not for folded ones. A finding for which it returns true is counted, but neither
   * listed nor given to `onFinding`. Its `folded` may grow later. Default: none.
   */
  readonly acknowledge?: ((finding: Finding) => boolean) | undefined;
  /** Called with each finding, in ledger order, without a limit. Its `folded` may grow later. */
  readonly onFinding?: ((finding: Finding) => void) | undefined;
  /** Called with each verified record after `from`, in ledger order. A promise that it returns is awaited before the next line. */
  readonly onRecord?: ((record: VerifiedRecord) => Promise<void> | undefined) | undefined;
  /** What else is checked of the records, in this order: `checkDecisions`, `checkPrices`. Each serves one verification. Not with `from`. */
  readonly checks?: readonly RecordCheck[] | undefined;
  /** Called after each chunk with the bytes verified so far, and the size in bytes where it is known. */
  readonly onProgress?: ((bytes: number, size: number | undefined) => void) | undefined;
  /**
   * A saved state to resume from; it is changed. The lines before it are only hashed, to check that they are the same. It MUST have
   * been saved under the same `trust` and `witnessPolicy`, and {@link canGoOn} with these `checkpoints` MUST be true: otherwise the
   * report differs from that of one pass.
   */
  readonly from?: SavedVerification | undefined;
  /**
   * Whether to hash the ledger's bytes as a whole too, so that a result saved with its `prefix` resumes without reading the lines
   * before it. Costs about a microsecond per record. Default false.
   */
  readonly keepPrefix?: boolean | undefined;
  /**
   * How many threads examine lines, 1 to 256, the caller's included. Small ledgers are examined in one. Default: one per processor, up
   * to 16. The result does not depend on it.
   */
  readonly threads?: number | undefined;
  /**
   * The memory for event ids and their places, in bytes, at least 64 KiB. Default: 96 MiB, enough for about two million events. Further
   * ids are spilled to temporary files where the source can make them, and take 4 bytes each. Other growing state, such as open
   * actions, stays in memory. The result does not depend on it.
   */
  readonly maxMemory?: number | undefined;
  /** Aborting ends the verification with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export const VERIFY_OPTIONS: OptionTypes<VerifyOptions> = {
  trust: 'object',
  witnessPolicy: 'object',
  checkpoints: 'array',
  earlierCheckpoints: 'array',
  predecessor: 'object',
  parents: 'array',
  now: 'string',
  backend: 'object',
  maxFindings: 'number',
  show: 'function',
  acknowledge: 'function',
  onFinding: 'function',
  onRecord: 'function',
  checks: 'array',
  onProgress: 'function',
  from: 'object',
  keepPrefix: 'boolean',
  threads: 'number',
  maxMemory: 'number',
  signal: 'signal',
};

export type CheckedOptions = VerifyOptions & {
  readonly now: string;
  readonly maxFindings: number;
  readonly threads: number;
  readonly maxMemory: number;
};

/** @throws TypeError and RangeError for a bad option. */
export function checkVerifyOptions(options: VerifyOptions): CheckedOptions {
  checkOptions('runVerification', options, VERIFY_OPTIONS);
  const {
    maxFindings = DEFAULT_MAX_FINDINGS,
    threads = defaultThreads(),
    maxMemory = DEFAULT_MAX_MEMORY,
    now = new Date().toISOString(),
  } = options;
  if (!Number.isSafeInteger(maxFindings) || maxFindings < 0)
    throw new RangeError('maxFindings must be an integer of at least 0');
  if (!Number.isSafeInteger(threads) || threads < 1 || threads > MAX_THREADS)
    throw new RangeError(`threads must be an integer from 1 to ${MAX_THREADS}`);
  if (!Number.isSafeInteger(maxMemory) || maxMemory < MIN_MAX_MEMORY)
    throw new RangeError(`maxMemory must be an integer of at least ${MIN_MAX_MEMORY}`);
  if (!isTimestamp(now)) throw new RangeError('now must be a timestamp');
  if (options.parents !== undefined && options.from !== undefined)
    throw new RangeError(
      'parents and from exclude each other: what parents say is not part of a saved state',
    );
  if ((options.checks ?? []).length > 0 && options.from !== undefined)
    throw new RangeError('checks and from exclude each other: a saved state has no findings of theirs');
  return { ...options, maxFindings, threads, maxMemory, now };
}
