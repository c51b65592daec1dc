/** What `northroot/proof` and `northroot/verify` both export: the verification of proofs (SPEC §6) and COSE receipts (RFC 9942). */

export {
  parseProofKey,
  type CheckpointSigners,
  type ProofKey,
  type ProofProblem,
  type ProofTrust,
} from '../proof/proof-keys.js';
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
export { verifyReceipt, type ReceiptResult } from '../proof/verify-receipt.js';
