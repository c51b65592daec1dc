/** The members of an event that may not be well-formed, as texts. Nothing here is made printable. */

import type { JsonObject, JsonValue } from '../../base/json/value.js';
import { formatQuantity, type Quantity } from '../../base/value/quantity.js';

/** `policy.cap pass (WITHIN)`: each check of an authorization. */
export function checkTexts(event: JsonObject): string[] {
  return list(event['checks']).map((each) => {
    const { check, result, code } = object(each);
    return `${string(check)} ${string(result)}${code === undefined ? '' : ` (${string(code)})`}`;
  });
}

/** `fs.* needs 2 of human:ada, human:ben, above 5 usd, at most 3600 s old`: a rule for approvals of a grant. */
export function approvalRuleText(
  rule: JsonObject,
  amounts: (vector: JsonValue | undefined) => string,
): string {
  const { tools, approvers, above, count = 1, max_age_s: age } = rule;
  const texts = (of: JsonValue | undefined): string => list(of).map(string).join(', ');
  const least = amounts(above);
  return [
    `${texts(tools)} needs ${numberText(count)} of ${texts(approvers)}`,
    ...(least === '' ? [] : [`above ${least}`]),
    ...(age === undefined ? [] : [`at most ${numberText(age)} s old`]),
  ].join(', ');
}

function numberText(value: JsonValue): string {
  return typeof value === 'number' ? String(value) : '?';
}

/** An amount in exact text; `?` for what has not the shape of one. */
export function quantityText(value: JsonValue | undefined): string {
  const { t, v, m, s, n, d, bits } = object(value);
  const isShaped =
    (t === 'int' && isInteger(v)) ||
    (t === 'dec' && isInteger(m) && typeof s === 'number' && s >= 0 && s <= 38) ||
    (t === 'rat' && isInteger(n) && isInteger(d) && d !== '0') ||
    (t === 'f64' && typeof bits === 'string' && /^[0-9a-f]{16}$/.test(bits));
  if (!isShaped) return '?';
  try {
    return formatQuantity(value as unknown as Quantity);
  } catch {
    return '?';
  }
}

function isInteger(value: JsonValue | undefined): boolean {
  return typeof value === 'string' && /^(?:0|-?[1-9][0-9]{0,38})$/.test(value);
}

/** `sha-256:…`; empty for another value. */
export function digest(value: JsonValue | undefined): string {
  const { alg, b64 } = object(value);
  return typeof alg === 'string' && typeof b64 === 'string' ? `${alg}:${b64}` : '';
}

/** The string; empty for another value. */
export function string(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** The items; none for another value. */
export function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/** The members; none for another value. */
export function object(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
