/** Records as standard DSSE envelopes, one a line. */

import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { toDsseEnvelope } from '../../format/signature/dsse.js';
import type { LedgerInput } from '../../log/read/verify-ledger.js';
import { type ExportOptions, type ExportPass, writeRecords } from '../../log/read/write-records.js';

export interface DsseExport extends ExportPass {
  /** Selected records that hold no event that can be read: no envelope is written of these. */
  readonly skipped: number;
  /** Signatures that are not base64url: an envelope cannot hold them. */
  readonly signaturesLeftOut: number;
}

/**
 * Writes the selected records as DSSE envelopes, one JSON object a line, in ledger order. An envelope holds the event's canonical
 * bytes and every signature of the record that is base64url, right or wrong; those of P-256 keys that the ledger knows are in DER.
 *
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; what `sink` rejects with.
 */
export async function exportDsse(
  ledger: LedgerInput,
  sink: ByteSink,
  options: ExportOptions = {},
): Promise<DsseExport> {
  let skipped = 0;
  let signaturesLeftOut = 0;
  const pass = await writeRecords('exportDsse', ledger, options, ({ bytes, examined, state }) => {
    if (bytes === undefined || examined?.wellFormed !== true) {
      skipped += 1;
      return undefined;
    }
    const { start, end } = examined.span;
    const signatures = examined.signatures ?? [];
    const readable = signatures.filter(({ sig }) => tryDecodeBase64url(sig) !== undefined);
    signaturesLeftOut += signatures.length - readable.length;
    const envelope = toDsseEnvelope(
      bytes.subarray(start, end),
      readable,
      (keyid) => state.keyring.find(keyid)?.publicKey.alg,
    );
    return sink.write(`${JSON.stringify(envelope)}\n`);
  });
  return { ...pass, skipped, signaturesLeftOut };
}
