/** What tools give back: bounded, and the same bytes for the same content. */

import { encodeUtf8 } from '../../base/bytes/text.js';

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What an answer has besides the bytes that it carries, at most. */
const FRAME_BYTES = 8_192;

/** How many bytes an answer of at most `limit` bytes can carry, whatever they are. */
export function carriedBytes(limit: number): number {
  return Math.max(0, Math.floor((limit - FRAME_BYTES) / 4) * 3);
}

export function jsonOutput(value: object): Uint8Array {
  return encodeUtf8(JSON.stringify(value));
}

/** What a failed act gives back. */
export function failure(error: string, more: object = {}): Uint8Array {
  return jsonOutput({ error, ...more });
}

/**
 * An answer with bytes in it: each as text where it is UTF-8, and as `NAME_base64` where it is not, or where all as text would be longer
 * than `limit`.
 */
export function carryingOutput(
  value: object,
  carried: Readonly<Record<string, Uint8Array>>,
  limit: number,
): Uint8Array {
  const named = Object.entries(carried);
  const asText = jsonOutput({
    ...value,
    ...Object.fromEntries(named.map(([name, bytes]) => textOf(name, bytes))),
  });
  if (asText.length <= limit) return asText;
  return jsonOutput({ ...value, ...Object.fromEntries(named.map(([name, bytes]) => base64Of(name, bytes))) });
}

function textOf(name: string, bytes: Uint8Array): [string, string] {
  try {
    return [name, DECODER.decode(bytes)];
  } catch {
    return base64Of(name, bytes);
  }
}

function base64Of(name: string, bytes: Uint8Array): [string, string] {
  return [`${name}_base64`, Buffer.from(bytes).toString('base64')];
}
