/** Any JSON value (RFC 8259 §3), as `JSON.parse` gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** A JSON object: own enumerable members only, `__proto__` included. */
export type JsonObject = { [key: string]: JsonValue };

/** Whether a value is a JSON object, rather than an array, a scalar or nothing. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members; none for another value. */
export function membersOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Undefined for what is no JSON. */
export function tryParse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
