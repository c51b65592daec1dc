/**
 * `northroot/proof`: proofs that a record is in a ledger and that one ledger extends another, made from ledgers and verified
 * without them; and where two ledgers diverge. `northroot` exports all of this too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export {
  diffLedgers,
  type DiffRecord,
  type DiffSide,
  type LedgerDiff,
  type LedgerRelation,
} from '../proof/ledger-diff.js';
export {
  makeConsistencyProof,
  makeProof,
  type MadeConsistencyProof,
  type MadeProof,
  type ProofOptions,
  type RecordProofOptions,
} from '../proof/make-proof.js';
export { makeReceipt, type ReceiptOptions } from '../proof/make-receipt.js';
export * from './verify-proofs.js';
