/**
 * The rules of SPEC §2 that the compiled validators leave out: real dates, fractions in lowest terms, finite doubles, each unit
 * once, no negative amounts, warnings sorted. (Some of them the published schemas say too; here each has its own code.) They look
 * at the places that SPEC §3 knows and at nothing else.
 *
 * A value need not have the right shape: what is no string, object or array is passed over here, since it has an issue already.
 */

import { isNegativeQuantity, quantityProblem, type Quantity } from '../value/quantity.js';
import { tryParseRateUnit } from '../value/rate.js';
import { isTimestamp } from '../value/timestamp.js';
import { validateQuantity } from './generated/validators.js';
import type { IssueList } from './issue.js';

/** An object of which nothing is known. */
export type Members = Readonly<Record<string, unknown>>;

/** One kind of value's rules. `shaped` says that the schema holds, so that what it says need not be asked again. */
export type ValueRule = (value: Members, issues: IssueList, shaped: boolean) => void;

/** Up to here comparing each unit with those before it is faster than a set. */
const FEW_METERS = 8;

export const checkEnvelopeValues: ValueRule = (event, issues) => {
  checkTimestamp(event['occurred_at'], '/occurred_at', issues);
};

export const checkAuthorizationValues: ValueRule = (event, issues, shaped) => {
  checkEnvelopeValues(event, issues, shaped);
  const { authorization, hygiene } = event;
  if (isObject(authorization)) {
    const { kind, bounds, action } = authorization;
    if (kind === 'grant' && isObject(bounds)) {
      checkTimestamp(bounds['expires_at'], '/authorization/bounds/expires_at', issues);
      checkTimestamp(bounds['not_before'], '/authorization/bounds/not_before', issues);
      checkMeters(bounds['action_caps'], '/authorization/bounds/action_caps', issues, shaped);
      checkMeters(bounds['meter_caps'], '/authorization/bounds/meter_caps', issues, shaped);
      checkMeters(bounds['rate_limits'], '/authorization/bounds/rate_limits', issues, shaped, rateKey);
    }
    if (kind === 'action' && isObject(action)) {
      checkMeters(action['meter_reservation'], '/authorization/action/meter_reservation', issues, shaped);
    }
  }
  if (isObject(hygiene)) checkSorted(hygiene['warnings'], '/hygiene/warnings', issues);
};

export const checkExecutionValues: ValueRule = (event, issues, shaped) => {
  checkEnvelopeValues(event, issues, shaped);
  checkTimestamp(event['started_at'], '/started_at', issues);
  checkTimestamp(event['ended_at'], '/ended_at', issues);
  checkMeters(event['meter_used'], '/meter_used', issues, shaped);
};

export const checkAdjustmentValues: ValueRule = (event, issues, shaped) => {
  checkEnvelopeValues(event, issues, shaped);
  checkMeters(event['meters'], '/meters', issues, shaped);
};

export const checkGenesisValues: ValueRule = (event, issues, shaped) => {
  checkEnvelopeValues(event, issues, shaped);
  checkKeys(event['keys'], issues);
};

export const checkKeyEventValues: ValueRule = (event, issues, shaped) => {
  checkEnvelopeValues(event, issues, shaped);
  checkValidity(event['key'], '/key', issues);
};

export const checkKeyValues: ValueRule = (key, issues) => {
  checkValidity(key, '', issues);
};

export const checkTrustPolicyValues: ValueRule = (policy, issues) => {
  checkKeys(policy['keys'], issues);
};

export const checkReportValues: ValueRule = (report, issues, shaped) => {
  forEachObject(report['grants'], (grant, i) => {
    checkTimestamp(grant['expires_at'], `/grants/${i}/expires_at`, issues);
    forEachObject(grant['meters'], (meter, j) => {
      for (const member of ['cap', 'used', 'estimated', 'reserved', 'left']) {
        if (meter[member] !== undefined)
          checkQuantity(meter[member], `/grants/${i}/meters/${j}/${member}`, issues, shaped);
      }
    });
  });
  forEachObject(report['open_starts'], (start, i) => {
    checkTimestamp(start['started_at'], `/open_starts/${i}/started_at`, issues);
  });
};

/** Whether `value` is an object and no array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checkTimestamp(value: unknown, pointer: string, issues: IssueList): void {
  if (typeof value === 'string' && !isTimestamp(value)) {
    issues.add('TIMESTAMP_INVALID', pointer, 'a real date and time', value);
  }
}

/** @param keyOf - What may stand in the vector once: the unit itself, or what tells rates apart; `undefined` for neither. */
function checkMeters(
  vector: unknown,
  pointer: string,
  issues: IssueList,
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
      if (key !== undefined && (seen === undefined ? hasUnit(vector, i, key, keyOf) : seen.has(key))) {
        issues.add('METER_UNIT_DUPLICATE', `${pointer}/${i}/unit`, 'each unit once', unit);
      }
      seen?.add(key);
    }
    if (!checkQuantity(amount, `${pointer}/${i}/amount`, issues, shaped)) continue;
    if (isNegativeQuantity(amount as Quantity)) {
      issues.add('METER_NEGATIVE', `${pointer}/${i}/amount`, 'an amount that is not negative', amount);
    }
  }
}

/** Whether one of the meters before `index` has that unit. */
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

/** Two limits of one unit over windows of the same length are one limit twice, however the window is written. */
function rateKey(unit: string): string | undefined {
  const rate = tryParseRateUnit(unit);
  return rate === undefined ? undefined : `${rate.meter} ${rate.window}`;
}

/** Whether there is a quantity without fault; one of the wrong shape has an issue already. */
function checkQuantity(value: unknown, pointer: string, issues: IssueList, shaped: boolean): boolean {
  if (!shaped && !validateQuantity(value)) return false;
  const problem = quantityProblem(value as Quantity);
  if (problem !== undefined) issues.add('QUANTITY_INVALID', pointer, problem, value);
  return problem === undefined;
}

function checkSorted(codes: unknown, pointer: string, issues: IssueList): void {
  if (!Array.isArray(codes)) return;
  for (let i = 1; i < codes.length; i++) {
    const before: unknown = codes[i - 1];
    const code: unknown = codes[i];
    if (typeof code === 'string' && typeof before === 'string' && code <= before) {
      issues.add('SCHEMA', `${pointer}/${i}`, 'codes in order, each once', code);
    }
  }
}

function checkKeys(keys: unknown, issues: IssueList): void {
  forEachObject(keys, (key, i) => checkValidity(key, `/keys/${i}`, issues));
}

function checkValidity(key: unknown, pointer: string, issues: IssueList): void {
  if (!isObject(key)) return;
  checkTimestamp(key['valid_from'], `${pointer}/valid_from`, issues);
  checkTimestamp(key['valid_until'], `${pointer}/valid_until`, issues);
}

function forEachObject(values: unknown, visit: (value: Members, index: number) => void): void {
  if (!Array.isArray(values)) return;
  values.forEach((value: unknown, index) => {
    if (isObject(value)) visit(value, index);
  });
}
