/** Makes COSE receipts (RFC 9942): inclusion proofs signed by the log's key. */

import { NorthrootError } from '../base/error.js';
import { checkOptions, checkString } from '../base/options.js';
import { formatReceipt } from '../format/cose/receipt.js';
import type { Signer } from '../format/signature/signer.js';
import { replayTo } from '../log/read/read-records.js';
import type { OpenLedger } from '../rules/source/read-lines.js';
import { findRoleProblem } from '../rules/trust/keyring.js';
import type { VerifyState } from '../rules/verify/state.js';
import { type MadeProof, PROOF_OPTIONS, type ProofOptions, proveInclusion } from './make-proof.js';
import type { ProofBasis } from './proof-basis.js';

export interface ReceiptOptions extends ProofOptions {
  /** The log's key, ed25519 or p256. It signs the root again, since COSE cannot carry the signature of a note. */
  readonly signer: Signer;
}

/**
 * Proves that a record is in the ledger, as a COSE receipt: signed by the log's key over the root of a checkpoint's tree. The receipt does not
 * carry the record: `entry` MUST accompany it. It is not a SCITT transparent statement.
 *
 * @param from - As for `makeProof`.
 * @param wanted - The record's seq, its event id, or a prefix of it.
 * @returns `bytes` is the receipt.
 * @throws TypeError without a signer; NorthrootError `KEY_UNSUPPORTED` for an ml-dsa-44 key, `KEY_NOT_FOR_ROLE` as
 *   {@link assertReceiptKey}, and as `makeProof`
 */
export async function makeReceipt(
  from: OpenLedger | ProofBasis,
  wanted: string,
  options: ReceiptOptions,
): Promise<MadeProof> {
  checkOptions('makeReceipt', options, { ...PROOF_OPTIONS, signer: 'object' });
  checkString('makeReceipt', 'the record', wanted);
  const { signer } = options;
  assertReceiptSigner('makeReceipt', signer);
  const { record, hashes, base } = await proveInclusion(from, wanted, options);
  if (typeof from === 'function')
    assertReceiptKey(await replayTo(await from(), 'end', undefined, options.signal), signer);
  const { bytes: entry, eventId, seq: index } = record;
  const { origin: issuer, size, root } = base.checkpoint;
  const bytes = formatReceipt({ issuer, size, index, hashes, root }, signer);
  return { bytes, entry, eventId, index, checkpoint: base.checkpoint };
}

/**
 * @param where - The function that a TypeError names.
 * @throws TypeError without a signer; NorthrootError `KEY_UNSUPPORTED` for one whose signatures COSE receipts do not have
 */
export function assertReceiptSigner(where: string, signer: Signer | undefined): void {
  if (signer === undefined) throw new TypeError(`${where}: expected a signer`);
  if (signer.publicKey.alg !== 'ml-dsa-44') return;
  throw new NorthrootError(
    'KEY_UNSUPPORTED',
    'expected an ed25519 or p256 key to sign a COSE receipt, found ml-dsa-44',
  );
}

/**
 * Refuses a key that the ledger knows and that does not sign for the log. A key that it does not know may be known to a verifier.
 *
 * @throws NorthrootError `KEY_NOT_FOR_ROLE`
 */
export function assertReceiptKey({ keyring }: VerifyState, { publicKey }: Signer): void {
  const known = keyring.find(publicKey.keyid);
  const problem = known && findRoleProblem(known, ['checkpoint']);
  if (problem === undefined) return;
  throw new NorthrootError(
    problem.code,
    `the key ${publicKey.keyid} does not sign for the log: expected the role ${problem.expected}, found ${problem.actual}`,
    { hint: 'sign with a key of the ledger that has the role checkpoint' },
  );
}
