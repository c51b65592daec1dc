/** `export --in-toto`: what verification found, as a signed in-toto statement. */

import { printable } from '../../base/bytes/printable.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { makeStatement } from '../../proof/statement/export-statement.js';
import { usageError } from '../command-error.js';
import { readSigner } from '../input.js';
import { instant } from '../options.js';
import { writeTarget } from '../targets.js';
import type { ExportKind } from './export-kind.js';
import { SIGNING_KEY } from './export-to.js';

interface InTotoFlags {
  readonly key?: string;
  readonly timeVerified?: string;
  readonly verifierId?: string;
  readonly resourceUri?: string;
}

export const IN_TOTO: ExportKind = {
  flags: '--in-toto <file>',
  target: 'file',
  description:
    'the verification result of the whole ledger, as an in-toto statement (SLSA Verification Summary) in a DSSE envelope; needs --key',
  further: [
    SIGNING_KEY,
    ['--time-verified <time>', 'for --in-toto: the verification time to state (default: none)', instant],
    ['--verifier-id <uri>', 'for --in-toto: the verifier, as a URI (default: northroot)'],
    ['--resource-uri <uri>', 'for --in-toto: the ledger, as a URI (default: ni: and the hash of its bytes)'],
  ],
  write: async ({ context, ledger, path, trust, witnessPolicy, checkpoints, now, options }) => {
    const { terminal, signal } = context;
    const { key, timeVerified, verifierId, resourceUri } = options as InTotoFlags;
    if (key === undefined) throw usageError('--in-toto needs --key: a statement says who makes it');
    const signer = await readSigner(terminal, key);
    const { bytes, statement, report } = await makeStatement(await openLedger(ledger), {
      signer,
      trust,
      witnessPolicy,
      checkpoints,
      now,
      timeVerified,
      verifierId,
      resourceUri,
      signal,
      onProgress: (done, size) => terminal.progress(done, size),
    }).catch((error: unknown) => {
      throw error instanceof RangeError ? usageError(error.message) : error;
    });
    await writeTarget(terminal, path, async (sink) => sink.write(bytes));
    const { verificationResult: result } = statement.predicate;
    terminal.say(
      `${printable(path)}: a statement of the whole ledger, ${result}; its verdict is ${report.verdict}`,
    );
    return report.exit_status;
  },
};
