/**
 * Checks the shape (compiled from `schemas/`) and the values (`value-rules.ts`) of records, events, keys, trust policies and reports
 * (SPEC §2–§4, §7, §9), but nothing that depends on bytes, hashes or other records.
 *
 * Each function takes any value and returns at most sixteen faults, one per place, in the order of the canonical document.
 */

import type { ValueFault } from '../../base/fault.js';
import { FaultList, type ShapeCode } from './fault-list.js';
import {
  validateAdjustment,
  validateApproval,
  validateAttestation,
  validateAuthorization,
  validateCheckpoint,
  validateEvent,
  validateExecution,
  validateGenesis,
  validateKey,
  validateKeyEvent,
  validateRecord,
  validateReport,
  validateRevocation,
  validateTrustPolicy,
} from './validators.js';
import type { Validator } from './validator.js';
import {
  checkAdjustmentValues,
  checkApprovalValues,
  checkAuthorizationValues,
  checkEnvelopeValues,
  checkExecutionValues,
  checkGenesisValues,
  checkKeyEventValues,
  checkKeyValues,
  checkReportValues,
  checkRevocationValues,
  checkTrustPolicyValues,
  isObject,
  type ValueRule,
} from './value-rules.js';

export type { ShapeCode } from './fault-list.js';

interface Rules {
  readonly validate: Validator;
  readonly checkValues: ValueRule;
}

const ENVELOPE: Rules = { validate: validateEvent, checkValues: checkEnvelopeValues };

/** The types of SPEC §3.1 to §3.7. */
const TYPES: ReadonlyMap<unknown, Rules> = new Map([
  ['authorization', { validate: validateAuthorization, checkValues: checkAuthorizationValues }],
  ['execution', { validate: validateExecution, checkValues: checkExecutionValues }],
  ['adjustment', { validate: validateAdjustment, checkValues: checkAdjustmentValues }],
  ['approval', { validate: validateApproval, checkValues: checkApprovalValues }],
  ['revocation', { validate: validateRevocation, checkValues: checkRevocationValues }],
  ['genesis', { validate: validateGenesis, checkValues: checkGenesisValues }],
  ['checkpoint', { validate: validateCheckpoint, checkValues: checkEnvelopeValues }],
  ['attestation', { validate: validateAttestation, checkValues: checkEnvelopeValues }],
  ['key', { validate: validateKeyEvent, checkValues: checkKeyEventValues }],
]);

const RECORD: Rules = { validate: validateRecord, checkValues: () => undefined };
const KEY: Rules = { validate: validateKey, checkValues: checkKeyValues };
const TRUST_POLICY: Rules = { validate: validateTrustPolicy, checkValues: checkTrustPolicyValues };
const REPORT: Rules = { validate: validateReport, checkValues: checkReportValues };

/** Whether SPEC §3 defines this event type, with a closed schema. */
export function isKnownEventType(eventType: string): boolean {
  return TYPES.has(eventType);
}

/** The faults of a record (SPEC §4), where the event may be any object. Pointers are from the record's root. */
export function checkRecord(record: unknown): ValueFault<ShapeCode>[] {
  return check(record, RECORD);
}

/**
 * The faults of an event (SPEC §3). Only the envelope is checked of an unknown or extension type, and of another event version than "1"
 * (EVENT_VERSION_UNKNOWN). Pointers are from the event's root.
 */
export function checkEvent(event: unknown): ValueFault<ShapeCode>[] {
  const known =
    isObject(event) && event['event_version'] === '1' ? TYPES.get(event['event_type']) : undefined;
  return check(event, known ?? ENVELOPE);
}

/** The faults of a Key object (SPEC §7). Whether `keyid` is the key's is not checked. */
export function checkKey(key: unknown): ValueFault<ShapeCode>[] {
  return check(key, KEY);
}

/** The faults of a trust policy (SPEC §7). Whether each `keyid` is its key's is not checked. */
export function checkTrustPolicy(policy: unknown): ValueFault<ShapeCode>[] {
  return check(policy, TRUST_POLICY);
}

/** The faults of a report (SPEC §9), with or without its findings. */
export function checkReport(report: unknown): ValueFault<ShapeCode>[] {
  return check(report, REPORT);
}

function check(value: unknown, { validate, checkValues }: Rules): ValueFault<ShapeCode>[] {
  const faults = new FaultList(value);
  const shaped = validate(value);
  if (!shaped) faults.addErrors(validate.errors ?? []);
  if (isObject(value)) checkValues(value, faults, shaped);
  return faults.faults();
}
