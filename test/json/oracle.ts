/** An independent, naive reading of SPEC §1: parse with the platform, write again with a few lines, compare bytes. */

import type { JsonValue } from '../../src/base/json/value.js';

/** What the canonical text of a value would be; undefined when it has none. */
export function naiveText(value: JsonValue, depth = 0): string | undefined {
  if (typeof value === 'number') {
    const written = JSON.stringify(value);
    const refused = Object.is(value, -0) || (/^-?\d+$/.test(written) && Math.abs(value) > 2 ** 53 - 1);
    return refused ? undefined : written;
  }
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value) ? undefined : JSON.stringify(value);
  if (value === null || typeof value === 'boolean') return String(value);
  if (depth === 64) return undefined;
  const isArray = Array.isArray(value);
  const parts: string[] = [];
  for (const key of isArray ? value.keys() : Object.keys(value).sort()) {
    const member = naiveText((value as Record<string, JsonValue>)[key], depth + 1);
    const name = isArray ? '' : naiveText(String(key));
    if (member === undefined || name === undefined) return undefined;
    parts.push(isArray ? member : `${name}:${member}`);
  }
  return isArray ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}

/** Whether bytes are canonical JSON. */
export function isNaivelyCanonical(bytes: Uint8Array): boolean {
  try {
    const decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return naiveText(JSON.parse(decoded) as JsonValue) === decoded;
  } catch {
    return false;
  }
}
