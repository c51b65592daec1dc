/** Verification of a path, bytes or a stream. */

import { checkOptions, describeValue, type OptionTypes } from '../../base/options.js';
import { buildReport, type Report } from '../../rules/report/report.js';
import { type LedgerBytes, toChunkSource } from '../../rules/report/verify-chunks.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { ParentLedger } from '../../rules/verify/parents.js';
import { runVerification, VERIFY_OPTIONS, type VerifyOptions } from '../../rules/verify/run-verification.js';
import { openScratchFile } from '../fs/scratch-file.js';
import { openLedger } from '../tile/tile-tree.js';

/** A path to a file, a folder of segments or a tile tree; bytes in any form; or a source. */
export type LedgerInput = string | LedgerBytes | LedgerSource;

export type VerifyLedgerOptions = Omit<VerifyOptions, 'predecessor' | 'parents'> & {
  readonly predecessor?: LedgerInput | undefined;
  /** The ledgers whose slices this one spends, or results of `verifyParent`. */
  readonly parents?: readonly (LedgerInput | ParentLedger)[] | undefined;
};

/**
 * Verifies a ledger offline (SPEC §8). Problems of the ledger are in the report, never thrown.
 * @example
 * ```ts
 * const report = await verifyLedger('ledger.jsonl');
 * if (report.verdict !== 'ok') for (const finding of report.findings) console.error(finding.message);
 * ```
 * @throws NorthrootError when it cannot be read: `FILE_NOT_FOUND`, `ACCESS_DENIED`, `NOT_A_LEDGER`, `FILE_CHANGED`, …
 * @throws TypeError for a bad option, and for a ledger that is no {@link LedgerInput}; RangeError for a value out of range
 */
export async function verifyLedger(ledger: LedgerInput, given: VerifyLedgerOptions = {}): Promise<Report> {
  checkOptions('verifyLedger', given, OPTIONS);
  const { predecessor, parents, ...options } = given;
  const source = await openVerifiable('verifyLedger', ledger);
  const result = await runVerification(source, {
    ...options,
    ...(predecessor === undefined
      ? {}
      : { predecessor: await openVerifiable('verifyLedger: predecessor', predecessor) }),
    ...(parents === undefined
      ? {}
      : {
          parents: await openParents(parents),
        }),
  });
  return buildReport(result);
}

async function openParents(
  parents: readonly (LedgerInput | ParentLedger)[],
): Promise<(LedgerSource | ParentLedger)[]> {
  const opened: (LedgerSource | ParentLedger)[] = [];
  for (const parent of parents)
    opened.push(
      parent instanceof ParentLedger ? parent : await openVerifiable('verifyLedger: parents', parent),
    );
  return opened;
}

const OPTIONS: OptionTypes<VerifyLedgerOptions> = { ...VERIFY_OPTIONS, predecessor: 'any' };

/** @throws TypeError naming `where`, for any other value */
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
