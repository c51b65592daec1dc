import type { Result } from '../src/base/fault.js';

/** The value of a result that has one. */
export function valueOf<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  const { code, expected, actual } = result.fault;
  throw new Error(`${code}: expected ${expected}, found ${actual}`);
}
