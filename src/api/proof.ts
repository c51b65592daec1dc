/**
 * `northroot/proof`: proofs that a record stands in a ledger, and that one ledger goes on from another: made from ledgers, verified
 * without them; and where two ledgers part. Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Proofs, and where two ledgers part (SPEC §6)

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
export {
  parseProofKey,
  type CheckpointSigners,
  type ProofKey,
  type ProofProblem,
  type ProofTrust,
} from '../proof/proof-keys.js';

export { parseTlogProof, type TlogProof } from '../proof/tlog-proof.js';
export { verifyConsistencyProof, type ConsistencyResult } from '../proof/verify-consistency.js';
export {
  verifyProof,
  type ProofEntry,
  type ProofEventSignature,
  type ProofGap,
  type ProofOutcome,
  type ProofResult,
  type ProofVerdict,
  type StatedTree,
  type VerifyProofOptions,
} from '../proof/verify-proof.js';

// COSE receipts (RFC 9942)

export { verifyReceipt, type ReceiptResult } from '../proof/verify-receipt.js';
