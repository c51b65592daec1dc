/** Verifies a ledger once, and gives the records that are meant to whoever writes them, as they come. */

import { checkOptions, type OptionTypes } from '../../base/options.js';
import { buildReport, type Report } from '../../rules/report/report.js';
import { matchesSelection, type RecordSelection } from '../../rules/selection.js';
import {
  runVerification,
  type VerificationResult,
  VERIFY_OPTIONS,
  type VerifyOptions,
} from '../../rules/verify/run-verification.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { type Subject, Subjects } from './subject.js';
import { NamesAskedFor, type UnmatchedName } from './unmatched.js';
import { type LedgerInput, openVerifiable } from './verify-ledger.js';

/** How a ledger is verified for whatever is made of it. */
export type CommonOptions = Pick<VerifyOptions, 'trust' | 'now' | 'onProgress' | 'signal'>;

/** What each of {@link CommonOptions} may be. */
export const COMMON_OPTIONS: OptionTypes<CommonOptions> = {
  trust: VERIFY_OPTIONS.trust,
  now: VERIFY_OPTIONS.now,
  onProgress: VERIFY_OPTIONS.onProgress,
  signal: VERIFY_OPTIONS.signal,
};

/** How a ledger is verified for an export, and which records are meant. */
export interface ExportOptions extends CommonOptions, Pick<VerifyOptions, 'witnessPolicy' | 'checkpoints'> {
  /** Default: all records. */
  readonly selection?: RecordSelection | undefined;
}

/** What each option that says how the ledger is verified may be. */
export const PASS_OPTIONS: OptionTypes<Omit<ExportOptions, 'selection'>> = {
  ...COMMON_OPTIONS,
  witnessPolicy: VERIFY_OPTIONS.witnessPolicy,
  checkpoints: VERIFY_OPTIONS.checkpoints,
};

/** What each option may be where a checkpoint is not verified against, but what records are proven against. */
export const PROVEN_OPTIONS: OptionTypes<Omit<ExportOptions, 'checkpoints'>> = {
  ...COMMON_OPTIONS,
  witnessPolicy: VERIFY_OPTIONS.witnessPolicy,
  selection: 'object',
};

/** What each of {@link ExportOptions} may be. */
export const EXPORT_OPTIONS: OptionTypes<ExportOptions> = { ...PASS_OPTIONS, selection: 'object' };

/** The end of a pass over a ledger. */
export interface ExportPass {
  readonly result: VerificationResult;
  readonly report: Report;
  /** How many records were selected. */
  readonly selected: number;
  /** Names that the selection asks for, and that no record of the ledger has. */
  readonly unmatched: readonly UnmatchedName[];
}

/**
 * Verifies the whole ledger, whatever is selected.
 *
 * @param where - The function that a TypeError names.
 * @param take - Called with each selected record, and whose it is; what it returns is waited for.
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`.
 */
export async function writeRecords(
  where: string,
  ledger: LedgerInput,
  given: ExportOptions,
  take: (record: VerifiedRecord, subject: Subject) => Promise<void> | undefined,
): Promise<ExportPass> {
  checkOptions(where, given, EXPORT_OPTIONS);
  const { selection = {}, ...options } = given;
  const subjects = new Subjects();
  const names = new NamesAskedFor(selection);
  let selected = 0;
  const result = await runVerification(await openVerifiable(where, ledger), {
    ...options,
    onRecord: (record) => {
      const subject = subjects.take(record);
      names.take(subject);
      if (!matchesSelection(subject, selection)) return undefined;
      selected += 1;
      return take(record, subject);
    },
  });
  return { result, report: buildReport(result), selected, unmatched: names.list() };
}
