/**
 * `northroot/witness`: witness policies, the witness service and its client. The only entry point whose code uses a network.
 * Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Witnesses (C2SP tlog-policy, tlog-witness)
export {
  describeQuorum,
  describeSkipped,
  MAX_WITNESS_POLICY_BYTES,
  meetsQuorum,
  parseWitnessPolicy,
  witnessPolicyKeys,
  type PolicyGroup,
  type PolicyLog,
  type PolicyWitness,
  type SkippedPolicyKey,
  type WitnessPolicy,
  type WitnessPolicyKeys,
} from '../rules/trust/witness-policy.js';
export {
  createWitness,
  isSubmissionPrefix,
  originOf,
  type LogKey,
  type Witness,
  type WitnessEvent,
  type WitnessOptions,
  type WitnessRequest,
  type WitnessResponse,
} from '../proof/witness/witness-service.js';
export {
  attestCheckpoint,
  type AttestResult,
  type AttestOptions,
  type WithLedger,
} from '../proof/witness/attest.js';
export { serveWitness, type ServeOptions, type WitnessServer } from '../proof/witness/serve-witness.js';
export {
  collectCosignatures,
  submissionUrl,
  verifyCosignatures,
  type Collected,
  type CollectOptions,
  type JudgedCosignatures,
  type ValidCosignature,
} from '../proof/witness/witness-client.js';
