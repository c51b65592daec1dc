/** The types of a parsed JSON text (RFC 8259 §3). Which of them may be hashed is for `canonicalize.ts` to say. */

/** Any JSON value, in the shape that `JSON.parse` gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** A JSON object: own enumerable members only; `__proto__` is a name like any other. */
export type JsonObject = { [key: string]: JsonValue };

/** Whether a value is a JSON object, rather than an array, a scalar or nothing. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
