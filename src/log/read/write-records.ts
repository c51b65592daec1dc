/** Verifies a ledger once, and passes selected records to an exporter. */

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
import { NamesAskedFor, type Subject, Subjects, type UnmatchedName } from './subject.js';
import { type LedgerInput, openVerifiable } from './verify-ledger.js';

export type CommonOptions = Pick<VerifyOptions, 'trust' | 'now' | 'onProgress' | 'signal'>;

export const COMMON_OPTIONS: OptionTypes<CommonOptions> = {
  trust: VERIFY_OPTIONS.trust,
  now: VERIFY_OPTIONS.now,
  onProgress: VERIFY_OPTIONS.onProgress,
  signal: VERIFY_OPTIONS.signal,
};

export interface ExportOptions extends CommonOptions, Pick<VerifyOptions, 'witnessPolicy' | 'checkpoints'> {
  /** Default: all records. */
  readonly selection?: RecordSelection | undefined;
}

export const PASS_OPTIONS: OptionTypes<Omit<ExportOptions, 'selection'>> = {
  ...COMMON_OPTIONS,
  witnessPolicy: VERIFY_OPTIONS.witnessPolicy,
  checkpoints: VERIFY_OPTIONS.checkpoints,
};

/** Where records are proven under a checkpoint, rather than verified against it. */
export const PROVEN_OPTIONS: OptionTypes<Omit<ExportOptions, 'checkpoints'>> = {
  ...COMMON_OPTIONS,
  witnessPolicy: VERIFY_OPTIONS.witnessPolicy,
  selection: 'object',
};

export const EXPORT_OPTIONS: OptionTypes<ExportOptions> = { ...PASS_OPTIONS, selection: 'object' };

export interface ExportPass {
  readonly result: VerificationResult;
  readonly report: Report;
  readonly selected: number;
  /** Selected names that no record has. */
  readonly unmatched: readonly UnmatchedName[];
}

/**
 * Verifies the whole ledger, whatever is selected.
 * @param where - Named by a TypeError
 * @param take - Called with each selected record and its subject; a promise is awaited
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`
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
