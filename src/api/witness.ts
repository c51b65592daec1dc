/**
 * `northroot/witness`: witness policies, the witness service and its client. The only entry point whose code uses a network.
 * `northroot` exports all of this too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Witnesses (C2SP tlog-policy, tlog-witness)
export {
  parseWitnessPolicy,
  type PolicyGroup,
  type PolicyLog,
  type PolicyWitness,
  type SkippedPolicyKey,
  type WitnessPolicy,
} from '../rules/trust/witness-policy.js';
export {
  createWitness,
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
export { type Collected } from '../proof/witness/witness-client.js';
