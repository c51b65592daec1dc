/** Converts ECDSA signatures of P-256 between r‖s of 64 bytes (IEEE P1363), as in records, and canonical DER (RFC 3279). */

import { equalBytes } from '../../base/bytes/compare.js';

const NUMBER_BYTES = 32;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

/** The DER of r‖s; `undefined` unless `signature` has 64 bytes. */
export function tryEncodeEcdsaDer(signature: Uint8Array): Uint8Array | undefined {
  if (signature.length !== 2 * NUMBER_BYTES) return undefined;
  const body = [signature.subarray(0, NUMBER_BYTES), signature.subarray(NUMBER_BYTES)].flatMap(encodeInteger);
  return Uint8Array.of(SEQUENCE, body.length, ...body);
}

/** r‖s of a DER signature; `undefined` for anything but the canonical DER of two numbers of at most 256 bits. */
export function tryDecodeEcdsaDer(der: Uint8Array): Uint8Array | undefined {
  if (der[0] !== SEQUENCE || der[1] !== der.length - 2) return undefined;
  const signature = new Uint8Array(2 * NUMBER_BYTES);
  let at = 2;
  for (const end of [NUMBER_BYTES, 2 * NUMBER_BYTES]) {
    const length = der[at + 1];
    if (der[at] !== INTEGER || length === undefined || length === 0) return undefined;
    const number = der.subarray(at + 2, at + 2 + length);
    if (number.length !== length) return undefined;
    const bytes = number[0] === 0 && length > 1 ? number.subarray(1) : number;
    if (bytes.length > NUMBER_BYTES) return undefined;
    signature.set(bytes, end - bytes.length);
    at += 2 + length;
  }
  const canonical = tryEncodeEcdsaDer(signature);
  return canonical !== undefined && equalBytes(canonical, der) ? signature : undefined;
}

/** An unsigned number without leading zeros, except one where the first bit would be a sign. */
function encodeInteger(number: Uint8Array): number[] {
  const first = number.findIndex((byte) => byte !== 0);
  const bytes = first === -1 ? [0] : [...number.subarray(first)];
  if ((bytes[0] as number) >= 0x80) bytes.unshift(0);
  return [INTEGER, bytes.length, ...bytes];
}
