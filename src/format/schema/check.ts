/**
 * Shape and values of what comes from outside: records, events, keys, trust policies, reports (SPEC §2–§4, §7, §9).
 *
 * The shapes are the JSON Schemas of `schemas/`, compiled; the value rules that they cannot say are `value-rules.ts`. What depends
 * on bytes (canonical form, the size of `meta`), on hashes (ids) or on other records is for others.
 *
 * Each function takes any value and returns what is wrong with it: at most sixteen faults, one a place, in the
 * order of the canonical document; none when all is well.
 */

import type { ValueFault } from '../../base/fault.js';
import { FaultList, type ShapeCode } from './fault-list.js';
import {
  validateAdjustment,
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
  validateTrustPolicy,
} from './generated/validators.js';
import type { Validator } from './validator.js';
import {
  checkAdjustmentValues,
  checkAuthorizationValues,
  checkEnvelopeValues,
  checkExecutionValues,
  checkGenesisValues,
  checkKeyEventValues,
  checkKeyValues,
  checkReportValues,
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

/** The types of SPEC §3.1 to §3.5. */
const TYPES: ReadonlyMap<unknown, Rules> = new Map([
  ['authorization', { validate: validateAuthorization, checkValues: checkAuthorizationValues }],
  ['execution', { validate: validateExecution, checkValues: checkExecutionValues }],
  ['adjustment', { validate: validateAdjustment, checkValues: checkAdjustmentValues }],
  ['genesis', { validate: validateGenesis, checkValues: checkGenesisValues }],
  ['checkpoint', { validate: validateCheckpoint, checkValues: checkEnvelopeValues }],
  ['attestation', { validate: validateAttestation, checkValues: checkEnvelopeValues }],
  ['key', { validate: validateKeyEvent, checkValues: checkKeyEventValues }],
]);

const RECORD: Rules = { validate: validateRecord, checkValues: () => undefined };
const KEY: Rules = { validate: validateKey, checkValues: checkKeyValues };
const TRUST_POLICY: Rules = { validate: validateTrustPolicy, checkValues: checkTrustPolicyValues };
const REPORT: Rules = { validate: validateReport, checkValues: checkReportValues };

/** Whether this is an event type that SPEC §3 defines, with a closed schema. */
export function isKnownEventType(eventType: string): boolean {
  return TYPES.has(eventType);
}

/** What is wrong with a record (SPEC §4), its event apart: that is an object here. Pointers are from the record's root. */
export function checkRecord(record: unknown): ValueFault<ShapeCode>[] {
  return check(record, RECORD);
}

/**
 * What is wrong with an event (SPEC §3). Of an unknown or extension type, and of an event version that is not "1"
 * (EVENT_VERSION_UNKNOWN), the envelope alone is checked. Pointers are from the event's root.
 */
export function checkEvent(event: unknown): ValueFault<ShapeCode>[] {
  const known =
    isObject(event) && event['event_version'] === '1' ? TYPES.get(event['event_type']) : undefined;
  return check(event, known ?? ENVELOPE);
}

/** What is wrong with a key as events and trust policies have it (SPEC §7). That `keyid` is the key's is not checked here. */
export function checkKey(key: unknown): ValueFault<ShapeCode>[] {
  return check(key, KEY);
}

/** What is wrong with a trust policy (SPEC §7). That each `keyid` is its key's is not checked here. */
export function checkTrustPolicy(policy: unknown): ValueFault<ShapeCode>[] {
  return check(policy, TRUST_POLICY);
}

/** What is wrong with a report (SPEC §9), with or without its findings. */
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
