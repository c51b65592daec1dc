/**
 * The rules of SPEC §2 that the validators omit, each with its own code: real dates, fractions in lowest terms, finite doubles,
 * unique units, no negative amounts, sorted warnings. They check only the places that SPEC §3 defines, and skip values of the wrong
 * type, which already have a fault.
 */

import { isUnit } from '../../base/value/meter.js';
import { isNegativeQuantity, type Quantity, quantityProblem } from '../../base/value/quantity.js';
import { tryParseRateUnit } from '../../base/value/rate.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import type { FaultList } from './fault-list.js';
import { validateQuantity } from './validators.js';
import { escapePointer } from '../../base/json/pointer.js';

/** An unchecked object. */
export type Members = Readonly<Record<string, unknown>>;

/** The rules of one kind of value. `shaped` says that the value passed its schema. */
export type ValueRule = (value: Members, faults: FaultList, shaped: boolean) => void;

/** Up to this many, comparing each unit with those before it is faster than a set. */
const FEW_METERS = 8;

export const checkEnvelopeValues: ValueRule = (event, faults) => {
  checkTimestamp(event['occurred_at'], '/occurred_at', faults);
};

export const checkAuthorizationValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  const { authorization, hygiene } = event;
  if (isObject(authorization)) {
    const { kind, bounds, action } = authorization;
    if (kind === 'grant' && isObject(bounds)) {
      checkTimestamp(bounds['expires_at'], '/authorization/bounds/expires_at', faults);
      checkTimestamp(bounds['not_before'], '/authorization/bounds/not_before', faults);
      checkMeters(bounds['action_caps'], '/authorization/bounds/action_caps', faults, shaped);
      checkMeters(bounds['meter_caps'], '/authorization/bounds/meter_caps', faults, shaped);
      checkMeters(bounds['rate_limits'], '/authorization/bounds/rate_limits', faults, shaped, rateKey);
      forEachObject(bounds['approvals'], (rule, i) => {
        checkMeters(rule['above'], `/authorization/bounds/approvals/${i}/above`, faults, shaped);
      });
    }
    if (kind === 'action' && isObject(action)) {
      checkMeters(action['meter_reservation'], '/authorization/action/meter_reservation', faults, shaped);
      checkTimestamp(action['expires_at'], '/authorization/action/expires_at', faults);
      checkDistinct(action['approval_event_ids'], '/authorization/action/approval_event_ids', faults);
    }
  }
  if (isObject(hygiene)) checkSorted(hygiene['warnings'], '/hygiene/warnings', faults);
};

export const checkExecutionValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  checkTimestamp(event['started_at'], '/started_at', faults);
  checkTimestamp(event['ended_at'], '/ended_at', faults);
  checkMeters(event['meter_used'], '/meter_used', faults, shaped);
  checkBasisUnits(event['meter_basis_by_unit'], event['meter_used'], faults);
};

export const checkAdjustmentValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  checkMeters(event['meters'], '/meters', faults, shaped);
};

export const checkApprovalValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  checkMeters(event['meter_limit'], '/meter_limit', faults, shaped);
  checkTimestamp(event['expires_at'], '/expires_at', faults);
};

export const checkRevocationValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  const { effect, in_flight: inFlight } = event;
  if (effect === 'resume' && inFlight !== undefined)
    faults.add('SCHEMA', '/in_flight', 'no such member with resume', inFlight);
};

export const checkGenesisValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  checkKeys(event['keys'], faults);
};

export const checkKeyEventValues: ValueRule = (event, faults, shaped) => {
  checkEnvelopeValues(event, faults, shaped);
  checkValidity(event['key'], '/key', faults);
};

export const checkKeyValues: ValueRule = (key, faults) => {
  checkValidity(key, '', faults);
};

export const checkTrustPolicyValues: ValueRule = (policy, faults) => {
  checkKeys(policy['keys'], faults);
};

export const checkReportValues: ValueRule = (report, faults, shaped) => {
  forEachObject(report['grants'], (grant, i) => {
    checkTimestamp(grant['expires_at'], `/grants/${i}/expires_at`, faults);
    for (const unit of isObject(grant['decimals']) ? Object.keys(grant['decimals']) : [])
      if (!isUnit(unit))
        faults.add(
          'SCHEMA',
          `/grants/${i}/decimals/${escapePointer(unit)}`,
          'a member named by a unit',
          unit,
        );
    forEachObject(grant['meters'], (meter, j) => {
      for (const member of ['cap', 'used', 'estimated', 'reserved', 'left'])
        if (meter[member] !== undefined)
          checkQuantity(meter[member], `/grants/${i}/meters/${j}/${member}`, faults, shaped);
    });
  });
  forEachObject(report['open_starts'], (start, i) => {
    checkTimestamp(start['started_at'], `/open_starts/${i}/started_at`, faults);
  });
};

/** Whether `value` is an object and no array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checkTimestamp(value: unknown, pointer: string, faults: FaultList): void {
  if (typeof value === 'string' && !isTimestamp(value))
    faults.add('TIMESTAMP_INVALID', pointer, 'a real date and time', value);
}

/** @param keyOf - The key of a unit that must be unique; `undefined` to skip it. */
function checkMeters(
  vector: unknown,
  pointer: string,
  faults: FaultList,
  shaped: boolean,
  keyOf: (unit: string) => string | undefined = sameUnit,
): void {
  if (!Array.isArray(vector)) return;
  const seen = vector.length > FEW_METERS ? new Set<unknown>() : undefined;
  for (let i = 0; i < vector.length; i++) {
    const meter: unknown = vector[i];
    if (!isObject(meter)) continue;
    const { unit, amount } = meter;
    if (typeof unit === 'string') {
      const key = keyOf(unit);
      if (key !== undefined && (seen === undefined ? hasUnit(vector, i, key, keyOf) : seen.has(key)))
        faults.add('METER_UNIT_DUPLICATE', `${pointer}/${i}/unit`, 'each unit once', unit);
      seen?.add(key);
    }
    if (!checkQuantity(amount, `${pointer}/${i}/amount`, faults, shaped)) continue;
    if (isNegativeQuantity(amount as Quantity))
      faults.add('METER_NEGATIVE', `${pointer}/${i}/amount`, 'an amount that is not negative', amount);
  }
}

/** Each basis must be of a used unit. */
function checkBasisUnits(bases: unknown, vector: unknown, faults: FaultList): void {
  if (!isObject(bases) || !Array.isArray(vector)) return;
  const units = new Set(vector.map((meter: unknown) => (isObject(meter) ? meter['unit'] : undefined)));
  for (const unit of Object.keys(bases))
    if (!units.has(unit))
      faults.add(
        'SCHEMA',
        `/meter_basis_by_unit/${escapePointer(unit)}`,
        'a unit of meter_used',
        bases[unit],
      );
}

/** Whether a meter before `index` has that key. */
function hasUnit(
  vector: readonly unknown[],
  index: number,
  key: string,
  keyOf: (unit: string) => string | undefined,
): boolean {
  for (let i = 0; i < index; i++) {
    const unit = (vector[i] as { unit?: unknown } | null)?.unit;
    if (typeof unit === 'string' && keyOf(unit) === key) return true;
  }
  return false;
}

function sameUnit(unit: string): string {
  return unit;
}

/** Limits of one unit over windows of equal length are duplicates, however the window is written. */
function rateKey(unit: string): string | undefined {
  const rate = tryParseRateUnit(unit);
  return rate === undefined ? undefined : `${rate.meter} ${rate.window}`;
}

/** Whether the quantity is valid; one of the wrong shape already has a fault. */
function checkQuantity(value: unknown, pointer: string, faults: FaultList, shaped: boolean): boolean {
  if (!shaped && !validateQuantity(value)) return false;
  const problem = quantityProblem(value as Quantity);
  if (problem !== undefined) faults.add('QUANTITY_INVALID', pointer, problem, value);
  return problem === undefined;
}

function checkSorted(codes: unknown, pointer: string, faults: FaultList): void {
  if (!Array.isArray(codes)) return;
  for (let i = 1; i < codes.length; i++) {
    const before: unknown = codes[i - 1];
    const code: unknown = codes[i];
    if (typeof code === 'string' && typeof before === 'string' && code <= before)
      faults.add('SCHEMA', `${pointer}/${i}`, 'codes in order, each once', code);
  }
}

/** Each id once. */
function checkDistinct(ids: unknown, pointer: string, faults: FaultList): void {
  if (!Array.isArray(ids)) return;
  const seen = new Set<unknown>();
  for (const [i, id] of ids.entries()) {
    const b64: unknown = isObject(id) ? id['b64'] : undefined;
    if (seen.has(b64)) faults.add('SCHEMA', `${pointer}/${i}`, 'each id once', id);
    if (b64 !== undefined) seen.add(b64);
  }
}

function checkKeys(keys: unknown, faults: FaultList): void {
  forEachObject(keys, (key, i) => checkValidity(key, `/keys/${i}`, faults));
}

function checkValidity(key: unknown, pointer: string, faults: FaultList): void {
  if (!isObject(key)) return;
  checkTimestamp(key['valid_from'], `${pointer}/valid_from`, faults);
  checkTimestamp(key['valid_until'], `${pointer}/valid_until`, faults);
}

function forEachObject(values: unknown, visit: (value: Members, index: number) => void): void {
  if (!Array.isArray(values)) return;
  values.forEach((value: unknown, index) => {
    if (isObject(value)) visit(value, index);
  });
}
