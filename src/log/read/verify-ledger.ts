/** The library's front door to verification: a path, bytes or a stream in, a report out. */

import { checkOptions, describeValue, type OptionTypes } from '../../base/options.js';
import { buildReport, type Report } from '../../rules/report/report.js';
import { type LedgerBytes, toChunkSource } from '../../rules/report/verify-chunks.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { runVerification, VERIFY_OPTIONS, type VerifyOptions } from '../../rules/verify/run-verification.js';
import { openScratchFile } from '../fs/scratch-file.js';
import { openLedger } from '../tile/open-ledger.js';

/** What can be verified: a path to a file, a folder of segments or a tile tree, bytes in any form, or a source of one's own. */
export type LedgerInput = string | LedgerBytes | LedgerSource;

/** {@link VerifyOptions}; the predecessor is given like the ledger itself. */
export type VerifyLedgerOptions = Omit<VerifyOptions, 'predecessor'> & {
  readonly predecessor?: LedgerInput | undefined;
};

/**
 * Verifies a ledger offline (SPEC §8). What is wrong with the ledger is in the report, never thrown.
 *
 * @example
 * ```ts
 * const report = await verifyLedger('ledger.jsonl');
 * if (report.verdict !== 'ok') for (const finding of report.findings) console.error(finding.message);
 * ```
 * @throws NorthrootError when it cannot be read: `FILE_NOT_FOUND`, `ACCESS_DENIED`, `NOT_A_LEDGER`, `FILE_CHANGED`, …
 * @throws TypeError for an option that is not known or of the wrong type, and for a ledger that is none of {@link LedgerInput};
 *   RangeError for a value that is out of range.
 */
export async function verifyLedger(ledger: LedgerInput, given: VerifyLedgerOptions = {}): Promise<Report> {
  checkOptions('verifyLedger', given, OPTIONS);
  const { predecessor, ...options } = given;
  const source = await openVerifiable('verifyLedger', ledger);
  const result = await runVerification(source, {
    ...options,
    ...(predecessor === undefined
      ? {}
      : { predecessor: await openVerifiable('verifyLedger: predecessor', predecessor) }),
  });
  return buildReport(result);
}

const OPTIONS: OptionTypes<VerifyLedgerOptions> = { ...VERIFY_OPTIONS, predecessor: 'any' };

/** The source of whatever can be verified. @throws TypeError naming `where` for anything else. */
export async function openVerifiable(where: string, ledger: LedgerInput): Promise<LedgerSource> {
  if (typeof ledger === 'string') return openLedger(ledger);
  const given: unknown = ledger;
  if (typeof given === 'object' && given !== null && !(given instanceof URL)) {
    const source = toChunkSource(ledger, '-');
    return source === ledger ? source : { ...source, openScratch: openScratchFile };
  }
  const hint = given instanceof URL ? '; fileURLToPath(url) gives the path of a file URL' : '';
  throw new TypeError(
    `${where}: expected a path, bytes, a stream of bytes or a ledger source, found ${describeValue(given)}${hint}`,
  );
}
