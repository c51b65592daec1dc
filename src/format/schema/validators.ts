/** A validator for each schema that northroot reads values by. */

import { validatorOf } from './validator.js';

export const validateAdjustment = validatorOf('adjustment.json');
export const validateApproval = validatorOf('approval.json');
export const validateAttestation = validatorOf('attestation.json');
export const validateAuthorization = validatorOf('authorization.json');
export const validateCheckpoint = validatorOf('checkpoint.json');
export const validateEvent = validatorOf('event.json');
export const validateExecution = validatorOf('execution.json');
export const validateGenesis = validatorOf('genesis.json');
export const validateKey = validatorOf('key.json');
export const validateKeyEvent = validatorOf('key-event.json');
export const validatePrices = validatorOf('prices.json');
export const validateReconcileExpectation = validatorOf('reconcile-expectation.json');
export const validateRecord = validatorOf('record.json');
export const validateReport = validatorOf('report.json');
export const validateRevocation = validatorOf('revocation.json');
export const validateTrustPolicy = validatorOf('trust-policy.json');
export const validateQuantity = validatorOf('common.json#/$defs/quantity');
